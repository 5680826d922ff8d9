/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * From the parameters in dat.conf to an address: which one is found, and what is logged if none is.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dapl/openib/address.h"
#include "test/unit/unit.h"

/* Overrides of the device's attributes; 0 and NULL: none. */
static unsigned ports;
static const uint8_t *gid;

int __real_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int __real_ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out);
int __wrap_ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out);

int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int error = __real_ibv_query_device(context, attr);

	if (!error && ports)
		attr->phys_port_cnt = (uint8_t)ports;
	return error;
}

int __wrap_ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out)
{
	if (!gid)
		return __real_ibv_query_gid(context, port, index, out);
	memcpy(out->raw, gid, sizeof(out->raw));
	return 0;
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);

/* Of the host "both", the resolver knows an address of each family, that of IPv6 first; of "six", that one alone. */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	const struct addrinfo one = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };

	if (strcmp(node, "both") && strcmp(node, "six"))
		return __real_getaddrinfo(node, service, hints, list);
	CU_ASSERT_EQUAL_FATAL(__real_getaddrinfo("::1", NULL, &one, list), 0);
	return strcmp(node, "both")
		       ? 0
		       : __real_getaddrinfo("127.0.0.9", NULL, &one, &(*list)->ai_next);
}

/* Returns the status of address_find() and captures its log. */
static int find(const char *params, struct sockaddr_storage *address, char said[1024])
{
	FILE *log = tmpfile();
	int saved = dup(STDERR_FILENO), error;
	size_t len;

	CU_ASSERT_PTR_NOT_NULL_FATAL(log);
	dup2(fileno(log), STDERR_FILENO);
	error = address_find(params, address);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(log);
	len = fread(said, 1, 1023, log);
	said[len] = '\0';
	fclose(log);
	return error;
}

static void expect(const char *params, int error, const char *message)
{
	struct sockaddr_storage address;
	char said[1024];

	CU_ASSERT_EQUAL(find(params, &address, said), error);
	CU_ASSERT_STRING_EQUAL(said, message);
}

static void expect_address(const char *params, const char *want)
{
	struct sockaddr_storage address;
	char said[1024], text[INET_ADDRSTRLEN] = "";

	CU_ASSERT_EQUAL(find(params, &address, said), 0);
	CU_ASSERT_EQUAL(address.ss_family, AF_INET);
	inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, want);
	CU_ASSERT_STRING_EQUAL(said, "");
}

static void test_found(void)
{
	struct sockaddr_storage address;
	struct addrinfo *localhost;
	char said[1024];

	expect_address("lo 0", "127.0.0.1");
	expect_address("soft0 1", "127.0.0.1");
	expect_address("soft0 0", "127.0.0.1");
	expect_address("127.0.0.7 0", "127.0.0.7");
	if (!getaddrinfo("localhost", NULL, NULL, &localhost)) { /* fails without /etc/hosts */
		expect_address("localhost 0", "127.0.0.1");
		freeaddrinfo(localhost);
	}
	expect_address("both 0", "127.0.0.9");
	CU_ASSERT_EQUAL(find("six 0", &address, said), 0);
	CU_ASSERT_EQUAL(address.ss_family, AF_INET6);
}

static void test_port(void)
{
	expect("soft0 2", ENXIO, "soft0 has no port 2: its only port is 1\n");
	expect("soft0 257", ENXIO, "soft0 has no port 257: its only port is 1\n");
	ports = 2;
	expect("soft0 3", ENXIO, "soft0 has no port 3: its ports are 1 to 2\n");
	ports = 0;
}

/* As on InfiniBand, where a port's GIDs contain its GUID and not an IP address. */
static void test_no_ip(void)
{
	static const uint8_t link_local[16] = { 0xfe, 0x80, [15] = 1 };

	gid = link_local;
	expect("soft0 1", EADDRNOTAVAIL,
	       "soft0: port 1 has no IP address among its GIDs: name a network interface of the "
	       "device instead\n");
	gid = NULL;
}

static void test_unknown(void)
{
	expect("no.such.name.invalid 0", ENODEV,
	       "no.such.name.invalid: no network interface with an address, no verbs device and "
	       "no host of this name\n");
	expect("soft0", ENODEV,
	       "'soft0': parameters are a network interface, an address or a verbs device, a "
	       "blank, and a port number\n");
}

static const struct unit_test tests[] = {
	{ "an interface, a device, an address, a host", test_found },
	{ "a port that the device does not have", test_port },
	{ "a port without an IP address", test_no_ip },
	{ "a name that is no interface, device, address or host is refused", test_unknown },
};

UNIT_MAIN("address", tests)
