#include "checker/checker.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/fold.h"

static void seed_words(struct names *names)
{
	ck_names_init(names);
#define X(name, word)                                                  \
	if (ck_names_number(names, word, strlen(word)) != WORD_##name) \
		assert(0 && "words are numbered in their order");
	WORDS(X)
#undef X
}

struct checker *checker_new(const char *states_md_path)
{
	const char *from_environment = getenv("STINT_STATES_MD");
	struct checker *checker = ck_must_realloc(NULL, 1, sizeof *checker);

	*checker = (struct checker){
		.limits = {.retry_base_ms = 10000,
			.retry_max_ms = 300000,
			.retry_jitter_percent = 20,
			.crash_budget = 3,
			.interruption_budget = 10,
			.verify_after_ms = 120000,
			.verify_slack_ms = -1,
			.restart_grace_ms = 60000},
		.round = 1,
	};
	seed_words(&checker->names);
	ck_keys_init(&checker->keys);
	if (!states_md_path)
		states_md_path = from_environment ? from_environment : "spec/states.md";
	int status = ck_published_read(&checker->published, &checker->names, states_md_path);
	if (status < 0) {
		checker_free(checker);
		errno = -status;
		return NULL;
	}
	return checker;
}

static void task_free(struct task *task)
{
	if (!task)
		return;
	for (int i = 0; i < SLICE_LINES; i++)
		free(task->slice[i].text);
	free(task);
}

void checker_free(struct checker *checker)
{
	if (!checker)
		return;
	for (uint32_t i = 0; i < checker->tasks_room; i++)
		task_free(checker->tasks[i]);
	for (uint32_t i = 0; i < checker->workers_room; i++)
		free(checker->workers[i]);
	for (uint32_t i = 0; i < checker->acks_count; i++)
		free(checker->acks[i].line);
	free(checker->tasks);
	free(checker->workers);
	free(checker->quarantined);
	free(checker->claims);
	free(checker->acks);
	free(checker->complaint);
	ck_names_done(&checker->names);
	ck_names_done(&checker->keys);
	free(checker);
}

int checker_set(struct checker *checker, const char *name, int64_t value)
{
	struct limits *limits = &checker->limits;
	const struct {
		const char *name;
		int64_t *value;
	} known[] = {
		{"retry_base_ms", &limits->retry_base_ms},
		{"retry_max_ms", &limits->retry_max_ms},
		{"retry_jitter_percent", &limits->retry_jitter_percent},
		{"crash_budget", &limits->crash_budget},
		{"interruption_budget", &limits->interruption_budget},
		{"verify_after_ms", &limits->verify_after_ms},
		{"verify_slack_ms", &limits->verify_slack_ms},
		{"restart_grace_ms", &limits->restart_grace_ms},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(known[i].name, name) == 0) {
			*known[i].value = value;
			return 0;
		}
	}
	return -EINVAL;
}

static void print_slice(FILE *out, const struct task *task)
{
	for (uint32_t i = 0; i < SLICE_LINES; i++) {
		const struct line *line = &task->slice[(task->slice_next + i) % SLICE_LINES];
		if (line->len > 0)
			fprintf(out, "  %.*s\n", (int)line->len, line->text);
	}
}

int ck_complain(struct checker *checker, const char *invariant, uint32_t task, const char *format, ...)
{
	size_t size = 0;
	FILE *out = open_memstream(&checker->complaint, &size);
	va_list arguments;

	assert(out);
	assert(checker->verdict == CHECKER_OK);
	fprintf(out, "%s ", invariant);
	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	fputc('\n', out);
	if (task != WORD_NONE && task < checker->tasks_room && checker->tasks[task])
		print_slice(out, checker->tasks[task]);
	if (checker->line)
		fprintf(out, "> %.*s\n", (int)checker->line_len, checker->line);
	fclose(out);
	checker->verdict = CHECKER_VIOLATION;
	return checker->verdict;
}

/* Room for `name` in an array that names index; the new part is zero. */
static void *room_for(void *array, uint32_t *room, uint32_t name, size_t size)
{
	uint32_t wanted = *room ? *room : 256;

	while (wanted <= name)
		wanted *= 2;
	if (wanted == *room)
		return array;
	array = ck_must_realloc(array, wanted, size);
	memset((char *)array + *room * size, 0, (wanted - *room) * size);
	*room = wanted;
	return array;
}

struct task *ck_task_named(struct checker *checker, uint32_t name)
{
	checker->tasks = room_for(checker->tasks, &checker->tasks_room, name, sizeof *checker->tasks);
	if (!checker->tasks[name]) {
		checker->tasks[name] = ck_must_realloc(NULL, 1, sizeof(struct task));
		*checker->tasks[name] = (struct task){0};
	}
	return checker->tasks[name];
}

