#include "worker/once/once.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/take.h"
#include "base/utf8.h"
#include "worker/run/run.h"
#include "worker/supervisor/supervisor.h"

enum {
	LOOK_MS = 1000, /* at the task, for a word to stop */
	CALL_MS = 10 * 1000,
	CALL_LEAST_MS = 500,
	BODY_BYTES_MAX = 64 << 10,
	RESULT_BYTES_MAX = 256 << 10,
	SUMMARY_BYTES_MAX = 600,
	ERROR_BYTES_MAX = 300,
	QUESTION_BYTES_MAX = 1024,
	LINKS_MAX = 20,
	ID_BYTES = 160,
	EXIT_NOT_DONE = 1,
};

enum once_phase {
	ONCE_RESTING,  /* before the first pass, and between two */
	ONCE_CLAIMING, /* its own first, then the next one */
	ONCE_RUNNING,
	ONCE_LOOKING, /* nothing runs; the report did not tell how it ended, the task will */
	ONCE_OVER,
};

struct once {
	struct supervisor *supervisor;
	const struct once_config *config;
	enum once_phase phase;
	struct api_client *client;
	uv_timer_t timer; /* looks at the task; between two passes it waits for the next */
	int64_t begun_ms, renewed_ms, asked_ms; /* the lease counts from the request that renewed it */
	int64_t lease_ms;                       /* as granted */
	int64_t vouched_ms;                     /* also if it was not answered, and we went on all the same */
	int64_t passes, runs;
	char task[ID_BYTES], fence[32];
	struct arena arena; /* of one pass */
	struct span title;
	bool said; /* this pass has its result */
	bool bad;  /* a pass has failed, or was blocked */
};

static const unsigned moves[] = {
	[ONCE_RESTING] = 1u << ONCE_CLAIMING | 1u << ONCE_OVER,
	[ONCE_CLAIMING] = 1u << ONCE_RUNNING | 1u << ONCE_RESTING | 1u << ONCE_OVER,
	[ONCE_RUNNING] = 1u << ONCE_LOOKING | 1u << ONCE_RESTING | 1u << ONCE_OVER,
	[ONCE_LOOKING] = 1u << ONCE_RESTING | 1u << ONCE_OVER,
	[ONCE_OVER] = 0,
};

static void move(struct once *once, enum once_phase to)
{
	assert(moves[once->phase] >> to & 1);
	assert(to != ONCE_RUNNING || once->passes > 0);
	assert(to != ONCE_RESTING || once->said); /* each pass has its line before the next begins */
	assert(to != ONCE_OVER || once->said);
	assert(to != ONCE_LOOKING || !once->said);
	once->phase = to;
}

/* ---- the result ------------------------------------------------------------------------------------------- */

/* In one line, cut at the end of a character. */
static struct span one_line(struct arena *arena, struct span text, size_t most)
{
	struct span kept = {0};

	if (arena_copy(arena, utf8_cut(text, most), &kept) < 0)
		return kept;
	char *at = (char *)kept.data;
	for (size_t i = 0; i < kept.len; i++) {
		if ((unsigned char)at[i] < ' ')
			at[i] = ' ';
	}
	return kept;
}

static int put_line(struct buf *text)
{
	int r = buf_put_byte(text, '\n');

	if (r == 0 && (fwrite(text->data, 1, text->len, stdout) != text->len || fflush(stdout) != 0))
		r = -errno;
	return r;
}

struct outcome {
	bool ok;
	const char *action;
	struct span summary, error, next_steps;
	yyjson_val *links;
};

static void put_links(struct json_object *object, yyjson_val *links)
{
	cleanup(buf_done) struct buf list = {0};
	size_t index, count, put = 0;
	yyjson_val *link;

	buf_init(&list, BODY_BYTES_MAX);
	yyjson_arr_foreach(links, index, count, link)
	{
		size_t before = list.len;
		if (!yyjson_is_str(link) || put == LINKS_MAX)
			continue;
		if (buf_put_byte(&list, put > 0 ? ',' : '[') == 0 &&
			json_put_string(&list, json_text(link)) == 0)
			put++;
		else
			buf_cut(&list, before); /* too long: this link is left out */
	}
	if (put > 0 && buf_put_byte(&list, ']') == 0)
		json_member_raw(object, "links", buf_span(&list));
}

