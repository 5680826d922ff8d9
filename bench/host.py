# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What the machine is like, and whether it is so now: a host has its moods, and only figures of one mood compare."""
import statistics
from collections import namedtuple

LOST_PERCENT = 8            # of either processor's time
SAME_CORE = 1.25            # times as long with both at work: two threads of one core
SLOW = 1.15                 # times as long as usual: somebody else's thread is on one of the cores
FAR_NS = 90                 # a line between caches of their own
ELSEWHERE = 1.35            # times as long, or as short, as usual: the host has put a processor beside another cache
OFTEN = 5                   # one look of so many
LOOKS = 40                  # for an idea of the machine: a second
TRIES = 30                  # until it is as usual: the better part of a second

Usual = namedtuple('Usual', 'work line')


def survey(gate, awake):
    """The best that is not rare, from 40 looks. Processors that rest wake up anywhere: no line is usual then."""
    looks = [gate() for _ in range(LOOKS)]
    far = [look.line for look in looks if look.line > FAR_NS]
    lines = far if len(far) * OFTEN >= len(looks) else [look.line for look in looks]
    return Usual(usual_work([look.work for look in looks]), statistics.median(lines) if awake else None)


def usual_work(works):
    """The shortest that is followed by a fifth of all within 15 per cent."""
    works = sorted(works)
    count = -(-len(works) // OFTEN)
    for i in range(len(works) - count + 1):
        if works[i + count - 1] < SLOW * works[i]:
            return works[i]
    return statistics.median(works)


def is_as(usual, gate):
    return (gate.lost < LOST_PERCENT and gate.beside < SAME_CORE and gate.work < SLOW * usual.work and
            (usual.line is None or usual.line / ELSEWHERE < gate.line < usual.line * ELSEWHERE))


def wait_until(usual, gate):
    """(is it as usual now, what the gate said last)."""
    for _ in range(TRIES):
        said = gate()
        if is_as(usual, said):
            return True, said
    return False, said
