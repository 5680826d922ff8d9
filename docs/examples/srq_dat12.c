/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A program of DAT 1.2 in the style of before 2007: two endpoints that receive from one shared
 * queue.
 *
 *     cc -o srq_dat12 srq_dat12.c $(pkg-config --cflags --libs dat)
 *     ./srq_dat12 [IA]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dat/udat.h>

#define BUFFERS 8
#define SIZE	256

/* Ends the program with the names of the result if the call failed. */
static void check(DAT_RETURN ret, const char *call)
{
	const char *major, *minor;

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fprintf(stderr, "%s: %s %s\n", call, major, minor);
	exit(1);
}

static char memory[BUFFERS][SIZE];

static DAT_EVD_HANDLE evd_new(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	check(dat_evd_create(ia, 2 * BUFFERS, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
	return evd;
}

/* Each buffer is posted to the queue and takes the next message of either endpoint. */
static void post_all(DAT_SRQ_HANDLE srq, DAT_LMR_CONTEXT context)
{
	DAT_LMR_TRIPLET segment;
	DAT_DTO_COOKIE cookie;
	int i;

	for (i = 0; i < BUFFERS; i++) {
		memset(&segment, 0, sizeof(segment));
		segment.lmr_context = context;
		segment.virtual_address = (DAT_VADDR)(size_t)memory[i];
		segment.segment_length = SIZE;
		cookie.as_64 = (DAT_UINT64)i;
		check(dat_srq_post_recv(srq, 1, &segment, cookie), "dat_srq_post_recv");
	}
}

static void show(DAT_SRQ_HANDLE srq, const DAT_EP_HANDLE ep[2])
{
	DAT_SRQ_PARAM srq_param;
	DAT_EP_PARAM ep_param;
	int i;

	check(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &srq_param), "dat_srq_query");
	printf("SRQ: %s, %d receives posted\n",
	       srq_param.srq_state == DAT_SRQ_STATE_OPERATIONAL ? "operational" : "in error",
	       srq_param.outstanding_dto_count);
	for (i = 0; i < 2; i++) {
		check(dat_ep_query(ep[i], DAT_EP_FIELD_ALL, &ep_param), "dat_ep_query");
		printf("EP %d: %s, %s\n", i,
		       ep_param.ep_state == DAT_EP_STATE_UNCONNECTED ? "unconnected" : "?",
		       ep_param.srq_handle == srq ? "receives from the SRQ" : "has no SRQ");
	}
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, recv, request, connect;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;
	DAT_SRQ_ATTR srq_attr;
	DAT_EP_ATTR ep_attr;
	DAT_LMR_HANDLE lmr;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep[2];
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;
	int i;

	check(dat_ia_open(argc > 1 ? argv[1] : (DAT_NAME_PTR) "ofa-v2-soft", 8, &async, &ia),
	      "dat_ia_open");
	check(dat_pz_create(ia, &pz), "dat_pz_create");
	recv = evd_new(ia, DAT_EVD_DTO_FLAG);
	request = evd_new(ia, DAT_EVD_DTO_FLAG);
	connect = evd_new(ia, DAT_EVD_CONNECTION_FLAG);

	memset(&srq_attr, 0, sizeof(srq_attr));
	srq_attr.max_recv_dtos = BUFFERS;
	srq_attr.max_recv_iov = 1;
	srq_attr.low_watermark = DAT_SRQ_LW_DEFAULT;
	check(dat_srq_create(ia, pz, &srq_attr, &srq), "dat_srq_create");

	memset(&ep_attr, 0, sizeof(ep_attr));
	ep_attr.service_type = DAT_SERVICE_TYPE_RC;
	ep_attr.max_request_dtos = 4;
	ep_attr.max_request_iov = 1;
	ep_attr.max_recv_iov = 1;
	for (i = 0; i < 2; i++)
		check(dat_ep_create_with_srq(ia, pz, recv, request, connect, srq, &ep_attr, &ep[i]),
		      "dat_ep_create_with_srq");

	region.for_va = memory;
	check(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			     DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, NULL, NULL, NULL),
	      "dat_lmr_create");
	post_all(srq, context);
	show(srq, ep);

	for (i = 0; i < 2; i++)
		check(dat_ep_free(ep[i]), "dat_ep_free");
	check(dat_srq_free(srq), "dat_srq_free");
	check(dat_lmr_free(lmr), "dat_lmr_free");
	check(dat_evd_free(connect), "dat_evd_free");
	check(dat_evd_free(request), "dat_evd_free");
	check(dat_evd_free(recv), "dat_evd_free");
	check(dat_pz_free(pz), "dat_pz_free");
	check(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
	return 0;
}
