#include "api_fixture.h"
#include "api/task/form.h"

/* ---- create ---- */

static void a_task_document_becomes_a_create(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks",
		"{\"id\":\"a:1\",\"title\":\"T\",\"queue\":\"q\",\"owner\":\"slot-1\",\"requires\":[\"gpu\"],"
		"\"priority\":\"P1\",\"executor\":\"shell\",\"payload\":{\"x\":[1]},\"blockedBy\":[\"t-1\"],"
		"\"notBefore\":5,\"startBy\":6,\"finishBy\":7,\"timeoutMs\":8,\"maxAttempts\":9,\"uniqueKey\":\"k\","
		"\"labels\":[\"l\"],\"isolationLevel\":\"vm\",\"state\":\"pending\"}");
	const struct command_create *create = &becomes(d, COMMAND_CREATE)->create;
	assert_true(is(create->id, "a:1") && is(create->queue, "q") && is(create->owner, "slot-1"));
	assert_true(is(create->executor, "shell") && is(create->unique_key, "k"));
	assert_true(is(create->requires.items[0], "gpu") && is(create->parents.items[0], "t-1"));
	assert_int_equal(create->priority, 50);
	assert_int_equal(create->not_before_ms + create->start_by_ms + create->finish_by_ms, 18);
	assert_int_equal(create->timeout_ms, 8);
	assert_int_equal(create->max_attempts, 9);
	assert_true(create->parked);
	assert_true(is(create->body,
		"\"title\":\"T\",\"requires\":[\"gpu\"],\"payload\":{\"x\":[1]},\"blockedBy\":[\"t-1\"],"
		"\"notBefore\":5,\"uniqueKey\":\"k\",\"labels\":[\"l\"],\"isolationLevel\":\"vm\""));
}

static void an_empty_document_is_a_task_in_the_default_queue(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"owner\":null,\"payload\":null}");
	const struct command_create *create = &becomes(d, COMMAND_CREATE)->create;
	assert_true(is(create->queue, "default"));
	assert_int_equal(create->owner.len + create->body.len, 0);
	assert_false(create->parked);
}

static void priorities_are_numbers_or_words(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *body;
		int priority;
	} rows[] = {{"{\"priority\":\"urgent\"}", 100}, {"{\"priority\":\"P0\"}", 100},
		{"{\"priority\":\"high\"}", 50}, {"{\"priority\":\"normal\"}", 0},
		{"{\"priority\":\"P2\"}", 0}, {"{\"priority\":\"low\"}", -50}, {"{\"priority\":\"P3\"}", -50},
		{"{\"priority\":-2147483648}", INT32_MIN}, {"{\"priority\":2147483647}", INT32_MAX}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		post(d, "/api/tasks", rows[i].body);
		assert_int_equal(becomes(d, COMMAND_CREATE)->create.priority, rows[i].priority);
	}
}

/* Some clients have one kind of number only, and write them all so. */
static void an_integer_may_be_written_with_a_point(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"priority\":-7.0,\"finishBy\":1e3,\"maxAttempts\":2.0}");
	const struct command_create *create = &becomes(d, COMMAND_CREATE)->create;
	assert_int_equal(create->priority, -7);
	assert_int_equal(create->finish_by_ms, 1000);
	assert_int_equal(create->max_attempts, 2);
}

static void the_base_of_a_work_tree_may_be_as_long_as_a_ref(void **state)
{
	struct dialogue *d = *state;
	char body[512];

	snprintf(body, sizeof body, "{\"worktree\":{\"base\":\"%0255d\"}}", 0);
	post(d, "/api/tasks", body);
	becomes(d, COMMAND_CREATE);
	snprintf(body, sizeof body, "{\"worktree\":{\"base\":\"%0256d\"}}", 0);
	post(d, "/api/tasks", body);
	refused_with(d, 422, "invalid");
}

