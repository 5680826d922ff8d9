/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects of a run: created in order, freed in reverse, each call timed and checked. */

#include <stdlib.h>
#include <string.h>

#include "dtest.h"

static bool did(struct session *s, enum timing which, uint64_t start, DAT_RETURN ret,
		const char *call)
{
	double us = clock_us_since(start);

	s->m.api_us[which] += us;
	if (!dat_ok(ret, call))
		return false;
	if (s->opt->verbose)
		say("%s took %.2f us", call, us);
	return true;
}

/* Without a limit of its own, a wait may take as long as the data would at 4 MB/s. */
double session_limit(const struct session *s, double bytes)
{
	return s->opt->limit > 0 ? s->opt->limit : 60 + bytes / 4e6;
}

static bool named_true(const DAT_PROVIDER_ATTR *attr, const char *name)
{
	for (int i = 0; i < attr->num_provider_specific_attr; i++)
		if (!strcmp(attr->provider_specific_attr[i].name, name))
			return !strcmp(attr->provider_specific_attr[i].value, "TRUE");
	return false;
}

static bool ia_query(struct session *s)
{
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR provider;
	char text[ADDRESS_TEXT];
	const struct sockaddr *sa;
	DAT_RETURN ret;

	memset(&ia, 0, sizeof(ia));
	memset(&provider, 0, sizeof(provider));
	ret = dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, &ia,
			   DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, &provider);
	if (!dat_ok(ret, "dat_ia_query"))
		return false;
	sa = ia.ia_address_ptr;
	if (!sa) {
		complain("Error dat_ia_query: no address");
		return false;
	}
	memcpy(&s->ia_addr, sa,
	       sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					 : sizeof(struct sockaddr_in));
	s->max_evd_qlen = ia.max_evd_qlen;
#ifndef TEST_ONE /* without extensions */
	s->has_ib = ia.extension_supported == DAT_EXTENSION_IB;
#endif
	s->has_read = named_true(&provider, "DAT_IB_RDMA_READ");
	say("Local Address %s - %s port %llu", sa->sa_family == AF_INET6 ? "AF_INET6" : "AF_INET",
	    address_text(sa, text), (unsigned long long)s->opt->qual);
	for (int i = 0; s->opt->verbose && i < provider.num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *attr = &provider.provider_specific_attr[i];

		say("provider_specific_attr[%d] %s = %s", i, attr->name, attr->value);
	}
	return true;
}

static bool ia_open(struct session *s)
{
	uint64_t start = clock_ns();
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	watchdog_set(session_limit(s, 0));
	if (!did(s, TIME_OPEN, start, dat_ia_open(s->provider, 8, &async, &ia), "dat_ia_open")) {
		open_hint(s->provider, "-P");
		return false;
	}
	s->ia = ia;
	s->async_evd = async;
	return ia_query(s);
}

bool region_create(struct session *s, struct region *r, size_t size, DAT_MEM_PRIV_FLAGS priv)
{
	DAT_REGION_DESCRIPTION where;
	DAT_VLEN registered_size;
	DAT_VADDR registered_at;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;
	uint64_t start;
	void *base;

	if (posix_memalign(&base, 4096, size)) {
		complain("Error: no memory for %zu bytes", size);
		return false;
	}
	r->base = base;
	r->size = size;
	memset(&where, 0, sizeof(where));
	where.for_va = base;
	start = clock_ns();
	ret = dat_lmr_create(s->ia, DAT_MEM_TYPE_VIRTUAL, where, size, s->pz, priv, DAT_VA_TYPE_VA,
			     &lmr, &r->lkey, &r->rkey, &registered_size, &registered_at);
	if (!did(s, TIME_LMR_CREATE, start, ret, "dat_lmr_create"))
		return false;
	r->lmr = lmr;
	if (registered_at > (uintptr_t)base ||
	    registered_size < size + ((uintptr_t)base - registered_at)) {
		complain("Error dat_lmr_create: registered less than asked");
		return false;
	}
	return true;
}

void region_free(struct session *s, struct region *r)
{
	uint64_t start = clock_ns();

	/* Memory is not freed while it may still be registered. */
	if (r->lmr && !did(s, TIME_LMR_FREE, start, dat_lmr_free(r->lmr), "dat_lmr_free"))
		s->teardown_failed = true;
	else
		free(r->base);
	memset(r, 0, sizeof(*r));
}

