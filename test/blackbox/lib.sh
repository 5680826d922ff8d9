# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the black-box tests: two programs against each other, on libraries of this build.
# DTEST_PROVIDER and DTEST_ADDRESS are those of the device, by default the software device's.
# The programs' ports are fixed, so each test runs in a network name space of its own where that is possible. OWN_NET
# is set in such a name space, or is `shared` where there is none; a kernel's device is in the first one.
set -u
provider=${DTEST_PROVIDER:-ofa-v2-soft} address=${DTEST_ADDRESS:-127.0.0.1}
longest=${DTEST_LIMIT:-300}		# seconds for one program, which needs a few; the rest is for a slow or busy machine

: "${BUILD:?the build folder}"
export LD_LIBRARY_PATH=$BUILD/lib DAT_OVERRIDE=$BUILD/dat.conf
export PATH="$PATH:/usr/sbin:/sbin"	# ldconfig, which ordinary users lack
case ${SAN:-}:${CC:-} in
*address*:*clang*)	# programs that were built without the sanitizer load the runtime first
	san_preload=$(${CC:-cc} -print-file-name="libclang_rt.asan-$(uname -m).so") ;;
*address*)
	san_preload=$(${CC:-cc} -print-file-name=libasan.so) ;;
*thread*)
	san_preload=$(${CC:-cc} -print-file-name=libtsan.so) ;;
*)	san_preload= ;;
esac

# The test starts again in its name space.
if [ -z "${OWN_NET:-}" ]; then
	export OWN_NET=1
	if unshare -n true 2>/dev/null; then
		exec unshare -n sh -c 'ip link set lo up && exec "$@"' sh "$0" "$@"
	elif unshare -Urn true 2>/dev/null; then
		exec unshare -Urn sh -c 'ip link set lo up && exec "$@"' sh "$0" "$@"
	fi
	export OWN_NET=shared
	exec flock "${TMPDIR:-/tmp}/udapl-blackbox.lock" "$0" "$@"	# there are no name spaces here, so one test runs at a time
fi

tmp=$(mktemp -d)
pids=
export BLACKBOX_TEST=$tmp
# end PID...: ends processes that this test started and may have waited for; their numbers may belong to others by
# now. Each is timeout(1), which cannot pass SIGKILL on, so its program is killed first.
end() {
	for pid; do
		grep -qsz "^BLACKBOX_TEST=$tmp\$" "/proc/$pid/environ" || continue
		kill -9 $(cat "/proc/$pid/task/$pid/children" 2>/dev/null) "$pid" 2>/dev/null
	done
}
cleanup() {
	end $pids
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# test/run shows the last lines, so what was written last comes last, and the reason after it.
fail() {
	for log in $(ls -tr "$tmp"); do
		[ -f "$tmp/$log" ] || continue
		echo "--- $log"
		tail -n 40 "$tmp/$log"
	done
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# within SECONDS COMMAND...: waits until the command succeeds. SECONDS is the longest time on a quiet machine; the
# deadline is half a minute later, which costs nothing unless the test fails.
within() {
	deadline=$(($(date +%s) + ($1 < 30 ? 30 : $1)))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $deadline ] || return 1
		sleep 0.01
	done
}

# start NAME COMMAND...: runs in the background; its output is in $tmp/NAME, its process id in $started.
start() {
	name=$1
	shift
	: >"$tmp/$name"		# the output of an earlier program of that name must not count
	timeout -k 2 "$longest" "$@" >"$tmp/$name" 2>&1 &
	started=$!
	pids="$pids $started"
}

says() {
	grep -q "$2" "$tmp/$1"
}

# Nothing of the software device is left: no process of this user has a socket name of the device. Where all tests share a
# name space, others that run have some.
user=$(id -u)
nothing_left() {
	[ "$OWN_NET" = shared ] || ! grep -q "@softverbs/[0-9]*/$user/" /proc/net/unix
}

# not_running PID: the process is gone, or a zombie.
not_running() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# A packaged server says that it is ready before it is, and the last bytes that it sends wake a client that connects
# once. On a busy machine such a client is faster many times in a row, so it is started again for a minute:
# tries_begin, then tries_left before each time but the first.
tries_begin() {
	tries_end=$(($(date +%s) + 60))
}

tries_left() {
	[ "$(date +%s)" -lt "$tries_end" ]
}

# dtest_meet SERVER CLIENT [OPTION...]: the client exits with 0 and prints its success, because the packaged one
# always exits with 0; the server is $server_pid.
dtest_meet() {
	server=$1 client=$2
	shift 2
	start server "$server" -P "$provider" "$@"
	server_pid=$started
	within 20 says server 'waiting' || fail "$server does not get ready"
	case " $* " in
	*' -N '*) ;;
	*) within 20 listens 15828 || fail "$server does not listen" ;;	# the packaged client connects only once
	esac
	timeout -k 2 "$longest" "$client" -P "$provider" -h "$address" "$@" >"$tmp/client" 2>&1 &&
		says client 'DAPL Test Complete. PASSED' && return
	status=$?
	kill "$server_pid"
	wait "$server_pid"
	return $status
}

# dtest_pair SERVER CLIENT [OPTION...]: both succeed and print that. A client that is refused by a packaged server
# (NON_PEER_REJECTED) is started again.
dtest_pair() {
	tries_begin
	until dtest_meet "$@"; do
		[ "$1" != "$BUILD/bin/dtest" ] && says client 'REJECTED' && tries_left ||
			fail "$2 ended with status $status"
	done
	wait "$server_pid" || fail "$1 ended with status $?"
	says server 'DAPL Test Complete. PASSED' || fail "$1 did not pass"
	says client 'DAPL Test Complete. PASSED' || fail "$2 did not pass"
	within 3 nothing_left || fail 'names of the software device are left'
}

