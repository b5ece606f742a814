/*
 * Claims: the next task, one by name, and "finish these and give me the next" in one turn.
 *
 * The finishes stand before the claim among the commands, so what they free is there to be claimed. They take
 * effect whether or not there is a next task; only the claim waits.
 */
#include "api/flow/accounts.h"
#include "api/task/report_form.h"
#include "api/task/view.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/take.h"

enum {
	FINISH_MAX = 100,
};

#define LEASE_ASKED_MAX INT64_MAX /* the rules clamp it */

struct claim_body {
	struct span worker, slot, request_id;
	struct name_list queues, capabilities, executors, statuses;
	int64_t max, wait_ms, lease_ms;
	bool resume_owned, tokens;
	yyjson_val *finish, *credentials, *subtasks, *fallback;
};

enum claim_row { ROW_EXECUTORS, ROW_STATUSES };

/* What a claim of the next task and one by name have in common. */
#define ANY_CLAIM                                                                               \
	[ROW_EXECUTORS] = FIELD(claim_body, executors, "executors", FIELD_NAMES, .max = 0),     \
	[ROW_STATUSES] = FIELD(claim_body, statuses, "includeStatuses", FIELD_NAMES, .max = 0), \
	FIELD_MUST_BE(claim_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),       \
	FIELD(claim_body, slot, "slot", FIELD_NAME, .max = 0),                                  \
	FIELD(claim_body, capabilities, "capabilities", FIELD_NAMES, .max = 0),                 \
	FIELD(claim_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),              \
	FIELD(claim_body, resume_owned, "resumeOwned", FIELD_BOOL, .max = 0),                   \
	FIELD(claim_body, credentials, "credentials", FIELD_NODE, .max = 0),                    \
	FIELD(claim_body, subtasks, "subtasks", FIELD_NODE, .max = 0),                          \
	FIELD(claim_body, fallback, "fallback", FIELD_NODE, .max = 0),                          \
	FIELD(claim_body, request_id, "requestId", FIELD_NAME, .max = 0)

static const struct field next_fields[] = {
	ANY_CLAIM,
	FIELD(claim_body, queues, "queues", FIELD_NAMES, .max = 0),
	FIELD(claim_body, max, "max", FIELD_INT, .min = 1, .max = COMMAND_CLAIMS_MAX),
	FIELD(claim_body, wait_ms, "waitMs", FIELD_INT, .max = WAIT_MS_MAX),
	FIELD(claim_body, tokens, "tokens", FIELD_BOOL, .max = 0),
	FIELD(claim_body, finish, "finish", FIELD_NODE, .max = 0),
};

static const struct field task_claim_fields[] = {ANY_CLAIM};

/* ---- the claim -------------------------------------------------------------------------------------- */

void claim_read_statuses(struct form *form, const struct name_list *statuses, struct command_claim *claim)
{
	for (uint32_t i = 0; i < statuses->count; i++) {
		if (span_equal(statuses->items[i], SPAN("ready")))
			claim->takes_ready = true;
		else if (span_equal(statuses->items[i], SPAN("pending")))
			claim->takes_pending = true;
		else
			form_error(form, "includeStatuses", "may have only \"ready\" and \"pending\"");
	}
	if (statuses->count == 0 && form->error_count == 0)
		form_error(form, "includeStatuses", "must name \"ready\", \"pending\" or both");
}

static struct command_claim claim_of(struct form *form, const struct claim_body *body, uint64_t given)
{
	struct command_claim claim = {
		.queues = body->queues,
		.slot = body->slot,
		.capabilities = body->capabilities,
		.executors = body->executors,
		.any_executor = !(given & 1u << ROW_EXECUTORS),
		.takes_ready = !(given & 1u << ROW_STATUSES),
		.resumes = body->resume_owned,
		.tokens = body->tokens,
		.max = (uint32_t)body->max,
		.lease_ms = body->lease_ms,
	};

	if (given & 1u << ROW_STATUSES)
		claim_read_statuses(form, &body->statuses, &claim);
	accounts_read(form, "credentials", body->credentials, &claim.announced.accounts);
	accounts_read(form, "subtasks", body->subtasks, &claim.announced.subtasks);
	accounts_read(form, "fallback", body->fallback, &claim.announced.fallback);
	if (body->request_id.len > 0)
		claim.request = digest_text(body->worker, body->request_id);
	return claim;
}

/* ---- finish these ----------------------------------------------------------------------------------- */

static void read_finish(struct form *form, yyjson_val *item, size_t index, struct command *command)
{
	struct form_path path;

	form_enter(form, &path, SPAN("finish"), (int64_t)index);
	if (yyjson_is_obj(item))
		report_read_finish(form, item, command);
	else
		form_wrong_as(form, "", "an object", item);
	form_leave(form);
}

static uint32_t finish_count(struct form *form, yyjson_val *finish)
{
	size_t count = yyjson_arr_size(finish);

	if (finish && (!yyjson_is_arr(finish) || count > FINISH_MAX)) {
		form_error(form, "finish", "must be a list of at most %d", FINISH_MAX);
		return 0;
	}
	return (uint32_t)count;
}

