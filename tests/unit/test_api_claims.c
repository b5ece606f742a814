#include "api_fixture.h"

static void a_claim_says_what_it_wants(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/claims",
		"{\"workerId\":\"w1\",\"queues\":[\"q\",\"r\"],\"slot\":\"slot-1\",\"capabilities\":[\"gpu\"],"
		"\"executors\":[],\"max\":3,\"waitMs\":500,\"leaseMs\":60000,\"resumeOwned\":true,"
		"\"includeStatuses\":[\"pending\"],\"requestId\":\"r1\"}");
	const struct command *command = becomes(d, COMMAND_CLAIM_NEXT);
	const struct command_claim *claim = &command->claim;
	assert_true(
		is(command->worker, "w1") && is(claim->queues.items[1], "r") && is(claim->slot, "slot-1"));
	assert_true(is(claim->capabilities.items[0], "gpu"));
	assert_false(claim->any_executor);
	assert_int_equal(claim->executors.count, 0);
	assert_int_equal(claim->max, 3);
	assert_int_equal(claim->lease_ms, 60000);
	assert_true(claim->resumes && claim->takes_pending && !claim->takes_ready);
	assert_int_not_equal(claim->request, 0);
	assert_int_equal(d->call.wait_ms, 500);
}

static void a_short_claim_takes_one_ready_task_of_any_kind(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/claims", "{\"workerId\":\"w1\",\"slot\":null}");
	const struct command_claim *claim = &becomes(d, COMMAND_CLAIM_NEXT)->claim;
	assert_int_equal(claim->max, 1);
	assert_true(claim->any_executor && claim->takes_ready && !claim->takes_pending && !claim->resumes);
	assert_int_equal(claim->request, 0);
	assert_int_equal(claim->queues.count, 0);
	assert_int_equal(d->call.wait_ms, 0);
}

static void the_digest_of_a_request_is_of_worker_and_id(void **state)
{
	struct dialogue *d = *state;
	static const char *const bodies[] = {"{\"workerId\":\"w1\",\"requestId\":\"r\"}",
		"{\"workerId\":\"w1\",\"requestId\":\"s\"}", "{\"workerId\":\"w\",\"requestId\":\"1r\"}"};
	uint64_t digests[3];

	for (int i = 0; i < 3; i++) {
		post(d, "/api/claims", bodies[i]);
		digests[i] = becomes(d, COMMAND_CLAIM_NEXT)->claim.request;
	}
	post(d, "/api/claims", bodies[0]);
	assert_int_equal(becomes(d, COMMAND_CLAIM_NEXT)->claim.request, digests[0]);
	assert_int_not_equal(digests[0], digests[1]);
	assert_int_not_equal(digests[0], digests[2]);
}

static const struct {
	const char *body, *field;
} invalid[] = {
	{"{}", "workerId"},
	{"{\"workerId\":\"\"}", "workerId"},
	{"{\"workerId\":\"w\",\"queues\":\"q\"}", "queues"},
	{"{\"workerId\":\"w\",\"queues\":[\"\"]}", "queues"},
	{"{\"workerId\":\"w\",\"slot\":1}", "slot"},
	{"{\"workerId\":\"w\",\"max\":0}", "max"},
	{"{\"workerId\":\"w\",\"max\":101}", "max"},
	{"{\"workerId\":\"w\",\"waitMs\":60001}", "waitMs"},
	{"{\"workerId\":\"w\",\"leaseMs\":-1}", "leaseMs"},
	{"{\"workerId\":\"w\",\"resumeOwned\":1}", "resumeOwned"},
	{"{\"workerId\":\"w\",\"includeStatuses\":[\"done\"]}", "includeStatuses"},
	{"{\"workerId\":\"w\",\"includeStatuses\":[]}", "includeStatuses"},
	{"{\"workerId\":\"w\",\"requestId\":\"\"}", "requestId"},
	{"{\"workerId\":\"w\",\"queue\":\"q\"}", "queue"},
	{"{\"workerId\":\"w\",\"finish\":{}}", "finish"},
	{"{\"workerId\":\"w\",\"finish\":[7]}", "finish[0]"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"outcome\":\"complete\"}]}", "finish[0].fence"},
	{"{\"workerId\":\"w\",\"finish\":[{\"fence\":\"1\",\"outcome\":\"complete\"}]}", "finish[0].id"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\"}]}", "finish[0].outcome"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":1,\"outcome\":\"complete\"}]}",
		"finish[0].fence"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"done\"}]}",
		"finish[0].outcome"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"fail\"}]}",
		"finish[0].error"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"fail\",\"error\":{\"code\":1}}]}",
		"finish[0].error.code"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"fail\",\"error\":{\"x\":1}}]}",
		"finish[0].error.x"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"release\",\"error\":{}}]}",
		"finish[0].error"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"complete\",\"reason\":\"r\"}]}",
		"finish[0].reason"},
	{"{\"workerId\":\"w\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"fail\",\"error\":{},\"result\":1}]}",
		"finish[0].result"},
};

