/*
 * Claims that wait for work, and workers that wait for news.
 *
 * A claim that found nothing and may wait is put aside; when a turn creates work for it, it takes part in that turn;
 * when a turn leaves something to claim in one of its queues, it is asked again. First come, first served.
 *
 * Claims that name one queue stand in the list of its name's hash, so that work in one queue does not look at claims for
 * another. Claims that name several queues or none stand in one list of their own, which is looked at if one of them can
 * be meant: `named` counts how many name a queue of that hash. Each claim has a place in the order of all.
 *
 * Each claim also stands in a list of its worker's hash: if the worker gets a free place, or describes itself anew, its
 * claims may find something although no task has changed.
 *
 * A worker that waits for news stands in the list of its id's hash. A turn without news for it does not look at it.
 */
#include <assert.h>

#include "base/hash.h"
#include "server/server.h"

enum {
	WAKE_MAX = 256, /* waiting claims asked again by one turn */
	ENDED_AT_ONCE = 64,
	LOOK_MS = 3000, /* all are asked whether they may still wait, unless the time of one is up before */
};

/* Exchanges that wait no longer. They are answered after all lists were looked at: an answer may close connections, and take
 * other exchanges out of the lists. */
struct taken {
	struct exchange_list ended; /* to be answered */
	struct exchange_list away;  /* their credential is no longer valid */
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

/* ---- lists ----------------------------------------------------------------------------------------------- */

static uint32_t bucket_of(const struct server *server, struct span name)
{
	const struct hash_key key = {server->options->storage.seed, 0};

	return (uint32_t)(hash_bytes(&key, name.data, name.len) % WAITING_BUCKETS);
}

static bool is_for_news(const struct exchange *exchange)
{
	return exchange->call.step == API_NEWS;
}

static struct exchange_list *list_of(struct server *server, const struct exchange *exchange)
{
	if (is_for_news(exchange))
		return &server->waiting.news[bucket_of(server, exchange->call.news_of)];
	const struct name_list *queues = queues_of(exchange);

	return &server->waiting
			.claims[queues->count == 1 ? bucket_of(server, queues->items[0]) : WAITING_BUCKETS];
}

static struct span claimant_of(const struct exchange *exchange)
{
	return exchange->call.commands[exchange->call.command_count - 1].worker;
}

static void link_claimant(struct server *server, struct exchange *exchange, bool is_more)
{
	struct exchange **link = &server->waiting.claimants[bucket_of(server, claimant_of(exchange))];

	if (is_more) {
		exchange->of_claimant = *link;
		*link = exchange;
		return;
	}
	while (*link != exchange) {
		assert(*link);
		link = &(*link)->of_claimant;
	}
	*link = exchange->of_claimant;
	exchange->of_claimant = NULL;
}

/* One more, or one less. */
static void count_one(struct server *server, struct exchange *exchange, bool is_more)
{
	struct waiting *waiting = &server->waiting;
	uint32_t change = is_more ? 1 : UINT32_MAX; /* minus one */

	if (is_for_news(exchange)) {
		assert(is_more || waiting->news_count > 0);
		waiting->news_count += change;
		return;
	}
	const struct name_list *queues = queues_of(exchange);

	link_claimant(server, exchange, is_more);
	assert(is_more || waiting->count > 0);
	waiting->count += change;
	if (queues->count == 0) {
		assert(is_more || waiting->nameless > 0);
		waiting->nameless += change;
	}
	for (uint32_t i = 0; queues->count > 1 && i < queues->count; i++) {
		uint32_t *named = &waiting->named[bucket_of(server, queues->items[i])];
		assert(is_more || *named > 0);
		*named += change;
	}
}

/* Might one of the claims that name several queues or none mean this one? */
static bool is_meant_by_several(const struct server *server, struct span queue)
{
	return server->waiting.nameless > 0 || server->waiting.named[bucket_of(server, queue)] > 0;
}

static void look_by(struct server *server, int64_t end_ms)
{
	if (end_ms < server->waiting.look_ms)
		server->waiting.look_ms = end_ms;
}

/* A claim that was asked in vain gets its old place again: the oldest stand first, so it is not far. */
static struct exchange *next_behind(const struct exchange_list *list, uint64_t place)
{
	struct exchange *next = list->first;

