/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Names in a folder (SOFTVERBS_DIR): which folders are accepted, which process holds a name, and
 * what killed processes leave.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "softverbs/attend.h"
#include "softverbs/link/folder_lock.h"
#include "softverbs/link/name.h"
#include "softverbs/link/runtime.h"
#include "test/unit/linked.h"

static char folder[512];

static char *in_folder(const char *file)
{
	static char path[sizeof(folder) + 256];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return path;
}

/* Returns the path of a name's file. */
static char *file_of(const char *name)
{
	char file[128];

	snprintf(file, sizeof(file), "softverbs%d%s", SV_LAYOUT, name);
	return in_folder(file);
}

static bool is_there(const char *path)
{
	struct stat stat;

	return !lstat(path, &stat);
}

/* Number of entries besides . and .. */
static unsigned files(void)
{
	return unit_entries(folder) - 2;
}

static void folder_make(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/softverbs.XXXXXX", tmp ? tmp : "/tmp");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	setenv("SOFTVERBS_DIR", folder, 1);
}

/* Fails if the device has left a file there. */
static void folder_remove(void)
{
	unsetenv("SOFTVERBS_DIR");
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void file_make(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	close(fd);
}

/* ---- which folders are accepted ---- */

static void others_may_not_write_there(void)
{
	static const mode_t modes[] = { 0720, 0702, 01777 };

	folder_make();
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		CU_ASSERT_EQUAL(chmod(folder, modes[i]), 0);
		CU_ASSERT_EQUAL(sv_name_open(), EPERM);
		CU_ASSERT_FALSE(sv_name_is_in_folder());
		CU_ASSERT_EQUAL(sv_runtime_hold(&sv_data_client), EPERM);
	}
	CU_ASSERT_EQUAL(chmod(folder, 0755), 0);
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	CU_ASSERT_TRUE(sv_name_is_in_folder());
	sv_name_close();
	if (!chown(folder, 65534, (gid_t)-1)) { /* only the superuser can change the owner */
		CU_ASSERT_EQUAL(sv_name_open(), EPERM);
		CU_ASSERT_EQUAL(chown(folder, geteuid(), (gid_t)-1), 0);
	}
	folder_remove();
}

static void it_must_be_a_folder(void)
{
	folder_make();
	file_make(in_folder("file"));
	setenv("SOFTVERBS_DIR", in_folder("file"), 1);
	CU_ASSERT_EQUAL(sv_name_open(), ENOTDIR);
	CU_ASSERT_EQUAL(unlink(in_folder("file")), 0);
	CU_ASSERT_EQUAL(sv_name_open(), ENOENT);
	CU_ASSERT_EQUAL(sv_runtime_hold(&sv_data_client), ENOENT);
	setenv("SOFTVERBS_DIR", "", 1); /* counts as unset */
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	CU_ASSERT_FALSE(sv_name_is_in_folder());
	folder_remove();
}

static unsigned complaints(FILE *log)
{
	unsigned count = 0;
	char line[1024];

	rewind(log);
	while (fgets(line, sizeof(line), log))
		count += strstr(line, "SOFTVERBS_DIR=") != NULL;
	return count;
}

/* Must run first, before anything is logged; in a child, because it redirects stderr. */
static int tries_twice(int fd, void *arg)
{
	FILE *log = tmpfile();
	unsigned count;

	(void)fd;
	(void)arg;
	if (!log || dup2(fileno(log), 2) != 2)
		return 1;
	if (sv_runtime_hold(&sv_data_client) != EPERM || sv_runtime_hold(&sv_data_client) != EPERM)
		return 2;
	count = complaints(log);
	return count == 1 ? 0 : 10 + (int)count;
}

static void why_is_told_once(void)
{
	struct process process;

	folder_make();
	CU_ASSERT_EQUAL(chmod(folder, 0777), 0);
	CU_ASSERT_TRUE(process_start(&process, tries_twice, NULL));
	CU_ASSERT_EQUAL(process_end(&process), 0);
	folder_remove();
}

/* ---- names ---- */

/* Claims the name, listening or not, and holds it until a number arrives. */
static int holds(int fd, void *arg)
{
	const char *name = arg;
	uint64_t value = 0;
	int socket;

	if (sv_name_open())
		return 1;
	socket = sv_name_claim(name + 1);
	if (socket < 0 || (*name == 'l' && listen(socket, 4)))
		return 2;
	process_say(fd, 1);
	process_hear(fd, &value);
	sv_name_release(socket);
	close(socket);
	sv_name_close();
	return 0;
}

