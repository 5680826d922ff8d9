/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The calls that create, open, connect or change an object, each with the objects it needs. */
#ifndef NTH_STEPS_H
#define NTH_STEPS_H

#include "test/unit/nth.h"
#include "test/unit/nth_connect.h"
#include "test/unit/nth_event.h"
#include "test/unit/nth_srq.h"
#include "test/unit/same.h"

static char nth_memory[8192];

/* ---- interface adapters ---- */

static DAT_RETURN nth_open(struct nth_scene *s)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open((char *)(uintptr_t)NTH_NAME, 8, &async, &s->made);
}

static void nth_close(struct nth_scene *s)
{
	OK(dat_ia_close(s->made, DAT_CLOSE_GRACEFUL_FLAG));
}

static DAT_RETURN nth_open_query(struct nth_scene *s)
{
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;

	return dat_ib_open_query((char *)(uintptr_t)NTH_NAME, &s->made, DAT_IA_FIELD_ALL, &attr,
				 DAT_PROVIDER_FIELD_ALL, &provider);
}

static void nth_close_query(struct nth_scene *s)
{
	OK(dat_ib_close_query(s->made));
}

static const struct nth_step nth_open_steps[] = {
	{ "dat_ia_open", nth_open, nth_close, NULL, false },
	{ "dat_ib_open_query", nth_open_query, nth_close_query, NULL, false },
};

/* ---- memory ---- */

static DAT_RETURN nth_pz(struct nth_scene *s)
{
	return dat_pz_create(s->ia, &s->made);
}
static void nth_pz_undo(struct nth_scene *s)
{
	OK(dat_pz_free(s->made));
}

static DAT_RETURN nth_lmr_of(struct nth_scene *s, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			     DAT_LMR_HANDLE *lmr)
{
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;

	return dat_lmr_create(s->ia, type, region, sizeof(nth_memory), s->pz, DAT_MEM_PRIV_ALL_FLAG,
			      DAT_VA_TYPE_VA, lmr, &lkey, &rkey, NULL, NULL);
}

static DAT_RETURN nth_lmr(struct nth_scene *s)
{
	DAT_REGION_DESCRIPTION region = { .for_va = nth_memory };

	return nth_lmr_of(s, DAT_MEM_TYPE_VIRTUAL, region, &s->made);
}

static DAT_RETURN nth_lmr_shared(struct nth_scene *s)
{
	static char cookie[DAT_LMR_COOKIE_SIZE];
	DAT_REGION_DESCRIPTION region = {
		.for_shared_memory = { .virtual_address = nth_memory, .shared_memory_id = &cookie },
	};

	return nth_lmr_of(s, DAT_MEM_TYPE_SHARED_VIRTUAL, region, &s->made);
}

static DAT_RETURN nth_lmr_over(struct nth_scene *s)
{
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = s->env.lmr };

	return nth_lmr_of(s, DAT_MEM_TYPE_LMR, region, &s->made);
}

static void nth_lmr_undo(struct nth_scene *s)
{
	OK(dat_lmr_free(s->made));
}

static DAT_RETURN nth_rmr(struct nth_scene *s)
{
	return dat_rmr_create(s->pz, &s->made);
}
static DAT_RETURN nth_rmr_ep(struct nth_scene *s)
{
	return dat_rmr_create_for_ep(s->pz, &s->made);
}
static void nth_rmr_undo(struct nth_scene *s)
{
	OK(dat_rmr_free(s->made));
}

/* ---- event dispatchers and notification objects ---- */

static DAT_RETURN nth_evd(struct nth_scene *s)
{
	return dat_evd_create(s->ia, 100, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &s->made);
}

static DAT_RETURN nth_evd_cno(struct nth_scene *s)
{
	return dat_evd_create(s->ia, 100, s->cno, DAT_EVD_DEFAULT_FLAG, &s->made);
}

static DAT_RETURN nth_evd_plain(struct nth_scene *s)
{
	return dat_evd_create(s->ia, 100, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &s->made);
}

