/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The lock of the registry, its initialisation on first use, and its end in the destructor. */
#include <stdlib.h>
#include "dat/common/handle.h"
#include "util/log.h"

enum life { LIFE_NEW, LIFE_READY, LIFE_GONE };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum life life; /* registry lock */
static struct turn reading;

void reg_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void reg_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

void reg_wait_locked(void)
{
	pthread_cond_wait(&changed, &mutex);
}

void reg_wake_locked(void)
{
	pthread_cond_broadcast(&changed);
}

bool turn_is_mine_locked(const struct turn *turn)
{
	return turn->taken && pthread_equal(turn->by, pthread_self());
}

bool turn_acquire_locked(struct turn *turn)
{
	if (turn_is_mine_locked(turn))
		return false;
	while (turn->taken)
		reg_wait_locked();
	turn->taken = true;
	turn->by = pthread_self();
	return true;
}

void turn_release_locked(struct turn *turn)
{
	turn->taken = false;
	reg_wake_locked();
}

static void keep_record(void *list, const struct conf_record *record)
{
	sr_list_add(list, record);
}

static void keep_source(void *list, const char *source)
{
	((struct sr_list *)list)->source = strdup(source);
}

/*
 * Reads into a separate list, so that a fork or an exit during the read finds the registry empty, not partly filled.
 */
static void read_conf(struct sr_list *list)
{
	const struct conf_sink sink = { .keep = keep_record, .opened = keep_source, .arg = list };
	unsigned mask;

	log_open("libdat2", REG_LOG_ERROR, LOG_TO_STDERR);
	mask = log_env("DAT_DBG_TYPE", REG_LOG_ERROR);
	log_open("libdat2", mask, log_env("DAT_DBG_DEST", LOG_TO_STDERR));
	log_at(REG_LOG_GENERIC, "registry of DAT %d.%d", DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
	conf_load_usual(&sink);
}

static void become_ready_locked(void)
{
	struct sr_list list;

	sr_list_init(&list);
	reg_unlock();
	read_conf(&list);
	reg_lock();
	if (life == LIFE_NEW) {
		TAILQ_CONCAT(&reg_static.keys, &list.keys, link);
		TAILQ_CONCAT(&reg_static.libs, &list.libs, link);
		reg_static.source = list.source;
		list.source = NULL;
		life = LIFE_READY;
	}
	sr_list_free(&list);
}

DAT_RETURN reg_enter(void)
{
	reg_lock();
	if (life == LIFE_NEW && turn_acquire_locked(&reading)) {
		if (life == LIFE_NEW)
			become_ready_locked();
		turn_release_locked(&reading);
	}
	if (life == LIFE_GONE) {
		reg_unlock();
		return DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	}
	return DAT_SUCCESS;
}

bool reg_is_gone(void)
{
	bool gone;

	reg_lock();
	gone = life == LIFE_GONE;
	reg_unlock();
	return gone;
}

/*
 * Only the forking thread exists in the child: the turns that other threads held, and their waiters, are cleared.
 */
static void after_fork_in_child(void)
{
	changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	reading.taken = turn_is_mine_locked(&reading);
	reg_fork_locked();
	ia_fork_locked();
	ext_fork_locked();
	reg_unlock();
}

__attribute__((constructor)) static void life_begin(void)
{
	if (pthread_atfork(reg_lock, reg_unlock, after_fork_in_child))
		log_at(REG_LOG_ERROR, "pthread_atfork failed: do not use DAT in a child process");
}

/*
 * IAs that are still open keep their providers, since their owners may run after this; registry functions then fail.
 */
__attribute__((destructor)) static void life_end(void)
{
	struct dr_entry *entry;

	reg_lock();
	life = LIFE_GONE;
	if (!reading.taken && reg_idle_locked() && ia_none_live_locked() &&
	    ext_none_open_locked()) {
		while ((entry = TAILQ_FIRST(&reg_dynamic))) {
			TAILQ_REMOVE(&reg_dynamic, entry, link);
			free(entry);
		}
		sr_list_free(&reg_static);
		ia_table_free_locked();
	}
	reg_wake_locked();
	reg_unlock();
}
