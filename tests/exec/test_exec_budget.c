/* What a tree may use: a bound stops it, a budget that is used up ends it, and both count everything that it started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/cgroup_place.h"
#include "world.h"

enum { MIB = 1 << 20 };

static struct world world, bare; /* the second has no cgroup */
static struct cgroup_place place;

static int open_worlds(void **state)
{
	struct host_options without = {.cgroup_unwanted = true};

	(void)state;
	cgroup_look(&place);
	world_open(&world);
	world_open_with(&bare, &without);
	return 0;
}

static int close_worlds(void **state)
{
	(void)state;
	world_close(&world);
	world_close(&bare);
	return 0;
}

static void need(enum bound bound)
{
	struct host_options options = {.bounds = 1u << bound};

	if (!place.bounds[bound][0]) {
		print_message("skipped: %s\n", place.why_not[bound]);
		skip();
	}
	if (!place.closed[bound])
		return;
	world_close(&world); /* of the second version: it must be asked for */
	world_open_with(&world, &options);
}

static void run_to_the_end(struct world *in, struct running *running, const struct process_spec *spec)
{
	world_start(in, running, spec);
	world_until_gone(running);
	assert_nothing_left_of(running);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static void who_needs_more_memory_than_its_budget_is_ended_and_it_is_told(void **state)
{
	struct running running;

	(void)state;
	need(BOUND_MEMORY);
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "eat", "209715200"));
	spec.confine.limits.memory_bytes = 32 * MIB;
	run_to_the_end(&world, &running, &spec);
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.spent, SPENT_MEMORY);
	assert_string_equal(running_text(&running, STREAM_OUT), "");
	running_done(&running);
}

static void the_memory_of_a_grandchild_counts_and_ends_all(void **state)
{
	struct running running;

	(void)state;
	need(BOUND_MEMORY);
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "feed", "209715200"));
	spec.confine.limits.memory_bytes = 32 * MIB;
	run_to_the_end(&world, &running, &spec);
	assert_int_equal(running.end.spent, SPENT_MEMORY);
	running_done(&running);
}

static void who_stays_below_its_budget_of_memory_notices_nothing(void **state)
{
	struct running running;

	(void)state;
	need(BOUND_MEMORY);
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "eat", "8388608"));
	spec.confine.limits.memory_bytes = 64 * MIB;
	run_to_the_end(&world, &running, &spec);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.spent, SPENT_NOTHING);
	assert_string_equal(running_text(&running, STREAM_OUT), "ate\n");
	running_done(&running);
}

static void a_budget_of_memory_without_a_cgroup_is_refused_before_anything_starts(void **state)
{
	struct running running;
	struct process *process = NULL;
	struct host_options options = {.cgroup_unwanted = true, .bounds = 1u << BOUND_MEMORY};
	struct host *host = NULL;
	char complaint[HOST_COMPLAINT_BYTES] = "";

	(void)state;
	struct process_spec spec = world_spec(&bare, &running, CHILD(&bare, "exit", "0"));
	spec.confine.limits.memory_bytes = 64 * MIB;
	assert_int_equal(process_start(bare.host, &spec, &process), -EOPNOTSUPP);
	assert_null(process);
	options.shim = getenv("STINT_SHIM");
	assert_int_equal(host_open(&bare.loop, &options, &host, complaint), -EOPNOTSUPP);
	assert_null(host);
	running_done(&running);
}

/* ---- processor time ----------------------------------------------------------------------------------------------- */

static void spin(struct world *in, const char *mode, const char *count)
{
	struct running running;
	struct process_spec spec = world_spec(in, &running, CHILD(in, mode, count));

	spec.confine.limits.cpu_us = 500 * 1000;
	run_to_the_end(in, &running, &spec);
	assert_int_equal(running.end.spent, SPENT_CPU);
	running_done(&running);
}

static void processor_time_of_all_is_counted_together(void **state)
{
	(void)state;
	spin(&world, "spin", "3");
}

static void and_also_where_no_cgroup_counts_it(void **state)
{
	(void)state;
	spin(&bare, "spin", "3");
}

static void who_is_not_waited_for_is_counted(void **state)
{
	(void)state;
	spin(&world, "unwaited", "100");
	spin(&bare, "unwaited", "100");
}

static void who_ended_over_budget_before_anybody_looked_is_told_so(void **state)
{
	struct running running;

	(void)state;
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "eat", "67108864"));
	spec.confine.limits.cpu_us = 1; /* it has ended by itself before the second look */
	run_to_the_end(&world, &running, &spec);
	assert_int_equal(running.end.spent, SPENT_CPU);
	running_done(&running);
}

