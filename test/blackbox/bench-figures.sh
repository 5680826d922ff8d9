#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# How `make bench` computes speeds, orders the programs and reports failures, tested with made-up figures.
. test/blackbox/lib.sh
[ "$(nproc)" -ge 2 ] || skip 'needs two processors'
command -v python3 >/dev/null || skip 'no python3'

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench python3 - <<'END' || fail 'a rule of the bench does not hold'
import importlib.machinery
import importlib.util
import random
import time
from statistics import median
from xml.dom import minidom
from figures import fastest, interval, middle, speeds
from picture import draw
from programs import Failed
from table import ROWS, Row, Sides, rows, rxe_rows

loader = importlib.machinery.SourceFileLoader('run', 'bench/run')
run = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
loader.exec_module(run)

# a speed is above 1 where ours is faster, for times and for rates; a round without one of the figures does not count
assert speeds([10, 20, None, 40], [20, 20, 20, None], less_is_better=True) == [2, 1]
assert speeds([10, 20, 30], [20, 20, 20], less_is_better=False) == [0.5, 1, 1.5]
assert middle([3, None, 1, 2]) == 2 and middle([1, 2]) == 1.5 and middle([None]) is None and middle([]) is None

# the fastest program is the one with the best median of all rounds, not of one
a, b = [10, 10, 10], [9, 20, 20]
assert fastest([a, b], less_is_better=True) is a and fastest([a, b], less_is_better=False) is b
assert fastest([[None, None], [5, None]], less_is_better=True) == [5, None] and fastest([[None]], True) == [None]

# there is no interval of few rounds; otherwise it is around the median, within the values, and the same each time
assert interval([1, 2, 3, 4, 5]) == (None, None) and interval([7] * 6) == (7, 7)
values = [1, 1.1, 0.9, 1.2, 1.05, 0.95, 1.02, 5]
low, high = interval(values)
assert 0.9 <= low < median(values) < high < 5 and interval(values) == (low, high) == interval(values[::-1]), (low, high)
# the interval holds the true median in about 95 of 100 experiments, and shrinks with the root of the number of rounds
draw_from, hits, widths = random.Random(2), 0, {10: 0, 40: 0}
for _ in range(100):
    for count in widths:
        low, high = interval([draw_from.gauss(1, 0.1) for _ in range(count)])
        widths[count] += high - low
        hits += low <= 1 <= high
assert 184 <= hits <= 200 and 1.5 < widths[10] / widths[40] < 2.7, (hits, widths)

# each program runs once a round, those of a row one after the other, and each round begins with another program
class Programs:
    def __init__(self, figures):
        self.figures, self.ran = figures, []

    def figure(self, command, sides):
        self.ran.append((command, sides))
        if self.figures[command] is None:
            raise Failed('broken')
        return self.figures[command]

there = Sides('/a', '/b', '10.0.0.2')
table = [Row('first', 'ns', {'V': 'v', 'D': 'd'}, {'best': 'x | y', 'peer': 'p'}),
         Row('second', '/s', {'D': 'd'}, {'peer': 'z'}, there)]
programs = Programs({'v': 30, 'd': 10, 'x': 15, 'y': 5, 'p': None, 'z': 20})
found, failed = run.measure(table, programs, 3, 1000)
ran = [command for command, _ in programs.ran]
assert ran == [*'vdxyp', *'dz', *'dxypv', *'zd', *'xypvd', *'dz'], ran
assert {sides for command, sides in programs.ran if command == 'z'} == {there}
assert failed == {'p': ['broken'] * 3}
first, second = [run.result(row, figures) for row, figures in zip(table, found)]
assert [(s['of'], s['beside'], s['speed']) for s in first['speeds']] == [
    ('V', 'best', 5 / 30), ('D', 'best', 0.5), ('V', 'peer', None), ('D', 'peer', None)], first
assert second['speeds'] == [{'of': 'D', 'beside': 'peer', 'speed': 0.5, 'low': None, 'high': None}]
run.print_table([first, second], ('V', 'D'))

# no round begins that would not end in time, but there is always one
begin = time.monotonic()
assert [len(figures) for figures in run.measure(table, programs, None, 0)[0]] == [1, 1]
many = len(run.measure(table, programs, None, 0.2)[0][0])
assert many > 1 and time.monotonic() - begin < 30

# the picture has a dot for each speed and its label
picture = minidom.parseString(draw([first, second]))
assert len(picture.getElementsByTagName('circle')) == 3
# each measurement is named once, with the size in the place of {}
names = [row.what for row in ROWS]
assert len(set(names)) == len(names) and not any('{}' in command for row in ROWS for command in run.commands(row))
assert [row.what for row in rows('r', 'ns', {'V': 'v {}'}, {}, [8, 4096, 1 << 20])] == ['r, 8 B', 'r, 4 KiB', 'r, 1 MiB']
assert all(row.sides.address == '10.0.0.1' for row in rxe_rows('10.0.0.1'))
END
echo 'every rule holds'
