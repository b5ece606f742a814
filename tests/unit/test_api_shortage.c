/*
 * Memory that runs short, at every allocation that a request makes: nobody is told that the request was wrong. Clients never
 * repeat what is answered with 4xx, so it would be lost.
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

static const struct {
	enum http_method method;
	const char *url, *body;
} requests[] = {
	{HTTP_METHOD_POST, "/api/tasks",
		"{\"title\":\"T\",\"queue\":\"q\",\"requires\":[\"gpu\"],\"payload\":{\"x\":[1,2]},\"metadata\":{" KEYS_20
		"}}"},
	{HTTP_METHOD_POST, "/api/tasks/batch", "[{\"title\":\"A\"},{\"title\":\"B\",\"labels\":[\"x\"]}]"},
	{HTTP_METHOD_PATCH, "/api/tasks/t-1",
		"{\"title\":\"T\",\"requires\":[\"a\"],\"metadata\":{\"x\":1}}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/cancel", "{\"reason\":\"why not\"}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/answer", "{\"text\":\"yes\"}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/events",
		"{\"id\":\"x\",\"type\":\"ci.finished\",\"data\":{\"run\":81}}"},
	{HTTP_METHOD_POST, "/api/claims",
		"{\"workerId\":\"w1\",\"queues\":[\"q\"],\"finish\":[{\"id\":\"t-1\",\"fence\":\"7\",\"outcome\":\"fail\","
		"\"byReport\":true,\"error\":{\"message\":\"m\",\"details\":{\"exit\":1}}}]}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/progress",
		"{" PROOF
		",\"note\":\"half\",\"data\":[1],\"session\":{\"id\":\"s\"},\"usage\":{\"tokens\":5}}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/complete", "{" PROOF ",\"result\":{\"pr\":7}}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/review", "{" PROOF ",\"result\":1,\"evidence\":[2]}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/ask", "{" PROOF ",\"question\":\"go?\",\"options\":[\"yes\"]}"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/log", "{" PROOF ",\"offset\":0,\"data\":\"text\"}"},
	{HTTP_METHOD_POST, "/api/workers/register",
		"{\"workerId\":\"w9\",\"capabilities\":[\"gpu\"],\"metadata\":{\"x\":1}}"},
	{HTTP_METHOD_POST, "/api/workers/heartbeat", "{\"workerId\":\"w9\",\"boundTasks\":[\"t-1\"]}"},
	{HTTP_METHOD_GET, "/api/tasks?queue=a%20b&limit=5", NULL},
	{HTTP_METHOD_GET, "/api/tasks/t%2D1", NULL},
	{HTTP_METHOD_POST, WQ "enqueue", "{\"title\":\"T\",\"queue\":\"q\",\"dedupeKey\":\"k\"}"},
	{HTTP_METHOD_POST, WQ "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"result\":{\"x\":1}}"},
	{HTTP_METHOD_POST, WQ "fail", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"error\":\"no\"}"},
	{HTTP_METHOD_POST, CONN "register",
		"{\"worker_id\":\"w\",\"version\":\"1\",\"metadata\":{\"a\":1},\"capabilities\":[\"x\"]}"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress",
		"{\"worker_id\":\"w\",\"event\":\"building\",\"message\":\"m\",\"metadata\":{\"a\":1}}"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\",\"reason\":\"r\"}"},
};

enum { ALLOCATIONS_MAX = 200 };

/* With the allocation of that number failing; false: it makes no more than that many. */
/* The request, and the reply to what the turn made of it. */
static bool try_with(struct dialogue *d, size_t request, int number)
{
	const struct claimed claimed = {.task = d->task, .id = SPAN("t-1"), .lease_ms = 1000};

	arena_done(&d->arena);
	buf_done(&d->body);
	for (size_t i = 0; i < sizeof d->results / sizeof *d->results; i++)
		d->results[i] = (struct result){
			.task = d->task, .id = SPAN("t-1"), .claims = &claimed, .claim_count = 1};
	left = number;
	say(d, requests[request].method, requests[request].url, requests[request].body);
	if (d->call.step == API_TURN)
		finish(d);
	bool failed = left < 0;
	left = -1;
	return failed;
}

static void fail_every_allocation(struct dialogue *d)
{
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		int number = 0;

		assert_false(try_with(d, i, ALLOCATIONS_MAX));
		int usual = d->call.step == API_REPLY ? d->call.reply.status : 0;
		if (usual >= 400)
			fail_msg("%s: %.*s", requests[i].url, SPAN_ARGS(d->call.reply.body));
		for (; try_with(d, i, number); number++) {
			int status = d->call.step == API_REPLY ? d->call.reply.status : 0;
			if (status != usual && status != 503)
				fail_msg("%s, allocation %d: %d %.*s", requests[i].url, number, status,
					SPAN_ARGS(d->call.reply.body));
		}
		assert_true(number > 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_shortage_of_memory_is_503_and_never_the_callers_mistake),
		DIALOGUE(a_shortage_of_memory_is_503_for_a_task_without_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
