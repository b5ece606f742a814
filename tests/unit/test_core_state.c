/*
 * The transition table against the contract, cell by cell. The moves below are written from the state table
 * of the contract by hand; `-` is before creation and after the purge.
 */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

// clang-format off
#define EVERYWHERE \
	"pending>pending scheduled>scheduled waiting>waiting ready>ready claimed>claimed running>running " \
	"asking>asking review>review blocked>blocked failed>failed done>done cancelled>cancelled"

static const char *const moves[EVENT_KIND_COUNT] = {
	[EVENT_TASK_CREATED]       = "->pending ->scheduled ->waiting ->ready ->blocked ->done ->failed",
	[EVENT_TASK_UPDATED]       = EVERYWHERE
	                             " scheduled>waiting scheduled>ready scheduled>blocked "
	                             "waiting>scheduled waiting>ready waiting>blocked "
	                             "ready>scheduled ready>waiting ready>blocked "
	                             "blocked>scheduled blocked>waiting blocked>ready",
	[EVENT_TASK_CLAIMED]       = "ready>claimed ready>running pending>claimed pending>running "
	                             "claimed>claimed claimed>running running>claimed running>running",
	[EVENT_TASK_CONFIRMED]     = "claimed>running",
	[EVENT_TASK_PROGRESSED]    = "claimed>running running>running asking>asking",
	[EVENT_TASK_ASKED]         = "claimed>asking running>asking",
	[EVENT_TASK_ANSWERED]      = "asking>running asking>ready claimed>running running>running",
	[EVENT_TASK_REVIEWED]      = "claimed>review running>review asking>review",
	[EVENT_TASK_COMPLETED]     = "claimed>done running>done asking>done review>done failed>done",
	[EVENT_TASK_FAILED]        = "claimed>ready claimed>scheduled claimed>failed "
	                             "running>ready running>scheduled running>failed "
	                             "asking>ready asking>scheduled asking>failed asking>asking "
	                             "review>ready review>failed "
	                             "pending>failed scheduled>failed waiting>failed ready>failed blocked>failed",
	[EVENT_TASK_BLOCKED]       = "claimed>blocked running>blocked asking>blocked ready>blocked waiting>blocked "
	                             "pending>blocked scheduled>blocked",
	[EVENT_TASK_RELEASED]      = "claimed>ready claimed>scheduled running>ready running>scheduled asking>asking",
	[EVENT_TASK_SUSPENDED]     = "claimed>waiting claimed>ready running>waiting running>ready",
	[EVENT_TASK_EXPIRED]       = "claimed>ready claimed>scheduled claimed>failed "
	                             "running>ready running>scheduled running>failed asking>asking",
	[EVENT_TASK_REQUEUED]      = "scheduled>ready waiting>ready waiting>scheduled blocked>waiting "
	                             "claimed>ready running>ready asking>asking ready>ready",
	[EVENT_TASK_CANCELLED]     = "pending>cancelled scheduled>cancelled waiting>cancelled ready>cancelled "
	                             "claimed>cancelled running>cancelled asking>cancelled review>cancelled "
	                             "blocked>cancelled",
	[EVENT_TASK_RETRIED]       = "blocked>ready blocked>waiting failed>ready failed>waiting "
	                             "done>ready done>waiting cancelled>ready cancelled>waiting",
	[EVENT_TASK_PARKED]        = "scheduled>pending waiting>pending ready>pending",
	[EVENT_TASK_UNPARKED]      = "pending>scheduled pending>waiting pending>ready pending>blocked",
	[EVENT_TASK_ORPHAN_RESULT] = EVERYWHERE,
	[EVENT_TASK_PURGED]        = "failed>- done>- cancelled>-",
	[EVENT_TASK_NOTED]         = EVERYWHERE,
	[EVENT_SESSION_STARTED]    = "claimed>claimed running>running asking>asking",
	[EVENT_SESSION_OUTPUT]     = "claimed>claimed running>running asking>asking",
	[EVENT_SESSION_USAGE]      = "claimed>claimed running>running asking>asking",
	[EVENT_SESSION_GONE]       = "scheduled>scheduled ready>ready asking>asking failed>failed",
	[EVENT_SESSION_ENDED]      = "scheduled>scheduled waiting>waiting ready>ready asking>asking review>review blocked>blocked "
	                             "failed>failed done>done cancelled>cancelled",
	[EVENT_TASK_STAGE_CHANGED] = "scheduled>scheduled waiting>waiting ready>ready claimed>claimed running>running "
	                             "asking>asking review>review blocked>blocked failed>failed done>done",
	[EVENT_GATE_OPENED]        = "review>review",
	[EVENT_GATE_PASSED]        = "review>review",
	[EVENT_GATE_REJECTED]      = "review>review",
	[EVENT_CLAIM_UNCONFIRMED]  = "claimed>ready",
	[EVENT_CLAIM_REBASED]      = "claimed>claimed running>running asking>asking",
};

// clang-format on

static const char *short_name(int state)
{
	return state == TASK_NOWHERE ? "-" : task_state_name((enum task_state)state);
}

