#include "worker/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/service.h"
#include "base/take.h"
#include "exec/proc.h"
#include "wire/json.h"
#include "worker/beat_text.h"
#include "worker/run.h"
#include "worker/worktrees.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	BODY_BYTES_MAX = 64 << 10,
	POLL_MS = 30 * 1000,
	POLL_SLACK_MS = 15 * 1000,
	CLAIMS_MAX = 100, /* in one request */
	AWAY_MS = 15 * 1000,
	REFUSED_MS = 5 * 1000,
	QUARANTINED_MS = 30 * 1000,
	INHERITANCE_MS = 30 * 1000, /* how long what a predecessor left may keep us from registering */
	LEAVE_MS = 3 * 1000,
	REPORTS_MS = 10 * 1000, /* for the last reports, after everything has ended */
	KILL_SLACK_MS = 15 * 1000,
	ONCE_RETRIES = 3,     /* after 1, 2 and 4 s */
	GRACE_OVER_MS = 2000, /* for work that is somebody else's by now */
	POOL_DRAIN_MS = 5 * 1000,
	DESCRIBE_MS = 5 * 1000, /* between two words of how the pools stand: each is an event */
	EXIT_UNAVAILABLE = 69,
	EXIT_TEMPORARY = 75,
	EXIT_NO_PERMISSION = 77,
	EXIT_CONFIG = 78,
};

static void claim_more(struct supervisor *supervisor);
static void look_for_end(struct supervisor *supervisor);
static void begin_pulse(struct supervisor *supervisor);
static int put_about(struct supervisor *supervisor, struct buf *about);

/* ---- runs --------------------------------------------------------------------------------------------------- */

bool supervisor_has_other(const struct supervisor *supervisor, const struct run *run)
{
	for (uint32_t i = 0; i < supervisor->run_count; i++) {
		if (supervisor->runs[i] != run && span_equal(run_task(supervisor->runs[i]), run_task(run)))
			return true;
	}
	return false;
}

/* The newest of that task: an older one is on its way out. */
static struct run *find_newest(const struct supervisor *supervisor, struct span task)
{
	struct run *found = NULL;

	for (uint32_t i = 0; i < supervisor->run_count; i++) {
		struct run *run = supervisor->runs[i];
		if (span_equal(run_task(run), task) && (!found || run_number(run) > run_number(found)))
			found = run;
	}
	return found;
}

static void stop_all(struct supervisor *supervisor, enum stop_reason reason, int64_t grace_ms)
{
	/* from the end: a run that has no process yet may be over at once */
	for (uint32_t i = supervisor->run_count; i > 0; i--)
		run_stop(supervisor->runs[i - 1], reason, grace_ms);
}

void supervisor_forget(struct supervisor *supervisor, struct run *run)
{
	uint32_t i = 0;

	while (supervisor->runs[i] != run)
		i++;
	supervisor->runs[i] = supervisor->runs[--supervisor->run_count];
	run_free(run);
	if (supervisor->once)
		once_run_over(supervisor->once);
	look_for_end(supervisor);
	claim_more(supervisor);
}

static void on_settled(void *context, const char *name, int status, struct span code, struct span body)
{
	struct supervisor *supervisor = context;

	if (pools_settled(supervisor->pools, name, status, body)) {
		look_for_end(supervisor);
		return;
	}
	if (status >= 300 && !supervisor->once) /* a pass says in its result what became of it */
		log_warn("a report was refused; the server keeps what is late", log_cstr("run", name),
			log_int("status", status), log_span("code", code));
	for (uint32_t i = 0; i < supervisor->run_count; i++) {
		if (strcmp(run_name(supervisor->runs[i]), name) == 0) {
			if (supervisor->once)
				once_settled(supervisor->once, status, body);
			run_settled(supervisor->runs[i]);
			return;
		}
	}
	if (!supervisor->pulse && outbox_waiting(supervisor->outbox) == 0)
		begin_pulse(supervisor);
	look_for_end(supervisor);
}

/* ---- claiming ------------------------------------------------------------------------------------------------ */

/* How many more of its tasks could be begun at once. What the server has not heard the end of counts: for it we still hold
 * that. */
