/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A peer in a separate process, which executes commands. CONFORM_PEER_NET: the file of the network namespace in which peers
 * run, which is another host for the device.
 */
#ifndef CONFORM_REMOTE_H
#define CONFORM_REMOTE_H

#include <sys/types.h>
#include "test/conform/conform.h"

struct remote {
	pid_t pid;
	int fd;
	/* for use as an address: qp->qp_num, buffer and mr->rkey are those of the peer */
	struct side side;
	struct ibv_qp qp;
	struct ibv_mr mr;
};

/* Called first in main: does not return if argv says that this process is a peer. */
void remote_main(int argc, char **argv);

/* In a child that is to be a peer: enters the network namespace of peers. */
bool remote_net_enter(void);

/* Starts a peer, opens a side in each process with these options, and connects them. */
bool remote_open(struct remote *peer, struct side *here, const struct pair_options *options);
/* Lets the peer close everything; it must exit with 0. */
void remote_close(struct remote *peer);
void remote_kill(struct remote *peer);

/* These do what the functions of conform.h do, on the peer's side. */
int remote_post_recv(struct remote *peer, uint64_t wr_id, uint32_t offset, uint32_t length);
int remote_post_srq(struct remote *peer, uint64_t wr_id, uint32_t offset, uint32_t length);
int remote_post_send(struct remote *peer, uint64_t wr_id, uint32_t offset, uint32_t length);
/*
 * Adds `amount`, or one by compare and swap if it is 0, `count` times to a word of this process,
 * one after the other; remote_add_end waits for the last.
 */
bool remote_add_start(struct remote *peer, const void *word, uint32_t rkey, uint64_t amount,
		      uint32_t count);
bool remote_add_end(struct remote *peer);
bool remote_completes_send(struct remote *peer, uint64_t wr_id, enum ibv_wc_status status);
bool remote_completes_recv(struct remote *peer, uint64_t wr_id, enum ibv_wc_status status,
			   uint32_t *length);
bool remote_reaches(struct remote *peer, enum ibv_qp_state state);
int remote_to(struct remote *peer, enum ibv_qp_state state);
bool remote_async_is(struct remote *peer, enum ibv_event_type type, bool of_srq);
bool remote_async_silent(struct remote *peer);
void remote_fill(struct remote *peer, uint32_t offset, uint32_t length, unsigned seed);
bool remote_holds(struct remote *peer, uint32_t offset, uint32_t length, unsigned seed);
bool remote_arm(struct remote *peer);
bool remote_event_comes(struct remote *peer);
bool remote_srq_limit(struct remote *peer, uint32_t limit);
bool remote_srq_grow(struct remote *peer, uint32_t max_wr);
/*
 * Takes away access to whole pages of the registered memory; returns the offset of the first, or a
 * negative value.
 */
int64_t remote_unmap(struct remote *peer);
bool remote_deregister(struct remote *peer);
bool remote_destroy_qp(struct remote *peer);

/* ---- exchange.c: data of these sizes, one after the other, arrive whole ---- */
void messages_there(struct side *here, struct remote *peer, const uint32_t *sizes, size_t count);
void messages_back(struct side *here, struct remote *peer, const uint32_t *sizes, size_t count);
/* Half a buffer each at most: the data are written to the peer and read back. */
void writes_and_reads(struct side *here, struct remote *peer, const uint32_t *sizes, size_t count);

/* Fills memory of this process with the bytes that remote_fill makes. */
void pattern_fill(char *to, uint32_t length, unsigned seed);
bool pattern_holds(const char *at, uint32_t length, unsigned seed);

#endif