static const struct {
	const char *body, *field;
} invalid[] = {
	{"{\"id\":\"\"}", "id"},
	{"{\"id\":\"-a\"}", "id"},
	{"{\"id\":\"a/b\"}", "id"},
	{"{\"id\":7}", "id"},
	{"{\"title\":7}", "title"},
	{"{\"description\":[]}", "description"},
	{"{\"instructions\":{}}", "instructions"},
	{"{\"steps\":\"one\"}", "steps"},
	{"{\"workingDir\":\"\"}", "workingDir"},
	{"{\"model\":\"a\\nb\"}", "model"},
	{"{\"thinking\":true}", "thinking"},
	{"{\"queue\":\"\"}", "queue"},
	{"{\"queue\":\"a\\u0000b\"}", "queue"},
	{"{\"owner\":[]}", "owner"},
	{"{\"requires\":\"gpu\"}", "requires"},
	{"{\"requires\":[\"\"]}", "requires"},
	{"{\"requires\":[1]}", "requires"},
	{"{\"priority\":\"p1\"}", "priority"},
	{"{\"priority\":1.5}", "priority"},
	{"{\"priority\":2147483648}", "priority"},
	{"{\"priority\":2147483648.0}", "priority"},
	{"{\"priority\":18446744073709551615}", "priority"},
	{"{\"executor\":1}", "executor"},
	{"{\"module\":1}", "module"},
	{"{\"isolationLevel\":\"jail\"}", "isolationLevel"},
	{"{\"blockedBy\":{}}", "blockedBy"},
	{"{\"notBefore\":\"now\"}", "notBefore"},
	{"{\"startBy\":-1}", "startBy"},
	{"{\"startBy\":1.5}", "startBy"},
	{"{\"finishBy\":1e300}", "finishBy"},
	{"{\"finishBy\":18446744073709551616}", "finishBy"},
	{"{\"timeoutMs\":0}", "timeoutMs"},
	{"{\"maxAttempts\":0}", "maxAttempts"},
	{"{\"maxAttempts\":1001}", "maxAttempts"},
	{"{\"uniqueKey\":\"\"}", "uniqueKey"},
	{"{\"concurrencyKey\":\"\"}", "concurrencyKey"},
	{"{\"credential\":7}", "credential"},
	{"{\"budget\":{}}", "budget"},
	{"{\"budget\":5}", "budget"},
	{"{\"budget\":{\"usd\":0}}", "budget"},
	{"{\"budget\":{\"usd\":\"5\"}}", "budget"},
	{"{\"budget\":{\"usd\":1e300}}", "budget"},
	{"{\"budget\":{\"tokens\":1.5}}", "budget"},
	{"{\"budget\":{\"usd\":1,\"hours\":1}}", "budget"},
	{"{\"labels\":[[]]}", "labels"},
	{"{\"worktree\":1}", "worktree"},
	{"{\"worktree\":{}}", "worktree"},
	{"{\"worktree\":{\"base\":\"\"}}", "worktree"},
	{"{\"worktree\":{\"base\":\"--exec\"}}", "worktree"},
	{"{\"worktree\":{\"base\":\"main\",\"branch\":\"x\"}}", "worktree"},
	{"{\"env\":[]}", "env"},
	{"{\"env\":{\"A\":1}}", "env"},
	{"{\"env\":{\"A\":null}}", "env"},
	{"{\"env\":{\"A\":\"a\\u0000b\"}}", "env"},
	{"{\"env\":{\"\":\"x\"}}", "env"},
	{"{\"env\":{\"1A\":\"x\"}}", "env"},
	{"{\"env\":{\"A-B\":\"x\"}}", "env"},
	{"{\"env\":{\"A=B\":\"x\"}}", "env"},
	{"{\"env\":{\"STINT_URL\":\"x\"}}", "env"},
	{"{\"env\":{\"STINT_\":\"x\"}}", "env"},
	{"{\"env\":{\"LD_PRELOAD\":\"x\"}}", "env"},
	{"{\"workflow\":1}", "workflow"},
	{"{\"stage\":1}", "stage"},
	{"{\"gates\":1}", "gates"},
	{"{\"metadata\":[]}", "metadata"},
	{"{\"state\":\"ready\"}", "state"},
	{"{\"status\":\"todo\"}", "status"},
	{"{\"attempt\":1}", "attempt"},
	{"{\"spent\":1}", "spent"},
	{"{\"crashes\":1}", "crashes"},
	{"{\"workerId\":\"w\"}", "workerId"},
	{"{\"sessionId\":\"s\"}", "sessionId"},
	{"{\"fence\":\"1\"}", "fence"},
	{"{\"leaseMs\":1}", "leaseMs"},
	{"{\"result\":1}", "result"},
	{"{\"error\":{}}", "error"},
	{"{\"createdAt\":1}", "createdAt"},
	{"{\"updatedAt\":1}", "updatedAt"},
	{"{\"version\":1}", "version"},
};

static void every_wrong_field_is_named(void **state)
{
	struct dialogue *d = *state;

	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		post(d, "/api/tasks", invalid[i].body);
		refuses_field(d, invalid[i].field);
	}
}

static void all_that_is_wrong_is_told_together(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"queue\":\"\",\"title\":1,\"status\":\"done\"}");
	refuses_field(d, "queue");
	refuses_field(d, "title");
	refuses_field(d, "status");
}

/* So many variables of so many bytes each, name and value. */
static struct buf env_of(size_t count, size_t bytes)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_put_span(&text, SPAN("{\"env\":{"));
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s\"V%03zu\":\"%0*d\"", i > 0 ? "," : "", i, (int)bytes - 4, 0);
	buf_put_span(&text, SPAN("}}"));
	buf_put_byte(&text, 0);
	return text;
}

static void variables_of_a_task_have_limits_together(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		size_t count, bytes;
		bool good;
	} rows[] = {{64, 512, true}, {65, 10, false}, {1, 32768, true}, {1, 32769, false}, {64, 513, false}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf text = env_of(rows[i].count, rows[i].bytes);
		post(d, "/api/tasks", text.data);
		if (rows[i].good)
			becomes(d, COMMAND_CREATE);
		else
			refuses_field(d, "env");
		buf_done(&text);
	}
}

