/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The event extension, edition 1.0: descriptors of EVDs and CNOs for event loops, arming before a
 * sleep, batches of events, wake-ups without an event, poll sets, and waiting for memory.
 */
#ifndef _DAT_EVENT_EXTENSIONS_H_
#define _DAT_EVENT_EXTENSIONS_H_

#include <poll.h>
#include <dat2/udat.h>

#define DAT_EV_VERSION_MAJOR 1
#define DAT_EV_VERSION_MINOR 0

/*
 * Names among the provider_specific_attr of dat_ia_query(). The first has the edition ("1.0") as
 * its value; an operation is there if its name is, with the value "TRUE". Without the first, every
 * call below gives the type DAT_NOT_IMPLEMENTED, and a consumer goes on with the calls of DAT.
 */
#define DAT_EV_ATTR_EXTENSION	  "DAT_EVENT_EXTENSION"
#define DAT_EV_ATTR_EVD_GET_FD	  "DAT_EVD_GET_FD"
#define DAT_EV_ATTR_EVD_ARM	  "DAT_EVD_ARM"
#define DAT_EV_ATTR_EVD_DEQUEUE_N "DAT_EVD_DEQUEUE_N"
#define DAT_EV_ATTR_EVD_SIGNAL	  "DAT_EVD_SIGNAL"
#define DAT_EV_ATTR_CNO_GET_FD	  "DAT_CNO_GET_FD"
#define DAT_EV_ATTR_CNO_ARM	  "DAT_CNO_ARM"
#define DAT_EV_ATTR_CNO_SIGNAL	  "DAT_CNO_SIGNAL"
#define DAT_EV_ATTR_CNO_POLL	  "DAT_CNO_POLL"
#define DAT_EV_ATTR_CNO_POLLFDS	  "DAT_CNO_POLLFDS"
#define DAT_EV_ATTR_TRYWAIT	  "DAT_TRYWAIT"
#define DAT_EV_ATTR_POLL_SET	  "DAT_POLL_SET"
#define DAT_EV_ATTR_WAIT_MEM	  "DAT_WAIT_MEM"
/* How waits of the IA spend their time, from dapl.conf(5): "block", "spin" or "yield". */
#define DAT_EV_ATTR_WAIT_POLICY "DAT_WAIT_POLICY"

/* Operations of dat_extension_op(); bits 12 and 13 are clear. */
typedef enum dat_ev_op {
	DAT_EV_VERSION_OP = 0x4000,
	DAT_EVD_GET_FD_OP = 0x4001,
	DAT_EVD_ARM_OP = 0x4002,
	DAT_EVD_DEQUEUE_N_OP = 0x4003,
	DAT_EVD_PENDING_OP = 0x4004,
	DAT_EVD_SIGNAL_OP = 0x4005,
	DAT_EVD_WAIT_POLICY_OP = 0x4006,
	DAT_CNO_GET_FD_OP = 0x4010,
	DAT_CNO_ARM_OP = 0x4011,
	DAT_CNO_SIGNAL_OP = 0x4012,
	DAT_CNO_POLL_OP = 0x4013,
	DAT_CNO_GET_POLLFDS_OP = 0x4014,
	DAT_TRYWAIT_OP = 0x4020,
	DAT_WAIT_MEM_OP = 0x4021,
	DAT_PSET_CREATE_OP = 0x4030,
	DAT_PSET_ADD_OP = 0x4031,
	DAT_PSET_DEL_OP = 0x4032,
	DAT_PSET_POLL_OP = 0x4033,
	DAT_PSET_FREE_OP = 0x4034
} DAT_EV_OP;

/*
 * Not safe to sleep: an event or a signal is pending, and the caller may not rely on an armed
 * descriptor. The whole value, without a class: it is an ordinary outcome.
 */
#define DAT_EV_BUSY ((DAT_RETURN)0x10010000)

/* Flags of arming. SOLICITED: completions notify only if they are solicited or failed. */
#define DAT_EV_ARM_SOLICITED 0x1u

