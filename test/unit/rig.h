/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Helpers for suites over the fake device: an open IA with an endpoint, reached through libdat2 and
 * through the provider's own structs.
 */
#ifndef RIG_H
#define RIG_H

#include "test/unit/fake_ib.h"

#define RIG_QLEN 8

DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE in, DAT_IA_HANDLE *out);

struct rig {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, conn, recv, request;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
};

static void rig_announce(void)
{
	static DAT_PROVIDER_INFO info = { .ia_name = "fake", .dapl_version_major = 2 };
	static DAT_PROVIDER_INFO other = { .ia_name = "fake1", .dapl_version_major = 2 };
	static bool announced;

	if (!announced) {
		dat_provider_init(&info, "fake0 1");
		dat_provider_init(&other, "fake1 1");
	}
	announced = true;
}

static inline DAT_IA_HANDLE rig_ia(const char *name, DAT_EVD_HANDLE *async)
{
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	rig_announce();
	MUST(dat_ia_open((char *)(uintptr_t)name, RIG_QLEN, async, &ia));
	return ia;
}

static inline struct dapl_ia *rig_inside(DAT_IA_HANDLE ia)
{
	DAT_IA_HANDLE pointer = DAT_HANDLE_NULL;

	MUST(dats_get_ia_handle(ia, &pointer));
	return pointer;
}

static inline DAT_EVD_HANDLE rig_evd(const struct rig *rig, DAT_COUNT qlen, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	MUST(dat_evd_create(rig->ia, qlen, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

static inline DAT_EP_ATTR rig_attr(void)
{
	return (DAT_EP_ATTR){ .max_recv_dtos = 8,
			      .max_request_dtos = 8,
			      .max_recv_iov = 3,
			      .max_request_iov = 4,
			      .max_rdma_read_in = 4,
			      .max_rdma_read_out = 4,
			      .max_rdma_read_iov = 2,
			      .max_rdma_write_iov = 3 };
}

/* Opens an IA, a PZ and three EVDs, and creates an EP on them unless `attr` is NULL. */
static inline void rig_open(struct rig *rig, const DAT_EP_ATTR *attr)
{
	memset(rig, 0, sizeof(*rig));
	rig->ia = rig_ia("fake", &rig->async);
	MUST(dat_pz_create(rig->ia, &rig->pz));
	rig->conn = rig_evd(rig, RIG_QLEN, DAT_EVD_CONNECTION_FLAG);
	rig->recv = rig_evd(rig, RIG_QLEN, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
	rig->request = rig_evd(rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
	if (attr)
		MUST(dat_ep_create(rig->ia, rig->pz, rig->recv, rig->request, rig->conn, attr,
				   &rig->ep));
}

/*
 * Frees all with the ordinary calls and checks that the device has no object left: a suite that
 * leaves one fails.
 */
static inline void rig_close(struct rig *rig)
{
	if (rig->ep)
		MUST(dat_ep_free(rig->ep));
	MUST(dat_evd_free(rig->request));
	MUST(dat_evd_free(rig->recv));
	MUST(dat_evd_free(rig->conn));
	MUST(dat_pz_free(rig->pz));
	MUST(dat_ia_close(rig->ia, DAT_CLOSE_GRACEFUL_FLAG));
	CU_ASSERT_EQUAL(fake.pds + fake.mrs + fake.mws + fake.cqs + fake.qps + fake.srqs +
				fake.conns,
			0);
	CU_ASSERT_EQUAL(fake.devices[0].opens, 0);
}

static inline void rig_establish(void)
{
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_ESTABLISHED, NULL, 0);
}

static inline void rig_start_connect(struct rig *rig)
{
	DAT_IA_ATTR attr;

	MUST(dat_ia_query(rig->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	MUST(dat_ep_connect(rig->ep, attr.ia_address_ptr, 4711, DAT_TIMEOUT_INFINITE, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/*
 * Takes one event. Runs the event thread's work first, because the event thread posts async events.
 */
static inline DAT_EVENT rig_take(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	fake_run_timers();
	memset(&event, 0xee, sizeof(event));
	MUST(dat_evd_dequeue(evd, &event));
	CU_ASSERT_PTR_EQUAL(event.evd_handle, evd);
	return event;
}

static inline void rig_connect(struct rig *rig)
{
	rig_start_connect(rig);
	rig_establish();
	CU_ASSERT_EQUAL(rig_take(rig->conn).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static inline DAT_RETURN rig_send(struct rig *rig, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	return dat_ep_post_send(rig->ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = cookie }, flags);
}

static inline DAT_RETURN rig_recv(struct rig *rig, uint64_t cookie)
{
	return dat_ep_post_recv(rig->ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = cookie },
				DAT_COMPLETION_DEFAULT_FLAG);
}

static inline struct ib_cq *rig_cq(DAT_EVD_HANDLE evd)
{
	return ((struct dapl_evd *)evd)->cq;
}

/* Completes the work request `wr_id` on the EVD's CQ. */
static inline void rig_complete(DAT_EVD_HANDLE evd, uint64_t wr_id, uint32_t status,
				uint32_t length)
{
	fake_complete(rig_cq(evd),
		      &(struct ib_completion){ .wr_id = wr_id,
					       .status = status,
					       .byte_len = length,
					       .qp_num = fake.qp ? fake.qp->num : 0 },
		      false);
}

/* Posts a receive and completes it. */
static inline void rig_receive(struct rig *rig, uint64_t cookie)
{
	MUST(rig_recv(rig, cookie));
	rig_complete(rig->recv, fake.last.wr_id, DAT_DTO_SUCCESS, 10);
}

static inline uint64_t rig_cookie(const DAT_EVENT *event)
{
	return event->event_data.dto_completion_event_data.user_cookie.as_64;
}

static inline DAT_RETURN rig_post_se(DAT_EVD_HANDLE evd, uintptr_t value)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = (void *)value;
	return dat_evd_post_se(evd, &event);
}

#endif
