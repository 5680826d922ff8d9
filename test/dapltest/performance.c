/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A performance test as a whole, on either side. */

#include <stdlib.h>

#include "performance.h"

enum {
	EVENTS = 8,
	SMALL_OUT = 0, /* offsets in the small memory, and cookies */
	SMALL_IN = 64,
	SMALL_SIZE = 128,
};

static uint32_t smaller(uint32_t a, DAT_COUNT b)
{
	return b > 0 && (uint32_t)b < a ? (uint32_t)b : a;
}

/* As many as were asked for, within the adapter's limit. */
static bool pipeline_choose(struct perf_test *pt)
{
	uint32_t n = pt->p->iterations;
	DAT_IA_ATTR ia;

	if (!dat_ok(dat_ia_query(pt->place->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL),
		    "dat_ia_query"))
		return false;
	if (pt->p->pipeline > 0 && pt->p->pipeline < n)
		n = pt->p->pipeline;
	n = smaller(n, ia.max_dto_per_ep);
	n = smaller(n, ia.max_evd_qlen);
	if (pt->p->op.transfer == TRANSFER_READ)
		n = smaller(n, ia.max_rdma_read_per_ep_out);
	pt->pipeline = n;
	return true;
}

static bool small_recv(struct perf_test *pt)
{
	DAT_LMR_TRIPLET iov = region_part(&pt->small, SMALL_IN, TABLE_ENTRY);

	return link_recv(&pt->link, 1, &iov, SMALL_IN);
}

static bool small_send(struct perf_test *pt, const char *what)
{
	DAT_LMR_TRIPLET iov = region_part(&pt->small, SMALL_OUT, TABLE_ENTRY);

	return link_send(&pt->link, 1, &iov, SMALL_OUT) &&
	       link_sent(&pt->link, TABLE_ENTRY, SMALL_OUT, what);
}

static bool perf_prepare(struct perf_test *pt)
{
	const struct op *op = &pt->p->op;
	DAT_EP_ATTR attr = pt->place->attr;
	struct link_shape shape = {
		.recv_events = EVENTS,
		.other_events = EVENTS,
		.passive = pt->place->server,
		.attr = &attr,
	};

	if (!pipeline_choose(pt) || !dat_ok(dat_pz_create(pt->place->ia, &pt->pz), "dat_pz_create"))
		return false;
	shape.request_events = (int)pt->pipeline;
	attr.max_request_dtos = (DAT_COUNT)pt->pipeline;
	if (attr.max_request_iov < (DAT_COUNT)op->segments)
		attr.max_request_iov = (DAT_COUNT)op->segments;
	/* an iWARP device reads into one segment only */
	if (op->transfer == TRANSFER_READ && attr.max_rdma_read_iov < (DAT_COUNT)op->segments)
		attr.max_rdma_read_iov = (DAT_COUNT)op->segments;
	if (attr.max_rdma_write_iov < (DAT_COUNT)op->segments)
		attr.max_rdma_write_iov = (DAT_COUNT)op->segments;
	return link_create(&pt->link, pt->place->ia, pt->pz, &shape) &&
	       region_create(&pt->small, pt->place->ia, pt->pz, SMALL_SIZE) && small_recv(pt);
}

/* The segments of this side follow each other, like the peer's memory. */
static bool data_create(struct perf_test *pt)
{
	const struct op *op = &pt->p->op;

	if (!region_create(&pt->data, pt->place->ia, pt->pz, op->size * op->segments))
		return false;
	pt->iov = calloc(op->segments, sizeof(*pt->iov));
	if (!pt->iov)
		return false;
	for (uint32_t s = 0; s < op->segments; s++)
		pt->iov[s] = region_part(&pt->data, (size_t)s * op->size, op->size);
	return true;
}

static bool client_connect(struct perf_test *pt)
{
	struct target to = {
		.addr = pt->place->peer,
		.qual = pt->place->port,
		.qos = pt->place->qos,
	};
	DAT_EVENT_NUMBER outcome;

	if (!link_connect(&pt->link, &to, &outcome))
		return false;
	if (!pt->link.connected)
		complain("Error: no connection for the test: %s", event_name(outcome));
	return pt->link.connected;
}

static bool client_run_test(struct perf_test *pt)
{
	if (!perf_prepare(pt) || !client_connect(pt) || !data_create(pt) ||
	    !link_received(&pt->link, TABLE_ENTRY, SMALL_IN, "address of the server's memory"))
		return false;
	wire_get_buffer(pt->small.base + SMALL_IN, pt->place->peer_little, &pt->peer);
	pt->peer.segment_length = pt->p->op.size * pt->p->op.segments;
	return perf_measure(pt) && small_send(pt, "sending of the last message");
}

/* The client's last message or the end of the connection ends the test. */
static bool server_run_test(struct perf_test *pt)
{
	struct dto last = {
		.length = TABLE_ENTRY,
		.cookie = SMALL_IN,
		.what = "last message of the client",
	};
	DAT_EVENT request;
	bool ready = perf_prepare(pt) && link_listen(&pt->link, pt->place->port, false);

	if (!gate_pass(pt->place->ready, ready))
		return false;
	if (!event_await(pt->link.cr_evd, false, "connection request", &request) ||
	    !link_accept(&pt->link, &request, NULL, 0) || !link_unlisten(&pt->link) ||
	    !data_create(pt))
		return false;
	wire_put_buffer(pt->small.base + SMALL_OUT, pt->data.rkey, (uintptr_t)pt->data.base);
	last.ep = pt->link.ep;
	return small_send(pt, "sending of the address") &&
	       dto_await_patiently(pt->link.recv_evd, &last);
}

bool performance_run(const struct place *place, const struct performance *p)
{
	struct perf_test pt = { .place = place, .p = p };
	bool passed = place->server ? server_run_test(&pt) : client_run_test(&pt);

	free(pt.iov);
	passed &= region_free(&pt.data);
	passed &= region_free(&pt.small);
	passed &= link_disconnect(&pt.link, DAT_CLOSE_ABRUPT_FLAG);
	passed &= link_free(&pt.link);
	passed &= !pt.pz || dat_ok(dat_pz_free(pt.pz), "dat_pz_free");
	if (passed && !place->server)
		perf_report(&pt);
	return passed;
}
