#include "api_fixture.h"

#include "core/task/failure.h"

#define DOOR "/api/workqueue/"

/* A refusal in the shape of the original. */
static void refused_as(struct dialogue *d, int status, const char *error)
{
	char member[96];

	reply_is(d, status);
	snprintf(member, sizeof member, "{\"ok\":false,\"error\":\"%s\",\"message\":\"", error);
	reply_says(d, member);
	assert_true(span_equal(d->call.reply.content_type, SPAN("application/json")));
}

static void an_item_becomes_a_task_with_a_key_of_its_queue(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "enqueue",
		"{\"queue\":\" q \",\"title\":\"  \",\"instructions\":\" do it\\n\",\"priority\":\"50\",\"dedupeKey\":\"k:1\","
		"\"meta\":{\"command\":[\"make\"]},\"unknown\":1}");
	const struct command_create *create = &becomes(d, COMMAND_CREATE)->create;
	assert_true(is(create->queue, "q") && is(create->unique_key, "1:q:k:1"));
	assert_int_equal(create->priority, 50);
	assert_true(is(create->body,
		"\"title\":\"(untitled)\",\"instructions\":\"do it\",\"uniqueKey\":\"1:q:k:1\","
		"\"metadata\":{\"command\":[\"make\"]}"));
	assert_int_equal(create->past.state, TASK_NOWHERE);
}

static void a_claim_is_by_name_and_knows_no_clock_but_its_lease(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "claim-next", "{\"agentId\":\"dev-9\",\"queues\":[\"b\",\" \",\"a\"],\"leaseMs\":5000}");
	const struct command *command = becomes(d, COMMAND_CLAIM_NEXT);
	const struct command_claim *claim = &command->claim;
	assert_true(is(command->worker, "dev-9") && is(claim->slot, "dev-9"));
	assert_true(claim->named && claim->any_executor && claim->takes_ready);
	assert_false(claim->takes_pending || claim->resumes || claim->confirms);
	assert_int_equal(claim->max, 1);
	assert_int_equal(claim->lease_ms, 5000);
	assert_int_equal(claim->run_ms, TASK_DELAY_MS_MAX);
	assert_int_equal(claim->queues.count, 2);
	assert_true(is(claim->queues.items[0], "b") && is(claim->queues.items[1], "a"));
}

static void claims_from(struct dialogue *d, const char *body, const char *expected)
{
	char told[128] = "";
	size_t len = 0;

	post(d, DOOR "claim-next", body);
	const struct name_list *queues = &becomes(d, COMMAND_CLAIM_NEXT)->claim.queues;
	for (uint32_t i = 0; i < queues->count; i++)
		len += (size_t)snprintf(told + len, sizeof told - len, "%.*s ", SPAN_ARGS(queues->items[i]));
	assert_string_equal(told, expected);
}

static void queues_are_asked_for_or_assigned_or_the_default(void **state)
{
	struct dialogue *d = *state;

	claims_from(d, "{\"agentId\":\"dev-3\",\"queues\":[\"x\"]}", "x ");
	claims_from(d, "{\"agentId\":\"dev-3\",\"queues\":[\" \"]}", "q later q ");
	claims_from(d, "{\"agentId\":\"dev-3\",\"defaultQueues\":[\"x\"]}", "q later q ");
	claims_from(d, "{\"agentId\":\"other\",\"queue\":\"x\"}", "q r ");
	claims_from(d, "{\"agentId\":\"other\",\"defaultQueues\":[\"x\",\"y\"]}", "x y ");
}

static void without_any_queue_there_is_nothing_to_claim(void **state)
{
	struct dialogue *d = *state;

	d->degraded = true; /* its default is empty then */
	post(d, DOOR "claim-next", "{\"agentId\":\"other\"}");
	reply_is(d, 200);
	assert_true(is(d->call.reply.body, "{\"ok\":true,\"item\":null,\"reason\":\"NO_QUEUES\"}"));
	post(d, DOOR "claim-next", "{\"agentId\":\"other\",\"defaultQueues\":[]}");
	reply_says(d, "NO_QUEUES");
}

