#include "worker/beat/pulse.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/take.h"
#include "worker/beat/text.h"
#include "worker/line.h"
#include "attempt/retry.h"

enum {
	TOKEN_BYTES_MAX = 512,
	ABOUT_BYTES_MAX = 64 << 10,
	BODY_BYTES_MAX = 256 << 10,
	ANSWER_BYTES_MAX = 4 << 20,
	TIMEOUT_MS_MIN = 1000,
	TIMEOUT_MS_MAX = 10 * 1000,
	SLEEP_MS_MAX = 60 * 1000,
	SLEEP_WITH_WORK_MS_MAX =
		5 * 1000,            /* a machine that was asleep finds out soon that its lease is over */
	NEWS_GAP_MS = 100,           /* from one answer to the next request */
	NEWS_REFUSED_MS = 60 * 1000, /* by a server that knows no news, or not us */
	NEWS_AWAY_MS = 15 * 1000,
};

struct pulse {
	struct beat_state beat;
	struct line *line, *news;
	uv_timer_t timer;
	char id[BEAT_ID_BYTES_MAX + 1];
	char token[TOKEN_BYTES_MAX + 1];
	char credential[TOKEN_BYTES_MAX + 1];
	struct buf about, body;
	struct arena arena; /* of one answer */
	bool away, leaving, stopped;
	bool plain, told; /* a claimant; and that it is there */
	bool describes;   /* who it is has changed since it was told */
	int64_t news_seq; /* what was before is known */
	uint64_t news_asked_ms,
		news_at_ms;     /* the last request, and when the next may go out: by the loop's clock */
	uint32_t news_failures; /* in a row */
	pulse_tell tell;
	void *context;
	struct beat_task tasks[];
};

int64_t worker_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void look(struct pulse *pulse);