static void nth_evd_undo(struct nth_scene *s)
{
	OK(dat_evd_free(s->made));
}

static DAT_RETURN nth_evd_resize(struct nth_scene *s)
{
	DAT_EVD_PARAM before, after;
	DAT_RETURN status;

	OK(dat_evd_query(s->a.recv, DAT_EVD_FIELD_ALL, &before));
	status = dat_evd_resize(s->a.recv, 1000);
	OK(dat_evd_query(s->a.recv, DAT_EVD_FIELD_ALL, &after));
	CU_ASSERT_TRUE(status == DAT_SUCCESS ? after.evd_qlen >= 1000
					     : after.evd_qlen == before.evd_qlen);
	return status;
}

/* An EVD keeps the length to which it has grown. */
static void nth_evd_resize_undo(struct nth_scene *s)
{
	(void)s;
}

static DAT_RETURN nth_modify_cno(struct nth_scene *s)
{
	DAT_RETURN status = dat_evd_modify_cno(s->a.recv, s->cno);
	DAT_EVD_PARAM param;

	OK(dat_evd_query(s->a.recv, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.cno_handle, status == DAT_SUCCESS ? s->cno : DAT_HANDLE_NULL);
	return status;
}

static void nth_modify_cno_undo(struct nth_scene *s)
{
	OK(dat_evd_modify_cno(s->a.recv, DAT_HANDLE_NULL));
}

static DAT_RETURN nth_cno(struct nth_scene *s)
{
	return dat_cno_create(s->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &s->made);
}

static DAT_RETURN nth_cno_fd(struct nth_scene *s)
{
	DAT_FD fd = -7;
	DAT_RETURN status = dat_cno_fd_create(s->ia, &fd, &s->made);

	CU_ASSERT_EQUAL(fd == -7, status != DAT_SUCCESS);
	return status;
}

static void nth_cno_undo(struct nth_scene *s)
{
	OK(dat_cno_free(s->made));
}

/* ---- endpoints and shared receive queues ---- */

static DAT_RETURN nth_srq(struct nth_scene *s)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 2 };

	return dat_srq_create(s->ia, s->pz, &attr, &s->made);
}

static void nth_srq_undo(struct nth_scene *s)
{
	OK(dat_srq_free(s->made));
}

static DAT_RETURN nth_ep(struct nth_scene *s)
{
	return dat_ep_create(s->ia, s->pz, s->a.recv, s->a.request, s->a.conn, NULL, &s->made);
}

static DAT_RETURN nth_ep_srq(struct nth_scene *s)
{
	DAT_EP_ATTR attr = {
		.max_recv_dtos = 4, .max_request_dtos = 4, .max_recv_iov = 1, .max_request_iov = 1
	};

	return dat_ep_create_with_srq(s->ia, s->pz, s->a.recv, s->a.request, s->a.conn, s->srq,
				      &attr, &s->made);
}

static void nth_ep_undo(struct nth_scene *s)
{
	OK(dat_ep_free(s->made));
}