static void lists_and_texts_have_limits(void **state)
{
	struct dialogue *d = *state;
	struct buf body;

	buf_init(&body, 1 << 20);
	buf_printf(&body, "{\"labels\":[\"l\"");
	for (int i = 0; i < 100; i++)
		buf_printf(&body, ",\"l\"");
	buf_printf(&body, "],\"title\":\"%04200d\",\"queue\":\"%0256d\",\"id\":\"%0129d\"}", 0, 0, 0);
	buf_put_byte(&body, 0);
	post(d, "/api/tasks", body.data);
	refuses_field(d, "labels");
	refuses_field(d, "title");
	refuses_field(d, "queue");
	refuses_field(d, "id");
	buf_done(&body);
}

static void unknown_fields_are_kept_in_metadata_and_named(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"colour\":\"red\",\"metadata\":{\"a\":1,\"size\":2},\"size\":3}");
	assert_true(is(becomes(d, COMMAND_CREATE)->create.body,
		"\"metadata\":{\"colour\":\"red\",\"a\":1,\"size\":2}"));
	finish_task(d, TASK_READY);
	reply_is(d, 201);
	reply_says(d,
		"\"warnings\":[\"unknown field \\\"colour\\\" was kept in metadata\","
		"\"unknown field \\\"size\\\" was left out");
}

static void a_new_task_is_created_with_location_and_version(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"title\":\"T\",\"queue\":\"q\"}");
	finish_task(d, TASK_READY);
	reply_is(d, 201);
	reply_says(d,
		"{\"id\":\"t-1\",\"title\":\"T\",\"queue\":\"q\",\"owner\":null,\"priority\":0,\"executor\":null,"
		"\"timeoutMs\":1800000,\"maxAttempts\":3,\"status\":\"todo\",\"state\":\"ready\",\"attempt\":0,"
		"\"spent\":0,\"crashes\":0,\"workerId\":null,\"fence\":null,\"leaseMs\":null,\"result\":null,\"error\":null,"
		"\"createdAt\":5,\"updatedAt\":6,\"version\":3}");
	assert_true(is(d->call.reply.location, "/api/tasks/t-1"));
	assert_true(is(d->call.reply.etag, "\"3\""));
	assert_int_equal(d->call.reply.event_seq, 9);
}

static void a_held_unique_key_answers_with_its_task(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"title\":\"new\",\"uniqueKey\":\"k\"}");
	d->results[0] = (struct result){.deduplicated = true, .task = d->task, .id = SPAN("t-1")};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "\"title\":\"old\"");
	reply_says(d, "\"deduplicated\":true");
}

static void creates_are_refused_in_their_own_words(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"id\":\"t-1\"}");
	finish_refused(d, REFUSED_TASK_EXISTS);
	refused_with(d, 409, "task_exists");
	post(d, "/api/tasks", "{\"blockedBy\":[\"t-9\"]}");
	d->results[0] = (struct result){.refusal = REFUSED_INVALID, .id = SPAN("t-9")};
	finish(d);
	refuses_field(d, "blockedBy");
	reply_says(d, "t-9");
	post(d, "/api/tasks", "{}");
	finish_refused(d, REFUSED_IDEMPOTENCY_CONFLICT);
	refused_with(d, 422, "idempotency_conflict");
}

static void an_idempotency_key_travels_with_a_fingerprint_of_the_request(void **state)
{
	struct dialogue *d = *state;
	unsigned char first[16];

	d->request.idempotency_key = SPAN("key");
	post(d, "/api/tasks", "{\"title\":\"a\"}");
	const struct command_create *create = &becomes(d, COMMAND_CREATE)->create;
	assert_true(is(create->idempotency_key, "key"));
	memcpy(first, create->fingerprint, 16);
	d->results[0] = (struct result){.repeated = true, .task = d->task, .id = SPAN("t-1")};
	finish(d);
	reply_is(d, 201);
	post(d, "/api/tasks", "{\"title\":\"a\"}");
	assert_memory_equal(first, d->call.commands[0].create.fingerprint, 16);
	post(d, "/api/tasks", "{\"title\":\"b\"}");
	assert_memory_not_equal(first, d->call.commands[0].create.fingerprint, 16);
	d->request.idempotency_key = SPAN("a\tb");
	post(d, "/api/tasks", "{}");
	refuses_field(d, "Idempotency-Key");
}

/* ---- batch ---- */