static void a_claim_that_finds_nothing_says_where_it_looked(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "claim-next", "{\"agentId\":\"dev-3\"}");
	d->results[0] = (struct result){0};
	finish(d);
	assert_true(is(d->call.reply.body,
		"{\"ok\":true,\"item\":null,\"queues\":[\"q\",\"later\",\"q\"],\"queuesSource\":\"assignment\"}"));
}

static void statuses_are_a_list_or_a_text(void **state)
{
	static const char *const bodies[] = {
		"{\"agentId\":\"a\",\"includeStatuses\":[\"ready\",\"pending\"]}",
		"{\"agentId\":\"a\",\"includeStatuses\":\"pending, ready\"}"};
	struct dialogue *d = *state;

	for (int i = 0; i < 2; i++) {
		post(d, DOOR "claim-next", bodies[i]);
		const struct command_claim *claim = &becomes(d, COMMAND_CLAIM_NEXT)->claim;
		assert_true(claim->takes_ready && claim->takes_pending);
	}
	post(d, DOOR "claim-next", "{\"agentId\":\"a\",\"includeStatuses\":\"done\"}");
	refused_as(d, 400, "invalid_request");
	post(d, DOOR "claim-next", "{\"agentId\":\"a\",\"preferOwned\":true}");
	assert_true(becomes(d, COMMAND_CLAIM_NEXT)->claim.resumes);
}

static void without_a_fence_the_name_is_the_proof(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "progress",
		"{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"note\":\"half \",\"leaseMs\":7000}");
	const struct command *command = becomes(d, COMMAND_PROGRESS);
	assert_true(command->by_name && is(command->task, "t-1") && is(command->worker, "w1"));
	assert_true(is(command->words, "half") && is(command->note, "\"note\":\"half\""));
	assert_int_equal(command->lease_ms, 7000);
	post(d, DOOR "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"fence\":\"12\",\"result\":null}");
	command = becomes(d, COMMAND_COMPLETE);
	assert_false(command->by_name);
	assert_int_equal(command->fence, 12);
	assert_true(is(command->data, "null"));
	post(d, DOOR "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"fence\":12}");
	assert_int_equal(becomes(d, COMMAND_COMPLETE)->fence, 12);
}

static void the_token_of_a_claim_is_its_fence(void **state)
{
	struct dialogue *d = *state;

	d->call.who = (struct principal){.name = SPAN("alice"),
		.scopes = SCOPE_BIT(SCOPE_CLAIM),
		.worker = SPAN("w1"),
		.task = SPAN("t-1"),
		.task_seq = 1,
		.fence = 9};
	post(d, DOOR "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}");
	const struct command *command = becomes(d, COMMAND_COMPLETE);
	assert_int_equal(command->fence, 9);
	assert_false(command->by_name);
	struct ending report;
	assert_int_equal(ending_read(command->report, &report), 0);
	assert_int_equal(report.outcome, ENDED_COMPLETE);
	post(d, DOOR "done", "{\"itemId\":\"t-2\",\"agentId\":\"w1\"}");
	refused_as(d, 404, "not_found");
	post(d, DOOR "done", "{\"itemId\":\"t-1\",\"agentId\":\"w2\"}");
	refused_as(d, 403, "forbidden");
}

static void a_failure_is_final(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "transition",
		"{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"status\":\"failed\",\"error\":\" no \"}");
	const struct command *command = becomes(d, COMMAND_FAIL);
	assert_true(command->failure.no_retry);
	assert_int_equal(command->failure.code, CODE_EXECUTION_ERROR);
	assert_true(is(command->data,
		"{\"code\":\"EXECUTION_ERROR\",\"message\":\"no\",\"class\":\"task\",\"retry\":false}"));
}

