#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Each program that `make bench` runs works, and the table, the figures and the picture are complete after one short
# round, whose speeds are not valid. The two processes of a row can be in two network namespaces.
. test/blackbox/lib.sh
[ -z "${SAN:-}" ] || skip 'measures nothing under a sanitizer'
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'
command -v python3 >/dev/null || skip 'no python3'
unset LD_LIBRARY_PATH
export PYTHONDONTWRITEBYTECODE=1

for wrong in '--rows nothing' '--rounds 0' --rxe --hosts; do
	env -u RXE_ADDRESS -u HOST_NET bench/run $wrong "$BUILD" >"$tmp/wrong" 2>&1
	[ $? -eq 2 ] && grep -q 'error: ' "$tmp/wrong" || fail "$wrong is no error"
done
timeout -k 5 "$longest" bench/run --short --rounds 1 --json "$tmp/json" --svg "$tmp/svg" "$BUILD" \
	>"$tmp/table" 2>"$tmp/progress" || fail "status $?"
python3 - "$tmp" <<'END' || fail 'the output is not complete'
import json
import sys
from xml.dom import minidom
sys.path.insert(0, 'bench')
from table import ROWS
report = json.load(open(sys.argv[1] + '/json'))
table = open(sys.argv[1] + '/table').read()
assert report['rounds'] == 1 and len(report['machine']['processors']) == 2
assert [row['row'] for row in report['rows']] == [row.what for row in ROWS]
for row, result in zip(ROWS, report['rows']):
    assert row.what in table and set(result['figures']) == {*row.products, *row.beside}, row
    for name, figures in result['figures'].items():
        # limits and products always run; peers run where they are installed
        ours = name in row.products or {**row.products, **row.beside}[name].startswith('limit')
        assert len(figures) == 1 and (figures[0] or not ours and report['failed']), (row, name)
    assert len(result['speeds']) == len(row.products) * len(row.beside)
speeds = [speed for row in report['rows'] for speed in row['speeds'] if speed['speed']]
dots = minidom.parse(sys.argv[1] + '/svg').getElementsByTagName('circle')
assert len(dots) == len(speeds), (len(dots), len(speeds))
END
without=$(grep -c '^no figure' "$tmp/table")

# other_net: waits for the process in another network namespace; its process id is $child.
other_net() {
	child=$(cat "/proc/$started/task/$started/children") child=${child% }
	net=$(readlink "/proc/$child/ns/net") && [ "$net" != "$(readlink /proc/self/ns/net)" ]
}
sides='in one network namespace'
if [ "$OWN_NET" = 1 ]; then
	start other unshare -n sleep 1000
	within 20 other_net || fail 'no second network namespace'
	ip link add near type veth peer name far netns "$child" && ip addr add 192.0.2.1/24 dev near && ip link set near up &&
		nsenter --net="/proc/$child/ns/net" sh -c 'ip addr add 192.0.2.2/24 dev far; ip link set far up; ip link set lo up' ||
		fail 'no wire between the namespaces'
	PYTHONPATH=bench python3 - "$BUILD" "$tmp" "/proc/$child/ns/net" <<'END' || fail 'rows of two namespaces'
import sys
from programs import Failed, Programs
from table import Sides
build, scratch, net = sys.argv[1:]
programs, there = Programs(build, scratch, (0, 1), short=True), Sides(None, net, '192.0.2.2')
for command in ('limit lat 8', 'stream lat 8', 'stream wake 8', 'stream rate 8', 'stream bw 65536', '@far-link verbs lat 8',
                '@far-link verbs await 8', '@far-link verbs await 8 -w write', '@here verbs lat 8'):
    assert programs.figure(command, there) > 0, command
try:        # the other namespace does not see the names of its sockets
    programs.figure('limit conn', there)
    raise AssertionError('both sides are in one namespace')
except Failed as why:
    assert 'Connection refused' in str(why), why
END
	sides='in one network namespace, and in two'
fi
echo "$(wc -l <"$tmp/table") lines, $without reasons why there is no figure; sides $sides"