/* The result of the pass: one line, and never two. */
static void say(struct once *once, const struct outcome *outcome)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	if (once->said)
		return;
	once->said = true;
	once->bad |= !outcome->ok;
	buf_init(&text, RESULT_BYTES_MAX);
	json_begin(&object, &text);
	json_member_bool(&object, "ok", outcome->ok);
	json_member_word(&object, "action", outcome->action);
	if (once->task[0])
		json_member_string(&object, "itemId", span_of(once->task));
	if (once->title.len > 0)
		json_member_string(&object, "title", once->title);
	if (outcome->summary.len > 0)
		json_member_string(&object, "summary", outcome->summary);
	if (outcome->links)
		put_links(&object, outcome->links);
	if (!outcome->ok)
		json_member_string(&object, "error", outcome->error);
	if (outcome->next_steps.len > 0)
		json_member_string(&object, "nextSteps", outcome->next_steps);
	json_member_int(&object, "elapsedMs", worker_clock_ms() - once->begun_ms);
	int r = json_end(&object);
	if (r == 0)
		r = put_line(&text);
	if (r < 0) { /* the caller must not take silence for success */
		once->bad = true;
		log_error("the result cannot be written", log_cstr("action", outcome->action),
			log_cstr("reason", strerror(-r)));
	}
}

/* ---- passes ------------------------------------------------------------------------------------------------- */

static void begin_pass(struct once *once);

static void on_next_pass(uv_timer_t *timer)
{
	begin_pass(timer->data);
}

static void end_pass(struct once *once)
{
	uv_timer_stop(&once->timer);
	api_client_drop(once->client);
	if (once->passes < once->config->max_iterations && once->supervisor->step == SUPERVISOR_SERVING) {
		move(once, ONCE_RESTING);
		uv_timer_start(&once->timer, on_next_pass, (uint64_t)once->config->poll_interval_ms, 0);
		return;
	}
	move(once, ONCE_OVER);
	supervisor_end(once->supervisor);
}

static void begin_pass(struct once *once)
{
	once->passes++;
	once->begun_ms = worker_clock_ms();
	once->task[0] = once->fence[0] = 0;
	once->title = (struct span){0};
	once->said = false;
	arena_reset(&once->arena);
	move(once, ONCE_CLAIMING);
	supervisor_claim(once->supervisor);
}

void once_begin(struct once *once)
{
	if (once->phase == ONCE_RESTING && once->passes == 0)
		begin_pass(once);
}

void once_failed(struct once *once, const char *action, const char *error)
{
	struct outcome outcome = {
		.action = action, .error = one_line(&once->arena, span_of(error), ERROR_BYTES_MAX)};

	say(once, &outcome);
	once->passes = once->config->max_iterations; /* the next pass would fare no better */
	end_pass(once);
}

/* ---- claiming ----------------------------------------------------------------------------------------------- */

bool once_claims(const struct once *once)
{
	return once->phase == ONCE_CLAIMING;
}

void once_put_claim(const struct once *once, struct json_object *object)
{
	const char *at = once->config->allow_statuses;
	bool any = false;

	json_member_bool(object, "resumeOwned", true);
	json_member_int(object, "leaseMs", once->config->lease_ms);
	json_put_key(object, "includeStatuses");
	buf_put_byte(object->buf, '[');
	while (*at) {
		size_t len = strcspn(at, ",");
		json_put_comma(object->buf, &any);
		json_put_string(object->buf, (struct span){at, len});
		at += len + (at[len] == ',');
	}
	buf_put_byte(object->buf, ']');
}

static void on_look(uv_timer_t *timer);

