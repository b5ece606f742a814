#include "store/read/sound.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool names_are_sound(const struct names *names, const struct task *task)
{
	struct name_set gates;

	if (!names_have(names, task->queue) || !names_have(names, task->owner) ||
		!names_have(names, task->executor) || !names_have(names, task->resume_host) ||
		!names_have_set(names, task->requires) || !names_have_set(names, task->gates))
		return false;
	if (task->gates == 0)
		return true;
	names_set_members(names, task->gates, &gates);
	return gates.count == task->gate_count;
}

static bool times_are_sound(const struct task *task)
{
	const struct claim *claim = &task->claim;

	return number_is_sound(task->created_ms) && number_is_sound(task->ready_at_ms) &&
		number_is_sound(task->start_by_ms) && number_is_sound(task->finish_by_ms) &&
		number_is_sound(task->resume_until_ms) && number_is_sound(claim->lease.deadline_ms) &&
		number_is_sound(claim->verify_at_ms) && number_is_sound(claim->run_until_ms) &&
		number_is_sound(claim->run_ms) && number_is_sound(claim->asked_at_ms) &&
		number_is_sound(claim->claimed_wall_ms);
}

bool task_row_is_sound(const struct names *names, const struct task_row *row, const struct task *task)
{
	/* the next attempt and its fence are numbers, too */
	if (task->fence > STORE_GENERATION_MAX * FENCE_GENERATION_STEP || task->attempt > INT32_MAX)
		return false;
	return task_is_sound(task) && number_is_sound(task->seq) && number_is_sound(task->version) &&
		number_is_sound(task->updated_ms) && row->holder.len <= COMMAND_ID_MAX &&
		names_are_sound(names, task) && times_are_sound(task);
}

bool outline_is_sound(const struct names *names, const struct task_outline *outline)
{
	return outline->queue != 0 && names_have(names, outline->queue) && names_have(names, outline->owner);
}

bool worker_row_is_sound(const struct names *names, const struct worker_row *row)
{
	const struct worker *worker = &row->worker;

	return row->id.len > 0 && row->id.len <= COMMAND_ID_MAX && worker_is_sound(worker) &&
		names_have(names, worker->slot) && names_have(names, worker->process.host) &&
		names_have(names, worker->version) && names_have_set(names, worker->capabilities) &&
		names_have_set(names, worker->executors) && number_is_sound(worker->lease.deadline_ms) &&
		number_is_sound(worker->stored_deadline_ms) && number_is_sound(worker->registered_ms) &&
		number_is_sound(worker->last_beat_ms) && number_is_sound(row->ended_ms);
}

bool slot_is_sound(const struct slot *slot)
{
	bool sound = number_is_sound(slot->since_ms);

	for (int i = 0; sound && i < SLOT_CRASHES_KEPT; i++)
		sound = slot->crashed_ms[i] == INT64_MIN || number_is_sound(slot->crashed_ms[i]);
	return sound;
}

int store_get_final(struct store *store, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	int r = store_rows(store, get_task, seq, arena, ret_row);

	if (r < 0)
		return r;
	bool sound = task_state_is_final(ret_row->task.state) && ret_row->holder.len == 0 &&
		task_row_is_sound(&store->names, ret_row, &ret_row->task);
	return sound ? 0 : store_damaged(store, "task", seq);
}

void backend_key_text(struct span key, char ret_text[DAMAGE_KEY_BYTES])
{
	size_t len = key.len < DAMAGE_KEY_BYTES - 1 ? key.len : DAMAGE_KEY_BYTES - 1;

	for (size_t i = 0; i < len; i++) {
		char c = key.data[i];
		ret_text[i] = c >= ' ' && c <= '~' && c != '"' ? c : '?';
	}
	ret_text[len] = 0;
}

int backend_note_damage(struct backend *backend, const char *table, int64_t row, const char *key)
{
	struct damage damage = {.row = row};

	snprintf(damage.table, sizeof damage.table, "%s", table);
	snprintf(damage.key, sizeof damage.key, "%s", key ? key : "");
	backend->last_damage = damage;
	for (uint32_t i = 0; i < backend->damage_count; i++) {
		const struct damage *known = &backend->damages[i];
		if (known->row == row && strcmp(known->table, damage.table) == 0 &&
			strcmp(known->key, damage.key) == 0)
			return -EBADMSG;
	}
	if (backend->damage_count < DAMAGES_MAX)
		backend->damages[backend->damage_count++] = damage;
	return -EBADMSG;
}

static bool is_table(const struct damage *damage, const char *table)
{
	return strcmp(damage->table, table) == 0;
}

bool damage_is_of_history(const struct store *store, const struct damage *damage)
{
	if (is_table(damage, "event") || is_table(damage, "task_base") || is_table(damage, "idem") ||
		is_table(damage, extra_table(EXTRA_LOG)) || is_table(damage, extra_table(EXTRA_EVENTS)))
		return true;
	bool is_of_task = is_table(damage, "task") || is_table(damage, "task_body") ||
		is_table(damage, "task_extra") || is_table(damage, "task_id") || is_table(damage, "task_key");
	return is_of_task && damage->row > 0 && index_find(&store->index, damage->row) == MAP_NONE;
}

uint32_t store_damages(const struct store *store)
{
	return store->backend->damage_count;
}

const char *store_damage_text(const struct store *store)
{
	return store->backend->complaint;
}

bool store_damage_place(const struct store *store, uint32_t number, char ret_text[DAMAGE_TEXT_BYTES])
{
	if (number >= store->backend->damage_count)
		return false;
	const struct damage *damage = &store->backend->damages[number];
	if (damage->key[0])
		snprintf(ret_text, DAMAGE_TEXT_BYTES, "row \"%s\" of table %s", damage->key, damage->table);
	else if (damage->row != 0)
		snprintf(ret_text, DAMAGE_TEXT_BYTES, "row %lld of table %s", (long long)damage->row,
			damage->table);
	else
		snprintf(ret_text, DAMAGE_TEXT_BYTES, "a page of table %s", damage->table);
	return true;
}

int store_damaged(const struct store *store, const char *table, int64_t row)
{
	return store_rows(store, damaged, table, row);
}

int store_must_find(const struct store *store, int fault, int64_t task)
{
	return fault == -ENOENT ? store_damaged(store, "task", task) : fault;
}
