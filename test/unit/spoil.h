/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Checks the argument checks of a call, row by row. A row's wrong argument, alone and together with
 * that of each later row, gives the row's error, and no output is written. With right arguments the
 * call succeeds.
 */
#ifndef SPOIL_H
#define SPOIL_H

#include "test/unit/things.h"

#define SPOIL_ARGS_MAX 512

/* `spoil` makes one argument wrong. Two rows about the same argument are not combined. */
struct spoil_row {
	const char *what;
	void (*spoil)(void *args);
	DAT_RETURN expected;
	int argument;
};

struct spoil_call {
	const char *name;
	size_t size;		  /* of the struct of arguments */
	void (*good)(void *args); /* sets arguments with which the call succeeds */
	DAT_RETURN (*run)(void *args);
	void (*undo)(void *args);     /* undoes a success; NULL: nothing to undo */
	const struct spoil_row *rows; /* in the order of the call's checks */
	size_t count;
};

static inline void spoil_expect(const struct spoil_call *call, const struct spoil_row *first,
				const struct spoil_row *second)
{
	_Alignas(16) unsigned char args[SPOIL_ARGS_MAX];
	DAT_RETURN status;

	CU_ASSERT_TRUE_FATAL(call->size <= sizeof(args));
	memset(&things_out, 0xa5, sizeof(things_out));
	memset(args, 0, sizeof(args));
	call->good(args);
	if (second)
		second->spoil(args);
	first->spoil(args);
	status = call->run(args);
	if (status != first->expected || !things_untouched())
		printf("%s, %s%s%s: 0x%x, expected 0x%x%s\n", call->name, first->what,
		       second ? " and " : "", second ? second->what : "", status, first->expected,
		       things_untouched() ? "" : ", and outputs were written");
	CU_ASSERT_EQUAL(status, first->expected);
	CU_ASSERT_TRUE(things_untouched());
	if (status == DAT_SUCCESS && call->undo)
		call->undo(args);
}

static inline void spoil_good(const struct spoil_call *call)
{
	_Alignas(16) unsigned char args[SPOIL_ARGS_MAX];
	DAT_RETURN status;

	memset(args, 0, sizeof(args));
	call->good(args);
	status = call->run(args);
	if (status != DAT_SUCCESS)
		printf("%s: 0x%x\n", call->name, status);
	CU_ASSERT_EQUAL(status, DAT_SUCCESS);
	if (status == DAT_SUCCESS && call->undo)
		call->undo(args);
}

static inline void spoil_run(const struct spoil_call *call)
{
	size_t i, j;

	spoil_good(call);
	for (i = 0; i < call->count; i++) {
		spoil_expect(call, &call->rows[i], NULL);
		for (j = i + 1; j < call->count; j++)
			if (call->rows[j].argument != call->rows[i].argument)
				spoil_expect(call, &call->rows[i], &call->rows[j]);
	}
	/* none of the failed calls has left anything behind */
	spoil_good(call);
}

/*
 * SPOIL(type, name, statement) defines a function `name` that makes a member of its arguments
 * wrong.
 */
#define SPOIL(type, name, statement)   \
	static void name(void *args)   \
	{                              \
		struct type *a = args; \
		statement;             \
	}

#endif
