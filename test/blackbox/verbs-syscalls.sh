#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# While no CQ is armed, no thread of either process that posts or polls makes a system call; the engine wakes up some 16 times
# a second, and more often at first.
. test/blackbox/lib.sh
[ -z "${SAN:-}" ] || skip 'the sanitizer makes system calls of its own'
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'
command -v strace >/dev/null || skip 'no strace'
strace -o /dev/null true 2>/dev/null || skip 'strace may not trace here'
unset LD_LIBRARY_PATH

# calls TEST SIZE: $tmp/calls has the calls of the threads that post and poll between the time when both have marked the
# beginning and the time when one marks the end; $tmp/engine those of the other threads.
calls() {
	timeout -k 5 "$longest" strace -f -o "$tmp/trace" "$BUILD/bench/$program" "$1" "$2" -m -q -b 10 >"$tmp/figures" ||
		fail "$program $1 $2: status $?"
	[ -s "$tmp/figures" ] || fail "$program $1 $2: no figures"
	[ "$(grep -c 'unlink("begin"' "$tmp/trace")" -eq 2 ] || fail "$program $1 $2: no marks"
	: >"$tmp/calls" >"$tmp/engine"
	awk -v calls="$tmp/calls" -v engine="$tmp/engine" '/unlink\("end"/ { exit }
		/unlink\("begin"/ { begun++; polls[$1] = 1 }
		begun >= 2 && !/unlink/ { print >($1 in polls ? calls : engine) }' "$tmp/trace"
	lines=$(wc -l <"$tmp/engine")
	[ "$lines" -le 200 ] || fail "$program $1 $2: $lines lines of system calls of the engines"
}

# quiet SIZE: on a busy machine a thread may still be about to block when the marks come, so several runs are made; a
# call that the path needs would be in all of them.
quiet() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		calls lat "$1"
		[ -s "$tmp/calls" ] || return 0
	done
	return 1
}

for program in verbs dat; do
	case $program in	# ibv_get_cq_event reads a channel; dat_evd_wait sleeps on the CQ itself
	verbs)	wakes='write(' ;;
	dat)	wakes=FUTEX_WAKE ;;
	esac
	for size in 8 64 2048; do
		quiet $size || fail "$program: system calls while messages of $size bytes go to and fro"
	done
	calls wake 8	# with blocking waits the same trace does show system calls
	grep -q "$wakes" "$tmp/calls" || fail "$program: no sleeper was woken"
done
echo 'none'
