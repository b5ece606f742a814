/*
 * For each invariant a short history that keeps it and one that breaks it. Fields are written with blanks
 * here, which say() turns into the tabs of the format.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/checker.h"

/* Feeds lines ending with newlines; returns the verdict. */
static int say(struct checker *checker, const char *lines)
{
	int verdict = CHECKER_OK;
	char *copy = strdup(lines);
	char *rest = copy;

	assert_non_null(copy);
	for (char *line = strsep(&rest, "\n"); line && rest; line = strsep(&rest, "\n")) {
		for (char *c = line; *c; c++)
			*c = *c == ' ' ? '\t' : *c;
		verdict = checker_line(checker, line, strlen(line));
	}
	free(copy);
	return verdict;
}

static struct checker *ready_checker(void)
{
	struct checker *checker = checker_new(NULL);

	assert_non_null(checker);
	return checker;
}

static void assert_verdict(struct checker *checker, const char *history, const char *invariant)
{
	char first[16] = "OK";

	say(checker, history);
	if (checker_finish(checker) != CHECKER_OK)
		sscanf(checker_complaint(checker), "%15s", first);
	if (strcmp(first, invariant) != 0)
		print_error("%s", checker_complaint(checker));
	assert_string_equal(first, invariant);
	checker_free(checker);
}

static void assert_good(const char *history)
{
	assert_verdict(ready_checker(), history, "OK");
}

static void assert_bad(const char *history, const char *invariant)
{
	assert_verdict(ready_checker(), history, invariant);
}

/* Pieces that most histories begin with. */
#define CREATED \
	"E 1 b 0 1000 task.created t - - - - ready ann queue=q created=1000 ready_at=1000 max_attempts=3\n"
#define CLAIMED \
	CREATED \
	"E 2 b 100 1100 task.claimed t w 1 1 ready claimed w held=w crashes=1 beats=1 verify=1 granted=60000\n"
#define RUNNING CLAIMED "E 3 b 200 1200 task.progressed t w 1 1 claimed running w\n"
#define DONE    RUNNING "E 4 b 300 1300 task.completed t w 1 1 running done w held=- crashes=0 ended=complete\n"

static void a_whole_life_is_good(void **state)
{
	(void)state;
	assert_good(
		DONE "S t state=done fence=1 attempt=1 spent=0 crashes=0 held=- ended=complete queue=q\nQ\n"
		     "E 5 b 400 1400 task.purged t - - - done - retention\nQ\n");
}

static void an_empty_history_is_good(void **state)
{
	(void)state;
	assert_good("");
	assert_good("# nothing happened\n\nQ\n");
}

static void events_without_a_gap_keep_a1(void **state)
{
	(void)state;
	assert_good(CREATED "E 2 b 5 1005 task.parked t - - - ready pending ann\n");
}

static void a_gap_in_seq_breaks_a1(void **state)
{
	(void)state;
	assert_bad(CREATED "E 3 b 5 1005 task.parked t - - - ready pending ann\n", "A1");
	assert_bad(CREATED "E 1 b 5 1005 task.parked t - - - ready pending ann\n", "A1");
	assert_bad("E 2 b 5 1005 server.started - - - - - - server\n", "A1");
}

static void a_history_may_begin_after_its_baseline(void **state)
{
	(void)state;
	assert_good("B 41 t state=ready fence=3 attempt=3 ready_at=7 max_attempts=3\n"
		    "E 42 b 5 1005 task.claimed t w 4 4 ready claimed w held=w\n");
	assert_bad("B 41 t state=ready fence=3 attempt=3 ready_at=7 max_attempts=3\n"
		   "E 43 b 5 1005 task.claimed t w 4 4 ready claimed w held=w\n",
		"A1");
}

static void tables_that_equal_the_fold_keep_a2(void **state)
{
	(void)state;
	assert_good(CLAIMED "S t state=claimed fence=1 attempt=1 held=w crashes=1\nQ\n");
	assert_good(CLAIMED "B 2 t state=claimed fence=1 attempt=1 held=w crashes=1\n");
}

static void tables_that_differ_from_the_fold_break_a2(void **state)
{
	(void)state;
	assert_bad(CLAIMED "S t state=ready fence=1 attempt=1\n", "A2");
	assert_bad(CLAIMED "S t state=claimed fence=1 attempt=1 spent=1\n", "A2");
	assert_bad(CLAIMED "B 2 t state=claimed fence=2\n", "A2");
	assert_bad(CLAIMED "S other state=ready\n", "A2");
}

static void a_task_missing_from_the_tables_breaks_a2(void **state)
{
	(void)state;
	assert_bad(CLAIMED "Q\n", "A2");
	assert_bad(CLAIMED "S t state=claimed\nQ\nQ\n", "A2");
}

