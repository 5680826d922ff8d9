/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The contexts that rdma_cm opens: they stay open while the library is loaded. Nothing here keeps
 * a channel or an identifier, so that each test destroys the last one.
 */
#include <stdlib.h>
#include <unistd.h>
#include "test/conform/con.h"

static void devices_are_listed(void)
{
	struct ibv_context **list;
	int count = -1, i;

	list = rdma_get_devices(&count);
	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_TRUE(count >= 1);
	for (i = 0; list[i]; i++)
		CU_ASSERT_PTR_NOT_NULL(list[i]->device);
	CU_ASSERT_EQUAL(i, count);
	rdma_free_devices(list);
}

/*
 * The memory of a closed context is allocated again first, so that a use of it shows without a
 * memory checker.
 */
static void assert_open(struct ibv_context *context)
{
	static char buffer[4096];
	void *blocks[64];
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	unsigned i;

	for (i = 0; i < COUNT(blocks); i++)
		blocks[i] = memset(malloc(480 + i * 8), 0x5a, 480 + i * 8);
	pd = ibv_alloc_pd(context);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	CU_ASSERT_PTR_EQUAL(pd->context, context);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	for (i = 0; i < COUNT(blocks); i++)
		free(blocks[i]);
}

static void context_outlives_its_list(void)
{
	struct ibv_context **list = rdma_get_devices(NULL), *context;

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	context = list[0];
	rdma_free_devices(list);
	assert_open(context);
	list = rdma_get_devices(NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_PTR_EQUAL(list[0], context);
	rdma_free_devices(list);
}

static void context_outlives_its_id(void)
{
	struct sockaddr_storage local = con_address(0);
	struct ibv_context *context;
	struct rdma_cm_id *id;

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, (struct sockaddr *)&local), 0);
	context = id->verbs;
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	assert_open(context);
}

/* Objects on the context keep working without an id, and a next id can be made. */
static void objects_outlive_the_last_id(void)
{
	struct con con;
	struct ibv_context *context;
	struct ibv_pd *pd;

	if (!con_establish(&con))
		return;
	context = con.active->verbs;
	pd = ibv_alloc_pd(context);
	con_close(&con);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	assert_open(context);
	if (!con_establish(&con))
		return;
	CU_ASSERT_PTR_EQUAL(con.active->verbs, context);
	con_close(&con);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static const struct unit_test tests[] = {
	{ "rdma_get_devices lists all devices, open", devices_are_listed },
	{ "a context stays open when the list is freed", context_outlives_its_list },
	{ "a context stays open when the last id is destroyed", context_outlives_its_id },
	{ "objects stay when the last id is destroyed", objects_outlive_the_last_id },
};

/* A function of the software device if that is linked in; the drop-in calls it by itself. */
__attribute__((weak)) void sv_cm_keep_devices_open(void);

int main(int argc, char **argv)
{
	if (sv_cm_keep_devices_open)
		sv_cm_keep_devices_open();
	return conform_open() ? unit_main("conform_cm_device", tests, COUNT(tests), argc, argv)
			      : 77;
}
