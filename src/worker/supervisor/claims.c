/* What a supervisor asks for: as much as there is room for, of those queues whose turn it is, by a request that waits. */
#include "worker/supervisor/parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/take.h"
#include "worker/beat/text.h"
#include "worker/run/run.h"
#include "attempt/retry.h"

enum {
	POLL_MS = 30 * 1000,
	POLL_SLACK_MS = 15 * 1000,
	CLAIMS_MAX = 100,             /* in one request */
	FINISH_BYTES_MAX = 800 << 10, /* a request has 1 MiB */
	AWAY_MS = 15 * 1000,
	REFUSED_MS = 5 * 1000,
	QUARANTINED_MS = 30 * 1000,
	ONCE_RETRIES = 3, /* after 1, 2 and 4 s */
	CLAIM_LATER_MS = 100,
	DESCRIBE_MS = 5 * 1000, /* between two words of how the pools stand: each is an event */
};

/* How many more of its tasks could be begun at once. What the server has not heard the end of counts: for it we still hold
 * that. */
static uint32_t room_of(const struct supervisor *supervisor, const struct executor *executor)
{
	bool pool = executor->size > 0;
	uint32_t most = pool ? (uint32_t)executor->size : supervisor->options->concurrency;
	uint32_t held = 0;

	if (supervisor->once)
		return supervisor->run_count == 0;
	for (uint32_t i = 0; i < supervisor->run_count; i++)
		held += run_takes_place(supervisor->runs[i], executor);
	uint32_t idle = pool ? pools_room(supervisor->pools, executor) : most,
		 left = most > held ? most - held : 0;
	return left < idle ? left : idle;
}

/* What may be claimed now: executors with room, by their place; and as many tasks as each of them has room for, because
 * nobody knows whose they will be. */
static uint64_t find_offer(const struct supervisor *supervisor, uint32_t *ret_max)
{
	const struct settings *settings = supervisor->settings;
	uint64_t offer = 0;

	*ret_max = outbox_room(supervisor->outbox);
	if (*ret_max > CLAIMS_MAX)
		*ret_max = CLAIMS_MAX;
	if (*ret_max == 0) /* there would be no room to tell how they ended */
		return 0;
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		uint32_t room = room_of(supervisor, &settings->executors[i]);
		if (room == 0)
			continue;
		offer |= UINT64_C(1) << i;
		*ret_max = room < *ret_max ? room : *ret_max;
	}
	return offer;
}

bool supervisor_offers(const struct supervisor *supervisor, const struct executor *executor)
{
	return supervisor->offered >> (executor - supervisor->settings->executors) & 1;
}

/* The executor of its tasks that name none has no room: the queue is left out of this claim. */
static bool queue_is_full(const struct supervisor *supervisor, const struct settings_queue *queue)
{
	const struct executor *executor = settings_queue_executor(supervisor->settings, queue->name);

	return executor && !supervisor_offers(supervisor, executor);
}

static bool may_claim(const struct supervisor *supervisor)
{
	return !supervisor->hearing && supervisor->heartbeat && heartbeat_is_alive(supervisor->heartbeat) &&
		!heartbeat_is_away(supervisor->heartbeat) && supervisor->standing == BEAT_ACTIVE &&
		supervisor->step == SUPERVISOR_SERVING && !supervisor->over &&
		supervisor->run_count < CONCURRENCY_MAX &&
		(!supervisor->once || once_claims(supervisor->once)) &&
		!api_client_is_busy(supervisor->claims) &&
		!uv_is_active((uv_handle_t *)&supervisor->claim_timer);
}

static void on_claim_timer(uv_timer_t *timer)
{
	supervisor_claim(timer->data);
}

static void claim_after(struct supervisor *supervisor, int64_t delay_ms)
{
	uv_timer_start(&supervisor->claim_timer, on_claim_timer, (uint64_t)delay_ms, 0);
}

