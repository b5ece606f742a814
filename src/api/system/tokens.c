/*
 * Tokens: giving credentials to others, seeing who has which, and taking them back. Only admins do that. The holder of a
 * claim may make a credential for that claim alone, to hand to the program that does the work.
 *
 * The text of a token stands once, in the reply that made it, and is known to nobody afterwards: not to the store,
 * the events or the log.
 */
#include "api/form.h"

#include <errno.h>
#include <stdio.h>

#include "base/take.h"

#define LIVES_MAX_MS         (INT64_C(10) * 365 * 24 * 3600 * 1000)
#define WORKER_LIVES_MS      (INT64_C(30) * 24 * 3600 * 1000)
#define JOIN_LIVES_MS        (INT64_C(15) * 60 * 1000)
#define JOIN_LIVES_MAX_MS    (INT64_C(7) * 24 * 3600 * 1000)
#define MACHINE_LIVES_MIN_MS (INT64_C(10) * 1000)
#define TOKEN_NAME_MAX       100
#define BIT_OF(row, given)   (((given) >> (row)) & 1)

/* ---- what a token may do ------------------------------------------------------------------------------ */

uint32_t api_scopes_of(enum token_kind kind)
{
	static const uint32_t scopes[TOKEN_KIND_COUNT] = {
		[TOKEN_ADMIN] = SCOPE_BIT(SCOPE_COUNT) - 1,
		[TOKEN_OPERATOR] = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_OPERATE) |
			SCOPE_BIT(SCOPE_APPROVE) | SCOPE_BIT(SCOPE_EMIT),
		[TOKEN_PRODUCER] = SCOPE_BIT(SCOPE_PRODUCE),
		[TOKEN_WORKER] = SCOPE_BIT(SCOPE_WORK),
		[TOKEN_VIEWER] = SCOPE_BIT(SCOPE_READ),
		[TOKEN_METRICS] = SCOPE_BIT(SCOPE_METRICS),
		[TOKEN_APPROVER] = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_APPROVE),
		[TOKEN_GATE] = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_GATE),
		[TOKEN_EMIT] = SCOPE_BIT(SCOPE_EMIT),
	};

	return kind < TOKEN_KIND_COUNT ? scopes[kind] : 0;
}

static bool has(const struct principal *who, enum scope scope)
{
	return (who->scopes & (SCOPE_BIT(scope) | SCOPE_BIT(SCOPE_ADMIN))) != 0;
}

bool principal_serves(const struct principal *who, struct span queue)
{
	for (uint32_t i = 0; i < who->queues.count; i++) {
		if (span_equal(who->queues.items[i], queue))
			return true;
	}
	return who->queues.count == 0;
}

bool principal_makes_in(const struct principal *who, struct span queue)
{
	struct principal maker = {.queues = who->task_seq != 0 ? who->makes_in : who->queues};

	return principal_serves(&maker, queue);
}

bool principal_serves_all(const struct principal *who, const struct name_list *queues)
{
	for (uint32_t i = 0; i < queues->count; i++) {
		if (!principal_serves(who, queues->items[i]))
			return false;
	}
	return true;
}

bool call_serves_all(struct api_call *call, const struct name_list *queues)
{
	return principal_serves_all(&call->who, queues) || api_refuse(call, REFUSED_FORBIDDEN, OTHER_QUEUES);
}

bool principal_reads(const struct principal *who)
{
	return has(who, SCOPE_READ);
}

/* Could a worker of this principal fill the slot? Not if the slot is another's. */
static bool principal_fills(const struct api_call *call, uint32_t slot)
{
	uint32_t owner =
		slot != 0 ? store_slot_owner(call->store, slot, call->now.wall_ms) : PRINCIPAL_NOBODY;

	return owner == PRINCIPAL_NOBODY || owner == call->who.number;
}

bool principal_sees(const struct api_call *call, const struct task *task)
{
	const struct principal *who = &call->who;
	struct given given = {.rules = call->rules, .now = call->now};

	if (who->task_seq != 0)
		return task->seq == who->task_seq;
	if (who->queues.count > 0 && !principal_serves(who, name_of(call, task->queue)))
		return false;
	if (has(who, SCOPE_READ))
		return true;
	if (task->claimant == who->number) /* its last claim was the caller's, who may read how it ended */
		return true;
	return !task_is_claimed(task) && task_is_claimable(task, true, &given) &&
		principal_fills(call, task->owner);
}

