/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the calls with few arguments and of the event extension, alone and with each later one. */
#include <poll.h>
#include <dat2/dat_event_extensions.h>
#include "test/unit/spoil.h"

struct call_args {
	DAT_HANDLE h, other; /* the object of the call, and a second one */
	DAT_COUNT n;
	DAT_UINT32 flags;
	void *p, *q, *r; /* inputs and outputs */
	DAT_UINT64 mask;
};

static DAT_LMR_TRIPLET triplet = { 0x1000, 8, FAKE_LKEY };
static DAT_EVENT software = { .event_number = DAT_SOFTWARE_EVENT };
static DAT_EVENT transfer = { .event_number = DAT_DTO_COMPLETION_EVENT };
static struct pollfd room[8];
static DAT_EV_POLLFDS enough = { .nfds = COUNT(room), .fds = room };
static DAT_EV_POLLFDS negative_fds = { .nfds = -1 }, lost_fds = { .nfds = 2 };
static DAT_HANDLE listed[2], spoilt[2];
static DAT_UINT64 word[2];
static DAT_HANDLE set, member;

/* Maps statuses that are not errors, such as DAT_QUEUE_EMPTY, to DAT_SUCCESS. */
static DAT_RETURN plain(DAT_RETURN status)
{
	return status == DAT_QUEUE_EMPTY || status == DAT_EV_BUSY ? DAT_SUCCESS : status;
}

#define GOOD(name, ...)                                                        \
	static void good_##name(void *args)                                    \
	{                                                                      \
		*(struct call_args *)args = (struct call_args){ __VA_ARGS__ }; \
	}
#define CALL(name, expression, ...)             \
	static DAT_RETURN on_##name(void *args) \
	{                                       \
		struct call_args *a = args;     \
		return plain(expression);       \
	}                                       \
	GOOD(name, __VA_ARGS__)
#define UNDO(name, statement)               \
	static void undo_##name(void *args) \
	{                                   \
		struct call_args *a = args; \
		(void)a;                    \
		OK(statement);              \
	}

CALL(srq_post, dat_srq_post_recv(a->h, a->n, a->p, (DAT_DTO_COOKIE){ 0 }), .h = things.srq, .n = 1,
     .p = &triplet)
CALL(srq_resize, dat_srq_resize(a->h, a->n), .h = things.srq, .n = 8)
CALL(srq_low, dat_srq_set_lw(a->h, a->n), .h = things.srq)
CALL(evd_resize, dat_evd_resize(a->h, a->n), .h = things.software, .n = RIG_QLEN)
CALL(dequeue, dat_evd_dequeue(a->h, a->p), .h = things.software, .p = &things_out.event)
CALL(post_se, dat_evd_post_se(a->h, a->p), .h = things.software, .p = &software)
UNDO(post_se, dat_evd_dequeue(a->h, &(DAT_EVENT){ 0 }))
CALL(modify_cno, dat_evd_modify_cno(a->h, a->other), .h = things.evd, .other = things.cno)
UNDO(modify_cno, dat_evd_modify_cno(a->h, DAT_HANDLE_NULL))
CALL(cno_wait, dat_cno_wait(a->h, 0, a->p), .h = things.cno, .p = &things_out.handle)
CALL(cno_trigger, dat_cno_trigger(a->h, a->p), .h = things.cno, .p = &things_out.handle)
CALL(cno, dat_cno_create(a->h, DAT_OS_WAIT_PROXY_AGENT_NULL, a->p), .h = things.ia,
     .p = &things_out.handle)
CALL(cno_fd, dat_cno_fd_create(a->h, a->q, a->p), .h = things.ia, .p = &things_out.handle,
     .q = &things_out.fd)
UNDO(cno, dat_cno_free(*(DAT_HANDLE *)a->p))
CALL(pz, dat_pz_create(a->h, a->p), .h = things.ia, .p = &things_out.handle)
UNDO(pz, dat_pz_free(*(DAT_HANDLE *)a->p))
CALL(rmr, dat_rmr_create(a->h, a->p), .h = things.pz, .p = &things_out.handle)
CALL(rmr_ep, dat_rmr_create_for_ep(a->h, a->p), .h = things.pz, .p = &things_out.handle)
UNDO(rmr, dat_rmr_free(*(DAT_HANDLE *)a->p))
CALL(sync_read, dat_lmr_sync_rdma_read(a->h, a->p, (DAT_VLEN)a->n), .h = things.ia, .n = 1,
     .p = &triplet)
