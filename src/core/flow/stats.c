#include "core/flow/stats.h"

#include <assert.h>

uint32_t wait_bucket(int64_t ms)
{
	if (ms <= 0) /* below: somebody set the clock */
		return 0;
	uint32_t bucket = 64 - (uint32_t)__builtin_clzll((uint64_t)ms);
	return bucket < WAIT_BUCKETS ? bucket : WAIT_BUCKETS - 1;
}

static void count(uint32_t *counter, uint32_t more)
{
	*counter = *counter > UINT32_MAX - more ? UINT32_MAX : *counter + more;
}

void stats_note_end(struct stats_cell *cell, enum task_state state)
{
	if (state == TASK_DONE)
		count(&cell->done, 1);
	else if (state == TASK_FAILED)
		count(&cell->failed, 1);
	else if (state == TASK_CANCELLED)
		count(&cell->cancelled, 1);
}

void stats_note_wait(struct stats_cell *cell, int64_t ms)
{
	count(&cell->waits[wait_bucket(ms)], 1);
}

void stats_add(struct stats_cell *cell, const struct stats_cell *more)
{
	count(&cell->done, more->done);
	count(&cell->failed, more->failed);
	count(&cell->cancelled, more->cancelled);
	for (int i = 0; i < WAIT_BUCKETS; i++)
		count(&cell->waits[i], more->waits[i]);
}

bool stats_are_none(const struct stats_cell *cell)
{
	return cell->done == 0 && cell->failed == 0 && cell->cancelled == 0 && stats_waited(cell) == 0;
}

uint64_t stats_waited(const struct stats_cell *cell)
{
	uint64_t sum = 0;

	for (int i = 0; i < WAIT_BUCKETS; i++)
		sum += cell->waits[i];
	return sum;
}

int64_t stats_wait_ms(const struct stats_cell *cell, uint32_t of_thousand)
{
	uint64_t waited = stats_waited(cell), below = 0;
	uint64_t rank = (waited * of_thousand + 999) / 1000; /* from 1 on */
	int i = 0;

	assert(of_thousand > 0);
	assert(of_thousand <= 1000);
	if (waited == 0)
		return -1;
	while (below + cell->waits[i] < rank)
		below += cell->waits[i++];
	if (i == 0)
		return 0;
	/* within a bucket waits are taken to be spread evenly */
	int64_t from_ms = INT64_C(1) << (i - 1);
	return from_ms + (int64_t)((double)from_ms * (double)(rank - below) / (double)cell->waits[i]);
}
