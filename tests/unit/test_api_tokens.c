#define FIXTURE_WITHOUT_TOKENS
#include "api_fixture.h"

#include "api/call.h"

/* ---- what the server lends for it ---- */

static struct token kept = {
	.id = {"00ff00ff00ff00ff", 16},
	.kind = TOKEN_WORKER,
	.hash = "0123456789abcdef0123456789abcde",
	.name = {"builder", 7},
	.queues = {"\x1f"
		   "a\x1f"
		   "b",
		4},
	.created_ms = 5,
	.created_by = {"admin", 5},
	.expires_ms = 77,
};

static int mint(void *context, enum token_kind kind, struct arena *arena, struct minted *ret_minted)
{
	(void)context;
	(void)arena;
	assert_true(kind >= TOKEN_ADMIN);
	*ret_minted = (struct minted){.id = kept.id, .text = SPAN("stint_worker_00ff00ff00ff00ff_secret")};
	memcpy(ret_minted->hash, kept.hash, sizeof kept.hash);
	return 0;
}

const struct token *store_find_token(const struct store *context, struct span id)
{
	(void)context;
	return span_equal(id, kept.id) ? &kept : NULL;
}

int store_each_token(
	const struct store *context, int (*each)(void *, const struct token *), void *each_context)
{
	struct token ended = {
		.id = SPAN("1"),
		.kind = TOKEN_ADMIN,
		.name = SPAN("old"),
		.created_by = SPAN("admin"),
		.revoked_ms = 9,
		.revoked_by = SPAN("admin:x"),
	};

	(void)context;
	int r = each(each_context, &kept);
	return r < 0 ? r : each(each_context, &ended);
}

static struct span root_token(void *context)
{
	(void)context;
	return SPAN("0badc0de");
}

static int admin_begins(void **state)
{
	int r = dialogue_begin(state);
	struct dialogue *d = *state;

	if (r < 0)
		return r;
	d->call.who.scopes = api_scopes_of(TOKEN_ADMIN);
	d->host.mint_token = mint;
	d->host.root_token = root_token;
	return 0;
}

/* ---- giving and taking back ---- */

static void a_token_is_told_once_when_it_is_made(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tokens",
		"{\"kind\":\"worker\",\"name\":\"builder\",\"queues\":[\"b\",\"a\"],\"expiresInMs\":72}");
	const struct command_token *token = &becomes(d, COMMAND_TOKEN_PUT)->token;
	assert_int_equal(token->kind, TOKEN_WORKER);
	assert_true(is(token->name, "builder"));
	assert_int_equal(token->queues.count, 2);
	assert_int_equal(token->lives_ms, 72);
	assert_memory_equal(token->hash, kept.hash, sizeof kept.hash);
	d->results[0] = (struct result){0};
	finish(d);
	reply_is(d, 201);
	reply_says(d, "\"id\":\"00ff00ff00ff00ff\",\"kind\":\"worker\",\"name\":\"builder\"");
	reply_says(d, "\"queues\":[\"a\",\"b\"]");
	reply_says(d, "\"expiresAt\":77");
	reply_says(d, "\"token\":\"stint_worker_00ff00ff00ff00ff_secret\"");
	reply_hides(d, "0123456789abcdef");
}

static void a_workers_token_lives_thirty_days_and_others_for_ever_unless_told(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tokens", "{\"kind\":\"worker\",\"name\":\"w\"}");
	assert_int_equal(becomes(d, COMMAND_TOKEN_PUT)->token.lives_ms, INT64_C(30) * 24 * 3600 * 1000);
	post(d, "/api/tokens", "{\"kind\":\"worker\",\"name\":\"w\",\"expiresInMs\":0}");
	assert_int_equal(becomes(d, COMMAND_TOKEN_PUT)->token.lives_ms, 0);
	post(d, "/api/tokens", "{\"kind\":\"viewer\",\"name\":\"v\"}");
	assert_int_equal(becomes(d, COMMAND_TOKEN_PUT)->token.lives_ms, 0);
}