/* The change happens whole or not at all; the receive posted on the endpoint is not lost. */
static DAT_RETURN nth_ep_modify(struct nth_scene *s)
{
	DAT_EP_PARAM before, param, after;
	DAT_RETURN status;

	OK(dat_ep_query(s->a.ep, DAT_EP_FIELD_ALL, &before));
	param = before;
	param.ep_attr.max_recv_dtos += 16;
	status = dat_ep_modify(s->a.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
	OK(dat_ep_query(s->a.ep, DAT_EP_FIELD_ALL, &after));
	if (status != DAT_SUCCESS)
		CU_ASSERT_TRUE(ep_param_is_same(&before, &after));
	return status;
}

static void nth_ep_modify_undo(struct nth_scene *s)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(s->a.ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_recv_dtos -= 16;
	OK(dat_ep_modify(s->a.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
}

/*
 * Resets a disconnected endpoint; if the reset fails, the endpoint stays disconnected and can be
 * reset again.
 */
static DAT_RETURN nth_reset(struct nth_scene *s)
{
	DAT_RETURN status;

	status = dat_ep_reset(s->a.ep);
	CU_ASSERT_EQUAL(state_of(s->a.ep), status == DAT_SUCCESS ? DAT_EP_STATE_UNCONNECTED
								 : DAT_EP_STATE_DISCONNECTED);
	return status;
}

static void nth_end(struct nth_scene *s)
{
	start_connect(&s->a);
	OK(dat_cr_reject(request_next(&s->env), 0, NULL));
	CU_ASSERT_TRUE(event_next(s->a.conn, &(DAT_EVENT){ 0 }));
}

/* ---- service points ---- */

static DAT_RETURN nth_psp(struct nth_scene *s)
{
	return dat_psp_create(s->ia, s->qual, s->cr, DAT_PSP_CONSUMER_FLAG, &s->made);
}

static DAT_RETURN nth_psp_any(struct nth_scene *s)
{
	DAT_CONN_QUAL qual = 0;
	DAT_RETURN status =
		dat_psp_create_any(s->ia, &qual, s->cr, DAT_PSP_PROVIDER_FLAG, &s->made);

	CU_ASSERT_EQUAL(qual == 0, status != DAT_SUCCESS);
	return status;
}

static void nth_psp_undo(struct nth_scene *s)
{
	OK(dat_psp_free(s->made));
}

static DAT_RETURN nth_rsp(struct nth_scene *s)
{
	DAT_RETURN status = dat_rsp_create(s->ia, s->qual, s->a.ep, s->cr, &s->made);

	CU_ASSERT_EQUAL(state_of(s->a.ep),
			status == DAT_SUCCESS ? DAT_EP_STATE_RESERVED : DAT_EP_STATE_UNCONNECTED);
	return status;
}

static void nth_rsp_undo(struct nth_scene *s)
{
	OK(dat_rsp_free(s->made));
}

static DAT_RETURN nth_csp(struct nth_scene *s)
{
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)s->qual) };

	return dat_csp_create(s->ia, &comm, (DAT_IA_ADDRESS_PTR)&address, s->cr, &s->made);
}

static void nth_csp_undo(struct nth_scene *s)
{
	OK(dat_csp_free(s->made));
}

static const struct nth_step nth_steps[] = {
	{ "dat_ia_open, the device is open", nth_open, nth_close, NULL, false },
	{ "dat_ib_open_query, the device is open", nth_open_query, nth_close_query, NULL, false },
	{ "dat_pz_create", nth_pz, nth_pz_undo, NULL, false },
	{ "dat_lmr_create", nth_lmr, nth_lmr_undo, NULL, false },
	{ "dat_lmr_create, shared", nth_lmr_shared, nth_lmr_undo, NULL, false },
	{ "dat_lmr_create, over an LMR", nth_lmr_over, nth_lmr_undo, NULL, false },
	{ "dat_rmr_create", nth_rmr, nth_rmr_undo, NULL, false },
	{ "dat_rmr_create_for_ep", nth_rmr_ep, nth_rmr_undo, NULL, false },
	{ "dat_evd_create", nth_evd, nth_evd_undo, NULL, false },
	{ "dat_evd_create, with a CNO", nth_evd_cno, nth_evd_undo, NULL, false },
	{ "dat_evd_create, without a CQ", nth_evd_plain, nth_evd_undo, NULL, false },
	{ "dat_evd_resize", nth_evd_resize, nth_evd_resize_undo, NULL, false },
	{ "dat_evd_modify_cno", nth_modify_cno, nth_modify_cno_undo, NULL, false },
	{ "dat_cno_create", nth_cno, nth_cno_undo, NULL, false },
	{ "dat_cno_fd_create", nth_cno_fd, nth_cno_undo, NULL, false },
	{ "dat_srq_create", nth_srq, nth_srq_undo, NULL, false },
	/* if the device refuses a QP, the provider asks once more without inline data */
	{ "dat_ep_create", nth_ep, nth_ep_undo, NULL, true },
	{ "dat_ep_create_with_srq", nth_ep_srq, nth_ep_undo, NULL, true },
	{ "dat_ep_modify", nth_ep_modify, nth_ep_modify_undo, NULL, true },
	{ "dat_psp_create", nth_psp, nth_psp_undo, NULL, false },
	{ "dat_psp_create_any", nth_psp_any, nth_psp_undo, NULL, false },
	{ "dat_rsp_create", nth_rsp, nth_rsp_undo, NULL, false },
	{ "dat_csp_create", nth_csp, nth_csp_undo, NULL, false },
};

