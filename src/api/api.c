/*
 * From a request to the handlers of its route: path, credential, size, type. What is refused here costs nothing.
 *
 * The credential is looked at before the path: without one a client does not learn which paths there are.
 */
#include "api/call.h"

#include <assert.h>
#include <errno.h>

#include "api/form.h"
#include "base/take.h"
#include "base/utf8.h"

/* Does the path have the form of the pattern? Its parameters, which are not empty, go into `ret_params`, not decoded.
 * Most patterns are left at the first byte that differs. */
static bool path_matches(struct span path, const char *pattern, struct span ret_params[2])
{
	const char *at = path.data, *end = path.data + path.len;
	uint32_t params = 0;

	for (; *pattern; pattern++) {
		if (*pattern != ':') {
			if (at == end || *at++ != *pattern)
				return false;
			continue;
		}
		const char *slash = memchr(at, '/', (size_t)(end - at));
		struct span given = {at, (size_t)((slash ? slash : end) - at)};
		if (given.len == 0)
			return false;
		ret_params[params++] = given;
		at += given.len;
		while (pattern[1] && pattern[1] != '/') /* the name of the parameter */
			pattern++;
	}
	return at == end;
}

static enum http_method method_asked(const struct http_request *request)
{
	return request->method == HTTP_METHOD_HEAD ? HTTP_METHOD_GET : request->method;
}

/* The route, or NULL; `ret_allow` has a bit per method that the path does have. */
static const struct route *find_route(
	const struct http_request *request, struct span ret_params[2], uint32_t *ret_allow)
{
	*ret_allow = 0;
	for (uint32_t i = 0; i < route_count; i++) {
		ret_params[0] = ret_params[1] = (struct span){0};
		if (!path_matches(request->path, routes[i].pattern, ret_params))
			continue;
		*ret_allow |= 1u << routes[i].method;
		if (routes[i].method == method_asked(request))
			return &routes[i];
	}
	ret_params[0] = ret_params[1] = (struct span){0};
	return NULL;
}

static void refuse_method(struct api_call *call, uint32_t allowed)
{
	static const enum http_method methods[] = {
		HTTP_METHOD_GET, HTTP_METHOD_POST, HTTP_METHOD_PUT, HTTP_METHOD_PATCH, HTTP_METHOD_DELETE};
	cleanup(buf_done) struct buf allow = {.max = 64};

	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (allowed & 1u << methods[i])
			buf_printf(&allow, "%s%s%s", allow.len > 0 ? ", " : "", http_method_name(methods[i]),
				methods[i] == HTTP_METHOD_GET ? ", HEAD" : "");
	}
	api_refuse(call, REFUSED_METHOD_NOT_ALLOWED, "This path has other methods; see the Allow header.");
	call_keep(call, &allow, &call->reply.allow);
}

static bool may(const struct principal *who, uint32_t scopes)
{
	return (scopes & SCOPE_BIT(SCOPE_PUBLIC)) != 0 ||
		((scopes & SCOPE_BIT(SCOPE_ANY)) != 0 && who->scopes != 0) ||
		(who->scopes & (scopes | SCOPE_BIT(SCOPE_ADMIN))) != 0;
}

/* The kind of token that has these scopes and no others; NULL: it is a token of another make, as that of a claim. */
static const char *kind_with(uint32_t scopes)
{
	for (int kind = 1; kind < TOKEN_KIND_COUNT; kind++) {
		if (api_scopes_of((enum token_kind)kind) == scopes)
			return token_kind_name((enum token_kind)kind);
	}
	return NULL;
}

/* The kind that may least of those that may do this. */
static const char *kind_for(const struct route *route)
{
	static const enum token_kind kinds[] = {TOKEN_VIEWER, TOKEN_METRICS, TOKEN_EMIT, TOKEN_PRODUCER,
		TOKEN_WORKER, TOKEN_APPROVER, TOKEN_OPERATOR, TOKEN_ADMIN};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if ((api_scopes_of(kinds[i]) & route->scopes) != 0)
			return token_kind_name(kinds[i]);
	}
	return token_kind_name(TOKEN_ADMIN);
}

