/*
 * Commands: any request becomes a reply in good form, or commands that are valid to the last field. The store below
 * relies on that and looks at nothing twice.
 *
 *	POST /api/tasks/t-1/complete
 *	Idempotency-Key
 *	If-Match
 *	the body
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/form.h"
#include "base/take.h"
#include "fuzz/api_world.h"
#include "fuzz/fuzz.h"

enum {
	COMMANDS_MAX = 1000,
	KEY_BYTES_MAX = 8192,
};

/* ---- what is valid --------------------------------------------------------------------------------------- */

static void expect_name(struct span text, size_t max)
{
	assert(text_is_name(text, max));
}

static void expect_name_or_none(struct span text, size_t max)
{
	if (text.len > 0)
		expect_name(text, max);
}

static void expect_names(struct name_list names, uint32_t count_max, size_t max)
{
	assert(names.count <= count_max);
	for (uint32_t i = 0; i < names.count; i++)
		expect_name(names.items[i], max);
}

static void expect_json(struct span before, struct span text, struct span after)
{
	cleanup(buf_done) struct buf whole;
	struct json_complaint complaint;

	buf_init(&whole, 64 << 20);
	assert(buf_put_span(&whole, before) == 0);
	assert(buf_put_span(&whole, text) == 0);
	assert(buf_put_span(&whole, after) == 0);
	yyjson_doc *doc = json_read(buf_span(&whole), &complaint);
	assert(doc);
	yyjson_doc_free(doc);
}

static void expect_members(struct span members)
{
	expect_json(SPAN("{"), members, SPAN("}"));
}

