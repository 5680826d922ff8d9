/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The device's attributes as libibverbs' calls read them, and files that these calls read besides. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "softverbs/dropin/dropin.h"
#include "softverbs/object/device.h"
#include "test/unit/unit.h"

enum { SIZE = 64 };

static struct ibv_context context;
static char text[SIZE];

static int read_in(const char *folder, const char *name, size_t size)
{
	char dir[512];

	snprintf(dir, sizeof(dir), "%s%s", context.device->ibdev_path, folder);
	memset(text, '#', sizeof(text));
	errno = 0;
	return ibv_read_sysfs_file(dir, name, text, size);
}

static void expect(const char *name, const char *value)
{
	CU_ASSERT_EQUAL(read_in("", name, SIZE), (int)strlen(value));
	CU_ASSERT_STRING_EQUAL(text, value);
}

static void expect_error(const char *name, int error)
{
	CU_ASSERT_EQUAL(read_in("", name, SIZE), -1);
	CU_ASSERT_EQUAL(errno, error);
	CU_ASSERT_EQUAL(text[0], '#');
}

static void test_device(void)
{
	struct ibv_device_attr attr;
	const uint8_t *guid = (const uint8_t *)&attr.node_guid;
	char groups[SIZE];

	CU_ASSERT_EQUAL(ibv_query_device(&context, &attr), 0);
	snprintf(groups, sizeof(groups), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1],
		 guid[2], guid[3], guid[4], guid[5], guid[6], guid[7]);
	CU_ASSERT_EQUAL(attr.sys_image_guid, attr.node_guid);
	expect("node_guid", groups);
	expect("sys_image_guid", groups);
	expect("fw_ver", attr.fw_ver);
	CU_ASSERT_EQUAL(attr.hw_ver, 0);
	expect("hw_rev", "0");
	CU_ASSERT_EQUAL(context.device->node_type, IBV_NODE_CA);
	expect("node_type", "1: CA");
	expect("hca_type", "softverbs");
	expect("board_id", "softverbs");
}

