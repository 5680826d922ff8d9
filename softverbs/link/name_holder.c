/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Finds the user that has bound an abstract name. Every user can bind any name, so a name in use may be
 * another user's; sock_diag(7) reports the user to all processes. */
#include <stdint.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "softverbs/link/name_holder.h"

#ifndef UDIAG_SHOW_UID
#define UDIAG_SHOW_UID 0x40 /* Linux 5.3 */
#define UNIX_DIAG_UID  7
#endif

#define REPLY_SIZE 32768 /* limit of one message of the kernel */

static int diag_ask(void)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req body;
	} ask = {
		.header = { .nlmsg_len = sizeof(ask),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = AF_UNIX,
			  .udiag_states = UINT32_MAX,
			  .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd >= 0 && send(fd, &ask, sizeof(ask), 0) != sizeof(ask)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* True if the message describes a socket of the name and contains its user, which is stored in `uid`. */
static bool diag_matches(const struct nlmsghdr *header, const struct sockaddr_un *name,
			 size_t length, uid_t *uid)
{
	const struct unix_diag_msg *body = NLMSG_DATA(header);
	const struct rtattr *attr = (const struct rtattr *)(body + 1);
	int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*body)));
	bool named = false, has_uid = false;

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == UNIX_DIAG_NAME)
			named = RTA_PAYLOAD(attr) == length &&
				!memcmp(RTA_DATA(attr), name->sun_path, length);
		if (attr->rta_type == UNIX_DIAG_UID && RTA_PAYLOAD(attr) == sizeof(*uid)) {
			memcpy(uid, RTA_DATA(attr), sizeof(*uid));
			has_uid = true;
		}
	}
	return named && has_uid;
}

/* Returns 1 if found, 0 if more messages follow, -1 at the end. */
static int diag_search(const char *reply, ssize_t size, const struct sockaddr_un *name,
		       size_t length, uid_t *uid)
{
	const struct nlmsghdr *header = (const void *)reply;
	unsigned left = (unsigned)size;

	for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return -1; /* NLMSG_DONE, NLMSG_ERROR */
		if (diag_matches(header, name, length, uid))
			return 1;
	}
	return 0;
}

bool sv_name_holder(const struct sockaddr_un *name, size_t length, uid_t *uid)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_SIZE];
	int fd = diag_ask(), found = fd < 0 ? -1 : 0;
	ssize_t size;

	while (!found) {
		size = recv(fd, reply, sizeof(reply), 0);
		found = size <= 0 ? -1 : diag_search(reply, size, name, length, uid);
	}
	if (fd >= 0)
		close(fd);
	return found == 1;
}