static void a_name_is_one_process_s(void)
{
	char names[2][24] = { "lc/106/7/::1", "-c/106/7/any" };
	struct process process;
	struct ucred peer;
	int fd;

	folder_make();
	for (unsigned i = 0; i < 2; i++) {
		bool listens = *names[i] == 'l';

		CU_ASSERT_TRUE_FATAL(process_start(&process, holds, names[i]));
		CU_ASSERT_TRUE(process_sync(process.fd));
		CU_ASSERT_EQUAL(sv_name_open(), 0);
		CU_ASSERT_EQUAL(files(), 1);
		CU_ASSERT_EQUAL(sv_name_claim(names[i] + 1), -1);
		CU_ASSERT_EQUAL(errno, EADDRINUSE);
		fd = sv_name_connect(names[i] + 1, &peer);
		CU_ASSERT_TRUE(listens ? fd >= 0 && peer.pid == process.pid
				       : fd < 0 && errno == ECONNREFUSED);
		if (fd >= 0)
			close(fd);
		CU_ASSERT_EQUAL(files(), 1); /* a bound socket is enough to hold a name */
		CU_ASSERT_TRUE(process_say(process.fd, 1));
		CU_ASSERT_EQUAL(process_end(&process), 0);
		CU_ASSERT_EQUAL(files(), 0);
		CU_ASSERT_EQUAL(sv_name_connect(names[i] + 1, &peer), -1);
		CU_ASSERT_EQUAL(errno, ECONNREFUSED);
		sv_name_close();
	}
	folder_remove();
}

static void seen(void *arg, const char *rest)
{
	*(unsigned *)arg += !strcmp(rest, "any") ? 1 : !strcmp(rest, "::1") ? 10 : 100;
}

/*
 * The name of a killed process is removed by the next process that claims it, asks for it, lists it
 * or begins to use the folder.
 */
static void a_killed_process_s_name(void)
{
	char name[] = "lc/106/7/any", other[] = "-c/106/7/::1";
	struct process killed, alive;
	struct ucred peer;
	int fd;

	folder_make();
	for (unsigned how = 0; how < 4; how++) {
		unsigned found = 0;

		CU_ASSERT_TRUE_FATAL(process_start(&alive, holds, other));
		CU_ASSERT_TRUE(process_sync(alive.fd));
		CU_ASSERT_TRUE_FATAL(process_start(&killed, holds, name));
		CU_ASSERT_TRUE(process_sync(killed.fd));
		if (how < 3)
			CU_ASSERT_EQUAL(sv_name_open(), 0);
		CU_ASSERT_EQUAL(files(), 2);
		process_kill(&killed);
		CU_ASSERT_EQUAL(files(), 2);
		switch (how) {
		case 0:
			fd = sv_name_claim(name + 1);
			CU_ASSERT_TRUE(fd >= 0);
			sv_name_release(fd);
			close(fd);
			break;
		case 1:
			CU_ASSERT_EQUAL(sv_name_connect(name + 1, &peer), -1);
			CU_ASSERT_EQUAL(errno, ECONNREFUSED);
			break;
		case 2:
			sv_name_scan("c/106/7/", seen, &found);
			CU_ASSERT_EQUAL(found, 10);
			break;
		default: CU_ASSERT_EQUAL(sv_name_open(), 0);
		}
		CU_ASSERT_EQUAL(files(), 1);
		CU_ASSERT_TRUE(is_there(file_of(",c,106,7,::1")));
		CU_ASSERT_TRUE(process_say(alive.fd, 1));
		CU_ASSERT_EQUAL(process_end(&alive), 0);
		sv_name_close();
	}
	folder_remove();
}

/* Files that are not sockets of the device are left alone. */
static void files_of_others(void)
{
	struct ucred peer;

	folder_make();
	file_make(file_of(",s77"));
	file_make(in_folder("notes"));
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	CU_ASSERT_EQUAL(sv_name_claim("s77"), -1);
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	CU_ASSERT_EQUAL(sv_name_connect("s77", &peer), -1);
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	sv_name_close();
	CU_ASSERT_EQUAL(files(), 2);
	CU_ASSERT_EQUAL(unlink(file_of(",s77")), 0);
	CU_ASSERT_EQUAL(unlink(in_folder("notes")), 0);
	folder_remove();
}

/* ---- the lock ---- */

