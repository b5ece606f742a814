#include "api_fixture.h"

static struct result standing(enum worker_state state)
{
	return (struct result){
		.worker = {.state = state,
			.token = 7,
			.lease = {60500, 60000},
			.registered_ms = 1,
			.last_beat_ms = 2},
		.event_seq = 4,
	};
}

static void a_registration_describes_the_worker(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/register",
		"{\"workerId\":\"w1\",\"slot\":\"slot-1\",\"capabilities\":[\"gpu\"],\"executors\":[\"shell\"],"
		"\"maxConcurrent\":2,\"leaseMs\":60000,\"metadata\":{\"host\":\"h\"}}");
	const struct command *command = becomes(d, COMMAND_REGISTER);
	const struct command_beat *beat = &command->beat;
	assert_true(is(command->worker, "w1") && is(beat->slot, "slot-1") &&
		is(beat->metadata, "{\"host\":\"h\"}"));
	assert_true(is(beat->capabilities.items[0], "gpu") && is(beat->executors.items[0], "shell"));
	assert_true(beat->describes && !beat->any_executor && !beat->has_token);
	assert_int_equal(beat->max_concurrent, 2);
	assert_int_equal(beat->lease_ms, 60000);
	d->results[0] = standing(WORKER_ACTIVE);
	finish(d);
	reply_is(d, 200);
	assert_true(is(d->call.reply.body,
		"{\"workerId\":\"w1\",\"state\":\"active\",\"token\":\"BwAAAAAAAAA=\",\"leaseMs\":60000}"));
}

static void a_beat_carries_token_and_deltas(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/heartbeat",
		"{\"workerId\":\"w1\",\"token\":\"BwAAAAAAAAA=\",\"leaseMs\":5000,\"boundTasks\":[\"t-1\"],\"unboundTasks\":[\"t-2\"]}");
	const struct command_beat *beat = &becomes(d, COMMAND_BEAT)->beat;
	assert_true(beat->has_token && !beat->describes);
	assert_int_equal(beat->token, 7);
	assert_int_equal(beat->lease_ms, 5000);
	assert_true(is(beat->bound.items[0], "t-1") && is(beat->unbound.items[0], "t-2"));
	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\",\"token\":null,\"slot\":\"slot-1\"}");
	beat = &becomes(d, COMMAND_BEAT)->beat;
	assert_true(!beat->has_token && beat->describes && beat->any_executor);
}

static void a_beat_may_use_the_names_of_the_liveness_protocol(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/heartbeat",
		"{\"workerInstanceKey\":\"w1\",\"leaseDuration\":5000,\"boundActivities\":[\"t-1\"],"
		"\"unboundActivities\":[\"t-2\"]}");
	const struct command *command = becomes(d, COMMAND_BEAT);
	assert_true(is(command->worker, "w1"));
	assert_int_equal(command->beat.lease_ms, 5000);
	assert_true(is(command->beat.bound.items[0], "t-1") && is(command->beat.unbound.items[0], "t-2"));
}

static void a_lease_may_be_told_in_seconds(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/heartbeat", "{\"workerInstanceKey\":\"w1\",\"leaseDuration\":\"60s\"}");
	assert_int_equal(becomes(d, COMMAND_BEAT)->beat.lease_ms, 60000);
	post(d, "/api/workers/heartbeat", "{\"workerInstanceKey\":\"w1\",\"leaseDuration\":\"7.25s\"}");
	assert_int_equal(becomes(d, COMMAND_BEAT)->beat.lease_ms, 7250);
	post(d, "/api/workers/heartbeat", "{\"workerInstanceKey\":\"w1\",\"leaseDuration\":\"0s\"}");
	assert_int_equal(becomes(d, COMMAND_BEAT)->beat.lease_ms, 0);
}