static void tell(struct pulse *pulse, struct pulse_news news)
{
	if (!pulse->stopped)
		pulse->tell(pulse->context, &news);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

/* Ms until the next request for news. While it holds nothing a claim of its waits, and is answered at once if it may
 * claim no more. */
static int64_t news_in_ms(const struct pulse *pulse)
{
	uint64_t now_ms = uv_now(pulse->timer.loop);

	if (pulse->beat.phase != BEAT_ALIVE || pulse->away || pulse->leaving || pulse->beat.refused ||
		line_is_busy(pulse->news) || beat_held(&pulse->beat) == 0)
		return INT64_MAX;
	return pulse->news_at_ms > now_ms ? (int64_t)(pulse->news_at_ms - now_ms) : 0;
}

static void arm(struct pulse *pulse)
{
	if (pulse->plain && pulse->told)
		return;
	int64_t most_ms = beat_held(&pulse->beat) > 0 ? SLEEP_WITH_WORK_MS_MAX : SLEEP_MS_MAX;
	int64_t due_ms = beat_due_ms(&pulse->beat), now_ms = worker_clock_ms();
	int64_t wait_ms = due_ms > now_ms + most_ms ? most_ms : due_ms > now_ms ? due_ms - now_ms : 0;
	int64_t news_ms = news_in_ms(pulse);

	if (news_ms < wait_ms)
		wait_ms = news_ms;
	if (!pulse->stopped)
		uv_timer_start(&pulse->timer, on_timer, (uint64_t)wait_ms, 0);
}

/* ---- the answer ---- */

static void tell_lists(struct pulse *pulse, const struct beat_answer *answer)
{
	for (uint32_t i = 0; i < answer->lost_count; i++)
		tell(pulse, (struct pulse_news){.kind = PULSE_LOST, .id = answer->lost[i]});
	for (uint32_t i = 0; i < answer->cancel_count; i++)
		tell(pulse, (struct pulse_news){.kind = PULSE_CANCEL, .id = answer->cancel[i]});
	for (uint32_t i = 0; i < answer->reported_count; i++)
		tell(pulse, (struct pulse_news){.kind = PULSE_REPORTED, .id = answer->reported[i]});
	for (uint32_t i = 0; i < answer->park_count; i++)
		tell(pulse, (struct pulse_news){.kind = PULSE_PARK, .id = answer->park[i]});
}

static void note_contact(struct pulse *pulse, enum beat_outcome outcome, int fault)
{
	bool away = outcome == BEAT_UNANSWERED || outcome == BEAT_BUSY;

	if (away == pulse->away)
		return;
	pulse->away = away;
	pulse->news_at_ms = 0;
	tell(pulse, (struct pulse_news){.kind = away ? PULSE_AWAY : PULSE_BACK, .fault = fault});
}

static void hear(struct pulse *pulse, struct beat_answer *answer, const struct beat_said *said, int fault)
{
	bool was_new = pulse->beat.phase == BEAT_NEW;
	struct beat_news news;

	beat_hear(&pulse->beat, worker_clock_ms(), answer, &news);
	note_contact(pulse, answer->outcome, fault);
	if (answer->outcome == BEAT_ACCEPTED && was_new) {
		if (said->credential.len > 0 && said->credential.len <= TOKEN_BYTES_MAX)
			memcpy(pulse->credential, said->credential.data, said->credential.len + 1);
		tell(pulse, (struct pulse_news){.kind = PULSE_REGISTERED});
	}
	if (answer->outcome == BEAT_REFUSED)
		tell(pulse,
			(struct pulse_news){.kind = PULSE_REFUSED,
				.status = said->status,
				.code = said->code,
				.detail = said->detail,
				.holder = said->slot_holder});
	if (answer->outcome == BEAT_ACCEPTED)
		tell_lists(pulse, answer);
	if (news.vouched)
		tell(pulse, (struct pulse_news){.kind = PULSE_VOUCHED});
	if (news.standing)
		tell(pulse, (struct pulse_news){.kind = PULSE_STANDING, .standing = pulse->beat.standing});
	if (news.over)
		tell(pulse, (struct pulse_news){.kind = PULSE_OVER});
}

/* The credential of an instance ends with the instance. What became of it is told to whom it belongs: ask again with
 * the token that we came with. For the machine that is a beat whose answer was lost. */
static void doubt_credential(struct pulse *pulse, const struct beat_said *said, struct beat_answer *heard)
{
	if (said->status != 401 || !pulse->credential[0])
		return;
	pulse->credential[0] = 0;
	heard->outcome = BEAT_TOKEN_MISMATCH;
	arena_copy(&pulse->arena, span_of(pulse->beat.token), &heard->token);
}

bool pulse_fault_is_ours(int fault)
{
	return fault == -EMFILE || fault == -ENFILE || fault == -ENOMEM || fault == -ENOBUFS;
}

static void on_answer(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct pulse *pulse = context;
	struct beat_answer heard = {.outcome = BEAT_UNANSWERED, .unsent = pulse_fault_is_ours(fault)};
	struct beat_said said = {0};

	(void)reach;
	if (fault == 0)
		beat_read(answer, &pulse->arena, &heard, &said);
	doubt_credential(pulse, &said, &heard);
	hear(pulse, &heard, &said, fault);
	arena_reset(&pulse->arena);
	look(pulse);
}

/* ---- the request ---- */

static int64_t timeout_ms(const struct pulse *pulse)
{
	int64_t quarter_ms = pulse->beat.lease_ms / 4;

	if (pulse->beat.lease_ms == 0 || quarter_ms > TIMEOUT_MS_MAX)
		return TIMEOUT_MS_MAX;
	return quarter_ms > TIMEOUT_MS_MIN ? quarter_ms : TIMEOUT_MS_MIN;
}

static int send_beat(struct pulse *pulse, const struct beat_request *request)
{
	struct span token = request->registers ? span_of(pulse->token) : pulse_token(pulse);

	buf_clear(&pulse->body);
	int r = beat_put(&pulse->body, request, span_of(pulse->id), buf_span(&pulse->about));
	if (r < 0)
		return r;
	pulse->describes = false; /* if it is lost the next change tells it */
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = request->registers ? SPAN("/api/workers/register") : SPAN("/api/workers/heartbeat"),
		.body = buf_span(&pulse->body),
		.token = token.len > 0 ? token : (struct span){0},
		.may_repeat = true, /* a token that was used up meanwhile is told */
		.timeout_ms = timeout_ms(pulse),
	};
	return line_call(pulse->line, &call, on_answer, pulse);
}

/* ---- news: somebody has done something that the next beat will be told of ---- */

