#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtest between two stacks: program, registry and provider of OFED's packages at one end, ours at the other.
. test/blackbox/lib.sh
packaged_dtest
echo 'ofa-v2-ib0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "ib0 0" ""' >"$tmp/ofed.conf"
cat >"$tmp/ofed" <<-END
	#!/bin/sh
	unset LD_LIBRARY_PATH
	export DAT_OVERRIDE='$tmp/ofed.conf'
	exec /usr/bin/dtest "\$@"
END
chmod +x "$tmp/ofed"
for options in '-b 65536' '-b 4096 -p' '-W -b 1024 -B 200'; do
	# shellcheck disable=SC2086
	dtest_pair "$BUILD/bin/dtest" "$tmp/ofed" $options
	# shellcheck disable=SC2086
	dtest_pair "$tmp/ofed" "$BUILD/bin/dtest" $options
done
echo 'six runs: default, polling, write ping-pong, each stack as server'
