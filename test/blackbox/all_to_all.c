/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * One of many processes, on one or more hosts, each of which has a connection with each other one; for
 * blackbox/fabric-scale.sh.
 *
 *	all-to-all FOLDER NUMBER COUNT ROUNDS
 *
 * They tell each other their GID and queue pairs in files of the folder, send each peer a message in each round, and check
 * what they receive. Prints the seconds from the first request to the last completion, the descriptors and the memory.
 */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 256
#define PATIENCE  120 /* seconds */

struct message {
	uint32_t from, round;
	uint8_t rest[56];
};

struct told {
	union ibv_gid gid;
	uint32_t qpn[PROCESSES];
};

static const char *folder;
static unsigned number, count, rounds;

static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qps[PROCESSES];
static struct message in[PROCESSES];
static uint32_t received[PROCESSES]; /* messages of each peer */

static void need(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "process %u: ", number);
		perror(what);
		exit(1);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- files ---- */

static void path_of(char *path, size_t size, const char *kind, unsigned of)
{
	need(snprintf(path, size, "%s/%s.%u", folder, kind, of) < (int)size, "a path");
}

/* A file appears complete. */
static void tell(const char *kind, const void *data, size_t size)
{
	char path[256], whole[256];
	FILE *file;

	path_of(path, sizeof(path), "part", number);
	path_of(whole, sizeof(whole), kind, number);
	file = fopen(path, "w");
	need(file && fwrite(data, size, 1, file) == 1 && !fclose(file) && !rename(path, whole),
	     whole);
}

static void hear(const char *kind, unsigned of, void *data, size_t size)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	double end = seconds() + PATIENCE;
	char path[256];
	FILE *file;

	path_of(path, sizeof(path), kind, of);
	while (!(file = fopen(path, "r"))) {
		need(seconds() < end, path);
		nanosleep(&pause, NULL);
	}
	need(fread(data, size, 1, file) == 1, path);
	fclose(file);
}

static void wait_for_all(const char *kind)
{
	char reached = 1;

	tell(kind, &reached, 1);
	for (unsigned peer = 0; peer < count; peer++)
		hear(kind, peer, &reached, 1);
}

/* ---- queue pairs ---- */

static void post_receive(unsigned peer)
{
	struct ibv_sge sge = { (uintptr_t)&in[peer], sizeof(in[peer]), mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = peer, .sg_list = &sge, .num_sge = 1 }, *bad;

	need(!ibv_post_recv(qps[peer], &wr, &bad), "ibv_post_recv");
}

static void qp_open(struct ibv_pd *pd, unsigned peer)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { 2, 2, 1, 1, sizeof(struct message) } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	qps[peer] = ibv_create_qp(pd, &init);
	need(qps[peer] && !ibv_modify_qp(qps[peer], &attr,
					 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS),
	     "ibv_create_qp");
	post_receive(peer);
}

