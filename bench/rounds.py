# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Rounds on a machine that is not always quiet: gated, interleaved, their ratios judged."""
import statistics
from collections import namedtuple
from contextlib import contextmanager, nullcontext

import goals
import host
from programs import Absent, Failed, awake

QUIET_ROUNDS = 7            # fewer give no verdict

Result = namedtuple('Result', 'row ratio p25 p75 rounds verdict')


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


class Bench:
    def __init__(self, programs, raw, say, gated=True):
        self.programs, self.raw, self.say, self.gated = programs, raw, say, gated
        self.absent = {}            # measurement: the program that is missing
        self.failed = {}            # measurement: why
        self.usual = None

    @contextmanager
    def steady(self, sleeps=False):
        """What is measured meanwhile is measured while the machine is as it usually is now."""
        with awake() if self.gated and not sleeps else nullcontext():
            if self.gated:
                self.usual = host.survey(self.programs.gate, awake=not sleeps)
            yield

    def quiet(self):
        if not self.gated:
            return False, self.programs.gate()
        return host.wait_until(self.usual, self.programs.gate)

    def measure(self, label, number, measurement):
        """(was it quiet, median of the batches), or None when there is no figure."""
        if measurement in self.absent or measurement in self.failed:
            return None
        quiet, gate = self.quiet()
        said = '%.1f\t%.1f\t%.1f\t%.0f' % gate
        if not quiet and self.gated:
            self.raw.write('%s\t%d\t%s\tnot quiet\t%s\n' % (label, number, ' '.join(measurement), said))
            return None
        try:
            figures = self.programs.run(measurement)
        except Absent as program:
            self.absent[measurement] = str(program)
            return None
        except Failed as why:
            self.failed[measurement] = str(why)
            self.say('failed: %s' % why)
            return None
        self.raw.write('%s\t%d\t%s\t%s\t%s\t%s\n' % (
            label, number, ' '.join(measurement), 'quiet' if quiet else 'loud', said,
            ' '.join('%g' % f for f in figures)))
        self.raw.flush()
        return quiet, statistics.median(figures)

    def round(self, group, number):
        """Every program of the group once, back to back; the order turns from round to round."""
        order = []
        for row in group.rows:
            for measurement in row.anchors + [row.product]:
                if measurement not in order:
                    order.append(measurement)
        turn = number % len(order)
        return {m: self.measure(group.name, number, m) for m in order[turn:] + order[:turn]}

    def rounds(self, group, count):
        """At least `count`, and up to twice as many while too few of them were quiet."""
        done = []
        for number in range(2 * count if self.gated else count):
            if number >= count and all(len(ratios(row, done)) >= QUIET_ROUNDS or self.missing(row)
                                       for row in group.rows):
                break
            done.append(self.round(group, number))
        return done

    def missing(self, row):
        names = [row.product] + row.anchors
        return next((self.absent[m] for m in names if m in self.absent), None) or \
            next((self.failed[m] for m in names if m in self.failed), None)

    def judge(self, row, done):
        values = ratios(row, done)
        missing = self.missing(row)
        if missing or not values:
            broken = any(m in self.failed for m in [row.product] + row.anchors)
            verdict = 'failed' if broken else 'skipped: no ' + missing if missing else 'no verdict'
            return Result(row, None, None, None, 0, verdict)
        ratio, p25, p75 = statistics.median(values), quantile(values, 0.25), quantile(values, 0.75)
        met = ratio <= row.value if row.sense == goals.LESS else ratio >= row.value
        quiet = self.gated and len(values) >= QUIET_ROUNDS
        return Result(row, ratio, p25, p75, len(values), ('pass' if met else 'miss') if quiet else 'no verdict')

    def judged(self, group, count):
        with self.steady(group.sleeps):
            done = self.rounds(group, count)
        return [self.judge(row, done) for row in group.rows]

    def group(self, group, count):
        self.say(group.name)
        results = self.judged(group, count)
        if self.gated and any(r.verdict == 'no verdict' for r in results):
            self.say(group.name + ', once more: the machine became another')
            results = self.judged(group, count)
        if any(is_close_miss(r) for r in results):
            self.say(group.name + ', once more: a miss within the spread')
            results = self.judged(group, 2 * count)
        return results


def ratios(row, done):
    """
    Of each round in which both were quiet, against the anchor that is best over all rounds: the better of two figures of
    one round would be the luckier one.
    """
    anchor = best_anchor(row, done)
    pairs = [(figures.get(row.product), figures.get(anchor)) for figures in done] if anchor else []
    return [product[1] / limit[1] for product, limit in pairs if product and limit and limit[1]]


def best_anchor(row, done):
    medians = {}
    for anchor in row.anchors:
        figures = [round[anchor][1] for round in done if round.get(anchor)]
        if not figures:
            return None
        medians[anchor] = statistics.median(figures)
    return (min if row.sense == goals.LESS else max)(medians, key=medians.get)


def is_close_miss(result):
    return result.verdict == 'miss' and abs(result.ratio - result.row.value) < (result.p75 - result.p25) / 2
