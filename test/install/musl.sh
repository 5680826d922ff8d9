#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# With the C library musl everything compiles without a warning, and the software device, linked with it, carries
# data.
set -u
command -v musl-gcc >/dev/null || { echo 'skipped: no musl-gcc here (Debian: musl-tools)'; exit 77; }
[ -z "${SAN:-}" ] || { echo 'skipped: the sanitizers need glibc'; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
	echo "FAILED: $*"
	tail -n 30 "$tmp/said"
	exit 1
}

# musl-gcc does not search glibc's headers, so these of the kernel and of rdma-core, and two single ones, are added.
here=/usr/include/$(gcc -print-multiarch)
mkdir -p "$tmp/include/sys"
ln -s /usr/include/linux /usr/include/asm-generic /usr/include/infiniband /usr/include/rdma /usr/include/libconfig.h \
	"$here/asm" "$tmp/include"
cp "$here/sys/queue.h" "$tmp/include/sys"

musl() {
	env -u MAKEFLAGS -u MAKELEVEL make -s CC=musl-gcc WERROR=1 CPPFLAGS="-isystem $tmp/include" B="$tmp/b" "$@" \
		>"$tmp/said" 2>&1
}
# The providers are compiled only, because no libconfig for musl is packaged.
musl "$tmp/b/lib/libdat2.so.2" "$tmp/b/lib/libdapl.a" "$tmp/b/bench/verbs" || fail 'it does not build'
readelf -d "$tmp/b/lib/libdat2.so.2" >"$tmp/needed"
! grep -q 'libc\.so\.6' "$tmp/needed" || fail 'libdat2 is linked with glibc'
for way in pvm bounce; do
	SOFTVERBS_COPY=$way timeout 60 "$tmp/b/bench/verbs" lat 8192 -b 3 >"$tmp/said" 2>&1 || fail "no data goes by $way"
	[ "$(grep -c '^[0-9.]*$' "$tmp/said")" -ge 3 ] || fail "no figures of $way"
done
echo 'musl: compiles without a warning; the software device carries data'