static void every_wrong_field_of_a_claim_is_named(void **state)
{
	struct dialogue *d = *state;

	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		post(d, "/api/claims", invalid[i].body);
		refuses_field(d, invalid[i].field);
	}
}

static struct claimed claimed_task(struct dialogue *d)
{
	struct claimed claimed = {
		.task = d->task,
		.id = SPAN("t-1"),
		.body = SPAN("\"title\":\"T\""),
		.lease_ms = 60000,
	};

	claimed.task.state = TASK_CLAIMED;
	claimed.task.fence = 42;
	claimed.task.attempt = 2;
	claimed.task.claim.holder = 5;
	return claimed;
}

static int mint_claim(void *context, struct span parent, const struct task *task, struct arena *arena,
	struct span *ret_text)
{
	(void)context;
	(void)arena;
	assert_true(is(parent, "p1"));
	*ret_text = task->claim.reissued == 0 ? SPAN("stint_claim_first") : SPAN("stint_claim_second");
	return 0;
}

static void a_supervisor_that_asks_gets_a_token_with_each_claim(void **state)
{
	struct dialogue *d = *state;
	struct claimed claims[] = {claimed_task(d), claimed_task(d)};

	claims[1].task.claim.reissued = 1;
	d->host.mint_claim = mint_claim;
	d->call.who.id = SPAN("p1");
	post(d, "/api/claims", "{\"workerId\":\"w1\",\"max\":2,\"tokens\":true}");
	assert_true(becomes(d, COMMAND_CLAIM_NEXT)->claim.tokens);
	d->results[0] = (struct result){.claims = claims, .claim_count = 2};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "\"checkpoint\":null,\"token\":\"stint_claim_first\"}");
	reply_says(d, "\"token\":\"stint_claim_second\"}]}");
	post(d, "/api/claims", "{\"workerId\":\"w1\",\"max\":2}");
	assert_false(becomes(d, COMMAND_CLAIM_NEXT)->claim.tokens);
}

/* What the supervisor saw is told by its outcome, the code, and the exit status in the details. */
static void an_element_of_finish_may_leave_the_end_to_the_report(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/claims",
		"{\"workerId\":\"w1\",\"finish\":["
		"{\"id\":\"a\",\"fence\":\"1\",\"outcome\":\"complete\",\"byReport\":true},"
		"{\"id\":\"b\",\"fence\":\"1\",\"outcome\":\"review\",\"evidence\":[1],\"byReport\":true},"
		"{\"id\":\"c\",\"fence\":\"1\",\"outcome\":\"fail\",\"byReport\":true,\"error\":{\"code\":\"WORKER_CRASHED\"}},"
		"{\"id\":\"d\",\"fence\":\"1\",\"outcome\":\"block\",\"byReport\":true,\"error\":{\"code\":\"BAD_WORKDIR\"}},"
		"{\"id\":\"e\",\"fence\":\"1\",\"outcome\":\"release\",\"byReport\":true},"
		"{\"id\":\"f\",\"fence\":\"1\",\"outcome\":\"block\",\"error\":{}}]}");
	static const struct {
		enum command_kind kind;
		enum seen_end seen;
	} rows[] = {
		{COMMAND_COMPLETE, SEEN_EXIT},
		{COMMAND_REVIEW, SEEN_EXIT},
		{COMMAND_FAIL, SEEN_FAULT},
		{COMMAND_BLOCK, SEEN_NOTHING_RUN},
		{COMMAND_RELEASE, SEEN_EXIT},
		{COMMAND_BLOCK, SEEN_NOT_SAID},
	};
	assert_int_equal(d->call.command_count, 7);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(d->call.commands[i].kind, rows[i].kind);
		assert_int_equal(d->call.commands[i].seen, rows[i].seen);
	}
	assert_true(is(d->call.commands[1].beside, "[1]"));
}