static bool lists(const char *list, int from, int to)
{
	char move[40], word[40];
	int used;

	snprintf(move, sizeof move, "%s>%s", short_name(from), short_name(to));
	for (; list != NULL && sscanf(list, "%39s%n", word, &used) == 1; list += used) {
		if (strcmp(word, move) == 0)
			return true;
	}
	return false;
}

static bool table_has(int kind, int from, int to)
{
	return transition_is_legal((enum event_kind)kind, (enum task_state)from, (enum task_state)to);
}

static void assert_cell(int kind, int from, int to, bool expected)
{
	if (table_has(kind, from, to) != expected)
		fail_msg("%s %s>%s: %s", event_kind_name((enum event_kind)kind), short_name(from),
			short_name(to), expected ? "is missing" : "is not in the contract");
}

static void every_cell_of_the_table_is_as_the_contract_says(void **state)
{
	int legal = 0;

	(void)state;
	for (int kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++) {
		for (int from = TASK_NOWHERE; from < TASK_STATE_COUNT; from++) {
			for (int to = TASK_NOWHERE; to < TASK_STATE_COUNT; to++) {
				assert_cell(kind, from, to, lists(moves[kind], from, to));
				legal += lists(moves[kind], from, to);
			}
		}
	}
	assert_int_equal(legal, 195);
}

static void the_event_of_nothing_is_never_a_move(void **state)
{
	(void)state;
	for (int from = TASK_NOWHERE; from < TASK_STATE_COUNT; from++)
		for (int to = TASK_NOWHERE; to < TASK_STATE_COUNT; to++)
			assert_false(table_has(EVENT_NONE, from, to));
}

/* … and by the one word that may lift a task out of `failed`: see task_revive(). */
static void final_states_are_left_by_retry_and_purge_only(void **state)
{
	(void)state;
	for (int kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++) {
		for (int from = TASK_NOWHERE; from < TASK_STATE_COUNT; from++) {
			for (int to = TASK_NOWHERE; to < TASK_STATE_COUNT; to++) {
				if (from == to || !task_state_is_final((enum task_state)from))
					continue;
				bool revived = kind == EVENT_TASK_COMPLETED && from == TASK_FAILED;
				if (kind != EVENT_TASK_RETRIED && kind != EVENT_TASK_PURGED && !revived)
					assert_false(table_has(kind, from, to));
			}
		}
	}
}

static void events_of_workers_slots_and_queues_move_no_task(void **state)
{
	(void)state;
	for (int kind = EVENT_WORKER_REGISTERED; kind <= EVENT_SERVER_DEGRADED; kind++)
		for (int from = TASK_NOWHERE; from < TASK_STATE_COUNT; from++)
			for (int to = TASK_NOWHERE; to < TASK_STATE_COUNT; to++)
				assert_false(table_has(kind, from, to));
}

static void states_have_the_names_and_lanes_of_the_contract(void **state)
{
	static const struct {
		enum task_state state;
		const char *name, *status;
	} rows[] = {{TASK_PENDING, "pending", "todo"}, {TASK_SCHEDULED, "scheduled", "todo"},
		{TASK_WAITING, "waiting", "todo"}, {TASK_READY, "ready", "todo"},
		{TASK_CLAIMED, "claimed", "in-progress"}, {TASK_RUNNING, "running", "in-progress"},
		{TASK_ASKING, "asking", "in-progress"}, {TASK_REVIEW, "review", "review"},
		{TASK_BLOCKED, "blocked", "blocked"}, {TASK_FAILED, "failed", "blocked"},
		{TASK_DONE, "done", "done"}, {TASK_CANCELLED, "cancelled", "cancelled"}};

	(void)state;
	assert_int_equal(sizeof rows / sizeof rows[0], TASK_STATE_COUNT - 1);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_string_equal(task_state_name(rows[i].state), rows[i].name);
		assert_string_equal(task_state_status(rows[i].state), rows[i].status);
		assert_int_equal(task_status_from_name(rows[i].status, strlen(rows[i].status)),
			task_status_of(rows[i].state));
	}
}

static void unknown_names_are_no_status(void **state)
{
	(void)state;
	assert_int_equal(task_status_from_name("", 0), STATUS_NONE);
	assert_int_equal(task_status_from_name("revie", 5), STATUS_NONE);
	assert_int_equal(task_status_from_name("reviews", 7), STATUS_NONE);
	assert_int_equal(task_status_from_name("reviewed", 6), STATUS_REVIEW);
	assert_int_equal(task_status_from_name("REVIEW", 6), STATUS_NONE);
}

static void exactly_done_failed_and_cancelled_are_final(void **state)
{
	(void)state;
	for (int s = TASK_NOWHERE; s < TASK_STATE_COUNT; s++)
		assert_int_equal(task_state_is_final((enum task_state)s),
			s == TASK_DONE || s == TASK_FAILED || s == TASK_CANCELLED);
}

static void claimed_and_running_must_hold_a_claim_and_asking_may(void **state)
{
	(void)state;
	for (int s = TASK_NOWHERE; s < TASK_STATE_COUNT; s++) {
		bool must = s == TASK_CLAIMED || s == TASK_RUNNING;

		assert_int_equal(task_state_must_hold_claim((enum task_state)s), must);
		assert_int_equal(task_state_may_hold_claim((enum task_state)s), must || s == TASK_ASKING);
	}
}