static void an_unpublished_move_breaks_a3(void **state)
{
	(void)state;
	assert_bad(CREATED "E 2 b 5 1005 task.completed t w - - ready done w\n", "A3");
	assert_bad(CREATED "E 2 b 5 1005 task.confirmed t w - - ready ready w\n", "A3");
	assert_bad(CREATED "E 2 b 5 1005 task.invented t - - - ready done w\n", "A3");
	assert_bad("E 1 b 5 1005 server.started - - - - - ready server\n", "A3");
	assert_bad("E 1 b 0 1000 task.created t - - - - scheduled ann ready_at=5000\n"
		   "E 2 b 1 1001 task.requeued t - - - scheduled scheduled sweep ready_at=5000\n",
		"A3");
}

static void a_note_leaves_the_state_as_it_is(void **state)
{
	(void)state;
	assert_good(RUNNING "E 4 b 300 1300 task.progressed t w 1 1 running running w held=w\n");
	assert_good(DONE "E 5 b 400 1400 task.orphan_result t w2 7 3 done done w2\n");
}

static void an_operator_may_reopen_what_was_final(void **state)
{
	(void)state;
	assert_good(DONE "E 5 b 400 1400 task.retried t - - - done ready ann spent=0 ready_at=1400\n"
			 "E 6 b 500 1500 task.claimed t w 2 2 ready claimed w held=w crashes=1\n");
}

static void a_move_out_of_a_final_state_breaks_a4(void **state)
{
	(void)state;
	assert_bad(DONE "E 5 b 400 1400 task.claimed t w 2 2 done claimed w held=w\n", "A4");
	assert_bad(DONE "E 5 b 400 1400 task.completed t w 1 1 done done w\n", "A4");
	assert_bad(DONE "E 5 b 400 1400 task.retried t w - - done ready w\n", "A4");
}

#define WORKER "E 1 b 0 1000 worker.registered - w - - - - w lease=60000 max=1 slot=s\n"
#define GONE   WORKER "E 2 b 60000 61000 worker.inactive - w - - - - sweep reason=expired deadline=60000\n"

static void a_worker_lives_one_way(void **state)
{
	(void)state;
	assert_good(WORKER "E 2 b 5 1005 worker.quiet - w - - - - ann\n"
			   "E 3 b 6 1006 worker.terminating - w - - - - ann\n"
			   "E 4 b 7 1007 worker.inactive - w - - - - w reason=shutdown\n");
	assert_bad(WORKER "E 2 b 5 1005 worker.terminating - w - - - - ann\n"
			  "E 3 b 6 1006 worker.quiet - w - - - - ann\n",
		"A5");
	assert_bad(WORKER "E 2 b 5 1005 worker.registered - w - - - - w\n", "A5");
}

static void an_inactive_worker_that_acts_breaks_a4(void **state)
{
	(void)state;
	assert_bad(GONE "E 3 b 61000 62000 worker.registered - w - - - - w\n", "A4");
	assert_bad(GONE "E 3 b 61000 62000 worker.quiet - w - - - - ann\n", "A4");
	assert_bad(GONE "E 3 b 61000 62000 worker.updated - w - - - - w\n", "A4");
	assert_good(WORKER "E 2 b 5 1005 worker.updated - w - - - - w lease=60000 max=2 slot=s\n");
	assert_bad(GONE "E 3 b 61000 62000 task.created t - - - - ready ann ready_at=62000\n"
			"E 4 b 61001 62001 task.claimed t w 1 1 ready claimed w held=w\n",
		"A4");
}

static void a_name_may_register_again(void **state)
{
	(void)state;
	assert_good(GONE "E 3 b 61000 62000 worker.registered - w - - - - w named=1\n");
}

static void a_quiet_worker_that_claims_breaks_a4(void **state)
{
	(void)state;
	assert_bad(WORKER "E 2 b 5 1005 worker.quiet - w - - - - ann\n"
			  "E 3 b 6 1006 task.created t - - - - ready ann ready_at=1006\n"
			  "E 4 b 7 1007 task.claimed t w 1 1 ready claimed w held=w\n",
		"A4");
}

static void an_event_from_another_state_breaks_a5(void **state)
{
	(void)state;
	assert_bad(CREATED "E 2 b 5 1005 task.requeued t - - - scheduled ready sweep\n", "A5");
	assert_bad(CREATED "E 2 b 5 1005 task.created t - - - - ready ann\n", "A5");
	assert_bad("E 1 b 5 1005 task.parked t - - - ready pending ann\n", "A5");
}

static void claims_one_after_the_other_keep_b1(void **state)
{
	(void)state;
	assert_good(RUNNING
		"E 4 b 300 1300 task.released t w 1 1 running ready w held=- crashes=0 ready_at=1300\n"
		"E 5 b 400 1400 task.claimed t w2 2 2 ready claimed w2 held=w2 crashes=1\n");
}