static void a_batch_has_a_result_per_task(void **state)
{
	struct dialogue *d = *state;

	d->request.idempotency_key = SPAN("key");
	post(d, "/api/tasks/batch", "{\"tasks\":[{\"title\":\"a\"},{\"queue\":\"\"},7,{\"title\":\"b\"}]}");
	assert_int_equal(d->call.step, API_TURN);
	assert_int_equal(d->call.command_count, 2);
	assert_true(is(d->call.commands[0].create.idempotency_key, "key/0"));
	assert_true(is(d->call.commands[1].create.idempotency_key, "key/3"));
	d->results[0] = (struct result){.task = d->task, .id = SPAN("t-1"), .event_seq = 4};
	d->results[1] = (struct result){.refusal = REFUSED_QUEUE_DRAINING};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"results\":[{\"ok\":true,\"status\":201,\"task\":{\"id\":\"t-1\",\"title\":\"a\"");
	reply_says(d, "{\"ok\":false,\"status\":422,\"code\":\"invalid\",\"errors\":[{\"field\":\"queue\"");
	reply_says(d, "{\"ok\":false,\"status\":409,\"code\":\"queue_draining\"");
}

static void a_batch_may_be_a_bare_list_or_all_wrong(void **state)
{
	struct dialogue *d = *state;

	assert_int_equal(post(d, "/api/tasks/batch", "[{},{}]"), API_TURN);
	assert_int_equal(d->call.command_count, 2);
	post(d, "/api/tasks/batch", "[{\"title\":1}]");
	reply_is(d, 200);
	post(d, "/api/tasks/batch", "{\"tasks\":[]}");
	reply_is(d, 200);
	reply_says(d, "{\"results\":[]}");
	post(d, "/api/tasks/batch", "{}");
	refuses_field(d, "tasks");
	post(d, "/api/tasks/batch", "{\"tasks\":{},\"x\":1}");
	refuses_field(d, "x");
}

static void a_batch_has_at_most_a_thousand_tasks(void **state)
{
	struct dialogue *d = *state;
	char *body = arena_alloc(&d->arena, 4096);

	assert_non_null(body);
	strcpy(body, "[{}");
	for (int i = 0; i < 1000; i++)
		strcat(body, ",{}");
	strcat(body, "]");
	post(d, "/api/tasks/batch", body);
	refuses_field(d, "tasks");
}

/* ---- read ---- */

static void a_task_is_shown_whole(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_RUNNING;
	d->task.claim.holder = 5;
	d->task.claim.stopping = true;
	d->task.fence = UINT64_C(1000000000001);
	d->task.owner = 3;
	get(d, "/api/tasks/t-1");
	reply_is(d, 200);
	reply_says(
		d, "\"title\":\"old\",\"metadata\":{\"a\":1,\"b\":2},\"queue\":\"q\",\"owner\":\"slot-1\"");
	reply_says(d, "\"status\":\"in-progress\",\"state\":\"running\"");
	reply_says(d, "\"workerId\":\"w1\",\"fence\":\"1000000000001\",\"leaseMs\":1234,\"stopping\":true");
	reply_says(d, "\"updatedAt\":6,\"version\":3,\"runMs\":0,\"reason\":\"no_worker\"");
	assert_true(is(d->call.reply.etag, "\"3\""));
	get(d, "/api/tasks/t-2");
	refused_with(d, 404, "not_found");
}

static void an_error_is_the_workers_own_if_it_is_about_this(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_FAILED;
	d->task.code = CODE_OTHER;
	d->task_error = SPAN("{\"code\":\"MINE\",\"message\":\"m\",\"class\":\"task\"}");
	get(d, "/api/tasks/t-1");
	reply_says(d, "\"error\":{\"code\":\"MINE\"");
	d->task.code = CODE_DEADLINE;
	get(d, "/api/tasks/t-1");
	reply_says(d,
		"\"error\":{\"code\":\"DEADLINE\",\"message\":\"it was not begun by startBy, or not done by finishBy\",\"class\":\"final\"}");
	d->task.code = CODE_NONE;
	get(d, "/api/tasks/t-1");
	reply_says(d, "\"error\":null");
}

static void why_says_it_in_words(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/tasks/t-1/why");
	reply_is(d, 200);
	reply_says(d,
		"{\"id\":\"t-1\",\"state\":\"ready\",\"reason\":\"no_worker\",\"text\":\"No worker is alive\",\"try\":\"stint worker ls\","
		"\"until\":77,\"code\":\"STALLED\"}");
	get(d, "/api/tasks/x/why");
	refused_with(d, 404, "not_found");
	get(d, "/api/tasks/t-1?include=why");
	reply_says(d,
		"\"reason\":\"no_worker\",\"why\":{\"reason\":\"no_worker\",\"text\":\"No worker is alive\",\"try\":\"stint worker ls\"}}");
	get(d, "/api/tasks?include=all");
	refuses_field(d, "include");
}