/* 8 bytes, lowest first, in base64; whatever else is shown is no token that anybody has. */
static void a_token_is_opaque(void **state)
{
	static const char *const wrong[] = {"AQID", "AQAAAAAAAA==", "AQAAAAAAAAA", "AQAAAAAAAAAA",
		"AQAAAAAAAAB=", "AQAAAAAAAA*=", "1", "AQAAAAAAAAA=AQAAAAAAAAA="};
	struct dialogue *d = *state;
	char body[128];

	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\",\"token\":\"/v///////38=\"}");
	assert_int_equal(becomes(d, COMMAND_BEAT)->beat.token, UINT64_C(0x7ffffffffffffffe));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(body, sizeof body, "{\"workerId\":\"w1\",\"token\":\"%s\"}", wrong[i]);
		post(d, "/api/workers/heartbeat", body);
		assert_true(becomes(d, COMMAND_BEAT)->beat.has_token);
		assert_int_equal(becomes(d, COMMAND_BEAT)->beat.token, 0);
	}
	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\",\"token\":\"\"}");
	assert_false(becomes(d, COMMAND_BEAT)->beat.has_token);
}

static void a_beat_is_answered_with_token_losses_and_commands(void **state)
{
	struct dialogue *d = *state;
	struct span lost[] = {SPAN("t-8")}, stop[] = {SPAN("t-1"), SPAN("t-2")};

	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\"}");
	d->results[0] = standing(WORKER_QUIET);
	d->results[0].lost = lost;
	d->results[0].lost_count = 1;
	d->results[0].stop = stop;
	d->results[0].stop_count = 2;
	finish(d);
	reply_is(d, 200);
	assert_true(is(d->call.reply.body,
		"{\"workerId\":\"w1\",\"state\":\"quiet\",\"token\":\"BwAAAAAAAAA=\",\"leaseMs\":60000,\"lost\":[\"t-8\"],"
		"\"commands\":[{\"type\":\"cancel\",\"task\":\"t-1\"},{\"type\":\"cancel\",\"task\":\"t-2\"},"
		"{\"type\":\"quiet\"}]}"));
	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\"}");
	d->results[0] = standing(WORKER_TERMINATING);
	finish(d);
	reply_says(d, "\"lost\":[],\"commands\":[{\"type\":\"terminate\"}]}");
}

static void a_wrong_token_is_told_the_current_one(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\",\"token\":\"BgAAAAAAAAA=\"}");
	d->results[0] = standing(WORKER_ACTIVE);
	d->results[0].refusal = REFUSED_TOKEN_MISMATCH;
	finish(d);
	refused_with(d, 409, "TOKEN_MISMATCH");
	reply_says(d, "\"token\":\"BwAAAAAAAAA=\"");
	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w1\",\"token\":\"BgAAAAAAAAA=\"}");
	d->results[0] = standing(WORKER_INACTIVE);
	d->results[0].refusal = REFUSED_WORKER_INACTIVE;
	finish(d);
	refused_with(d, 410, "WORKER_INACTIVE");
	reply_hides(d, "\"token\"");
}

static void a_taken_slot_names_who_fills_it(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/register", "{\"workerId\":\"w2\",\"slot\":\"slot-1\"}");
	d->results[0] = (struct result){.refusal = REFUSED_SLOT_TAKEN, .slot_holder = SPAN("w1")};
	finish(d);
	refused_with(d, 409, "slot_taken");
	reply_says(d, "\"holder\":\"w1\"");
}

static const struct {
	const char *url, *body, *field;
} invalid[] = {
	{"/api/workers/register", NULL, "workerId"},
	{"/api/workers/register", "{\"workerId\":\"w\",\"token\":\"1\"}", "token"},
	{"/api/workers/register", "{\"workerId\":\"w\",\"maxConcurrent\":-1}", "maxConcurrent"},
	{"/api/workers/register", "{\"workerId\":\"w\",\"metadata\":[]}", "metadata"},
	{"/api/workers/register", "{\"workerId\":\"w\",\"capabilities\":[\"\"]}", "capabilities"},
	{"/api/workers/heartbeat", "{}", "workerId"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"workerInstanceKey\":\"v\"}", "workerInstanceKey"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"token\":7}", "token"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseMs\":5000,\"leaseDuration\":5000}",
		"leaseDuration"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseDuration\":\"60\"}", "leaseDuration"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseDuration\":\".5s\"}", "leaseDuration"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseDuration\":\"-1s\"}", "leaseDuration"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseDuration\":\"1234567890123s\"}",
		"leaseDuration"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseDuration\":[]}", "leaseDuration"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseMs\":9223372036854775808}", "leaseMs"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"leaseMs\":-1}", "leaseMs"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"boundTasks\":\"t\"}", "boundTasks"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"boundTasks\":[\"a\"],\"boundActivities\":[\"b\"]}",
		"boundActivities"},
	{"/api/workers/heartbeat",
		"{\"workerId\":\"w\",\"unboundTasks\":[\"a\"],\"unboundActivities\":[\"b\"]}",
		"unboundActivities"},
	{"/api/workers/heartbeat", "{\"workerId\":\"w\",\"cpu\":1}", "cpu"},
	{"/api/workers/w1/quiet", "{\"now\":1}", "now"},
	{"/api/slots/s/crash", "{\"now\":1}", "now"},
	{"/api/slots/s/enter", "{\"now\":1}", "now"},
	{"/api/slots/s/enter", "{}", "workerId"},
};