static int64_t news_pause_ms(struct pulse *pulse, int status, bool news)
{
	bool waited = uv_now(pulse->timer.loop) - pulse->news_asked_ms >= NEWS_WAIT_MS / 2;

	if (status == 200 && (news || waited)) {
		pulse->news_failures = 0;
		return NEWS_GAP_MS;
	}
	if (status >= 400 && status < 500 && status != 429)
		return NEWS_REFUSED_MS;
	return retry_delay_ms(++pulse->news_failures, NEWS_AWAY_MS, &pulse->beat.rng);
}

/* What it is about the beat will tell. A credential that is no longer good, and a worker that is given up, are news. */
static void on_news(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct pulse *pulse = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;
	bool news = status == 401 || status == 410;

	(void)reach;
	if (status == 200)
		news = news_read(answer, &pulse->news_seq);
	pulse->news_at_ms = uv_now(pulse->timer.loop) + (uint64_t)news_pause_ms(pulse, status, news);
	if (news)
		pulse_hurry(pulse);
	else
		arm(pulse);
}

static void ask_for_news(struct pulse *pulse)
{
	cleanup(buf_done) struct buf target = {0};

	buf_init(&target, 1024);
	int r = news_put_target(&target, span_of(pulse->id), pulse->news_seq);
	struct http_call call = {
		.method = HTTP_METHOD_GET,
		.target = buf_span(&target),
		.token = pulse_token(pulse),
		.may_repeat = true,
		.timeout_ms = NEWS_WAIT_MS + NEWS_SLACK_MS,
	};
	pulse->news_asked_ms = uv_now(pulse->timer.loop);
	if (r < 0 || line_call(pulse->news, &call, on_news, pulse) < 0)
		pulse->news_at_ms = pulse->news_asked_ms + NEWS_REFUSED_MS;
}

/* Whatever is due. */
static void look(struct pulse *pulse)
{
	struct beat_request request;
	int64_t now_ms = worker_clock_ms();

	if (pulse->stopped)
		return;
	if (pulse->plain) {
		pulse->told = true;
		tell(pulse, (struct pulse_news){.kind = PULSE_REGISTERED});
		return;
	}
	if (beat_lapses(&pulse->beat, now_ms))
		tell(pulse,
			(struct pulse_news){
				.kind = PULSE_LAPSED, .until_ms = beat_lease_end_ms(&pulse->beat)});
	if (!line_is_busy(pulse->line) && beat_send(&pulse->beat, now_ms, &request)) {
		request.describes = pulse->describes;
		int r = send_beat(pulse, &request);
		if (r < 0) { /* no memory */
			struct beat_answer none = {.outcome = BEAT_UNANSWERED, .unsent = true};
			hear(pulse, &none, &(struct beat_said){0}, r);
		}
	}
	if (news_in_ms(pulse) == 0)
		ask_for_news(pulse);
	arm(pulse);
}

/* ---- for the owner ---- */

int pulse_bind(struct pulse *pulse, struct span id)
{
	int r = beat_bind(&pulse->beat, id, worker_clock_ms());

	arm(pulse);
	return r;
}

void pulse_unbind(struct pulse *pulse, struct span id)
{
	beat_unbind(&pulse->beat, id, worker_clock_ms());
	arm(pulse);
}

void pulse_forget(struct pulse *pulse, struct span id)
{
	beat_forget(&pulse->beat, id);
}

void pulse_hurry(struct pulse *pulse)
{
	if (!pulse->away)
		beat_hurry(&pulse->beat, worker_clock_ms());
	arm(pulse);
}

int pulse_describe(struct pulse *pulse, struct span about)
{
	if (about.len > ABOUT_BYTES_MAX)
		return -E2BIG;
	buf_clear(&pulse->about);
	int r = buf_put_span(&pulse->about, about);
	pulse->describes = r == 0 && pulse->beat.phase == BEAT_ALIVE;
	if (pulse->describes)
		pulse_hurry(pulse);
	return r;
}

void pulse_leave(struct pulse *pulse)
{
	pulse->leaving = true;
	line_drop(pulse->news);
}

static int set_id(struct pulse *pulse, struct span id)
{
	if (id.len == 0 || id.len > BEAT_ID_BYTES_MAX)
		return -EINVAL;
	memcpy(pulse->id, id.data, id.len);
	pulse->id[id.len] = 0;
	return 0;
}

