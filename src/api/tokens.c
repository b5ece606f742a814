/*
 * Tokens: giving credentials to others, seeing who has which, and taking them back. Only admins do.
 *
 * The text of a token is told once, in the reply that made it, and known to nobody afterwards: not to the store,
 * the events or the log.
 */
#include "api/form.h"

#include "base/take.h"

#define LIVES_MAX_MS       (INT64_C(10) * 365 * 24 * 3600 * 1000)
#define WORKER_LIVES_MS    (INT64_C(30) * 24 * 3600 * 1000)
#define TOKEN_NAME_MAX     100
#define BIT_OF(row, given) (((given) >> (row)) & 1)

/* ---- what a token may do ------------------------------------------------------------------------------ */

uint32_t api_scopes_of(enum token_kind kind)
{
	switch (kind) {
	case TOKEN_ADMIN:
		return SCOPE_BIT(SCOPE_COUNT) - 1;
	case TOKEN_OPERATOR:
		return SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_OPERATE);
	case TOKEN_PRODUCER:
		return SCOPE_BIT(SCOPE_PRODUCE);
	case TOKEN_WORKER:
		return SCOPE_BIT(SCOPE_WORK);
	case TOKEN_VIEWER:
		return SCOPE_BIT(SCOPE_READ);
	case TOKEN_METRICS:
		return SCOPE_BIT(SCOPE_METRICS);
	case TOKEN_KIND_COUNT:
		break;
	}
	return 0;
}

bool principal_serves(const struct principal *who, struct span queue)
{
	for (uint32_t i = 0; i < who->queues.count; i++) {
		if (span_equal(who->queues.items[i], queue))
			return true;
	}
	return who->queues.count == 0;
}

/* ---- replies ------------------------------------------------------------------------------------------ */

static int put_queues(struct buf *out, const struct token *token)
{
	struct span queues[TOKEN_QUEUES_MAX];
	uint32_t count = token_queues(token, queues);
	int r = buf_put_byte(out, '[');

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = i > 0 ? buf_put_byte(out, ',') : 0;
		if (r == 0)
			r = json_put_string(out, queues[i]);
	}
	return r < 0 ? r : buf_put_byte(out, ']');
}

static void put_time(struct json_object *object, const char *key, int64_t time_ms)
{
	if (time_ms != 0)
		json_member_int(object, key, time_ms);
	else
		json_member_null(object, key);
}

/* Neither the secret nor its hash is among them. */
static void put_members(struct json_object *object, const struct token *token)
{
	cleanup(buf_done) struct buf queues = {0};

	json_member_string(object, "id", token->id);
	json_member_cstr(object, "kind", token_kind_name(token->kind));
	json_member_string(object, "name", token->name);
	if (token->queues.len > 0) {
		buf_init(&queues, 1 << 20);
		int r = put_queues(&queues, token);
		if (r < 0 && object->fault == 0)
			object->fault = r;
		json_member_raw(object, "queues", buf_span(&queues));
	}
	json_member_int(object, "createdAt", token->created_ms);
	json_member_string(object, "createdBy", token->created_by);
	put_time(object, "expiresAt", token->expires_ms);
	if (token->revoked_ms != 0) {
		json_member_int(object, "revokedAt", token->revoked_ms);
		json_member_string(object, "revokedBy", token->revoked_by);
	}
}

/* The token that the turn left behind; with its text if it was made just now. */
static void reply_token(struct api_call *call, int status, struct span id, struct span text)
{
	const struct token *token = call->reads->find_token(call->reads->context, id);
	struct json_object object;

	if (!token) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return;
	}
	json_begin(&object, call->body);
	put_members(&object, token);
	if (text.len > 0)
		json_member_string(&object, "token", text);
	call_reply(call, status, json_end(&object));
}

/* ---- give --------------------------------------------------------------------------------------------- */

struct token_body {
	struct span kind, name;
	struct name_list queues;
	int64_t lives_ms;
};

enum token_row { ROW_QUEUES, ROW_LIVES };

static const struct field token_fields[] = {
	[ROW_QUEUES] = FIELD(token_body, queues, "queues", FIELD_NAMES, .max = 0),
	[ROW_LIVES] = FIELD(token_body, lives_ms, "expiresInMs", FIELD_INT, .max = LIVES_MAX_MS),
	FIELD_MUST_BE(token_body, kind, "kind", FIELD_NAME, .max = 32),
	FIELD_MUST_BE(token_body, name, "name", FIELD_NAME, .max = TOKEN_NAME_MAX),
};

/* The kind, or 0 and an error that says what is wrong with it. */
static enum token_kind read_kind(struct form *form, struct span name)
{
	static const struct span later[] = {{"claim", 5}, {"approver", 8}, {"emit", 4}};
	enum token_kind kind = token_kind_find(name);