static void an_item_shows_who_has_it_until_when_and_by_which_fence(void **state)
{
	struct dialogue *d = *state;

	d->task.claim = (struct claim){
		.holder = 3, .clock = CLOCK_CLAIM, .claimed_wall_ms = 999000, .lease = {2500, 5000}};
	d->task.fence = 42;
	d->task.attempt = 3;
	d->task_error = SPAN("{\"code\":\"X\",\"message\":\"before\"}");
	post(d, DOOR "progress", "{\"itemId\":\"t-1\",\"agentId\":\"w9\"}");
	finish_task(d, TASK_RUNNING);
	reply_is(d, 200);
	reply_says(d,
		"{\"ok\":true,\"item\":{\"id\":\"t-1\",\"queue\":\"q\",\"title\":\"old\",\"instructions\":\"\"");
	reply_says(d,
		"\"status\":\"in_progress\",\"claimedBy\":\"w9\",\"claimedAt\":\"1970-01-01T00:16:39.000Z\","
		"\"leaseUntil\":1002000,\"attempts\":3,\"lastError\":\"before\"");
	reply_says(d, "\"meta\":{\"a\":1,\"b\":2},\"fence\":\"42\"");
}

/* Two processes under one name, in one turn: each gets the fence that was made for it. */
static void an_answer_shows_the_claim_that_was_made_for_it(void **state)
{
	struct dialogue *d = *state;
	struct claimed mine = {.task = d->task};

	mine.task.claim = (struct claim){.holder = 3, .clock = CLOCK_CLAIM, .lease = {5000, 5000}};
	mine.task.state = TASK_CLAIMED;
	mine.task.fence = 41;
	d->task = mine.task;
	d->task.fence = 42; /* by now somebody else has taken it up */
	post(d, DOOR "claim-next", "{\"agentId\":\"twin\",\"queues\":[\"q\"],\"resumeOwned\":true}");
	d->results[0] = (struct result){.claims = &mine, .claim_count = 1, .event_seq = 4};
	finish(d);
	reply_says(d, "\"claimedBy\":\"twin\"");
	reply_says(d, "\"fence\":\"41\"");
}

static void every_state_has_a_status_of_the_original(void **state)
{
	static const char *const statuses[TASK_STATE_COUNT] = {[TASK_PENDING] = "pending",
		[TASK_SCHEDULED] = "pending",
		[TASK_WAITING] = "pending",
		[TASK_READY] = "ready",
		[TASK_CLAIMED] = "claimed",
		[TASK_RUNNING] = "in_progress",
		[TASK_ASKING] = "in_progress",
		[TASK_REVIEW] = "in_progress",
		[TASK_DONE] = "done",
		[TASK_BLOCKED] = "failed",
		[TASK_FAILED] = "failed",
		[TASK_CANCELLED] = "failed"};
	struct dialogue *d = *state;
	char member[64];

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		d->task.state = (enum task_state)i;
		d->task.code = i == TASK_BLOCKED || i == TASK_FAILED ? CODE_LEASE_LOST : CODE_NONE;
		get(d, DOOR "item/t-1");
		snprintf(member, sizeof member, "\"status\":\"%s\",", statuses[i]);
		reply_says(d, member);
	}
}

static void who_holds_it_is_told_and_its_fence_is_not(void **state)
{
	struct dialogue *d = *state;

	d->task.claim.holder = 3;
	d->task.fence = 42;
	post(d, DOOR "done", "{\"itemId\":\"t-1\",\"agentId\":\"w2\"}");
	finish_refused(d, REFUSED_CLAIMED_BY_OTHER);
	refused_as(d, 409, "claimed_by_other");
	reply_says(d,
		"\"message\":\"item claimed by another agent: w1\",\"claimedBy\":\"w1\",\"leaseUntil\":1001234");
	reply_hides(d, "42");
}

static void refusals_have_the_names_of_the_original(void **state)
{
	static const struct {
		enum refusal refusal;
		int status;
		const char *error;
	} rows[] = {
		{REFUSED_NOT_FOUND, 404, "not_found"},
		{REFUSED_NOT_CLAIMED, 409, "not_claimed"},
		{REFUSED_ALREADY_TERMINAL, 409, "already_terminal"},
		{REFUSED_STALE_CLAIM, 409, "stale_claim"},
		{REFUSED_UNAVAILABLE, 503, "workqueue_error"},
		{REFUSED_TOO_LARGE, 413, "request_too_large"},
	};
	struct dialogue *d = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		post(d, DOOR "done", "{\"itemId\":\"t-1\",\"agentId\":\"w2\"}");
		finish_refused(d, rows[i].refusal);
		refused_as(d, rows[i].status, rows[i].error);
	}
}

