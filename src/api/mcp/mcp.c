/*
 * MCP at POST /mcp: one JSON-RPC message in, one reply out, no session. Both eras of the protocol are served by one machine:
 *
 *   2025-06-18, 2025-11-25   the client begins with initialize; it may leave the header MCP-Protocol-Version out
 *   2026-07-28               no handshake: every request says its version in _meta, and method and name in headers, too
 *
 * A tool call is a request to a route of the API, made by the same caller: `inner` goes through api_begin(), api_read() and
 * api_finish() as if it had come by itself, and its reply is wrapped. So there is no second way to a change. Rejected: streams
 * of events for replies. Every tool answers within one turn, and one JSON reply is what every client takes.
 */
#include "api/mcp/tools.h"

#include <assert.h>
#include <errno.h>

#include "base/take.h"

#define NEWEST     "2026-07-28"
#define LAST_OLD   "2025-11-25"
#define SUPPORTED  "[\"" NEWEST "\",\"" LAST_OLD "\",\"2025-06-18\"]"
#define META_OF(x) "io.modelcontextprotocol/" x

#define INSTRUCTIONS_WORKER                                                                                                \
	"You work on one task of stint. get_task shows it. Report with progress while you work, and end with exactly one " \
	"of done, review, fail, block or release. ask_approval asks a person."
#define INSTRUCTIONS_OPERATOR \
	"stint is a work queue. list_tasks and get_task show tasks, why_task says what a task waits for, enqueue creates one."
#define PENDING                                                                                                          \
	"pending: a person has not answered yet. End your turn now: the answer starts the next attempt, where the same " \
	"question is answered at once. While you wait, get_task shows the answer when it is there."

enum {
	RPC_UNREADABLE = -32700,
	RPC_NO_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_FAILED = -32603,
	RPC_NO_RESOURCE = -32002,
	RPC_HEADERS = -32020,
	RPC_VERSION = -32022,
	LIST_TTL_MS = 60000,
};

struct rpc {
	yyjson_val *id; /* NULL: a notification */
	struct span method;
	yyjson_val *params;
	bool is_new;             /* 2026-07-28 */
	bool has_headers;        /* false: the message came by standard input, where there are none */
	const struct tool *tool; /* NULL: a resource is read */
	struct span uri;
	struct http_request request;
	struct api_call inner;
};

/* ---- replies ------------------------------------------------------------------------------------------ */

static void put_head(struct json_object *message, const struct rpc *rpc, struct buf *out)
{
	buf_clear(out);
	json_begin(message, out);
	json_member_word(message, "jsonrpc", "2.0");
	if (json_put_key(message, "id")) {
		if (rpc->id)
			json_put_value(out, rpc->id);
		else
			buf_put_span(out, SPAN("null"));
	}
}

/* `data` is JSON, or empty. */
static void refuse(struct api_call *call, const struct rpc *rpc, int status, int code, const char *text,
	struct span data)
{
	struct json_object message, error;

	put_head(&message, rpc, call->body);
	json_put_key(&message, "error");
	json_begin(&error, call->body);
	json_member_int(&error, "code", code);
	json_member_cstr(&error, "message", text);
	json_member_raw_if_any(&error, "data", data);
	json_end(&error);
	json_end(&message);
	call_reply(call, status, 0);
}

static void put_server_info(struct json_object *object, const char *key)
{
	struct json_object info;

	json_put_key(object, key);
	json_begin(&info, object->buf);
	json_member_cstr(&info, "name", "stint");
	json_member_cstr(&info, "title", "stint");
	json_member_cstr(&info, "version", STINT_VERSION);
	json_end(&info);
}

struct rpc_answer {
	struct json_object message, result;
};

static void answer_begin(struct rpc_answer *answer, struct api_call *call, const struct rpc *rpc)
{
	struct json_object meta;

	put_head(&answer->message, rpc, call->body);
	json_put_key(&answer->message, "result");
	json_begin(&answer->result, call->body);
	if (!rpc->is_new)
		return;
	json_member_word(&answer->result, "resultType", "complete");
	json_put_key(&answer->result, "_meta");
	json_begin(&meta, call->body);
	put_server_info(&meta, META_OF("serverInfo"));
	json_end(&meta);
}

