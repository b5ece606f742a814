/*
 * Trees under a lease: what becomes of them when nobody pushes it. The test is the supervisor, and one that does not push is like one that is
 * stopped; test_exec_death.c has one that is. And the rules of the deadline, on a clock that the test moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/take.h"
#include "exec/shim/deadline.h"
#include "exec/tree/proc.h"
#include "world.h"

enum { LONG_MS = 10 * 60 * 1000 };

/* From now on, and some in the past. */
static struct process_lease lease_of(int64_t ms, uint32_t grace_ms)
{
	return (struct process_lease){.until_ms = clock_ms(CLOCK_BOOTTIME) + ms, .grace_ms = grace_ms};
}

static void run_leased(struct running *running, const char *const *argv, struct process_lease lease)
{
	struct process_spec spec = world_spec(&shared_world, running, argv);

	spec.lease = lease;
	spec.stdin_from = STDIN_PIPE;
	world_start(&shared_world, running, &spec);
}

/* A stop is not there when it has been sent. */
static void stop_shim(const struct running *running)
{
	struct proc_stat stat;

	assert_int_equal(kill(running->identity.shim, SIGSTOP), 0);
	while (proc_stat_read(running->identity.shim, &stat) == 0 && stat.state != 'T')
		;
}

/* ---- trees ---- */

static void a_tree_that_nobody_pushes_is_ended_and_it_is_told(void **state)
{
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "polite"), lease_of(LONG_MS, LONG_MS));
	world_until_text(&running, STREAM_OUT, "ready");
	struct process_lease over = lease_of(0, LONG_MS);
	process_lease(running.process, &over);
	world_until_gone(&running);
	assert_true(running.end.lapsed);
	assert_false(running.end.stop_asked);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 41); /* TERM came first */
	assert_nothing_left(&running);
	running_done(&running);
}

static void also_one_that_had_its_lease_from_the_start_alone(void **state)
{
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "family", "5"), lease_of(300, 0));
	world_until_gone(&running);
	assert_true(running.end.lapsed);
	assert_nothing_left(&running);
	running_done(&running);
}

static void who_does_not_hear_term_is_killed_after_the_grace(void **state)
{
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "deaf"), lease_of(LONG_MS, 0));
	world_until_text(&running, STREAM_OUT, "ready");
	struct process_lease over = lease_of(0, 100);
	process_lease(running.process, &over);
	world_until_gone(&running);
	assert_true(running.end.lapsed);
	assert_true(running.end.kill_used);
	assert_int_equal(running.end.code, SIGKILL);
	assert_nothing_left(&running);
	running_done(&running);
}

/* Its shim sleeps from its first moment on until the lease is over. */
static void run_late(struct running *running)
{
	for (int64_t lease_ms = 500;; lease_ms *= 2) {
		struct process_lease lease = lease_of(lease_ms, 0);
		run_leased(running, CHILD(&shared_world, "polite"), lease);
		stop_shim(running);
		bool in_time = clock_ms(CLOCK_BOOTTIME) < lease.until_ms;
		while (clock_ms(CLOCK_BOOTTIME) < lease.until_ms)
			poll(NULL, 0, 10);
		if (in_time)
			return;
		kill(running->identity.shim, SIGCONT); /* the machine is busy: once more, with a longer one */
		world_until_gone(running);
		running_done(running);
	}
}

/* Its program ends meanwhile, and nobody else would see that. */
static void a_shim_that_somebody_stopped_goes_on_with_the_next_push(void **state)
{
	struct process_lease lease = lease_of(LONG_MS, 0);
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "polite"), lease);
	world_until_text(&running, STREAM_OUT, "ready");
	world_until_started(&running);
	assert_false(process_lease(running.process, &lease));
	stop_shim(&running);
	assert_int_equal(kill(running.identity.main, SIGTERM), 0);
	assert_true(process_lease(running.process, &lease));
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 41);
	assert_false(running.end.lapsed);
	running_done(&running);
}