static void whoever_shows_nothing_is_refused_in_that_shape_too(void **state)
{
	struct dialogue *d = *state;

	d->call.who = (struct principal){0};
	get(d, DOOR "queues");
	refused_as(d, 401, "unauthorized");
	d->call.who = (struct principal){.name = SPAN("x"), .scopes = SCOPE_BIT(SCOPE_METRICS)};
	get(d, DOOR "queues");
	refused_as(d, 403, "forbidden");
	say(d, HTTP_METHOD_DELETE, DOOR "queues", NULL);
	refused_as(d, 405, "method_not_allowed");
	get(d, DOOR "nothing");
	refused_as(d, 404, "not_found");
	get(d, "/api/workqueues");
	refused_with(d, 404, "not_found");
}

static void a_list_is_cut_and_goes_on(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 5;
	get(d, DOOR "items?limit=2");
	reply_says(d, "\"next\":\"4\"}");
	get(d, DOOR "items?limit=2&after=4");
	reply_says(d, "\"id\":\"t-3\"");
	reply_says(d, "\"id\":\"t-2\"");
	get(d, DOOR "items?order=oldest&status=ready,done&queue=q");
	assert_true(memmem(d->body.data, d->body.len, "\"t-1\"", 5) <
		memmem(d->body.data, d->body.len, "\"t-5\"", 5));
	reply_hides(d, "next");
	get(d, DOOR "items?status=ready");
	reply_hides(d, "\"t-1\"");
	get(d, DOOR "items?queue=elsewhere");
	assert_true(is(d->call.reply.body, "{\"ok\":true,\"items\":[]}"));
	get(d, DOOR "summary");
	reply_says(d, "\"counts\":{\"ready\":2,\"done\":3}");
	get(d, DOOR "queues");
	assert_true(is(d->call.reply.body, "{\"ok\":true,\"queues\":[\"later\",\"q\",\"r\"]}"));
}

/* As the original has it; the contract does not describe them, so this is not compared with it. */
static void parameters_that_nobody_knows_are_ignored(void **state)
{
	struct dialogue *d = *state;

	begin(d, HTTP_METHOD_GET, DOOR "queues?cache=no", NULL);
	while (d->call.step == API_READ)
		api_read(&d->call);
	reply_is(d, 200);
	assert_int_equal(begin(d, HTTP_METHOD_POST, DOOR "enqueue?cache=no", "{\"queue\":\"q\"}"), API_TURN);
}

static void a_long_list_is_made_in_slices(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 3000;
	get(d, DOOR "items?status=failed");
	assert_true(d->slices >= 6);
	get(d, DOOR "items");
	assert_true(d->slices >= 1000 / 32);
}

static void parameters_that_cannot_be_are_told(void **state)
{
	static const char *const wrong[] = {"items?status=open", "items?limit=0", "items?limit=1001",
		"items?order=random", "items?after=x", "items?queue=%zz"};
	struct dialogue *d = *state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char url[64];
		snprintf(url, sizeof url, DOOR "%s", wrong[i]);
		get(d, url);
		refused_as(d, 400, "invalid_request");
	}
}

static void assignments_are_told_in_pages(void **state)
{
	struct dialogue *d = *state;

	get(d, DOOR "assignments");
	assert_true(is(d->call.reply.body,
		"{\"ok\":true,\"assignments\":{\"dev-3\":[\"q\",\"later\",\"q\"],\"dev-4\":[\"q\"]}}"));
	assert_int_equal(d->slices, 2);
}

static void an_assignment_keeps_what_was_said(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "assignments", "{\"agentId\":\" a \",\"queues\":[\" x\",\"\",\"y\",\"x\"]}");
	const struct command *command = becomes(d, COMMAND_SLOT_ASSIGN);
	assert_true(is(command->assign.slot, "a"));
	assert_int_equal(command->assign.queues.count, 3);
	assert_true(is(command->note, "\"queues\":[\"x\",\"y\",\"x\"]"));
	d->results[0] = (struct result){.event_seq = 4};
	finish(d);
	assert_true(is(d->call.reply.body, "{\"ok\":true,\"agentId\":\"a\",\"queues\":[\"x\",\"y\",\"x\"]}"));
}

