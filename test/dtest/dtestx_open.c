/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects of dtestx, with all receives posted, and freed again. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtestx.h"

enum {
	LEAST_SIZE = 64, /* room for a description behind a routing header */
	QUEUE_DEPTH = BUF_COUNT,
};

bool x_await(struct x_test *t, DAT_EVD_HANDLE evd, const char *what, double seconds,
	     DAT_EVENT *event)
{
	return event_await(&t->wait, evd, what, adapter_limit(&t->a, seconds), event);
}

bool x_transfer_await(struct x_test *t, const char *what, DAT_EVENT *event)
{
	struct connections all = x_connections(t);

	return transfer_await(&t->a, &t->wait, t->dto_evd, &all, what, event);
}

static bool able(const struct x_test *t)
{
	if (t->a.attr.extension_supported != DAT_EXTENSION_IB) {
		complain("ERROR: IB extension not supported by %s", t->a.provider);
		return false;
	}
	if (t->opt.ud && !adapter_has(&t->a, DAT_IB_ATTR_UD)) {
		complain("ERROR: %s has no datagrams: its attribute %s is not TRUE", t->a.provider,
			 DAT_IB_ATTR_UD);
		return false;
	}
	return true;
}

static bool ep_make(struct x_test *t, int depth, DAT_EP_HANDLE *made)
{
	uint64_t start = clock_ns();
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	memset(&attr, 0, sizeof(attr));
	attr.service_type = DAT_SERVICE_TYPE_RC;
	attr.max_recv_dtos = depth;
	attr.max_request_dtos = depth;
	attr.max_recv_iov = 1;
	attr.max_request_iov = 1;
	if (t->opt.ud) {
		attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
		attr.max_message_size = t->opt.length;
	} else {
		attr.max_rdma_size = 0x10000;
		attr.max_rdma_read_in = 4;
		attr.max_rdma_read_out = 4;
	}
	ret = dat_ep_create(t->a.ia, t->a.pz, t->dto_evd, t->dto_evd, t->conn_evd, &attr, &ep);
	if (!adapter_did(&t->a, CALL_EP_CREATE, start, ret, "dat_ep_create"))
		return false;
	*made = ep;
	return true;
}

static bool eps_create(struct x_test *t)
{
	bool one = t->opt.ud && !t->opt.many;
	int count = one ? 1 : t->opt.eps;

	for (int i = 0; i < count; i++) {
		if (!ep_make(t, one ? QUEUE_DEPTH * t->opt.eps : QUEUE_DEPTH, &t->eps[i]))
			return false;
		t->ep_count = i + 1;
	}
	return true;
}

static bool buffers_create(struct x_test *t)
{
	int privileges = DAT_MEM_PRIV_ALL_FLAG | (t->opt.ud ? 0 : DAT_IB_MEM_PRIV_REMOTE_ATOMIC);

	t->buffer_size = t->opt.length < LEAST_SIZE ? LEAST_SIZE : t->opt.length;
	for (int i = 0; i < t->opt.eps * BUF_COUNT; i++)
		if (!memory_create(&t->a, &t->buffers[i], t->buffer_size, privileges))
			return false;
	return memory_create(&t->a, &t->atomic, sizeof(uint64_t), privileges);
}

/* An endpoint with one set of buffers counts only those. */
bool x_receives_post(struct x_test *t)
{
	for (int connection = 0; connection < t->opt.eps; connection++) {
		for (int i = BUF_FIRST_RECV; i < BUF_COUNT; i++) {
			struct memory *buffer = x_buffer(t, connection, i);
			DAT_LMR_TRIPLET iov = memory_part(buffer, 0, t->buffer_size);
			DAT_DTO_COOKIE cookie;
			DAT_RETURN ret;

			cookie.as_64 = (DAT_UINT64)(t->opt.many ? i : connection * BUF_COUNT + i);
			ret = dat_ep_post_recv(x_ep(t, connection), 1, &iov, cookie,
					       DAT_COMPLETION_DEFAULT_FLAG);
			if (!dat_ok(ret, "dat_ep_post_recv"))
				return false;
		}
	}
	t->next_recv = BUF_FIRST_RECV;
	return true;
}

bool x_open(struct x_test *t)
{
	size_t n = (size_t)t->opt.eps;
	int count = t->opt.eps;

	t->eps = calloc(n, sizeof(*t->eps));
	t->connected = calloc(n, sizeof(*t->connected));
	t->buffers = calloc(n * BUF_COUNT, sizeof(*t->buffers));
	t->ahs = calloc(n, sizeof(*t->ahs));
	t->has_ah = calloc(n, sizeof(*t->has_ah));
	if (!t->eps || !t->connected || !t->buffers || !t->ahs || !t->has_ah) {
		complain("Error: no memory for %zu endpoints", n);
		return false;
	}
	if (!adapter_open(&t->a, X_SERVER_QUAL) || !able(t))
		return false;
	note("Running as %s - %s %s%d endpoint(s) v%d", x_role(t), t->a.provider,
	     t->opt.ud ? "UD test " : "", t->opt.eps, t->a.attr.extension_version);
	return evd_create(&t->a, 2 * count, DAT_EVD_CR_FLAG, &t->cr_evd) &&
	       evd_create(&t->a, 2 * count, DAT_EVD_CONNECTION_FLAG, &t->conn_evd) &&
	       evd_create(&t->a, 10 * count, DAT_EVD_DTO_FLAG, &t->dto_evd) && eps_create(t) &&
	       buffers_create(t) && x_receives_post(t);
}

static void counters_show(struct x_test *t, DAT_EVD_HANDLE evd, const char *what)
{
	if (evd && !x_counters(t, evd, what, DCNT_EVD_ALL_COUNTERS))
		t->a.failed = true;
}

static void eps_destroy(struct x_test *t)
{
	char what[16];

	for (int i = 0; i < t->ep_count; i++) {
		snprintf(what, sizeof(what), "EP[%d]", i);
		if (!x_counters(t, t->eps[i], what, DCNT_EP_ALL_COUNTERS))
			t->a.failed = true;
		ep_free(&t->a, &t->eps[i]);
	}
}

/* A freed handle must be refused without further effects. */
static void close_twice(struct x_test *t)
{
	DAT_IA_HANDLE ia = t->a.ia;
	DAT_RETURN ret;

	adapter_close(&t->a);
	if (!ia)
		return;
	ret = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE)
		return;
	complain("Error: dat_ia_close of a closed IA gave 0x%08x", (unsigned int)ret);
	t->a.failed = true;
}

/* Frees the objects of x_open() and the connections. */
void x_close(struct x_test *t)
{
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	psp_free(&t->a, &t->psp);
	x_ud_close(t);
	for (int i = 0; t->buffers && i < t->opt.eps * BUF_COUNT; i++)
		memory_free(&t->a, &t->buffers[i]);
	memory_free(&t->a, &t->atomic);
	eps_destroy(t);
	async_check(&t->a);
	counters_show(t, t->dto_evd, "DTO_EVD");
	evd_free(&t->a, &t->dto_evd);
	counters_show(t, t->conn_evd, "CONN_EVD");
	evd_free(&t->a, &t->conn_evd);
	counters_show(t, t->cr_evd, "CR_EVD");
	evd_free(&t->a, &t->cr_evd);
	close_twice(t);
	free(t->eps);
	free(t->connected);
	free(t->buffers);
	free(t->ahs);
	free(t->has_ah);
}
