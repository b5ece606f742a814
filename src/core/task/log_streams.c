#include "core/task/log_streams.h"

#include <assert.h>

bool log_streams_add(struct log_streams *list, enum log_stream stream, uint32_t bytes)
{
	uint32_t turn = (uint32_t)stream, needed = list->count;

	if (bytes == 0)
		return true;
	if (list->count > 0 && (list->count - 1) % 2 == turn) {
		list->lengths[list->count - 1] += bytes;
		return true;
	}
	needed += list->count % 2 == turn ? 1 : 2; /* errors first: after an output of nothing */
	if (needed > list->max)
		return false;
	while (list->count < needed)
		list->lengths[list->count++] = 0;
	list->lengths[needed - 1] = bytes;
	assert((list->count - 1) % 2 == turn);
	return true;
}

uint32_t log_streams_add_part(
	struct log_streams *list, const struct log_streams *of, uint32_t from, uint32_t bytes)
{
	uint64_t at = 0, end = (uint64_t)from + bytes, done = from;

	for (uint32_t i = 0; i < of->count && at < end; i++) {
		uint64_t next = at + of->lengths[i];
		uint64_t upto = next < end ? next : end;
		if (upto > done) {
			if (!log_streams_add(list, (enum log_stream)(i % 2), (uint32_t)(upto - done)))
				return (uint32_t)(done - from);
			done = upto;
		}
		at = next;
	}
	if (done < end && log_streams_add(list, LOG_OUT, (uint32_t)(end - done)))
		done = end;
	return (uint32_t)(done - from);
}

uint64_t log_streams_bytes(const struct log_streams *list)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < list->count; i++)
		bytes += list->lengths[i];
	return bytes;
}

bool log_streams_has_errors(const struct log_streams *list)
{
	return list->count > 1; /* a length behind the first is not 0 */
}
