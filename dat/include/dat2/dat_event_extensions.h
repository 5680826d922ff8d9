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
 * Not safe to sleep: there is something to look at, and nothing is armed that the caller may rely
 * on. The whole value, without a class: it is an ordinary outcome.
 */
#define DAT_EV_BUSY ((DAT_RETURN)0x10010000)

/* Flags of arming. SOLICITED: completions notify only if they are solicited or failed. */
#define DAT_EV_ARM_SOLICITED 0x1u

/* How a dat_evd_wait() that finds too little spends its time, see DAT_EVD_WAIT_POLICY(). */
typedef enum dat_ev_wait_policy {
	DAT_EV_WAIT_BLOCK, /* looks for the time of spin_us, then sleeps */
	DAT_EV_WAIT_SPIN,  /* looks until the end */
	DAT_EV_WAIT_YIELD  /* likewise, and offers the processor to others in between */
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
 * The calls are macros over dat_extension_op() that cast each argument to what the provider reads.
 * ARGn counts the arguments of dat_extension_op(): ARG1 is the handle, ARG2 the operation, and ARG3
 * the second parameter of the macro. Each is safe with all others from any number of threads;
 * "not thread safe" is said where it is not so.
 * - NOT_IMPLEMENTED: the provider does not have the extension (with or without an error class)
 * - INVALID_HANDLE/EVD_REQUEST for an EVD, INVALID_HANDLE/CNO for a CNO, INVALID_HANDLE/HANDLE1 for
 *   anything else that is not what the call is for
 *
 * Pending are the events that a dequeue could return now. An EVD is ready if as many as the
 * threshold are pending, if it was signalled, if its queue broke down, or if it is unwaitable.
 *
 * A descriptor belongs to its object, is the same one each time, and lasts until the object is
 * freed. Consumers watch it for readability (poll, select, epoll) and do nothing else to it. It is
 * non-blocking and close-on-exec. Edge-triggered watching works if an arm follows each wake-up.
 *
 * The rule of arming: after a success the descriptor is not readable, or is so only because of what
 * happened since; and it will be readable when the object gets ready through an event that
 * notifies, a signal, an overflow, or dat_evd_set_unwaitable(). It holds for one sleep: after the
 * descriptor was readable, and after any call that takes events, arm again. After DAT_EV_BUSY the
 * descriptor promises nothing. Arming twice does no harm. A descriptor may get readable for nothing.
 */

/* The edition of the provider's extension. ARG3, ARG4: NULL. */
#define DAT_EV_VERSION(ia, major, minor)                                             \
	dat_extension_op((DAT_HANDLE)(ia), DAT_EV_VERSION_OP, (DAT_UINT32 *)(major), \
			 (DAT_UINT32 *)(minor))

/* ---- Event dispatchers ---- */

/*
 * A descriptor for any EVD, made by the first call, not armed.
 * - ARG3: fd is NULL
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY: no descriptor is left
 */
#define DAT_EVD_GET_FD(evd, fd) \
	dat_extension_op((DAT_HANDLE)(evd), DAT_EVD_GET_FD_OP, (DAT_FD *)(fd))

/*
 * Makes it safe to sleep on the descriptor until `threshold` events are pending. The descriptor may
 * get readable with fewer.
 * - DAT_EV_BUSY: ready already; a signal is used up by it
 * - ARG3: other flags than DAT_EV_ARM_SOLICITED
 * - ARG4: threshold is not from 1 to the length of the queue
 * - INVALID_STATE/EVD_CONFIG_NOTIFY, EVD_CONFIG_SOLICITED: a threshold above 1 on such an EVD
 * - INVALID_STATE/EVD_UNWAITABLE
 * - INVALID_STATE/EVD_WAITER: a thread is in dat_evd_wait()
 * - INVALID_STATE: the EVD overflowed, and its last event was taken
 * - INTERNAL_ERROR: the device refused
 */
#define DAT_EVD_ARM(evd, flags, threshold)                                       \
	dat_extension_op((DAT_HANDLE)(evd), DAT_EVD_ARM_OP, (DAT_UINT32)(flags), \
			 (DAT_COUNT)(threshold))

/*
 * What up to `max` calls of dat_evd_dequeue() would return, in one; nobody else's dequeue gets an
 * event from between them. Fewer than max only if there were no more.
 * - QUEUE_EMPTY: none, *n is 0; the whole value, as of dat_evd_dequeue()
 * - ARG3: max is less than 1; ARG4, ARG5: NULL
 * - INVALID_STATE/EVD_WAITER: a thread is in dat_evd_wait()
 * - INVALID_STATE: the EVD overflowed, and its last event was taken
 */
#define DAT_EVD_DEQUEUE_N(evd, max, events, n)                                      \
	dat_extension_op((DAT_HANDLE)(evd), DAT_EVD_DEQUEUE_N_OP, (DAT_COUNT)(max), \
			 (DAT_EVENT *)(events), (DAT_COUNT *)(n))

/*
 * How many events are pending; the length of the queue means that or more. Takes nothing, arms
 * nothing, and leaves signals and the CNO as they are. While a thread is in dat_evd_wait() it does
 * not ask the device. ARG3: NULL.
 */
#define DAT_EVD_PENDING(evd, n) \
	dat_extension_op((DAT_HANDLE)(evd), DAT_EVD_PENDING_OP, (DAT_COUNT *)(n))

/*
 * Wakes whoever waits for the EVD, or else the next one that would sleep: dat_evd_wait() returns
 * DAT_INTERRUPTED_CALL, DAT_EVD_ARM(), DAT_TRYWAIT() and DAT_WAIT_MEM() return DAT_EV_BUSY. One of
 * them uses it up, and signals before that count as one. No event comes of it, no dequeue and no
 * wait that finds enough events uses it up, and it does not trigger the CNO. May be called from a
 * signal handler.
 */
#define DAT_EVD_SIGNAL(evd) dat_extension_op((DAT_HANDLE)(evd), DAT_EVD_SIGNAL_OP)

/*
 * How waits on this EVD spend their time from the next one on: a DAT_EV_WAIT_POLICY, and with
 * DAT_EV_WAIT_BLOCK the microseconds of looking before a sleep. An EVD begins with what dapl.conf(5)
 * says for its IA (wait_policy, spin_us).
 * - ARG3: no such policy; ARG4: more than 1000000 microseconds
 */
#define DAT_EVD_WAIT_POLICY(evd, policy, spin_us)                                         \
	dat_extension_op((DAT_HANDLE)(evd), DAT_EVD_WAIT_POLICY_OP, (DAT_UINT32)(policy), \
			 (DAT_UINT32)(spin_us))

/* ---- Notification objects ---- */

/*
 * The descriptor of any CNO; of one from dat_cno_fd_create() the same. Readable while the CNO is
 * triggered, and otherwise as it was armed.
 * - ARG3: fd is NULL
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY: no descriptor is left
 */
#define DAT_CNO_GET_FD(cno, fd) \
	dat_extension_op((DAT_HANDLE)(cno), DAT_CNO_GET_FD_OP, (DAT_FD *)(fd))

/*
 * Makes it safe to sleep on the descriptor until any enabled EVD of the CNO has an event, EVDs that
 * are attached or enabled later included. Those with a thread in dat_evd_wait() are left to it.
 * - DAT_EV_BUSY: an event is pending on one, however old it is, or one overflowed, or the CNO was
 *   signalled, which is used up by it; dat_cno_wait(), dat_cno_trigger() and DAT_CNO_POLL() find the
 *   EVD
 * - ARG3: other flags than DAT_EV_ARM_SOLICITED
 * - INVALID_STATE/CNO_DEAD: its IA is closing
 * - INVALID_STATE/CNO_IN_USE: a thread is in dat_cno_wait()
 * - INTERNAL_ERROR: the device refused
 */
#define DAT_CNO_ARM(cno, flags) \
	dat_extension_op((DAT_HANDLE)(cno), DAT_CNO_ARM_OP, (DAT_UINT32)(flags))

/*
 * Wakes one thread in dat_cno_wait(), or else the next dat_cno_wait() or dat_cno_trigger(), with no
 * EVD, once no EVD is ready; DAT_CNO_ARM() and DAT_TRYWAIT() return DAT_EV_BUSY. One of them uses it
 * up, and signals before that count as one. A proxy agent that is armed is called with no EVD, by
 * a thread of the provider. May be called from a signal handler.
 */
#define DAT_CNO_SIGNAL(cno) dat_extension_op((DAT_HANDLE)(cno), DAT_CNO_SIGNAL_OP)

/*
 * Up to `max` EVDs of the CNO, enabled or not, that have an event or overflowed, each once. If fewer
 * than max are returned, no EVD that had one when the call began is missing. The next call begins
 * after the last one returned. Takes no event and changes no trigger.
 * - QUEUE_EMPTY: none, *n is 0; the whole value
 * - ARG3: max is less than 1; ARG4, ARG5: NULL
 */
#define DAT_CNO_POLL(cno, max, evds, n)                                        \
	dat_extension_op((DAT_HANDLE)(cno), DAT_CNO_POLL_OP, (DAT_COUNT)(max), \
			 (DAT_EVD_HANDLE *)(evds), (DAT_COUNT *)(n))

/*
 * The descriptors behind that of the CNO, for loops that want no descriptor of descriptors: all of
 * them are to be watched. Before each sleep DAT_CNO_ARM() or DAT_TRYWAIT() has to succeed, and then
 * change_index be what it was; else get the list again, and arm again. An EVD that is attached
 * during the sleep makes one of the old descriptors readable. Descriptors last until the index
 * changes. change_index and nfds are set in any case but those of ARG3.
 * - LENGTH_ERROR: nfds was too small; fds is as before. An nfds of 0 asks for the index alone
 * - ARG3: NULL, a negative nfds, or no fds for a positive one
 */
#define DAT_CNO_GET_POLLFDS(cno, pollfds) \
	dat_extension_op((DAT_HANDLE)(cno), DAT_CNO_GET_POLLFDS_OP, (DAT_EV_POLLFDS *)(pollfds))

/* ---- Across objects ---- */

/*
 * Arms each of the EVDs (threshold 1, no flags) and CNOs of an array, in order; EVDs of a CNO in
 * the array need not be there. Success: it is safe to sleep on all their descriptors. Otherwise
 * *busy, unless busy is NULL, is the index of the one that did not let itself be armed: those before
 * it are armed, those after it untouched.
 * - DAT_EV_BUSY, or what arming that one returned
 * - INVALID_HANDLE/HANDLE1: one is no EVD or CNO of this provider; nothing is armed
 * - ARG3: handles is NULL; ARG4: count is less than 1
 */
#define DAT_TRYWAIT(ia, handles, count, busy)                                       \
	dat_extension_op((DAT_HANDLE)(ia), DAT_TRYWAIT_OP, (DAT_HANDLE *)(handles), \
			 (DAT_COUNT)(count), (DAT_COUNT *)(busy))

/*
 * Waits until (*addr & mask) is not (old & mask), which it looks at first, and with an EVD or a CNO
 * in the place of the IA also until that is ready (threshold 1). What was written before the word
 * changed is seen. The word may be written by a peer's RDMA writes, if the transport writes the last
 * bytes last. Events are noticed within a millisecond, the timeout (microseconds) never early and
 * within a millisecond. Takes no event.
 * - DAT_EV_BUSY: the EVD or CNO is ready; a signal is used up by it
 * - TIMEOUT_EXPIRED, INTERRUPTED_CALL (by a signal handler): whole values
 * - INVALID_HANDLE/HANDLE1: no IA, EVD or CNO
 * - ARG3: addr is NULL or not a multiple of 8; ARG4: mask is 0
 * - INVALID_STATE/EVD_WAITER, EVD_UNWAITABLE
 */
#define DAT_WAIT_MEM(handle, addr, mask, old, timeout)                            \
	dat_extension_op((DAT_HANDLE)(handle), DAT_WAIT_MEM_OP,                   \
			 (const volatile DAT_UINT64 *)(addr), (DAT_UINT64)(mask), \
			 (DAT_UINT64)(old), (DAT_TIMEOUT)(timeout))

/* ---- Poll sets ---- */

/*
 * A poll set is a list of EVDs that are asked together. An EVD can be in any number of sets, beside
 * its CNO. A set is a DAT object of the type DAT_HANDLE_TYPE_PSET with a consumer context; it counts
 * for a graceful dat_ia_close(), and an abrupt one ends it.
 */

/* An empty set. ARG3: NULL. INSUFFICIENT_RESOURCES/RESOURCE_MEMORY. */
#define DAT_PSET_CREATE(ia, pset) \
	dat_extension_op((DAT_HANDLE)(ia), DAT_PSET_CREATE_OP, (DAT_HANDLE *)(pset))

/*
 * Puts an EVD into a set; until it is taken out, dat_evd_free() returns INVALID_STATE/EVD_IN_USE.
 * - INVALID_HANDLE/EVD_REQUEST: no EVD of this provider
 * - INVALID_STATE/EVD_IN_USE: in the set already
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY
 */
#define DAT_PSET_ADD(pset, evd) \
	dat_extension_op((DAT_HANDLE)(pset), DAT_PSET_ADD_OP, (DAT_EVD_HANDLE)(evd))

/* Takes an EVD out, also while the set is polled. ARG3: it is not in the set. */
#define DAT_PSET_DEL(pset, evd) \
	dat_extension_op((DAT_HANDLE)(pset), DAT_PSET_DEL_OP, (DAT_EVD_HANDLE)(evd))

/* As DAT_CNO_POLL(), of the EVDs in the set. */
#define DAT_PSET_POLL(pset, max, evds, n)                                        \
	dat_extension_op((DAT_HANDLE)(pset), DAT_PSET_POLL_OP, (DAT_COUNT)(max), \
			 (DAT_EVD_HANDLE *)(evds), (DAT_COUNT *)(n))

/* Not thread safe. INVALID_STATE/EVD_IN_USE: it is not empty. */
#define DAT_PSET_FREE(pset) dat_extension_op((DAT_HANDLE)(pset), DAT_PSET_FREE_OP)

#endif /* _DAT_EVENT_EXTENSIONS_H_ */
