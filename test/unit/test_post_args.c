/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the posts, alone and with each later one, on a connected endpoint. */
#include "test/unit/spoil.h"

struct post_args {
	DAT_EP_HANDLE ep;
	DAT_COUNT count;
	DAT_LMR_TRIPLET segments[FAKE_MAX_SGE], *list;
	DAT_RMR_TRIPLET remote_value, *remote;
	DAT_COMPLETION_FLAGS flags;
};

/* An EP for datagrams, one on an SRQ, and one with full queues. */
static DAT_EP_HANDLE ud, fed, full;

static void post_good(void *args)
{
	struct post_args *a = args;
	int i;

	*a = (struct post_args){ .ep = things.ep,
				 .count = 1,
				 .list = a->segments,
				 .remote_value = { 0x5000, 64, 0x99 },
				 .remote = &a->remote_value };
	for (i = 0; i < FAKE_MAX_SGE; i++)
		a->segments[i] = (DAT_LMR_TRIPLET){ (uintptr_t)things_memory, 8, things.lkey };
}

/* Reaps the completion, which retires the request's slot. */
static void post_undo(void *args)
{
	(void)args;
	rig_complete(things.rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 8);
	rig_take(things.rig.request);
}

static void recv_undo(void *args)
{
	(void)args;
	rig_complete(things.rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 8);
	rig_take(things.rig.recv);
}

static const DAT_DTO_COOKIE cookie = { .as_64 = 7 };

#define POST(name, call)                    \
	static DAT_RETURN name(void *args)  \
	{                                   \
		struct post_args *a = args; \
		return call;                \
	}

POST(send_, dat_ep_post_send(a->ep, a->count, a->list, cookie, a->flags))
POST(recv_, dat_ep_post_recv(a->ep, a->count, a->list, cookie, a->flags))
POST(write_, dat_ep_post_rdma_write(a->ep, a->count, a->list, cookie, a->remote, a->flags))
POST(read_, dat_ep_post_rdma_read(a->ep, a->count, a->list, cookie, a->remote, a->flags))
POST(send_inv,
     dat_ep_post_send_with_invalidate(a->ep, a->count, a->list, cookie, a->flags, DAT_TRUE, 3))
POST(add, dat_ib_post_fetch_and_add(a->ep, 1, a->list, cookie, a->remote, a->flags))
POST(swap, dat_ib_post_cmp_and_swap(a->ep, 1, 2, a->list, cookie, a->remote, a->flags))
POST(immed, dat_ib_post_rdma_write_immed(a->ep, a->count, a->list, cookie, a->remote, 5, a->flags))

SPOIL(post_args, bad_ep, a->ep = things.evd)
SPOIL(post_args, datagrams, a->ep = ud)
SPOIL(post_args, on_srq, a->ep = fed)
SPOIL(post_args, full_queue, a->ep = full)
SPOIL(post_args, negative, a->count = -1)
SPOIL(post_args, too_many, a->count = FAKE_MAX_SGE + 1)
SPOIL(post_args, no_list, a->list = NULL)
SPOIL(post_args, no_remote, a->remote = NULL)
SPOIL(post_args, threshold_flag, a->flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG)
SPOIL(post_args, kernel_flag, a->flags = (DAT_COMPLETION_FLAGS)0x20)
SPOIL(post_args, unknown_flag, a->flags = (DAT_COMPLETION_FLAGS)0x4000)
SPOIL(post_args, unsignalled_flag, a->flags = DAT_COMPLETION_UNSIGNALLED_FLAG)
SPOIL(post_args, suppress_flag, a->flags = DAT_COMPLETION_SUPPRESS_FLAG)
SPOIL(post_args, solicited_flag, a->flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG)
SPOIL(post_args, fence_flag, a->flags = DAT_COMPLETION_BARRIER_FENCE_FLAG)
SPOIL(post_args, too_long, a->segments[0].segment_length = FAKE_MAX_MESSAGE + 1)
SPOIL(post_args, state, a->ep = things.reserved)
SPOIL(post_args, short_word, a->segments[0].segment_length = 7)
SPOIL(post_args, odd_place, a->remote_value.virtual_address = 0x5004)

#define P(arg) E(INVALID_PARAMETER, INVALID_##arg)
#define REQUEST_FLAGS(arg, n)                                                                  \
	{ "threshold", threshold_flag, P(arg), n }, { "kernel flag", kernel_flag, P(arg), n }, \
		{ "unknown flag", unknown_flag, P(arg), n },                                   \
	{                                                                                      \
		"unsignalled", unsignalled_flag, P(arg), n                                     \
	}
#define EP_ROW                                                        \
	{                                                             \
		"ep", bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 \
	}
#define EP_ROWS                                                                       \
	EP_ROW,                                                                       \
	{                                                                             \
		"ep of datagrams", datagrams, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 \
	}
#define FULL_ROW                                                                  \
	{                                                                         \
		"full", full_queue, E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY), 1 \
	}
#define COUNT_ROWS                               \
	{ "negative", negative, P(ARG2), 2 },    \
	{                                        \
		"too many", too_many, P(ARG2), 2 \
	}
#define LIST_ROW                               \
	{                                      \
		"no list", no_list, P(ARG3), 3 \
	}
#define LENGTH_ROW(arg)                         \
	{                                       \
		"too long", too_long, P(arg), 3 \
	}
#define STATE_ROW                                                              \
	{                                                                      \
		"state", state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 \
	}