int pulse_renew(struct pulse *pulse, struct span worker_id)
{
	int r = set_id(pulse, worker_id);

	if (r < 0)
		return r;
	pulse->credential[0] = 0;
	line_drop(pulse->news);
	pulse->news_seq = 0;
	pulse->news_at_ms = 0;
	beat_renew(&pulse->beat, worker_clock_ms());
	arm(pulse);
	return 0;
}

struct span pulse_worker_id(const struct pulse *pulse)
{
	return span_of(pulse->id);
}

struct span pulse_token(const struct pulse *pulse)
{
	const char *token = pulse->credential[0] ? pulse->credential : pulse->token;

	return token[0] ? span_of(token) : (struct span){0};
}

bool pulse_is_alive(const struct pulse *pulse)
{
	return pulse->plain || pulse->beat.phase == BEAT_ALIVE;
}

bool pulse_is_registering(const struct pulse *pulse)
{
	return pulse->beat.phase == BEAT_NEW && line_is_busy(pulse->line);
}

bool pulse_is_away(const struct pulse *pulse)
{
	return pulse->away;
}

bool pulse_lease(const struct pulse *pulse, int64_t *ret_from_ms, int64_t *ret_lease_ms)
{
	if (pulse->plain || pulse->beat.lease_ms == 0)
		return false;
	*ret_from_ms = pulse->beat.vouched_ms;
	*ret_lease_ms = pulse->beat.lease_ms;
	return true;
}

bool pulse_is_bound(const struct pulse *pulse, struct span id)
{
	return beat_is_bound(&pulse->beat, id);
}

int64_t pulse_heard_ms(const struct pulse *pulse)
{
	return pulse->plain || pulse->beat.lease_ms == 0 ? INT64_MIN : pulse->beat.leased_ms;
}

/* ---- life ---- */

static int fill(struct pulse *pulse, uv_loop_t *loop, const struct pulse_options *options)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = ANSWER_BYTES_MAX};
	int r = set_id(pulse, options->worker_id);

	if (r < 0 || options->token.len > TOKEN_BYTES_MAX)
		return -EINVAL;
	if (options->token.len > 0)
		memcpy(pulse->token, options->token.data, options->token.len);
	r = buf_put_span(&pulse->about, options->about);
	if (r < 0)
		return r;
	pulse->line = line_new(loop, &options->address, &limits);
	pulse->news = line_new(loop, &options->address, &limits);
	if (!pulse->line || !pulse->news)
		return -ENOMEM;
	line_reserve(pulse->line);
	return 0;
}

struct pulse *pulse_new(uv_loop_t *loop, const struct pulse_options *options, pulse_tell owner, void *context)
{
	struct pulse *pulse = calloc(1, sizeof *pulse + options->tasks_max * sizeof pulse->tasks[0]);

	if (!pulse)
		return NULL;
	buf_init(&pulse->about, ABOUT_BYTES_MAX);
	buf_init(&pulse->body, BODY_BYTES_MAX);
	arena_init(&pulse->arena, 2 * ANSWER_BYTES_MAX);
	pulse->tell = owner;
	pulse->plain = options->plain;
	pulse->context = context;
	if (fill(pulse, loop, options) < 0) {
		line_free(pulse->line);
		line_free(pulse->news);
		buf_done(&pulse->about);
		free(pulse);
		return NULL;
	}
	uv_timer_init(loop, &pulse->timer);
	pulse->timer.data = pulse;
	beat_init(&pulse->beat, &options->rules, pulse->tasks, options->tasks_max, options->seed,
		worker_clock_ms());
	arm(pulse);
	return pulse;
}

static void on_closed(uv_handle_t *handle)
{
	struct pulse *pulse = handle->data;

	buf_done(&pulse->about);
	buf_done(&pulse->body);
	arena_done(&pulse->arena);
	free(pulse);
}

void pulse_free(struct pulse *pulse)
{
	if (!pulse)
		return;
	pulse->stopped = true;
	line_free(pulse->line);
	line_free(pulse->news);
	uv_close((uv_handle_t *)&pulse->timer, on_closed);
}