/*
 * The two areas have the length of several buffers: each message of the ping-pong has a place of
 * its own.
 */
static bool data_create(struct session *s)
{
	uint32_t length = s->opt->length;
	size_t size = (size_t)length * (size_t)s->recv_depth;

	if (!region_create(s, &s->recv_data, size, DAT_MEM_PRIV_ALL_FLAG) ||
	    !region_create(s, &s->send_data, size, DAT_MEM_PRIV_ALL_FLAG))
		return false;
	memset(s->recv_data.base, 'a', length);
	memset(s->send_data.base, 'b', length);
	for (int i = 0; i < 3; i++) {
		s->want[i] = malloc((size_t)length * 2);
		if (!s->want[i]) {
			complain("Error: no memory for %u bytes", length);
			return false;
		}
	}
	if (s->opt->verbose)
		say("Registered RDMA memory: receive %p, send %p, length %u",
		    (void *)s->recv_data.base, (void *)s->send_data.base, length);
	return true;
}

static bool evd_make(struct session *s, int qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
		     DAT_EVD_HANDLE *evd)
{
	uint64_t start = clock_ns();
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE made;

	if (!did(s, TIME_EVD_CREATE, start, dat_evd_create(s->ia, qlen, cno, flags, &made),
		 "dat_evd_create"))
		return false;
	*evd = made;
	memset(&param, 0, sizeof(param));
	if (!dat_ok(dat_evd_query(made, DAT_EVD_FIELD_EVD_QLEN, &param), "dat_evd_query"))
		return false;
	if (param.evd_qlen < qlen) {
		complain("Error dat_evd_create: asked for %d events, got room for %d", qlen,
			 param.evd_qlen);
		return false;
	}
	return true;
}

/*
 * The length is that of the burst, but not less than the queue's, and not more than the adapter's
 * limit.
 */
static int evd_length(const struct session *s, int64_t wanted, int depth)
{
	if (wanted > s->max_evd_qlen)
		wanted = s->max_evd_qlen;
	return wanted < depth ? depth : (int)wanted;
}

static bool cno_make(struct session *s)
{
	DAT_OS_WAIT_PROXY_AGENT none;
	uint64_t start = clock_ns();
	DAT_CNO_HANDLE cno;

	memset(&none, 0, sizeof(none));
	if (!did(s, TIME_CNO_CREATE, start, dat_cno_create(s->ia, none, &cno), "dat_cno_create"))
		return false;
	s->cno = cno;
	s->dto_wait.cno = cno;
	return true;
}

static bool events_create(struct session *s)
{
	int64_t burst = s->opt->burst;
	int request = evd_length(s, (MESSAGE_COUNT + READ_COUNT + burst) * 2, s->request_depth);
	int recv = evd_length(s, MESSAGE_COUNT + burst, s->recv_depth);

	if (s->opt->wait == WAIT_CNO && !cno_make(s))
		return false;
	return evd_make(s, 10, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &s->cr_evd) &&
	       evd_make(s, 10, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &s->conn_evd) &&
	       evd_make(s, request, s->cno, DAT_EVD_DTO_FLAG, &s->request_evd) &&
	       evd_make(s, recv, s->cno, DAT_EVD_DTO_FLAG, &s->recv_evd);
}

static bool ep_make(struct session *s)
{
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
	uint64_t start;

	memset(&attr, 0, sizeof(attr));
	attr.service_type = DAT_SERVICE_TYPE_RC;
	attr.max_rdma_size = 0x10000;
	attr.max_recv_dtos = s->recv_depth;
	attr.max_request_dtos = s->request_depth;
	attr.max_recv_iov = 1;
	attr.max_request_iov = 1;
	attr.max_rdma_read_in = READ_COUNT;
	attr.max_rdma_read_out = READ_COUNT;
	start = clock_ns();
	ret = dat_ep_create(s->ia, s->pz, s->recv_evd, s->request_evd, s->conn_evd, &attr, &ep);
	if (!did(s, TIME_EP_CREATE, start, ret, "dat_ep_create"))
		return false;
	s->ep = ep;
	return true;
}

