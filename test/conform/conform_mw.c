/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory windows of type 1 and type 2B. */
#include "test/conform/conform.h"

#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

struct window {
	struct pair pair;
	struct ibv_mw *mw;
	struct ibv_mr key;   /* a copy of b's region with the tested key */
	struct side through; /* b with that key, as the initiator addresses it */
};

static bool open_window(struct window *w, enum ibv_mw_type type, int mr_access)
{
	unsigned cap = type == IBV_MW_TYPE_1
			       ? IBV_DEVICE_MEM_WINDOW
			       : IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	if (!(device_attr.device_cap_flags & cap)) {
		skip("no memory windows of this type");
		return false;
	}
	if (!pair_open(&w->pair, &(struct pair_options){ .mr_access = mr_access }))
		return false;
	w->mw = ibv_alloc_mw(w->pair.b.pd, type);
	CU_ASSERT_PTR_NOT_NULL(w->mw);
	if (!w->mw) {
		pair_close(&w->pair);
		return false;
	}
	w->key = *w->pair.b.mr;
	w->key.rkey = w->mw->rkey;
	w->through = w->pair.b;
	w->through.mr = &w->key;
	return true;
}

static void close_window(struct window *w)
{
	CU_ASSERT_EQUAL(ibv_dealloc_mw(w->mw), 0);
	pair_close(&w->pair);
}

static struct ibv_mw_bind_info range(const struct window *w, uint32_t offset, uint32_t length,
				     int access)
{
	return (struct ibv_mw_bind_info){
		.mr = w->pair.b.mr,
		.addr = (uintptr_t)w->pair.b.buffer + offset,
		.length = length,
		.mw_access_flags = (unsigned)access,
	};
}

/* Binds a window of type 1 on b's QP: the call chooses the new key. */
static int bind1(struct window *w, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .wr_id = 7,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = info };
	int error = ibv_bind_mw(w->pair.b.qp, w->mw, &bind);

	w->key.rkey = w->mw->rkey;
	return error;
}

/* Binds a window of type 2 on b's QP: the program chooses the key. */
static int bind2(struct window *w, struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = w->mw, .rkey = ibv_inc_rkey(w->key.rkey), .bind_info = info },
	}, *bad;
	int error = ibv_post_send(w->pair.b.qp, &wr, &bad);

	if (!error)
		w->key.rkey = wr.bind_mw.rkey;
	return error;
}

static bool write_ends(struct window *w, uint32_t remote, enum ibv_wc_status status)
{
	return !post_rdma(&w->pair.a, IBV_WR_RDMA_WRITE, 9, 0, 8, &w->through, remote,
			  IBV_SEND_SIGNALED) &&
	       completes(w->pair.a.scq, 9, status, NULL);
}

static bool access_error(struct window *w)
{
	return device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, w->pair.b.qp);
}

static bool bound(struct window *w)
{
	struct ibv_wc wc;

	return completes(w->pair.b.scq, 7, IBV_WC_SUCCESS, &wc) && wc.opcode == IBV_WC_BIND_MW;
}

static bool refused(struct window *w)
{
	return completes_or_rxe(w->pair.b.scq, 7, IBV_WC_MW_BIND_ERR,
				rxe_local(IBV_WC_MW_BIND_ERR));
}

static void type1_opens_a_range(void)
{
	struct window w;

	if (!open_window(&w, IBV_MW_TYPE_1, BINDABLE))
		return;
	memset(w.pair.a.buffer, 1, 8);
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 64, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 64, IBV_WC_SUCCESS));
	CU_ASSERT_TRUE(write_ends(&w, 120, IBV_WC_SUCCESS));
	CU_ASSERT_EQUAL(w.pair.b.buffer[127], 1);
	if (!device_is_rxe) { /* rxe checks the bounds of the region only */
		CU_ASSERT_TRUE(write_ends(&w, 121, IBV_WC_REM_ACCESS_ERR));
		CU_ASSERT_TRUE(access_error(&w));
		CU_ASSERT_EQUAL(w.pair.b.buffer[128], 0);
	}
	close_window(&w);
}