/* The commands of an update, as their first letters: Update, Cancel, Retry, Park, uNpark. */
static void moves(struct dialogue *d, enum task_state from, const char *to, const char *expected)
{
	static const char letters[COMMAND_KIND_COUNT] = {[COMMAND_UPDATE] = 'U',
		[COMMAND_CANCEL] = 'C',
		[COMMAND_RETRY] = 'R',
		[COMMAND_PARK] = 'P',
		[COMMAND_UNPARK] = 'N'};
	char body[96], told[8] = "";

	d->task.state = from;
	snprintf(body, sizeof body, "{\"itemId\":\"t-1\",\"patch\":{\"status\":\"%s\"}}", to);
	bool turn = post(d, DOOR "update", body) == API_TURN;
	for (uint32_t i = 0; turn && i < d->call.command_count; i++)
		told[i] = letters[d->call.commands[i].kind];
	if (!turn && d->call.reply.status == 409)
		told[0] = '!';
	assert_string_equal(told, expected);
}

static void a_status_is_reached_by_the_moves_that_lead_there(void **state)
{
	struct dialogue *d = *state;

	moves(d, TASK_READY, "ready", "");
	moves(d, TASK_READY, "pending", "P");
	moves(d, TASK_PENDING, "ready", "N");
	moves(d, TASK_CLAIMED, "ready", "CR");
	moves(d, TASK_RUNNING, "pending", "CRP");
	moves(d, TASK_REVIEW, "ready", "CR");
	moves(d, TASK_DONE, "ready", "R");
	moves(d, TASK_FAILED, "pending", "RP");
	moves(d, TASK_BLOCKED, "ready", "R");
	moves(d, TASK_WAITING, "ready", "!");
	moves(d, TASK_READY, "failed", "C");
	moves(d, TASK_DONE, "failed", "!");
	moves(d, TASK_READY, "done", "!");
	moves(d, TASK_REVIEW, "done", "!"); /* a verdict is not an operator's to give here */
	moves(d, TASK_READY, "claimed", "!");
	moves(d, TASK_RUNNING, "in_progress", "");
}

static void what_is_removed_is_called_off_first(void **state)
{
	struct dialogue *d = *state;

	post(d, DOOR "delete", "{\"itemId\":\"t-1\"}");
	assert_int_equal(d->call.command_count, 2);
	assert_int_equal(d->call.commands[0].kind, COMMAND_CANCEL);
	assert_int_equal(d->call.commands[1].kind, COMMAND_PURGE);
	d->results[1] = (struct result){.event_seq = 3};
	finish(d);
	reply_says(d, "\"status\":\"ready\"");
	d->task.state = TASK_DONE;
	post(d, DOOR "delete", "{\"itemId\":\"t-1\"}");
	becomes(d, COMMAND_PURGE);
}

static void an_imported_item_brings_its_past(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes |= SCOPE_BIT(SCOPE_ADMIN);
	post(d, DOOR "import",
		"{\"items\":[{\"id\":\"a-1\",\"queue\":\"q\",\"status\":\"done\",\"attempts\":2,\"claimedBy\":\"w\","
		"\"claimedAt\":\"1970-01-01T00:00:01.000Z\",\"leaseUntil\":5,\"createdAt\":\"1970-01-01T00:00:02.000Z\","
		"\"result\":[1],\"lastNote\":\"n\",\"dedupeKey\":\"k\",\"meta\":{\"m\":1},\"extra\":true}]}");
	const struct command_create *create = &becomes(d, COMMAND_CREATE)->create;
	assert_int_equal(create->past.state, TASK_DONE);
	assert_int_equal(create->past.attempt, 2);
	assert_int_equal(create->past.created_ms, 2000);
	assert_int_equal(create->past.claimed_ms, 1000);
	assert_true(
		is(create->past_result, "[1]") && is(create->past_note, "n") && is(create->past_holder, "w"));
	assert_true(is(create->id, "a-1") && is(create->unique_key, "1:q:k"));
	assert_non_null(memmem(create->body.data, create->body.len, "\"extra\":true", 12));
	assert_non_null(memmem(create->body.data, create->body.len, "{\"m\":1,", 7));
}

