/* Where a task works, and its private directory: neither leads anywhere else, whoever swaps what meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/rundir.h"
#include "exec/workdir.h"

enum { RACES = 20000 };

static char top[64];  /* top/root/project, top/outside/secret */
static char root[80]; /* the configured one */
static int top_fd;
static char reason[WORKDIR_REASON_BYTES];

static void path_in(char *path, size_t room, const char *name)
{
	assert_true((size_t)snprintf(path, room, "%s/%s", top, name) < room);
}

static void make(const char *name)
{
	assert_int_equal(mkdirat(top_fd, name, 0700), 0);
}

static int build(void **state)
{
	(void)state;
	strcpy(top, "/tmp/stint-workdir-XXXXXX");
	assert_non_null(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make("root");
	make("root/project");
	make("root/project/deep");
	make("root2");
	make("root2/other");
	make("outside");
	make("outside/secret");
	close(openat(top_fd, "root/file", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlinkat("../outside", top_fd, "root/out"), 0);
	assert_int_equal(symlinkat("project", top_fd, "root/in"), 0);
	assert_int_equal(symlinkat("root", top_fd, "linked-root"), 0);
	path_in(root, sizeof root, "root");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(top_fd);
	cleanup(close_at) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(rundir_remove(tmp, strrchr(top, '/') + 1), 0);
	return 0;
}

/* What came of it: 0 if it is the directory of that name below top. */
static int opens(const char *const *roots, size_t count, const char *path, const char *expected)
{
	struct stat got, wanted;
	int fd = -1, fault;

	reason[0] = 0;
	fault = workdir_open(roots, count, path, &fd, reason);
	if (fault) {
		assert_int_equal(fd, -1);
		assert_true(reason[0] != 0);
		return fault;
	}
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(fstatat(top_fd, expected, &wanted, 0), 0);
	assert_true(got.st_ino == wanted.st_ino);
	close(fd);
	return 0;
}

static int opens_in_root(const char *path, const char *expected)
{
	const char *roots[] = {root};

	return opens(roots, 1, path, expected);
}

static int opens_absolute(const char *name, const char *expected)
{
	char path[200];

	path_in(path, sizeof path, name);
	return opens_in_root(path, expected);
}

static void what_lies_beneath_a_root_is_opened(void **state)
{
	(void)state;
	assert_int_equal(opens_absolute("root/project/deep", "root/project/deep"), 0);
	assert_int_equal(opens_absolute("root", "root"), 0);
	assert_int_equal(opens_absolute("root/", "root"), 0);
	assert_int_equal(opens_absolute("root//project/", "root/project"), 0);
	assert_int_equal(opens_absolute("root/project/../project", "root/project"), 0);
	assert_int_equal(opens_in_root("project", "root/project"), 0);
}

static void a_later_root_may_have_it(void **state)
{
	char second[80];
	const char *roots[] = {root, second};

	(void)state;
	path_in(second, sizeof second, "root2");
	assert_int_equal(opens(roots, 2, "other", "root2/other"), 0);
	assert_int_equal(opens(roots, 2, "nowhere", NULL), -ENOENT);
}

static void a_root_itself_may_be_a_link(void **state)
{
	char linked[80];
	const char *roots[] = {linked};

	(void)state;
	path_in(linked, sizeof linked, "linked-root");
	assert_int_equal(opens(roots, 1, "project", "root/project"), 0);
}

static void what_is_wrong_with_a_path_is_said(void **state)
{
	static const struct {
		const char *path;
		int fault;
		const char *says;
	} cases[] = {
		{"nowhere", -ENOENT, "work dir 'nowhere' does not exist"},
		{"file", -ENOTDIR, "work dir 'file' is not a directory"},
		{"in", -ELOOP, "work dir 'in' leads through a symbolic link"},
		{"out/secret", -ELOOP, "work dir 'out/secret' leads through a symbolic link"},
		{"..", -EXDEV, "work dir '..' leads out of its root"},
		{"../outside", -EXDEV, "work dir '../outside' leads out of its root"},
		{"project/../../outside", -EXDEV, "work dir 'project/../../outside' leads out of its root"},
		{"", -EINVAL, "the work dir is empty text"},
		{"~", -ENOENT, "work dir '~' does not exist"},
		{"$HOME", -ENOENT, "work dir '$HOME' does not exist"},
		{"/", -EXDEV, "work dir '/' is not beneath a root of this worker"},
		{"/etc", -EXDEV, "work dir '/etc' is not beneath a root of this worker"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(opens_in_root(cases[i].path, NULL), cases[i].fault);
		assert_string_equal(reason, cases[i].says);
	}
	assert_int_equal(opens(NULL, 0, "/etc", NULL), -EXDEV);
	assert_string_equal(reason, "work dir '/etc': this worker has no roots");
}

/* A prefix of a name is no root. */
static void a_neighbour_with_a_longer_name_is_outside(void **state)
{
	(void)state;
	assert_int_equal(opens_absolute("root2/other", NULL), -EXDEV);
	assert_int_equal(opens_absolute("roo", NULL), -EXDEV);
	assert_int_equal(opens_absolute("outside/secret", NULL), -EXDEV);
	assert_int_equal(opens_absolute("root/../outside/secret", NULL), -EXDEV);
}

/* Another process swaps the directory for a link to the outside, as fast as it can. */
static void no_race_leads_out(void **state)
{
	int looked = 0, escaped = 0;
	struct stat outside, got;
	const char *roots[] = {root};
	pid_t pid;

	(void)state;
	assert_int_equal(fstatat(top_fd, "outside/secret", &outside, 0), 0);
	make("root/swap");
	make("root/swap/secret");
	assert_int_equal(symlinkat("../outside", top_fd, "root/link"), 0);
	pid = fork();
	if (pid == 0)
		for (;;)
			syscall(SYS_renameat2, top_fd, "root/swap", top_fd, "root/link",
				2 /* RENAME_EXCHANGE */);
	for (int i = 0; i < RACES; i++) {
		int fd = -1;
		if (workdir_open(roots, 1, "swap/secret", &fd, reason) < 0)
			continue;
		looked++;
		assert_int_equal(fstat(fd, &got), 0);
		escaped += got.st_ino == outside.st_ino && got.st_dev == outside.st_dev;
		close(fd);
	}
	assert_int_equal(kill(pid, SIGKILL), 0); /* our own child, not waited for */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(escaped, 0);
	assert_true(looked > 0);
}

/* ---- the private directory ---------------------------------------------------------------------------------------- */

static void a_run_dir_is_private_and_made_once(void **state)
{
	struct stat stat_;
	int fd, again = -1;

	(void)state;
	umask(0);
	assert_int_equal(rundir_make(top_fd, "run", &fd), 0);
	assert_int_equal(fstat(fd, &stat_), 0);
	assert_int_equal(stat_.st_mode & 07777, 0700);
	assert_int_equal(fstatat(fd, "tmp", &stat_, 0), 0);
	assert_int_equal(fstatat(fd, "home", &stat_, 0), 0);
	assert_int_equal(rundir_put_secret(fd, "token", SPAN("secret")), 0);
	assert_int_equal(fstatat(fd, "token", &stat_, 0), 0);
	assert_int_equal(stat_.st_mode & 07777, 0600);
	assert_int_equal(stat_.st_size, 6);
	assert_int_equal(rundir_put_secret(fd, "token", SPAN("other")), -EEXIST);
	assert_int_equal(rundir_make(top_fd, "run", &again), -EEXIST);
	assert_int_equal(rundir_make(top_fd, "../run", &again), -EINVAL);
	assert_int_equal(rundir_make(top_fd, "..", &again), -EINVAL);
	assert_int_equal(again, -1);
	close(fd);
	assert_int_equal(rundir_remove(top_fd, "run"), 0);
	assert_int_equal(rundir_remove(top_fd, "run"), 0);
}

/* Links to the outside, closed directories, a deep chain, names with newlines. */
static void a_hostile_run_dir_is_removed_and_nothing_else(void **state)
{
	struct stat stat_;
	int fd, deep;

	(void)state;
	assert_int_equal(rundir_make(top_fd, "run", &fd), 0);
	assert_int_equal(symlinkat("../outside", fd, "out"), 0);
	assert_int_equal(symlinkat("/", fd, "slash"), 0);
	assert_int_equal(mkdirat(fd, "new\nline", 0700), 0);
	assert_int_equal(mkdirat(fd, "closed", 0700), 0);
	assert_int_equal(mkdirat(fd, "closed/inner", 0700), 0);
	assert_int_equal(fchmodat(fd, "closed/inner", 0, 0), 0);
	assert_int_equal(fchmodat(fd, "closed", 0, 0), 0);
	deep = dup(fd);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(mkdirat(deep, "d", 0700), 0);
		int next = openat(deep, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(deep);
		deep = next;
	}
	close(deep);
	close(fd);
	assert_int_equal(rundir_remove(top_fd, "run"), 0);
	assert_int_equal(fstatat(top_fd, "run", &stat_, 0), -1);
	assert_int_equal(fstatat(top_fd, "outside/secret", &stat_, 0), 0);
}

/* However much a child leaves: nobody waits for all of it at once. */
static void a_run_dir_is_removed_in_pieces(void **state)
{
	char name[32];
	int fd, pieces = 0, r;

	(void)state;
	assert_int_equal(rundir_make(top_fd, "large", &fd), 0);
	for (int i = 0; i < 250; i++) {
		snprintf(name, sizeof name, "tmp/dir-%d", i / 50);
		mkdirat(fd, name, 0700);
		snprintf(name, sizeof name, "tmp/dir-%d/file-%d", i / 50, i);
		close(openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	close(fd);
	while ((r = rundir_remove_some(top_fd, "large", 100)) == -EAGAIN)
		pieces++;
	assert_int_equal(r, 0);
	assert_in_range(pieces, 2, 4);
	assert_int_equal(faccessat(top_fd, "large", F_OK, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_beneath_a_root_is_opened),
		cmocka_unit_test(a_later_root_may_have_it),
		cmocka_unit_test(a_root_itself_may_be_a_link),
		cmocka_unit_test(what_is_wrong_with_a_path_is_said),
		cmocka_unit_test(a_neighbour_with_a_longer_name_is_outside),
		cmocka_unit_test(no_race_leads_out),
		cmocka_unit_test(a_run_dir_is_private_and_made_once),
		cmocka_unit_test(a_hostile_run_dir_is_removed_and_nothing_else),
		cmocka_unit_test(a_run_dir_is_removed_in_pieces),
	};

	return cmocka_run_group_tests(tests, build, tear_down);
}
