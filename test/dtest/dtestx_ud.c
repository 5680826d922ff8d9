/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams: both sides resolve each other, then send one message over each connection. */

#include <endian.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "dtestx.h"

enum { RETRIES = 20, RETRY_MS = 100 };

/* The progress of the resolutions in both directions. */
struct progress {
	int requests, active, passive, refusals;
};

/* From this edition of the extension on, the consumer frees the objects of a resolution. */
static bool frees(const struct x_test *t)
{
	return t->a.attr.extension_version >= UD_FREE_SINCE;
}

static bool ah_free(struct x_test *t, DAT_EP_HANDLE ep, DAT_IB_ADDR_HANDLE *ah)
{
	return !frees(t) || dat_ok(dat_ib_ud_ah_free(ep, ah), "dat_ib_ud_ah_free");
}

/* Handles of the passive kind, and all but the first of an endpoint, are not used. */
static bool established_take(struct x_test *t, const DAT_EVENT *event, struct progress *p)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	const DAT_IB_EXTENSION_EVENT_DATA *ext = x_extension(event);
	DAT_IB_ADDR_HANDLE ah = ext->remote_ah;
	int index;

	if (!established_check(event, true) ||
	    !index_read(conn->private_data, conn->private_data_size, t->ep_count, &index))
		return false;
	if (ext->type != DAT_IB_UD_REMOTE_AH && ext->type != DAT_IB_UD_PASSIVE_REMOTE_AH) {
		complain("Error: established event of type %d", (int)ext->type);
		return false;
	}
	if (frees(t) &&
	    !dat_ok(dat_ib_ud_cm_free(conn->ep_handle, ext->context), "dat_ib_ud_cm_free"))
		return false;
	adapter_tell(&t->a, "%s EP[%d] resolved, qpn 0x%x",
		     ext->type == DAT_IB_UD_REMOTE_AH ? "active" : "passive", index,
		     (unsigned int)ah.qpn);
	if (ext->type == DAT_IB_UD_PASSIVE_REMOTE_AH)
		p->passive++;
	else
		p->active++;
	if (ext->type == DAT_IB_UD_PASSIVE_REMOTE_AH || t->has_ah[index])
		return ah_free(t, conn->ep_handle, &ah);
	t->ahs[index] = ah;
	t->has_ah[index] = true;
	return true;
}

/* The sender of a request listens as well, so the server requests a connection in return. */
static bool request_keep(struct x_test *t, const DAT_EVENT *event)
{
	DAT_CONN_QUAL qual = x_is_server(t) ? X_SERVER_QUAL : X_CLIENT_QUAL;
	int index;

	if (!request_check(event, true, qual, t->psp) ||
	    !x_request_accept(t, event->event_data.cr_arrival_event_data.cr_handle, &index))
		return false;
	return !x_is_server(t) || x_connect_one(t, index, X_CLIENT_QUAL);
}

/*
 * A server of another make sends its address before it listens, so a refusal just after the side
 * channel may only mean that it is not ready. So the client requests the first connection alone
 * until it is made, then all others.
 */
static bool answer_read(struct x_test *t, const DAT_EVENT *event, struct progress *p)
{
	bool refused = (int)event->event_number == (int)DAT_IB_UD_CONNECTION_REJECT_EVENT;
	int before = p->active;

	if (refused && !x_is_server(t) && !before && p->refusals++ < RETRIES) {
		clock_pause_ms(RETRY_MS);
		return x_connect_one(t, 0, X_SERVER_QUAL);
	}
	if (!established_take(t, event, p))
		return false;
	if (x_is_server(t) || before || !p->active)
		return true;
	for (int i = 1; i < t->opt.eps; i++)
		if (!x_connect_one(t, i, X_SERVER_QUAL))
			return false;
	return true;
}

static bool resolve_step(struct x_test *t, struct progress *p)
{
	DAT_EVENT event;
	bool found;

	if (!event_look(t->cr_evd, &event, &found))
		return false;
	if (found) {
		p->requests++;
		if (!request_keep(t, &event))
			return false;
	}
	if (!event_look(t->conn_evd, &event, &found))
		return false;
	return !found || answer_read(t, &event, p);
}

static bool resolve_all(struct x_test *t, struct progress p)
{
	double seconds = adapter_limit(&t->a, PART_SECONDS);
	uint64_t deadline = clock_after(seconds);
	int n = t->opt.eps;

	watchdog_set(seconds);
	while (p.requests < n || p.active < n || p.passive < n) {
		if (!resolve_step(t, &p))
			return false;
		if (clock_passed(deadline)) {
			complain("Error: after %g seconds %d requests, %d active and %d passive "
				 "connections of %d",
				 seconds, p.requests, p.active, p.passive, n);
			return false;
		}
		sched_yield();
	}
	for (int i = 0; i < t->ep_count; i++) {
		if (t->has_ah[i])
			continue;
		complain("Error: no address of the peer's EP[%d]", i);
		return false;
	}
	return true;
}