/* How a dat_evd_wait() that finds too little spends its time, see DAT_EVD_WAIT_POLICY(). */
typedef enum dat_ev_wait_policy {
	DAT_EV_WAIT_BLOCK, /* polls for spin_us microseconds, then sleeps */
	DAT_EV_WAIT_SPIN,  /* polls until the end */
	DAT_EV_WAIT_YIELD  /* polls until the end, and yields the processor between two polls */
} DAT_EV_WAIT_POLICY;

#define DAT_HANDLE_TYPE_PSET \
	((DAT_HANDLE_TYPE)(DAT_HANDLE_TYPE_EXTENSION_BASE + 16)) /* of a poll set */

/* What DAT_CNO_GET_POLLFDS() takes and fills in. */
typedef struct dat_ev_pollfds {
	DAT_UINT64 change_index; /* OUT: 1 at first, and grows whenever the list changes */
	DAT_COUNT nfds;		 /* IN: room in fds; OUT: how many there are */
	struct pollfd *fds;	 /* filled if there is room for all */
} DAT_EV_POLLFDS;

/*
 * The calls are inline functions over dat_extension_op(), so that the compiler checks their
 * arguments; at the end of this file each is a macro of its own name, too, for #ifdef.
 * ARGn counts the arguments of dat_extension_op(): ARG1 is the handle, ARG2 the operation, and ARG3
 * the second parameter of the function. Any number of threads may call any of them at a time, except
 * where it says "not thread safe".
 * - NOT_IMPLEMENTED: the provider does not have the extension (with or without an error class)
 * - INVALID_HANDLE/EVD_REQUEST for an EVD, INVALID_HANDLE/CNO for a CNO, INVALID_HANDLE/HANDLE1 for
 *   any other handle that the call is not for
 *
 * An event is pending if a dequeue could return it now. An EVD is ready if at least `threshold`
 * events are pending, if it was signalled, if its queue overflowed, or if it is unwaitable.
 *
 * A descriptor belongs to its object, is the same one each time, and lasts until the object is
 * freed. Consumers watch it for readability (poll, select, epoll) and do nothing else to it. It is
 * non-blocking and close-on-exec. Edge-triggered watching works if an arm follows each wake-up.
 *
 * The rule of arming: after a success the descriptor is not readable, unless something has happened
 * since; and it becomes readable when the object becomes ready through an event that notifies, a
 * signal, an overflow, or dat_evd_set_unwaitable(). It holds for one sleep: after the descriptor was
 * readable, and after any call that takes events, arm again. After DAT_EV_BUSY the state of the
 * descriptor means nothing. Arming twice does no harm. A descriptor may become readable without a
 * cause.
 */

/* The edition of the provider's extension. ARG3, ARG4: NULL. */
static __inline__ DAT_RETURN DAT_EV_VERSION(DAT_IA_HANDLE ia, DAT_UINT32 *major, DAT_UINT32 *minor)
{
	return dat_extension_op(ia, DAT_EV_VERSION_OP, major, minor);
}

/* ---- Event dispatchers ---- */

/*
 * A descriptor for any EVD, made by the first call, not armed.
 * - ARG3: fd is NULL
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY: no descriptor is left
 */
static __inline__ DAT_RETURN DAT_EVD_GET_FD(DAT_EVD_HANDLE evd, DAT_FD *fd)
{
	return dat_extension_op(evd, DAT_EVD_GET_FD_OP, fd);
}

/*
 * Makes it safe to sleep on the descriptor until `threshold` events are pending. The descriptor may
 * become readable with fewer.
 * - DAT_EV_BUSY: the EVD is ready; this uses up a signal
 * - ARG3: other flags than DAT_EV_ARM_SOLICITED
 * - ARG4: threshold is not from 1 to the length of the queue
 * - INVALID_STATE/EVD_CONFIG_NOTIFY, EVD_CONFIG_SOLICITED: a threshold above 1 on such an EVD
 * - INVALID_STATE/EVD_UNWAITABLE
 * - INVALID_STATE/EVD_WAITER: a thread is in dat_evd_wait()
 * - INVALID_STATE: the EVD overflowed, and its last event was taken
 * - INTERNAL_ERROR: the device refused
 */
static __inline__ DAT_RETURN DAT_EVD_ARM(DAT_EVD_HANDLE evd, DAT_UINT32 flags, DAT_COUNT threshold)
{
	return dat_extension_op(evd, DAT_EVD_ARM_OP, flags, threshold);
}

