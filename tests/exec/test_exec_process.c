/* One process: it starts as it should, it is told what it is told, and how it ended is known exactly. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/request.h"
#include "exec/request/search.h"
#include "world.h"
#include "../skip.h"

/* ---- how it ends -------------------------------------------------------------------------------------------------- */

static void an_exit_status_is_told(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "exit", "75"));
	assert_true(running.started);
	assert_true(running.exited);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 75);
	assert_false(running.end.stop_asked);
	assert_false(running.end.kill_used);
	assert_int_equal(running.end.strays, 0);
	assert_true(running.exited_peak_bytes > 0);
	assert_true(running.end.memory_peak_bytes >= running.exited_peak_bytes);
	assert_nothing_left(&running);
	running_done(&running);
}

static void a_signal_is_told(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "signal", "10"));
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.code, SIGUSR1);
	running_done(&running);
}

static void a_crash_is_told_and_leaves_no_core(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "crash"));
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.code, SIGSEGV);
	assert_false(running.end.core_dumped);
	running_done(&running);
}

static void one_that_closes_its_stdio_ends_like_any_other(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "closed"));
	assert_int_equal(running.end.code, 7);
	running_done(&running);
}

static bool is_mute(void *running)
{
	return ((struct running *)running)->closed[STREAM_OUT];
}

static void one_that_closes_its_output_and_stays_is_told_of(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "mute"));
	world_until(&shared_world, is_mute, &running);
	assert_string_equal(running_text(&running, STREAM_OUT), "last");
	assert_false(running.exited || running.closed[STREAM_ERR]);
	process_kill(running.process);
	world_until_gone(&running);
	running_done(&running);
}

/* ---- how it begins ------------------------------------------------------------------------------------------------ */

static void it_has_three_descriptors(void **state)
{
	struct running running;

	(void)state;
	int open_ones[] = {open("/dev/null", O_RDONLY), open("/dev/zero", O_RDONLY)}; /* not closed at exec */
	world_finish(&shared_world, &running, CHILD(&shared_world, "descriptors"));
	assert_string_equal(running_text(&running, STREAM_OUT), "0 1 2 \n");
	close(open_ones[0]);
	close(open_ones[1]);
	running_done(&running);
}

static void its_environment_is_what_was_given_and_allowed(void **state)
{
	static const char *const env[] = {"PATH=/usr/bin", "A=given", NULL},
				 *const allow[] = {"A", "B", "C", NULL};
	struct running running;
	char expected[256];

	(void)state;
	setenv("A", "ours", 1);
	setenv("B", "allowed=too", 1);
	setenv("SECRET", "not for you", 1);
	unsetenv("C");
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "env"));
	spec.env = env;
	spec.env_allow = allow;
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	snprintf(
		expected, sizeof expected, "STINT_RUN=%s\nPATH=/usr/bin\nA=given\nB=allowed=too\n", spec.run);
	assert_string_equal(running_text(&running, STREAM_OUT), expected);
	running_done(&running);
}

static void signals_session_umask_and_directory_are_fresh(void **state)
{
	struct running running;
	char expected[256];
	sigset_t set, old;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGUSR1, SIG_IGN);
	world_finish(&shared_world, &running, CHILD(&shared_world, "state"));
	signal(SIGUSR1, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	snprintf(expected, sizeof expected, "blocked=0 ignored=0 umask=077 leader=1 nnp=1 cwd=%s\n",
		shared_world.dir);
	assert_string_equal(running_text(&running, STREAM_OUT), expected);
	running_done(&running);
}

static void a_work_dir_that_may_not_be_entered_is_told(void **state)
{
	struct running running;

	(void)state;
	if (geteuid() == 0)
		skip_because("root may enter anything; exec_process_as_nobody does it");
	assert_int_equal(mkdirat(shared_world.dir_fd, "barred", 0), 0);
	cleanup(close_at) int fd = openat(shared_world.dir_fd, "barred", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "exit", "0"));
	spec.workdir_fd = fd;
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_WORKDIR);
	assert_int_equal(running.end.fault.error, EACCES);
	running_done(&running);
}

static void its_limits_are_set(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "limits"));
	assert_string_equal(running_text(&running, STREAM_OUT), "files=1024 core=0 file=1073741824\n");
	running_done(&running);
}

