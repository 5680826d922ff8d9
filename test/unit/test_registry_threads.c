/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The registry in many threads at once. Only the first thread uses assertions, because CUnit
 * supports one.
 */
#include <pthread.h>
#include "test/unit/fake.h"

struct fake_control fake;

#define FAKE(name, lib) name " u2.0 nonthreadsafe default " lib " fake.1.0 \"\" \"\"\n"
#define BAD_IA		FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA)
#define THREADS		4
#define ROUNDS		200

static atomic_int failures, live;

static void expect(bool right)
{
	if (!right)
		failures++;
}

/* Names that can be opened: registered by init, until fini. */
static atomic_bool ready[2];

static void begin_name(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)params;
	expect(!atomic_exchange(&ready[*info->ia_name == 'b'], true));
	expect(live++ == 0); /* one init or fini of a library at a time */
	live--;
}

static void end_name(const DAT_PROVIDER_INFO *info)
{
	expect(atomic_exchange(&ready[*info->ia_name == 'b'], false));
	expect(live++ == 0);
	live--;
}

static void use_name(const char *name)
{
	expect(ready[*name == 'b']);
}

static void *open_and_close(void *arg)
{
	const char *name = arg;
	DAT_HANDLE_TYPE type;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (fake_open(name, &ia) != DAT_SUCCESS) {
			failures++;
			continue;
		}
		expect(dat_get_handle_type(ia, &type) == DAT_SUCCESS && type == DAT_HANDLE_TYPE_IA);
		expect(dat_pz_create(ia, &pz) == DAT_SUCCESS && dat_pz_free(pz) == DAT_SUCCESS);
		expect(dat_ia_close(ia, DAT_CLOSE_DEFAULT) == DAT_SUCCESS);
	}
	return NULL;
}

static void *list(void *arg)
{
	DAT_PROVIDER_INFO infos[3], *pointers[3] = { &infos[0], &infos[1], &infos[2] };
	DAT_HA_RELATIONSHIP related;
	char a[] = "a", b[] = "b";
	DAT_COUNT count;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		expect(dat_registry_list_providers(3, &count, pointers) == DAT_SUCCESS);
		expect(count == 2);
		expect(dat_registry_providers_related(a, b, &related) == DAT_SUCCESS);
	}
	return arg;
}

static void child_all_at_once(void)
{
	static char names[] = "a\0b";
	pthread_t threads[THREADS], lister;
	int i;

	fake.in_init = begin_name;
	fake.in_fini = end_name; /* the registry removes the entry */
	fake.in_open = use_name;
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, open_and_close, &names[i % 2 * 2]);
	pthread_create(&lister, NULL, list, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(lister, NULL);
	CU_ASSERT_EQUAL(failures, 0);
	CU_ASSERT_EQUAL(fake.opens, THREADS * ROUNDS);
	CU_ASSERT_EQUAL(fake.closes, THREADS * ROUNDS);
	CU_ASSERT_EQUAL(fake.inits, fake.finis);
	CU_ASSERT_TRUE(fake.unloads > 0);
}

static void all_at_once(void)
{
	fake_in_child(FAKE("a", "@") FAKE("b", "@"), child_all_at_once);
}

static struct {
	atomic_bool inside, go;
	atomic_int openers;
} slow;

static bool is_set(void *flag)
{
	return atomic_load((atomic_bool *)flag);
}

static void stay_in_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)params;
	if (*info->ia_name != 'a')
		return;
	slow.inside = true;
	expect(unit_wait_for(is_set, &slow.go, UNIT_PATIENCE));
}

static void *open_a(void *ia)
{
	slow.openers++;
	expect(fake_open("a", ia) == DAT_SUCCESS);
	return NULL;
}

static bool both_open(void *arg)
{
	(void)arg;
	return slow.openers == 2;
}

