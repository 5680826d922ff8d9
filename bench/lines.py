#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""
Counts the cache lines and pages of a connection that a message touches: half a round trip of `lat`, which posts a receive and a
send, and takes their completions. valgrind's lackey traces all accesses to memory of both sides. Lines that most messages touch
are not counted: they stay in the cache, however many connections there are.
"""
import argparse
import bisect
import collections
import os
import subprocess
import sys
import tempfile

CONNECTIONS, TURNS = 16, 4
TAIL = 24 << 20         # bytes of a trace that have the messages
LINE, PAGE = 6, 12      # shifts
# For each program: the library that has its posts, the function by whose calls messages are told apart, one that each call of it
# leads to, and how many lines are no error.
PROGRAMS = {'verbs': ('lib/softverbs/libibverbs.so.1', 'sv_qp_post_send', 'sv_cq_poll', 25),
            'dat': ('lib/libdaplsoft.so.2', 'dapl_ep_post_send', 'sv_qp_post_send', 37)}


def symbols(library):
    """Sorted addresses and names of the functions."""
    words = [line.split() for line in subprocess.check_output(['nm', library], text=True).splitlines()]
    return sorted((int(word[0], 16), word[2].partition('.lto_priv')[0]) for word in words if len(word) == 3 and word[1] in 'tT')


def accesses(trace):
    """(kind, address, bytes) of the last ones: I for an instruction, L, S and M for a load, a store and both."""
    text = open(trace, errors='replace')
    text.seek(max(os.path.getsize(trace) - TAIL, 0))
    for line in text:
        if line[2:3] != ' ' or line[0] not in 'I ':
            continue
        address, comma, size = line[3:].partition(',')
        if comma:
            yield line[:2].strip(), int(address, 16), int(size)


class Side:
    """What one process did in TURNS messages on each connection."""

    def __init__(self, trace, library, post, leads_to):
        self.functions = symbols(library)
        named = {name: address for address, name in self.functions}
        steps = list(accesses(trace))
        executed = {address for kind, address, _ in steps if kind == 'I'}
        # Libraries begin at pages, so an address tells the function by its last bits; the second function excludes chance.
        bases = {address - named[post] for address in executed if not (address - named[post]) % (1 << PAGE)}
        self.base = next(base for base in bases if base + named[leads_to] in executed)
        begin = [i for i, step in enumerate(steps) if step[:2] == ('I', self.base + named[post])]
        assert len(begin) > CONNECTIONS * (TURNS + 1), 'too few messages'
        begin = begin[-CONNECTIONS * TURNS - 2:-1]      # the last message is not whole
        self.by, self.messages = collections.defaultdict(set), []
        for first, end in zip(begin, begin[1:]):
            self.messages.append(self.touched(steps[first:end]))
        count = collections.Counter(line for message in self.messages for line in message)
        self.own = [[line for line in message if count[line] <= 2 * TURNS] for message in self.messages]

    def touched(self, steps):
        lines, at = set(), 0
        for kind, address, size in steps:
            if kind == 'I':
                at = address - self.base
                continue
            for line in range(address >> LINE, (address + size - 1 >> LINE) + 1):
                lines.add(line)
                self.by[line].add((kind, at))
        return lines

    def mean(self, shift=0):
        return sum(len({line >> shift for line in lines}) for lines in self.own) / len(self.own)

    def report(self):
        """The lines of one message, and which functions load (L) and store (S) there."""
        last = None
        for line in sorted(self.own[len(self.own) // 2]):
            page = line >> PAGE - LINE
            print('  %s %03x  %s' % ('%12x' % page if page != last else ' ' * 12, line << LINE & (1 << PAGE) - 1,
                                     ', '.join(sorted({'%s %s' % (kind, self.name(at)) for kind, at in self.by[line]}))))
            last = page

    def name(self, offset):
        index = bisect.bisect(self.functions, (offset, chr(sys.maxunicode))) - 1
        return self.functions[index][1] if 0 <= index and 0 <= offset < self.functions[-1][0] + 4096 else '?'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build', help='folder of the build')
    parser.add_argument('--report', action='store_true', help='name the lines of a message')
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    env = {**os.environ, 'DAT_OVERRIDE': os.path.join(build, 'dat.conf')}
    most = 0
    for program, (library, post, leads_to, limit) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(['valgrind', '-q', '--tool=lackey', '--trace-mem=yes', '--log-file=%s/%%p' % scratch,
                            os.path.join(build, 'bench', program), 'lat', '8', '-n', str(CONNECTIONS), '-b', str(TURNS + 1), '-q'],
                           check=True, env=env, stdout=subprocess.DEVNULL)
            traces = [os.path.join(scratch, name) for name in sorted(os.listdir(scratch), key=int)]
            # the process that starts the two sides has the shortest one
            for number, trace in enumerate(sorted(traces, key=os.path.getsize)[-2:]):
                side = Side(trace, os.path.join(build, library), post, leads_to)
                print('%-5s side %d: %.1f lines, %.1f pages' % (program, number, side.mean(), side.mean(PAGE - LINE)))
                most = max(most, side.mean() / limit)
                if options.report:
                    side.report()
    if most > 1:
        sys.exit('bench/lines.py: more lines than expected')


if __name__ == '__main__':
    main()