static void what_is_wrong_with_a_token_is_said(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tokens", "{\"kind\":\"king\",\"name\":\"x\"}");
	refuses_field(d, "kind");
	post(d, "/api/tokens", "{\"kind\":\"viewer\"}");
	refuses_field(d, "name");
	post(d, "/api/tokens", "{\"kind\":\"metrics\",\"name\":\"x\",\"queues\":[\"q\"]}");
	refuses_field(d, "queues");
	post(d, "/api/tokens", "{\"kind\":\"worker\",\"name\":\"x\",\"queues\":[]}");
	refuses_field(d, "queues");
	post(d, "/api/tokens", "{\"kind\":\"worker\",\"name\":\"x\",\"expiresInMs\":-1}");
	refuses_field(d, "expiresInMs");
	post(d, "/api/tokens", "{\"kind\":\"worker\",\"name\":\"x\",\"scopes\":[\"admin\"]}");
	refuses_field(d, "scopes");
}

static void approvers_may_be_for_one_gate(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tokens", "{\"kind\":\"gate:merge\",\"name\":\"bot\"}");
	const struct command *command = becomes(d, COMMAND_TOKEN_PUT);
	assert_int_equal(command->token.kind, TOKEN_GATE);
	assert_true(is(command->token.gate, "merge"));
	assert_non_null(strstr(command->note.data, "\"kind\":\"gate:merge\""));
	post(d, "/api/tokens", "{\"kind\":\"approver\",\"name\":\"ann\",\"queues\":[\"q\"]}");
	assert_int_equal(becomes(d, COMMAND_TOKEN_PUT)->token.kind, TOKEN_APPROVER);
	post(d, "/api/tokens", "{\"kind\":\"emit\",\"name\":\"ci\"}");
	assert_int_equal(becomes(d, COMMAND_TOKEN_PUT)->token.kind, TOKEN_EMIT);
	static const char *const bad[] = {"gate", "gate:", "Gate:x", "approver:x"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char body[80];
		snprintf(body, sizeof body, "{\"kind\":\"%s\",\"name\":\"x\"}", bad[i]);
		post(d, "/api/tokens", body);
		refuses_field(d, "kind");
	}
}

static void a_gate_is_passed_by_whom_it_was_given_to(void **state)
{
	struct principal who = {.scopes = api_scopes_of(TOKEN_GATE), .gate = SPAN("merge")};

	(void)state;
	assert_true(principal_passes(&who, SPAN("merge")));
	assert_false(principal_passes(&who, SPAN("deploy")));
	who.scopes = api_scopes_of(TOKEN_APPROVER);
	assert_true(principal_passes(&who, SPAN("deploy")));
	who.scopes = api_scopes_of(TOKEN_OPERATOR);
	assert_true(principal_passes(&who, SPAN("deploy")));
	who.scopes = api_scopes_of(TOKEN_WORKER) | api_scopes_of(TOKEN_EMIT) | api_scopes_of(TOKEN_VIEWER);
	assert_false(principal_passes(&who, SPAN("merge")));
}

/* ---- for one claim ---- */

static int mint_claim(void *context, struct span parent, const struct task *task, struct arena *arena,
	struct span *ret_text)
{
	(void)context;
	(void)arena;
	assert_true(is(parent, "p1"));
	assert_int_equal(task->seq, 1);
	assert_int_equal(task->fence, 5);
	*ret_text = SPAN("stint_claim_secret");
	return 0;
}

/* Task t-1 is held by worker w1 of principal 20. */
static void be_holder(struct dialogue *d)
{
	d->host.mint_claim = mint_claim;
	d->task.state = TASK_RUNNING;
	d->task.fence = 5;
	d->task.claimant = 20;
	d->task.claim = (struct claim){.holder = 1, .clock = CLOCK_CLAIM};
	d->call.who = (struct principal){
		.name = SPAN("alice"), .id = SPAN("p1"), .number = 20, .scopes = api_scopes_of(TOKEN_WORKER)};
}

#define CLAIM_BODY "{\"kind\":\"claim\",\"task\":\"t-1\",\"fence\":\"5\"}"

static void a_holder_makes_a_token_for_its_claim(void **state)
{
	struct dialogue *d = *state;

	be_holder(d);
	post(d, "/api/tokens", CLAIM_BODY);
	reply_is(d, 201);
	reply_says(d,
		"\"kind\":\"claim\",\"task\":\"t-1\",\"fence\":\"5\",\"workerId\":\"w1\",\"token\":\"stint_claim_secret\"");
	d->call.who.worker = SPAN("w1");
	post(d, "/api/tokens", CLAIM_BODY);
	reply_is(d, 201);
}