static void answer_end(struct rpc_answer *answer, struct api_call *call)
{
	json_end(&answer->result);
	json_end(&answer->message);
	call_reply(call, 200, 0);
}

/* Lists depend on the token: only this client may keep them. */
static void put_cache(struct json_object *result, const struct rpc *rpc, int64_t ttl_ms)
{
	if (!rpc->is_new)
		return;
	json_member_int(result, "ttlMs", ttl_ms);
	json_member_word(result, "cacheScope", "private");
}

static void put_introduction(struct api_call *call, struct json_object *result)
{
	json_member_raw(result, "capabilities", SPAN("{\"tools\":{},\"resources\":{}}"));
	put_server_info(result, "serverInfo");
	json_member_cstr(
		result, "instructions", call->who.task.len > 0 ? INSTRUCTIONS_WORKER : INSTRUCTIONS_OPERATOR);
}

/* ---- the request to a route ------------------------------------------------------------------------------- */

static void put_content(struct json_object *result, struct span text)
{
	struct json_object content;

	json_put_key(result, "content");
	buf_put_byte(result->buf, '[');
	json_begin(&content, result->buf);
	json_member_word(&content, "type", "text");
	json_member_string(&content, "text", text);
	json_end(&content);
	buf_put_byte(result->buf, ']');
}

/* What the route said, to a model. A refusal is a result too: the model reads it and can do better. */
static void answer_tool(struct api_call *call, const struct rpc *rpc, struct span body)
{
	struct json_complaint complaint;
	struct rpc_answer answer;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_to(body, JSON_REPLY_DEPTH_MAX, &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);
	bool is_error = rpc->inner.reply.status >= 400;
	bool is_pending = !is_error && tool_is_pending(rpc->tool, root);

	answer_begin(&answer, call, rpc);
	put_content(&answer.result, is_pending ? SPAN(PENDING) : body);
	if (yyjson_is_obj(root))
		json_member_raw(&answer.result, "structuredContent", body);
	json_member_bool(&answer.result, "isError", is_error);
	answer_end(&answer, call);
}

static void answer_resource(struct api_call *call, const struct rpc *rpc, struct span body)
{
	struct rpc_answer answer;
	struct json_object content;

	if (rpc->inner.reply.status >= 400) {
		refuse(call, rpc, 200, rpc->is_new ? RPC_BAD_PARAMS : RPC_NO_RESOURCE,
			"This resource cannot be read.", body);
		return;
	}
	answer_begin(&answer, call, rpc);
	json_put_key(&answer.result, "contents");
	buf_put_byte(call->body, '[');
	json_begin(&content, call->body);
	json_member_string(&content, "uri", rpc->uri);
	json_member_cstr(&content, "mimeType", "application/json");
	json_member_string(&content, "text", body);
	json_end(&content);
	buf_put_byte(call->body, ']');
	put_cache(&answer.result, rpc, 0);
	answer_end(&answer, call);
}

/* The inner call has made a step: the outer one is where that is. */
static void follow(struct api_call *call, struct rpc *rpc)
{
	struct api_call *inner = &rpc->inner;
	cleanup(buf_done) struct buf body = {.max = 64 << 20};

	assert(inner->step == API_TURN || inner->step == API_READ || inner->step == API_REPLY);
	call->step = inner->step;
	call->commands = inner->commands;
	call->command_count = inner->command_count;
	if (inner->step != API_REPLY)
		return;
	buf_put_span(&body, inner->reply.body); /* it may lie where the reply is written */
	buf_clear(call->body);
	buf_fail(call->body, buf_fault(&body));
	call->reply.event_seq = inner->reply.event_seq;
	if (rpc->tool)
		answer_tool(call, rpc, buf_span(&body));
	else
		answer_resource(call, rpc, buf_span(&body));
}

static void pass_on(struct api_call *call, struct rpc *rpc)
{
	rpc->inner = (struct api_call){
		.request = &rpc->request,
		.who = call->who,
		.arena = call->arena,
		.body = call->body,
		.rules = call->rules,
		.now = call->now,
		.store = call->store,
		.host = call->host,
	};
	api_begin(&rpc->inner);
	follow(call, rpc);
}

