/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * One-sided operations on memory that two processes share: this process, the initiator, has made the memory, and sees in it
 * what it does through the device; the target, a child, registers the memory at its own address on request.
 */
#ifndef DIRECT_RIG_H
#define DIRECT_RIG_H

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include "softverbs/object/share.h"
#include "softverbs/rc/direct.h"
#include "test/unit/node.h"

#define RIG_SIZE (4u << 20)
#define RIG_SET	 (2u << 20)
#define RIG_BYTE 0xdd
#define RIG_ALL	 15u /* each right */

enum rig_order {
	RIG_REGISTER = 1, /* offset:32 | length:32, then the access; answers with address and key */
	RIG_DEREGISTER,	  /* answers with the result */
	RIG_WITHDRAW, /* the same, and sets the first RIG_SET bytes of the memory to RIG_BYTE before it answers */
	RIG_RECEIVE, /* posts a receive of the whole region; answers with the result */
	RIG_WINDOW,  /* offset:32 | length:32; binds a window, answers with address and key */
	RIG_CALL,    /* a rig_work and its argument; answers with the result */
	RIG_END,
};

struct rig;
typedef uint64_t rig_work(struct rig *rig, uint64_t arg);

struct rig {
	uint8_t *memory; /* as this process sees it */
	int fd;		 /* of a memfd, else -1 */
	int id;		 /* of a segment, else -1 */
	struct node node;
	struct process target;
	uint64_t address; /* in the target, of the registered range */
	uint32_t key;
	const char *direct; /* the target's SOFTVERBS_DIRECT */
	bool polls;	    /* the target polls its CQ until it has an order */
	struct ibv_mr *mr;  /* in the target */
};

static inline bool rig_segment(struct rig *rig)
{
	rig->id = shmget(IPC_PRIVATE, RIG_SIZE, 0600);
	rig->memory = rig->id < 0 ? NULL : shmat(rig->id, NULL, 0);
	/* it lives as long as a process has it attached */
	return rig->memory != (void *)-1 && rig->memory && !shmctl(rig->id, IPC_RMID, NULL);
}

static inline bool rig_memfd_sealed(struct rig *rig, int seals)
{
	rig->fd = memfd_create("rig", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (rig->fd < 0 || ftruncate(rig->fd, RIG_SIZE) ||
	    (seals && fcntl(rig->fd, F_ADD_SEALS, seals)))
		return false;
	rig->memory = mmap(NULL, RIG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, rig->fd, 0);
	return rig->memory != MAP_FAILED;
}

static inline bool rig_memfd(struct rig *rig)
{
	return rig_memfd_sealed(rig, F_SEAL_SHRINK);
}

/* It may shrink, so it is not mapped. */
static inline bool rig_file_open(struct rig *rig)
{
	return rig_memfd_sealed(rig, 0);
}

static inline bool rig_private(struct rig *rig)
{
	rig->memory =
		mmap(NULL, RIG_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return rig->memory != MAP_FAILED;
}

/* ---- the target ---- */

static inline struct ibv_mr *target_register(struct rig *rig, int fd)
{
	uint64_t range, access;
	struct ibv_mr *mr;

	if (!process_hear(fd, &range) || !process_hear(fd, &access))
		return NULL;
	mr = ibv_reg_mr(rig->node.pd, rig->memory + (range >> 32), (uint32_t)range, (int)access);
	process_say(fd, mr ? (uintptr_t)mr->addr : 0);
	process_say(fd, mr ? mr->rkey : 0);
	return mr;
}

static inline int target_receive(struct rig *rig, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(rig->node.qp[0], &wr, &bad);
}

static inline void target_window(struct rig *rig, struct ibv_mr *mr, struct ibv_mw *mw, int fd)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = mr, .mw_access_flags = RIG_ALL & ~1u } };
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	uint64_t range = 0;

	process_hear(fd, &range);
	bind.bind_info.addr = (uintptr_t)rig->memory + (range >> 32);
	bind.bind_info.length = (uint32_t)range;
	process_say(fd, !ibv_bind_mw(rig->node.qp[0], mw, &bind) && node_poll(&rig->node, &wc) &&
					!wc.status
				? bind.bind_info.addr
				: 0);
	process_say(fd, mw->rkey);
}

