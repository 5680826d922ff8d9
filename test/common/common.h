/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common parts of dapltest and the dtest programs: DAT codes, addresses, time, one event. */

#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>

enum { ADDRESS_TEXT = 64 };

/* Each program defines it: prints a line to stderr. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* codes.c: DAT codes in words */
bool dat_ok(DAT_RETURN ret, const char *call); /* prints an error if the call failed */
bool dat_is(DAT_RETURN ret, DAT_RETURN_TYPE type);
const char *dat_text(DAT_RETURN ret, char text[128]);
const char *event_name(DAT_EVENT_NUMBER number);
const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status);

/*
 * hint.c: prints what to try when an IA does not open; `option` is the program's option that names
 * an IA
 */
void open_hint(const char *name, const char *option);

/* address.c */
const char *address_text(const struct sockaddr *sa, char text[ADDRESS_TEXT]);
bool address_resolve(const char *host, int family, struct sockaddr_storage *found);

/* moment.c: points in time, in nanoseconds */
uint64_t clock_ns(void);
uint64_t clock_after(double seconds);
bool clock_passed(uint64_t deadline);
void clock_pause_ms(int ms);
DAT_TIMEOUT timeout_left(uint64_t deadline);

/* one_event.c: returns false only if a call failed; without an event in time, `found` is false */
bool event_look(DAT_EVD_HANDLE evd, DAT_EVENT *event, bool *found);
bool event_await_until(DAT_EVD_HANDLE evd, uint64_t deadline, DAT_EVENT *event, bool *found);

#endif
