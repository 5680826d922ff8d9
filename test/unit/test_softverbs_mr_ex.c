/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls that newer releases of rdma-core have: registration by a structure, buffers, the speed of a port, names. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "softverbs/base/api.h"
#include "test/unit/node.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
#define SIZE   8192u

/* The layout and the bits of rdma-core 65. */
struct request {
	size_t length;
	int access;
	uint64_t mask, iova;
	void *addr;
	int fd;
	uint64_t offset;
	void *dmah, *buf;
};

enum { IOVA = 1, ADDR = 2, FD = 4, OFFSET = 8, DMAH = 16, BUF = 32 };

static const struct node_options options;
static char memory[SIZE];

static struct ibv_mr *reg(struct ibv_pd *pd, const struct request *request)
{
	struct request copy = *request;

	return ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)(void *)&copy);
}

static bool no_memory;
int __real_posix_memalign(void **memptr, size_t alignment, size_t size);
int __wrap_posix_memalign(void **memptr, size_t alignment, size_t size);

int __wrap_posix_memalign(void **memptr, size_t alignment, size_t size)
{
	return no_memory ? ENOMEM : __real_posix_memalign(memptr, alignment, size);
}

static uint64_t iova_of(const struct ibv_mr *mr)
{
	return sv_area_own()->by_owner->region[mr->lkey >> 16].iova;
}

static void refused(struct ibv_pd *pd, struct request request, int error)
{
	errno = 0;
	CU_ASSERT_PTR_NULL(reg(pd, &request));
	CU_ASSERT_EQUAL(errno, error);
}

static void regions_of_a_structure(void)
{
	struct request request = { .length = SIZE, .access = ACCESS, .mask = ADDR, .addr = memory };
	struct ibv_mr *mr;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	mr = reg(node.pd, &request);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_PTR_EQUAL(mr->addr, memory);
	CU_ASSERT_EQUAL(mr->length, SIZE);
	CU_ASSERT_EQUAL(iova_of(mr), (uintptr_t)memory);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	request.mask |= IOVA;
	request.iova = 0x10000;
	mr = reg(node.pd, &request);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(iova_of(mr), 0x10000);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);

	request.mask = 0;
	refused(node.pd, request, EINVAL);
	request.mask = ADDR | FD | OFFSET | IOVA;
	refused(node.pd, request, EINVAL);
	request.mask = ADDR | OFFSET;
	refused(node.pd, request, EINVAL);
	request.mask = ADDR | DMAH;
	refused(node.pd, request, EOPNOTSUPP);
	request.mask = ADDR | 64;
	refused(node.pd, request, EOPNOTSUPP);
	request.mask = ADDR;
	request.length = 0;
	refused(node.pd, request, EINVAL);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void regions_of_a_descriptor(void)
{
	struct request request = {
		.length = SIZE,
		.access = ACCESS,
		.mask = FD | OFFSET | IOVA,
		.iova = 0x10000,
		.fd = memfd_create("region", MFD_CLOEXEC),
	};
	struct ibv_mr *mr;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_EQUAL_FATAL(ftruncate(request.fd, SIZE), 0);
	mr = reg(node.pd, &request);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_PTR_NULL(mr->addr); /* the offset */
	CU_ASSERT_EQUAL(iova_of(mr), 0x10000);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	request.mask = FD | OFFSET;
	refused(node.pd, request, EINVAL);
	request.mask = FD | IOVA;
	refused(node.pd, request, EINVAL);
	close(request.fd);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void buffers(void)
{
	struct request request = { .length = 1, .access = ACCESS };
	struct ibv_buf *buf = NULL;
	struct ibv_mr *mr;
	struct ibv_pd *other;
	struct node node;
	char *addr;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	other = ibv_alloc_pd(node.context);
	addr = ibv_alloc_buf(node.pd, SIZE, &buf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(addr);
	CU_ASSERT_EQUAL((uintptr_t)addr % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	memset(addr, 1, SIZE);
	mr = ibv_reg_buf_mr(node.pd, buf, addr + 1, SIZE - 1, ACCESS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_PTR_EQUAL(mr->addr, addr + 1);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_PTR_NULL(ibv_reg_buf_mr(node.pd, buf, addr + 1, SIZE, ACCESS));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NULL(ibv_reg_buf_mr(node.pd, buf, addr - 1, 1, ACCESS));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NULL(ibv_reg_buf_mr(other, buf, addr, SIZE, ACCESS));
	CU_ASSERT_EQUAL(errno, EINVAL);
	request.mask = BUF; /* without an address */
	request.buf = buf;
	request.addr = addr;
	refused(node.pd, request, EINVAL);
	request.mask = BUF | FD | OFFSET | IOVA;
	refused(node.pd, request, EINVAL);
	CU_ASSERT_EQUAL(ibv_export_buf_dmabuf_fd(buf), -1);
	CU_ASSERT_EQUAL(errno, ENODATA);
	ibv_free_buf(buf);
	no_memory = true;
	CU_ASSERT_PTR_NULL(ibv_alloc_buf(node.pd, SIZE, &buf));
	CU_ASSERT_EQUAL(errno, ENOMEM);
	no_memory = false;
	CU_ASSERT_PTR_NULL(ibv_alloc_buf(node.pd, 0, &buf));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(other), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void speed_of_the_port(void)
{
	struct ibv_port_attr port;
	uint64_t speed = 0;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_EQUAL(ibv_query_port_speed(node.context, 1, &speed), 0);
	CU_ASSERT_EQUAL(speed, 1000);
	CU_ASSERT_EQUAL(ibv_query_port_speed(node.context, 2, &speed), EINVAL);
	CU_ASSERT_EQUAL(ibv_query_port(node.context, 1, &port), 0);
	CU_ASSERT_EQUAL(port.active_speed, 32);
#if VERBS_HAVE_ACTIVE_SPEED_EX
	CU_ASSERT_EQUAL(port.active_speed_ex, 32);
#endif
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void absent_features(void)
{
	struct node node;
	uint64_t caps[3];

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_PTR_NULL(ibv_alloc_dmah(node.context, NULL));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	CU_ASSERT_EQUAL(_ibv_query_comp_cntr_caps(node.context, (void *)caps, sizeof(caps)),
			EOPNOTSUPP);
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_create_comp_cntr(node.context, NULL));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void names_of_operations(void)
{
	CU_ASSERT_STRING_EQUAL(ibv_wr_opcode_str(IBV_WR_RDMA_WRITE), "RDMA write");
	CU_ASSERT_STRING_EQUAL(ibv_wr_opcode_str(IBV_WR_BIND_MW), "bind memory window");
	CU_ASSERT_STRING_EQUAL(ibv_wr_opcode_str((enum ibv_wr_opcode)99), "unknown operation");
	CU_ASSERT_STRING_EQUAL(ibv_wr_opcode_str((enum ibv_wr_opcode) - 1), "unknown operation");
}

static const struct unit_test tests[] = {
	{ "ibv_reg_mr_ex of memory", regions_of_a_structure },
	{ "ibv_reg_mr_ex of a descriptor", regions_of_a_descriptor },
	{ "ibv_alloc_buf, and regions of buffers", buffers },
	{ "ibv_query_port_speed", speed_of_the_port },
	{ "features that the device does not have", absent_features },
	{ "each operation has a name", names_of_operations },
};

UNIT_MAIN("softverbs_mr_ex", tests)
