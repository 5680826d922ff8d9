/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Every handle argument of every call with every wrong handle: none, an object of each other kind,
 * a freed one. Each returns E(INVALID_HANDLE, <its subtype>) and writes no output.
 */
#include "test/unit/things.h"

#define NO_COOKIE ((DAT_DTO_COOKIE){ 0 })

typedef DAT_RETURN call(const struct things *t, DAT_HANDLE h, union things_out *o);

static DAT_RMR_TRIPLET remote = { 0x5000, 8, 0x99 };
static DAT_LMR_TRIPLET local = { 0x1000, 8, FAKE_LKEY };
static DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
static DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
static const DAT_OS_WAIT_PROXY_AGENT no_agent = { NULL, NULL };

/* A call with one handle under test; `t` has its other arguments, `o` its outputs. */
#define CALL(name, expression)                                                                 \
	static DAT_RETURN on_##name(const struct things *t, DAT_HANDLE h, union things_out *o) \
	{                                                                                      \
		(void)t;                                                                       \
		(void)o;                                                                       \
		return expression;                                                             \
	}

CALL(ia_query,
     dat_ia_query(h, &o->handle, DAT_IA_FIELD_ALL, &o->ia, DAT_PROVIDER_FIELD_ALL, &o->provider))
CALL(ia_close, dat_ia_close(h, DAT_CLOSE_GRACEFUL_FLAG))
CALL(pz_create, dat_pz_create(h, &o->handle))
CALL(pz_query, dat_pz_query(h, DAT_PZ_FIELD_ALL, &o->pz))
CALL(pz_free, dat_pz_free(h))
static DAT_RETURN lmr_make(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_MEM_TYPE type,
			   DAT_REGION_DESCRIPTION region, union things_out *o)
{
	return dat_lmr_create(ia, type, region, 64, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			      &o->handle, &o->lkey, &o->rkey, &o->size, &o->address);
}
#define MEMORY ((DAT_REGION_DESCRIPTION){ .for_va = things_memory })
CALL(lmr_create_ia, lmr_make(h, t->pz, DAT_MEM_TYPE_VIRTUAL, MEMORY, o))
CALL(lmr_create_pz, lmr_make(t->ia, h, DAT_MEM_TYPE_VIRTUAL, MEMORY, o))
CALL(lmr_create_lmr,
     lmr_make(t->ia, t->pz, DAT_MEM_TYPE_LMR, ((DAT_REGION_DESCRIPTION){ .for_lmr_handle = h }), o))
CALL(lmr_query, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &o->lmr))
CALL(lmr_free, dat_lmr_free(h))
CALL(lmr_sync_read, dat_lmr_sync_rdma_read(h, &local, 1))
CALL(lmr_sync_write, dat_lmr_sync_rdma_write(h, &local, 1))
CALL(rmr_create, dat_rmr_create(h, &o->handle))
CALL(rmr_create_for_ep, dat_rmr_create_for_ep(h, &o->handle))
CALL(rmr_query, dat_rmr_query(h, DAT_RMR_FIELD_ALL & ~DAT_RMR_FIELD_LMR_TRIPLET, &o->rmr))
CALL(rmr_free, dat_rmr_free(h))
CALL(rmr_bind_rmr, dat_rmr_bind(h, t->lmr, &local, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
				t->ep, NO_COOKIE, 0, &o->rkey))
CALL(rmr_bind_ep, dat_rmr_bind(t->rmr, t->lmr, &local, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			       DAT_VA_TYPE_VA, h, NO_COOKIE, 0, &o->rkey))
CALL(rmr_bind_lmr, dat_rmr_bind(t->rmr, h, &local, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
				t->ep, NO_COOKIE, 0, &o->rkey))
