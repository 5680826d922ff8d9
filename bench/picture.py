# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The speeds of the table as an SVG: a dot for each, its interval as a line, on a logarithmic scale."""
import math
from html import escape

WIDTH, LEFT, LINE, TOP = 900, 330, 15, 30
LOW, HIGH = -4, 5                           # powers of two
COLOURS = {'V': '#c0392b', 'D': '#2e6da4'}


def x(speed):
    power = min(max(math.log2(speed), LOW), HIGH)
    return LEFT + (WIDTH - LEFT - 20) * (power - LOW) / (HIGH - LOW)


def draw(results):
    lines = {}
    for result in results:
        for of in result['speeds']:
            if of['speed']:
                lines.setdefault('%s / %s' % (result['row'], of['beside']), []).append(of)
    bottom = TOP + LINE * len(lines)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">'
           '<rect width="100%%" height="100%%" fill="white"/>' % (WIDTH, bottom + 20)]
    for power in range(LOW, HIGH + 1):
        out.append('<path d="M%.1f %d V%d" stroke="%s"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>' % (
            x(2.0 ** power), TOP - 8, bottom, '#ddd' if power else '#555', x(2.0 ** power), TOP - 14, 2.0 ** power))
    for number, (name, speeds) in enumerate(lines.items()):
        out.append('<text x="5" y="%d">%s</text>' % (TOP + LINE * number + 4, escape(name)))
        for of in speeds:
            y, colour = TOP + LINE * number + (3 if of['of'] == 'D' else -3), COLOURS.get(of['of'], '#777')
            if of['low']:
                out.append('<path d="M%.1f %d H%.1f" stroke-width="2" stroke="%s"/>' % (x(of['low']), y, x(of['high']), colour))
            out.append('<circle cx="%.1f" cy="%d" r="3" fill="%s"><title>%s %.2f</title></circle>' % (
                x(of['speed']), y, colour, of['of'], of['speed']))
    for number, product in enumerate(sorted({of['of'] for speeds in lines.values() for of in speeds})):
        out.append('<text x="%d" y="%d" fill="%s">%s</text>' % (
            5 + 40 * number, bottom + 14, COLOURS.get(product, '#777'), product))
    out.append('<text x="%d" y="%d">times as fast as the program after the slash</text></svg>\n' % (LEFT, bottom + 14))
    return '\n'.join(out)