CALL(sync_write, dat_lmr_sync_rdma_write(a->h, a->p, (DAT_VLEN)a->n), .h = things.ia, .n = 1,
     .p = &triplet)

CALL(version, DAT_EV_VERSION(a->h, a->p, a->q), .h = things.ia, .p = &things_out.count,
     .q = &things_out.span)
CALL(evd_fd, DAT_EVD_GET_FD(a->h, a->p), .h = things.evd, .p = &things_out.fd)
CALL(arm, DAT_EVD_ARM(a->h, a->flags, a->n), .h = things.software, .n = 1)
CALL(many, DAT_EVD_DEQUEUE_N(a->h, a->n, a->p, a->q), .h = things.software, .n = 1,
     .p = &things_out.event, .q = &things_out.count)
CALL(pending, DAT_EVD_PENDING(a->h, a->p), .h = things.evd, .p = &things_out.count)
CALL(policy, DAT_EVD_WAIT_POLICY(a->h, a->flags, 0), .h = things.evd, .flags = DAT_EV_WAIT_BLOCK)
CALL(cno_get_fd, DAT_CNO_GET_FD(a->h, a->p), .h = things.cno, .p = &things_out.fd)
CALL(cno_arm, DAT_CNO_ARM(a->h, a->flags), .h = things.cno)
CALL(cno_poll, DAT_CNO_POLL(a->h, a->n, a->p, a->q), .h = things.cno, .n = 1,
     .p = &things_out.handle, .q = &things_out.count)
CALL(pollfds, DAT_CNO_GET_POLLFDS(a->h, a->p), .h = things.cno, .p = &enough)
CALL(trywait, DAT_TRYWAIT(a->h, a->p, a->n, a->q), .h = things.ia, .n = 2, .p = listed, .q = NULL)
CALL(wait_mem, DAT_WAIT_MEM(a->h, a->p, a->mask, 5, 0), .h = things.ia, .p = word, .mask = 1)
CALL(set, DAT_PSET_CREATE(a->h, a->p), .h = things.ia, .p = &things_out.handle)
UNDO(set, DAT_PSET_FREE(*(DAT_HANDLE *)a->p))
CALL(set_add, DAT_PSET_ADD(a->h, a->other), .h = set, .other = things.software)
UNDO(set_add, DAT_PSET_DEL(a->h, a->other))
CALL(set_del, DAT_PSET_DEL(a->h, a->other), .h = set, .other = member)
UNDO(set_del, DAT_PSET_ADD(a->h, a->other))
CALL(set_poll, DAT_PSET_POLL(a->h, a->n, a->p, a->q), .h = set, .n = 1, .p = &things_out.handle,
     .q = &things_out.count)

SPOIL(call_args, not_it, a->h = things.psp)
SPOIL(call_args, no_ia, a->h = things.evd)
SPOIL(call_args, no_p, a->p = NULL)
SPOIL(call_args, no_q, a->q = NULL)
SPOIL(call_args, none, a->n = 0)
SPOIL(call_args, negative, a->n = -1)
SPOIL(call_args, three_more, a->n = 4)
SPOIL(call_args, nine, a->n = RIG_QLEN + 1)
SPOIL(call_args, most_wr, a->n = 33)
SPOIL(call_args, most_cqe, a->n = FAKE_MAX_CQE + 1)
SPOIL(call_args, strange_flags, a->flags = 0x80000002)
SPOIL(call_args, no_software, a->h = things.evd)
SPOIL(call_args, other_number, a->p = &transfer)
SPOIL(call_args, other_kind, a->other = things.psp)
SPOIL(call_args, unwaitable, a->h = things.requests)
SPOIL(call_args, less_than_none, a->p = &negative_fds)
SPOIL(call_args, nowhere, a->p = &lost_fds)
SPOIL(call_args, one_of_two, a->p = spoilt)
SPOIL(call_args, odd, a->p = (char *)word + 4)
SPOIL(call_args, no_bits, a->mask = 0)
SPOIL(call_args, no_member, a->other = things.software)
SPOIL(call_args, twice, a->other = member)

#define HANDLE(spoil, subtype)                                 \
	{                                                      \
		"handle", spoil, E(INVALID_HANDLE, subtype), 1 \
	}
