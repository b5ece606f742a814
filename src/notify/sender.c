#include "notify/sender.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum {
	KEEP_MS = 10 * 1000,   /* a cursor that moved past what is not for its target may wait that long */
	LOOK_BACK = 10 * 1000, /* events, after a restore */
};

static struct queued_message *queued_at(struct sender *sender, uint32_t n)
{
	assert(n < SENDER_QUEUE_MAX);
	return &sender->queue[(sender->first + n) % SENDER_QUEUE_MAX];
}

int sender_open(struct sender *sender, const struct target *target, const struct targets *targets,
	CURLM *multi, struct rng *rng, int dir_fd)
{
	*sender = (struct sender){
		.target = target, .targets = targets, .multi = multi, .rng = rng, .dir_fd = dir_fd};
	for (uint32_t i = 0; i < SENDER_QUEUE_MAX; i++)
		buf_init(&sender->queue[i].body, MESSAGE_BYTES_MAX);
	int r = cursor_read(dir_fd, target->name, &sender->cursor);
	sender->seen = sender->cursor.seq;
	sender->seen_ms = sender->cursor.time_ms;
	history_open(&sender->history, dir_fd, target->name);
	return r < 0 ? r : delivery_init(&sender->delivery, target, sender);
}

void sender_close(struct sender *sender)
{
	if (sender->under_way)
		curl_multi_remove_handle(sender->multi, sender->delivery.easy);
	delivery_done(&sender->delivery);
	for (uint32_t i = 0; i < SENDER_QUEUE_MAX; i++)
		buf_done(&sender->queue[i].body);
}

/* ---- the place ------------------------------------------------------------------------------------------------ */

int sender_keep(struct sender *sender)
{
	const struct queued_message *waits = sender->count > 0 ? queued_at(sender, 0) : NULL;
	struct cursor *cursor = &sender->cursor;

	if (!cursor->known)
		return 0;
	/* the smaller: after a restore, what waits may still be counted as before it */
	cursor->seq = waits && waits->seq <= sender->seen ? waits->seq - 1 : sender->seen;
	cursor->time_ms = waits ? waits->time_ms - 1 : sender->seen_ms;
	sender->moved = false;
	return cursor_write(sender->dir_fd, sender->target->name, cursor);
}

/* A restored store counts on from its backup: numbers that were told of mean other events now. What is younger than the
 * last event that was looked at is new; that is looked for among the latest. */
static void look_back(struct sender *sender, int64_t generation, int64_t last_seq)
{
	log_warn("the store was restored, going on with what is new in it",
		log_cstr("target", sender->target->name), log_int("generation", generation));
	sender->cursor.repeats_seq = last_seq;
	sender->cursor.repeats_ms = sender->seen_ms;
	if (sender->seen > last_seq)
		sender->seen = last_seq;
	sender->seen = sender->seen > LOOK_BACK ? sender->seen - LOOK_BACK : 0;
}

static int meet(struct sender *sender, int64_t generation, int64_t last_seq, int64_t now_ms)
{
	struct cursor *cursor = &sender->cursor;

	sender->kept_ms = now_ms;
	if (cursor->known && cursor->generation == generation && sender->seen <= last_seq)
		return 0;
	if (!cursor->known)
		sender->seen = last_seq;
	else if (cursor->generation != generation)
		look_back(sender, generation, last_seq);
	else {
		log_warn("the store is another one, going on from now",
			log_cstr("target", sender->target->name));
		cursor->repeats_seq = 0;
		sender->seen = last_seq;
	}
	cursor->known = true;
	cursor->generation = generation;
	return sender_keep(sender);
}

static void skip(struct sender *sender, int64_t oldest)
{
	if (sender->seen >= oldest)
		return;
	/* else it only looks back, for what it may not know */
	if (sender->seen >= sender->cursor.repeats_seq) {
		log_warn("events are gone from the server before they were looked at",
			log_cstr("target", sender->target->name), log_int("missed", oldest - sender->seen));
		sender->cursor.missed += oldest - sender->seen;
	}
	sender->seen = oldest;
	sender->moved = true;
}

/* ---- what comes ------------------------------------------------------------------------------------------------ */