static void an_item_whose_key_is_held_comes_again_without_it(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes |= SCOPE_BIT(SCOPE_ADMIN);
	post(d, DOOR "import",
		"{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"dedupeKey\":\"k\"},{\"id\":\"b\",\"queue\":\"q\",\"dedupeKey\":\"k\"},"
		"{\"id\":\"c\",\"queue\":\"q\"}]}");
	d->results[0] = d->results[2] = (struct result){0};
	d->results[1] = (struct result){.deduplicated = true};
	d->results[2].refusal = REFUSED_TASK_EXISTS;
	api_finish(&d->call, d->results);
	const struct command *again = becomes(d, COMMAND_CREATE);
	assert_true(is(again->create.id, "b"));
	assert_int_equal(again->create.unique_key.len, 0);
	d->results[0] = (struct result){0};
	finish(d);
	assert_true(is(d->call.reply.body,
		"{\"ok\":true,\"items\":[{\"id\":\"a\",\"imported\":true},{\"id\":\"b\",\"imported\":true},"
		"{\"id\":\"c\",\"imported\":false,\"exists\":true}]}"));
}

static void one_bad_item_refuses_them_all(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes |= SCOPE_BIT(SCOPE_ADMIN);
	post(d, DOOR "import",
		"{\"items\":[{\"id\":\"a\",\"queue\":\"q\"},{\"id\":\"b\",\"queue\":\"q\",\"createdAt\":\"now\"}]}");
	refused_as(d, 400, "invalid_request");
	reply_says(d, "\"field\":\"items[1].createdAt\"");
	post(d, DOOR "import",
		"{\"dryRun\":true,\"items\":[{\"id\":\"t-1\",\"queue\":\"q\"},{\"id\":\"b\",\"queue\":\"q\"}]}");
	assert_true(is(d->call.reply.body,
		"{\"ok\":true,\"items\":[{\"id\":\"t-1\",\"imported\":false,\"exists\":true},{\"id\":\"b\",\"imported\":false}]}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(an_item_becomes_a_task_with_a_key_of_its_queue),
		DIALOGUE(a_claim_is_by_name_and_knows_no_clock_but_its_lease),
		DIALOGUE(queues_are_asked_for_or_assigned_or_the_default),
		DIALOGUE(without_any_queue_there_is_nothing_to_claim),
		DIALOGUE(a_claim_that_finds_nothing_says_where_it_looked),
		DIALOGUE(statuses_are_a_list_or_a_text),
		DIALOGUE(without_a_fence_the_name_is_the_proof),
		DIALOGUE(the_token_of_a_claim_is_its_fence),
		DIALOGUE(a_failure_is_final),
		DIALOGUE(an_item_shows_who_has_it_until_when_and_by_which_fence),
		DIALOGUE(an_answer_shows_the_claim_that_was_made_for_it),
		DIALOGUE(every_state_has_a_status_of_the_original),
		DIALOGUE(who_holds_it_is_told_and_its_fence_is_not),
		DIALOGUE(refusals_have_the_names_of_the_original),
		DIALOGUE(whoever_shows_nothing_is_refused_in_that_shape_too),
		DIALOGUE(a_list_is_cut_and_goes_on),
		DIALOGUE(parameters_that_nobody_knows_are_ignored),
		DIALOGUE(a_long_list_is_made_in_slices),
		DIALOGUE(parameters_that_cannot_be_are_told),
		DIALOGUE(assignments_are_told_in_pages),
		DIALOGUE(an_assignment_keeps_what_was_said),
		DIALOGUE(a_status_is_reached_by_the_moves_that_lead_there),
		DIALOGUE(what_is_removed_is_called_off_first),
		DIALOGUE(an_imported_item_brings_its_past),
		DIALOGUE(an_item_whose_key_is_held_comes_again_without_it),
		DIALOGUE(one_bad_item_refuses_them_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
