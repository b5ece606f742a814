#include "fuzz/api_world.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base36.h"
#include "base/take.h"
#include "unit/api_store.h"
#include "wire/json/json.h"

enum {
	SLICES_MAX = 10000,
	TASK_EVENTS_EVERY = 5,
};

int store_find_task(struct store *context, struct span id, int64_t *ret_seq)
{
	uint64_t seq;

	(void)context;
	if (id.len < 3 || memcmp(id.data, "t-", 2) != 0 ||
		base36_decode((struct span){id.data + 2, id.len - 2}, &seq) < 0 || seq == 0 ||
		seq > WORLD_TASKS)
		return -ENOENT;
	*ret_seq = (int64_t)seq;
	return 0;
}

static struct task_outline outline_of(int64_t seq)
{
	return (struct task_outline){
		.seq = seq,
		.created_ms = 1000 + seq / 8,
		.queue = 1,
		.priority = (int32_t)(seq % 3) - 1,
		.state = seq % 2 ? TASK_DONE : TASK_READY,
	};
}

int store_read_task(struct store *context, int64_t seq, struct moment now, struct arena *arena,
	struct task_document *ret_document)
{
	(void)now;
	struct task_outline outline = outline_of(seq);
	char id[2 + BASE36_MAX] = "t-";
	size_t len = base36_encode((uint64_t)seq, id + 2) + 2;

	(void)context;
	*ret_document = (struct task_document){
		.task = {.seq = seq,
			.queue = outline.queue,
			.priority = outline.priority,
			.created_ms = outline.created_ms,
			.state = outline.state,
			.version = WORLD_LAST_EVENT - TASK_EVENTS_EVERY + 1},
		.body = SPAN(
			"\"title\":\"a task\",\"labels\":[\"x\"],\"metadata\":{\"a\":1,\"b\":{\"c\":null}}"),
		.result = SPAN("{\"ok\":true}"),
	};
	return arena_copy(arena, (struct span){id, len}, &ret_document->id);
}

int store_page_open(const struct store *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	int r = 0;

	(void)context;
	for (; r == 0 && limit > 0 && *at < WORLD_TASKS; limit--) {
		struct task_outline outline = outline_of(++*at);
		r = outline.state == TASK_READY ? each(each_context, &outline) : 0;
	}
	*at = *at < WORLD_TASKS ? *at : 0;
	return r;
}

int store_page_final(struct store *context, int64_t *before, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	int r = 0;

	(void)context;
	if (*before > WORLD_TASKS)
		*before = WORLD_TASKS + 1;
	for (; r == 0 && limit > 0 && *before > 1; limit--) {
		struct task_outline outline = outline_of(--*before);
		r = outline.state == TASK_DONE ? each(each_context, &outline) : 0;
	}
	*before = *before > 1 ? *before : 0;
	return r;
}

int store_page_events(struct store *context, int64_t after, uint32_t limit,
	int (*each)(void *, const struct record *), void *each_context)
{
	int r = 0;

	(void)context;
	assert(after <= WORLD_LAST_EVENT);
	if (after < WORLD_EVENT_BASE)
		return -ESTALE;
	for (int64_t seq = after + 1; r == 0 && limit > 0 && seq <= WORLD_LAST_EVENT; seq++, limit--) {
		bool first = seq % TASK_EVENTS_EVERY == 1;
		struct record record = {
			.seq = seq,
			.wall_ms = seq,
			.kind = EVENT_TASK_PROGRESSED,
			.task = first ? 1 : 2,
			.previous = seq > TASK_EVENTS_EVERY && first ? seq - TASK_EVENTS_EVERY : 0,
			.from = TASK_RUNNING,
			.note = SPAN("\"note\":\"half\""),
		};
		r = each(each_context, &record);
	}
	return r;
}

/* Every label is that of the first task; it and the second are sessions. */
int store_find_session(struct store *context, struct span label, int64_t *ret_seq)
{
	(void)context;
	(void)label;
	*ret_seq = 1;
	return 0;
}

int store_read_session(
	struct store *context, int64_t seq, struct arena *arena, struct session_document *ret_session)
{
	(void)context;
	(void)arena;
	*ret_session = (struct session_document){
		.label = SPAN("a b"), .spec = SPAN("{\"channel\":\"internal\"}"), .own = seq == 1};
	return seq <= 2 ? 0 : -ENOENT;
}

