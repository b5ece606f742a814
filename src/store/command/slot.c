/*
 * Slots: entering one, the crashes that are told of it, and the queues that are assigned to it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "store/command/commands.h"
#include "store/read.h"

/* The same in every run of the server: it is stored with a trial. */
static uint64_t worker_digest(struct span id)
{
	static const struct hash_key key = {0x7374696e74, 0x736c6f74};
	uint64_t digest = hash_bytes(&key, id.data, id.len);

	return digest != 0 ? digest : 1;
}

struct slot_entry slot_entry_of(struct turn *turn, uint32_t slot, struct span worker)
{
	struct slot_entry entry = {.slot = slot};

	if (slot != 0) {
		struct slot view;
		turn_slot(turn, slot, &view);
		entry.decision = slot_enter(&view, worker_digest(worker), &turn->given);
	}
	return entry;
}

int slot_entry_pass(struct turn *turn, struct slot_entry *entry)
{
	struct slot_decision *decision = &entry->decision;

	if (decision->event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision->event);
	record_fact(&record, FACT_TRIAL, 1);
	int r = turn_write_slot(turn, entry->slot, &decision->slot, decision->event, &record);
	decision->event = EVENT_NONE;
	return r;
}

struct turn_worker *slot_filler(struct turn *turn, uint32_t slot, uint32_t except)
{
	const struct index *index = &turn->store->index;

	for (uint32_t number = index_first_in_slot(index, slot); number != 0;
		number = index_next_in_slot(index, number)) {
		if (number != except && index_holder(index, number)->view_turn != turn->number)
			return turn_worker_by_number(turn, number);
	}
	for (uint32_t i = 0; i < turn->worker_count; i++) {
		const struct worker *worker = &turn->workers[i]->worker;
		if (worker->handle != except && worker->slot == slot && worker_is_alive(worker))
			return turn->workers[i];
	}
	return NULL;
}

/* The principal whose worker fills the slot, or was the last to do so. */
static uint32_t slot_owner(struct turn *turn, struct span slot)
{
	uint32_t name = names_find(&turn->store->names, slot);
	const struct turn_worker *filler = name != 0 ? slot_filler(turn, name, 0) : NULL;

	if (filler)
		return filler->worker.principal;
	return name != 0 ? store_slot_owner(turn->store, name, turn->given.now.wall_ms) : PRINCIPAL_NOBODY;
}

/* `<worker>/<executor>-<n>` is a slot behind a worker, which goes by its id or by the slot that it fills. */
bool slot_is_foreign(struct turn *turn, const struct command *command, struct span slot)
{
	const char *slash = memchr(slot.data, '/', slot.len);
	uint32_t owner = slot_owner(turn, slot);

	if (owner == PRINCIPAL_NOBODY && slash) {
		struct span before = {slot.data, (size_t)(slash - slot.data)};
		owner = slot_owner(turn, before);
		const struct turn_worker *worker =
			owner == PRINCIPAL_NOBODY ? turn_worker(turn, before, false) : NULL;
		if (worker && !worker_belongs_to(&worker->worker, command->principal))
			owner = worker->worker.principal;
	}
	return owner != PRINCIPAL_NOBODY && !command->oversees && owner != command->principal;
}

/* Something wants to run in a slot that no registration names: a worker of a pool. */
int execute_slot_enter(struct turn *turn, const struct command *command, struct result *result)
{
	const struct turn_worker *worker = turn_worker(turn, command->worker, false);

	if ((worker && !command->oversees && !worker_belongs_to(&worker->worker, command->principal)) ||
		slot_is_foreign(turn, command, command->slot))
		return command_refuse(result, REFUSED_FORBIDDEN);
	struct slot_entry entry =
		slot_entry_of(turn, names_find(&turn->store->names, command->slot), command->worker);
	if (entry.decision.refusal != REFUSED_NOTHING)
		return command_refuse(result, entry.decision.refusal);
	result->repeated = entry.decision.event == EVENT_NONE;
	return slot_entry_pass(turn, &entry);
}

/* One crash counts once, however often it is reported: a reply may be lost. Sets *ret_is_answered if the result is complete. */
static int crash_again(
	struct turn *turn, const struct command *command, struct result *result, bool *ret_is_answered)
{
	struct idem_row row = {0};

	*ret_is_answered = false;
	int r = command_get_request(turn, command, command->crash_key, &row);
	if (r == 0) {
		*ret_is_answered = result->repeated = true;
		return memcmp(row.fingerprint, command->crash_fingerprint, sizeof row.fingerprint) == 0
			? 0
			: command_refuse(result, REFUSED_IDEMPOTENCY_CONFLICT);
	}
	if (r != -ENOENT)
		return r;
	row = (struct idem_row){0};
	memcpy(row.fingerprint, command->crash_fingerprint, sizeof row.fingerprint);
	return command_keep_request(turn, command, command->crash_key, row);
}

int execute_slot(struct turn *turn, const struct command *command, struct result *result)
{
	uint32_t name;
	struct slot view;

	if (command->kind == COMMAND_UNQUARANTINE && names_find(&turn->store->names, command->slot) == 0)
		return command_refuse(result, REFUSED_NOT_FOUND);
	if (command->kind == COMMAND_SLOT_CRASH && slot_is_foreign(turn, command, command->slot))
		return command_refuse(result, REFUSED_FORBIDDEN);
	int r = turn_name(turn, command->slot, &name);
	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	bool settled = false;
	if (command->kind == COMMAND_SLOT_CRASH)
		r = crash_again(turn, command, result, &settled);
	if (r < 0 || settled)
		return r;
	turn_slot(turn, name, &view);
	struct slot_decision decision = command->kind == COMMAND_SLOT_CRASH ? slot_crash(&view, &turn->given)
									    : slot_unquarantine(&view);
	struct record record = turn_record(turn, decision.event);
	return turn_write_slot(turn, name, &decision.slot, decision.event, &record);
}

/* Order and repetitions are the caller's own. */
static int put_queues(struct buf *text, const struct name_list *queues)
{
	for (uint32_t i = 0; i < queues->count; i++) {
		buf_put_byte(text, ASSIGNMENT_SEPARATOR);
		buf_put_span(text, queues->items[i]);
	}
	return buf_fault(text);
}

int execute_slot_assign(struct turn *turn, const struct command *command, struct result *result)
{
	cleanup(buf_done) struct buf queues = {0};
	uint32_t slot;

	assert(command->assign.queues.count <= COMMAND_LIST_MAX);
	int r = turn_name(turn, command->assign.slot, &slot);
	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	buf_init(&queues, COMMAND_LIST_MAX * (COMMAND_NAME_MAX + 1));
	r = put_queues(&queues, &command->assign.queues);
	if (r == 0)
		r = turn_put(turn, put_small, SMALL_ASSIGNMENT, command->assign.slot, buf_span(&queues));
	if (r < 0)
		return r;
	struct record record = turn_record(turn, EVENT_SLOT_ASSIGNED);
	record.subject = names_text(&turn->store->names, slot);
	return turn_write_event(turn, &record);
}