/* Between two polls it sleeps: on a busy machine, a thread that spins waits longer for a processor when it has something to do. */
static inline bool target_hear(struct rig *rig, int fd, uint64_t *order)
{
	const struct timespec pause = { .tv_nsec = 50000 };
	struct pollfd said = { .fd = fd, .events = POLLIN };
	struct ibv_wc wc;

	if (rig->polls)
		do
			ibv_poll_cq(rig->node.cq, 1, &wc);
		while (ppoll(&said, 1, &pause, NULL) <= 0);
	return process_hear(fd, order);
}

static inline uint64_t target_call(struct rig *rig, int fd)
{
	uint64_t work = 0, arg = 0;

	if (!process_hear(fd, &work) || !process_hear(fd, &arg))
		return 0;
	return ((rig_work *)(uintptr_t)work)(rig, arg);
}

static inline int rig_target(int fd, void *arg)
{
	const struct node_options options = { .memory = 4096 };
	struct rig *rig = arg;
	struct ibv_mr *mr = NULL;
	struct ibv_mw *mw;
	uint64_t order;

	if (rig->direct)
		setenv("SOFTVERBS_DIRECT", rig->direct, 1);
	if (!node_open(&rig->node, &options) || !node_connect(&rig->node, 0, 1, fd))
		return 1;
	mw = ibv_alloc_mw(rig->node.pd, IBV_MW_TYPE_1);
	while (target_hear(rig, fd, &order) && order != RIG_END) {
		int result = 0;

		if (order == RIG_REGISTER) {
			rig->mr = mr = target_register(rig, fd);
			continue;
		}
		if (order == RIG_CALL) {
			process_say(fd, target_call(rig, fd));
			continue;
		}
		if (order == RIG_WINDOW) {
			target_window(rig, mr, mw, fd);
			continue;
		}
		result = order == RIG_RECEIVE ? target_receive(rig, mr) : ibv_dereg_mr(mr);
		if (order == RIG_WITHDRAW)
			memset(rig->memory, RIG_BYTE, RIG_SET);
		process_say(fd, (uint64_t)result);
	}
	return order == RIG_END ? 0 : 2;
}

/* ---- the initiator ---- */

static inline bool rig_register(struct rig *rig, uint32_t offset, uint32_t length, unsigned access)
{
	uint64_t key = 0;

	process_say(rig->target.fd, RIG_REGISTER);
	process_say(rig->target.fd, (uint64_t)offset << 32 | length);
	process_say(rig->target.fd, access);
	if (!process_hear(rig->target.fd, &rig->address) || !process_hear(rig->target.fd, &key))
		return false;
	rig->key = (uint32_t)key;
	return key;
}

/* Binds the target's window to a range of its region, and uses its key from here on. */
static inline bool rig_window(struct rig *rig, uint32_t offset, uint32_t length)
{
	uint64_t key = 0;

	process_say(rig->target.fd, RIG_WINDOW);
	process_say(rig->target.fd, (uint64_t)offset << 32 | length);
	if (!process_hear(rig->target.fd, &rig->address) || !process_hear(rig->target.fd, &key))
		return false;
	rig->key = (uint32_t)key;
	return rig->address;
}

/* The result of an order without arguments. */
static inline int rig_ask(struct rig *rig, enum rig_order order)
{
	uint64_t result = 1;

	process_say(rig->target.fd, order);
	return process_hear(rig->target.fd, &result) ? (int)result : -1;
}

/* The result of a function that the target calls. */
static inline uint64_t rig_call(struct rig *rig, rig_work *work, uint64_t arg)
{
	uint64_t result = UINT64_MAX;

	process_say(rig->target.fd, RIG_CALL);
	process_say(rig->target.fd, (uintptr_t)work);
	process_say(rig->target.fd, arg);
	return process_hear(rig->target.fd, &result) ? result : UINT64_MAX;
}

