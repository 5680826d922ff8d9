/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The MTU of a connection's path: both sides take it from the CM, which sends it to the peer. A device that was opened
 * before its port came up has a smaller one in its attributes.
 */
#include <infiniband/verbs.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"
#include "util/settings.h"

static int (*query_port)(struct ibv_context *verbs, uint8_t port, struct ibv_port_attr *attr,
			 size_t size);
static enum ibv_mtu paths[2];
static atomic_uint connected;
static long setting_mtu;

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
long __real_setting_for(const char *device, enum setting which);
long __wrap_setting_for(const char *device, enum setting which);
int __real_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static int query_port_early(struct ibv_context *verbs, uint8_t port, struct ibv_port_attr *attr,
			    size_t size)
{
	int error = query_port(verbs, port, attr, size);

	attr->active_mtu = IBV_MTU_512;
	return error;
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *verbs = __real_ibv_open_device(device);

	if (verbs) {
		query_port = verbs_get_ctx(verbs)->query_port;
		verbs_get_ctx(verbs)->query_port = query_port_early;
	}
	return verbs;
}

long __wrap_setting_for(const char *device, enum setting which)
{
	return which == SET_IB_MTU ? setting_mtu : __real_setting_for(device, which);
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_PATH_MTU)
		paths[atomic_fetch_add(&connected, 1) & 1] = attr->path_mtu;
	return __real_ibv_modify_qp(qp, attr, mask);
}

static void paths_are(enum ibv_mtu mtu)
{
	announce();
	setup();
	connected = 0;
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(connected, 2);
	CU_ASSERT_EQUAL(paths[0], mtu);
	CU_ASSERT_EQUAL(paths[1], mtu);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_of_the_cm(void)
{
	paths_are(IBV_MTU_4096);
}

static void test_setting(void)
{
	setting_mtu = 1024;
	paths_are(IBV_MTU_1024);
	setting_mtu = 0;
}

static const struct unit_test tests[] = {
	{ "a path has the MTU that the CM names", test_of_the_cm },
	{ "a path has the MTU that is set, if that is less", test_setting },
};

UNIT_MAIN("path_mtu", tests)
