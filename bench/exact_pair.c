/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/exact_pair.h"

#define SECONDS 1000000u /* of DAT_TIMEOUT */

static uint64_t from, to;

void must(DAT_RETURN status, const char *call)
{
	const char *type = "?", *detail = "";

	if (status == DAT_SUCCESS)
		return;
	dat_strerror(status, &type, &detail);
	fprintf(stderr, "%s: %s %s\n", call, type, detail);
	exit(2);
}

static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER expected)
{
	DAT_EVENT event;
	DAT_COUNT more;

	MUST(dat_evd_wait(evd, 20 * SECONDS, 1, &event, &more));
	if (event.event_number != expected) {
		fprintf(stderr, "event %#x, not %#x\n", event.event_number, expected);
		exit(2);
	}
	return event;
}

static DAT_RMR_CONTEXT region(struct pair *pair, uint64_t *word, DAT_LMR_TRIPLET *triplet)
{
	DAT_REGION_DESCRIPTION region = { .for_va = word };
	DAT_RMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	memset(triplet, 0, sizeof(*triplet));
	triplet->virtual_address = (DAT_VADDR)(uintptr_t)word;
	triplet->segment_length = sizeof(*word);
	MUST(dat_lmr_create(pair->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(*word), pair->pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &triplet->lmr_context,
			    &key, NULL, NULL));
	return key;
}

static DAT_EP_ATTR attributes(void)
{
	DAT_EP_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	attr.service_type = DAT_SERVICE_TYPE_RC;
	attr.max_message_size = attr.max_rdma_size = sizeof(from);
	attr.qos = DAT_QOS_BEST_EFFORT;
	attr.max_recv_dtos = attr.max_request_dtos = PAIR_DEPTH;
	attr.max_recv_iov = attr.max_request_iov = 1;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 4;
	attr.max_rdma_read_iov = attr.max_rdma_write_iov = 1;
	return attr;
}

static void connect_them(struct pair *pair)
{
	DAT_IA_ATTR ia;
	DAT_CONN_QUAL port = 0;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_RETURN status = DAT_CONN_QUAL_IN_USE;

	MUST(dat_ia_query(pair->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	for (port = 45000; DAT_GET_TYPE(status) == DAT_CONN_QUAL_IN_USE && port < 46000; port++)
		status =
			dat_psp_create(pair->ia, port, pair->requests, DAT_PSP_CONSUMER_FLAG, &psp);
	must(status, "dat_psp_create");
	MUST(dat_ep_connect(pair->active, ia.ia_address_ptr, port - 1, 20 * SECONDS, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = next(pair->requests, DAT_CONNECTION_REQUEST_EVENT);
	MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->passive, 0,
			   NULL));
	next(pair->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
	next(pair->connections, DAT_CONNECTION_EVENT_ESTABLISHED);
	MUST(dat_psp_free(psp));
}

void pair_open(struct pair *pair, const char *ia)
{
	DAT_EP_ATTR attr = attributes();
	char name[DAT_NAME_MAX_LENGTH];

	memset(pair, 0, sizeof(*pair));
	snprintf(name, sizeof(name), "%s", ia);
	pair->async = DAT_HANDLE_NULL;
	MUST(dat_ia_open(name, 8, &pair->async, &pair->ia));
	MUST(dat_pz_create(pair->ia, &pair->pz));
	MUST(dat_evd_create(pair->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &pair->requests));
	MUST(dat_evd_create(pair->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG,
			    &pair->connections));
	MUST(dat_evd_create(pair->ia, 2 * PAIR_DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			    &pair->sent));
	MUST(dat_evd_create(pair->ia, 2 * PAIR_DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			    &pair->received));
	region(pair, &from, &pair->local);
	pair->remote.rmr_context = region(pair, &to, &pair->landing);
	pair->remote.virtual_address = pair->landing.virtual_address;
	pair->remote.segment_length = pair->landing.segment_length;
	MUST(dat_ep_create(pair->ia, pair->pz, pair->received, pair->sent, pair->connections, &attr,
			   &pair->active));
	MUST(dat_ep_create(pair->ia, pair->pz, pair->received, pair->sent, pair->connections, &attr,
			   &pair->passive));
	connect_them(pair);
}

void pair_close(struct pair *pair)
{
	MUST(dat_ia_close(pair->ia, DAT_CLOSE_ABRUPT_FLAG));
}
