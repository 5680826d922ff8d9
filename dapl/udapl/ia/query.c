/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of an IA, its device and this provider. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dat2/dat_event_extensions.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/provider.h"

#define PROVIDER_VERSION_MAJOR 2
#define PROVIDER_VERSION_MINOR 0
#define NAMED_MAX	       32
#define VALUE_MAX	       64

struct ia_strings {
	DAT_NAMED_ATTR named[NAMED_MAX];
	char values[NAMED_MAX][VALUE_MAX];
	DAT_COUNT count;
};

/*
 * ---- named attributes: the names that consumers look for, and values that they compare as text
 * ----
 */

__attribute__((format(printf, 3, 4))) static void add(struct ia_strings *strings, const char *name,
						      const char *format, ...)
{
	char *value = strings->values[strings->count];
	va_list args;

	va_start(args, format);
	vsnprintf(value, VALUE_MAX, format, args);
	va_end(args);
	strings->named[strings->count++] = (DAT_NAMED_ATTR){ .name = name, .value = value };
}

/* In the order of the numbers of ibv_port_state. */
static const char *port_status(unsigned state)
{
	static const char *const names[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "DEFER" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "UNKNOWN";
}

static const char *truth(bool value)
{
	return value ? "TRUE" : "FALSE";
}

static void add_guid(struct ia_strings *strings, uint64_t guid)
{
	add(strings, "DAT_IB_NODE_GUID", "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
	    (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
	    (unsigned)(guid & 0xffff));
}

static void add_event_extension(struct ia_strings *strings, const struct dapl_ia *ia)
{
	static const char *const operations[] = {
		DAT_EV_ATTR_EVD_GET_FD, DAT_EV_ATTR_EVD_ARM,	DAT_EV_ATTR_EVD_DEQUEUE_N,
		DAT_EV_ATTR_EVD_SIGNAL, DAT_EV_ATTR_CNO_GET_FD, DAT_EV_ATTR_CNO_ARM,
		DAT_EV_ATTR_CNO_SIGNAL, DAT_EV_ATTR_CNO_POLL,	DAT_EV_ATTR_CNO_POLLFDS,
		DAT_EV_ATTR_TRYWAIT,	DAT_EV_ATTR_POLL_SET,	DAT_EV_ATTR_WAIT_MEM,
	};
	char policy[SETTING_TEXT_MAX];
	size_t i;

	add(strings, DAT_EV_ATTR_EXTENSION, "%u.%u", DAT_EV_VERSION_MAJOR, DAT_EV_VERSION_MINOR);
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		add(strings, operations[i], "TRUE");
	add(strings, DAT_EV_ATTR_WAIT_POLICY, "%s",
	    setting_format(&settings_table[SET_WAIT_POLICY], ia_setting(ia, SET_WAIT_POLICY),
			   policy));
}

DAT_RETURN ia_strings_create(struct dapl_ia *ia)
{
	struct ia_strings *strings = calloc(1, sizeof(*strings));
	const struct ib_attr *attr = ia->attr;

	if (!strings)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	/* Scripts identify the connection manager by this name. */
	add(strings, "DAT_IB_PROVIDER_NAME", "%s", ib_cm.name);
	add(strings, "DAT_IB_DEVICE_NAME", "%s", attr->device_name);
	add(strings, "DAT_IB_CONNECTIVITY_MODE", "DIRECT");
	add(strings, "DAT_IB_RDMA_READ", "TRUE");
	add_guid(strings, attr->guid);
	add(strings, "DAT_IB_GID", "%s", attr->gid);
	add(strings, "DAT_IB_TRANSPORT_MTU", "%u", attr->mtu);
	add(strings, "DAT_IB_PORT_STATUS", "%s", port_status(attr->port_state));
	add(strings, "DAT_IB_PORT_NUMBER", "%u", attr->port);
	add(strings, "DAT_EXTENSION_INTERFACE", "%s", truth(!attr->iwarp));
	add(strings, DAT_IB_ATTR_FETCH_AND_ADD, "%s", truth(attr->atomics));
	add(strings, DAT_IB_ATTR_CMP_AND_SWAP, "%s", truth(attr->atomics));
	add(strings, DAT_IB_ATTR_IMMED_DATA, "%s", truth(!attr->iwarp));
	if (attr->datagrams)
		add(strings, DAT_IB_ATTR_UD, "TRUE");
	add(strings, DAT_IB_ATTR_COUNTERS, "TRUE");
	/* Registries pass operations only to an IA that reports extensions. */
	if (!attr->iwarp)
		add_event_extension(strings, ia);
	ia->strings = strings;
	return DAT_SUCCESS;
}

void ia_strings_destroy(struct dapl_ia *ia)
{
	free(ia->strings);
	ia->strings = NULL;
}

/* ---- numbers: those of the device, cut to the range of the attribute ---- */

static DAT_COUNT count(uint64_t value)
{
	return value > INT_MAX ? INT_MAX : (DAT_COUNT)value;
}

static DAT_SEG_LENGTH seg_length(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (DAT_SEG_LENGTH)value;
}

static void fill_ia(const struct dapl_ia *ia, DAT_IA_ATTR *out)
{
	const struct ib_attr *attr = ia->attr;

	*out = (DAT_IA_ATTR){
		.hardware_version_major = attr->hw_version,
		.firmware_version_major = (DAT_UINT32)(attr->fw_version >> 48),
		.firmware_version_minor = (DAT_UINT32)(attr->fw_version >> 32 & 0xffff),
		.ia_address_ptr = (DAT_IA_ADDRESS_PTR)(uintptr_t)&ia->address,
		.max_eps = count(attr->max_qp),
		.max_dto_per_ep = count(attr->max_wr),
		.max_rdma_read_per_ep_in = count(attr->max_read_in),
		.max_rdma_read_per_ep_out = count(attr->max_read_out),
		.max_evds = count(attr->max_cq),
		.max_evd_qlen = count(attr->max_cqe),
		.max_iov_segments_per_dto = count(attr->max_sge),
		.max_lmrs = count(attr->max_mr),
		.max_lmr_block_size = seg_length(attr->max_mr_size),
		.max_lmr_virtual_address = UINT64_MAX,
		.max_pzs = count(attr->max_pd),
		.max_message_size = seg_length(attr->max_message),
		.max_rdma_size = seg_length(attr->max_message),
		.max_rmrs = count(attr->max_mw),
		.max_rmr_target_address = UINT64_MAX,
		.max_srqs = count(attr->max_srq),
		.max_ep_per_srq = attr->max_srq ? count(attr->max_qp) : 0,
		.max_recv_per_srq = attr->max_srq ? count(attr->max_srq_wr) : 0,
		.max_iov_segments_per_rdma_read = count(attr->max_sge_read),
		.max_iov_segments_per_rdma_write = count(attr->max_sge),
		.max_rdma_read_in = count(attr->max_read_in_device),
		/* a device has a limit per queue pair only */
		.max_rdma_read_out = count((uint64_t)attr->max_read_out * attr->max_qp),
		.max_rdma_read_per_ep_in_guaranteed =
			(uint64_t)attr->max_read_in * attr->max_qp <= attr->max_read_in_device,
		.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE,
		.zb_supported = attr->zero_based,
		.extension_supported = attr->iwarp ? DAT_EXTENSION_NONE : DAT_EXTENSION_IB,
		.extension_version = attr->iwarp ? 0 : DAT_IB_EXTENSION_VERSION,
	};
	snprintf(out->adapter_name, sizeof(out->adapter_name), "%s", attr->device_name);
	snprintf(out->vendor_name, sizeof(out->vendor_name), "0x%06x:0x%04x", attr->vendor_id,
		 attr->vendor_part_id);
}

/* The merge matrix is const for consumers, so it is filled in through a cast. */
static void fill_merging(DAT_PROVIDER_ATTR *out)
{
	DAT_BOOLEAN *cell = (DAT_BOOLEAN *)((char *)out + offsetof(DAT_PROVIDER_ATTR,
								   evd_stream_merging_supported));
	size_t i;

	for (i = 0; i < sizeof(out->evd_stream_merging_supported) / sizeof(*cell); i++)
		cell[i] = DAT_TRUE;
}

static void fill_provider(const struct dapl_ia *ia, DAT_PROVIDER_ATTR *out)
{
	const struct ib_attr *attr = ia->attr;

	memset(out, 0, sizeof(*out));
	snprintf(out->provider_name, sizeof(out->provider_name), "%s", ia->name);
	out->provider_version_major = PROVIDER_VERSION_MAJOR;
	out->provider_version_minor = PROVIDER_VERSION_MINOR;
	out->dapl_version_major = DAT_VERSION_MAJOR;
	out->dapl_version_minor = DAT_VERSION_MINOR;
	out->lmr_mem_types_supported =
		(DAT_MEM_TYPE)((unsigned)DAT_MEM_TYPE_VIRTUAL | (unsigned)DAT_MEM_TYPE_LMR |
			       (unsigned)DAT_MEM_TYPE_SHARED_VIRTUAL);
	out->iov_ownership_on_return = DAT_IOV_CONSUMER;
	out->dat_qos_supported = DAT_QOS_BEST_EFFORT;
	out->completion_flags_supported =
		(DAT_COMPLETION_FLAGS)((unsigned)DAT_COMPLETION_SUPPRESS_FLAG |
				       (unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG |
				       (unsigned)DAT_COMPLETION_UNSIGNALLED_FLAG |
				       (unsigned)DAT_COMPLETION_BARRIER_FENCE_FLAG |
				       (unsigned)DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	out->is_thread_safe = DAT_TRUE;
	out->max_private_data_size = count(attr->max_private_connect);
	out->ep_creator = DAT_PSP_CREATES_EP_IFASKED;
	out->pz_support = DAT_PZ_UNIQUE;
	out->optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT;
	fill_merging(out);
	out->rmr_scope_supported = attr->mw_type1 && attr->mw_type2 ? DAT_RMR_SCOPE_ANY
				   : attr->mw_type1		    ? DAT_RMR_SCOPE_PZ
								    : DAT_RMR_SCOPE_EP;
	out->srq_supported = attr->max_srq > 0;
	/* the low watermark of an SRQ; no device has that of an EP */
	out->srq_watermarks_supported = attr->max_srq > 0;
	out->srq_ep_pz_difference_supported = attr->max_srq > 0;
	out->srq_info_supported = attr->max_srq > 0;
	/* RFC 5040: the sink of a read is written by the peer */
	out->rdma_write_for_rdma_read_req = attr->iwarp;
	out->ha_loadbalancing = DAT_HA_LB_NONE;
	out->num_provider_specific_attr = ia->strings->count;
	out->provider_specific_attr = ia->strings->named;
}

/*
 * In dat_ia_close OFED's registry asks for the provider's attributes, with these very arguments,
 * and uses is_thread_safe to find the record to release; if the answer is not that of the record,
 * the close fails. Our registry does not ask.
 */
static bool is_for_the_record(const DAT_EVD_HANDLE *async_evd, const DAT_IA_ATTR *ia_attr,
			      DAT_PROVIDER_ATTR_MASK provider_mask)
{
	return !provider_has_own_registry() && !async_evd && !ia_attr &&
	       provider_mask == DAT_PROVIDER_FIELD_ALL;
}

DAT_RETURN dapl_ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
			 DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			 DAT_PROVIDER_ATTR *provider_attr)
{
	struct dapl_ia *ia = ia_from(handle);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ia_mask & ~DAT_IA_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (ia_mask && !ia_attr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (provider_mask & ~DAT_PROVIDER_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (provider_mask && !provider_attr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);

	/*
	 * Some consumers pass a narrow mask and read more members, so a requested structure is
	 * filled in whole.
	 */
	if (ia_mask)
		fill_ia(ia, ia_attr);
	if (provider_mask)
		fill_provider(ia, provider_attr);
	if (is_for_the_record(async_evd, ia_attr, provider_mask))
		provider_attr->is_thread_safe = ia->thread_safe;
	if (async_evd) {
		pthread_mutex_lock(&ia_all_lock);
		*async_evd = ia->async_evd ? ia->async_evd : DAT_EVD_OUT_OF_SCOPE;
		pthread_mutex_unlock(&ia_all_lock);
	}
	return DAT_SUCCESS;
}
