/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What the layer above verbs takes in nanoseconds, over a device that does nothing: of this build and of the
 * packaged OFED libraries, batch by batch in turn on one processor, the best batch of each. Lines as `exact` has.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/beside.h"

#define ROUNDS 700

enum { MET, MISSED, NOT_MEASURED }; /* how the program ends */

struct client {
	pid_t pid;
	int ask, answer;
	double best[3];
};

static const char letters[] = "dws";

static bool receive(struct client *client, double *value)
{
	return read(client->answer, value, sizeof(*value)) == sizeof(*value);
}

static void become(const int *ask, const int *answer)
{
	dup2(ask[0], STDIN_FILENO);
	dup2(answer[1], STDOUT_FILENO);
	close(ask[1]);
	close(answer[0]);
	setenv("LD_PRELOAD", beside_program("layer-stub.so"), 1);
	execl(beside_program("layer-client"), "layer-client", "exact", (char *)NULL);
	fprintf(stderr, "layer: %s: %s\n", beside_program("layer-client"), strerror(errno));
	_exit(NOT_MEASURED);
}

static bool start(struct client *client, enum variant variant)
{
	int ask[2], answer[2], i;
	double ready;

	if (!beside_set(variant) || pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		return false;
	client->pid = fork();
	if (!client->pid)
		become(ask, answer);
	close(ask[0]);
	close(answer[1]);
	client->ask = ask[1];
	client->answer = answer[0];
	for (i = 0; i < 3; i++)
		client->best[i] = 1e9;
	return client->pid > 0 && receive(client, &ready);
}

static bool stop(struct client *client)
{
	int status = -1;

	close(client->ask);
	close(client->answer);
	return waitpid(client->pid, &status, 0) == client->pid && !status;
}

static bool run(struct client *clients)
{
	int round, i, of;
	double value;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < 6; i++) {
			of = (i + round) % 2; /* now the one begins, now the other */
			if (write(clients[of].ask, &letters[i / 2], 1) != 1 ||
			    !receive(&clients[of], &value))
				return false;
			if (value < clients[of].best[i / 2])
				clients[of].best[i / 2] = value;
		}
	}
	return true;
}

static int print(const struct client *clients, int which, const char *what, double limit)
{
	/* the same code in both */
	double stub =
		clients[0].best[2] < clients[1].best[2] ? clients[0].best[2] : clients[1].best[2];
	double ours = clients[0].best[which] - stub, theirs = clients[1].best[which] - stub;

	if (ours <= 0 || theirs <= 0) {
		fprintf(stderr, "layer: the stub takes longer than all\n");
		return NOT_MEASURED;
	}
	printf("G15\t%s: ns above the stub, OFED as it comes\t%.1f\t%.1f\t%.2f\t%.2f\t%s\n", what,
	       ours, theirs, ours / theirs, limit, ours / theirs <= limit ? "met" : "MISSED");
	return ours / theirs <= limit ? MET : MISSED;
}

int main(int argc, char **argv)
{
	bool report = argc == 2 && !strcmp(argv[1], "--report"), measured = false;
	struct client clients[2] = { 0 };
	int dequeue, wait;

	if ((argc > 1 && !report) || !beside_begin())
		return NOT_MEASURED;
	beside_stay();
	if (start(&clients[0], OURS) && start(&clients[1], PACKAGED))
		measured = run(clients);
	measured &= clients[0].pid > 0 && stop(&clients[0]);
	measured &= clients[1].pid > 0 && stop(&clients[1]);
	beside_end();
	if (!measured) {
		fprintf(stderr, "layer: could not be measured\n");
		return NOT_MEASURED;
	}
	printf("# the stub alone: %.1f and %.1f ns a message; best of %d batches\n",
	       clients[0].best[2], clients[1].best[2], ROUNDS);
	dequeue = print(clients, 0, "recv + send + 2 dequeue", 0.60);
	wait = print(clients, 1, "recv + send + 2 wait", 0.40);
	if (dequeue == NOT_MEASURED || wait == NOT_MEASURED)
		return NOT_MEASURED;
	return report || (dequeue == MET && wait == MET) ? MET : MISSED;
}