static void a_program_is_found_in_its_own_path(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running,
		(const char *const[]){"sh", "-c", "echo $0 $1; exit 4", "a b", "$HOME", NULL});
	assert_string_equal(running_text(&running, STREAM_OUT), "a b $HOME\n");
	assert_int_equal(running.end.code, 4);
	running_done(&running);
}

static void that_a_silent_program_runs_is_told(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, (const char *const[]){"sleep", "1000", NULL});
	world_until_started(&running);
	process_kill(running.process);
	world_until_gone(&running);
	running_done(&running);
}

static void write_file(const char *name, const char *text, mode_t mode);

static void finish_in_path(struct running *running, const char *program)
{
	char path[600];

	snprintf(path, sizeof path, "PATH=%s/first:%s/second:/usr/bin:/bin", shared_world.dir,
		shared_world.dir);
	struct process_spec spec = world_spec(&shared_world, running, (const char *const[]){program, NULL});
	spec.env = (const char *const[]){path, NULL};
	world_start(&shared_world, running, &spec);
	world_until_gone(running);
}

static void a_program_that_moved_within_its_path_is_found_again(void **state)
{
	struct running running;

	(void)state;
	assert_int_equal(mkdirat(shared_world.dir_fd, "first", 0755), 0);
	assert_int_equal(mkdirat(shared_world.dir_fd, "second", 0755), 0);
	write_file("second/tool", "#!/bin/sh\necho second\n", 0755);
	for (int i = 0; i < 2; i++) {
		finish_in_path(&running, "tool");
		assert_string_equal(running_text(&running, STREAM_OUT), "second\n");
		running_done(&running);
	}
	write_file("first/tool", "#!/bin/sh\necho first\n", 0755);
	assert_int_equal(unlinkat(shared_world.dir_fd, "second/tool", 0), 0);
	finish_in_path(&running, "tool");
	assert_string_equal(running_text(&running, STREAM_OUT), "first\n");
	running_done(&running);
}

/* A directory that is closed to the child must not make it run another program of that name. */
static void a_program_that_the_wall_hides_is_refused_and_no_other_is_taken(void **state)
{
	char hidden[] = "/tmp/stint-hidden-XXXXXX", program[100], path[200];
	struct running running;

	(void)state;
	assert_non_null(mkdtemp(hidden));
	snprintf(program, sizeof program, "%s/sh", hidden);
	FILE *file = fopen(program, "we");
	assert_non_null(file);
	fputs("#!/bin/sh\necho hidden\n", file);
	assert_int_equal(fchmod(fileno(file), 0755), 0);
	assert_int_equal(fclose(file), 0);
	snprintf(path, sizeof path, "PATH=%s:/usr/bin:/bin", hidden);
	struct process_spec spec =
		world_spec(&shared_world, &running, (const char *const[]){"sh", "-c", "echo other", NULL});
	spec.env = (const char *const[]){path, NULL};
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_EXEC);
	assert_int_equal(running.end.fault.error, EACCES);
	assert_string_equal(running.end.fault.detail, program);
	assert_string_equal(running_text(&running, STREAM_OUT), "");
	running_done(&running);
	assert_int_equal(unlink(program), 0);
	assert_int_equal(rmdir(hidden), 0);
}

