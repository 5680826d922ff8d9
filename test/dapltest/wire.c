/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Messages as bytes. All numbers are written little-endian on any machine; a peer that writes
 * big-endian says so in its first message.
 */

#include <stdio.h>
#include <string.h>

#include "wire.h"

enum { VERSION = 6 };

static void put32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

static void put64(unsigned char *at, uint64_t value)
{
	put32(at, (uint32_t)value);
	put32(at + 4, (uint32_t)(value >> 32));
}

static uint32_t get32(const unsigned char *at, bool little)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++)
		value |= (uint32_t)at[i] << 8 * (little ? i : 3 - i);
	return value;
}

static uint64_t get64(const unsigned char *at, bool little)
{
	uint64_t first = get32(at, little), second = get32(at + 4, little);

	return little ? first | second << 32 : first << 32 | second;
}

static void put_name(unsigned char *at, const char *name)
{
	memset(at, 0, NAME_SIZE);
	memcpy(at, name, strnlen(name, NAME_SIZE - 1));
}

/* Byte 4 of the message is not 0 if the peer is little-endian. */
static bool version_check(const unsigned char *msg, const char *side, bool *little)
{
	uint32_t version;

	*little = msg[4] != 0;
	version = get32(msg, *little);
	if (version == VERSION)
		return true;
	complain("Error: the %s speaks version %u of the protocol, not %d", side,
		 (unsigned int)version, VERSION);
	return false;
}

void wire_put_client_info(unsigned char *msg, const struct client_info *info)
{
	put32(msg, VERSION);
	put32(msg + 4, 1);
	put32(msg + 8, (uint32_t)info->type);
	put32(msg + 12, info->eps);
}

bool wire_get_client_info(const unsigned char *msg, struct client_info *info)
{
	if (!version_check(msg, "client", &info->little_endian))
		return false;
	info->type = (enum test_type)get32(msg + 8, info->little_endian);
	info->eps = get32(msg + 12, info->little_endian);
	return true;
}

void wire_put_server_info(unsigned char *msg, uint32_t port)
{
	put32(msg, VERSION);
	put32(msg + 4, 1);
	put32(msg + 8, port);
}

bool wire_get_server_info(const unsigned char *msg, struct server_info *info)
{
	if (!version_check(msg, "server", &info->little_endian))
		return false;
	info->port = get32(msg + 8, info->little_endian);
	return true;
}

void wire_put_transaction(unsigned char *msg, const struct options *opt)
{
	const struct transaction *t = &opt->transaction;
	unsigned char *at = msg + 568;

	put32(msg, VERSION);
	put32(msg + 4, 1);
	put_name(msg + 8, opt->server);
	put32(msg + 264, t->iterations);
	put32(msg + 268, t->threads);
	put32(msg + 272, t->eps);
	put32(msg + 280, t->reserved);
	put32(msg + 284, opt->debug > 0);
	put32(msg + 288, t->validate);
	put32(msg + 292, t->poll);
	put64(msg + 296, opt->port);
	put_name(msg + 304, opt->device);
	put32(msg + 560, (uint32_t)opt->qos);
	put32(msg + 564, t->op_count);
	for (uint32_t i = 0; i < t->op_count; i++, at += 20) {
		put32(at, t->ops[i].by_server);
		put32(at + 4, (uint32_t)t->ops[i].transfer);
		put32(at + 8, t->ops[i].segments);
		put32(at + 12, t->ops[i].size);
		put32(at + 16, t->ops[i].reap_late);
	}
}

static bool op_is_sound(const struct op *op)
{
	return (unsigned int)op->transfer <= TRANSFER_SEND && op->segments > 0 &&
	       op->segments <= SEGMENTS_MAX && (uint64_t)op->size * op->segments <= BYTES_MAX;
}

static bool transaction_is_sound(const struct transaction *t)
{
	if (t->iterations == 0 || t->threads == 0 || t->eps == 0 ||
	    (uint64_t)t->threads * t->eps > EPS_MAX || t->op_count == 0 || t->op_count > OPS_MAX ||
	    (t->validate && t->op_count < 3))
		return false;
	for (uint32_t i = 0; i < t->op_count; i++)
		if (!op_is_sound(&t->ops[i]))
			return false;
	return true;
}

bool wire_get_transaction(const unsigned char *msg, bool little, struct transaction *t)
{
	const unsigned char *at = msg + 568;

	memset(t, 0, sizeof(*t));
	t->iterations = get32(msg + 264, little);
	t->threads = get32(msg + 268, little);
	t->eps = get32(msg + 272, little);
	t->reserved = get32(msg + 280, little) != 0;
	t->validate = get32(msg + 288, little) != 0;
	t->poll = get32(msg + 292, little) != 0;
	t->op_count = get32(msg + 564, little);
	for (uint32_t i = 0; i < t->op_count && i < OPS_MAX; i++, at += 20) {
		t->ops[i].by_server = get32(at, little) != 0;
		t->ops[i].transfer = (enum transfer)get32(at + 4, little);
		t->ops[i].segments = get32(at + 8, little);
		t->ops[i].size = get32(at + 12, little);
		t->ops[i].reap_late = get32(at + 16, little) != 0;
	}
	if (transaction_is_sound(t))
		return true;
	complain("Error: the client asks for an invalid transaction test");
	return false;
}

void wire_put_performance(unsigned char *msg, const struct options *opt)
{
	const struct performance *p = &opt->performance;

	put32(msg, VERSION);
	put32(msg + 4, 1);
	put_name(msg + 8, opt->server);
	put_name(msg + 264, opt->device);
	put32(msg + 520, (uint32_t)opt->qos);
	put32(msg + 524, opt->debug > 0);
	put32(msg + 528, p->poll);
	put32(msg + 532, p->iterations);
	put32(msg + 536, p->pipeline);
	put32(msg + 540, (uint32_t)p->op.transfer);
	put32(msg + 544, p->op.size);
	put32(msg + 548, p->op.segments);
	put64(msg + 556, opt->port);
}

bool wire_get_performance(const unsigned char *msg, bool little, struct performance *p)
{
	memset(p, 0, sizeof(*p));
	p->poll = get32(msg + 528, little) != 0;
	p->iterations = get32(msg + 532, little);
	p->pipeline = get32(msg + 536, little);
	p->op.transfer = (enum transfer)get32(msg + 540, little);
	p->op.size = get32(msg + 544, little);
	p->op.segments = get32(msg + 548, little);
	if (p->iterations > 0 && op_is_sound(&p->op) && p->op.transfer != TRANSFER_SEND)
		return true;
	complain("Error: the client asks for an invalid performance test");
	return false;
}

void wire_put_quit(unsigned char *msg, const struct options *opt)
{
	put_name(msg, opt->server);
	put_name(msg + NAME_SIZE, opt->device);
	put32(msg + 512, opt->debug > 0);
	put32(msg + 516, (uint32_t)opt->qos);
	put64(msg + 520, opt->port);
}

void wire_put_buffer(unsigned char *entry, DAT_RMR_CONTEXT context, DAT_VADDR address)
{
	put32(entry, context);
	put64(entry + 4, address);
}

void wire_get_buffer(const unsigned char *entry, bool little, DAT_RMR_TRIPLET *where)
{
	where->rmr_context = get32(entry, little);
	where->virtual_address = get64(entry + 4, little);
}
