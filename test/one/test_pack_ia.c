/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Attributes of IAs and providers: each member and mask arrives at its place, and members that DAT
 * 1.2 does not have are never written.
 */
#include "test/one/pack.h"

static void check_ia_attr(const DAT_IA_ATTR *one, const struct two_ia_attr *two)
{
	CU_ASSERT_EQUAL(memcmp(one->adapter_name, two->adapter_name, DAT_NAME_MAX_LENGTH), 0);
	CU_ASSERT_EQUAL(memcmp(one->vendor_name, two->vendor_name, DAT_NAME_MAX_LENGTH), 0);
	M(*one, *two, hardware_version_major);
	M(*one, *two, hardware_version_minor);
	M(*one, *two, firmware_version_major);
	M(*one, *two, firmware_version_minor);
	M(*one, *two, ia_address_ptr);
	M(*one, *two, max_eps);
	M(*one, *two, max_dto_per_ep);
	M(*one, *two, max_rdma_read_per_ep_in);
	M(*one, *two, max_rdma_read_per_ep_out);
	M(*one, *two, max_evds);
	M(*one, *two, max_evd_qlen);
	M(*one, *two, max_iov_segments_per_dto);
	M(*one, *two, max_lmrs);
	M(*one, *two, max_lmr_block_size);
	M(*one, *two, max_lmr_virtual_address);
	M(*one, *two, max_pzs);
	M(*one, *two, max_message_size);
	M(*one, *two, max_rdma_size);
	M(*one, *two, max_rmrs);
	M(*one, *two, max_rmr_target_address);
	M(*one, *two, max_srqs);
	M(*one, *two, max_ep_per_srq);
	M(*one, *two, max_recv_per_srq);
	M(*one, *two, max_iov_segments_per_rdma_read);
	M(*one, *two, max_iov_segments_per_rdma_write);
	M(*one, *two, max_rdma_read_in);
	M(*one, *two, max_rdma_read_out);
	M(*one, *two, max_rdma_read_per_ep_in_guaranteed);
	M(*one, *two, max_rdma_read_per_ep_out_guaranteed);
	M(*one, *two, num_transport_attr);
	M(*one, *two, transport_attr);
	M(*one, *two, num_vendor_attr);
	M(*one, *two, vendor_attr);
}

static void test_ia_attr(void)
{
	GUARDED(DAT_IA_ATTR) out;
	struct two_ia_attr two;
	DAT_EVD_HANDLE evd = P(1);

	fake_open();
	fill(&two, sizeof(two));
	two.max_iov_segments_per_dto = 29;
	two.max_iov_segments_per_rdma_read = 28;
	two.max_iov_segments_per_rdma_write = 27;
	memset(&out, 0xee, sizeof(out));
	fake_aim(FAKE_SLOT(ia_query), DAT_SUCCESS);
	answer_with(3, &two, sizeof(two));
	CU_ASSERT_EQUAL(dat_ia_query(fake_ia, &evd, DAT_IA_FIELD_ALL, &out.is, 0, NULL),
			DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[0], (uintptr_t)&fake_object);
	CU_ASSERT_EQUAL(fake.seen[2], UINT64_C(0x3c7fffffff));
	CU_ASSERT_EQUAL(fake.seen[4], 0);
	CU_ASSERT_EQUAL(fake.seen[5], 0);
	check_ia_attr(&out.is, &two);
	GUARDS_HOLD(out);

	/* The library's own limit of segments applies where the device has a higher one. */
	two.max_iov_segments_per_dto = 65;
	CU_ASSERT_EQUAL(dat_ia_query(fake_ia, NULL, DAT_IA_FIELD_ALL, &out.is, 0, NULL),
			DAT_SUCCESS);
	CU_ASSERT_EQUAL(out.is.max_iov_segments_per_dto, 64);
	CU_ASSERT_EQUAL(fake.seen[1], 0);
	fake_close();
}

static void check_provider_attr(const DAT_PROVIDER_ATTR *one, const struct two_provider_attr *two)
{
	CU_ASSERT_EQUAL(memcmp(one->provider_name, two->provider_name, DAT_NAME_MAX_LENGTH), 0);
	M(*one, *two, provider_version_major);
	M(*one, *two, provider_version_minor);
	CU_ASSERT_EQUAL(one->dapl_version_major, 1);
	CU_ASSERT_EQUAL(one->dapl_version_minor, 2);
	M(*one, *two, lmr_mem_types_supported);
	M(*one, *two, iov_ownership_on_return);
	M(*one, *two, dat_qos_supported);
	CU_ASSERT_EQUAL(one->completion_flags_supported, 0x1f);
	M(*one, *two, is_thread_safe);
	M(*one, *two, max_private_data_size);
	M(*one, *two, supports_multipath);
	M(*one, *two, ep_creator);
	M(*one, *two, pz_support);
	M(*one, *two, optimal_buffer_alignment);
	CU_ASSERT_EQUAL(memcmp(one->evd_stream_merging_supported, two->evd_stream_merging_supported,
			       sizeof(two->evd_stream_merging_supported)),
			0);
	M(*one, *two, srq_supported);
	M(*one, *two, srq_watermarks_supported);
	M(*one, *two, srq_ep_pz_difference_supported);
	M(*one, *two, srq_info_supported);
	M(*one, *two, ep_recv_info_supported);
	M(*one, *two, lmr_sync_req);
	M(*one, *two, dto_async_return_guaranteed);
	M(*one, *two, rdma_write_for_rdma_read_req);
	M(*one, *two, num_provider_specific_attr);
	M(*one, *two, provider_specific_attr);
}

static void test_provider_attr(void)
{
	GUARDED(DAT_PROVIDER_ATTR) out;
	struct two_provider_attr two;

	fake_open();
	fill(&two, sizeof(two));
	two.completion_flags_supported = 0x3f;
	memset(&out, 0xee, sizeof(out));
	fake_aim(FAKE_SLOT(ia_query), DAT_SUCCESS);
	answer_with(5, &two, sizeof(two));
	CU_ASSERT_EQUAL(dat_ia_query(fake_ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &out.is),
			DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	CU_ASSERT_EQUAL(fake.seen[3], 0);
	CU_ASSERT_EQUAL(fake.seen[4], 0x60ffffff);
	check_provider_attr(&out.is, &two);
	GUARDS_HOLD(out);
	fake_close();
}

static const struct unit_test tests[] = {
	{ "attributes of an IA", test_ia_attr },
	{ "attributes of a provider", test_provider_attr },
};

UNIT_MAIN("one pack ia", tests)
