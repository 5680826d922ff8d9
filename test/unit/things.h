/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One live object of each kind over the fake device, and memory for the outputs of a call. */
#ifndef THINGS_H
#define THINGS_H

#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"
#include "dapl/udapl/sp/sp.h"

static char things_memory[4096];

/* Outputs of all calls. A call that fails must not change any byte. */
union things_out {
	unsigned char bytes[2048];
	struct {
		DAT_HANDLE handle, second;
		DAT_LMR_CONTEXT lkey;
		DAT_RMR_CONTEXT rkey;
		DAT_VLEN size;
		DAT_VADDR address;
		DAT_CONN_QUAL qual;
		DAT_FD fd;
		DAT_COUNT count, span;
		DAT_EP_STATE state;
		DAT_BOOLEAN idle[2];
		DAT_EVENT event;
		DAT_CONTEXT context;
		DAT_HANDLE_TYPE type;
		DAT_IA_ATTR ia;
		DAT_PROVIDER_ATTR provider;
	};
	DAT_PZ_PARAM pz;
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;
	DAT_EVD_PARAM evd;
	DAT_CNO_PARAM cno;
	DAT_EP_PARAM ep;
	DAT_SRQ_PARAM srq;
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CSP_PARAM csp;
	DAT_CR_PARAM cr;
};

struct things {
	struct rig rig;
	DAT_EVD_HANDLE requests, software;
	DAT_EP_HANDLE reserved;
	DAT_LMR_CONTEXT lkey;
	DAT_IA_ADDRESS_PTR address;
	union {
		struct {
			DAT_HANDLE ia, pz, lmr, rmr, evd, cno, ep, srq, psp, rsp, csp, cr;
		};
		DAT_HANDLE all[12];
	};
};

static struct things things;
static union things_out things_out;

static inline DAT_HANDLE things_request(DAT_PSP_HANDLE psp)
{
	struct ib_request arrived = { .data = NULL };
	struct ib_conn *conn = fake_new(sizeof(*conn), &fake.conns);

	arrived.remote.ss_family = arrived.local.ss_family = AF_INET;
	fake.upcalls.request(psp, conn, &arrived);
	return rig_take(things.requests).event_data.cr_arrival_event_data.cr_handle;
}

static inline void things_open(void)
{
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 2 };
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(7003) };
	DAT_REGION_DESCRIPTION region = { .for_va = things_memory };
	struct things *t = &things;
	DAT_EP_ATTR attr = rig_attr();
	DAT_IA_ATTR ia;

	memset(t, 0, sizeof(*t));
	rig_open(&t->rig, &attr);
	t->ia = t->rig.ia;
	t->pz = t->rig.pz;
	t->ep = t->rig.ep;
	t->evd = t->rig.conn;
	MUST(dat_ia_query(t->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	t->address = ia.ia_address_ptr;
	t->requests = rig_evd(&t->rig, RIG_QLEN, DAT_EVD_CR_FLAG);
	t->software = rig_evd(&t->rig, RIG_QLEN, DAT_EVD_SOFTWARE_FLAG);
	MUST(dat_lmr_create(t->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(things_memory), t->pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &t->lmr, &t->lkey, NULL, NULL,
			    NULL));
	MUST(dat_rmr_create(t->pz, &t->rmr));
	MUST(dat_cno_create(t->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &t->cno));
	MUST(dat_srq_create(t->ia, t->pz, &srq, &t->srq));
	MUST(dat_psp_create(t->ia, 7001, t->requests, DAT_PSP_CONSUMER_FLAG, &t->psp));
	MUST(dat_ep_create(t->ia, t->pz, t->rig.recv, t->rig.request, t->rig.conn, &attr,
			   &t->reserved));
	MUST(dat_rsp_create(t->ia, 7002, t->reserved, t->requests, &t->rsp));
	MUST(dat_csp_create(t->ia, &comm, (DAT_IA_ADDRESS_PTR)&any, t->requests, &t->csp));
	t->cr = things_request(t->psp);
	memset(&things_out, 0xa5, sizeof(things_out));
}

static inline void things_close(void)
{
	struct things *t = &things;

	MUST(dat_cr_reject(t->cr, 0, NULL));
	MUST(dat_csp_free(t->csp));
	MUST(dat_rsp_free(t->rsp));
	MUST(dat_ep_free(t->reserved));
	MUST(dat_psp_free(t->psp));
	MUST(dat_srq_free(t->srq));
	MUST(dat_cno_free(t->cno));
	/* binds in flight end with the endpoint and release the LMR */
	if (t->rig.ep)
		MUST(dat_ep_free(t->rig.ep));
	t->rig.ep = DAT_HANDLE_NULL;
	MUST(dat_rmr_free(t->rmr));
	MUST(dat_lmr_free(t->lmr));
	MUST(dat_evd_free(t->requests));
	MUST(dat_evd_free(t->software));
	rig_close(&t->rig);
}

static inline bool things_untouched(void)
{
	size_t i;

	for (i = 0; i < sizeof(things_out.bytes); i++)
		if (things_out.bytes[i] != 0xa5)
			return false;
	return true;
}

#endif