static void claims_are_shown_with_fence_lease_attempt_and_checkpoint(void **state)
{
	struct dialogue *d = *state;
	struct claimed claims[] = {claimed_task(d), claimed_task(d)};

	claims[1].checkpoint = SPAN("{\"at\":7}");
	post(d, "/api/claims", "{\"workerId\":\"w1\",\"max\":2}");
	d->results[0] = (struct result){.claims = claims, .claim_count = 2, .event_seq = 8};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"claims\":[{\"task\":{\"id\":\"t-1\",\"title\":\"T\",\"queue\":\"q\"");
	reply_says(d, "\"state\":\"claimed\"");
	reply_says(d, "\"workerId\":\"w1\",\"fence\":\"42\"");
	reply_says(d, "},\"fence\":\"42\",\"leaseMs\":60000,\"attempt\":2,\"checkpoint\":null},");
	reply_says(d, "\"checkpoint\":{\"at\":7}}]}");
	assert_int_equal(d->call.reply.event_seq, 8);
}

static void nothing_to_claim_is_an_empty_list(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/claims", "{\"workerId\":\"w1\"}");
	d->results[0] = (struct result){0};
	assert_false(api_begin_wait(&d->call, d->results));
	finish(d);
	reply_is(d, 200);
	assert_true(is(d->call.reply.body, "{\"claims\":[]}"));
}

#define FINISH_AND_NEXT                                                                                          \
	"{\"workerId\":\"w1\",\"waitMs\":100,\"finish\":["                                                       \
	"{\"id\":\"t-1\",\"fence\":\"41\",\"outcome\":\"complete\",\"result\":{\"ok\":1}},"                      \
	"{\"id\":\"t-2\",\"fence\":\"42\",\"outcome\":\"fail\",\"error\":{\"code\":\"QUOTA\",\"retry\":false}}," \
	"{\"id\":\"t-3\",\"fence\":\"43\",\"outcome\":\"release\",\"delayMs\":9,\"reason\":\"r\"}]}"

static void finish_and_next_are_commands_of_one_turn(void **state)
{
	struct dialogue *d = *state;

	assert_int_equal(post(d, "/api/claims", FINISH_AND_NEXT), API_TURN);
	const struct command *commands = d->call.commands;
	assert_int_equal(d->call.command_count, 4);
	assert_int_equal(commands[0].kind, COMMAND_COMPLETE);
	assert_true(is(commands[0].data, "{\"ok\":1}") && is(commands[0].worker, "w1") &&
		is(commands[0].task, "t-1"));
	assert_int_equal(commands[0].fence, 41);
	assert_int_equal(commands[1].kind, COMMAND_FAIL);
	assert_int_equal(commands[1].failure.code, CODE_QUOTA);
	assert_int_equal(commands[1].failure.klass, CLASS_QUOTA);
	assert_true(commands[1].failure.no_retry);
	assert_int_equal(commands[2].kind, COMMAND_RELEASE);
	assert_int_equal(commands[2].delay_ms, 9);
	assert_true(is(commands[2].note, "\"reason\":\"r\""));
	assert_int_equal(commands[3].kind, COMMAND_CLAIM_NEXT);
}

static void an_end_in_a_list_is_what_a_report_of_its_own_would_be(void **state)
{
	static const struct {
		const char *outcome, *members;
	} cases[] = {
		{"complete", "\"result\":[1,\"a\"]"},
		{"fail",
			"\"error\":{\"code\":\"E\",\"message\":\"no disk\",\"class\":\"host\",\"retryAt\":5}"},
		{"release", "\"reason\":\"the machine goes down\",\"delayMs\":9"},
	};
	struct dialogue *d = *state;
	char path[64], body[256], data[256], note[256];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(path, sizeof path, "/api/tasks/t-1/%s", cases[i].outcome);
		snprintf(body, sizeof body, "{\"workerId\":\"w1\",\"fence\":\"7\",%s}", cases[i].members);
		assert_int_equal(post(d, path, body), API_TURN);
		struct command own = d->call.commands[0];
		snprintf(data, sizeof data, "%.*s", SPAN_ARGS(own.data));
		snprintf(note, sizeof note, "%.*s", SPAN_ARGS(own.note));
		snprintf(body, sizeof body,
			"{\"workerId\":\"w1\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"7\",\"outcome\":\"%s\",%s}]}",
			cases[i].outcome, cases[i].members);
		assert_int_equal(post(d, "/api/claims", body), API_TURN);
		const struct command *listed = &d->call.commands[0];
		assert_int_equal(listed->kind, own.kind);
		assert_true(is(listed->data, data) && is(listed->note, note) && is(listed->worker, "w1"));
		assert_int_equal(listed->fence, own.fence);
		assert_int_equal(listed->failure.code, own.failure.code);
		assert_int_equal(listed->failure.klass, own.failure.klass);
		assert_int_equal(listed->failure.retry_at_ms, own.failure.retry_at_ms);
		assert_int_equal(listed->delay_ms, own.delay_ms);
	}
}

