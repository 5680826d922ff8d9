/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The product through DAT: the tests of traffic.h. lat dequeues, wake waits in dat_evd_wait, fd
 * arms the EVD and blocks on its descriptor. DAPL_TEST_IA names the interface adapter, by default
 * that of the software device.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <dat2/dat_event_extensions.h>
#include "bench/measure.h"

#define TIMEOUT	   20000000 /* us */
#define EVENTS	   4
#define RECV_DONE  1 /* cookies */
#define OTHER_DONE 2

struct end {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE transfers, connections, requests;
	DAT_EP_HANDLE ep, *eps; /* connections in use, and all */
	DAT_LMR_TRIPLET from, to;
	DAT_RMR_TRIPLET target; /* the other side's `to` */
	DAT_EP_ATTR attr;
	int fd; /* of transfers */
};

/* Each side publishes this in `shared`. */
struct told {
	DAT_CONN_QUAL port;
	DAT_RMR_TRIPLET target;
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

static inline void end_use(struct end *end, unsigned i)
{
	end->ep = end->eps[i];
}

static inline void end_recv(struct end *end, unsigned count)
{
	DAT_DTO_COOKIE cookie = { .as_64 = RECV_DONE };

	while (count--)
		must(dat_ep_post_recv(end->ep, 1, &end->to, cookie, DAT_COMPLETION_DEFAULT_FLAG) ==
			     DAT_SUCCESS,
		     "dat_ep_post_recv");
}

static inline void end_send(struct end *end, DAT_UINT32 size, bool signaled)
{
	DAT_DTO_COOKIE cookie = { .as_64 = OTHER_DONE };

	end->from.segment_length = size;
	must(dat_ep_post_send(end->ep, 1, &end->from, cookie,
			      signaled ? DAT_COMPLETION_DEFAULT_FLAG
				       : DAT_COMPLETION_SUPPRESS_FLAG) == DAT_SUCCESS,
	     "dat_ep_post_send");
}

static inline void end_rdma(struct end *end, bool read)
{
	DAT_DTO_COOKIE cookie = { .as_64 = OTHER_DONE };
	DAT_RETURN status =
		read ? dat_ep_post_rdma_read(end->ep, 1, &end->from, cookie, &end->target,
					     DAT_COMPLETION_DEFAULT_FLAG)
		     : dat_ep_post_rdma_write(end->ep, 1, &end->from, cookie, &end->target,
					      DAT_COMPLETION_DEFAULT_FLAG);

	must(status == DAT_SUCCESS, "dat_ep_post_rdma");
}

static inline void end_add(struct end *end)
{
	(void)end;
	fail("no such test"); /* it is an extension, whose completions are events of another kind */
}

static inline uint8_t *end_first(struct end *end)
{
	return (uint8_t *)(uintptr_t)end->from.virtual_address;
}

static inline uint8_t *end_second(struct end *end)
{
	return (uint8_t *)(uintptr_t)end->to.virtual_address;
}

static inline void end_count(const DAT_EVENT *event, struct found *found)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	must(event->event_number == DAT_DTO_COMPLETION_EVENT && data->status == DAT_DTO_SUCCESS,
	     "a transfer");
	if (data->user_cookie.as_64 == RECV_DONE)
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

/* The loop of dat_events(7): dequeue all, arm, block if nothing came. */
static inline void end_wait_fd(struct end *end, struct found *found)
{
	struct pollfd p = { .fd = end->fd, .events = POLLIN };
	DAT_EVENT events[EVENTS];
	DAT_RETURN status;
	DAT_COUNT n;

	while (DAT_EVD_DEQUEUE_N(end->transfers, EVENTS, events, &n) != DAT_SUCCESS) {
		status = DAT_EVD_ARM(end->transfers, 0, 1);
		must(status == DAT_SUCCESS || status == DAT_EV_BUSY, "DAT_EVD_ARM");
		must(status != DAT_SUCCESS || poll(&p, 1, -1) == 1, "poll");
	}
	while (n)
		end_count(&events[--n], found);
}

static inline void end_wait(struct end *end, bool by_fd, struct found *found)
{
	DAT_EVENT event;
	DAT_COUNT more;

	if (by_fd) {
		end_wait_fd(end, found);
		return;
	}
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

static DAT_EVD_HANDLE evd_make(struct end *end, DAT_COUNT length, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	check(dat_evd_create(end->ia, length, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
	return evd;
}

static DAT_RMR_CONTEXT lmr_make(struct end *end, DAT_LMR_TRIPLET *triplet)
{
	const unsigned all = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			     DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = buffer() };
	DAT_RMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	triplet->virtual_address = (DAT_VADDR)(uintptr_t)region.for_va;
	triplet->segment_length = options.size;
	check(dat_lmr_create(end->ia, DAT_MEM_TYPE_VIRTUAL, region, buffer_bytes(), end->pz,
			     (DAT_MEM_PRIV_FLAGS)all, DAT_VA_TYPE_VA, &lmr, &triplet->lmr_context,
			     &key, NULL, NULL),
	      "dat_lmr_create");
	return key;
}

static void end_open(struct end *end, struct told *told)
{
	static char soft[] = "ofa-v2-soft";
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	char *ia = getenv("DAPL_TEST_IA");
	DAT_COUNT queue;

	end->attr = (DAT_EP_ATTR){
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = options.size,
		.max_rdma_size = options.size,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = options.count > 1 ? RECVS_MANY : RECVS,
		.max_request_dtos = options.count > 1 ? RECVS_MANY : SENDS,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 4,
		.max_rdma_read_out = 4,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};
	queue = (end->attr.max_recv_dtos + end->attr.max_request_dtos) * (DAT_COUNT)options.count;
	check(dat_ia_open(ia ? ia : soft, 8, &async, &end->ia), "dat_ia_open");
	check(dat_pz_create(end->ia, &end->pz), "dat_pz_create");
	end->transfers = evd_make(end, queue < 65536 ? queue : 65536, DAT_EVD_DTO_FLAG);
	end->connections = evd_make(end, 8, DAT_EVD_CONNECTION_FLAG);
	end->requests = evd_make(end, 8, DAT_EVD_CR_FLAG);
	if (!strcmp(options.test, "fd"))
		check(DAT_EVD_GET_FD(end->transfers, &end->fd), "DAT_EVD_GET_FD");
	lmr_make(end, &end->from);
	told->target.rmr_context = lmr_make(end, &end->to);
	told->target.virtual_address = end->to.virtual_address;
	told->target.segment_length = options.size;
	end->eps = calloc(options.count, sizeof(*end->eps));
	must(end->eps != NULL, "calloc");
}

static DAT_IA_ADDRESS_PTR address_of(struct end *end)
{
	static struct sockaddr_in address = { .sin_family = AF_INET };
	DAT_IA_ATTR attr;

	check(dat_ia_query(end->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	if (!options.address)
		return attr.ia_address_ptr;
	must(inet_pton(AF_INET, options.address, &address.sin_addr) == 1, "-a is no IPv4 address");
	return (DAT_IA_ADDRESS_PTR)&address;
}

static void connect_one(struct end *end, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL port)
{
	DAT_EVENT event;

	check(dat_ep_create(end->ia, end->pz, end->transfers, end->transfers, end->connections,
			    &end->attr, &end->ep),
	      "dat_ep_create");
	if (side) {
		event = next(end->requests, DAT_CONNECTION_REQUEST_EVENT);
		check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, end->ep, 0,
				    NULL),
		      "dat_cr_accept");
	} else {
		check(dat_ep_connect(end->ep, address, port, TIMEOUT, 0, NULL, DAT_QOS_BEST_EFFORT,
				     0),
		      "dat_ep_connect");
	}
	next(end->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Connects the EPs in turn, so that both sides have them in the same order. */
static void end_connect(struct end *end, struct told *told)
{
	DAT_IA_ADDRESS_PTR address = address_of(end);
	DAT_PSP_HANDLE psp;

	if (side)
		check(dat_psp_create_any(end->ia, &told[1].port, end->requests,
					 DAT_PSP_CONSUMER_FLAG, &psp),
		      "dat_psp_create_any");
	meet();
	for (unsigned i = 0; i < options.count; i++) {
		connect_one(end, address, told[1].port);
		end->eps[i] = end->ep;
	}
	end->target = told[!side].target;
	end_use(end, 0);
	meet();
}

int main(int argc, char **argv)
{
	struct end end = { 0 };
	struct told *told;

	measure_begin(argc, argv, 2 * sizeof(struct told));
	must(options.size != 0, "no such size");
	told = shared;
	end_open(&end, &told[side]);
	end_connect(&end, told);
	traffic_run(&end);
	measure_end();
}
