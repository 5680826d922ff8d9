/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/beside.h"
#include "bench/exact_step.h"
#include "bench/exact_text.h"

#define INT3	      0xcc
#define FAR_FROM_CALL 64 /* steps from a mark to the call that it announces, at most */

struct stepper {
	pid_t pid;
	int status;
	struct texts texts;
	struct exact_run *run;
	int pending; /* the call whose result is due; -1: none */
	struct exact_count count;
};

static __attribute__((format(printf, 1, 2))) bool refuse(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "exact: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

/* The program stops with SIGTRAP; other signals are its own. */
static bool until_trap(struct stepper *self, enum __ptrace_request how)
{
	int signal = 0;

	do {
		if (ptrace(how, self->pid, NULL, signal))
			return refuse("ptrace: %s", strerror(errno));
		if (waitpid(self->pid, &self->status, 0) < 0)
			return refuse("waitpid: %s", strerror(errno));
		if (!WIFSTOPPED(self->status))
			return refuse("the program ended before it was counted");
		signal = WSTOPSIG(self->status);
	} while (signal != SIGTRAP);
	return true;
}

static bool registers(const struct stepper *self, struct user_regs_struct *regs)
{
	return !ptrace(PTRACE_GETREGS, self->pid, NULL, regs) ||
	       refuse("registers: %s", strerror(errno));
}

static bool step(struct stepper *self, struct user_regs_struct *regs)
{
	return until_trap(self, PTRACE_SINGLESTEP) && registers(self, regs);
}

static const struct text *text_at(struct stepper *self, uint64_t address)
{
	const struct text *text = texts_at(&self->texts, address);

	if (!text && texts_read(&self->texts, self->pid))
		text = texts_at(&self->texts, address);
	return text;
}

/*
 * Runs to the address by a temporary int3. Does not use a debug register, at which some virtual machines never stop. No
 * other thread reaches the int3, since all of them are blocked.
 */
static bool run_to(struct stepper *self, uint64_t address, struct user_regs_struct *regs)
{
	long word;

	if (regs->rip == address && !step(self, regs))
		return false;
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, self->pid, address, NULL);
	if (errno || ptrace(PTRACE_POKETEXT, self->pid, address, (word & ~0xffL) | INT3))
		return refuse("breakpoint: %s", strerror(errno));
	if (!until_trap(self, PTRACE_CONT) || !registers(self, regs))
		return false;
	if (ptrace(PTRACE_POKETEXT, self->pid, address, word))
		return refuse("breakpoint: %s", strerror(errno));
	if (regs->rip != address + 1)
		return refuse("stopped at %#llx inside the driver", (unsigned long long)regs->rip);
	regs->rip = address;
	return !ptrace(PTRACE_SETREGS, self->pid, NULL, regs) ||
	       refuse("registers: %s", strerror(errno));
}

/*
 * Called at the first instruction of a driver function: runs until that has returned, which is when the stack pointer
 * is above the slot of its return address.
 */
static bool leave_driver(struct stepper *self, struct user_regs_struct *regs)
{
	uint64_t frame = regs->rsp, address;

	errno = 0;
	address = (uint64_t)ptrace(PTRACE_PEEKDATA, self->pid, frame, NULL);
	if (errno)
		return refuse("stack: %s", strerror(errno));
	while (regs->rsp <= frame)
		if (!run_to(self, address, regs))
			return false;
	return true;
}

static bool count_frame(struct stepper *self, struct user_regs_struct *regs)
{
	uint64_t frame = regs->rsp, last = 0;
	struct exact_count *count = &self->count;
	struct instruction is;
	const struct text *text;

	while (regs->rsp <= frame) {
		text = text_at(self, regs->rip);
		if (!text)
			return refuse("no code at %#llx", (unsigned long long)regs->rip);
		if (text->driver) {
			if (!leave_driver(self, regs))
				return false;
			last = 0;
			continue;
		}
		is = text_decode(text, regs->rip);
		if (!(is.repeated && regs->rip == last)) {
			count->instructions++;
			count->locked += is.locked;
			count->system_calls += is.system_call;
		}
		last = regs->rip;
		if (!step(self, regs))
			return false;
	}
	return true;
}

