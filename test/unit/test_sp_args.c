/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the calls on service points, requests and SRQs, alone and with each later one. */
#include "test/unit/spoil.h"

static void run(const struct spoil_call *call)
{
	things_open();
	spoil_run(call);
	things_close();
}

/* ---- service points ---- */

struct sp_args {
	DAT_IA_HANDLE ia;
	DAT_CONN_QUAL qual, *qual_out;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_PSP_FLAGS flags;
	DAT_COMM comm_value, *comm;
	struct sockaddr_storage storage;
	struct sockaddr *address;
	DAT_HANDLE *sp;
};

static void sp_good(void *args)
{
	struct sp_args *a = args;

	*a = (struct sp_args){ .ia = things.ia,
			       .qual = 7020,
			       .qual_out = &things_out.qual,
			       .ep = things.ep,
			       .evd = things.requests,
			       .flags = DAT_PSP_CONSUMER_FLAG,
			       .comm_value = { .domain = AF_INET, .type = SOCK_STREAM },
			       .comm = &a->comm_value,
			       .address = (struct sockaddr *)&a->storage,
			       .sp = &things_out.handle };
	*(struct sockaddr_in *)&a->storage =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(7021) };
}

static DAT_RETURN psp_call(void *args)
{
	struct sp_args *a = args;

	return dat_psp_create(a->ia, a->qual, a->evd, a->flags, a->sp);
}

static DAT_RETURN psp_any_call(void *args)
{
	struct sp_args *a = args;

	return dat_psp_create_any(a->ia, a->qual_out, a->evd, a->flags, a->sp);
}

static void psp_undo(void *args)
{
	OK(dat_psp_free(*((struct sp_args *)args)->sp));
}

static DAT_RETURN rsp_call(void *args)
{
	struct sp_args *a = args;

	return dat_rsp_create(a->ia, a->qual, a->ep, a->evd, a->sp);
}

static void rsp_undo(void *args)
{
	OK(dat_rsp_free(*((struct sp_args *)args)->sp));
}

static DAT_RETURN csp_call(void *args)
{
	struct sp_args *a = args;

	return dat_csp_create(a->ia, a->comm, a->address, a->evd, a->sp);
}

static void csp_undo(void *args)
{
	OK(dat_csp_free(*((struct sp_args *)args)->sp));
}

SPOIL(sp_args, sp_bad_ia, a->ia = things.evd)
SPOIL(sp_args, sp_bad_evd, a->evd = things.evd)
SPOIL(sp_args, sp_no_output, a->sp = NULL)
SPOIL(sp_args, sp_bad_flags, a->flags = (DAT_PSP_FLAGS)2)
SPOIL(sp_args, sp_no_qual, a->qual = 0)
SPOIL(sp_args, sp_no_qual_out, a->qual_out = NULL)
SPOIL(sp_args, sp_bad_ep, a->ep = things.pz)
SPOIL(sp_args, sp_ep_state, a->ep = things.reserved)
SPOIL(sp_args, sp_no_comm, a->comm = NULL)
SPOIL(sp_args, sp_bad_comm, a->comm_value.type = SOCK_DGRAM)
SPOIL(sp_args, sp_no_address, a->address = NULL)
SPOIL(sp_args, sp_family, a->storage.ss_family = AF_INET6)
SPOIL(sp_args, sp_foreign, ((struct sockaddr_in *)&a->storage)->sin_addr.s_addr = htonl(0x08080808))

static const struct spoil_row psp_rows[] = {
	{ "ia", sp_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "evd", sp_bad_evd, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR), 3 },
	{ "no output", sp_no_output, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "flags", sp_bad_flags, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no qualifier", sp_no_qual, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
};

static const struct spoil_row psp_any_rows[] = {
	{ "ia", sp_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "evd", sp_bad_evd, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR), 3 },
	{ "no output", sp_no_output, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "flags", sp_bad_flags, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no qualifier", sp_no_qual_out, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
};

static const struct spoil_row rsp_rows[] = {
	{ "ia", sp_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "ep", sp_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 3 },
	{ "evd", sp_bad_evd, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR), 4 },
	{ "no output", sp_no_output, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "no qualifier", sp_no_qual, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "state", sp_ep_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 3 },
};

