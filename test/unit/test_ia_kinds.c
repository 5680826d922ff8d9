/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Devices with fewer features: their attributes say so, and the calls that need a missing feature
 * fail; IPv6 addresses.
 */
#include <arpa/inet.h>
#include <dat2/dat_event_extensions.h>
#include "test/unit/spoil.h"

static DAT_IA_ATTR ia_attr;
static DAT_PROVIDER_ATTR provider_attr;

static const char *named(const char *name)
{
	DAT_COUNT i;

	for (i = 0; i < provider_attr.num_provider_specific_attr; i++)
		if (!strcmp(provider_attr.provider_specific_attr[i].name, name))
			return provider_attr.provider_specific_attr[i].value;
	return "absent";
}

static struct rig rig;

static void open_altered(void (*alter)(struct ib_device *device))
{
	DAT_EP_ATTR attr = rig_attr();

	fake.alter = alter;
	fake.datagrams = true;
	rig_open(&rig, &attr);
	MUST(dat_ia_query(rig.ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL,
			  &provider_attr));
}

static void close_altered(void)
{
	rig_close(&rig);
	fake.alter = NULL;
	fake.datagrams = false;
}

/* ---- features that a device may lack ---- */

#define LACK(name, statement)                                \
	static void without_##name(struct ib_device *device) \
	{                                                    \
		struct ib_attr *a = &device->attr;           \
		statement;                                   \
	}
LACK(zero_based, a->zero_based = false)
LACK(atomics, a->atomics = false)
LACK(type1, a->mw_type1 = false)
LACK(type2, a->mw_type2 = a->mem_extensions = false)
LACK(srq, a->max_srq = a->max_srq_wr = a->max_srq_sge = 0)
LACK(datagrams, a->datagrams = false)

#define CLAIM(name, expression)         \
	static bool claims_##name(void) \
	{                               \
		return expression;      \
	}
CLAIM(zero_based, ia_attr.zb_supported)
CLAIM(add, !strcmp(named(DAT_IB_ATTR_FETCH_AND_ADD), "TRUE"))
CLAIM(swap, !strcmp(named(DAT_IB_ATTR_CMP_AND_SWAP), "TRUE"))
CLAIM(type1, provider_attr.rmr_scope_supported != DAT_RMR_SCOPE_EP)
CLAIM(type2, provider_attr.rmr_scope_supported != DAT_RMR_SCOPE_PZ)
CLAIM(srq, provider_attr.srq_supported &&ia_attr.max_srqs &&ia_attr.max_ep_per_srq &&ia_attr
		   .max_recv_per_srq)
CLAIM(datagrams, !strcmp(named(DAT_IB_ATTR_UD), "TRUE"))

static DAT_RETURN lmr_of(DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE type)
{
	DAT_REGION_DESCRIPTION region = { .for_va = things_memory };
	DAT_LMR_HANDLE lmr;
	DAT_RETURN status = dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, rig.pz,
					   privileges, type, &lmr, NULL, NULL, NULL, NULL);

	if (status == DAT_SUCCESS)
		MUST(dat_lmr_free(lmr));
	return status;
}

static DAT_RETURN call_zero_based(void)
{
	return lmr_of(DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB);
}
static DAT_RETURN call_region_for_atomics(void)
{
	return lmr_of((DAT_MEM_PRIV_FLAGS)((unsigned)DAT_MEM_PRIV_ALL_FLAG |
					   DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
		      DAT_VA_TYPE_VA);
}

static DAT_LMR_TRIPLET local = { 0x1000, 8, FAKE_LKEY };
static DAT_RMR_TRIPLET remote = { 0x5000, 8, 0x99 };
static const DAT_DTO_COOKIE cookie = { .as_64 = 7 };

static DAT_RETURN call_add(void)
{
	return dat_ib_post_fetch_and_add(rig.ep, 1, &local, cookie, &remote, 0);
}
static DAT_RETURN call_swap(void)
{
	return dat_ib_post_cmp_and_swap(rig.ep, 1, 2, &local, cookie, &remote, 0);
}
static DAT_RETURN call_invalidate(void)
{
	return dat_ep_post_send_with_invalidate(rig.ep, 1, &local, cookie, 0, DAT_TRUE, 1);
}

static DAT_RETURN freed(DAT_RETURN status, DAT_RETURN (*end)(DAT_HANDLE), DAT_HANDLE object)
{
	if (status == DAT_SUCCESS)
		MUST(end(object));
	return status;
}

static DAT_RETURN call_rmr(void)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
	DAT_RETURN status = dat_rmr_create(rig.pz, &rmr);

	return freed(status, dat_rmr_free, rmr);
}

