#include "core_fixture.h"

#include <string.h>

/* The list of refusals in the contract, by status. Those that only a server of HTTP gives are not in the table. */
static const struct {
	int status;
	const char *code;
} contract[] = {
	{409, "task_exists"},
	{409, "stale_claim"},
	{409, "not_claimed"},
	{409, "claimed_by_other"},
	{409, "already_terminal"},
	{409, "bad_transition"},
	{409, "bad_offset"},
	{409, "queue_paused"},
	{409, "queue_draining"},
	{409, "group_closed"},
	{409, "schedule_exists"},
	{409, "in_use"},
	{409, "slot_taken"},
	{409, "gate_required"},
	{409, "question_changed"},
	{409, "limited"},
	{409, "NOT_AUTONOMOUS_TASK"},
	{409, "TOKEN_MISMATCH"},
	{410, "WORKER_INACTIVE"},
	{410, "code_gone"},
	{410, "cursor_gone"},
	{403, "EXECUTION_DISARMED"},
	{403, "forbidden"},
	{401, "unauthorized"},
	{404, "not_found"},
	{405, "method_not_allowed"},
	{412, "version_mismatch"},
	{413, "too_large"},
	{415, "unsupported_media_type"},
	{421, "wrong_host"},
	{422, "invalid"},
	{422, "idempotency_conflict"},
	{429, "rate_limited"},
	{503, "unavailable"},
	{503, "disk_low"},
	{503, "store_damaged"},
	{429, "quota_exceeded"},
	{429, "queue_full"},
	{503, "not_leader"},
	{503, "busy"},
	{503, "not_leader"},
};

/* Ours, beyond that list. */
static const char *const added[] = {"slot_quarantined", "worker_full", "backup_running", "backup_exists"};

static int contract_status(const char *code)
{
	for (size_t i = 0; i < sizeof contract / sizeof contract[0]; i++)
		if (strcmp(contract[i].code, code) == 0)
			return contract[i].status;
	for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
		if (strcmp(added[i], code) == 0)
			return 409;
	return 0;
}

static void every_row_of_the_table_is_complete(void **state)
{
	(void)state;
	for (int r = REFUSED_NOTHING + 1; r < REFUSAL_COUNT; r++) {
		assert_true(strlen(refusal_code((enum refusal)r)) > 0);
		assert_true(strlen(refusal_text((enum refusal)r)) > 10);
		assert_in_range(refusal_http_status((enum refusal)r), 400, 599);
	}
}

static void codes_are_unique(void **state)
{
	(void)state;
	for (int a = REFUSED_NOTHING + 1; a < REFUSAL_COUNT; a++)
		for (int b = a + 1; b < REFUSAL_COUNT; b++)
			assert_string_not_equal(refusal_code((enum refusal)a), refusal_code((enum refusal)b));
}

static void every_refusal_has_the_status_of_the_contract(void **state)
{
	(void)state;
	for (int r = REFUSED_NOTHING + 1; r < REFUSAL_COUNT; r++) {
		const char *code = refusal_code((enum refusal)r);

		if (refusal_http_status((enum refusal)r) != contract_status(code))
			fail_msg("%s has status %d", code, refusal_http_status((enum refusal)r));
	}
}

static void codes_of_the_liveness_protocol_are_in_capitals(void **state)
{
	(void)state;
	assert_string_equal(refusal_code(REFUSED_TOKEN_MISMATCH), "TOKEN_MISMATCH");
	assert_string_equal(refusal_code(REFUSED_WORKER_INACTIVE), "WORKER_INACTIVE");
	assert_string_equal(refusal_code(REFUSED_STALE_CLAIM), "stale_claim");
}

static void a_queue_that_is_set_to_what_it_is_records_nothing(void **state)
{
	(void)state;
	for (int s = QUEUE_OPEN; s <= QUEUE_DRAINING; s++) {
		struct queue_decision decision = queue_set((enum queue_state)s, (enum queue_state)s);

		assert_int_equal(decision.refusal, REFUSED_NOTHING);
		assert_int_equal(decision.event, EVENT_NONE);
		assert_int_equal(decision.state, s);
	}
}

static void a_queue_goes_from_every_state_to_every_other(void **state)
{
	static const enum event_kind events[] = {
		EVENT_QUEUE_RESUMED, EVENT_QUEUE_PAUSED, EVENT_QUEUE_DRAINING};

	(void)state;
	for (int from = QUEUE_OPEN; from <= QUEUE_DRAINING; from++) {
		for (int to = QUEUE_OPEN; to <= QUEUE_DRAINING; to++) {
			struct queue_decision decision =
				queue_set((enum queue_state)from, (enum queue_state)to);

			assert_int_equal(decision.state, to);
			if (from != to)
				assert_int_equal(decision.event, events[to]);
		}
	}
}

static void queue_states_have_names(void **state)
{
	(void)state;
	assert_string_equal(queue_state_name(QUEUE_OPEN), "open");
	assert_string_equal(queue_state_name(QUEUE_PAUSED), "paused");
	assert_string_equal(queue_state_name(QUEUE_DRAINING), "draining");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_row_of_the_table_is_complete),
		TEST(codes_are_unique),
		TEST(every_refusal_has_the_status_of_the_contract),
		TEST(codes_of_the_liveness_protocol_are_in_capitals),
		TEST(a_queue_that_is_set_to_what_it_is_records_nothing),
		TEST(a_queue_goes_from_every_state_to_every_other),
		TEST(queue_states_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
