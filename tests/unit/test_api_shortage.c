/*
 * Memory that runs short, at every allocation that a request makes: nobody is told that the request was wrong. Clients never
 * repeat what is answered with 4xx, so it would be lost. And no reply leaves without one of its parts: it is the usual one, or
 * 503 with a body that says so.
 */
#include "api_fixture.h"

/* ---- an allocator that fails once ---- */

/* Without a sanitizer the libraries allocate here, too. A sanitizer has an allocator of its own, which cannot be replaced: then
 * only what our own code asks for fails (the linker's --wrap). */
#ifdef __SANITIZE_ADDRESS__
#define FAILING(name) __wrap_##name
#define REAL(name)    __real_##name
#else
#define FAILING(name) name
#define REAL(name)    __libc_##name
#endif

void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t count, size_t bytes);
void *REAL(realloc)(void *old, size_t bytes);
void *FAILING(malloc)(size_t bytes);
void *FAILING(calloc)(size_t count, size_t bytes);
void *FAILING(realloc)(void *old, size_t bytes);

static int left = -1; /* allocations that succeed before the one that fails; negative: all do */

static bool fails(void)
{
	return left >= 0 && left-- == 0;
}

void *FAILING(malloc)(size_t bytes)
{
	return fails() ? NULL : REAL(malloc)(bytes);
}

void *FAILING(calloc)(size_t count, size_t bytes)
{
	return fails() ? NULL : REAL(calloc)(count, bytes);
}

void *FAILING(realloc)(void *old, size_t bytes)
{
	return fails() ? NULL : REAL(realloc)(old, bytes);
}

/* ---- requests, and replies ---- */

#define PROOF  "\"workerId\":\"w1\",\"fence\":\"7\""
#define WQ     "/api/workqueue/"
#define CONN   "/api/v1/worker/orchestrator/"
#define KEYS_4 "\"a\":1,\"b\":2,\"c\":3,\"d\":4"
#define KEYS_20                                                                                                   \
	KEYS_4 ",\"e\":1,\"f\":2,\"g\":3,\"h\":4,\"i\":1,\"j\":2,\"k\":3,\"l\":4,\"m\":1,\"n\":2,\"o\":3,\"p\":4" \
	       ",\"q\":1,\"r\":2,\"s\":3,\"t\":4"

#define YES(verb, url, body)                 {HTTP_METHOD_##verb, url, body, 0, REFUSED_NOTHING}
#define NO(verb, url, body, status, refusal) {HTTP_METHOD_##verb, url, body, status, refusal}