void mcp_read(struct api_call *call)
{
	struct rpc *rpc = call->detail;

	rpc->inner.now = call->now;
	api_read(&rpc->inner);
	follow(call, rpc);
}

void mcp_finish(struct api_call *call, const struct result *results)
{
	struct rpc *rpc = call->detail;

	rpc->inner.now = call->now;
	api_finish(&rpc->inner, results);
	follow(call, rpc);
}

/* ---- methods ------------------------------------------------------------------------------------------------ */

static void on_initialize(struct api_call *call, struct rpc *rpc)
{
	struct span wanted = json_text(yyjson_obj_get(rpc->params, "protocolVersion"));
	struct rpc_answer answer;

	answer_begin(&answer, call, rpc);
	json_member_cstr(&answer.result, "protocolVersion",
		span_equal(wanted, SPAN("2025-06-18")) ? "2025-06-18" : LAST_OLD);
	put_introduction(call, &answer.result);
	answer_end(&answer, call);
}

static void on_discover(struct api_call *call, struct rpc *rpc)
{
	struct rpc_answer answer;

	answer_begin(&answer, call, rpc);
	json_member_raw(&answer.result, "supportedVersions", SPAN(SUPPORTED));
	put_introduction(call, &answer.result);
	put_cache(&answer.result, rpc, LIST_TTL_MS);
	answer_end(&answer, call);
}

static void on_ping(struct api_call *call, struct rpc *rpc)
{
	struct rpc_answer answer;

	answer_begin(&answer, call, rpc);
	answer_end(&answer, call);
}

static void on_tools(struct api_call *call, struct rpc *rpc)
{
	struct rpc_answer answer;

	answer_begin(&answer, call, rpc);
	json_put_key(&answer.result, "tools");
	tools_put(call->body, &call->who);
	put_cache(&answer.result, rpc, LIST_TTL_MS);
	answer_end(&answer, call);
}

static void on_tool(struct api_call *call, struct rpc *rpc)
{
	yyjson_val *arguments = yyjson_obj_get(rpc->params, "arguments");
	cleanup(buf_done) struct buf complaint = {.max = 8192};
	struct rpc_answer answer;

	rpc->tool = tool_find(json_text(yyjson_obj_get(rpc->params, "name")), &call->who);
	if (!rpc->tool)
		return refuse(call, rpc, 200, RPC_BAD_PARAMS,
			"There is no tool of this name for this token; tools/list has those there are.",
			(struct span){0});
	if (arguments && !yyjson_is_obj(arguments))
		return refuse(
			call, rpc, 200, RPC_BAD_PARAMS, "\"arguments\" must be an object.", (struct span){0});
	int r = tool_request(rpc->tool, call, arguments, &rpc->request, &complaint);
	if (r == 0)
		return pass_on(call, rpc);
	if (r != -EINVAL) {
		call_refuse_request(call, r);
		return;
	}
	answer_begin(&answer, call, rpc);
	put_content(&answer.result, buf_span(&complaint));
	json_member_bool(&answer.result, "isError", true);
	answer_end(&answer, call);
}

/* A worker has one task; of others no list is of use. */
static void on_resources(struct api_call *call, struct rpc *rpc)
{
	cleanup(buf_done) struct buf uri = {.max = 8192};
	struct rpc_answer answer;
	struct json_object resource;

	answer_begin(&answer, call, rpc);
	json_put_key(&answer.result, "resources");
	buf_put_byte(call->body, '[');
	if (call->who.task.len > 0) {
		buf_printf(&uri, "stint://task/");
		http_encode(call->who.task, &uri);
		json_begin(&resource, call->body);
		json_member_string(&resource, "uri", buf_span(&uri));
		json_member_string(&resource, "name", call->who.task);
		json_member_cstr(&resource, "mimeType", "application/json");
		json_end(&resource);
	}
	buf_put_byte(call->body, ']');
	put_cache(&answer.result, rpc, LIST_TTL_MS);
	answer_end(&answer, call);
}

static void on_templates(struct api_call *call, struct rpc *rpc)
{
	struct rpc_answer answer;

	answer_begin(&answer, call, rpc);
	json_member_raw(&answer.result, "resourceTemplates",
		SPAN("[{\"uriTemplate\":\"stint://task/{id}\",\"name\":\"task\",\"mimeType\":\"application/json\"},"
		     "{\"uriTemplate\":\"stint://task/{id}/log\",\"name\":\"log\",\"mimeType\":\"application/json\"}]"));
	put_cache(&answer.result, rpc, LIST_TTL_MS);
	answer_end(&answer, call);
}

