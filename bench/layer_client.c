/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The program whose calls are timed over the stub: layer-client IA. Under `layer`, which asks for a batch by one
 * letter: d by dequeue, w by wait, s the stub alone. The answer is a double: nanoseconds a message.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "bench/exact_pair.h"
#include "bench/layer_stub.h"

#define MESSAGES 100	  /* a batch: 400 calls */
#define SECONDS	 1000000u /* of DAT_TIMEOUT */

static struct pair pair;
static DAT_EVENT event;
static DAT_COUNT more;
static void (*stub_on)(bool on);
static void (*stub_message)(void);

static void must_be(DAT_RETURN status)
{
	if (__builtin_expect(status != DAT_SUCCESS, 0))
		must(status, "a timed call");
}

static void post(void)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 7 };

	must_be(dat_ep_post_recv(pair.passive, 1, &pair.landing, cookie,
				 DAT_COMPLETION_DEFAULT_FLAG));
	must_be(dat_ep_post_send(pair.active, 1, &pair.local, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void by_dequeue(void)
{
	post();
	must_be(dat_evd_dequeue(pair.received, &event));
	must_be(dat_evd_dequeue(pair.sent, &event));
}

static void by_wait(void)
{
	post();
	must_be(dat_evd_wait(pair.received, 20 * SECONDS, 1, &event, &more));
	must_be(dat_evd_wait(pair.sent, 20 * SECONDS, 1, &event, &more));
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double batch(void (*message)(void))
{
	double start;
	int i;

	for (i = 0; i < MESSAGES / 10; i++)
		message();
	start = now();
	for (i = 0; i < MESSAGES; i++)
		message();
	return (now() - start) / MESSAGES;
}

static void find_stub(void)
{
	void *on = dlsym(RTLD_DEFAULT, "layer_stub_on");
	void *message = dlsym(RTLD_DEFAULT, "layer_stub_message");

	if (!on || !message) {
		fprintf(stderr, "layer-client: not over the stub\n");
		exit(2);
	}
	memcpy(&stub_on, &on, sizeof(stub_on));
	memcpy(&stub_message, &message, sizeof(stub_message));
}

int main(int argc, char **argv)
{
	double answer = 0;
	char letter;

	if (argc != 2) {
		fprintf(stderr, "usage: layer-client IA\n");
		return 2;
	}
	find_stub();
	pair_open(&pair, argv[1]);
	by_wait(); /* over the device: the stub learns of both ends */
	stub_on(true);
	do { /* the first answer says that it is ready */
		if (write(STDOUT_FILENO, &answer, sizeof(answer)) != sizeof(answer))
			return 2;
		if (read(STDIN_FILENO, &letter, 1) != 1)
			break;
		answer = batch(letter == 'd' ? by_dequeue : letter == 'w' ? by_wait : stub_message);
	} while (1);
	stub_on(false);
	pair_close(&pair);
	return 0;
}
