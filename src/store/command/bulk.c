/*
 * Bulk actions: begun and stopped by operators, and taken a step further by the server, between the turns of others and in them.
 *
 * What matches a filter is not known here. A step names the tasks that matched, each with the version that was looked at: one that
 * has changed since ends the step before it, and is looked at again. Each task gets a command of its own, with the rights of the
 * caller. The tasks, their events and the cursor behind them are rows of one transaction.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <stdlib.h>

#include "store/command/commands.h"
#include "store/record/bulk.h"

enum {
	NOTE_BYTES_MAX = BULK_ID_BYTES_MAX + 16,
	/* numbers that are left out after a restore: some were given out between the backup and the restore */
	RESTORE_STEP = 1000,
};

/* ---- views and rows ---------------------------------------------------------------------------------------- */

static int add_view(struct turn *turn, struct known_bulk *known, bool added, struct turn_bulk **ret_view)
{
	int r = turn_grow((void **)&turn->bulks, turn->bulk_count, &turn->bulk_cap, sizeof *turn->bulks);

	if (r < 0)
		return r;
	*ret_view = &turn->bulks[turn->bulk_count++];
	**ret_view = (struct turn_bulk){.known = known, .progress = known->progress, .added = added};
	return 0;
}

/* NULL: there is none of that number. The view is valid until another one is added. */
static int find_view(struct turn *turn, uint32_t number, struct turn_bulk **ret_view)
{
	*ret_view = NULL;
	for (uint32_t i = 0; i < turn->bulk_count; i++) {
		struct turn_bulk *view = &turn->bulks[i];
		if (view->known->bulk.number == number) {
			*ret_view = view->gone ? NULL : view;
			return 0;
		}
	}
	struct known_bulk *known = bulks_find(&turn->store->bulks, number);
	return known ? add_view(turn, known, false, ret_view) : 0;
}

static struct span id_of(struct turn *turn, uint32_t number)
{
	char *text = arena_alloc(&turn->arena, BULK_ID_BYTES_MAX);

	return text ? bulk_id_put(number, text) : (struct span){0};
}

static int put_progress(struct turn *turn, const struct turn_bulk *view)
{
	char id[BULK_ID_BYTES_MAX];

	buf_clear(&turn->record);
	int r = bulk_progress_put(&view->progress, &turn->record);
	return r < 0 ? r
		     : turn_put(turn, put_small, SMALL_BULK_STATE, bulk_id_put(view->known->bulk.number, id),
			       buf_span(&turn->record));
}

static int put_bulk(struct turn *turn, const struct turn_bulk *view)
{
	char id[BULK_ID_BYTES_MAX];

	buf_clear(&turn->record);
	int r = bulk_row_put(&view->known->bulk, &turn->record);
	return r < 0 ? r
		     : turn_put(turn, put_small, SMALL_BULK, bulk_id_put(view->known->bulk.number, id),
			       buf_span(&turn->record));
}

static int tell(struct turn *turn, const struct turn_bulk *view, enum event_kind kind, struct span note)
{
	const struct bulk_progress *progress = &view->progress;
	struct record record = turn_record(turn, kind);

	record.subject = id_of(turn, view->known->bulk.number);
	if (record.subject.len == 0)
		return -ENOMEM;
	record.note = note;
	record_fact(&record, FACT_MATCHED, (int64_t)progress->matched);
	if (kind == EVENT_BULK_ENDED) {
		record_fact(&record, FACT_DONE, (int64_t)progress->done);
		record_fact(&record, FACT_SKIPPED, (int64_t)bulk_skipped(progress));
		if (progress->stop != BULK_NOT_STOPPED)
			record_fact(&record, FACT_STOP, progress->stop);
	}
	return turn_write_event(turn, &record);
}

/* ---- begin -------------------------------------------------------------------------------------------------- */

static bool runs(const struct turn *turn, const struct known_bulk *known)
{
	for (uint32_t i = 0; i < turn->bulk_count; i++) {
		if (turn->bulks[i].known == known)
			return !turn->bulks[i].gone && turn->bulks[i].progress.state == BULK_RUNNING;
	}
	return known->progress.state == BULK_RUNNING;
}

