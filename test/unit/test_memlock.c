/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A registration that fails for RLIMIT_MEMLOCK, as on kernel devices: the log names the limit then,
 * and in no other case.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/unit/announce.h"
#include "test/unit/ep_util.h"
#include "test/unit/fake.h"

#undef ibv_reg_mr

static int refusal; /* errno of each registration; 0: it succeeds */

struct ibv_mr *__real_ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
struct ibv_mr *__real_ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length,
				       uint64_t iova, unsigned int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length,
				       uint64_t iova, unsigned int access);

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	errno = refusal;
	return refusal ? NULL : __real_ibv_reg_mr(pd, address, length, access);
}

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length,
				       uint64_t iova, unsigned int access)
{
	errno = refusal;
	return refusal ? NULL : __real_ibv_reg_mr_iova2(pd, address, length, iova, access);
}

/*
 * Sets whether the process may pin memory without limit, as root may; returns false if it has no
 * such right to give up.
 */
static bool ipc_lock(bool have)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	if (have)
		data[0].effective |= data[0].permitted & 1u << CAP_IPC_LOCK;
	return !syscall(SYS_capset, &header, data) && data[0].permitted & 1u << CAP_IPC_LOCK;
}

/* A process in its own user namespace has no rights over the kernel's resources. */
static bool rights_count(void)
{
	FILE *map = fopen("/proc/self/uid_map", "r");
	unsigned long count = 0;
	int read = map ? fscanf(map, "%*u %*u %lu", &count) : 0;

	if (map)
		fclose(map);
	return read == 1 && count == UINT32_MAX;
}

static struct env env;
static struct rlimit usual;

static void limit_to(rlim_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = usual.rlim_max };

	MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
}

/*
 * Returns whether the log names the limit after a registration of this length fails with this
 * errno.
 */
static bool log_names_the_limit(DAT_VLEN length, int error, DAT_RETURN expected)
{
	DAT_REGION_DESCRIPTION region = { .for_va = env.memory };
	struct fake_capture log = fake_capture(STDERR_FILENO);
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	const char *text;

	refusal = error;
	IS(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, length, env.pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL),
	   expected);
	refusal = 0;
	text = fake_captured(log);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "ibv_reg_mr"));
	return strstr(text, "RLIMIT_MEMLOCK");
}

static void test_message(void)
{
	DAT_RETURN short_of = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY_REGION);

	announce();
	env_open(&env);
	MUST(getrlimit(RLIMIT_MEMLOCK, &usual));
	ipc_lock(false);
	limit_to(32768);
	CU_ASSERT_TRUE(log_names_the_limit(BUFFER, ENOMEM, short_of));
	/* within the limit: another resource is exhausted */
	CU_ASSERT_FALSE(log_names_the_limit(4096, ENOMEM, short_of));
	/* another error */
	CU_ASSERT_FALSE(log_names_the_limit(BUFFER, ENOSPC, short_of));
	CU_ASSERT_FALSE(log_names_the_limit(BUFFER, EFAULT, E(INVALID_PARAMETER, INVALID_ARG3)));
	/* the limit does not apply to this process */
	if (ipc_lock(true) && rights_count())
		CU_ASSERT_FALSE(log_names_the_limit(BUFFER, ENOMEM, short_of));
	ipc_lock(false);
	if (usual.rlim_max == RLIM_INFINITY) {
		limit_to(RLIM_INFINITY);
		CU_ASSERT_FALSE(log_names_the_limit(BUFFER, ENOMEM, short_of));
	}
	MUST(setrlimit(RLIMIT_MEMLOCK, &usual));
	ipc_lock(true);
	env_close(&env);
}

static const struct unit_test tests[] = {
	{ "the log names RLIMIT_MEMLOCK when it is the cause", test_message },
};

UNIT_MAIN("memlock", tests)