static bool refuse_scope(struct api_call *call)
{
	const char *needed = kind_for(call->route), *shown = kind_with(call->who.scopes);
	char detail[160];

	snprintf(detail, sizeof detail, "This needs a token of kind %s; this one is %s%s.", needed,
		shown ? "of kind " : "made for less", shown ? shown : "");
	return call_refuse_kind(call, detail, needed);
}

/* A path that is not there is refused like one that is: without a credential nobody learns the difference. */
static bool check_credential(struct api_call *call)
{
	const struct route *route = call->route;

	if (route && may(&call->who, route->scopes))
		return true;
	if (call->who.scopes == 0) {
		api_refuse(call, REFUSED_UNAUTHORIZED,
			"Send a token that this server knows: Authorization: Bearer ….");
		call->reply.authenticate = SPAN("Bearer");
		return false;
	}
	return route ? refuse_scope(call) : true;
}

static bool is_type(struct span type, const char *name)
{
	size_t len = strlen(name);

	if (type.len < len || strncasecmp(type.data, name, len) != 0)
		return false;
	return type.len == len || type.data[len] == ';' || type.data[len] == ' ';
}

/* A PATCH merges, so that its body may be called by the name of RFC 7396. */
static bool is_json_type(const struct http_request *request)
{
	return is_type(request->content_type, "application/json") ||
		(request->method == HTTP_METHOD_PATCH &&
			is_type(request->content_type, "application/merge-patch+json"));
}

static bool check_body(struct api_call *call)
{
	const struct http_request *request = call->request;

	if (request->body.len == 0)
		return true;
	if (request->body.len > call->route->body_bytes_max)
		return api_refuse(call, REFUSED_TOO_LARGE, "The body is larger than this route allows.");
	if (!is_json_type(request))
		return api_refuse(
			call, REFUSED_MEDIA_TYPE, "Send the body with Content-Type: application/json.");
	return true;
}

static bool decode_params(struct api_call *call)
{
	for (size_t i = 0; i < sizeof call->params / sizeof *call->params; i++) {
		struct span param = call->params[i];
		if (param.len == 0)
			break;
		if (text_is_id(param)) /* nothing in it is more than it seems */
			continue;
		cleanup(buf_done) struct buf text = {.max = 8192};
		int r = http_decode(call->params[i], false, &text);
		if (r == -ENOMEM)
			return call_refuse_request(call, r);
		if (r < 0)
			return call_bad_request(call, "The path has an invalid percent-escape.");
		if (!utf8_is_text(buf_span(&text))) /* nobody could name it in JSON */
			return call_bad_request(call, "The path has bytes that are no UTF-8.");
		if (call_keep(call, &text, &call->params[i]) < 0)
			return false;
	}
	return true;
}

/* A route that has no parameters does not look for any: whatever is there is one that nobody knows. Nothing has been
 * changed yet. */
static void check_query(struct api_call *call)
{
	bool refused = call->step == API_REPLY && call->reply.status >= 400;

	if (call->request->query.len > 0 && !call->query_taken && !refused)
		query_read(call, NULL, 0);
}

/* Some credentials are for one worker, or for one claim. What is compared are the commands: they are what will be done. */
static void confine(struct api_call *call)
{
	const struct principal *who = &call->who;

	for (uint32_t i = 0; i < call->command_count; i++) {
		const struct command *command = &call->commands[i];
		bool other_task = who->task.len > 0 && !span_equal(who->task, command->task);
		bool other_worker = who->worker.len > 0 && command->worker.len > 0 &&
			!span_equal(who->worker, command->worker);
		if (other_task || (other_worker && command->kind == COMMAND_LEAVE)) {
			api_refuse(call, REFUSED_NOT_FOUND, NULL);
			return;
		}
		if (other_worker || (who->task.len > 0 && command->fence != who->fence)) {
			api_refuse(call, REFUSED_FORBIDDEN,
				"The credential is for another worker, or another claim, than this one.");
			return;
		}
	}
}

/* Can anything have the id that the path names? */
static bool can_exist(const struct api_call *call)
{
	return call->params[0].len == 0 || !strstr(call->route->pattern, "/:id") ||
		text_is_name(call->params[0], COMMAND_ID_MAX);
}