static uint32_t room_of(const struct supervisor *supervisor, const struct executor *executor)
{
	bool pool = executor->size > 0;
	uint32_t most = pool ? (uint32_t)executor->size : supervisor->options->concurrency;
	uint32_t held = 0;

	if (supervisor->once)
		return supervisor->run_count == 0;
	for (uint32_t i = 0; i < supervisor->run_count; i++) {
		const struct executor *its = run_executor(supervisor->runs[i]);
		held += pool ? its == executor : !its || its->size == 0;
	}
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

	*ret_max = CLAIMS_MAX;
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		uint32_t room = room_of(supervisor, &settings->executors[i]);
		if (room == 0)
			continue;
		offer |= UINT64_C(1) << i;
		*ret_max = room < *ret_max ? room : *ret_max;
	}
	return offer;
}

static bool is_offered(const struct supervisor *supervisor, const struct executor *executor)
{
	return supervisor->offered >> (executor - supervisor->settings->executors) & 1;
}

/* Whoever runs its tasks that name nobody has no room: it is left out for now. */
static bool queue_is_full(const struct supervisor *supervisor, const struct settings_queue *queue)
{
	const struct executor *executor = settings_fallback(supervisor->settings, queue->name);

	return executor && !is_offered(supervisor, executor);
}

static bool may_claim(const struct supervisor *supervisor)
{
	uint32_t most;

	return supervisor->pulse && pulse_is_alive(supervisor->pulse) && !pulse_is_away(supervisor->pulse) &&
		supervisor->standing == BEAT_ACTIVE && !supervisor->stopping && !supervisor->over &&
		supervisor->run_count < CONCURRENCY_MAX && find_offer(supervisor, &most) != 0 &&
		(!supervisor->once || once_claims(supervisor->once)) && !line_is_busy(supervisor->claims) &&
		!uv_is_active((uv_handle_t *)&supervisor->claim_timer);
}

static void on_claim_timer(uv_timer_t *timer)
{
	claim_more(timer->data);
}

static void claim_after(struct supervisor *supervisor, int64_t delay_ms)
{
	uv_timer_start(&supervisor->claim_timer, on_claim_timer, (uint64_t)delay_ms, 0);
}

void supervisor_spare(struct supervisor *supervisor)
{
	if (!uv_is_active(
		    (uv_handle_t *)&supervisor->claim_timer)) /* of all that came together the first counts */
		claim_after(supervisor, retry_delay_ms(++supervisor->troubles, AWAY_MS, &supervisor->rng));
}

static void take_claims(struct supervisor *supervisor, yyjson_val *claims)
{
	size_t index, count;
	yyjson_val *claim;

	yyjson_arr_foreach(claims, index, count, claim)
	{
		struct run *run = supervisor->run_count < CONCURRENCY_MAX ? run_new(supervisor, claim) : NULL;
		if (run)
			supervisor->runs[supervisor->run_count++] = run;
		else
			log_error("a claim could not be taken up; it is given back when its lease is over");
	}
}

/* A pass that cannot be made ends: whoever called it shall know. */
static void fail_once(struct supervisor *supervisor, yyjson_val *root, const char *otherwise)
{
	const char *detail = yyjson_get_str(yyjson_obj_get(root, "detail"));
	char error[400];

	snprintf(error, sizeof error, "%s%s%.300s", otherwise, detail ? ": " : "", detail ? detail : "");
	once_failed(supervisor->once, "failed", error);
}

static void hear_claims(struct supervisor *supervisor, int status, const struct http_answer *answer)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(http_answer_body(answer), &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);
	const char *code = yyjson_get_str(yyjson_obj_get(root, "code"));

	if (status == 200) {
		supervisor->claim_failures = 0;
		supervisor->request_number++;
		supervisor->asked_one =
			!supervisor->asked_one && yyjson_arr_size(yyjson_obj_get(root, "claims")) == 0;
		if (supervisor->once)
			once_claimed(supervisor->once, yyjson_arr_get_first(yyjson_obj_get(root, "claims")));
		take_claims(supervisor, yyjson_obj_get(root, "claims"));
		return;
	}
	if (supervisor->once && status != 429) {
		fail_once(supervisor, root, "claims are refused");
		return;
	}
	if (supervisor->claim_failures++ == 0)
		log_warn("claims are refused", log_int("status", status), log_cstr("code", code ? code : ""));
	supervisor->request_number++;
	if (status == 401 || status == 410)
		pulse_hurry(supervisor->pulse);
	int64_t asked_ms = retry_after_ms(answer);
	if (code && strcmp(code, "slot_quarantined") == 0)
		asked_ms = QUARANTINED_MS;
	claim_after(supervisor, asked_ms > 0 ? asked_ms : REFUSED_MS);
}