void supervisor_back_off(struct supervisor *supervisor)
{
	if (!uv_is_active(
		    (uv_handle_t *)&supervisor->claim_timer)) /* of all that came together the first counts */
		claim_after(supervisor, retry_delay_ms(++supervisor->troubles, AWAY_MS, &supervisor->rng));
}

void supervisor_claim_later(void *context)
{
	struct supervisor *supervisor = context;

	if (!uv_is_active((uv_handle_t *)&supervisor->claim_timer))
		claim_after(supervisor, CLAIM_LATER_MS);
}

static void take_claims(struct supervisor *supervisor, yyjson_val *claims)
{
	size_t index, count;
	yyjson_val *claim;

	yyjson_arr_foreach(claims, index, count, claim)
	{
		if (supervisor->run_count == CONCURRENCY_MAX || !run_take(supervisor, claim))
			log_error("a claim could not be taken up; it is given back when its lease is over");
	}
}

/* A pass whose claim is refused ends, and its caller reads why. */
void supervisor_fail_refused(struct supervisor *supervisor, yyjson_val *problem)
{
	const char *detail = yyjson_get_str(yyjson_obj_get(problem, "detail"));
	char error[400];

	snprintf(error, sizeof error, "claims are refused%s%.300s", detail ? ": " : "", detail ? detail : "");
	once_failed(supervisor->once, "failed", error);
}

void supervisor_fail_unanswered(struct supervisor *supervisor, const char *why)
{
	char error[400];

	snprintf(error, sizeof error,
		"the server at %.200s does not answer: %s; start it (stint up), or name another with --url",
		supervisor->options->url, why);
	once_failed(supervisor->once, "failed", error);
}

/* It could have waited longer: an operator has told us something, and the beat will say what. */
static bool is_early(const struct supervisor *supervisor, yyjson_val *claims)
{
	uint64_t waited_ms = uv_now(supervisor->loop) - supervisor->claim_asked_ms;

	return supervisor->claim_waits && yyjson_arr_size(claims) == 0 && waited_ms < POLL_MS / 2;
}

/* Also when the claim itself was refused: what was finished is finished. */
static void hear_finished(struct supervisor *supervisor, yyjson_val *finished)
{
	if (yyjson_is_arr(finished))
		outbox_claim_answered(supervisor->outbox, finished);
	else
		outbox_claim_failed(supervisor->outbox, true);
}

static void hear_claims(struct supervisor *supervisor, int status, const struct http_answer *answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *root = yyjson_doc_get_root(doc);
	const char *code = yyjson_get_str(yyjson_obj_get(root, "code"));
	hear_finished(supervisor, yyjson_obj_get(root, "finished"));
	if (status == 200) {
		supervisor->credential_proved = true;
		supervisor->claim_failures = 0;
		supervisor->request_number++;
		supervisor->asked_one =
			!supervisor->asked_one && yyjson_arr_size(yyjson_obj_get(root, "claims")) == 0;
		if (supervisor->once)
			once_claimed(supervisor->once, yyjson_arr_get_first(yyjson_obj_get(root, "claims")));
		take_claims(supervisor, yyjson_obj_get(root, "claims"));
		if (is_early(supervisor, yyjson_obj_get(root, "claims")))
			heartbeat_hurry(supervisor->heartbeat);
		return;
	}
	if (status == 401 && supervisor_renew_credential(supervisor))
		return;
	if (supervisor->once && status != 429) {
		supervisor_fail_refused(supervisor, root);
		return;
	}
	if (supervisor->claim_failures++ == 0)
		log_warn("claims are refused", log_int("status", status), log_cstr("code", code ? code : ""),
			log_span("reason", json_text(yyjson_obj_get(root, "detail"))));
	supervisor->request_number++;
	if (status == 401 || status == 410)
		heartbeat_hurry(supervisor->heartbeat);
	int64_t asked_ms = retry_after_ms(answer);
	if (code && strcmp(code, "slot_quarantined") == 0)
		asked_ms = QUARANTINED_MS;
	claim_after(supervisor, asked_ms > 0 ? asked_ms : REFUSED_MS);
}

