/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Helpers for the suites of endpoints and connections. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/ep_util.h"

void env_open(struct env *env)
{
	const char *name = getenv("DAPL_TEST_IA");
	DAT_REGION_DESCRIPTION region;
	DAT_IA_ATTR attr;
	char ia_name[DAT_NAME_MAX_LENGTH] = "ofa-v2-soft";

	if (name)
		strncpy(ia_name, name, sizeof(ia_name) - 1);
	memset(env, 0, sizeof(*env));
	MUST(dat_ia_open(ia_name, 8, &env->async, &env->ia));
	MUST(dat_ia_query(env->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	env->address = attr.ia_address_ptr;
	MUST(dat_pz_create(env->ia, &env->pz));
	env->cr = evd_open(env, 64, DAT_EVD_CR_FLAG);
	env->memory = calloc(1, BUFFER);
	CU_ASSERT_PTR_NOT_NULL_FATAL(env->memory);
	region.for_va = env->memory;
	MUST(dat_lmr_create(env->ia, DAT_MEM_TYPE_VIRTUAL, region, BUFFER, env->pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &env->lmr, &env->lkey,
			    &env->rkey, NULL, NULL));
}

void env_close(struct env *env)
{
	if (env->psp)
		MUST(dat_psp_free(env->psp));
	expect_quiet(env->cr);
	evd_close(env->cr);
	MUST(dat_lmr_free(env->lmr));
	MUST(dat_pz_free(env->pz));
	MUST(dat_ia_close(env->ia, DAT_CLOSE_GRACEFUL_FLAG));
	free(env->memory);
}

void env_listen(struct env *env)
{
	static atomic_uint used;
	DAT_RETURN status;

	do {
		env->qual = 5000 + ((unsigned)getpid() * 31 + atomic_fetch_add(&used, 1)) % 25000;
		status = dat_psp_create(env->ia, env->qual, env->cr, DAT_PSP_CONSUMER_FLAG,
					&env->psp);
	} while (DAT_GET_TYPE(status) == DAT_CONN_QUAL_IN_USE && atomic_load(&used) < 25000);
	CU_ASSERT_EQUAL_FATAL(status, DAT_SUCCESS);
}

DAT_EVD_HANDLE evd_open(struct env *env, DAT_COUNT qlen, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	MUST(dat_evd_create(env->ia, qlen, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

void evd_close(DAT_EVD_HANDLE evd)
{
	MUST(dat_evd_free(evd));
}

void end_open(struct env *env, struct end *end, const DAT_EP_ATTR *attr)
{
	end->env = env;
	end->conn = evd_open(env, 8, DAT_EVD_CONNECTION_FLAG);
	end->recv = evd_open(env, 64, DAT_EVD_DTO_FLAG);
	end->request = evd_open(env, 64, DAT_EVD_DTO_FLAG);
	MUST(dat_ep_create(env->ia, env->pz, end->recv, end->request, end->conn, attr, &end->ep));
}

void end_free_ep(struct end *end)
{
	MUST(dat_ep_free(end->ep));
	end->ep = DAT_HANDLE_NULL;
}

void end_close(struct end *end)
{
	if (end->ep)
		end_free_ep(end);
	evd_close(end->request);
	evd_close(end->recv);
	evd_close(end->conn);
}

bool event_next(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_COUNT more;
	DAT_RETURN status = dat_evd_wait(evd, PATIENCE, 1, event, &more);

	CU_ASSERT_EQUAL(status, DAT_SUCCESS);
	return status == DAT_SUCCESS;
}

void expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	if (!event_next(evd, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, number);
	CU_ASSERT_PTR_EQUAL(event.evd_handle, evd);
	CU_ASSERT_PTR_EQUAL(event.event_data.connect_event_data.ep_handle, ep);
	if (number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		CU_ASSERT_EQUAL(event.event_data.connect_event_data.private_data_size, 0);
		CU_ASSERT_PTR_NULL(event.event_data.connect_event_data.private_data);
	}
}

void expect_quiet(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	IS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

void expect_dto(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event;

	if (!event_next(evd, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, ep);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, status);
}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = DAT_EP_STATE_UNCONFIGURED_TENTATIVE;

	OK(dat_ep_get_status(ep, &state, NULL, NULL));
	return state;
}

DAT_RETURN try_connect(struct end *end, DAT_TIMEOUT timeout)
{
	return dat_ep_connect(end->ep, end->env->address, end->env->qual, timeout, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

void start_connect(struct end *end)
{
	MUST(try_connect(end, DAT_TIMEOUT_INFINITE));
}

DAT_CR_HANDLE request_next(struct env *env)
{
	DAT_EVENT event;
	bool came = event_next(env->cr, &event);

	CU_ASSERT_TRUE_FATAL(came);
	CU_ASSERT_EQUAL_FATAL(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	CU_ASSERT_PTR_EQUAL(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, env->psp);
	CU_ASSERT_EQUAL(event.event_data.cr_arrival_event_data.conn_qual, env->qual);
#ifndef TEST_ONE
	CU_ASSERT_EQUAL(event.event_data.cr_arrival_event_data.truncate_flag, DAT_FALSE);
#endif
	return event.event_data.cr_arrival_event_data.cr_handle;
}

void connect_pair(struct end *active, struct end *passive)
{
	start_connect(active);
	MUST(dat_cr_accept(request_next(active->env), passive->ep, 0, NULL));
	expect(active->conn, DAT_CONNECTION_EVENT_ESTABLISHED, active->ep);
	expect(passive->conn, DAT_CONNECTION_EVENT_ESTABLISHED, passive->ep);
}

void disconnect_pair(struct end *first, struct end *second)
{
	MUST(dat_ep_disconnect(first->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(first->conn, DAT_CONNECTION_EVENT_DISCONNECTED, first->ep);
	expect(second->conn, DAT_CONNECTION_EVENT_DISCONNECTED, second->ep);
}

DAT_LMR_TRIPLET segment(struct env *env, size_t offset, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)env->memory + offset,
				  .segment_length = length,
				  .lmr_context = env->lkey };
}

DAT_RETURN try_recv(struct end *end, uint64_t cookie)
{
	DAT_LMR_TRIPLET where = segment(end->env, BUFFER / 2, 64);

	return dat_ep_post_recv(end->ep, 1, &where, (DAT_DTO_COOKIE){ .as_64 = cookie },
				DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN try_send(struct end *end, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET what = segment(end->env, 0, 64);

	return dat_ep_post_send(end->ep, 1, &what, (DAT_DTO_COOKIE){ .as_64 = cookie }, flags);
}

DAT_RETURN try_write(struct end *end, uint64_t cookie, DAT_RMR_CONTEXT rkey)
{
	DAT_LMR_TRIPLET what = segment(end->env, 0, 64);
	DAT_RMR_TRIPLET where = { .virtual_address = (uintptr_t)end->env->memory + 4096,
				  .segment_length = 64,
				  .rmr_context = rkey };

	return dat_ep_post_rdma_write(end->ep, 1, &what, (DAT_DTO_COOKIE){ .as_64 = cookie },
				      &where, DAT_COMPLETION_DEFAULT_FLAG);
}

void post_recvs(struct end *end, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		MUST(try_recv(end, i));
}

void message_passes(struct end *from, struct end *to)
{
	MUST(try_recv(to, 77));
	MUST(try_send(from, 78, 0));
	expect_dto(from->request, from->ep, 78, DAT_DTO_SUCCESS);
	expect_dto(to->recv, to->ep, 77, DAT_DTO_SUCCESS);
}