static void on_claims(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct supervisor *supervisor = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	(void)reach;
	if (status > 0 && status < 500)
		hear_claims(supervisor, status, answer);
	else if (supervisor->once && supervisor->claim_failures >= ONCE_RETRIES)
		fail_once(supervisor, NULL, "the server does not answer");
	else /* the request keeps its number: if it was answered after all, the same claims come again */
		claim_after(
			supervisor, retry_delay_ms(++supervisor->claim_failures, AWAY_MS, &supervisor->rng));
	claim_more(supervisor);
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
static const struct settings_queue *queue_of_turn(struct supervisor *supervisor)
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

/* "key":["a","b"] */
static void put_name(struct json_object *object, struct buf *list, const char *name)
{
	int r = buf_put_byte(list, list->len > 0 ? ',' : '[');

	if (r == 0)
		r = json_put_string(list, span_of(name));
	if (r < 0 && object->fault == 0)
		object->fault = r;
}

static void put_list(struct json_object *object, const char *key, struct buf *list)
{
	int r = list->len > 0 ? buf_put_byte(list, ']') : buf_put_span(list, SPAN("[]"));

	if (r == 0)
		json_member_raw(object, key, buf_span(list));
	else if (object->fault == 0)
		object->fault = r;
}

/* All that it has, or those with room. */
static void put_executors(struct supervisor *supervisor, struct json_object *object, bool offered)
{
	cleanup(buf_done) struct buf list = {0};

	buf_init(&list, BODY_BYTES_MAX);
	for (uint32_t i = 0; i < supervisor->settings->executor_count; i++) {
		if (!offered || is_offered(supervisor, &supervisor->settings->executors[i]))
			put_name(object, &list, supervisor->settings->executors[i].name);
	}
	put_list(object, "executors", &list);
}

static void put_capabilities(struct supervisor *supervisor, struct json_object *object)
{
	cleanup(buf_done) struct buf list = {0};

	if (supervisor->options->capability_count == 0)
		return;
	buf_init(&list, BODY_BYTES_MAX);
	for (uint32_t i = 0; i < supervisor->options->capability_count; i++)
		put_name(object, &list, supervisor->options->capabilities[i]);
	put_list(object, "capabilities", &list);
}

static void put_queues(
	struct supervisor *supervisor, struct json_object *object, const struct settings_queue *only)
{
	cleanup(buf_done) struct buf list = {0};

	buf_init(&list, BODY_BYTES_MAX);
	for (uint32_t i = 0; !only && i < supervisor->settings->queue_count; i++) {
		if (!queue_is_full(supervisor, &supervisor->settings->queues[i]))
			put_name(object, &list, supervisor->settings->queues[i].name);
	}
	if (only)
		put_name(object, &list, only->name);
	put_list(object, "queues", &list);
}

static int put_claim(struct supervisor *supervisor, const struct settings_queue *only)
{
	/* after trouble one is enough to see whether it is over */
	uint32_t room = supervisor->troubles > 0 ? 1 : supervisor->offered_max;
	struct json_object object;
	char request[40];

	snprintf(request, sizeof request, "%s-%llu", supervisor->instance,
		(unsigned long long)supervisor->request_number);
	buf_clear(&supervisor->body);
	json_begin(&object, &supervisor->body);
	json_member_string(&object, "workerId", pulse_worker_id(supervisor->pulse));
	put_queues(supervisor, &object, only);
	if (supervisor->options->slot)
		json_member_string(&object, "slot", span_of(supervisor->options->slot));
	put_capabilities(supervisor, &object);
	put_executors(supervisor, &object, true);
	json_member_int(&object, "max", room);
	json_member_int(&object, "waitMs", only || supervisor->once ? 0 : POLL_MS);
	if (supervisor->once)
		once_put_claim(supervisor->once, &object);
	json_member_string(&object, "requestId", span_of(request));
	return json_end(&object);
}

static void claim_more(struct supervisor *supervisor)
{
	if (!may_claim(supervisor))
		return;
	supervisor->offered = find_offer(supervisor, &supervisor->offered_max);
	if (!has_queue(supervisor))
		return;
	int r = put_claim(supervisor, queue_of_turn(supervisor));
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = SPAN("/api/claims"),
		.body = buf_span(&supervisor->body),
		.token = pulse_token(supervisor->pulse),
		.may_repeat = true, /* by its number */
		.timeout_ms = POLL_MS + POLL_SLACK_MS,
	};
	if (r == 0)
		r = line_call(supervisor->claims, &call, on_claims, supervisor);
	if (r < 0)
		claim_after(supervisor, AWAY_MS);
}

/* ---- pools -------------------------------------------------------------------------------------------------------- */

