/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The words that describe transfers, such as "client SR 4096 2 -f". */

#include <string.h>

#include "dapltest.h"

static bool is_initiator(const char *word)
{
	return !strcmp(word, "client") || !strcmp(word, "server");
}

static bool transfer_find(const char *word, enum transfer *transfer)
{
	static const char *const names[] = { "RR", "RW", "SR" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(word, names[i]) == 0) {
			*transfer = (enum transfer)i;
			return true;
		}
	}
	return false;
}

/* The words after the side: RW 4096 1 */
bool op_parse(int count, char **words, struct op *op)
{
	uint64_t size = 4096, segments = 1;

	if (count < 1 || !transfer_find(words[0], &op->transfer)) {
		complain("OP type must be <RR/RW/SR>");
		return false;
	}
	if (count > 3) {
		complain("OP too many args");
		return false;
	}
	if ((count > 1 && !option_number(words[1], BYTES_MAX, &size)) ||
	    (count > 2 && (!option_number(words[2], SEGMENTS_MAX, &segments) || segments == 0)) ||
	    size * segments > BYTES_MAX) {
		complain("OP: bad segment size or number of segments");
		return false;
	}
	op->size = (uint32_t)size;
	op->segments = (uint32_t)segments;
	return true;
}

static bool transaction_op_parse(int count, char **words, struct op *op)
{
	op->by_server = strcmp(words[0], "server") == 0;
	op->reap_late = count > 1 && strcmp(words[count - 1], "-f") == 0;
	if (!op_parse(count - 1 - op->reap_late, words + 1, op))
		return false;
	if (op->reap_late && op->transfer != TRANSFER_SEND) {
		complain("OP: -f only valid on SEND_RECV");
		return false;
	}
	return true;
}

/* Each -f of the client is balanced by the next one of the server. */
static bool late_reaps_pair(const struct transaction *t)
{
	bool open = false;

	for (uint32_t i = 0; i < t->op_count; i++) {
		if (!t->ops[i].reap_late)
			continue;
		if (t->ops[i].by_server != open)
			return false;
		open = !open;
	}
	return !open;
}

static bool has_send(const struct transaction *t, bool by_server)
{
	for (uint32_t i = 0; i < t->op_count; i++)
		if (t->ops[i].transfer == TRANSFER_SEND && t->ops[i].by_server == by_server)
			return true;
	return false;
}

/*
 * Three messages end an iteration that is validated: the server's when it has finished its part,
 * the client's when it has compared and made new contents, and the server's when it has done the
 * same.
 */
static bool validation_append(struct transaction *t)
{
	static const struct op message = { .transfer = TRANSFER_SEND, .size = 4096, .segments = 1 };

	if (t->op_count + 3 > OPS_MAX) {
		complain("OP: -V needs three more OPs, and there can be %d", OPS_MAX);
		return false;
	}
	for (int i = 0; i < 3; i++) {
		struct op *op = &t->ops[t->op_count++];

		*op = message;
		op->by_server = i != 1;
		say("NOTE: Adding OP \"%s SR\" - for validation",
		    op->by_server ? "server" : "client");
	}
	return true;
}

bool transaction_ops_parse(int count, char **words, struct transaction *t)
{
	for (int at = 0, end; at < count; at = end) {
		if (!is_initiator(words[at])) {
			complain("OP first arg must be <server/client>");
			return false;
		}
		for (end = at + 1; end < count && !is_initiator(words[end]); end++)
			;
		if (t->op_count == OPS_MAX) {
			complain("OP: more than %d", OPS_MAX);
			return false;
		}
		if (!transaction_op_parse(end - at, words + at, &t->ops[t->op_count++]))
			return false;
	}
	if (!late_reaps_pair(t)) {
		complain("OP: Unbalanced -f options");
		return false;
	}
	if (t->validate && !validation_append(t))
		return false;
	if (!has_send(t, false) || !has_send(t, true)) {
		complain("Error: Transaction test requires\n"
			 "Error: At least one server SR and one client SR Operation");
		return false;
	}
	return true;
}

bool performance_op_parse(int count, char **words, struct performance *p)
{
	if (count == 0)
		return true;
	if (!op_parse(count, words, &p->op))
		return false;
	if (p->op.transfer == TRANSFER_SEND) {
		complain("OP: only RR and RW can be timed");
		return false;
	}
	return true;
}