static void every_wrong_field_of_a_worker_is_named(void **state)
{
	struct dialogue *d = *state;

	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		post(d, invalid[i].url, invalid[i].body);
		refuses_field(d, invalid[i].field);
	}
}

static void workers_are_shown(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/workers");
	reply_is(d, 200);
	reply_says(d,
		"[{\"workerId\":\"w1\",\"state\":\"active\",\"slot\":\"slot-1\",\"capabilities\":[],\"maxConcurrent\":2,\"held\":0");
	reply_hides(d, "plain");
	get(d, "/api/workers/w1");
	reply_is(d, 200);
	get(d, "/api/workers/w9");
	refused_with(d, 404, "not_found");
}

static void workers_are_sent_away(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/w1/quiet", NULL);
	assert_true(is(becomes(d, COMMAND_QUIET)->worker, "w1"));
	post(d, "/api/workers/w1/terminate", NULL);
	becomes(d, COMMAND_TERMINATE);
	d->results[0] = standing(WORKER_TERMINATING);
	finish(d);
	reply_is(d, 200);
	reply_says(d, "\"state\":\"terminating\"");
	say(d, HTTP_METHOD_DELETE, "/api/workers/w1", NULL);
	assert_int_equal(becomes(d, COMMAND_LEAVE)->leave, WORKER_SHUTDOWN);
	d->results[0] = (struct result){.refusal = REFUSED_NOT_FOUND};
	finish(d);
	refused_with(d, 404, "not_found");
}

static void only_an_operator_terminates_a_worker(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_DELETE, "/api/workers/w1?how=terminated", NULL);
	assert_int_equal(becomes(d, COMMAND_LEAVE)->leave, WORKER_TERMINATED);
	say(d, HTTP_METHOD_DELETE, "/api/workers/w1?how=gently", NULL);
	refuses_field(d, "how");
	d->call.who.scopes = SCOPE_BIT(SCOPE_WORK);
	say(d, HTTP_METHOD_DELETE, "/api/workers/w1?how=terminated", NULL);
	refused_with(d, 403, "forbidden");
}

static void a_worker_says_which_process_it_is_and_which_one_is_dead(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/register",
		"{\"workerId\":\"w2\",\"slot\":\"slot-1\",\"host\":\"h\",\"bootId\":\"01234567-89ab-cdef-FEDC-ba9876543210\","
		"\"pid\":20,\"startTime\":5,\"replaces\":{\"workerId\":\"w1\",\"pid\":10,\"startTime\":4}}");
	const struct command_beat *beat = &becomes(d, COMMAND_REGISTER)->beat;
	assert_true(is(beat->process.host, "h"));
	assert_int_equal(beat->process.boot_hi, 0x0123456789abcdef);
	assert_int_equal(beat->process.boot_lo, 0xfedcba9876543210);
	assert_int_equal(beat->process.pid, 20);
	assert_int_equal(beat->process.start, 5);
	assert_true(is(beat->replaces.worker, "w1"));
	assert_int_equal(beat->replaces.pid, 10);
	assert_int_equal(beat->replaces.start, 4);
	assert_false(beat->replaces.seen_alive);
}