/* What waits was asked for when they stood otherwise: ask again. The same number makes the server repeat what it may have
 * given meanwhile. */
static void renew_claim(struct supervisor *supervisor)
{
	uint32_t most;
	uint64_t offer = find_offer(supervisor, &most);

	if (supervisor->once || !line_is_busy(supervisor->claims) || supervisor->leaving)
		return;
	if (offer != supervisor->offered || most < supervisor->offered_max)
		line_drop(supervisor->claims);
}

static void on_pools_changed(uv_timer_t *timer);

/* The server shows how they stand; told in time, but not for every task. */
static void describe_pools(struct supervisor *supervisor)
{
	cleanup(buf_done) struct buf about = {0};
	int64_t now_ms = worker_clock_ms();

	if (supervisor->once || !supervisor->pulse || !pulse_is_alive(supervisor->pulse) ||
		supervisor->stopping)
		return;
	if (now_ms - supervisor->described_ms < DESCRIBE_MS) {
		uv_timer_start(&supervisor->pools_timer, on_pools_changed,
			(uint64_t)(supervisor->described_ms + DESCRIBE_MS - now_ms), 0);
		return;
	}
	buf_init(&about, BODY_BYTES_MAX);
	if (put_about(supervisor, &about) == 0 && pulse_describe(supervisor->pulse, buf_span(&about)) == 0)
		supervisor->described_ms = now_ms;
}

static void on_pools_changed(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;

	renew_claim(supervisor);
	claim_more(supervisor);
	describe_pools(supervisor);
	look_for_end(supervisor);
}

void supervisor_pools_changed(struct supervisor *supervisor)
{
	if (!uv_is_closing((uv_handle_t *)&supervisor->pools_timer))
		uv_timer_start(
			&supervisor->pools_timer, on_pools_changed, 1, 0); /* not 0: input comes first */
}

/* ---- stopping ------------------------------------------------------------------------------------------------- */

