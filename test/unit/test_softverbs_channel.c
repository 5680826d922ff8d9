/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Tokens of completion channels: a channel that poll(2) finds readable has an event, also for a program that reads it without
 * blocking.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include "softverbs/object/object.h"
#include "test/unit/node.h"

#define CQS 4u

static const struct node_options with_channel = { .channel = true }, with_qps = { .qps = CQS };

/* Sends one message by each QP, at once: the first that ask for the channel's descriptor. */
static int sender(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;

	(void)arg;
	if (!node_open(&node, &with_qps) || !node_connect(&node, 0, CQS, fd) || !process_sync(fd))
		return 1;
	for (uint32_t i = 0; i < CQS; i++)
		if (node_send(&node, i, i, 0, 8, IBV_SEND_SIGNALED))
			return 2;
	for (uint32_t i = 0; i < CQS; i++)
		if (!node_poll(&node, &wc) || wc.status)
			return 3;
	process_sync(fd);
	return node_close(&node);
}

/* Each QP but the first has a CQ of its own. */
static void receiver_open(struct node *node, struct ibv_cq **cqs)
{
	CU_ASSERT_FATAL(node_open(node, &with_channel));
	CU_ASSERT_FATAL(!fcntl(node->channel->fd, F_SETFL, O_NONBLOCK));
	cqs[0] = node->cq;
	for (uint32_t i = 1; i < CQS; i++) {
		struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

		cqs[i] = ibv_create_cq(node->context, 16, NULL, node->channel, 0);
		attr.send_cq = attr.recv_cq = cqs[i];
		node->qp[i] = ibv_create_qp(node->pd, &attr);
		CU_ASSERT_FATAL(node->qp[i] != NULL);
	}
}

static void receiver_close(struct node *node, struct ibv_cq **cqs)
{
	for (uint32_t i = 1; i < CQS; i++) {
		CU_ASSERT(!ibv_destroy_qp(node->qp[i]));
		CU_ASSERT(!ibv_destroy_cq(cqs[i]));
		node->qp[i] = NULL;
	}
	CU_ASSERT_EQUAL(node_close(node), 0);
}

static bool has_all_tokens(void *node)
{
	int count = 0;

	return !ioctl(((struct node *)node)->channel->fd, FIONREAD, &count) && count >= (int)CQS;
}

static bool is_readable(const struct node *node)
{
	struct pollfd poll_fd = { .fd = node->channel->fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static struct ibv_cq *event_of(struct node *node)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(node->channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

static void one_token_for_each_event(void)
{
	struct ibv_cq *cqs[CQS];
	struct process process;
	uint32_t seen = 0;
	struct node node;

	CU_ASSERT_FATAL(process_start(&process, sender, NULL));
	receiver_open(&node, cqs);
	CU_ASSERT_FATAL(node_connect(&node, 0, CQS, process.fd));
	for (uint32_t i = 0; i < CQS; i++)
		CU_ASSERT_FATAL(!node_recv(&node, i, i, 0, 8) && !ibv_req_notify_cq(cqs[i], 0));
	process_say(process.fd, 1);
	CU_ASSERT_FATAL(unit_wait_for(has_all_tokens, &node, UNIT_PATIENCE));
	while (is_readable(&node)) {
		struct ibv_cq *cq = event_of(&node);

		CU_ASSERT_FATAL(cq != NULL);
		for (uint32_t i = 0; i < CQS; i++) {
			CU_ASSERT(cq != cqs[i] || !(seen & 1u << i));
			seen |= cq == cqs[i] ? 1u << i : 0;
		}
	}
	CU_ASSERT(seen == (1u << CQS) - 1);
	process_say(process.fd, 1);
	CU_ASSERT_EQUAL(process_end(&process), 0);
	receiver_close(&node, cqs);
}

/* As a process may leave it that dies between the event and its token. */
static void a_token_without_an_event(void)
{
	struct ibv_cq *cqs[CQS];
	struct node node;

	receiver_open(&node, cqs);
	CU_ASSERT(sv_token_put(channel_of(node.channel)->tokens.writer));
	CU_ASSERT(is_readable(&node));
	CU_ASSERT(event_of(&node) != NULL);
	CU_ASSERT(!is_readable(&node) && !event_of(&node) && errno == EAGAIN);
	receiver_close(&node, cqs);
}

static const struct unit_test tests[] = {
	{ "a channel has as many tokens as events, before peers know its descriptor",
	  one_token_for_each_event },
	{ "a token without an event is an event of some CQ", a_token_without_an_event },
};

UNIT_MAIN("softverbs_channel", tests)