static int enqueue(struct sender *sender, int64_t generation, yyjson_val *event)
{
	struct queued_message *message = queued_at(sender, sender->count);
	char id[MESSAGE_ID_BYTES];

	message->seq = json_int(event, "seq");
	message->time_ms = json_int(event, "time");
	message->generation = generation;
	json_copy_text(event, "type", message->type, sizeof message->type);
	json_copy_text(event, "task", message->task, sizeof message->task);
	message_id(id, sender->targets->source, generation, message->seq);
	int r = message_put(&message->body, sender->target, sender->targets->source, id, event);
	if (r < 0)
		return r;
	sender->bytes += message->body.len;
	if (sender->count++ == 0) {
		sender->tries = 0;
		sender->due_ms = 0;
	}
	return 0;
}

static int offer(struct sender *sender, int64_t generation, yyjson_val *event)
{
	int64_t seq = json_int(event, "seq"), time_ms = json_int(event, "time");
	bool known = seq <= sender->cursor.repeats_seq && time_ms <= sender->cursor.repeats_ms;

	if (sender->behind || seq <= sender->seen)
		return 0;
	if (!known && message_is_wanted(sender->target, event)) {
		sender->behind = sender->count == SENDER_QUEUE_MAX || sender->bytes >= SENDER_QUEUE_BYTES_MAX;
		if (sender->behind)
			return 0;
		int r = enqueue(sender, generation, event);
		if (r == -ENOMEM)
			return r;
		if (r < 0) { /* not even without its data does it fit */
			log_error("given up: an event is too long", log_cstr("target", sender->target->name),
				log_int("seq", seq));
			sender->cursor.given_up++;
		}
	}
	sender->seen = seq;
	sender->seen_ms = time_ms > sender->seen_ms ? time_ms : sender->seen_ms;
	sender->moved = true;
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

int senders_meet(struct senders *senders, int64_t generation, int64_t last_seq, int64_t now_ms)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < senders->count; i++)
		r = meet(&senders->items[i], generation, last_seq, now_ms);
	return r;
}

static bool wants(const struct sender *sender, yyjson_val *event)
{
	return !sender->behind && json_int(event, "seq") > sender->seen &&
		message_is_wanted(sender->target, event);
}

bool senders_want(const struct senders *senders, yyjson_val *event)
{
	for (uint32_t i = 0; i < senders->count; i++) {
		if (wants(&senders->items[i], event))
			return true;
	}
	return false;
}

bool senders_want_spans(const struct senders *senders, yyjson_val *event)
{
	for (uint32_t i = 0; i < senders->count; i++) {
		if (senders->items[i].target->format == FORMAT_OTLP && wants(&senders->items[i], event))
			return true;
	}
	return false;
}

int senders_offer(struct senders *senders, int64_t generation, yyjson_val *event)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < senders->count; i++)
		r = offer(&senders->items[i], generation, event);
	return r;
}

void senders_skip(struct senders *senders, int64_t oldest)
{
	for (uint32_t i = 0; i < senders->count; i++)
		skip(&senders->items[i], oldest);
}

bool senders_want_more(const struct senders *senders)
{
	for (uint32_t i = 0; i < senders->count; i++) {
		if (senders->items[i].behind && senders->items[i].count == 0)
			return true;
	}
	return false;
}

int64_t senders_begin_after(struct senders *senders)
{
	int64_t least = INT64_MAX, most = 0;

	for (uint32_t i = 0; i < senders->count; i++) {
		struct sender *sender = &senders->items[i];
		if (sender->seen > most)
			most = sender->seen;
		if (sender->behind && sender->count > 0)
			continue;
		sender->behind = false;
		if (sender->seen < least)
			least = sender->seen;
	}
	return least == INT64_MAX ? most : least;
}

/* ---- what goes --------------------------------------------------------------------------------------------------- */

static int begin(struct sender *sender, int64_t wall_ms)
{
	struct queued_message *message = queued_at(sender, 0);
	char *id = sender->cursor.last_id;

	message_id(id, sender->targets->source, message->generation, message->seq);
	int r = delivery_prepare(&sender->delivery, id, wall_ms / 1000, buf_span(&message->body));
	if (r < 0)
		return r;
	if (curl_multi_add_handle(sender->multi, sender->delivery.easy) != CURLM_OK)
		return -ENOMEM;
	sender->under_way = true;
	sender->tries++;
	return 0;
}