# dtest_runs SERVER CLIENT: each mode; all data are checked (-D) only where the device promises that the last byte of
# a write is visible last.
dtest_runs() {
	dtest_pair "$1" "$2" -b 65536
	dtest_pair "$1" "$2" -b 4096 -p
	dtest_pair "$1" "$2" -W -b 1024 -B 200
	dtest_pair "$1" "$2" -c -W -b 1024 -B 200
	[ "$provider" = ofa-v2-soft ] || return 0
	dtest_pair "$1" "$2" -w -b 65536
	dtest_pair "$1" "$2" -w -u -t -S 1 -B 20 -b 100
	dtest_pair "$1" "$2" -D -a -b 4096 -B 10
	dtest_pair "$1" "$2" -D -i 1000 -b 4096 -B 10
	dtest_pair "$1" "$2" -c -b 65536
}

# listens PORT: a socket of this name space listens on the TCP port.
listens() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$(printf %04X "$1") [0-9A-F]*:0000 0A "
}

# The packaged dtestx adds to its peer's memory, and swaps it, without a word from the peer that the value is set; a
# peer that is late by then makes both end with an error, with any provider. Such a pair is started again.
dtestx_race='original data.*= \(6420726576726553, expected 0x54321\|54321, expected 0x100\|98765, expected 0x10$\)'
dtestx_race=$dtestx_race'\|final result.*= \(0x54[45]21, expected 0x54321\|[12]00, expected 0x300\)'
dtestx_raced() {
	says client "$dtestx_race" || says server "$dtestx_race"
}

# tool_pair READY DONE SERVER CLIENT [OPTION...]: READY is a command that succeeds once the server is ready. Packaged
# programs always exit with 0, so their output is checked: it has DONE and no error.
tool_meet() {
	start server "$server" -s -P "$provider" "$@"
	server_pid=$started
	within 20 $ready || fail "$server does not get ready"
	timeout -k 2 "$longest" "$client" -P "$provider" -h "$address" "$@" >"$tmp/client" 2>&1 || return
	wait "$server_pid"
}
tool_pair() {
	ready=$1 done=$2 server=$3 client=$4
	shift 4
	tries_begin
	until tool_meet "$@"; do
		status=$?
		dtestx_raced && tries_left || fail "$client $*, or its server, ended with status $status"
		kill "$server_pid" 2>"$tmp/kill"
		wait "$server_pid"
	done
	for log in server client; do
		says $log "$done" || fail "$log $* does not say: $done"
		! says $log 'ERR\|Err\|FAILED' || fail "$log $* speaks of errors"
	done
	within 3 nothing_left || fail 'names of the software device are left'
}

# A program that was built without the thread sanitizer cannot run with it, or is reported for its own races.
not_under_tsan() {
	case ${SAN:-} in *thread*) skip 'not built with the thread sanitizer' ;; esac
}

# has_packaged NAME: the distribution's program NAME is installed. Makes $tmp/packaged-NAME, which runs it with its output
# line-buffered (stdbuf(1)), so that a test can wait for a line, and with a sanitizer's runtime if the libraries need one.
has_packaged() {
	case ${SAN:-} in *thread*) return 1 ;; esac
	[ -x "/usr/bin/$1" ] || return 1
	packaged_wrap "$1" "$tmp/packaged-$1"
}

# packaged NAME: makes $tmp/NAME in the same way; without the package the test is skipped.
packaged() {
	not_under_tsan
	[ -x "/usr/bin/$1" ] || skip "no packaged $1 here (Debian: dapl2-utils)"
	packaged_wrap "$1" "$tmp/$1"
}

packaged_wrap() {
	cat >"$2" <<-END
		#!/bin/sh
		export LD_PRELOAD='$san_preload:/usr/libexec/coreutils/libstdbuf.so' _STDBUF_O=L ASAN_OPTIONS=detect_leaks=0
		exec /usr/bin/$1 "\$@"
	END
	chmod +x "$2"
	case $(LD_LIBRARY_PATH=$BUILD/lib ldd "/usr/bin/$1") in
	*"$BUILD/lib/libdat2.so.2"*) ;;
	*) fail "the packaged $1 does not load the library of this build" ;;
	esac
}

# each_pair NAME COMMAND...: runs the command with server and client from ours, and where there is a packaged program
# NAME, with that one against itself and against ours in both directions. $pairs lists the pairs for the last line of
# the test.
each_pair() {
	of_both=$1 ours=$BUILD/bin/$1
	shift
	"$@" "$ours" "$ours"
	pairs='ours only: no packaged program here (Debian: dapl2-utils), or none for this sanitizer'
	has_packaged "$of_both" || return 0
	"$@" "$tmp/packaged-$of_both" "$tmp/packaged-$of_both"
	"$@" "$ours" "$tmp/packaged-$of_both"
	"$@" "$tmp/packaged-$of_both" "$ours"
	pairs='each of four pairs of programs'
}

packaged_dtest() {
	not_under_tsan
	[ -x /usr/bin/dtest ] || skip 'no packaged dtest here (Debian: dapl2-utils)'
	packaged_wrap dtest "$tmp/packaged"
}
