/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads the attributes of a device. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dapl/openib/openib.h"

static uint64_t firmware_version(const char *text)
{
	unsigned part[4] = { 0 };

	sscanf(text, "%u.%u.%u.%u", &part[0], &part[1], &part[2], &part[3]);
	return (uint64_t)(part[0] & 0xffff) << 48 | (uint64_t)(part[1] & 0xffff) << 32 |
	       (part[2] & 0xffff) << 16 | (part[3] & 0xffff);
}

/*
 * Detects zero-based registration, for which there is no capability bit, by registering memory at address 0. The memory
 * is not page-aligned, like that of consumers: many devices require the same offset in the page as the address has.
 * Returns 0, or an errno if a resource has run out.
 */
static int zero_based_try(struct ibv_context *verbs, bool *works)
{
	long size = sysconf(_SC_PAGESIZE);
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	void *page = NULL;
	struct ibv_mr *mr = NULL;
	int error = pd ? posix_memalign(&page, (size_t)size, (size_t)size) : errno;

	if (!error) {
		mr = ibv_reg_mr_iova(pd, (char *)page + size / 2, (size_t)size / 2, 0,
				     IBV_ACCESS_LOCAL_WRITE);
		error = mr ? 0 : errno;
	}
	*works = mr;
	if (mr)
		ibv_dereg_mr(mr);
	free(page);
	if (pd)
		ibv_dealloc_pd(pd);
	return error_is_shortage(error) ? error : 0;
}

static const char *transport_name(const struct ibv_context *verbs, const struct ibv_port_attr *port)
{
	if (verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		return "iwarp";
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? "roce" : "infiniband";
}

static void fill(struct ib_attr *attr, const struct ibv_device_attr *dev)
{
	attr->guid = be64toh(dev->node_guid);
	attr->vendor_id = dev->vendor_id;
	attr->vendor_part_id = dev->vendor_part_id;
	attr->hw_version = dev->hw_ver;
	attr->fw_version = firmware_version(dev->fw_ver);
	attr->max_mr_size = dev->max_mr_size;
	attr->max_qp = (uint32_t)dev->max_qp;
	attr->max_wr = wr_granted((uint32_t)dev->max_qp_wr);
	attr->max_sge = sge_granted((uint32_t)dev->max_sge);
	attr->max_sge_read = sge_granted((uint32_t)dev->max_sge_rd);
	attr->max_cq = (uint32_t)dev->max_cq;
	attr->max_cqe = (uint32_t)dev->max_cqe;
	attr->max_mr = (uint32_t)dev->max_mr;
	attr->max_pd = (uint32_t)dev->max_pd;
	attr->max_mw = (uint32_t)dev->max_mw;
	attr->max_read_in = (uint32_t)dev->max_qp_rd_atom;
	attr->max_read_out = (uint32_t)dev->max_qp_init_rd_atom;
	attr->max_read_in_device = (uint32_t)dev->max_res_rd_atom;
	attr->max_srq = (uint32_t)dev->max_srq;
	attr->max_srq_wr = wr_granted((uint32_t)dev->max_srq_wr);
	attr->max_srq_sge = sge_granted((uint32_t)dev->max_srq_sge);
	attr->atomics = dev->atomic_cap != IBV_ATOMIC_NONE;
	attr->srq_resize = dev->device_cap_flags & IBV_DEVICE_SRQ_RESIZE;
	attr->mw_type1 = dev->device_cap_flags & IBV_DEVICE_MEM_WINDOW;
	attr->mw_type2 = dev->device_cap_flags &
			 (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	attr->mem_extensions = dev->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
}

static void cap(uint32_t *value, long most)
{
	if (*value > (unsigned long)most)
		*value = (uint32_t)most;
}

/* Lowers limits of the device to those of the settings. */
static void cap_by_settings(struct ib_device *device)
{
	struct ib_attr *attr = &device->attr;
	long mtu = device_setting(device, SET_IB_MTU);

	cap(&attr->max_wr, device_setting(device, SET_WR_MAX));
	cap(&attr->max_srq_wr, device_setting(device, SET_WR_MAX));
	cap(&attr->max_sge, device_setting(device, SET_SGE_MAX));
	cap(&attr->max_sge_read, device_setting(device, SET_SGE_MAX));
	cap(&attr->max_srq_sge, device_setting(device, SET_SGE_MAX));
	cap(&attr->max_cqe, device_setting(device, SET_EVD_QLEN_MAX));
	if (mtu && attr->mtu > (unsigned long)mtu)
		attr->mtu = (unsigned)mtu;
}

/* A port without a GID is usable, so that is no error. */
static void gid_read(struct ib_device *device, uint8_t port_num)
{
	struct ib_attr *attr = &device->attr;
	union ibv_gid gid;

	if (ibv_query_gid(device->verbs, port_num, 0, &gid))
		ib_error(errno, "ibv_query_gid", attr->device_name);
	else
		inet_ntop(AF_INET6, gid.raw, attr->gid, sizeof(attr->gid));
}

int attr_read(struct ib_device *device, uint8_t port_num)
{
	struct ibv_device_attr_ex ex = { .orig_attr = { .max_qp = 0 } };
	struct ib_attr *attr = &device->attr;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	int error;

	snprintf(attr->device_name, sizeof(attr->device_name), "%s",
		 ibv_get_device_name(device->verbs->device));
	error = ibv_query_device(device->verbs, &dev);
	if (error) {
		ib_error(error, "ibv_query_device", attr->device_name);
		return error;
	}
	error = ibv_query_port(device->verbs, port_num, &port);
	if (error) {
		ib_error(error, "ibv_query_port", attr->device_name);
		return error;
	}
	gid_read(device, port_num);
	fill(attr, &dev);
	attr->port = port_num;
	attr->port_state = port.state;
	attr->mtu = port.active_mtu ? 128u << port.active_mtu : 0; /* ibv_mtu: 1 is 256 */
	attr->max_message = port.max_msg_sz;
	snprintf(attr->transport, sizeof(attr->transport), "%s",
		 transport_name(device->verbs, &port));
	attr->iwarp = device->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	attr->datagrams = !attr->iwarp && dev.max_ah > 0;
	if (!ibv_query_device_ex(device->verbs, NULL, &ex)) {
		attr->max_cq_moderation = ex.cq_mod_caps.max_cq_count;
		attr->max_cq_moderation_us = ex.cq_mod_caps.max_cq_period;
	}
	error = zero_based_try(device->verbs, &attr->zero_based);
	if (error) {
		ib_error(error, "registering a page", attr->device_name);
		return error;
	}
	ib_cm.limits(attr);
	cap_by_settings(device);
	return 0;
}