static void type1_keeps_its_rights(void)
{
	struct window w;

	if (!open_window(&w, IBV_MW_TYPE_1, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_READ)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_EQUAL(post_rdma(&w.pair.a, IBV_WR_RDMA_READ, 3, 0, 8, &w.through, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(w.pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(write_ends(&w, 0, IBV_WC_REM_ACCESS_ERR));
	CU_ASSERT_TRUE(access_error(&w));
	close_window(&w);
}

static void type1_rebinds_and_unbinds(void)
{
	struct window w;
	uint32_t first;

	if (!open_window(&w, IBV_MW_TYPE_1, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	first = w.mw->rkey;
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 128, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_NOT_EQUAL(first, w.mw->rkey);
	CU_ASSERT_TRUE(write_ends(&w, 128, IBV_WC_SUCCESS));
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 0, 0, 0)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 128, IBV_WC_REM_ACCESS_ERR));
	CU_ASSERT_TRUE(access_error(&w));
	close_window(&w);
}

static void region_with_a_window_stays(void)
{
	struct window w;
	int error;

	if (!open_window(&w, IBV_MW_TYPE_1, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	error = ibv_dereg_mr(w.pair.b.mr);
	CU_ASSERT_TRUE(error == EBUSY || error == EINVAL);
	CU_ASSERT_TRUE(write_ends(&w, 0, IBV_WC_SUCCESS));
	close_window(&w);
}

static void bind_needs_the_right(void)
{
	struct window w;
	struct ibv_send_wr probe = { .wr_id = 8, .opcode = IBV_WR_SEND }, *bad;
	int error;

	if (!open_window(&w, IBV_MW_TYPE_1, IBV_ACCESS_LOCAL_WRITE))
		return;
	/* a device may find it when posting or when executing */
	error = bind1(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE));
	if (!error) {
		CU_ASSERT_TRUE(refused(&w));
		CU_ASSERT_TRUE(reaches(w.pair.b.qp, IBV_QPS_ERR));
		CU_ASSERT_EQUAL(ibv_post_send(w.pair.b.qp, &probe, &bad), 0);
		CU_ASSERT_TRUE(completes(w.pair.b.scq, 8, IBV_WC_WR_FLUSH_ERR, NULL));
	} else {
		CU_ASSERT_EQUAL(error, EINVAL);
	}
	close_window(&w);
}

static void bind_stays_in_the_region(void)
{
	struct window w;

	if (!open_window(&w, IBV_MW_TYPE_2, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind2(&w, range(&w, BUFFER - 32, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(refused(&w));
	CU_ASSERT_TRUE(reaches(w.pair.b.qp, IBV_QPS_ERR));
	close_window(&w);
}

static void type2_opens_a_range_of_its_qp(void)
{
	struct window w;
	struct pair other;

	if (!open_window(&w, IBV_MW_TYPE_2, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind2(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 0, IBV_WC_SUCCESS));
	if (pair_open(&other, NULL)) {
		CU_ASSERT_EQUAL(post_rdma(&other.a, IBV_WR_RDMA_WRITE, 4, 0, 8, &w.through, 0,
					  IBV_SEND_SIGNALED),
				0);
		CU_ASSERT_TRUE(completes(other.a.scq, 4, IBV_WC_REM_ACCESS_ERR, NULL));
		CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, other.b.qp));
		pair_close(&other);
	}
	CU_ASSERT_TRUE(write_ends(&w, 0, IBV_WC_SUCCESS));
	close_window(&w);
}

static bool invalidate(struct window *w)
{
	struct ibv_send_wr wr = {
		.wr_id = 6,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = w->key.rkey,
	}, *bad;
	struct ibv_wc wc;

	return !ibv_post_send(w->pair.b.qp, &wr, &bad) &&
	       completes(w->pair.b.scq, 6, IBV_WC_SUCCESS, &wc) && wc.opcode == IBV_WC_LOCAL_INV;
}

static void type2_local_invalidate(void)
{
	struct window w;

	if (device_is_rxe) {
		skip("kernel software RoCE binds a window of type 2 only once");
		return;
	}
	if (!open_window(&w, IBV_MW_TYPE_2, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind2(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(invalidate(&w));
	CU_ASSERT_EQUAL(bind2(&w, range(&w, 64, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 64, IBV_WC_SUCCESS));
	CU_ASSERT_TRUE(invalidate(&w));
	CU_ASSERT_TRUE(write_ends(&w, 64, IBV_WC_REM_ACCESS_ERR));
	CU_ASSERT_TRUE(access_error(&w));
	close_window(&w);
}

static void type2_is_bound_once(void)
{
	struct window w;

	if (!open_window(&w, IBV_MW_TYPE_2, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind2(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_EQUAL(bind2(&w, range(&w, 64, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(refused(&w));
	close_window(&w);
}

static void type2_remote_invalidate(void)
{
	struct window w;
	struct ibv_send_wr wr = { .wr_id = 5,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc = { 0 };

	if (!open_window(&w, IBV_MW_TYPE_2, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind2(&w, range(&w, 0, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 0, IBV_WC_SUCCESS));
	wr.invalidate_rkey = w.key.rkey;
	CU_ASSERT_EQUAL(post_recv(&w.pair.b, 2, 0, 0), 0);
	CU_ASSERT_EQUAL(ibv_post_send(w.pair.a.qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(w.pair.a.scq, 5, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(w.pair.b.rcq, 2, IBV_WC_SUCCESS, &wc));
	/* the kernel's software RoCE reports 4, a flag of another meaning */
	CU_ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_INV || (device_is_rxe && wc.wc_flags & 4));
	CU_ASSERT_EQUAL(wc.invalidated_rkey, w.key.rkey);
	CU_ASSERT_TRUE(write_ends(&w, 0, IBV_WC_REM_ACCESS_ERR));
	CU_ASSERT_TRUE(access_error(&w));
	close_window(&w);
}

/* Programs add the local right to those of a window, as they do for regions; it has no effect. */
static void local_right_is_ignored(void)
{
	struct window w;

	if (!open_window(&w, IBV_MW_TYPE_1, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind1(&w,
			      range(&w, 64, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE)),
			0);
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 64, IBV_WC_SUCCESS));
	close_window(&w);
}

static void region_with_a_window_is_not_changed(void)
{
	struct window w;

	if (!open_window(&w, IBV_MW_TYPE_1, BINDABLE))
		return;
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 64, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(bound(&w));
	errno = 0;
	CU_ASSERT_EQUAL(ibv_rereg_mr(w.pair.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_LOCAL_WRITE),
			IBV_REREG_MR_ERR_CMD);
	CU_ASSERT_TRUE(errno == EBUSY || (device_is_rxe && errno == EOPNOTSUPP));
	CU_ASSERT_TRUE(write_ends(&w, 64, IBV_WC_SUCCESS));
	close_window(&w);
}

/* ---- binds that wait in the send queue, behind a message without a receive ---- */

static int bind(struct window *w, struct ibv_mw_bind_info info)
{
	return w->mw->type == IBV_MW_TYPE_1 ? bind1(w, info) : bind2(w, info);
}

static bool open_waiting(struct window *w, enum ibv_mw_type type)
{
	if (device_is_rxe) {
		skip("kernel software RoCE uses the freed objects"); /* it uses the freed objects */
		return false;
	}
	if (!open_window(w, type, BINDABLE))
		return false;
	CU_ASSERT_EQUAL(post_send(&w->pair.b, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(bind(w, range(w, 64, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_TRUE(stays_empty(w->pair.b.scq));
	return true;
}

/* The message is received; then the bind fails, and the queue with it. */
static void bind_fails(struct window *w)
{
	CU_ASSERT_EQUAL(post_recv(&w->pair.a, 2, 0, 64), 0);
	CU_ASSERT_TRUE(completes(w->pair.b.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(refused(w));
	CU_ASSERT_TRUE(reaches(w->pair.b.qp, IBV_QPS_ERR));
}

/* The freed window's number and memory may belong to another window by then. */
static void window_is_freed(enum ibv_mw_type type)
{
	struct window w;

	if (!open_waiting(&w, type))
		return;
	CU_ASSERT_EQUAL(ibv_dealloc_mw(w.mw), 0);
	w.mw = ibv_alloc_mw(w.pair.b.pd, type);
	CU_ASSERT_PTR_NOT_NULL_FATAL(w.mw);
	bind_fails(&w);
	CU_ASSERT_EQUAL(ibv_dereg_mr(w.pair.b.mr), 0); /* no window is bound to it */
	w.pair.b.mr = NULL;
	close_window(&w);
}

static void type1_is_freed(void)
{
	window_is_freed(IBV_MW_TYPE_1);
}

static void type2_is_freed(void)
{
	window_is_freed(IBV_MW_TYPE_2);
}

static void region_is_freed(void)
{
	struct window w;

	if (!open_waiting(&w, IBV_MW_TYPE_1))
		return;
	CU_ASSERT_EQUAL(ibv_dereg_mr(w.pair.b.mr), 0);
	w.pair.b.mr = NULL;
	bind_fails(&w);
	close_window(&w);
}

/* A bind that was flushed or dropped no longer uses the window or the region. */
static void queue_ends(bool destroy)
{
	struct window w;

	if (!open_waiting(&w, IBV_MW_TYPE_2))
		return;
	CU_ASSERT_EQUAL(ibv_dealloc_mw(w.mw), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(w.pair.b.mr), 0);
	w.pair.b.mr = NULL;
	if (destroy) {
		CU_ASSERT_EQUAL(ibv_destroy_qp(w.pair.b.qp), 0);
		w.pair.b.qp = NULL;
	} else {
		CU_ASSERT_EQUAL(move_to(w.pair.b.qp, IBV_QPS_ERR), 0);
		CU_ASSERT_TRUE(completes(w.pair.b.scq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
		CU_ASSERT_TRUE(completes(w.pair.b.scq, 7, IBV_WC_WR_FLUSH_ERR, NULL));
	}
	pair_close(&w.pair);
}

static void queue_is_flushed(void)
{
	queue_ends(false);
}

static void queue_is_destroyed(void)
{
	queue_ends(true);
}

/* Two binds of one window wait: each uses the arguments that it was posted with. */
static void rebind_waits(void)
{
	struct window w;
	struct ibv_mr first;

	if (!open_waiting(&w, IBV_MW_TYPE_1))
		return;
	first = w.key;
	CU_ASSERT_EQUAL(bind1(&w, range(&w, 128, 64, IBV_ACCESS_REMOTE_WRITE)), 0);
	CU_ASSERT_EQUAL(post_recv(&w.pair.a, 2, 0, 64), 0);
	CU_ASSERT_TRUE(completes(w.pair.b.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(bound(&w));
	CU_ASSERT_TRUE(write_ends(&w, 128, IBV_WC_SUCCESS));
	w.key = first;
	CU_ASSERT_TRUE(write_ends(&w, 64, IBV_WC_REM_ACCESS_ERR));
	CU_ASSERT_TRUE(access_error(&w));
	close_window(&w);
}

static const struct unit_test tests[] = {
	{ "a window of type 1 is freed before its bind is executed", type1_is_freed },
	{ "a window of type 2 is freed before its bind is executed", type2_is_freed },
	{ "a region is freed before a bind to it is executed", region_is_freed },
	{ "a bind that waits is flushed after its objects are freed", queue_is_flushed },
	{ "a bind that waits is dropped by RESET after its objects are freed", queue_is_destroyed },
	{ "two binds of one window wait", rebind_waits },
	{ "a window opens its range and nothing beyond", type1_opens_a_range },
	{ "a window has only the rights it was bound with", type1_keeps_its_rights },
	{ "a new bind changes the key, length 0 unbinds", type1_rebinds_and_unbinds },
	{ "a region with a bound window is not deregistered", region_with_a_window_stays },
	{ "a region with a bound window is not changed", region_with_a_window_is_not_changed },
	{ "LOCAL_WRITE among the rights of a window is ignored", local_right_is_ignored },
	{ "bind without the MW_BIND right: EINVAL or MW_BIND_ERR, QP to ERR",
	  bind_needs_the_right },
	{ "bind beyond the region: MW_BIND_ERR, QP to ERR", bind_stays_in_the_region },
	{ "a window of type 2 is valid only on the QP that bound it",
	  type2_opens_a_range_of_its_qp },
	{ "after LOCAL_INV no access, and it can be bound anew", type2_local_invalidate },
	{ "a bound window is not bound again", type2_is_bound_once },
	{ "SEND_WITH_INV invalidates the key and reports it in the receive",
	  type2_remote_invalidate },
};

CONFORM_MAIN("conform_mw", tests)