static void close_walked(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Nothing runs and nothing is to be said: the handles close and the loop ends. */
static void close_all(struct supervisor *supervisor)
{
	pulse_free(supervisor->pulse);
	supervisor->pulse = NULL;
	outbox_free(supervisor->outbox);
	supervisor->outbox = NULL;
	line_free(supervisor->claims);
	supervisor->claims = NULL;
	if (supervisor->once)
		supervisor->status = once_close(supervisor->once);
	pools_close(supervisor->pools);
	host_close(supervisor->host);
	supervisor->host = NULL;
	uv_close((uv_handle_t *)&supervisor->pools_timer, NULL);
	uv_close((uv_handle_t *)&supervisor->drain_timer, NULL);
	uv_close((uv_handle_t *)&supervisor->claim_timer, NULL);
	uv_close((uv_handle_t *)&supervisor->stop_timer, NULL);
	uv_close((uv_handle_t *)&supervisor->watchdog, NULL);
	uv_close((uv_handle_t *)&supervisor->term, NULL);
	uv_close((uv_handle_t *)&supervisor->interrupt, NULL);
}

static void on_goodbye(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	(void)fault;
	(void)reach;
	(void)answer;
	close_all(context);
}

static void on_left(uv_timer_t *timer)
{
	close_all(timer->data);
}

static void leave(struct supervisor *supervisor)
{
	cleanup(buf_done) struct buf target = {0};
	bool known = supervisor->pulse && pulse_is_alive(supervisor->pulse);

	supervisor->leaving = true;
	uv_timer_stop(&supervisor->stop_timer);
	line_drop(supervisor->claims);
	if (supervisor->once) { /* it was never registered; and the outbox may have called us */
		uv_timer_start(&supervisor->stop_timer, on_left, 0, 0);
		return;
	}
	buf_init(&target, 1024);
	int r = http_put_path(&target, "/api/workers/", span_of(supervisor->worker_id), "");
	struct http_call call = {
		.method = HTTP_METHOD_DELETE,
		.target = buf_span(&target),
		.token = supervisor->options->token ? span_of(supervisor->options->token) : (struct span){0},
		.timeout_ms = LEAVE_MS,
	};
	if (r < 0 || !known || line_call(supervisor->claims, &call, on_goodbye, supervisor) < 0)
		close_all(supervisor);
}

static void on_reports_due(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;

	log_warn("the server does not take the last reports; they are sent by the next worker in this home",
		log_int("reports", outbox_waiting(supervisor->outbox)));
	leave(supervisor);
}

/* Whatever was waiting for the last run. */
static void look_for_end(struct supervisor *supervisor)
{
	if (supervisor->run_count > 0 || supervisor->leaving ||
		(supervisor->once && once_is_looking(supervisor->once)))
		return;
	if (supervisor->stopping && !pools_are_gone(supervisor->pools)) {
		pools_retire(supervisor->pools);
		return; /* supervisor_pools_changed() comes */
	}
	if (supervisor->stopping && outbox_waiting(supervisor->outbox) == 0) {
		leave(supervisor);
	} else if (supervisor->over && !supervisor->stopping) {
		supervisor->over = false;
		snprintf(supervisor->worker_id, sizeof supervisor->worker_id, "%.100s-%.8s-%llu",
			supervisor->options->name, supervisor->instance,
			(unsigned long long)++supervisor->run_number);
		log_info("coming back under another id", log_cstr("worker", supervisor->worker_id));
		nest_note_worker(&supervisor->nest, supervisor->worker_id);
		pulse_renew(supervisor->pulse, span_of(supervisor->worker_id));
	}
}

/* Everything is gone and the server is away: what there is to say is on disk. Or something could not be killed: a disk
 * that does not answer, a bug of ours; shims and the next worker do the rest. */
static void on_stop_failed(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;
	struct host_facts facts;

	host_describe(supervisor->host, &facts);
	log_at(facts.processes > 0 ? LEVEL_ERROR : LEVEL_WARN,
		facts.processes > 0
			? "not everything could be stopped in time"
			: "the server does not take the last reports; the next worker here sends them",
		log_int("processes", facts.processes),
		log_int("reports", outbox_waiting(supervisor->outbox)));
	nest_close(&supervisor->nest, facts.processes == 0);
	_exit(facts.processes > 0 ? 1 : supervisor->status);
}

static void hurry(struct supervisor *supervisor)
{
	supervisor->hurrying = true;
	stop_all(supervisor, STOP_SHUTDOWN, INT64_MAX);
	if (supervisor->leaving)
		return;
	int64_t grace_ms = 0;
	for (uint32_t i = 0; i < supervisor->settings->executor_count; i++) {
		int64_t its_ms = supervisor->settings->executors[i].grace_ms;
		grace_ms = its_ms > grace_ms ? its_ms : grace_ms;
	}
	if (supervisor->run_count > 0 || !pools_are_gone(supervisor->pools))
		uv_timer_start(
			&supervisor->stop_timer, on_stop_failed, (uint64_t)(grace_ms + KILL_SLACK_MS), 0);
	else
		uv_timer_start(&supervisor->stop_timer, on_reports_due, REPORTS_MS, 0);
}

static void on_drained(uv_timer_t *timer)
{
	hurry(timer->data);
}

/* Workers of pools keep nobody waiting for as long as a command may. */
static void on_pools_drained(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;

	for (uint32_t i = supervisor->run_count; i > 0; i--) {
		if (run_is_pooled(supervisor->runs[i - 1]))
			run_stop(supervisor->runs[i - 1], STOP_SHUTDOWN, INT64_MAX);
	}
}

/* No new claims; what runs may end within its time. */
static void begin_stop(struct supervisor *supervisor, int status)
{
	if (supervisor->stopping)
		return;
	supervisor->stopping = true;
	supervisor->status = status;
	service_tell("STOPPING=1");
	log_info("stopping", log_int("runs", supervisor->run_count));
	line_drop(supervisor->claims);
	uv_timer_stop(&supervisor->claim_timer);
	pools_retire(supervisor->pools);
	uv_timer_start(&supervisor->drain_timer, on_pools_drained,
		(uint64_t)(supervisor->options->drain_ms < POOL_DRAIN_MS ? supervisor->options->drain_ms
									 : POOL_DRAIN_MS),
		0);
	if (supervisor->run_count == 0)
		hurry(supervisor);
	else
		uv_timer_start(
			&supervisor->stop_timer, on_drained, (uint64_t)supervisor->options->drain_ms, 0);
	look_for_end(supervisor);
}

void supervisor_claim(struct supervisor *supervisor)
{
	claim_more(supervisor);
}

void supervisor_end(struct supervisor *supervisor)
{
	if (!supervisor->host) /* it has not begun */
		return;
	begin_stop(supervisor, supervisor->status);
	look_for_end(supervisor);
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct supervisor *supervisor = signal->data;

	(void)number;
	if (!supervisor->stopping)
		begin_stop(supervisor, 0);
	else if (!supervisor->hurrying)
		hurry(supervisor);
}

/* ---- news ------------------------------------------------------------------------------------------------------ */

static void hear_refused(struct supervisor *supervisor, const struct pulse_news *news)
{
	bool alive = pulse_is_alive(supervisor->pulse);

	log_at(alive ? LEVEL_WARN : LEVEL_ERROR,
		alive ? "a heartbeat is refused" : "the worker is not registered",
		log_int("status", news->status), log_span("code", news->code),
		log_span("holder", news->holder), log_span("reason", news->detail));
	if (alive || span_equal(news->code, SPAN("slot_quarantined")))
		return; /* it is asked again */
	begin_stop(supervisor,
		news->status == 401 || news->status == 403 ? EXIT_NO_PERMISSION
			: news->status == 409              ? EXIT_TEMPORARY
							   : EXIT_CONFIG);
}

static void hear_standing(struct supervisor *supervisor, enum beat_standing standing)
{
	supervisor->standing = standing;
	if (standing == BEAT_TERMINATING) {
		log_info("told to stop");
		begin_stop(supervisor, 0);
	} else if (standing == BEAT_QUIET) {
		log_info("told to take nothing new");
		line_drop(supervisor->claims);
	}
}

static void hear_over(struct supervisor *supervisor)
{
	log_warn("the server counts this worker as lost; everything is stopped",
		log_int("runs", supervisor->run_count));
	supervisor->over = true;
	line_drop(supervisor->claims);
	stop_all(supervisor, STOP_LOST, GRACE_OVER_MS);
	look_for_end(supervisor);
}

static void hear_lapsed(struct supervisor *supervisor, int64_t until_ms)
{
	int64_t left_ms = until_ms - worker_clock_ms();

	log_warn("no answer from the server for nine tenths of the lease; everything is stopped",
		log_int("runs", supervisor->run_count));
	stop_all(supervisor, STOP_LAPSED, left_ms / 2);
}

static void on_news(void *context, const struct pulse_news *news)
{
	struct supervisor *supervisor = context;
	struct run *run = news->id.len > 0 ? find_newest(supervisor, news->id) : NULL;

	switch (news->kind) {
	case PULSE_REGISTERED:
		supervisor->standing = BEAT_ACTIVE;
		if (supervisor->once) {
			once_begin(supervisor->once);
			break;
		}
		log_info("registered", log_cstr("worker", supervisor->worker_id));
		pools_begin(supervisor->pools);
		service_tell("READY=1");
		break;
	case PULSE_LOST:
		if (run)
			run_stop(run, STOP_LOST, GRACE_OVER_MS);
		break;
	case PULSE_CANCEL:
		if (run)
			run_stop(run, STOP_CANCELLED, INT64_MAX);
		break;
	case PULSE_REPORTED:
		if (run)
			run_reported(run);
		break;
	case PULSE_PARK:
		if (run)
			run_stop(run, STOP_PARKED, INT64_MAX);
		break;
	case PULSE_STANDING:
		hear_standing(supervisor, news->standing);
		break;
	case PULSE_LAPSED:
		hear_lapsed(supervisor, news->until_ms);
		break;
	case PULSE_OVER:
		hear_over(supervisor);
		break;
	case PULSE_REFUSED:
		hear_refused(supervisor, news);
		break;
	case PULSE_AWAY:
		log_warn("the server does not answer",
			log_cstr("reason", news->fault ? strerror(-news->fault) : ""));
		break;
	case PULSE_BACK:
		log_info("the server answers again");
		supervisor->claim_failures = 0;
		uv_timer_stop(&supervisor->claim_timer);
		break;
	}
	claim_more(supervisor);
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

static void make_ids(struct supervisor *supervisor)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	uint64_t random[2] = {(uint64_t)getpid(), uv_hrtime()};

	if (getrandom(random, sizeof random, 0) < 0)
		log_warn("the system has no random numbers to give");
	rng_seed(&supervisor->rng, random[1]);
	for (int i = 0; i < 8; i++) {
		supervisor->instance[i] = digits[random[0] % 36];
		random[0] /= 36;
	}
	if (supervisor->options->once)
		snprintf(supervisor->worker_id, sizeof supervisor->worker_id, "%.128s",
			supervisor->options->once->agent_id);
	else
		snprintf(supervisor->worker_id, sizeof supervisor->worker_id, "%.100s-%s",
			supervisor->options->name, supervisor->instance);
}

static uint32_t pool_workers(const struct settings *settings)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < settings->executor_count; i++)
		count += (uint32_t)settings->executors[i].size;
	return count;
}

