# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What is compared with what, and how it has to come out.

A measurement is a tuple: a program of build/bench and its arguments, or ('ucx', TLS, TEST, SIZE), or ('fi', SIZE), or
('dtestcm', STACK, BURST).
A row compares a product with the best of its anchors. Rows of one group run in the same rounds; in a group that sleeps,
processors rest.
"""
from collections import namedtuple

LESS, MORE = 'at most', 'at least'          # times and ratios of times; rates and bandwidths

Row = namedtuple('Row', 'goal what product anchors sense value')
Group = namedtuple('Group', 'name rows sleeps', defaults=[False])

POSIX, SYSV = 'posix,self', 'sysv,cma,self'
KIB, MIB = 1024, 1024 * 1024
ONE_CPU = ('-c', '0,0')


def size_name(size):
    if size % MIB == 0:
        return '%d MiB' % (size // MIB)
    return '%d KiB' % (size // KIB) if size % KIB == 0 else '%d B' % size


def verbs(test, size, *more):
    return ('verbs', test, str(size)) + more


def dat(test, size, *more):
    return ('dat', test, str(size)) + more


def bounced(measurement):
    """The same where no process may reach into another's memory."""
    return ('env', 'SOFTVERBS_COPY=bounce') + measurement


def spinning(measurement):
    """The same where a wait looks for a while before it sleeps."""
    return ('env', 'DAPL_SPIN_US=50') + measurement


def ring(test, size):
    return ('limit-ring', test, str(size))


def send(test, way, size):
    return ('limit-send', test + '-' + way, str(size), '-r', str(MIB if test == 'bw' else 128 * KIB))


def copies(test, size, *ways):
    return [send(test, way, size) for way in ways]


def ucx(tls, test, size):
    return ('ucx', tls, test, str(size))


def ucx_best(test, size):
    return [ucx(POSIX, test, size), ucx(SYSV, test, size)]


def fi(size):
    return ('fi', str(size))


def latency_small(goal, size, v_limit, d_limit, d_ucx, d_anchors):
    what = size_name(size) + ' half round trip, '
    v, d, limit = verbs('lat', size), dat('lat', size), [ring('lat', size)]
    return Group(goal + ' ' + size_name(size), [
        Row(goal, what + 'V / ring', v, limit, LESS, v_limit),
        Row(goal, what + 'V / UCX', v, ucx_best('tag_lat', size), LESS, 1.0),
        Row(goal, what + 'V / libfabric shm', v, [fi(size)], LESS, 1.0),
        Row(goal, what + 'D / ring', d, limit, LESS, d_limit),
        Row(goal, what + 'D / UCX', d, d_anchors, LESS, d_ucx),
    ])


def latency_large(goal, size, rows):
    what = size_name(size) + ' half round trip, '
    return Group(goal + ' ' + size_name(size),
                 [Row(goal, what + name, product, anchors, LESS, value) for name, product, anchors, value in rows])


def bandwidth(size):
    what = size_name(size) + ' send, '
    v, d = verbs('bw', size), dat('bw', size)
    limit = copies('bw', size, 'vmw', 'vmr')
    return Group('G6 ' + size_name(size), [
        Row('G6', what + 'V / best copy', v, limit, MORE, 0.92),
        Row('G6', what + 'D / best copy', d, limit, MORE, 0.90),
        Row('G6', what + 'D / UCX sysv,cma', d, [ucx(SYSV, 'tag_bw', size)], MORE, 0.95),
    ])


def one_sided(test, size):
    what = '%s RDMA %s, ' % (size_name(size), test)
    v, d, limit = verbs(test, size), dat(test, size), [('limit-copy', test, str(size))]
    peer = [ucx(SYSV, 'ucp_put_bw' if test == 'write' else 'ucp_get', size)]
    return Group('G7 %s %s' % (test, size_name(size)), [
        Row('G7', what + 'V / process_vm', v, limit, MORE, 0.92),
        Row('G7', what + 'D / process_vm', d, limit, MORE, 0.90),
        Row('G7', what + 'D / UCX put, get', d, peer, MORE, 1.2),
        Row('G7', what + 'D / libfabric shm', d, [('fi-rma', test, str(size))], MORE, 0.95),
    ])


def fallback(size):
    what = size_name(size) + ' send, no process_vm, '
    product = bounced(verbs('bw', size))
    return Group('G18 ' + size_name(size), [
        Row('G18', what + 'V / bounce ring', product, [send('bw', 'bounce', size)], MORE, 0.85),
        Row('G18', what + 'V / UCX posix', product, [ucx(POSIX, 'tag_bw', size)], MORE, 1.0),
    ])


def connections(outstanding):
    args = ('-o', str(outstanding))
    return Group('conn %d' % outstanding, [
        Row('conn', 'rdma_cm, %d at a time, V / SEQPACKET' % outstanding, ('verbs', 'conn') + args,
            [('limit-conn', 'plain') + args], MORE, 0.5),
    ], sleeps=True)


