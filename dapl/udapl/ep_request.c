/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An endpoint and the connection request that it is reserved, or was made, for. */
#include "dapl/udapl/ep.h"
#include "dapl/udapl/sp.h"

void ep_peer_locked(struct dapl_ep *ep, const struct dapl_cr *cr)
{
	ep->comm = cr->comm;
	ep->remote = cr->remote;
	ep->remote_port = cr->param.remote_port_qual;
	ep->local_port = ib_conn_local_port(cr->conn);
	ep->qual = ep->remote_port;
}

bool ep_request_locked(struct dapl_ep *ep, struct dapl_cr *cr)
{
	if (!ep_set_state_locked(ep, cr->tentative ? EP_TENTATIVE : EP_REQUEST))
		return false;
	ep->cr = cr;
	cr->param.local_ep_handle = ep;
	ep_peer_locked(ep, cr);
	return true;
}

void ep_request_over_locked(struct dapl_ep *ep, enum ep_event event)
{
	ep->cr = NULL;
	if (ep_set_state_locked(ep, event))
		ep_forget_peer_locked(ep);
}
