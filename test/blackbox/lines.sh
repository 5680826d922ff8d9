#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# A message touches no more cache lines of its connection than it did.
. test/blackbox/lib.sh
[ -z "${SAN:-}" ] || skip 'the layout is another one under a sanitizer'
[ "$(uname -m)" = x86_64 ] || skip 'counted on x86-64'
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'
command -v python3 >/dev/null || skip 'no python3'
command -v valgrind >/dev/null || skip 'no valgrind'
unset LD_LIBRARY_PATH
timeout -k 5 "$longest" bench/lines.py "$BUILD" >"$tmp/lines" 2>&1 || fail "$(tail -1 "$tmp/lines")"
[ "$(grep -c 'side [01]: ' "$tmp/lines")" -eq 4 ] || fail 'not all sides were counted'
cat "$tmp/lines"
