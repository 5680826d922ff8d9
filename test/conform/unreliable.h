/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What unreliable connections and datagrams have in common; the options say which of them. */
#ifndef CONFORM_UNRELIABLE_H
#define CONFORM_UNRELIABLE_H

#include "test/conform/conform.h"

/* Bytes before the payload in a receive buffer. */
static inline uint32_t header_of(const struct pair_options *options)
{
	return options->type == IBV_QPT_UD ? GRH_SIZE : 0;
}

/*
 * There is no RNR: a message without a receive is lost, and the next receive gets the next message.
 */
void unreliable_no_receive_loses(const struct pair_options *options);
/* IBTA: only the send queue fails, and it can be recovered. */
void unreliable_local_error(const struct pair_options *options);

#endif
