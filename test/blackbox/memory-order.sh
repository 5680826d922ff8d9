#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The models of test/models hold in every order that C11 allows, and each shows the failure that a weaker order would
# cause.
set -u
[ -e /usr/include/relacy/relacy.hpp ] || { echo 'skipped: no Relacy here (Debian: relacy-dev)'; exit 77; }
command -v g++ >/dev/null || { echo 'skipped: no g++ here'; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
	echo "FAILED: $*"
	tail -n 40 "$tmp/said"
	exit 1
}
g++ -std=c++11 -O1 -w -o "$tmp/order" test/models/order.cc >"$tmp/said" 2>&1 || fail 'the models do not compile'
runs=
for model in landing arming window bias; do
	timeout 120 "$tmp/order" $model >"$tmp/said" 2>&1 || fail "$model does not hold"
	runs="$runs $model $(sed -n 's/^iterations: //p' "$tmp/said")"
	! timeout 120 "$tmp/order" $model weak >"$tmp/said" 2>&1 || fail "$model holds without its order, too"
	grep -Eq 'DATA RACE|USER ASSERT FAILED' "$tmp/said" || fail "$model: another failure than the one to be found"
done
echo "orders of memory, runs of each model:$runs"