static DAT_RETURN call_rmr_for_ep(void)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
	DAT_RETURN status = dat_rmr_create_for_ep(rig.pz, &rmr);

	return freed(status, dat_rmr_free, rmr);
}

static DAT_RETURN call_srq(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	DAT_RETURN status = dat_srq_create(rig.ia, rig.pz, &attr, &srq);

	return freed(status, dat_srq_free, srq);
}

static DAT_RETURN call_datagrams(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_RETURN status;

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	status = dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &ep);
	return freed(status, dat_ep_free, ep);
}

static const struct {
	const char *name;
	void (*without)(struct ib_device *device);
	bool (*claims)(void);
	DAT_RETURN (*call)(void);
} features[] = {
	{ "zero-based regions", without_zero_based, claims_zero_based, call_zero_based },
	{ "regions for atomics", without_atomics, claims_add, call_region_for_atomics },
	{ "fetch and add", without_atomics, claims_add, call_add },
	{ "compare and swap", without_atomics, claims_swap, call_swap },
	{ "RMRs of a PZ", without_type1, claims_type1, call_rmr },
	{ "RMRs of an EP", without_type2, claims_type2, call_rmr_for_ep },
	{ "sends that invalidate", without_type2, claims_type2, call_invalidate },
	{ "SRQs", without_srq, claims_srq, call_srq },
	{ "datagrams", without_datagrams, claims_datagrams, call_datagrams },
};

static void test_features(void)
{
	DAT_RETURN status;
	size_t i;

	for (i = 0; i < COUNT(features); i++) {
		open_altered(NULL);
		rig_connect(&rig);
		CU_ASSERT_TRUE(features[i].claims());
		status = features[i].call();
		if (status != DAT_SUCCESS)
			printf("%s: 0x%x\n", features[i].name, status);
		CU_ASSERT_EQUAL(status, DAT_SUCCESS);
		close_altered();
		open_altered(features[i].without);
		rig_connect(&rig);
		CU_ASSERT_FALSE(features[i].claims());
		status = features[i].call();
		if (status != E0(MODEL_NOT_SUPPORTED))
			printf("without %s: 0x%x\n", features[i].name, status);
		CU_ASSERT_EQUAL(status, E0(MODEL_NOT_SUPPORTED));
		close_altered();
	}
}

/* Features that no device has are never in the attributes. */
static void test_never(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 1 };
	DAT_SRQ_HANDLE srq;

	open_altered(NULL);
	CU_ASSERT_EQUAL(provider_attr.dat_qos_supported, DAT_QOS_BEST_EFFORT);
	IS(dat_ep_connect(rig.ep, ia_attr.ia_address_ptr, 7, 1000, 0, NULL, DAT_QOS_HIGH_THROUGHPUT,
			  0),
	   E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_FALSE(provider_attr.supports_multipath);
	IS(dat_ep_connect(rig.ep, ia_attr.ia_address_ptr, 7, 1000, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_MULTIPATH_FLAG),
	   E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_EQUAL(provider_attr.ep_recv_info_supported, 0);
	IS(dat_ep_set_watermark(rig.ep, 1, DAT_WATERMARK_INFINITE), E0(MODEL_NOT_SUPPORTED));
	IS(dat_srq_create(rig.ia, rig.pz, &srq_attr, &srq), E(INVALID_PARAMETER, INVALID_ARG3));
	close_altered();
}

/* ---- iWARP: none of the extensions ---- */

static void iwarp(struct ib_device *device)
{
	device->attr.iwarp = true;
}

static void test_iwarp(void)
{
	open_altered(iwarp);
	CU_ASSERT_EQUAL(ia_attr.extension_supported, DAT_EXTENSION_NONE);
	CU_ASSERT_EQUAL(ia_attr.extension_version, 0);
	CU_ASSERT_STRING_EQUAL(named("DAT_EXTENSION_INTERFACE"), "FALSE");
	CU_ASSERT_STRING_EQUAL(named(DAT_IB_ATTR_IMMED_DATA), "FALSE");
	CU_ASSERT_STRING_EQUAL(named(DAT_EV_ATTR_EXTENSION), "absent");
	CU_ASSERT_TRUE(provider_attr.rdma_write_for_rdma_read_req);
	rig_connect(&rig);
	IS(dat_ib_post_rdma_write_immed(rig.ep, 1, &local, cookie, &remote, 1, 0),
	   E0(NOT_IMPLEMENTED));
	OK(dat_ep_post_rdma_write(rig.ep, 1, &local, cookie, &remote, 0));
	close_altered();
}

/* ---- numbers and names ---- */

static unsigned port_state;

static void in_state(struct ib_device *device)
{
	device->attr.port_state = (uint8_t)port_state;
}
static void endless(struct ib_device *device)
{
	device->attr.max_qp = device->attr.max_mr = device->attr.max_pd = UINT32_MAX;
}

static void test_numbers(void)
{
	static const char *const states[] = { "NOP",	"DOWN",	 "INIT",    "ARMED",
					      "ACTIVE", "DEFER", "UNKNOWN", "UNKNOWN" };

	for (port_state = 0; port_state < COUNT(states); port_state++) {
		open_altered(in_state);
		CU_ASSERT_STRING_EQUAL(named("DAT_IB_PORT_STATUS"), states[port_state]);
		close_altered();
	}
	open_altered(endless); /* more than a DAT_COUNT can hold */
	CU_ASSERT_EQUAL(ia_attr.max_eps, INT32_MAX);
	CU_ASSERT_EQUAL(ia_attr.max_lmrs, INT32_MAX);
	CU_ASSERT_EQUAL(ia_attr.max_pzs, INT32_MAX);
	close_altered();
}

/* ---- IPv6 ---- */

static void on_ipv6(struct ib_device *device)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	memset(&device->address, 0, sizeof(device->address));
	memcpy(&device->address, &six, sizeof(six));
}

