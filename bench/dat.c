/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The product through DAT: the tests of verbs.c that have an equal here.
 *   lat SIZE    half round trip in ns, dat_evd_dequeue      wake SIZE   the same, sleeping in dat_evd_wait
 *   rate SIZE   messages one way, 10^6 a second             bw SIZE     the same, each with a completion, MB/s
 *   write SIZE, read SIZE   RDMA, MB/s
 */
#include <stdio.h>
#include <stdlib.h>
#include <dat2/udat.h>
#include "bench/measure.h"

#define QUEUE	1300
#define TIMEOUT 120000000 /* us */

static char soft[] = "ofa-v2-soft";

struct end {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE transfers, connections, requests;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE from_lmr, to_lmr;
	DAT_LMR_TRIPLET from, to;
	DAT_RMR_TRIPLET there; /* the other's `from` */
};

struct found {
	unsigned sends, recvs;
};

/* What the sides tell each other in `shared`, one each. */
struct dat_name {
	DAT_CONN_QUAL port;
	DAT_RMR_TRIPLET memory;
};

static void check(DAT_RETURN status, const char *call)
{
	const char *type, *detail;

	if (status == DAT_SUCCESS)
		return;
	dat_strerror(status, &type, &detail);
	fprintf(stderr, "%s: %s %s\n", call, type, detail);
	fail(call);
}

static inline void end_recv(struct end *end, unsigned count)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	while (count--)
		must(dat_ep_post_recv(end->ep, 1, &end->to, cookie, DAT_COMPLETION_DEFAULT_FLAG) ==
			     DAT_SUCCESS,
		     "dat_ep_post_recv");
}

static inline DAT_COMPLETION_FLAGS flags_of(bool signaled)
{
	return signaled ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG;
}

static inline void end_send(struct end *end, bool signaled)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };

	must(dat_ep_post_send(end->ep, 1, &end->from, cookie, flags_of(signaled)) == DAT_SUCCESS,
	     "dat_ep_post_send");
}

static inline void end_rdma(struct end *end, bool read, bool signaled)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 3 };
	DAT_RETURN status = read ? dat_ep_post_rdma_read(end->ep, 1, &end->from, cookie,
							 &end->there, flags_of(signaled))
				 : dat_ep_post_rdma_write(end->ep, 1, &end->from, cookie,
							  &end->there, flags_of(signaled));

	must(status == DAT_SUCCESS, "dat_ep_post_rdma");
}

static inline void end_count(const DAT_EVENT *event, struct found *found)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	must(event->event_number == DAT_DTO_COMPLETION_EVENT && data->status == DAT_DTO_SUCCESS,
	     "a transfer");
	if (data->user_cookie.as_64 == 1)
		found->recvs++;
	else
		found->sends++;
}

static inline void end_poll(struct end *end, struct found *found)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(end->transfers, &event) == DAT_SUCCESS)
		end_count(&event, found);
}

static inline void end_wait(struct end *end, struct found *found)
{
	DAT_EVENT event;
	DAT_COUNT more;

	must(dat_evd_wait(end->transfers, DAT_TIMEOUT_INFINITE, 1, &event, &more) == DAT_SUCCESS,
	     "dat_evd_wait");
	end_count(&event, found);
}

#include "bench/traffic.h"

static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER expected)
{
	DAT_EVENT event;
	DAT_COUNT more;

	check(dat_evd_wait(evd, TIMEOUT, 1, &event, &more), "dat_evd_wait");
	must(event.event_number == expected, "an event");
	return event;
}

static void evd_make(struct end *end, DAT_COUNT length, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	check(dat_evd_create(end->ia, length, DAT_HANDLE_NULL, flags, evd), "dat_evd_create");
}

static void lmr_make(struct end *end, DAT_LMR_HANDLE *lmr, DAT_LMR_TRIPLET *triplet,
		     DAT_RMR_CONTEXT *key)
{
	const unsigned all = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			     DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = buffer(options.size) };

	triplet->virtual_address = (DAT_VADDR)(uintptr_t)region.for_va;
	triplet->segment_length = options.size;
	check(dat_lmr_create(end->ia, DAT_MEM_TYPE_VIRTUAL, region, options.size, end->pz,
			     (DAT_MEM_PRIV_FLAGS)all, DAT_VA_TYPE_VA, lmr, &triplet->lmr_context,
			     key, NULL, NULL),
	      "dat_lmr_create");
}

/* DAPL_TEST_IA says of which device; without it, the software device. */
static char *name_of_ia(void)
{
	char *name = getenv("DAPL_TEST_IA");

	return name ? name : soft;
}

static void end_open(struct end *end, struct dat_name *name)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_RMR_CONTEXT key, unused;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = options.size,
		.max_rdma_size = options.size,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = 1024,
		.max_request_dtos = 128,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 4,
		.max_rdma_read_out = 4,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	check(dat_ia_open(name_of_ia(), 8, &async, &end->ia), "dat_ia_open");
	check(dat_pz_create(end->ia, &end->pz), "dat_pz_create");
	evd_make(end, QUEUE, DAT_EVD_DTO_FLAG, &end->transfers);
	evd_make(end, 8, DAT_EVD_CONNECTION_FLAG, &end->connections);
	evd_make(end, 8, DAT_EVD_CR_FLAG, &end->requests);
	lmr_make(end, &end->from_lmr, &end->from, &key);
	lmr_make(end, &end->to_lmr, &end->to, &unused);
	check(dat_ep_create(end->ia, end->pz, end->transfers, end->transfers, end->connections,
			    &attr, &end->ep),
	      "dat_ep_create");
	name->memory = (DAT_RMR_TRIPLET){ .virtual_address = end->from.virtual_address,
					  .segment_length = options.size,
					  .rmr_context = key };
}

static void end_connect(struct end *end, struct dat_name *names)
{
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	if (side)
		check(dat_psp_create_any(end->ia, &names[1].port, end->requests,
					 DAT_PSP_CONSUMER_FLAG, &psp),
		      "dat_psp_create_any");
	meet();
	if (side) {
		event = next(end->requests, DAT_CONNECTION_REQUEST_EVENT);
		check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, end->ep, 0,
				    NULL),
		      "dat_cr_accept");
	} else {
		check(dat_ia_query(end->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL),
		      "dat_ia_query");
		check(dat_ep_connect(end->ep, attr.ia_address_ptr, names[1].port, TIMEOUT, 0, NULL,
				     DAT_QOS_BEST_EFFORT, 0),
		      "dat_ep_connect");
	}
	next(end->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
	end->there = names[!side].memory;
	meet();
}

int main(int argc, char **argv)
{
	struct dat_name *names;
	struct end end;

	measure_begin(argc, argv, 2 * sizeof(struct dat_name));
	must(options.size != 0, "no such size");
	names = shared;
	end_open(&end, &names[side]);
	end_connect(&end, names);
	if (!traffic_run(&end))
		fail("no such test");
	measure_end();
}
