/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The software device with no free descriptor, with one, with two ...: each call returns an error,
 * and nothing leaks.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "test/unit/files.h"
#include "test/unit/linked.h"
#include "util/log.h"

#define ENOUGH 64 /* more descriptors than the test opens */

struct all {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *active, *passive;
};

/* The next event has this type; an error event counts as a failure that was reported properly. */
static bool event_is(struct all *all, enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
	struct pollfd poll_fd = { .fd = all->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	bool good;

	if (poll(&poll_fd, 1, UNIT_PATIENCE) != 1 || rdma_get_cm_event(all->events, &event)) {
		CU_FAIL("no event");
		return false;
	}
	good = event->event == type;
	if (good && id)
		*id = event->id;
	rdma_ack_cm_event(event);
	errno = EMFILE;
	return good;
}

static bool open_verbs(struct all *all)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	all->context = list ? ibv_open_device(list[0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	return all->context && (all->pd = ibv_alloc_pd(all->context)) &&
	       (all->channel = ibv_create_comp_channel(all->context)) &&
	       (all->cq = ibv_create_cq(all->context, 16, NULL, all->channel, 0));
}

static bool make_qp(struct all *all, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	/* the default PD belongs to the context that rdma_cm opened */
	init.send_cq = init.recv_cq = NULL;
	return !rdma_create_qp(id, NULL, &init);
}

static bool open_cm(struct all *all)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };

	all->events = rdma_create_event_channel();
	if (!all->events || rdma_create_id(all->events, &all->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(all->listener, (struct sockaddr *)&address) ||
	    rdma_listen(all->listener, 4) ||
	    rdma_create_id(all->events, &all->active, NULL, RDMA_PS_TCP))
		return false;
	address.sin_port = rdma_get_src_port(all->listener);
	return !rdma_resolve_addr(all->active, NULL, (struct sockaddr *)&address, 1000) &&
	       event_is(all, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	       !rdma_resolve_route(all->active, 1000) &&
	       event_is(all, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) && make_qp(all, all->active);
}

static bool connect_cm(struct all *all)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	return !rdma_connect(all->active, &param) &&
	       event_is(all, RDMA_CM_EVENT_CONNECT_REQUEST, &all->passive) &&
	       make_qp(all, all->passive) && !rdma_accept(all->passive, &param) &&
	       event_is(all, RDMA_CM_EVENT_ESTABLISHED, NULL) &&
	       event_is(all, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static void close_id(struct rdma_cm_id *id)
{
	if (id && id->qp)
		rdma_destroy_qp(id);
	if (id)
		CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
}

static void close_all_of(struct all *all)
{
	close_id(all->passive);
	close_id(all->active);
	close_id(all->listener);
	if (all->events)
		rdma_destroy_event_channel(all->events);
	CU_ASSERT_EQUAL(all->cq ? ibv_destroy_cq(all->cq) : 0, 0);
	CU_ASSERT_EQUAL(all->channel ? ibv_destroy_comp_channel(all->channel) : 0, 0);
	CU_ASSERT_EQUAL(all->pd ? ibv_dealloc_pd(all->pd) : 0, 0);
	CU_ASSERT_EQUAL(all->context ? ibv_close_device(all->context) : 0, 0);
}

static void each_number_of_descriptors(void)
{
	unsigned before, failed = 0;
	struct all all;
	bool good = false;

	if (!limit_is_real()) {
		fprintf(stderr, "a memory checker keeps descriptors for itself\n");
		return;
	}
	log_open(NULL, 0, LOG_TO_STDERR);
	/* descriptors that the C library opens once and keeps are open after this */
	memset(&all, 0, sizeof(all));
	CU_ASSERT_TRUE_FATAL(open_verbs(&all) && open_cm(&all) && connect_cm(&all));
	close_all_of(&all);
	before = unit_entries("/proc/self/fd");
	for (int spare = 0; spare < ENOUGH && !good; spare++) {
		memset(&all, 0, sizeof(all));
		limit_fds(spare);
		errno = 0;
		good = open_verbs(&all) && open_cm(&all) && connect_cm(&all);
		if (!good) {
			CU_ASSERT_EQUAL(errno, EMFILE);
			failed++;
		}
		close_all_of(&all);
		limit_fds(-1);
		CU_ASSERT(unit_wait_for(fds_are, &before, UNIT_PATIENCE));
	}
	CU_ASSERT_TRUE(good);
	CU_ASSERT_TRUE(failed > 5);
	log_open(NULL, LOG_ERROR, LOG_TO_STDERR);
}

#define NUMBERS 256

/* An executed program inherits no descriptor of the device. */
static void nothing_survives_exec(void)
{
	bool before[NUMBERS];
	struct all all = { 0 };
	int fresh = 0;

	for (int fd = 0; fd < NUMBERS; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	CU_ASSERT_TRUE(open_verbs(&all) && open_cm(&all) && connect_cm(&all));
	for (int fd = 0; fd < NUMBERS; fd++) {
		int flags = before[fd] ? -1 : fcntl(fd, F_GETFD);

		if (flags < 0)
			continue;
		fresh++;
		CU_ASSERT_TRUE(flags & FD_CLOEXEC);
	}
	CU_ASSERT_TRUE(fresh > 5);
	close_all_of(&all);
}

static const struct unit_test tests[] = {
	{ "with too few descriptors calls fail with EMFILE, and nothing leaks",
	  each_number_of_descriptors },
	{ "exec closes every descriptor", nothing_survives_exec },
};

UNIT_MAIN("softverbs_files", tests)