static void on_claims(void *context, int fault, const struct http_answer *answer)
{
	struct supervisor *supervisor = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	assert(!supervisor->hearing);
	supervisor->hearing = true;
	if (status == 0 || status >= 500)
		outbox_claim_failed(supervisor->outbox, false);
	if (status > 0 && status < 500)
		hear_claims(supervisor, status, answer);
	else if (supervisor->once && supervisor->claim_failures >= ONCE_RETRIES)
		supervisor_fail_unanswered(
			supervisor, status > 0 ? "it cannot take claims now" : strerror(-fault));
	else /* the request keeps its number: if it was answered after all, the same claims come again */
		claim_after(
			supervisor, retry_delay_ms(++supervisor->claim_failures, AWAY_MS, &supervisor->rng));
	supervisor->hearing = false;
	supervisor_claim(supervisor);
}

static bool has_queue(const struct supervisor *supervisor)
{
	for (uint32_t i = 0; i < supervisor->settings->queue_count; i++) {
		if (!queue_is_full(supervisor, &supervisor->settings->queues[i]))
			return true;
	}
	return false;
}

/* One queue by its weight, if they have any; else all of them. */
static const struct settings_queue *choose_queue(struct supervisor *supervisor)
{
	const struct settings *settings = supervisor->settings;
	int64_t total = 0;
	bool differ = false;

	for (uint32_t i = 0; i < settings->queue_count; i++) {
		total += settings->queues[i].weight;
		differ |= settings->queues[i].weight != settings->queues[0].weight;
	}
	if (!differ || supervisor->asked_one || supervisor->once)
		return NULL;
	int64_t at = rng_between(&supervisor->rng, 1, total);
	const struct settings_queue *queue = settings->queues;
	while ((at -= queue->weight) > 0)
		queue++;
	return queue_is_full(supervisor, queue) ? NULL : queue;
}

static void put_queues(
	struct supervisor *supervisor, struct json_object *object, const struct settings_queue *only)
{
	struct span names[QUEUES_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < supervisor->settings->queue_count; i++) {
		const struct settings_queue *queue = &supervisor->settings->queues[i];
		if (only ? queue == only : !queue_is_full(supervisor, queue))
			names[count++] = span_of(queue->name);
	}
	if (json_put_key(object, "queues"))
		json_put_strings(object->buf, names, count);
}

/* With what ends first: the answer says what became of it, so that it does not wait for work. */
static int put_claim(struct supervisor *supervisor, const struct settings_queue *only, struct span finish)
{
	/* after trouble one is enough to see whether it is over */
	uint32_t room = supervisor->troubles > 0 ? 1 : supervisor->offered_max;
	struct json_object object;
	char request[40];

	snprintf(request, sizeof request, "%s-%llu", supervisor->instance,
		(unsigned long long)supervisor->request_number);
	buf_clear(&supervisor->body);
	json_begin(&object, &supervisor->body);
	json_member_string(&object, "workerId", heartbeat_worker_id(supervisor->heartbeat));
	put_queues(supervisor, &object, only);
	if (supervisor->options->slot)
		json_member_string(&object, "slot", span_of(supervisor->options->slot));
	supervisor_put_capabilities(supervisor, &object);
	supervisor_put_executors(supervisor, &object, true);
	json_member_int(&object, "max", room);
	supervisor->claim_waits = !only && !supervisor->once && finish.len == 0;
	json_member_int(&object, "waitMs", supervisor->claim_waits ? POLL_MS : 0);
	if (supervisor->once)
		once_put_claim(supervisor->once, &object);
	json_member_string(&object, "requestId", span_of(request));
	if (supervisor->token[0]) /* an open server asks nobody for one */
		json_member_bool(&object, "tokens", true);
	if (finish.len > 0 && json_put_key(&object, "finish")) {
		buf_put_byte(&supervisor->body, '[');
		buf_put_span(&supervisor->body, finish);
		buf_put_byte(&supervisor->body, ']');
	}
	return json_end(&object);
}

