/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects of one connection, and what is expected of its events and data. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "test/vm/wire.h"

struct wire wire = { .async_evd = DAT_HANDLE_NULL };

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void must(DAT_RETURN status, const char *call)
{
	const char *type, *detail;

	if (status == DAT_SUCCESS)
		return;
	dat_strerror(status, &type, &detail);
	printf("%.*s: %s %s\n", (int)strcspn(call, "("), call, type, detail);
	exit(1);
}

void wrong(const char *what, unsigned long long seen, unsigned long long expected)
{
	printf("%s is 0x%llx, not 0x%llx\n", what, seen, expected);
	exit(1);
}

const char *event_name(DAT_EVENT_NUMBER number)
{
	switch ((int)number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED: return "ESTABLISHED";
	case DAT_CONNECTION_EVENT_PEER_REJECTED: return "PEER_REJECTED";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: return "NON_PEER_REJECTED";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return "ACCEPT_COMPLETION_ERROR";
	case DAT_CONNECTION_EVENT_DISCONNECTED: return "DISCONNECTED";
	case DAT_CONNECTION_EVENT_BROKEN: return "BROKEN";
	case DAT_CONNECTION_EVENT_TIMED_OUT: return "TIMED_OUT";
	case DAT_CONNECTION_EVENT_UNREACHABLE: return "UNREACHABLE";
	default: return "another event";
	}
}

DAT_EVENT next(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	MUST(dat_evd_wait(evd, option.seconds * 1000000, 1, &event, &more));
	return event;
}

DAT_EVENT expect(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next(wire.conn_evd);

	if (event.event_number != number) {
		printf("%s instead of %s\n", event_name(event.event_number), event_name(number));
		exit(1);
	}
	return event;
}

/*
 * --- private data: bytes that differ by place and by message; the padding of the CM is not
 * compared ------
 */

unsigned char *pattern(unsigned char *data, unsigned size, unsigned seed)
{
	unsigned i;

	for (i = 0; i < size; i++)
		data[i] = (unsigned char)(seed + i * 3);
	return data;
}

void compare(const char *what, const void *data, DAT_COUNT size, unsigned expected, unsigned seed)
{
	unsigned char wanted[256];

	if (size < (DAT_COUNT)expected || !data)
		wrong(what, (unsigned)size, expected);
	if (memcmp(data, pattern(wanted, expected, seed), expected)) {
		printf("%s has other bytes\n", what);
		exit(1);
	}
}

/* --- objects --------------------------------------------------------------------------------------------------- */

void ep_open(void)
{
	MUST(dat_ep_create(wire.ia, wire.pz, wire.recv_evd, wire.request_evd, wire.conn_evd, NULL,
			   &wire.ep));
}

void open_all(void)
{
	size_t size = (size_t)option.bytes * (DEPTH + 1);
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_CONTEXT rkey;
	DAT_VLEN length;
	DAT_VADDR address;

	wire.memory = calloc(1, size);
	region.for_va = wire.memory;
	MUST(dat_ia_open(option.provider, 8, &wire.async_evd, &wire.ia));
	MUST(dat_pz_create(wire.ia, &wire.pz));
	MUST(dat_evd_create(wire.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &wire.cr_evd));
	MUST(dat_evd_create(wire.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &wire.conn_evd));
	MUST(dat_evd_create(wire.ia, 4 * DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &wire.recv_evd));
	MUST(dat_evd_create(wire.ia, 4 * DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			    &wire.request_evd));
	MUST(dat_lmr_create(wire.ia, DAT_MEM_TYPE_VIRTUAL, region, size, wire.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &wire.lmr, &wire.lkey, &rkey,
			    &length, &address));
	ep_open();
}

/* An object that cannot be freed is a failure, too. */
void close_all(void)
{
	DAT_EVENT event;

	while (wire.psps)
		MUST(dat_psp_free(wire.psp[--wire.psps]));
	MUST(dat_ep_free(wire.ep));
	while (dat_evd_dequeue(wire.recv_evd, &event) == DAT_SUCCESS)
		;
	while (dat_evd_dequeue(wire.request_evd, &event) == DAT_SUCCESS)
		;
	MUST(dat_lmr_free(wire.lmr));
	MUST(dat_evd_free(wire.recv_evd));
	MUST(dat_evd_free(wire.request_evd));
	MUST(dat_evd_free(wire.conn_evd));
	MUST(dat_evd_free(wire.cr_evd));
	MUST(dat_pz_free(wire.pz));
	MUST(dat_ia_close(wire.ia, DAT_CLOSE_GRACEFUL_FLAG));
	free(wire.memory);
}

DAT_LMR_TRIPLET place(unsigned index)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = wire.lkey,
				  .segment_length = option.bytes,
				  .virtual_address =
					  (DAT_VADDR)(uintptr_t)(wire.memory +
								 (size_t)index * option.bytes) };
}

void post_recv(unsigned index)
{
	DAT_DTO_COOKIE cookie = { .as_64 = index };
	DAT_LMR_TRIPLET iov = place(index);

	MUST(dat_ep_post_recv(wire.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}
