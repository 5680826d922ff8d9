/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Creation when the nth allocation fails, in any thread. Linked with --wrap for each function
 * below.
 */
#include "dapl/udapl/base/obj.h"
#include "test/unit/nth_steps.h"

/* The sanitizers' libraries refer to some of these functions. */
#pragma GCC visibility push(default)
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);
#pragma GCC visibility pop

static atomic_ulong allocated;

static bool refused(void)
{
	if (!nth_fails())
		return false;
	errno = ENOMEM;
	return true;
}

static void *count(void *memory)
{
	if (memory)
		atomic_fetch_add(&allocated, 1);
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	if (refused())
		return NULL;
	return old ? __real_realloc(old, size) : count(__real_realloc(old, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return refused() ? NULL : count(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	int error = refused() ? ENOMEM : __real_posix_memalign(memory, alignment, size);

	if (!error)
		count(*memory);
	return error;
}

char *__wrap_strdup(const char *text)
{
	return refused() ? NULL : count(__real_strdup(text));
}

void __wrap_free(void *memory)
{
	if (memory)
		atomic_fetch_sub(&allocated, 1);
	__real_free(memory);
}

static unsigned long alive(void)
{
	return atomic_load(&allocated);
}

static void arm(unsigned n)
{
	atomic_store(&nth_fired, 0);
	atomic_store(&nth_left, n);
}

static bool disarm(DAT_RETURN status)
{
	(void)status;
	atomic_store(&nth_left, -1);
	return atomic_load(&nth_fired);
}

static void test_first(void)
{
	nth_run_all(arm, disarm, 40);
}

/* Pools grow by what is created in them until their freed slots are reused. */
static void fill_pools(void)
{
	enum { MANY = 2100 };
	static void *made[MANY];
	int kind, i;

	for (kind = OBJ_FREE + 1; kind < OBJ_KINDS; kind++) {
		for (i = 0; i < MANY; i++)
			made[i] = obj_new(NULL, (enum obj_kind)kind);
		for (i = 0; i < MANY; i++)
			if (made[i])
				obj_free(made[i], (enum obj_kind)kind);
	}
}

static void test_again(void)
{
	fill_pools();
	nth_alive = alive;
	nth_warm = true;
	nth_run_all(arm, disarm, 30);
}

static const struct unit_test tests[] = {
	{ "a failed allocation is reported as the right error", test_first },
	{ "a failed allocation leaves nothing behind", test_again },
};

UNIT_MAIN("nth_alloc", tests)
