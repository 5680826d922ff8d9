/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Internal header of the registry. */
#ifndef DAT_COMMON_REG_H
#define DAT_COMMON_REG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

/* Everything is compiled hidden but what the public headers declare. */
#pragma GCC visibility push(default)
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include "util/cancel.h"
/*
 * Providers look this function up by name. Translates an IA handle to the provider's pointer, or that pointer to the
 * handle.
 */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *other);
#pragma GCC visibility pop

/* The bits of DAT_DBG_TYPE. */
#define REG_LOG_ERROR	 0x01u
#define REG_LOG_GENERIC	 0x02u
#define REG_LOG_STATIC	 0x04u
#define REG_LOG_DYNAMIC	 0x08u
#define REG_LOG_PROVIDER 0x10u
#define REG_LOG_CONSUMER 0x20u

#define DAT_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

/* refused.c: returns INVALID_HANDLE with `subtype`, and logs the call if the log level asks for it. */
DAT_RETURN refused_handle(const char *call, DAT_RETURN_SUBTYPE subtype) __attribute__((cold));
#define bad_handle(subtype) refused_handle(__func__, subtype)

/*
 * registry_life.c: one mutex guards the static registry, the dynamic registry and the handle table. It is a
 * leaf lock: never held across dlopen, dlclose, a call to a provider or a diagnostic. All waiters use one condition
 * variable.
 */
void reg_lock(void);
void reg_unlock(void);
void reg_wait_locked(void);
void reg_wake_locked(void);

/*
 * Acquires the lock, and reads dat.conf on the first call. Fails after the library's destructor has run; the lock is
 * then not held.
 */
DAT_RETURN reg_enter(void);
bool reg_is_gone(void);

/* Serialises work that must be done without the registry lock, such as dlopen. */
struct turn {
	bool taken; /* registry lock; `by` too */
	pthread_t by;
};

bool turn_acquire_locked(struct turn *turn); /* waits; false: this thread has it already */
void turn_release_locked(struct turn *turn);
bool turn_is_mine_locked(const struct turn *turn);

/* conf.c: one record of dat.conf; the strings live until the sink returns. */
struct conf_record {
	DAT_PROVIDER_INFO info;
	const char *lib_path;
	const char *ia_params;
	bool for_kernel, nondefault; /* of a record that is not for programs */
};

struct conf_sink {
	void (*keep)(void *arg, const struct conf_record *record);
	void (*pass)(void *arg,
		     const struct conf_record *record); /* may be NULL; not for programs */
	void (*opened)(void *arg, const char *source);	/* may be NULL; before the first record */
	void *arg;
};

/* Modifies the text; text[len] must be writable. */
void conf_parse(char *text, size_t len, const char *source, const struct conf_sink *sink);

/*
 * conf_file.c: reads `only` if not NULL; else the first readable file of `places`; else, if none of them exists, the
 * built-in text.
 */
void conf_load(const char *only, const char *const *places, const struct conf_sink *sink);

/* Reads the file that DAT_OVERRIDE names, or else those of the system. */
void conf_load_usual(const struct conf_sink *sink);

/*
 * registry.c: static registry. Keys keep the order of the file; records of one key form a chain of
 * fallbacks.
 */
struct sr_lib {
	TAILQ_ENTRY(sr_lib) link;
	struct turn turn; /* one init or fini at a time, whatever the name */
	char path[];
};

struct sr_record {
	TAILQ_ENTRY(sr_record) link;
	struct sr_key *key;
	struct sr_lib *lib;
	bool is_two; /* a library of DAT 2.0, whatever version it registers; the loading thread's */
	void *dl;    /* registry lock from here on */
	DAT_PROVIDER_FINI_FUNC fini;
	unsigned refs;
	char ia_params[];
};

TAILQ_HEAD(sr_chain, sr_record);

struct sr_key {
	TAILQ_ENTRY(sr_key) link;
	DAT_PROVIDER_INFO info;
	struct turn turn; /* taken while a record of this key is loaded or unloaded */
	struct sr_chain chain;
};

struct sr_list {
	TAILQ_HEAD(, sr_key) keys;
	TAILQ_HEAD(, sr_lib) libs;
	char *source; /* the file; NULL if none could be read, or for want of memory */
};

/* Dynamic registry: what providers registered. */
struct dr_entry {
	TAILQ_ENTRY(dr_entry) link;
	DAT_PROVIDER_INFO info;
	DAT_IA_OPEN_FUNC ia_open;
	DAT_HANDLE_EXTENDEDOP_FUNC extended_op;
	struct sr_record *origin; /* its library; NULL: the program registered it */
	unsigned refs;		  /* registry lock */
};

TAILQ_HEAD(dr_list, dr_entry);

extern struct sr_list reg_static;
extern struct dr_list reg_dynamic;

void sr_list_init(struct sr_list *list);
void sr_list_add(struct sr_list *list, const struct conf_record *record);
void sr_list_free(struct sr_list *list);
struct sr_key *sr_find_locked(const DAT_PROVIDER_INFO *key);
struct dr_entry *dr_find_locked(const DAT_PROVIDER_INFO *key);
void dr_forget_locked(struct sr_record *origin);
bool reg_name_known_locked(const char *name);
bool reg_idle_locked(void);
void reg_fork_locked(void);

/* NULL is not a name, nor is one too long for DAT_PROVIDER_INFO. */
static inline bool name_is_valid(const char *name)
{
	return name && strnlen(name, DAT_NAME_MAX_LENGTH) < DAT_NAME_MAX_LENGTH;
}

/* match.c: the properties that the best candidate matched, in the order of the error subtypes. */
enum match_reach { MATCH_NOTHING, MATCH_NAME, MATCH_MAJOR, MATCH_MINOR, MATCH_THREAD_SAFETY };

struct match {
	const DAT_PROVIDER_INFO *wanted;
	const DAT_PROVIDER_INFO *best; /* the record that answers; NULL: none does */
	const DAT_PROVIDER_INFO *nearest;
	enum match_reach reach;
};

void match_offer(struct match *match, const DAT_PROVIDER_INFO *info);
DAT_RETURN match_status(const struct match *match);

/* Searches both registries for `wanted`, and sets the other members, valid while the lock is held. */
void reg_match_locked(struct match *match);

/* missing.c: describes why no record matched. */
#define REG_MISSING_MAX 700 /* a diagnostic is a line of 1024 bytes, and begins with the name */
void reg_missing_locked(const struct match *match, char text[REG_MISSING_MAX]);

/* loader.c: the references of an open IA to its provider and library. */
struct reg_hold {
	struct dr_entry *dr;
	struct sr_record *sr; /* NULL: registered by the program itself */
};

DAT_RETURN reg_acquire(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
		       DAT_BOOLEAN thread_safe, struct reg_hold *hold);
void reg_release(const struct reg_hold *hold);
struct sr_record *reg_loading(void); /* the record whose library this thread is loading */

/* api_ext.c */
bool ext_none_open_locked(void);
void ext_fork_locked(void);

#endif