static void stored_numbers_of_states_never_change(void **state)
{
	(void)state;
	assert_int_equal(TASK_NOWHERE, 0);
	assert_int_equal(TASK_PENDING, 1);
	assert_int_equal(TASK_SCHEDULED, 2);
	assert_int_equal(TASK_WAITING, 3);
	assert_int_equal(TASK_READY, 4);
	assert_int_equal(TASK_CLAIMED, 5);
	assert_int_equal(TASK_RUNNING, 6);
	assert_int_equal(TASK_ASKING, 7);
	assert_int_equal(TASK_REVIEW, 8);
	assert_int_equal(TASK_BLOCKED, 9);
	assert_int_equal(TASK_FAILED, 10);
	assert_int_equal(TASK_DONE, 11);
	assert_int_equal(TASK_CANCELLED, 12);
}

static void event_names_are_unique_and_say_their_noun(void **state)
{
	static const char *const nouns[] = {"task.", "claim.", "worker.", "slot.", "queue.", "server.",
		"token.", "session.", "execution.", "gate.", "hold.", "schedule.", "group.", "bulk.",
		"budget.", "inbox."};

	(void)state;
	for (int a = EVENT_NONE + 1; a < EVENT_KIND_COUNT; a++) {
		if (!event_kind_is_known((enum event_kind)a))
			continue; /* kept free */
		const char *name = event_kind_name((enum event_kind)a);
		bool known = false;

		for (size_t i = 0; i < sizeof nouns / sizeof nouns[0]; i++)
			known = known || strncmp(name, nouns[i], strlen(nouns[i])) == 0;
		assert_true(known);
		for (int b = a + 1; b < EVENT_KIND_COUNT; b++)
			if (event_kind_is_known((enum event_kind)b))
				assert_string_not_equal(name, event_kind_name((enum event_kind)b));
	}
}

static void a_stage_that_is_set_again_changes_nothing(void **state)
{
	struct task task = ready_task(*state);

	task.workflow = WORKFLOW_AUTOPILOT;
	task.stage = STAGE_BUILDING;
	assert_int_equal(task_set_stage(&task, STAGE_BUILDING).event, EVENT_NONE);
	assert_int_equal(task_set_stage(&task, STAGE_PR_CREATED).event, EVENT_TASK_STAGE_CHANGED);
}

static void a_session_is_gone_when_its_claim_was_lost_and_ended_otherwise(void **state)
{
	static const enum event_kind lost[] = {
		EVENT_TASK_EXPIRED, EVENT_CLAIM_UNCONFIRMED, EVENT_TASK_REQUEUED};
	struct task ready = ready_task(*state);

	for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
		assert_int_equal(task_session_event(lost[i], ready.fence, true, &ready), EVENT_SESSION_GONE);
	assert_int_equal(
		task_session_event(EVENT_TASK_COMPLETED, ready.fence, true, &ready), EVENT_SESSION_ENDED);
	assert_true(task_session_is_over(TASK_REVIEW));
	assert_true(task_session_is_over(TASK_BLOCKED));
	assert_true(task_session_is_over(TASK_DONE));
	assert_false(task_session_is_over(TASK_READY));
}

static void numbers_that_are_kept_free_are_no_kind(void **state)
{
	(void)state;
	assert_false(event_kind_is_known(EVENT_NONE));
	assert_false(event_kind_is_known(EVENT_KIND_COUNT));
	assert_false(event_kind_is_known((enum event_kind)40));
	assert_true(event_kind_is_known(EVENT_SESSION_STARTED));
}

static void exactly_four_kinds_are_notes_about_a_session(void **state)
{
	(void)state;
	for (int kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++) {
		if (event_kind_is_known((enum event_kind)kind))
			assert_int_equal(event_kind_is_of_session((enum event_kind)kind),
				strncmp(event_kind_name((enum event_kind)kind), "session.", 8) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cell_of_the_table_is_as_the_contract_says),
		cmocka_unit_test(the_event_of_nothing_is_never_a_move),
		cmocka_unit_test(final_states_are_left_by_retry_and_purge_only),
		cmocka_unit_test(events_of_workers_slots_and_queues_move_no_task),
		cmocka_unit_test(states_have_the_names_and_lanes_of_the_contract),
		cmocka_unit_test(unknown_names_are_no_status),
		cmocka_unit_test(exactly_done_failed_and_cancelled_are_final),
		cmocka_unit_test(claimed_and_running_must_hold_a_claim_and_asking_may),
		cmocka_unit_test(stored_numbers_of_states_never_change),
		cmocka_unit_test(event_names_are_unique_and_say_their_noun),
		TEST(a_stage_that_is_set_again_changes_nothing),
		TEST(a_session_is_gone_when_its_claim_was_lost_and_ended_otherwise),
		cmocka_unit_test(numbers_that_are_kept_free_are_no_kind),
		cmocka_unit_test(exactly_four_kinds_are_notes_about_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
