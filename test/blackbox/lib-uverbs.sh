# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced after lib-verbs.sh by tests of UCX, which accepts a device only if /dev/infiniband has a character device of
# its name. The test starts again with a /dev of its own, which links to the real one and has that name as a link to
# /dev/null.
if [ -z "${OWN_DEV:-}" ]; then
	export OWN_DEV=1
	cat >"$tmp/dev" <<-'END'
		[ -z "$1" ] || { mount --rbind /dev "$1" && mount -t tmpfs dev /dev && ln -s "$1"/* /dev/ &&
			{ [ ! -L /dev/infiniband ] || rm /dev/infiniband; } &&
			mkdir /dev/infiniband && ln -s ../null /dev/infiniband/softverbs0; } || exit 77
		shift
		exec "$@"
	END
	mkdir "$tmp/devices"
	unshare -m sh "$tmp/dev" "$tmp/devices" true 2>"$tmp/why" || skip "no /dev of its own here: $(cat "$tmp/why")"
	unshare -m sh "$tmp/dev" "$tmp/devices" "$0" "$@"
	exit
fi
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what these programs load'