#define ARG(what, spoil, number)                                               \
	{                                                                      \
		what, spoil, E(INVALID_PARAMETER, INVALID_ARG##number), number \
	}
#define ROWS(name) static const struct spoil_row rows_##name[] =

ROWS(srq_post){ HANDLE(not_it, INVALID_HANDLE_SRQ), ARG("negative", negative, 2),
		ARG("more than there may be", three_more, 2), ARG("nothing", no_p, 3) };
ROWS(srq_resize){ HANDLE(not_it, INVALID_HANDLE_SRQ), ARG("none", none, 2),
		  ARG("negative", negative, 2), ARG("too many", most_wr, 2) };
ROWS(srq_low){ HANDLE(not_it, INVALID_HANDLE_SRQ), ARG("negative", negative, 2),
	       ARG("too many", nine, 2) };
ROWS(evd_resize){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST), ARG("none", none, 2),
		  ARG("negative", negative, 2), ARG("too many", most_cqe, 2) };
ROWS(dequeue){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST), ARG("no place", no_p, 2) };
ROWS(post_se){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST), ARG("not for such", no_software, 1),
	       ARG("nothing", no_p, 2), ARG("another event", other_number, 2) };
ROWS(modify_cno){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST),
		  { "no cno", other_kind, E(INVALID_HANDLE, INVALID_HANDLE_CNO), 2 } };
ROWS(cno_wait){ HANDLE(not_it, INVALID_HANDLE_CNO), ARG("no place", no_p, 3) };
ROWS(cno_trigger){ HANDLE(not_it, INVALID_HANDLE_CNO), ARG("no place", no_p, 2) };
ROWS(cno){ HANDLE(no_ia, INVALID_HANDLE_IA), ARG("no place", no_p, 3) };
ROWS(cno_fd){ HANDLE(no_ia, INVALID_HANDLE_IA), ARG("no descriptor", no_q, 2),
	      ARG("no place", no_p, 3) };
ROWS(pz){ HANDLE(no_ia, INVALID_HANDLE_IA), ARG("no place", no_p, 2) };
ROWS(rmr){ HANDLE(not_it, INVALID_HANDLE_PZ), ARG("no place", no_p, 2) };
ROWS(sync){ HANDLE(no_ia, INVALID_HANDLE_IA), ARG("nothing", no_p, 2) };

ROWS(version){ HANDLE(not_it, INVALID_HANDLE1), ARG("no major", no_p, 3),
	       ARG("no minor", no_q, 4) };
ROWS(evd_fd){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST), ARG("no place", no_p, 3) };
ROWS(arm){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST),
	   ARG("flags", strange_flags, 3),
	   ARG("none", none, 4),
	   ARG("too many", nine, 4),
	   { "unwaitable", unwaitable, E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE), 1 } };
ROWS(many){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST), ARG("none", none, 3),
	    ARG("negative", negative, 3), ARG("no place", no_p, 4), ARG("no number", no_q, 5) };
ROWS(policy){ HANDLE(not_it, INVALID_HANDLE_EVD_REQUEST), ARG("policy", strange_flags, 3) };
ROWS(cno_get_fd){ HANDLE(not_it, INVALID_HANDLE_CNO), ARG("no place", no_p, 3) };
ROWS(cno_arm){ HANDLE(not_it, INVALID_HANDLE_CNO), ARG("flags", strange_flags, 3) };
ROWS(cno_poll){ HANDLE(not_it, INVALID_HANDLE_CNO), ARG("none", none, 3),
		ARG("negative", negative, 3), ARG("no place", no_p, 4), ARG("no number", no_q, 5) };
ROWS(pollfds){ HANDLE(not_it, INVALID_HANDLE_CNO), ARG("nothing", no_p, 3),
	       ARG("negative", less_than_none, 3), ARG("no place", nowhere, 3) };
ROWS(trywait){ HANDLE(not_it, INVALID_HANDLE1),
	       ARG("nothing", no_p, 3),
	       ARG("none", none, 4),
	       ARG("negative", negative, 4),
	       { "the second one", one_of_two, E(INVALID_HANDLE, INVALID_HANDLE1), 3 } };
ROWS(wait_mem){ HANDLE(not_it, INVALID_HANDLE1), ARG("nothing", no_p, 3),
		ARG("not aligned", odd, 3), ARG("no bits", no_bits, 4) };
ROWS(set){ HANDLE(not_it, INVALID_HANDLE1), ARG("no place", no_p, 3) };
ROWS(set_add){ HANDLE(not_it, INVALID_HANDLE1),
	       { "no evd", other_kind, E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST), 3 },
	       { "twice", twice, E(INVALID_STATE, INVALID_STATE_EVD_IN_USE), 3 } };
