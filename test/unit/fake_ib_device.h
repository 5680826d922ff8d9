/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The device of fake_ib.h: its attributes, and the timers of its event thread. */
#ifndef FAKE_IB_DEVICE_H
#define FAKE_IB_DEVICE_H

#include "test/unit/fake_ib.h"

DAT_RETURN ib_device_open(const char *params, const struct ib_upcalls *upcalls,
			  struct ib_device **device)
{
	struct ib_device *found = &fake.devices[strstr(params, "fake1") ? 1 : 0];
	DAT_RETURN status = fake_refused();

	if (status != DAT_SUCCESS)
		return status;
	fake.upcalls = *upcalls;
	if (!found->opens++)
		found->timers.first = NULL;
	found->attr = (struct ib_attr){
		.device_name = "fake0",
		.transport = "software",
		.guid = 0x0002c90300abcdefull,
		.gid = "fe80::202:c903:ab:cdef",
		.vendor_id = 0x2c9,
		.vendor_part_id = 4099,
		.hw_version = 7,
		.fw_version = 2ull << 48 | 42ull << 32 | 5000ull << 16,
		.port = 1,
		.port_state = 4,
		.mtu = 4096,
		.max_mr_size = 1ull << 40,
		.max_message = FAKE_MAX_MESSAGE,
		.max_qp = 1000,
		.max_wr = FAKE_MAX_WR,
		.max_sge = FAKE_MAX_SGE,
		.max_sge_read = 2,
		.max_cq = 900,
		.max_cqe = FAKE_MAX_CQE,
		.max_mr = 800,
		.max_pd = 700,
		.max_mw = 600,
		.max_read_in = 16,
		.max_read_out = 15,
		.max_read_in_device = 4000,
		.max_srq = 50,
		.max_srq_wr = 32,
		.max_srq_sge = 3,
		.max_private_connect = 56,
		.max_private_accept = 196,
		.max_private_reject = 148,
		.atomics = true,
		.zero_based = true,
		.mw_type1 = true,
		.mw_type2 = true,
		.mem_extensions = true,
		.srq_resize = true,
		.datagrams = fake.datagrams,
		.max_private_resolve = fake.datagrams ? 172 : 0,
		.max_private_resolved = fake.datagrams ? 136 : 0,
	};
	found->address = (struct sockaddr_storage){ .ss_family = AF_INET };
	((struct sockaddr_in *)&found->address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fake.alter)
		fake.alter(found);
	*device = found;
	return DAT_SUCCESS;
}

void ib_device_close(struct ib_device *device)
{
	if (device)
		device->opens--;
}

void ib_device_drain(struct ib_device *device, uint64_t deadline)
{
	(void)device;
	(void)deadline;
}

const struct ib_attr *ib_device_attr(const struct ib_device *device)
{
	return &device->attr;
}

const struct sockaddr *ib_device_address(const struct ib_device *device)
{
	return (const struct sockaddr *)&device->address;
}

unsigned ib_kernel_counters(const struct ib_device *device, enum ib_kernel_group group,
			    uint64_t values[IB_KERNEL_MOST])
{
	(void)device;
	memcpy(values, fake.kernel, sizeof(fake.kernel));
	return group == IB_KERNEL_CM ? IB_KERNEL_MOST : 9;
}

void ib_timer_disarm(struct ib_device *device, struct ib_timer *timer)
{
	deadline_clear(&device->timers, &timer->due);
}

void ib_timer_cancel(struct ib_device *device, struct ib_timer *timer)
{
	ib_timer_disarm(device, timer);
}

void ib_timer_arm(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
		  void (*call)(struct ib_timer *timer))
{
	timer->call = call;
	deadline_set(&device->timers, &timer->due, deadline);
}

void ib_alarm_add(struct ib_device *device, struct ib_alarm *alarm,
		  void (*call)(struct ib_alarm *alarm))
{
	alarm->call = call;
	alarm->next = device->alarms;
	device->alarms = alarm;
}

void ib_alarm_remove(struct ib_device *device, struct ib_alarm *alarm)
{
	struct ib_alarm **link = &device->alarms;

	while (*link != alarm)
		link = &(*link)->next;
	*link = alarm->next;
}

void ib_alarm_raise(struct ib_device *device, struct ib_alarm *alarm)
{
	(void)device;
	atomic_store(&alarm->raised, true);
}

bool ib_in_upcall(const struct ib_device *device)
{
	(void)device;
	return true;
}

int ib_cm_acquire(struct ib_device *device)
{
	(void)device;
	return -1;
}

bool ib_cm_progresses(void)
{
	return false;
}

int ib_cm_begin_progress(void)
{
	return -1;
}

void ib_cm_release(struct ib_device *device)
{
	(void)device;
}

void ib_cm_await(struct ib_device *device)
{
	(void)device;
}

void ib_cm_unawait(struct ib_device *device)
{
	(void)device;
}

void ib_cm_share(struct ib_device *device)
{
	(void)device;
}

bool ib_cm_read(struct ib_device *device)
{
	(void)device;
	return false;
}

bool ib_cm_poll(struct ib_device *device)
{
	(void)device;
	return fake.cm_poll && fake.cm_poll();
}

void ib_fork_child(void)
{
}

static struct ib_timer *fake_due(void)
{
	struct deadline *first = fake.devices[0].timers.first;

	return first && first->at <= clock_now() ? (struct ib_timer *)first : NULL;
}

/* Runs the timers that are due, as the event thread does. */
static inline void fake_run_timers(void)
{
	struct ib_alarm *alarm;
	struct ib_timer *timer;

	for (alarm = fake.devices[0].alarms; alarm; alarm = alarm->next)
		if (atomic_exchange(&alarm->raised, false))
			alarm->call(alarm);
	while ((timer = fake_due())) {
		ib_timer_cancel(&fake.devices[0], timer);
		timer->call(timer);
	}
}

#endif
