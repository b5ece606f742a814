/*
 * Claims: the next task, one by name, and "finish these and give me the next" in one turn.
 *
 * The finishes stand before the claim among the commands, so what they free is there to be claimed. They take
 * effect whether or not there is a next task; only the claim waits.
 */
#include "api/task/report_form.h"
#include "api/task/view.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/take.h"

enum {
	FINISH_MAX = 100,
};

#define LEASE_ASKED_MAX (INT64_C(365) * 24 * 3600 * 1000) /* the rules clamp it further */

struct claim_body {
	struct span worker, slot, request_id;
	struct name_list queues, capabilities, executors, statuses;
	int64_t max, wait_ms, lease_ms;
	bool resume_owned, tokens;
	yyjson_val *finish;
};

enum claim_row { ROW_EXECUTORS, ROW_STATUSES };

static const struct field next_fields[] = {
	[ROW_EXECUTORS] = FIELD(claim_body, executors, "executors", FIELD_NAMES, .max = 0),
	[ROW_STATUSES] = FIELD(claim_body, statuses, "includeStatuses", FIELD_NAMES, .max = 0),
	FIELD_MUST_BE(claim_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(claim_body, queues, "queues", FIELD_NAMES, .max = 0),
	FIELD(claim_body, slot, "slot", FIELD_NAME, .max = 0),
	FIELD(claim_body, capabilities, "capabilities", FIELD_NAMES, .max = 0),
	FIELD(claim_body, max, "max", FIELD_INT, .min = 1, .max = COMMAND_CLAIMS_MAX),
	FIELD(claim_body, wait_ms, "waitMs", FIELD_INT, .max = WAIT_MS_MAX),
	FIELD(claim_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),
	FIELD(claim_body, resume_owned, "resumeOwned", FIELD_BOOL, .max = 0),
	FIELD(claim_body, request_id, "requestId", FIELD_NAME, .max = 0),
	FIELD(claim_body, tokens, "tokens", FIELD_BOOL, .max = 0),
	FIELD(claim_body, finish, "finish", FIELD_NODE, .max = 0),
};

static const struct field task_claim_fields[] = {
	[ROW_EXECUTORS] = FIELD(claim_body, executors, "executors", FIELD_NAMES, .max = 0),
	[ROW_STATUSES] = FIELD(claim_body, statuses, "includeStatuses", FIELD_NAMES, .max = 0),
	FIELD_MUST_BE(claim_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(claim_body, slot, "slot", FIELD_NAME, .max = 0),
	FIELD(claim_body, capabilities, "capabilities", FIELD_NAMES, .max = 0),
	FIELD(claim_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),
	FIELD(claim_body, resume_owned, "resumeOwned", FIELD_BOOL, .max = 0),
	FIELD(claim_body, request_id, "requestId", FIELD_NAME, .max = 0),
};

/* ---- the claim -------------------------------------------------------------------------------------- */

static void read_statuses(struct form *form, const struct claim_body *body, struct command_claim *claim)
{
	for (uint32_t i = 0; i < body->statuses.count; i++) {
		if (span_equal(body->statuses.items[i], SPAN("ready")))
			claim->takes_ready = true;
		else if (span_equal(body->statuses.items[i], SPAN("pending")))
			claim->takes_pending = true;
		else
			form_error(form, "includeStatuses", "may have only \"ready\" and \"pending\"");
	}
	if (body->statuses.count == 0)
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
		read_statuses(form, body, &claim);
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

/* Whoever works for certain queues gets work of those: of all of them when it names none, and may name no other. */
static bool narrow_queues(struct api_call *call, struct name_list *queues)
{
	const struct principal *who = &call->who;

	if (queues->count == 0)
		*queues = who->queues;
	for (uint32_t i = 0; i < queues->count; i++) {
		if (!principal_serves(who, queues->items[i])) {
			api_refuse(call, REFUSED_FORBIDDEN, "The credential is for other queues than these.");
			return false;
		}
	}
	return true;
}

/* The commands: all the finishes, then the claim. */
static void fill_next(struct form *form, const struct claim_body *body, uint64_t given)
{
	struct api_call *call = form_call(form);
	uint32_t count = finish_count(form, body->finish);
	struct command_claim claim = claim_of(form, body, given);
	struct claiming *claiming = arena_alloc(call->arena, sizeof *claiming);
	size_t i, limit;
	yyjson_val *item;

	if (!claiming)
		form->fault = -ENOMEM;
	struct command *commands = call_commands(call, count + 1);
	if (!commands)
		return;
	if (count > 0) {
		yyjson_arr_foreach(body->finish, i, limit, item) read_finish(form, item, i, &commands[i]);
	}
	if (!form_is_good(form) || !narrow_queues(call, &claim.queues))
		return;
	for (uint32_t c = 0; c <= count; c++)
		commands[c].worker = body->worker;
	commands[count].kind = COMMAND_CLAIM_NEXT;
	commands[count].claim = claim;
	claiming->finishes = body->finish != NULL;
	call->detail = claiming;
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
	if (!form_is_good(&form) || !call_commands(call, 1))
		return;
	call->commands[0].kind = COMMAND_CLAIM;
	call->commands[0].task = call->params[0];
	call->commands[0].worker = body.worker;
	call->commands[0].claim = claim;
}

/* ---- replies ---------------------------------------------------------------------------------------- */

static int put_finished_item(struct buf *out, const struct command *command, const struct result *result)
{
	struct json_object item;

	json_begin(&item, out);
	json_member_string(&item, "id", command->task);
	json_member_bool(&item, "ok", result->refusal == REFUSED_NOTHING);
	if (result->refusal != REFUSED_NOTHING)
		json_member_cstr(&item, "code", refusal_code(result->refusal));
	else
		json_member_cstr(&item, "state", task_state_name(result->task.state));
	return json_end(&item);
}

/* "finished":[…], noted before it waited or known now; nothing if the caller sent no list. */
static int put_finished(const struct api_call *call, struct buf *out, const struct result *results)
{
	const struct claiming *claiming = call->detail;
	uint32_t count = call->command_count - 1;

	if (!claiming->finishes)
		return 0;
	buf_put_span(out, SPAN("\"finished\":["));
	buf_put_span(out, claiming->finished);
	int r = buf_fault(out);
	for (uint32_t i = 0; r == 0 && results && i < count; i++) {
		r = i > 0 ? buf_put_byte(out, ',') : 0;
		if (r == 0)
			r = put_finished_item(out, &call->commands[i], &results[i]);
	}
	return r < 0 ? r : buf_put_byte(out, ']');
}

/* The claim was refused, but what was finished is finished. */
static void refuse_claim(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[call->command_count - 1];
	cleanup(buf_done) struct buf members = {0};

	buf_init(&members, 128 << 10);
	int r = put_finished(call, &members, results);
	call_refuse_with(
		call, result->refusal, refusal_detail(result), r < 0 ? (struct span){0} : buf_span(&members));
}

/* The token of the claim, if its claimant wants one; made here because the claim is on disk by now. */
static int mint(struct api_call *call, const struct command *command, const struct claimed *claimed,
	struct span *ret_token)
{
	const struct api_host *host = call->host;

	*ret_token = (struct span){0};
	return command->claim.tokens
		? host->mint_claim(host->context, call->who.id, &claimed->task, call->arena, ret_token)
		: 0;
}

static int put_claims(struct api_call *call, const struct command *command, const struct result *result)
{
	struct span token;
	int r = buf_put_span(call->body, SPAN("{\"claims\":["));

	for (uint32_t i = 0; r == 0 && result && i < result->claim_count; i++) {
		r = i > 0 ? buf_put_byte(call->body, ',') : 0;
		if (r == 0)
			r = mint(call, command, &result->claims[i], &token);
		if (r == 0)
			r = claim_put(call, call->body, &result->claims[i], command->worker, token);
	}
	return r < 0 ? r : buf_put_byte(call->body, ']');
}

static int put_rest(struct api_call *call, const struct result *results)
{
	const struct claiming *claiming = call->detail;
	int r = claiming->finishes ? buf_put_byte(call->body, ',') : 0;

	if (r == 0)
		r = put_finished(call, call->body, results);
	return r < 0 ? r : buf_put_byte(call->body, '}');
}

/* The reply reflects the last event of all its commands, before and after it waited. */
static void note_events(struct api_call *call, const struct result *results)
{
	for (uint32_t i = 0; i < call->command_count; i++) {
		if (results[i].event_seq > call->reply.event_seq)
			call->reply.event_seq = results[i].event_seq;
	}
}

void claim_next_finish(struct api_call *call, const struct result *results)
{
	const struct command *command = &call->commands[call->command_count - 1];
	const struct result *result = &results[call->command_count - 1];

	assert(command->kind == COMMAND_CLAIM_NEXT);
	if (result->refusal != REFUSED_NOTHING) {
		refuse_claim(call, results);
		return;
	}
	int r = put_claims(call, command, result);
	if (r == 0)
		r = put_rest(call, results);
	note_events(call, results);
	call_reply(call, 200, r);
}

void claim_next_finish_empty(struct api_call *call)
{
	int r = put_claims(call, NULL, NULL);

	if (r == 0)
		r = put_rest(call, NULL);
	call_reply(call, 200, r);
}

/* What it finished is noted, and its claim is left. False: no memory; it is answered at once instead. */
static bool keep_claim_alone(struct api_call *call, const struct result *results)
{
	struct claiming *claiming = call->detail;
	cleanup(buf_done) struct buf finished = {0};

	if (call->command_count == 1)
		return true;
	buf_init(&finished, 128 << 10);
	for (uint32_t i = 0; i < call->command_count - 1; i++) {
		if (i > 0)
			buf_put_byte(&finished, ',');
		put_finished_item(&finished, &call->commands[i], &results[i]);
	}
	int r = buf_fault(&finished);
	if (r == 0)
		r = arena_copy(call->arena, buf_span(&finished), &claiming->finished);
	if (r < 0)
		return false;
	note_events(call, results);
	call->commands += call->command_count - 1;
	call->command_count = 1;
	return true;
}

bool claim_next_waits(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[call->command_count - 1];

	return result->refusal == REFUSED_NOTHING && result->claim_count == 0 &&
		keep_claim_alone(call, results);
}

/* ---- waiting ---- */

/* Goes over everything twice: to see how much it is, and to copy it. */
struct mover {
	struct arena *into; /* NULL: it only counts */
	size_t bytes;
	int fault;
};

static void *move_bytes(struct mover *mover, const void *from, size_t len)
{
	void *to = mover->into ? arena_alloc(mover->into, len) : NULL;

	mover->bytes += (len + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	if (mover->into && !to)
		mover->fault = -ENOMEM;
	else if (to && len > 0)
		memcpy(to, from, len);
	return to;
}

static void move_span(struct mover *mover, struct span *span)
{
	if (span->data)
		span->data = move_bytes(mover, span->data, span->len);
}

static void move_names(struct mover *mover, struct name_list *list)
{
	struct span *items = move_bytes(mover, list->items, list->count * sizeof *items);

	for (uint32_t i = 0; i < list->count; i++) {
		struct span item = list->items[i];
		move_span(mover, &item);
		if (items)
			items[i] = item;
	}
	list->items = items;
}

static void move_principal(struct mover *mover, struct principal *who)
{
	move_span(mover, &who->name);
	move_span(mover, &who->id);
	move_names(mover, &who->queues);
	move_span(mover, &who->worker);
	move_span(mover, &who->gate);
	move_span(mover, &who->task);
}

/* Its actor and its queues are those of the principal. */
static void move_claim(struct mover *mover, struct api_call *call)
{
	struct command claim;
	memcpy(&claim, call->commands, command_bytes(call->commands));
	bool all_queues = claim.claim.queues.items == claim.within.items;

	claim.actor = call->who.name;
	claim.within = call->who.queues;
	move_span(mover, &claim.worker);
	if (all_queues)
		claim.claim.queues = call->who.queues;
	else
		move_names(mover, &claim.claim.queues);
	move_span(mover, &claim.claim.slot);
	move_names(mover, &claim.claim.capabilities);
	move_names(mover, &claim.claim.executors);
	call->commands = move_bytes(mover, &claim, command_bytes(&claim));
}

static void move_all(struct mover *mover, struct api_call *call)
{
	struct claiming claiming;

	move_principal(mover, &call->who);
	move_span(mover, &call->news_of);
	if (call->command_count == 0)
		return;
	claiming = *(const struct claiming *)call->detail;
	move_claim(mover, call);
	move_span(mover, &claiming.finished);
	call->detail = move_bytes(mover, &claiming, sizeof claiming);
}

int call_settle(struct api_call *call, struct arena *into)
{
	struct mover mover = {0};
	struct api_call moved = *call;

	assert(call->command_count <= 1);
	move_all(&mover, &moved);
	int r = arena_reserve(into, mover.bytes);
	if (r < 0)
		return r;
	moved = *call;
	mover.into = into;
	move_all(&mover, &moved);
	assert(mover.fault == 0); /* it was counted */
	*call = moved;
	return 0;
}

bool api_put_off(struct api_call *call, const struct result *results)
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
