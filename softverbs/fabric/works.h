/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Requests of QPs of other hosts while they come in and are executed. All calls with the data lock. */
#ifndef SV_FABRIC_WORKS_H
#define SV_FABRIC_WORKS_H

#include "softverbs/fabric/data.h"

struct far_work {
	STAILQ_ENTRY(far_work) entry;
	struct sv_far *far;
	struct far_request request;
	uint32_t have; /* bytes that have come */
	uint8_t data[];
};

/* NULL without memory, or if requests of others have FAR_BUFFERS already. */
struct far_work *sv_far_work_new_locked(struct sv_far *far, const struct far_request *request);
void sv_far_work_free_locked(struct far_work *work);
void sv_far_works_fork_child(void);

#endif