static const struct {
	enum http_method method;
	const char *url, *body;
	int status;           /* of the usual reply, if it is a refusal */
	enum refusal refusal; /* of its command */
} requests[] = {
	YES(POST, "/api/tasks",
		"{\"title\":\"T\",\"queue\":\"q\",\"requires\":[\"gpu\"],\"payload\":{\"x\":[1,2]},\"metadata\":{" KEYS_20
		"}}"),
	YES(POST, "/api/tasks/batch", "[{\"title\":\"A\"},{\"title\":\"B\",\"labels\":[\"x\"]}]"),
	YES(PATCH, "/api/tasks/t-1", "{\"title\":\"T\",\"requires\":[\"a\"],\"metadata\":{\"x\":1}}"),
	YES(POST, "/api/tasks/t-1/cancel", "{\"reason\":\"why not\"}"),
	YES(POST, "/api/tasks/t-1/answer", "{\"text\":\"yes\"}"),
	YES(POST, "/api/tasks/t-1/events", "{\"id\":\"x\",\"type\":\"ci.finished\",\"data\":{\"run\":81}}"),
	YES(POST, "/api/claims",
		"{\"workerId\":\"w1\",\"queues\":[\"q\"],\"finish\":[{\"id\":\"t-1\",\"fence\":\"7\",\"outcome\":\"fail\","
		"\"byReport\":true,\"error\":{\"message\":\"m\",\"details\":{\"exit\":1}}}]}"),
	YES(POST, "/api/tasks/t-1/progress",
		"{" PROOF
		",\"note\":\"half\",\"data\":[1],\"session\":{\"id\":\"s\"},\"usage\":{\"tokens\":5}}"),
	YES(POST, "/api/tasks/t-1/complete", "{" PROOF ",\"result\":{\"pr\":7}}"),
	YES(POST, "/api/tasks/t-1/review", "{" PROOF ",\"result\":1,\"evidence\":[2]}"),
	YES(POST, "/api/tasks/t-1/ask", "{" PROOF ",\"question\":\"go?\",\"options\":[\"yes\"]}"),
	YES(POST, "/api/tasks/t-1/log", "{" PROOF ",\"offset\":0,\"data\":\"text\"}"),
	YES(POST, "/api/workers/register",
		"{\"workerId\":\"w9\",\"capabilities\":[\"gpu\"],\"metadata\":{\"x\":1}}"),
	YES(POST, "/api/workers/heartbeat", "{\"workerId\":\"w9\",\"boundTasks\":[\"t-1\"]}"),
	YES(GET, "/api/tasks?queue=a%20b&limit=5", NULL),
	YES(GET, "/api/tasks/t%2D1", NULL),
	YES(POST, WQ "enqueue", "{\"title\":\"T\",\"queue\":\"q\",\"dedupeKey\":\"k\"}"),
	YES(POST, WQ "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"result\":{\"x\":1}}"),
	YES(POST, WQ "fail", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"error\":\"no\"}"),
	YES(POST, CONN "register",
		"{\"worker_id\":\"w\",\"version\":\"1\",\"metadata\":{\"a\":1},\"capabilities\":[\"x\"]}"),
	YES(POST, CONN "tasks/t-1/progress",
		"{\"worker_id\":\"w\",\"event\":\"building\",\"message\":\"m\",\"metadata\":{\"a\":1}}"),
	YES(POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\",\"reason\":\"r\"}"),
	YES(POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}"),
	YES(POST, CONN "heartbeat", "{\"worker_id\":\"w1\"}"),
	YES(GET, CONN "tasks/pending?limit=3&worker_id=w1", NULL),
	YES(GET, CONN "workers", NULL),
	YES(GET, CONN "stats", NULL),
	YES(GET, CONN "health", NULL),
	YES(GET, WQ "item/t-1", NULL),
	YES(GET, WQ "items?queue=q", NULL),
	YES(GET, WQ "summary", NULL),
	YES(GET, WQ "assignments", NULL),
	YES(POST, WQ "claim-next", "{\"agentId\":\"dev-3\"}"),
	YES(POST, "/api/sessions/spawn", "{\"sessionLabel\":\"s 1\",\"prompt\":\"do it\"}"),
	YES(GET, "/api/sessions", NULL),
	YES(GET, "/api/sessions/s%201", NULL),
	YES(DELETE, "/api/sessions/s%201", NULL),
	YES(GET, "/api/heartbeats", NULL),
	YES(GET, "/api/heartbeats?shape=array", NULL),
	YES(POST, "/api/heartbeats", "{\"slot\":\"w1\",\"status\":\"working\",\"task\":\"t-1\"}"),
	YES(GET, "/api/tasks?q=old&label=x", NULL),
	YES(GET, "/api/tasks/t-1/why", NULL),
	YES(GET, "/api/tasks/t-1/events", NULL),
	YES(GET, "/api/tasks/t-1/log", NULL),
	YES(GET, "/api/approvals", NULL),
	YES(GET, "/api/events", NULL),
	YES(GET, "/api/workers", NULL),
	YES(GET, "/api/workers/w1", NULL),
	YES(GET, "/api/slots", NULL),
	YES(GET, "/api/queues", NULL),
	YES(GET, "/api/workflows", NULL),
	/* what is refused */
	NO(PUT, "/api/tasks", NULL, 405, REFUSED_NOTHING),
	NO(GET, "/api/tasks?colour=red", NULL, 422, REFUSED_NOTHING),
	NO(POST, "/api/tasks", "{\"title\":5,\"queue\":[]}", 422, REFUSED_NOTHING),
	NO(POST, WQ "delete", "{\"itemId\":\"nothing\"}", 404, REFUSED_NOTHING),
	NO(GET, CONN "nothing", NULL, 404, REFUSED_NOTHING),
	NO(GET, "/api/events?after=-1", NULL, 422, REFUSED_NOTHING),
	NO(POST, "/api/tasks/t-1/cancel", NULL, 409, REFUSED_ALREADY_TERMINAL),
	NO(PATCH, "/api/tasks/t-1", "{\"status\":\"done\"}", 409, REFUSED_BAD_TRANSITION),
	NO(POST, "/api/tasks/t-1/log", "{" PROOF ",\"offset\":0,\"data\":\"x\"}", 409, REFUSED_BAD_OFFSET),
	NO(POST, "/api/workers/heartbeat", "{\"workerId\":\"w9\"}", 409, REFUSED_TOKEN_MISMATCH),
	NO(POST, WQ "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", 409, REFUSED_CLAIMED_BY_OTHER),
	NO(POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", 409, REFUSED_CLAIMED_BY_OTHER),
	NO(POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\"}", 409, REFUSED_NOT_CLAIMED),
};

enum { ALLOCATIONS_MAX = 200 };

/* The request, and the reply to what the turn made of it, with the allocation of that number failing; false: it makes no more
 * than that many. */
static bool try_with(struct dialogue *d, size_t request, int number)
{
	const struct claimed claimed = {
		.task = d->task, .id = SPAN("t-1"), .body = d->task_body, .lease_ms = 1000};

	arena_done(&d->arena);
	buf_done(&d->body);
	for (size_t i = 0; i < sizeof d->results / sizeof *d->results; i++)
		d->results[i] = (struct result){.refusal = requests[request].refusal,
			.task = d->task,
			.id = SPAN("t-1"),
			.claims = &claimed,
			.claim_count = 1};
	left = number;
	say(d, requests[request].method, requests[request].url, requests[request].body);
	if (d->call.step == API_TURN)
		finish(d);
	bool failed = left < 0;
	left = -1;
	return failed;
}

/* A reply that outlives its call; status 0: there was none. */
struct kept_reply {
	int status;
	struct buf parts; /* body and headers */
};

static struct kept_reply keep_reply(const struct dialogue *d)
{
	const struct http_reply *reply = &d->call.reply;
	struct kept_reply kept = {.status = d->call.step == API_REPLY ? reply->status : 0};

	buf_init(&kept.parts, 1 << 20);
	buf_put_span(&kept.parts, reply->body);
	buf_printf(&kept.parts, "\nLocation: %.*s\nETag: %.*s\nAllow: %.*s\nStint-Seq: %lld",
		SPAN_ARGS(reply->location), SPAN_ARGS(reply->etag), SPAN_ARGS(reply->allow),
		(long long)reply->event_seq);
	assert_int_equal(buf_fault(&kept.parts), 0);
	return kept;
}

static void judge_short(struct dialogue *d, const char *url, int number, const struct kept_reply *usual)
{
	struct kept_reply got = keep_reply(d);

	if (got.status == 503 && usual->status != 503) {
		reply_is(d, 503);
		if (d->call.reply.retry_after_s < 1)
			fail_msg("%s, allocation %d: 503 without Retry-After", url, number);
	} else if (got.status != usual->status ||
		!span_equal(buf_span(&got.parts), buf_span(&usual->parts))) {
		fail_msg("%s, allocation %d: %d %.*s\nin place of %d %.*s", url, number, got.status,
			SPAN_ARGS(buf_span(&got.parts)), usual->status, SPAN_ARGS(buf_span(&usual->parts)));
	}
	buf_done(&got.parts);
}

static void fail_every_allocation(struct dialogue *d)
{
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		int number = 0;

		assert_false(try_with(d, i, ALLOCATIONS_MAX));
		struct kept_reply usual = keep_reply(d);
		if (requests[i].status != (usual.status >= 400 ? usual.status : 0))
			fail_msg("%s: %d %.*s", requests[i].url, usual.status, SPAN_ARGS(d->call.reply.body));
		for (; try_with(d, i, number); number++)
			judge_short(d, requests[i].url, number, &usual);
		assert_true(number > 0);
		buf_done(&usual.parts);
	}
}