/* ---- how it does not begin ---------------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text, mode_t mode)
{
	cleanup(close_at) int fd =
		openat(shared_world.dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static void assert_unstarted(const char *program, enum start_step step, int error)
{
	struct running running;

	world_finish(&shared_world, &running, (const char *const[]){program, NULL});
	assert_false(running.started);
	assert_false(running.exited);
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, step);
	assert_int_equal(running.end.fault.error, error);
	assert_string_equal(running.end.fault.detail, program);
	assert_nothing_left(&running);
	running_done(&running);
}

static void what_cannot_be_executed_is_told_apart(void **state)
{
	(void)state;
	write_file("text", "echo no first line\n", 0700);
	write_file("orphan", "#!/no/such/interpreter\n", 0700);
	write_file("closed", "#!/bin/sh\n", 0600);
	assert_unstarted("no-such-program", START_EXEC, ENOENT);
	assert_unstarted("./no-such-program", START_EXEC, ENOENT);
	assert_unstarted("./text", START_EXEC, ENOEXEC);
	assert_unstarted("./orphan", START_INTERPRETER, ENOENT);
	assert_unstarted("./closed", START_EXEC, EACCES);
	assert_unstarted("/usr", START_EXEC, EISDIR);
	assert_unstarted("/etc/passwd/x", START_EXEC, ENOTDIR);
	assert_unstarted("", START_EXEC, ENOENT);
}

static void a_fault_reads_like_a_sentence(void **state)
{
	struct start_fault fault = {START_INTERPRETER, ENOENT, "./run"};
	char text[128];

	(void)state;
	start_fault_text(&fault, text, sizeof text);
	assert_string_equal(text, "the interpreter is missing of './run': No such file or directory");
}

static void an_argument_that_is_too_long_is_told(void **state)
{
	size_t len = 200000;
	char *argument = malloc(len + 1);
	struct running running;

	(void)state;
	memset(argument, 'x', len);
	argument[len] = 0;
	world_finish(&shared_world, &running, CHILD(&shared_world, "exit", argument));
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_EXEC);
	assert_int_equal(running.end.fault.error, E2BIG);
	free(argument);
	running_done(&running);
}

static void a_bad_spec_starts_nothing(void **state)
{
	static const char *const bad_env[] = {"novalue", NULL}, *const twice[] = {"A=1", "A=2", NULL};
	struct running running;
	struct process *process = NULL;

	(void)state;
	struct process_spec good = world_spec(&shared_world, &running, CHILD(&shared_world, "exit", "0")),
			    bad;
	bad = good, bad.run = "../x";
	assert_int_equal(process_start(shared_world.host, &bad, &process), -EINVAL);
	bad = good, bad.argv = (const char *const[]){NULL};
	assert_int_equal(process_start(shared_world.host, &bad, &process), -EINVAL);
	bad = good, bad.workdir_fd = -1;
	assert_int_equal(process_start(shared_world.host, &bad, &process), -EINVAL);
	bad = good, bad.env = bad_env;
	assert_int_equal(process_start(shared_world.host, &bad, &process), -EINVAL);
	bad = good, bad.env = twice;
	assert_int_equal(process_start(shared_world.host, &bad, &process), -EINVAL);
	assert_null(process);
	assert_nothing_left(&running);
	running_done(&running);
}

/* ---- what it reads and writes ------------------------------------------------------------------------------------- */

static void its_input_is_a_file_with_the_bytes(void **state)
{
	size_t len = 1 << 20;
	char *input = malloc(len);
	struct running running;

	(void)state;
	for (size_t i = 0; i < len; i++)
		input[i] = (char)(i * 7);
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "copy"));
	spec.stdin_from = STDIN_BYTES;
	spec.input = (struct span){input, len};
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.text[STREAM_OUT].len, len);
	assert_memory_equal(running.text[STREAM_OUT].data, input, len);
	free(input);
	running_done(&running);
}

static void one_that_never_reads_blocks_nobody(void **state)
{
	size_t len = PROCESS_INPUT_BYTES_MAX;
	char *input = calloc(1, len);
	struct running running, other;

	(void)state;
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "hang"));
	spec.stdin_from = STDIN_BYTES;
	spec.input = (struct span){input, len};
	world_start(&shared_world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	world_finish(&shared_world, &other, CHILD(&shared_world, "exit", "0"));
	process_kill(running.process);
	world_until_gone(&running);
	free(input);
	running_done(&other);
	running_done(&running);
}

static void a_pipe_to_it_takes_bytes_as_they_come(void **state)
{
	struct running running;

	(void)state;
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "copy"));
	spec.stdin_from = STDIN_PIPE;
	world_start(&shared_world, &running, &spec);
	assert_int_equal(process_write(running.process, SPAN("one\n")), 0);
	world_until_text(&running, STREAM_OUT, "one\n");
	assert_int_equal(process_write(running.process, SPAN("two\n")), 0);
	process_close_stdin(running.process);
	assert_int_equal(process_write(running.process, SPAN("late\n")), -EPIPE);
	world_until_gone(&running);
	assert_string_equal(running_text(&running, STREAM_OUT), "one\ntwo\n");
	assert_int_equal(running.end.code, 0);
	running_done(&running);
}