/* stint://task/ID or stint://task/ID/log: the id is encoded as in a path, and goes into one as it is. */
static void on_resource(struct api_call *call, struct rpc *rpc)
{
	static const char prefix[] = "stint://task/";
	const size_t len = sizeof prefix - 1;
	cleanup(buf_done) struct buf path = {.max = 8192};

	rpc->uri = json_text(yyjson_obj_get(rpc->params, "uri"));
	struct span rest = rpc->uri.len > len && memcmp(rpc->uri.data, prefix, len) == 0
		? (struct span){rpc->uri.data + len, rpc->uri.len - len}
		: (struct span){0};
	const char *slash = rest.len > 0 ? memchr(rest.data, '/', rest.len) : NULL;
	struct span tail = slash ? (struct span){slash, (size_t)(rest.data + rest.len - slash)} : SPAN("");
	if (rest.len == 0 || slash == rest.data || (tail.len > 0 && !span_equal(tail, SPAN("/log"))) ||
		memchr(rest.data, '?', rest.len))
		return refuse(call, rpc, 200, rpc->is_new ? RPC_BAD_PARAMS : RPC_NO_RESOURCE,
			"\"uri\" must be stint://task/ID or stint://task/ID/log.", (struct span){0});
	buf_printf(&path, "/api/tasks/");
	buf_put_span(&path, rest);
	rpc->request =
		(struct http_request){.method = HTTP_METHOD_GET, .request_id = call->request->request_id};
	if (call_keep(call, &path, &rpc->request.path) == 0)
		pass_on(call, rpc);
}

static const struct {
	const char *name;
	void (*run)(struct api_call *call, struct rpc *rpc);
	const char *names; /* the member of params that the header Mcp-Name repeats */
	bool old_only;
} methods[] = {
	{"tools/call", on_tool, "name", false},
	{"tools/list", on_tools, NULL, false},
	{"server/discover", on_discover, NULL, false},
	{"initialize", on_initialize, NULL, true},
	{"ping", on_ping, NULL, false},
	{"resources/read", on_resource, "uri", false},
	{"resources/list", on_resources, NULL, false},
	{"resources/templates/list", on_templates, NULL, false},
};

enum { METHOD_COUNT = sizeof methods / sizeof *methods };

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* Does the header say this? =?base64?…?= is decoded first. */
static bool header_says(struct span header, struct span expected)
{
	static const char begin[] = "=?base64?", end[] = "?=";
	const size_t first = sizeof begin - 1, last = sizeof end - 1;
	cleanup(buf_done) struct buf text = {.max = 16 << 10};

	if (header.len < first + last || memcmp(header.data, begin, first) != 0 ||
		memcmp(header.data + header.len - last, end, last) != 0)
		return header.data && span_equal(header, expected);
	return json_read_base64((struct span){header.data + first, header.len - first - last}, &text) == 0 &&
		span_equal(buf_span(&text), expected);
}

/* Proxies route by the headers, so they must not differ from the message. */
static bool check_headers(struct api_call *call, const struct rpc *rpc, size_t method, struct span version)
{
	const struct http_request *request = call->request;
	const char *names = method < METHOD_COUNT ? methods[method].names : NULL;

	if (!rpc->is_new || !rpc->has_headers)
		return true;
	if (header_says(request->mcp_version, version) && header_says(request->mcp_method, rpc->method) &&
		(!names || header_says(request->mcp_name, json_text(yyjson_obj_get(rpc->params, names)))))
		return true;
	refuse(call, rpc, 400, RPC_HEADERS,
		"The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must say what the message says.",
		(struct span){0});
	return false;
}

static bool version_is_known(struct span version)
{
	return span_equal(version, SPAN(NEWEST)) || span_equal(version, SPAN(LAST_OLD)) ||
		span_equal(version, SPAN("2025-06-18"));
}