int store_page_sessions(const struct store *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, int64_t, int64_t), void *each_context)
{
	int r = 0;

	(void)context;
	for (; r == 0 && limit > 0 && *at < 2; limit--)
		r = each(each_context, ++*at, 0);
	*at = *at < 2 ? *at : 0;
	return r;
}

struct reason store_why(struct store *context, const struct task *task, struct moment now)
{
	(void)now;
	(void)context;
	(void)task;
	return (struct reason){.why = WHY_NO_WORKER};
}

bool store_offers(const struct store *context, int64_t seq, struct span worker, struct moment now)
{
	(void)context;
	(void)seq;
	(void)now;
	return worker.len != 1;
}

int store_read_worker(const struct store *context, struct span id, struct worker_document *ret_document)
{
	(void)context;
	if (!span_equal(id, SPAN("w1")))
		return -ENOENT;
	*ret_document = (struct worker_document){.id = id, .worker = {.state = WORKER_ACTIVE}};
	return 0;
}

int store_each_slot(
	const struct store *context, int (*each)(void *, const struct slot_document *), void *each_context)
{
	(void)context;
	(void)each;
	(void)each_context;
	return 0;
}

int store_read_slot(const struct store *context, struct span name, struct slot_document *ret_slot)
{
	(void)context;
	(void)name;
	(void)ret_slot;
	return -ENOENT;
}

int store_page_workers(const struct store *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, struct span, const struct worker *), void *each_context)
{
	struct worker worker = {.state = WORKER_ACTIVE};

	(void)context;
	(void)limit;
	*at = 0;
	return each(each_context, SPAN("w1"), &worker);
}

struct span store_name(const struct store *context, uint32_t number)
{
	(void)context;
	assert(number == 1);
	return SPAN("q");
}

struct stats_key stats_first_key(int64_t hour)
{
	(void)hour;
	return (struct stats_key){.len = 0};
}

int store_each_queue(const struct store *context,
	int (*each)(void *, struct span, enum queue_state, uint32_t), void *each_context)
{
	(void)context;
	return each(each_context, SPAN("q"), QUEUE_OPEN, 20);
}

int store_read_queue(struct store *context, struct span name, struct queue_document *ret_queue)
{
	(void)context;
	*ret_queue = (struct queue_document){
		.state = span_equal(name, SPAN("later")) ? QUEUE_PAUSED : QUEUE_OPEN,
		.count = {[TASK_READY] = 7, [TASK_RUNNING] = 2},
		.workers = 3,
		.limits = {.concurrency = 2, .per_key = 1, .sequential = true},
		.key_caps = 1,
	};
	return 0;
}

bool store_next_cap(const struct store *context, uint32_t queue, uint32_t *at, struct key_cap *ret_cap)
{
	(void)context;
	(void)queue;
	if (*at > 0)
		return false;
	*ret_cap = (struct key_cap){.key = 1, .most = 3, .text = "a \"key\""};
	return ++*at == 1;
}

int store_read_last(struct store *context, struct arena *arena, struct task_document *document)
{
	(void)context;
	(void)arena;
	document->words = SPAN("half");
	return 0;
}

int store_page_rows(struct store *context, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	struct task_outline outline = {.seq = 2, .queue = 1, .state = TASK_READY};
	bool there = oldest_first ? *at < 2 : *at > 2;

	(void)context;
	(void)limit;
	*at = oldest_first ? INT64_MAX : 0;
	return there ? each(each_context, &outline) : 0;
}

int store_assignment(struct store *context, struct span slot, struct arena *arena, struct span *ret_queues)
{
	(void)context;
	return span_equal(slot, SPAN("dev-3")) ? arena_copy(arena, SPAN("\x1fq\x1fq"), ret_queues) : -ENOENT;
}

int store_page_assignments(struct store *context, int64_t *after, uint32_t limit,
	int (*each)(void *, struct span, struct span), void *each_context)
{
	(void)context;
	(void)limit;
	*after = 0;
	return each(each_context, SPAN("dev-3"), SPAN("\x1fq\x1fq"));
}