bool principal_may_see(const struct api_call *call, const struct task_outline *outline)
{
	const struct principal *who = &call->who;

	if (who->queues.count > 0 && !principal_serves(who, name_of(call, outline->queue)))
		return false;
	return has(who, SCOPE_READ) || !task_state_is_final(outline->state);
}

bool principal_passes(const struct principal *who, struct span gate)
{
	return has(who, SCOPE_APPROVE) || (has(who, SCOPE_GATE) && span_equal(who->gate, gate));
}

/* ---- replies ------------------------------------------------------------------------------------------ */

/* "gate:NAME" for an approver of one gate. */
static void put_kind(struct json_object *object, enum token_kind kind, struct span gate)
{
	char text[sizeof "gate:" + COMMAND_NAME_MAX];

	if (kind == TOKEN_GATE)
		snprintf(text, sizeof text, "%s:%.*s", token_kind_name(kind), SPAN_ARGS(gate));
	else
		snprintf(text, sizeof text, "%s", token_kind_name(kind));
	json_member_cstr(object, "kind", text);
}

/* Neither the secret nor its hash is among them. */
static void put_members(struct json_object *object, const struct token *token, int64_t now_ms)
{
	struct span queues[TOKEN_QUEUES_MAX];

	json_member_string(object, "id", token->id);
	put_kind(object, token->kind, token->gate);
	json_member_string(object, "name", token->name);
	if (token->queues.len > 0 && json_put_key(object, "queues"))
		json_put_strings(object->buf, queues, token_queues(token, queues));
	json_member_int(object, "createdAt", token->created_ms);
	json_member_string(object, "createdBy", token->created_by);
	json_member_int_or_null(object, "expiresAt", token->expires_ms);
	if (token->revoked_ms != 0) {
		json_member_int(object, "revokedAt", token->revoked_ms);
		json_member_string(object, "revokedBy", token->revoked_by);
	}
	machine_put_members(object, token, now_ms);
}

/* Where a machine shows its code. */
static void put_url(const struct api_call *call, struct json_object *object)
{
	char url[API_URL_BYTES];

	call->host->url_from_afar(call->host->context, url);
	json_member_string_if_any(object, "url", span_of(url));
}

void token_reply(struct api_call *call, int status, struct span id, const struct minted *minted)
{
	const struct token *token = store_find_token(call->store, id);
	struct json_object object;

	if (!call_require(call, token, REFUSED_NOT_FOUND, NULL))
		return;
	json_begin(&object, call->body);
	put_members(&object, token, call->now.wall_ms);
	if (minted && token->kind == TOKEN_JOIN)
		put_url(call, &object);
	if (minted)
		json_member_string(&object, token->kind == TOKEN_JOIN ? "code" : "token", minted->text);
	call_reply(call, status, json_end(&object));
}

void token_refuse_room(struct api_call *call)
{
	api_refuse(call, REFUSED_TOO_LARGE,
		"There are as many tokens as the store keeps, or as many open join codes. Those that have ended are forgotten after 30 "
		"days.");
}

/* ---- give --------------------------------------------------------------------------------------------- */

struct token_body {
	struct span kind, name, task, role;
	struct name_list queues;
	int64_t lives_ms, uses, token_lives_ms;
	uint64_t fence;
};

enum token_row { ROW_NAME, ROW_QUEUES, ROW_LIVES, ROW_TASK, ROW_FENCE, ROW_ROLE, ROW_USES, ROW_TOKEN_LIVES };

static const struct field token_fields[] = {
	[ROW_NAME] = FIELD(token_body, name, "name", FIELD_NAME, .max = TOKEN_NAME_MAX),
	[ROW_QUEUES] = FIELD(token_body, queues, "queues", FIELD_NAMES, .max = 0),
	[ROW_LIVES] = FIELD(token_body, lives_ms, "expiresInMs", FIELD_INT, .max = LIVES_MAX_MS),
	[ROW_TASK] = FIELD(token_body, task, "task", FIELD_NAME, .max = COMMAND_ID_MAX),
	[ROW_FENCE] = FIELD(token_body, fence, "fence", FIELD_DECIMAL, .max = 0),
	[ROW_ROLE] = FIELD(token_body, role, "role", FIELD_NAME, .max = 20),
	[ROW_USES] = FIELD(token_body, uses, "uses", FIELD_INT, .min = 1, .max = TOKEN_USES_MAX),
	[ROW_TOKEN_LIVES] = FIELD(token_body, token_lives_ms, "tokenLivesMs", FIELD_INT,
		.min = MACHINE_LIVES_MIN_MS, .max = LIVES_MAX_MS),
	FIELD_MUST_BE(token_body, kind, "kind", FIELD_NAME, .max = sizeof "gate:" - 1 + COMMAND_NAME_MAX),
};

