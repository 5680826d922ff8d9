#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Our provider under the packaged libdat2: opened, used and closed by the packaged dtest.
. test/blackbox/lib.sh
packaged_dtest
[ -z "${SAN:-}" ] || skip 'the packaged registry is not built with the sanitizer'
registry=$(LD_LIBRARY_PATH= ldconfig -p | sed -n 's/.*libdat2\.so\.2 .* => //p' | head -n 1)
[ -n "$registry" ] || skip 'no packaged libdat2 here'
mkdir "$tmp/lib"
cp "$registry" "$tmp/lib/libdat2.so.2"
export LD_LIBRARY_PATH=$tmp/lib
dtest_pair /usr/bin/dtest /usr/bin/dtest -b 4096
dtest_pair /usr/bin/dtest "$BUILD/bin/dtest" -b 4096
grep -i 'error' "$tmp/server" "$tmp/client" && fail 'a call failed'
echo 'the packaged registry loads, closes and unloads the provider'
