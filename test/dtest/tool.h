/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Common parts of all programs of this folder: output, time, addresses, events, the side channel.
 */

#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/common/common.h"

enum {
	EXIT_BAD_OPTION = 244, /* -12 as a byte, which scripts know */
	CHANNEL_PORT = 15828,
	CHANNEL_TRIES = 10,
	PROVIDER_SIZE = 64,
};

/*
 * output.c: progress goes to stdout line by line, failures, by complain(), to stderr; both have the
 * process id, except lines of note().
 */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_result(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_heading(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* clock.c */
int clock_left_ms(uint64_t deadline);
double clock_us_since(uint64_t start);
void watchdog_set(double seconds);
void watchdog_stop(void);
bool cpu_pin(int cpu);

/* await.c */
enum wait_mode {
	WAIT_SLEEP, /* dat_evd_wait */
	WAIT_POLL,  /* dat_evd_dequeue in a loop */
	WAIT_CNO,   /* dat_cno_wait, then dat_evd_dequeue */
};

struct waiter {
	enum wait_mode mode;
	DAT_CNO_HANDLE cno;
	unsigned long polls; /* polls that found nothing */
};

bool event_await(struct waiter *w, DAT_EVD_HANDLE evd, const char *what, double seconds,
		 DAT_EVENT *event);
bool event_await_silent(struct waiter *w, DAT_EVD_HANDLE evd, double seconds, DAT_EVENT *event,
			bool *found); /* success without an event: the time was over */

/* channel.c: the server tells its address and provider name over TCP before the DAT connection */
struct channel_news {
	struct sockaddr_storage addr; /* family 0: the server gave no address */
	char provider[PROVIDER_SIZE];
};

enum channel_result { CHANNEL_OK, CHANNEL_NO_PEER, CHANNEL_FAILED };

int channel_listen(uint16_t port);
bool channel_answer(int listener, const struct sockaddr *ia, const char *provider, double seconds);
enum channel_result channel_ask(const char *host, uint16_t port, double seconds,
				struct channel_news *news);
/* The same, but the client answers with its own address. */
bool channel_exchange(int listener, const struct sockaddr *ia, const char *provider, double seconds,
		      struct channel_news *client);
enum channel_result channel_ask_and_tell(const char *host, uint16_t port, double seconds,
					 const struct sockaddr *ia, struct channel_news *news);
bool channel_parse(const char *line, struct channel_news *news);

#endif
