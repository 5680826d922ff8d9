/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* This room as a transport: the table, and the functions in it, which link/transport.h explains. */
#ifndef SV_FABRIC_TRANSPORT_H
#define SV_FABRIC_TRANSPORT_H

#include "softverbs/fabric/fabric.h"
#include "softverbs/link/transport.h"

extern const struct sv_transport sv_fabric_transport;

/* fabric.c */
void sv_fabric_start(void);
void sv_fabric_leave(void);
void sv_fabric_stop(void);
void sv_fabric_fork_prepare(void);
void sv_fabric_fork_parent(void);
void sv_fabric_fork_child(void);

/* endpoint.c */
bool sv_fabric_is_opening(void);

/* progress.c */
bool sv_far_progress(bool armed);

/* target.c */
void sv_fabric_handed(int fd, const void *payload, size_t size);

/* peers.c */
int sv_fabric_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size);
void sv_fabric_peer_free(struct sv_peer *peer);

/* far.c */
bool sv_far_host(const union ibv_gid *gid, struct sv_ip *host);
int sv_far_open(struct sv_qp *qp);

/* ud.c */
int sv_ud_far_send_locked(struct sv_qp *qp, const struct sv_ip *host,
			  const struct ud_ring_record *head, const struct iovec *iov,
			  unsigned count, bool solicited);
void sv_ud_far_close(struct sv_qp *qp);

#endif