/* Somebody has typed the server's address into a browser. Programs, which ask for no HTML, are told what they always were. */
static bool is_of_browser(const struct http_request *request)
{
	return span_equal(request->path, SPAN("/")) && http_accepts(request->accept, "text/html");
}

static void begin(struct api_call *call)
{
	uint32_t allowed;

	call->step = API_REPLY;
	call->reply = (struct http_reply){0};
	if (method_asked(call->request) == HTTP_METHOD_GET && is_of_browser(call->request)) {
		system_page_begin(call);
		return;
	}
	if (method_asked(call->request) == HTTP_METHOD_GET && system_asset_begin(call))
		return;
	call->route = find_route(call->request, call->params, &allowed);
	if (!check_credential(call))
		return;
	if (!call->route && allowed != 0) {
		refuse_method(call, allowed);
		return;
	}
	if (!call_require(call, call->route, REFUSED_NOT_FOUND, "There is nothing at this path.") ||
		!check_body(call) || !decode_params(call) ||
		!call_require(call, can_exist(call), REFUSED_NOT_FOUND, NULL))
		return;
	if (!call->route->begin) {
		call->step = API_READ;
		return;
	}
	call->route->begin(call);
	check_query(call);
	if (call->step == API_TURN)
		confine(call);
}

void api_begin(struct api_call *call)
{
	assert(call->body->len == 0);
	assert(call->command_count == 0);
	begin(call);
	call_assert_step(call);
}

void api_read(struct api_call *call)
{
	assert(call->step == API_READ);
	assert(call->route->read);
	call->step = API_REPLY;
	call->route->read(call);
	check_query(call);
	if (call->step == API_TURN)
		confine(call);
	call_assert_step(call);
}

void api_finish(struct api_call *call, const struct result *results)
{
	assert(call->step == API_TURN);
	assert(call->route->finish);
	assert(call->command_count > 0);
	call->step = API_REPLY;
	for (uint32_t i = 0; !call->route->judges && i < call->command_count; i++) {
		if (call_is_refused(call, &results[i]))
			return;
	}
	if (!call->route->judges)
		call_note_events(call, results);
	call->route->finish(call, results);
	call_assert_step(call);
}

bool api_begin_wait(struct api_call *call, const struct result *results)
{
	assert(call->step == API_TURN);
	return call->wait_ms > 0 && call->route->waits && claim_next_waits(call, results);
}

int api_compact(struct api_call *call, struct arena *into)
{
	return call->step == API_NEWS || call->route->waits ? call_compact(call, into) : -ENOTSUP;
}

const char *api_route_of(const struct api_call *call)
{
	return call->route ? call->route->pattern : "";
}

void api_finish_empty(struct api_call *call)
{
	assert(call->step == API_TURN);
	call->step = API_REPLY;
	if (call->route->waits)
		claim_next_finish_empty(call);
	else
		api_refuse(call, REFUSED_UNAVAILABLE, "The server is stopping; nothing was changed.");
}

/* On routes that others may use too, it counts as an admin's action only for an admin, or after a 403. */
bool api_is_admin_action(const struct api_call *call)
{
	const uint32_t admin = SCOPE_BIT(SCOPE_ADMIN);

	if (!call->route || (call->route->scopes & admin) == 0 || call->route->method == HTTP_METHOD_GET)
		return false;
	return (call->who.scopes & admin) != 0 || (call->who.scopes & call->route->scopes) == 0 ||
		call->reply.status == 403;
}

/* If-Match: one version, or "*". What is no version of ours matches nothing. */
static int64_t version_wanted(struct span etag)
{
	int64_t version = 0;

	if (!etag.data || span_equal(etag, SPAN("*")))
		return 0;
	if (etag.len < 3 || etag.len > 20 || etag.data[0] != '"' || etag.data[etag.len - 1] != '"')
		return -1;
	for (size_t at = 1; at < etag.len - 1; at++) {
		if (etag.data[at] < '0' || etag.data[at] > '9')
			return -1;
		version = version * 10 + (etag.data[at] - '0');
	}
	return version == 0 ? -1 : version;
}