void once_claimed(struct once *once, yyjson_val *claim)
{
	yyjson_val *task = yyjson_obj_get(claim, "task"), *title = yyjson_obj_get(task, "title");
	const char *id = yyjson_get_str(yyjson_obj_get(task, "id"));
	const char *fence = yyjson_get_str(yyjson_obj_get(claim, "fence"));

	if (!claim) {
		say(once, &(struct outcome){.ok = true, .action = "noop_empty"});
		end_pass(once);
		return;
	}
	move(once, ONCE_RUNNING);
	once->runs++;
	snprintf(once->task, sizeof once->task, "%s", id ? id : "");
	snprintf(once->fence, sizeof once->fence, "%s", fence ? fence : "");
	if (yyjson_is_str(title))
		once->title = one_line(&once->arena, json_text(title), ERROR_BYTES_MAX);
	once->renewed_ms = once->vouched_ms = worker_clock_ms();
	once->lease_ms = yyjson_get_sint(yyjson_obj_get(claim, "leaseMs"));
	if (once->lease_ms <= 0)
		once->lease_ms = once->config->lease_ms;
	uint64_t look_ms = once->lease_ms < 4 * LOOK_MS ? (uint64_t)once->lease_ms / 4 : LOOK_MS;
	uv_timer_start(&once->timer, on_look, look_ms, look_ms);
}

/* ---- while it runs -------------------------------------------------------------------------------------------- */

static struct run *run_of(const struct once *once)
{
	return once->supervisor->run_count > 0 ? once->supervisor->runs[0] : NULL;
}

static bool is_ours(const struct once *once, yyjson_val *task)
{
	return yyjson_equals_str(yyjson_obj_get(task, "fence"), once->fence);
}

static bool is_ended(const struct once *once, yyjson_val *task)
{
	static const char *const ends[] = {"done", "review", "failed", "blocked"};

	for (size_t i = 0; is_ours(once, task) && i < sizeof ends / sizeof *ends; i++) {
		if (yyjson_equals_str(yyjson_obj_get(task, "state"), ends[i]))
			return true;
	}
	return false;
}

void once_seen(struct once *once, struct run *run, yyjson_val *task)
{
	assert(run == run_of(once));
	if (is_ended(once, task))
		run_reported(run); /* by its own word, which counts at once: nobody beats for it */
	else if (!is_ours(once, task) || yyjson_is_null(yyjson_obj_get(task, "workerId")))
		run_stop(run, STOP_LOST, INT64_MAX);
	else if (yyjson_is_true(yyjson_obj_get(task, "stopping")))
		run_stop(run, STOP_CANCELLED, INT64_MAX);
	else if (yyjson_is_obj(yyjson_obj_get(task, "report")))
		run_reported(run);
	else if (yyjson_is_true(yyjson_obj_get(task, "parking")))
		run_stop(run, STOP_PARKED, INT64_MAX);
}

void once_lease(const struct once *once, int64_t *ret_from_ms, int64_t *ret_lease_ms)
{
	*ret_from_ms = once->vouched_ms;
	*ret_lease_ms = once->lease_ms;
}

static void vouch(struct once *once, int64_t from_ms)
{
	once->vouched_ms = from_ms;
	if (run_of(once))
		run_push(run_of(once));
}

static void on_renewed(void *context, int fault, const struct http_answer *answer)
{
	struct once *once = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;

	bool renewed = status >= 200 && status < 300, away = status == 0 || status >= 500;
	if (renewed)
		once->renewed_ms = once->asked_ms;
	if (renewed || (away && once->supervisor->options->same_host)) /* as beat.c, go_on() */
		vouch(once, once->asked_ms);
	else if (status == 409 && run_of(once))
		run_stop(run_of(once), STOP_LOST, INT64_MAX);
}

static int put_renewal(const struct once *once, struct buf *body)
{
	int64_t minutes = (worker_clock_ms() - once->begun_ms) / 60000;
	struct json_object object;
	char note[80];

	snprintf(note, sizeof note, "at work for %lld min", (long long)minutes);
	json_begin(&object, body);
	json_member_string(&object, "workerId", heartbeat_worker_id(once->supervisor->heartbeat));
	json_member_string(&object, "fence", span_of(once->fence));
	json_member_string(&object, "note", span_of(note));
	json_member_int(&object, "leaseMs", once->config->lease_ms);
	return json_end(&object);
}