static void test_port(void)
{
	struct ibv_port_attr attr;
	char number[SIZE];

	CU_ASSERT_EQUAL(sv_device_query_port(&context, 1, &attr, sizeof(attr)), 0);
	CU_ASSERT_EQUAL(attr.state, IBV_PORT_ACTIVE);
	expect("ports/1/state", "4: ACTIVE");
	CU_ASSERT_EQUAL(attr.phys_state, 5);
	expect("ports/1/phys_state", "5: LinkUp");
	CU_ASSERT_EQUAL(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	expect("ports/1/link_layer", "Ethernet");
	CU_ASSERT_EQUAL(attr.active_width, 2);	/* 4X */
	CU_ASSERT_EQUAL(attr.active_speed, 32); /* EDR, 25 Gb/s */
	expect("ports/1/rate", "100 Gb/sec (4X EDR)");
	CU_ASSERT_EQUAL(attr.lid, 0);
	expect("ports/1/lid", "0x0");
	expect("ports/1/sm_lid", "0x0");
	expect("ports/1/sm_sl", "0");
	expect("ports/1/lid_mask_count", "0");
	snprintf(number, sizeof(number), "0x%08x", attr.port_cap_flags);
	expect("ports/1/cap_mask", number);
}

static void test_infiniband(void)
{
	setenv("SOFTVERBS_LINK", "infiniband", 1);
	expect("ports/1/link_layer", "InfiniBand");
	expect("ports/1/lid", "0x1");
	expect("ports/1/sm_lid", "0x1");
	unsetenv("SOFTVERBS_LINK");
}

static void gid_expect(int index, const union ibv_gid *gid)
{
	const uint8_t *raw = gid->raw;
	char name[SIZE], groups[SIZE];

	snprintf(name, sizeof(name), "ports/1/gids/%d", index);
	snprintf(groups, sizeof(groups),
		 "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", raw[0],
		 raw[1], raw[2], raw[3], raw[4], raw[5], raw[6], raw[7], raw[8], raw[9], raw[10],
		 raw[11], raw[12], raw[13], raw[14], raw[15]);
	expect(name, groups);
}

static void test_gids(void)
{
	char types[SIZE], ndevs[SIZE], interface[IF_NAMESIZE];
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	int error;

	expect("ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:7f00:0001");
	expect("ports/1/gid_attrs/ndevs/0", "lo");
	for (int i = 0; i < SV_GID_TABLE; i++) {
		CU_ASSERT_EQUAL(ibv_query_gid(&context, 1, i, &gid), 0);
		gid_expect(i, &gid);
		snprintf(types, sizeof(types), "ports/1/gid_attrs/types/%d", i);
		snprintf(ndevs, sizeof(ndevs), "ports/1/gid_attrs/ndevs/%d", i);
		error = _ibv_query_gid_ex(&context, 1, (uint32_t)i, &entry, 0, sizeof(entry));
		if (error) {
			CU_ASSERT_EQUAL(error, ENODATA);
			expect_error(types, EINVAL);
			expect_error(ndevs, EINVAL);
			continue;
		}
		CU_ASSERT_EQUAL(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
		expect(types, "RoCE v2");
		CU_ASSERT_PTR_NOT_NULL(if_indextoname(entry.ndev_ifindex, interface));
		expect(ndevs, interface);
	}
}

static void test_pkeys(void)
{
	__be16 pkey;

	CU_ASSERT_EQUAL(ibv_query_pkey(&context, 1, 0, &pkey), 0);
	CU_ASSERT_EQUAL(pkey, 0xffff);
	expect("ports/1/pkeys/0", "0xffff");
	expect_error("ports/1/pkeys/1", ENOENT);
}

static void test_absent(void)
{
	static const char *const absent[] = {
		"",
		"speed",
		"fw_ver0",
		"ports",
		"ports/1",
		"ports/1/",
		"ports/1/fw_ver",
		"ports/0/state",
		"ports/2/state",
		"ports/01/state",
		"ports/257/state",
		"ports/1/gids",
		"ports/1/gids/",
		"ports/1/gids/16",
		"ports/1/gids/00",
		"ports/1/gids/-1",
		"ports/1/gids/0x0",
		"ports/1/gids/4294967296",
		"ports/1/gid_attrs/types/16",
		"ports/1/gid_attrs/ndevs/16",
		"device/numa_node",
	};

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		expect_error(absent[i], ENOENT);
	CU_ASSERT_EQUAL(read_in("0", "fw_ver", SIZE), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_EQUAL(ibv_read_ibdev_sysfs_file(text, SIZE, NULL, "fw_ver"), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
}

/* The folder and the name may meet anywhere, and slashes be doubled. */
static void test_paths(void)
{
	CU_ASSERT_EQUAL(read_in("/", "node_type", SIZE), 5);
	CU_ASSERT_EQUAL(read_in("/ports/1", "link_layer", SIZE), 8);
	CU_ASSERT_EQUAL(read_in("/ports//1/", "gid_attrs//types/0", SIZE), 7);
	CU_ASSERT_STRING_EQUAL(text, "RoCE v2");
	errno = 0;
	CU_ASSERT_EQUAL(ibv_read_sysfs_file(ibv_get_sysfs_path(),
					    "class/infiniband/soft0/ports/1/pkeys/0", text, SIZE),
			6);
}

/* "1: CA" of 5 characters, and the null byte. */
static void test_bounds(void)
{
	CU_ASSERT_EQUAL(read_in("", "node_type", 0), 0);
	CU_ASSERT_EQUAL(text[0], '#');
	for (size_t size = 1; size < 6; size++) {
		CU_ASSERT_EQUAL(read_in("", "node_type", size), -1);
		CU_ASSERT_EQUAL(errno, 0);
		CU_ASSERT_EQUAL(text[size], '#');
	}
	CU_ASSERT_EQUAL(read_in("", "node_type", 6), 5);
	CU_ASSERT_STRING_EQUAL(text, "1: CA");
	CU_ASSERT_EQUAL(text[6], '#');
}

static void file_write(const char *name, const char *content)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", unit_tmpdir(), name);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(content, file);
	fclose(file);
}

static int file_read(const char *name, size_t size)
{
	memset(text, '#', sizeof(text));
	errno = 0;
	return ibv_read_sysfs_file(unit_tmpdir(), name, text, size);
}

/* What rdma-core 44 returned for the same files. */
static void test_files(void)
{
	file_write("line", "abcd\n");
	file_write("no line", "abcd");
	file_write("empty", "");
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "no line" : "line";

		CU_ASSERT_EQUAL(file_read(name, 0), 0);
		CU_ASSERT_EQUAL(file_read(name, 4), -1);
		CU_ASSERT_EQUAL(errno, 0);
		CU_ASSERT_EQUAL(text[4], '#');
		CU_ASSERT_EQUAL(file_read(name, 5), 4);
		CU_ASSERT_STRING_EQUAL(text, "abcd");
		CU_ASSERT_EQUAL(file_read(name, SIZE), 4);
		CU_ASSERT_STRING_EQUAL(text, "abcd");
	}
	CU_ASSERT_EQUAL(file_read("empty", SIZE), 0);
	CU_ASSERT_EQUAL(text[0], '#');
	CU_ASSERT_EQUAL(file_read("absent", SIZE), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_EQUAL(file_read(".", SIZE), -1);
	CU_ASSERT_EQUAL(errno, EISDIR);
}

static const struct unit_test tests[] = {
	{ "attributes of the device are those of ibv_query_device", test_device },
	{ "attributes of the port are those of ibv_query_port", test_port },
	{ "a port that looks like InfiniBand", test_infiniband },
	{ "GIDs, their types and interfaces", test_gids },
	{ "P_Keys", test_pkeys },
	{ "what is not there", test_absent },
	{ "any spelling of a path", test_paths },
	{ "the bounds of the buffer", test_bounds },
	{ "files", test_files },
};

int main(int argc, char **argv)
{
	unsetenv("SYSFS_PATH");
	unsetenv("SOFTVERBS_LINK");
	context.device = sv_device_soft();
	return unit_main("softverbs_sysfs", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
