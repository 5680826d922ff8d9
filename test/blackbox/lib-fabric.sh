# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of the fabric: two hosts, which are network namespaces joined by a veth pair. $here is a command that
# runs another one in the first (10.79.0.1), $there in the second (10.79.0.2). FABRIC: link, or a provider of libfabric.
. test/blackbox/lib-verbs.sh
[ -e "$BUILD/lib/softverbs/libsoftverbs-fabric.so.1" ] || skip 'libsoftverbs-fabric.so.1 was not built: its libraries are not here'
[ "$OWN_NET" = 1 ] || skip 'no network namespaces here'
[ -z "$other" ] || ip link delete sv0	# GID 1 is to be the address of the wire
# host_new: $host_pid is a process in a network namespace of its own, $on_host runs a command there.
host_new() {
	unshare -n sleep 3600 &
	host_pid=$!
	pids="$pids $host_pid"
	on_host="nsenter -t $host_pid -n"
	within 10 host_is_apart || skip 'no second network namespace here'
	$on_host ip link set lo up
}
host_is_apart() {
	[ "$(readlink /proc/$host_pid/ns/net)" != "$(readlink /proc/self/ns/net)" ]
}
host_new
other_host=$host_pid there=$on_host here=
{ ip link add v0 type veth peer name v1 && ip link set v1 netns $other_host && ip address add 10.79.0.1/24 dev v0 &&
	ip link set v0 up && $there ip address add 10.79.0.2/24 dev v1 && $there ip link set v1 up; } >"$tmp/ip" 2>&1 || skip "no veth pair here: $(cat "$tmp/ip")"

head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$tmp/key"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$tmp/other-key"
chmod 600 "$tmp/key" "$tmp/other-key"
has_libfabric() {
	[ -e "$BUILD/lib/softverbs/libsoftverbs-ofi.so.1" ]
}
if [ "${FABRIC:-link}" != link ]; then
	has_libfabric || skip 'libsoftverbs-ofi.so.1 was not built: libfabric is not here'
	needs fi_info
	fi_info -p "$FABRIC" -t FI_EP_RDM >"$tmp/fi_info" 2>&1 || skip "libfabric has no provider $FABRIC here"
	echo 'leak:libfabric.so' >"$tmp/leaks"	# of its provider net, as its own fi_pingpong shows
	export LSAN_OPTIONS="suppressions=$tmp/leaks:print_suppressions=0"
fi
export SOFTVERBS_FABRIC="${FABRIC:-link}" SOFTVERBS_FABRIC_KEY="$tmp/key"

# both PORT SERVER -- CLIENT: when the server listens on that port of rdma_cm or, of TCP, until the client finds it.
cm_listens() {	# a name that is only reserved does not have the flag yet
	grep -q "^[^ ]* [0-9A-F]* [0-9A-F]* 00010000 .*c/[0-9a-f]*/$port/" /proc/net/unix
}
both() {
	server= port=$1
	shift
	while [ "$1" != -- ]; do
		server="$server $1"
		shift
	done
	shift
	start server $here "$sv" $server
	server_pid=$started
	[ "$port" = tcp ] || within 30 cm_listens || fail "$server does not listen"
	tries=0
	until timeout -k 2 "$longest" $there "$sv" "$@" >"$tmp/client" 2>&1 && ! says client 'error: 8'; do
		kill -0 "$server_pid" 2>/dev/null || fail "$server has ended, before $1 succeeded"
		[ "$port" = tcp ] && [ $tries -lt 100 ] && grep -qi "couldn't connect\|unable to connect" "$tmp/client" ||
			fail "$1 did not succeed"
		tries=$((tries + 1))
	done
	wait "$server_pid" || fail "$server did not succeed"
	rows=$((rows + 1))
}
rows=0

# Entries of dat.conf `far`, at the addresses of the wire: v0.conf here, v1.conf there.
far_conf() {
	for end in v0 v1; do
		echo "far u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 \"$end 0\" \"\"" >"$tmp/$end.conf"
	done
}
