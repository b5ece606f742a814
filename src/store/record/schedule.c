#include "store/record/schedule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	TEMPLATE_FORM =
		4, /* 1: it named no groups; 2: it had no concurrency key; 3: a conflict always gave the existing task */
	SCHEDULE_FORM = 1,
	STATE_FORM = 1,
};

/* ---- the template ------------------------------------------------------------------------------------------- */

static void put_names(struct buf *out, struct name_list names)
{
	buf_put_uvarint(out, names.count);
	for (uint32_t i = 0; i < names.count; i++)
		buf_put_bytes(out, names.items[i]);
}

int template_put(const struct command_create *create, struct buf *out)
{
	buf_put_uvarint(out, TEMPLATE_FORM);
	buf_put_bytes(out, create->queue);
	buf_put_bytes(out, create->owner);
	buf_put_bytes(out, create->executor);
	buf_put_bytes(out, create->credential);
	put_names(out, create->requires);
	put_names(out, create->parents);
	put_names(out, create->gates);
	buf_put_bytes(out, create->unique_key);
	buf_put_bytes(out, create->body);
	buf_put_svarint(out, create->priority);
	buf_put_uvarint(out, create->timeout_ms);
	buf_put_uvarint(out, create->max_attempts);
	buf_put_svarint(out, create->not_before_ms);
	buf_put_svarint(out, create->start_by_ms);
	buf_put_svarint(out, create->finish_by_ms);
	buf_put_uvarint(out,
		(create->parked ? 1u : 0u) | (create->autonomous ? 2u : 0u) |
			(create->runs_anyway ? 4u : 0u));
	buf_put_uvarint(out, (uint64_t)create->workflow);
	buf_put_bytes(out, create->group);
	put_names(out, create->blocked_by_groups);
	buf_put_bytes(out, create->concurrency_key);
	buf_put_uvarint(out, (uint64_t)create->on_conflict);
	buf_put_svarint(out, create->unique_for_ms);
	return buf_fault(out);
}

static struct span read_name(struct reader *reader, size_t max)
{
	struct span name = reader_bytes(reader);

	reader->broken |= name.len > max;
	return name;
}

static int read_names(struct reader *reader, struct arena *arena, size_t max, struct name_list *ret_names)
{
	uint64_t count = reader_uvarint(reader);
	struct span *items = NULL;

	reader->broken |= count > COMMAND_LIST_MAX;
	if (reader->broken)
		count = 0;
	if (count > 0) {
		items = arena_alloc(arena, count * sizeof *items);
		if (!items)
			return -ENOMEM;
	}
	for (uint64_t i = 0; i < count; i++)
		items[i] = read_name(reader, max);
	*ret_names = (struct name_list){items, (uint32_t)count};
	return 0;
}

static uint32_t read_u32(struct reader *reader)
{
	uint64_t number = reader_uvarint(reader);

	reader->broken |= number > UINT32_MAX;
	return (uint32_t)number;
}

static int64_t read_delay(struct reader *reader)
{
	int64_t ms = reader_svarint(reader);

	reader->broken |= ms < 0 || ms > TASK_DELAY_MS_MAX;
	return ms;
}

static bool template_is_sound(const struct command_create *create)
{
	return create->queue.len > 0 && create->gates.count <= TASK_GATES_MAX &&
		create->parents.count <= COMMAND_PARENTS_MAX &&
		create->blocked_by_groups.count <= TASK_GROUPS_MAX && create->workflow < WORKFLOW_MAX &&
		create->on_conflict <= CONFLICT_REPLACE;
}