CALL(evd_create, dat_evd_create(h, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &o->handle))
CALL(evd_create_cno, dat_evd_create(t->ia, 8, h, DAT_EVD_DTO_FLAG, &o->handle))
CALL(evd_query, dat_evd_query(h, DAT_EVD_FIELD_ALL, &o->evd))
CALL(evd_modify_cno, dat_evd_modify_cno(h, t->cno))
CALL(evd_modify_cno_cno, dat_evd_modify_cno(t->evd, h))
CALL(evd_enable, dat_evd_enable(h))
CALL(evd_disable, dat_evd_disable(h))
CALL(evd_wait, dat_evd_wait(h, 0, 1, &o->event, &o->count))
CALL(evd_dequeue, dat_evd_dequeue(h, &o->event))
CALL(evd_post_se, dat_evd_post_se(h, &(DAT_EVENT){ .event_number = DAT_SOFTWARE_EVENT }))
CALL(evd_resize, dat_evd_resize(h, 8))
CALL(evd_free, dat_evd_free(h))
CALL(evd_set_unwaitable, dat_evd_set_unwaitable(h))
CALL(evd_clear_unwaitable, dat_evd_clear_unwaitable(h))
CALL(cno_create, dat_cno_create(h, no_agent, &o->handle))
CALL(cno_fd_create, dat_cno_fd_create(h, &o->fd, &o->handle))
CALL(cno_query, dat_cno_query(h, DAT_CNO_FIELD_ALL, &o->cno))
CALL(cno_modify_agent, dat_cno_modify_agent(h, no_agent))
CALL(cno_wait, dat_cno_wait(h, 0, &o->handle))
CALL(cno_trigger, dat_cno_trigger(h, &o->handle))
CALL(cno_free, dat_cno_free(h))
CALL(ep_create, dat_ep_create(h, t->pz, t->rig.recv, t->rig.request, t->evd, NULL, &o->handle))
CALL(ep_create_pz, dat_ep_create(t->ia, h, t->rig.recv, t->rig.request, t->evd, NULL, &o->handle))
CALL(ep_create_recv, dat_ep_create(t->ia, t->pz, h, t->rig.request, t->evd, NULL, &o->handle))
CALL(ep_create_request, dat_ep_create(t->ia, t->pz, t->rig.recv, h, t->evd, NULL, &o->handle))
CALL(ep_create_connect,
     dat_ep_create(t->ia, t->pz, t->rig.recv, t->rig.request, h, NULL, &o->handle))
static DAT_RETURN ep_srq_make(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			      DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq,
			      union things_out *o)
{
	DAT_EP_ATTR attr = rig_attr();