static void two_live_claims_break_b1(void **state)
{
	(void)state;
	assert_bad(CLAIMED "E 3 b 200 1200 task.claimed t w2 2 2 claimed claimed w2 held=w2\n", "B1");
}

static void a_claim_that_outlives_its_end_breaks_b1(void **state)
{
	(void)state;
	assert_bad(RUNNING "E 4 b 300 1300 task.completed t w 1 1 running done w held=w crashes=0\n", "B1");
	assert_bad(RUNNING "E 4 b 300 1300 task.updated t - - - running running ann held=-\n", "B1");
}

static void a_resumed_claim_gets_the_next_fence(void **state)
{
	(void)state;
	assert_good(RUNNING "E 4 b 300 1300 task.claimed t w 2 2 running claimed w held=w crashes=1\n"
			    "E 5 b 400 1400 task.completed t w 2 2 claimed done w held=- crashes=0\n");
}

static void a_fence_that_does_not_rise_by_one_breaks_b2(void **state)
{
	(void)state;
	assert_bad(RUNNING "E 4 b 300 1300 task.claimed t w 1 2 running claimed w held=w\n", "B2");
	assert_bad(RUNNING "E 4 b 300 1300 task.claimed t w 3 2 running claimed w held=w\n", "B2");
	assert_bad(CLAIMED "E 3 b 300 1300 task.updated t - 2 - claimed claimed ann\n", "B2");
}

#define STARTED "E 1 b 0 1000 server.started - - - - - - server generation=1 start=0\n"
#define FENCED                                                                  \
	STARTED "E 2 b 1 1001 task.created t - - - - ready ann ready_at=1001\n" \
		"E 3 b 2 1002 task.claimed t w 1000000000001 1 ready claimed w held=w\n"
#define RESTORED FENCED "E 4 b 3 1003 server.restored - - - - - - ann generation=2\n"

static void a_restore_begins_a_new_generation_of_fences(void **state)
{
	(void)state;
	assert_good(RESTORED
		"E 5 b 4 1004 task.requeued t w 1000000000001 1 claimed ready server held=- crashes=0\n"
		"E 6 b 5 1005 task.claimed t w 2000000000001 2 ready claimed w held=w\n"
		"E 7 b 6 1006 task.progressed t w 2000000000001 2 claimed running w\n");
}

static void a_fence_of_the_wrong_generation_breaks_b2(void **state)
{
	(void)state;
	assert_bad(RESTORED "E 5 b 4 1004 task.requeued t w 1000000000001 1 claimed ready server\n"
			    "E 6 b 5 1005 task.claimed t w 1000000000002 2 ready claimed w held=w\n",
		"B2");
}

static void an_act_under_a_fence_of_before_the_restore_breaks_d7(void **state)
{
	(void)state;
	assert_bad(RESTORED "E 5 b 4 1004 task.progressed t w 1000000000001 1 claimed running w\n", "D7");
	assert_bad(FENCED "E 4 b 3 1003 server.restored - - - - - - ann generation=1\n", "D7");
	assert_bad(FENCED "E 4 b 3 1003 server.started - - - - - - server generation=2 start=3\n", "D7");
}

static void a_restore_may_take_events_back(void **state)
{
	(void)state;
	assert_good(FENCED "E 3 b 3 1003 server.restored - - - - - - ann generation=2\n"
			   "B 2 t state=ready ready_at=1001\n"
			   "E 4 b 5 1005 task.claimed t w 2000000000001 1 ready claimed w held=w\n");
	assert_bad(FENCED "E 3 b 3 1003 server.restored - - - - - - ann generation=2\n"
			  "E 4 b 5 1005 task.claimed t w 2000000000001 1 ready claimed w held=w\n",
		"A5");
}

static void a_stranger_that_acts_breaks_b3(void **state)
{
	(void)state;
	assert_bad(CLAIMED "E 3 b 200 1200 task.progressed t w2 1 1 claimed running w2\n", "B3");
	assert_bad(CLAIMED "E 3 b 200 1200 task.completed t w 0 1 claimed done w\n", "B3");
	assert_bad(RUNNING "E 4 b 300 1300 task.released t w2 1 1 running ready w2 ended=release\n", "B3");
}

static struct checker *strict_checker(void)
{
	struct checker *checker = ready_checker();

	assert_int_equal(checker_set(checker, "verify_slack_ms", 1000), 0);
	return checker;
}

static void an_unconfirmed_claim_taken_back_in_time_keeps_b6(void **state)
{
	(void)state;
	assert_verdict(strict_checker(),
		CLAIMED "E 3 b 60100 61100 claim.unconfirmed t w 1 1 claimed ready sweep held=- crashes=0 "
			"deadline=60100 ready_at=61100\n",
		"OK");
}