static void what_a_worker_says_of_its_process_is_checked(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/workers/register", "{\"workerId\":\"w\",\"bootId\":\"0123\"}");
	refuses_field(d, "bootId");
	post(d, "/api/workers/register",
		"{\"workerId\":\"w\",\"bootId\":\"0123456789abcdef0123456789abcdex\"}");
	refuses_field(d, "bootId");
	post(d, "/api/workers/register", "{\"workerId\":\"w\",\"pid\":0}");
	refuses_field(d, "pid");
	post(d, "/api/workers/register", "{\"workerId\":\"w\",\"startTime\":-1}");
	refuses_field(d, "startTime");
	post(d, "/api/workers/register", "{\"workerId\":\"w\",\"replaces\":\"w1\"}");
	refuses_field(d, "replaces");
	post(d, "/api/workers/register",
		"{\"workerId\":\"w\",\"slot\":\"s\",\"replaces\":{\"workerId\":\"w1\",\"pid\":1,\"startTime\":1}}");
	refuses_field(d, "replaces");
	post(d, "/api/workers/heartbeat", "{\"workerId\":\"w\",\"replaces\":{\"pid\":1}}");
	refuses_field(d, "replaces.workerId");
}

static void a_word_that_was_not_believed_is_told_why(void **state)
{
	struct dialogue *d = *state;

	for (int evidence = EVIDENCE_NONE; evidence <= EVIDENCE_REFUTED; evidence++) {
		post(d, "/api/workers/register", "{\"workerId\":\"w2\",\"slot\":\"s\"}");
		d->results[0] = (struct result){.refusal = REFUSED_SLOT_TAKEN,
			.slot_holder = SPAN("w1"),
			.evidence = (enum evidence)evidence};
		finish(d);
		refused_with(d, 409, "slot_taken");
		reply_says(d, "\"detail\"");
	}
	reply_says(d, "is alive");
}

static void slots_crash_and_are_let_run_again(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/slots/slot-1/crash", NULL);
	assert_true(is(becomes(d, COMMAND_SLOT_CRASH)->slot, "slot-1"));
	d->results[0] = (struct result){.event_seq = 4};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"name\":\"slot-1\",\"state\":\"quarantined\"");
	post(d, "/api/slots/slot-2/crash", NULL);
	finish(d);
	reply_says(d, "{\"name\":\"slot-2\",\"state\":\"empty\"");
	post(d, "/api/slots/slot-1/unquarantine", NULL);
	assert_true(is(becomes(d, COMMAND_UNQUARANTINE)->slot, "slot-1"));
	d->call.who.scopes = SCOPE_BIT(SCOPE_WORK);
	post(d, "/api/slots/slot-1/unquarantine", NULL);
	refused_with(d, 403, "forbidden");
}

static void a_crash_may_have_a_key(void **state)
{
	struct dialogue *d = *state;
	unsigned char first[16];

	post(d, "/api/slots/slot-1/crash", "{}");
	assert_int_equal(becomes(d, COMMAND_SLOT_CRASH)->crash_key.len, 0);
	d->request.idempotency_key = SPAN("w1-crash");
	post(d, "/api/slots/slot-1/crash", "{}");
	assert_true(is(becomes(d, COMMAND_SLOT_CRASH)->crash_key, "w1-crash"));
	memcpy(first, d->call.commands[0].crash_fingerprint, 16);
	d->results[0] = (struct result){.repeated = true};
	finish(d);
	reply_is(d, 200);
	post(d, "/api/slots/slot-2/crash", "{}");
	assert_memory_not_equal(first, d->call.commands[0].crash_fingerprint, 16);
	d->results[0] = (struct result){.refusal = REFUSED_IDEMPOTENCY_CONFLICT};
	finish(d);
	refused_with(d, 422, "idempotency_conflict");
	d->request.idempotency_key = SPAN("a\tb");
	post(d, "/api/slots/slot-1/crash", "{}");
	refuses_field(d, "Idempotency-Key");
}

static void whoever_wants_to_run_in_a_slot_says_who_it_is(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/slots/host%2Fp-1/enter", "{\"workerId\":\"w\"}");
	assert_true(is(becomes(d, COMMAND_SLOT_ENTER)->slot, "host/p-1"));
	assert_true(is(becomes(d, COMMAND_SLOT_ENTER)->worker, "w"));
	finish(d);
	reply_is(d, 200);
	post(d, "/api/slots/s/enter", "{\"workerId\":\"w\"}");
	d->results[0] = (struct result){.refusal = REFUSED_SLOT_QUARANTINED};
	finish(d);
	refused_with(d, 409, "slot_quarantined");
}

