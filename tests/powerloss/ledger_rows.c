#include "powerloss/ledger_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const struct hash_key fixed_key = {0x706f776572, 0x6c6f7373};

enum {
	NUMBERS_MAX = 48,
};

/* The numbers of a row, one after the other. */
struct numbers {
	int64_t at[NUMBERS_MAX];
	uint32_t count;
};

static void add(struct numbers *numbers, int64_t value)
{
	assert(numbers->count < NUMBERS_MAX);
	numbers->at[numbers->count++] = value;
}

static void add_bytes(struct numbers *numbers, struct span bytes)
{
	add(numbers, (int64_t)bytes.len);
	add(numbers, (int64_t)hash_bytes(&fixed_key, bytes.data, bytes.len));
}

static uint64_t digest(const struct numbers *numbers)
{
	uint64_t hash = hash_bytes(&fixed_key, numbers->at, numbers->count * sizeof(numbers->at[0]));

	return hash ? hash : 1;
}

uint64_t digest_number(int64_t value)
{
	struct numbers numbers = {.count = 0};

	add(&numbers, value);
	return digest(&numbers);
}

uint64_t digest_bytes(struct span bytes)
{
	struct numbers numbers = {.count = 0};

	add_bytes(&numbers, bytes);
	return digest(&numbers);
}

uint64_t digest_name(const struct name_row *row)
{
	struct numbers numbers = {.count = 0};

	add_bytes(&numbers, row->text);
	add(&numbers, row->principal);
	return digest(&numbers);
}

static void add_claim(struct numbers *numbers, const struct claim *claim)
{
	add(numbers, claim->clock);
	add(numbers, claim->lease.deadline_ms);
	add(numbers, claim->lease.granted_ms);
	add(numbers, claim->verify_at_ms);
	add(numbers, claim->run_until_ms);
	add(numbers, claim->asked_at_ms);
	add(numbers, claim->claimed_wall_ms);
	add(numbers, (int64_t)claim->request);
	add(numbers, claim->named);
	add(numbers, claim->stopping);
	add(numbers, claim->reported);
}

static void add_lifecycle(struct numbers *numbers, const struct task *task)
{
	add(numbers, task->state);
	add(numbers, task->ready_at_ms);
	add(numbers, task->attempt);
	add(numbers, task->spent);
	add(numbers, task->crashes);
	add(numbers, task->interruptions);
	add(numbers, task->open_parents);
	add(numbers, task->dead_parents);
	add(numbers, (int64_t)task->fence);
	add(numbers, task->ended);
	add(numbers, task->code);
	add(numbers, task->resume_host);
	add(numbers, task->session_host);
	add(numbers, task->begins_anew);
	add(numbers, task->resume_until_ms);
	add(numbers, task->version);
}

uint64_t digest_task(const struct task_row *row)
{
	const struct task *task = &row->task;
	struct numbers numbers = {.count = 0};

	add(&numbers, task->seq);
	add(&numbers, task->created_ms);
	add(&numbers, task->queue);
	add(&numbers, task->owner);
	add(&numbers, task->requires);
	add(&numbers, task->executor);
	add(&numbers, task->priority);
	add(&numbers, task->timeout_ms);
	add(&numbers, task->max_attempts);
	add(&numbers, task->start_by_ms);
	add(&numbers, task->finish_by_ms);
	add(&numbers, task->keyed);
	add(&numbers, task->has_parent);
	add(&numbers, task->named_id);
	add_lifecycle(&numbers, task);
	add(&numbers, row->task.updated_ms);
	add_bytes(&numbers, row->holder);
	if (!span_is_empty(row->holder))
		add_claim(&numbers, &task->claim);
	return digest(&numbers);
}

uint64_t digest_edge(const struct edge_row *row)
{
	return digest_number(row->done ? 2 : row->dead);
}

uint64_t digest_worker(const struct worker_row *row)
{
	const struct worker *worker = &row->worker;
	struct numbers numbers = {.count = 0};

	add(&numbers, worker->state);
	add(&numbers, worker->ended);
	add(&numbers, worker->named);
	add(&numbers, (int64_t)worker->token);
	add(&numbers, worker->lease.deadline_ms);
	add(&numbers, worker->lease.granted_ms);
	add(&numbers, worker->slot);
	add(&numbers, worker->capabilities);
	add(&numbers, worker->executors);
	add(&numbers, worker->any_executor);
	add(&numbers, worker->max_concurrent);
	add(&numbers, worker->registered_ms);
	add(&numbers, worker->last_beat_ms);
	add(&numbers, worker->process.host);
	add(&numbers, (int64_t)worker->process.boot_hi);
	add(&numbers, (int64_t)worker->process.boot_lo);
	add(&numbers, worker->process.pid);
	add(&numbers, (int64_t)worker->process.start);
	add(&numbers, row->instance);
	add(&numbers, row->ended_ms);
	add_bytes(&numbers, row->metadata);
	return digest(&numbers);
}