static void qp_connect(unsigned peer, const struct told *told)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = told->qpn[number],
		.min_rnr_timer = 12,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = told->gid, .sgid_index = 1, .hop_limit = 4 } },
	};

	need(!ibv_modify_qp(qps[peer], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	/* 69 s: on a busy machine the first message waits for thousands of connections, and the test is not about time */
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 21,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	need(!ibv_modify_qp(qps[peer], &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

/* ---- messages ---- */

static void message_check(unsigned peer, uint32_t round)
{
	const struct message *got = &in[peer];
	unsigned i = 0;

	while (i < sizeof(got->rest) && got->rest[i] == (uint8_t)(peer + round))
		i++;
	if (got->from != peer || got->round != round || i < sizeof(got->rest)) {
		fprintf(stderr, "process %u: a wrong message from %u\n", number, peer);
		exit(1);
	}
}

static void send_to(unsigned peer, uint32_t round)
{
	struct message out = { .from = number, .round = round };
	struct ibv_sge sge = { .addr = (uintptr_t)&out, .length = sizeof(out) };
	struct ibv_send_wr wr = { .wr_id = peer,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;

	memset(out.rest, (int)(number + round), sizeof(out.rest));
	need(!ibv_post_send(qps[peer], &wr, &bad), "ibv_post_send");
}

/* Returns the number of requests that have completed. */
static unsigned poll_once(void)
{
	struct ibv_wc wc;
	unsigned peer;

	if (!ibv_poll_cq(cq, 1, &wc)) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
		return 0;
	}
	peer = (unsigned)wc.wr_id;
	if (wc.status) {
		fprintf(stderr, "process %u: peer %u: %s\n", number, peer,
			ibv_wc_status_str(wc.status));
		exit(1);
	}
	if (wc.opcode != IBV_WC_RECV)
		return 1;
	message_check(peer, received[peer]++);
	post_receive(peer);
	return 0;
}

/* A peer can be a round ahead. */
static int all_received(uint32_t round)
{
	for (unsigned peer = 0; peer < count; peer++)
		if (peer != number && received[peer] <= round)
			return 0;
	return 1;
}

static void round_fail(uint32_t round, unsigned sends)
{
	fprintf(stderr,
		"process %u: round %u takes too long: %u of %u requests have completed, nothing "
		"from",
		number, round, sends, count - 1);
	for (unsigned peer = 0; peer < count; peer++)
		if (peer != number && received[peer] <= round)
			fprintf(stderr, " %u", peer);
	fputc('\n', stderr);
	exit(1);
}

static void round_run(uint32_t round)
{
	double end = seconds() + PATIENCE;
	unsigned sends = 0;

	for (unsigned peer = 0; peer < count; peer++)
		if (peer != number)
			send_to(peer, round);
	while (sends < count - 1 || !all_received(round)) {
		if (seconds() >= end)
			round_fail(round, sends);
		sends += poll_once();
	}
}

/* ---- what it took ---- */

static unsigned descriptors(void)
{
	DIR *fds = opendir("/proc/self/fd");
	unsigned n = 0;

	need(!!fds, "/proc/self/fd");
	while (readdir(fds))
		n++;
	closedir(fds);
	return n - 3; /* ".", ".." and its own */
}

static unsigned long memory_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[128];

	need(!!status, "/proc/self/status");
	while (fgets(line, sizeof(line), status) && sscanf(line, "RssAnon: %lu", &kib) != 1)
		;
	fclose(status);
	return kib;
}

static void open_all(struct told *own)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;

	cq = pd ? ibv_create_cq(context, 4 * PROCESSES, NULL, NULL, 0) : NULL;
	mr = cq ? ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE) : NULL;
	need(mr && !ibv_query_gid(context, 1, 1, &own->gid), "the device");
	for (unsigned peer = 0; peer < count; peer++) {
		if (peer == number)
			continue;
		qp_open(pd, peer);
		own->qpn[peer] = qps[peer]->qp_num;
	}
}

int main(int argc, char **argv)
{
	static struct told own, told;
	double begin;

	need(argc == 5, "usage: all-to-all FOLDER NUMBER COUNT ROUNDS");
	folder = argv[1];
	number = (unsigned)strtoul(argv[2], NULL, 0);
	count = (unsigned)strtoul(argv[3], NULL, 0);
	rounds = (unsigned)strtoul(argv[4], NULL, 0);
	need(count <= PROCESSES && number < count, "as many processes");
	open_all(&own);
	tell("open", &own, sizeof(own));
	for (unsigned peer = 0; peer < count; peer++) {
		if (peer == number)
			continue;
		hear("open", peer, &told, sizeof(told));
		qp_connect(peer, &told);
	}
	/* a request to a QP that is not in RTR yet is sent again after the timeout */
	wait_for_all("ready");
	begin = seconds();
	for (uint32_t round = 0; round < rounds; round++)
		round_run(round);
	printf("%.3f s, %u descriptors, %lu KiB\n", seconds() - begin, descriptors(), memory_kib());
	/* a process that ends takes its queue pairs along */
	wait_for_all("done");
	return 0;
}
