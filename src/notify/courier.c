#include "notify/courier.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum {
	KEEP_MS = 10 * 1000,   /* a cursor that moved past what is not for its target may wait that long */
	LOOK_BACK = 10 * 1000, /* events, after a restore */
};

static struct queued_message *letter_at(struct courier *courier, uint32_t n)
{
	return &courier->queue[(courier->first + n) % COURIER_QUEUE_MAX];
}

int courier_open(struct courier *courier, const struct target *target, const struct targets *targets,
	CURLM *multi, struct rng *rng, int dir_fd)
{
	*courier = (struct courier){
		.target = target, .targets = targets, .multi = multi, .rng = rng, .dir_fd = dir_fd};
	for (uint32_t i = 0; i < COURIER_QUEUE_MAX; i++)
		buf_init(&courier->queue[i].body, MESSAGE_BYTES_MAX);
	int r = cursor_read(dir_fd, target->name, &courier->cursor);
	courier->seen = courier->cursor.seq;
	courier->seen_ms = courier->cursor.time_ms;
	return r < 0 ? r : delivery_init(&courier->delivery, target, courier);
}

void courier_close(struct courier *courier)
{
	if (courier->under_way)
		curl_multi_remove_handle(courier->multi, courier->delivery.easy);
	delivery_done(&courier->delivery);
	for (uint32_t i = 0; i < COURIER_QUEUE_MAX; i++)
		buf_done(&courier->queue[i].body);
}

/* ---- the place ------------------------------------------------------------------------------------------------ */

int courier_keep(struct courier *courier)
{
	const struct queued_message *waits = courier->count > 0 ? letter_at(courier, 0) : NULL;
	struct cursor *cursor = &courier->cursor;

	if (!cursor->known)
		return 0;
	/* the smaller: after a restore, what waits may still be counted as before it */
	cursor->seq = waits && waits->seq <= courier->seen ? waits->seq - 1 : courier->seen;
	cursor->time_ms = waits ? waits->time_ms - 1 : courier->seen_ms;
	courier->moved = false;
	return cursor_write(courier->dir_fd, courier->target->name, cursor);
}

/* A restored store counts on from its backup: numbers that were told of mean other events now. What is younger than the
 * last event that was looked at is news; that is looked for among the latest. */
static void look_back(struct courier *courier, int64_t generation, int64_t last_seq)
{
	log_warn("the store was restored, going on with what is new in it",
		log_cstr("target", courier->target->name), log_int("generation", generation));
	courier->cursor.repeats_seq = last_seq;
	courier->cursor.repeats_ms = courier->seen_ms;
	if (courier->seen > last_seq)
		courier->seen = last_seq;
	courier->seen = courier->seen > LOOK_BACK ? courier->seen - LOOK_BACK : 0;
}

int courier_meet(struct courier *courier, int64_t generation, int64_t last_seq, int64_t now_ms)
{
	struct cursor *cursor = &courier->cursor;

	courier->kept_ms = now_ms;
	if (cursor->known && cursor->generation == generation && courier->seen <= last_seq)
		return 0;
	if (!cursor->known)
		courier->seen = last_seq;
	else if (cursor->generation != generation)
		look_back(courier, generation, last_seq);
	else {
		log_warn("the store is another one, going on from now",
			log_cstr("target", courier->target->name));
		cursor->repeats_seq = 0;
		courier->seen = last_seq;
	}
	cursor->known = true;
	cursor->generation = generation;
	return courier_keep(courier);
}

void courier_skip(struct courier *courier, int64_t oldest)
{
	if (courier->seen >= oldest)
		return;
	/* else it only looks back, for what it may not know */
	if (courier->seen >= courier->cursor.repeats_seq) {
		log_warn("events are gone from the server before they were looked at",
			log_cstr("target", courier->target->name), log_int("missed", oldest - courier->seen));
		courier->cursor.missed += oldest - courier->seen;
	}
	courier->seen = oldest;
	courier->moved = true;
}

/* ---- what comes ------------------------------------------------------------------------------------------------ */

static int enqueue(struct courier *courier, int64_t generation, yyjson_val *event, int64_t time_ms)
{
	struct queued_message *letter = letter_at(courier, courier->count);
	char id[MESSAGE_ID_BYTES];

	letter->seq = yyjson_get_sint(yyjson_obj_get(event, "seq"));
	letter->time_ms = time_ms;
	letter->generation = generation;
	message_id(id, courier->targets->source, generation, letter->seq);
	int r = message_put(&letter->body, courier->target, courier->targets->source, id, event);
	if (r < 0)
		return r;
	courier->bytes += letter->body.len;
	if (courier->count++ == 0) {
		courier->tries = 0;
		courier->due_ms = 0;
	}
	return 0;
}

