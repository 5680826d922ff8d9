# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""
What is measured: the rows of the table.

Each program of a row gives one figure a round: the products, and what is beside them. A command is

    [VARIABLE=VALUE] [@STACK] PROGRAM TEST [SIZE] [OPTION...]

limit, verbs, dat, stream and message are programs of build/bench, and traffic.h describes their tests; the other programs, and the stacks,
are those of programs.py. Of commands separated by '|' the fastest one counts.
"""
from collections import namedtuple

KIB, MIB = 1024, 1024 * 1024

# The network namespace of each side (a path; None: this one), and the address of the other side.
Sides = namedtuple('Sides', 'net other_net address', defaults=(None, None, None))
# unit: ns, where less is better, or a rate.
Row = namedtuple('Row', 'what unit products beside sides', defaults=(Sides(),))


def rows(what, unit, products, beside, sizes, sides=Sides()):
    """A row for each size, which replaces '{}'."""
    def of(commands, size):
        return {name: command.replace('{}', str(size)) for name, command in commands.items()}

    def name(size):
        return '%d MiB' % (size // MIB) if size >= MIB else '%d KiB' % (size // KIB) if size >= KIB else '%d B' % size
    return [Row('%s, %s' % (what, name(size)), unit, of(products, size), of(beside, size), sides) for size in sizes]


def ways(command, *names):
    return ' | '.join('%s -w %s' % (command, name) for name in names)


SHARED = 'BENCH_MEMORY=memfd '
PRIVATE = 'SOFTVERBS_DIRECT=private '

# V: through verbs, on the drop-in libraries. D: through DAT.
ROWS = [
    *rows('half round trip', 'ns', {'V': 'verbs lat {}', 'D': 'dat lat {}'},
          {'ring': 'limit lat {}', 'UCX': 'ucx tag_lat {}', 'libfabric': 'fi_pingpong {}'}, [8, 64]),
    *rows('half round trip', 'ns', {'V': 'verbs lat {}', 'D': 'dat lat {}'},
          {'best copy': ways('limit lat {}', 'vmw', 'vmr', 'bounce'), 'UCX': 'ucx tag_lat {}',
           'libfabric': 'fi_pingpong {}'}, [4 * KIB, 64 * KIB, MIB]),
    *rows('message rate', 'M/s', {'V': 'verbs rate {}', 'D': 'dat rate {}'},
          {'ring': 'limit rate {}', 'UCX': 'ucx tag_bw {}'}, [8]),
    *rows('send', 'MB/s', {'V': 'verbs bw {}', 'D': 'dat bw {}'},
          {'best copy': ways('limit bw {}', 'vmw', 'vmr', 'bounce'), 'UCX': 'ucx tag_bw {}'}, [64 * KIB, MIB]),
    *rows('send without process_vm', 'MB/s',
          {'V': 'SOFTVERBS_COPY=bounce verbs bw {}', 'D': 'SOFTVERBS_COPY=bounce dat bw {}'},
          {'bounce ring': 'limit bw {} -w bounce', 'UCX': 'UCX_TLS=posix,self ucx tag_bw {}'}, [64 * KIB, MIB]),
    # UCX: into memory that it allocates itself as shared memory, without a system call.
    *rows('RDMA write', 'MB/s', {'V': 'verbs write {}', 'D': 'dat write {}'},
          {'process_vm': 'limit write {}', 'UCX': 'ucx ucp_put_bw {}'}, [64 * KIB, MIB]),
    *rows('RDMA read', 'MB/s', {'V': 'verbs read {}', 'D': 'dat read {}'},
          {'process_vm': 'limit read {}', 'UCX': 'ucx ucp_get {}'}, [64 * KIB, MIB]),

    # Half a round trip of writes that the target polls in memory: in private memory, in a memfd, and in private memory that
    # the device swaps for memory that the other side can map. Before it does so the target's engine needs the processor on
    # which the target polls, for which it may wait some milliseconds: so there are more batches.
    *rows('write, polled', 'ns', {'V': 'verbs put {}', 'D': 'dat put {}'},
          {'process_vm': 'limit put {}', 'UCX': 'ucx ucp_put_lat {}'}, [8, 64]),
    *rows('write into shared memory, polled', 'ns', {'V': SHARED + 'verbs put {} -b 100', 'D': SHARED + 'dat put {} -b 100'},
          {'UCX': 'ucx ucp_put_lat {}'}, [8, 64, 4 * KIB]),
    *rows('write into swapped memory, polled', 'ns', {'V': PRIVATE + 'verbs put {} -b 200', 'D': PRIVATE + 'dat put {} -b 200'},
          {'UCX': 'ucx ucp_put_lat {}'}, [8, 64, 4 * KIB]),
    *rows('RDMA write into shared memory', 'MB/s', {'V': SHARED + 'verbs write {} -b 100', 'D': SHARED + 'dat write {} -b 100'},
          {'UCX': 'ucx ucp_put_bw {}'}, [64 * KIB, MIB]),
    *rows('RDMA read of shared memory', 'MB/s', {'V': SHARED + 'verbs read {} -b 100', 'D': SHARED + 'dat read {} -b 100'},
          {'UCX': 'ucx ucp_get {}'}, [64 * KIB, MIB]),
    *rows('RDMA write into swapped memory', 'MB/s', {'V': PRIVATE + 'verbs write {} -b 200', 'D': PRIVATE + 'dat write {} -b 200'},
          {'UCX': 'ucx ucp_put_bw {}'}, [64 * KIB, MIB]),
    *rows('RDMA read of swapped memory', 'MB/s', {'V': PRIVATE + 'verbs read {} -b 200', 'D': PRIVATE + 'dat read {} -b 200'},
          {'UCX': 'ucx ucp_get {}'}, [64 * KIB, MIB]),
    Row('fetch-add', 'M/s', {'V': 'verbs add 8'}, {'UCX': 'ucx ucp_fadd 8'}),
    Row('fetch-add in shared memory', 'M/s', {'V': SHARED + 'verbs add 8 -b 100'},
        {'bare': 'limit add 8', 'UCX': 'ucx ucp_fadd 8'}),

    # Half a round trip of 8 bytes, blocking in ibv_get_cq_event or dat_evd_wait; on a descriptor: in poll(2).
    Row('wake-up', 'ns', {'V': 'verbs wake 8', 'D': 'dat wake 8'},
        {'futex': 'limit wake 8 -w futex', 'eventfd': 'limit wake 8 -w eventfd'}),
    Row('wake-up, one processor', 'ns', {'V': 'verbs wake 8 -1', 'D': 'dat wake 8 -1'},
        {'futex': 'limit wake 8 -w futex -1', 'eventfd': 'limit wake 8 -w eventfd -1'}),
    Row('wake-up, descriptor, one processor', 'ns', {'V': 'verbs fd 8 -1', 'D': 'dat fd 8 -1'},
        {'eventfd': 'limit wake 8 -w eventfd -1'}),
    # Its first round trips touch new memory, as those of all rows do; there are as many as in a batch that polls.
    Row('wait that first polls for 50 us', 'ns', {'D': 'DAPL_SPIN_US=50 dat wake 8 -b 1000'},
        {'dequeue': 'dat lat 8', 'ring': 'limit lat 8'}),

    # From rdma_connect until established.
    *[Row('rdma_cm connections, ' + how, '/s', {'V': 'verbs conn -o %d' % burst}, {'SEQPACKET': 'limit conn -o %d' % burst})
      for burst, how in ((32, '32 at a time'), (1, 'one by one'))],
    # The figures of dtestcm, on this build and on OFED's packaged providers over the same device.
    *[Row('DAT connections, ' + how, '/s', {'D': 'dtestcm %d' % burst},
          {'SEQPACKET': 'limit conn -o %d' % burst, 'OFED cma': '@cma dtestcm %d' % burst,
           'OFED scm': '@scm dtestcm %d' % burst})
      for burst, how in ((32, '32 at a time'), (1, 'one by one'))],
    *[Row('DAT connections by %s, %s' % (cm, how), '/s', {'D': '@our-%s dtestcm %d' % (cm, burst)},
          {'OFED ' + cm: '@%s dtestcm %d' % (cm, burst)})
      for cm in ('scm', 'ucm') for burst, how in ((32, '32 at a time'), (1, 'one by one'))],
    # Half a round trip of 8 bytes on each in turn.
    Row('4096 connections, verbs', 'ns', {'V': 'verbs lat 8 -n 4096 -o 64'}, {'one': 'verbs lat 8', 'ring': 'limit lat 8'}),
    Row('4096 connections, DAT', 'ns', {'D': 'dat lat 8 -n 4096'}, {'one': 'dat lat 8', 'ring': 'limit lat 8'}),
]


def host_rows(net, address):
    """
    Two hosts, which are the network namespace `net` and this one, joined by a veth pair `wire`. V and D: through libfabric's
    provider tcp; what is beside them is through the same provider, or a TCP connection.
    """
    sides = Sides(None, net, address)
    return [
        *rows('half round trip', 'ns', {'V': '@far verbs lat {}', 'D': '@far dat lat {}'},
              {'libfabric': 'fi_pingpong {} -p tcp', 'TCP': 'stream lat {}',
               'own link': '@far-link verbs lat {}'}, [8, 64, 4 * KIB], sides),
        *rows('send', 'MB/s', {'V': '@far verbs bw {}', 'D': '@far dat bw {}'},
              {'libfabric': 'fi_pingpong {} -p tcp -w bw', 'TCP': 'stream bw {}',
               'own link': '@far-link verbs bw {}'}, [MIB], sides),
        *rows('RDMA write', 'MB/s', {'V': '@far verbs write {}', 'D': '@far dat write {}'},
              {'TCP': 'stream bw {}', 'own link': '@far-link verbs write {}'},
              [MIB], sides),
        *rows('message rate', 'M/s', {'V': '@far verbs rate {}', 'D': '@far dat rate {}'},
              {'libfabric': 'message rate {} -w tcp', 'TCP': 'stream rate {}', 'own link': '@far-link verbs rate {}'}, [8], sides),
        *rows('write, polled', 'ns', {'V': '@far verbs put {}', 'D': '@far dat put {}'},
              {'TCP': 'stream lat {}', 'own link': '@far-link verbs put {}'}, [8], sides),
        *rows('wake-up', 'ns', {'V': '@far verbs wake {}', 'D': '@far dat wake {}'},
              {'TCP': 'stream wake {}', 'own link': '@far-link verbs wake {}'}, [8], sides),
        # The whole round trip, to a target that sleeps: beside it twice half of one.
        *[Row('RDMA %s to a sleeping target, 8 B' % way, 'ns', {'V': '@far verbs await 8 -w ' + way, 'D': '@far dat await 8 -w ' + way},
              {'TCP, half': 'stream wake 8', 'own link': '@far-link verbs await 8 -w ' + way}, sides) for way in ('read', 'write')],
        Row('rdma_cm connections, 32 at a time', '/s', {'V': '@far verbs conn -o 32'},
            {'own link': '@far-link verbs conn -o 32', 'one host': '@here verbs conn -o 32'}, sides),
    ]


def rxe_rows(address):
    """On a kernel's device, which is slow in an emulated guest: our DAT and OFED's, beside verbs alone with rdma-core."""
    return [row for what, unit, test, sizes in (('half round trip', 'ns', 'lat', [64, 4 * KIB, 64 * KIB, MIB]),
                                                ('send', 'MB/s', 'bw', [4 * KIB, 64 * KIB, MIB]),
                                                ('RDMA write', 'MB/s', 'write', [4 * KIB, 64 * KIB, MIB]),
                                                ('RDMA read', 'MB/s', 'read', [4 * KIB, 64 * KIB, MIB]))
            for row in rows(what, unit, {'D': '@rxe dat %s {} -q -b 4' % test, 'OFED': '@rxe-ofed dat %s {} -q -b 4' % test},
                            {'verbs': '@rxe-ofed verbs %s {} -q -b 4' % test}, sizes, Sides(address=address))]