/* The kind, or 0 and an error that says what is wrong with it. */
static enum token_kind read_kind(struct form *form, struct span name, struct span *ret_gate)
{
	static const char gate[] = "gate:";
	const size_t prefix = sizeof gate - 1;
	enum token_kind kind = token_kind_find(name);

	if (name.len > prefix && memcmp(name.data, gate, prefix) == 0) {
		*ret_gate = (struct span){name.data + prefix, name.len - prefix};
		return TOKEN_GATE;
	}
	if (kind == TOKEN_GATE)
		kind = 0; /* which one? */
	if (kind == 0 && name.len > 0)
		form_error(form, "kind",
			"must be \"admin\", \"operator\", \"producer\", \"worker\", \"claim\", \"approver\", \"gate:NAME\", \"emit\", \"viewer\", \"metrics\", \"join\" or \"login\"");
	return kind;
}

static void check_join_fields(struct form *form, bool is_join, const struct token_body *body, uint64_t given)
{
	if (!is_join && BIT_OF(ROW_USES, given))
		form_error(form, "uses", "is for the kind \"join\"");
	if (!is_join && BIT_OF(ROW_TOKEN_LIVES, given))
		form_error(form, "tokenLivesMs", "is for the kind \"join\"");
	if (is_join && BIT_OF(ROW_LIVES, given) && (body->lives_ms < 1 || body->lives_ms > JOIN_LIVES_MAX_MS))
		form_error(form, "expiresInMs", "must be from 1 to 604800000 (7 days) for a code");
}

static void check_fields(
	struct form *form, enum token_kind kind, const struct token_body *body, uint64_t given)
{
	check_join_fields(form, kind == TOKEN_JOIN, body, given);
	if (!BIT_OF(ROW_NAME, given) && kind != TOKEN_JOIN)
		form_error(form, "name", "is required");
	if (BIT_OF(ROW_TASK, given))
		form_error(form, "task", "is for the kind \"claim\"");
	if (BIT_OF(ROW_FENCE, given))
		form_error(form, "fence", "is for the kind \"claim\"");
	if (BIT_OF(ROW_ROLE, given))
		form_error(form, "role", "is for the kind \"login\"");
	if (!BIT_OF(ROW_QUEUES, given) || kind == 0)
		return;
	if (!token_kind_has_queues(kind))
		form_error(
			form, "queues", "are not for this kind: it has to do with all of them, or with none");
	else if (body->queues.count == 0)
		form_error(form, "queues", "must name one at least; leave the field out for all of them");
}

/* Its event says what was given or taken back, and never the secret. */
static void audit(
	struct api_call *call, enum token_kind kind, struct span gate, struct span name, struct span object)
{
	cleanup(buf_done) struct buf more = {.max = 4096};
	struct json_object members = {.buf = &more};

	put_kind(&members, kind, gate);
	json_member_string(&members, "name", name);
	call_audit(call, &call->commands[0], object, &more);
}

static void fill_join(struct command_token *token, const struct token_body *body, uint64_t given)
{
	if (!BIT_OF(ROW_NAME, given))
		token->name = SPAN(MACHINE_UNNAMED);
	if (!BIT_OF(ROW_LIVES, given))
		token->lives_ms = JOIN_LIVES_MS;
	token->uses = BIT_OF(ROW_USES, given) ? (uint32_t)body->uses : 1;
	token->grants_ms = BIT_OF(ROW_TOKEN_LIVES, given) ? body->token_lives_ms : WORKER_LIVES_MS;
}

static void fill_put(struct api_call *call, const struct token_body *body, enum token_kind kind,
	struct span gate, uint64_t given)
{
	const struct api_services *host = call->host;
	struct minted *minted = call_detail(call, sizeof *minted);
	struct command *command = minted ? call_command(call, COMMAND_TOKEN_PUT) : NULL;

