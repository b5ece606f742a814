/*
 * Reading schedules between turns.
 */
#include <errno.h>

#include "store/read/sound.h"
#include "store/record/schedule.h"

static struct schedule_document document_of(const struct known_schedule *known)
{
	return (struct schedule_document){
		&known->definition->schedule, &known->state, &known->definition->plan, known->next_ms};
}

int store_read_schedule(const struct store *store, struct span id, struct schedule_document *ret_document)
{
	const struct known_schedule *known = schedules_find(&store->schedules, id);

	if (!known)
		return -ENOENT;
	*ret_document = document_of(known);
	return 0;
}

int store_page_schedules(const struct store *store, struct span after, uint32_t limit, bool *ret_more,
	int (*each)(void *context, const struct schedule_document *document), void *context)
{
	const struct schedules *schedules = &store->schedules;
	uint32_t at = 0;
	int r = 0;

	while (at < schedules->count && after.len > 0 &&
		span_compare(schedules->items[at]->definition->schedule.id, after) <= 0)
		at++;
	for (; r == 0 && at < schedules->count && limit > 0; at++, limit--) {
		struct schedule_document document = document_of(schedules->items[at]);
		r = each(context, &document);
	}
	*ret_more = r == 0 && at < schedules->count;
	return r;
}

int store_schedule_of(struct store *store, const struct task *task, struct arena *arena, struct span *ret_id,
	int64_t *ret_planned_ms)
{
	struct span data;

	if (task->occurrence == OCCURRENCE_NONE)
		return -ENOENT;
	int r = store_rows(store, get_extra, task->seq, EXTRA_SCHEDULE, 0, arena, &data);
	if (r < 0)
		return store_must_find(store, r, task->seq);
	return schedule_of_task_read(data, ret_id, ret_planned_ms)
		? 0
		: store_damaged(store, "task_extra", task->seq);
}