struct worker *ck_worker_named(struct checker *checker, uint32_t name)
{
	checker->workers = room_for(checker->workers, &checker->workers_room, name, sizeof *checker->workers);
	if (!checker->workers[name]) {
		checker->workers[name] = ck_must_realloc(NULL, 1, sizeof(struct worker));
		*checker->workers[name] = (struct worker){0};
	}
	return checker->workers[name];
}

const char *ck_text(const struct checker *checker, int64_t name)
{
	return ck_names_text(&checker->names, (uint32_t)name);
}

/* Keep the line with its task, over the oldest one kept. */
static void remember_line(struct checker *checker, uint32_t name)
{
	struct task *task = ck_task_named(checker, name);
	struct line *line = &task->slice[task->slice_next];

	if (line->room < checker->line_len) {
		line->room = checker->line_len + 64;
		line->text = ck_must_realloc(line->text, line->room, 1);
	}
	memcpy(line->text, checker->line, checker->line_len);
	line->len = checker->line_len;
	task->slice_next = (task->slice_next + 1) % SLICE_LINES;
}

static int count_event(struct checker *checker, const struct record *event)
{
	bool rewinds = event->kind == WORD_SERVER_RESTORED && event->seq <= checker->seq;

	if (!rewinds && event->seq != checker->seq + 1)
		return ck_complain(checker, "A1", event->task, "event %lld follows event %lld",
			(long long)event->seq, (long long)checker->seq);
	checker->seq = event->seq;
	checker->rewound = rewinds;
	checker->started = true;
	checker->events++;
	checker->boot = event->boot;
	checker->lease_ms = event->lease_ms;
	return CHECKER_OK;
}

/* A restore took events back: where the tasks stand now, baselines say. */
static void forget_tables(struct checker *checker)
{
	for (uint32_t i = 0; i < checker->tasks_room; i++) {
		if (checker->tasks[i])
			checker->tasks[i]->exists = false;
	}
	for (uint32_t i = 0; i < checker->workers_room; i++) {
		if (checker->workers[i])
			checker->workers[i]->held = 0;
	}
}

static bool is_about(const struct checker *checker, const struct record *event, const char *noun)
{
	return strncmp(ck_text(checker, event->kind), noun, strlen(noun)) == 0;
}

static int judge_event(struct checker *checker, const struct record *event)
{
	if (count_event(checker, event) != CHECKER_OK)
		return checker->verdict;
	if (is_about(checker, event, "task.") || is_about(checker, event, "claim.") ||
		is_about(checker, event, "session.") || is_about(checker, event, "gate.")) {
		if (event->task == WORD_NONE)
			return ck_complain(checker, "A3", WORD_NONE, "an event of no task");
		return ck_task_event(checker, event);
	}
	if (event->from != WORD_NONE || event->value[KEY_STATE] != WORD_NONE)
		return ck_complain(
			checker, "A3", event->task, "%s moves no task", ck_text(checker, event->kind));
	if (is_about(checker, event, "worker."))
		return ck_worker_event(checker, event);
	if (is_about(checker, event, "slot."))
		return ck_slot_event(checker, event);
	if (checker->rewound)
		forget_tables(checker);
	return ck_server_event(checker, event);
}

static int judge(struct checker *checker, const struct record *record)
{
	switch (record->tag) {
	case 'E':
		return judge_event(checker, record);
	case 'B':
		return ck_baseline_record(checker, record);
	case 'S':
		return ck_state_record(checker, record);
	case 'C':
		return ck_client_record(checker, record);
	case 'Q':
		return ck_quiet_point(checker);
	default:
		return CHECKER_OK;
	}
}

int checker_line(struct checker *checker, const char *line, size_t len)
{
	struct record record;

	if (checker->verdict != CHECKER_OK)
		return checker->verdict;
	if (len > 0 && line[len - 1] == '\n')
		len--;
	checker->line = line;
	checker->line_len = len;
	const char *fault = ck_record_parse(&record, line, len, &checker->names, &checker->keys);
	if (fault) {
		ck_complain(checker, "malformed:", WORD_NONE, "%s", fault);
		checker->verdict = CHECKER_MALFORMED;
	} else if (judge(checker, &record) == CHECKER_OK && record.task != WORD_NONE && record.tag != 'S') {
		remember_line(checker, record.task);
	}
	checker->line = NULL;
	return checker->verdict;
}

int checker_finish(struct checker *checker)
{
	if (checker->verdict != CHECKER_OK)
		return checker->verdict;
	checker->line = NULL;
	for (uint32_t i = 0; i < checker->tasks_room; i++) {
		if (checker->tasks[i] && ck_verification_is_late(checker, i, checker->tasks[i]))
			return checker->verdict;
	}
	return ck_client_finish(checker);
}

const char *checker_complaint(const struct checker *checker)
{
	return checker->complaint ? checker->complaint : "";
}

uint64_t checker_events(const struct checker *checker)
{
	return checker->events;
}