	if (list->last && list->last->place < place)
		return NULL;
	while (next && next->place < place)
		next = next->next;
	assert(!next || next->place > place); /* a place is given to one exchange */
	return next;
}

void waiting_add(struct server *server, struct exchange *exchange)
{
	if (exchange->wait_until_ms == 0) {
		exchange->wait_until_ms = server->now.lease_ms + exchange->call.wait_ms;
		exchange->place = ++server->waiting.places;
		exchange_compact(exchange);
	}
	look_by(server, exchange->wait_until_ms);
	exchange_move(exchange, EXCHANGE_WAITING);
	exchange->has_waited = true;
	struct exchange_list *list = list_of(server, exchange);
	exchange_list_insert(list, exchange, next_behind(list, exchange->place));
	count_one(server, exchange, true);
}

void waiting_remove(struct server *server, struct exchange *exchange)
{
	assert(exchange->state == EXCHANGE_WAITING);
	assert(exchange->place > 0);
	exchange_list_remove(exchange);
	count_one(server, exchange, false);
	exchange_move(exchange, EXCHANGE_TAKEN);
}

struct exchange *waiting_first_for(struct server *server, struct span queue)
{
	const struct waiting *waiting = &server->waiting;
	struct exchange *of_queue = waiting->claims[bucket_of(server, queue)].first, *of_several = NULL;

