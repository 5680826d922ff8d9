#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Programs compiled with the headers of DAT 1.2 and linked with libdat.so.1 alone: the example, and dtest and dapltest
# against each other and against those of DAT 2.0, on either side.
. test/blackbox/lib-dapltest.sh
one=$BUILD/test/one

for program in dtest dapltest srq_dat12; do
	needed=$(readelf -dW "$one/$program" | sed -n 's/.*NEEDED.*\[\(libdat.*\)\]/\1/p')
	[ "$needed" = libdat.so.1 ] || fail "$program needs $needed"
	! nm -D --undefined-only "$one/$program" | grep ' dat_' | grep -v '@DAT_1\.2$' >"$tmp/symbols" ||
		fail "$program has symbols of another version"
done

"$one/srq_dat12" >"$tmp/srq" 2>&1 || fail "srq_dat12: status $?"
cat >"$tmp/expected" <<'END'
SRQ: operational, 8 receives posted
EP 0: unconnected, receives from the SRQ
EP 1: unconnected, receives from the SRQ
END
cmp -s "$tmp/expected" "$tmp/srq" || fail 'srq_dat12 says something else'
! "$one/srq_dat12" no-such-ia >"$tmp/srq" 2>&1 || fail 'srq_dat12 opens what is not there'
says srq 'DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED' || fail 'the result has no name'

dtest_runs "$one/dtest" "$one/dtest"
# -w is left out, because only DAT 2.0 ends a stream with immediate data.
for pair in "$one/dtest $BUILD/bin/dtest" "$BUILD/bin/dtest $one/dtest"; do
	# shellcheck disable=SC2086
	for options in '-b 65536' '-b 4096 -p' '-c -W -b 1024 -B 200'; do
		dtest_pair $pair $options
	done
done

runs() {
	run_client -T T -i 20 -t 2 -w 2 client SR 256 3 server RW 4096 2 client RR 1000 server SR 300
	run_client -T T -i 20 -t 1 -w 4 -V -P -r client SR 1024 server SR 256
	run_client -T P -i 100 -p 16 -m p RW 4096 2
	run_client -T P -i 100 -p 16 -m b RR 4096
}
session runs "$one/dapltest" "$one/dapltest"
session runs "$one/dapltest" "$BUILD/bin/dapltest"
session runs "$BUILD/bin/dapltest" "$one/dapltest"

# functional FEATURE PASSED
functional() {
	timeout -k 2 "$longest" "$one/dapltest" -T F -D "$provider" -f "$1" >"$tmp/$1" 2>&1 || fail "dapltest -f $1: status $?"
	[ "$(grep -c 'Result: *PASS' "$tmp/$1")" -eq "$2" ] || fail "dapltest -f $1: not $2 cases pass"
	quiet "$1" || fail "dapltest -f $1 speaks of errors"
}
functional hwconn 4
functional endpoint 3
functional pz 3
functional mem 5
functional connmgt 2
functional queryinfo 17
within 3 nothing_left || fail 'names of the software device are left'
echo "the example; dtest in three pairs; dapltest in three pairs ($clients clients), six groups of functions"
