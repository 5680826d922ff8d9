# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the black-box tests: two programs against each other, on libraries of this build.
# DTEST_PROVIDER and DTEST_ADDRESS are those of the device, by default the software device's.
# The programs' ports are fixed, so each test runs in a network name space of its own, where there may be one.
# OWN_NET says that it is in one already, or `shared` that there is none; that of a kernel device is the first one.
set -u
provider=${DTEST_PROVIDER:-ofa-v2-soft} address=${DTEST_ADDRESS:-127.0.0.1}
longest=${DTEST_LIMIT:-300}		# seconds for one program, which takes a few: the machine may be slow and busy

: "${BUILD:?the build folder}"
export LD_LIBRARY_PATH=$BUILD/lib DAT_OVERRIDE=$BUILD/dat.conf
case ${SAN:-}:${CC:-} in
*address*:*clang*)	# programs that were not built with it load the runtime first
	san_preload=$(${CC:-cc} -print-file-name="libclang_rt.asan-$(uname -m).so") ;;
*address*)
	san_preload=$(${CC:-cc} -print-file-name=libasan.so) ;;
*thread*)
	san_preload=$(${CC:-cc} -print-file-name=libtsan.so) ;;
*)	san_preload= ;;
esac

# The test starts over in its name space.
if [ -z "${OWN_NET:-}" ]; then
	export OWN_NET=1
	if unshare -n true 2>/dev/null; then
		exec unshare -n sh -c 'ip link set lo up && exec "$@"' sh "$0" "$@"
	elif unshare -Urn true 2>/dev/null; then
		exec unshare -Urn sh -c 'ip link set lo up && exec "$@"' sh "$0" "$@"
	fi
	export OWN_NET=shared
	exec flock "${TMPDIR:-/tmp}/udapl-blackbox.lock" "$0" "$@"	# no name spaces here: one test at a time
fi

tmp=$(mktemp -d)
pids=
export BLACKBOX_TEST=$tmp
# end PID...: those that this test started, which it may have waited for: others have their numbers by now. Each is
# timeout(1), which cannot pass SIGKILL on: its program first.
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

fail() {
	echo "FAILED: $*"
	for log in "$tmp"/*; do
		[ -f "$log" ] || continue
		echo "--- $(basename "$log")"
		tail -n 40 "$log"
	done
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# within SECONDS COMMAND...: waits for the command to succeed. So long takes a quiet machine at most; each gets half a minute,
# for a deadline costs nothing unless something is wrong.
within() {
	deadline=$(($(date +%s) + ($1 < 30 ? 30 : $1)))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $deadline ] || return 1
		sleep 0.01
	done
}

# start NAME COMMAND...: in the background; output in $tmp/NAME, process id in $started.
start() {
	name=$1
	shift
	: >"$tmp/$name"		# what an earlier program of that name said must not count
	timeout -k 2 "$longest" "$@" >"$tmp/$name" 2>&1 &
	started=$!
	pids="$pids $started"
}

says() {
	grep -q "$2" "$tmp/$1"
}

# Nothing of the software device is left: no socket name of a process of this user, and with it no process that has one.
user=$(id -u)
nothing_left() {
	! grep -q "@softverbs/[0-9]*/$user/" /proc/net/unix
}

# not_running PID: no such process, or only what its parent has not asked for yet.
not_running() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# dtest_meet SERVER CLIENT [OPTION...]: the client ends well, and says so, for the packaged one ends with 0 whatever
# happens; the server is $server_pid.
dtest_meet() {
	server=$1 client=$2
	shift 2
	start server "$server" -P "$provider" "$@"
	server_pid=$started
	within 20 says server 'waiting' || fail "$server does not get ready"
	case " $* " in
	*' -N '*) ;;
	*) within 20 listens 15828 || fail "$server does not listen" ;;	# the packaged client asks once only
	esac
	timeout -k 2 "$longest" "$client" -P "$provider" -h "$address" "$@" >"$tmp/client" 2>&1 &&
		says client 'DAPL Test Complete. PASSED' && return
	status=$?
	kill "$server_pid"
	wait "$server_pid"
	return $status
}

# dtest_pair SERVER CLIENT [OPTION...]: both must succeed and say so. The packaged server tells where it is before it has
# its service point, so a client that is faster is refused (NON_PEER_REJECTED): it may come again.
dtest_pair() {
	tries=1
	until dtest_meet "$@"; do
		[ "$1" != "$BUILD/bin/dtest" ] && [ $tries -lt 20 ] && says client 'REJECTED' ||
			fail "$2 ended with status $status"
		tries=$((tries + 1))
	done
	wait "$server_pid" || fail "$1 ended with status $?"
	says server 'DAPL Test Complete. PASSED' || fail "$1 did not pass"
	says client 'DAPL Test Complete. PASSED' || fail "$2 did not pass"
	within 3 nothing_left || fail 'names of the software device are left'
}

# dtest_runs SERVER CLIENT: each way of working; a check of all data (-D) only where the device promises that the last byte
# of a write is seen last.
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

# listens PORT: somebody in this name space waits for TCP connections there.
listens() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$(printf %04X "$1") [0-9A-F]*:0000 0A "
}

# tool_pair READY DONE SERVER CLIENT [OPTION...]: READY is the command that tells that the server is ready. Packaged
# programs exit with 0 whatever happens, so what they say counts: DONE, and nothing of errors.
tool_pair() {
	ready=$1 done=$2 server=$3 client=$4
	shift 4
	start server "$server" -s -P "$provider" "$@"
	server_pid=$started
	within 20 $ready || fail "$server does not get ready"
	timeout -k 2 "$longest" "$client" -P "$provider" -h "$address" "$@" >"$tmp/client" 2>&1 ||
		fail "$client $* ended with status $?"
	wait "$server_pid" || fail "$server $* ended with status $?"
	for log in server client; do
		says $log "$done" || fail "$log $* does not say: $done"
		! says $log 'ERR\|Err\|FAILED' || fail "$log $* speaks of errors"
	done
	within 3 nothing_left || fail 'names of the software device are left'
}

# What was not built with the thread sanitizer cannot run beside it, or is reported for its own races.
not_under_tsan() {
	case ${SAN:-} in *thread*) skip 'not built with the thread sanitizer' ;; esac
}

# has_packaged NAME: there is such a program, which nobody here wrote; $tmp/packaged-NAME runs it, its output by lines, so
# that others can wait for them (stdbuf(1)), and with the runtime of a sanitizer in front if the libraries need one.
has_packaged() {
	case ${SAN:-} in *thread*) return 1 ;; esac
	[ -x "/usr/bin/$1" ] || return 1
	packaged_wrap "$1" "$tmp/packaged-$1"
}

# packaged NAME: the same as $tmp/NAME; without it the test is skipped.
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

# each_pair NAME COMMAND...: runs it with server and client, ours and, where there is a packaged program NAME, that one
# against itself and against ours in both directions. $pairs says which, for the last line of the test.
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
