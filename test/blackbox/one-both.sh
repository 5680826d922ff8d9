#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# libdat.so.1 and libdat2.so.2 in one process: programs and plugins of either version, with the plugin's names in a
# local and in the global scope.
. test/blackbox/lib.sh
for host in host1 host2; do
	for plugin in plugin1 plugin2; do
		for scope in local global; do
			"$BUILD/test/one/$host" $scope "$BUILD/test/one/$plugin.so" >"$tmp/host" 2>&1 ||
				fail "$host, $plugin, $scope: status $?"
			[ ! -s "$tmp/host" ] || fail "$host, $plugin, $scope: has something to say"
		done
	done
done
within 3 nothing_left || fail 'names of the software device are left'
echo 'programs and plugins of DAT 1.2 and 2.0: eight combinations'