static int send_claim(struct supervisor *supervisor, struct span finish)
{
	int r = put_claim(supervisor, choose_queue(supervisor), finish);

	supervisor->claim_asked_ms = uv_now(supervisor->loop);
	if (r < 0)
		return r;
	/* it may be repeated: the server knows it by its number */
	return api_client_post(supervisor->claims, SPAN("/api/claims"), buf_span(&supervisor->body),
		heartbeat_token(supervisor->heartbeat), POLL_MS + POLL_SLACK_MS, on_claims, supervisor);
}

/* Reports that can be sent ride with it, and the places of their runs are free for what comes. */
void supervisor_claim(struct supervisor *supervisor)
{
	cleanup(buf_done) struct buf finish = {0};

	if (!may_claim(supervisor))
		return;
	buf_init(&finish, FINISH_BYTES_MAX);
	if (!supervisor->once) /* a pass makes its result of the answer to its report */
		outbox_send_with_claim(
			supervisor->outbox, heartbeat_worker_id(supervisor->heartbeat), &finish);
	supervisor->offered = find_offer(supervisor, &supervisor->offered_max);
	if (supervisor->offered == 0 || !has_queue(supervisor)) {
		outbox_claim_failed(supervisor->outbox, false);
		return;
	}
	assert(supervisor->offered_max > 0);
	assert(supervisor->step == SUPERVISOR_SERVING);
	assert(!api_client_is_busy(supervisor->claims));
	if (send_claim(supervisor, buf_span(&finish)) < 0) {
		outbox_claim_failed(supervisor->outbox, false);
		claim_after(supervisor, AWAY_MS);
	}
}

void supervisor_drop_claim(struct supervisor *supervisor)
{
	api_client_drop(supervisor->claims);
	outbox_claim_failed(supervisor->outbox, false);
}

/* ---- pools ---- */

/* The claim that waits was made for other room than the pools have now: ask again. The request number is the same, so the server
 * repeats what it may have given to the first one. */
static void renew_claim(struct supervisor *supervisor)
{
	uint32_t most;

	if (supervisor->once || supervisor->step >= SUPERVISOR_WAITING ||
		!api_client_is_busy(supervisor->claims))
		return;
	uint64_t offer = find_offer(supervisor, &most);
	if (offer != supervisor->offered || most < supervisor->offered_max)
		supervisor_drop_claim(supervisor);
}

static void on_pools_changed(uv_timer_t *timer);

/* The server shows how they stand; told in time, but not for every task. */
static void describe_pools(struct supervisor *supervisor)
{
	cleanup(buf_done) struct buf about = {0};
	int64_t now_ms = worker_clock_ms();

	if (supervisor->once || !supervisor->heartbeat || !heartbeat_is_alive(supervisor->heartbeat) ||
		supervisor->step != SUPERVISOR_SERVING)
		return;
	if (now_ms - supervisor->described_ms < DESCRIBE_MS) {
		uv_timer_start(&supervisor->pools_timer, on_pools_changed,
			(uint64_t)(supervisor->described_ms + DESCRIBE_MS - now_ms), 0);
		return;
	}
	buf_init(&about, SUPERVISOR_BODY_BYTES_MAX);
	if (supervisor_put_about(supervisor, &about) == 0 &&
		heartbeat_describe(supervisor->heartbeat, buf_span(&about)) == 0)
		supervisor->described_ms = now_ms;
}

static void on_pools_changed(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;

	renew_claim(supervisor);
	supervisor_claim(supervisor);
	describe_pools(supervisor);
	supervisor_look_for_end(supervisor);
}

void supervisor_pools_changed(void *context)
{
	struct supervisor *supervisor = context;

	if (!uv_is_closing((uv_handle_t *)&supervisor->pools_timer))
		uv_timer_start(
			&supervisor->pools_timer, on_pools_changed, 1, 0); /* not 0: input comes first */
}