	if (!command)
		return;
	int r = kind == TOKEN_JOIN ? host->mint_join(host->context, call->arena, minted)
				   : host->mint_token(host->context, kind, call->arena, minted);
	if (!call_require(call, r == 0, REFUSED_UNAVAILABLE, NULL))
		return;
	struct command_token *token = &command->token;
	*token = (struct command_token){
		.id = minted->id,
		.kind = kind,
		.name = body->name,
		.gate = gate,
		.queues = body->queues,
		.lives_ms = body->lives_ms,
	};
	if (!BIT_OF(ROW_LIVES, given) && kind == TOKEN_WORKER)
		token->lives_ms = WORKER_LIVES_MS;
	if (kind == TOKEN_JOIN)
		fill_join(token, body, given);
	memcpy(token->hash, minted->hash, sizeof token->hash);
	audit(call, kind, gate, token->name, minted->id);
}

/* ---- for one claim ------------------------------------------------------------------------------------- */

static void check_claim_fields(struct form *form, uint64_t given)
{
	if (!BIT_OF(ROW_TASK, given))
		form_error(form, "task", "is required");
	if (!BIT_OF(ROW_FENCE, given))
		form_error(form, "fence", "is required");
	if (BIT_OF(ROW_NAME, given))
		form_error(form, "name", "is not for the kind \"claim\": it has that of its claim");
	if (BIT_OF(ROW_QUEUES, given))
		form_error(form, "queues", "are not for the kind \"claim\": it is for one task");
	if (BIT_OF(ROW_LIVES, given))
		form_error(form, "expiresInMs", "is not for the kind \"claim\": it ends with its claim");
	if (BIT_OF(ROW_ROLE, given))
		form_error(form, "role", "is for the kind \"login\"");
	check_join_fields(form, false, NULL, given);
}

/* A claim that the caller holds, or any if it is an admin. Others' tasks are not there. */
static int find_claim(
	struct api_call *call, const struct token_body *body, struct task_document *ret_document)
{
	const struct principal *who = &call->who;
	int64_t seq;

	int r = store_find_task(call->store, body->task, &seq);
	if (r == 0)
		r = store_read_task(call->store, seq, call->now, call->arena, ret_document);
	if (r < 0)
		return r;
	const struct task *task = &ret_document->task;
	bool mine = task_is_claimed(task) && task->claimant == who->number &&
		(who->worker.len == 0 || span_equal(who->worker, ret_document->holder));
	return mine || has(who, SCOPE_ADMIN) ? 0 : -ENOENT;
}

static void reply_claim(struct api_call *call, const struct token_body *body)
{
	const struct api_services *host = call->host;
	struct task_document document;
	struct json_object object;
	struct span text;

	int r = find_claim(call, body, &document);
	if (call_has_failed(call, r) ||
		!call_require(call, task_is_claimed(&document.task) && document.task.fence == body->fence,
			REFUSED_STALE_CLAIM, "That claim is over: there is nothing to make a token for."))
		return;
	r = host->mint_claim(host->context, call->who.id, &document.task, call->arena, &text);
	if (call_has_failed(call, r))
		return;
	json_begin(&object, call->body);
	json_member_cstr(&object, "kind", "claim");
	json_member_string(&object, "task", document.id);
	json_member_decimal(&object, "fence", body->fence);
	json_member_string(&object, "workerId", document.holder);
	json_member_string(&object, "token", text);
	call_reply(call, 201, json_end(&object));
}

/* What an admin does for others leaves a trace first. */
static void fill_claim(struct api_call *call, const struct token_body *body)
{
	struct token_body *kept = call_detail(call, sizeof *kept);

	if (!kept)
		return;
	*kept = *body;
	call_audit_begin(call, "kind", SPAN("claim"), body->task);
}

/* ---- for a browser ----------------------------------------------------------------------------------- */

static void check_login_fields(struct form *form, const struct token_body *body, uint64_t given)
{
	static const struct {
		enum token_row row;
		const char *name;
	} others[] = {
		{ROW_QUEUES, "queues"}, {ROW_LIVES, "expiresInMs"}, {ROW_TASK, "task"}, {ROW_FENCE, "fence"}};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (BIT_OF(others[i].row, given))
			form_error(form, others[i].name,
				"is not for the kind \"login\": its code is good for 5 minutes, once");
	}
	check_join_fields(form, false, NULL, given);
	if (BIT_OF(ROW_ROLE, given) && !login_role_is_known(token_kind_find(body->role)))
		form_error(form, "role", "must be \"viewer\", \"approver\", \"operator\" or \"admin\"");
}

