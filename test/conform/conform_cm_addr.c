/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Addresses and ports of rdma_cm. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>
#include "test/conform/con.h"

static struct rdma_event_channel *channel;

static struct rdma_cm_id *new_id(enum rdma_port_space space)
{
	struct rdma_cm_id *id = NULL;

	if (!channel)
		channel = rdma_create_event_channel();
	CU_ASSERT_PTR_NOT_NULL_FATAL(channel);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(channel, &id, NULL, space), 0);
	return id;
}

static void free_id(struct rdma_cm_id *id)
{
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
}

/* Returns 0 or an errno. */
static int bind_to(struct rdma_cm_id *id, struct sockaddr_storage address)
{
	errno = 0;
	return rdma_bind_addr(id, (struct sockaddr *)&address) ? errno : 0;
}

static struct sockaddr_storage any_address(uint16_t port)
{
	struct sockaddr_storage address = con_address(port);

	if (address.ss_family == AF_INET)
		((struct sockaddr_in *)(void *)&address)->sin_addr.s_addr = htonl(INADDR_ANY);
	else
		((struct sockaddr_in6 *)(void *)&address)->sin6_addr = in6addr_any;
	return address;
}

static uint16_t port_of(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

static void binding_finds_the_device(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	CU_ASSERT_PTR_NULL(id->verbs);
	CU_ASSERT_EQUAL(bind_to(id, con_address(0)), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id->verbs);
	CU_ASSERT_PTR_NOT_NULL(id->pd);
	CU_ASSERT_STRING_EQUAL(ibv_get_device_name(id->verbs->device),
			       ibv_get_device_name(device->device));
	CU_ASSERT_EQUAL(id->port_num, 1);
	CU_ASSERT_NOT_EQUAL(port_of(id), 0);
	free_id(id);
}

static void wildcard_finds_none(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(bind_to(id, any_address(0)), 0);
	CU_ASSERT_PTR_NULL(id->verbs);
	CU_ASSERT_NOT_EQUAL(port_of(id), 0);
	CU_ASSERT_EQUAL(rdma_listen(id, 4), 0);
	free_id(id);
}

static void listening_binds(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(rdma_listen(id, 4), 0);
	CU_ASSERT_NOT_EQUAL(port_of(id), 0);
	free_id(id);
}

static void bound_once(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(bind_to(id, con_address(0)), 0);
	CU_ASSERT_EQUAL(bind_to(id, con_address(0)), EINVAL);
	free_id(id);
}

static void foreign_address(void)
{
	struct sockaddr_in foreign = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(0xcb007107) };
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	errno = 0;
	CU_ASSERT_EQUAL(rdma_bind_addr(id, (struct sockaddr *)&foreign), -1); /* 203.0.113.7 */
	CU_ASSERT_TRUE(errno == EADDRNOTAVAIL || (device_is_rxe && errno == ENODEV));
	free_id(id);
}

static void port_in_use(void)
{
	struct rdma_cm_id *one = new_id(RDMA_PS_TCP), *two = new_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(bind_to(one, con_address(0)), 0);
	CU_ASSERT_EQUAL(bind_to(two, con_address(port_of(one))), EADDRINUSE);
	CU_ASSERT_EQUAL(bind_to(two, con_address(0)), 0);
	CU_ASSERT_NOT_EQUAL(port_of(one), port_of(two));
	free_id(one);
	free_id(two);
}

static void wildcard_conflicts(void)
{
	struct rdma_cm_id *one = new_id(RDMA_PS_TCP), *two = new_id(RDMA_PS_TCP);
	int error;

	CU_ASSERT_EQUAL(bind_to(one, con_address(0)), 0);
	error = bind_to(two, any_address(port_of(one)));
	CU_ASSERT_TRUE(error == EADDRINUSE || error == EADDRNOTAVAIL);
	free_id(one);
	free_id(two);
	one = new_id(RDMA_PS_TCP);
	two = new_id(RDMA_PS_TCP);
	CU_ASSERT_EQUAL(bind_to(one, any_address(0)), 0);
	error = bind_to(two, con_address(port_of(one)));
	CU_ASSERT_TRUE(error == EADDRINUSE || error == EADDRNOTAVAIL);
	free_id(one);
	free_id(two);
}

static void spaces_are_separate(void)
{
	struct rdma_cm_id *tcp = new_id(RDMA_PS_TCP), *udp = new_id(RDMA_PS_UDP);

	CU_ASSERT_EQUAL(bind_to(tcp, con_address(0)), 0);
	CU_ASSERT_EQUAL(bind_to(udp, con_address(port_of(tcp))), 0);
	CU_ASSERT_EQUAL(port_of(udp), port_of(tcp));
	free_id(tcp);
	free_id(udp);
}