int template_read(struct span data, struct arena *arena, struct command_create *ret_create)
{
	struct command_create create = {0};
	struct reader reader;

	reader_init(&reader, data);
	uint64_t form = reader_uvarint(&reader);
	reader.broken |= form < 1 || form > TEMPLATE_FORM;
	create.queue = read_name(&reader, COMMAND_NAME_MAX);
	create.owner = read_name(&reader, COMMAND_NAME_MAX);
	create.executor = read_name(&reader, COMMAND_NAME_MAX);
	create.credential = read_name(&reader, COMMAND_NAME_MAX);
	int r = read_names(&reader, arena, COMMAND_NAME_MAX, &create.requires);
	if (r == 0)
		r = read_names(&reader, arena, COMMAND_ID_MAX, &create.parents);
	if (r == 0)
		r = read_names(&reader, arena, COMMAND_NAME_MAX, &create.gates);
	if (r < 0)
		return r;
	create.unique_key = read_name(&reader, COMMAND_NAME_MAX);
	create.body = reader_bytes(&reader);
	int64_t priority = reader_svarint(&reader);
	create.priority = (int32_t)priority;
	create.timeout_ms = read_u32(&reader);
	create.max_attempts = read_u32(&reader);
	create.not_before_ms = read_delay(&reader);
	create.start_by_ms = read_delay(&reader);
	create.finish_by_ms = read_delay(&reader);
	uint64_t flags = reader_uvarint(&reader);
	create.parked = flags & 1;
	create.autonomous = flags & 2;
	create.runs_anyway = flags & 4;
	create.workflow = (enum workflow)read_u32(&reader);
	if (form > 1) {
		create.group = read_name(&reader, COMMAND_NAME_MAX);
		r = read_names(&reader, arena, COMMAND_NAME_MAX, &create.blocked_by_groups);
	}
	if (form > 2)
		create.concurrency_key = read_name(&reader, COMMAND_NAME_MAX);
	if (form > 3) {
		create.on_conflict = (enum on_conflict)read_u32(&reader);
		create.unique_for_ms = read_delay(&reader);
	}
	if (r < 0)
		return r;
	if (!reader_is_done(&reader) || priority < INT32_MIN || priority > INT32_MAX || flags > 7 ||
		!template_is_sound(&create))
		return -EPROTO;
	*ret_create = create;
	return 0;
}

/* ---- what was asked for ------------------------------------------------------------------------------------- */

int schedule_put(const struct schedule *schedule, struct buf *out)
{
	buf_put_uvarint(out, SCHEDULE_FORM);
	buf_put_uvarint(out, (uint64_t)schedule->kind);
	buf_put_bytes(out, schedule->cron);
	buf_put_bytes(out, schedule->tz);
	buf_put_svarint(out, schedule->every_ms);
	buf_put_svarint(out, schedule->at_ms);
	buf_put_svarint(out, schedule->anchor_ms);
	buf_put_svarint(out, schedule->jitter_ms);
	buf_put_uvarint(out, (uint64_t)schedule->catch_up);
	buf_put_uvarint(out, (uint64_t)schedule->overlap);
	buf_put_bytes(out, schedule->task);
	buf_put_bytes(out, schedule->template);
	buf_put_bytes(out, schedule->maker);
	buf_put_uvarint(out, schedule->principal);
	buf_put_uvarint(out, schedule->oversees);
	buf_put_svarint(out, schedule->created_ms);
	buf_put_svarint(out, schedule->updated_ms);
	return buf_fault(out);
}

static bool schedule_is_sound(const struct schedule *schedule)
{
	bool every = schedule->kind == PLAN_EVERY;

	return schedule->kind >= PLAN_CRON && schedule->kind <= PLAN_AT &&
		schedule->catch_up <= CATCH_UP_ALL && schedule->overlap <= OVERLAP_CANCEL &&
		schedule->cron.len <= CRON_BYTES_MAX && schedule->tz.len <= ZONE_NAME_MAX &&
		schedule->jitter_ms >= 0 && schedule->jitter_ms <= SCHEDULE_JITTER_MAX_MS &&
		(!every ||
			(schedule->every_ms >= SCHEDULE_EVERY_MIN_MS &&
				schedule->every_ms <= SCHEDULE_EVERY_MAX_MS)) &&
		schedule->anchor_ms > -(INT64_MAX / 4) && schedule->anchor_ms < INT64_MAX / 4;
}

int schedule_read(struct span data, struct schedule *ret_schedule)
{
	struct schedule schedule = {0};
	struct reader reader;

	reader_init(&reader, data);
	reader.broken |= reader_uvarint(&reader) != SCHEDULE_FORM;
	schedule.kind = (enum plan_kind)read_u32(&reader);
	schedule.cron = reader_bytes(&reader);
	schedule.tz = reader_bytes(&reader);
	schedule.every_ms = reader_svarint(&reader);
	schedule.at_ms = reader_svarint(&reader);
	schedule.anchor_ms = reader_svarint(&reader);
	schedule.jitter_ms = reader_svarint(&reader);
	schedule.catch_up = (enum catch_up)read_u32(&reader);
	schedule.overlap = (enum overlap)read_u32(&reader);
	schedule.task = reader_bytes(&reader);
	schedule.template = reader_bytes(&reader);
	schedule.maker = reader_bytes(&reader);
	schedule.principal = read_u32(&reader);
	uint64_t oversees = reader_uvarint(&reader);
	schedule.oversees = oversees != 0;
	schedule.created_ms = reader_svarint(&reader);
	schedule.updated_ms = reader_svarint(&reader);
	if (!reader_is_done(&reader) || oversees > 1 || !schedule_is_sound(&schedule))
		return -EPROTO;
	*ret_schedule = schedule;
	return 0;
}