static void the_list_has_the_open_tasks_first_in_claim_order(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 1200;
	get(d, "/api/tasks?limit=3");
	reply_is(d, 200);
	/* the open ones of the highest priority: 2, 8, 14 */
	assert_true(is(d->call.reply.link, "</api/tasks?limit=3&after=o-zik0zm-5-e>; rel=\"next\""));
	get(d, "/api/tasks?limit=3&after=o-zik0zm-5-e");
	assert_true(is(d->call.reply.link, "</api/tasks?limit=3&after=o-zik0zm-5-w>; rel=\"next\""));
	get(d, "/api/tasks?limit=3&after=o-zik0zk-5-xc"); /* the last open one */
	assert_true(is(d->call.reply.link, "</api/tasks?limit=3&after=f-x7>; rel=\"next\""));
	get(d, "/api/tasks");
	assert_int_equal(d->call.reply.link.len, 0);
}

/* The ids of the list, in order: "t-2 t-4 …". */
static const char *ids(struct dialogue *d)
{
	static char text[4096];
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(d->call.reply.body, &complaint);
	size_t i, limit, len = 0;
	yyjson_val *task;

	assert_non_null(doc);
	text[0] = 0;
	yyjson_arr_foreach(yyjson_doc_get_root(doc), i, limit, task)
	{
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 0 ? " " : "",
			yyjson_get_str(yyjson_obj_get(task, "id")));
		assert_true(len < sizeof text);
	}
	yyjson_doc_free(doc);
	return text;
}

static void the_pages_of_a_list_are_the_list(void **state)
{
	struct dialogue *d = *state;
	char whole[4096], pages[4096] = "", url[256];

	d->task_count = 100;
	get(d, "/api/tasks");
	snprintf(whole, sizeof whole, "%s", ids(d));
	snprintf(url, sizeof url, "/api/tasks?limit=7");
	for (bool more = true; more;) {
		get(d, url);
		strcat(strcat(pages, pages[0] ? " " : ""), ids(d));
		struct span link = d->call.reply.link;
		more = link.len > 0;
		if (more)
			snprintf(url, sizeof url, "%.*s", (int)(link.len - strlen("<>; rel=\"next\"")),
				link.data + 1);
	}
	assert_string_equal(pages, whole);
}

/* A list of 2 4 6 8 10, 9 7 5 3 1, during which 4 ends after so many slices. */
static const char *list_while_one_ends(struct dialogue *d, const char *url, uint32_t slices)
{
	d->task_count = 10;
	d->ended = 0;
	begin(d, HTTP_METHOD_GET, url, NULL);
	for (uint32_t i = 0; d->call.step == API_READ; i++) {
		if (i == slices)
			d->ended = 4;
		api_read(&d->call);
	}
	return ids(d);
}

static void a_task_that_ends_while_the_list_is_made_is_listed_once(void **state)
{
	struct dialogue *d = *state;
	const char *early = "t-2 t-8 t-a t-6 t-9 t-7 t-5 t-4 t-3 t-1";
	const char *late = "t-2 t-8 t-4 t-a t-6 t-9 t-7 t-5 t-3 t-1";

	assert_string_equal(list_while_one_ends(d, "/api/tasks", 0), early);
	assert_string_equal(list_while_one_ends(d, "/api/tasks", 1), early); /* seen open, and seen final */
	assert_string_equal(list_while_one_ends(d, "/api/tasks", 4), late);  /* too late for the final ones */
	assert_string_equal(list_while_one_ends(d, "/api/tasks?state=ready", 4), "t-2 t-8 t-a t-6");
	/* the page with the final ones comes later, or shows it itself */
	assert_string_equal(list_while_one_ends(d, "/api/tasks?limit=5", 4), "t-2 t-8 t-a t-6");
	assert_string_equal(
		list_while_one_ends(d, "/api/tasks?limit=9", 4), "t-2 t-8 t-4 t-a t-6 t-9 t-7 t-5 t-3");
}

static void a_list_is_made_in_slices(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 30000;
	get(d, "/api/tasks");
	reply_is(d, 200);
	/* 30,000 looked at, 15,000 of them final; 10,000 sorted and read */
	assert_true(d->slices > 30000 / 500 + 10000 / 1000 + 10000 / 32);
	get(d, "/api/tasks?state=done&limit=1");
	assert_true(d->slices < 10);
	assert_string_equal(ids(d), "t-n5b");
}