/*
 * What up to `max` calls of dat_evd_dequeue() would return, in one call; no other thread's dequeue
 * gets an event from between them. Fewer than max only if there were no more.
 * - QUEUE_EMPTY: none, *n is 0; the whole value, as of dat_evd_dequeue()
 * - ARG3: max is less than 1; ARG4, ARG5: NULL
 * - INVALID_STATE/EVD_WAITER: a thread is in dat_evd_wait()
 * - INVALID_STATE: the EVD overflowed, and its last event was taken
 */
static __inline__ DAT_RETURN DAT_EVD_DEQUEUE_N(DAT_EVD_HANDLE evd, DAT_COUNT max, DAT_EVENT *events,
					       DAT_COUNT *n)
{
	return dat_extension_op(evd, DAT_EVD_DEQUEUE_N_OP, max, events, n);
}

/*
 * How many events are pending; the length of the queue means that or more. Takes nothing, arms
 * nothing, and leaves signals and the CNO as they are. While a thread is in dat_evd_wait() it does
 * not ask the device. ARG3: NULL.
 */
static __inline__ DAT_RETURN DAT_EVD_PENDING(DAT_EVD_HANDLE evd, DAT_COUNT *n)
{
	return dat_extension_op(evd, DAT_EVD_PENDING_OP, n);
}

/*
 * Wakes a thread that waits for the EVD, or the next call that would sleep: dat_evd_wait() returns
 * DAT_INTERRUPTED_CALL; DAT_EVD_ARM(), DAT_TRYWAIT() and DAT_WAIT_MEM() return DAT_EV_BUSY. One of
 * these uses the signal up, and all signals before that count as one. A dequeue, or a wait that
 * finds enough events, does not use it up. The signal queues no event and does not trigger the CNO.
 * Async-signal-safe.
 */
static __inline__ DAT_RETURN DAT_EVD_SIGNAL(DAT_EVD_HANDLE evd)
{
	return dat_extension_op(evd, DAT_EVD_SIGNAL_OP);
}

/*
 * How waits on this EVD spend their time, from the next wait on: a DAT_EV_WAIT_POLICY, and with
 * DAT_EV_WAIT_BLOCK the microseconds of polling before the sleep. A new EVD has the policy that
 * dapl.conf(5) sets for its IA (wait_policy, spin_us).
 * - ARG3: no such policy; ARG4: more than 1000000 microseconds
 */
static __inline__ DAT_RETURN DAT_EVD_WAIT_POLICY(DAT_EVD_HANDLE evd, DAT_EV_WAIT_POLICY policy,
						 DAT_UINT32 spin_us)
{
	return dat_extension_op(evd, DAT_EVD_WAIT_POLICY_OP, (DAT_UINT32)policy, spin_us);
}

/* ---- Notification objects ---- */

/*
 * The descriptor of any CNO; of one from dat_cno_fd_create() the same. Readable while the CNO is
 * triggered, and otherwise as it was armed.
 * - ARG3: fd is NULL
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY: no descriptor is left
 */
static __inline__ DAT_RETURN DAT_CNO_GET_FD(DAT_CNO_HANDLE cno, DAT_FD *fd)
{
	return dat_extension_op(cno, DAT_CNO_GET_FD_OP, fd);
}

/*
 * Makes it safe to sleep on the descriptor until any enabled EVD of the CNO has an event, including
 * EVDs that are attached or enabled later, but not those with a thread in dat_evd_wait().
 * - DAT_EV_BUSY: an event is pending on one, however old it is, or one overflowed, or the CNO was
 *   signalled, and this uses up the signal; dat_cno_wait(), dat_cno_trigger() and DAT_CNO_POLL()
 *   find the EVD
 * - ARG3: other flags than DAT_EV_ARM_SOLICITED
 * - INVALID_STATE/CNO_DEAD: its IA is closing
 * - INVALID_STATE/CNO_IN_USE: a thread is in dat_cno_wait()
 * - INTERNAL_ERROR: the device refused
 */
