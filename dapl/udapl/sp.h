/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Service points and the connection requests that arrive at them. */
#ifndef DAPL_SP_H
#define DAPL_SP_H

#include <pthread.h>
#include "dapl/udapl/ep.h"

/* Bytes before a consumer's reject data: version of DAT, version of the provider. */
#define CR_REJECT_HEADER 4

/*
 * A listener whose requests become events. The three kinds differ in the port they listen on and
 * in the EP that a request comes with: none, one that is made for it, or the one that is reserved.
 */
struct dapl_sp {
	struct obj obj;
	enum obj_kind kind;   /* OBJ_PSP, OBJ_RSP or OBJ_CSP */
	struct dapl_evd *evd; /* constant */
	DAT_CONN_QUAL qual;   /* all 64 bits; the port is derived. CSP: 0 */
	struct ib_listener *listener;
	DAT_PSP_FLAGS flags; /* PSP */
	struct dapl_ep *ep;  /* RSP: its EP, ours for as long as nothing is taken */
	/* RSP: its request came; event thread, then whoever frees it */
	bool taken;
	DAT_COMM comm;			 /* CSP */
	struct sockaddr_storage address; /* CSP: where it listens */
};

struct dapl_cr {
	struct obj obj;
	struct ib_conn *conn; /* owned until accepted, rejected or destroyed */
	DAT_CR_PARAM param;   /* what dat_cr_query answers; points into this object */
	struct dapl_ep *ep;   /* came with it; still meant for it while ep->cr says so */
	bool tentative;	      /* that EP was made for this request */
	bool datagrams;	      /* asks for an endpoint of that kind */
	DAT_COMM comm;	      /* of its CSP */
	struct sockaddr_storage remote;
	uint8_t responder_resources, initiator_depth;
	unsigned char private_data[EP_PRIVATE_DATA_MAX]; /* the consumer may write into it */
};

static inline struct dapl_sp *psp_from(DAT_PSP_HANDLE handle)
{
	return obj_from(handle, OBJ_PSP);
}

static inline struct dapl_sp *rsp_from(DAT_RSP_HANDLE handle)
{
	return obj_from(handle, OBJ_RSP);
}

static inline struct dapl_sp *csp_from(DAT_CSP_HANDLE handle)
{
	return obj_from(handle, OBJ_CSP);
}

static inline struct dapl_cr *cr_from(DAT_CR_HANDLE handle)
{
	return obj_from(handle, OBJ_CR);
}

/* The port that stands for a qualifier on the wire; both sides compute it alike. */
static inline uint16_t qual_port(DAT_CONN_QUAL qual)
{
	return qual > 65535 ? qual % 32001 + 33534 : qual;
}

/* In host order; the address is of a family that the CM has. */
uint16_t address_port(const struct sockaddr_storage *address);

/* What the three kinds share (sp.c). Not yet published; NULL with the failure in `status`. */
struct dapl_sp *sp_new(struct dapl_ia *ia, enum obj_kind kind, struct dapl_evd *evd,
		       DAT_RETURN *status);
/*
 * Listens. A request may come before this returns, so the handle is valid and written first; after
 * a failure it is what it was before.
 */
DAT_RETURN sp_listen(struct dapl_sp *sp, uint16_t port, DAT_HANDLE *handle);
void sp_deafen(struct dapl_sp *sp);  /* no request comes after this */
void sp_destroy(struct dapl_sp *sp); /* accepts a half-built one */
/* NULL, or one that is being freed: E(INVALID_HANDLE, subtype). */
DAT_RETURN sp_free(struct dapl_sp *sp, DAT_UINT32 subtype);
void sp_request_upcall(void *listener_owner, struct ib_conn *conn,
		       const struct ib_request *request);

/* Owns `conn` on success; NULL: no memory. */
struct dapl_cr *cr_create(struct dapl_ia *ia, struct ib_conn *conn,
			  const struct ib_request *request);
void cr_destroy(struct dapl_cr *cr); /* refuses a request not yet answered */

#endif