static const char *default_queues(void *context)
{
	(void)context;
	return "dev-team,q";
}

int64_t store_last_event(const struct store *context)
{
	(void)context;
	return WORLD_LAST_EVENT;
}

int store_each_kept(
	struct store *context, int64_t task, int (*each)(void *, const struct record *), void *each_context)
{
	struct record record = {.seq = WORLD_EVENT_BASE, .kind = EVENT_TASK_NOTED, .task = task};

	(void)context;
	return each(each_context, &record);
}

int store_audit_base(struct store *context, int64_t *ret_base)
{
	(void)context;
	*ret_base = 0;
	return 0;
}

int store_page_audit(struct store *context, int64_t after, uint32_t limit,
	int (*each)(void *, const struct record *), void *each_context)
{
	struct record record = {.seq = WORLD_EVENT_BASE, .kind = EVENT_TOKEN_CREATED};

	(void)context;
	return limit > 0 && after < WORLD_EVENT_BASE ? each(each_context, &record) : 0;
}

int64_t store_event_base(const struct store *context)
{
	(void)context;
	return WORLD_EVENT_BASE;
}

static int mint_token(void *context, enum token_kind kind, struct arena *arena, struct minted *ret_minted)
{
	(void)context;
	(void)kind;
	(void)arena;
	*ret_minted = (struct minted){.id = SPAN("stk_1"), .text = SPAN("stk_1.secret")};
	return 0;
}

const struct token *store_find_token(const struct store *context, struct span id)
{
	static const struct token token = {.id = {"stk_1", 5}, .kind = TOKEN_VIEWER, .name = {"guest", 5}};

	(void)context;
	return span_equal(id, token.id) ? &token : NULL;
}

int store_each_token(
	const struct store *context, int (*each)(void *, const struct token *), void *each_context)
{
	return each(each_context, store_find_token(context, SPAN("stk_1")));
}

static int mint_join(void *context, struct arena *arena, struct minted *ret_minted)
{
	(void)context;
	(void)arena;
	*ret_minted = (struct minted){.id = SPAN("00ff00ff00ff00ff"),
		.text = SPAN("stint_join_00ff00ff00ff00ff_abcdefghijklmnopqrstuvwxyz")};
	return 0;
}

static void put_peer(void *context, const struct api_call *call, char ret_address[API_PEER_BYTES])
{
	(void)context;
	(void)call;
	snprintf(ret_address, API_PEER_BYTES, "192.0.2.7");
}

static void put_url(void *context, char ret_url[API_URL_BYTES])
{
	(void)context;
	snprintf(ret_url, API_URL_BYTES, "https://queue.example.org:8787");
}

static int mint_secret(
	void *context, const char *kind, struct span id, struct arena *arena, struct minted *ret_minted)
{
	(void)context;
	(void)kind;
	(void)arena;
	*ret_minted = (struct minted){.id = id.len > 0 ? id : SPAN("0a0b"), .text = SPAN("a.secret")};
	return 0;
}

static void hash_text(void *context, struct span text, unsigned char ret_hash[TOKEN_HASH_BYTES])
{
	(void)context;
	memset(ret_hash, (int)text.len, TOKEN_HASH_BYTES);
}

static struct span cookie_login(void *context, const struct http_request *request)
{
	(void)context;
	return request->cookie.len > 0 ? SPAN("0a0b") : (struct span){0};
}

static struct api_cookie cookie(void *context, const struct http_request *request)
{
	(void)context;
	(void)request;
	return (struct api_cookie){.name = "stint_1", .path = "/"};
}

static int put_config(void *context, struct buf *out)
{
	(void)context;
	return buf_printf(out, "{\"schema\":1,\"home\":\"/\",\"keys\":[],\"ignored\":[],\"problems\":[]}");
}

const struct browser_login *store_find_login(const struct store *context, struct span id)
{
	static const struct browser_login login = {
		.id = "0a0b",
		.state = LOGIN_SESSION,
		.role = TOKEN_VIEWER,
		.maker = "admin",
		.name = "guest",
		.made_ms = 1,
		.used_ms = 2,
	};

	(void)context;
	return span_equal(id, SPAN("0a0b")) ? &login : NULL;
}

