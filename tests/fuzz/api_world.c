#include "fuzz/api_world.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base36.h"
#include "base/take.h"
#include "wire/json/json.h"

enum {
	SLICES_MAX = 10000,
	TASK_EVENTS_EVERY = 5,
};

static int find_task(void *context, struct span id, int64_t *ret_seq)
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

static int read_task(void *context, int64_t seq, struct arena *arena, struct task_document *ret_document)
{
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

static int page_open(void *context, uint32_t *at, uint32_t limit,
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

static int page_final(void *context, int64_t *before, uint32_t limit,
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

static int page_events(void *context, int64_t after, uint32_t limit,
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
static int find_session(void *context, struct span label, int64_t *ret_seq)
{
	(void)context;
	(void)label;
	*ret_seq = 1;
	return 0;
}

static int read_session(void *context, int64_t seq, struct arena *arena, struct session_document *ret_session)
{
	(void)context;
	(void)arena;
	*ret_session = (struct session_document){
		.label = SPAN("a b"), .spec = SPAN("{\"channel\":\"internal\"}"), .own = seq == 1};
	return seq <= 2 ? 0 : -ENOENT;
}

static int page_sessions(void *context, uint32_t *at, uint32_t limit, int (*each)(void *, int64_t, int64_t),
	void *each_context)
{
	int r = 0;

	(void)context;
	for (; r == 0 && limit > 0 && *at < 2; limit--)
		r = each(each_context, ++*at, 0);
	*at = *at < 2 ? *at : 0;
	return r;
}

static struct reason why(void *context, const struct task *task)
{
	(void)context;
	(void)task;
	return (struct reason){.why = WHY_NO_WORKER};
}

static int read_worker(void *context, struct span id, struct worker_document *ret_document)
{
	(void)context;
	if (!span_equal(id, SPAN("w1")))
		return -ENOENT;
	*ret_document = (struct worker_document){.id = id, .worker = {.state = WORKER_ACTIVE}};
	return 0;
}

static int each_held(void *context, struct span worker, int (*each)(void *, struct span), void *each_context)
{
	(void)context;
	(void)worker;
	return each(each_context, SPAN("t-1"));
}

static int each_slot(void *context, int (*each)(void *, const struct slot_document *), void *each_context)
{
	(void)context;
	(void)each;
	(void)each_context;
	return 0;
}

static int read_slot(void *context, struct span name, struct slot_document *ret_slot)
{
	(void)context;
	(void)name;
	(void)ret_slot;
	return -ENOENT;
}

static int page_workers(void *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, struct span, const struct worker *), void *each_context)
{
	struct worker worker = {.state = WORKER_ACTIVE};

	(void)context;
	(void)limit;
	*at = 0;
	return each(each_context, SPAN("w1"), &worker);
}

static struct span name(void *context, uint32_t number)
{
	(void)context;
	assert(number == 1);
	return SPAN("q");
}

static int each_queue(
	void *context, int (*each)(void *, struct span, enum queue_state, uint32_t), void *each_context)
{
	(void)context;
	return each(each_context, SPAN("q"), QUEUE_OPEN, 20);
}

static int read_last(void *context, struct arena *arena, struct task_document *document)
{
	(void)context;
	(void)arena;
	document->words = SPAN("half");
	return 0;
}

static int page_rows(void *context, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	struct task_outline outline = {.seq = 2, .queue = 1, .state = TASK_READY};
	bool there = oldest_first ? *at < 2 : *at > 2;

	(void)context;
	(void)limit;
	*at = oldest_first ? INT64_MAX : 0;
	return there ? each(each_context, &outline) : 0;
}

static int assignment(void *context, struct span slot, struct arena *arena, struct span *ret_queues)
{
	(void)context;
	return span_equal(slot, SPAN("dev-3")) ? arena_copy(arena, SPAN("\x1fq\x1fq"), ret_queues) : -ENOENT;
}

static int page_assignments(void *context, int64_t *after, uint32_t limit,
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

static int64_t last_event(void *context)
{
	(void)context;
	return WORLD_LAST_EVENT;
}

static int64_t event_base(void *context)
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

static const struct token *find_token(void *context, struct span id)
{
	static const struct token token = {.id = {"stk_1", 5}, .kind = TOKEN_VIEWER, .name = {"guest", 5}};

	(void)context;
	return span_equal(id, token.id) ? &token : NULL;
}

static int each_token(void *context, int (*each)(void *, const struct token *), void *each_context)
{
	return each(each_context, find_token(context, SPAN("stk_1")));
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

void world_init(struct api_world *world)
{
	*world = (struct api_world){.rules = rules_default()};
	arena_init(&world->arena, 64 << 20);
	buf_init(&world->body, 64 << 20);
	world->reads = (struct api_reads){
		.context = world,
		.find_task = find_task,
		.read_task = read_task,
		.read_last = read_last,
		.page_open = page_open,
		.page_final = page_final,
		.page_events = page_events,
		.why = why,
		.read_worker = read_worker,
		.each_held = each_held,
		.each_slot = each_slot,
		.read_slot = read_slot,
		.page_workers = page_workers,
		.find_session = find_session,
		.read_session = read_session,
		.page_sessions = page_sessions,
		.name = name,
		.each_queue = each_queue,
		.page_rows = page_rows,
		.assignment = assignment,
		.page_assignments = page_assignments,
		.default_queues = default_queues,
		.last_event = last_event,
		.event_base = event_base,
		.mint_token = mint_token,
		.find_token = find_token,
		.each_token = each_token,
		.root_token = root_token,
		.is_degraded = no,
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
		.reads = &world->reads,
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
	yyjson_doc *doc = json_read(reply->body, &complaint);
	assert(doc);
	yyjson_doc_free(doc);
	buf_init(&out, 64 << 20);
	assert(http_put_reply(&out, reply) == 0); /* no header can be broken out of */
}