/* Which era it is. False: the call was refused. */
static bool read_version(struct api_call *call, struct rpc *rpc, struct span *ret_version)
{
	cleanup(buf_done) struct buf data = {.max = 8192};
	struct json_object object;
	yyjson_val *meta = yyjson_obj_get(rpc->params, "_meta");
	struct span said = json_text(yyjson_obj_get(meta, META_OF("protocolVersion")));

	*ret_version = said.len > 0 ? said : call->request->mcp_version;
	rpc->is_new = span_equal(*ret_version, SPAN(NEWEST));
	if (rpc->is_new && said.len == 0) {
		refuse(call, rpc, 400, RPC_HEADERS,
			"A request of " NEWEST
			" says its version in _meta, too: \"" META_OF("protocolVersion") "\".",
			(struct span){0});
		return false;
	}
	if (ret_version->len == 0 || version_is_known(*ret_version))
		return true;
	json_begin(&object, &data);
	json_member_raw(&object, "supported", SPAN(SUPPORTED));
	json_member_string(&object, "requested", *ret_version);
	json_end(&object);
	refuse(call, rpc, 400, RPC_VERSION, "The server does not speak this version of MCP.",
		buf_span(&data));
	return false;
}

/* A number or a text; of a request, not null. */
static bool id_is_good(yyjson_val *id)
{
	return !id || yyjson_is_str(id) || yyjson_is_num(id);
}

/* False: the message was answered, or it wants no answer. */
static bool read_message(struct api_call *call, struct rpc *rpc)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(call->arena, call->request->body, &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);

	if (!doc && complaint.fault < 0)
		return call_refuse_request(call, complaint.fault);
	if (!doc) {
		refuse(call, rpc, 400, RPC_UNREADABLE, complaint.reason, (struct span){0});
		return false;
	}
	yyjson_val *id = yyjson_obj_get(root, "id"), *params = yyjson_obj_get(root, "params");
	rpc->method = json_text(yyjson_obj_get(root, "method"));
	rpc->params = params;
	bool is_answer =
		rpc->method.len == 0 && (yyjson_obj_get(root, "result") || yyjson_obj_get(root, "error"));
	if (!span_equal(json_text(yyjson_obj_get(root, "jsonrpc")), SPAN("2.0")) || !id_is_good(id) ||
		(rpc->method.len == 0 && !is_answer) || (params && !yyjson_is_obj(params))) {
		refuse(call, rpc, 400, RPC_NO_REQUEST,
			"Send one JSON-RPC 2.0 message: \"jsonrpc\":\"2.0\", a \"method\", an \"id\" that is a text or a number, "
			"and \"params\" that are an object. Lists of messages are not taken.",
			(struct span){0});
		return false;
	}
	rpc->id = id;
	if (id && !is_answer)
		return true;
	call->reply.status = 202; /* nothing of ours waits for it */
	return false;
}

/* An agent finds the token of an admin in the home of whoever started the server, and must not use it by accident. */
static bool check_profile(struct api_call *call, struct rpc *rpc)
{
	struct query_value values[] = {{.name = "admin"}, {.name = "transport"}};

	if (!query_read(call, values, 2))
		return false;
	rpc->has_headers = !span_equal(values[1].value, SPAN("stdio"));
	if ((call->who.scopes & SCOPE_BIT(SCOPE_ADMIN)) == 0 || span_equal(values[0].value, SPAN("true")))
		return true;
	return call_refuse_kind(call,
		"An agent does not get the token of an admin by default. Make one for it (stint token create --kind operator --out "
		"agent.token), or say that you mean it: stint mcp --admin, /mcp?admin=true.",
		"operator");
}

void mcp_begin(struct api_call *call)
{
	struct rpc *rpc = call_detail(call, sizeof *rpc);
	struct span version;
	size_t method = 0;

	if (!rpc || !check_profile(call, rpc) || !read_message(call, rpc) ||
		!read_version(call, rpc, &version))
		return;
	while (method < METHOD_COUNT && !span_equal(rpc->method, span_of(methods[method].name)))
		method++;
	if (!check_headers(call, rpc, method, version))
		return;
	if (method == METHOD_COUNT || (rpc->is_new && methods[method].old_only))
		return refuse(call, rpc, rpc->is_new ? 404 : 200, RPC_NO_METHOD,
			"The server has no such method.", (struct span){0});
	methods[method].run(call, rpc);
}