/* A server that hangs is away early enough for another try. */
static int64_t call_ms(const struct once *once)
{
	int64_t eighth_ms = once->lease_ms / 8;

	return eighth_ms > CALL_MS ? CALL_MS : eighth_ms < CALL_LEAST_MS ? CALL_LEAST_MS : eighth_ms;
}

static void renew(struct once *once)
{
	cleanup(buf_done) struct buf target = {0}, body = {0};

	if (api_client_is_busy(once->client))
		return;
	buf_init(&target, 1024);
	buf_init(&body, BODY_BYTES_MAX);
	http_put_path(&target, "/api/tasks/", span_of(once->task), "/progress");
	put_renewal(once, &body);
	once->asked_ms = worker_clock_ms();
	if (buf_fault(&target) == 0 && buf_fault(&body) == 0)
		api_client_post(once->client, buf_span(&target), buf_span(&body),
			heartbeat_token(once->supervisor->heartbeat), call_ms(once), on_renewed, once);
}

/* The lease is renewed with a note when it is time; otherwise a look. */
static void look(struct once *once)
{
	int64_t lease_ms = once->lease_ms, held_ms = worker_clock_ms() - once->renewed_ms;
	bool renews = held_ms >= once->config->progress_every_ms ||
		held_ms >= lease_ms - 2 * lease_spare_ms(lease_ms); /* well before we would have to stop */

	/* the server may give it to somebody else soon, and we cannot hear of it */
	if (!once->supervisor->options->same_host && run_of(once) &&
		held_ms >= lease_ms - lease_spare_ms(lease_ms))
		run_stop(run_of(once), STOP_LAPSED, lease_spare_ms(lease_ms) / 2);
	if (renews)
		renew(once);
	else if (run_of(once))
		run_look(run_of(once));
}

static void on_look(uv_timer_t *timer)
{
	look(timer->data);
}

void once_hear_news(struct once *once)
{
	if (once->phase == ONCE_RUNNING)
		look(once);
}

/* ---- how it ended ----------------------------------------------------------------------------------------------- */

static struct span text_at(yyjson_val *object, const char *key)
{
	return json_text(yyjson_obj_get(object, key));
}

/* What it has to show: a text, or "summary" and "links" of an object. */
static void read_result(struct once *once, yyjson_val *result, struct outcome *outcome)
{
	struct span text = yyjson_is_str(result) ? json_text(result) : text_at(result, "summary");

	outcome->summary = one_line(&once->arena, text, SUMMARY_BYTES_MAX);
	outcome->links =
		yyjson_is_arr(yyjson_obj_get(result, "links")) ? yyjson_obj_get(result, "links") : NULL;
}

/* By the state that the report has led to. */
static void judge(struct once *once, yyjson_val *task, struct outcome *outcome)
{
	struct span state = text_at(task, "state"), why = text_at(yyjson_obj_get(task, "error"), "message");

	outcome->error = one_line(&once->arena, why, ERROR_BYTES_MAX);
	outcome->action = "failed";
	if (span_equal(state, SPAN("done")) || span_equal(state, SPAN("review"))) {
		outcome->ok = true;
		outcome->action = "completed";
		read_result(once, yyjson_obj_get(task, "result"), outcome);
	} else if (span_equal(state, SPAN("asking"))) {
		struct span asked = text_at(yyjson_obj_get(task, "question"), "text");
		outcome->action = "blocked";
		outcome->error = one_line(&once->arena,
			span_of(arena_text(&once->arena, "it asks: %.*s", SPAN_ARGS(asked))),
			QUESTION_BYTES_MAX);
		outcome->next_steps = span_of(arena_text(&once->arena, "stint answer %s ANSWER", once->task));
	} else if (span_equal(state, SPAN("blocked"))) {
		outcome->action = "blocked";
		outcome->next_steps = span_of(arena_text(&once->arena, "stint why %s", once->task));
	} else if (span_equal(state, SPAN("cancelled"))) {
		outcome->error = SPAN("it was cancelled");
	} else if (span_equal(state, SPAN("failed"))) {
		outcome->next_steps = span_of(arena_text(
			&once->arena, "stint show %s, then stint retry %s", once->task, once->task));
	} else { /* ready, scheduled: nothing is final */
		outcome->action = why.len > 0 ? "failed" : "blocked";
		if (why.len == 0)
			outcome->error = SPAN("it was given back, to be tried later");
		outcome->next_steps = SPAN("it is tried again by itself: the next pass may take it up");
	}
	if (!outcome->ok && outcome->error.len == 0)
		outcome->error = SPAN("nothing was said of the reason");
}

