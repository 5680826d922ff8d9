/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Locks in shared memory whose holder may be killed. Who waits for one breaks it when the holder's process is
 * gone, if their process ids can be compared. The owner of the memory breaks it in any case, for it is linked
 * with all who make operations there, and hears of their end.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "softverbs/stripe.h"
#include "util/clock.h"
#include "util/log.h"

#define STRIPE_LOOKS 1000u
#define STRIPE_DOUBT NSEC_PER_MSEC /* a holder that takes longer may be dead */

/* Parts of a holder. */
#define PID_BITS   22 /* the kernel's PID_MAX_LIMIT */
#define SPACE_BITS 18 /* of the number of its pid name space; 0: not known */
#define SPACE_MASK ((1u << SPACE_BITS) - 1)
#define WHO_SHIFT  (PID_BITS + SPACE_BITS)
#define SLOT_SHIFT (WHO_SHIFT + 12)

static_assert(SV_QPS == 1u << 12 && SV_SLOTS == 1u << 12, "slot and QP fit");

static pid_t holder_pid(uint64_t holder)
{
	return (pid_t)(holder & ((1u << PID_BITS) - 1));
}

static uint32_t holder_space(uint64_t holder)
{
	return (uint32_t)(holder >> PID_BITS) & SPACE_MASK;
}

static uint16_t holder_slot(uint64_t holder)
{
	return (uint16_t)(holder >> SLOT_SHIFT);
}

uint64_t stripe_holder(uint16_t slot)
{
	uint64_t space = 0;
	struct stat stat_space;

	if (!stat("/proc/self/ns/pid", &stat_space))
		space = 1 + stat_space.st_ino % SPACE_MASK;
	return (uint64_t)slot << SLOT_SHIFT | space << PID_BITS | (uint64_t)getpid();
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

/* In another pid name space the number says nothing: it may be nobody's here, or a stranger's. */
static bool holder_is_gone(const struct sv_peer *owner, uint64_t holder)
{
	uint64_t self = area_own()->holder;

	if (holder_space(holder) && holder_space(holder) == holder_space(self))
		return process_is_gone(holder_pid(holder));
	if (owner == peer_self()) /* perhaps the engine, which cannot wait for itself */
		return holder_slot(holder) != owner->slot && !peer_is_there(holder_slot(holder));
	return atomic_load_explicit(&owner->dead, memory_order_relaxed);
}

static void stripe_break(struct rw_stripe *stripe, uint64_t holder)
{
	/* unless somebody has done so already */
	if (atomic_compare_exchange_strong_explicit(&stripe->holder, &holder, 0,
						    memory_order_relaxed, memory_order_relaxed))
		log_at(LOG_WARN, "softverbs: slot %u, process %d, died in an atomic operation",
		       holder_slot(holder), (int)holder_pid(holder));
}

struct rw_stripe *stripe_take(const struct sv_peer *owner, uint64_t va, uint32_t who)
{
	static const struct timespec nap = { .tv_nsec = 20000 };
	struct rw_stripe *stripe = &owner->rw->stripe[(va >> 3 ^ va >> 9) % SV_STRIPES];
	uint64_t self = area_own()->holder | (uint64_t)who << WHO_SHIFT, holder = 0, doubt = 0;

	/* acquire: what the last holder wrote is there */
	for (uint32_t looks = 1;
	     !atomic_compare_exchange_weak_explicit(&stripe->holder, &holder, self,
						    memory_order_acquire, memory_order_relaxed);
	     looks++) {
		if (looks < STRIPE_LOOKS)
			cpu_relax();
		else if (!doubt)
			doubt = clock_now() + STRIPE_DOUBT;
		else if (clock_now() < doubt)
			sched_yield();
		else if (holder && holder_is_gone(owner, holder))
			stripe_break(stripe, holder);
		else
			nanosleep(&nap, NULL);
		holder = 0;
	}
	return stripe;
}

void stripe_give(struct rw_stripe *stripe, uint32_t who)
{
	uint64_t self = area_own()->holder | (uint64_t)who << WHO_SHIFT;

	/*
	 * release: pairs with the next holder's acquire; not when a wrong guess has taken it away
	 * meanwhile
	 */
	atomic_compare_exchange_strong_explicit(&stripe->holder, &self, 0, memory_order_release,
						memory_order_relaxed);
}

void stripes_forget(uint16_t slot)
{
	struct rw_stripe *stripe = peer_self()->rw->stripe;

	for (unsigned i = 0; i < SV_STRIPES; i++) {
		uint64_t holder = atomic_load_explicit(&stripe[i].holder, memory_order_relaxed);

		if (holder && holder_slot(holder) == slot)
			stripe_break(&stripe[i], holder);
	}
}
