/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Results and masks, over their whole range and in both directions. */
#include "test/one/fake.h"

/* ---- Results ---- */

static DAT_RETURN answered(DAT_RETURN two)
{
	fake_aim(FAKE_SLOT(ep_reset), two);
	return dat_ep_reset(&fake_object);
}

/* The number in DAT 1.2 of a subtype of DAT 2.0, by the names in the two lists. */
static DAT_UINT32 expected_subtype(DAT_UINT32 two)
{
	if (two <= 0x1a)
		return two; /* 0x1a: a handle of a kind that DAT 1.2 lacks, so any handle, argument 1 */
	if (two <= 0x57)
		return two - 1;
	return two == 0x58 ? (DAT_UINT32)DAT_INVALID_STATE_SRQ_ERROR : two - 2;
}

static void test_subtypes(void)
{
	DAT_UINT32 subtype, wrong = 0;

	fake_open();
	for (subtype = 0; subtype <= 0xffff; subtype++)
		if (answered(0x80070000u | subtype) != (0x80070000u | expected_subtype(subtype)))
			wrong++;
	CU_ASSERT_EQUAL(wrong, 0);
	/* One subtype by its name. */
	CU_ASSERT_EQUAL(answered(0x800a0067u),
			ERROR(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND));
	fake_close();
}

static void test_types(void)
{
	static const DAT_UINT32 classes[] = { DAT_CLASS_SUCCESS, DAT_CLASS_WARNING,
					      DAT_CLASS_ERROR };
	DAT_UINT32 type, wrong = 0, one;
	size_t i;

	fake_open();
	for (i = 0; i < COUNT(classes); i++)
		for (type = 0; type < 0x4000; type++) {
			one = classes[i] | type << 16;
			if (type == 0x15 || type == 0x17) /* RESERVED_LMR, COMM_NOT_SUPPORTED */
				one = classes[i] | DAT_MODEL_NOT_SUPPORTED;
			else if (type == 0x16) /* PORT_IN_USE */
				one = classes[i] | DAT_CONN_QUAL_IN_USE;
			else if (type == 0x3fff)
				one = (DAT_UINT32)DAT_NOT_IMPLEMENTED;
			if (answered(classes[i] | type << 16) != one)
				wrong++;
		}
	CU_ASSERT_EQUAL(wrong, 0);
	/* The whole value, with any class and subtype that the provider chose. */
	CU_ASSERT_EQUAL(answered(0xbfff0012u), (DAT_RETURN)DAT_NOT_IMPLEMENTED);
	fake_close();
}

/* ---- Names of results ---- */