/* About one task, or one schedule: they have an ETag. */
static bool has_version(const struct route *route)
{
	static const char *const patterns[] = {"/api/tasks/:id", "/api/schedules/:id"};

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		if (strncmp(route->pattern, patterns[i], strlen(patterns[i])) == 0)
			return true;
	}
	return false;
}

struct command *call_commands(struct api_call *call, uint32_t count)
{
	struct command *commands = arena_alloc(call->arena, count * sizeof *commands);
	int64_t if_version = call->request->if_match.data && has_version(call->route)
		? version_wanted(call->request->if_match)
		: 0;

	if (!commands) {
		call_refuse_request(call, -ENOMEM);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		commands[i].actor = call->who.name;
		commands[i].principal = call->who.number;
		commands[i].oversees = (call->who.scopes & SCOPE_BIT(SCOPE_OPERATE)) != 0;
		commands[i].within = call->who.queues;
		commands[i].if_version = if_version;
	}
	call->commands = commands;
	call->command_count = count;
	call->step = API_TURN;
	return commands;
}

struct command *call_command(struct api_call *call, enum command_kind kind)
{
	struct command *command = call_commands(call, 1);

	if (command)
		command->kind = kind;
	return command;
}

void call_note_events(struct api_call *call, const struct result *results)
{
	for (uint32_t i = 0; i < call->command_count; i++) {
		if (results[i].event_seq > call->reply.event_seq)
			call->reply.event_seq = results[i].event_seq;
	}
}

void *call_detail(struct api_call *call, size_t bytes)
{
	if (!call->detail)
		call->detail = arena_alloc(call->arena, bytes);
	if (!call->detail)
		call_refuse_request(call, -ENOMEM);
	return call->detail;
}

int call_keep_note(struct api_call *call, const char *key, struct span text, struct command *command)
{
	cleanup(buf_done) struct buf note = {.max = 8 * API_TEXT_MAX};
	struct json_object members = {.buf = &note};

	if (text.len == 0)
		return 0;
	json_member_string(&members, key, text);
	return call_keep(call, &note, &command->note);
}

int buf_keep(const struct buf *text, struct arena *arena, struct span *ret_text)
{
	return buf_fault(text) ? buf_fault(text) : arena_copy(arena, buf_span(text), ret_text);
}

int call_keep(struct api_call *call, const struct buf *text, struct span *ret_text)
{
	int r = buf_keep(text, call->arena, ret_text);

	if (r < 0)
		call_refuse_request(call, r);
	return r;
}

struct span name_of(const struct api_call *call, uint32_t number)
{
	return number == 0 ? (struct span){0} : store_name(call->store, number);
}

void json_names_begin(struct json_names *names, struct json_object *object, const char *key)
{
	*names = (struct json_names){.object = object};
	json_put_key(object, key);
	buf_put_byte(object->buf, '[');
}

int json_names_put(void *context, struct span name)
{
	struct json_names *names = context;

	json_put_comma(names->object->buf, &names->any);
	return json_put_string(names->object->buf, name);
}

void json_names_end(struct json_names *names, int fault)
{
	json_note(names->object, fault);
	buf_put_byte(names->object->buf, ']');
}

void json_member_set(const struct api_call *call, struct json_object *object, const char *key, uint32_t set)
{
	struct json_names names;

	json_names_begin(&names, object, key);
	json_names_end(&names, set != 0 ? store_each_member(call->store, set, json_names_put, &names) : 0);
}

void json_member_held(
	const struct api_call *call, struct json_object *object, const char *key, struct span worker)
{
	struct json_names names;

	json_names_begin(&names, object, key);
	json_names_end(&names, store_each_held(call->store, worker, json_names_put, &names));
}

bool call_list_begin(struct call_list *list, struct api_call *call)
{
	*list = (struct call_list){.call = call};
	buf_put_byte(call->body, '[');
	return query_read(call, NULL, 0);
}

void call_list_next(struct call_list *list)
{
	json_put_comma(list->call->body, &list->any);
}

void call_list_end(struct call_list *list, int fault)
{
	buf_put_byte(list->call->body, ']');
	call_reply(list->call, 200, fault);
}
