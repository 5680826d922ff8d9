/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A peer in a separate process. It receives commands over a socket pair, and answers each of them. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/conform/remote.h"

enum op {
	OP_OPEN,
	OP_CONNECT,
	OP_RECV,
	OP_SRQ,
	OP_SEND,
	OP_ADD,
	OP_ADD_BY_SWAP,
	OP_COMPLETES_SEND,
	OP_COMPLETES_RECV,
	OP_REACHES,
	OP_TO,
	OP_ASYNC,
	OP_SILENT,
	OP_FILL,
	OP_HOLDS,
	OP_ARM,
	OP_EVENT,
	OP_LIMIT,
	OP_GROW,
	OP_UNMAP,
	OP_DEREGISTER,
	OP_DESTROY_QP,
	OP_CLOSE,
};

struct command {
	enum op op;
	uint32_t offset, length;
	uint64_t wr_id, value, key;
	struct pair_options options;
};

struct answer {
	int64_t result;
	uint32_t qpn, rkey, length;
	uint64_t buffer;
	union ibv_gid gid;
};

/*
 * The stores are atomic because a thread of the device may read the bytes next. The peer's answer
 * orders the two, which the thread sanitizer cannot see.
 */
void pattern_fill(char *to, uint32_t length, unsigned seed)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		__atomic_store_n(&to[i], (char)(seed + i * 7 + (i >> 8)), __ATOMIC_RELAXED);
}