static __inline__ DAT_RETURN DAT_CNO_ARM(DAT_CNO_HANDLE cno, DAT_UINT32 flags)
{
	return dat_extension_op(cno, DAT_CNO_ARM_OP, flags);
}

/*
 * Wakes one thread in dat_cno_wait(), or else the next dat_cno_wait() or dat_cno_trigger() that finds
 * no EVD ready: it returns without an EVD. DAT_CNO_ARM() and DAT_TRYWAIT() return DAT_EV_BUSY. One of
 * these uses the signal up, and all signals before that count as one. A thread of the provider calls
 * a proxy agent that is armed, without an EVD. Async-signal-safe.
 */
static __inline__ DAT_RETURN DAT_CNO_SIGNAL(DAT_CNO_HANDLE cno)
{
	return dat_extension_op(cno, DAT_CNO_SIGNAL_OP);
}

/*
 * Up to `max` EVDs of the CNO, enabled or not, that have an event or overflowed, each once. If fewer
 * than max are returned, no EVD that had one when the call began is missing. The next call begins
 * after the last one returned. Takes no event and changes no trigger.
 * - QUEUE_EMPTY: none, *n is 0; the whole value
 * - ARG3: max is less than 1; ARG4, ARG5: NULL
 */
static __inline__ DAT_RETURN DAT_CNO_POLL(DAT_CNO_HANDLE cno, DAT_COUNT max, DAT_EVD_HANDLE *evds,
					  DAT_COUNT *n)
{
	return dat_extension_op(cno, DAT_CNO_POLL_OP, max, evds, n);
}

/*
 * The descriptors behind that of the CNO, for loops that cannot watch a descriptor of descriptors:
 * the loop watches all of them. Before each sleep, DAT_CNO_ARM() or DAT_TRYWAIT() has to succeed, and
 * change_index must then still be what it was; otherwise get the list again, and arm again. An EVD
 * that is attached during the sleep makes one of the old descriptors readable. Descriptors last until
 * the index changes. change_index and nfds are set in all cases but those of ARG3.
 * - LENGTH_ERROR: nfds was too small; fds is as before. An nfds of 0 asks for the index alone
 * - ARG3: NULL, a negative nfds, or no fds for a positive one
 */
static __inline__ DAT_RETURN DAT_CNO_GET_POLLFDS(DAT_CNO_HANDLE cno, DAT_EV_POLLFDS *pollfds)
{
	return dat_extension_op(cno, DAT_CNO_GET_POLLFDS_OP, pollfds);
}

/* ---- Across objects ---- */

/*
 * Arms each of the EVDs (threshold 1, no flags) and CNOs of an array, in order; a CNO stands for its
 * EVDs. Success: it is safe to sleep on all their descriptors. Otherwise *busy, unless busy is NULL,
 * is the index of the object that could not be armed: those before it are armed, those after it
 * unchanged.
 * - DAT_EV_BUSY, or what arming that one returned
 * - INVALID_HANDLE/HANDLE1: one is no EVD or CNO of this provider; nothing is armed
 * - ARG3: handles is NULL; ARG4: count is less than 1
 */
static __inline__ DAT_RETURN DAT_TRYWAIT(DAT_IA_HANDLE ia, DAT_HANDLE *handles, DAT_COUNT count,
					 DAT_COUNT *busy)
{
	return dat_extension_op(ia, DAT_TRYWAIT_OP, handles, count, busy);
}

/*
 * Waits until (*addr & mask) differs from (old & mask), and returns at once if it does so already;
 * with an EVD or a CNO in the place of the IA also until that is ready (threshold 1). The caller then
 * sees what was written before the word changed. A peer's RDMA write may change the word, if the
 * transport writes the last bytes last. The wait notices an event within a millisecond, and ends at
 * most a millisecond after the timeout (microseconds), never before. Takes no event.
 * - DAT_EV_BUSY: the EVD or CNO is ready; this uses up a signal
 * - TIMEOUT_EXPIRED, INTERRUPTED_CALL (by a signal handler): whole values
 * - INVALID_HANDLE/HANDLE1: no IA, EVD or CNO
 * - ARG3: addr is NULL or not a multiple of 8; ARG4: mask is 0
 * - INVALID_STATE/EVD_WAITER, EVD_UNWAITABLE
 */
