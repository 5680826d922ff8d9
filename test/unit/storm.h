/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Duration and seed of randomised tests, which LONG_SECONDS and SEED in the environment set. */
#ifndef STORM_H
#define STORM_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STORM_SECONDS 2u

static inline unsigned storm_number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static inline unsigned storm_seconds(void)
{
	return storm_number("LONG_SECONDS", STORM_SECONDS);
}

/* `few` rounds, or so many that they take minutes. */
static inline unsigned storm_rounds(unsigned few)
{
	return storm_number("LONG_SECONDS", 0) ? 10000 : few;
}

/* Prints the seed, so that the run can be repeated. */
static inline unsigned storm_seed(const char *what)
{
	unsigned seed = storm_number("SEED", (unsigned)time(NULL) ^ (unsigned)getpid() << 16);

	printf("%s: SEED=%u\n", what, seed);
	fflush(stdout);
	return seed;
}

static inline unsigned storm_next(unsigned *seed)
{
	return (unsigned)rand_r(seed);
}

#endif