/* ---- requests --------------------------------------------------------------------------------------- */

/* What the call remembers. */
struct claiming {
	bool finishes;        /* the caller sent a list, be it empty */
	struct span finished; /* elements of a JSON list: what became of them, once it waits */
};

/* The commands: all the finishes, then the claim. */
static void fill_next(struct form *form, const struct claim_body *body, uint64_t given)
{
	struct api_call *call = form_call(form);
	uint32_t count = finish_count(form, body->finish);
	struct command_claim claim = claim_of(form, body, given);
	struct claiming *claiming = call_detail(call, sizeof *claiming);
	struct command *commands = claiming ? call_commands(call, count + 1) : NULL;
	size_t i, limit;
	yyjson_val *item;

	if (!commands)
		return;
	if (count > 0) {
		yyjson_arr_foreach(body->finish, i, limit, item) read_finish(form, item, i, &commands[i]);
	}
	if (claim.queues.count == 0) /* a credential for certain queues claims from those */
		claim.queues = call->who.queues;
	/* the store refuses a claim of other queues, so that `why` can tell; what is finished with it must not be done */
	claim.forbidden = !principal_serves_all(&call->who, &claim.queues);
	if (!form_is_good(form) || (count > 0 && !call_serves_all(call, &claim.queues)))
		return;
	for (uint32_t c = 0; c <= count; c++)
		commands[c].worker = body->worker;
	commands[count].kind = COMMAND_CLAIM_NEXT;
	commands[count].claim = claim;
	claiming->finishes = body->finish != NULL;
	call->wait_ms = body->wait_ms;
}

void claim_next_begin(struct api_call *call)
{
	struct claim_body body = {.max = 1};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(next_fields), &body);
	fill_next(&form, &body, given);
}

void claim_task_begin(struct api_call *call)
{
	struct claim_body body = {.max = 1};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(task_claim_fields), &body);
	struct command_claim claim = claim_of(&form, &body, given);
	struct command *command = form_is_good(&form) ? call_command(call, COMMAND_CLAIM) : NULL;
	if (!command)
		return;
	command->task = call->params[0];
	command->worker = body.worker;
	command->claim = claim;
}

/* ---- replies ---------------------------------------------------------------------------------------- */

/* {"id","ok",…},…: what became of the finishes. */
static void put_finished_items(const struct api_call *call, struct buf *out, const struct result *results)
{
	struct json_object item;
	bool any = false;

	for (uint32_t i = 0; i + 1 < call->command_count; i++) {
		bool ok = results[i].refusal == REFUSED_NOTHING;
		json_put_comma(out, &any);
		json_begin(&item, out);
		json_member_string(&item, "id", call->commands[i].task);
		json_member_bool(&item, "ok", ok);
		json_member_cstr(&item, ok ? "state" : "code",
			ok ? task_state_name(results[i].task.state) : refusal_code(results[i].refusal));
		json_end(&item);
	}
}

/* "finished":[…], noted before it waited or known now; nothing if the caller sent no list. */
static void put_finished(
	const struct api_call *call, struct json_object *object, const struct result *results)
{
	const struct claiming *claiming = call->detail;

	if (!claiming->finishes || !json_put_key(object, "finished"))
		return;
	buf_put_byte(object->buf, '[');
	buf_put_span(object->buf, claiming->finished);
	if (results)
		put_finished_items(call, object->buf, results);
	buf_put_byte(object->buf, ']');
}

/* The claim was refused, but what was finished is finished. */
static void refuse_claim(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[call->command_count - 1];
	cleanup(buf_done) struct buf members = {.max = 128 << 10};
	struct json_object object = {.buf = &members};

	put_finished(call, &object, results);
	call_refuse_with(call, result->refusal, refusal_detail(result), &members);
	if (result->retry_ms > 0)
		call->reply.retry_after_s = (result->retry_ms + 999) / 1000;
}

/* The token of the claim, if its claimant wants one; made here because the claim is on disk by now. */
static int mint(struct api_call *call, const struct command *command, const struct claimed *claimed,
	struct span *ret_token)
{
	const struct api_services *host = call->host;

	*ret_token = (struct span){0};
	return command->claim.tokens
		? host->mint_claim(host->context, call->who.id, &claimed->task, call->arena, ret_token)
		: 0;
}

/* {"claims":[…],"finished":[…]}; without results nothing was claimed in the time that it waited. */
static void reply_claims(struct api_call *call, const struct result *results)
{
	const struct command *command = &call->commands[call->command_count - 1];
	const struct result *result = results ? &results[call->command_count - 1] : NULL;
	struct json_object object;
	bool any = false;
	int r = 0;

	json_begin(&object, call->body);
	json_put_key(&object, "claims");
	buf_put_byte(call->body, '[');
	for (uint32_t i = 0; r == 0 && result && i < result->claim_count; i++) {
		struct span token;
		json_put_comma(call->body, &any);
		r = mint(call, command, &result->claims[i], &token);
		if (r == 0)
			r = claim_put(call, call->body, &result->claims[i], command->worker, token);
	}
	buf_put_byte(call->body, ']');
	put_finished(call, &object, results);
	json_end(&object);
	call_reply(call, 200, r);
}

