#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# An unsupported machine, or an rdma-core that is too old, gets one error that names the supported ones.
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

mkdir -p "$tmp/old/infiniband"
echo 'struct ibv_context;' >"$tmp/old/infiniband/verbs.h"
if tools/verbs-probe $cc "-I$tmp/old" >"$tmp/out" 2>"$tmp/said"; then
	echo 'FAILED: an old rdma-core is accepted'
	exit 1
fi
[ "$(grep -c 'rdma-core 33' "$tmp/said")" -eq 1 ] && [ ! -s "$tmp/out" ] ||
	{ cat "$tmp/said" "$tmp/out"; echo 'FAILED: an old rdma-core: no such error'; exit 1; }

# The private interface has the number of the library that the linker would take; without one, that of Debian 12.
cat >"$tmp/cc" <<-END
	#!/bin/sh
	case "\$*" in
	*-print-file-name=libibverbs.so) echo "$tmp/libibverbs.so" ;;
	*) exec $cc "\$@" ;;
	esac
END
chmod 755 "$tmp/cc"
private() {
	tools/verbs-probe "$tmp/cc" | sed -n 's/#define VERBS_PRIVATE //p'
}
[ "$(private)" = 34 ] || { echo "FAILED: without a library: $(private)"; exit 1; }
printf 'x\0IBVERBS_1.18\0IBVERBS_PRIVATE_59\0y' >"$tmp/libibverbs.so"
[ "$(private)" = 59 ] || { echo "FAILED: private interface 59: $(private)"; exit 1; }

echo '64-bit little-endian machines, rdma-core 33 or later'
