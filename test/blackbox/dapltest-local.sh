#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dapltest -T F and -T L, which need no server: every group of functions with each of its cases, and every limit.
. test/blackbox/lib-dapltest.sh

# alone NAME WORD...: the program exits with 0 and prints no error; its output is in $tmp/NAME.
alone() {
	name=$1
	shift
	timeout -k 2 "$longest" "$program" "$@" -D ofa-v2-soft $rest >"$tmp/$name" 2>&1 || fail "$program $*: status $?"
	quiet "$name" || fail "$program $* speaks of errors"
	within 3 nothing_left || fail 'names of the software device are left'
}

# functional FEATURE PASSED UNSUPPORTED: the number of cases with each result.
functional() {
	rest="-f $1"
	alone "$1" -T F
	[ "$(grep -c 'Result: *PASS' "$tmp/$1")" -eq "$2" ] || fail "$program -f $1: not $2 cases pass"
	[ "$(grep -c 'Result:' "$tmp/$1")" -eq $(($2 + $3)) ] || fail "$program -f $1: other results"
	rest="-f $1 case0 case1"
	alone "$1" -T F
	[ "$(grep -c 'Result: *PASS' "$tmp/$1")" -eq 2 ] || fail "$program $rest: not two cases pass"
}

# limit NAME WORDS: the test runs, and prints how many objects there may be.
limit() {
	rest="-m 200 -w 2 $1"
	alone "$1" -T L
	grep -q "LimitTest: $2" "$tmp/$1" || fail "$program $1: does not say '$2'"
}

# The default is all ten, one after the other. The last one allocates all memory: it is limited to a gigabyte, and
# left out where a sanitizer reserves terabytes of addresses.
sizes() {
	[ -z "${SAN:-}" ] || return 0
	rest='-m 10'
	(ulimit -v 1500000 && alone all -T L) || exit 1
	[ "$(grep -c 'Limitation Test' "$tmp/all")" -eq 10 ] || fail "$program -T L: not ten tests"
	says all 'largest LMR: [0-9]\{8,\} bytes\|LMR of 0x[0-9a-f]\{6,\} bytes OK' ||
		fail "$program -T L: no LMR of some megabytes"
}

everything() {
	program=$1
	functional hwconn 4 0
	functional endpoint 3 0
	functional pz 3 0
	functional mem 5 0
	functional connmgt 2 0
	functional queryinfo 17 1	# there is no connection request to query
	limit limit_ia 'IAs opened: 200'
	limit limit_pz 'PZs created: 200'
	limit limit_cno 'CNOs created: 200'
	limit limit_evd 'EVDs created: 200'
	limit limit_ep 'EPs created: 200'
	limit limit_rsp 'RSPs created: 200'
	limit limit_psp 'PSPs created: 200'
	limit limit_lmr 'LMRs created: 200'
	limit limit_rpost 'recv buffers posted.*: [1-9]'
	sizes
}

everything "$BUILD/bin/dapltest"
programs='our program'
if has_packaged dapltest; then
	everything "$tmp/packaged-dapltest"
	programs='both programs'
fi

# A failure is reported with an exit status that a script can see; the packaged program's is always 0.
program=$BUILD/bin/dapltest
bad() {
	status=$1
	shift
	timeout -k 2 "$longest" "$program" "$@" >"$tmp/bad" 2>&1
	got=$?
	[ $got -eq "$status" ] || fail "dapltest $*: status $got, not $status"
}
bad 1 -T F -D no-such-ia -f hwconn
bad 1 -T L -D no-such-ia
bad 1 -T Q -s 127.0.0.1 -D ofa-v2-soft
bad 1 -T T -s 127.0.0.1 -D ofa-v2-soft client SR server SR
bad 1 -T F -D ofa-v2-soft -f nothing
bad 1 -T F -D ofa-v2-soft -f pz case3
bad 1 -T L -D ofa-v2-soft limit_nothing
bad 1 -T X
bad 1 -T T -D ofa-v2-soft client SR server SR
bad 1 -T T -s 127.0.0.1 -D ofa-v2-soft client SR
bad 1 -T T -s 127.0.0.1 -D ofa-v2-soft -i 1x client SR server SR
bad 1 -f "$tmp/no-such-file"
bad 1 -f "$tmp"
printf '# a script\n-T F -D ofa-v2-soft # the device\n-f pz\n' >"$tmp/script"
bad 0 -f "$tmp/script"
grep -q 'Result: PASS' "$tmp/bad" || fail 'the script is not run'
echo "six groups of functions, ten limits, $programs"
