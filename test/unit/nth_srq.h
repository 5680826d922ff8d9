/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A resize of a used shared receive queue fails: no buffer is lost, and the queue has the size that
 * it reports.
 */
#ifndef NTH_SRQ_H
#define NTH_SRQ_H

#include "test/unit/nth.h"
#include "test/unit/same.h"

enum { NTH_SMALL = 16, NTH_LARGE = 128 };

static bool nth_posted[NTH_LARGE + 1]; /* by cookie: the buffer has not completed yet */

static DAT_SRQ_PARAM nth_srq_now(struct nth_scene *s)
{
	DAT_SRQ_PARAM param;

	memset(&param, 0, sizeof(param));
	OK(dat_srq_query(s->srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

static DAT_RETURN nth_srq_post(struct nth_scene *s)
{
	DAT_LMR_TRIPLET where;
	DAT_RETURN status;
	unsigned cookie = 0;

	while (nth_posted[cookie])
		cookie++;
	where = segment(&s->env, BUFFER / 2 + 64 * cookie, 64);
	status = dat_srq_post_recv(s->srq, 1, &where, (DAT_DTO_COOKIE){ .as_64 = cookie });
	nth_posted[cookie] = status == DAT_SUCCESS;
	return status;
}

/* A message completes one of the posted buffers. */
static void nth_srq_message(struct nth_scene *s)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	OK(try_send(&s->a, 55, 0));
	expect_dto(s->a.request, s->a.ep, 55, DAT_DTO_SUCCESS);
	if (!event_next(s->b.recv, &event))
		return;
	data = &event.event_data.dto_completion_event_data;
	CU_ASSERT_EQUAL(data->status, DAT_DTO_SUCCESS);
	CU_ASSERT_TRUE_FATAL(data->user_cookie.as_64 < NTH_LARGE);
	CU_ASSERT_TRUE(nth_posted[data->user_cookie.as_64]);
	nth_posted[data->user_cookie.as_64] = false;
}

/* Posts exactly as many buffers as the queue reports, and lets all of them complete. */
static void nth_srq_use(struct nth_scene *s)
{
	DAT_COUNT size = nth_srq_now(s).max_recv_dtos, i;

	for (i = nth_srq_now(s).outstanding_dto_count; i < size; i++)
		OK(nth_srq_post(s));
	IS(nth_srq_post(s), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	for (i = 0; i < size; i++)
		nth_srq_message(s);
	for (i = 0; i < NTH_LARGE; i++)
		CU_ASSERT_FALSE(nth_posted[i]);
	CU_ASSERT_EQUAL(nth_srq_now(s).outstanding_dto_count, 0);
}

static DAT_RETURN nth_srq_grow(struct nth_scene *s)
{
	DAT_SRQ_PARAM before = nth_srq_now(s), after;
	DAT_RETURN status = dat_srq_resize(s->srq, NTH_LARGE);

	after = nth_srq_now(s);
	if (status != DAT_SUCCESS)
		CU_ASSERT_TRUE(srq_param_is_same(&before, &after));
	CU_ASSERT_EQUAL(after.max_recv_dtos, status == DAT_SUCCESS ? NTH_LARGE : NTH_SMALL);
	nth_srq_use(s);
	return status;
}

/* If the device refuses to shrink, the queue stays large. */
static DAT_RETURN nth_srq_shrink(struct nth_scene *s)
{
	DAT_RETURN status = dat_srq_resize(s->srq, NTH_SMALL);
	DAT_COUNT size = nth_srq_now(s).max_recv_dtos;

	CU_ASSERT_TRUE(size >= NTH_SMALL && size <= NTH_LARGE);
	nth_srq_use(s);
	return status;
}

/* Replaces b's endpoint by one on a queue of this size, and posts NTH_SMALL buffers. */
static void nth_srq_open(struct nth_scene *s, DAT_COUNT size)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 4, .max_request_dtos = 4, .max_request_iov = 1 };
	DAT_SRQ_ATTR queue = { .max_recv_dtos = size, .max_recv_iov = 2 };
	unsigned i;

	MUST(dat_ep_free(s->b.ep));
	MUST(dat_srq_free(s->srq));
	MUST(dat_srq_create(s->ia, s->pz, &queue, &s->srq));
	MUST(dat_ep_create_with_srq(s->ia, s->pz, s->b.recv, s->b.request, s->b.conn, s->srq, &attr,
				    &s->b.ep));
	connect_pair(&s->a, &s->b);
	memset(nth_posted, 0, sizeof(nth_posted));
	for (i = 0; i < NTH_SMALL; i++)
		MUST(nth_srq_post(s));
}

static void nth_srq_disconnect(struct nth_scene *s)
{
	DAT_EVENT event;

	disconnect_pair(&s->a, &s->b);
	if (event_next(s->env.async, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
	MUST(dat_ep_reset(s->a.ep));
}

static void nth_srq_small_again(struct nth_scene *s)
{
	nth_srq_disconnect(s);
	nth_srq_open(s, NTH_SMALL);
}

static void nth_srq_large_again(struct nth_scene *s)
{
	nth_srq_disconnect(s);
	nth_srq_open(s, NTH_LARGE);
}

/* If a device does not report the size it granted, the queue has the requested one. */
static const struct nth_step nth_srq_larger = { "dat_srq_resize, larger", nth_srq_grow,
						nth_srq_small_again, nth_srq_small_again, true },
			     nth_srq_smaller = { "dat_srq_resize, smaller", nth_srq_shrink,
						 nth_srq_large_again, nth_srq_large_again, true };

/* Undoes nth_srq_open. */
static inline void nth_srq_close(struct nth_scene *s)
{
	nth_srq_disconnect(s);
	MUST(dat_ep_free(s->b.ep));
	MUST(dat_ep_create(s->ia, s->pz, s->b.recv, s->b.request, s->b.conn, NULL, &s->b.ep));
}

#endif