static void others_claims_look_absent_to_whoever_wants_a_token_for_them(void **state)
{
	struct dialogue *d = *state;

	be_holder(d);
	d->call.who.worker = SPAN("w2");
	post(d, "/api/tokens", CLAIM_BODY);
	refused_with(d, 404, "not_found");
	d->call.who.worker = (struct span){0};
	d->call.who.number = 21;
	post(d, "/api/tokens", CLAIM_BODY);
	refused_with(d, 404, "not_found");
	post(d, "/api/tokens", "{\"kind\":\"claim\",\"task\":\"t-2\",\"fence\":\"5\"}");
	refused_with(d, 404, "not_found");
	d->call.who.number = 20;
	post(d, "/api/tokens", "{\"kind\":\"claim\",\"task\":\"t-1\",\"fence\":\"4\"}");
	refused_with(d, 409, "stale_claim");
	post(d, "/api/tokens", "{\"kind\":\"viewer\",\"name\":\"x\"}");
	refused_with(d, 403, "forbidden");
}

static void an_admin_makes_one_for_any_claim_and_leaves_a_trace(void **state)
{
	struct dialogue *d = *state;

	be_holder(d);
	d->call.who.number = PRINCIPAL_ADMIN;
	d->call.who.scopes = api_scopes_of(TOKEN_ADMIN);
	post(d, "/api/tokens", CLAIM_BODY);
	assert_non_null(
		strstr(becomes(d, COMMAND_AUDIT)->note.data, "\"object\":\"t-1\",\"kind\":\"claim\""));
	d->results[0] = (struct result){0};
	finish(d);
	reply_is(d, 201);
}

static void a_claims_token_has_nothing_but_task_and_fence(void **state)
{
	struct dialogue *d = *state;

	be_holder(d);
	post(d, "/api/tokens",
		"{\"kind\":\"claim\",\"task\":\"t-1\",\"fence\":\"5\",\"name\":\"x\",\"queues\":[\"q\"],\"expiresInMs\":1}");
	refuses_field(d, "name");
	reply_says(d, "{\"field\":\"queues\"");
	reply_says(d, "{\"field\":\"expiresInMs\"");
	post(d, "/api/tokens", "{\"kind\":\"claim\"}");
	refuses_field(d, "task");
	reply_says(d, "{\"field\":\"fence\"");
	d->call.who.scopes = api_scopes_of(TOKEN_ADMIN);
	post(d, "/api/tokens", "{\"kind\":\"viewer\",\"name\":\"x\",\"task\":\"t-1\",\"fence\":\"5\"}");
	refuses_field(d, "task");
	reply_says(d, "{\"field\":\"fence\"");
}

/* A child's token: for that claim. */
static void be_child(struct dialogue *d)
{
	be_holder(d);
	d->call.who.scopes = SCOPE_BIT(SCOPE_CLAIM);
	d->call.who.worker = SPAN("w1");
	d->call.who.task = SPAN("t-1");
	d->call.who.task_seq = 1;
	d->call.who.fence = 5;
}

static void a_child_reports_on_its_claim_without_saying_which(void **state)
{
	struct dialogue *d = *state;

	be_child(d);
	post(d, "/api/tasks/t-1/complete", "{\"result\":1}");
	const struct command *command = becomes(d, COMMAND_COMPLETE);
	assert_true(is(command->worker, "w1"));
	assert_int_equal(command->fence, 5);
	assert_int_equal(command->principal, 20);
	post(d, "/api/tasks/t-1/progress", "{\"workerId\":\"w1\",\"fence\":\"5\"}");
	becomes(d, COMMAND_PROGRESS);
	post(d, "/api/tasks/t-1/progress", "{\"fence\":\"4\"}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/tasks/t-1/progress", "{\"workerId\":\"w2\"}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/tasks/t-2/complete", "{}");
	refused_with(d, 404, "not_found");
}

