/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The use of DAT by a program and its plugin, each in the version that it was compiled for: this
 * file is compiled for both. The calls must reach the library of their own version, whatever the
 * version of the other.
 */
#include <stdio.h>
#include <string.h>
#include <dat2/udat.h>
#include "test/one/exercise.h"

static int failures;

static void check(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "DAT %d.%d: %s\n", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, what);
	failures++;
}

/* The structures that differ, and the number of a result. */
static void look(DAT_IA_HANDLE ia, DAT_EP_HANDLE ep)
{
	unsigned char guard[64], expected[64];
	struct {
		DAT_EP_PARAM is;
		unsigned char guard[64];
	} param;
	DAT_PROVIDER_ATTR attr;

	memset(guard, 0x5a, sizeof(guard));
	memcpy(expected, guard, sizeof(guard));
	memcpy(param.guard, guard, sizeof(guard));
	check(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr) == DAT_SUCCESS &&
		      attr.dapl_version_major == DAT_VERSION_MAJOR &&
		      attr.dapl_version_minor == DAT_VERSION_MINOR,
	      "attributes of the provider");
	check(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param.is) == DAT_SUCCESS &&
		      param.is.ia_handle == ia && param.is.ep_attr.max_request_dtos >= 3 &&
		      param.is.ep_attr.max_request_dtos < 1000 &&
		      param.is.ep_attr.max_request_iov >= 2,
	      "parameters of an endpoint");
	check(!memcmp(param.guard, expected, sizeof(expected)), "bytes behind the parameters");
	check(dat_ep_query(ep, (DAT_EP_PARAM_MASK)1 << 63, &param.is) ==
		      (DAT_RETURN)(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2),
	      "result of an unknown mask");
}

static void take_event(DAT_EVD_HANDLE evd)
{
	struct {
		DAT_EVENT is;
		unsigned char guard[64];
	} event;
	unsigned char guard[64];

	memset(guard, 0x5a, sizeof(guard));
	memset(&event, 0, sizeof(event));
	memcpy(event.guard, guard, sizeof(guard));
	event.is.event_number = DAT_SOFTWARE_EVENT;
	event.is.event_data.software_event_data.pointer = &failures;
	check(dat_evd_post_se(evd, &event.is) == DAT_SUCCESS, "post of an event");
	event.is.event_data.software_event_data.pointer = NULL;
	check(dat_evd_dequeue(evd, &event.is) == DAT_SUCCESS &&
		      event.is.event_data.software_event_data.pointer == &failures &&
		      event.is.evd_handle == evd,
	      "an event");
	check(!memcmp(event.guard, guard, sizeof(guard)), "bytes behind an event");
}

int exercise(void *given)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, conn, dto, soft;
	DAT_EP_ATTR ep_attr;
	DAT_IA_HANDLE ia = given;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;

	failures = 0;
	memset(&ep_attr, 0, sizeof(ep_attr));
	ep_attr.max_recv_dtos = ep_attr.max_request_dtos = 3;
	ep_attr.max_recv_iov = ep_attr.max_request_iov = 2;
	if ((!given && dat_ia_open((DAT_NAME_PTR) "ofa-v2-soft", 8, &async, &ia) != DAT_SUCCESS) ||
	    dat_pz_create(ia, &pz) != DAT_SUCCESS ||
	    dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &soft) != DAT_SUCCESS ||
	    dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn) != DAT_SUCCESS ||
	    dat_evd_create(ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto) != DAT_SUCCESS ||
	    dat_ep_create(ia, pz, dto, dto, conn, &ep_attr, &ep) != DAT_SUCCESS) {
		check(0, "creation of objects");
		return failures;
	}
	look(ia, ep);
	take_event(soft);
	check(dat_ep_free(ep) == DAT_SUCCESS && dat_evd_free(dto) == DAT_SUCCESS &&
		      dat_evd_free(conn) == DAT_SUCCESS && dat_evd_free(soft) == DAT_SUCCESS &&
		      dat_pz_free(pz) == DAT_SUCCESS,
	      "free of objects");
	if (!given)
		check(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS, "close");
	return failures;
}
