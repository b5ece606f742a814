/*
 * Machines: an admin makes a join code, a machine shows it and gets a token of a worker; and any token gets a new secret from its
 * holder.
 *
 * The machine makes the secret of its token and shows only the hash, so that it may ask again when a reply was lost: the same
 * code with the same hash is answered as before for 15 minutes. A machine's token renews itself: each secret lives for as long as
 * the code says, 30 days, and the holder replaces it when half of that is over.
 */
#include "api/form.h"

#include "base/take.h"

enum {
	CODE_BYTES = 128,
	HOST_BYTES = 64,
	HASH_CHARS = 2 * TOKEN_HASH_BYTES,
	ID_CHARS = TOKEN_ID_TEXT_MAX - 1,
};

/* ---- what there is to see ------------------------------------------------------------------------------ */

/* From now until half of its life is over; its holder renews it then. */
static int64_t renew_in_ms(const struct token *token, int64_t now_ms)
{
	int64_t made_ms = token->more.renewed_ms != 0 ? token->more.renewed_ms : token->created_ms;
	int64_t due_ms = made_ms + token->more.lives_ms / 2;

	return due_ms > now_ms ? due_ms - now_ms : 0;
}

void machine_put_members(struct json_object *object, const struct token *token, int64_t now_ms)
{
	const struct token_more *more = &token->more;

	if (token->kind == TOKEN_JOIN) {
		json_member_int(object, "uses", more->uses);
		json_member_int(object, "used", more->used);
		json_member_int(object, "tokenLivesMs", more->lives_ms);
	} else if (more->lives_ms > 0) {
		json_member_cstr(object, "join", more->join);
		json_member_int(object, "renewInMs", renew_in_ms(token, now_ms));
	}
	if (more->renewed_ms != 0)
		json_member_int(object, "renewedAt", more->renewed_ms);
	if (token_has_old(token, now_ms))
		json_member_int(object, "previousUntil", more->old_ends_ms);
}

/* ---- a machine comes ------------------------------------------------------------------------------------ */

struct enrol_body {
	struct span code, id, hash, host;
};

static const struct field enrolment_fields[] = {
	FIELD_MUST_BE(enrol_body, code, "code", FIELD_NAME, .max = CODE_BYTES, .secret = true),
	FIELD_MUST_BE(enrol_body, id, "id", FIELD_NAME, .max = 100),
	FIELD_MUST_BE(enrol_body, hash, "hash", FIELD_NAME, .max = 200),
	FIELD(enrol_body, host, "host", FIELD_ID, .max = HOST_BYTES),
};

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(struct span text, size_t len)
{
	size_t i = 0;

	while (i < text.len && digit(text.data[i]) >= 0)
		i++;
	return text.len == len && i == len;
}

/* False: there was an error. */
static bool take_hash(struct form *form, struct span text, unsigned char ret_hash[TOKEN_HASH_BYTES])
{
	if (!is_hex(text, HASH_CHARS)) {
		form_error(form, "hash",
			"must be the SHA-256 of the whole text of the token, as 64 hexadecimal digits in lower case");
		return false;
	}
	for (int i = 0; i < TOKEN_HASH_BYTES; i++)
		ret_hash[i] = (unsigned char)(digit(text.data[2 * i]) << 4 | digit(text.data[2 * i + 1]));
	return true;
}

/* The id in stint_join_ID_SECRET; empty: it is no such text. */
static struct span code_id(struct span code)
{
	static const char prefix[] = "stint_join_";
	size_t len = sizeof prefix - 1;

	if (code.len <= len || memcmp(code.data, prefix, len) != 0)
		return (struct span){0};
	const char *end = memchr(code.data + len, '_', code.len - len);
	return end ? (struct span){code.data + len, (size_t)(end - code.data) - len} : (struct span){0};
}

/* A code for one machine may carry its name; else the machine says what it is called. */
static struct span machine_name(const struct token *code, struct span host)
{
	bool is_named = code->more.uses == 1 && !span_equal(code->name, SPAN(MACHINE_UNNAMED));

	return is_named || host.len == 0 ? code->name : host;
}

/* Its event says which machine came, and from where. */
static void keep_trace(
	struct api_call *call, struct command *command, const struct token *code, struct span host)
{
	cleanup(buf_done) struct buf note = {.max = 4096};
	cleanup(buf_done) struct buf actor = {.max = 256};
	struct json_object members = {.buf = &note};
	char address[API_PEER_BYTES];

	call->host->peer(call->host->context, call, address);
	json_member_string(&members, "principal", code->id);
	json_member_cstr(&members, "route", "POST /api/enroll");
	json_member_string(&members, "object", command->token.id);
	json_member_cstr(&members, "kind", "worker");
	json_member_string(&members, "name", command->token.name);
	json_member_string(&members, "join", code->id);
	json_member_string_if_any(&members, "host", host);
	json_member_cstr(&members, "address", address);
	buf_printf(&actor, "join:%.*s", SPAN_ARGS(code->name));
	if (call_keep(call, &actor, &command->actor) == 0)
		call_keep(call, &note, &command->note);
}

