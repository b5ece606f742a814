/*
 * Browsers: somebody who has a token makes a code for once; a browser shows the code and gets a session.
 *
 * The session is a cookie, which scripts cannot read, and the key of the page, which the page keeps per origin and sends with
 * every request. The code, the cookie and the key stand in one reply each and are known to nobody afterwards.
 */
#include "api/form.h"

#include <stdio.h>

#include "base/take.h"

enum {
	CODE_BYTES = 128,
	NAME_BYTES = LOGIN_NAME_BYTES_MAX - 1,
};

/* ---- a code --------------------------------------------------------------------------------------------- */

/* Its event says for whom it is and what it allows, and never the code. */
static bool keep_trace(struct api_call *call, struct command *command, const char *kind, struct span maker,
	struct span object, enum token_kind role, struct span name)
{
	cleanup(buf_done) struct buf note = {.max = 4096};
	struct json_object members = {.buf = &note};
	char route[64];

	snprintf(route, sizeof route, "%s %s", http_method_name(call->route->method), call->route->pattern);
	json_member_string(&members, "principal", maker);
	json_member_cstr(&members, "route", route);
	json_member_string(&members, "object", object);
	json_member_cstr(&members, "kind", kind);
	json_member_cstr(&members, "role", token_kind_name(role));
	json_member_string(&members, "name", name);
	return call_keep(call, &note, &command->note) == 0;
}

/* A role that the caller has: all its scopes are the caller's. */
static bool may_give(const struct principal *who, enum token_kind role)
{
	uint32_t scopes = api_scopes_of(role);

	return (who->scopes & SCOPE_BIT(SCOPE_ADMIN)) != 0 || (who->scopes & scopes) == scopes;
}

/* Without a role it is an operator's, or as much as the caller has. */
static enum token_kind role_of(struct api_call *call, struct span name)
{
	static const enum token_kind usual[] = {TOKEN_OPERATOR, TOKEN_APPROVER, TOKEN_VIEWER};
	enum token_kind role = name.len > 0 ? token_kind_find(name) : 0;

	for (size_t i = 0; name.len == 0 && role == 0 && i < sizeof usual / sizeof *usual; i++)
		role = may_give(&call->who, usual[i]) ? usual[i] : 0;
	if (!call_require(call, role != 0 && may_give(&call->who, role), REFUSED_FORBIDDEN,
		    "A browser session gets no role above that of the token that makes its code."))
		return 0;
	return role;
}

/* The name of a principal without its kind: "builder" of "operator:builder". */
static struct span bare_name(struct span name)
{
	const char *colon = memchr(name.data, ':', name.len);

	return colon ? (struct span){colon + 1, (size_t)(name.data + name.len - colon - 1)} : name;
}

void login_code_fill(struct api_call *call, struct span name, struct span role_name)
{
	const struct api_services *host = call->host;

	if (!call_require(call, call->who.number != PRINCIPAL_OPEN, REFUSED_FORBIDDEN,
		    "A code is made by somebody who has a token.") ||
		!call_require(call, call->who.login.len == 0, REFUSED_FORBIDDEN,
			"A browser session makes no codes for other browsers; use stint dashboard."))
		return;
	enum token_kind role = role_of(call, role_name);
	struct minted *minted = role ? call_detail(call, sizeof *minted) : NULL;
	struct command *command = minted ? call_command(call, COMMAND_LOGIN_CODE) : NULL;
	if (!command)
		return;
	int r = host->mint_secret(host->context, "login", (struct span){0}, call->arena, minted);
	if (!call_require(call, r == 0, REFUSED_UNAVAILABLE, NULL))
		return;
	name = name.len > 0 ? name : bare_name(call->who.name);
	if (name.len > NAME_BYTES)
		name.len = NAME_BYTES;
	while (name.len == NAME_BYTES && (name.data[name.len - 1] & 0x80)) /* not amid a character */
		name.len--;
	command->login =
		(struct command_login){.id = minted->id, .role = role, .maker = call->who.id, .name = name};
	memcpy(command->login.code_hash, minted->hash, sizeof minted->hash);
	keep_trace(call, command, "login", call->who.id, minted->id, role, name);
}

