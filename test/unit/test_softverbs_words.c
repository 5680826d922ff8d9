/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Rule C1: the aligned word with which a write ends becomes visible at once, whichever way the bytes go, at each place of a line
 * and for each distance between source and target.
 */
#include "test/unit/word_rig.h"

static void words_in_shared_memory(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_memfd));
	flip_words(&rig, 100);
	rig_close(&rig);
}

static void words_in_a_file(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_file_open));
	flip_words(&rig, 100);
	rig_close(&rig);
}

static void words_in_a_process(const char *copy, uint32_t count)
{
	struct rig rig = { .fd = -1, .id = -1, .direct = "off" };

	setenv("SOFTVERBS_COPY", copy, 1);
	CU_ASSERT_TRUE_FATAL(rig_memfd(&rig) && rig_open(&rig) &&
			     rig_register(&rig, 0, RIG_SIZE, RIG_ALL));
	flip_words(&rig, count);
	rig_close(&rig);
	unsetenv("SOFTVERBS_COPY");
}

static void words_by_call(void)
{
	words_in_a_process("pvm", 100);
}

static void words_by_descriptor(void)
{
	/* few, since some wait for the owner's engine, which has to get a processor beside threads that poll */
	words_in_a_process("memfd", 10);
}

static const struct unit_test tests[] = {
	{ "in shared memory, by stores", words_in_shared_memory },
	{ "in a file that may shrink, by pwritev", words_in_a_file },
	{ "in the memory of a process, by process_vm_writev", words_by_call },
	{ "in the memory of a process, through a descriptor that it passed", words_by_descriptor },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "the rig has threads before it forks", "softverbs_words", tests)