static bool server_connect(struct x_test *t)
{
	struct progress p = { .requests = 1 };
	DAT_EVENT event;

	if (!x_listen(t))
		return false;
	if (!t->peer_addr.ss_family && t->opt.host &&
	    !address_resolve(t->opt.host, t->a.addr.ss_family, &t->peer_addr))
		return false;
	return x_request_await(t, &event) && request_keep(t, &event) && resolve_all(t, p);
}

static bool client_connect(struct x_test *t)
{
	struct progress p = { .requests = 0 };

	return x_listen(t) && x_meet_server(t) && x_connect_one(t, 0, X_SERVER_QUAL) &&
	       resolve_all(t, p);
}

bool x_ud_connect(struct x_test *t)
{
	if (x_is_server(t) ? !server_connect(t) : !client_connect(t))
		return false;
	note("Connected! %d endpoints", t->opt.eps);
	return true;
}

static bool datagrams_send(struct x_test *t)
{
	for (int i = 0; i < t->opt.eps; i++) {
		DAT_LMR_TRIPLET iov =
			memory_part(x_buffer(t, i, BUF_MESSAGE), 0, sizeof(struct description));
		DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_SEND };
		DAT_RETURN ret;

		x_describe(t, i);
		ret = dat_ib_post_send_ud(x_ep(t, i), 1, &iov, &t->ahs[x_index(t, i)], cookie,
					  DAT_COMPLETION_DEFAULT_FLAG);
		if (!dat_ok(ret, "dat_ib_post_send_ud"))
			return false;
	}
	return true;
}

/* The buffer of a cookie: with -m each endpoint has numbers of its own. */
static int buffer_of(const struct x_test *t, DAT_EP_HANDLE ep, uint64_t cookie)
{
	int index = 0;

	while (index < t->ep_count && t->eps[index] != ep)
		index++;
	if (index == t->ep_count ||
	    cookie >= (uint64_t)(t->opt.many ? BUF_COUNT : t->opt.eps * BUF_COUNT) ||
	    cookie % BUF_COUNT < BUF_FIRST_RECV) {
		complain("Error: datagram with cookie %llx at endpoint %p",
			 (unsigned long long)cookie, (void *)ep);
		return -1;
	}
	return t->opt.many ? index * BUF_COUNT + (int)cookie : (int)cookie;
}

static bool datagram_check(struct x_test *t, const DAT_EVENT *event, bool *seen)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	int buffer = buffer_of(t, dto->ep_handle, dto->user_cookie.as_64);
	struct description theirs;

	if (buffer < 0 || !x_completion_check(event, DAT_IB_UD_RECV, sizeof(theirs) + GRH_SIZE,
					      dto->user_cookie.as_64))
		return false;
	if (seen[buffer]) {
		complain("Error: buffer %d was filled twice", buffer);
		return false;
	}
	seen[buffer] = true;
	memcpy(&theirs, t->buffers[buffer].base + GRH_SIZE, sizeof(theirs));
	if (be32toh(theirs.length) == t->opt.length)
		return true;
	complain("Error: datagram about %u bytes, expected %u", be32toh(theirs.length),
		 t->opt.length);
	return false;
}

static bool datagrams_await(struct x_test *t, bool *seen)
{
	int sent = 0, arrived = 0;
	DAT_EVENT event;

	while (sent < t->opt.eps || arrived < t->opt.eps) {
		bool own;

		if (!x_transfer_await(t, "datagram", &event))
			return false;
		own = event.event_data.dto_completion_event_data.user_cookie.as_64 == COOKIE_SEND;
		if (own ? !x_completion_check(&event, DAT_IB_UD_SEND, sizeof(struct description),
					      COOKIE_SEND)
			: !datagram_check(t, &event, seen))
			return false;
		sent += own;
		arrived += !own;
	}
	return true;
}

bool x_ud_exchange(struct x_test *t)
{
	bool *seen = calloc((size_t)(t->opt.eps * BUF_COUNT), sizeof(*seen));
	bool passed;

	if (!seen) {
		complain("Error: no memory for %d endpoints", t->opt.eps);
		return false;
	}
	passed = datagrams_send(t) && datagrams_await(t, seen);
	free(seen);
	return passed && x_counters(t, t->a.ia, "IA", DCNT_IA_ALL_COUNTERS);
}

/* Address handles are freed before their endpoint. */
void x_ud_close(struct x_test *t)
{
	for (int i = 0; i < t->ep_count; i++)
		if (t->has_ah[i] && !ah_free(t, x_ep(t, i), &t->ahs[i]))
			t->a.failed = true;
}