static void refuse_code(struct api_call *call)
{
	api_refuse(call, REFUSED_CODE_GONE,
		"This code is unknown, too old, used or revoked. stint worker invite makes a new one.");
}

static void begin_enrolment(struct api_call *call, const struct enrol_body *body, const struct token *code,
	const unsigned char hash[TOKEN_HASH_BYTES])
{
	struct span *id = call_detail(call, sizeof *id);
	struct command *command = id ? call_command(call, COMMAND_ENROL) : NULL;

	if (!command)
		return;
	*id = body->id;
	command->token = (struct command_token){
		.id = body->id,
		.kind = TOKEN_WORKER,
		.name = machine_name(code, body->host),
		.code = code->id,
	};
	memcpy(command->token.hash, hash, TOKEN_HASH_BYTES);
	call->host->hash(call->host->context, body->code, command->token.shown);
	keep_trace(call, command, code, body->host);
}

void enrol_begin(struct api_call *call)
{
	unsigned char hash[TOKEN_HASH_BYTES];
	struct enrol_body body = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	form_read(&form, form.root, FIELDS(enrolment_fields), &body);
	if (body.hash.len > 0)
		take_hash(&form, body.hash, hash);
	if (body.id.len > 0 && !is_hex(body.id, ID_CHARS))
		form_error(&form, "id", "must be that of the token: 16 hexadecimal digits in lower case");
	if (!form_is_good(&form))
		return;
	const struct token *code = store_find_token(call->store, code_id(body.code));
	struct span root = call->host->root_token(call->host->context);
	if (!code || span_equal(body.id, root))
		refuse_code(call);
	else
		begin_enrolment(call, &body, code, hash);
}

void enrol_finish(struct api_call *call, const struct result *results)
{
	const struct span *id = call->detail;

	if (results[0].refusal == REFUSED_CODE_GONE)
		refuse_code(call);
	else if (results[0].refusal == REFUSED_TOO_LARGE)
		token_refuse_room(call);
	else if (!call_is_refused(call, &results[0]))
		token_reply(call, 200, *id, NULL);
}

/* ---- a new secret ------------------------------------------------------------------------------------------ */

struct renewal {
	struct span hash;
};

static const struct field renewal_fields[] = {
	FIELD(renewal, hash, "hash", FIELD_NAME, .max = 200),
};

/* Instances, claims and browsers have secrets that follow from others; the one in admin.token has a file. */
static bool has_own_token(struct api_call *call)
{
	const struct principal *who = &call->who;
	bool is_own = who->worker.len == 0 && who->task_seq == 0 && who->login.len == 0 &&
		store_find_token(call->store, who->id) != NULL;

	return call_require(call, is_own, REFUSED_FORBIDDEN,
		"Only a token that was made by an admin or by an enrolment gets a new secret. That in admin.token is replaced by removing "
		"the file and starting the server again.");
}

/* Of the credential that the request shows. */
static void hash_shown(struct api_call *call, unsigned char ret_hash[TOKEN_HASH_BYTES])
{
	static const char scheme[] = "Bearer ";
	struct span shown = call->request->authorization;

	if (shown.len >= sizeof scheme - 1)
		shown = (struct span){shown.data + sizeof scheme - 1, shown.len - (sizeof scheme - 1)};
	call->host->hash(call->host->context, shown, ret_hash);
}

void renew_begin(struct api_call *call)
{
	const struct buf nothing = {0};
	unsigned char hash[TOKEN_HASH_BYTES];
	struct renewal body = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	form_read(&form, form.root, FIELDS(renewal_fields), &body);
	if (body.hash.len > 0)
		take_hash(&form, body.hash, hash);
	if (!form_is_good(&form) || !has_own_token(call))
		return;
	if (body.hash.len == 0) {
		token_reply(call, 200, call->who.id, NULL);
		return;
	}
	struct command *command = call_command(call, COMMAND_TOKEN_RENEW);
	if (!command)
		return;
	command->token.id = call->who.id;
	memcpy(command->token.hash, hash, sizeof hash);
	hash_shown(call, command->token.shown);
	call_audit(call, command, call->who.id, &nothing);
}

void renew_finish(struct api_call *call, const struct result *results)
{
	enum refusal refusal = results[0].refusal;

	if (refusal == REFUSED_RATE_LIMITED) {
		api_refuse(call, refusal, "This token got a new secret less than a minute ago.");
		call->reply.retry_after_s = TOKEN_RENEW_AGAIN_MS / 1000;
	} else if (refusal == REFUSED_INVALID) {
		api_refuse(call, refusal, "The new secret must be another one than the two of before.");
	} else if (!call_is_refused(call, &results[0])) {
		token_reply(call, 200, call->who.id, NULL);
	}
}