	if (is_meant_by_several(server, queue))
		of_several = waiting->claims[WAITING_BUCKETS].first;
	while (of_queue && !is_asked_for(of_queue, queue)) /* names that meet in one list */
		of_queue = of_queue->next;
	while (of_several && !is_asked_for(of_several, queue))
		of_several = of_several->next;
	if (!of_queue || (of_several && of_several->place < of_queue->place))
		return of_several;
	return of_queue;
}

/* ---- the end of waiting ------------------------------------------------------------------------------------- */

/* Take it out, to be answered as its credential allows. */
static void take(struct server *server, struct exchange *exchange, struct taken *taken)
{
	waiting_remove(server, exchange);
	exchange_list_add(admission_is_still_good(server, exchange) ? &taken->ended : &taken->away, exchange);
}

static void answer_all(struct server *server, struct taken *taken, bool has_news)
{
	struct exchange *exchange;

	while ((exchange = exchange_list_take(&taken->ended))) {
		exchange->wait_until_ms = 0;
		if (is_for_news(exchange)) {
			api_finish_news(&exchange->call, has_news);
		} else {
			server->metrics.claims[CLAIM_EMPTY]++;
			api_finish_empty(&exchange->call);
		}
		exchange_answer(server, exchange);
		if (taken->ended.count % ENDED_AT_ONCE ==
			0) /* ten thousand replies are not held all together */
			connections_flush(server);
	}
	while ((exchange = exchange_list_take(&taken->away)))
		exchange_refuse_credential(server, exchange);
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

/* An account is no longer held: any of them may find something. */
static void note_any(struct waiting *waiting)
{
	waiting->wakeups++;
	waiting->wake_batch = WAKE_MAX;
	waiting->ready_any = true;
}

static struct span ready_queue(const struct server *server, uint32_t index)
{
	assert(index < server->waiting.ready_queue_count);
	return store_name(server->store, server->waiting.ready_queues[index]);
}

static bool is_served(const struct server *server, const struct exchange *exchange)
{
	const struct waiting *waiting = &server->waiting;

	for (uint32_t i = 0; !waiting->ready_any && i < waiting->ready_queue_count; i++) {
		if (is_asked_for(exchange, ready_queue(server, i)))
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

static void add_front(const struct server *server, uint32_t list, struct exchange **fronts, uint32_t *count)
{
	struct exchange *front = next_served(server, server->waiting.claims[list].first);

	if (front)
		fronts[(*count)++] = front;
}

/* The first of every list that may be served. */
static uint32_t find_fronts(const struct server *server, struct exchange *fronts[WAITING_LISTS])
{
	const struct waiting *waiting = &server->waiting;
	bool is_added[WAITING_LISTS] = {0};
	uint32_t count = 0;

	for (uint32_t i = 0; waiting->ready_any && i < WAITING_LISTS; i++)
		add_front(server, i, fronts, &count);
	for (uint32_t i = 0; !waiting->ready_any && i < waiting->ready_queue_count; i++) {
		uint32_t list = bucket_of(server, ready_queue(server, i));
		if (!is_added[list])
			add_front(server, list, fronts, &count);
		is_added[list] = true;
		if (!is_added[WAITING_BUCKETS] && is_meant_by_several(server, ready_queue(server, i))) {
			add_front(server, WAITING_BUCKETS, fronts, &count);
			is_added[WAITING_BUCKETS] = true;
		}
	}
	return count;
}

/* The claim in front that has waited longest; the next of its list is in front then. */
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
	return exchange;
}

/* It has a turn, if its credential is still good. */
static void ask_again(struct server *server, struct exchange *exchange, struct taken *taken)
{
	waiting_remove(server, exchange);
	if (admission_is_still_good(server, exchange))
		exchange_want_turn(server, exchange);
	else
		exchange_list_add(&taken->away, exchange);
}

static bool wake_some(struct server *server)
{
	struct exchange *fronts[WAITING_LISTS], *exchange;
	struct taken taken = {0};
	uint32_t count = find_fronts(server, fronts), woken = 0;

	while (woken < server->waiting.wake_batch && (exchange = take_front(server, fronts, &count))) {
		exchange->tried = server->waiting.wakeups;
		ask_again(server, exchange, &taken);
		woken++;
	}
	answer_all(server, &taken, false);
	return woken > 0;
}

static uint32_t wake_claimant(struct server *server, struct span worker, struct taken *taken)
{
	struct exchange *next;
	uint32_t woken = 0;

	for (struct exchange *exchange = server->waiting.claimants[bucket_of(server, worker)]; exchange;
		exchange = next) {
		next = exchange->of_claimant;
		if (!span_equal(claimant_of(exchange), worker))
			continue;
		ask_again(server, exchange, taken);
		woken++;
	}
	return woken;
}

static bool is_for_slot(const struct server *server, const struct exchange *exchange, struct span slot)
{
	const struct command *claim = &exchange->call.commands[exchange->call.command_count - 1];
	struct worker worker;

	return span_equal(claim->claim.slot, slot) ||
		(store_worker(server->store, claim->worker, &worker) &&
			span_equal(store_name(server->store, worker.slot), slot));
}

/* All claims are looked at: quarantines are seldom lifted. */
static uint32_t wake_slot(struct server *server, struct span slot, struct taken *taken)
{
	struct exchange *next;
	uint32_t woken = 0;

	for (uint32_t i = 0; i < WAITING_LISTS; i++) {
		for (struct exchange *exchange = server->waiting.claims[i].first; exchange; exchange = next) {
			next = exchange->next;
			if (!is_for_slot(server, exchange, slot))
				continue;
			ask_again(server, exchange, taken);
			woken++;
		}
	}
	return woken;
}

/* Claims that wait for their worker or slot rather than for a task: the worker has a free place, or takes other tasks than
 * before; the slot was opened. */
static bool wake_claimants(struct server *server)
{
	struct taken taken = {0};
	uint32_t at = 0, slot_at = 0, woken = 0;
	struct span name;

	while (server->waiting.count > 0 && store_next_widened(server->store, &at, &name))
		woken += wake_claimant(server, name, &taken);
	while (server->waiting.count > 0 && store_next_opened_slot(server->store, &slot_at, &name))
		woken += wake_slot(server, name, &taken);
	answer_all(server, &taken, false);
	return woken > 0;
}

/* Nothing is handed out any more: waiting claims ask once again, and hear so. */
static bool wake_everyone(struct server *server)
{
	struct taken taken = {0};
	struct exchange *exchange;
	uint32_t woken = 0;

	for (uint32_t i = 0; i < WAITING_LISTS; i++) {
		for (; woken < WAKE_MAX && (exchange = server->waiting.claims[i].first); woken++)
			ask_again(server, exchange, &taken);
	}
	answer_all(server, &taken, false);
	return woken > 0;
}

/* As many as there are tasks are asked; if those could not take them, twice as many of the others, until everyone has
 * been asked once. */
bool waiting_wake(struct server *server)
{
	struct waiting *waiting = &server->waiting;
	uint32_t queues[READY_QUEUES_MAX];
	struct ready_work work = store_ready_work(server->store, queues, READY_QUEUES_MAX);
	bool woken = wake_claimants(server);

	if (!store_is_armed(server->store, NULL) && wake_everyone(server))
		return true;
	if (work.tasks > 0)
		note_ready(waiting, queues, work);
	else
		waiting->wake_batch *= 2;
	if (store_holds_let(server->store))
		note_any(waiting);
	if (waiting->wake_batch > WAKE_MAX)
		waiting->wake_batch = WAKE_MAX;
	if (waiting->count > 0 && (waiting->ready_any || waiting->ready_queue_count > 0) && wake_some(server))
		return true;
	waiting->ready_queue_count = 0;
	waiting->ready_any = false;
	return woken;
}

/* ---- nothing has come ---------------------------------------------------------------------------------------- */

/* A claim whose credential is no longer good learns so soon, not when its time is up. */
static void sweep_list(struct server *server, const struct exchange_list *list, struct taken *taken)
{
	struct exchange *next;

	for (struct exchange *exchange = list->first; exchange; exchange = next) {
		next = exchange->next;
		if (!server->stopping && server->now.lease_ms < exchange->wait_until_ms &&
			admission_is_still_good(server, exchange))
			look_by(server, exchange->wait_until_ms);
		else
			take(server, exchange, taken);
	}
}

void waiting_sweep(struct server *server)
{
	struct taken taken = {0};

	if (server->now.lease_ms < server->waiting.look_ms && !server->stopping)
		return;
	server->waiting.look_ms = server->now.lease_ms + LOOK_MS;
	for (uint32_t i = 0; i < WAITING_LISTS; i++)
		sweep_list(server, &server->waiting.claims[i], &taken);
	for (uint32_t i = 0; i < WAITING_BUCKETS && server->waiting.news_count > 0; i++)
		sweep_list(server, &server->waiting.news[i], &taken);
	answer_all(server, &taken, false);
}

/* ---- news have come ------------------------------------------------------------------------------------------ */

/* An operator has told it to take nothing new, to end, or that it has ended. Workers whose lease is over do not hear it, and
 * may be thousands. */
static bool is_sent_away(const struct server *server, struct span id)
{
	struct worker worker;

	return store_worker(server->store, id, &worker) &&
		(worker.state == WORKER_QUIET || worker.state == WORKER_TERMINATING ||
			worker.ended == WORKER_TERMINATED);
}

static void take_told(struct server *server, struct span worker, struct taken *taken)
{
	struct exchange *next;

	for (struct exchange *exchange = server->waiting.news[bucket_of(server, worker)].first; exchange;
		exchange = next) {
		next = exchange->next;
		if (span_equal(exchange->call.news_of, worker))
			take(server, exchange, taken);
	}
}

/* Claims that can get nothing need not wait. Looked for one by one, because operators seldom send a worker away. */
static void take_claims(struct server *server, struct taken *taken)
{
	struct exchange *next;

	for (uint32_t i = 0; i < WAITING_LISTS && server->waiting.count > 0; i++) {
		for (struct exchange *exchange = server->waiting.claims[i].first; exchange; exchange = next) {
			next = exchange->next;
			if (is_sent_away(server, exchange->call.commands[0].worker))
				take(server, exchange, taken);
		}
	}
}

void waiting_tell(struct server *server)
{
	uint32_t count;
	const struct span *workers = store_notified(server->store, &count);
	struct taken taken = {0};
	bool any_sent_away = false;

	for (uint32_t i = 0; i < count; i++) {
		take_told(server, workers[i], &taken);
		any_sent_away |= is_sent_away(server, workers[i]);
	}
	if (any_sent_away)
		take_claims(server, &taken);
	answer_all(server, &taken, true);
}
