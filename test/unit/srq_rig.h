/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Helpers for suites of SRQs over the software device: two ends, of which b receives from an SRQ.
 */
#ifndef SRQ_RIG_H
#define SRQ_RIG_H

#include "test/unit/ep_util.h"

#define SRQ_COOKIE 100u /* cookie of srq_post's first receive */

static struct env env;
static struct end a, b; /* b receives from the SRQ */
static DAT_SRQ_HANDLE srq;

static inline DAT_EP_ATTR srq_attr(void)
{
	return (DAT_EP_ATTR){ .max_recv_dtos = 7, .max_request_dtos = 4, .max_request_iov = 1 };
}

static inline void srq_post(unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		DAT_LMR_TRIPLET where = segment(&env, BUFFER / 2 + 64 * i, 64);

		OK(dat_srq_post_recv(srq, 1, &where, (DAT_DTO_COOKIE){ .as_64 = SRQ_COOKIE + i }));
	}
}

/* Opens an end whose EP receives from the SRQ. */
static inline void srq_end_open(struct end *end)
{
	DAT_EP_ATTR attr = srq_attr();

	end_open(&env, end, NULL);
	MUST(dat_ep_free(end->ep));
	MUST(dat_ep_create_with_srq(env.ia, env.pz, end->recv, end->request, end->conn, srq, &attr,
				    &end->ep));
}

static inline void setup(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 32, .max_recv_iov = 2 };

	env_open(&env);
	env_listen(&env);
	MUST(dat_srq_create(env.ia, env.pz, &attr, &srq));
	end_open(&env, &a, NULL);
	srq_end_open(&b);
}

static inline void teardown(void)
{
	end_close(&a);
	end_close(&b);
	OK(dat_srq_free(srq));
	env_close(&env);
}

static inline DAT_COUNT outstanding(void)
{
	DAT_SRQ_PARAM param;

	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param.outstanding_dto_count;
}

/* How many receives the SRQ takes, which may be more than were asked for. */
static inline DAT_COUNT srq_room(void)
{
	DAT_SRQ_PARAM param;

	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param.max_recv_dtos;
}

static inline void expect_notice(DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	if (!event_next(env.async, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, ep);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EP_TRANSFER_TO_ERROR);
}

#endif
