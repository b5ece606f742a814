#include "history/history.h"

#include <inttypes.h>

void history_init(struct history *history)
{
	buf_init(&history->text, HISTORY_BYTES_MAX);
	buf_init(&history->line, 1 << 16);
}

void history_done(struct history *history)
{
	buf_done(&history->text);
	buf_done(&history->line);
}

static const char *state_word(enum task_state state)
{
	return state == TASK_NOWHERE ? "-" : task_state_name(state);
}

static const char *ended_word(enum claim_end ended)
{
	static const char *const words[] = {
		[ENDED_NOT] = "-",
		[ENDED_COMPLETE] = "complete",
		[ENDED_FAIL] = "fail",
		[ENDED_REVIEW] = "review",
		[ENDED_BLOCK] = "block",
		[ENDED_RELEASE] = "release",
		[ENDED_LOST] = "lost",
		[ENDED_WAIT] = "wait",
	};
	return words[ended];
}

static const char *code_word(enum failure_code code)
{
	return code == CODE_NONE ? "-" : failure_code_name(code);
}

static struct span word_or_none(struct span text)
{
	return text.len > 0 ? text : SPAN("-");
}

static struct span name_word(struct store *store, uint32_t number)
{
	return number == 0 ? SPAN("-") : word_or_none(store_name(store, number));
}

/* The members of a set stand in its name, each after a separator that is no text. */
static int put_set(struct buf *line, struct store *store, uint32_t number)
{
	struct span text = name_word(store, number);
	int r = 0;

	for (size_t i = 0; i < text.len && r == 0; i++)
		r = buf_put_byte(line, (unsigned char)text.data[i] < ' ' ? '+' : (unsigned char)text.data[i]);
	return r;
}

static int put_columns(struct buf *line, struct store *store, const struct task *task, struct span holder)
{
	int r = buf_printf(line, "\tqueue=%.*s", SPAN_ARGS(name_word(store, task->queue)));
	if (r == 0)
		r = buf_printf(line, "\towner=%.*s\trequires=", SPAN_ARGS(name_word(store, task->owner)));
	if (r == 0)
		r = put_set(line, store, task->requires);
	if (r == 0)
		r = buf_printf(line, "\texecutor=%.*s", SPAN_ARGS(name_word(store, task->executor)));
	if (r == 0)
		r = buf_printf(line,
			"\tpriority=%" PRId32 "\tcreated=%" PRId64 "\tready_at=%" PRId64
			"\tspent=%u\tcrashes=%u\tinterruptions=%u\tmax_attempts=%u",
			task->priority, task->created_ms, task->ready_at_ms, task->spent, task->crashes,
			task->interruptions, task->max_attempts);
	if (r == 0)
		r = buf_printf(line, "\topen_parents=%u\tdead_parents=%u\tended=%s\tcode=%s\ttimeout=%u",
			task->open_parents, task->dead_parents, ended_word(task->ended),
			code_word(task->code), task->timeout_ms);
	if (r == 0)
		r = buf_printf(line, "\theld=%.*s", SPAN_ARGS(word_or_none(holder)));
	return r;
}

static int put_number_fact(struct buf *line, const struct record *record, enum fact fact, const char *key)
{
	if (!record_has(record, fact))
		return 0;
	return buf_printf(line, "\t%s=%" PRId64, key, record->fact[fact]);
}

static int put_word_facts(struct buf *line, const struct record *record)
{
	/* the fact is the moment; here it counts that there is one */
	int r = record_has(record, FACT_VERIFY) ? buf_printf(line, "\tverify=1") : 0;

	if (r == 0 && record_has(record, FACT_REASON))
		r = buf_printf(
			line, "\treason=%s", worker_end_name((enum worker_end)record->fact[FACT_REASON]));
	if (r == 0 && record_has(record, FACT_CLASS))
		r = buf_printf(
			line, "\tclass=%s", failure_class_name((enum failure_class)record->fact[FACT_CLASS]));
	return r;
}

/* A start says when it was on the lease clock; the fact counts the starts. */
static int put_start(struct buf *line, const struct record *record)
{
	if (record->kind != EVENT_SERVER_STARTED)
		return 0;
	return buf_printf(line, "\tstart=%" PRId64, record->lease_ms);
}

