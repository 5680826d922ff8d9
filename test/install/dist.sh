#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# `make dist`: of this tree, of the tarball that it makes, and of a copy whose files were made in another order: the same bits.
set -u
: "${BUILD:?the build folder}"
case ${SAN:-} in ?*) echo 'skipped: once is enough'; exit 77 ;; esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

fail() {
	echo "FAILED: $*"
	tail -n 30 "$tmp/said"
	exit 1
}

# dist FOLDER PRODUCTS: the tarball of that tree
dist() {
	(cd "$1" && MAKEFLAGS= make -s dist B="$2") >"$tmp/said" 2>&1 || fail "make dist in $1"
	set -- "$2"/dist/udapl-*.tar.gz
	[ $# -eq 1 ] && [ -s "$1" ] || fail 'there is no tarball'
	tarball=$1
}

dist . "$tmp/products"
first=$tarball
release=$(basename "$first" .tar.gz)
tar -C "$tmp" -xzf "$first"
dist "$tmp/$release" "$tmp/again"
cmp "$first" "$tarball" >"$tmp/said" || fail 'the tarball of the tarball differs'

mkdir "$tmp/other"
(cd "$tmp/$release" && find . ! -type d -printf '%P\0' | LC_ALL=C sort -rz | tar --null -T - -cf -) | tar -C "$tmp/other" -xf -
dist "$tmp/other" "$tmp/third"
cmp "$first" "$tarball" >"$tmp/said" || fail 'the order in which files were made tells'

echo "$release: the same bits from a clone, a tarball and a copy"
