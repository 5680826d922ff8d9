/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A table of the LMRs of the process, by context. DAT 1.2 binds an RMR to an LMR given by context, DAT 2.0 to one given
 * by handle. Contexts are unique within an IA only. Not used on the data path.
 */
#include <pthread.h>
#include "dat/one/one.h"

#define CHAINS 256u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lmr_entry *chains[CHAINS]; /* the mutex */

/* Mixes lower and upper bits, since devices increment contexts in either. */
static struct lmr_entry **chain_of(DAT_LMR_CONTEXT context)
{
	return &chains[(context ^ context >> 8 ^ context >> 16 ^ context >> 24) % CHAINS];
}

void lmr_table_add(struct lmr_entry *entry)
{
	struct lmr_entry **chain = chain_of(entry->context);

	pthread_mutex_lock(&mutex);
	entry->next = *chain;
	*chain = entry;
	pthread_mutex_unlock(&mutex);
}

DAT_LMR_HANDLE lmr_table_find(DAT_IA_HANDLE asked_ia, DAT_LMR_CONTEXT context)
{
	const struct lmr_entry *entry;
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	pthread_mutex_lock(&mutex);
	for (entry = *chain_of(context); entry && !lmr; entry = entry->next)
		if (entry->context == context && entry->asked_ia == asked_ia)
			lmr = entry->lmr;
	pthread_mutex_unlock(&mutex);
	return lmr;
}

struct lmr_entry *lmr_table_take(DAT_LMR_HANDLE lmr, DAT_LMR_CONTEXT context)
{
	struct lmr_entry **link, *entry;

	pthread_mutex_lock(&mutex);
	for (link = chain_of(context); (entry = *link); link = &entry->next)
		if (entry->lmr == lmr) {
			*link = entry->next;
			break;
		}
	pthread_mutex_unlock(&mutex);
	return entry;
}

struct lmr_entry *lmr_table_take_ia(DAT_IA_HANDLE ia)
{
	struct lmr_entry *taken = NULL, **link, *entry;
	unsigned i;

	pthread_mutex_lock(&mutex);
	for (i = 0; i < CHAINS; i++)
		for (link = &chains[i]; (entry = *link);) {
			if (entry->ia != ia) {
				link = &entry->next;
				continue;
			}
			*link = entry->next;
			entry->next = taken;
			taken = entry;
		}
	pthread_mutex_unlock(&mutex);
	return taken;
}

/* ---- The mutex is held across a fork, so that the child gets a consistent table ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void table_begin(void)
{
	if (pthread_atfork(before_fork, after_fork, after_fork))
		log_at(LOG_ERROR, "pthread_atfork failed: do not use DAT in a child process");
}
