#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Programs of DAT 1.2 and libdat.so.1 on the packaged libdat2, with our provider, and with the packaged one, which
# names no version of the registry's symbols and so binds to those of libdat.so.1; on the drop-in.
. test/blackbox/lib-verbs.sh
one=$BUILD/test/one
[ -z "${SAN:-}" ] || skip 'the packaged registry is not built with the sanitizer'
registry=$(LD_LIBRARY_PATH='' ldconfig -p | sed -n 's/.*libdat2\.so\.2 .* => //p' | head -n 1)
ofa=
for dir in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
	[ -e "$dir/libdaplofa.so.2" ] && ofa=$dir/libdaplofa.so.2
done
[ -n "$registry" ] && [ -n "$ofa" ] || skip 'no packaged libdat2 and libdaplofa here (Debian: libdapl2)'
case $registry in "$BUILD"/*) skip 'the libdat2 of the system is ours' ;; esac

mkdir "$tmp/lib"
cp "$registry" "$tmp/lib/libdat2.so.2"
cp "$BUILD/lib/libdat.so.1" "$tmp/lib"
export LD_LIBRARY_PATH=$tmp/lib
ldd "$one/dtest" | grep -q "libdat2.so.2 => $tmp/lib/" || fail 'dtest does not meet the packaged libdat2'

# Our provider. The records for DAT 1.2 are left out, because that libdat2 opens an IA for one and cannot close it
# (libdat(7)).
soft=$BUILD/lib/libdaplsoft.so.2
cat >"$tmp/dat.conf" <<END
ofa-v2-soft u2.0 nonthreadsafe default $soft dapl.2.0 "soft0 1" ""
ofa-soft u2.0 nonthreadsafe default $ofa dapl.2.0 "lo 0" ""
END
export DAT_OVERRIDE=$tmp/dat.conf
"$one/srq_dat12" ofa-v2-soft >"$tmp/srq" 2>&1 || fail "srq_dat12 ofa-v2-soft: status $?"
dtest_pair "$one/dtest" "$one/dtest" -b 4096

# The packaged provider.
export _STDBUF_O=L
sed -i 's|^exec|export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}/usr/libexec/coreutils/libstdbuf.so"\nexec|' "$sv"
"$sv" "$one/dapltest" -T F -D ofa-soft -f pz >"$tmp/pz" 2>&1 || fail "dapltest -f pz: status $?"
[ "$(grep -c 'Result: *PASS' "$tmp/pz")" -eq 3 ] || fail 'dapltest -f pz: not three cases pass'
pair_again 'REJ, reason=8' 'says server waiting' "$one/dtest -P ofa-soft -b 64 -B 10" \
	"$one/dtest -P ofa-soft -b 64 -B 10 -h 127.0.0.1"
for side in server client; do
	says $side 'DAPL Test Complete. PASSED' || fail "the $side does not pass"
done
within 3 nothing_left || fail 'names of the software device are left'
echo "the packaged libdat2 with our provider and with its own: dtest, dapltest and the example"
