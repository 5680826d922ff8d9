# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Running a measurement: our own programs, and the peers where they are installed.

Each returns the figures of short batches: ns for times, 10^6 messages or MB or connections a second for rates.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import namedtuple
from contextlib import contextmanager

TIMEOUT = 600
OFED = ('libdat2.so.2', 'libdaploscm.so.2')      # as packaged


# How loud the machine is: the share of time that was taken away, in per cent; how many times as long work takes beside
# other work; the microseconds that it takes then; and the nanoseconds that a cache line takes to the other processor.
Gate = namedtuple('Gate', 'lost beside work line')


class Absent(Exception):
    """A peer's program is not installed."""


class Failed(Exception):
    """A program ended with an error or printed no figures."""


class Programs:
    def __init__(self, build, short):
        self.build = os.path.abspath(build)
        self.short = short
        self.notes = {}                     # measurement: what it said beside its figures
        self.env = dict(os.environ, DAT_OVERRIDE=os.path.join(self.build, 'dat.conf'))

    def path(self, program):
        return os.path.join(self.build, 'bench', program)

    def gate(self):
        """What `gate` says."""
        return Gate(*map(float, self.output([self.path('gate'), 'gate', '-b', '1']).split()))

    def run(self, measurement):
        if measurement[0] == 'fi-rma' and not os.path.exists(self.path('fi-rma')):
            raise Absent('libfabric-dev')
        if measurement[0] == 'ucx':
            return self.ucx(*measurement[1:])
        if measurement[0] == 'fi':
            return self.fi(measurement[1])
        if measurement[0] == 'dtestcm':
            return self.dtestcm(*measurement[1:])
        return self.own(measurement)

    def own(self, measurement):
        assignments = []
        if measurement[0] == 'env':
            assignments, measurement = ['env', measurement[1]], measurement[2:]
        command = assignments + [self.path(measurement[0])] + list(measurement[1:])
        result = self.ended(command + (['-b', '2', '-q'] if self.short else []))
        if result.stderr.strip():
            self.notes[' '.join(measurement)] = result.stderr.strip().splitlines()[-1]
        return self.figures(result.stdout.split(), command)

    def ended(self, command):
        result = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=TIMEOUT)
        if result.returncode:
            raise Failed('%s: %s' % (' '.join(command), result.stderr.strip() or result.returncode))
        return result

    def output(self, command):
        return self.ended(command).stdout

    @staticmethod
    def figures(words, command):
        if not words:
            raise Failed('%s: no figures' % ' '.join(command))
        return [float(word) for word in words]

    # ---- peers: a server on processor 1, a client on processor 0

    def pair(self, program, server, client, env=None):
        if not shutil.which(program):
            raise Absent(program)
        env = dict(self.env, **(env or {}))
        with subprocess.Popen(['taskset', '-c', '1', program] + server, env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                await_listener(int(server[server.index('-p' if program == 'ucx_perftest' else '-B') + 1]), process)
                command = ['taskset', '-c', '0', program] + client
                result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT)
                process.wait(60)
            except subprocess.TimeoutExpired:
                raise Failed('%s: no end' % program)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        if result.returncode:
            raise Failed('%s: %s' % (' '.join(command), result.stderr.strip()))
        return result.stdout

    def ucx(self, tls, test, size):
        """One server and client run the test again and again: each run is a batch."""
        size = int(size)
        runs = 3 if self.short else 12
        count = max(ucx_count(test, size) // (16 if self.short else 1), 4)
        with tempfile.NamedTemporaryFile('w', suffix='.list') as tests:
            for i in range(runs + 1):
                tests.write('run.%d -t %s -s %d -n %d -w %d\n' % (i, test, size, count, max(count // 4, 2)))
            tests.flush()
            port = str(free_port())
            env = {'UCX_TLS': tls, 'UCX_LOG_LEVEL': 'error'}
            if not test.startswith('tag'):
                env['UCX_ALLOC_PRIO'] = 'heap'      # ordinary memory: what it shares itself needs no copy
            out = self.pair('ucx_perftest', ['-p', port, '-b', tests.name],
                            ['localhost', '-p', port, '-b', tests.name, '-f', '-v'], env)
        lines = [line.split(',') for line in out.splitlines() if line.startswith('run.')]
        if test.endswith('_lat'):
            figures = [float(line[4]) * 1e3 for line in lines]      # us
        elif size <= 64:
            figures = [float(line[8]) / 1e6 for line in lines]      # messages a second
        else:
            figures = [size * float(line[8]) / 1e6 for line in lines]
        if len(figures) != runs + 1:
            raise Failed('ucx_perftest %s: %r' % (test, out))
        return figures[1:]

    def fi(self, size):
        """The mean of a run is all that it tells."""
        count = str(10 if self.short else 1000 if int(size) <= 4096 else 100 if int(size) <= 65536 else 20)
        common = ['-p', 'shm', '-e', 'rdm', '-S', size, '-I', count]
        figures = []
        for _ in range(1 if self.short else 2):
            port = str(free_port())
            out = self.pair('fi_pingpong', common + ['-B', port], common + ['-P', port, '127.0.0.1'])
            words = out.split()
            if len(words) < 8:
                raise Failed('fi_pingpong: %r' % out)
            figures.append(float(words[-2]) * 1e3)
        return figures


    # ---- dtestcm, one program on both stacks

    def packaged_scm(self, directory):
        """For dtestcm on OFED's packaged libdat2 and its provider with a socket CM, over the drop-in."""
        libraries = packaged_libraries()
        if not all(name in libraries for name in OFED):
            raise Absent('libdapl2')
        conf = os.path.join(directory, 'dat.conf')
        with open(conf, 'w') as file:
            file.write('packaged-scm u2.0 nonthreadsafe default %s dapl.2.0 "soft0 1" ""\n' % libraries[OFED[1]])
        return dict(self.env, DAT_OVERRIDE=conf, DAPL_SCM_NETDEV='lo',
                    LD_LIBRARY_PATH=os.path.join(self.build, 'lib', 'softverbs'),
                    LD_PRELOAD=libraries[OFED[0]] + ':' + self.path('conn-stub.so'))

    def dtestcm(self, stack, burst):
        with tempfile.TemporaryDirectory() as directory:
            if stack == 'ours':
                adapter, env = 'ofa-v2-soft', self.env
            else:
                adapter, env = 'packaged-scm', self.packaged_scm(directory)
            return [self.dtestcm_run(adapter, env, int(burst)) for _ in range(1 if self.short else 3)]

    def dtestcm_run(self, adapter, env, burst):
        """
        OFED's provider may tell an end before the beginning of another connection, for which dtestcm gives up, or die: it
        runs again.
        """
        for _ in range(20):
            try:
                return self.dtestcm_pair(adapter, env, burst)
            except Failed as why:
                if adapter == 'ofa-v2-soft':
                    raise
                failure = why
        raise failure

    def dtestcm_pair(self, adapter, env, burst):
        count = (1000 if burst > 1 else 200) // (10 if self.short else 1)
        program = os.path.join(self.build, 'bin', 'dtestcm')
        options = ['-N', '-w', '-P', adapter, '-p', str(free_port()), '-b', str(burst), '-c', str(count)]
        with subprocess.Popen(['taskset', '-c', '1', program] + options, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as server:
            try:
                if not any('Server ready' in line for line in server.stdout):
                    raise Failed('dtestcm on %s: the server ended' % adapter)
                self.check_stack(server.pid, adapter)
                client = subprocess.run(['taskset', '-c', '0', program, '-h', '127.0.0.1'] + options, env=env,
                                        capture_output=True, text=True, timeout=TIMEOUT)
                rest, complaint = server.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                raise Failed('dtestcm on %s: no end' % adapter)
            finally:
                if server.poll() is None:
                    server.kill()
        told = re.search(r'CPS +([0-9.]+)', client.stdout)
        if client.returncode or server.returncode or 'PASSED' not in rest or not told:
            why = client.stderr.strip() or complaint.strip() or server.returncode
            raise Failed('dtestcm on %s: %s' % (adapter, why))
        return float(told.group(1))

    def check_stack(self, pid, adapter):
        """Its provider is this build's just if it should be."""
        with open('/proc/%d/maps' % pid) as maps:
            providers = [line.split()[-1] for line in maps if 'libdapl' in line]
        ours = [path for path in providers if path.startswith(self.build + os.sep)]
        if not providers or bool(ours) != (adapter == 'ofa-v2-soft'):
            raise Failed('dtestcm on %s: runs on %s' % (adapter, sorted(set(providers))))


@contextmanager
def awake():
    """
    Both processors have something to do, of the lowest priority, so that they never rest: when a processor of a guest
    wakes, the host may put it elsewhere, beside another cache.
    """
    parent = os.getpid()
    busy = [keep_busy(processor, parent) for processor in (0, 1)]
    try:
        yield busy
    finally:
        for pid in busy:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def keep_busy(processor, parent):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while os.getppid() == parent:
            for _ in range(100000):
                pass
    finally:
        os._exit(1)


def packaged_libraries():
    """Where the dynamic linker finds what is installed: soname, path."""
    try:
        listing = subprocess.run(['ldconfig', '-p'], capture_output=True, text=True).stdout
    except OSError:
        return {}
    return dict(reversed([(line.split()[0], line.split()[-1]) for line in listing.splitlines() if '=>' in line]))


def ucx_count(test, size):
    if test.endswith('_lat'):
        return 400 if size <= 64 else 200 if size <= 4096 else 30 if size <= 65536 else 5
    return 4000 if size <= 64 else 600 if size <= 4096 else 80 if size <= 65536 else 16


def free_port():
    with socket.socket() as s:
        s.bind(('', 0))
        return s.getsockname()[1]


def await_listener(port, process):
    suffix = ':%04X' % port
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for table in ('/proc/net/tcp', '/proc/net/tcp6'):
            with open(table) as lines:
                for line in lines:
                    words = line.split()
                    if words[1].endswith(suffix) and words[3] == '0A':
                        return
        if process.poll() is not None:
            raise Failed('the server ended')
        time.sleep(0.005)
    raise Failed('the server does not listen')
