# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Figures of rounds: a list has one for each round, None where the program had none."""
import random
from statistics import median

DRAWS = 1000
ENOUGH = 6          # fewer values give no 95 % interval of the median: 2 / 2^5 is more than 5 %


def speeds(product, beside, less_is_better):
    """How many times as fast as the program beside it, in each round in which both have a figure."""
    pairs = [(ours, its) for ours, its in zip(product, beside) if ours and its]
    return [its / ours if less_is_better else ours / its for ours, its in pairs]


def middle(figures):
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None


def interval(values):
    """Of the median, 95 %, by the bootstrap: drawn again and again with replacement; always the same draws."""
    if len(values) < ENOUGH:
        return None, None
    draw = random.Random(1)
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return medians[DRAWS * 25 // 1000], medians[DRAWS * 975 // 1000 - 1]


def fastest(alternatives, less_is_better):
    """
    The list with the best median over all rounds: the better of two figures of one round would be the luckier one.
    """
    known = [figures for figures in alternatives if middle(figures) is not None]
    return (min if less_is_better else max)(known, key=middle) if known else alternatives[0]