static bool is_gone(const struct turn *turn, const struct known_bulk *known)
{
	for (uint32_t i = 0; i < turn->bulk_count; i++) {
		if (turn->bulks[i].known == known)
			return turn->bulks[i].gone;
	}
	return false;
}

/* How many there are, and how many of them run; the oldest that has ended, or NULL. */
struct census {
	uint32_t count, running;
	struct known_bulk *oldest;
};

static void count_one(const struct turn *turn, struct known_bulk *known, struct census *census)
{
	if (is_gone(turn, known))
		return;
	census->count++;
	if (runs(turn, known))
		census->running++;
	else if (!census->oldest)
		census->oldest = known;
}

static struct census count_all(const struct turn *turn)
{
	const struct bulks *bulks = &turn->store->bulks;
	struct census census = {0};

	for (uint32_t i = 0; i < bulks->count; i++)
		count_one(turn, bulks->items[i], &census);
	for (uint32_t i = 0; i < turn->bulk_count; i++) {
		if (turn->bulks[i].added)
			count_one(turn, turn->bulks[i].known, &census);
	}
	return census;
}

/* The oldest that has ended makes room. */
static int drop(struct turn *turn, struct known_bulk *known)
{
	char id[BULK_ID_BYTES_MAX];
	struct turn_bulk *view;

	int r = find_view(turn, known->bulk.number, &view);
	if (r < 0)
		return r;
	assert(view);
	view->gone = true;
	struct span key = bulk_id_put(known->bulk.number, id);
	turn_put(turn, delete_small, SMALL_BULK, key);
	return turn_put(turn, delete_small, SMALL_BULK_STATE, key);
}

static int new_bulk(struct turn *turn, const struct command *command, struct turn_bulk **ret_view)
{
	struct bulk bulk = command->bulk.bulk;
	struct known_bulk *known;

	bulk.number = turn->facts.last_bulk + 1;
	bulk.actor = command->actor;
	bulk.principal = command->principal;
	bulk.oversees = command->oversees;
	bulk.within = command->within;
	bulk.created_ms = turn->given.now.wall_ms;
	int r = turn_put(turn, put_meta, META_BULKS, bulk.number);
	if (r == 0)
		r = bulk_new(&bulk, &known);
	if (r < 0)
		return r;
	known->progress = bulk_begin(turn->facts.last_task, command->bulk.matched, turn->given.now.wall_ms);
	r = add_view(turn, known, true, ret_view);
	if (r < 0)
		free(known);
	else
		turn->facts.last_bulk = bulk.number;
	return r;
}

/* Was it asked for before with the same key? Then the result is that action. */
static int start_again(
	struct turn *turn, const struct command *command, struct result *result, bool *ret_settled)
{
	const struct command_bulk *bulk = &command->bulk;
	struct idem_row row;
	int r = command_get_request(turn, command, bulk->idempotency_key, &row);

	*ret_settled = r == 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (memcmp(row.fingerprint, bulk->fingerprint, sizeof row.fingerprint) != 0)
		return command_refuse(result, REFUSED_IDEMPOTENCY_CONFLICT);
	result->bulk = (uint32_t)row.task;
	result->repeated = true;
	return 0;
}

static int remember_start(struct turn *turn, const struct command *command, uint32_t number)
{
	struct idem_row row = {.task = number};

	if (command->bulk.idempotency_key.len == 0)
		return 0;
	memcpy(row.fingerprint, command->bulk.fingerprint, sizeof row.fingerprint);
	return command_keep_request(turn, command, command->bulk.idempotency_key, row);
}

