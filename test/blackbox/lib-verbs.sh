# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of the drop-in: programs of other makers, as packaged, on the software device.
# TEST alone copies the way that the device finds, as whoever calls it. TEST WAY-WHO copies in one WAY (SOFTVERBS_COPY), and
# is an ordinary user (WHO is `user`) or inside `unshare -Urn` (`unshare`): all rows, in few rounds. FULL=1: in many.
way=${1:-}
who=${way#*-}
way=${way%-*}

# An ordinary user stays one: name spaces of his own would make another of him.
if [ "$who" = user ] && [ "$(id -u)" -ne 0 ] && [ -z "${OWN_NET:-}" ]; then
	export OWN_NET=shared
	exec flock "${TMPDIR:-/tmp}/udapl-blackbox.lock" "$0" "$@"
fi
. test/blackbox/lib.sh
not_under_tsan

# $other: an address of this host that is not the loopback one, on an interface of its own; empty where there may be none.
other=10.78.0.1
if [ "$OWN_NET" != 1 ]; then
	other=
elif ! ip link show sv0 >"$tmp/ip" 2>&1; then
	{ ip link add sv0 type veth peer name sv1 && ip address add $other/24 dev sv0 && ip link set sv1 up &&
		ip link set sv0 up; } >"$tmp/ip" 2>&1 || other=
fi

# The test again as WHO, from copies that he can read.
if [ -n "$who" ] && [ -z "${ROWS_AS:-}" ]; then
	become='setpriv --reuid=65534 --regid=65534 --clear-groups'
	if [ "$(id -u)" -ne 0 ]; then
		become=
	elif ! $become true 2>"$tmp/why"; then
		[ "$who" != user ] || skip "no other user here: $(cat "$tmp/why")"
		become=
	fi
	if [ "$who" = unshare ]; then
		$become unshare -Urn true 2>"$tmp/why" || skip "no name spaces for users here: $(cat "$tmp/why")"
		become="$become unshare -Urn sh -c"
	fi
	stage=$tmp/stage
	mkdir -p "$stage/lib" "$stage/bin" "$stage/test" "$stage/tmp"
	cp -r "$BUILD/lib/softverbs" "$stage/lib"
	cp "$BUILD/bin/softverbs-run" "$stage/bin"
	cp -r test/blackbox "$stage/test"
	chmod -R a+rX "$stage"
	chmod a+rwx "$stage/tmp"
	chmod a+rx "$tmp"
	cd "$stage" || fail 'no stage'
	export BUILD="$stage" TMPDIR="$stage/tmp" HOME=/ ROWS_AS="$who" SOFTVERBS_COPY="$way"
	if [ "$who" = unshare ]; then
		OWN_NET=1 $become 'ip link set lo up && exec "$@"' sh "test/blackbox/$(basename "$0")" "$1"
	else
		$become "test/blackbox/$(basename "$0")" "$1"
	fi
	exit	# as it did
fi

drop=$BUILD/lib/softverbs
sv=$tmp/bin/sv
mkdir "$tmp/bin"
cat >"$sv" <<-END
	#!/bin/sh
	export LD_PRELOAD="$san_preload\${VERBS_PRELOAD:+:\$VERBS_PRELOAD}"
	${san_preload:+export ASAN_OPTIONS=detect_leaks=0}
	exec '$BUILD/bin/softverbs-run' "\$@"
END
chmod +x "$sv"

# rounds COUNT: that many of FULL=1; processes that wait for each other by looking take long on a busy machine.
rounds() {
	most=300
	[ -z "$who" ] || most=30
	[ -z "${FULL:-}" ] || most=$1
	echo $(($1 < most ? $1 : most))
}

# resolves PROGRAM: it finds all its symbols, and those of verbs and rdma_cm in this build.
resolves() {
	LD_LIBRARY_PATH=$drop ldd -r "$1" >"$tmp/ldd" 2>&1 || return 1
	# a provider of DAT is loaded by libdat2 and finds that there
	! grep -v 'undefined symbol: dats\{0,1\}_' "$tmp/ldd" | grep -Eq 'not found|undefined symbol' &&
		! grep -E 'lib(ibverbs|rdmacm)\.so\.1 =>' "$tmp/ldd" | grep -qvF "=> $drop/"
}

# needs PROGRAM...: skips the test if one is absent; fails if one would run on other libraries.
needs() {
	for program; do
		command -v "$program" >"$tmp/where" || skip "no $program here (Debian: ibverbs-utils, rdmacm-utils, perftest)"
		resolves "$(cat "$tmp/where")" || fail "$program does not load the drop-in"
	done
}

# The port of a verbs program that exchanges addresses over TCP; and of one that listens with rdma_cm.
tcp_listens() {
	awk -v port="$(printf ':%04X' "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6
}
cm_listens() {	# a name that is only claimed does not have the flag yet
	grep -q "^[^ ]* [0-9A-F]* [0-9A-F]* 00010000 .*@softverbs/[0-9]*/$user/.*/$1/" /proc/net/unix
}

# meet READY SERVER CLIENT: both begin; the status of the client. READY is a command that succeeds once the server listens.
meet() {
	start server "$sv" $2
	server_pid=$started
	within 60 $1 || fail "$2 does not listen"
	timeout -k 2 "$longest" "$sv" $3 >"$tmp/client" 2>&1
}

# pair READY SERVER CLIENT: both succeed.
pair() {
	meet "$@" || fail "$3 did not succeed"
	wait "$server_pid" || fail "$2 did not succeed"
}

# pair_again WORDS READY SERVER CLIENT: the same for a server that tells where it is before it listens there: a client that is
# faster is rejected and says WORDS, and another pair begins.
pair_again() {
	words=$1 tries=1
	shift
	until meet "$@" && ! says client "$words"; do
		says client "$words" && [ $tries -lt 20 ] || fail "$3 did not succeed"
		tries=$((tries + 1))
		kill_program "$server_pid" 2>"$tmp/kill"
		wait "$server_pid"
	done
	wait "$server_pid" || fail "$2 did not succeed"
}

# kill_program PID: the program that `timeout` with that process id runs.
kill_program() {
	kill -9 "$(cat "/proc/$1/task/$1/children")"
}
