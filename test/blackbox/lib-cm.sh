# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of one of OFED's connection managers: its $library, ours and OFED's packaged one, each as
# server and as client, over the drop-in of the software device or a kernel's device (VERBS_DEVICE), with OFED's
# registry and $programs. The packaged programs sleep for seconds in each run, so that a test takes 20 s. With LONG_SECONDS
# (make check-storms) there are more connections and all kinds of transfer.
. test/blackbox/lib-verbs.sh
needs $programs

theirs=
for dir in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
	[ -e "$dir/$library" ] && theirs=$dir/$library
done
[ -n "$theirs" ] || skip "no packaged $library here (Debian: libdapl2)"
resolves "$theirs" || fail "$theirs does not load the drop-in"
unset LD_LIBRARY_PATH
# dat_conf OF LIBRARY
dat_conf() {
	mkdir "$tmp/$1"
	echo "scm u2.0 nonthreadsafe default $2 dapl.2.0 \"${VERBS_DEVICE:-soft0} 1\" \"\"" >"$tmp/$1/dat.conf"
}
dat_conf ours "$BUILD/lib/$library"
dat_conf theirs "$theirs"
export _STDBUF_O=L
sed -i 's|^exec|export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}/usr/libexec/coreutils/libstdbuf.so"\nexec|' "$sv"

# of PROVIDER COMMAND...: prints a command line for `pair` with our or their library.
of() {
	echo "env DAT_OVERRIDE=$tmp/$1/dat.conf $2"
}

# cell SERVER CLIENT READY DONE PROGRAM [OPTION...]: the packaged programs always exit with 0, so their output is
# checked.
cell() {
	server=$1 client=$2 ready=$3 done=$4
	shift 4
	again='conn established: 0x40*3\|CR REJECT\|REJECTED; error: 8\|REJ, reason=8\|REJECTED\|nnot connect to'
	pair_again "$again\|$dtestx_race" "$ready" "$(of "$server" "$* -P scm")" \
		"$(of "$client" "$* -P scm -h $address")"
	for side in server client; do
		says $side "$done" || fail "$*, $server serves $client: the $side does not say: $done"
		! says $side 'FAILED\|ERR!' || fail "$*, $server serves $client: the $side speaks of failure"
	done
	within 3 nothing_left || fail 'names of the software device are left'
}

cell_dtest() {
	cell "$1" "$2" 'tcp_listens 15828' 'DAPL Test Complete. PASSED' dtest -b 64 -B 10
	[ -n "${LONG_SECONDS:-}" ] || return 0
	for options in '-b 65536' '-w -b 65536' '-D -a -b 4096 -B 20' '-c -W -b 64 -B 50'; do
		# shellcheck disable=SC2086
		cell "$1" "$2" 'tcp_listens 15828' 'DAPL Test Complete. PASSED' dtest $options
	done
}

cell_dtestcm() {
	n=100
	[ -z "${LONG_SECONDS:-}" ] || n=1000
	cell "$1" "$2" 'tcp_listens 15828' "ALL $n CONNECTED" dtestcm -c $n
	[ -z "${LONG_SECONDS:-}" ] || cell "$1" "$2" 'tcp_listens 15828' "ALL $n CONNECTED" dtestcm -c $n -b 100
}

cell_dtestx() {
	cell "$1" "$2" 'tcp_listens 15828' 'IB extension test.*PASSED' dtestx
}

# The client asks for its port once, and listens there after it has printed it.
cell_dtestsrq() {
	cell "$1" "$2" 'says server ready' 'SRQ Test Complete' dtestsrq -c 4 -B 4 -S 0
}

# One server for all tests; it quits on request.
cell_dapltest() {
	start server "$sv" $(of "$1" 'dapltest -T S -D scm')
	server_pid=$started
	within 60 says server 'Service Point Ready' || fail "dapltest -T S of $1 does not get ready"
	for words in 'client SR 256 server SR 256' \
		'client SR 1024 server RW 4096 server SR 256 client RR 4096 client SR 256 server SR 256'; do
		# shellcheck disable=SC2086
		timeout -k 2 "$longest" "$sv" $(of "$2" dapltest) -T T -s $address -D scm -i 20 -t 2 -w 2 $words \
			>"$tmp/client" 2>&1 || fail "dapltest, $1 serves $2: status $?"
		says client 'End of Work' || fail "dapltest, $1 serves $2: no end"
		! says client 'FAILED' || fail "dapltest, $1 serves $2: speaks of failure"
	done
	timeout -k 2 "$longest" "$sv" $(of "$2" dapltest) -T Q -s $address -D scm >"$tmp/client" 2>&1
	wait "$server_pid" || fail "dapltest -T S ended with status $?"
}

printf '%-10s %-10s %-10s %s\n' server client program result
for server in ours theirs; do
	for client in ours theirs; do
		[ $server$client != theirstheirs ] || continue
		for program in $programs; do
			cell_$program $server $client
			printf '%-10s %-10s %-10s passed\n' $server $client $program
		done
	done
done
echo "three pairs of providers, each with $programs"
