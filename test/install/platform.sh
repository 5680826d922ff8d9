#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Machines that are not supported get one error that says what is.
set -u
cc=${CC:-cc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

refused() {
	if $cc -fsyntax-only -x c "$@" util/platform.h 2>"$tmp/said"; then
		echo "FAILED: $* is accepted"
		exit 1
	fi
	grep -q '#error.*64-bit little-endian' "$tmp/said" || { cat "$tmp/said"; echo "FAILED: $*: no such error"; exit 1; }
}
$cc -Werror -fsyntax-only -x c util/platform.h || exit 1
refused -U__LP64__
refused -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__
echo '64-bit little-endian machines only'
