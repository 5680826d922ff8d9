# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Runs a command of the table and returns its figure: ns, millions a second, MB/s, or connections a second."""
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
from statistics import median

TIMEOUT = 90        # seconds

# A DAT provider over a device: the name of the adapter, and the environment. {build} and {system} are directories.
STACKS = {
    '@ours': ('ofa-v2-soft', {'DAT_OVERRIDE': '{build}/dat.conf'}),
    '@here': ('ofa-v2-soft', {'DAT_OVERRIDE': '{build}/dat.conf'}),
    '@cma': ('ofed-cma', {'LD_LIBRARY_PATH': '{build}/lib/softverbs:{system}'}),
    '@scm': ('ofed-scm', {'LD_LIBRARY_PATH': '{build}/lib/softverbs:{system}', 'DAPL_SCM_NETDEV': 'lo'}),
    '@ucm': ('ofed-ucm', {'LD_LIBRARY_PATH': '{build}/lib/softverbs:{system}', 'SOFTVERBS_LINK': 'infiniband'}),
    '@our-scm': ('our-scm', {'LD_LIBRARY_PATH': '{build}/lib/softverbs:{build}/lib', 'DAPL_SCM_NETDEV': 'lo'}),
    '@our-ucm': ('our-ucm', {'LD_LIBRARY_PATH': '{build}/lib/softverbs:{build}/lib', 'SOFTVERBS_LINK': 'infiniband'}),
    '@far': ('far', {'SOFTVERBS_FABRIC': 'tcp', 'SOFTVERBS_FABRIC_KEY': 'none'}),
    '@far-link': ('far', {'SOFTVERBS_FABRIC': 'link', 'SOFTVERBS_FABRIC_KEY': 'none'}),
    '@rxe': ('ofa-v2-ib0', {'DAT_OVERRIDE': '{build}/dat.conf', 'LD_LIBRARY_PATH': '{build}/lib:{system}'}),
    '@rxe-ofed': ('ofed-rxe', {'LD_LIBRARY_PATH': '{system}'}),
}
CONF = '''ofed-cma u2.0 nonthreadsafe default {0}/libdaplofa.so.2 dapl.2.0 "127.0.0.1 0" ""
ofed-scm u2.0 nonthreadsafe default {0}/libdaploscm.so.2 dapl.2.0 "soft0 1" ""
ofed-ucm u2.0 nonthreadsafe default {0}/libdaploucm.so.2 dapl.2.0 "soft0 1" ""
our-scm u2.0 nonthreadsafe default {1}/lib/libdaploscm.so.2 dapl.2.0 "soft0 1" ""
our-ucm u2.0 nonthreadsafe default {1}/lib/libdaploucm.so.2 dapl.2.0 "soft0 1" ""
far u2.0 nonthreadsafe default {1}/lib/libdaplsoft.so.2 dapl.2.0 "wire 0" ""
ofed-rxe u2.0 nonthreadsafe default {0}/libdaplofa.so.2 dapl.2.0 "ib0 0" ""
'''


class Failed(Exception):
    """There is no figure."""


