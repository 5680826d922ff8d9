/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Limits that keep a device from being opened are reported as a lack of resources, not as a wrong address. */
#include <errno.h>
#include <sys/resource.h>
#include "dapl/openib/openib.h"
#include "test/unit/ep_util.h"

static DAT_RETURN open_status(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN status = dat_ia_open((char[]){ "ofa-v2-soft" }, 8, &async, &ia);

	if (status == DAT_SUCCESS)
		OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	return status;
}

static void test_size_of_files(void)
{
	struct rlimit limit, low;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
	low = (struct rlimit){ 1 << 20, limit.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &low), 0);
	IS(open_status(), E(INSUFFICIENT_RESOURCES, RESOURCE_DEVICE));
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
	OK(open_status());
}

static void test_each_errno(void)
{
	static const int shortages[] = { ENOMEM, EAGAIN,  EMFILE, ENFILE,
					 ENOSPC, ENOBUFS, EFBIG,  EUSERS };

	for (unsigned i = 0; i < COUNT(shortages); i++) {
		CU_ASSERT_TRUE(error_is_shortage(shortages[i]));
		CU_ASSERT_EQUAL(DAT_GET_TYPE(ib_error(shortages[i], "test", "device")),
				DAT_INSUFFICIENT_RESOURCES);
	}
	CU_ASSERT_FALSE(error_is_shortage(ENODEV));
	CU_ASSERT_FALSE(error_is_shortage(EADDRNOTAVAIL));
}

static const struct unit_test tests[] = {
	{ "a limit of the size of files is a lack of resources", test_size_of_files },
	{ "each errno of a shortage is one", test_each_errno },
};

UNIT_MAIN("open_limits", tests)