static struct sockaddr *six(const char *text, uint16_t port)
{
	static struct sockaddr_in6 address;

	address = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	CU_ASSERT_EQUAL(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
	return (struct sockaddr *)&address;
}

static DAT_RETURN connect_to(struct sockaddr *address)
{
	return dat_ep_connect(rig.ep, address, 1234, 1000000, 0, NULL, DAT_QOS_BEST_EFFORT, 0);
}

static void test_connect_ipv6(void)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 *where;
	DAT_EP_PARAM param;

	open_altered(on_ipv6);
	CU_ASSERT_EQUAL(ia_attr.ia_address_ptr->sa_family, AF_INET6);
	IS(connect_to((struct sockaddr *)&four), E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE));
	IS(connect_to(six("ff02::1", 0)), E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED));
	IS(dat_ep_common_connect(rig.ep, six("2001:db8::5", 0), 1000000, 0, NULL),
	   E(INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED));
	OK(connect_to(six("2001:db8::5", 99))); /* the qualifier replaces the port */
	rig_establish();
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &param));
	where = (const struct sockaddr_in6 *)(const void *)param.remote_ia_address_ptr;
	CU_ASSERT_EQUAL(where->sin6_family, AF_INET6);
	CU_ASSERT_EQUAL(ntohs(where->sin6_port), 1234);
	CU_ASSERT_EQUAL(memcmp(&where->sin6_addr,
			       &((struct sockaddr_in6 *)six("2001:db8::5", 0))->sin6_addr, 16),
			0);
	close_altered();
}

static void test_listen_ipv6(void)
{
	DAT_COMM comm = { .domain = AF_INET6, .type = SOCK_STREAM },
		 other = { .domain = AF_INET, .type = SOCK_STREAM };
	const char *const good[] = { "::", "::1" };
	DAT_EVD_HANDLE requests;
	DAT_CSP_HANDLE csp;
	size_t i;

	open_altered(on_ipv6);
	requests = rig_evd(&rig, RIG_QLEN, DAT_EVD_CR_FLAG);
	for (i = 0; i < COUNT(good); i++) {
		OK(dat_csp_create(rig.ia, &comm, six(good[i], 7300), requests, &csp));
		CU_ASSERT_EQUAL(((struct dapl_sp *)csp)->kind, OBJ_CSP);
		OK(dat_csp_free(csp));
	}
	IS(dat_csp_create(rig.ia, &comm, six("2001:db8::5", 7300), requests, &csp),
	   E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE));
	IS(dat_csp_create(rig.ia, &other, six("::1", 7300), requests, &csp),
	   E(INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED));
	MUST(dat_evd_free(requests));
	close_altered();
}

/* ---- a registry that does not check handles: the provider does ---- */

