# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of the drop-in: packaged programs of other makers on the software device.
# TEST runs as the caller, and copies in the way that the device detects. TEST WAY-USER copies in one WAY
# (SOFTVERBS_COPY), and runs as an ordinary user (USER is `user`) or inside `unshare -Urn` (`unshare`): all rows, in
# few rounds, or in many with FULL=1.
# own_programs=1: a test of programs of this tree alone, which the thread sanitizer can watch.
# VERBS_DEVICE is a kernel's device; with it the programs run on their own libraries, and there is no drop-in.
way=${1:-}
role=${way#*-}
way=${way%-*}

# An ordinary user gets no name spaces of its own, because they would change its user id.
if [ "$role" = user ] && [ "$(id -u)" -ne 0 ] && [ -z "${OWN_NET:-}" ]; then
	export OWN_NET=shared
	exec flock "${TMPDIR:-/tmp}/udapl-blackbox.lock" "$0" "$@"
fi
. test/blackbox/lib.sh
if [ -n "${own_programs:-}" ]; then
	san_preload=	# they load the runtime themselves
else
	not_under_tsan
fi

# $other: an address of this host on an interface of its own, other than the loopback address; empty where there may
# be none.
other=10.78.0.1
if [ "$OWN_NET" != 1 ] || [ -n "${VERBS_DEVICE:-}" ]; then
	other=
elif ! ip link show sv0 >"$tmp/ip" 2>&1; then
	{ ip link add sv0 type veth peer name sv1 && ip address add $other/24 dev sv0 && ip link set sv1 up &&
		ip link set sv0 up; } >"$tmp/ip" 2>&1 || other=
fi

# Runs the test again as that user, from copies that the user can read.
if [ -n "$role" ] && [ -z "${ROWS_AS:-}" ]; then
	become='setpriv --reuid=65534 --regid=65534 --clear-groups'
	if [ "$(id -u)" -ne 0 ]; then
		become=
	elif ! $become true 2>"$tmp/why"; then
		[ "$role" != user ] || skip "no other user here: $(cat "$tmp/why")"
		become=
	fi
	if [ "$role" = unshare ]; then
		$become unshare -Urn true 2>"$tmp/why" || skip "no name spaces for users here: $(cat "$tmp/why")"
		become="$become unshare -Urn sh -c"
	fi
	stage=$tmp/stage
	mkdir -p "$stage/lib" "$stage/bin" "$stage/test" "$stage/tmp"
	cp -r "$BUILD/lib/softverbs" "$stage/lib"
	cp "$BUILD/bin/softverbs-run" "$stage/bin"
	cp "$BUILD/test/verbs-vendor.so" "$stage/test"
	cp -r test/blackbox "$stage/test"
	chmod -R a+rX "$stage"
	chmod a+rwx "$stage/tmp"
	chmod a+rx "$tmp"
	cd "$stage" || fail 'no stage'
	export BUILD="$stage" TMPDIR="$stage/tmp" HOME=/ ROWS_AS="$role" SOFTVERBS_COPY="$way"
	if [ "$role" = unshare ]; then
		OWN_NET=1 $become 'ip link set lo up && exec "$@"' sh "test/blackbox/$(basename "$0")" "$1"
	else
		$become "test/blackbox/$(basename "$0")" "$1"
	fi
	exit	# with the status of the test
fi

drop=$BUILD/lib/softverbs on_drop="'$BUILD/bin/softverbs-run'"
[ -z "${VERBS_DEVICE:-}" ] || drop='' on_drop=''
sv=$tmp/bin/sv
mkdir "$tmp/bin"
cat >"$sv" <<-END
	#!/bin/sh
	export LD_PRELOAD="$san_preload\${VERBS_PRELOAD:+:\$VERBS_PRELOAD}"
	${san_preload:+export ASAN_OPTIONS=detect_leaks=0}
	exec $on_drop "\$@"
END
chmod +x "$sv"

# rounds COUNT: COUNT rounds with FULL=1, else few; processes that poll for each other take long on a busy machine.
rounds() {
	most=300
	[ -z "$role" ] || most=30
	[ -z "${FULL:-}" ] || most=$1
	echo $(($1 < most ? $1 : most))
}

# resolves PROGRAM: all its symbols are found, those of verbs and rdma_cm in the drop-in.
resolves() {
	LD_LIBRARY_PATH=$drop ldd -r "$1" >"$tmp/ldd" 2>&1 || return 1
	# libdat2 loads a provider, whose symbols are found there
	! grep -v 'undefined symbol: dats\{0,1\}_' "$tmp/ldd" | grep -Eq 'not found|undefined symbol' &&
		! grep -E 'lib(ibverbs|rdmacm)\.so\.1 =>' "$tmp/ldd" | grep -qvF "=> $drop/"
}

# needs PROGRAM...: skips the test if a program is absent; fails if one would run on other libraries.
needs() {
	for program; do
		command -v "$program" >"$tmp/where" || skip "no $program here (Debian: ibverbs-utils, rdmacm-utils, perftest)"
		resolves "$(cat "$tmp/where")" || fail "$program does not load the drop-in"
	done
}

# The port of a verbs program that exchanges addresses over TCP, and of one that listens with rdma_cm.
tcp_listens() {
	awk -v port="$(printf ':%04X' "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6
}
cm_listens() {	# a name that is only reserved does not have the flag yet
	grep -q "^[^ ]* [0-9A-F]* [0-9A-F]* 00010000 .*@softverbs/[0-9]*/$user/.*/$1/" /proc/net/unix
}

# meet READY SERVER CLIENT: starts both and returns the status of the client. READY is a command that succeeds once
# the server listens.
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

# pair_again WORDS READY SERVER CLIENT: the same for a server that prints its address before it listens. A client that
# is faster is rejected, and one of them prints WORDS; then another pair is started.
pair_says() {
	says client "$1" || says server "$1"
}
pair_again() {
	words=$1
	shift
	tries_begin
	until meet "$@" && ! pair_says "$words"; do
		pair_says "$words" && tries_left || fail "$3 did not succeed"
		kill_program "$server_pid" 2>"$tmp/kill"
		wait "$server_pid"
	done
	wait "$server_pid" || fail "$2 did not succeed"
}

# kill_program PID: kills the program that `timeout` with that process id runs.
kill_program() {
	kill -9 "$(cat "/proc/$1/task/$1/children")"
}