static bool pz_make(struct session *s)
{
	uint64_t start = clock_ns();
	DAT_PZ_HANDLE pz;

	if (!did(s, TIME_PZ_CREATE, start, dat_pz_create(s->ia, &pz), "dat_pz_create"))
		return false;
	s->pz = pz;
	return true;
}

bool session_open(struct session *s)
{
	bool full = s->opt->kind == KIND_FULL, pong = s->opt->kind == KIND_PINGPONG;
	int rate = s->opt->rate;

	s->recv_depth = MESSAGE_COUNT + (full ? PING_COUNT : 3);
	s->request_depth = MESSAGE_COUNT + READ_COUNT +
			   (full && rate < PING_COUNT ? PING_COUNT
			    : pong		      ? 2 * rate
						      : rate);
	s->spin.mode = WAIT_POLL;
	s->dto_wait.mode = s->opt->wait;
	s->conn_wait.mode = s->opt->wait == WAIT_POLL ? WAIT_POLL : WAIT_SLEEP;

	return ia_open(s) && pz_make(s) && data_create(s) && events_create(s) && ep_make(s) &&
	       region_create(s, &s->send_msg, sizeof(struct message),
			     DAT_MEM_PRIV_LOCAL_WRITE_FLAG) &&
	       region_create(s, &s->recv_msg, MESSAGE_COUNT * sizeof(struct message),
			     DAT_MEM_PRIV_LOCAL_WRITE_FLAG) &&
	       messages_post(s);
}

static void evd_drain(struct session *s, DAT_EVD_HANDLE evd, const char *what)
{
	DAT_EVENT event;
	bool found = true;

	for (int left = 1 << 20; evd && found && left; left--) {
		if (!event_look(evd, &event, &found)) {
			s->teardown_failed = true;
			return;
		}
		if (found && s->opt->verbose)
			say("%s EVD held a %s", what, event_name(event.event_number));
	}
}

/* Only this EVD reports errors that belong to no connection. */
static void async_check(struct session *s)
{
	DAT_EVENT event;
	bool found;

	while (s->async_evd && event_look(s->async_evd, &event, &found) && found) {
		complain("Error asynchronous event: %s", event_name(event.event_number));
		s->teardown_failed = true;
	}
}

static void evd_destroy(struct session *s, DAT_EVD_HANDLE *evd)
{
	uint64_t start = clock_ns();

	if (*evd && !did(s, TIME_EVD_FREE, start, dat_evd_free(*evd), "dat_evd_free"))
		s->teardown_failed = true;
	*evd = DAT_HANDLE_NULL;
}

static void ep_destroy(struct session *s)
{
	uint64_t start = clock_ns();

	if (s->ep && !did(s, TIME_EP_FREE, start, dat_ep_free(s->ep), "dat_ep_free"))
		s->teardown_failed = true;
	s->ep = DAT_HANDLE_NULL;
}

static void events_destroy(struct session *s)
{
	uint64_t start;

	evd_drain(s, s->recv_evd, "receive");
	evd_drain(s, s->request_evd, "request");
	evd_destroy(s, &s->cr_evd);
	evd_destroy(s, &s->conn_evd);
	evd_destroy(s, &s->recv_evd);
	evd_destroy(s, &s->request_evd);
	start = clock_ns();
	if (s->cno && !did(s, TIME_CNO_FREE, start, dat_cno_free(s->cno), "dat_cno_free"))
		s->teardown_failed = true;
	s->cno = DAT_HANDLE_NULL;
}

/* Frees the objects of session_open and session_meet, even if those have failed. */
void session_close(struct session *s)
{
	uint64_t start;

	watchdog_set(session_limit(s, 0));
	if (s->psp && !dat_ok(dat_psp_free(s->psp), "dat_psp_free"))
		s->teardown_failed = true;
	region_free(s, &s->send_msg);
	region_free(s, &s->recv_msg);
	ep_destroy(s);
	async_check(s);
	events_destroy(s);
	region_free(s, &s->recv_data);
	region_free(s, &s->send_data);
	start = clock_ns();
	if (s->pz && !did(s, TIME_PZ_FREE, start, dat_pz_free(s->pz), "dat_pz_free"))
		s->teardown_failed = true;
	start = clock_ns();
	if (s->ia &&
	    !did(s, TIME_CLOSE, start, dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close"))
		s->teardown_failed = true;
	for (int i = 0; i < 3; i++)
		free(s->want[i]);
}