static const struct spoil_row csp_rows[] = {
	{ "ia", sp_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "evd", sp_bad_evd, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR), 4 },
	{ "no output", sp_no_output, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "no comm", sp_no_comm, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "no address", sp_no_address, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "comm", sp_bad_comm, E0(MODEL_NOT_SUPPORTED), 2 },
	{ "family", sp_family, E(INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED), 3 },
	{ "foreign", sp_foreign, E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE), 3 },
};

static const struct spoil_call psp = { "dat_psp_create", sizeof(struct sp_args),
				       sp_good,		 psp_call,
				       psp_undo,	 psp_rows,
				       COUNT(psp_rows) };
static const struct spoil_call psp_any = {
	"dat_psp_create_any", sizeof(struct sp_args), sp_good, psp_any_call, psp_undo,
	psp_any_rows,	      COUNT(psp_any_rows)
};
static const struct spoil_call rsp = { "dat_rsp_create", sizeof(struct sp_args),
				       sp_good,		 rsp_call,
				       rsp_undo,	 rsp_rows,
				       COUNT(rsp_rows) };
static const struct spoil_call csp = { "dat_csp_create", sizeof(struct sp_args),
				       sp_good,		 csp_call,
				       csp_undo,	 csp_rows,
				       COUNT(csp_rows) };

static void test_psp(void)
{
	run(&psp);
}
static void test_psp_any(void)
{
	run(&psp_any);
}
static void test_rsp(void)
{
	run(&rsp);
}
static void test_csp(void)
{
	run(&csp);
}

/* ---- requests: each good call uses one up ---- */

struct cr_args {
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_COUNT size;
	DAT_PVOID data;
};

static void cr_good(void *args)
{
	*(struct cr_args *)args = (struct cr_args){ .cr = things.cr, .ep = things.ep };
}

static DAT_RETURN accept_call(void *args)
{
	struct cr_args *a = args;

	return dat_cr_accept(a->cr, a->ep, a->size, a->data);
}