static void a_child_sees_its_task_alone(void **state)
{
	struct dialogue *d = *state;

	be_child(d);
	assert_int_equal(get(d, "/api/tasks/t-1"), 200);
	assert_int_equal(get(d, "/api/tasks/t-1/why"), 200);
	assert_int_equal(get(d, "/api/tasks/t-1/events"), 200);
	d->call.who.task_seq = 2;
	assert_int_equal(get(d, "/api/tasks/t-1"), 404);
	assert_int_equal(get(d, "/api/tasks/t-1/why"), 404);
	assert_int_equal(get(d, "/api/tasks/t-1/events"), 404);
	assert_int_equal(get(d, "/api/tasks"), 403);
	assert_int_equal(get(d, "/api/workers/w1"), 403);
	post(d, "/api/tokens", CLAIM_BODY);
	refused_with(d, 403, "forbidden");
	post(d, "/api/claims", "{\"workerId\":\"w1\"}");
	refused_with(d, 403, "forbidden");
}

/* ---- for one worker ---- */

static void an_instance_acts_as_its_worker_alone(void **state)
{
	struct dialogue *d = *state;

	be_holder(d);
	d->call.who.worker = SPAN("w1");
	post(d, "/api/claims", "{\"workerId\":\"w1\"}");
	becomes(d, COMMAND_CLAIM_NEXT);
	post(d, "/api/claims",
		"{\"workerId\":\"w2\",\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"complete\"}]}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/workers/register", "{\"workerId\":\"w2\"}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/workers/heartbeat", "{\"workerInstanceKey\":\"w2\"}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/tasks/t-1/complete", "{\"workerId\":\"w2\",\"fence\":\"5\"}");
	refused_with(d, 403, "forbidden");
	say(d, HTTP_METHOD_DELETE, "/api/workers/w2", NULL);
	refused_with(d, 404, "not_found");
	say(d, HTTP_METHOD_DELETE, "/api/workers/w1", NULL);
	becomes(d, COMMAND_LEAVE);
}

static void a_worker_sees_what_it_may_claim_and_what_it_holds(void **state)
{
	struct dialogue *d = *state;
	static const struct span other[] = {{"other", 5}};

	be_holder(d);
	assert_int_equal(get(d, "/api/tasks/t-1"), 200);
	d->call.who.number = 21;
	assert_int_equal(get(d, "/api/tasks/t-1"), 404);
	d->task.state = TASK_READY;
	d->task.claim = (struct claim){0};
	assert_int_equal(get(d, "/api/tasks/t-1"), 200);
	d->task_count = 3; /* the odd ones are done */
	assert_int_equal(get(d, "/api/tasks"), 200);
	reply_says(d, "[{\"id\":\"t-2\"");
	reply_hides(d, "\"id\":\"t-1\"");
	d->call.who.queues = (struct name_list){other, 1};
	assert_int_equal(get(d, "/api/tasks/t-2"), 404);
	assert_int_equal(get(d, "/api/tasks"), 200);
	assert_true(is(d->call.reply.body, "[]"));
}

static void a_viewer_of_certain_queues_sees_nothing_of_others(void **state)
{
	struct dialogue *d = *state;
	static const struct span other[] = {{"other", 5}}, same[] = {{"q", 1}};

	d->call.who.scopes = api_scopes_of(TOKEN_VIEWER);
	d->call.who.queues = (struct name_list){same, 1};
	assert_int_equal(get(d, "/api/tasks/t-1"), 200);
	assert_int_equal(get(d, "/api/workers/w1"), 404); /* of no certain queue */
	d->call.who.queues = (struct name_list){other, 1};
	assert_int_equal(get(d, "/api/tasks/t-1"), 404);
	assert_int_equal(get(d, "/api/tasks/t-1/why"), 404);
	get(d, "/api/queues");
	assert_true(is(d->call.reply.body, "[]"));
	get(d, "/api/workers");
	assert_true(is(d->call.reply.body, "[]"));
}

static void a_list_of_tokens_shows_neither_secret_nor_hash(void **state)
{
	struct dialogue *d = *state;

	assert_int_equal(get(d, "/api/tokens"), 200);
	reply_is(d, 200);
	reply_says(d, "\"kind\":\"worker\"");
	reply_says(d, "\"expiresAt\":null");
	reply_says(d, "\"revokedAt\":9,\"revokedBy\":\"admin:x\"");
	reply_hides(d, "\"token\"");
	reply_hides(d, "hash");
	reply_hides(d, "0123456789abcdef");
}