	return dat_ep_create_with_srq(ia, pz, recv, request, connect, srq, &attr, &o->handle);
}
CALL(ep_srq_ia, ep_srq_make(h, t->pz, t->rig.recv, t->rig.request, t->evd, t->srq, o))
CALL(ep_srq_pz, ep_srq_make(t->ia, h, t->rig.recv, t->rig.request, t->evd, t->srq, o))
CALL(ep_srq_recv, ep_srq_make(t->ia, t->pz, h, t->rig.request, t->evd, t->srq, o))
CALL(ep_srq_request, ep_srq_make(t->ia, t->pz, t->rig.recv, h, t->evd, t->srq, o))
CALL(ep_srq_connect, ep_srq_make(t->ia, t->pz, t->rig.recv, t->rig.request, h, t->srq, o))
CALL(ep_srq_srq, ep_srq_make(t->ia, t->pz, t->rig.recv, t->rig.request, t->evd, h, o))
CALL(ep_query, dat_ep_query(h, DAT_EP_FIELD_ALL, &o->ep))
CALL(ep_modify, dat_ep_modify(h, DAT_EP_FIELD_PZ_HANDLE, &(DAT_EP_PARAM){ .pz_handle = t->pz }))
CALL(ep_get_status, dat_ep_get_status(h, &o->state, &o->idle[0], &o->idle[1]))
CALL(ep_connect, dat_ep_connect(h, t->address, 7, 1000, 0, NULL, DAT_QOS_BEST_EFFORT, 0))
CALL(ep_dup_connect, dat_ep_dup_connect(h, t->ep, 1000, 0, NULL, DAT_QOS_BEST_EFFORT))
CALL(ep_dup_connect_dup, dat_ep_dup_connect(t->ep, h, 1000, 0, NULL, DAT_QOS_BEST_EFFORT))
CALL(ep_common_connect, dat_ep_common_connect(h, t->address, 1000, 0, NULL))
CALL(ep_disconnect, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(ep_reset, dat_ep_reset(h))
CALL(ep_free, dat_ep_free(h))
CALL(ep_recv_query, dat_ep_recv_query(h, &o->count, &o->span))
CALL(ep_set_watermark, dat_ep_set_watermark(h, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE))
CALL(ep_post_send, dat_ep_post_send(h, 1, &local, NO_COOKIE, 0))
CALL(ep_post_recv, dat_ep_post_recv(h, 1, &local, NO_COOKIE, 0))
CALL(ep_post_read, dat_ep_post_rdma_read(h, 1, &local, NO_COOKIE, &remote, 0))
CALL(ep_post_write, dat_ep_post_rdma_write(h, 1, &local, NO_COOKIE, &remote, 0))
CALL(ep_post_invalidate, dat_ep_post_send_with_invalidate(h, 1, &local, NO_COOKIE, 0, DAT_TRUE, 7))
CALL(ep_post_read_rmr, dat_ep_post_rdma_read_to_rmr(h, &remote, NO_COOKIE, &remote, 0))
CALL(ext_add, dat_ib_post_fetch_and_add(h, 1, &local, NO_COOKIE, &remote, 0))
CALL(ext_swap, dat_ib_post_cmp_and_swap(h, 1, 2, &local, NO_COOKIE, &remote, 0))
CALL(ext_immed, dat_ib_post_rdma_write_immed(h, 1, &local, NO_COOKIE, &remote, 1, 0))
CALL(srq_create, dat_srq_create(h, t->pz, &srq_attr, &o->handle))
CALL(srq_create_pz, dat_srq_create(t->ia, h, &srq_attr, &o->handle))
CALL(srq_query, dat_srq_query(h, DAT_SRQ_FIELD_ALL, &o->srq))
CALL(srq_post_recv, dat_srq_post_recv(h, 1, &local, NO_COOKIE))
CALL(srq_resize, dat_srq_resize(h, 8))
CALL(srq_set_lw, dat_srq_set_lw(h, 1))
CALL(srq_free, dat_srq_free(h))
CALL(psp_create, dat_psp_create(h, 7010, t->requests, DAT_PSP_CONSUMER_FLAG, &o->handle))
CALL(psp_create_evd, dat_psp_create(t->ia, 7010, h, DAT_PSP_CONSUMER_FLAG, &o->handle))
CALL(psp_create_any,
     dat_psp_create_any(h, &o->qual, t->requests, DAT_PSP_CONSUMER_FLAG, &o->handle))
CALL(psp_create_any_evd, dat_psp_create_any(t->ia, &o->qual, h, DAT_PSP_CONSUMER_FLAG, &o->handle))
CALL(psp_query, dat_psp_query(h, DAT_PSP_FIELD_ALL, &o->psp))
CALL(psp_free, dat_psp_free(h))
CALL(rsp_create, dat_rsp_create(h, 7011, t->ep, t->requests, &o->handle))
CALL(rsp_create_ep, dat_rsp_create(t->ia, 7011, h, t->requests, &o->handle))
CALL(rsp_create_evd, dat_rsp_create(t->ia, 7011, t->ep, h, &o->handle))
CALL(rsp_query, dat_rsp_query(h, DAT_RSP_FIELD_ALL, &o->rsp))
CALL(rsp_free, dat_rsp_free(h))
CALL(csp_create, dat_csp_create(h, &comm, t->address, t->requests, &o->handle))
CALL(csp_create_evd, dat_csp_create(t->ia, &comm, t->address, h, &o->handle))
CALL(csp_query, dat_csp_query(h, DAT_CSP_FIELD_ALL, &o->csp))
CALL(csp_free, dat_csp_free(h))
CALL(cr_query, dat_cr_query(h, DAT_CR_FIELD_ALL, &o->cr))
CALL(cr_accept, dat_cr_accept(h, t->ep, 0, NULL))
CALL(cr_accept_ep, dat_cr_accept(t->cr, h, 0, NULL))
CALL(cr_reject, dat_cr_reject(h, 0, NULL))
CALL(cr_handoff, dat_cr_handoff(h, 7012))

enum kind { IA, PZ, LMR, RMR, EVD, CNO, EP, SRQ, PSP, RSP, CSP, CR, KINDS };

#define H(subtype) DAT_INVALID_HANDLE_##subtype

static const struct {
	const char *name;
	call *call;
	enum kind kind;
	DAT_RETURN_SUBTYPE subtype;
	bool optional;	/* a null handle is allowed */
	bool connected; /* the call checks the EP's state first */
} calls[] = {
	{ "ia_query", on_ia_query, IA, H(IA), false, false },
	{ "ia_close", on_ia_close, IA, H(IA), false, false },
	{ "pz_create", on_pz_create, IA, H(IA), false, false },
	{ "pz_query", on_pz_query, PZ, H(PZ), false, false },
	{ "pz_free", on_pz_free, PZ, H(PZ), false, false },
	{ "lmr_create ia", on_lmr_create_ia, IA, H(IA), false, false },
	{ "lmr_create pz", on_lmr_create_pz, PZ, H(PZ), false, false },
	{ "lmr_create lmr", on_lmr_create_lmr, LMR, H(LMR), false, false },
	{ "lmr_query", on_lmr_query, LMR, H(LMR), false, false },
	{ "lmr_free", on_lmr_free, LMR, H(LMR), false, false },
	{ "lmr_sync_rdma_read", on_lmr_sync_read, IA, H(IA), false, false },
	{ "lmr_sync_rdma_write", on_lmr_sync_write, IA, H(IA), false, false },
	{ "rmr_create", on_rmr_create, PZ, H(PZ), false, false },
	{ "rmr_create_for_ep", on_rmr_create_for_ep, PZ, H(PZ), false, false },
	{ "rmr_query", on_rmr_query, RMR, H(RMR), false, false },
	{ "rmr_free", on_rmr_free, RMR, H(RMR), false, false },
	{ "rmr_bind rmr", on_rmr_bind_rmr, RMR, H(RMR), false, false },
	{ "rmr_bind ep", on_rmr_bind_ep, EP, H(EP), false, false },
	{ "rmr_bind lmr", on_rmr_bind_lmr, LMR, H(LMR), false, true },
	{ "evd_create ia", on_evd_create, IA, H(IA), false, false },
	{ "evd_create cno", on_evd_create_cno, CNO, H(CNO), true, false },
	{ "evd_query", on_evd_query, EVD, H(EVD_REQUEST), false, false },
	{ "evd_modify_cno evd", on_evd_modify_cno, EVD, H(EVD_REQUEST), false, false },
	{ "evd_modify_cno cno", on_evd_modify_cno_cno, CNO, H(CNO), true, false },
	{ "evd_enable", on_evd_enable, EVD, H(EVD_REQUEST), false, false },
	{ "evd_disable", on_evd_disable, EVD, H(EVD_REQUEST), false, false },
	{ "evd_wait", on_evd_wait, EVD, H(EVD_REQUEST), false, false },
	{ "evd_dequeue", on_evd_dequeue, EVD, H(EVD_REQUEST), false, false },
	{ "evd_post_se", on_evd_post_se, EVD, H(EVD_REQUEST), false, false },
	{ "evd_resize", on_evd_resize, EVD, H(EVD_REQUEST), false, false },
	{ "evd_free", on_evd_free, EVD, H(EVD_REQUEST), false, false },
	{ "evd_set_unwaitable", on_evd_set_unwaitable, EVD, H(EVD_REQUEST), false, false },
	{ "evd_clear_unwaitable", on_evd_clear_unwaitable, EVD, H(EVD_REQUEST), false, false },
	{ "cno_create", on_cno_create, IA, H(IA), false, false },
	{ "cno_fd_create", on_cno_fd_create, IA, H(IA), false, false },
	{ "cno_query", on_cno_query, CNO, H(CNO), false, false },
	{ "cno_modify_agent", on_cno_modify_agent, CNO, H(CNO), false, false },
	{ "cno_wait", on_cno_wait, CNO, H(CNO), false, false },
	{ "cno_trigger", on_cno_trigger, CNO, H(CNO), false, false },
	{ "cno_free", on_cno_free, CNO, H(CNO), false, false },
	{ "ep_create ia", on_ep_create, IA, H(IA), false, false },
	{ "ep_create pz", on_ep_create_pz, PZ, H(PZ), true, false },
	{ "ep_create recv", on_ep_create_recv, EVD, H(EVD_RECV), true, false },
	{ "ep_create request", on_ep_create_request, EVD, H(EVD_REQUEST), true, false },
	{ "ep_create connect", on_ep_create_connect, EVD, H(EVD_CONN), true, false },
	{ "ep_create_with_srq ia", on_ep_srq_ia, IA, H(IA), false, false },
	{ "ep_create_with_srq pz", on_ep_srq_pz, PZ, H(PZ), true, false },
	{ "ep_create_with_srq recv", on_ep_srq_recv, EVD, H(EVD_RECV), true, false },
	{ "ep_create_with_srq request", on_ep_srq_request, EVD, H(EVD_REQUEST), true, false },
	{ "ep_create_with_srq connect", on_ep_srq_connect, EVD, H(EVD_CONN), true, false },
	{ "ep_create_with_srq srq", on_ep_srq_srq, SRQ, H(SRQ), false, false },
	{ "ep_query", on_ep_query, EP, H(EP), false, false },
	{ "ep_modify", on_ep_modify, EP, H(EP), false, false },
	{ "ep_get_status", on_ep_get_status, EP, H(EP), false, false },
	{ "ep_connect", on_ep_connect, EP, H(EP), false, false },
	{ "ep_dup_connect ep", on_ep_dup_connect, EP, H(EP), false, false },
	{ "ep_dup_connect dup", on_ep_dup_connect_dup, EP, H(EP), false, false },
	{ "ep_common_connect", on_ep_common_connect, EP, H(EP), false, false },
	{ "ep_disconnect", on_ep_disconnect, EP, H(EP), false, false },
	{ "ep_reset", on_ep_reset, EP, H(EP), false, false },
	{ "ep_free", on_ep_free, EP, H(EP), false, false },
	{ "ep_recv_query", on_ep_recv_query, EP, H(EP), false, false },
	{ "ep_set_watermark", on_ep_set_watermark, EP, H(EP), false, false },
	{ "ep_post_send", on_ep_post_send, EP, H(EP), false, false },
	{ "ep_post_recv", on_ep_post_recv, EP, H(EP), false, false },
	{ "ep_post_rdma_read", on_ep_post_read, EP, H(EP), false, false },
	{ "ep_post_rdma_write", on_ep_post_write, EP, H(EP), false, false },
	{ "ep_post_send_with_invalidate", on_ep_post_invalidate, EP, H(EP), false, false },
	{ "ep_post_rdma_read_to_rmr", on_ep_post_read_rmr, EP, H(EP), false, false },
	{ "ib_post_fetch_and_add", on_ext_add, EP, H(EP), false, false },
	{ "ib_post_cmp_and_swap", on_ext_swap, EP, H(EP), false, false },
	{ "ib_post_rdma_write_immed", on_ext_immed, EP, H(EP), false, false },
	{ "srq_create ia", on_srq_create, IA, H(IA), false, false },
	{ "srq_create pz", on_srq_create_pz, PZ, H(PZ), false, false },
	{ "srq_query", on_srq_query, SRQ, H(SRQ), false, false },
	{ "srq_post_recv", on_srq_post_recv, SRQ, H(SRQ), false, false },
	{ "srq_resize", on_srq_resize, SRQ, H(SRQ), false, false },
	{ "srq_set_lw", on_srq_set_lw, SRQ, H(SRQ), false, false },
	{ "srq_free", on_srq_free, SRQ, H(SRQ), false, false },
	{ "psp_create ia", on_psp_create, IA, H(IA), false, false },
	{ "psp_create evd", on_psp_create_evd, EVD, H(EVD_CR), false, false },
	{ "psp_create_any ia", on_psp_create_any, IA, H(IA), false, false },
	{ "psp_create_any evd", on_psp_create_any_evd, EVD, H(EVD_CR), false, false },
	{ "psp_query", on_psp_query, PSP, H(PSP), false, false },
	{ "psp_free", on_psp_free, PSP, H(PSP), false, false },
	{ "rsp_create ia", on_rsp_create, IA, H(IA), false, false },
	{ "rsp_create ep", on_rsp_create_ep, EP, H(EP), false, false },
	{ "rsp_create evd", on_rsp_create_evd, EVD, H(EVD_CR), false, false },
	{ "rsp_query", on_rsp_query, RSP, H(RSP), false, false },
	{ "rsp_free", on_rsp_free, RSP, H(RSP), false, false },
	{ "csp_create ia", on_csp_create, IA, H(IA), false, false },
	{ "csp_create evd", on_csp_create_evd, EVD, H(EVD_CR), false, false },
	{ "csp_query", on_csp_query, CSP, H(CSP), false, false },
	{ "csp_free", on_csp_free, CSP, H(CSP), false, false },
	{ "cr_query", on_cr_query, CR, H(CR), false, false },
	{ "cr_accept cr", on_cr_accept, CR, H(CR), false, false },
	{ "cr_accept ep", on_cr_accept_ep, EP, H(EP), false, false },
	{ "cr_reject", on_cr_reject, CR, H(CR), false, false },
	{ "cr_handoff", on_cr_handoff, CR, H(CR), false, false },
};

static void expect_refused(size_t i, DAT_HANDLE handle, const char *what)
{
	DAT_RETURN expected = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | calls[i].subtype, status;

	/* libdat2 itself refuses what cannot be an object, without knowledge of the operation. */
	if (!strncmp(calls[i].name, "ib_", 3) && handle != things.ia &&
	    ((uintptr_t)handle < 4096 || (uintptr_t)handle & 3))
		expected = E(INVALID_HANDLE, INVALID_HANDLE1);
	status = calls[i].call(&things, handle, &things_out);
	if (status != expected || !things_untouched())
		printf("dat_%s, %s: 0x%x, expected 0x%x%s\n", calls[i].name, what, status, expected,
		       things_untouched() ? "" : ", and outputs were written");
	CU_ASSERT_EQUAL(status, expected);
	CU_ASSERT_TRUE(things_untouched());
	memset(&things_out, 0xa5, sizeof(things_out));
}

static void each_call(void (*with)(size_t i))
{
	bool connected;
	size_t i;

	for (connected = false;; connected = true) {
		things_open();
		if (connected)
			rig_connect(&things.rig);
		for (i = 0; i < COUNT(calls); i++)
			if (calls[i].connected == connected)
				with(i);
		things_close();
		if (connected)
			return;
	}
}

static void with_none(size_t i)
{
	static const uintptr_t wrong[] = { 0, 4000, 4095 };
	char misaligned[16];
	size_t n;

	for (n = calls[i].optional; n < COUNT(wrong); n++)
		expect_refused(i, (DAT_HANDLE)wrong[n], "no pointer");
	expect_refused(i, (DAT_HANDLE)(((uintptr_t)misaligned + 8) | 1), "misaligned");
}

static void test_none(void)
{
	each_call(with_none);
}

static void with_others(size_t i)
{
	static const char *const names[KINDS] = { "an IA",  "a PZ",   "an LMR", "an RMR",
						  "an EVD", "a CNO",  "an EP",	"an SRQ",
						  "a PSP",  "an RSP", "a CSP",	"a CR" };
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		if (kind != (int)calls[i].kind)
			expect_refused(i, things.all[kind], names[kind]);
}

static void test_others(void)
{
	each_call(with_others);
}

static DAT_HANDLE dead[KINDS];

static void with_dead(size_t i)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		expect_refused(i, dead[kind], "a freed one");
}

