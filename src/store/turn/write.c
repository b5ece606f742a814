/*
 * Decisions about everything but tasks: workers, queues, slots, execution and tokens.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/record/small.h"
#include "store/turn/parts.h"

int turn_store_worker(struct turn *turn, struct turn_worker *view)
{
	const struct holder *holder = index_holder(&turn->store->index, view->worker.handle);
	struct worker_row row = {
		.worker = view->worker,
		.id = view->id,
		.instance = view->instance,
		.metadata = view->metadata.data ? view->metadata
						: (struct span){holder->metadata, holder->metadata_len},
		.ended_ms = holder->ended_ms,
	};

	assert(view->worker.handle != 0); /* it has its place in the index */
	if (view->worker.state == WORKER_INACTIVE && row.ended_ms == 0)
		row.ended_ms = turn->given.now.wall_ms;
	if (view->worker.state != WORKER_INACTIVE)
		row.ended_ms = 0;
	view->stale_on_disk = false;
	view->worker.stored_deadline_ms = view->worker.lease.deadline_ms;
	return turn_put(turn, put_worker, &row);
}

int turn_write_worker(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision,
	struct record *record)
{
	assert(decision->refusal == REFUSED_NOTHING);
	bool is_sent_away = worker_is_alive(&view->worker) && decision->worker.state != view->worker.state;
	if (is_sent_away) {
		int r = turn_notify(turn, view->worker.handle);
		if (r < 0)
			return r;
	}
	if (worker_takes_other(&view->worker, &decision->worker))
		view->widened = turn->any_widened = true;
	uint32_t held = view->worker.held;
	view->worker = decision->worker;
	view->worker.held = held;
	if (decision->event == EVENT_WORKER_REGISTERED)
		view->instance++;
	if (decision->event != EVENT_NONE) {
		record->worker = view->id;
		record_fact(record, FACT_INSTANCE, view->instance);
		record_fact(record, FACT_GRANTED, view->worker.lease.granted_ms);
		record->subject = names_text(&turn->store->names, view->worker.slot);
		int r = turn_write_event(turn, record);
		if (r < 0)
			return r;
	}
	if (decision->must_store)
		return turn_store_worker(turn, view);
	view->stale_on_disk |= decision->store_soon;
	return 0;
}

int turn_write_queue(struct turn *turn, uint32_t name, enum queue_state state, struct record *record)
{
	char data[SMALL_BYTES_MAX];
	uint32_t i = 0;

	assert(name != 0);
	while (i < turn->queue_count && turn->queues[i].name != name)
		i++;
	int r = turn_grow((void **)&turn->queues, i, &turn->queue_cap, sizeof *turn->queues);
	if (r < 0)
		return r;
	record->subject = names_text(&turn->store->names, name);
	r = turn_write_event(turn, record);
	if (r < 0)
		return r;
	turn->queues[i] = (struct turn_queue){name, state};
	if (i == turn->queue_count)
		turn->queue_count++;
	return turn_put(turn, put_small, SMALL_QUEUE, names_text(&turn->store->names, name),
		small_queue_put(state, data));
}

int turn_write_execution(struct turn *turn, enum execution execution, struct record *record)
{
	int r = turn_write_event(turn, record);

	if (r < 0)
		return r;
	turn->facts.disarmed = !execution_is_armed(execution);
	turn->facts.execution_ms = record->wall_ms;
	turn->given.disarmed = turn->facts.disarmed; /* from here on, in this very turn */
	turn_put(turn, put_meta, META_EXECUTION, execution);
	return turn_put(turn, put_meta, META_EXECUTION_MS, record->wall_ms);
}

int turn_write_slot(struct turn *turn, uint32_t name, const struct slot *slot, enum event_kind event,
	struct record *record)
{
	char data[SMALL_BYTES_MAX];
	uint32_t i = 0;

	assert(name != 0);
	while (i < turn->slot_count && turn->slots[i].name != name)
		i++;
	int r = turn_grow((void **)&turn->slots, i, &turn->slot_cap, sizeof *turn->slots);
	if (r == 0 && event != EVENT_NONE) {
		record->subject = names_text(&turn->store->names, name);
		r = turn_write_event(turn, record);
	}
	if (r < 0)
		return r;
	turn->slots[i] = (struct turn_slot){name, *slot};
	if (i == turn->slot_count)
		turn->slot_count++;
	return turn_put(turn, put_small, SMALL_SLOT, names_text(&turn->store->names, name),
		small_slot_put(slot, data));
}

int turn_write_token(struct turn *turn, const struct token *token)
{
	int r = turn_grow(
		(void **)&turn->tokens, turn->token_count, &turn->token_cap, sizeof(struct token *));
	struct token *copy = r == 0 ? token_copy(token) : NULL;

	if (!copy)
		return -ENOMEM;
	turn->tokens[turn->token_count++] = copy;
	assert(token_is_sound(copy));
	r = turn_put(turn, put_token, copy);
	if (r < 0 || !token_has_more(copy))
		return r;
	char data[SMALL_BYTES_MAX];
	return turn_put(turn, put_small, SMALL_TOKEN, copy->id, small_token_put(&copy->more, data));
}

/* The turn's copy of that login, or a place for one. -ENOMEM. */
static int login_place(struct turn *turn, const struct browser_login *login, struct turn_login **ret_place)
{
	uint32_t i = 0;

	while (i < turn->login_count && strcmp(turn->logins[i].login.id, login->id) != 0)
		i++;
	struct browser_login copy = *login; /* it may lie in the list that grows */
	int r = turn_grow((void **)&turn->logins, i, &turn->login_cap, sizeof *turn->logins);
	if (r < 0)
		return r;
	turn->logins[i] = (struct turn_login){.login = copy};
	if (i == turn->login_count)
		turn->login_count++;
	*ret_place = &turn->logins[i];
	return 0;
}

int turn_write_login(struct turn *turn, const struct browser_login *login)
{
	char data[SMALL_LOGIN_BYTES_MAX];
	struct turn_login *place;

	assert(login_is_sound(login));
	int r = login_place(turn, login, &place);
	if (r < 0)
		return r;
	return turn_put(
		turn, put_small, SMALL_LOGIN, span_of(place->login.id), small_login_put(&place->login, data));
}

int turn_drop_login(struct turn *turn, const struct browser_login *login)
{
	struct turn_login *place;
	int r = login_place(turn, login, &place);

	if (r < 0)
		return r;
	place->gone = true;
	return turn_put(turn, delete_small, SMALL_LOGIN, span_of(place->login.id));
}