int store_each_login(
	const struct store *context, int (*each)(void *, const struct browser_login *), void *each_context)
{
	return each(each_context, store_find_login(context, SPAN("0a0b")));
}

static struct span root_token(void *context)
{
	(void)context;
	return SPAN("root");
}

static bool no(void *context)
{
	(void)context;
	return false;
}

int store_read_log(struct store *context, int64_t seq, uint32_t attempt, int64_t after, uint32_t limit,
	struct arena *arena, struct log_piece *ret_piece)
{
	(void)context;
	(void)seq;
	(void)limit;
	(void)arena;
	*ret_piece = (struct log_piece){.attempt = 1, .offset = after, .length = after};
	return attempt > 1 ? -ENOENT : 0;
}

int store_read_body(struct store *context, int64_t seq, struct arena *arena, struct span *ret_body)
{
	(void)context;
	(void)seq;
	(void)arena;
	*ret_body = SPAN("\"title\":\"a task\"");
	return 0;
}

int store_each_member(
	const struct store *context, uint32_t set, int (*each)(void *, struct span), void *each_context)
{
	(void)context;
	(void)set;
	return each(each_context, SPAN("gpu"));
}

int store_task_queue(struct store *context, int64_t seq, uint32_t *ret_queue)
{
	(void)context;
	*ret_queue = 1;
	return seq <= WORLD_TASKS ? 0 : -ENOENT;
}

int64_t store_age_ms(const struct store *store)
{
	(void)store;
	return 0;
}

const struct store_room *store_room(const struct store *store)
{
	static const struct store_room room;

	(void)store;
	return &room;
}

bool store_is_degraded(const struct store *context)
{
	(void)context;
	return false;
}

void world_init(struct api_world *world)
{
	*world = (struct api_world){.rules = rules_default()};
	arena_init(&world->arena, 64 << 20);
	buf_init(&world->body, 64 << 20);
	world->host = (struct api_services){
		.context = world,
		.default_queues = default_queues,
		.mint_token = mint_token,
		.root_token = root_token,
		.mint_join = mint_join,
		.peer = put_peer,
		.url_from_afar = put_url,
		.mint_secret = mint_secret,
		.hash = hash_text,
		.cookie_login = cookie_login,
		.cookie = cookie,
		.put_config = put_config,
		.is_draining = no,
	};
	world->request.content_type = SPAN("application/json");
}

void world_done(struct api_world *world)
{
	buf_done(&world->body);
	arena_done(&world->arena);
}

enum api_step world_ask(
	struct api_world *world, enum http_method method, struct span target, struct span body)
{
	const char *query = target.len > 0 ? memchr(target.data, '?', target.len) : NULL;
	size_t path_len = query ? (size_t)(query - target.data) : target.len;

	world->request.method = method;
	world->request.path = (struct span){target.data, path_len};
	world->request.query = query ? (struct span){query + 1, target.len - path_len - 1} : (struct span){0};
	world->request.body = body;
	buf_clear(&world->body);
	arena_reset(&world->arena);
	world->call = (struct api_call){
		.request = &world->request,
		.who = {.name = SPAN("alice"), .scopes = SCOPE_BIT(SCOPE_ADMIN)},
		.arena = &world->arena,
		.body = &world->body,
		.rules = &world->rules,
		.now = {.wall_ms = 1000000, .lease_ms = 500},
		.store = (struct store *)world,
		.host = &world->host,
	};
	api_begin(&world->call);
	for (uint32_t slices = 0; world->call.step == API_READ; slices++) {
		assert(slices < SLICES_MAX);
		api_read(&world->call);
	}
	return world->call.step;
}

void world_expect_reply(const struct api_world *world)
{
	const struct http_reply *reply = &world->call.reply;
	struct json_complaint complaint;
	cleanup(buf_done) struct buf out;

	assert(world->call.step == API_REPLY);
	assert(reply->status >= 200);
	assert(reply->status < 600);
	if (reply->status == 202 && reply->body.len == 0) /* a notification of MCP */
		return;
	yyjson_doc *doc = json_read(reply->body, &complaint);
	assert(doc);
	yyjson_doc_free(doc);
	buf_init(&out, 64 << 20);
	assert(http_put_reply(&out, reply) == 0); /* no header can be broken out of */
}