static void test_dead(void)
{
	things_open();
	memcpy(dead, things.all, sizeof(dead));
	things_close();
	each_call(with_dead);
}

/* A handle of the right kind, without the flag that the call needs. */
static void test_flags(void)
{
	size_t i;

	things_open();
	for (i = 0; i < COUNT(calls); i++)
		if (calls[i].kind == EVD && calls[i].subtype != DAT_INVALID_HANDLE_EVD_REQUEST)
			expect_refused(i, things.software, "an EVD for software events");
	things_close();
}

/* Every object has a context and a type; other handles have neither. */
static void test_any_object(void)
{
	int kind;

	things_open();
	for (kind = 0; kind < KINDS; kind++) {
		OK(dat_set_consumer_context(things.all[kind], (DAT_CONTEXT){ .as_64 = 9 }));
		OK(dat_get_consumer_context(things.all[kind], &things_out.context));
		CU_ASSERT_EQUAL(things_out.context.as_64, 9);
		OK(dat_get_handle_type(things.all[kind], &things_out.type));
	}
	memcpy(dead, things.all, sizeof(dead));
	things_close();
	things_open();
	for (kind = 0; kind <= KINDS; kind++) {
		DAT_HANDLE handle = kind < KINDS ? dead[kind] : DAT_HANDLE_NULL;

		IS(dat_set_consumer_context(handle, (DAT_CONTEXT){ .as_64 = 9 }),
		   E(INVALID_HANDLE, INVALID_HANDLE1));
		IS(dat_get_consumer_context(handle, &things_out.context),
		   E(INVALID_HANDLE, INVALID_HANDLE1));
		IS(dat_get_handle_type(handle, &things_out.type),
		   E(INVALID_HANDLE, INVALID_HANDLE1));
		CU_ASSERT_TRUE(things_untouched());
	}
	things_close();
}

static const struct unit_test tests[] = {
	{ "none, small, misaligned", test_none },
	{ "each handle argument refuses an object of each other kind", test_others },
	{ "each handle argument refuses a freed object", test_dead },
	{ "an EVD without the needed flag is refused", test_flags },
	{ "every object has a context and a type", test_any_object },
};

UNIT_MAIN("handle_args", tests)