/* What the turn made of the elements of "finish". */
static void finishes(struct dialogue *d, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		d->results[i] = (struct result){.task.state = TASK_DONE};
}

static void what_was_finished_stands_beside_the_claims(void **state)
{
	struct dialogue *d = *state;
	struct claimed claimed = claimed_task(d);

	post(d, "/api/claims", FINISH_AND_NEXT);
	finishes(d, 3);
	d->results[0].event_seq = 3;
	d->results[1] = (struct result){.refusal = REFUSED_STALE_CLAIM};
	d->results[2].task.state = TASK_SCHEDULED;
	d->results[3] = (struct result){.claims = &claimed, .claim_count = 1, .event_seq = 5};
	assert_false(api_begin_wait(&d->call, d->results));
	finish(d);
	reply_is(d, 200);
	reply_says(d,
		"\"checkpoint\":null}],\"finished\":[{\"id\":\"t-1\",\"ok\":true,\"state\":\"done\"},"
		"{\"id\":\"t-2\",\"ok\":false,\"code\":\"stale_claim\"},{\"id\":\"t-3\",\"ok\":true,\"state\":\"scheduled\"}]}");
	assert_int_equal(d->call.reply.event_seq, 5);
}

static void only_the_claim_waits(void **state)
{
	struct dialogue *d = *state;
	struct claimed claimed = claimed_task(d);

	post(d, "/api/claims", FINISH_AND_NEXT);
	finishes(d, 3);
	d->results[1] = (struct result){.refusal = REFUSED_ALREADY_TERMINAL};
	assert_true(api_begin_wait(&d->call, d->results));
	assert_int_equal(d->call.command_count, 1);
	assert_int_equal(d->call.commands[0].kind, COMMAND_CLAIM_NEXT);
	d->results[0] = (struct result){0};
	assert_true(api_begin_wait(&d->call, d->results));
	d->results[0] = (struct result){.claims = &claimed, .claim_count = 1};
	assert_false(api_begin_wait(&d->call, d->results));
	finish(d);
	reply_is(d, 200);
	reply_says(d,
		"\"finished\":[{\"id\":\"t-1\",\"ok\":true,\"state\":\"done\"},{\"id\":\"t-2\",\"ok\":false,\"code\":\"already_terminal\"},"
		"{\"id\":\"t-3\",\"ok\":true,\"state\":\"done\"}]}");
}

static void a_claim_that_waited_in_vain_is_empty(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/claims", FINISH_AND_NEXT);
	finishes(d, 3);
	assert_true(api_begin_wait(&d->call, d->results));
	api_finish_empty(&d->call);
	reply_is(d, 200);
	reply_says(d, "{\"claims\":[],\"finished\":[{\"id\":\"t-1\",\"ok\":true,\"state\":\"done\"}");
}

