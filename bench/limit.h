/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include "bench/measure.h"

/* Connections of SEQPACKET sockets, a second. */
void limit_conn(void);

#endif