static int start(struct turn *turn, const struct command *command, struct result *result)
{
	struct census census = count_all(turn);
	struct turn_bulk *view;
	bool settled;
	int r = start_again(turn, command, result, &settled);

	if (r < 0 || settled)
		return r;
	if (census.running >= BULKS_RUNNING_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (census.count >= BULKS_KEPT_MAX)
		r = drop(turn, census.oldest);
	if (r == 0)
		r = new_bulk(turn, command, &view);
	if (r < 0)
		return r;
	result->bulk = view->known->bulk.number;
	r = put_bulk(turn, view);
	if (r == 0)
		r = remember_start(turn, command, view->known->bulk.number);
	if (r == 0)
		r = put_progress(turn, view);
	if (r == 0)
		r = tell(turn, view, EVENT_BULK_STARTED, command->note);
	if (r == 0 && view->progress.state != BULK_RUNNING)
		r = tell(turn, view, EVENT_BULK_ENDED, (struct span){0});
	return r;
}

/* ---- end ---------------------------------------------------------------------------------------------------- */

static int stop_view(struct turn *turn, struct turn_bulk *view, enum bulk_stop why, struct span note)
{
	if (!bulk_stop(&view->progress, why, turn->given.now.wall_ms))
		return 0;
	int r = put_progress(turn, view);
	return r < 0 ? r : tell(turn, view, EVENT_BULK_ENDED, note);
}

static int stop(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_bulk *view;

	int r = find_view(turn, command->bulk.bulk.number, &view);
	if (r < 0)
		return r;
	if (!view)
		return command_refuse(result, REFUSED_NOT_FOUND);
	result->repeated = view->progress.state != BULK_RUNNING;
	return stop_view(turn, view, BULK_BY_PERSON, command->note);
}

int bulks_stop_all(struct turn *turn)
{
	const struct bulks *bulks = &turn->store->bulks;
	struct turn_bulk *view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < bulks->count; i++) {
		r = find_view(turn, bulks->items[i]->bulk.number, &view);
		if (r == 0)
			r = stop_view(turn, view, BULK_RESTORED, (struct span){0});
	}
	if (r == 0 && turn->facts.last_bulk > 0) {
		turn->facts.last_bulk += RESTORE_STEP;
		r = turn_put(turn, put_meta, META_BULKS, turn->facts.last_bulk);
	}
	return r;
}

/* ---- a step ------------------------------------------------------------------------------------------------- */

/* The command of one task: what the caller could have sent. */
static bool command_of(const struct bulk *bulk, struct command *ret_command)
{
	struct command *command = ret_command;

	*command = (struct command){
		.actor = bulk->actor,
		.principal = bulk->principal,
		.oversees = bulk->oversees,
		.within = bulk->within,
	};
	switch (bulk->action) {
	case BULK_RETRY:
		command->kind = COMMAND_RETRY;
		return true;
	case BULK_CANCEL:
		command->kind = COMMAND_CANCEL;
		return true;
	case BULK_PARK:
		command->kind = COMMAND_PARK;
		return true;
	case BULK_UNPARK:
		command->kind = COMMAND_UNPARK;
		return true;
	case BULK_PURGE:
		command->kind = COMMAND_PURGE;
		return true;
	case BULK_MOVE:
		command->kind = COMMAND_UPDATE;
		command->update.patch.set_queue = true;
		command->update.queue = bulk->queue;
		return true;
	case BULK_PRIORITY:
		command->kind = COMMAND_UPDATE;
		command->update.patch.set_priority = true;
		command->update.patch.priority = bulk->priority;
		return true;
	case BULK_ACTION_COUNT:
		break;
	}
	return false;
}

static int change_task(struct turn *turn, const struct bulk *bulk, struct turn_task *task, struct span note,
	enum refusal *ret_refusal)
{
	struct command *command = arena_alloc(&turn->arena, sizeof *command);
	const struct command *outer = turn->command;
	struct result result;

	if (!command)
		return -ENOMEM;
	bool known = command_of(bulk, command);
	assert(known);
	command->note = note;
	int r = turn_id_text(turn, task, &command->task);
	if (r < 0)
		return r;
	turn->command = NULL;
	r = command_run(turn, command, &result);
	turn->command = outer;
	*ret_refusal = result.refusal;
	return r;
}

/* *ret_late: the task has changed since it was looked at, and the step ends before it. */
static int take_item(struct turn *turn, struct turn_bulk *view, const struct bulk_item *item,
	struct span note, bool *ret_late)
{
	enum refusal refusal = REFUSED_STORE_DAMAGED;
	struct turn_task *task;
	int r = 0;