static void test_handles(void)
{
	const DAT_OS_WAIT_PROXY_AGENT no_agent = { NULL, NULL };
	const DAT_RETURN bad = E(INVALID_HANDLE, INVALID_HANDLE_IA);
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
	union things_out *o = &things_out;
	const DAT_PROVIDER *p;
	struct things *t = &things;

	things_open();
	p = *(const DAT_PROVIDER *const *)t->ep;
	IS(p->ia_query_func(t->ep, NULL, DAT_IA_FIELD_ALL, &o->ia, 0, NULL), bad);
	IS(p->ia_close_func(t->ep, DAT_CLOSE_ABRUPT_FLAG), bad);
	IS(p->ia_ha_related_func(t->ep, (DAT_NAME_PTR)(uintptr_t) "fake", &o->idle[0]), bad);
	IS(p->ia_ha_related_func(rig_inside(t->ia), (DAT_NAME_PTR)(uintptr_t) "fake", NULL),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(p->ia_ha_related_func(rig_inside(t->ia), (DAT_NAME_PTR)(uintptr_t) "unknown",
				 &o->idle[0]),
	   E(INVALID_PARAMETER, INVALID_ARG1));
	IS(p->cno_create_func(t->ep, no_agent, &o->handle), bad);
	IS(p->cno_fd_create_func(t->ep, &o->fd, &o->handle), bad);
	IS(p->evd_create_func(t->ep, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &o->handle), bad);
	IS(p->pz_create_func(t->ep, &o->handle), bad);
	IS(p->lmr_create_func(t->ep, DAT_MEM_TYPE_VIRTUAL,
			      (DAT_REGION_DESCRIPTION){ .for_va = things_memory }, 64, t->pz,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &o->handle, NULL, NULL, NULL,
			      NULL),
	   bad);
	IS(p->lmr_sync_rdma_read_func(t->ep, &local, 1), bad);
	IS(p->lmr_sync_rdma_write_func(t->ep, &local, 1), bad);
	IS(p->ep_create_func(t->ep, t->pz, t->rig.recv, t->rig.request, t->evd, NULL, &o->handle),
	   bad);
	IS(p->psp_create_func(t->ep, 7400, t->requests, DAT_PSP_CONSUMER_FLAG, &o->handle), bad);
	IS(p->psp_create_any_func(t->ep, &o->qual, t->requests, DAT_PSP_CONSUMER_FLAG, &o->handle),
	   bad);
	IS(p->rsp_create_func(t->ep, 7400, t->ep, t->requests, &o->handle), bad);
	IS(p->csp_create_func(t->ep, &comm, t->address, t->requests, &o->handle), bad);
	IS(p->srq_create_func(t->ep, t->pz, &srq, &o->handle), bad);
	CU_ASSERT_TRUE(things_untouched());
	things_close();
}

/* ---- a name is registered, removed and registered again ---- */

static DAT_RETURN open_again(DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open((char *)(uintptr_t) "again", 8, &async, ia);
}

static void test_names(void)
{
	const DAT_PROVIDER_INFO info = { .ia_name = "again", .dapl_version_major = 2 };
	const DAT_PROVIDER_INFO nameless = { .dapl_version_major = 2 };
	const char *const params[] = { NULL, "fake0 1" };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	size_t i;

	for (i = 0; i < COUNT(params); i++) {
		dat_provider_init(&info, params[i]);
		MUST(open_again(&ia));
		OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
		dat_provider_fini(&info);
		IS(open_again(&ia), E(PROVIDER_NOT_FOUND, NAME_NOT_REGISTERED));
		IS(dapl_ia_open((char *)(uintptr_t) "again", 8, &async, &ia),
		   E(INVALID_PARAMETER, INVALID_ARG1));
		dat_provider_fini(&info); /* a second removal has no effect */
	}
	dat_provider_init(&nameless, "fake0 1"); /* the registry refuses the name */
	IS(dapl_ia_open((char *)(uintptr_t) "", 8, &async, &ia),
	   E(INVALID_PARAMETER, INVALID_ARG1));
}

static const struct unit_test tests[] = {
	{ "a feature that a device lacks is missing in the attributes and refused in calls",
	  test_features },
	{ "features that no device has are never in the attributes", test_never },
	{ "iWARP has no extensions", test_iwarp },
	{ "each state of a port has a name; numbers that are too large are cut", test_numbers },
	{ "an endpoint can connect to an address of IPv6", test_connect_ipv6 },
	{ "a service point can listen on an address of IPv6", test_listen_ipv6 },
	{ "an object of another kind in the place of the IA is refused without the registry's "
	  "check",
	  test_handles },
	{ "a provider registers, unregisters and registers again; a nameless one is refused",
	  test_names },
};

UNIT_MAIN("ia_kinds", tests)
