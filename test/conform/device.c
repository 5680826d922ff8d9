/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The device under test. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "test/conform/conform.h"

#define RXE_VENDOR 0xffffff

struct ibv_context *device;
struct ibv_device_attr device_attr;
union ibv_gid device_gid;
uint8_t device_gid_index;
bool device_is_rxe;

#ifdef __SANITIZE_ADDRESS__
const bool under_address_sanitizer = true;
#else
const bool under_address_sanitizer;
#endif
#ifdef __SANITIZE_THREAD__
const bool under_thread_sanitizer = true;
#else
const bool under_thread_sanitizer;
#endif

void skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
}

static void device_close(void)
{
	if (!ibv_close_device(device))
		return;
	fprintf(stderr, "the device does not close, something is left open\n");
	_exit(1);
}

static struct ibv_context *open_wanted(void)
{
	const char *wanted = getenv("CONFORM_DEVICE");
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i] && !context; i++)
		if (!wanted || !strcmp(ibv_get_device_name(list[i]), wanted))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

static bool find_gid(void)
{
	static const uint8_t ipv4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	const char *wanted = getenv("CONFORM_GID");
	struct ibv_gid_entry entry;
	uint32_t i;

	for (i = wanted ? (uint32_t)atoi(wanted) : 0; i < 256; i++) {
		if (ibv_query_gid_ex(device, 1, i, &entry, 0))
			continue;
		if (!wanted && memcmp(entry.gid.raw, ipv4_mapped, sizeof(ipv4_mapped)))
			continue;
		device_gid = entry.gid;
		device_gid_index = (uint8_t)i;
		return true;
	}
	return false;
}

bool conform_open(void)
{
	device = open_wanted();
	if (!device) {
		skip("no such device");
		return false;
	}
	atexit(device_close);
	if (ibv_query_device(device, &device_attr) || !find_gid()) {
		skip("the device has no attributes or no GID");
		return false;
	}
	device_is_rxe = device_attr.vendor_id == RXE_VENDOR;
	if (device_is_rxe)
		fprintf(stderr, "note: kernel software RoCE, its known deviations are allowed\n");
	return true;
}

bool rxe_since(unsigned major, unsigned minor)
{
	unsigned at[2] = { 0, 0 };
	struct utsname kernel;

	if (!device_is_rxe || uname(&kernel) ||
	    sscanf(kernel.release, "%u.%u", &at[0], &at[1]) != 2)
		return false;
	return at[0] > major || (at[0] == major && at[1] >= minor);
}

enum ibv_wc_status rxe_local(enum ibv_wc_status before)
{
	return rxe_since(6, 12) ? IBV_WC_WR_FLUSH_ERR : before;
}

bool readable(int fd, unsigned milliseconds)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, (int)milliseconds) == 1 && pfd.revents == POLLIN;
}

bool async_silent(void)
{
	struct ibv_async_event event;

	if (!readable(device->async_fd, SILENCE))
		return true;
	if (!ibv_get_async_event(device, &event)) {
		fprintf(stderr, "unexpected asynchronous event: %s\n",
			ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
	return false;
}

bool async_is(enum ibv_event_type type, const void *element)
{
	struct ibv_async_event event;
	bool same;

	if (!readable(device->async_fd, PATIENCE) || ibv_get_async_event(device, &event)) {
		fprintf(stderr, "no asynchronous event, expected: %s\n", ibv_event_type_str(type));
		return false;
	}
	same = event.event_type == type && event.element.qp == element;
	if (!same)
		fprintf(stderr, "asynchronous event: %s, expected: %s\n",
			ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	ibv_ack_async_event(&event);
	return same;
}
