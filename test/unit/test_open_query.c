/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Attributes of an IA by its name. */
#include <string.h>
#include "test/unit/ep_util.h"
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>

static char name[] = "ofa-v2-soft";

static void test_checks(void)
{
	DAT_HANDLE handle = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;

	IS(dat_ib_open_query(NULL, &handle, 0, &attr, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_ib_open_query("no-such-ia", &handle, 0, &attr, 0, NULL)),
			DAT_PROVIDER_NOT_FOUND);
	IS(dat_ib_open_query(name, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_open_query(name, &handle, DAT_IA_FIELD_ALL, NULL, DAT_PROVIDER_FIELD_ALL, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	CU_ASSERT_PTR_EQUAL(handle, DAT_HANDLE_NULL);
	IS(dat_ib_close_query(&attr), E(INVALID_HANDLE, INVALID_HANDLE1));
}

static void test_attributes(void)
{
	DAT_HANDLE handle = DAT_HANDLE_NULL;
	DAT_PROVIDER_ATTR provider;
	bool found = false;
	DAT_IA_ATTR attr;
	DAT_COUNT i;

	MUST(dat_ib_open_query(name, &handle, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
			       &provider));
	CU_ASSERT_STRING_EQUAL(attr.adapter_name, "soft0");
	CU_ASSERT_EQUAL(attr.extension_version, DAT_IB_EXTENSION_VERSION);
	CU_ASSERT_PTR_NOT_NULL(attr.ia_address_ptr);
	for (i = 0; i < provider.num_provider_specific_attr; i++)
		found |= !strcmp(provider.provider_specific_attr[i].name, "DAT_IB_DEVICE_NAME") &&
			 !strcmp(provider.provider_specific_attr[i].value, "soft0");
	CU_ASSERT_TRUE(found);
	MUST(dat_ib_close_query(handle));
	IS(dat_ib_close_query(handle), E(INVALID_HANDLE, INVALID_HANDLE1));
	MUST(dat_ib_open_query(name, &handle, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	MUST(dat_ib_close_query(handle));
}

static void test_related(void)
{
	DAT_HA_RELATIONSHIP related = DAT_HA_FALSE;
	struct env env;

	env_open(&env);
	MUST(dat_registry_providers_related(name, name, &related));
	CU_ASSERT_EQUAL(related, DAT_HA_TRUE);
	env_close(&env);
	MUST(dat_registry_providers_related(name, name, &related));
	CU_ASSERT_EQUAL(related, DAT_HA_UNKNOWN); /* not known without an open IA */
}

static const struct unit_test tests[] = {
	{ "each check", test_checks },
	{ "a query opens, returns the attributes and closes again", test_attributes },
	{ "two names of one device are related; without an open IA the answer is unknown",
	  test_related },
};

UNIT_MAIN("open_query", tests)
