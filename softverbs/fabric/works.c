/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The memory of requests of QPs of other hosts. */
#include <stdlib.h>
#include "softverbs/fabric/works.h"

static uint64_t bytes; /* of all QPs; the data lock */

struct far_work *sv_far_work_new_locked(struct sv_far *far, const struct far_request *request)
{
	struct far_work *work = NULL;

	if (bytes + request->length <= FAR_BUFFERS)
		work = malloc(sizeof(*work) + request->length);
	if (!work)
		return NULL;
	*work = (struct far_work){ .far = far, .request = *request };
	bytes += request->length;
	return work;
}

void sv_far_work_free_locked(struct far_work *work)
{
	if (!work)
		return;
	bytes -= work->request.length;
	free(work);
}

void sv_far_works_fork_child(void)
{
	bytes = 0; /* the parent's */
}