static void an_unconfirmed_claim_left_alone_breaks_b6(void **state)
{
	(void)state;
	assert_verdict(
		strict_checker(), CLAIMED "E 3 b 121101 122101 server.degraded - - - - - - server\n", "B6");
	assert_verdict(strict_checker(),
		CLAIMED "E 3 b 121101 122101 task.progressed t w 1 1 claimed running w\n", "B6");
	assert_good(CLAIMED "E 3 b 121101 122101 task.progressed t w 1 1 claimed running w\n");
}

static void a_claim_that_was_not_to_be_verified_is_never_unconfirmed(void **state)
{
	(void)state;
	assert_bad(CREATED
		"E 2 b 100 1100 task.claimed t w 1 1 ready claimed w held=w verify=0\n"
		"E 3 b 120100 121100 claim.unconfirmed t w 1 1 claimed ready sweep deadline=120100\n",
		"B6");
}

#define EXPIRED_AT(lease, wall, keys)                                                    \
	RUNNING "E 4 b " lease " " wall                                                  \
		" task.expired t w 1 1 running ready sweep held=- crashes=1 ended=lost " \
		"ready_at=" wall " " keys "\n"

static void an_expiry_after_deadline_and_grace_keeps_b7(void **state)
{
	(void)state;
	assert_good(EXPIRED_AT("60200", "61200", "deadline=60200 granted=60000 grace_end=60000"));
}

static void an_early_expiry_breaks_b7(void **state)
{
	(void)state;
	assert_bad(EXPIRED_AT("60199", "61199", "deadline=60200 grace_end=60000"), "B7");
	assert_bad(EXPIRED_AT("60200", "61200", "deadline=60200 grace_end=60201"), "B7");
	assert_bad(EXPIRED_AT("60200", "61200", "granted=60000"), "B7");
}

static void an_expiry_before_the_lease_that_was_granted_breaks_b7(void **state)
{
	(void)state;
	assert_bad(CLAIMED "E 3 b 60099 61099 claim.unconfirmed t w 1 1 claimed ready sweep deadline=60099\n",
		"B7");
}

static void an_expiry_soon_after_a_start_breaks_b7(void **state)
{
	(void)state;
	assert_bad(CLAIMED "E 3 b 500 1500 server.started - - - - - - server start=500\n"
			   "E 4 b 60400 61400 claim.unconfirmed t w 1 1 claimed ready sweep deadline=60100\n",
		"B7");
	assert_bad(WORKER
		"E 2 b 500 1500 server.started - - - - - - server start=500\n"
		"E 3 b 60400 61400 worker.inactive - w - - - - sweep reason=expired deadline=60000\n",
		"B7");
}

static void an_expiry_in_another_boot_needs_a_rebase(void **state)
{
	(void)state;
	assert_bad(RUNNING
		"E 4 c 70000 90000 task.expired t w 1 1 running ready sweep deadline=60200 held=-\n",
		"B7");
	assert_good(RUNNING "E 4 c 10 90000 claim.rebased t w 1 1 running running server held=w\n"
			    "E 5 c 60010 150000 task.expired t w 1 1 running ready sweep held=- crashes=1 "
			    "ready_at=150000 deadline=60010\n");
}

static void an_early_end_of_a_worker_breaks_b7(void **state)
{
	(void)state;
	assert_good(GONE);
	assert_bad(WORKER
		"E 2 b 59999 60999 worker.inactive - w - - - - sweep reason=expired deadline=60000\n",
		"B7");
	assert_bad(WORKER "E 2 b 60000 61000 worker.inactive - w - - - - sweep reason=expired\n", "B7");
}

static void what_a_dead_worker_held_is_lost_before_its_deadline(void **state)
{
	(void)state;
	assert_good(
		WORKER "E 2 b 1 1001 task.created t - - - - ready ann ready_at=1001\n"
		       "E 3 b 2 1002 task.claimed t w 1 1 ready claimed w held=w\n"
		       "E 4 b 3 1003 worker.inactive - w - - - - w2 reason=replaced\n"
		       "E 5 b 3 1003 task.expired t w 1 1 claimed ready w2 held=- crashes=1 ready_at=1003\n");
}

#define TWO_TASKS                                                               \
	WORKER "E 2 b 1 1001 task.created t1 - - - - ready ann ready_at=1001\n" \
	       "E 3 b 2 1002 task.created t2 - - - - ready ann ready_at=1002\n" \
	       "E 4 b 3 1003 task.claimed t1 w 1 1 ready running w held=w\n"

static void a_worker_with_room_keeps_b9(void **state)
{
	(void)state;
	assert_good(TWO_TASKS "E 5 b 4 1004 task.completed t1 w 1 1 running done w held=-\n"
			      "E 6 b 5 1005 task.claimed t2 w 1 1 ready running w held=w\n");
	assert_good(TWO_TASKS "E 5 b 4 1004 task.claimed t1 w 2 2 running running w held=w\n");
}

