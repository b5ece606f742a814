#include "core/task/log.h"

#include <assert.h>
#include <string.h>

static int64_t end_of(const struct log_chunk *chunk)
{
	return chunk->offset + chunk->bytes;
}

uint32_t log_find(const struct log *log, int64_t offset)
{
	uint32_t i = 0;

	while (i < log->count && end_of(&log->chunks[i]) <= offset)
		i++;
	return i;
}

/* Is there room for so many bytes now? It is dry after `dry_ms`, and after a reboot, when the clock stands before what
 * was noted. */
static bool bucket_takes(struct log_bucket *bucket, uint32_t bytes, int64_t rate, int64_t room,
	int64_t dry_ms, const struct given *given)
{
	int64_t passed_ms = given->now.lease_ms - bucket->at_ms;

	if (passed_ms < 0 || passed_ms >= dry_ms)
		bucket->level = 0;
	else
		bucket->level -= (uint32_t)(rate * passed_ms / 1000 < bucket->level ? rate * passed_ms / 1000
										    : bucket->level);
	bucket->at_ms = given->now.lease_ms;
	if (bucket->level + bytes > room)
		return false;
	bucket->level += bytes;
	return true;
}

/* May it say so many bytes now? One second's worth, and room for one append at least. */
static bool keeps_pace(struct log *log, uint32_t bytes, const struct given *given)
{
	int64_t rate = given->rules->log_bytes_per_s;
	int64_t room = rate > LOG_APPEND_MAX ? rate : LOG_APPEND_MAX;

	return bucket_takes(&log->said, bytes, rate, room, 1000, given);
}

/* A process that prints without end must not push everything else out of the events. */
static bool is_told(struct log *log, uint32_t bytes, const struct given *given)
{
	uint32_t cost = bytes < LOG_TOLD_LEAST ? LOG_TOLD_LEAST : bytes < LOG_TOLD_MAX ? bytes : LOG_TOLD_MAX;

	return bytes > 0 &&
		bucket_takes(&log->told, cost, LOG_TOLD_PER_S, LOG_TOLD_ROOM,
			LOG_TOLD_ROOM / LOG_TOLD_PER_S * 1000, given);
}

static int64_t bytes_kept(const struct log *log)
{
	int64_t bytes = 0;

	for (uint32_t i = 0; i < log->count; i++)
		bytes += log->chunks[i].bytes;
	return bytes;
}

/* The first chunk that is not among those at the beginning. */
static uint32_t first_behind_head(const struct log *log, int64_t head_bytes)
{
	uint32_t i = 0;

	while (i < log->count && i < LOG_CHUNKS_MAX / 4 && end_of(&log->chunks[i]) <= head_bytes)
		i++;
	return i;
}

/* Make room for one more chunk of that many bytes. */
static void drop_middle(struct log *log, uint32_t bytes, const struct rules *rules)
{
	uint32_t from = first_behind_head(log, rules->log_keep_bytes / 4), upto = from;
	int64_t kept = bytes_kept(log) + bytes;
	uint32_t count = log->count + 1;

	while (upto < log->count && (kept > rules->log_keep_bytes || count > LOG_CHUNKS_MAX)) {
		kept -= log->chunks[upto++].bytes;
		count--;
	}
	memmove(&log->chunks[from], &log->chunks[upto], (log->count - upto) * sizeof *log->chunks);
	log->count -= upto - from;
}

static void add(struct log_decision *decision, int64_t offset, uint32_t bytes, const struct rules *rules)
{
	struct log *log = &decision->log;
	struct log_chunk *last = log->count > 0 ? &log->chunks[log->count - 1] : NULL;

	decision->joins = last && end_of(last) == offset && last->bytes + bytes <= LOG_CHUNK_MAX &&
		bytes_kept(log) + bytes <= rules->log_keep_bytes;
	if (decision->joins) {
		last->bytes += bytes;
	} else {
		drop_middle(log, bytes, rules);
		assert(log->count < LOG_CHUNKS_MAX);
		log->chunks[log->count++] = (struct log_chunk){offset, bytes};
	}
}

static struct log_decision refuse(const struct log *log, enum refusal refusal)
{
	return (struct log_decision){.refusal = refusal, .log = *log};
}

struct log_decision log_append(
	const struct log *log, const struct log_append *append, const struct given *given)
{
	struct log_decision decision = {.log = *log};
	int64_t end = append->offset + append->bytes;

	assert(append->bytes <= LOG_APPEND_MAX);
	if (end > LOG_LENGTH_MAX)
		return refuse(log, REFUSED_TOO_LARGE);
	if (append->offset > log->length && append->offset - append->dropped != log->length)
		return refuse(log, REFUSED_BAD_OFFSET);
	if (append->offset < log->length) {
		int64_t known = log->length - append->offset;
		decision.known = known < append->bytes ? (uint32_t)known : append->bytes;
	}
	uint32_t fresh = append->bytes - decision.known;
	if (end <= log->length)
		return decision;
	if (!keeps_pace(&decision.log, fresh, given))
		return refuse(log, REFUSED_RATE_LIMITED);
	decision.grows = true;
	decision.tells = is_told(&decision.log, fresh, given);
	if (fresh > 0)
		add(&decision, end - fresh, fresh, given->rules);
	decision.log.length = end;
	return decision;
}