void login_code_finish(struct api_call *call, const struct result *results)
{
	const struct minted *minted = call->detail;
	struct json_object object;

	if (results[0].refusal == REFUSED_TOO_LARGE) {
		api_refuse(call, REFUSED_TOO_LARGE,
			"As many codes or browser sessions are open as the server keeps. A code ends after 5 minutes.");
		return;
	}
	if (call_is_refused(call, &results[0]))
		return;
	const struct browser_login *login = store_find_login(call->store, minted->id);
	if (!call_require(call, login, REFUSED_NOT_FOUND, NULL))
		return;
	json_begin(&object, call->body);
	json_member_string(&object, "id", minted->id);
	json_member_cstr(&object, "kind", "login");
	json_member_cstr(&object, "name", login->name);
	json_member_cstr(&object, "role", token_kind_name(login->role));
	json_member_int(&object, "createdAt", login->made_ms);
	json_member_int(&object, "expiresAt", login->made_ms + LOGIN_CODE_MS);
	json_member_string(&object, "code", minted->text);
	const char *page = call->host->public_url ? call->host->public_url(call->host->context) : "";
	if (page[0])
		json_member_cstr(&object, "page", page);
	call_reply(call, 201, json_end(&object));
}

/* ---- a code becomes a session ------------------------------------------------------------------------- */

struct login_body {
	struct span code;
};

static const struct field login_fields[] = {
	FIELD_MUST_BE(login_body, code, "code", FIELD_NAME, .max = CODE_BYTES),
};

struct login_made {
	struct minted cookie, key;
	struct span id;
};

/* The id in stint_login_ID_SECRET; empty: it is no such text. */
static struct span code_id(struct span code)
{
	static const char prefix[] = "stint_login_";
	size_t len = sizeof prefix - 1;

	if (code.len <= len || memcmp(code.data, prefix, len) != 0)
		return (struct span){0};
	const char *end = memchr(code.data + len, '_', code.len - len);
	return end ? (struct span){code.data + len, (size_t)(end - code.data) - len} : (struct span){0};
}

/* A browser says from which page a POST comes. Another page must not log somebody in, as somebody else. */
static bool is_own_page(const struct http_request *request)
{
	static const char *const schemes[] = {"http://", "https://"};
	struct span origin = request->origin;

	if (request->fetch_site.data && !span_equal(request->fetch_site, SPAN("same-origin")))
		return false;
	for (size_t i = 0; origin.data && i < sizeof schemes / sizeof *schemes; i++) {
		size_t len = strlen(schemes[i]);
		if (origin.len == len + request->host.len && memcmp(origin.data, schemes[i], len) == 0 &&
			memcmp(origin.data + len, request->host.data, request->host.len) == 0)
			return true;
	}
	return false;
}

static bool mint_session(struct api_call *call, struct login_made *made)
{
	const struct api_services *host = call->host;
	int r = host->mint_secret(host->context, "session", made->id, call->arena, &made->cookie);

	if (r == 0)
		r = host->mint_secret(host->context, "page", made->id, call->arena, &made->key);
	return call_require(call, r == 0, REFUSED_UNAVAILABLE, NULL);
}

static void refuse_code(struct api_call *call)
{
	api_refuse(call, REFUSED_CODE_GONE,
		"This code is unknown, or older than 5 minutes. stint dashboard makes a new one.");
}

void login_begin(struct api_call *call)
{
	const struct api_services *host = call->host;
	struct login_body body = {0};

	if (!call_require(call, is_own_page(call->request), REFUSED_FORBIDDEN,
		    "A login comes from the server's own page: the Origin header must name this server.") ||
		!form_read_body(call, FIELDS(login_fields), &body))
		return;
	struct login_made *made = call_detail(call, sizeof *made);
	if (!made)
		return;
	const struct browser_login *login = store_find_login(call->store, code_id(body.code));
	if (!login) {
		refuse_code(call);
		return;
	}
	made->id = code_id(body.code);
	if (!mint_session(call, made))
		return;
	struct command *command = call_command(call, COMMAND_LOGIN);
	if (!command)
		return;
	cleanup(buf_done) struct buf actor = {.max = 256};
	buf_printf(&actor, "browser:%s", login->name);
	command->login = (struct command_login){
		.id = made->id, .replaces = host->cookie_login(host->context, call->request)};
	host->hash(host->context, body.code, command->login.code_hash);
	memcpy(command->login.cookie_hash, made->cookie.hash, sizeof made->cookie.hash);
	memcpy(command->login.key_hash, made->key.hash, sizeof made->key.hash);
	if (call_keep(call, &actor, &command->actor) == 0)
		keep_trace(call, command, "session", span_of(login->maker), made->id, login->role,
			span_of(login->name));
}

