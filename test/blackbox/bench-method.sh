#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# How `make bench` judges: what the machine is like, which rounds count, against which anchor. With figures that are made up.
. test/blackbox/lib.sh
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'
command -v python3 >/dev/null || skip 'no python3'

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench python3 - <<'END' || fail 'a rule of the benches does not hold'
import os
import time
import goals
import host
from programs import Gate, awake
from rounds import Bench, best_anchor, ratios


def looks(*parts):
    """A gate that says each Gate so many times."""
    said = iter([gate for count, gate in parts for _ in range(count)])
    return lambda: next(said)


near, far, siblings = Gate(1, 1, 18, 65), Gate(1, 1, 18, 260), Gate(1, 1, 18, 30)
shared = Gate(1, 1, 30, 65)

# a line between two caches is what is usual, unless it is rare
assert host.survey(looks((8, far), (32, near)), awake=True).line == 260
assert host.survey(looks((7, far), (33, near)), awake=True).line == 65
assert host.survey(looks((20, far), (20, near)), awake=False).line is None
# as is a core of one's own
assert host.survey(looks((8, near), (32, shared)), awake=True).work == 18
assert host.survey(looks((7, near), (33, shared)), awake=True).work == 30
assert host.usual_work([10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120]) == 240    # nothing is usual

usual = host.Usual(18, 65)
assert host.is_as(usual, near) and host.is_as(usual, Gate(7.9, 1.24, 20.6, 87)) and host.is_as(usual, Gate(0, 1, 9, 49))
for other in far, siblings, shared, Gate(8, 1, 18, 65), Gate(1, 1.25, 18, 65), Gate(1, 1, 20.7, 65):
    assert not host.is_as(usual, other), other
assert host.is_as(host.Usual(18, None), far)
assert host.wait_until(usual, looks((host.TRIES - 1, shared), (1, near))) == (True, near)
assert host.wait_until(usual, looks((host.TRIES, shared), (1, near))) == (False, shared)

# the anchor that is best over all rounds, and the rounds in which both it and the product ran
row = goals.Row('G', 'what', 'product', ['a', 'b'], goals.LESS, 1.0)
done = [{'product': (True, 10), 'a': (True, 10), 'b': (True, 9)}, {'product': (True, 12), 'a': (True, 10), 'b': (True, 20)},
        {'product': None, 'a': (True, 10), 'b': (True, 20)}, {'product': (True, 30), 'a': None, 'b': (True, 20)}]
assert best_anchor(row, done) == 'a' and ratios(row, done) == [1.0, 1.2]
assert best_anchor(row._replace(sense=goals.MORE), done) == 'b'
assert ratios(row, [{'product': (True, 10), 'a': (True, 10), 'b': None}]) == []     # nobody knows which is best

# a verdict takes seven rounds; a miss is one only then
bench = Bench(None, None, None)
for rounds, ratio, verdict in (7, 1.0, 'pass'), (7, 1.1, 'miss'), (6, 1.0, 'no verdict'), (6, 1.1, 'no verdict'), (0, 1, 'no verdict'):
    result = bench.judge(row, [{'product': (True, 10 * ratio), 'a': (True, 10), 'b': (True, 10)}] * rounds)
    assert result.verdict == verdict, result

# who keeps the processors awake does so with the lowest priority, and ends
with awake() as busy:
    deadline = time.monotonic() + 60
    while not all(os.sched_getscheduler(pid) == os.SCHED_IDLE for pid in busy):
        assert time.monotonic() < deadline
    assert [os.sched_getaffinity(pid) for pid in busy] == [{0}, {1}]
assert not [pid for pid in busy if os.path.exists('/proc/%d' % pid)]
END
echo 'every rule holds'