static void a_worker_that_holds_too_much_breaks_b9(void **state)
{
	(void)state;
	assert_bad(TWO_TASKS "E 5 b 5 1005 task.claimed t2 w 1 1 ready running w held=w\n", "B9");
}

static void a_claim_before_the_parents_are_done_breaks_b10(void **state)
{
	(void)state;
	assert_bad("E 1 b 0 1000 task.created t - - - - waiting ann open_parents=2\n"
		   "E 2 b 1 1001 task.requeued t - - - waiting ready server open_parents=1 ready_at=1001\n",
		"B10");
	assert_bad("E 1 b 0 1000 task.created t - - - - ready ann owner=s1 ready_at=1000\n"
		   "E 2 b 1 1001 task.claimed t w 1 1 ready claimed w held=w slot=s2\n",
		"B10");
}

static void an_attempt_that_does_not_follow_breaks_c1(void **state)
{
	(void)state;
	assert_bad(CREATED "E 2 b 100 1100 task.claimed t w 1 2 ready claimed w held=w\n", "C1");
	assert_bad(CLAIMED "E 3 b 200 1200 task.progressed t w 1 2 claimed running w\n", "C1");
}

#define FAILED(to, keys)                                         \
	RUNNING "E 4 b 300 2000 task.failed t w 1 1 running " to \
		" w held=- ended=fail code=EXECUTION_ERROR " keys "\n"

static void an_attempt_with_two_outcomes_breaks_c1(void **state)
{
	(void)state;
	assert_bad(RUNNING "E 4 b 300 1300 task.completed t w 1 1 running done w held=- ended=fail\n", "C1");
	assert_bad(
		FAILED("failed", "class=task spent=1 crashes=0") "E 5 b 301 2001 task.updated t - - - failed "
								 "failed ann ended=complete\n",
		"C1");
}

static void going_on_after_the_last_attempt_breaks_c1(void **state)
{
	(void)state;
	assert_bad(FAILED("scheduled", "class=task spent=1 max_attempts=1 crashes=0 ready_at=12000"), "C1");
	assert_good(FAILED("failed", "class=task spent=1 max_attempts=1 crashes=0"));
}

static void each_class_of_failure_has_its_price(void **state)
{
	(void)state;
	assert_good(FAILED("scheduled", "class=task spent=1 crashes=0 ready_at=12000"));
	assert_good(FAILED("scheduled", "class=timeout spent=1 crashes=0 ready_at=14000"));
	assert_good(FAILED("ready", "class=crash spent=0 crashes=1 ready_at=2000"));
	assert_good(FAILED("ready", "class=host spent=0 crashes=0 interruptions=1 ready_at=2000"));
	assert_good(FAILED("scheduled", "class=quota spent=0 crashes=0 ready_at=302000"));
	assert_good(FAILED("ready",
		"class=quota spent=0 crashes=0 ready_at=2000 retry_at=302000")); /* its account is held */
	assert_good(FAILED("failed", "class=final spent=0 crashes=0"));
}

static void a_wrong_price_breaks_c2(void **state)
{
	(void)state;
	assert_bad(FAILED("scheduled", "class=quota spent=1 ready_at=302000"), "C2");
	assert_bad(FAILED("ready", "class=host spent=1 ready_at=2000"), "C2");
	assert_bad(FAILED("scheduled", "class=task spent=0 ready_at=12000"), "C2");
	assert_bad(FAILED("ready", "ready_at=2000"), "C2");
	assert_bad(RUNNING "E 4 b 300 1300 task.released t w 1 1 running ready w held=- spent=1\n", "C2");
	assert_bad(RUNNING "E 4 b 300 1300 task.released t w 1 1 running ready w held=- crashes=1\n", "C2");
	assert_bad(CREATED "E 2 b 100 1100 task.claimed t w 1 1 ready claimed w held=w crashes=0\n", "C2");
}

static void endless_interruptions_break_c2(void **state)
{
	(void)state;
	assert_bad(
		"B 9 t state=running held=w fence=9 attempt=9 crashes=1 interruptions=9\n"
		"E 10 b 300 1300 task.released t w 9 9 running ready w held=- interruptions=10 ready_at=1300\n",
		"C2");
	assert_good("B 9 t state=running held=w fence=9 attempt=9 crashes=1 interruptions=9\n"
		    "E 10 b 300 1300 task.blocked t w 9 9 running blocked w held=- ended=release "
		    "interruptions=10 code=INTERRUPTED_TOO_OFTEN\n");
}

#define QUARANTINED WORKER "E 2 b 1 1001 slot.quarantined - - - - - - w slot=s\n"
#define IN_SLOT     "E 3 b 2 1002 task.created t - - - - ready ann ready_at=1002\n"

static void a_quarantined_slot_that_runs_breaks_c3(void **state)
{
	(void)state;
	assert_bad(QUARANTINED IN_SLOT "E 4 b 3 1003 task.claimed t w 1 1 ready claimed w held=w\n", "C3");
	assert_bad(QUARANTINED "E 3 b 2 1002 worker.registered - w2 - - - - w2 slot=s\n", "C3");
}