/* ---- what became of it ---------------------------------------------------------------------------------------- */

int schedule_state_put(const struct schedule_state *state, struct buf *out)
{
	buf_put_uvarint(out, STATE_FORM);
	buf_put_svarint(out, state->last_ms);
	buf_put_uvarint(out, state->paused);
	buf_put_uvarint(out, state->streak);
	buf_put_uvarint(out, state->made);
	buf_put_uvarint(out, state->skipped);
	buf_put_svarint(out, state->version);
	buf_put_uvarint(out, state->history_count);
	for (uint32_t i = 0; i < state->history_count; i++) {
		const struct occurrence *occurrence = &state->history[i];
		buf_put_svarint(out, occurrence->from_ms);
		buf_put_svarint(out, occurrence->at_ms);
		buf_put_svarint(out, occurrence->count);
		buf_put_svarint(out, occurrence->task);
		buf_put_uvarint(out, (uint64_t)occurrence->outcome);
		buf_put_uvarint(out, (uint64_t)occurrence->skip);
	}
	buf_put_uvarint(out, state->open_count);
	for (uint32_t i = 0; i < state->open_count; i++)
		buf_put_svarint(out, state->open[i]);
	return buf_fault(out);
}

int schedule_state_read(struct span data, struct schedule_state *ret_state)
{
	struct schedule_state state = {0};
	struct reader reader;

	reader_init(&reader, data);
	reader.broken |= reader_uvarint(&reader) != STATE_FORM;
	state.last_ms = reader_svarint(&reader);
	uint64_t paused = reader_uvarint(&reader);
	state.paused = paused != 0;
	state.streak = read_u32(&reader);
	state.made = reader_uvarint(&reader);
	state.skipped = reader_uvarint(&reader);
	state.version = reader_svarint(&reader);
	state.history_count = read_u32(&reader);
	reader.broken |= state.history_count > SCHEDULE_HISTORY_MAX;
	for (uint32_t i = 0; !reader.broken && i < state.history_count; i++) {
		struct occurrence *occurrence = &state.history[i];
		occurrence->from_ms = reader_svarint(&reader);
		occurrence->at_ms = reader_svarint(&reader);
		occurrence->count = reader_svarint(&reader);
		occurrence->task = reader_svarint(&reader);
		occurrence->outcome = (enum occurrence_outcome)read_u32(&reader);
		occurrence->skip = (enum skip)read_u32(&reader);
	}
	state.open_count = read_u32(&reader);
	reader.broken |= state.open_count > SCHEDULE_OPEN_MAX;
	for (uint32_t i = 0; !reader.broken && i < state.open_count; i++)
		state.open[i] = reader_svarint(&reader);
	if (!reader_is_done(&reader) || paused > 1 || !schedule_state_is_sound(&state))
		return -EPROTO;
	*ret_state = state;
	return 0;
}

/* ---- of a task -------------------------------------------------------------------------------------------------- */

struct span schedule_of_task_put(struct span id, int64_t at_ms, char text[SCHEDULE_OF_TASK_MAX])
{
	int len = snprintf(text, SCHEDULE_OF_TASK_MAX, "%lld %.*s", (long long)at_ms, SPAN_ARGS(id));

	return (struct span){text, (size_t)len};
}

bool schedule_of_task_read(struct span data, struct span *ret_id, int64_t *ret_at_ms)
{
	size_t at = data.len > 0 && data.data[0] == '-';
	bool minus = at > 0;
	int64_t number = 0;

	for (; at < data.len && data.data[at] >= '0' && data.data[at] <= '9' && number < INT64_MAX / 100;
		at++)
		number = number * 10 + (data.data[at] - '0');
	if (at == minus || at + 1 >= data.len || data.data[at] != ' ' || data.len - at - 1 > COMMAND_ID_MAX)
		return false;
	*ret_at_ms = minus ? -number : number;
	*ret_id = (struct span){data.data + at + 1, data.len - at - 1};
	return true;
}
