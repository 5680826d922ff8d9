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
import mmap
import os
import re
import statistics
import subprocess
import sys
import tempfile

CONNECTIONS, TURNS = 16, 4
LINE, PAGE = 6, 12      # shifts
# For each program: the library that has its posts, the function by whose calls messages are told apart, and how many lines are
# no error.
PROGRAMS = {'verbs': ('lib/softverbs/libibverbs.so.1', 'sv_qp_post_send', 23.5),
            'dat': ('lib/libdaplsoft.so.2', 'dapl_ep_post_send', 35.5)}
# One access of a trace: I for an instruction, L, S and M for a load, a store and both; address and bytes.
ACCESS = re.compile(rb'(I| [LSM])  ?([0-9a-f]+),([0-9]+)\n')


def symbols(library):
    """Sorted addresses and names of the functions."""
    words = [line.split() for line in subprocess.check_output(['nm', library], text=True).splitlines()]
    return sorted((int(word[0], 16), word[2].partition('.lto_priv')[0]) for word in words if len(word) == 3 and word[1] in 'tT')


def accesses(lines):
    """(kind, address, bytes) of each line of a trace that is an access."""
    for line in lines:
        access = ACCESS.fullmatch(line)
        if access:
            yield access[1].decode().strip(), int(access[2], 16), int(access[3])


class Side:
    """What one process did in TURNS messages on each connection."""

    def __init__(self, trace, library, post):
        self.functions = symbols(library)
        named = {name: address for address, name in self.functions}
        with open(trace, 'rb') as text:
            executed = {address for kind, address, _ in accesses(set(text)) if kind == 'I'}
            self.base = self.base_find(executed, named[post])
            self.messages = self.messages_find(mmap.mmap(text.fileno(), 0, prot=mmap.PROT_READ), self.base + named[post])
        # A process that waits for its turn repeats the same accesses, as often as the other one lets it wait.
        touched = [self.touched(set(message)) for message in self.messages]
        count = collections.Counter(line for message in touched for line in message)
        self.own = [[line for line in message if count[line] <= 2 * TURNS] for message in touched]

    def base_find(self, executed, post):
        """The address of the library: it begins at a page, and most of its functions have begun there."""
        bases = {address - post for address in executed if not (address - post) % (1 << PAGE)}
        return max(bases, key=lambda base: sum(base + address in executed for address, _ in self.functions))

    @staticmethod
    def messages_find(text, post):
        """The lines of the last messages, without those of the last one, which is not whole."""
        begin = [call.start() + 1 for call in re.finditer(b'\nI  %08x,' % post, text)]
        assert len(begin) > CONNECTIONS * (TURNS + 1), 'too few messages'
        begin = begin[-CONNECTIONS * TURNS - 2:-1]
        return [text[first:end].splitlines(keepends=True) for first, end in zip(begin, begin[1:])]

    @staticmethod
    def touched(message):
        return {line for kind, address, size in accesses(message) if kind != 'I'
                for line in range(address >> LINE, (address + size - 1 >> LINE) + 1)}

    def median(self, shift=0):
        return statistics.median(len({line >> shift for line in lines}) for lines in self.own)

    def report(self):
        """The lines of one message, and which functions load (L) and store (S) there."""
        middle, last = len(self.own) // 2, None
        by, at = collections.defaultdict(set), 0
        for kind, address, size in accesses(self.messages[middle]):
            if kind == 'I':
                at = address - self.base
                continue
            for line in range(address >> LINE, (address + size - 1 >> LINE) + 1):
                by[line].add('%s %s' % (kind, self.name(at)))
        for line in sorted(self.own[middle]):
            page = line >> PAGE - LINE
            print('  %s %03x  %s' % ('%12x' % page if page != last else ' ' * 12, line << LINE & (1 << PAGE) - 1,
                                     ', '.join(sorted(by[line]))))
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
    for program, (library, post, limit) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(['valgrind', '-q', '--tool=lackey', '--trace-mem=yes', '--log-file=%s/%%p' % scratch,
                            os.path.join(build, 'bench', program), 'lat', '8', '-n', str(CONNECTIONS), '-b', str(TURNS + 1), '-q'],
                           check=True, env=env, stdout=subprocess.DEVNULL)
            traces = [os.path.join(scratch, name) for name in sorted(os.listdir(scratch), key=int)]
            # the process that starts the two sides has the shortest one
            for number, trace in enumerate(sorted(traces, key=os.path.getsize)[-2:]):
                side = Side(trace, os.path.join(build, library), post)
                print('%-5s side %d: %g lines, %g pages' % (program, number, side.median(), side.median(PAGE - LINE)))
                most = max(most, side.median() / limit)
                if options.report:
                    side.report()
    if most > 1:
        sys.exit('bench/lines.py: more lines than expected')


if __name__ == '__main__':
    main()
