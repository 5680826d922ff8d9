/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The registry when allocations fail. Linked with --wrap=calloc; without it nothing is tested. */
#include "dat/common/handle.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define FAKE(name) name " u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"
#define NO_MEMORY  FAKE_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY)

void *__real_calloc(size_t count, size_t size) __attribute__((weak));
void *__wrap_calloc(size_t count, size_t size);

static unsigned until_failure; /* calls until one fails; 0: none fails */

void *__wrap_calloc(size_t count, size_t size)
{
	if (until_failure && !--until_failure)
		return NULL;
	return __real_calloc(count, size);
}

static DAT_COUNT provider_count(void)
{
	DAT_COUNT count = -1;

	dat_registry_list_providers(0, &count, NULL);
	return count;
}

/* A record needs three allocations: itself, its library unless it is known, and its key. */
static unsigned nth;

static void child_reading(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	DAT_IA_HANDLE ia;
	const char *said;

	until_failure = nth;
	CU_ASSERT_TRUE(provider_count() >= 1);
	said = fake_captured(capture);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "no memory for its entry\n"));
	CU_ASSERT_EQUAL(until_failure, 0);

	/* the other record works, and the failed one is not found */
	CU_ASSERT_EQUAL(fake_open(nth <= 3 ? "b" : "a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open(nth <= 3 ? "a" : "b", &ia),
			FAKE_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
}

static void reading(void)
{
	for (nth = 1; nth <= 5; nth++)
		fake_in_child(FAKE("a") FAKE("b"), child_reading);
}

static void child_adding(void)
{
	static const DAT_PROVIDER provider;
	const DAT_PROVIDER_INFO info = { .ia_name = "direct", .dapl_version_major = 2 };

	CU_ASSERT_EQUAL(provider_count(), 0);
	until_failure = 1;
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), NO_MEMORY);
	CU_ASSERT_EQUAL(provider_count(), 0);
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
}

static void adding(void)
{
	fake_in_child("", child_adding);
}

static void child_growing(void)
{
	DAT_IA_HANDLE ias[64];
	int i;

	for (i = 0; i < 63; i++)
		CU_ASSERT_EQUAL(fake_open("a", &ias[i]), DAT_SUCCESS);
	until_failure = 1;
	CU_ASSERT_EQUAL(fake_open("a", &ias[63]), NO_MEMORY);
	CU_ASSERT_PTR_NULL(ias[63]);
	CU_ASSERT_EQUAL(fake.opens, 64);
	CU_ASSERT_EQUAL(fake.closes, 1);
	CU_ASSERT_EQUAL(fake_open("a", &ias[63]), DAT_SUCCESS);
	for (i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(dat_ia_close(ias[i], DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.unloads, 1);
}

static void growing(void)
{
	fake_in_child(FAKE("a"), child_growing);
}

static void child_extension(void)
{
	DAT_HANDLE out = DAT_HANDLE_NULL;

	CU_ASSERT_EQUAL(provider_count(), 1);
	until_failure = 1;
	CU_ASSERT_EQUAL(dat_extension_op(DAT_HANDLE_NULL, FAKE_OPEN_OP, "a", &out), NO_MEMORY);
	CU_ASSERT_EQUAL(fake.inits, 0);
	CU_ASSERT_EQUAL(dat_extension_op(DAT_HANDLE_NULL, FAKE_OPEN_OP, "a", &out), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_extension_op(out, FAKE_CLOSE_OP), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.unloads, 1);
}

static void extension(void)
{
	fake_in_child(FAKE("a"), child_extension);
}

static const struct unit_test tests[] = {
	{ "a record without memory does not affect the others", reading },
	{ "without memory add_provider adds nothing", adding },
	{ "without memory for the handle the IA is closed again", growing },
	{ "without memory nothing is loaded", extension },
};

int main(int argc, char **argv)
{
	if (!__real_calloc) {
		puts("registry_memory: not linked with --wrap=calloc");
		return 77;
	}
	return unit_main("registry_memory", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