/* What lay in its own arena is gone; ASan sees to that. */
static void whoever_waits_takes_no_more_memory_than_it_needs(void **state)
{
	struct dialogue *d = *state;
	struct claimed claimed = claimed_task(d);
	struct span queues[] = {SPAN("q"), SPAN("r")};
	struct arena small;

	d->call.who.queues = (struct name_list){queues, 2};
	post(d, "/api/claims",
		"{\"workerId\":\"w1\",\"queues\":[\"q\"],\"slot\":\"s\",\"capabilities\":[\"gpu\"],\"executors\":[\"shell\"],"
		"\"waitMs\":1000,\"finish\":[{\"id\":\"t-1\",\"fence\":\"7\",\"outcome\":\"complete\"}]}");
	finishes(d, 1);
	assert_true(api_begin_wait(&d->call, d->results));
	arena_init(&small, 1 << 20);
	assert_int_equal(api_compact(&d->call, &small), 0);
	arena_done(&d->arena);
	d->arena = small;
	assert_in_range(small.held, command_bytes(d->call.commands), 1024);
	const struct command *command = d->call.commands;
	assert_true(is(command->worker, "w1") && is(command->actor, "alice") &&
		is(command->within.items[1], "r"));
	assert_true(is(command->claim.queues.items[0], "q") && is(command->claim.slot, "s"));
	assert_true(is(command->claim.capabilities.items[0], "gpu") &&
		is(command->claim.executors.items[0], "shell"));
	d->results[0] = (struct result){.claims = &claimed, .claim_count = 1};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "\"finished\":[{\"id\":\"t-1\",\"ok\":true,\"state\":\"done\"}]}");
}

static void an_inactive_worker_still_learns_what_it_finished(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/claims", FINISH_AND_NEXT);
	finishes(d, 3);
	d->results[3] = (struct result){.refusal = REFUSED_WORKER_INACTIVE};
	assert_false(api_begin_wait(&d->call, d->results));
	finish(d);
	refused_with(d, 410, "WORKER_INACTIVE");
	reply_says(d, "\"finished\":[{\"id\":\"t-1\",\"ok\":true,\"state\":\"done\"}");
}

static void one_task_is_claimed_by_its_id(void **state)
{
	struct dialogue *d = *state;
	struct claimed claimed = claimed_task(d);

	post(d, "/api/tasks/t-1/claim", "{\"workerId\":\"w1\",\"leaseMs\":7000,\"requestId\":\"r\"}");
	const struct command *command = becomes(d, COMMAND_CLAIM);
	assert_true(is(command->task, "t-1") && is(command->worker, "w1"));
	assert_int_equal(command->claim.lease_ms, 7000);
	assert_int_not_equal(command->claim.request, 0);
	d->results[0] = (struct result){.claims = &claimed, .claim_count = 1};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"task\":{\"id\":\"t-1\"");
	reply_says(d, "},\"fence\":\"42\",\"leaseMs\":60000,\"attempt\":2,\"checkpoint\":null}");
}

static void a_claim_by_id_is_refused(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_RUNNING;
	d->task.fence = 777;
	post(d, "/api/tasks/t-1/claim", "{\"workerId\":\"w1\"}");
	finish_refused(d, REFUSED_CLAIMED_BY_OTHER);
	refused_with(d, 409, "claimed_by_other");
	reply_hides(d, "777");
	post(d, "/api/tasks/t-1/claim", "{\"workerId\":\"w1\"}");
	finish_refused(d, REFUSED_QUEUE_PAUSED);
	refused_with(d, 409, "queue_paused");
	post(d, "/api/tasks/t-1/claim", NULL);
	refuses_field(d, "workerId");
	post(d, "/api/tasks/t-1/claim", "{\"workerId\":\"w1\",\"max\":2}");
	refuses_field(d, "max");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_claim_says_what_it_wants),
		DIALOGUE(a_short_claim_takes_one_ready_task_of_any_kind),
		DIALOGUE(the_digest_of_a_request_is_of_worker_and_id),
		DIALOGUE(every_wrong_field_of_a_claim_is_named),
		DIALOGUE(a_supervisor_that_asks_gets_a_token_with_each_claim),
		DIALOGUE(an_element_of_finish_may_leave_the_end_to_the_report),
		DIALOGUE(claims_are_shown_with_fence_lease_attempt_and_checkpoint),
		DIALOGUE(nothing_to_claim_is_an_empty_list),
		DIALOGUE(finish_and_next_are_commands_of_one_turn),
		DIALOGUE(an_end_in_a_list_is_what_a_report_of_its_own_would_be),
		DIALOGUE(what_was_finished_stands_beside_the_claims),
		DIALOGUE(only_the_claim_waits),
		DIALOGUE(whoever_waits_takes_no_more_memory_than_it_needs),
		DIALOGUE(a_claim_that_waited_in_vain_is_empty),
		DIALOGUE(an_inactive_worker_still_learns_what_it_finished),
		DIALOGUE(one_task_is_claimed_by_its_id),
		DIALOGUE(a_claim_by_id_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
