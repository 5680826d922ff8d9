/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Conformance of an RDMA device, seen through libibverbs and librdmacm alone: common ground. */
#ifndef CONFORM_H
#define CONFORM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <infiniband/verbs.h>
#include "test/unit/unit.h"

#define PATIENCE     UNIT_PATIENCE /* milliseconds in which an expected event must come */
#define SILENCE	     30		   /* milliseconds in which no event may come */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- device.c: the device under test, opened once, closed at exit ---------------------------- */

/*
 * CONFORM_DEVICE names the device, by default the first; CONFORM_GID is the GID index, by default
 * the first of IPv4.
 */
bool conform_open(void);
extern struct ibv_context *device;
extern struct ibv_device_attr device_attr;
extern union ibv_gid device_gid;
extern uint8_t device_gid_index;
/* True for the kernel's software RoCE, which deviates from IBTA where a test says so. */
extern bool device_is_rxe;
/* True on soft-RoCE of that version of Linux or a later one. */
bool rxe_since(unsigned major, unsigned minor);
/* With which status soft-RoCE completes a request that fails on its own side: later versions flush it. */
enum ibv_wc_status rxe_local(enum ibv_wc_status before);

/* These tools do not follow everything that a device must do. */
extern const bool under_address_sanitizer, under_thread_sanitizer;

/* Prints the reason why a test proves nothing on this device. */
void skip(const char *why);

#define CONFORM_MAIN(suite, tests)                                                              \
	int main(int argc, char **argv)                                                         \
	{                                                                                       \
		return conform_open() ? unit_main(suite, tests, COUNT(tests), argc, argv) : 77; \
	}

/* ---- pair.c: two queue pairs of this process, connected ----------------------------------- */

#define BUFFER 65536

struct side {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq; /* the receive CQ has the channel */
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buffer;
	struct ibv_ah *ah; /* of a datagram QP: its sends go to this address, to the QP `peer` */
	uint32_t peer;
};

struct pair {
	struct side a, b;
};

/* A member that is zero has the default in its comment; a `none` member asks for a real zero. */
struct pair_options {
	enum ibv_qp_type type;	   /* RC */
	uint32_t send_wr, recv_wr; /* 16 */
	uint32_t sge;		   /* 4 */
	uint32_t inline_size;
	int cqe;	 /* 256 */
	uint32_t srq_wr; /* if not 0, side b receives from an SRQ of this size */
	bool signal_all;
	int qp_access; /* of both QPs: remote read, write, atomic */
	bool no_qp_access;
	int mr_access;	   /* of both MRs: all four */
	uint8_t timeout;   /* 14, 67 ms */
	uint8_t retry_cnt; /* 7 */
	uint8_t rnr_retry; /* 7 */
	bool rnr_retry_none, retry_none;
	uint8_t min_rnr_timer;	 /* 12, 0.64 ms */
	bool min_rnr_timer_none; /* 0 is the longest, 655 ms */
	bool no_rd_atomic;	 /* of side a as initiator */
	bool no_dest_rd_atomic;	 /* of side b as responder */
	bool elsewhere;		 /* the peer's GID is `gid`; otherwise it is that of this process */
	union ibv_gid gid;
};

/* Opens both sides, or returns false after a failed assertion. */
bool pair_open(struct pair *pair, const struct pair_options *options);
void pair_close(struct pair *pair);

bool side_open(struct side *side, const struct pair_options *options, bool shared);
/* Returns true if every object could be destroyed; side_close asserts it. */
bool side_release(struct side *side);
void side_close(struct side *side);

#define QKEY	 0x11223344u /* of datagram QPs */
#define GRH_SIZE 40u
/* Moves the QP to RTS, connected to that QP; a datagram QP gets an address handle. */
bool side_connect(struct side *side, uint32_t peer, const struct pair_options *options);
/* The attributes and the mask of RESET to INIT, which differ between services. */
void init_attr(struct ibv_qp_attr *attr, int *mask, const struct pair_options *options);

/* Each makes one transition with valid attributes and returns the result of ibv_modify_qp. */
int make_init(struct ibv_qp *qp, int access);
int make_rtr(struct ibv_qp *qp, uint32_t peer, const struct pair_options *options);
int make_rts(struct ibv_qp *qp, const struct pair_options *options);
int move_to(struct ibv_qp *qp, enum ibv_qp_state state);
void rtr_attr(struct ibv_qp_attr *attr, int *mask, uint32_t peer,
	      const struct pair_options *options);
void rts_attr(struct ibv_qp_attr *attr, int *mask, const struct pair_options *options);

/* The state that the device reports, and whether it becomes `state` within PATIENCE. */
enum ibv_qp_state state_of(struct ibv_qp *qp);
bool reaches(struct ibv_qp *qp, enum ibv_qp_state state);

/* ---- wr.c: posting and completions ----------------------------------------------------------- */

/*
 * Posts `length` bytes at `offset` of the side's buffer, without an SGE if `length` is 0. Returns 0
 * or an errno.
 */
int post_recv(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length);
int post_srq(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length);
int post_send(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length, int flags);
/* Moves data between `offset` of one side's buffer and `remote` of the other's. */
int post_rdma(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
	      uint32_t length, const struct side *peer, uint32_t remote, int flags);
int post_atomic(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
		const struct side *peer, uint32_t remote, uint64_t compare_add, uint64_t swap);

/* Takes one completion within PATIENCE, or prints a line and returns false. */
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc);
/* Returns true if the next completion has this id and status, else prints it. `wc` may be NULL. */
bool completes(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc);
/* The same, but the kernel's software RoCE may report the status `rxe`. */
bool completes_or_rxe(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		      enum ibv_wc_status rxe);
/* Returns true if no completion comes for SILENCE. */
bool stays_empty(struct ibv_cq *cq);

/* Returns true if the descriptor becomes readable within the time. */
bool readable(int fd, unsigned milliseconds);
/*
 * Returns true if the next asynchronous event within PATIENCE is this one, of this element;
 * acknowledges it.
 */
bool async_is(enum ibv_event_type type, const void *element);
bool async_silent(void);

#endif
