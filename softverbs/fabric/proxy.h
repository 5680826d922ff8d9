/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A proxy is a QP of this process, the initiator of the requests that the peer of another QP sends from another host. All
 * proxies of a process share a CQ, for which the engine waits. All calls with the data lock.
 */
#ifndef SV_FABRIC_PROXY_H
#define SV_FABRIC_PROXY_H

#include "softverbs/fabric/data.h"

/* Makes far->proxy for this QP. 0, or an errno with a log line; then nothing is left. `ready`, in the engine: proxies have
 * completions. */
int sv_far_proxy_open_locked(struct sv_far *far, struct sv_qp *qp, void (*ready)(void));
void sv_far_proxy_close_locked(struct sv_far *far);
/* The retries of the initiator. Another thread may be executing the proxy's requests. */
void sv_far_proxy_patience_locked(struct sv_far *far, const struct far_request *request);
void sv_far_proxies_fork_child(void);

/* Where proxies complete. */
struct ibv_cq *sv_far_proxies_cq_locked(void);
/* The local key of all memory of this process. */
uint32_t sv_far_proxies_key_locked(void);
/* The engine is to take what completes from here on; false if it is already. */
bool sv_far_proxies_arm_locked(void);

#endif