int courier_offer(struct courier *courier, int64_t generation, yyjson_val *event)
{
	int64_t seq = yyjson_get_sint(yyjson_obj_get(event, "seq"));
	int64_t time_ms = yyjson_get_sint(yyjson_obj_get(event, "time"));
	bool known = seq <= courier->cursor.repeats_seq && time_ms <= courier->cursor.repeats_ms;

	if (courier->behind || seq <= courier->seen)
		return 0;
	if (!known && message_is_wanted(courier->target, event)) {
		courier->behind =
			courier->count == COURIER_QUEUE_MAX || courier->bytes >= COURIER_QUEUE_BYTES_MAX;
		if (courier->behind)
			return 0;
		int r = enqueue(courier, generation, event, time_ms);
		if (r == -ENOMEM)
			return r;
		if (r < 0) { /* not even without its data does it fit */
			log_error("given up: an event is too long", log_cstr("target", courier->target->name),
				log_int("seq", seq));
			courier->cursor.given_up++;
		}
	}
	courier->seen = seq;
	courier->seen_ms = time_ms > courier->seen_ms ? time_ms : courier->seen_ms;
	courier->moved = true;
	return 0;
}

/* ---- what goes --------------------------------------------------------------------------------------------------- */

static int begin(struct courier *courier, int64_t wall_ms)
{
	struct queued_message *letter = letter_at(courier, 0);
	char *id = courier->cursor.last_id;

	message_id(id, courier->targets->source, letter->generation, letter->seq);
	int r = delivery_prepare(&courier->delivery, id, wall_ms / 1000, buf_span(&letter->body));
	if (r < 0)
		return r;
	if (curl_multi_add_handle(courier->multi, courier->delivery.easy) != CURLM_OK)
		return -ENOMEM;
	courier->under_way = true;
	courier->tries++;
	return 0;
}

int courier_step(struct courier *courier, int64_t now_ms, int64_t wall_ms, int64_t *ret_next_ms)
{
	int r = 0;

	if (courier->count > 0 && !courier->under_way && courier->due_ms <= now_ms)
		r = begin(courier, wall_ms);
	if (r == 0 && courier->moved && now_ms - courier->kept_ms >= KEEP_MS) {
		courier->kept_ms = now_ms;
		r = courier_keep(courier);
	}
	if (courier->count > 0 && !courier->under_way && courier->due_ms < *ret_next_ms)
		*ret_next_ms = courier->due_ms;
	if (courier->moved && courier->kept_ms + KEEP_MS < *ret_next_ms)
		*ret_next_ms = courier->kept_ms + KEEP_MS;
	return r;
}

/* Four times as long each time, and a quarter more or less: those who failed together do not come back together. */
static int64_t pause_ms(const struct courier *courier)
{
	int64_t pause = courier->targets->retry_base_ms;

	for (uint32_t i = 1; i < courier->tries && pause < courier->targets->retry_max_ms; i++)
		pause *= 4;
	if (pause > courier->targets->retry_max_ms)
		pause = courier->targets->retry_max_ms;
	return pause - pause / 4 + rng_between(courier->rng, 0, pause / 2);
}

static void drop_first(struct courier *courier)
{
	struct queued_message *letter = letter_at(courier, 0);

	courier->bytes -= letter->body.len;
	buf_done(&letter->body);
	courier->first = (courier->first + 1) % COURIER_QUEUE_MAX;
	courier->count--;
	courier->tries = 0;
	courier->due_ms = 0;
}

/* When it is on disk: whoever reads that it is delivered may rely on it. */
static void tell(const struct courier *courier, const struct delivery_outcome *outcome, uint32_t tries,
	int64_t again_ms)
{
	struct log_field target = log_cstr("target", courier->target->name);
	struct log_field id = log_cstr("id", courier->cursor.last_id), attempt = log_int("attempt", tries);

	if (outcome->delivered)
		log_info("delivered", target, id, attempt, log_int("status", outcome->status));
	else if (again_ms > 0)
		log_warn("not delivered, trying again", target, id, attempt, log_int("againMs", again_ms),
			log_cstr("error", outcome->error));
	else
		log_error("given up", target, id, attempt, log_cstr("error", outcome->error));
}

int courier_finish(struct courier *courier, CURLcode code, int64_t now_ms, int64_t wall_ms)
{
	struct cursor *cursor = &courier->cursor;
	struct delivery_outcome outcome;
	uint32_t tries = courier->tries;
	int64_t again_ms = 0;

	assert(courier->under_way);
	assert(courier->count > 0);
	curl_multi_remove_handle(courier->multi, courier->delivery.easy);
	courier->under_way = false;
	delivery_judge(&courier->delivery, code, &outcome);
	cursor->last_ms = wall_ms;
	cursor->last_status = outcome.status;
	snprintf(cursor->last_error, sizeof cursor->last_error, "%s", outcome.error);
	if (!outcome.delivered && tries <= COURIER_RETRIES_MAX) {
		again_ms = pause_ms(courier);
		courier->due_ms = now_ms + again_ms;
	} else {
		cursor->delivered += outcome.delivered;
		cursor->given_up += !outcome.delivered;
		drop_first(courier);
	}
	/* before the next one leaves: whoever starts in our place must not send this one again if it need not */
	int r = courier_keep(courier);
	tell(courier, &outcome, tries, again_ms);
	return r;
}
