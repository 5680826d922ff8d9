/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* With -V: contents that change with each iteration, and are compared at its end. */

#include <string.h>

#include "transaction.h"

/* The last three OPs keep the two sides in step, and carry no data. */
static uint32_t data_ops(const struct transaction *t)
{
	return t->op_count - 3;
}

static unsigned char content(uint32_t iteration)
{
	return (unsigned char)(iteration + 1);
}

void trans_fill(struct trans_thread *th, uint32_t iteration)
{
	const struct transaction *t = th->test->t;

	for (uint32_t e = 0; e < t->eps; e++)
		for (uint32_t i = 0; i < data_ops(t); i++)
			if (op_is_source(th, &t->ops[i]))
				memset(th->eps[e].buffers[i].region.base, content(iteration),
				       op_bytes(&t->ops[i]));
}

static bool buffer_check(const struct region *r, uint32_t bytes, unsigned char want)
{
	/* All bytes are equal if the first is right and each equals the one before. */
	if (bytes == 0 || (r->base[0] == want && !memcmp(r->base, r->base + 1, bytes - 1)))
		return true;
	for (uint32_t at = 0; at < bytes; at++) {
		if (r->base[at] != want) {
			complain("Error: VALIDATION FAILED: byte %u of %u is 0x%02x, not 0x%02x",
				 (unsigned int)at, (unsigned int)bytes, r->base[at], want);
			break;
		}
	}
	return false;
}

static bool check(struct trans_thread *th, uint32_t iteration)
{
	const struct transaction *t = th->test->t;
	bool ok = true;

	for (uint32_t e = 0; e < t->eps; e++) {
		for (uint32_t i = 0; i < data_ops(t); i++) {
			if (op_is_source(th, &t->ops[i]) ||
			    buffer_check(&th->eps[e].buffers[i].region, op_bytes(&t->ops[i]),
					 content(iteration)))
				continue;
			complain("Error: ... in OP %u of endpoint %u, iteration %u",
				 (unsigned int)i, (unsigned int)e, (unsigned int)iteration);
			ok = false;
		}
	}
	return ok;
}

/*
 * The client compares when the server's first closing message says that the server has done its
 * part, the server when the client's message says the same. Each side makes new contents before it
 * answers, because the peer may read them as soon as it has the answer.
 */
bool trans_check_iteration(struct trans_thread *th, uint32_t op, uint32_t iteration)
{
	const struct transaction *t = th->test->t;

	if (!t->validate || op != data_ops(t) + th->test->place->server)
		return true;
	if (!check(th, iteration))
		return false;
	trans_fill(th, iteration + 1);
	return true;
}