	for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
		if (span_equal(name, later[i])) {
			form_error(form, "kind",
				"cannot be \"%s\" yet: this server does not make such tokens", later[i].data);
			return 0;
		}
	}
	if (kind == 0 && name.len > 0)
		form_error(form, "kind",
			"must be \"admin\", \"operator\", \"producer\", \"worker\", \"viewer\" or \"metrics\"");
	return kind;
}

static void check_queues(struct form *form, enum token_kind kind, struct name_list queues, uint64_t given)
{
	if (!BIT_OF(ROW_QUEUES, given) || kind == 0)
		return;
	if (!token_kind_has_queues(kind))
		form_error(form, "queues", "are for producers and workers; this kind has none");
	else if (queues.count == 0)
		form_error(form, "queues", "must name one at least; leave the field out for all of them");
}

/* Its event says what was given or taken back, and never the secret. */
static void audit(struct api_call *call, enum token_kind kind, struct span name)
{
	struct command *command = &call->commands[0];
	cleanup(buf_done) struct buf more = {0};
	struct json_object members = {.buf = &more};

	buf_init(&more, 4096);
	json_member_cstr(&members, "kind", token_kind_name(kind));
	json_member_string(&members, "name", name);
	if (members.fault < 0)
		api_refuse(call, REFUSED_UNAVAILABLE, NULL);
	else
		call_audit(call, command, command->token.id, buf_span(&more));
}

static void fill_put(
	struct api_call *call, const struct token_body *body, enum token_kind kind, uint64_t given)
{
	const struct api_reads *reads = call->reads;
	struct minted *minted = arena_alloc(call->arena, sizeof *minted);

	if (!minted || reads->mint_token(reads->context, kind, call->arena, minted) < 0 ||
		!call_commands(call, 1)) {
		api_refuse(call, REFUSED_UNAVAILABLE, NULL);
		return;
	}
	call->detail = minted;
	call->commands[0].kind = COMMAND_TOKEN_PUT;
	struct command_token *token = &call->commands[0].token;
	*token = (struct command_token){
		.id = minted->id,
		.kind = kind,
		.name = body->name,
		.queues = body->queues,
		.lives_ms = body->lives_ms,
	};
	if (!BIT_OF(ROW_LIVES, given) && kind == TOKEN_WORKER)
		token->lives_ms = WORKER_LIVES_MS;
	memcpy(token->hash, minted->hash, sizeof token->hash);
	audit(call, kind, body->name);
}

void token_create_begin(struct api_call *call)
{
	struct token_body body = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(token_fields), &body);
	enum token_kind kind = read_kind(&form, body.kind);
	check_queues(&form, kind, body.queues, given);
	if (form_is_good(&form))
		fill_put(call, &body, kind, given);
}

void token_create_finish(struct api_call *call, const struct result *results)
{
	const struct minted *minted = call->detail;

	if (results[0].refusal == REFUSED_TOO_LARGE)
		api_refuse(call, REFUSED_TOO_LARGE,
			"There are as many tokens as the store keeps. Those that have ended are forgotten after 30 days.");
	else if (results[0].refusal != REFUSED_NOTHING)
		call_refuse_result(call, &results[0]);
	else
		reply_token(call, 201, minted->id, minted->text);
}

/* ---- see ---------------------------------------------------------------------------------------------- */

struct token_listing {
	struct api_call *call;
	bool any;
};

static int put_token(void *context, const struct token *token)
{
	struct token_listing *listing = context;
	struct buf *body = listing->call->body;
	struct json_object object;

	int r = listing->any ? buf_put_byte(body, ',') : 0;
	if (r < 0)
		return r;
	listing->any = true;
	json_begin(&object, body);
	put_members(&object, token);
	return json_end(&object);
}

void token_list_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct token_listing listing = {call, false};

	if (!query_read(call, NULL, 0))
		return;
	int r = buf_put_byte(call->body, '[');
	if (r == 0)
		r = reads->each_token(reads->context, put_token, &listing);
	if (r == 0)
		r = buf_put_byte(call->body, ']');
	call_reply(call, 200, r);
}

/* ---- take back ---------------------------------------------------------------------------------------- */

void token_revoke_begin(struct api_call *call)
{
	uint64_t given;

	if (!form_read_body(call, NULL, 0, NULL, &given))
		return;
	if (span_equal(call->params[0], call->reads->root_token(call->reads->context))) {
		api_refuse(call, REFUSED_FORBIDDEN,
			"That is the token in the file admin.token. To replace it, remove the file and start the server again.");
		return;
	}
	const struct token *token = call->reads->find_token(call->reads->context, call->params[0]);
	if (!token) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return;
	}
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = COMMAND_TOKEN_REVOKE;
	call->commands[0].token.id = call->params[0];
	audit(call, token->kind, token->name);
}

void token_revoke_finish(struct api_call *call, const struct result *results)
{
	if (results[0].refusal != REFUSED_NOTHING)
		call_refuse_result(call, &results[0]);
	else
		reply_token(call, 200, call->params[0], (struct span){0});
}