static const struct nth_step nth_reset_step = { "dat_ep_reset", nth_reset, nth_end, NULL, true };

/* ---- the scene ---- */

/* The first wait creates a descriptor that stays with the EVD. */
static void nth_sleep(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	IS(dat_evd_wait(evd, 1, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
}

static inline void nth_scene_open(struct nth_scene *s)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 2 };

	memset(s, 0, sizeof(*s));
	nth_announce();
	env_open(&s->env);
	env_listen(&s->env);
	end_open(&s->env, &s->a, NULL);
	end_open(&s->env, &s->b, NULL);
	s->ia = s->env.ia;
	s->pz = s->env.pz;
	s->cr = evd_open(&s->env, 8, DAT_EVD_CR_FLAG);
	MUST(dat_cno_create(s->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &s->cno));
	MUST(dat_srq_create(s->ia, s->pz, &attr, &s->srq));
	/* neither the choice of env_listen in another process nor a dynamic port */
	s->qual = 30000 + (unsigned)getpid() % 2768;
	nth_sleep(s->env.cr);
	nth_sleep(s->env.async);
	nth_sleep(s->a.conn);
	nth_sleep(s->a.recv);
	nth_sleep(s->a.request);
	nth_sleep(s->b.conn);
	nth_sleep(s->b.recv);
	nth_sleep(s->b.request);
}

static inline void nth_scene_close(struct nth_scene *s)
{
	evd_close(s->cr);
	MUST(dat_srq_free(s->srq));
	expect_quiet(s->a.conn);
	expect_quiet(s->b.conn);
	end_close(&s->a);
	end_close(&s->b);
	MUST(dat_cno_free(s->cno));
	env_close(&s->env);
}

static void nth_connect_once(struct nth_scene *s)
{
	connect_pair(&s->a, &s->b);
	nth_connect_undo(s);
}

/*
 * Runs every step. `least` is the least number of calls that must have been able to fail: fewer
 * mean that the calls are not wrapped.
 */
static inline void nth_run_all(void (*arm)(unsigned n), bool (*disarm)(DAT_RETURN status),
			       unsigned least)
{
	struct nth_resources before;
	struct nth_scene scene;
	unsigned chances = 0;
	size_t i;

	nth_announce();
	before = nth_resources();
	for (i = 0; i < COUNT(nth_open_steps); i++)
		chances += nth_run(&nth_open_steps[i], &scene, arm, disarm);
	nth_scene_open(&scene);
	for (i = 0; i < COUNT(nth_steps); i++)
		chances += nth_run(&nth_steps[i], &scene, arm, disarm);
	for (i = 0; i < COUNT(nth_event_steps); i++)
		chances += nth_run(&nth_event_steps[i], &scene, arm, disarm);
	chances += nth_run(&nth_connect_step, &scene, arm, disarm);
	nth_end(&scene);
	chances += nth_run(&nth_reset_step, &scene, arm, disarm);
	OK(dat_ep_reset(scene.a.ep));
	/* afterwards connections and SRQs still work */
	nth_connect_once(&scene);
	nth_srq_open(&scene, NTH_SMALL);
	chances += nth_run(&nth_srq_larger, &scene, arm, disarm);
	nth_srq_large_again(&scene);
	chances += nth_run(&nth_srq_smaller, &scene, arm, disarm);
	nth_srq_close(&scene);
	nth_scene_close(&scene);
	if (!nth_warm)
		before.alive = ULONG_MAX;
	nth_expect(before, "everything", chances);
	CU_ASSERT_TRUE(chances >= least);
	printf("%u failures\n", chances);
}

#endif
