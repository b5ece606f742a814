#include "worker/beat/heartbeat.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/take.h"
#include "worker/beat/text.h"
#include "worker/api_client.h"
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

struct heartbeat_client {
	struct beat_state beat;
	struct api_client *client, *news;
	uv_timer_t timer;
	char id[BEAT_ID_BYTES_MAX + 1];
	char token[TOKEN_BYTES_MAX + 1];
	char credential[TOKEN_BYTES_MAX + 1];
	struct buf about, body;
	struct arena arena; /* of one answer */
	bool away, leaving, stopped;
	bool plain, told; /* a claimant; and its owner was told that it may begin */
	bool describes;   /* the description has changed since it was sent */
	int64_t news_seq; /* the last event that we know of */
	uint64_t news_asked_ms,
		news_at_ms;     /* the last request, and when the next may go out: by the loop's clock */
	uint32_t news_failures; /* in a row */
	heartbeat_tell tell;
	void *context;
	struct beat_task tasks[];
};

int64_t worker_clock_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME);
}

static void look(struct heartbeat_client *heartbeat);

static void tell(struct heartbeat_client *heartbeat, struct heartbeat_event news)
{
	if (!heartbeat->stopped)
		heartbeat->tell(heartbeat->context, &news);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

/* Ms until the next request for news. While it holds nothing a claim of its waits, and is answered at once if it may
 * claim no more. */
static int64_t news_in_ms(const struct heartbeat_client *heartbeat)
{
	uint64_t now_ms = uv_now(heartbeat->timer.loop);

	if (!heartbeat_is_alive(heartbeat) || heartbeat->away || heartbeat->leaving ||
		heartbeat->beat.refused || api_client_is_busy(heartbeat->news) ||
		beat_held(&heartbeat->beat) == 0)
		return INT64_MAX;
	return heartbeat->news_at_ms > now_ms ? (int64_t)(heartbeat->news_at_ms - now_ms) : 0;
}

static void arm(struct heartbeat_client *heartbeat)
{
	int64_t most_ms = beat_held(&heartbeat->beat) > 0 ? SLEEP_WITH_WORK_MS_MAX : SLEEP_MS_MAX;
	int64_t due_ms = beat_due_ms(&heartbeat->beat), now_ms = worker_clock_ms();
	int64_t wait_ms = due_ms > now_ms + most_ms ? most_ms : due_ms > now_ms ? due_ms - now_ms : 0;
	if (heartbeat->plain && heartbeat->told) /* it waits for news alone */
		wait_ms = most_ms;
	int64_t news_ms = news_in_ms(heartbeat);

	if (news_ms < wait_ms)
		wait_ms = news_ms;
	if (!heartbeat->stopped)
		uv_timer_start(&heartbeat->timer, on_timer, (uint64_t)wait_ms, 0);
}

/* ---- the answer ---- */

static void tell_lists(struct heartbeat_client *heartbeat, const struct beat_answer *answer)
{
	static const enum heartbeat_kind kinds[] = {[BEAT_CANCEL] = HEARTBEAT_CANCEL,
		[BEAT_REPORTED] = HEARTBEAT_REPORTED,
		[BEAT_PARK] = HEARTBEAT_STOP_WAITING,
		[BEAT_TOLD] = HEARTBEAT_TOLD};

	for (uint32_t i = 0; i < answer->lost_count; i++)
		tell(heartbeat, (struct heartbeat_event){.kind = HEARTBEAT_LOST, .id = answer->lost[i]});
	for (uint32_t i = 0; i < answer->command_count; i++)
		tell(heartbeat,
			(struct heartbeat_event){
				.kind = kinds[answer->commands[i].kind], .id = answer->commands[i].task});
}

static void note_contact(struct heartbeat_client *heartbeat, enum beat_outcome outcome,
	const struct beat_said *said, int fault)
{
	bool away = outcome == BEAT_UNANSWERED || outcome == BEAT_BUSY;

	if (away == heartbeat->away)
		return;
	heartbeat->away = away;
	heartbeat->news_at_ms = 0;
	tell(heartbeat,
		(struct heartbeat_event){.kind = away ? HEARTBEAT_AWAY : HEARTBEAT_BACK,
			.fault = fault,
			.status = said->status,
			.detail = said->detail});
}

static void hear(struct heartbeat_client *heartbeat, struct beat_answer *answer, const struct beat_said *said,
	int fault)
{
	bool was_new = heartbeat->beat.phase == BEAT_NEW;
	struct beat_effects news;

	beat_hear(&heartbeat->beat, worker_clock_ms(), answer, &news);
	note_contact(heartbeat, answer->outcome, said, fault);
	if (answer->outcome == BEAT_ACCEPTED && was_new) {
		if (said->credential.len > 0 && said->credential.len <= TOKEN_BYTES_MAX)
			memcpy(heartbeat->credential, said->credential.data, said->credential.len + 1);
		tell(heartbeat, (struct heartbeat_event){.kind = HEARTBEAT_REGISTERED});
	}
	if (answer->outcome == BEAT_REFUSED)
		tell(heartbeat,
			(struct heartbeat_event){.kind = HEARTBEAT_REFUSED,
				.status = said->status,
				.code = said->code,
				.detail = said->detail,
				.holder = said->slot_holder});
	if (answer->outcome == BEAT_ACCEPTED)
		tell_lists(heartbeat, answer);
	if (news.vouched)
		tell(heartbeat, (struct heartbeat_event){.kind = HEARTBEAT_VOUCHED});
	if (news.standing)
		tell(heartbeat,
			(struct heartbeat_event){
				.kind = HEARTBEAT_STANDING, .standing = heartbeat->beat.standing});
	if (news.over)
		tell(heartbeat, (struct heartbeat_event){.kind = HEARTBEAT_OVER});
}

/* The credential of a registration ends with it. The server says what became of the worker only to its owner: ask again with
 * the token that we came with. For the machine of beat.h that is a beat whose answer was lost. */
static void doubt_credential(
	struct heartbeat_client *heartbeat, const struct beat_said *said, struct beat_answer *heard)
{
	if (said->status != 401 || !heartbeat->credential[0])
		return;
	heartbeat->credential[0] = 0;
	heard->outcome = BEAT_TOKEN_MISMATCH;
	arena_copy(&heartbeat->arena, span_of(heartbeat->beat.token), &heard->token);
}

bool heartbeat_fault_is_ours(int fault)
{
	return fault == -EMFILE || fault == -ENFILE || fault == -ENOMEM || fault == -ENOBUFS;
}

static void on_answer(void *context, int fault, const struct http_answer *answer)
{
	struct heartbeat_client *heartbeat = context;
	struct beat_answer heard = {.outcome = BEAT_UNANSWERED, .unsent = heartbeat_fault_is_ours(fault)};
	struct beat_said said = {0};

	if (fault == 0)
		beat_read(answer, &heartbeat->arena, &heard, &said);
	doubt_credential(heartbeat, &said, &heard);
	hear(heartbeat, &heard, &said, fault);
	arena_reset(&heartbeat->arena);
	look(heartbeat);
}

/* ---- the request ---- */

static int64_t timeout_ms(const struct heartbeat_client *heartbeat)
{
	int64_t quarter_ms = heartbeat->beat.lease_ms / 4;

	if (heartbeat->beat.lease_ms == 0 || quarter_ms > TIMEOUT_MS_MAX)
		return TIMEOUT_MS_MAX;
	return quarter_ms > TIMEOUT_MS_MIN ? quarter_ms : TIMEOUT_MS_MIN;
}

static int send_beat(struct heartbeat_client *heartbeat, const struct beat_request *request)
{
	assert(!request->registers || !heartbeat->credential[0]); /* it ended with the last registration */
	buf_clear(&heartbeat->body);
	int r = beat_put(&heartbeat->body, request, span_of(heartbeat->id), buf_span(&heartbeat->about));
	if (r < 0)
		return r;
	heartbeat->describes = false; /* if it is lost the next change tells it */
	/* it may be repeated: the server answers a used token with the current one */
	return api_client_post(heartbeat->client,
		request->registers ? SPAN("/api/workers/register") : SPAN("/api/workers/heartbeat"),
		buf_span(&heartbeat->body), heartbeat_token(heartbeat), timeout_ms(heartbeat), on_answer,
		heartbeat);
}

/* ---- news: somebody has done something that the next beat will be told of ---- */

static int64_t news_pause_ms(struct heartbeat_client *heartbeat, int status, bool news)
{
	bool waited = uv_now(heartbeat->timer.loop) - heartbeat->news_asked_ms >= NEWS_WAIT_MS / 2;

	if (status == 200 && (news || waited)) {
		heartbeat->news_failures = 0;
		return NEWS_GAP_MS;
	}
	if (status >= 400 && status < 500 && status != 429)
		return NEWS_REFUSED_MS;
	return retry_delay_ms(++heartbeat->news_failures, NEWS_AWAY_MS, &heartbeat->beat.rng);
}

/* What it is about the beat will tell. A credential that is no longer good, and a worker that is given up, are news; to a claimant
 * any refusal is: it may hold nothing any more. */
static void on_news(void *context, int fault, const struct http_answer *answer)
{
	struct heartbeat_client *heartbeat = context;
	int status = fault == 0 ? http_answer_status(answer) : 0;
	bool news = status == 401 || status == 410 || (heartbeat->plain && status >= 400 && status < 500);

	if (status == 200)
		news = news_read(answer, &heartbeat->news_seq);
	heartbeat->news_at_ms =
		uv_now(heartbeat->timer.loop) + (uint64_t)news_pause_ms(heartbeat, status, news);
	if (news && heartbeat->plain)
		tell(heartbeat, (struct heartbeat_event){.kind = HEARTBEAT_NOTIFIED});
	else if (news)
		heartbeat_hurry(heartbeat);
	arm(heartbeat);
}

static void ask_for_news(struct heartbeat_client *heartbeat)
{
	cleanup(buf_done) struct buf target = {0};

	buf_init(&target, 1024);
	int r = news_put_target(&target, span_of(heartbeat->id), heartbeat->news_seq);
	heartbeat->news_asked_ms = uv_now(heartbeat->timer.loop);
	if (r < 0 ||
		api_client_get(heartbeat->news, buf_span(&target), heartbeat_token(heartbeat),
			NEWS_WAIT_MS + NEWS_SLACK_MS, on_news, heartbeat) < 0)
		heartbeat->news_at_ms = heartbeat->news_asked_ms + NEWS_REFUSED_MS;
}

/* What is true when all that was due is done. */
static void check(const struct heartbeat_client *heartbeat)
{
	const struct beat_state *state = &heartbeat->beat;

	if (heartbeat->stopped) /* by its owner, in a callback */
		return;
	assert(state->under_way == api_client_is_busy(heartbeat->client));
	assert(!heartbeat->plain || state->phase == BEAT_NEW); /* a claimant never registers */
	assert(!heartbeat->plain || !state->under_way);
	assert(!heartbeat->credential[0] || state->phase != BEAT_NEW);
	assert(!heartbeat->away || state->failures > 0); /* and the next try is due by that count */
}

static void beat(struct heartbeat_client *heartbeat)
{
	struct beat_request request;
	int64_t now_ms = worker_clock_ms();

	if (beat_lapses(&heartbeat->beat, now_ms))
		tell(heartbeat,
			(struct heartbeat_event){
				.kind = HEARTBEAT_LAPSED, .until_ms = beat_lease_end_ms(&heartbeat->beat)});
	if (api_client_is_busy(heartbeat->client) || !beat_send(&heartbeat->beat, now_ms, &request))
		return;
	request.describes = heartbeat->describes;
	int r = send_beat(heartbeat, &request);
	if (r < 0) { /* no memory */
		struct beat_answer none = {.outcome = BEAT_UNANSWERED, .unsent = true};
		hear(heartbeat, &none, &(struct beat_said){0}, r);
	}
}

/* Whatever is due. */
static void look(struct heartbeat_client *heartbeat)
{
	if (heartbeat->stopped)
		return;
	if (!heartbeat->plain) {
		beat(heartbeat);
	} else if (!heartbeat->told) {
		heartbeat->told = true;
		tell(heartbeat, (struct heartbeat_event){.kind = HEARTBEAT_REGISTERED});
	}
	if (news_in_ms(heartbeat) == 0)
		ask_for_news(heartbeat);
	arm(heartbeat);
	check(heartbeat);
}

/* ---- for the owner ---- */

int heartbeat_bind(struct heartbeat_client *heartbeat, struct span id)
{
	int r = beat_bind(&heartbeat->beat, id, worker_clock_ms());

	arm(heartbeat);
	return r;
}

void heartbeat_let_go(struct heartbeat_client *heartbeat, struct span id, bool knows)
{
	if (knows)
		beat_forget(&heartbeat->beat, id);
	else
		beat_unbind(&heartbeat->beat, id, worker_clock_ms());
	arm(heartbeat);
}

void heartbeat_hurry(struct heartbeat_client *heartbeat)
{
	if (!heartbeat->away)
		beat_hurry(&heartbeat->beat, worker_clock_ms());
	arm(heartbeat);
}

int heartbeat_describe(struct heartbeat_client *heartbeat, struct span about)
{
	if (about.len > ABOUT_BYTES_MAX)
		return -E2BIG;
	buf_clear(&heartbeat->about);
	int r = buf_put_span(&heartbeat->about, about);
	heartbeat->describes = r == 0 && heartbeat->beat.phase == BEAT_ALIVE;
	if (heartbeat->describes)
		heartbeat_hurry(heartbeat);
	return r;
}

void heartbeat_leave(struct heartbeat_client *heartbeat)
{
	heartbeat->leaving = true;
	api_client_drop(heartbeat->news);
}

static int set_id(struct heartbeat_client *heartbeat, struct span id)
{
	if (id.len == 0 || id.len > BEAT_ID_BYTES_MAX)
		return -EINVAL;
	memcpy(heartbeat->id, id.data, id.len);
	heartbeat->id[id.len] = 0;
	return 0;
}

int heartbeat_renew(struct heartbeat_client *heartbeat, struct span worker_id)
{
	int r = set_id(heartbeat, worker_id);

	if (r < 0)
		return r;
	heartbeat->credential[0] = 0;
	api_client_drop(heartbeat->news);
	heartbeat->news_seq = 0;
	heartbeat->news_at_ms = 0;
	beat_renew(&heartbeat->beat, worker_clock_ms());
	arm(heartbeat);
	return 0;
}

struct span heartbeat_worker_id(const struct heartbeat_client *heartbeat)
{
	return span_of(heartbeat->id);
}

void heartbeat_set_token(struct heartbeat_client *heartbeat, struct span token)
{
	assert(token.len <= TOKEN_BYTES_MAX);
	if (token.len > 0)
		memcpy(heartbeat->token, token.data, token.len);
	heartbeat->token[token.len] = 0;
}

struct span heartbeat_token(const struct heartbeat_client *heartbeat)
{
	return span_of(heartbeat->credential[0] ? heartbeat->credential : heartbeat->token);
}

bool heartbeat_is_alive(const struct heartbeat_client *heartbeat)
{
	return heartbeat->plain || heartbeat->beat.phase == BEAT_ALIVE;
}

bool heartbeat_is_registering(const struct heartbeat_client *heartbeat)
{
	return heartbeat->beat.phase == BEAT_NEW && api_client_is_busy(heartbeat->client);
}

bool heartbeat_is_away(const struct heartbeat_client *heartbeat)
{
	return heartbeat->away;
}

bool heartbeat_lease(const struct heartbeat_client *heartbeat, int64_t *ret_from_ms, int64_t *ret_lease_ms)
{
	if (heartbeat->plain || heartbeat->beat.lease_ms == 0)
		return false;
	*ret_from_ms = heartbeat->beat.vouched_ms;
	*ret_lease_ms = heartbeat->beat.lease_ms;
	return true;
}

bool heartbeat_is_bound(const struct heartbeat_client *heartbeat, struct span id)
{
	return beat_is_bound(&heartbeat->beat, id);
}

int64_t heartbeat_heard_ms(const struct heartbeat_client *heartbeat)
{
	return heartbeat->plain || heartbeat->beat.lease_ms == 0 ? INT64_MIN : heartbeat->beat.leased_ms;
}

/* ---- life ---- */

static int fill(struct heartbeat_client *heartbeat, uv_loop_t *loop, const struct heartbeat_options *options)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = ANSWER_BYTES_MAX};
	int r = set_id(heartbeat, options->worker_id);

	if (r < 0 || options->token.len > TOKEN_BYTES_MAX)
		return -EINVAL;
	if (options->token.len > 0)
		memcpy(heartbeat->token, options->token.data, options->token.len);
	r = buf_put_span(&heartbeat->about, options->about);
	if (r < 0)
		return r;
	heartbeat->client = api_client_new(loop, &options->address, &limits);
	heartbeat->news = api_client_new(loop, &options->address, &limits);
	if (!heartbeat->client || !heartbeat->news)
		return -ENOMEM;
	api_client_reserve(heartbeat->client);
	return 0;
}

