# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Latency and bandwidth over size: the limit, ours, the peers; one SVG."""
import math
import statistics

from goals import KIB, MIB, POSIX, SYSV, copies, dat, fi, ring, size_name, ucx, verbs

SIZES = [8, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB]
WIDTH, HEIGHT, LEFT, TOP, PANEL_WIDTH, PANEL_HEIGHT = 1180, 560, 70, 60, 480, 380
CURVES = [
    ('limit', '#777777', '6 3'), ('softverbs, ibv_*', '#c0392b', ''), ('softverbs, dat_*', '#e08e0b', ''),
    ('UCX posix', '#2e6da4', ''), ('UCX sysv,cma', '#5bb0d8', ''), ('libfabric shm', '#4a8f3c', ''),
]


def latency_of(curve, size):
    """The measurements of which the best is the point."""
    if curve == 0:
        return ([ring('lat', size)] if size <= 2 * KIB else []) + \
            (copies('lat', size, 'vmw', 'vmr', 'bounce') if size > 64 else [])
    return [[verbs('lat', size)], [dat('lat', size)], [ucx(POSIX, 'tag_lat', size)], [ucx(SYSV, 'tag_lat', size)],
            [fi(size)]][curve - 1]


def bandwidth_of(curve, size):
    if curve == 0:
        return ([ring('rate', size)] if size <= 2 * KIB else []) + \
            (copies('bw', size, 'vmw', 'vmr', 'bounce') if size > 64 else [])
    return [[verbs('bw', size)], [dat('bw', size)], [ucx(POSIX, 'tag_bw', size)], [ucx(SYSV, 'tag_bw', size)],
            []][curve - 1]


def in_mb(measurement, size, figure):
    """Rates of messages as MB/s."""
    is_rate = measurement[:2] == ('limit-ring', 'rate') or (measurement[0] == 'ucx' and size <= 64)
    return figure * size if is_rate else figure


def points(bench, sizes, rounds, of, convert, best):
    """{curve: {size: figure}}; each round goes over everything, as those of the goals do."""
    found = {}
    for number in range(rounds):
        for size in sizes:
            for curve in range(len(CURVES)):
                for measurement in of(curve, size):
                    result = bench.measure('plot', number, measurement)
                    if result:
                        key = (curve, size, measurement)
                        found.setdefault(key, []).append(convert(measurement, size, result[1]))
    curves = {}
    for (curve, size, _), figures in found.items():
        figure = statistics.median(figures)
        at = curves.setdefault(curve, {})
        at[size] = best(at[size], figure) if size in at else figure
    return curves


def measure(bench, rounds, sizes):
    return (points(bench, sizes, rounds, latency_of, lambda m, s, f: f / 1e3, min),
            points(bench, sizes, rounds, bandwidth_of, in_mb, max))


class Panel:
    def __init__(self, title, unit, left, curves, sizes):
        self.left, self.title, self.unit, self.curves, self.sizes = left, title, unit, curves, sizes
        values = [v for c in curves.values() for v in c.values() if v > 0] or [1, 10]
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.high = max(self.high, self.low + 1)

    def x(self, size):
        span = math.log2(self.sizes[-1] / self.sizes[0]) or 1
        return self.left + PANEL_WIDTH * math.log2(size / self.sizes[0]) / span

    def y(self, value):
        return TOP + PANEL_HEIGHT * (self.high - math.log10(value)) / (self.high - self.low)

    def axes(self):
        right, bottom = self.left + PANEL_WIDTH, TOP + PANEL_HEIGHT
        out = ['<text x="%g" y="%g" class="title">%s</text>' % (self.left, TOP - 18, self.title)]
        for power in range(self.low, self.high + 1):
            y = self.y(10 ** power)
            out.append('<line x1="%g" y1="%g" x2="%g" y2="%g" class="grid"/>' % (self.left, y, right, y))
            out.append('<text x="%g" y="%g" class="y">%s</text>' % (self.left - 6, y + 4, '%g' % 10 ** power))
        for size in self.sizes:
            x = self.x(size)
            out.append('<line x1="%g" y1="%g" x2="%g" y2="%g" class="grid"/>' % (x, TOP, x, bottom))
            out.append('<text x="%g" y="%g" class="x">%s</text>' % (x, bottom + 18, size_name(size)))
        out.append('<text x="%g" y="%g" class="y">%s</text>' % (self.left - 6, TOP - 18, self.unit))
        return out

    def draw(self):
        out = self.axes()
        for curve, (_, colour, dash) in enumerate(CURVES):
            at = sorted((s, v) for s, v in self.curves.get(curve, {}).items() if v > 0)
            path = ' '.join('%.1f,%.1f' % (self.x(s), self.y(v)) for s, v in at)
            if not at:
                continue
            out.append('<polyline points="%s" stroke="%s" stroke-dasharray="%s"/>' % (path, colour, dash))
            out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %.4g %s</title></circle>' %
                    (self.x(s), self.y(v), colour, size_name(s), v, self.unit) for s, v in at]
        return out


def draw(path, latency, bandwidth, sizes, remark):
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' %
           (WIDTH, HEIGHT),
           '<style>.grid{stroke:#ddd}.title{font-size:15px}.y{text-anchor:end}.x{text-anchor:middle}'
           'polyline{fill:none;stroke-width:2}</style>', '<rect width="100%" height="100%" fill="white"/>']
    out += Panel('Half round trip', 'us', LEFT, latency, sizes).draw()
    out += Panel('Bandwidth, one way', 'MB/s', LEFT + PANEL_WIDTH + 100, bandwidth, sizes).draw()
    for curve, (name, colour, dash) in enumerate(CURVES):
        x, y = LEFT + curve * 180, TOP + PANEL_HEIGHT + 60
        out.append('<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="3" stroke-dasharray="%s"/>' %
                   (x, y, x + 28, y, colour, dash))
        out.append('<text x="%d" y="%d">%s</text>' % (x + 36, y + 4, name))
    out.append('<text x="%d" y="%d" fill="#777">%s</text></svg>' % (LEFT, TOP + PANEL_HEIGHT + 95, remark))
    with open(path, 'w') as f:
        f.write('\n'.join(out) + '\n')
