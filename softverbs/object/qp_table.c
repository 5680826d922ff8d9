/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The QPs of this process by number: a thread that finds one pins it. */
#include "softverbs/object/qp.h"

struct sv_qp *sv_qp_pin(uint32_t index)
{
	struct area *area = sv_area_own();
	struct sv_qp *qp;

	pthread_mutex_lock(&area->table_lock);
	qp = area->qp[index];
	if (qp)
		qp->pins++;
	pthread_mutex_unlock(&area->table_lock);
	return qp;
}

void sv_qp_unpin(struct sv_qp *qp)
{
	sv_area_unpin(&qp->pins);
}

void sv_qp_list(struct sv_qp *qp)
{
	pthread_mutex_lock(&sv_area_own()->table_lock);
	sv_area_own()->qp[qp->index] = qp;
	pthread_mutex_unlock(&sv_area_own()->table_lock);
}

void sv_qp_unlist(struct sv_qp *qp)
{
	struct area *area = sv_area_own();

	pthread_mutex_lock(&area->table_lock);
	area->qp[qp->index] = NULL;
	while (qp->pins)
		pthread_cond_wait(&area->unpinned, &area->table_lock);
	pthread_mutex_unlock(&area->table_lock);
}
