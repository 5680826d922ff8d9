/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * dat_extension_op: which provider gets an operation; operations that load and unload a provider.
 */
#include "dat/common/reg.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define FAKE_CONF	"fake u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"
#define BAD_HANDLE	FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)
#define NOT_IMPLEMENTED FAKE_ERROR(DAT_NOT_IMPLEMENTED, 0)
#define NOT_FOUND	FAKE_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)

static DAT_RETURN ask_sum(DAT_HANDLE handle, int *sum)
{
	return dat_extension_op(handle, FAKE_ADD_OP, 40, 2L, sum);
}

static DAT_RETURN ext_open(const char *name, DAT_HANDLE *out)
{
	return dat_extension_op(DAT_HANDLE_NULL, FAKE_OPEN_OP, name, out);
}

static void child_bad_handles(void)
{
	DAT_HANDLE odd = (DAT_HANDLE)((uintptr_t)&fake | 2), out = &fake;
	int sum = 0;

	CU_ASSERT_EQUAL(ask_sum(DAT_HANDLE_NULL, &sum), BAD_HANDLE);
	CU_ASSERT_EQUAL(ask_sum((DAT_HANDLE)1, &sum), BAD_HANDLE);
	CU_ASSERT_EQUAL(ask_sum((DAT_HANDLE)4095, &sum), BAD_HANDLE);
	CU_ASSERT_EQUAL(ask_sum(odd, &sum), BAD_HANDLE);
	CU_ASSERT_EQUAL(dat_extension_op((DAT_HANDLE)1, FAKE_OPEN_OP, "fake", &out), BAD_HANDLE);
	CU_ASSERT_EQUAL(dat_extension_op(DAT_HANDLE_NULL, FAKE_CLOSE_OP), BAD_HANDLE);
	CU_ASSERT_EQUAL(dat_extension_op((DAT_HANDLE)1, FAKE_CLOSE_OP), BAD_HANDLE);
	CU_ASSERT_EQUAL(sum, 0);
	CU_ASSERT_EQUAL(fake.inits, 0);
}

static void bad_handles(void)
{
	fake_in_child(FAKE_CONF, child_bad_handles);
}

static void child_dispatch(void)
{
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	int sum = 0;

	fake.extension = DAT_EXTENSION_IB;
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_pz_create(ia, &pz), DAT_SUCCESS);
	CU_ASSERT_EQUAL(ask_sum(ia, &sum), DAT_SUCCESS);
	CU_ASSERT_EQUAL(sum, 42);
	sum = 0;
	CU_ASSERT_EQUAL(ask_sum(pz, &sum), DAT_SUCCESS);
	CU_ASSERT_EQUAL(ask_sum(pz, &sum), DAT_SUCCESS);
	CU_ASSERT_EQUAL(sum, 42);
	CU_ASSERT_EQUAL(dat_extension_op(pz, 0x4000), NOT_IMPLEMENTED);
	CU_ASSERT_EQUAL(dat_extension_op(pz, 0x3000), NOT_IMPLEMENTED);
	CU_ASSERT_EQUAL(dat_extension_op(pz, 0x0fff), NOT_IMPLEMENTED);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);

	/* the provider has no open IA with extensions any more */
	fake.extension = DAT_EXTENSION_NONE;
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(ask_sum(ia, &sum), NOT_IMPLEMENTED);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	fake.extension = DAT_EXTENSION_IB;
	fake.query_result = FAKE_ERROR(DAT_INTERNAL_ERROR, 0);
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(ask_sum(ia, &sum), NOT_IMPLEMENTED);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	free(pz);
}

static void dispatch(void)
{
	fake_in_child(FAKE_CONF, child_dispatch);
}

/*
 * As in a signal handler that interrupts a registry call: acquiring the lock again would deadlock.
 */
static DAT_RETURN ask_sum_locked(DAT_HANDLE handle)
{
	DAT_RETURN ret;
	int sum = 0;

	reg_lock();
	ret = ask_sum(handle, &sum);
	reg_unlock();
	CU_ASSERT_EQUAL(sum, 42);
	return ret;
}

static void child_no_lock(void)
{
	DAT_IA_HANDLE ia, other;
	DAT_PZ_HANDLE pz;

	fake.extension = DAT_EXTENSION_IB;
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_pz_create(ia, &pz), DAT_SUCCESS);
	CU_ASSERT_EQUAL(ask_sum_locked(pz), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("fake", &other), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(ask_sum_locked(pz), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_pz_free(pz), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

static void no_lock(void)
{
	fake_in_child(FAKE_CONF, child_no_lock);
}

static void child_open_checks(void)
{
	char name[DAT_NAME_MAX_LENGTH + 1];
	DAT_HANDLE out = &fake;

	memset(name, 'n', sizeof(name));
	name[DAT_NAME_MAX_LENGTH] = '\0';
	CU_ASSERT_EQUAL(ext_open(NULL, &out), FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	CU_ASSERT_EQUAL(ext_open(name, &out), FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	CU_ASSERT_EQUAL(ext_open("other", &out), NOT_FOUND);
	CU_ASSERT_EQUAL(dat_extension_op(DAT_HANDLE_NULL, 0x1fff, "fake", &out), NOT_IMPLEMENTED);
	fake.open_result = FAKE_ERROR(DAT_INVALID_ADDRESS, 0);
	CU_ASSERT_EQUAL(ext_open("fake", &out), fake.open_result);
	CU_ASSERT_PTR_EQUAL(out, &fake);
	CU_ASSERT_EQUAL(fake.inits, 2);
	CU_ASSERT_EQUAL(fake.finis, 2);
	CU_ASSERT_EQUAL(fake.unloads, 2);
}

static void open_checks(void)
{
	fake_in_child(FAKE_CONF, child_open_checks);
}

static void child_open_close(void)
{
	DAT_HANDLE out = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(ext_open("fake", &out), DAT_SUCCESS);
	CU_ASSERT_TRUE((uintptr_t)out >= 4096);
	CU_ASSERT_EQUAL(fake.inits, 1);

	/* the extension keeps the provider loaded while an IA is opened and closed */
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_extension_op(ia, FAKE_CLOSE_OP), BAD_HANDLE);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 0);

	fake.close_result = FAKE_ERROR(DAT_INVALID_STATE, 0);
	CU_ASSERT_EQUAL(dat_extension_op(out, FAKE_CLOSE_OP), fake.close_result);
	CU_ASSERT_EQUAL(fake.finis, 0);
	fake.close_result = DAT_SUCCESS;
	CU_ASSERT_EQUAL(dat_extension_op(out, FAKE_CLOSE_OP), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 1);
	CU_ASSERT_EQUAL(fake.unloads, 1);
	CU_ASSERT_EQUAL(dat_extension_op(&fake, FAKE_CLOSE_OP), BAD_HANDLE);
}

static void open_close(void)
{
	fake_in_child(FAKE_CONF, child_open_close);
}

static const struct unit_test tests[] = {
	{ "an operation on an object needs no lock of the registry", no_lock },
	{ "bad handles: INVALID_HANDLE1", bad_handles },
	{ "only providers whose IA has extensions get operations", dispatch },
	{ "open operations check their arguments; a failure leaves nothing loaded", open_checks },
	{ "close operations accept only handles of an open operation", open_close },
};

UNIT_MAIN("registry_ext", tests)
