/*
 * Who waits for work, and who for news.
 *
 * A claim that found nothing and may wait is put aside; when a turn creates work for it, it takes part in that turn;
 * when a turn leaves something to claim in one of its queues, it is asked again. First come, first served.
 *
 * Those that name one queue stand in the line of its name, so that work in one queue does not look at those who wait
 * for another. Those that name several or none stand in one line of their own, which is looked at if one of them can
 * be meant: it is known how many name a queue of that hash. Each has a place in the order of all.
 *
 * A worker that waits for news stands in the line of its id, and costs no turn anything that has none for it.
 */
#include <assert.h>

#include "base/hash.h"
#include "server/server.h"

enum {
	WAKE_MAX = 256, /* waiting claims asked again by one turn */
	LINES_MAX = WAITING_LINES + 1,
	ENDED_AT_ONCE = 64,
	LOOK_MS = 3000, /* all are asked whether they may still wait, unless the time of one is up before */
};

static const struct name_list *queues_of(const struct exchange *exchange)
{
	const struct command *last = &exchange->call.commands[exchange->call.command_count - 1];

	assert(last->kind == COMMAND_CLAIM_NEXT);
	return &last->claim.queues;
}

static bool is_asked_for(const struct exchange *exchange, struct span queue)
{
	const struct name_list *queues = queues_of(exchange);

	for (uint32_t i = 0; i < queues->count; i++) {
		if (span_equal(queues->items[i], queue))
			return true;
	}
	return queues->count == 0;
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

static uint32_t line_number(const struct server *server, struct span queue)
{
	const struct hash_key key = {server->options->storage.seed, 0};

	return (uint32_t)(hash_bytes(&key, queue.data, queue.len) % WAITING_LINES);
}

static struct exchange_list *line_of(struct server *server, struct span queue)
{
	return &server->waiting.lines[line_number(server, queue)];
}

static bool is_for_news(const struct exchange *exchange)
{
	return exchange->call.step == API_NEWS;
}

static struct exchange_list *news_line(struct server *server, struct span worker)
{
	return &server->waiting.news[line_number(server, worker)];
}

static struct exchange_list *stands_in(struct server *server, const struct exchange *exchange)
{
	if (is_for_news(exchange))
		return news_line(server, exchange->call.news_of);
	const struct name_list *queues = queues_of(exchange);

	return queues->count == 1 ? line_of(server, queues->items[0]) : &server->waiting.anywhere;
}

/* One more, or one less; of those that name several queues or none it is known which. */
static void count_one(struct server *server, const struct exchange *exchange, uint32_t change)
{
	if (is_for_news(exchange)) {
		server->waiting.news_count += change;
		return;
	}
	const struct name_list *queues = queues_of(exchange);

	server->waiting.count += change;
	if (queues->count == 0)
		server->waiting.nameless += change;
	for (uint32_t i = 0; queues->count > 1 && i < queues->count; i++)
		server->waiting.named[line_number(server, queues->items[i])] += change;
}

/* Might one of those that name several queues or none mean this one? */
static bool is_meant_anywhere(const struct server *server, struct span queue)
{
	return server->waiting.nameless > 0 || server->waiting.named[line_number(server, queue)] > 0;
}

/* Whoever was asked in vain gets its old place again: the oldest stand first, so it is not far. */
static void take_place(struct exchange_list *line, struct exchange *exchange)
{
	struct exchange *after = line->first;

	if (line->last && line->last->place < exchange->place)
		after = NULL;
	while (after && after->place < exchange->place)
		after = after->next;
	if (!after) {
		exchange_list_add(line, exchange);
		return;
	}
	exchange->next = after;
	exchange->previous = after->previous;
	if (after->previous)
		after->previous->next = exchange;
	else
		line->first = exchange;
	after->previous = exchange;
	line->count++;
}

static void look_by(struct server *server, int64_t end_ms)
{
	if (end_ms < server->waiting.look_ms)
		server->waiting.look_ms = end_ms;
}

void waiting_add(struct server *server, struct exchange *exchange)
{
	if (exchange->wait_until_ms == 0) {
		exchange->wait_until_ms = server->now.lease_ms + exchange->call.wait_ms;
		exchange->place = ++server->waiting.places;
		exchange_settle(exchange);
	}
	look_by(server, exchange->wait_until_ms);
	exchange_move(exchange, EXCHANGE_WAITING);
	exchange->has_waited = true;
	take_place(stands_in(server, exchange), exchange);
	count_one(server, exchange, 1);
}

void waiting_remove(struct server *server, struct exchange *exchange)
{
	assert(exchange->state == EXCHANGE_WAITING);
	assert(exchange->place > 0);
	exchange_list_remove(stands_in(server, exchange), exchange);
	count_one(server, exchange, UINT32_MAX); /* minus one */
	exchange_move(exchange, EXCHANGE_TAKEN);
}

struct exchange *waiting_first_for(struct server *server, struct span queue)
{
	struct exchange *in_line = line_of(server, queue)->first, *anywhere = NULL;

	if (is_meant_anywhere(server, queue))
		anywhere = server->waiting.anywhere.first;
	while (in_line && !is_asked_for(in_line, queue)) /* names that meet in one line */
		in_line = in_line->next;
	while (anywhere && !is_asked_for(anywhere, queue))
		anywhere = anywhere->next;
	if (!in_line || (anywhere && anywhere->place < in_line->place))
		return anywhere;
	return in_line;
}

/* ---- work has come ----------------------------------------------------------------------------------------- */

static void note_ready(struct waiting *waiting, const uint32_t *queues, struct ready_work work)
{
	waiting->wakeups++;
	waiting->wake_batch = work.tasks;
	for (uint32_t i = 0; i < work.queue_count; i++) {
		uint32_t j = 0;
		while (j < waiting->ready_queue_count && waiting->ready_queues[j] != queues[i])
			j++;
		if (j == READY_QUEUES_MAX)
			waiting->ready_any = true;
		else if (j == waiting->ready_queue_count)
			waiting->ready_queues[waiting->ready_queue_count++] = queues[i];
	}
	waiting->ready_any |= work.queue_count == READY_QUEUES_MAX;
}

static bool is_served(const struct server *server, const struct exchange *exchange)
{
	const struct waiting *waiting = &server->waiting;

	for (uint32_t i = 0; !waiting->ready_any && i < waiting->ready_queue_count; i++) {
		if (is_asked_for(exchange, store_name(server->store, waiting->ready_queues[i])))
			return true;
	}
	return waiting->ready_any;
}

/* It, or the next behind it that has not been asked in this wake-up and may find something. */
static struct exchange *next_served(const struct server *server, struct exchange *exchange)
{
	while (exchange && (exchange->tried == server->waiting.wakeups || !is_served(server, exchange)))
		exchange = exchange->next;
	return exchange;
}

static void add_front(const struct server *server, const struct exchange_list *line, struct exchange **fronts,
	uint32_t *count)
{
	struct exchange *front = next_served(server, line->first);

	if (front)
		fronts[(*count)++] = front;
}

/* The line of a ready queue; NULL: that of a queue before it is the same one. */
static const struct exchange_list *line_of_ready(struct server *server, uint32_t index)
{
	const struct waiting *waiting = &server->waiting;
	const struct exchange_list *line =
		line_of(server, store_name(server->store, waiting->ready_queues[index]));

	for (uint32_t i = 0; i < index; i++) {
		if (line_of(server, store_name(server->store, waiting->ready_queues[i])) == line)
			return NULL;
	}
	return line;
}

/* The first of every line that may be served. */
static uint32_t find_fronts(struct server *server, struct exchange *fronts[LINES_MAX])
{
	struct waiting *waiting = &server->waiting;
	bool is_meant = waiting->ready_any;
	uint32_t count = 0;

	for (uint32_t i = 0; !is_meant && i < waiting->ready_queue_count; i++)
		is_meant = is_meant_anywhere(server, store_name(server->store, waiting->ready_queues[i]));
	if (is_meant)
		add_front(server, &waiting->anywhere, fronts, &count);
	for (uint32_t i = 0; waiting->ready_any && i < WAITING_LINES; i++)
		add_front(server, &waiting->lines[i], fronts, &count);
	for (uint32_t i = 0; !waiting->ready_any && i < waiting->ready_queue_count; i++) {
		const struct exchange_list *line = line_of_ready(server, i);
		if (line)
			add_front(server, line, fronts, &count);
	}
	return count;
}

/* Whoever has waited longest of those in front; who stands behind it is in front then. */
static struct exchange *take_front(struct server *server, struct exchange **fronts, uint32_t *count)
{
	uint32_t oldest = 0;

	if (*count == 0)
		return NULL;
	for (uint32_t i = 1; i < *count; i++) {
		if (fronts[i]->place < fronts[oldest]->place)
			oldest = i;
	}
	struct exchange *exchange = fronts[oldest];
	fronts[oldest] = next_served(server, exchange->next);
	if (!fronts[oldest])
		fronts[oldest] = fronts[--*count];
	waiting_remove(server, exchange);
	return exchange;
}

static void turn_all_away(struct server *server, struct exchange_list *away)
{
	struct exchange *exchange;

	while ((exchange = exchange_list_take(away)))
		exchange_turn_away(server, exchange);
}

/* It has a turn, if its credential is still good. */
static void go_on(struct server *server, struct exchange *exchange, struct exchange_list *away)
{
	if (gate_still_knows(server, exchange))
		exchange_want_turn(server, exchange);
	else
		exchange_list_add(away, exchange);
}

static uint32_t wake_some(struct server *server)
{
	struct exchange *fronts[LINES_MAX], *exchange;
	struct exchange_list away = {
		0}; /* answered at the end: that may close connections, and others' waiting */
	uint32_t count = find_fronts(server, fronts), woken = 0;

	while (woken < server->waiting.wake_batch && (exchange = take_front(server, fronts, &count))) {
		exchange->tried = server->waiting.wakeups;
		go_on(server, exchange, &away);
		woken++;
	}
	turn_all_away(server, &away);
	return woken;
}

/* Nothing is handed out any more: those who wait ask once again, and are told so. */
static bool wake_everyone(struct server *server)
{
	struct waiting *waiting = &server->waiting;
	struct exchange_list away = {0};
	struct exchange *exchange;
	uint32_t woken = 0;

	for (uint32_t i = 0; i < LINES_MAX; i++) {
		struct exchange_list *line = i < WAITING_LINES ? &waiting->lines[i] : &waiting->anywhere;
		for (; woken < WAKE_MAX && (exchange = line->first); woken++) {
			waiting_remove(server, exchange);
			go_on(server, exchange, &away);
		}
	}
	turn_all_away(server, &away);
	return woken > 0;
}

/* As many as there are tasks are asked; if those could not take them, twice as many of the others, until everyone has
 * been asked once. */
bool waiting_wake(struct server *server)
{
	struct waiting *waiting = &server->waiting;
	uint32_t queues[READY_QUEUES_MAX];
	struct ready_work work = store_ready_work(server->store, queues, READY_QUEUES_MAX);

	if (!store_is_armed(server->store, NULL) && wake_everyone(server))
		return true;
	if (work.tasks > 0)
		note_ready(waiting, queues, work);
	else
		waiting->wake_batch *= 2;
	if (waiting->wake_batch > WAKE_MAX)
		waiting->wake_batch = WAKE_MAX;
	if (waiting->count == 0 || waiting->ready_queue_count == 0 || wake_some(server) == 0) {
		waiting->ready_queue_count = 0;
		waiting->ready_any = false;
		return false;
	}
	return true;
}

/* ---- nothing has come ---------------------------------------------------------------------------------------- */

static void finish_empty(struct server *server, struct exchange *exchange)
{
	if (is_for_news(exchange)) {
		api_finish_news(&exchange->call, false);
		return;
	}
	server->metrics.claims[CLAIM_EMPTY]++;
	api_finish_empty(&exchange->call);
}

static void end_all(struct server *server, struct exchange_list *ended)
{
	struct exchange *exchange;

	while ((exchange = exchange_list_take(ended))) {
		exchange->wait_until_ms = 0;
		finish_empty(server, exchange);
		exchange_answer(server, exchange);
		if (ended->count % ENDED_AT_ONCE == 0) /* ten thousand replies are not held all together */
			connections_flush(server);
	}
}

/* Whose credential is no longer good learns so soon, not when its time is up. */
static void sweep_line(struct server *server, const struct exchange_list *line, struct exchange_list *ended,
	struct exchange_list *away)
{
	struct exchange *next;

	for (struct exchange *exchange = line->first; exchange; exchange = next) {
		next = exchange->next;
		bool is_known = gate_still_knows(server, exchange);
		if (is_known && !server->stopping && server->now.lease_ms < exchange->wait_until_ms) {
			look_by(server, exchange->wait_until_ms);
			continue;
		}
		waiting_remove(server, exchange);
		exchange_list_add(is_known ? ended : away, exchange);
	}
}

void waiting_sweep(struct server *server)
{
	struct exchange_list ended = {0}, away = {0};

	if (server->now.lease_ms < server->waiting.look_ms && !server->stopping)
		return;
	server->waiting.look_ms = server->now.lease_ms + LOOK_MS;
	sweep_line(server, &server->waiting.anywhere, &ended, &away);
	for (uint32_t i = 0; i < WAITING_LINES; i++)
		sweep_line(server, &server->waiting.lines[i], &ended, &away);
	for (uint32_t i = 0; i < WAITING_LINES && server->waiting.news_count > 0; i++)
		sweep_line(server, &server->waiting.news[i], &ended, &away);
	end_all(server, &ended);
	turn_all_away(server, &away);
}

/* ---- news have come ------------------------------------------------------------------------------------------ */

static void take_told(
	struct server *server, struct span worker, struct exchange_list *told, struct exchange_list *away)
{
	struct exchange *next;

	for (struct exchange *exchange = news_line(server, worker)->first; exchange; exchange = next) {
		next = exchange->next;
		if (!span_equal(exchange->call.news_of, worker))
			continue;
		waiting_remove(server, exchange);
		exchange_list_add(gate_still_knows(server, exchange) ? told : away, exchange);
	}
}

/* An operator has told it to take nothing new, to end, or that it has ended. Those whose lease is over are not there to hear
 * it, and may be thousands. */
static bool is_sent_away(const struct server *server, struct span id)
{
	struct worker worker;

	return store_worker(server->store, id, &worker) &&
		(worker.state == WORKER_QUIET || worker.state == WORKER_TERMINATING ||
			worker.ended == WORKER_TERMINATED);
}

/* Claims that can get nothing need not wait. Looked for one by one, because an operator's word is rare. */
static void take_claims(struct server *server, struct exchange_list *ended, struct exchange_list *away)
{
	struct waiting *waiting = &server->waiting;
	struct exchange *next;

	for (uint32_t i = 0; i < LINES_MAX && waiting->count > 0; i++) {
		const struct exchange_list *line =
			i < WAITING_LINES ? &waiting->lines[i] : &waiting->anywhere;
		for (struct exchange *exchange = line->first; exchange; exchange = next) {
			next = exchange->next;
			if (!is_sent_away(server, exchange->call.commands[0].worker))
				continue;
			waiting_remove(server, exchange);
			exchange_list_add(gate_still_knows(server, exchange) ? ended : away, exchange);
		}
	}
}

void waiting_tell(struct server *server)
{
	uint32_t count;
	const struct span *workers = store_notified(server->store, &count);
	struct exchange_list told = {0}, ended = {0}, away = {0}; /* answered at the end, as above */
	struct exchange *exchange;
	bool any_sent_away = false;

	if (count == 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		take_told(server, workers[i], &told, &away);
		any_sent_away |= is_sent_away(server, workers[i]);
	}
	if (any_sent_away)
		take_claims(server, &ended, &away);
	while ((exchange = exchange_list_take(&told))) {
		exchange->wait_until_ms = 0;
		api_finish_news(&exchange->call, true);
		exchange_answer(server, exchange);
	}
	end_all(server, &ended);
	turn_all_away(server, &away);
}