static void the_list_is_filtered(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 2;
	d->task_body = SPAN("\"title\":\"Fix the roof\",\"labels\":[\"home\"]");
	static const struct {
		const char *url;
		bool some;
	} rows[] = {{"/api/tasks?status=todo&queue=q", true}, {"/api/tasks?queue=r", false},
		{"/api/tasks?status=review", false}, {"/api/tasks?state=done", true},
		{"/api/tasks?owner=slot-1", false}, {"/api/tasks?label=home", true},
		{"/api/tasks?label=work", false}, {"/api/tasks?q=fix+THE", true},
		{"/api/tasks?q=wall", false}, {"/api/tasks?q=roof&limit=1", true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		get(d, rows[i].url);
		reply_is(d, 200);
		assert_int_equal(reply_has(d, "\"id\""), rows[i].some);
	}
}

static void a_wrong_filter_is_named(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/tasks?state=sleeping");
	refuses_field(d, "state");
	get(d, "/api/tasks?status=ready");
	refuses_field(d, "status");
	get(d, "/api/tasks?limit=0");
	refuses_field(d, "limit");
	get(d, "/api/tasks?limit=10001");
	refuses_field(d, "limit");
	get(d, "/api/tasks?after=1.2");
	refuses_field(d, "after");
	get(d, "/api/tasks?after=");
	refuses_field(d, "after");
}

/* ---- change ---- */

static void a_patch_of_columns_needs_no_look_at_the_text(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1",
		"{\"priority\":7,\"owner\":null,\"queue\":\"r\",\"timeoutMs\":5,\"maxAttempts\":2,\"startBy\":null}");
	const struct command_update *update = &becomes(d, COMMAND_UPDATE)->update;
	assert_true(update->patch.set_priority && update->patch.set_owner && update->patch.set_queue);
	assert_true(
		update->patch.set_timeout && update->patch.set_max_attempts && update->patch.set_start_by);
	assert_false(update->patch.set_executor || update->patch.set_requires || update->patch.set_finish_by);
	assert_int_equal(update->patch.priority, 7);
	assert_true(is(update->queue, "r"));
	assert_int_equal(update->owner.len, 0);
	assert_false(update->set_body);
	assert_int_equal(d->call.commands[0].if_version, 0);
}

static void a_patch_of_texts_is_merged_into_what_is_there(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_PUT, "/api/tasks/t-1",
		"{\"title\":null,\"requires\":[\"gpu\"],\"metadata\":{\"a\":null,\"c\":3},\"colour\":\"red\"}");
	const struct command_update *update = &becomes(d, COMMAND_UPDATE)->update;
	assert_true(update->set_body && update->patch.set_requires);
	assert_int_equal(update->body_version, 3);
	assert_int_equal(d->call.commands[0].if_version, 0);
	const char *body = update->body.data;
	assert_null(strstr(body, "title"));
	assert_null(strstr(body, "\"a\""));
	assert_non_null(strstr(body, "\"b\":2"));
	assert_non_null(strstr(body, "\"c\":3"));
	assert_non_null(strstr(body, "\"colour\":\"red\""));
	assert_non_null(strstr(body, "\"requires\":[\"gpu\"]"));
	finish_task(d, TASK_READY);
	reply_is(d, 200);
	assert_true(is(d->call.reply.etag, "\"3\""));
	reply_says(d, "\"version\":3,\"warnings\":[\"unknown field \\\"colour\\\" was kept in metadata\"]}");
}

static void metadata_that_is_taken_away_makes_room_for_fields_that_nobody_knows(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", "{\"colour\":\"red\",\"metadata\":null}");
	const char *body = becomes(d, COMMAND_UPDATE)->update.body.data;
	assert_non_null(strstr(body, "\"metadata\":{\"colour\":\"red\"}"));
	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", "{\"metadata\":null}");
	assert_null(strstr(becomes(d, COMMAND_UPDATE)->update.body.data, "metadata"));
}

/* A field that nobody knows goes into the metadata: what came as deep as it may lies one level deeper there. */
static void what_is_as_deep_as_it_may_be_can_be_patched_in_and_patched_again(void **state)
{
	static const char deep[] =
		"{\"colour\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}";
	struct dialogue *d = *state;
	struct span merged;

	assert_int_equal(strspn(strchr(deep, '['), "["), JSON_DEPTH_MAX - 1);
	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", deep);
	struct span body = becomes(d, COMMAND_UPDATE)->update.body;
	assert_int_equal(task_body_merge(&d->arena, body, SPAN("{\"title\":\"y\"}"), &merged), 0);
}

static void what_is_fixed_at_birth_cannot_be_patched(void **state)
{
	struct dialogue *d = *state;
	static const char *const fields[] = {"id", "state"};
	char body[64];

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		snprintf(body, sizeof body, "{\"%s\":null}", fields[i]);
		say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", body);
		refuses_field(d, fields[i]);
	}
	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", "{\"queue\":null}");
	refuses_field(d, "queue");
	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-2", "{\"title\":\"x\"}");
	refused_with(d, 404, "not_found");
}

static void a_patch_may_change_time_parents_and_key(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1",
		"{\"notBefore\":99,\"blockedBy\":[\"a\",\"b\"],\"uniqueKey\":\"k\"}");
	const struct command_update *update = &becomes(d, COMMAND_UPDATE)->update;
	assert_true(update->patch.set_not_before && update->patch.set_parents && update->patch.set_keyed);
	assert_int_equal(update->patch.not_before_ms, 99);
	assert_int_equal(update->parents.count, 2);
	assert_true(is(update->unique_key, "k"));
	assert_non_null(strstr(update->body.data, "\"blockedBy\":[\"a\",\"b\"]"));
	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1",
		"{\"notBefore\":null,\"blockedBy\":null,\"uniqueKey\":null}");
	update = &becomes(d, COMMAND_UPDATE)->update;
	assert_true(update->patch.set_not_before && update->patch.set_parents && update->patch.set_keyed);
	assert_int_equal(update->parents.count, 0);
	assert_int_equal(update->unique_key.len, 0);
	d->results[0] = (struct result){
		.refusal = REFUSED_INVALID, .task = d->task, .id = SPAN("t-2"), .cyclic = true};
	api_finish(&d->call, d->results);
	refuses_field(d, "blockedBy");
	reply_says(d, "waits for this task itself");
}