static void slots_are_of_no_certain_queue(void **state)
{
	struct dialogue *d = *state;
	static const struct span queue = {"q", 1};

	get(d, "/api/slots");
	reply_says(d, "slot-1");
	d->call.who.queues = (struct name_list){&queue, 1};
	get(d, "/api/slots");
	reply_is(d, 200);
	assert_true(is(d->call.reply.body, "[]"));
}

static void news_are_told_at_once_or_waited_for(void **state)
{
	struct dialogue *d = *state;
	struct arena small;

	assert_int_equal(get(d, "/api/workers/w1/news"), 200);
	reply_says(d, "{\"workerId\":\"w1\",\"news\":true,\"seq\":");
	get(d, "/api/workers/w1/news?after=2&waitMs=0");
	reply_says(d, "\"news\":false");
	assert_int_equal(say(d, HTTP_METHOD_HEAD, "/api/workers/w1/news?after=2&waitMs=9", NULL), API_REPLY);
	assert_int_equal(
		say(d, HTTP_METHOD_GET, "/api/workers/w1/news?after=2&waitMs=60000", NULL), API_NEWS);
	assert_int_equal(d->call.wait_ms, 60000);
	arena_init(&small, 1 << 20);
	assert_int_equal(api_compact(&d->call, &small), 0);
	arena_done(&d->arena);
	d->arena = small;
	assert_in_range(small.held, 1, 256);
	assert_true(is(d->call.news_of, "w1") && is(d->call.who.name, "alice"));
	api_finish_news(&d->call, true);
	record_reply(d);
	reply_is(d, 200);
	reply_says(d, "{\"workerId\":\"w1\",\"news\":true,\"seq\":");
}

static void news_are_for_the_worker_itself(void **state)
{
	struct dialogue *d = *state;

	d->call.who.worker = SPAN("w2");
	assert_int_equal(get(d, "/api/workers/w1/news"), 404);
	d->call.who.worker = SPAN("w1");
	assert_int_equal(get(d, "/api/workers/w1/news"), 200);
	d->call.who.number = 7;
	assert_int_equal(get(d, "/api/workers/w1/news"), 404);
	d->call.who.number = 0;
	get(d, "/api/workers/w1/news?waitMs=60001");
	refuses_field(d, "waitMs");
	get(d, "/api/workers/w1/news?after=now");
	refuses_field(d, "after");
	d->call.who.scopes = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_OPERATE);
	get(d, "/api/workers/w1/news");
	refused_with(d, 403, "forbidden");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_registration_describes_the_worker),
		DIALOGUE(a_beat_carries_token_and_deltas),
		DIALOGUE(a_beat_may_use_the_names_of_the_liveness_protocol),
		DIALOGUE(a_lease_may_be_told_in_seconds),
		DIALOGUE(a_token_is_opaque),
		DIALOGUE(a_beat_is_answered_with_token_losses_and_commands),
		DIALOGUE(a_wrong_token_is_told_the_current_one),
		DIALOGUE(a_taken_slot_names_who_fills_it),
		DIALOGUE(every_wrong_field_of_a_worker_is_named),
		DIALOGUE(workers_are_shown),
		DIALOGUE(workers_are_sent_away),
		DIALOGUE(only_an_operator_terminates_a_worker),
		DIALOGUE(a_worker_says_which_process_it_is_and_which_one_is_dead),
		DIALOGUE(what_a_worker_says_of_its_process_is_checked),
		DIALOGUE(a_word_that_was_not_believed_is_told_why),
		DIALOGUE(slots_crash_and_are_let_run_again),
		DIALOGUE(a_crash_may_have_a_key),
		DIALOGUE(whoever_wants_to_run_in_a_slot_says_who_it_is),
		DIALOGUE(slots_are_of_no_certain_queue),
		DIALOGUE(news_are_told_at_once_or_waited_for),
		DIALOGUE(news_are_for_the_worker_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