void token_create_begin(struct api_call *call)
{
	struct token_body body = {0};
	struct span gate = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(token_fields), &body);
	bool is_claim = span_equal(body.kind, SPAN("claim")), is_admin = has(&call->who, SCOPE_ADMIN);
	bool is_login = span_equal(body.kind, SPAN("login"));
	if (!call_require(call, is_claim || is_login || is_admin, REFUSED_FORBIDDEN,
		    "Only an admin gives tokens, except for one's own claims and browsers."))
		return;
	enum token_kind kind = is_claim || is_login ? 0 : read_kind(&form, body.kind, &gate);
	if (is_login)
		check_login_fields(&form, &body, given);
	else if (is_claim)
		check_claim_fields(&form, given);
	else
		check_fields(&form, kind, &body, given);
	if (!form_is_good(&form))
		return;
	if (is_login)
		login_code_fill(call, body.name, body.role);
	else if (!is_claim)
		fill_put(call, &body, kind, gate, given);
	else if (is_admin)
		fill_claim(call, &body);
	else
		reply_claim(call, &body);
}

void token_create_finish(struct api_call *call, const struct result *results)
{
	if (call->commands[0].kind == COMMAND_LOGIN_CODE)
		login_code_finish(call, results);
	else if (results[0].refusal == REFUSED_TOO_LARGE)
		token_refuse_room(call);
	else if (results[0].refusal != REFUSED_NOTHING)
		call_refuse_result(call, &results[0]);
	else if (call->commands[0].kind == COMMAND_AUDIT)
		reply_claim(call, call->detail);
	else
		token_reply(call, 201, ((const struct minted *)call->detail)->id, call->detail);
}

/* ---- see ---------------------------------------------------------------------------------------------- */

static int put_token(void *context, const struct token *token)
{
	struct call_list *list = context;
	struct json_object object;

	call_list_next(list);
	json_begin(&object, list->call->body);
	put_members(&object, token, list->call->now.wall_ms);
	return json_end(&object);
}

void token_list_read(struct api_call *call)
{
	struct call_list list;

	if (call_list_begin(&list, call))
		call_list_end(&list, store_each_token(call->store, put_token, &list));
}

/* ---- take back ---------------------------------------------------------------------------------------- */

void token_revoke_begin(struct api_call *call)
{
	struct span root = call->host->root_token(call->host->context);
	const struct token *token = store_find_token(call->store, call->params[0]);

	if (!form_read_body(call, NULL, 0, NULL) ||
		!call_require(call, !span_equal(call->params[0], root), REFUSED_FORBIDDEN,
			"That is the token in the file admin.token. To replace it, remove the file and start the server again.") ||
		!call_require(call, token, REFUSED_NOT_FOUND, NULL))
		return;
	struct command *command = call_command(call, COMMAND_TOKEN_REVOKE);
	if (!command)
		return;
	command->token.id = call->params[0];
	audit(call, token->kind, token->gate, token->name, call->params[0]);
}

void token_revoke_finish(struct api_call *call, const struct result *results)
{
	if (!call_is_refused(call, &results[0]))
		token_reply(call, 200, call->params[0], NULL);
}

/* ---- the keys that sign derived tokens ---------------------------------------------------------------- */

/* Ids and ages; the secrets are shown to nobody. */
static void put_keys(struct api_call *call, int status)
{
	struct json_object object, key;
	struct span id;
	int64_t made_ms;

	json_begin(&object, call->body);
	if (json_put_key(&object, "keys")) {
		buf_put_byte(call->body, '[');
		for (uint32_t i = 0; store_signing_key(call->store, i, &id, &made_ms); i++) {
			if (i > 0)
				buf_put_byte(call->body, ',');
			json_begin(&key, call->body);
			json_member_string(&key, "id", id);
			json_member_int_or_null(&key, "createdAt", made_ms);
			json_member_bool(&key, "signs", i == 0);
			json_end(&key);
		}
		buf_put_byte(call->body, ']');
	}
	call_reply(call, status, json_end(&object));
}

void key_list_read(struct api_call *call)
{
	if (query_read(call, NULL, 0))
		put_keys(call, 200);
}

void key_rotate_begin(struct api_call *call)
{
	const struct buf nothing = {0};
	struct command *command;

	if (!form_read_body(call, NULL, 0, NULL))
		return;
	command = call_command(call, COMMAND_KEY_ROTATE);
	if (command)
		call_audit(call, command, (struct span){0}, &nothing);
}

void key_rotate_finish(struct api_call *call, const struct result *results)
{
	if (!call_is_refused(call, &results[0]))
		put_keys(call, 201);
}
