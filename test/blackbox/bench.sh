#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# That each program which `make bench` runs works, and that the table and the plot come out: no word about speed. `make bench
# SHORT=1` runs all rows; on a busy machine two processes that wait for each other by looking take long for that.
. test/blackbox/lib.sh
[ -z "${SAN:-}" ] || skip 'measures nothing under a sanitizer'
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'
command -v python3 >/dev/null || skip 'no python3'
unset LD_LIBRARY_PATH

goals='G1 G7 G10 G16 G17 conn many'
timeout -k 5 "$longest" bench/run "$BUILD" --short --goals "$goals" --out "$tmp" >"$tmp/table" 2>"$tmp/progress" || fail "status $?"
grep -q '^goal  *what  *ratio' "$tmp/table" || fail 'no table'
for goal in $goals; do
	grep -Eq "^$goal .* [0-9.]+  *[0-9.]+  *[0-9.]+  *[<>]= " "$tmp/table" || fail "no figures for $goal"
done
grep -c . "$tmp/raw.tsv" >/dev/null || fail 'no raw figures'
grep -q '<polyline' "$tmp/plot.svg" || fail 'no curve in the plot'
skipped=$(grep -c 'skipped: no' "$tmp/table")
echo "$(grep -Ec '^(G|conn|many)' "$tmp/table") rows, $skipped skipped"