static void a_token_is_revoked_by_its_id(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_DELETE, "/api/tokens/00ff00ff00ff00ff", NULL);
	assert_true(is(becomes(d, COMMAND_TOKEN_REVOKE)->token.id, "00ff00ff00ff00ff"));
	d->results[0] = (struct result){0};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "\"name\":\"builder\"");
	say(d, HTTP_METHOD_DELETE, "/api/tokens/1", NULL);
	refused_with(d, 404, "not_found");
}

static void what_an_admin_does_is_noted_with_its_principal_and_request(void **state)
{
	struct dialogue *d = *state;

	d->call.who.id = SPAN("0badc0de");
	d->request.request_id = SPAN("req-7");
	post(d, "/api/tokens", "{\"kind\":\"viewer\",\"name\":\"ann\"}");
	assert_true(is(becomes(d, COMMAND_TOKEN_PUT)->note,
		"\"principal\":\"0badc0de\",\"route\":\"POST /api/tokens\",\"object\":\"00ff00ff00ff00ff\","
		"\"kind\":\"viewer\",\"name\":\"ann\",\"requestId\":\"req-7\""));
	d->request.request_id = SPAN("with a blank");
	say(d, HTTP_METHOD_DELETE, "/api/tokens/00ff00ff00ff00ff", NULL);
	assert_true(is(becomes(d, COMMAND_TOKEN_REVOKE)->note,
		"\"principal\":\"0badc0de\",\"route\":\"DELETE /api/tokens/:id\",\"object\":\"00ff00ff00ff00ff\","
		"\"kind\":\"worker\",\"name\":\"builder\""));
}

static void the_token_in_the_file_cannot_be_revoked_here(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_DELETE, "/api/tokens/0badc0de", NULL);
	refused_with(d, 403, "forbidden");
	reply_says(d, "admin.token");
}

static void only_an_admin_has_to_do_with_tokens(void **state)
{
	struct dialogue *d = *state;

	assert_int_equal(api_scopes_of(TOKEN_JOIN), 0); /* a code opens nothing */
	for (int kind = TOKEN_OPERATOR; kind < TOKEN_JOIN; kind++) {
		d->call.who.scopes = api_scopes_of((enum token_kind)kind);
		post(d, "/api/tokens", "{\"kind\":\"viewer\",\"name\":\"x\"}");
		refused_with(d, 403, "forbidden");
		get(d, "/api/tokens");
		refused_with(d, 403, "forbidden");
		say(d, HTTP_METHOD_DELETE, "/api/tokens/1", NULL);
		refused_with(d, 403, "forbidden");
	}
}

/* ---- queues ---- */

static void be(struct dialogue *d, enum token_kind kind)
{
	static const struct span queues[] = {{"a", 1}, {"b", 1}};

	d->call.who.scopes = api_scopes_of(kind);
	d->call.who.queues = (struct name_list){queues, 2};
}

static void a_claim_without_queues_is_narrowed_to_those_of_the_token(void **state)
{
	struct dialogue *d = *state;

	be(d, TOKEN_WORKER);
	post(d, "/api/claims", "{\"workerId\":\"w1\"}");
	struct name_list queues = becomes(d, COMMAND_CLAIM_NEXT)->claim.queues;
	assert_int_equal(queues.count, 2);
	assert_true(is(queues.items[0], "a"));
	post(d, "/api/claims", "{\"workerId\":\"w1\",\"queues\":[\"b\"]}");
	queues = becomes(d, COMMAND_CLAIM_NEXT)->claim.queues;
	assert_int_equal(queues.count, 1);
	assert_true(is(queues.items[0], "b"));
}

static void a_claim_of_another_queue_is_forbidden_with_all_it_would_finish(void **state)
{
	struct dialogue *d = *state;

	be(d, TOKEN_WORKER);
	post(d, "/api/claims",
		"{\"workerId\":\"w1\",\"queues\":[\"a\",\"q\"],"
		"\"finish\":[{\"id\":\"t-1\",\"fence\":\"1\",\"outcome\":\"complete\"}]}");
	refused_with(d, 403, "forbidden");
}