static void say_task(struct once *once, yyjson_val *task)
{
	struct outcome outcome = {0};

	judge(once, task, &outcome);
	say(once, &outcome);
}

void once_settled(struct once *once, int status, struct span answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (once->phase != ONCE_RUNNING || status >= 300 || json_read_reply(answer, &doc) < 0)
		return; /* what another one had left to say; or it had ended before, by its own word */
	yyjson_val *task = yyjson_doc_get_root(doc);
	if (!yyjson_equals_str(
		    yyjson_obj_get(task, "state"), "asking")) /* the answer does not say what it asks */
		say_task(once, task);
}

static void on_end(void *context, int fault, const struct http_answer *answer)
{
	struct once *once = context;
	bool told = fault == 0 && http_answer_status(answer) == 200;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (told && json_read_reply(http_answer_body(answer), &doc) == 0 &&
		is_ours(once, yyjson_doc_get_root(doc)))
		say_task(once, yyjson_doc_get_root(doc));
	if (!told)
		say(once,
			&(struct outcome){.action = "failed",
				.error = SPAN("the server does not say how it ended"),
				.next_steps = span_of(arena_text(&once->arena, "stint why %s", once->task))});
	say(once,
		&(struct outcome){.action = "failed",
			.error = SPAN("the claim was lost: somebody else has the task by now"),
			.next_steps = span_of(arena_text(&once->arena, "stint why %s", once->task))});
	end_pass(once);
}

void once_run_over(struct once *once)
{
	cleanup(buf_done) struct buf target = {0};

	if (once->phase != ONCE_RUNNING)
		return;
	uv_timer_stop(&once->timer);
	api_client_drop(once->client);
	if (once->said) {
		end_pass(once);
		return;
	}
	move(once, ONCE_LOOKING);
	buf_init(&target, 1024);
	int r = http_put_path(&target, "/api/tasks/", span_of(once->task), "");
	if (r < 0 ||
		api_client_get(once->client, buf_span(&target), heartbeat_token(once->supervisor->heartbeat),
			CALL_MS, on_end, once) < 0)
		on_end(once, -EIO, NULL);
}

bool once_is_looking(const struct once *once)
{
	return once->phase == ONCE_LOOKING;
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

struct once *once_new(struct supervisor *supervisor, const struct once_config *config)
{
	struct once *once = calloc(1, sizeof *once);

	if (!once)
		return NULL;
	*once = (struct once){.supervisor = supervisor, .config = config, .begun_ms = worker_clock_ms()};
	arena_init(&once->arena, RESULT_BYTES_MAX);
	once->client = api_client_new(supervisor->loop, &supervisor->options->address, NULL);
	if (!once->client) {
		once_free(once);
		return NULL;
	}
	uv_timer_init(supervisor->loop, &once->timer);
	once->timer.data = once;
	return once;
}

int once_close(struct once *once)
{
	if (!once->said && once->phase != ONCE_OVER && once->phase != ONCE_RESTING)
		say(once,
			&(struct outcome){.action = "failed",
				.error = once->task[0]
					? SPAN("it was stopped before the server had taken its report; the next pass sends it")
					: SPAN("it was stopped before it had done anything")});
	uv_close((uv_handle_t *)&once->timer, NULL);
	api_client_free(once->client);
	once->client = NULL;
	return once->bad ? EXIT_NOT_DONE : once->runs == 0 ? (int)once->config->empty_status : 0;
}

void once_free(struct once *once)
{
	if (!once)
		return;
	arena_done(&once->arena);
	free(once);
}
