/*
 * Opening, copying and closing; and upkeep, of which there is little.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/memory.h"
#include "backend/memory_backend.h"

enum {
	RELIEF_COMMITS = 4, /* what the ballast is good for */
};

int memory_checkpoint(struct backend *backend, bool idle)
{
	(void)backend;
	(void)idle;
	return 0;
}

int memory_relieve(struct backend *backend)
{
	memory_of(backend)->relief = RELIEF_COMMITS;
	return 0;
}

int memory_mark(struct backend *backend)
{
	(void)backend;
	return 0;
}

int memory_reserve(struct backend *backend)
{
	if (memory_of(backend)->full)
		return -ENOSPC;
	memory_of(backend)->relief = 0;
	return 0;
}

int memory_query(struct backend *backend, struct admin_query *question)
{
	(void)backend;
	snprintf(question->complaint, sizeof question->complaint, "a store in memory has no SQL");
	return -ENOTSUP;
}

int memory_backup_begin(struct backend *backend, const char *path)
{
	(void)backend;
	(void)path;
	return -ENOTSUP; /* memory_copy() is its backup */
}

int memory_backup_step(struct backend *backend, uint32_t pages, uint32_t *ret_remaining)
{
	(void)backend;
	(void)pages;
	(void)ret_remaining;
	return -ENOTSUP;
}

void memory_backup_end(struct backend *backend)
{
	(void)backend;
}

void memory_close(struct backend *backend)
{
	if (!backend)
		return;
	struct memory *memory = memory_of(backend);
	memory_forget_undo(memory);
	free(memory->undo);
	memory_list_free(memory);
	free(memory);
}

static const struct backend_ops memory_ops = {.name = "memory",
#define X(op) .op = memory_##op,
	BACKEND_OPS(X)
#undef X
};

struct backend *memory_open(void)
{
	struct memory *memory = calloc(1, sizeof *memory);
	if (!memory)
		return NULL;
	memory->backend.ops = &memory_ops;
	memory->head = calloc(1, sizeof *memory->head + LEVELS * sizeof *memory->head->next);
	if (!memory->head) {
		free(memory);
		return NULL;
	}
	return &memory->backend;
}

void memory_set_full(struct backend *backend, bool full)
{
	memory_of(backend)->full = full;
}

int memory_damaged(struct backend *backend, const char *table, int64_t row)
{
	backend->complaint = "a row in memory is damaged";
	return backend_note_damage(backend, table, row, NULL);
}

void memory_settle_after(struct backend *backend, uint32_t asked)
{
	memory_of(backend)->settles_after = asked;
}

void memory_fail_commits_with(struct backend *backend, int fault)
{
	memory_of(backend)->fault = fault;
}

struct backend *memory_reopen(struct backend *backend)
{
	if (memory_of(backend)->open)
		memory_rollback(backend);
	return backend;
}

static int mark_restored(struct backend *copy)
{
	int64_t generation = 1, floor = 0;

	memory_get_meta(copy, META_GENERATION, &generation);
	memory_get_meta(copy, META_TASK_FLOOR, &floor);
	int64_t last = memory_last_number(copy, TABLE_TASK);
	memory_begin(copy);
	int r = memory_put_meta(copy, META_GENERATION, generation + 1);
	if (r == 0)
		r = memory_put_meta(copy, META_TASK_FLOOR, (last > floor ? last : floor) + 1000000);
	if (r == 0)
		r = memory_put_meta(copy, META_RESTORED, RESTORED);
	return r < 0 ? r : backend_commit(copy);
}

struct backend *memory_copy(struct backend *backend)
{
	struct backend *copy = memory_open();
	int r = copy ? 0 : -ENOMEM;

	assert(!memory_of(backend)->open);
	for (struct row *row = memory_of(backend)->head->next[0]; r == 0 && row; row = row->next[0])
		r = memory_list_set(memory_of(copy), row->key, row->key_len, row->value, row->value_len);
	if (r == 0)
		r = mark_restored(copy);
	if (r == 0)
		return copy;
	memory_close(copy);
	return NULL;
}
