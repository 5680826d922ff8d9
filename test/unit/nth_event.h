/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Steps of nth_steps.h for the event extension and for endpoints of datagrams. */
#ifndef NTH_EVENT_H
#define NTH_EVENT_H

#include <dat2/dat_event_extensions.h>
#include "test/unit/nth.h"

static DAT_RETURN nth_pset(struct nth_scene *s)
{
	DAT_RETURN status = DAT_PSET_CREATE(s->ia, &s->made);

	if (status != DAT_SUCCESS)
		return status;
	status = DAT_PSET_ADD(s->made, s->a.recv);
	if (status == DAT_SUCCESS)
		return status;
	/* the EVD is not in the set */
	IS(DAT_PSET_DEL(s->made, s->a.recv), E(INVALID_PARAMETER, INVALID_ARG3));
	OK(DAT_PSET_FREE(s->made));
	s->made = DAT_HANDLE_NULL;
	return status;
}

static void nth_pset_undo(struct nth_scene *s)
{
	OK(DAT_PSET_DEL(s->made, s->a.recv));
	OK(DAT_PSET_FREE(s->made));
}

/* A descriptor stays with its object, so each attempt creates a new object. */
static DAT_RETURN nth_evd_get_fd(struct nth_scene *s)
{
	DAT_FD fd = -7;
	DAT_RETURN status = dat_evd_create(s->ia, 8, DAT_HANDLE_NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &s->made);

	if (status != DAT_SUCCESS)
		return status;
	status = DAT_EVD_GET_FD(s->made, &fd);
	CU_ASSERT_EQUAL(fd == -7, status != DAT_SUCCESS);
	if (status != DAT_SUCCESS) {
		OK(dat_evd_free(s->made));
		s->made = DAT_HANDLE_NULL;
	}
	return status;
}

static void nth_evd_get_fd_undo(struct nth_scene *s)
{
	OK(dat_evd_free(s->made));
}

static DAT_RETURN nth_cno_get_fd(struct nth_scene *s)
{
	DAT_FD fd = -7;
	DAT_RETURN status = dat_cno_create(s->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &s->made);

	if (status != DAT_SUCCESS)
		return status;
	status = DAT_CNO_GET_FD(s->made, &fd);
	CU_ASSERT_EQUAL(fd == -7, status != DAT_SUCCESS);
	if (status != DAT_SUCCESS) {
		OK(dat_cno_free(s->made));
		s->made = DAT_HANDLE_NULL;
	}
	return status;
}

static void nth_cno_get_fd_undo(struct nth_scene *s)
{
	OK(dat_cno_free(s->made));
}

static DAT_RETURN nth_ud_ep(struct nth_scene *s)
{
	DAT_EP_ATTR attr = {
		.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD,
		.max_recv_dtos = 8,
		.max_request_dtos = 8,
		.max_recv_iov = 1,
		.max_request_iov = 1,
	};

	return dat_ep_create(s->ia, s->pz, s->a.recv, s->a.request, s->a.conn, &attr, &s->made);
}

static void nth_ud_ep_undo(struct nth_scene *s)
{
	OK(dat_ep_free(s->made));
}

static const struct nth_step nth_event_steps[] = {
	{ "DAT_PSET_CREATE, DAT_PSET_ADD", nth_pset, nth_pset_undo, NULL, false },
	{ "DAT_EVD_GET_FD", nth_evd_get_fd, nth_evd_get_fd_undo, NULL, false },
	{ "DAT_CNO_GET_FD", nth_cno_get_fd, nth_cno_get_fd_undo, NULL, false },
	{ "dat_ep_create, of datagrams", nth_ud_ep, nth_ud_ep_undo, NULL, true },
};

#endif
