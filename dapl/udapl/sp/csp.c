/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common service points: they listen on a socket address and use its port unchanged. */
#include <string.h>
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/sp/sp.h"

/* The connection manager has streams over IP, with the constants of TCP sockets. */
static bool comm_supported(const DAT_COMM *comm)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) && comm->type == SOCK_STREAM &&
	       (!comm->protocol || comm->protocol == IPPROTO_TCP);
}

static bool is_wildcard_or(const struct sockaddr *given, const struct sockaddr *own)
{
	const struct sockaddr_in6 *given6 = (const void *)given, *own6 = (const void *)own;
	const struct sockaddr_in *given4 = (const void *)given, *own4 = (const void *)own;

	if (given->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&given6->sin6_addr) ||
		       !memcmp(&given6->sin6_addr, &own6->sin6_addr, sizeof(own6->sin6_addr));
	return given4->sin_addr.s_addr == htonl(INADDR_ANY) ||
	       given4->sin_addr.s_addr == own4->sin_addr.s_addr;
}

/* An IA listens on its own address; the wildcard address stands for it. */
static DAT_RETURN address_check(const struct dapl_ia *ia, const DAT_COMM *comm,
				const struct sockaddr *address)
{
	const struct sockaddr *own = ib_device_address(ia->device);

	if (address->sa_family != comm->domain)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	if (address->sa_family != own->sa_family || !is_wildcard_or(address, own))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	return DAT_SUCCESS;
}

static uint16_t port_of(const struct sockaddr *address)
{
	struct sockaddr_storage copy = { .ss_family = address->sa_family };

	memcpy(&copy, address,
	       address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in));
	return ib_cm.port_get(&copy);
}

DAT_RETURN dapl_csp_create(DAT_IA_HANDLE ia_given, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_given, DAT_CSP_HANDLE *handle)
{
	struct dapl_ia *ia = ia_from(ia_given);
	struct dapl_evd *evd = evd_from(evd_given);
	struct dapl_sp *csp;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!comm)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!address)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!comm_supported(comm))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	status = address_check(ia, comm, address);
	if (status != DAT_SUCCESS)
		return status;

	csp = sp_new(ia, OBJ_CSP, evd, &status);
	if (!csp)
		return status;
	csp->comm = *comm;
	status = sp_listen(csp, port_of(address), handle);
	if (status != DAT_SUCCESS)
		sp_destroy(csp);
	else
		ib_listener_address(csp->listener, &csp->address);
	return status;
}

DAT_RETURN dapl_csp_query(DAT_CSP_HANDLE handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	struct dapl_sp *csp = csp_from(handle);

	if (!csp)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~(unsigned)DAT_CSP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*param = (DAT_CSP_PARAM){
		.ia_handle = ia_handle(csp->obj.ia),
		.comm = &csp->comm,
		.address_ptr = (DAT_IA_ADDRESS_PTR)&csp->address,
		.evd_handle = csp->evd,
	};
	return DAT_SUCCESS;
}

DAT_RETURN dapl_csp_free(DAT_CSP_HANDLE handle)
{
	return sp_free(csp_from(handle), DAT_INVALID_HANDLE_CSP);
}