bool pattern_holds(const char *at, uint32_t length, unsigned seed)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		if (at[i] != (char)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

/* ---- in the peer ---- */

static struct side own;
static struct pair_options own_options;

static int64_t serve_open(const struct command *c, struct answer *a)
{
	own_options = c->options;
	if (!conform_open() || !side_open(&own, &own_options, own_options.srq_wr))
		return false;
	a->qpn = own.qp->qp_num;
	a->rkey = own.mr->rkey;
	a->buffer = (uintptr_t)own.buffer;
	a->gid = device_gid;
	return true;
}

static int64_t serve_connect(const struct command *c)
{
	own_options.elsewhere = true;
	own_options.gid = c->options.gid;
	return side_connect(&own, (uint32_t)c->value, &own_options);
}

static int64_t serve_add(const struct command *c)
{
	struct ibv_mr mr = { .rkey = (uint32_t)c->key };
	struct side target = { .buffer = (char *)(uintptr_t)c->value, .mr = &mr };
	uint32_t i;

	for (i = 0; i < c->length; i++)
		if (post_atomic(&own, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, &target, 0, c->wr_id, 0) ||
		    !completes(own.scq, i, IBV_WC_SUCCESS, NULL))
			return false;
	return true;
}

static int64_t serve_add_by_swap(const struct command *c)
{
	struct ibv_mr mr = { .rkey = (uint32_t)c->key };
	struct side target = { .buffer = (char *)(uintptr_t)c->value, .mr = &mr };
	uint64_t guess = 0, old;
	uint32_t i;

	for (i = 0; i < c->length; i += old == guess, guess = old == guess ? old + 1 : old) {
		if (post_atomic(&own, IBV_WR_ATOMIC_CMP_AND_SWP, i, 0, &target, 0, guess,
				guess + 1) ||
		    !completes(own.scq, i, IBV_WC_SUCCESS, NULL))
			return false;
		memcpy(&old, own.buffer, sizeof(old));
	}
	return true;
}

static int64_t serve_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (!readable(own.channel->fd, PATIENCE) || ibv_get_cq_event(own.channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return cq == own.rcq;
}

static int64_t serve_limit(const struct command *c)
{
	struct ibv_srq_attr attr = { .srq_limit = c->length };

	return !ibv_modify_srq(own.srq, &attr, IBV_SRQ_LIMIT);
}

static int64_t serve_grow(const struct command *c)
{
	struct ibv_srq_attr attr = { .max_wr = c->length };

	return !ibv_modify_srq(own.srq, &attr, IBV_SRQ_MAX_WR);
}

/*
 * Protects the pages inside the buffer; the rest stays usable, because side_close frees the buffer.
 */
static int64_t serve_unmap(void)
{
	uintptr_t last = (uintptr_t)sysconf(_SC_PAGESIZE) - 1,
		  from = ((uintptr_t)own.buffer + last) & ~last,
		  to = ((uintptr_t)own.buffer + BUFFER) & ~last;

	return mprotect((void *)from, to - from, PROT_NONE)
		       ? 0
		       : (int64_t)(from - (uintptr_t)own.buffer) + 1;
}

static int64_t serve_deregister(void)
{
	int error = ibv_dereg_mr(own.mr);

	own.mr = NULL;
	return !error;
}

static int64_t serve_destroy_qp(void)
{
	int error = ibv_destroy_qp(own.qp);

	own.qp = NULL;
	return !error;
}

static int64_t serve(const struct command *c, struct answer *a)
{
	struct ibv_wc wc = { 0 };
	int64_t good;

	switch (c->op) {
	case OP_OPEN: return serve_open(c, a);
	case OP_CONNECT: return serve_connect(c);
	case OP_RECV: return post_recv(&own, c->wr_id, c->offset, c->length);
	case OP_SRQ: return post_srq(&own, c->wr_id, c->offset, c->length);
	case OP_SEND: return post_send(&own, c->wr_id, c->offset, c->length, IBV_SEND_SIGNALED);
	case OP_ADD: return serve_add(c);
	case OP_ADD_BY_SWAP: return serve_add_by_swap(c);
	case OP_COMPLETES_SEND:
		return completes(own.scq, c->wr_id, (enum ibv_wc_status)c->value, NULL);
	case OP_COMPLETES_RECV:
		good = completes(own.rcq, c->wr_id, (enum ibv_wc_status)c->value, &wc);
		a->length = wc.byte_len;
		return good;
	case OP_REACHES: return reaches(own.qp, (enum ibv_qp_state)c->value);
	case OP_TO: return move_to(own.qp, (enum ibv_qp_state)c->value);
	case OP_ASYNC:
		return async_is((enum ibv_event_type)c->value,
				c->key ? (void *)own.srq : (void *)own.qp);
	case OP_SILENT: return async_silent();
	case OP_FILL:
		pattern_fill(own.buffer + c->offset, c->length, (unsigned)c->value);
		return true;
	case OP_HOLDS: return pattern_holds(own.buffer + c->offset, c->length, (unsigned)c->value);
	case OP_ARM: return !ibv_req_notify_cq(own.rcq, 0);
	case OP_EVENT: return serve_event();
	case OP_LIMIT: return serve_limit(c);
	case OP_GROW: return serve_grow(c);
	case OP_UNMAP: return serve_unmap();
	case OP_DEREGISTER: return serve_deregister();
	case OP_DESTROY_QP: return serve_destroy_qp();
	case OP_CLOSE: return side_release(&own);
	}
	return 0;
}

void remote_main(int argc, char **argv)
{
	struct command command;
	int fd;

	if (argc != 3 || strcmp(argv[1], "--peer"))
		return;
	fd = atoi(argv[2]);
	while (recv(fd, &command, sizeof(command), 0) == sizeof(command)) {
		struct answer answer = { 0 };

		answer.result = serve(&command, &answer);
		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
		if (command.op == OP_CLOSE)
			exit(0);
	}
	exit(2);
}

/* ---- in this process ---- */

static bool tell(struct remote *peer, const struct command *command)
{
	return send(peer->fd, command, sizeof(*command), MSG_NOSIGNAL) == sizeof(*command);
}

static int64_t hear(struct remote *peer, struct answer *answer)
{
	struct answer own_answer;

	if (!answer)
		answer = &own_answer;
	if (recv(peer->fd, answer, sizeof(*answer), 0) != sizeof(*answer)) {
		fprintf(stderr, "the peer process does not answer\n");
		return -1;
	}
	return answer->result;
}

static int64_t ask(struct remote *peer, const struct command *command, struct answer *answer)
{
	return tell(peer, command) ? hear(peer, answer) : -1;
}

#define ASK(peer, ...) ask(peer, &(struct command){ __VA_ARGS__ }, NULL)

bool remote_net_enter(void)
{
	const char *name = getenv("CONFORM_PEER_NET");
	int fd;
	bool entered;

	if (!name)
		return true;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	entered = fd >= 0 && !setns(fd, CLONE_NEWNET);
	if (!entered)
		perror(name);
	return entered;
}

static bool start(struct remote *peer)
{
	int fds[2];
	char number[12];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return false;
	peer->fd = fds[0];
	peer->pid = fork();
	if (!peer->pid) {
		snprintf(number, sizeof(number), "%d", dup(fds[1])); /* survives exec */
		if (remote_net_enter())
			execl("/proc/self/exe", "peer", "--peer", number, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	return peer->pid > 0;
}

bool remote_open(struct remote *peer, struct side *here, const struct pair_options *options)
{
	static const struct pair_options none;
	struct pair_options there, back = { .gid = device_gid };
	struct answer answer = { 0 };
	bool good;

	if (!options)
		options = &none;
	there = *options;
	*peer = (struct remote){ .fd = -1 };
	*here = (struct side){ 0 };
	good = start(peer) && side_open(here, options, false) &&
	       ask(peer, &(struct command){ .op = OP_OPEN, .options = *options }, &answer) == true;
	peer->qp.qp_num = answer.qpn;
	peer->mr.rkey = answer.rkey;
	peer->side = (struct side){
		.qp = &peer->qp,
		.mr = &peer->mr,
		.buffer = (char *)(uintptr_t)answer.buffer,
	};
	there.elsewhere = true;
	there.gid = answer.gid;
	good = good && side_connect(here, answer.qpn, &there) &&
	       ASK(peer, .op = OP_CONNECT, .value = here->qp->qp_num, .options = back) == true;
	CU_ASSERT_TRUE(good);
	if (!good) {
		remote_kill(peer);
		side_close(here);
	}
	return good;
}

void remote_close(struct remote *peer)
{
	int status = -1;

	CU_ASSERT_EQUAL(ASK(peer, .op = OP_CLOSE), true);
	CU_ASSERT_EQUAL(waitpid(peer->pid, &status, 0), peer->pid);
	CU_ASSERT_EQUAL(status, 0);
	close(peer->fd);
}

void remote_kill(struct remote *peer)
{
	if (peer->pid > 0) {
		kill(peer->pid, SIGKILL);
		waitpid(peer->pid, NULL, 0);
	}
	if (peer->fd >= 0)
		close(peer->fd);
}

int remote_post_recv(struct remote *peer, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	return (int)ASK(peer, .op = OP_RECV, .wr_id = wr_id, .offset = offset, .length = length);
}

int remote_post_srq(struct remote *peer, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	return (int)ASK(peer, .op = OP_SRQ, .wr_id = wr_id, .offset = offset, .length = length);
}

int remote_post_send(struct remote *peer, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	return (int)ASK(peer, .op = OP_SEND, .wr_id = wr_id, .offset = offset, .length = length);
}

bool remote_add_start(struct remote *peer, const void *word, uint32_t rkey, uint64_t amount,
		      uint32_t count)
{
	struct command command = {
		.op = amount ? OP_ADD : OP_ADD_BY_SWAP,
		.wr_id = amount,
		.length = count,
		.value = (uintptr_t)word,
		.key = rkey,
	};

	return tell(peer, &command);
}

bool remote_add_end(struct remote *peer)
{
	return readable(peer->fd, PATIENCE) && hear(peer, NULL) == true;
}

bool remote_completes_send(struct remote *peer, uint64_t wr_id, enum ibv_wc_status status)
{
	return ASK(peer, .op = OP_COMPLETES_SEND, .wr_id = wr_id, .value = status) == true;
}

bool remote_completes_recv(struct remote *peer, uint64_t wr_id, enum ibv_wc_status status,
			   uint32_t *length)
{
	struct command command = { .op = OP_COMPLETES_RECV, .wr_id = wr_id, .value = status };
	struct answer answer = { 0 };
	bool good = ask(peer, &command, &answer) == true;

	if (length)
		*length = answer.length;
	return good;
}

bool remote_reaches(struct remote *peer, enum ibv_qp_state state)
{
	return ASK(peer, .op = OP_REACHES, .value = state) == true;
}

int remote_to(struct remote *peer, enum ibv_qp_state state)
{
	return (int)ASK(peer, .op = OP_TO, .value = state);
}

bool remote_async_is(struct remote *peer, enum ibv_event_type type, bool of_srq)
{
	return ASK(peer, .op = OP_ASYNC, .value = type, .key = of_srq) == true;
}

bool remote_async_silent(struct remote *peer)
{
	return ASK(peer, .op = OP_SILENT) == true;
}

void remote_fill(struct remote *peer, uint32_t offset, uint32_t length, unsigned seed)
{
	ASK(peer, .op = OP_FILL, .offset = offset, .length = length, .value = seed);
}

bool remote_holds(struct remote *peer, uint32_t offset, uint32_t length, unsigned seed)
{
	return ASK(peer, .op = OP_HOLDS, .offset = offset, .length = length, .value = seed) == true;
}

bool remote_arm(struct remote *peer)
{
	return ASK(peer, .op = OP_ARM) == true;
}

bool remote_event_comes(struct remote *peer)
{
	return ASK(peer, .op = OP_EVENT) == true;
}

bool remote_srq_limit(struct remote *peer, uint32_t limit)
{
	return ASK(peer, .op = OP_LIMIT, .length = limit) == true;
}

bool remote_srq_grow(struct remote *peer, uint32_t max_wr)
{
	return ASK(peer, .op = OP_GROW, .length = max_wr) == true;
}

int64_t remote_unmap(struct remote *peer)
{
	return ASK(peer, .op = OP_UNMAP) - 1;
}

bool remote_deregister(struct remote *peer)
{
	return ASK(peer, .op = OP_DEREGISTER) == true;
}

bool remote_destroy_qp(struct remote *peer)
{
	return ASK(peer, .op = OP_DESTROY_QP) == true;
}