static void a_share_of_a_processor_is_set(void **state)
{
	struct running running;
	char path[CGROUP_PATH_BYTES + 200], text[100] = "";
	bool second;

	(void)state;
	need(BOUND_CPU);
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "hang"));
	spec.confine.limits.cpu_milli = 250;
	world_start(&world, &running, &spec);
	world_until_started(&running);
	second = strcmp(place.bounds[BOUND_CPU], place.tree) == 0;
	snprintf(path, sizeof path, "%s/stint-%s/%s", place.bounds[BOUND_CPU], running.identity.run,
		second ? "cpu.max" : "cpu.cfs_quota_us");
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof text, file));
	fclose(file);
	assert_string_equal(text, second ? "25000 100000\n" : "25000\n");
	process_kill(running.process);
	world_until_gone(&running);
	assert_int_equal(access(path, F_OK), -1);
	running_done(&running);
}

/* ---- tasks -------------------------------------------------------------------------------------------------------- */

static void as_root_too_a_fork_bomb_stops_at_its_wall(void **state)
{
	struct running running;
	int forked = 0;

	(void)state;
	need(BOUND_PIDS);
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "bomb", "200"));
	spec.confine.limits.tasks = 30;
	world_start(&world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "forked");
	assert_int_equal(sscanf(running_text(&running, STREAM_OUT), "forked %d", &forked), 1);
	assert_in_range(forked, 1, 30);
	process_kill(running.process);
	world_until_gone(&running);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* ---- output ------------------------------------------------------------------------------------------------------- */

static void who_writes_more_than_its_budget_is_ended(void **state)
{
	struct running running;

	(void)state;
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "flood", "1000000000"));
	spec.confine.limits.output_bytes = 100000;
	run_to_the_end(&world, &running, &spec);
	assert_int_equal(running.end.spent, SPENT_OUTPUT);
	running_done(&running);
}

static void a_byte_too_much_is_noticed_however_fast_it_ends(void **state)
{
	struct running running;

	(void)state;
	for (uint64_t budget = 4; budget <= 5; budget++) {
		struct process_spec spec = world_spec(&world, &running, CHILD(&world, "text", "12345", ""));
		spec.confine.limits.output_bytes = budget;
		run_to_the_end(&world, &running, &spec);
		assert_int_equal(running.end.spent,
			budget < strlen(running_text(&running, STREAM_OUT)) ? SPENT_OUTPUT : SPENT_NOTHING);
		running_done(&running);
	}
}

static void a_budget_begins_anew_when_it_is_told_so(void **state)
{
	struct running running;

	(void)state;
	struct process_spec spec = world_spec(&world, &running, CHILD(&world, "copy"));
	spec.stdin_from = STDIN_PIPE;
	spec.confine.limits.output_bytes = 4;
	world_start(&world, &running, &spec);
	assert_int_equal(process_write(running.process, SPAN("one\n")), 0);
	world_until_text(&running, STREAM_OUT, "one\n");
	process_work(running.process, &(struct process_lease){0});
	assert_int_equal(process_write(running.process, SPAN("two\n")), 0);
	world_until_text(&running, STREAM_OUT, "one\ntwo\n");
	assert_int_equal(process_end(running.process)->spent, SPENT_NOTHING);
	assert_int_equal(process_write(running.process, SPAN("3")), 0);
	world_until_gone(&running);
	assert_int_equal(running.end.spent, SPENT_OUTPUT);
	running_done(&running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_needs_more_memory_than_its_budget_is_ended_and_it_is_told),
		cmocka_unit_test(the_memory_of_a_grandchild_counts_and_ends_all),
		cmocka_unit_test(who_stays_below_its_budget_of_memory_notices_nothing),
		cmocka_unit_test(a_budget_of_memory_without_a_cgroup_is_refused_before_anything_starts),
		cmocka_unit_test(processor_time_of_all_is_counted_together),
		cmocka_unit_test(and_also_where_no_cgroup_counts_it),
		cmocka_unit_test(who_is_not_waited_for_is_counted),
		cmocka_unit_test(who_ended_over_budget_before_anybody_looked_is_told_so),
		cmocka_unit_test(a_share_of_a_processor_is_set),
		cmocka_unit_test(as_root_too_a_fork_bomb_stops_at_its_wall),
		cmocka_unit_test(who_writes_more_than_its_budget_is_ended),
		cmocka_unit_test(a_byte_too_much_is_noticed_however_fast_it_ends),
		cmocka_unit_test(a_budget_begins_anew_when_it_is_told_so),
	};

	return cmocka_run_group_tests(tests, open_worlds, close_worlds);
}
