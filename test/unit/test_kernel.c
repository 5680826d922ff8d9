/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The kernel's counters of a device, read from files in the layout of /sys; /sys/class is a folder
 * of this test.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "dapl/openib/openib.h"
#include "test/unit/ep_util.h"

#define CLASS "/sys/class/"

#pragma GCC visibility push(default)
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
#pragma GCC visibility pop

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char ours[PATH_MAX];

	if (strncmp(path, CLASS, strlen(CLASS)))
		return __real_fopen(path, mode);
	snprintf(ours, sizeof(ours), "%s/%s", unit_tmpdir(), path + strlen(CLASS));
	return __real_fopen(ours, mode);
}

/* Creates missing folders, too. */
static void file_write(const char *name, const char *text)
{
	char path[PATH_MAX], *slash;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", unit_tmpdir(), name);
	for (slash = path + strlen(unit_tmpdir()) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

static struct ibv_device verbs_device;
static struct ibv_context context = { .device = &verbs_device };
static struct ib_device device = { .verbs = &context,
				   .attr = { .device_name = "mlx9_3", .port = 2 } };
static uint64_t values[IB_KERNEL_MOST];

static void read_group(enum ib_kernel_group group, unsigned count)
{
	memset(values, 0xa5, sizeof(values));
	CU_ASSERT_EQUAL(ib_kernel_counters(&device, group, values), count);
}

static void expect_only(unsigned at, uint64_t value, unsigned also, uint64_t too)
{
	unsigned i;

	for (i = 0; i < IB_KERNEL_MOST; i++)
		CU_ASSERT_EQUAL(values[i], i == at ? value : i == also ? too : 0);
}

static void path_set(const char *folder)
{
	snprintf(verbs_device.ibdev_path, sizeof(verbs_device.ibdev_path), "%s/%s", unit_tmpdir(),
		 folder);
}

/* A file that is missing or holds no number counts as 0. */
static void test_link(void)
{
	path_set("device");
	read_group(IB_KERNEL_LINK, 9);
	expect_only(0, 0, 0, 0);
	file_write("device/ports/2/counters/port_rcv_errors", "17\n");
	file_write("device/ports/2/counters/port_xmit_discards", "none\n");
	file_write("device/ports/2/counters/port_xmit_wait", "18446744073709551615\n");
	file_write("device/ports/1/counters/port_rcv_constraint_errors", "4\n");
	read_group(IB_KERNEL_LINK, 9);
	expect_only(0, 17, 8, UINT64_MAX);
}

static void test_diagnostics(void)
{
	path_set("device");
	file_write("device/diag_counters/rq_num_oos", "3\n");
	file_write("device/diag_counters/sq_num_tree", "6\n");
	read_group(IB_KERNEL_DIAGNOSTICS, 9);
	expect_only(1, 3, 8, 6);
}

/* Newer and older kernels keep the files in different folders; the newer folder is read first. */
static void test_cm(void)
{
	path_set("device");
	read_group(IB_KERNEL_CM, IB_KERNEL_MOST);
	expect_only(0, 0, 0, 0);
	file_write("infiniband_cm/mlx9_3/2/cm_tx_msgs/req", "100\n");
	file_write("infiniband/mlx9_3/ports/2/cm_tx_msgs/req", "5\n");
	file_write("infiniband_cm/mlx9_3/2/cm_rx_duplicates/apr", "3\n");
	read_group(IB_KERNEL_CM, IB_KERNEL_MOST);
	expect_only(IB_CM_SENT * IB_KERNEL_CM_MESSAGES, 5,
		    IB_CM_DUPLICATES * IB_KERNEL_CM_MESSAGES + 8, 3);
}

/* A device without files. */
static void test_no_path(void)
{
	verbs_device.ibdev_path[0] = 0;
	read_group(IB_KERNEL_LINK, 9);
	expect_only(0, 0, 0, 0);
	read_group(IB_KERNEL_DIAGNOSTICS, 9);
	expect_only(0, 0, 0, 0);
	read_group(IB_KERNEL_CM, IB_KERNEL_MOST);
	expect_only(0, 0, 0, 0);
}

static const struct unit_test tests[] = {
	{ "counters of a port are read", test_link },
	{ "diagnostic counters are read from either folder", test_diagnostics },
	{ "messages of the connection manager are read", test_cm },
	{ "a device without files has no counters", test_no_path },
};

UNIT_MAIN("kernel", tests)