ROWS(set_del){ HANDLE(not_it, INVALID_HANDLE1), ARG("no member", no_member, 3) };
ROWS(set_poll){ HANDLE(not_it, INVALID_HANDLE1), ARG("none", none, 3), ARG("negative", negative, 3),
		ARG("no place", no_p, 4), ARG("no number", no_q, 5) };

#define ENTRY(call, name, undo, rows)                                                      \
	{                                                                                  \
		call, sizeof(struct call_args), good_##name, on_##name, undo, rows_##rows, \
			COUNT(rows_##rows)                                                 \
	}

static const struct spoil_call small[] = {
	ENTRY("dat_srq_post_recv", srq_post, NULL, srq_post),
	ENTRY("dat_srq_resize", srq_resize, NULL, srq_resize),
	ENTRY("dat_srq_set_lw", srq_low, NULL, srq_low),
	ENTRY("dat_evd_resize", evd_resize, NULL, evd_resize),
	ENTRY("dat_evd_dequeue", dequeue, NULL, dequeue),
	ENTRY("dat_evd_post_se", post_se, undo_post_se, post_se),
	ENTRY("dat_evd_modify_cno", modify_cno, undo_modify_cno, modify_cno),
	ENTRY("dat_cno_wait", cno_wait, NULL, cno_wait),
	ENTRY("dat_cno_trigger", cno_trigger, NULL, cno_trigger),
	ENTRY("dat_cno_create", cno, undo_cno, cno),
	ENTRY("dat_cno_fd_create", cno_fd, undo_cno, cno_fd),
	ENTRY("dat_pz_create", pz, undo_pz, pz),
	ENTRY("dat_rmr_create", rmr, undo_rmr, rmr),
	ENTRY("dat_rmr_create_for_ep", rmr_ep, undo_rmr, rmr),
	ENTRY("dat_lmr_sync_rdma_read", sync_read, NULL, sync),
	ENTRY("dat_lmr_sync_rdma_write", sync_write, NULL, sync),
}, events[] = {
	ENTRY("DAT_EV_VERSION", version, NULL, version),
	ENTRY("DAT_EVD_GET_FD", evd_fd, NULL, evd_fd),
	ENTRY("DAT_EVD_ARM", arm, NULL, arm),
	ENTRY("DAT_EVD_DEQUEUE_N", many, NULL, many),
	ENTRY("DAT_EVD_PENDING", pending, NULL, evd_fd),
	ENTRY("DAT_EVD_WAIT_POLICY", policy, NULL, policy),
	ENTRY("DAT_CNO_GET_FD", cno_get_fd, NULL, cno_get_fd),
	ENTRY("DAT_CNO_ARM", cno_arm, NULL, cno_arm),
	ENTRY("DAT_CNO_POLL", cno_poll, NULL, cno_poll),
	ENTRY("DAT_CNO_GET_POLLFDS", pollfds, NULL, pollfds),
	ENTRY("DAT_TRYWAIT", trywait, NULL, trywait),
	ENTRY("DAT_WAIT_MEM", wait_mem, NULL, wait_mem),
	ENTRY("DAT_PSET_CREATE", set, undo_set, set),
	ENTRY("DAT_PSET_ADD", set_add, undo_set_add, set_add),
	ENTRY("DAT_PSET_DEL", set_del, undo_set_del, set_del),
	ENTRY("DAT_PSET_POLL", set_poll, NULL, set_poll),
};

static void test_small(void)
{
	size_t i;

	things_open();
	for (i = 0; i < COUNT(small); i++)
		spoil_run(&small[i]);
	things_close();
}

static void test_events(void)
{
	size_t i;

	things_open();
	member = things.evd;
	listed[0] = spoilt[0] = things.evd;
	listed[1] = things.cno;
	spoilt[1] = things.psp;
	MUST(DAT_PSET_CREATE(things.ia, &set));
	MUST(DAT_PSET_ADD(set, member));
	MUST(dat_evd_set_unwaitable(things.requests));
	for (i = 0; i < COUNT(events); i++)
		spoil_run(&events[i]);
	MUST(dat_evd_clear_unwaitable(things.requests));
	MUST(DAT_PSET_DEL(set, member));
	MUST(DAT_PSET_FREE(set));
	things_close();
}

static const struct unit_test tests[] = {
	{ "calls with few arguments: each check, alone and with each later one", test_small },
	{ "the event extension: each check, alone and with each later one", test_events },
};

UNIT_MAIN("call_args", tests)
