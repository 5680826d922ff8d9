/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Loads a provider library for the first open IA of a name, and unloads it after the last one is closed. */
#include <dlfcn.h>
#include <errno.h>
#include "dat/common/reg.h"
#include "util/log.h"

static _Thread_local struct sr_record *loading;

struct sr_record *reg_loading(void)
{
	return loading;
}

/*
 * ISO C has no cast from an object pointer to a function pointer; POSIX gives both the same
 * representation.
 */
static void find_function(void *dl, const char *name, void *function)
{
	void *found = dlsym(dl, name);

	memcpy(function, &found, sizeof(found));
}

static void finish(struct sr_record *rec, void *dl, DAT_PROVIDER_FINI_FUNC fini)
{
	struct sr_record *outer = loading;

	log_at(REG_LOG_STATIC, "%s: unloading %s", rec->key->info.ia_name, rec->lib->path);
	loading = rec;
	if (fini)
		fini(&rec->key->info);
	loading = outer;

	reg_lock();
	dr_forget_locked(rec);
	reg_unlock();

	if (dlclose(dl))
		log_at(REG_LOG_ERROR, "%s: dlclose: %s", rec->lib->path, dlerror());
}

/* For a library of OFED that distributions no longer ship: which library to name in dat.conf instead. */
static const char *advice(const char *path)
{
	return strstr(path, "libdaplomcm.so") ? "; it was for coprocessors that are no longer "
						"made: libdaploscm.so.2 takes "
						"the same parameters, see dat.conf(5)"
					      : "";
}

/* Libraries of providers of DAT 2.0 export dapl_extensions, those of DAT 1 do not. */
static void *open_library(struct sr_record *rec)
{
	void *dl = dlopen(rec->lib->path, RTLD_NOW | RTLD_LOCAL);

	if (!dl) {
		log_at(REG_LOG_ERROR, "%s: dlopen: %s%s", rec->key->info.ia_name, dlerror(),
		       advice(rec->lib->path));
		return NULL;
	}
	rec->is_two = dlsym(dl, "dapl_extensions");
	if (!rec->is_two)
		log_at(REG_LOG_PROVIDER, "%s has no dapl_extensions", rec->lib->path);
	return dl;
}

/*
 * Loads the record's library and calls its initialisation function for the name; true if that registered the name. If
 * the library is loaded already, but has removed its registration, only repeats the initialisation. Unlocks and
 * relocks.
 */
static bool record_load_locked(struct sr_record *rec)
{
	bool nested = !turn_acquire_locked(&rec->lib->turn), registered = false;
	struct sr_record *outer = loading;
	DAT_PROVIDER_INIT_FUNC init = NULL;
	DAT_PROVIDER_FINI_FUNC fini = NULL;
	const struct dr_entry *entry;
	void *dl = rec->dl;

	reg_unlock();
	log_at(REG_LOG_STATIC, "%s: loading %s", rec->key->info.ia_name, rec->lib->path);
	loading = rec;
	if (!dl)
		dl = open_library(rec);
	if (dl) {
		find_function(dl, DAT_PROVIDER_INIT_FUNC_STR, &init);
		find_function(dl, DAT_PROVIDER_FINI_FUNC_STR, &fini);
		if (init)
			init(&rec->key->info, rec->ia_params);
	}
	loading = outer;
	reg_lock();

	entry = dr_find_locked(&rec->key->info);
	if (dl && entry && entry->origin == rec) {
		rec->dl = dl;
		rec->fini = fini;
		registered = true;
	} else if (dl && !rec->refs) {
		rec->dl = NULL;
		reg_unlock();
		log_at(REG_LOG_ERROR, "%s: %s did not register it", rec->key->info.ia_name,
		       rec->lib->path);
		finish(rec, dl, fini);
		reg_lock();
	}
	if (!nested)
		turn_release_locked(&rec->lib->turn);
	return registered;
}