static void a_patch_moves_by_status_for_the_slot(void **state)
{
	struct dialogue *d = *state;
	static const char *const wrong[] = {"{\"status\":\"cancelled\"}", "{\"status\":\"running\"}",
		"{\"status\":3}", "{\"status\":null}"};

	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1",
		"{\"status\":\"blocked\",\"metadata\":{\"errorReason\":\"no \\\"luck\\\"\"}}");
	const struct command *command = becomes(d, COMMAND_UPDATE);
	assert_int_equal(command->update.status, STATUS_BLOCKED);
	assert_true(command->by_name);
	assert_true(is(command->data,
		"{\"code\":\"EXECUTION_ERROR\",\"message\":\"no \\\"luck\\\"\",\"class\":\"task\"}"));
	assert_true(is(command->note, "\"operator\":true"));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", wrong[i]);
		refuses_field(d, "status");
	}
}

static void a_move_that_cannot_be_made_says_what_to_do(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", "{\"status\":\"in-progress\"}");
	finish_refused(d, REFUSED_BAD_TRANSITION);
	refused_with(d, 409, "bad_transition");
	reply_says(d, "Nobody owns the task");
	reply_says(d, "\"state\":\"ready\"");
}

static void if_match_is_the_version(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		struct span etag;
		int64_t version;
	} rows[] = {
		{{"\"12\"", 4}, 12}, {{"*", 1}, 0}, {{"12", 2}, -1}, {{"\"\"", 2}, -1}, {{"\"x\"", 3}, -1}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		d->request.if_match = rows[i].etag;
		say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", "{\"priority\":1}");
		assert_int_equal(becomes(d, COMMAND_UPDATE)->if_version, rows[i].version);
	}
	finish_refused(d, REFUSED_VERSION_MISMATCH);
	refused_with(d, 412, "version_mismatch");
}

static void if_match_counts_for_every_command_about_one_task(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *url, *body;
		int64_t version;
	} rows[] = {
		{"/api/tasks/t-1/cancel", "{}", 12},
		{"/api/tasks/t-1/answer", "{\"text\":\"yes\"}", 12},
		{"/api/tasks/t-1/complete", "{\"workerId\":\"w\",\"fence\":\"1\"}", 12},
		{"/api/tasks/t-1/claim", "{\"workerId\":\"w\"}", 12},
		{"/api/tasks", "{}", 0}, /* there is none yet */
		{"/api/claims", "{\"workerId\":\"w\"}", 0},
	};

	d->request.if_match = SPAN("\"12\"");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		post(d, rows[i].url, rows[i].body);
		assert_int_equal(d->call.step, API_TURN);
		assert_int_equal(d->call.commands[0].if_version, rows[i].version);
	}
}

static void a_patch_that_was_overtaken_is_merged_again(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1", "{\"title\":\"new\"}");
	d->task.version = 4;
	d->task_body = SPAN("\"description\":\"theirs\"");
	d->results[0] = (struct result){.refusal = REFUSED_VERSION_MISMATCH, .task = d->task};
	api_finish(&d->call, d->results);
	const struct command_update *update = &becomes(d, COMMAND_UPDATE)->update;
	assert_int_equal(update->body_version, 4);
	assert_non_null(strstr(update->body.data, "theirs"));
	finish_task(d, TASK_READY);
	reply_is(d, 200);
}

static void a_version_that_is_known_is_not_sent_again(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *header;
		int status;
	} rows[] = {{"\"3\"", 304}, {"W/\"3\"", 304}, {"\"2\", \"3\"", 304}, {"*", 304}, {"\"33\"", 200},
		{"3", 200}, {"\"2\"", 200}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		d->request.if_none_match = span_of(rows[i].header);
		assert_int_equal(get(d, "/api/tasks/t-1"), rows[i].status);
		assert_true(is(d->call.reply.etag, "\"3\""));
	}
}

/* ---- what people do ---- */

static void operators_commands_are_answered_with_the_task(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *url;
		enum command_kind kind;
	} rows[] = {{"/api/tasks/t-1/cancel", COMMAND_CANCEL}, {"/api/tasks/t-1/retry", COMMAND_RETRY},
		{"/api/tasks/t-1/park", COMMAND_PARK}, {"/api/tasks/t-1/unpark", COMMAND_UNPARK}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		post(d, rows[i].url, "{\"reason\":\"be\\\"cause\"}");
		const struct command *command = becomes(d, rows[i].kind);
		assert_true(is(command->task, "t-1"));
		assert_true(is(command->note, "\"reason\":\"be\\\"cause\""));
		finish_task(d, TASK_READY);
		reply_is(d, 200);
		reply_says(d, "\"id\":\"t-1\"");
		post(d, rows[i].url, "{\"why\":1}");
		refuses_field(d, "why");
	}
}