static void the_lock_of_a_killed_process(void)
{
	int fd;

	folder_make();
	file_make(file_of(".lock"));
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	fd = sv_name_claim("s5");
	CU_ASSERT_TRUE(fd >= 0);
	CU_ASSERT_EQUAL(files(), 1);
	sv_name_release(fd);
	close(fd);
	sv_name_close();
	folder_remove();
}

static int socket_make(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(file_of(name));

	CU_ASSERT_TRUE_FATAL(length < sizeof(address.sun_path));
	memcpy(address.sun_path, file_of(name), length);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Makes a socket file without a process. */
static void stale_make(const char *name)
{
	close(socket_make(name));
}

static void the_lock_of_a_stopped_process(void)
{
	int fd, lock;

	folder_make();
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	stale_make(",s5"); /* has to be removed */
	file_make(file_of(".lock"));
	lock = open(file_of(".lock"), O_RDWR | O_CLOEXEC);
	CU_ASSERT_EQUAL(flock(lock, LOCK_EX), 0);
	fd = sv_name_claim("s6"); /* needs no lock */
	CU_ASSERT_TRUE(fd >= 0);
	sv_name_release(fd);
	close(fd);
	fd = sv_name_claim("s5");
	CU_ASSERT_TRUE(fd >= 0);
	CU_ASSERT_EQUAL(sv_name_claim("s5"), -1);
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	CU_ASSERT_EQUAL(files(), 1);
	sv_name_release(fd);
	close(fd);
	close(lock);
	sv_name_close();
	folder_remove();
}

/* The owner continues, and removes neither another process's lock nor a name. */
static void the_owner_goes_on(void)
{
	int lock, other, folder_fd;

	folder_make();
	folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	lock = sv_folder_lock(folder_fd);
	CU_ASSERT_TRUE_FATAL(lock >= 0);
	other = sv_folder_lock(folder_fd); /* what another process does after a second */
	CU_ASSERT_TRUE_FATAL(other >= 0);
	sv_folder_unlock(folder_fd, lock);
	CU_ASSERT_TRUE(is_there(file_of(".lock")));
	sv_folder_unlock(folder_fd, other);
	CU_ASSERT_EQUAL(files(), 0);
	close(folder_fd);
	folder_remove();
}

/*
 * While one process examines a name, another may remove it and claim it again, because the first
 * may be stopped and lose its lock.
 */
static int claimed_meanwhile = -1; /* a bound socket that will get the name */

int __wrap_renameat(int from, const char *name, int to, const char *other);
int __real_renameat(int from, const char *name, int to, const char *other);

int __wrap_renameat(int from, const char *name, int to, const char *other)
{
	if (claimed_meanwhile >= 0) {
		CU_ASSERT_EQUAL(unlinkat(from, name, 0), 0);
		CU_ASSERT_EQUAL(linkat(AT_FDCWD, file_of("+claimed"), from, name, 0), 0);
		CU_ASSERT_EQUAL(unlink(file_of("+claimed")), 0);
	}
	return __real_renameat(from, name, to, other);
}

static void a_name_that_came_anew_stays(void)
{
	struct ucred cred;
	int fd;

	folder_make();
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	stale_make(",s5");
	claimed_meanwhile = socket_make("+claimed");
	CU_ASSERT_EQUAL(listen(claimed_meanwhile, 1), 0);
	CU_ASSERT_EQUAL(sv_name_claim("s5"), -1);
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	fd = sv_name_connect("s5", &cred);
	CU_ASSERT_TRUE(fd >= 0);
	CU_ASSERT_EQUAL(files(), 1);
	close(fd);
	close(claimed_meanwhile);
	claimed_meanwhile = -1;
	CU_ASSERT_EQUAL(unlink(file_of(",s5")), 0);
	sv_name_close();
	folder_remove();
}

/* A killed claim may leave a file that is not linked to a name. */
static void leftovers_of_a_claim(void)
{
	static const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	folder_make();
	stale_make("+0123456789abcdef");
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	CU_ASSERT_TRUE(is_there(file_of("+0123456789abcdef"))); /* perhaps in progress */
	sv_name_close();
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, file_of("+0123456789abcdef"), long_ago, 0), 0);
	CU_ASSERT_EQUAL(sv_name_open(), 0);
	sv_name_close();
	CU_ASSERT_EQUAL(files(), 0);
	folder_remove();
}

#define TURNS 200

