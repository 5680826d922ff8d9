#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# W13: the event extension through our and the packaged libdat2 over our provider, and over the packaged provider,
# where each operation returns DAT_NOT_IMPLEMENTED and none crashes. All run over the drop-in of the software device.
. test/blackbox/lib-verbs.sh

packaged_library() {
	LD_LIBRARY_PATH= ldconfig -p | sed -n "s/.*$1 .* => //p" | head -n 1
}
libdat2=$(packaged_library 'libdat2\.so\.2') libdaplofa=$(packaged_library 'libdaplofa\.so\.2')
[ -n "$libdat2" ] && [ -n "$libdaplofa" ] || skip 'no packaged libdat2 and libdaplofa here (Debian: libdapl2)'
mkdir "$tmp/ours" "$tmp/packaged"
ln -s "$BUILD/lib/libdat2.so.2" "$tmp/ours/libdat2.so.2"
ln -s "$(readlink -f "$libdat2")" "$tmp/packaged/libdat2.so.2"
for provider in "$BUILD/lib/libdaplofa.so.2" "$(readlink -f "$libdaplofa")"; do
	of=ours
	[ "$provider" = "$BUILD/lib/libdaplofa.so.2" ] || of=packaged
	echo "mixed u2.0 nonthreadsafe default $provider dapl.2.0 \"lo 0\" \"\"" >"$tmp/$of/dat.conf"
done

# mixture REGISTRY PROVIDER EXPECTED
mixture() {
	LD_LIBRARY_PATH=$tmp/$1 DAT_OVERRIDE=$tmp/$2/dat.conf timeout -k 2 "$longest" "$sv" "$BUILD/test/event-ops" mixed "$3" \
		>"$tmp/log" 2>&1 || fail "libdat2 $1, provider $2: status $?"
	grep "^the event extension" "$tmp/log"
}
mixture ours ours works
mixture packaged ours works
mixture ours packaged absent
mixture packaged packaged absent
echo 'four mixtures of registry and provider'