static void put_metadata(struct supervisor *supervisor, struct json_object *about)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, BODY_BYTES_MAX);
	json_begin(&object, &text);
	json_member_string(&object, "version", SPAN(STINT_VERSION));
	if (pool_workers(supervisor->settings) > 0 && json_put_key(&object, "pools"))
		json_note(&object, pools_put(&text, supervisor->pools));
	if (json_end(&object) == 0)
		json_member_raw(about, "metadata", buf_span(&text));
}

/* Who we are; and, in a slot, whom we replace. */
static int put_about(struct supervisor *supervisor, struct buf *about)
{
	const struct supervisor_options *options = supervisor->options;
	const struct predecessor *before = &supervisor->nest.before;
	struct json_object object = {.buf = about};
	char boot[IDENTITY_BOOT_BYTES] = "", host[65] = "";
	struct proc_stat self = {0};

	boot_id_read(boot, sizeof boot);
	proc_stat_read(getpid(), &self);
	gethostname(host, sizeof host - 1);
	if (options->slot)
		json_member_string(&object, "slot", span_of(options->slot));
	put_capabilities(supervisor, &object);
	put_executors(supervisor, &object, false);
	json_member_int(&object, "maxConcurrent", options->concurrency + pool_workers(supervisor->settings));
	if (settings_is_name(host))
		json_member_string(&object, "host", span_of(host));
	if (boot[0])
		json_member_string(&object, "bootId", span_of(boot));
	json_member_int(&object, "pid", getpid());
	json_member_int(&object, "startTime", (int64_t)self.start);
	put_metadata(supervisor, &object);
	if (options->slot && before->worker_id[0] && strcmp(before->boot, boot) == 0 && before->pid > 0 &&
		before->start > 0 && settings_is_name(host)) {
		cleanup(buf_done) struct buf dead = {0};
		struct json_object replaces;
		buf_init(&dead, 1024);
		json_begin(&replaces, &dead);
		json_member_string(&replaces, "workerId", span_of(before->worker_id));
		json_member_int(&replaces, "pid", before->pid);
		json_member_int(&replaces, "startTime", before->start);
		if (json_end(&replaces) == 0)
			json_member_raw(&object, "replaces", buf_span(&dead));
	}
	return object.fault;
}

