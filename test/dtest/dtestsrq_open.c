/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects of dtestsrq: made in order, with all receives posted, and freed again. */

#include <stdlib.h>
#include <string.h>

#include "dtestsrq.h"

/* The MTU is the most that a datagram can carry, and the default length of a message. */
static bool length_settle(struct srq_test *t)
{
	const char *text = named_find(t->a.named, t->a.named_count, "DAT_IB_TRANSPORT_MTU");
	long mtu = text ? strtol(text, NULL, 10) : 0;

	if (mtu <= 0 && (t->opt.ud || !t->opt.length)) {
		complain("Error: %s does not tell its DAT_IB_TRANSPORT_MTU; %s", t->a.provider,
			 t->opt.ud ? "datagrams need it" : "-b would do without");
		return false;
	}
	if (!t->opt.length)
		t->opt.length = (uint32_t)mtu;
	if (t->opt.ud && t->opt.length > (uint32_t)mtu) {
		complain("Error: a datagram has at most %ld bytes, not %u", mtu, t->opt.length);
		return false;
	}
	t->recv_size = t->opt.length + (t->opt.ud ? GRH_SIZE : 0);
	adapter_tell(&t->a, "message length %u, receive length %u", t->opt.length, t->recv_size);
	return true;
}

static bool events_create(struct srq_test *t)
{
	int n = t->opt.connections, slots = srq_slots(t);

	return evd_create(&t->a, n, DAT_EVD_CR_FLAG, &t->cr_evd) &&
	       evd_create(&t->a, 2 * n, DAT_EVD_CONNECTION_FLAG, &t->conn_evd) &&
	       evd_create(&t->a, slots, DAT_EVD_DTO_FLAG, &t->request_evd) &&
	       evd_create(&t->a, slots, DAT_EVD_DTO_FLAG, &t->recv_evd);
}

static bool srq_make(struct srq_test *t)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = srq_slots(t),
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_SRQ_HANDLE srq;

	if (!dat_ok(dat_srq_create(t->a.ia, t->a.pz, &attr, &srq), "dat_srq_create"))
		return false;
	t->srq = srq;
	adapter_tell(&t->a, "SRQ for %d receives", attr.max_recv_dtos);
	return true;
}

static bool ep_make(struct srq_test *t, int depth, DAT_EP_HANDLE *made)
{
	uint64_t start = clock_ns();
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	memset(&attr, 0, sizeof(attr));
	attr.service_type = DAT_SERVICE_TYPE_RC;
	if (t->opt.ud) {
		attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
		attr.max_message_size = t->opt.length;
	}
	attr.max_recv_dtos = depth;
	attr.max_request_dtos = depth;
	attr.max_recv_iov = 1;
	attr.max_request_iov = 1;
	if (t->opt.srq)
		ret = dat_ep_create_with_srq(t->a.ia, t->a.pz, t->recv_evd, t->request_evd,
					     t->conn_evd, t->srq, &attr, &ep);
	else
		ret = dat_ep_create(t->a.ia, t->a.pz, t->recv_evd, t->request_evd, t->conn_evd,
				    &attr, &ep);
	if (!adapter_did(&t->a, CALL_EP_CREATE, start, ret,
			 t->opt.srq ? "dat_ep_create_with_srq" : "dat_ep_create"))
		return false;
	*made = ep;
	return true;
}

static bool eps_create(struct srq_test *t)
{
	bool one = t->opt.ud && !srq_is_server(t);
	int count = one ? 1 : t->opt.connections;

	for (int i = 0; i < count; i++) {
		if (!ep_make(t, one ? srq_slots(t) : t->opt.burst, &t->eps[i]))
			return false;
		t->ep_count = i + 1;
	}
	return true;
}

/* The cookie is the number of the buffer. */
bool recv_post(struct srq_test *t, DAT_EP_HANDLE ep, int slot)
{
	DAT_LMR_TRIPLET iov = memory_part(&t->recv, (size_t)slot * t->recv_size, t->recv_size);
	DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)slot };

	if (t->opt.srq)
		return dat_ok(dat_srq_post_recv(t->srq, 1, &iov, cookie), "dat_srq_post_recv");
	return dat_ok(dat_ep_post_recv(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG),
		      "dat_ep_post_recv");
}

static bool recv_post_all(struct srq_test *t)
{
	for (int slot = 0; slot < srq_slots(t); slot++)
		if (!recv_post(t, srq_ep(t, slot / t->opt.burst), slot))
			return false;
	return true;
}

bool srq_open(struct srq_test *t)
{
	size_t slots = (size_t)srq_slots(t);

	if (!adapter_open(&t->a, (uint64_t)t->opt.qual))
		return false;
	if (t->opt.ud && !adapter_has(&t->a, DAT_IB_ATTR_UD)) {
		complain("Error: %s has no datagrams: its attribute %s is not TRUE", t->a.provider,
			 DAT_IB_ATTR_UD);
		return false;
	}
	return length_settle(t) && events_create(t) && (!t->opt.srq || srq_make(t)) &&
	       memory_create(&t->a, &t->recv, slots * t->recv_size, DAT_MEM_PRIV_ALL_FLAG) &&
	       memory_create(&t->a, &t->send, slots * t->opt.length, DAT_MEM_PRIV_ALL_FLAG) &&
	       eps_create(t) && recv_post_all(t);
}

/* As a part of the test, memory is freed before the queue that still holds receives into it. */
void srq_close(struct srq_test *t)
{
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	psp_free(&t->a, &t->psp);
	for (int i = 0; i < t->ep_count; i++)
		ep_free(&t->a, &t->eps[i]);
	async_check(&t->a);
	memory_free(&t->a, &t->send);
	memory_free(&t->a, &t->recv);
	if (t->srq)
		adapter_freed(&t->a, dat_srq_free(t->srq), "dat_srq_free");
	evd_free(&t->a, &t->cr_evd);
	evd_free(&t->a, &t->conn_evd);
	evd_free(&t->a, &t->recv_evd);
	evd_free(&t->a, &t->request_evd);
	adapter_close(&t->a);
}