class Programs:
    def __init__(self, build, scratch, processors, short=False):
        self.build, self.scratch, self.processors, self.short = os.path.abspath(build), scratch, processors, short
        self.peers = {'ucx': self.ucx, 'fi_pingpong': self.fi_pingpong, 'dtestcm': self.dtestcm}
        packaged = re.search(r'libdat2\.so\.2 .*=> (.*)/libdat2', output(['/sbin/ldconfig', '-p']))
        self.system = packaged.group(1) if packaged else None
        with open(os.path.join(scratch, 'dat.conf'), 'w') as conf:
            conf.write(CONF.format(self.system, self.build))

    def figure(self, command, sides):
        words, variables = command.split(), {}
        while '=' in words[0]:
            variables.update([words.pop(0).split('=')])
        stack = words.pop(0) if words[0] in STACKS else '@ours'
        if stack == '@here':     # both sides are in this network namespace
            sides = sides._replace(net=None, other_net=None, address=None)
        env = {**os.environ, **self.stack(stack), **variables}
        figures = self.peers.get(words[0], self.own)(words, sides, env)
        if not figures:
            raise Failed('no figures')
        return median(map(float, figures))

    def stack(self, name):
        adapter, variables = STACKS[name]
        if not self.system and adapter.startswith('ofed'):
            raise Failed('libdapl2 is not installed')
        return {'DAPL_TEST_IA': adapter, 'DAT_OVERRIDE': os.path.join(self.scratch, 'dat.conf'),
                **{name: value.format(build=self.build, system=self.system) for name, value in variables.items()}}

    def own(self, words, sides, env):
        argv = within(sides.net) + [os.path.join(self.build, 'bench', words[0])] + words[1:]
        argv += ['-c', '%d,%d' % self.processors] + (['-b', '2', '-q'] if self.short else [])
        argv += (['-N', sides.other_net] if sides.other_net else []) + (['-a', sides.address] if sides.address else [])
        return output(argv, env).split()

    def ucx(self, words, sides, env):
        test, size = words[1], int(words[2])
        count = self.count(300000 / (300 + size / 15) if test.endswith('lat') else 3000000 / (150 + size / 15))
        options = ['-t', test, '-s', str(size), '-n', str(count), '-w', str(max(count // 10, 2)), '-f', '-v']
        env = {'UCX_TLS': 'shm,self', 'UCX_LOG_LEVEL': 'error', **env}
        alone = self.without_mpi()
        out = self.pair('ucx_perftest', alone, [sides.address or 'localhost'] + options + alone, '-p', sides, env)
        # iterations; us: median, mean, overall; MiB/s: mean, overall; messages/s: mean, overall
        last = [float(word) for word in out.split()[-1].split(',')]
        return [last[1] * 1e3 if test.endswith('lat') else last[7] * (1e-6 if size <= 64 else size / 1e6)]

    @staticmethod
    def without_mpi():
        """Where ucx_perftest is built with an MPI, it takes that to start its two processes."""
        return ['-P', '0'] if shutil.which('ucx_perftest') and '-P <0|1>' in output(['ucx_perftest', '-h']) else []

    def fi_pingpong(self, words, sides, env):
        """A mean is all that it prints, with -w bw of the speed."""
        rate, options = '-w bw' in ' '.join(words), [word for word in words[2:] if word not in ('-w', 'bw')]
        count = self.count(1000000 / (700 + int(words[1]) / 15))
        options = ['-p', 'shm', '-e', 'rdm', '-S', words[1], '-I', str(count)] + options
        out = self.pair('fi_pingpong', options, options + [sides.address or '127.0.0.1'], ('-B', '-P'), sides, env)
        return [float(word) if rate else float(word) * 1e3 for word in out.split()[-3 if rate else -2:][:1]]

    def dtestcm(self, words, sides, env):
        """Endpoints are created before, waits are asleep. OFED's needs 10 ms to end each of them."""
        burst = int(words[1])
        adapter = env['DAPL_TEST_IA']
        # The address of a UD CM has no name: the server tells it over TCP.
        options = [] if adapter.endswith('ucm') else ['-N']
        options += ['-w', '-P', adapter, '-b', str(burst), '-c', str(6 * burst if burst > 1 else 60)]
        out = self.pair(os.path.join(self.build, 'bin', 'dtestcm'), options,
                        options + ['-h', sides.address or '127.0.0.1'], '-p', sides, env, 'Server ready')
        return re.findall(r'CPS +([0-9.]+)', out)

    def count(self, about):
        return max(int(about / (16 if self.short else 1)), 4)

    def pair(self, program, server, client, port, sides, env, ready=None):
        """
        What the client prints. `port` is the option, or those of server and client. The server is ready when it prints
        `ready`, or else when it listens.
        """
        if not shutil.which(program):
            raise Failed(program + ' is not installed')
        options, number = [port, port] if isinstance(port, str) else port, free_port()
        argv = [within(net) + ['taskset', '-c', str(processor), program] + arguments + [option, str(number)]
                for net, processor, arguments, option in zip((sides.other_net, sides.net), self.processors[::-1],
                                                             (server, client), options)]
        with tempfile.TemporaryFile(dir=self.scratch) as said:
            process = subprocess.Popen(argv[0], env=env, stdout=said, stderr=said)
            try:
                until(lambda: process.poll() is not None or (ready.encode() in os.pread(said.fileno(), 65536, 0) if ready
                                                             else listens(process.pid, number)))
                return output(argv[1], env)
            finally:
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def within(net):
    return ['nsenter', '--net=' + net] if net else []


def output(argv, env=None):
    try:
        ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Failed('no end in %d s' % TIMEOUT)
    if ended.returncode:
        raise Failed((ended.stderr.strip() or ended.stdout.strip() or 'status %d' % ended.returncode).splitlines()[-1])
    return ended.stdout


def until(done):
    deadline = time.monotonic() + TIMEOUT
    while not done():
        if time.monotonic() > deadline:
            raise Failed('the server is not ready in %d s' % TIMEOUT)
        time.sleep(0.002)


def listens(pid, port):
    try:
        with open('/proc/%d/net/tcp' % pid) as four, open('/proc/%d/net/tcp6' % pid) as six:
            sockets = [line.split() for line in [*four, *six]]
    except OSError:     # it has ended, or there is no IPv6
        return False
    return any(words[1].endswith(':%04X' % port) and words[3] == '0A' for words in sockets)


def free_port():
    """Below those that the kernel and the software device choose."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as s:
            if s.connect_ex(('127.0.0.1', port)):
                return port