struct heartbeat_client *heartbeat_new(
	uv_loop_t *loop, const struct heartbeat_options *options, heartbeat_tell owner, void *context)
{
	struct heartbeat_client *heartbeat =
		calloc(1, sizeof *heartbeat + options->tasks_max * sizeof heartbeat->tasks[0]);

	if (!heartbeat)
		return NULL;
	buf_init(&heartbeat->about, ABOUT_BYTES_MAX);
	buf_init(&heartbeat->body, BODY_BYTES_MAX);
	arena_init(&heartbeat->arena, 2 * ANSWER_BYTES_MAX);
	heartbeat->tell = owner;
	heartbeat->plain = options->plain;
	heartbeat->context = context;
	if (fill(heartbeat, loop, options) < 0) {
		api_client_free(heartbeat->client);
		api_client_free(heartbeat->news);
		buf_done(&heartbeat->about);
		free(heartbeat);
		return NULL;
	}
	uv_timer_init(loop, &heartbeat->timer);
	heartbeat->timer.data = heartbeat;
	beat_init(&heartbeat->beat, &options->rules, heartbeat->tasks, options->tasks_max, options->seed,
		worker_clock_ms());
	arm(heartbeat);
	return heartbeat;
}

static void on_closed(uv_handle_t *handle)
{
	struct heartbeat_client *heartbeat = handle->data;

	buf_done(&heartbeat->about);
	buf_done(&heartbeat->body);
	arena_done(&heartbeat->arena);
	free(heartbeat);
}

void heartbeat_free(struct heartbeat_client *heartbeat)
{
	if (!heartbeat)
		return;
	heartbeat->stopped = true;
	api_client_free(heartbeat->client);
	api_client_free(heartbeat->news);
	uv_close((uv_handle_t *)&heartbeat->timer, on_closed);
}