int sender_step(struct sender *sender, int64_t now_ms, int64_t wall_ms, int64_t *ret_next_ms)
{
	int r = 0;

	if (sender->count > 0 && !sender->under_way && sender->due_ms <= now_ms)
		r = begin(sender, wall_ms);
	if (r == 0 && sender->moved && now_ms - sender->kept_ms >= KEEP_MS) {
		sender->kept_ms = now_ms;
		r = sender_keep(sender);
	}
	if (sender->count > 0 && !sender->under_way && sender->due_ms < *ret_next_ms)
		*ret_next_ms = sender->due_ms;
	if (sender->moved && sender->kept_ms + KEEP_MS < *ret_next_ms)
		*ret_next_ms = sender->kept_ms + KEEP_MS;
	return r;
}

/* Four times as long each time, and a quarter more or less: those who failed together do not come back together. */
static int64_t pause_ms(const struct sender *sender)
{
	int64_t pause = sender->targets->retry_base_ms;

	for (uint32_t i = 1; i < sender->tries && pause < sender->targets->retry_max_ms; i++)
		pause *= 4;
	if (pause > sender->targets->retry_max_ms)
		pause = sender->targets->retry_max_ms;
	return pause - pause / 4 + rng_between(sender->rng, 0, pause / 2);
}

static void drop_first(struct sender *sender)
{
	struct queued_message *message = queued_at(sender, 0);

	assert(sender->count > 0);
	assert(!sender->under_way);
	assert(sender->bytes >= message->body.len);
	sender->bytes -= message->body.len;
	buf_done(&message->body);
	sender->first = (sender->first + 1) % SENDER_QUEUE_MAX;
	sender->count--;
	sender->tries = 0;
	sender->due_ms = 0;
}

static void note(struct sender *sender, const struct delivery_outcome *outcome, int64_t again_wall_ms)
{
	const struct queued_message *message = queued_at(sender, 0);
	struct history_entry entry = {
		.at_ms = sender->cursor.last_ms,
		.again_ms = again_wall_ms,
		.status = outcome->status,
		.tries = sender->tries,
	};

	snprintf(entry.id, sizeof entry.id, "%s", sender->cursor.last_id);
	snprintf(entry.type, sizeof entry.type, "%s", message->type);
	snprintf(entry.task, sizeof entry.task, "%s", message->task);
	snprintf(entry.error, sizeof entry.error, "%s", outcome->error);
	history_note(&sender->history, &entry);
	history_keep(&sender->history, sender->dir_fd, sender->target->name);
}

/* Logged when it is on disk: a reader of "delivered" may rely on it. */
static void tell(
	const struct sender *sender, const struct delivery_outcome *outcome, uint32_t tries, int64_t again_ms)
{
	struct log_field target = log_cstr("target", sender->target->name);
	struct log_field id = log_cstr("id", sender->cursor.last_id), attempt = log_int("attempt", tries);

	if (outcome->delivered)
		log_info("delivered", target, id, attempt, log_int("status", outcome->status));
	else if (again_ms > 0)
		log_warn("not delivered, trying again", target, id, attempt, log_int("againMs", again_ms),
			log_cstr("error", outcome->error));
	else
		log_error("given up", target, id, attempt, log_cstr("error", outcome->error));
}

int sender_finish(struct sender *sender, CURLcode code, int64_t now_ms, int64_t wall_ms)
{
	struct cursor *cursor = &sender->cursor;
	uint32_t tries = sender->tries;
	int64_t again_ms = 0;

	assert(sender->under_way);
	assert(sender->count > 0);
	curl_multi_remove_handle(sender->multi, sender->delivery.easy);
	sender->under_way = false;
	struct delivery_outcome outcome = delivery_judge(&sender->delivery, code);
	cursor->last_ms = wall_ms;
	cursor->last_status = outcome.status;
	snprintf(cursor->last_error, sizeof cursor->last_error, "%s", outcome.error);
	if (!outcome.delivered && tries <= SENDER_RETRIES_MAX) {
		again_ms = pause_ms(sender);
		sender->due_ms = now_ms + again_ms;
		note(sender, &outcome, wall_ms + again_ms);
	} else {
		note(sender, &outcome, 0);
		cursor->delivered += outcome.delivered;
		cursor->given_up += !outcome.delivered;
		drop_first(sender);
	}
	/* before the next one leaves: a process started in our place must not send this one again if it need not */
	int r = sender_keep(sender);
	tell(sender, &outcome, tries, again_ms);
	return r;
}