static void a_wrong_move_names_the_state_it_found(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_DONE;
	post(d, "/api/tasks/t-1/park", NULL);
	finish_refused(d, REFUSED_BAD_TRANSITION);
	refused_with(d, 409, "bad_transition");
	reply_says(d, "\"state\":\"done\"");
	post(d, "/api/tasks/t-9/park", NULL);
	d->results[0] = (struct result){.refusal = REFUSED_NOT_FOUND};
	finish(d);
	refused_with(d, 404, "not_found");
}

static void a_cancel_that_waits_for_the_worker_is_accepted(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/cancel", NULL);
	d->task.claim.stopping = true;
	d->task.claim.holder = 5;
	finish_task(d, TASK_RUNNING);
	reply_is(d, 202);
	reply_says(d, "\"stopping\":true");
}

static void an_answer_is_a_text_or_a_denial(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/answer", "{\"text\":\"yes\"}");
	assert_true(is(becomes(d, COMMAND_ANSWER)->data, "{\"text\":\"yes\"}"));
	post(d, "/api/tasks/t-1/answer", "{\"deny\":true}");
	assert_true(is(becomes(d, COMMAND_ANSWER)->data, "{\"deny\":true}"));
	finish_task(d, TASK_RUNNING);
	reply_is(d, 200);
	post(d, "/api/tasks/t-1/answer", NULL);
	refuses_field(d, "text");
	post(d, "/api/tasks/t-1/answer", "{\"deny\":\"no\"}");
	refuses_field(d, "deny");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_task_document_becomes_a_create),
		DIALOGUE(an_empty_document_is_a_task_in_the_default_queue),
		DIALOGUE(priorities_are_numbers_or_words),
		DIALOGUE(an_integer_may_be_written_with_a_point),
		DIALOGUE(the_base_of_a_work_tree_may_be_as_long_as_a_ref),
		DIALOGUE(every_wrong_field_is_named),
		DIALOGUE(all_that_is_wrong_is_told_together),
		DIALOGUE(lists_and_texts_have_limits),
		DIALOGUE(variables_of_a_task_have_limits_together),
		DIALOGUE(unknown_fields_are_kept_in_metadata_and_named),
		DIALOGUE(a_new_task_is_created_with_location_and_version),
		DIALOGUE(a_held_unique_key_answers_with_its_task),
		DIALOGUE(creates_are_refused_in_their_own_words),
		DIALOGUE(an_idempotency_key_travels_with_a_fingerprint_of_the_request),
		DIALOGUE(a_batch_has_a_result_per_task),
		DIALOGUE(a_batch_may_be_a_bare_list_or_all_wrong),
		DIALOGUE(a_batch_has_at_most_a_thousand_tasks),
		DIALOGUE(a_task_is_shown_whole),
		DIALOGUE(an_error_is_the_workers_own_if_it_is_about_this),
		DIALOGUE(why_says_it_in_words),
		DIALOGUE(the_list_has_the_open_tasks_first_in_claim_order),
		DIALOGUE(the_pages_of_a_list_are_the_list),
		DIALOGUE(a_task_that_ends_while_the_list_is_made_is_listed_once),
		DIALOGUE(a_list_is_made_in_slices),
		DIALOGUE(the_list_is_filtered),
		DIALOGUE(a_wrong_filter_is_named),
		DIALOGUE(a_patch_of_columns_needs_no_look_at_the_text),
		DIALOGUE(a_patch_of_texts_is_merged_into_what_is_there),
		DIALOGUE(metadata_that_is_taken_away_makes_room_for_fields_that_nobody_knows),
		DIALOGUE(what_is_as_deep_as_it_may_be_can_be_patched_in_and_patched_again),
		DIALOGUE(what_is_fixed_at_birth_cannot_be_patched),
		DIALOGUE(a_patch_may_change_time_parents_and_key),
		DIALOGUE(a_patch_moves_by_status_for_the_slot),
		DIALOGUE(a_move_that_cannot_be_made_says_what_to_do),
		DIALOGUE(if_match_is_the_version),
		DIALOGUE(if_match_counts_for_every_command_about_one_task),
		DIALOGUE(a_patch_that_was_overtaken_is_merged_again),
		DIALOGUE(a_version_that_is_known_is_not_sent_again),
		DIALOGUE(operators_commands_are_answered_with_the_task),
		DIALOGUE(a_wrong_move_names_the_state_it_found),
		DIALOGUE(a_cancel_that_waits_for_the_worker_is_accepted),
		DIALOGUE(an_answer_is_a_text_or_a_denial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