static void begin_pulse(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	cleanup(buf_done) struct buf about = {0};

	if (supervisor->pulse || supervisor->stopping)
		return;
	buf_init(&about, BODY_BYTES_MAX);
	int r = put_about(supervisor, &about);
	struct pulse_options pulse = {
		.address = options->address,
		.worker_id = span_of(supervisor->worker_id),
		.token = options->token ? span_of(options->token) : (struct span){0},
		.about = buf_span(&about),
		.rules =
			{
				.lease_ms = options->lease_ms,
				.idle_ms = options->slot ? 30 * 1000 : 0,
				.working_ms = options->slot || !options->same_host ? 15 * 1000 : 5 * 1000,
				.same_host = options->same_host,
			},
		.plain = options->once != NULL,
		.tasks_max = 2 * CONCURRENCY_MAX,
		.seed = rng_u64(&supervisor->rng),
	};
	supervisor->pulse = r < 0 ? NULL : pulse_new(supervisor->loop, &pulse, on_news, supervisor);
	if (!supervisor->pulse) {
		log_error("not started: no memory");
		begin_stop(supervisor, EXIT_UNAVAILABLE);
	}
}

static void on_inheritance_due(uv_timer_t *timer)
{
	begin_pulse(timer->data);
}

/* An unclean end of whoever had our slot: its third within a minute stops the slot. */
static void report_predecessor(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	cleanup(buf_done) struct buf target = {0};
	char name[40];

	if (!options->slot || !supervisor->nest.before.worker_id[0])
		return;
	buf_init(&target, 1024);
	snprintf(name, sizeof name, "%s-crash", supervisor->instance);
	int r = http_put_path(&target, "/api/slots/", span_of(options->slot), "/crash");
	if (r == 0)
		outbox_put(supervisor->outbox, name, YIELDS_TO_NOTHING, buf_span(&target), SPAN("{}"), false);
	log_warn("the worker that had this slot did not end cleanly", log_cstr("slot", options->slot),
		log_cstr("worker", supervisor->nest.before.worker_id));
}