static void expect_names(DAT_RETURN value, const char *type, const char *subtype)
{
	const char *major = NULL, *minor = NULL;

	CU_ASSERT_EQUAL(dat_strerror(value, &major, &minor), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(major, type);
	CU_ASSERT_STRING_EQUAL(minor, subtype);
}

static void test_strerror(void)
{
	const char *major, *minor;
	DAT_UINT32 i;

#define NAMED(type, subtype) expect_names(ERROR(type, subtype), #type, #subtype)
	NAMED(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	NAMED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	NAMED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	NAMED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	NAMED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG10);
	NAMED(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	NAMED(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	NAMED(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	NAMED(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
	expect_names((DAT_RETURN)DAT_NOT_IMPLEMENTED, "DAT_NOT_IMPLEMENTED", "");
	expect_names(DAT_TIMEOUT_EXPIRED, "DAT_TIMEOUT_EXPIRED", "");
	/*
	 * Everything that DAT 1.2 defines has a name, and nothing else: not the additions of DAT
	 * 2.0.
	 */
	for (i = 0; i <= 0xffff; i++)
		CU_ASSERT_EQUAL(dat_strerror(0x80070000u | i, &major, &minor) == DAT_SUCCESS,
				i <= DAT_THREAD_SAFETY_NOT_FOUND);
	for (i = 0; i < 0x3fff; i++)
		CU_ASSERT_EQUAL(dat_strerror(i << 16, &major, &minor) == DAT_SUCCESS,
				i <= DAT_CONN_QUAL_UNAVAILABLE >> 16);
	CU_ASSERT_EQUAL(dat_strerror(0x80070066u, &major, &minor),
			ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	CU_ASSERT_EQUAL(dat_strerror(0, NULL, &minor),
			ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	CU_ASSERT_EQUAL(dat_strerror(0, &major, NULL), DAT_SUCCESS);
}

/* A result of DAT 2.0 that a call returned has its name in DAT 2.0. */
static void test_there_and_back(void)
{
	static const struct {
		DAT_RETURN two;
		const char *minor;
	} cases[] = {
		{ 0x80060025u, "DAT_INVALID_ARG1" },
		{ 0x8007002fu, "DAT_INVALID_STATE_EP_UNCONNECTED" },
		{ 0x80070058u, "DAT_INVALID_STATE_SRQ_ERROR" },
		{ 0x800b0059u, "DAT_PRIVILEGES_READ" },
		{ 0x80120063u, "DAT_INVALID_ADDRESS_MALFORMED" },
	};
	const char *major, *minor;
	size_t i;

	fake_open();
	for (i = 0; i < COUNT(cases); i++) {
		CU_ASSERT_EQUAL(dat_strerror(answered(cases[i].two), &major, &minor), DAT_SUCCESS);
		CU_ASSERT_STRING_EQUAL(minor, cases[i].minor);
	}
	fake_close();
}

/* ---- Numbers of arguments ---- */

static void test_lmr_create_args(void)
{
	/* The argument's number in DAT 2.0, from 1, and in DAT 1.2. */
	static const unsigned char place[] = { 0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9 };
	DAT_REGION_DESCRIPTION region = { .for_va = NULL };
	DAT_LMR_HANDLE lmr;
	unsigned i;

	fake_open();
	for (i = 1; i < COUNT(place); i++) {
		fake_aim(FAKE_SLOT(lmr_create), 0x80060024u + i);
		CU_ASSERT_EQUAL(dat_lmr_create(fake_ia, 0, region, 1, NULL, 0, &lmr, NULL, NULL,
					       NULL, NULL),
				ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + place[i] - 1));
	}
	/* The result names no argument. */
	fake_aim(FAKE_SLOT(lmr_create), 0x8005000fu);
	CU_ASSERT_EQUAL(dat_lmr_create(fake_ia, 0, region, 1, NULL, 0, &lmr, NULL, NULL, NULL,
				       NULL),
			ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ));
	/* DAT 2.0 refuses a null pointer to the handle. */
	fake_aim(FAKE_SLOT(lmr_create), 0x8006002cu);
	CU_ASSERT_EQUAL(dat_lmr_create(fake_ia, 0, region, 1, NULL, 0, NULL, NULL, NULL, NULL,
				       NULL),
			ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
	CU_ASSERT_EQUAL(fake.calls, 1);
	fake_close();
}

static void test_rmr_bind_args(void)
{
	static const unsigned char place[] = { 0, 1, 2, 2, 3, 2, 4, 5, 6, 7 };
	DAT_LMR_TRIPLET nothing = { .segment_length = 0 };
	DAT_RMR_COOKIE cookie = { .as_64 = 0 };
	DAT_RMR_CONTEXT context;
	unsigned i;

	fake_open();
	for (i = 1; i < COUNT(place); i++) {
		fake_aim(FAKE_SLOT(rmr_bind), 0x80060024u + i);
		CU_ASSERT_EQUAL(dat_rmr_bind(&fake_object, &nothing, 0, &fake_object, cookie, 0,
					     &context),
				ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + place[i] - 1));
	}
	fake_close();
}

/* ---- Masks ---- */

#define UNKNOWN64 UINT64_C(0x8000000000000000)

/* What the provider gets for each single bit; 0 for a bit that DAT 1.2 does not have. */
static DAT_UINT64 ia_bit(unsigned bit)
{
	return bit < 31 ? UINT64_C(1) << bit : bit < 35 ? UINT64_C(1) << (bit + 3) : 0;
}

static DAT_UINT64 provider_bit(unsigned bit)
{
	return bit < 24 ? UINT64_C(1) << bit : bit < 26 ? UINT64_C(1) << (bit + 5) : 0;
}

static DAT_UINT64 ep_bit(unsigned bit)
{
	if (bit < 2 || (bit >= 12 && bit < 31))
		return UINT64_C(1) << bit;
	return bit >= 2 && bit < 11 ? UINT64_C(1) << (bit + 1) : 0;
}

/*
 * The bit arrives as `two`, or the call fails for argument `arg`, although the provider would
 * accept it.
 */
static void check_bit(DAT_RETURN ret, DAT_UINT64 seen, DAT_UINT64 two, unsigned arg)
{
	if (two) {
		CU_ASSERT_EQUAL(ret, DAT_SUCCESS);
		CU_ASSERT_EQUAL(seen, two);
	} else {
		CU_ASSERT_EQUAL(ret, ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + arg - 1));
		CU_ASSERT_EQUAL(seen, UNKNOWN64);
	}
}

static void test_wide_masks(void)
{
	DAT_PROVIDER_ATTR provider_attr;
	DAT_EP_PARAM param;
	DAT_IA_ATTR attr;
	DAT_UINT64 one;
	DAT_RETURN ret;
	unsigned bit;

	fake_open();
	memset(&param, 0, sizeof(param));
	for (bit = 0; bit < 64; bit++) {
		one = UINT64_C(1) << bit;
		fake_aim(FAKE_SLOT(ia_query), DAT_SUCCESS);
		ret = dat_ia_query(fake_ia, NULL, one, &attr, 0, NULL);
		check_bit(ret, fake.seen[2], ia_bit(bit), 3);
		ret = dat_ia_query(fake_ia, NULL, 0, NULL, one, &provider_attr);
		check_bit(ret, fake.seen[4], provider_bit(bit), 5);
		fake_aim(FAKE_SLOT(ep_query), DAT_SUCCESS);
		ret = dat_ep_query(&fake_object, one, &param);
		check_bit(ret, fake.seen[1], ep_bit(bit), 2);
		fake_aim(FAKE_SLOT(ep_modify), DAT_SUCCESS);
		ret = dat_ep_modify(&fake_object, one, &param);
		check_bit(ret, fake.seen[1], ep_bit(bit), 2);
	}
	/* The provider's own error takes precedence. */
	fake_aim(FAKE_SLOT(ep_modify), 0x8005000cu);
	CU_ASSERT_EQUAL(dat_ep_modify(&fake_object, UNKNOWN64, &param),
			ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
	fake_close();
}

static void test_narrow_masks(void)
{
	const DAT_RETURN refused = ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;
	DAT_CNO_PARAM cno;
	DAT_RETURN ret;
	unsigned bit;

	fake_open();
	for (bit = 0; bit < 32; bit++) {
		unsigned one = 1u << bit;

		fake_aim(FAKE_SLOT(lmr_query), DAT_SUCCESS);
		ret = dat_lmr_query(&fake_object, (DAT_LMR_PARAM_MASK)one, &lmr);
		CU_ASSERT_EQUAL(ret, bit < 10 ? DAT_SUCCESS : refused);
		CU_ASSERT_EQUAL((uint32_t)fake.seen[1], bit < 6	   ? one
							: bit < 10 ? one << 1
								   : 0x40000000u);
		fake_aim(FAKE_SLOT(rmr_query), DAT_SUCCESS);
		ret = dat_rmr_query(&fake_object, (DAT_RMR_PARAM_MASK)one, &rmr);
		CU_ASSERT_EQUAL(ret, bit < 5 ? DAT_SUCCESS : refused);
		CU_ASSERT_EQUAL((uint32_t)fake.seen[1], bit < 5 ? one : 0x40000000u);
		fake_aim(FAKE_SLOT(cno_query), DAT_SUCCESS);
		ret = dat_cno_query(&fake_object, (DAT_CNO_PARAM_MASK)one, &cno);
		CU_ASSERT_EQUAL(ret, bit < 2 ? DAT_SUCCESS : refused);
		CU_ASSERT_EQUAL((uint32_t)fake.seen[1], bit < 2 ? TWO_CNO_FIELD_ALL : 0x40000000u);
	}
	fake_close();
}

static const struct unit_test tests[] = {
	{ "each subtype has the number of DAT 1.2", test_subtypes },
	{ "types and classes pass unchanged", test_types },
	{ "names of results", test_strerror },
	{ "a result and its name", test_there_and_back },
	{ "numbers of arguments of dat_lmr_create", test_lmr_create_args },
	{ "numbers of arguments of dat_rmr_bind", test_rmr_bind_args },
	{ "masks of 64 bits, bit by bit", test_wide_masks },
	{ "masks of 32 bits, bit by bit", test_narrow_masks },
};

UNIT_MAIN("one maps", tests)