uint64_t digest_token(const struct token *token)
{
	struct numbers numbers = {.count = 0};

	add(&numbers, token->kind);
	add_bytes(&numbers, (struct span){(const char *)token->hash, sizeof(token->hash)});
	add_bytes(&numbers, token->name);
	add_bytes(&numbers, token->queues);
	add(&numbers, token->created_ms);
	add_bytes(&numbers, token->created_by);
	add(&numbers, token->expires_ms);
	add(&numbers, token->revoked_ms);
	add_bytes(&numbers, token->revoked_by);
	return digest(&numbers);
}

uint64_t digest_idem(const struct idem_row *row)
{
	struct numbers numbers = {.count = 0};

	add_bytes(&numbers, (struct span){(const char *)row->fingerprint, sizeof(row->fingerprint)});
	add(&numbers, row->task);
	add(&numbers, row->created_ms);
	add(&numbers, row->deduplicated);
	return digest(&numbers);
}

const char *row_table_name(enum row_table table)
{
	static const char *const names[ROW_TABLE_COUNT] = {"", "task", "body", "extra", "event", "base",
		"name", "id", "key", "edge", "worker", "small", "idem", "meta", "token"};

	return names[table];
}

struct row_key idem_key(struct span principal, struct span key, char room[IDEM_KEY_MAX])
{
	assert(principal.len + 1 + key.len <= IDEM_KEY_MAX);
	if (principal.len)
		memcpy(room, principal.data, principal.len);
	room[principal.len] = '\0';
	if (key.len)
		memcpy(room + principal.len + 1, key.data, key.len);
	return (struct row_key){.table = ROW_IDEM,
		.text = {room, principal.len + 1 + key.len},
		.split = (uint32_t)principal.len + 1};
}

/* ---- rows by key ------------------------------------------------------------------------------ */

static uint64_t key_hash(const struct row_key *key)
{
	struct numbers numbers = {.count = 0};

	add(&numbers, key->table);
	add(&numbers, key->a);
	add(&numbers, key->b);
	add(&numbers, key->c);
	add_bytes(&numbers, key->text);
	return digest(&numbers);
}

static uint64_t hash_of(void *context, uint32_t at)
{
	return ((struct rows *)context)->rows[at].hash;
}

static const struct map_ops index_ops = {hash_of};

void rows_init(struct rows *rows)
{
	*rows = (struct rows){0};
	map_init(&rows->index, &index_ops, rows);
}

void rows_done(struct rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++)
		free(rows->rows[i].text);
	free(rows->rows);
	map_done(&rows->index);
	*rows = (struct rows){0};
}

static bool row_is(const struct row *row, const struct row_key *key)
{
	return row->table == key->table && row->a == key->a && row->b == key->b && row->c == key->c &&
		row->text_len == key->text.len &&
		(row->text_len == 0 || memcmp(row->text, key->text.data, row->text_len) == 0);
}

static uint32_t row_make(struct rows *rows, const struct row_key *key, uint64_t hash)
{
	if (rows->count == rows->room) {
		rows->room = rows->room ? 2 * rows->room : 256;
		rows->rows = realloc(rows->rows, rows->room * sizeof(*rows->rows));
		if (!rows->rows)
			abort();
	}
	struct row *row = &rows->rows[rows->count];

	*row = (struct row){.table = key->table,
		.a = key->a,
		.b = key->b,
		.c = key->c,
		.text_len = (uint32_t)key->text.len,
		.split = key->split,
		.hash = hash};
	if (key->text.len) {
		row->text = malloc(key->text.len);
		if (!row->text)
			abort();
		memcpy(row->text, key->text.data, key->text.len);
	}
	if (map_insert(&rows->index, hash, rows->count) != 0)
		abort();
	return rows->count++;
}

uint32_t rows_at(struct rows *rows, const struct row_key *key)
{
	uint64_t hash = key_hash(key);
	struct map_probe probe;
	uint32_t at = map_first(&rows->index, hash, &probe);

	while (at != MAP_NONE && !row_is(&rows->rows[at], key))
		at = map_next(&rows->index, &probe);
	return at != MAP_NONE ? at : row_make(rows, key, hash);
}

void rows_set(struct rows *rows, uint32_t at, uint64_t content)
{
	struct row *row = &rows->rows[at];

	if (content && !row->digest)
		rows->live[row->table]++;
	if (!content && row->digest)
		rows->live[row->table]--;
	row->digest = content;
}