	*ret_late = false;
	if (!bulk_covers(&view->progress, item->seq))
		return 0;
	if (!item->damaged) {
		r = turn_task(turn, item->seq, &task);
		if (r < 0)
			return r == -ENOENT ? 0 : r; /* it is no longer there */
		*ret_late = task->task.version != item->version;
		if (*ret_late)
			return 0;
		r = change_task(turn, &view->known->bulk, task, note, &refusal);
	}
	if (r == 0)
		bulk_count(&view->progress, refusal);
	return r;
}

/* Is the credential of the caller still good? */
static bool caller_is_good(const struct turn *turn, const struct bulk *bulk)
{
	if (bulk->principal < PRINCIPAL_FIRST) /* the admin; or nobody needs a credential */
		return true;
	const struct token *token = turn_token(turn, bulk->token);
	return token && token_is_live(token, turn->given.now.wall_ms);
}

static struct span note_of(struct turn *turn, const struct bulk *bulk)
{
	char id[BULK_ID_BYTES_MAX], *text = arena_alloc(&turn->arena, NOTE_BYTES_MAX);
	static const char before[] = "\"bulk\":\"";
	size_t len = sizeof before - 1;

	if (!text)
		return (struct span){0};
	struct span name = bulk_id_put(bulk->number, id);
	memcpy(text, before, len);
	memcpy(text + len, name.data, name.len);
	text[len + name.len] = '"';
	return (struct span){text, len + name.len + 1};
}

static int take_items(
	struct turn *turn, struct turn_bulk *view, const struct command_bulk *step, int64_t *ret_cursor)
{
	struct span note = note_of(turn, &view->known->bulk);
	bool late = false;

	if (note.len == 0)
		return -ENOMEM;
	*ret_cursor = step->from;
	for (uint32_t i = 0; i < step->item_count; i++) {
		assert(step->items[i].seq > *ret_cursor);
		int r = take_item(turn, view, &step->items[i], note, &late);
		if (r < 0 || late)
			return r;
		*ret_cursor = step->items[i].seq;
	}
	*ret_cursor = step->to;
	return 0;
}

/* A step that another one has overtaken, or that comes too late, does nothing. */
static int take_step(struct turn *turn, const struct command *command)
{
	const struct command_bulk *step = &command->bulk;
	struct turn_bulk *view;
	int64_t cursor;

	int r = find_view(turn, step->bulk.number, &view);
	if (r < 0 || !view || !bulk_takes_step(&view->progress, step->from))
		return r;
	if (!caller_is_good(turn, &view->known->bulk))
		return stop_view(turn, view, BULK_REVOKED, (struct span){0});
	r = take_items(turn, view, step, &cursor);
	if (r < 0)
		return r;
	if (step->damaged)
		return stop_view(turn, view, BULK_DAMAGED, (struct span){0});
	bool ends = bulk_advance(&view->progress, cursor, turn->given.now.wall_ms);
	r = put_progress(turn, view);
	return r < 0 || !ends ? r : tell(turn, view, EVENT_BULK_ENDED, (struct span){0});
}

int execute_bulk(struct turn *turn, const struct command *command, struct result *result)
{
	if (command->kind == COMMAND_BULK_START)
		return start(turn, command, result);
	return command->kind == COMMAND_BULK_STOP ? stop(turn, command, result) : take_step(turn, command);
}

/* ---- the end of a turn --------------------------------------------------------------------------------------- */

void bulks_apply(struct turn *turn)
{
	struct bulks *bulks = &turn->store->bulks;

	/* what is gone makes room for what is new */
	for (uint32_t i = 0; i < turn->bulk_count; i++) {
		struct turn_bulk *view = &turn->bulks[i];
		view->known->progress = view->progress;
		if (view->gone && !view->added)
			bulks_drop(bulks, view->known);
		else if (view->gone)
			free(view->known);
	}
	for (uint32_t i = 0; i < turn->bulk_count; i++) {
		if (turn->bulks[i].added && !turn->bulks[i].gone)
			bulks_add(bulks, turn->bulks[i].known);
	}
	turn->bulk_count = 0;
}

void bulks_forget(struct turn *turn)
{
	while (turn->bulk_count > 0) {
		const struct turn_bulk *view = &turn->bulks[--turn->bulk_count];
		if (view->added)
			free(view->known);
	}
}