static void a_shim_that_is_late_itself_hears_first_that_it_was_pushed(void **state)
{
	struct running running;

	(void)state;
	run_late(&running);
	struct process_lease pushed = lease_of(LONG_MS, 0);
	process_lease(running.process, &pushed);
	process_stop(running.process, LONG_MS);
	kill(running.identity.shim, SIGCONT);
	world_until_gone(&running);
	assert_false(running.end.lapsed);
	assert_true(running.end.stop_asked);
	running_done(&running);
}

static void who_has_no_work_has_no_lease(void **state)
{
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "copy"), (struct process_lease){0});
	stop_shim(&running);
	process_work(running.process, &(struct process_lease){.until_ms = 1});
	process_work(running.process, NULL);
	kill(running.identity.shim, SIGCONT);
	assert_int_equal(process_write(running.process, SPAN("here\n")), 0);
	world_until_text(&running, STREAM_OUT, "here\n");
	process_close_stdin(running.process);
	world_until_gone(&running);
	assert_false(running.end.lapsed);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 0);
	running_done(&running);
}

static void who_gets_work_gets_its_lease_with_it(void **state)
{
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "polite"), (struct process_lease){0});
	world_until_text(&running, STREAM_OUT, "ready");
	struct process_lease over = lease_of(0, LONG_MS);
	process_work(running.process, &over);
	world_until_gone(&running);
	assert_true(running.end.lapsed);
	running_done(&running);
}

static void what_we_had_stopped_before_did_not_lapse(void **state)
{
	struct running running;

	(void)state;
	run_leased(&running, CHILD(&shared_world, "deaf"), lease_of(LONG_MS, 0));
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, LONG_MS);
	struct process_lease over = lease_of(0, 0);
	process_lease(running.process, &over); /* but it is hurried */
	world_until_gone(&running);
	assert_false(running.end.lapsed);
	assert_true(running.end.stop_asked);
	assert_nothing_left(&running);
	running_done(&running);
}

/* ---- the rules ---- */

static struct deadline pushed(int64_t until_ms, uint32_t window_ms)
{
	return (struct deadline){.lease = {.until_ms = until_ms, .window_ms = window_ms},
		.pushed_ms = 1000000,
		.asleep_ms = 5000};
}

static void a_sleep_of_the_machine_counts_where_the_server_is_elsewhere(void **state)
{
	struct deadline deadline = pushed(1055000, 0);

	(void)state;
	assert_int_equal(deadline_end_ms(&deadline, 5000), 1055000);
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 3600000), 1055000);
}

/* Pushed, asleep at once for an hour: the server gives 30 s from its waking on, of which 28 are ours. */
static void beside_the_server_there_is_a_window_after_it(void **state)
{
	struct deadline deadline = pushed(1055000, 28000);

	(void)state;
	assert_int_equal(deadline_end_ms(&deadline, 5000), 1055000);
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 3600000), 1000000 + 3600000 + 28000);
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 20000), 1055000); /* it has longer anyway */
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 2000), 1055000);
	deadline.lease.until_ms = 0;
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 3600000), INT64_MAX);
}

/* The server, too, calls so short a sleep none. */
static void a_sleep_of_two_seconds_is_none(void **state)
{
	struct deadline deadline = pushed(1003000, 3000);

	(void)state;
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 2000), 1003000);
	assert_int_equal(deadline_end_ms(&deadline, 5000 + 2001), 1000000 + 2001 + 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_that_nobody_pushes_is_ended_and_it_is_told),
		cmocka_unit_test(also_one_that_had_its_lease_from_the_start_alone),
		cmocka_unit_test(who_does_not_hear_term_is_killed_after_the_grace),
		cmocka_unit_test(a_shim_that_somebody_stopped_goes_on_with_the_next_push),
		cmocka_unit_test(a_shim_that_is_late_itself_hears_first_that_it_was_pushed),
		cmocka_unit_test(who_has_no_work_has_no_lease),
		cmocka_unit_test(who_gets_work_gets_its_lease_with_it),
		cmocka_unit_test(what_we_had_stopped_before_did_not_lapse),
		cmocka_unit_test(a_sleep_of_the_machine_counts_where_the_server_is_elsewhere),
		cmocka_unit_test(beside_the_server_there_is_a_window_after_it),
		cmocka_unit_test(a_sleep_of_two_seconds_is_none),
	};

	return cmocka_run_group_tests(tests, shared_world_open, shared_world_close);
}