static void expect_create(const struct command_create *create)
{
	assert(create->id.len == 0 || text_is_id(create->id));
	expect_name(create->queue, COMMAND_NAME_MAX);
	expect_name_or_none(create->owner, COMMAND_NAME_MAX);
	expect_name_or_none(create->executor, COMMAND_NAME_MAX);
	expect_names(create->requires, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	expect_names(create->parents, COMMAND_PARENTS_MAX, COMMAND_ID_MAX);
	expect_name_or_none(create->group, COMMAND_NAME_MAX);
	expect_names(create->blocked_by_groups, TASK_GROUPS_MAX, COMMAND_NAME_MAX);
	expect_members(create->body);
	assert(create->unique_key.len <= KEY_BYTES_MAX);
	assert(create->idempotency_key.len <= KEY_BYTES_MAX);
	assert(create->not_before_ms >= 0);
	assert(create->start_by_ms >= 0);
	assert(create->finish_by_ms >= 0);
}

static void expect_update(const struct command_update *update)
{
	if (update->patch.set_queue)
		expect_name(update->queue, COMMAND_NAME_MAX);
	expect_name_or_none(update->owner, COMMAND_NAME_MAX);
	expect_name_or_none(update->executor, COMMAND_NAME_MAX);
	expect_names(update->requires, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	if (update->set_body)
		expect_members(update->body);
	assert(update->patch.start_by_ms >= 0);
	assert(update->patch.finish_by_ms >= 0);
}

static void expect_claim(const struct command_claim *claim)
{
	expect_names(claim->queues, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	expect_names(claim->capabilities, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	expect_names(claim->executors, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	expect_name_or_none(claim->slot, COMMAND_NAME_MAX);
	assert(claim->takes_ready || claim->takes_pending);
	assert(!claim->any_executor || claim->executors.count == 0);
	assert(claim->lease_ms >= 0);
	assert(claim->run_ms >= 0);
}

static void expect_beat(const struct command_beat *beat)
{
	expect_name_or_none(beat->slot, COMMAND_NAME_MAX);
	expect_names(beat->capabilities, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	expect_names(beat->executors, COMMAND_LIST_MAX, COMMAND_NAME_MAX);
	expect_names(beat->bound, COMMAND_LIST_MAX, COMMAND_ID_MAX);
	expect_names(beat->unbound, COMMAND_LIST_MAX, COMMAND_ID_MAX);
	if (beat->metadata.len > 0)
		expect_json((struct span){0}, beat->metadata, (struct span){0});
	assert(beat->lease_ms >= 0);
}

static void expect_token(const struct command_token *token)
{
	expect_name(token->id, COMMAND_ID_MAX);
	expect_name(token->name, COMMAND_NAME_MAX);
	expect_names(token->queues, TOKEN_QUEUES_MAX, COMMAND_NAME_MAX);
	assert(token_kind_name(token->kind));
	assert(token->lives_ms >= 0);
}

static void expect_failure(const struct failure *failure)
{
	assert(failure->code > CODE_NONE);
	assert(failure->code < FAILURE_CODE_COUNT);
	assert(failure->klass > FAILURE_CLASS_NONE);
	assert(failure->klass < FAILURE_CLASS_COUNT);
	assert(failure->retry_at_ms >= 0);
}

static void expect_about_task(const struct command *command, bool by_worker)
{
	expect_name(command->task, COMMAND_ID_MAX);
	if (by_worker)
		expect_name(command->worker, COMMAND_ID_MAX);
}

static void expect_own(const struct command *command)
{
	switch (command->kind) {
	case COMMAND_CREATE:
		return expect_create(&command->create);
	case COMMAND_UPDATE:
		expect_about_task(command, false);
		return expect_update(&command->update);
	case COMMAND_CANCEL:
	case COMMAND_STOP:
	case COMMAND_RETRY:
	case COMMAND_PARK:
	case COMMAND_UNPARK:
	case COMMAND_ANSWER:
	case COMMAND_PASS:
	case COMMAND_REJECT:
		return expect_about_task(command, false);
	case COMMAND_PURGE:
		return expect_name(command->task, COMMAND_ID_MAX);
	case COMMAND_SLOT_ASSIGN:
		assert(command->assign.queues.count > 0 && command->assign.queues.count <= COMMAND_LIST_MAX);
		return expect_name(command->assign.slot, COMMAND_ID_MAX);
	case COMMAND_TELL:
		return expect_name(command->task, COMMAND_ID_MAX);
	case COMMAND_GROUP_CLOSE:
	case COMMAND_GROUP_REMOVE:
		return expect_name(command->group.name, COMMAND_NAME_MAX);
	case COMMAND_BULK_START:
		assert(bulk_action_name(command->bulk.bulk.action));
		if (command->bulk.bulk.action == BULK_MOVE)
			expect_name(command->bulk.bulk.queue, COMMAND_NAME_MAX);
		return expect_json((struct span){0}, command->bulk.bulk.filter, (struct span){0});
	case COMMAND_BULK_STOP:
		assert(command->bulk.bulk.number > 0);
		return;
	case COMMAND_HOLD_SET:
	case COMMAND_HOLD_LIFT:
		return expect_name(command->hold.credential, COMMAND_NAME_MAX);
	case COMMAND_INBOX_DROP:
		assert(command->inbox.id > 0);
		return;
	case COMMAND_BUDGET_SET:
		return expect_name(command->budget.name, COMMAND_NAME_MAX);
	case COMMAND_QUEUE_SET:
		assert(queue_state_name(command->queue_set.state));
		return expect_name(command->queue_set.queue, COMMAND_NAME_MAX);
	case COMMAND_QUEUE_LIMIT:
		assert(limits_are_sound(&command->queue_limit.patch.wanted));
		for (uint32_t i = 0; i < command->queue_limit.cap_count; i++) {
			assert(command->queue_limit.caps[i].most <= LIMIT_MAX);
			expect_name(command->queue_limit.caps[i].key, CONCURRENCY_KEY_MAX);
		}
		return expect_name(command->queue_limit.queue, COMMAND_NAME_MAX);
	case COMMAND_CLAIM_NEXT:
		assert(command->claim.max > 0);
		assert(command->claim.max <= COMMAND_CLAIMS_MAX);
		expect_name(command->worker, COMMAND_ID_MAX);
		return expect_claim(&command->claim);
	case COMMAND_CLAIM:
		expect_about_task(command, true);
		return expect_claim(&command->claim);
	case COMMAND_FAIL:
	case COMMAND_BLOCK:
		expect_failure(&command->failure);
		return expect_about_task(command, true);
	case COMMAND_PROGRESS:
		assert(command->lease_ms >= 0);
		return expect_about_task(command, true);
	case COMMAND_RELEASE:
		assert(command->delay_ms >= 0);
		return expect_about_task(command, true);
	case COMMAND_COMPLETE:
	case COMMAND_REVIEW:
	case COMMAND_ASK:
	case COMMAND_WAIT:
		return expect_about_task(command, true);
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		expect_name(command->worker, COMMAND_ID_MAX);
		return expect_beat(&command->beat);
	case COMMAND_QUIET:
	case COMMAND_TERMINATE:
	case COMMAND_LEAVE:
		return expect_name(command->worker, COMMAND_ID_MAX);
	case COMMAND_SLOT_CRASH:
	case COMMAND_UNQUARANTINE:
		return expect_name(command->slot, COMMAND_NAME_MAX);
	case COMMAND_SLOT_ENTER:
		expect_name(command->worker, COMMAND_ID_MAX);
		return expect_name(command->slot, COMMAND_NAME_MAX);
	case COMMAND_TOKEN_PUT:
		return expect_token(&command->token);
	case COMMAND_TOKEN_REVOKE:
		return expect_name(command->token.id, COMMAND_ID_MAX);
	case COMMAND_ENROL:
		expect_name(command->token.code, COMMAND_ID_MAX);
		return expect_token(&command->token);
	case COMMAND_TOKEN_RENEW:
		return expect_name(command->token.id, COMMAND_ID_MAX);
	case COMMAND_LOGIN_CODE:
	case COMMAND_LOGIN:
	case COMMAND_LOGOUT:
		return expect_name(command->login.id, LOGIN_ID_BYTES_MAX - 1);
	case COMMAND_LOG:
	case COMMAND_EMIT:
		return expect_about_task(command, false);
	case COMMAND_VERDICT:
		expect_name(command->verdict.gate, COMMAND_NAME_MAX);
		return expect_about_task(command, false);
	case COMMAND_SCHEDULE_PUT:
		expect_name(command->schedule.schedule.id, COMMAND_ID_MAX);
		expect_json((struct span){0}, command->schedule.schedule.task, (struct span){0});
		return expect_create(command->schedule.create);
	case COMMAND_SCHEDULE_REMOVE:
	case COMMAND_SCHEDULE_RUN:
	case COMMAND_SCHEDULE_PAUSE:
	case COMMAND_SCHEDULE_RESUME:
		assert(command->schedule.at_ms >= 0);
		return;
	case COMMAND_EXECUTION_SET:
		return;
	case COMMAND_KEY_ROTATE:
	case COMMAND_AUDIT: /* its note is all there is */
		return;
	case COMMAND_RETURN: /* the server's own */
	case COMMAND_BULK_STEP:
	case COMMAND_INBOX_KEEP:
	case COMMAND_KIND_COUNT:
		break;
	}
	abort(); /* no request is one of those */
}

static void expect_command(const struct command *command)
{
	assert(command->if_version >= -1); /* -1: one that no task has */
	assert(span_equal(command->actor, SPAN("alice")));
	if (command->data.len > 0 && command->kind != COMMAND_LOG) /* what a program wrote is any text */
		expect_json((struct span){0}, command->data, (struct span){0});
	expect_members(command->note);
	expect_own(command);
}

/* ---- what is made of results -------------------------------------------------------------------------------- */

/* The turn accepted everything, or refused everything for the same reason. */
static void answer(struct api_world *world, enum refusal refusal)
{
	static struct result results[COMMANDS_MAX];
	const struct claimed claimed = {
		.task = {.seq = 2, .queue = 1, .state = TASK_CLAIMED, .fence = 7, .attempt = 1},
		.id = SPAN("t-2"),
		.body = SPAN("\"title\":\"a task\""),
	};

	assert(world->call.command_count > 0);
	assert(world->call.command_count <= COMMANDS_MAX);
	for (uint32_t i = 0; i < world->call.command_count; i++) {
		results[i] = (struct result){
			.refusal = refusal,
			.task = {.seq = 2, .queue = 1, .state = TASK_READY},
			.id = SPAN("t-2"),
			.worker = {.state = WORKER_ACTIVE},
			.event_seq = 9,
		};
		if (refusal == REFUSED_NOTHING && world->call.commands[i].kind <= COMMAND_CLAIM &&
			world->call.commands[i].kind >= COMMAND_CLAIM_NEXT) {
			results[i].claims = &claimed;
			results[i].claim_count = 1;
		}
	}
	api_finish(&world->call, results);
	world_expect_reply(world);
}

/* ---- the request ---------------------------------------------------------------------------------------------- */

static struct span next_line(struct span *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;
	struct span line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
	size_t taken = end ? line.len + 1 : line.len;

	*rest = (struct span){rest->data + taken, rest->len - taken};
	return line;
}

static enum http_method method_of(struct span *line)
{
	for (int method = HTTP_METHOD_GET; method <= HTTP_METHOD_DELETE; method++) {
		struct span name = span_of(http_method_name((enum http_method)method));
		if (line->len > name.len && memcmp(line->data, name.data, name.len) == 0 &&
			line->data[name.len] == ' ') {
			*line = (struct span){line->data + name.len + 1, line->len - name.len - 1};
			return (enum http_method)method;
		}
	}
	return HTTP_METHOD_OTHER;
}

static struct span header(struct span line)
{
	return line.len > 0 ? line : (struct span){0};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum refusal refusals[] = {REFUSED_NOTHING, REFUSED_STALE_CLAIM, REFUSED_UNAVAILABLE};
	struct span rest = {size > 0 ? (const char *)data : "", size};
	struct span target = next_line(&rest);
	enum http_method method = method_of(&target);
	struct span key = next_line(&rest), match = next_line(&rest);

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		cleanup(world_done) struct api_world world;
		world_init(&world);
		world.request.idempotency_key = header(key);
		world.request.if_match = header(match);
		if (world_ask(&world, method, target, rest) == API_REPLY) {
			world_expect_reply(&world);
			return 0;
		}
		if (world.call.step == API_STREAM)
			return 0;
		if (world.call.step == API_NEWS) {
			api_finish_news(&world.call, i == 0);
			world_expect_reply(&world);
			return 0;
		}
		for (uint32_t c = 0; c < world.call.command_count; c++)
			expect_command(&world.call.commands[c]);
		answer(&world, refusals[i]);
	}
	return 0;
}