static const struct spoil_row send_rows[] = {
	EP_ROWS,	  COUNT_ROWS, LIST_ROW, REQUEST_FLAGS(ARG5, 5),
	LENGTH_ROW(ARG3), STATE_ROW,  FULL_ROW,
};

/* A receive may be posted in any state and with any length. */
static const struct spoil_row recv_rows[] = {
	EP_ROW,
	{ "srq", on_srq, E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE), 1 },
	COUNT_ROWS,
	LIST_ROW,
	REQUEST_FLAGS(ARG5, 5),
	{ "suppress", suppress_flag, P(ARG5), 5 },
	{ "solicited", solicited_flag, P(ARG5), 5 },
	{ "fence", fence_flag, P(ARG5), 5 },
	FULL_ROW,
};

static const struct spoil_row rdma_rows[] = {
	EP_ROWS,
	COUNT_ROWS,
	LIST_ROW,
	{ "no remote", no_remote, P(ARG5), 4 },
	REQUEST_FLAGS(ARG6, 5),
	LENGTH_ROW(ARG3),
	STATE_ROW,
	FULL_ROW,
};

/* The remote segment follows the cookie: ARG5 of the macros with one operand, ARG6 with two. */
static const struct spoil_row add_rows[] = {
	EP_ROWS,
	{ "no list", no_list, P(ARG3), 3 },
	{ "short", short_word, P(ARG3), 3 },
	{ "no remote", no_remote, P(ARG5), 5 },
	{ "odd", odd_place, P(ARG5), 5 },
	REQUEST_FLAGS(ARG6, 6),
	STATE_ROW,
	FULL_ROW,
};

static const struct spoil_row swap_rows[] = {
	EP_ROWS,
	{ "no list", no_list, P(ARG4), 3 },
	{ "short", short_word, P(ARG4), 3 },
	{ "no remote", no_remote, P(ARG6), 5 },
	{ "odd", odd_place, P(ARG6), 5 },
	REQUEST_FLAGS(ARG7, 6),
	STATE_ROW,
	FULL_ROW,
};

static const struct spoil_row immed_rows[] = {
	EP_ROWS,
	COUNT_ROWS,
	LIST_ROW,
	{ "no remote", no_remote, P(ARG5), 5 },
	REQUEST_FLAGS(ARG7, 7),
	LENGTH_ROW(ARG3),
	STATE_ROW,
	FULL_ROW,
};

#define ROWS(rows) rows, COUNT(rows)

static const struct spoil_call calls[] = {
	{ "dat_ep_post_send", sizeof(struct post_args), post_good, send_, post_undo,
	  ROWS(send_rows) },
	{ "dat_ep_post_recv", sizeof(struct post_args), post_good, recv_, recv_undo,
	  ROWS(recv_rows) },
	{ "dat_ep_post_rdma_write", sizeof(struct post_args), post_good, write_, post_undo,
	  ROWS(rdma_rows) },
	{ "dat_ep_post_rdma_read", sizeof(struct post_args), post_good, read_, post_undo,
	  ROWS(rdma_rows) },
	{ "dat_ep_post_send_with_invalidate", sizeof(struct post_args), post_good, send_inv,
	  post_undo, ROWS(send_rows) },
	{ "dat_ib_post_fetch_and_add", sizeof(struct post_args), post_good, add, post_undo,
	  ROWS(add_rows) },
	{ "dat_ib_post_cmp_and_swap", sizeof(struct post_args), post_good, swap, post_undo,
	  ROWS(swap_rows) },
	{ "dat_ib_post_rdma_write_immed", sizeof(struct post_args), post_good, immed, post_undo,
	  ROWS(immed_rows) },
};

static void open_others(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig other = things.rig;

	MUST(dat_ep_create_with_srq(things.ia, things.pz, things.rig.recv, things.rig.request,
				    things.evd, things.srq, &attr, &fed));
	attr.max_recv_dtos = attr.max_request_dtos = 1;
	MUST(dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request, things.evd,
			   &attr, &full));
	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	MUST(dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request, things.evd,
			   &attr, &ud));
	other.ep = full;
	rig_connect(&other);
	while (rig_send(&other, 1, 0) == DAT_SUCCESS)
		;
	while (rig_recv(&other, 1) == DAT_SUCCESS)
		;
	other.ep = fed;
	rig_connect(&other);
}

static void close_others(void)
{
	MUST(dat_ep_free(ud));
	MUST(dat_ep_free(full));
	MUST(dat_ep_free(fed));
}

static void run_all(size_t first, size_t last)
{
	size_t i;

	fake.datagrams = true;
	things_open();
	open_others();
	rig_connect(&things.rig);
	for (i = first; i < last; i++)
		spoil_run(&calls[i]);
	close_others();
	things_close();
}

static void test_messages(void)
{
	run_all(0, 2);
}
static void test_rdma(void)
{
	run_all(2, 4);
}
static void test_invalidate(void)
{
	run_all(4, 5);
}
static void test_extensions(void)
{
	run_all(5, COUNT(calls));
}

static const struct unit_test tests[] = {
	{ "send and receive: each check, alone and with each later one", test_messages },
	{ "write and read: each check, alone and with each later one", test_rdma },
	{ "send_with_invalidate: each check, alone and with each later one", test_invalidate },
	{ "each row and pair", test_extensions },
};

UNIT_MAIN("post_args", tests)
