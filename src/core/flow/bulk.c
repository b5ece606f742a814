#include "core/flow/bulk.h"

#include <assert.h>

static const char *const action_names[BULK_ACTION_COUNT] = {
	[BULK_RETRY] = "retry",
	[BULK_CANCEL] = "cancel",
	[BULK_PARK] = "park",
	[BULK_UNPARK] = "unpark",
	[BULK_MOVE] = "move",
	[BULK_PRIORITY] = "priority",
	[BULK_PURGE] = "purge",
};

const char *bulk_action_name(enum bulk_action action)
{
	assert(action >= BULK_RETRY);
	assert(action < BULK_ACTION_COUNT);
	return action_names[action];
}

enum bulk_action bulk_action_find(struct span name)
{
	for (int i = BULK_RETRY; i < BULK_ACTION_COUNT; i++) {
		if (span_is(name, action_names[i]))
			return (enum bulk_action)i;
	}
	return 0;
}

const char *bulk_state_name(enum bulk_state state)
{
	switch (state) {
	case BULK_RUNNING:
		return "running";
	case BULK_DONE:
		return "done";
	case BULK_STOPPED:
		break;
	}
	return "stopped";
}

const char *bulk_stop_name(enum bulk_stop stop)
{
	switch (stop) {
	case BULK_NOT_STOPPED:
	case BULK_STOP_COUNT:
		break;
	case BULK_BY_PERSON:
		return "by_person";
	case BULK_REVOKED:
		return "revoked";
	case BULK_RESTORED:
		return "restored";
	case BULK_DAMAGED:
		return "store_damaged";
	}
	return "";
}

static void end(struct bulk_progress *progress, enum bulk_state state, int64_t now_ms)
{
	progress->state = state;
	progress->ended_ms = now_ms > 0 ? now_ms : 1;
}

struct bulk_progress bulk_begin(int64_t last, uint64_t matched, int64_t now_ms)
{
	struct bulk_progress progress = {.state = BULK_RUNNING, .last = last, .matched = matched};

	if (last == 0) /* no task was there */
		end(&progress, BULK_DONE, now_ms);
	return progress;
}

bool bulk_takes_step(const struct bulk_progress *progress, int64_t from)
{
	return progress->state == BULK_RUNNING && progress->cursor == from;
}

bool bulk_covers(const struct bulk_progress *progress, int64_t task)
{
	return task > progress->cursor && task <= progress->last;
}

void bulk_count(struct bulk_progress *progress, enum refusal refusal)
{
	assert(progress->state == BULK_RUNNING);
	if (refusal == REFUSED_NOTHING)
		progress->done++;
	else
		progress->skipped[refusal]++;
}

bool bulk_advance(struct bulk_progress *progress, int64_t cursor, int64_t now_ms)
{
	assert(progress->state == BULK_RUNNING);
	assert(cursor >= progress->cursor);
	progress->cursor = cursor < progress->last ? cursor : progress->last;
	if (progress->cursor < progress->last)
		return false;
	end(progress, BULK_DONE, now_ms);
	return true;
}

bool bulk_stop(struct bulk_progress *progress, enum bulk_stop why, int64_t now_ms)
{
	assert(why != BULK_NOT_STOPPED);
	if (progress->state != BULK_RUNNING)
		return false;
	progress->stop = why;
	end(progress, BULK_STOPPED, now_ms);
	return true;
}

uint64_t bulk_skipped(const struct bulk_progress *progress)
{
	uint64_t sum = 0;

	for (int i = 0; i < REFUSAL_COUNT; i++)
		sum += progress->skipped[i];
	return sum;
}

bool bulk_is_sound(const struct bulk_progress *progress)
{
	bool runs = progress->state == BULK_RUNNING;

	return progress->state >= BULK_RUNNING && progress->state <= BULK_STOPPED &&
		progress->stop < BULK_STOP_COUNT &&
		(progress->state == BULK_STOPPED) == (progress->stop != BULK_NOT_STOPPED) &&
		runs == (progress->ended_ms == 0) && progress->cursor >= 0 &&
		progress->cursor <= progress->last && (!runs || progress->cursor < progress->last) &&
		progress->skipped[REFUSED_NOTHING] == 0;
}

struct span bulk_id_put(uint32_t number, char text[BULK_ID_BYTES_MAX])
{
	char digits[BULK_ID_BYTES_MAX];
	size_t count = 0, len = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	text[len++] = 'b';
	text[len++] = '-';
	while (count > 0)
		text[len++] = digits[--count];
	text[len] = 0;
	return (struct span){text, len};
}

uint32_t bulk_id_read(struct span id)
{
	uint64_t number = 0;

	if (id.len < 3 || id.len >= BULK_ID_BYTES_MAX || id.data[0] != 'b' || id.data[1] != '-' ||
		id.data[2] == '0')
		return 0;
	for (size_t i = 2; i < id.len; i++) {
		if (id.data[i] < '0' || id.data[i] > '9')
			return 0;
		number = number * 10 + (uint64_t)(id.data[i] - '0');
	}
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}
