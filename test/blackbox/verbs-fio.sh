#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# fio's rdma engine on the software device writes and reads. fio's sends may come before their receives and ask for no
# retry, so they sometimes fail ("receiver-not-ready retries exhausted"), as on any device.
. test/blackbox/lib-verbs.sh
command -v fio >"$tmp/where" || skip 'no fio here (Debian: fio)'
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what fio loads'

cd "$tmp" || fail 'no folder'
address=${other:-127.0.0.1}
common='--ioengine=rdma --port=23555 --thread --bs=64k --size=4m --iodepth=4 --minimal'
for verb in write read; do
	# fio calls the side that reads the server, whatever the verb
	pair 'cm_listens 23555' "fio --name=server $common --rw=read" \
		"fio --name=client $common --hostname=$address --verb=$verb --rw=write"
	says client '^3;fio-' || fail "no result of $verb"
done
within 3 nothing_left || fail 'names of the software device are left'
echo "fio: $(fio --version)"
