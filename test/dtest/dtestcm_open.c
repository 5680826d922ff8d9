/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects of dtestcm: two EVDs, and many endpoints. */

#include <stdlib.h>
#include <string.h>

#include "dtestcm.h"

/* No data are transferred, so all endpoints share two EVDs of length one. */
static bool events_create(struct cm_test *t)
{
	int n = t->opt.connections;

	return evd_create(&t->a, n, DAT_EVD_CR_FLAG, &t->cr_evd) &&
	       evd_create(&t->a, 2 * n, DAT_EVD_CONNECTION_FLAG, &t->conn_evd) &&
	       evd_create(&t->a, 1, DAT_EVD_DTO_FLAG, &t->request_evd) &&
	       evd_create(&t->a, 1, DAT_EVD_DTO_FLAG, &t->recv_evd);
}

static void ep_attributes(const struct cm_test *t, DAT_EP_ATTR *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->max_recv_dtos = 1;
	attr->max_request_dtos = 1;
	attr->max_recv_iov = 1;
	attr->max_request_iov = 1;
	if (t->opt.ud) {
		attr->service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
		attr->max_message_size = 2048;
	} else {
		attr->service_type = DAT_SERVICE_TYPE_RC;
		attr->max_rdma_size = 0x10000;
		attr->max_rdma_read_in = 4;
		attr->max_rdma_read_out = 4;
	}
}

static bool eps_create(struct cm_test *t)
{
	DAT_EP_ATTR attr;

	ep_attributes(t, &attr);
	for (int i = 0; i < t->opt.connections; i++) {
		uint64_t start = clock_ns();
		DAT_EP_HANDLE ep;
		DAT_RETURN ret;

		ret = dat_ep_create(t->a.ia, t->a.pz, t->recv_evd, t->request_evd, t->conn_evd,
				    &attr, &ep);
		if (!adapter_did(&t->a, CALL_EP_CREATE, start, ret, "dat_ep_create")) {
			complain("endpoint %d of %d", i + 1, t->opt.connections);
			return false;
		}
		t->eps[i] = ep;
	}
	return true;
}

bool cm_open(struct cm_test *t)
{
	size_t n = (size_t)t->opt.connections;

	t->eps = calloc(n, sizeof(*t->eps));
	t->connected = calloc(n, sizeof(*t->connected));
	t->psps = calloc((size_t)t->opt.burst, sizeof(*t->psps));
	if (!t->eps || !t->connected || !t->psps) {
		complain("Error: no memory for %zu connections", n);
		return false;
	}
	if (!adapter_open(&t->a, (uint64_t)t->opt.qual))
		return false;
	if (t->opt.ud && !adapter_has(&t->a, DAT_IB_ATTR_UD)) {
		complain("Error: %s has no datagrams: its attribute %s is not TRUE", t->a.provider,
			 DAT_IB_ATTR_UD);
		return false;
	}
	return events_create(t) && eps_create(t);
}

/* The handles of a provider mostly come in order, so the search begins with the expected one. */
int cm_ep_find(const struct cm_test *t, DAT_EP_HANDLE ep)
{
	static int next;
	int n = t->opt.connections;

	for (int i = 0; i < n; i++) {
		int at = (next + i) % n;

		if (ep && t->eps[at] == ep) {
			next = (at + 1) % n;
			return at;
		}
	}
	complain("Error: event for an endpoint %p that is not of this test", (void *)ep);
	return -1;
}

/* Frees the objects of cm_open() and the connections. */
void cm_close(struct cm_test *t)
{
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	for (int i = 0; t->psps && i < t->psp_count; i++)
		psp_free(&t->a, &t->psps[i]);
	for (int i = 0; t->eps && i < t->opt.connections; i++)
		ep_free(&t->a, &t->eps[i]);
	async_check(&t->a);
	evd_free(&t->a, &t->cr_evd);
	evd_free(&t->a, &t->conn_evd);
	evd_free(&t->a, &t->recv_evd);
	evd_free(&t->a, &t->request_evd);
	adapter_close(&t->a);
	free(t->eps);
	free(t->connected);
	free(t->psps);
}