static __inline__ DAT_RETURN DAT_WAIT_MEM(DAT_HANDLE handle, const volatile DAT_UINT64 *addr,
					  DAT_UINT64 mask, DAT_UINT64 old, DAT_TIMEOUT timeout)
{
	return dat_extension_op(handle, DAT_WAIT_MEM_OP, addr, mask, old, timeout);
}

/* ---- Poll sets ---- */

/*
 * A poll set is a list of EVDs that one call polls. An EVD can be in any number of sets, and have a
 * CNO as well. A set is a DAT object of the type DAT_HANDLE_TYPE_PSET with a consumer context: a
 * graceful dat_ia_close() fails while there is one, and an abrupt one frees it.
 */

/* An empty set. ARG3: NULL. INSUFFICIENT_RESOURCES/RESOURCE_MEMORY. */
static __inline__ DAT_RETURN DAT_PSET_CREATE(DAT_IA_HANDLE ia, DAT_HANDLE *pset)
{
	return dat_extension_op(ia, DAT_PSET_CREATE_OP, pset);
}

/*
 * Puts an EVD into a set; until it is taken out, dat_evd_free() returns INVALID_STATE/EVD_IN_USE.
 * - INVALID_HANDLE/EVD_REQUEST: no EVD of this provider
 * - INVALID_STATE/EVD_IN_USE: in the set already
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY
 */
static __inline__ DAT_RETURN DAT_PSET_ADD(DAT_HANDLE pset, DAT_EVD_HANDLE evd)
{
	return dat_extension_op(pset, DAT_PSET_ADD_OP, evd);
}

/* Takes an EVD out, also while the set is polled. ARG3: it is not in the set. */
static __inline__ DAT_RETURN DAT_PSET_DEL(DAT_HANDLE pset, DAT_EVD_HANDLE evd)
{
	return dat_extension_op(pset, DAT_PSET_DEL_OP, evd);
}

/* As DAT_CNO_POLL(), of the EVDs in the set. */
static __inline__ DAT_RETURN DAT_PSET_POLL(DAT_HANDLE pset, DAT_COUNT max, DAT_EVD_HANDLE *evds,
					   DAT_COUNT *n)
{
	return dat_extension_op(pset, DAT_PSET_POLL_OP, max, evds, n);
}

/* Not thread safe. INVALID_STATE/EVD_IN_USE: it is not empty. */
static __inline__ DAT_RETURN DAT_PSET_FREE(DAT_HANDLE pset)
{
	return dat_extension_op(pset, DAT_PSET_FREE_OP);
}

/* For programs that ask with #ifdef whether a call is there. */
#define DAT_EV_VERSION	    DAT_EV_VERSION
#define DAT_EVD_GET_FD	    DAT_EVD_GET_FD
#define DAT_EVD_ARM	    DAT_EVD_ARM
#define DAT_EVD_DEQUEUE_N   DAT_EVD_DEQUEUE_N
#define DAT_EVD_PENDING	    DAT_EVD_PENDING
#define DAT_EVD_SIGNAL	    DAT_EVD_SIGNAL
#define DAT_EVD_WAIT_POLICY DAT_EVD_WAIT_POLICY
#define DAT_CNO_GET_FD	    DAT_CNO_GET_FD
#define DAT_CNO_ARM	    DAT_CNO_ARM
#define DAT_CNO_SIGNAL	    DAT_CNO_SIGNAL
#define DAT_CNO_POLL	    DAT_CNO_POLL
#define DAT_CNO_GET_POLLFDS DAT_CNO_GET_POLLFDS
#define DAT_TRYWAIT	    DAT_TRYWAIT
#define DAT_WAIT_MEM	    DAT_WAIT_MEM
#define DAT_PSET_CREATE	    DAT_PSET_CREATE
#define DAT_PSET_ADD	    DAT_PSET_ADD
#define DAT_PSET_DEL	    DAT_PSET_DEL
#define DAT_PSET_POLL	    DAT_PSET_POLL
#define DAT_PSET_FREE	    DAT_PSET_FREE

#endif /* _DAT_EVENT_EXTENSIONS_H_ */
