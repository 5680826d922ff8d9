/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each call of the event extension, with arguments of the declared types, in every edition of C and C++. */
#include <dat2/dat_event_extensions.h>

#if !defined(DAT_EV_VERSION) || !defined(DAT_EVD_GET_FD) || !defined(DAT_EVD_ARM) ||              \
	!defined(DAT_EVD_DEQUEUE_N) || !defined(DAT_EVD_PENDING) || !defined(DAT_EVD_SIGNAL) ||   \
	!defined(DAT_EVD_WAIT_POLICY) || !defined(DAT_CNO_GET_FD) || !defined(DAT_CNO_ARM) ||     \
	!defined(DAT_CNO_SIGNAL) || !defined(DAT_CNO_POLL) || !defined(DAT_CNO_GET_POLLFDS) ||    \
	!defined(DAT_TRYWAIT) || !defined(DAT_WAIT_MEM) || !defined(DAT_PSET_CREATE) ||           \
	!defined(DAT_PSET_ADD) || !defined(DAT_PSET_DEL) || !defined(DAT_PSET_POLL) ||            \
	!defined(DAT_PSET_FREE)
#error a program cannot ask for it with #ifdef
#endif

extern DAT_RETURN evd_calls(DAT_EVD_HANDLE evd, DAT_EVENT *events, int *fd);
extern DAT_RETURN cno_calls(DAT_CNO_HANDLE cno, DAT_EV_POLLFDS *pollfds, int *fd);
extern DAT_RETURN ia_calls(DAT_IA_HANDLE ia, DAT_HANDLE *handles, DAT_UINT64 *word);
extern DAT_RETURN pset_calls(DAT_HANDLE pset, DAT_EVD_HANDLE *evds);

DAT_RETURN evd_calls(DAT_EVD_HANDLE evd, DAT_EVENT *events, int *fd)
{
	DAT_RETURN (*wake)(DAT_EVD_HANDLE) = DAT_EVD_SIGNAL;
	DAT_COUNT n;

	DAT_EVD_GET_FD(evd, fd);
	DAT_EVD_ARM(evd, 0, 1);
	DAT_EVD_ARM(evd, DAT_EV_ARM_SOLICITED, 1);
	DAT_EVD_DEQUEUE_N(evd, 32, events, &n);
	DAT_EVD_PENDING(evd, &n);
	DAT_EVD_WAIT_POLICY(evd, DAT_EV_WAIT_BLOCK, 20);
	return wake(evd);
}

DAT_RETURN cno_calls(DAT_CNO_HANDLE cno, DAT_EV_POLLFDS *pollfds, int *fd)
{
	DAT_EVD_HANDLE evds[4];
	DAT_COUNT n;

	DAT_CNO_GET_FD(cno, fd);
	DAT_CNO_ARM(cno, 0);
	DAT_CNO_SIGNAL(cno);
	DAT_CNO_GET_POLLFDS(cno, pollfds);
	return DAT_CNO_POLL(cno, 4, evds, &n);
}

DAT_RETURN ia_calls(DAT_IA_HANDLE ia, DAT_HANDLE *handles, DAT_UINT64 *word)
{
	DAT_UINT32 major, minor;
	DAT_COUNT busy;

	DAT_EV_VERSION(ia, &major, &minor);
	DAT_TRYWAIT(ia, handles, 2, &busy);
	DAT_TRYWAIT(ia, handles, 2, NULL);
	return DAT_WAIT_MEM(ia, word, 1, 0, DAT_TIMEOUT_INFINITE);
}

DAT_RETURN pset_calls(DAT_HANDLE pset, DAT_EVD_HANDLE *evds)
{
	DAT_HANDLE other;
	DAT_COUNT n;

	DAT_PSET_CREATE(pset, &other);
	DAT_PSET_ADD(pset, evds[0]);
	DAT_PSET_DEL(pset, evds[0]);
	DAT_PSET_POLL(pset, 1, evds, &n);
	return DAT_PSET_FREE(pset);
}
