/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Faults on request: sends that find no receive, that take long, links that are cut. A QP without any never
 * comes here. Each work request goes through the stages in order, however often it is tried.
 */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/fault.h"
#include "softverbs/settings.h"
#include "softverbs/tx.h"
#include "util/clock.h"
#include "util/log.h"

#define RNR_MOST NSEC_PER_MSEC /* the timer of a QP of rdma_cm would hold it up for 655 ms */

enum stage {
	STAGE_NEW,
	STAGE_LATE, /* until `until` */
	STAGE_IN_TIME,
	STAGE_REFUSED, /* no receive, until `until` */
	STAGE_FREE,
};

struct sv_fault {		   /* SQ lock */
	struct sv_fault_plan plan; /* constant */
	struct sv_qp *qp;
	uint32_t number; /* sq.exec of what is in this stage */
	enum stage stage;
	uint32_t messages, done; /* that need a receive; all */
	uint64_t until;
	struct sv_timer timer;
};

int fault_open(struct sv_fault **fault, struct sv_qp *qp)
{
	struct sv_fault_plan plan;

	*fault = NULL;
	if (!sv_setting_fault(&plan))
		return 0;
	*fault = calloc(1, sizeof(**fault));
	if (!*fault)
		return ENOMEM;
	(*fault)->plan = plan;
	(*fault)->qp = qp;
	return 0;
}

void fault_cancel(struct sv_fault *fault)
{
	if (fault)
		engine_timer_cancel(&fault->timer);
}

void fault_close(struct sv_fault *fault)
{
	free(fault);
}

static void fault_fire(struct sv_timer *timer)
{
	sq_run(container(sv_fault, timer, timer)->qp);
}

static int wait_for(struct sv_fault *fault, enum stage stage, uint64_t time, enum sq_wait why)
{
	fault->stage = stage;
	fault->until = clock_now() + time;
	engine_timer_arm(&fault->timer, fault->until, fault_fire);
	return EXEC_WAIT(why);
}

/* Polls try it meanwhile, too. */
static bool is_over(const struct sv_fault *fault)
{
	return clock_now() >= fault->until;
}

static bool needs_receive(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
	       wr->opcode == IBV_WR_SEND_WITH_INV || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Found no receive: what the service makes of that. 1: the message is lost. */
static int refuse(struct sv_fault *fault)
{
	struct sv_qp *qp = fault->qp;
	uint64_t time;
	int status;

	if (qp->sq.service != SERVICE_RC) {
		fault->stage = STAGE_FREE;
		return 1;
	}
	status = tx_enter_locked(qp); /* the responder has the timer's code */
	if (status)
		return status;
	window_leave(&qp->tx);
	/* over before the first retry is counted */
	time = sq_rnr_period(qp) / 2;
	return wait_for(fault, STAGE_REFUSED, time < RNR_MOST ? time : RNR_MOST, SQ_RNR);
}

/* 0: go on; 1: the message is lost; else EXEC_WAIT of what is pretended. */
static int fault_before(struct sv_fault *fault, const struct ibv_send_wr *wr)
{
	const struct sv_fault_plan *plan = &fault->plan;

	if (fault->stage == STAGE_NEW || fault->number != fault->qp->sq.exec) {
		fault->number = fault->qp->sq.exec;
		fault->stage = STAGE_IN_TIME;
		if (needs_receive(wr))
			fault->messages++;
		if (plan->delay)
			return wait_for(fault, STAGE_LATE, plan->delay * NSEC_PER_USEC, SQ_DELAYED);
	}
	if (fault->stage == STAGE_LATE) {
		if (!is_over(fault))
			return EXEC_WAIT(SQ_DELAYED);
		fault->stage = STAGE_IN_TIME;
	}
	if (fault->stage == STAGE_IN_TIME && plan->rnr && needs_receive(wr) &&
	    fault->messages % plan->rnr == 0)
		return refuse(fault);
	if (fault->stage == STAGE_REFUSED && !is_over(fault))
		return EXEC_WAIT(SQ_RNR);
	fault->stage = STAGE_FREE;
	return 0;
}

static void fault_after(struct sv_fault *fault)
{
	struct sv_peer *peer;

	fault->stage = STAGE_NEW;
	if (++fault->done != fault->plan.drop)
		return;
	peer = atomic_load_explicit(&fault->qp->peer, memory_order_acquire);
	if (!peer)
		return;
	log_at(LOG_NOTE, "softverbs: qp 0x%x: SOFTVERBS_FAULT cuts the link to slot %u",
	       fault->qp->ibv.qp_num, peer->slot);
	peer_cut(peer);
}

int fault_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	int status = fault_before(qp->fault, wr);

	if (status < 0)
		return status;
	if (status)
		status = IBV_WC_SUCCESS;
	else if (qp->sq.service != SERVICE_RC)
		status = unreliable_execute_locked(qp, wr, length);
	else
		status = sq_execute_connected_locked(qp, wr, length);
	if (status >= 0)
		fault_after(qp->fault);
	return status;
}