/* Unlocks and relocks; openers of the key wait for the key's turn. */
static void record_unload_locked(struct sr_record *rec)
{
	DAT_PROVIDER_FINI_FUNC fini;
	bool nested;
	void *dl;

	if (!turn_acquire_locked(&rec->key->turn))
		return; /* called in its own initialisation, which checks refs afterwards */
	nested = !turn_acquire_locked(&rec->lib->turn);
	if (!rec->refs && rec->dl) {
		dl = rec->dl;
		fini = rec->fini;
		rec->dl = NULL;
		rec->fini = NULL;
		reg_unlock();
		finish(rec, dl, fini);
		reg_lock();
	}
	if (!nested)
		turn_release_locked(&rec->lib->turn);
	turn_release_locked(&rec->key->turn);
}

/* Tries the fallbacks in order; true as soon as a library has registered the key. */
static bool chain_load_locked(struct sr_key *key)
{
	struct sr_record *rec;

	turn_acquire_locked(&key->turn);
	TAILQ_FOREACH(rec, &key->chain, link)
		if (record_load_locked(rec))
			break;
	turn_release_locked(&key->turn);
	return rec;
}

/* The turn of the loading and unloading of the entry's provider, during which the entry must not be used. */
static struct turn *turn_of(const struct dr_entry *entry, struct sr_key *key)
{
	if (!entry)
		return &key->turn;
	return entry->origin ? &entry->origin->key->turn : NULL;
}

/* Returns the entry of the best match, loading its library if necessary. */
static DAT_RETURN entry_get_locked(struct match *match, struct dr_entry **found)
{
	bool tried = false;

	for (;;) {
		struct dr_entry *entry;
		struct sr_key *key;
		struct turn *turn;

		reg_match_locked(match);
		if (!match->best)
			return match_status(match);
		entry = dr_find_locked(match->best);
		key = sr_find_locked(match->best);
		turn = turn_of(entry, key);
		if (turn && turn_is_mine_locked(turn))
			break; /* a provider that opens itself in its init or fini */
		if (turn && turn->taken) {
			reg_wait_locked();
			continue;
		}
		if (!entry && tried)
			break;
		if (!entry && chain_load_locked(key))
			entry = dr_find_locked(&key->info);
		if (entry) {
			*found = entry;
			return DAT_SUCCESS;
		}
		tried = true; /* the program may have registered it in the meantime */
	}
	return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

DAT_RETURN reg_acquire(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
		       DAT_BOOLEAN thread_safe, struct reg_hold *hold)
{
	DAT_PROVIDER_INFO wanted = {
		.dapl_version_major = major,
		.dapl_version_minor = minor,
		.is_thread_safe = thread_safe,
	};
	struct match match = { .wanted = &wanted };
	char missing[REG_MISSING_MAX] = "";
	struct dr_entry *entry = NULL;
	DAT_RETURN ret = reg_enter();

	if (ret != DAT_SUCCESS)
		return ret;
	strcpy(wanted.ia_name, name);
	ret = entry_get_locked(&match, &entry);
	if (ret == DAT_SUCCESS) {
		*hold = (struct reg_hold){ .dr = entry, .sr = entry->origin };
		entry->refs++;
		if (hold->sr)
			hold->sr->refs++;
	} else if (!match.best && log_on(REG_LOG_ERROR)) {
		reg_missing_locked(&match, missing);
	}
	reg_unlock();
	if (*missing)
		log_at(REG_LOG_ERROR, "%s: %s", name, missing);
	if (ret != DAT_SUCCESS)
		log_at(REG_LOG_CONSUMER, "%s %u.%u: no provider, %#x", name, major, minor, ret);
	return ret;
}

void reg_release(const struct reg_hold *hold)
{
	reg_lock();
	hold->dr->refs--;
	if (hold->sr && !--hold->sr->refs)
		record_unload_locked(hold->sr);
	reg_unlock();
}