static void a_slot_that_was_let_go_runs_again(void **state)
{
	(void)state;
	assert_good(QUARANTINED IN_SLOT "E 4 b 3 1003 slot.unquarantined - - - - - - ann slot=s\n"
					"E 5 b 4 1004 task.claimed t w 1 1 ready claimed w held=w\n");
}

static void a_task_that_waits_for_its_time_keeps_c4(void **state)
{
	(void)state;
	assert_good("E 1 b 0 1000 task.created t - - - - scheduled ann ready_at=5000\n"
		    "E 2 b 4000 5000 task.requeued t - - - scheduled ready sweep ready_at=5000\n"
		    "E 3 b 4001 4000 task.claimed t w 1 1 ready claimed w held=w\n");
}

static void a_task_before_its_time_breaks_c4(void **state)
{
	(void)state;
	assert_bad("E 1 b 0 1000 task.created t - - - - ready ann ready_at=5000\n", "C4");
	assert_bad("E 1 b 0 1000 task.created t - - - - scheduled ann ready_at=5000\n"
		   "E 2 b 3999 4999 task.requeued t - - - scheduled ready sweep ready_at=4999\n",
		"C4");
	assert_bad("E 1 b 0 1000 task.created t - - - - pending ann ready_at=5000\n"
		   "E 2 b 3999 4999 task.claimed t w 1 1 pending claimed w held=w\n",
		"C4");
}

static void a_back_off_out_of_bounds_breaks_c4(void **state)
{
	(void)state;
	assert_bad(FAILED("scheduled", "class=task spent=1 crashes=0 ready_at=11999"), "C4");
	assert_bad(FAILED("scheduled", "class=task spent=1 crashes=0 ready_at=14001"), "C4");
	assert_bad(FAILED("ready", "class=task spent=1 crashes=0 ready_at=2000"), "C4");
	assert_bad(FAILED("scheduled", "class=crash spent=0 crashes=1 ready_at=12000"), "C4");
	assert_good(FAILED("scheduled", "class=task spent=1 crashes=0 ready_at=9999 retry_at=9999"));
	assert_bad(FAILED("scheduled", "class=task spent=1 crashes=0 ready_at=9998 retry_at=9999"), "C4");
}

static void a_failed_check_waits_for_nothing(void **state)
{
	(void)state;
	assert_good(FAILED("ready", "class=task code=CHECK_FAILED spent=1 crashes=0 ready_at=2000"));
	assert_bad(
		FAILED("scheduled", "class=task code=CHECK_FAILED spent=1 crashes=0 ready_at=12000"), "C4");
}

#define CRASHED_BEFORE(n) "B 9 t state=running held=w fence=9 attempt=9 crashes=" n " max_attempts=3\n"
#define LOST_TO(to, keys) \
	"E 10 b 300 1000 task.expired t w 9 9 running " to " sweep held=- deadline=300 ended=lost " keys "\n"

static void the_third_crash_ends_a_task(void **state)
{
	(void)state;
	assert_good(CRASHED_BEFORE("3") LOST_TO("failed", "crashes=3"));
	assert_good(CRASHED_BEFORE("2") LOST_TO("scheduled", "crashes=2 ready_at=11000"));
}

static void crashes_beyond_the_budget_break_c5(void **state)
{
	(void)state;
	assert_bad(CRASHED_BEFORE("3") LOST_TO("scheduled", "crashes=3 ready_at=21000"), "C5");
	assert_bad(CRASHED_BEFORE("2") LOST_TO("failed", "crashes=2"), "C5");
}

static void acknowledged_work_that_is_recorded_keeps_d1(void **state)
{
	(void)state;
	assert_good(
		"C w ok claim t 1 - 1 2\nC ann ok enqueue t - - 1 2\n" DONE
		"C w ok progress t 1 - 1 2\nC w ok complete t 1 complete 1 2\nC w ok complete t 1 complete 3 4\n"
		"C w info release t 1 - 1 2\nC w fail fail t 1 - 1 2\n");
}

static void acknowledged_work_that_is_missing_breaks_d1(void **state)
{
	(void)state;
	assert_bad("C ann ok enqueue lost - - 1 2\n" DONE, "D1");
	assert_bad(CREATED "C w ok claim t 1 - 1 2\n", "D1");
	assert_bad(CLAIMED "C w2 ok claim t 1 - 1 2\n", "D1");
	assert_bad(CLAIMED "C w ok complete t 1 complete 1 2\n", "D1");
	assert_bad(CLAIMED "C w ok progress t 1 - 1 2\n", "D1");
	assert_bad(CLAIMED "C ann ok cancel t - - 1 2\n", "D1");
}