static inline int rig_deregister(struct rig *rig)
{
	return rig_ask(rig, RIG_DEREGISTER);
}

/* `make` has filled in the memory. */
static inline bool rig_open(struct rig *rig)
{
	const struct node_options options = { .memory = RIG_SIZE };

	return process_start(&rig->target, rig_target, rig) && node_open(&rig->node, &options) &&
	       node_connect(&rig->node, 0, 1, rig->target.fd);
}

/* Without the target, which has ended. */
static inline void rig_close_here(struct rig *rig)
{
	CU_ASSERT_EQUAL(node_close(&rig->node), 0);
	if (rig->id >= 0)
		shmdt(rig->memory);
	else
		munmap(rig->memory, RIG_SIZE);
	if (rig->fd >= 0)
		close(rig->fd);
}

static inline void rig_close(struct rig *rig)
{
	process_say(rig->target.fd, RIG_END);
	CU_ASSERT_EQUAL(process_end(&rig->target), 0);
	rig_close_here(rig);
}

/* What the target's key says of the memory. */
static inline uint32_t rig_file(const struct rig *rig)
{
	return qp_of(rig->node.qp[0])->remote_rq.peer->by_owner->region[rig->key >> 16].file;
}

static inline enum ibv_wc_status rig_do(struct rig *rig, enum ibv_wr_opcode opcode,
					struct ibv_sge *sge, int count, uint32_t offset)
{
	struct ibv_send_wr wr = {
		.sg_list = sge, .num_sge = count, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { rig->address + offset, rig->key },
	}, *bad;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	if (ibv_post_send(rig->node.qp[0], &wr, &bad) || !node_poll(&rig->node, &wc))
		return IBV_WC_GENERAL_ERR;
	return wc.status;
}

static inline enum ibv_wc_status rig_move(struct rig *rig, enum ibv_wr_opcode opcode, uint32_t from,
					  uint32_t to, uint32_t length)
{
	struct ibv_sge sge = node_sge(&rig->node, from, length);

	return rig_do(rig, opcode, &sge, 1, to);
}

static inline enum ibv_wc_status rig_add(struct rig *rig, uint32_t offset, uint64_t value,
					 uint64_t *old)
{
	struct ibv_sge sge = node_sge(&rig->node, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = rig->address + offset,
			       .compare_add = value,
			       .rkey = rig->key },
	}, *bad;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	if (ibv_post_send(rig->node.qp[0], &wr, &bad) || !node_poll(&rig->node, &wc))
		return IBV_WC_GENERAL_ERR;
	memcpy(old, rig->node.memory, sizeof(*old));
	return wc.status;
}

static inline bool rig_is_mapped(void *arg)
{
	struct rig *rig = arg;

	return sv_direct_count() || rig_move(rig, IBV_WR_RDMA_READ, 0, 0, 1) || sv_direct_count();
}

/* Uses the key until its file is mapped. */
static inline bool rig_map(struct rig *rig)
{
	return unit_wait_for(rig_is_mapped, rig, UNIT_PATIENCE) && sv_direct_count();
}

static inline bool rig_is_unmapped(void *arg)
{
	(void)arg;
	return !sv_direct_count();
}

typedef bool rig_make(struct rig *rig);

/* A rig with its memory registered as a whole and mapped. */
static inline bool rig_begin(struct rig *rig, rig_make *make)
{
	*rig = (struct rig){ .fd = -1, .id = -1 };
	return make(rig) && rig_open(rig) && rig_register(rig, 0, RIG_SIZE, RIG_ALL) &&
	       rig_map(rig);
}

static inline uint8_t rig_pattern(uint32_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) + 1);
}

static inline void rig_fill(struct rig *rig, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		rig->node.memory[i] = rig_pattern(i);
}

#endif
