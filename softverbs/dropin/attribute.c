/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of the device as text: the names and formats are those of the kernel's
 * /sys/class/infiniband, the values come from the calls that report them as numbers. */
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "softverbs/dropin/dropin.h"
#include "softverbs/object/device.h"

/* The queries read nothing but the device. */
static struct ibv_context unopened(void)
{
	return (struct ibv_context){ .device = sv_device_soft() };
}

__attribute__((format(printf, 2, 3))) static bool put(char *text, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text, SV_ATTRIBUTE_SIZE, format, list);
	va_end(list);
	return length >= 0 && length < SV_ATTRIBUTE_SIZE;
}

static bool is(const char *name, const char *attribute)
{
	return !strcmp(name, attribute);
}

/* Bytes as groups of four digits. */
static bool put_groups(char *text, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	size_t i;

	for (i = 0; i < size; i += 2)
		sprintf(text + i / 2 * 5, "%02x%02x%s", byte[i], byte[i + 1],
			i + 2 < size ? ":" : "");
	return true;
}

static bool device_text(const char *name, char *text)
{
	struct ibv_context context = unopened();
	struct ibv_device_attr attr;

	ibv_query_device(&context, &attr);
	if (is(name, "node_type") && context.device->node_type == IBV_NODE_CA)
		return put(text, "%d: CA", context.device->node_type);
	if (is(name, "node_guid"))
		return put_groups(text, &attr.node_guid, sizeof(attr.node_guid));
	if (is(name, "sys_image_guid"))
		return put_groups(text, &attr.sys_image_guid, sizeof(attr.sys_image_guid));
	if (is(name, "fw_ver"))
		return put(text, "%s", attr.fw_ver);
	if (is(name, "hw_rev"))
		return put(text, "%x", attr.hw_ver);
	/* Neither model nor board of a vendor: what the device is. */
	if (is(name, "hca_type") || is(name, "board_id"))
		return put(text, "softverbs");
	errno = ENOENT;
	return false;
}

static bool port_text(const char *name, char *text)
{
	struct ibv_context context = unopened();
	struct ibv_port_attr attr;

	sv_device_query_port(&context, SV_PORT, &attr, sizeof(attr));
	if (is(name, "state") && attr.state == IBV_PORT_ACTIVE)
		return put(text, "%d: ACTIVE", attr.state);
	if (is(name, "phys_state") && attr.phys_state == SV_PHYS_LINK_UP)
		return put(text, "%d: LinkUp", attr.phys_state);
	if (is(name, "link_layer"))
		return put(text, attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand"
									      : "Ethernet");
	if (is(name, "rate"))
		return put(text, "%d Gb/sec (%dX EDR)", SV_LANES * SV_LANE_GBPS, SV_LANES);
	if (is(name, "lid"))
		return put(text, "0x%x", attr.lid);
	if (is(name, "lid_mask_count"))
		return put(text, "%d", attr.lmc);
	if (is(name, "sm_lid"))
		return put(text, "0x%x", attr.sm_lid);
	if (is(name, "sm_sl"))
		return put(text, "%d", attr.sm_sl);
	if (is(name, "cap_mask"))
		return put(text, "0x%08x", attr.port_cap_flags);
	errno = ENOENT;
	return false;
}

static bool gid_text(unsigned index, char *text)
{
	struct ibv_context context = unopened();
	union ibv_gid gid;

	return !ibv_query_gid(&context, SV_PORT, (int)index, &gid) &&
	       put_groups(text, gid.raw, sizeof(gid.raw));
}

static bool gid_type_text(unsigned index, char *text)
{
	struct ibv_context context = unopened();
	struct ibv_gid_entry entry;

	return !_ibv_query_gid_ex(&context, SV_PORT, index, &entry, 0, sizeof(entry)) &&
	       put(text, entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
}

static bool gid_interface_text(unsigned index, char *text)
{
	struct ibv_context context = unopened();
	struct ibv_gid_entry entry;
	char name[IF_NAMESIZE];

	return !_ibv_query_gid_ex(&context, SV_PORT, index, &entry, 0, sizeof(entry)) &&
	       if_indextoname(entry.ndev_ifindex, name) && put(text, "%s", name);
}

static bool pkey_text(unsigned index, char *text)
{
	struct ibv_context context = unopened();
	__be16 pkey;

	return !ibv_query_pkey(&context, SV_PORT, (int)index, &pkey) &&
	       put(text, "0x%04x", be16toh(pkey));
}

/* The folders of the port that have a file for each entry of a table. */
static const struct table {
	const char *folder;
	unsigned length;
	bool (*text)(unsigned index, char *text);
} tables[] = {
	{ "gids/", SV_GID_TABLE, gid_text },
	{ "gid_attrs/types/", SV_GID_TABLE, gid_type_text },
	{ "gid_attrs/ndevs/", SV_GID_TABLE, gid_interface_text },
	{ "pkeys/", SV_PKEY_TABLE, pkey_text },
};

/* True if the name begins so; moves behind it. */
static bool prefix_skip(const char **name, const char *beginning)
{
	size_t length = strlen(beginning);

	if (strncmp(*name, beginning, length))
		return false;
	*name += length;
	return true;
}

/* The file of an empty entry can be opened and not read: EINVAL, as the kernel has it. */
static bool entry_text(const struct table *table, const char *name, char *text)
{
	char file[16];
	unsigned i;

	for (i = 0; i < table->length; i++) {
		snprintf(file, sizeof(file), "%u", i);
		if (!is(name, file))
			continue;
		if (table->text(i, text))
			return true;
		errno = EINVAL;
		return false;
	}
	errno = ENOENT;
	return false;
}

bool sv_attribute_text(const char *name, char *text)
{
	char port[32];
	size_t i;

	snprintf(port, sizeof(port), "ports/%d/", SV_PORT);
	if (!prefix_skip(&name, port))
		return device_text(name, text);
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (prefix_skip(&name, tables[i].folder))
			return entry_text(&tables[i], name, text);
	return port_text(name, text);
}