def dat_connections(goal, burst, outstanding, ofed):
    """Connections between endpoints made before, waiting asleep: what dtestcm tells. In the limit a memfd goes along."""
    what = 'dtestcm, ' + ('%d at a time, ' % burst if burst > 1 else 'one at a time, ')
    product = ('dtestcm', 'ours', str(burst))
    return Group(goal, [
        Row(goal, what + 'D / OFED scm, device without work', product, [('dtestcm', 'scm', str(burst))], MORE, ofed),
        Row(goal, what + 'D / SEQPACKET and memfd, %d at a time' % outstanding, product,
            [('limit-conn', 'ring', '-o', str(outstanding))], MORE, 0.35),
    ], sleeps=True)


GROUPS = [
    latency_small('G1', 8, 1.20, 1.45, 0.80, [ucx(POSIX, 'tag_lat', 8)]),
    latency_small('G2', 64, 1.25, 1.40, 0.90, ucx_best('tag_lat', 64)),
    Group('G3', [
        Row('G3', '8 B rate, V / ring', verbs('rate', 8), [ring('rate', 8)], MORE, 0.55),
        Row('G3', '8 B rate, V / UCX', verbs('rate', 8), ucx_best('tag_bw', 8), MORE, 2.0),
        Row('G3', '8 B rate, D / ring', dat('rate', 8), [ring('rate', 8)], MORE, 0.35),
        Row('G3', '8 B rate, D / UCX posix', dat('rate', 8), [ucx(POSIX, 'tag_bw', 8)], MORE, 1.6),
    ]),
    latency_large('G4', 4 * KIB, [
        ('V / best copy', verbs('lat', 4096), copies('lat', 4096, 'vmw', 'vmr', 'bounce'), 1.20),
        ('V / UCX', verbs('lat', 4096), ucx_best('tag_lat', 4096), 1.0),
        ('V / libfabric shm', verbs('lat', 4096), [fi(4096)], 1.0),
        ('D / best copy', dat('lat', 4096), copies('lat', 4096, 'vmw', 'vmr', 'bounce'), 1.25),
        ('D / UCX', dat('lat', 4096), ucx_best('tag_lat', 4096), 0.95),
    ]),
    latency_large('G5', 64 * KIB, [
        ('D / best copy', dat('lat', 64 * KIB), copies('lat', 64 * KIB, 'vmw', 'vmr'), 1.15),
        ('D / UCX sysv,cma', dat('lat', 64 * KIB), [ucx(SYSV, 'tag_lat', 64 * KIB)], 1.05),
    ]),
    latency_large('G5', MIB, [
        ('D / best copy', dat('lat', MIB), copies('lat', MIB, 'vmw', 'vmr'), 1.10),
        ('D / UCX sysv,cma', dat('lat', MIB), [ucx(SYSV, 'tag_lat', MIB)], 1.05),
    ]),
    bandwidth(64 * KIB), bandwidth(MIB),
    one_sided('write', 64 * KIB), one_sided('write', MIB), one_sided('read', 64 * KIB), one_sided('read', MIB),
    Group('G8', [
        Row('G8', '4 KiB stream, D / bounce ring', dat('bw', 4096), [send('bw', 'bounce', 4096)], MORE, 0.60),
        Row('G8', '4 KiB stream, D / UCX posix', dat('bw', 4096), [ucx(POSIX, 'tag_bw', 4096)], MORE, 0.75),
    ]),
    Group('G9', [
        Row('G9', 'blocking, one processor, V / eventfd+poll', verbs('wake', 8, *ONE_CPU),
            [('limit-line', 'evpoll') + ONE_CPU], LESS, 1.30),
        Row('G9', 'blocking, one processor, D / eventfd+poll', dat('wake', 8, *ONE_CPU),
            [('limit-line', 'evpoll') + ONE_CPU], LESS, 1.35),
        Row('G9', 'blocking, one processor, D / futex', dat('wake', 8, *ONE_CPU),
            [('limit-line', 'futex') + ONE_CPU], LESS, 1.80),
    ], sleeps=True),
    Group('G10 asleep', [
        Row('G10', 'blocking, two processors, D / eventfd+poll', dat('wake', 8),
            [('limit-line', 'evpoll')], LESS, 1.15),
    ], sleeps=True),
    Group('G10 looking', [
        Row('G10', 'two processors, looking before sleeping, D / futex', spinning(dat('wake', 8)),
            [('limit-line', 'futexspin')], LESS, 1.70),
    ]),
    fallback(64 * KIB), fallback(MIB),
    connections(32), connections(1),
    dat_connections('G16', 100, 32, 2.5), dat_connections('G17', 1, 1, 1.8),
    Group('many', [
        Row('many', '8 B on 4,096 connections / on one, V', ('verbs', 'many', '8', '-n', '4096'),
            [('verbs', 'many', '8', '-n', '1')], LESS, 1.5),
    ]),
]


def groups_of(names):
    """The groups that hold a row of one of these goals, with those rows; all for no names."""
    if not names:
        return GROUPS
    chosen = [g._replace(rows=[r for r in g.rows if r.goal in names]) for g in GROUPS]
    return [g for g in chosen if g.rows]
