/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The software device with settings of its own; no other device has them. */
#include <stdio.h>
#include <stdlib.h>
#include "test/conform/remote.h"

static void no_message_through_the_ring(void)
{
	static const uint32_t sizes[] = { 48, 49, 1000, 4096, 5000 };
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	messages_there(&here, &peer, sizes, COUNT(sizes));
	remote_close(&peer);
	side_close(&here);
}

static void other_numbers(void)
{
	CU_ASSERT_EQUAL(device_attr.vendor_id, 0x02c9);
	CU_ASSERT_EQUAL(device_attr.vendor_part_id, 4123);
	/* what is no value changes nothing */
	for (const char **bad = (const char *[]){ "", "5", "5:", ":5", "x:5", "5:6 ", NULL }; *bad;
	     bad++) {
		struct ibv_device_attr attr;

		setenv("SOFTVERBS_VENDOR", *bad, 1);
		CU_ASSERT_EQUAL(ibv_query_device(device, &attr), 0);
		CU_ASSERT_EQUAL(attr.vendor_id, 0x534f);
		CU_ASSERT_EQUAL(attr.vendor_part_id, 1);
	}
}

static const struct unit_test tests[] = {
	{ "C.12 SOFTVERBS_EAGER=0: no message goes through the ring", no_message_through_the_ring },
	{ "C.12 SOFTVERBS_VENDOR: other numbers; bad values are ignored", other_numbers },
};

int main(int argc, char **argv)
{
	setenv("SOFTVERBS_EAGER", "0", 1);
	setenv("SOFTVERBS_AREA_MB", "64", 1);
	setenv("SOFTVERBS_VENDOR", "0x02c9:4123", 1);
	remote_main(argc, argv);
	if (!conform_open())
		return 77;
	if (strcmp(ibv_get_device_name(device->device), "soft0")) {
		fprintf(stderr, "skipped: not the software device\n");
		return 77;
	}
	return unit_main("conform_settings", tests, COUNT(tests), argc, argv);
}
