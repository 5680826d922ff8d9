/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Atomic operations: read, compute, write by the initiator, one at a time for each stripe. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "softverbs/bounce.h"
#include "softverbs/memory.h"
#include "softverbs/rdma.h"
#include "util/clock.h"
#include "util/log.h"

#define STRIPE_LOOKS 1000u
#define STRIPE_DOUBT NSEC_PER_MSEC	/* a holder that takes longer may be dead */

/* ---- stripes ---- */

static struct rw_stripe *stripe_of(const struct sv_peer *peer, uint64_t va)
{
	return &peer->rw->stripe[(va >> 3 ^ va >> 9) % SV_STRIPES];
}

/* A killed process that nobody has waited for yet still has its number. */
static bool process_is_gone(pid_t pid)
{
	char path[32], state = 0;
	FILE *file;

	if (kill(pid, 0) && errno == ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'Z' || state == 'X';
}

static void stripe_take(struct rw_stripe *stripe, uint64_t self)
{
	static const struct timespec nap = { .tv_nsec = 20000 };
	uint64_t holder = 0, doubt = 0;

	/* acquire: what the last holder wrote is there */
	for (uint32_t looks = 1; !atomic_compare_exchange_weak_explicit(
		     &stripe->holder, &holder, self, memory_order_acquire, memory_order_relaxed);
	     looks++) {
		if (looks < STRIPE_LOOKS) {
			cpu_relax();
		} else if (!doubt) {
			doubt = clock_now() + STRIPE_DOUBT;
		} else if (clock_now() < doubt) {
			sched_yield();
		} else if (holder && process_is_gone((pid_t)(holder >> 32))) {
			log_at(LOG_WARN, "softverbs: process %d died in an atomic operation",
			       (int)(holder >> 32));
			atomic_compare_exchange_strong_explicit(&stripe->holder, &holder, 0,
								memory_order_relaxed,
								memory_order_relaxed);
		} else {
			nanosleep(&nap, NULL);
		}
		holder = 0;
	}
}

static void stripe_give(struct rw_stripe *stripe, uint64_t self)
{
	/*
	 * release: pairs with the next holder's acquire; not when a wrong guess has taken it away
	 * meanwhile
	 */
	atomic_compare_exchange_strong_explicit(&stripe->holder, &self, 0, memory_order_release,
						memory_order_relaxed);
}

/* ---- operations ---- */

static uint64_t atomic_result(bool add, const uint64_t args[2], uint64_t old)
{
	if (add)
		return old + args[0];
	return old == args[0] ? args[1] : old;
}

/* In this process also against the program's own atomic instructions. */
uint64_t atomic_own(uint64_t va, bool add, const uint64_t args[2])
{
	uint64_t self = (uint64_t)area_own()->ro->pid << 32, old;
	struct rw_stripe *stripe = stripe_of(peer_self(), va);
	_Atomic(uint64_t) *word = (_Atomic(uint64_t) *)(uintptr_t)va;

	stripe_take(stripe, self);
	old = atomic_load(word);
	while (!atomic_compare_exchange_weak(word, &old, atomic_result(add, args, old)))
		;
	stripe_give(stripe, self);
	return old;
}

static enum copy_result atomic_peer(const struct sv_peer *peer, bool add, const uint64_t args[2],
				    uint64_t va, uint64_t *old)
{
	struct iovec there = { (void *)(uintptr_t)va, sizeof(*old) }, here = { old, sizeof(*old) };
	enum copy_result result = copy_in(peer, &here, 1, 0, &there, 1, sizeof(*old));
	uint64_t new;

	if (result != COPY_DONE)
		return result;
	new = atomic_result(add, args, *old);
	if (new == *old)
		return COPY_DONE;
	here.iov_base = &new;
	return copy_out(peer, &here, 1, 0, &there, 1, sizeof(new));
}

/* Inside the window. */
static enum ibv_wc_status atomic_check(struct sv_tx *tx, const struct ibv_send_wr *wr, uint64_t *va)
{
	if (!(atomic_load_explicit(&tx->ro->access, memory_order_relaxed) &
	      IBV_ACCESS_REMOTE_ATOMIC) ||
	    !atomic_load_explicit(&tx->ro->max_dest_rd, memory_order_relaxed) ||
	    wr->wr.atomic.remote_addr % 8) {
		tx_report(tx, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (!rdma_allows(tx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, sizeof(uint64_t),
			 IBV_ACCESS_REMOTE_ATOMIC, va) || *va % 8) {
		tx_report(tx, FAULT_ACCESS);
		return IBV_WC_REM_ACCESS_ERR;
	}
	return IBV_WC_SUCCESS;
}

static int atomic_bounce(struct sv_qp *qp, const struct ibv_send_wr *wr, bool add,
			 const uint64_t args[2], uint64_t *old)
{
	struct bounce_op op = {
		.kind = add ? BOUNCE_FETCH_ADD : BOUNCE_CMP_SWP,
		.key = wr->wr.atomic.rkey,
		.addr = wr->wr.atomic.remote_addr,
		.length = sizeof(*old),
		.args = { args[0], args[1] },
	};
	int status = bounce_move(qp, &op);

	*old = qp->bounce.old;
	return status;
}

static int atomic_do(struct sv_qp *qp, const struct ibv_send_wr *wr, uint64_t *old)
{
	uint64_t self = (uint64_t)area_own()->ro->pid << 32 | qp->index, va = 0;
	uint64_t args[2] = { wr->wr.atomic.compare_add, wr->wr.atomic.swap };
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct sv_tx *tx = &qp->tx;
	struct rw_stripe *stripe;
	int status;

	if (tx->copy == SV_COPY_BOUNCE)
		return atomic_bounce(qp, wr, add, args, old);
	status = atomic_check(tx, wr, &va);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (tx->copy == SV_COPY_SELF) {
		struct iovec word = { (void *)(uintptr_t)va, sizeof(*old) };

		if (!memory_is_there(&word, 1, true))
			return rdma_copied(tx, COPY_THERE);
		*old = atomic_own(va, add, args);
		return IBV_WC_SUCCESS;
	}
	stripe = stripe_of(tx->peer, va);
	stripe_take(stripe, self);
	status = rdma_copied(tx, atomic_peer(tx->peer, add, args, va, old));
	stripe_give(stripe, self);
	return status;
}

int atomic_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct iovec iov[SV_MAX_SGE];
	uint8_t *from;
	uint64_t old;
	int status;

	if (length != sizeof(old))
		return IBV_WC_LOC_LEN_ERR;
	if (!send_resolve(qp, wr, IBV_ACCESS_LOCAL_WRITE, iov))
		return IBV_WC_LOC_PROT_ERR;
	if (!qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	status = tx_enter_locked(qp);
	if (status)
		return status;
	status = atomic_do(qp, wr, &old);
	window_leave(&qp->tx);
	if (status != IBV_WC_SUCCESS)
		return status;
	from = (uint8_t *)&old;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return IBV_WC_SUCCESS;
}