/* Programs use the same number for a socket and for rdma_cm. */
static void sockets_are_separate(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct sockaddr_storage address;
	socklen_t size;
	int fd;

	CU_ASSERT_EQUAL(bind_to(id, con_address(0)), 0);
	address = con_address(port_of(id));
	size = address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
					    : sizeof(struct sockaddr_in6);
	fd = socket(address.ss_family, SOCK_STREAM, 0);
	CU_ASSERT_TRUE(fd >= 0);
	/* the port may belong to another program's socket, which proves the same */
	CU_ASSERT_TRUE(!bind(fd, (struct sockaddr *)&address, size) || errno == EADDRINUSE);
	free_id(id);
	id = new_id(RDMA_PS_TCP);
	CU_ASSERT_EQUAL(bind_to(id, address), 0);
	free_id(id);
	close(fd);
}

static void address_is_shared_on_request(void)
{
	struct rdma_cm_id *one = new_id(RDMA_PS_TCP), *two = new_id(RDMA_PS_TCP);
	int on = 1;

	CU_ASSERT_EQUAL(rdma_set_option(one, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
					sizeof(on)),
			0);
	CU_ASSERT_EQUAL(rdma_set_option(two, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
					sizeof(on)),
			0);
	CU_ASSERT_EQUAL(bind_to(one, con_address(0)), 0);
	CU_ASSERT_EQUAL(bind_to(two, con_address(port_of(one))), 0);
	free_id(one);
	free_id(two);
}

static void options_are_checked(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	uint8_t tos = 8;

	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)),
			0);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, 999, &tos, sizeof(tos)), -1);
	CU_ASSERT_TRUE(errno == EINVAL || errno == ENOSYS);
	CU_ASSERT_EQUAL(rdma_set_option(id, 999, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)), -1);
	free_id(id);
}

static void resolving_gives_a_source(void)
{
	struct sockaddr_storage to = con_address(7471);
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
	CU_ASSERT_TRUE(con_comes(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CU_ASSERT_PTR_NOT_NULL(id->verbs);
	CU_ASSERT_EQUAL(rdma_get_local_addr(id)->sa_family, to.ss_family);
	CU_ASSERT_EQUAL(ntohs(rdma_get_dst_port(id)), 7471);
	CU_ASSERT_EQUAL(rdma_resolve_route(id, 2000), 0);
	CU_ASSERT_TRUE(con_comes(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	CU_ASSERT_TRUE(id->route.num_paths >= 1 && id->route.path_rec);
	free_id(id);
}

static void order_of_resolving(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	/* bound, because rdma-core dereferences a missing device */
	CU_ASSERT_EQUAL(bind_to(id, con_address(0)), 0);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_resolve_route(id, 2000), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_connect(id, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_accept(id, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	free_id(id);
}

static void address_information(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *info = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(info->ai_src_addr);
	CU_ASSERT_EQUAL(info->ai_src_len, sizeof(struct sockaddr_in));
	CU_ASSERT_EQUAL(((struct sockaddr_in *)(void *)info->ai_src_addr)->sin_port, htons(7471));
	CU_ASSERT_EQUAL(info->ai_port_space, RDMA_PS_TCP);
	CU_ASSERT_EQUAL(info->ai_qp_type, IBV_QPT_RC);
	rdma_freeaddrinfo(info);
	hints.ai_flags = RAI_NUMERICHOST;
	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(info->ai_dst_addr);
	CU_ASSERT_EQUAL(((struct sockaddr_in *)(void *)info->ai_dst_addr)->sin_addr.s_addr,
			htonl(INADDR_LOOPBACK));
	rdma_freeaddrinfo(info);
	CU_ASSERT_EQUAL(rdma_getaddrinfo("no number", "7471", &hints, &info), EAI_NONAME);
	CU_ASSERT_NOT_EQUAL(rdma_getaddrinfo(NULL, NULL, NULL, &info), 0);
}

static void any_event_has_text(void)
{
	int event;

	for (event = -1; event < 40; event++)
		CU_ASSERT_PTR_NOT_NULL(rdma_event_str((enum rdma_cm_event_type)event));
}

static const struct unit_test tests[] = {
	{ "bind to an address: device, port number and PD appear", binding_finds_the_device },
	{ "bind to the wildcard: no device", wildcard_finds_none },
	{ "listen without bind: a port of its own", listening_binds },
	{ "bind of a bound id: EINVAL", bound_once },
	{ "bind to an address of another host: EADDRNOTAVAIL (rxe: ENODEV)", foreign_address },
	{ "bind to a port in use: EADDRINUSE", port_in_use },
	{ "wildcard and address conflict on one port", wildcard_conflicts },
	{ "port spaces are separate", spaces_are_separate },
	{ "ports of sockets are separate", sockets_are_separate },
	{ "REUSEADDR: ids that do not listen share a port", address_is_shared_on_request },
	{ "set_option: known ones only", options_are_checked },
	{ "resolving: source address, device, path", resolving_gives_a_source },
	{ "calls out of order: EINVAL", order_of_resolving },
	{ "getaddrinfo converts", address_information },
	{ "any event has a text", any_event_has_text },
};

int main(int argc, char **argv)
{
	int status;

	if (!conform_open())
		return 77;
	status = unit_main("conform_cm_addr", tests, COUNT(tests), argc, argv);
	if (channel)
		rdma_destroy_event_channel(channel);
	return status;
}