static void a_pipe_to_one_that_never_reads_is_bounded(void **state)
{
	char *bytes = calloc(1, 1 << 20);
	struct running running;
	int fault = 0, taken = 0;

	(void)state;
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "hang"));
	spec.stdin_from = STDIN_PIPE;
	world_start(&shared_world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	while (!fault && taken < 100)
		fault = process_write(running.process, (struct span){bytes, 1 << 20}), taken++;
	assert_int_equal(fault, -ENOBUFS);
	process_kill(running.process);
	world_until_gone(&running);
	free(bytes);
	running_done(&running);
}

static void both_streams_are_kept_apart(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "text", "to out", "to err"));
	assert_string_equal(running_text(&running, STREAM_OUT), "to out");
	assert_string_equal(running_text(&running, STREAM_ERR), "to err");
	running_done(&running);
}

/* Unread until the end: the ring holds the last megabyte of what came, and knows how much that was. */
static void a_flood_keeps_its_end_and_counts_the_rest(void **state)
{
	enum { TOTAL = 20 << 20, KEPT = 1 << 20 };
	struct running running;

	(void)state;
	struct process_spec spec =
		world_spec(&shared_world, &running, CHILD(&shared_world, "flood", "20971520"));
	running.read_at_end = true;
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.code, 0);
	assert_int_equal(running.dropped[STREAM_OUT], TOTAL - KEPT);
	assert_int_equal(running.text[STREAM_OUT].len, KEPT);
	for (size_t at = 0; at < KEPT; at += 16)
		assert_int_equal(strtoul(running.text[STREAM_OUT].data + at, NULL, 10), TOTAL - KEPT + at);
	running_done(&running);
}

static void a_stream_that_holds_loses_nothing(void **state)
{
	enum { TOTAL = 3 << 20 };
	struct running running;

	(void)state;
	struct process_spec spec =
		world_spec(&shared_world, &running, CHILD(&shared_world, "flood", "3145728"));
	spec.overflow[STREAM_OUT] = OVERFLOW_HOLDS;
	spec.output_bytes_max[STREAM_OUT] = 4096;
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.dropped[STREAM_OUT], 0);
	assert_int_equal(running.text[STREAM_OUT].len, TOTAL);
	for (size_t at = 0; at < TOTAL; at += 16)
		assert_int_equal(strtoul(running.text[STREAM_OUT].data + at, NULL, 10), at);
	running_done(&running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exit_status_is_told),
		cmocka_unit_test(a_signal_is_told),
		cmocka_unit_test(a_crash_is_told_and_leaves_no_core),
		cmocka_unit_test(one_that_closes_its_stdio_ends_like_any_other),
		cmocka_unit_test(one_that_closes_its_output_and_stays_is_told_of),
		cmocka_unit_test(it_has_three_descriptors),
		cmocka_unit_test(its_environment_is_what_was_given_and_allowed),
		cmocka_unit_test(signals_session_umask_and_directory_are_fresh),
		cmocka_unit_test(a_work_dir_that_may_not_be_entered_is_told),
		cmocka_unit_test(its_limits_are_set),
		cmocka_unit_test(a_program_is_found_in_its_own_path),
		cmocka_unit_test(that_a_silent_program_runs_is_told),
		cmocka_unit_test(a_program_that_moved_within_its_path_is_found_again),
		cmocka_unit_test(a_program_that_the_wall_hides_is_refused_and_no_other_is_taken),
		cmocka_unit_test(what_cannot_be_executed_is_told_apart),
		cmocka_unit_test(a_fault_reads_like_a_sentence),
		cmocka_unit_test(an_argument_that_is_too_long_is_told),
		cmocka_unit_test(a_bad_spec_starts_nothing),
		cmocka_unit_test(its_input_is_a_file_with_the_bytes),
		cmocka_unit_test(one_that_never_reads_blocks_nobody),
		cmocka_unit_test(a_pipe_to_it_takes_bytes_as_they_come),
		cmocka_unit_test(a_pipe_to_one_that_never_reads_is_bounded),
		cmocka_unit_test(both_streams_are_kept_apart),
		cmocka_unit_test(a_flood_keeps_its_end_and_counts_the_rest),
		cmocka_unit_test(a_stream_that_holds_loses_nothing),
	};

	return cmocka_run_group_tests(tests, shared_world_open, shared_world_close);
}