void claim_next_finish(struct api_call *call, const struct result *results)
{
	assert(call->commands[call->command_count - 1].kind == COMMAND_CLAIM_NEXT);
	if (results[call->command_count - 1].refusal != REFUSED_NOTHING) {
		refuse_claim(call, results);
		return;
	}
	call_note_events(call, results);
	reply_claims(call, results);
}

void claim_next_finish_empty(struct api_call *call)
{
	assert(call->command_count == 1); /* what it finished was noted when it began to wait */
	reply_claims(call, NULL);
}

/* What it finished is noted, and its claim is left. False: no memory; it is answered at once instead. */
static bool keep_claim_alone(struct api_call *call, const struct result *results)
{
	struct claiming *claiming = call->detail;
	cleanup(buf_done) struct buf finished = {.max = 128 << 10};

	if (call->command_count == 1)
		return true;
	put_finished_items(call, &finished, results);
	if (buf_keep(&finished, call->arena, &claiming->finished) < 0)
		return false;
	call_note_events(call, results);
	call->commands += call->command_count - 1;
	call->command_count = 1;
	assert(call->commands[0].kind == COMMAND_CLAIM_NEXT);
	return true;
}

bool claim_next_waits(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[call->command_count - 1];

	return result->refusal == REFUSED_NOTHING && result->claim_count == 0 &&
		keep_claim_alone(call, results);
}

/* ---- waiting ---- */

static size_t padded(size_t bytes)
{
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static void *move_bytes(struct arena *into, const void *from, size_t len)
{
	void *to = arena_alloc(into, len);

	assert(to); /* there is room for it: it was counted */
	return len > 0 ? memcpy(to, from, len) : to;
}

static size_t names_bytes(const struct name_list *list)
{
	size_t bytes = padded(list->count * sizeof *list->items);

	for (uint32_t i = 0; i < list->count; i++)
		bytes += padded(list->items[i].len);
	return bytes;
}

static void move_names(struct arena *into, struct name_list *list)
{
	struct span *items = move_bytes(into, list->items, list->count * sizeof *items);

	for (uint32_t i = 0; i < list->count; i++)
		items[i].data = move_bytes(into, items[i].data, items[i].len);
	list->items = items;
}

/* A claim, or a wait for news, which has no command. Everything is counted first, so that it takes no more than that. */
int call_compact(struct api_call *call, struct arena *into)
{
	struct principal who = call->who;
	struct claiming claiming = {0};
	struct command claim = {0};
	struct span *texts[] = {&who.name, &who.id, &who.worker, &who.gate, &who.task, &call->news_of,
		&claim.worker, &claim.claim.slot, &claiming.finished};
	struct name_list *lists[] = {
		&who.queues, &claim.claim.queues, &claim.claim.capabilities, &claim.claim.executors};
	const size_t text_count = sizeof texts / sizeof *texts, list_count = sizeof lists / sizeof *lists;
	size_t bytes = 0;

	assert(call->command_count <= 1);
	if (call->command_count == 1) {
		memcpy(&claim, call->commands, command_bytes(call->commands));
		claiming = *(const struct claiming *)call->detail;
		bytes = padded(command_bytes(&claim)) + padded(sizeof claiming);
	}
	claim.claim.announced = (struct command_announced){0}; /* the store knows it by now */
	bool all_queues = claim.claim.queues.items == claim.within.items;
	if (all_queues) /* they are those of the principal */
		claim.claim.queues = (struct name_list){0};
	for (size_t i = 0; i < text_count; i++)
		bytes += padded(texts[i]->len);
	for (size_t i = 0; i < list_count; i++)
		bytes += names_bytes(lists[i]);
	int r = arena_reserve(into, bytes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < text_count; i++)
		texts[i]->data = texts[i]->data ? move_bytes(into, texts[i]->data, texts[i]->len) : NULL;
	for (size_t i = 0; i < list_count; i++)
		move_names(into, lists[i]);
	call->who = who;
	if (call->command_count == 0)
		return 0;
	claim.actor = who.name;
	claim.within = who.queues;
	if (all_queues)
		claim.claim.queues = who.queues;
	call->commands = move_bytes(into, &claim, command_bytes(&claim));
	call->detail = move_bytes(into, &claiming, sizeof claiming);
	return 0;
}

bool api_retry_next_turn(struct api_call *call, const struct result *results)
{
	return results[call->command_count - 1].put_off && keep_claim_alone(call, results);
}

void claim_task_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];

	assert(result->claim_count == 1);
	call_reply(call, 200,
		claim_put(call, call->body, &result->claims[0], call->commands[0].worker, (struct span){0}));
}