static int open_parts(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	struct host_options host = {.landlock_optional = supervisor->settings->landlock_optional,
		.bounds = settings_bounds(supervisor->settings)};
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = 32 << 20};
	char complaint[NEST_COMPLAINT_BYTES];

	int r = nest_open(&supervisor->nest, options->home, options->slot, supervisor->worker_id,
		options->once != NULL, complaint);
	if (r < 0) {
		log_error("not started", log_cstr("reason", complaint));
		if (supervisor->once)
			once_failed(supervisor->once, r == -EBUSY ? "blocked" : "failed", complaint);
		return r == -EBUSY || r == -ENOSPC || r == -EDQUOT ? EXIT_TEMPORARY : EXIT_CONFIG;
	}
	if (supervisor->nest.adopted > 0)
		log_warn("took over from a worker that died", log_int("attempts", supervisor->nest.adopted),
			log_int("orphans", supervisor->nest.orphans));
	worktrees_heal(options->home, supervisor->settings->landlock_optional);
	r = host_open(supervisor->loop, &host, &supervisor->host, complaint);
	if (r < 0) {
		log_error("not started", log_cstr("reason", complaint));
		if (supervisor->once)
			once_failed(supervisor->once, "failed", complaint);
		return EXIT_CONFIG;
	}
	supervisor->pools = pools_new(supervisor);
	supervisor->claims = line_new(supervisor->loop, &options->address, &limits);
	supervisor->outbox = outbox_new(supervisor->loop, &options->address,
		options->token ? span_of(options->token) : (struct span){0}, supervisor->nest.outbox_fd,
		on_settled, supervisor);
	if (!supervisor->claims || !supervisor->outbox || !supervisor->pools) {
		log_error("not started: no memory");
		return EXIT_UNAVAILABLE;
	}
	return 0;
}

/* The loop turns: a service manager that watches hears it, at half the time it set. */
static void on_watchdog(uv_timer_t *timer)
{
	(void)timer;
	service_tell("WATCHDOG=1");
}

static void start_watchdog(struct supervisor *supervisor)
{
	const char *text = getenv("WATCHDOG_USEC");
	int64_t every_ms = text ? strtoll(text, NULL, 10) / 2000 : 0;

	uv_timer_init(supervisor->loop, &supervisor->watchdog);
	if (every_ms > 0)
		uv_timer_start(&supervisor->watchdog, on_watchdog, 0, (uint64_t)every_ms);
}

/* Before anything is taken over: a signal that comes meanwhile is heard when the loop runs, and the take-over is whole. */
static void catch_signals(struct supervisor *supervisor)
{
	uv_signal_init(supervisor->loop, &supervisor->term);
	uv_signal_init(supervisor->loop, &supervisor->interrupt);
	supervisor->term.data = supervisor->interrupt.data = supervisor;
	uv_signal_start(&supervisor->term, on_signal, SIGTERM);
	uv_signal_start(&supervisor->interrupt, on_signal, SIGINT);
}

static void start_loop(struct supervisor *supervisor)
{
	start_watchdog(supervisor);
	uv_timer_init(supervisor->loop, &supervisor->claim_timer);
	uv_timer_init(supervisor->loop, &supervisor->stop_timer);
	uv_timer_init(supervisor->loop, &supervisor->pools_timer);
	uv_timer_init(supervisor->loop, &supervisor->drain_timer);
	supervisor->pools_timer.data = supervisor->drain_timer.data = supervisor;
	supervisor->claim_timer.data = supervisor->stop_timer.data = supervisor;
	outbox_load(supervisor->outbox);
	report_predecessor(supervisor);
	if (outbox_waiting(supervisor->outbox) > 0) /* first what the dead had to say, then who we are */
		uv_timer_start(&supervisor->stop_timer, on_inheritance_due, INHERITANCE_MS, 0);
	else
		begin_pulse(supervisor);
}

int supervisor_run(struct supervisor *supervisor, const struct supervisor_options *options)
{
	uv_loop_t loop;

	*supervisor = (struct supervisor){
		.options = options, .settings = options->settings, .loop = &loop, .request_number = 1};
	buf_init(&supervisor->body, BODY_BYTES_MAX);
	uv_loop_init(&loop);
	make_ids(supervisor);
	catch_signals(supervisor);
	supervisor->once = options->once ? once_new(supervisor, options->once) : NULL;
	int status = options->once && !supervisor->once ? EXIT_UNAVAILABLE : open_parts(supervisor);
	if (status == 0) {
		start_loop(supervisor);
		uv_run(&loop, UV_RUN_DEFAULT);
		status = supervisor->status;
	} else if (supervisor->once) {
		status = once_close(supervisor->once);
	}
	nest_close(&supervisor->nest, true);
	uv_walk(&loop, close_walked, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	pools_free(supervisor->pools);
	once_free(supervisor->once);
	buf_done(&supervisor->body);
	log_info("stopped");
	return status;
}