static void put_login(
	const struct api_call *call, struct json_object *object, const struct browser_login *login)
{
	json_member_cstr(object, "id", login->id);
	json_member_cstr(object, "name", login->name);
	json_member_cstr(object, "role", token_kind_name(login_role(login, call->now.wall_ms)));
	json_member_cstr(object, "maker", login->maker);
	json_member_cstr(object, "state",
		login->state == LOGIN_CODE                        ? "code"
			: login_is_open(login, call->now.wall_ms) ? "open"
								  : "ended");
	json_member_int(object, "createdAt", login->made_ms);
	json_member_int_or_null(object, "usedAt", login->used_ms);
	json_member_int_or_null(object, "endedAt", login->ended_ms);
	json_member_int(object, "expiresAt",
		login->state == LOGIN_CODE ? login->made_ms + LOGIN_CODE_MS
					   : login->used_ms + LOGIN_LIVES_MS);
	json_member_bool(object, "current", span_equal(span_of(login->id), call->who.login));
}

void login_finish(struct api_call *call, const struct result *results)
{
	const struct api_services *host = call->host;
	const struct login_made *made = call->detail;
	cleanup(buf_done) struct buf cookie = {.max = 512};
	struct json_object object;

	if (results[0].repeated) {
		api_refuse(call, REFUSED_CODE_GONE,
			"This code was used before. If that was not you: the session made with it has been ended.");
		return;
	}
	if (results[0].refusal == REFUSED_CODE_GONE) {
		refuse_code(call);
		return;
	}
	if (call_is_refused(call, &results[0]))
		return;
	const struct browser_login *login = store_find_login(call->store, made->id);
	if (!call_require(call, login, REFUSED_NOT_FOUND, NULL))
		return;
	call_note_events(call, results);
	json_begin(&object, call->body);
	put_login(call, &object, login);
	json_member_string(&object, "pageKey", made->key.text);
	int r = json_end(&object);
	struct api_cookie kind = host->cookie(host->context, call->request);
	buf_printf(&cookie, "%s=%.*s; Path=%s; HttpOnly; SameSite=Strict; Max-Age=%d%s", kind.name,
		SPAN_ARGS(made->cookie.text), kind.path, LOGIN_LIVES_MS / 1000,
		kind.secure ? "; Secure" : "");
	call_reply(call, 200, r);
	if (r == 0)
		call_keep(call, &cookie, &call->reply.cookie);
}

/* ---- see and end -------------------------------------------------------------------------------------- */

/* Admins see all; others those that were made by the same token. */
static bool sees(const struct api_call *call, const struct browser_login *login)
{
	return (call->who.scopes & SCOPE_BIT(SCOPE_ADMIN)) != 0 ||
		(login->principal == call->who.number && span_equal(span_of(login->maker), call->who.id));
}

static int list_login(void *context, const struct browser_login *login)
{
	struct call_list *list = context;
	struct json_object object;

	if (!sees(list->call, login) || login_is_stale(login, list->call->now.wall_ms))
		return 0;
	call_list_next(list);
	json_begin(&object, list->call->body);
	put_login(list->call, &object, login);
	return json_end(&object);
}

void login_list_read(struct api_call *call)
{
	struct call_list list;

	if (call_list_begin(&list, call))
		call_list_end(&list, store_each_login(call->store, list_login, &list));
}

/* A session may end itself, whatever its role; others are ended by an operator of the same maker, or an admin. */
static bool may_end(const struct api_call *call, const struct browser_login *login)
{
	bool is_own = span_equal(span_of(login->id), call->who.login);

	return is_own || (call->who.scopes & (SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_ADMIN))) != 0;
}

void login_end_begin(struct api_call *call)
{
	const struct browser_login *login = store_find_login(call->store, call->params[0]);

	if (!form_read_body(call, NULL, 0, NULL) ||
		!call_require(call, login && sees(call, login) && login->state != LOGIN_CODE,
			REFUSED_NOT_FOUND, NULL) ||
		!call_require(call, may_end(call, login), REFUSED_FORBIDDEN,
			"Only an operator ends the sessions of others."))
		return;
	struct command *command = call_command(call, COMMAND_LOGOUT);
	if (!command)
		return;
	command->login.id = call->params[0];
	keep_trace(
		call, command, "session", call->who.id, call->params[0], login->role, span_of(login->name));
}

void login_end_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	if (call_is_refused(call, &results[0]))
		return;
	const struct browser_login *login = store_find_login(call->store, call->params[0]);
	if (!call_require(call, login, REFUSED_NOT_FOUND, NULL))
		return;
	json_begin(&object, call->body);
	put_login(call, &object, login);
	call_reply(call, 200, json_end(&object));
}
