/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Many live connections between two processes, each side's on one CQ: what a message and what a connection costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/verbs.h"

#define RECVS 4u
#define SENDS 4u

static struct ibv_qp **qps;

static void post_recv(struct end *end, struct ibv_qp *qp, uint64_t number)
{
	struct ibv_sge sge = { (uintptr_t)end->to, (uint32_t)options.size, end->to_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void post_send(struct end *end, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)end->from, (uint32_t)options.size, end->from_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 0,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;

	wr.send_flags = end->inline_flag | IBV_SEND_SIGNALED;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* The number of the connection on which a message came. */
static uint64_t await(struct end *end)
{
	struct ibv_wc wc;
	int n;

	for (;;) {
		while (!(n = ibv_poll_cq(end->cq, 1, &wc)))
			;
		must(n == 1 && wc.status == IBV_WC_SUCCESS, "ibv_poll_cq");
		if (wc.opcode & IBV_WC_RECV)
			return wc.wr_id;
	}
}

/* Proportional set size in KiB: shared pages count for their part. */
static long pss(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void make(struct end *end)
{
	struct verbs_name *names = (struct verbs_name *)shared + (side ? options.count : 0);
	struct verbs_name *theirs = (struct verbs_name *)shared + (side ? 0 : options.count);

	for (unsigned i = 0; i < options.count; i++) {
		qps[i] = verbs_qp(end, RECVS, SENDS);
		verbs_name(end, qps[i], &names[i]);
	}
	meet();
	for (unsigned i = 0; i < options.count; i++) {
		verbs_connect(qps[i], &theirs[i]);
		for (unsigned n = 0; n < RECVS; n++)
			post_recv(end, qps[i], i);
	}
	meet();
}

static void trip(struct end *end, unsigned i)
{
	uint64_t at;

	if (!side)
		post_send(end, qps[i]);
	at = await(end);
	must(at == i, "a message on another connection");
	if (side)
		post_send(end, qps[i]);
	post_recv(end, qps[i], i);
}

bool verbs_many(struct end *end)
{
	unsigned at = 0, n = batch_round_trips();
	long before;

	if (strcmp(options.test, "many"))
		return false;
	must(options.count <= 8192, "-n");
	verbs_open(end, options.count * (RECVS + SENDS) < 65536 ? options.count * (RECVS + SENDS)
								: 65536);
	qps = calloc(options.count, sizeof(struct ibv_qp *));
	must(qps != NULL, "calloc");
	before = pss();
	make(end);
	for (unsigned i = 0; i < options.count; i++)
		trip(end, i);
	if (!side)
		fprintf(stderr, "memory %.2f KiB a connection and process\n",
			(double)(pss() - before) / options.count);
	meet();
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			trip(end, at);
			at = at + 1 == options.count ? 0 : at + 1;
		}
		figure(half_round_trip(begin, n));
	}
	return true;
}