static bool count_call(struct stepper *self, struct user_regs_struct *regs)
{
	uint64_t function = regs->rbx;
	int i;

	self->pending = (int)regs->rax;
	self->count = (struct exact_count){ 0 };
	for (i = 0; regs->rip != function; i++) {
		if (i == FAR_FROM_CALL)
			return refuse("a mark is not followed by its call");
		if (!step(self, regs))
			return false;
	}
	return count_frame(self, regs);
}

static bool result(struct stepper *self, bool good)
{
	struct exact_run *run = self->run;

	if (self->pending < 0)
		return refuse("a result without a call");
	if (good && run->counted[self->pending] < EXACT_CALLS_KEPT)
		run->calls[self->pending][run->counted[self->pending]++] = self->count;
	self->pending = -1;
	return true;
}

/*
 * Records the libraries that are counted. Fails if the driver, which must not be counted, is not
 * found.
 */
static bool identify(struct stepper *self)
{
	const char *registry, *provider, *driver;

	if (!texts_read(&self->texts, self->pid))
		return refuse("the program's code cannot be read");
	registry = texts_file(&self->texts, "libdat2.so");
	provider = texts_file(&self->texts, "libdapl");
	driver = texts_file(&self->texts, "libibverbs.so");
	if (!registry || !provider || !driver)
		return refuse("registry %s, provider %s, driver %s: one is missing",
			      registry ? registry : "-", provider ? provider : "-",
			      driver ? driver : "-");
	snprintf(self->run->registry, sizeof(self->run->registry), "%s", registry);
	snprintf(self->run->provider, sizeof(self->run->provider), "%s", provider);
	snprintf(self->run->driver, sizeof(self->run->driver), "%s", driver);
	return true;
}

static bool follow(struct stepper *self)
{
	struct user_regs_struct regs;
	bool marked = false;

	for (;;) {
		if (!until_trap(self, PTRACE_CONT) || !registers(self, &regs))
			return false;
		if (!marked && !(marked = identify(self)))
			return false;
		if (regs.rax == EXACT_DONE)
			return true;
		if (regs.rax == EXACT_RESULT  ? !result(self, regs.rbx)
		    : regs.rax >= EXACT_CALLS ? !refuse("an unknown mark")
					      : !count_call(self, &regs))
			return false;
	}
}

static pid_t begin(const char *program, const char *ia)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		execl(program, program, ia, (char *)NULL);
	refuse("%s: %s", program, strerror(errno));
	_exit(2);
}

bool exact_run(const char *program, const char *ia, struct exact_run *run)
{
	struct stepper self = { .run = run, .pending = -1 };
	bool good = false;

	memset(run, 0, sizeof(*run));
	beside_stay();
	fflush(NULL);
	self.pid = begin(program, ia);
	if (self.pid < 0)
		return refuse("fork: %s", strerror(errno));
	/* The child stops when it has executed the program. */
	if (waitpid(self.pid, &self.status, 0) < 0 || !WIFSTOPPED(self.status))
		return refuse("%s cannot be traced", program);
	if (ptrace(PTRACE_SETOPTIONS, self.pid, NULL, PTRACE_O_EXITKILL))
		refuse("ptrace options: %s", strerror(errno));
	else
		good = follow(&self);
	texts_free(&self.texts);
	if (good && !ptrace(PTRACE_DETACH, self.pid, NULL, NULL) &&
	    waitpid(self.pid, &self.status, 0) == self.pid)
		return (WIFEXITED(self.status) && !WEXITSTATUS(self.status)) ||
		       refuse("the program ended with status %#x", (unsigned)self.status);
	if (!WIFEXITED(self.status) && !WIFSIGNALED(self.status)) {
		kill(self.pid, SIGKILL);
		waitpid(self.pid, &self.status, 0);
	}
	return false;
}