static int put_facts(struct buf *line, const struct record *record)
{
	static const struct {
		enum fact fact;
		const char *key;
	} keys[] = {
		{FACT_DEADLINE, "deadline"},
		{FACT_RETRY_AT, "retry_at"},
		{FACT_GRANTED, "granted"},
		{FACT_GRACE_END, "grace_end"},
		{FACT_BEATS, "beats"},
		{FACT_NAMED, "named"},
		{FACT_NAME_ONLY, "name_only"},
		{FACT_MAX, "max"},
		{FACT_GENERATION, "generation"},
	};
	int r = 0;

	for (size_t i = 0; i < sizeof keys / sizeof *keys && r == 0; i++)
		r = put_number_fact(line, record, keys[i].fact, keys[i].key);
	if (r == 0)
		r = put_start(line, record);
	return r == 0 ? put_word_facts(line, record) : r;
}

static int finish_line(struct history *history)
{
	int r = buf_put_byte(&history->line, '\n');
	return r < 0 ? r : buf_put_span(&history->text, buf_span(&history->line));
}

/* Queues and slots are the subject of their events; a worker's subject is its slot. */
static int put_subject(struct buf *line, const struct record *record)
{
	if (record->subject.len == 0 ||
		record->task != 0) /* a session's label, or a gate, says nothing of its task */
		return 0;
	bool queue = record->kind == EVENT_QUEUE_PAUSED || record->kind == EVENT_QUEUE_RESUMED ||
		record->kind == EVENT_QUEUE_DRAINING;
	return buf_printf(line, "\t%s=%.*s", queue ? "queue" : "slot", SPAN_ARGS(record->subject));
}

static int put_task_event(struct buf *line, const struct record *record, const struct fold *fold)
{
	int r = buf_printf(line, "\tt%" PRId64 "\t%.*s\t%" PRIu64 "\t%u\t%s\t%s", record->task,
		SPAN_ARGS(word_or_none(record->worker)), fold->task.fence, fold->task.attempt,
		state_word(record->from), state_word(fold->task.state));
	if (r == 0)
		r = buf_printf(line, "\t%.*s", SPAN_ARGS(word_or_none(record->actor)));
	return r;
}

static int put_other_event(struct buf *line, const struct record *record)
{
	return buf_printf(line, "\t-\t%.*s\t-\t-\t-\t-\t%.*s", SPAN_ARGS(word_or_none(record->worker)),
		SPAN_ARGS(word_or_none(record->actor)));
}

int history_event(struct history *history, struct store *store, uint64_t boot, const struct record *record,
	const struct fold *fold)
{
	struct buf *line = &history->line;

	buf_clear(line);
	int r = buf_printf(line, "E\t%" PRId64 "\tb%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%s", record->seq,
		boot, record->lease_ms, record->wall_ms, event_kind_name(record->kind));
	if (r == 0)
		r = fold ? put_task_event(line, record, fold) : put_other_event(line, record);
	if (r == 0 && fold)
		r = put_columns(line, store, &fold->task, span_of(fold->holder));
	if (r == 0)
		r = put_subject(line, record);
	if (r == 0)
		r = put_facts(line, record);
	return r == 0 ? finish_line(history) : r;
}

int history_row(struct history *history, struct store *store, struct span id, const struct task *task,
	struct span holder)
{
	struct buf *line = &history->line;

	buf_clear(line);
	int r = buf_printf(line, "S\t%.*s\tstate=%s\tfence=%" PRIu64 "\tattempt=%u", SPAN_ARGS(id),
		task_state_name(task->state), task->fence, task->attempt);
	if (r == 0)
		r = put_columns(line, store, task, holder);
	return r == 0 ? finish_line(history) : r;
}

int history_ack(struct history *history, const char *client, const char *op, int64_t task, uint64_t fence)
{
	struct buf *line = &history->line;

	buf_clear(line);
	int r = buf_printf(line, "C\t%s\tok\t%s\tt%" PRId64, client, op, task);
	if (r == 0)
		r = fence != 0 ? buf_printf(line, "\t%" PRIu64, fence) : buf_printf(line, "\t-");
	if (r == 0)
		r = buf_printf(line, "\t-\t0\t0");
	return r == 0 ? finish_line(history) : r;
}

int history_quiet(struct history *history)
{
	return buf_put_span(&history->text, SPAN("Q\n"));
}

void history_truncate(struct history *history, size_t len)
{
	if (len < history->text.len)
		history->text.len = len;
}
