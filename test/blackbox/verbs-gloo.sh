#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# gloo, with which PyTorch adds over processes, on the software device: sums, broadcasts and barriers of three processes.
. test/blackbox/lib-verbs.sh
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what this program loads'
echo '#include <gloo/transport/ibverbs/device.h>' | c++ -E -x c++ -o "$tmp/header" - 2>"$tmp/why" || skip 'no gloo here (Debian: libgloo-dev)'
c++ -std=c++14 -O1 -o "$tmp/reduce" test/blackbox/gloo_reduce.cc -lgloo -libverbs -lpthread >"$tmp/cc" 2>&1 || fail 'c++'
resolves "$tmp/reduce" || fail 'the program does not load the drop-in'

mkdir "$tmp/store"
all=
for process in 0 1 2; do
	start process-$process "$sv" "$tmp/reduce" $process 3 "$tmp/store"
	all="$all $started"
done
for process in 0 1 2; do
	within "$longest" says process-$process '^right$' || fail "process $process: numbers are wrong"
done
kill $all
within 3 nothing_left || fail 'names of the software device are left'
echo "gloo: $(dpkg-query -W -f '${Version}' libgloo0 2>"$tmp/why")"