/* Claims and releases the name in turn; only one process at a time may hold it. */
static int takes_turns(int fd, void *arg)
{
	unsigned done = 0;

	(void)fd;
	if (sv_name_open())
		return 1;
	while (done < TURNS) {
		int socket = sv_name_claim("s9"), mark;

		if (socket < 0 && errno == EADDRINUSE)
			continue;
		if (socket < 0)
			return 2;
		mark = open(arg, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (mark < 0)
			return 3;
		close(mark);
		if (unlink(arg))
			return 4;
		sv_name_release(socket);
		close(socket);
		done++;
	}
	sv_name_close();
	return 0;
}

static void one_at_a_time(void)
{
	struct process process[3];
	char mark[sizeof(folder) + 16];

	folder_make();
	snprintf(mark, sizeof(mark), "%s/mark", folder);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_TRUE_FATAL(process_start(&process[i], takes_turns, mark));
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(process_end(&process[i]), 0);
	folder_remove();
}

/* ---- processes ---- */

/* A path longer than a socket address can hold. */
static void a_long_path(void)
{
	struct process process;
	struct sv_peer *peer;
	uint64_t slot = 0;

	folder_make();
	for (unsigned i = 0; i < 3; i++) {
		size_t length = strlen(folder);

		snprintf(folder + length, sizeof(folder) - length, "/%0100u", i);
		CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
	}
	setenv("SOFTVERBS_DIR", folder, 1);
	CU_ASSERT_TRUE_FATAL(process_start(&process, reside, NULL));
	CU_ASSERT_TRUE(process_hear(process.fd, &slot));
	CU_ASSERT_EQUAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_EQUAL(files(), 2);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	CU_ASSERT_EQUAL(peer->pid, process.pid);
	process_kill(&process);
	CU_ASSERT_TRUE(unit_wait_for(is_dead, peer, UNIT_PATIENCE));
	sv_peer_put(peer);
	CU_ASSERT_PTR_NULL(link_to(slot));
	CU_ASSERT_EQUAL(files(), 1);
	sv_runtime_release();
	CU_ASSERT_EQUAL(files(), 0);
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(rmdir(folder), 0);
		*strrchr(folder, '/') = '\0';
	}
	folder_remove();
}

/* Exits with everything open, as many programs do. */
static int just_exits(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	if (sv_runtime_hold(&sv_data_client) || files() != 1)
		return 1;
	fflush(NULL);
	exit(0);
}

/* Its child exits in the same way, and must not remove the parent's names. */
static int forks(int fd, void *arg)
{
	int status = -1;
	pid_t child;

	(void)fd;
	(void)arg;
	if (sv_name_open() || sv_name_claim("s5") < 0)
		return 1;
	child = fork();
	if (!child) {
		sv_name_fork_child(); /* the runtime's fork handler calls this */
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status || files() != 1)
		return 2;
	exit(0);
}

static void nothing_is_left_at_exit(void)
{
	struct process process;

	folder_make();
	CU_ASSERT_TRUE_FATAL(process_start(&process, just_exits, NULL));
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(files(), 0);
	CU_ASSERT_TRUE_FATAL(process_start(&process, forks, NULL));
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(files(), 0);
	folder_remove();
}

static const struct unit_test tests[] = {
	{ "an unusable folder is logged once, with the reason", why_is_told_once },
	{ "a folder in which others may write, or of another user: EPERM",
	  others_may_not_write_there },
	{ "a path that is not a folder: ENOTDIR, ENOENT", it_must_be_a_folder },
	{ "a name is one process's, listening or not", a_name_is_one_process_s },
	{ "a killed process's name is removed by the next process that asks for it",
	  a_killed_process_s_name },
	{ "files of others are left alone", files_of_others },
	{ "the lock of a killed process does not block other processes",
	  the_lock_of_a_killed_process },
	{ "the lock of a stopped process is replaced", the_lock_of_a_stopped_process },
	{ "a process whose lock was replaced continues", the_owner_goes_on },
	{ "a name that is claimed again during its removal stays", a_name_that_came_anew_stays },
	{ "the file of a killed claim is removed", leftovers_of_a_claim },
	{ "processes that take turns have the name one at a time", one_at_a_time },
	{ "a path may be longer than a socket's address", a_long_path },
	{ "nothing is left by a program that exits with all of it open", nothing_is_left_at_exit },
};

int main(int argc, char **argv)
{
	return unit_main("test_softverbs_folder", tests, sizeof(tests) / sizeof(tests[0]), argc,
			 argv);
}