static void a_shortage_of_memory_is_503_and_never_the_callers_mistake(void **state)
{
	fail_every_allocation(*state);
}

static void a_shortage_of_memory_is_503_for_a_task_without_text(void **state)
{
	struct dialogue *d = *state;

	d->task_body = (struct span){0};
	fail_every_allocation(d);
}

static void a_shortage_of_memory_is_503_for_a_task_that_failed(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_FAILED;
	d->task.code = CODE_EXECUTION_ERROR;
	d->task_error = SPAN("{\"code\":\"EXECUTION_ERROR\",\"message\":\"no\",\"class\":\"task\"}");
	fail_every_allocation(d);
}

static void a_shortage_of_memory_is_503_for_a_request_with_a_key(void **state)
{
	struct dialogue *d = *state;

	d->request.idempotency_key = SPAN("key");
	fail_every_allocation(d);
}

static void a_shortage_of_memory_is_503_for_lists_of_many(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 8;
	fail_every_allocation(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_shortage_of_memory_is_503_and_never_the_callers_mistake),
		DIALOGUE(a_shortage_of_memory_is_503_for_a_task_without_text),
		DIALOGUE(a_shortage_of_memory_is_503_for_a_task_that_failed),
		DIALOGUE(a_shortage_of_memory_is_503_for_a_request_with_a_key),
		DIALOGUE(a_shortage_of_memory_is_503_for_lists_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