static void what_a_worker_says_of_a_task_holds_within_its_queues(void **state)
{
	struct dialogue *d = *state;

	be(d, TOKEN_WORKER);
	post(d, "/api/tasks/t-1/claim", "{\"workerId\":\"w1\"}");
	assert_int_equal(becomes(d, COMMAND_CLAIM)->within.count, 2);
	post(d, "/api/tasks/t-1/complete", "{\"workerId\":\"w1\",\"fence\":\"1\"}");
	assert_int_equal(becomes(d, COMMAND_COMPLETE)->within.count, 2);
	d->call.who.queues = (struct name_list){0};
	post(d, "/api/tasks/t-1/claim", "{\"workerId\":\"w1\"}");
	assert_int_equal(becomes(d, COMMAND_CLAIM)->within.count, 0);
}

static void a_producer_creates_in_its_queues_alone(void **state)
{
	struct dialogue *d = *state;

	be(d, TOKEN_PRODUCER);
	post(d, "/api/tasks", "{\"title\":\"x\",\"queue\":\"b\"}");
	assert_true(is(becomes(d, COMMAND_CREATE)->create.queue, "b"));
	post(d, "/api/tasks", "{\"title\":\"x\",\"queue\":\"q\"}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/tasks", "{\"title\":\"x\"}");
	refused_with(d, 403, "forbidden");
}

static void each_item_of_a_batch_is_judged_by_its_own_queue(void **state)
{
	struct dialogue *d = *state;

	be(d, TOKEN_PRODUCER);
	post(d, "/api/tasks/batch",
		"[{\"title\":\"x\",\"queue\":\"q\"},{\"title\":\"y\",\"queue\":\"a\"},{\"title\":7}]");
	assert_true(is(becomes(d, COMMAND_CREATE)->create.queue, "a"));
	d->results[0] = (struct result){.task = d->task, .id = SPAN("t-1")};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"results\":[{\"ok\":false,\"status\":403,\"code\":\"forbidden\"");
	reply_says(d, "{\"ok\":true,\"status\":201");
	reply_says(d, "{\"ok\":false,\"status\":422");
}

static void a_batch_that_is_all_forbidden_changes_nothing(void **state)
{
	struct dialogue *d = *state;

	be(d, TOKEN_PRODUCER);
	post(d, "/api/tasks/batch", "[{\"title\":\"x\",\"queue\":\"q\"}]");
	reply_is(d, 200);
	reply_says(d, "\"code\":\"forbidden\"");
}

#define ADMIN(test) cmocka_unit_test_setup_teardown(test, admin_begins, dialogue_end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ADMIN(a_token_is_told_once_when_it_is_made),
		ADMIN(a_workers_token_lives_thirty_days_and_others_for_ever_unless_told),
		ADMIN(what_is_wrong_with_a_token_is_said),
		ADMIN(approvers_may_be_for_one_gate),
		ADMIN(a_gate_is_passed_by_whom_it_was_given_to),
		ADMIN(a_holder_makes_a_token_for_its_claim),
		ADMIN(others_claims_look_absent_to_whoever_wants_a_token_for_them),
		ADMIN(an_admin_makes_one_for_any_claim_and_leaves_a_trace),
		ADMIN(a_claims_token_has_nothing_but_task_and_fence),
		ADMIN(a_child_reports_on_its_claim_without_saying_which),
		ADMIN(a_child_sees_its_task_alone),
		ADMIN(an_instance_acts_as_its_worker_alone),
		ADMIN(a_worker_sees_what_it_may_claim_and_what_it_holds),
		ADMIN(a_viewer_of_certain_queues_sees_nothing_of_others),
		ADMIN(a_list_of_tokens_shows_neither_secret_nor_hash),
		ADMIN(a_token_is_revoked_by_its_id),
		ADMIN(what_an_admin_does_is_noted_with_its_principal_and_request),
		ADMIN(the_token_in_the_file_cannot_be_revoked_here),
		ADMIN(only_an_admin_has_to_do_with_tokens),
		ADMIN(a_claim_without_queues_is_narrowed_to_those_of_the_token),
		ADMIN(a_claim_of_another_queue_is_forbidden_with_all_it_would_finish),
		ADMIN(what_a_worker_says_of_a_task_holds_within_its_queues),
		ADMIN(a_producer_creates_in_its_queues_alone),
		ADMIN(each_item_of_a_batch_is_judged_by_its_own_queue),
		ADMIN(a_batch_that_is_all_forbidden_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