static void an_acknowledged_stale_fence_breaks_b3(void **state)
{
	(void)state;
	assert_bad(EXPIRED_AT("60200", "61200", "deadline=60200") "C w ok complete t 1 complete 1 2\n", "B3");
	assert_bad(RUNNING "E 4 b 300 1300 task.claimed t w 2 2 running claimed w held=w crashes=1\n"
			   "C w ok release t 1 release 1 2\n",
		"B3");
}

static void two_acknowledged_outcomes_break_e5(void **state)
{
	(void)state;
	assert_bad(DONE "C w ok complete t 1 complete 1 2\nC w ok fail t 1 fail 3 4\n", "E5");
}

static void a_worker_may_end_when_every_answer_to_its_beats_is_over(void **state)
{
	(void)state;
	assert_good("C w ok beat - - - 0 3 lease=60000\n" GONE "C w fail beat - - - 60001 60002\n");
	assert_good(WORKER "C w ok beat - - - 50000 50001 lease=60000\nC w info beat - - - 60000 60001\n");
}

static void an_expiry_before_the_end_that_a_beat_was_answered_with_breaks_b7(void **state)
{
	(void)state;
	assert_bad(GONE "C w ok beat - - - 1 3 lease=60000\n", "B7");
	assert_bad("C w ok beat - - - 1 3 lease=60000\n" GONE, "B7");
}

static void a_worker_that_is_told_to_be_inactive_and_is_not_breaks_d1(void **state)
{
	(void)state;
	assert_bad("C w fail beat - - - 1 3\n" WORKER, "D1");
}

static void what_is_bound_is_lost_with_its_worker_or_after_an_unbind(void **state)
{
	(void)state;
	assert_good("C w ok bind t 1 - 1 2\n" RUNNING);
	assert_good("C w ok bind t 1 - 1 2\nC w info unbind t 1 - 1 2\n" EXPIRED_AT(
		"60200", "61200", "deadline=60200") "C w ok lost t 1 - 1 2\n");
	assert_bad("C w ok bind t 1 - 1 2\n" EXPIRED_AT("60200", "61200", "deadline=60200"), "B7");
	assert_bad(RUNNING "C w ok bind t 2 - 1 2\n", "D1");
	assert_bad(RUNNING "C w2 ok bind t 1 - 1 2\n", "D1");
	assert_bad(RUNNING "C w ok lost t 1 - 1 2\n", "D1");
}

static void what_is_not_a_history_is_malformed(void **state)
{
	static const char *const lines[] = {"X\n", "E 1 b\n", "E x b 0 0 server.started - - - - - - s\n",
		"E 1 b 0 0 task.created t - - - - nosuch s\n", "S t height=3\n", "S t state\n", "hello\n",
		"E 1 b 0 0 task.created t - - - - ready s ended=perhaps\n"};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct checker *checker = ready_checker();

		assert_int_equal(say(checker, lines[i]), CHECKER_MALFORMED);
		assert_int_equal(checker_finish(checker), CHECKER_MALFORMED);
		checker_free(checker);
	}
}

static void the_complaint_shows_the_last_lines_of_that_task_only(void **state)
{
	struct checker *checker = ready_checker();

	(void)state;
	say(checker,
		CLAIMED "E 3 b 150 1150 task.created other - - - - ready ann ready_at=1150\n"
			"E 4 b 200 1200 task.claimed t w2 2 2 claimed claimed w2 held=w2\n"
			"E 5 b 200 1200 task.parked other - - - ready pending ann\n");
	const char *complaint = checker_complaint(checker);
	assert_non_null(strstr(complaint, "B1 w2 claims what w holds\n"));
	assert_non_null(strstr(complaint, "  E\t2\tb"));
	assert_non_null(strstr(complaint, "> E\t4\tb"));
	assert_null(strstr(complaint, "other"));
	assert_int_equal(checker_events(checker), 4);
	checker_free(checker);
}

static void a_missing_or_strange_table_is_an_error(void **state)
{
	(void)state;
	assert_null(checker_new("/nonexistent/states.md"));
	assert_int_equal(errno, ENOENT);
	assert_null(checker_new("/dev/null"));
	assert_int_equal(errno, EINVAL);
	checker_free(NULL);
}

