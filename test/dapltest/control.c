/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The control connection: messages of one size, each with its place in memory. */

#include <string.h>

#include "control.h"

bool control_create(struct control *c, DAT_IA_HANDLE ia, int events, bool passive)
{
	struct link_shape shape = {
		.recv_events = events,
		.request_events = events,
		.other_events = events,
		.passive = passive,
	};
	DAT_EP_PARAM param;

	memset(c, 0, sizeof(*c));
	if (!dat_ok(dat_pz_create(ia, &c->pz), "dat_pz_create") ||
	    !link_create(&c->link, ia, c->pz, &shape) ||
	    !dat_ok(dat_ep_query(c->link.ep, DAT_EP_FIELD_ALL, &param), "dat_ep_query"))
		return false;
	c->attr = param.ep_attr;
	return region_create(&c->memory, ia, c->pz, (CONTROL_RECVS + 1) * MESSAGE_SIZE);
}

bool control_free(struct control *c)
{
	bool ok = region_free(&c->memory);

	ok &= link_free(&c->link);
	ok &= !c->pz || dat_ok(dat_pz_free(c->pz), "dat_pz_free");
	c->pz = DAT_HANDLE_NULL;
	return ok;
}

/* Posts receives, unless those of a failed attempt to connect are still posted. */
bool control_arm(struct control *c, int recvs)
{
	for (int i = 0; i < recvs && !c->armed; i++) {
		size_t offset = (size_t)i * MESSAGE_SIZE;
		DAT_LMR_TRIPLET iov = region_part(&c->memory, offset, MESSAGE_SIZE);

		if (!link_recv(&c->link, 1, &iov, (uint64_t)i))
			return false;
	}
	c->armed = true;
	return true;
}

unsigned char *control_message(struct control *c)
{
	unsigned char *msg = c->memory.base + CONTROL_RECVS * MESSAGE_SIZE;

	memset(msg, 0, MESSAGE_SIZE);
	return msg;
}

bool control_send(struct control *c, const char *what)
{
	DAT_LMR_TRIPLET iov = region_part(&c->memory, CONTROL_RECVS * MESSAGE_SIZE, MESSAGE_SIZE);

	return link_send(&c->link, 1, &iov, CONTROL_RECVS) &&
	       link_sent(&c->link, MESSAGE_SIZE, CONTROL_RECVS, what);
}

/* Returns NULL if no message came. */
const unsigned char *control_receive(struct control *c, bool patiently, const char *what)
{
	int slot = c->next++;
	struct dto want = {
		.ep = c->link.ep,
		.cookie = (uint64_t)slot,
		.length = MESSAGE_SIZE,
		.what = what,
	};
	bool ok = patiently ? dto_await_patiently(c->link.recv_evd, &want)
			    : dto_await(c->link.recv_evd, false, &want);

	return ok ? c->memory.base + (size_t)slot * MESSAGE_SIZE : NULL;
}

/* Resets the EP, so that it can be connected again. */
bool control_reset(struct control *c)
{
	DAT_EP_STATE state;
	int flushed;

	c->next = 0;
	if (!dat_ok(dat_ep_get_status(c->link.ep, &state, NULL, NULL), "dat_ep_get_status"))
		return false;
	if (state == DAT_EP_STATE_UNCONNECTED)
		return true;
	c->armed = false;
	return dat_ok(dat_ep_reset(c->link.ep), "dat_ep_reset") &&
	       evd_drain(c->link.recv_evd, &flushed);
}
