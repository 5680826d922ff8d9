/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `sp`: service points, public, reserved and common, and the connection requests that arrive at them.
 *
 * A request becomes one event at the point's EVD; if it finds no room there, it is refused. Accept, reject or handoff answers
 * it, once; its point may be freed before.
 * Locks: it has none of its own. A point does not change, but for `taken`; a request that comes with an EP, and one that is
 * accepted, use that EP's mutex.
 */
#ifndef DAPL_SP_H
#define DAPL_SP_H

#include <pthread.h>
#include "dapl/udapl/ep/cr.h"
#include "util/log_limit.h"

/*
 * A listener whose requests become events. The three kinds differ in their port and in the EP that
 * comes with a request: none, one that is created for it, or the reserved one.
 */
struct dapl_sp {
	struct obj obj;
	enum obj_kind kind;   /* OBJ_PSP, OBJ_RSP or OBJ_CSP */
	struct dapl_evd *evd; /* constant */
	DAT_CONN_QUAL qual;   /* all 64 bits; the port is derived from it; 0 for a CSP */
	struct ib_listener *listener;
	DAT_PSP_FLAGS flags; /* of a PSP */
	struct dapl_ep *ep;  /* of an RSP: its EP, reserved until `taken` */
	/*
	 * of an RSP: its request arrived; used by the event thread, then by the thread that frees
	 * the RSP
	 */
	bool taken;
	struct log_limit refusals;	 /* lines about requests without room; upcalls only */
	DAT_COMM comm;			 /* of a CSP */
	struct sockaddr_storage address; /* of a CSP: the address that it listens on */
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

/*
 * Creates the common part of the three kinds (sp/sp.c), not yet published. Returns NULL
 * with the failure in `status`.
 */
struct dapl_sp *sp_new(struct dapl_ia *ia, enum obj_kind kind, struct dapl_evd *evd,
		       DAT_RETURN *status);
/*
 * Starts the listener. A request may come before this returns, so the handle is valid and written
 * first; after a failure it has its former value.
 */
DAT_RETURN sp_listen(struct dapl_sp *sp, uint16_t port, DAT_HANDLE *handle);
/*
 * The same on the port of its qualifier. E(INVALID_PARAMETER, INVALID_ARG2) if the qualifier has no
 * port.
 */
DAT_RETURN sp_listen_qual(struct dapl_sp *sp, DAT_HANDLE *handle);
void sp_deafen(struct dapl_sp *sp);  /* no request arrives after return */
void sp_destroy(struct dapl_sp *sp); /* accepts a half-built one */
/* Returns E(INVALID_HANDLE, subtype) for NULL or a service point that is being freed. */
DAT_RETURN sp_free(struct dapl_sp *sp, DAT_UINT32 subtype);
void sp_request_upcall(void *listener_owner, struct ib_conn *conn,
		       const struct ib_request *request);

/* Owns `conn` on success; returns NULL without memory. */
struct dapl_cr *cr_create(struct dapl_ia *ia, struct ib_conn *conn,
			  const struct ib_request *request);
void cr_destroy(struct dapl_cr *cr); /* rejects a request that is not yet answered */

#endif