static void an_unknown_limit_is_refused(void **state)
{
	struct checker *checker = ready_checker();

	(void)state;
	assert_int_equal(checker_set(checker, "patience", 1), -EINVAL);
	assert_int_equal(checker_set(checker, "retry_base_ms", 1), 0);
	checker_free(checker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_life_is_good),
		cmocka_unit_test(an_empty_history_is_good),
		cmocka_unit_test(events_without_a_gap_keep_a1),
		cmocka_unit_test(a_gap_in_seq_breaks_a1),
		cmocka_unit_test(a_history_may_begin_after_its_baseline),
		cmocka_unit_test(tables_that_equal_the_fold_keep_a2),
		cmocka_unit_test(tables_that_differ_from_the_fold_break_a2),
		cmocka_unit_test(a_task_missing_from_the_tables_breaks_a2),
		cmocka_unit_test(an_unpublished_move_breaks_a3),
		cmocka_unit_test(a_note_leaves_the_state_as_it_is),
		cmocka_unit_test(an_operator_may_reopen_what_was_final),
		cmocka_unit_test(a_move_out_of_a_final_state_breaks_a4),
		cmocka_unit_test(a_worker_lives_one_way),
		cmocka_unit_test(an_inactive_worker_that_acts_breaks_a4),
		cmocka_unit_test(a_name_may_register_again),
		cmocka_unit_test(a_quiet_worker_that_claims_breaks_a4),
		cmocka_unit_test(an_event_from_another_state_breaks_a5),
		cmocka_unit_test(claims_one_after_the_other_keep_b1),
		cmocka_unit_test(two_live_claims_break_b1),
		cmocka_unit_test(a_claim_that_outlives_its_end_breaks_b1),
		cmocka_unit_test(a_resumed_claim_gets_the_next_fence),
		cmocka_unit_test(a_fence_that_does_not_rise_by_one_breaks_b2),
		cmocka_unit_test(a_restore_begins_a_new_generation_of_fences),
		cmocka_unit_test(a_fence_of_the_wrong_generation_breaks_b2),
		cmocka_unit_test(an_act_under_a_fence_of_before_the_restore_breaks_d7),
		cmocka_unit_test(a_restore_may_take_events_back),
		cmocka_unit_test(a_stranger_that_acts_breaks_b3),
		cmocka_unit_test(an_unconfirmed_claim_taken_back_in_time_keeps_b6),
		cmocka_unit_test(an_unconfirmed_claim_left_alone_breaks_b6),
		cmocka_unit_test(a_claim_that_was_not_to_be_verified_is_never_unconfirmed),
		cmocka_unit_test(an_expiry_after_deadline_and_grace_keeps_b7),
		cmocka_unit_test(an_early_expiry_breaks_b7),
		cmocka_unit_test(an_expiry_before_the_lease_that_was_granted_breaks_b7),
		cmocka_unit_test(an_expiry_soon_after_a_start_breaks_b7),
		cmocka_unit_test(an_expiry_in_another_boot_needs_a_rebase),
		cmocka_unit_test(an_early_end_of_a_worker_breaks_b7),
		cmocka_unit_test(what_a_dead_worker_held_is_lost_before_its_deadline),
		cmocka_unit_test(a_worker_with_room_keeps_b9),
		cmocka_unit_test(a_worker_that_holds_too_much_breaks_b9),
		cmocka_unit_test(a_claim_before_the_parents_are_done_breaks_b10),
		cmocka_unit_test(an_attempt_that_does_not_follow_breaks_c1),
		cmocka_unit_test(an_attempt_with_two_outcomes_breaks_c1),
		cmocka_unit_test(going_on_after_the_last_attempt_breaks_c1),
		cmocka_unit_test(each_class_of_failure_has_its_price),
		cmocka_unit_test(a_wrong_price_breaks_c2),
		cmocka_unit_test(endless_interruptions_break_c2),
		cmocka_unit_test(a_quarantined_slot_that_runs_breaks_c3),
		cmocka_unit_test(a_slot_that_was_let_go_runs_again),
		cmocka_unit_test(a_task_that_waits_for_its_time_keeps_c4),
		cmocka_unit_test(a_task_before_its_time_breaks_c4),
		cmocka_unit_test(a_back_off_out_of_bounds_breaks_c4),
		cmocka_unit_test(a_failed_check_waits_for_nothing),
		cmocka_unit_test(the_third_crash_ends_a_task),
		cmocka_unit_test(crashes_beyond_the_budget_break_c5),
		cmocka_unit_test(acknowledged_work_that_is_recorded_keeps_d1),
		cmocka_unit_test(acknowledged_work_that_is_missing_breaks_d1),
		cmocka_unit_test(an_acknowledged_stale_fence_breaks_b3),
		cmocka_unit_test(two_acknowledged_outcomes_break_e5),
		cmocka_unit_test(a_worker_may_end_when_every_answer_to_its_beats_is_over),
		cmocka_unit_test(an_expiry_before_the_end_that_a_beat_was_answered_with_breaks_b7),
		cmocka_unit_test(a_worker_that_is_told_to_be_inactive_and_is_not_breaks_d1),
		cmocka_unit_test(what_is_bound_is_lost_with_its_worker_or_after_an_unbind),
		cmocka_unit_test(what_is_not_a_history_is_malformed),
		cmocka_unit_test(the_complaint_shows_the_last_lines_of_that_task_only),
		cmocka_unit_test(a_missing_or_strange_table_is_an_error),
		cmocka_unit_test(an_unknown_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