static void child_others_wait(void)
{
	DAT_IA_HANDLE first, second, other;
	pthread_t threads[2];
	DAT_COUNT count = 0;

	fake.in_init = stay_in_init;
	pthread_create(&threads[0], NULL, open_a, &first);
	CU_ASSERT_TRUE(unit_wait_for(is_set, &slow.inside, UNIT_PATIENCE));
	pthread_create(&threads[1], NULL, open_a, &second);
	CU_ASSERT_TRUE(unit_wait_for(both_open, NULL, UNIT_PATIENCE));

	/* no lock is held: another thread can list providers and load another library */
	dat_registry_list_providers(0, &count, NULL);
	CU_ASSERT_EQUAL(count, 2);
	CU_ASSERT_EQUAL(fake_open("c", &other), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.opens, 1);
	CU_ASSERT_EQUAL(dat_ia_close(other, DAT_CLOSE_DEFAULT), DAT_SUCCESS);

	slow.go = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	CU_ASSERT_EQUAL(failures, 0);
	CU_ASSERT_EQUAL(fake.inits, 2);
	CU_ASSERT_PTR_NOT_EQUAL(first, second);
	CU_ASSERT_EQUAL(dat_ia_close(first, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(second, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 2);
	CU_ASSERT_EQUAL(fake.unloads, 1);
}

static void others_wait(void)
{
	char conf[1000], path[300];

	/* another name of the same file is another library for the registry */
	snprintf(path, sizeof(path), "%s/other.so", unit_tmpdir());
	CU_ASSERT_EQUAL(symlink(fake_path(), path), 0);
	snprintf(conf, sizeof(conf), FAKE("a", "@") FAKE("c", "%s"), path);
	fake_in_child(conf, child_others_wait);
}

/* A thread that opens "b" while another is in init or fini of "a", in the same library. */
static struct {
	_Atomic(pid_t) thread;
	DAT_IA_HANDLE ia;
} late;

static void *open_b(void *arg)
{
	late.thread = gettid();
	expect(fake_open("b", &late.ia) == DAT_SUCCESS);
	return arg;
}

static bool is_waiting(void *arg)
{
	(void)arg;
	return late.thread && unit_is_asleep(late.thread);
}

static void stay_in_fini(const DAT_PROVIDER_INFO *info)
{
	stay_in_init(info, NULL);
}

static void *close_ia(void *ia)
{
	expect(dat_ia_close(*(DAT_IA_HANDLE *)ia, DAT_CLOSE_DEFAULT) == DAT_SUCCESS);
	return NULL;
}

/* The first thread blocks in init or fini; the second must not enter the library. */
static void expect_in_turn(void *(*first)(void *), DAT_IA_HANDLE *ia, int inits)
{
	pthread_t threads[2];

	slow.go = false;
	slow.inside = false;
	late.thread = 0;
	pthread_create(&threads[0], NULL, first, ia);
	CU_ASSERT_TRUE(unit_wait_for(is_set, &slow.inside, UNIT_PATIENCE));
	pthread_create(&threads[1], NULL, open_b, NULL);
	CU_ASSERT_TRUE(unit_wait_for(is_waiting, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(fake.inits, inits);
	slow.go = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	CU_ASSERT_EQUAL(fake.inits, inits + 1);
	CU_ASSERT_EQUAL(dat_ia_close(late.ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(failures, 0);
}

static void child_one_library_in_turn(void)
{
	DAT_IA_HANDLE ia;

	fake.in_init = stay_in_init;
	expect_in_turn(open_a, &ia, 1);
	fake.in_fini = stay_in_fini;
	expect_in_turn(close_ia, &ia, 2);
	CU_ASSERT_EQUAL(fake.finis, 3);
}

static void one_library_in_turn(void)
{
	fake_in_child(FAKE("a", "@") FAKE("b", "@"), child_one_library_in_turn);
}

/* All threads close one handle at once while they use it. */
static DAT_IA_HANDLE shared;
static atomic_int closed;
static pthread_barrier_t start;

static void *use_and_close(void *arg)
{
	DAT_IA_ATTR attr;
	DAT_RETURN ret;
	int i;

	pthread_barrier_wait(&start);
	for (i = 0; i < 20; i++) {
		ret = dat_ia_query(shared, NULL, DAT_IA_ALL, &attr, 0, NULL);
		expect(ret == DAT_SUCCESS || ret == BAD_IA);
	}
	ret = dat_ia_close(shared, DAT_CLOSE_DEFAULT);
	expect(ret == DAT_SUCCESS || ret == BAD_IA);
	closed += ret == DAT_SUCCESS;
	return arg;
}

static void child_one_close_wins(void)
{
	pthread_t threads[THREADS];
	int round, i;

	pthread_barrier_init(&start, NULL, THREADS);
	for (round = 0; round < 30; round++) {
		CU_ASSERT_EQUAL(fake_open("a", &shared), DAT_SUCCESS);
		closed = 0;
		for (i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, use_and_close, NULL);
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(closed, 1);
	}
	pthread_barrier_destroy(&start);
	CU_ASSERT_EQUAL(failures, 0);
	CU_ASSERT_EQUAL(fake.inits, 30);
	CU_ASSERT_EQUAL(fake.unloads, 30);
}

static void one_close_wins(void)
{
	fake_in_child(FAKE("a", "@"), child_one_close_wins);
}

static const struct unit_test tests[] = {
	{ "many threads can open, close, list and relate", all_at_once },
	{ "openers wait for a name that is loading; others do not", others_wait },
	{ "one init or fini of a library runs at a time", one_library_in_turn },
	{ "one of several concurrent closes succeeds", one_close_wins },
};

UNIT_MAIN("registry_threads", tests)