static void accept_undo(void *args)
{
	(void)args;
	OK(dat_ep_disconnect(things.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(rig_take(things.evd).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	OK(dat_ep_reset(things.ep));
	things.cr = things_request(things.psp);
}

static DAT_RETURN reject_call(void *args)
{
	struct cr_args *a = args;

	return dat_cr_reject(a->cr, a->size, a->data);
}

static void reject_undo(void *args)
{
	(void)args;
	things.cr = things_request(things.psp);
}

SPOIL(cr_args, cr_bad, a->cr = things.ep)
SPOIL(cr_args, cr_bad_ep, a->ep = things.cr)
SPOIL(cr_args, cr_no_ep, a->ep = DAT_HANDLE_NULL)
SPOIL(cr_args, cr_no_data, (a->size = 4, a->data = NULL))
SPOIL(cr_args, cr_negative, a->size = -1)
SPOIL(cr_args, cr_too_much, (a->size = 197, a->data = things_memory))
SPOIL(cr_args, cr_too_much_rejected, (a->size = 145, a->data = things_memory))
SPOIL(cr_args, cr_state, a->ep = things.reserved)

static const struct spoil_row accept_rows[] = {
	{ "cr", cr_bad, E(INVALID_HANDLE, INVALID_HANDLE_CR), 1 },
	{ "ep", cr_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 2 },
	{ "no ep", cr_no_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 2 },
	{ "no data", cr_no_data, E(INVALID_PARAMETER, INVALID_ARG4), 3 },
	{ "negative", cr_negative, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "too much", cr_too_much, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "state", cr_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 2 },
};

static const struct spoil_row reject_rows[] = {
	{ "cr", cr_bad, E(INVALID_HANDLE, INVALID_HANDLE_CR), 1 },
	{ "negative", cr_negative, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "too much", cr_too_much_rejected, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "no data", cr_no_data, E(INVALID_PARAMETER, INVALID_ARG3), 2 },
};

static const struct spoil_call accept_request = { "dat_cr_accept",   sizeof(struct cr_args),
						  cr_good,	     accept_call,
						  accept_undo,	     accept_rows,
						  COUNT(accept_rows) };
static const struct spoil_call reject_request = { "dat_cr_reject",   sizeof(struct cr_args),
						  cr_good,	     reject_call,
						  reject_undo,	     reject_rows,
						  COUNT(reject_rows) };

static void test_accept(void)
{
	run(&accept_request);
}
static void test_reject(void)
{
	run(&reject_request);
}

/* ---- shared receive queues ---- */

struct srq_args {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_SRQ_ATTR values, *attr;
	DAT_SRQ_HANDLE *srq;
};

static void srq_good(void *args)
{
	struct srq_args *a = args;

	*a = (struct srq_args){ things.ia,
				things.pz,
				{ .max_recv_dtos = 4, .max_recv_iov = 1 },
				&a->values,
				&things_out.handle };
}

static DAT_RETURN srq_call(void *args)
{
	struct srq_args *a = args;

	return dat_srq_create(a->ia, a->pz, a->attr, a->srq);
}

static void srq_undo(void *args)
{
	OK(dat_srq_free(*((struct srq_args *)args)->srq));
}

SPOIL(srq_args, srq_bad_ia, a->ia = things.evd)
SPOIL(srq_args, srq_no_pz, a->pz = DAT_HANDLE_NULL)
SPOIL(srq_args, srq_bad_pz, a->pz = things.evd)
SPOIL(srq_args, srq_no_output, a->srq = NULL)
SPOIL(srq_args, srq_no_attr, a->attr = NULL)
SPOIL(srq_args, srq_no_dtos, a->values.max_recv_dtos = 0)
SPOIL(srq_args, srq_negative, a->values.max_recv_dtos = -1)
SPOIL(srq_args, srq_no_iov, a->values.max_recv_iov = 0)
SPOIL(srq_args, srq_watermark, a->values.low_watermark = 1)
SPOIL(srq_args, srq_dtos, a->values.max_recv_dtos = 33)
SPOIL(srq_args, srq_iov, a->values.max_recv_iov = 4)

static const struct spoil_row srq_rows[] = {
	{ "ia", srq_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "no pz", srq_no_pz, E(INVALID_HANDLE, INVALID_HANDLE_PZ), 2 },
	{ "pz", srq_bad_pz, E(INVALID_HANDLE, INVALID_HANDLE_PZ), 2 },
	{ "no output", srq_no_output, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no attributes", srq_no_attr, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "no dtos", srq_no_dtos, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "negative", srq_negative, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "no iov", srq_no_iov, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "watermark", srq_watermark, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "dtos", srq_dtos, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "iov", srq_iov, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
};

static const struct spoil_call srq = { "dat_srq_create", sizeof(struct srq_args),
				       srq_good,	 srq_call,
				       srq_undo,	 srq_rows,
				       COUNT(srq_rows) };

static void test_srq(void)
{
	run(&srq);
}

static void test_srq_others(void)
{
	DAT_LMR_TRIPLET two[4] = { { 0x1000, 8, FAKE_LKEY }, { 0x2000, 8, FAKE_LKEY } };
	int i;

	things_open();
	IS(dat_srq_post_recv(things.srq, -1, two, (DAT_DTO_COOKIE){ 0 }),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_post_recv(things.srq, 4, two, (DAT_DTO_COOKIE){ 0 }),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_post_recv(things.srq, 4, NULL, (DAT_DTO_COOKIE){ 0 }),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_post_recv(things.srq, 1, NULL, (DAT_DTO_COOKIE){ 0 }),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	for (i = 0; i < 8; i++)
		OK(dat_srq_post_recv(things.srq, 2, two, (DAT_DTO_COOKIE){ 0 }));
	IS(dat_srq_post_recv(things.srq, 2, two, (DAT_DTO_COOKIE){ 0 }),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(dat_srq_resize(things.srq, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_resize(things.srq, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_resize(things.srq, 33), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_resize(things.srq, 7), E0(INVALID_STATE));
	OK(dat_srq_resize(things.srq, 8));
	IS(dat_srq_set_lw(things.srq, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_set_lw(things.srq, 9), E(INVALID_PARAMETER, INVALID_ARG2));
	things_close();
}

static const struct unit_test tests[] = {
	{ "psp_create: each check, alone and with each later one", test_psp },
	{ "psp_create_any: each check, alone and with each later one", test_psp_any },
	{ "rsp_create: each check, alone and with each later one", test_rsp },
	{ "csp create: each check, alone and with each later one", test_csp },
	{ "accept: each check, alone and with each later one", test_accept },
	{ "reject: each check, alone and with each later one", test_reject },
	{ "srq create: each check, alone and with each later one", test_srq },
	{ "post_recv and the other calls on SRQs: each check", test_srq_others },
};

UNIT_MAIN("sp_args", tests)
