/*
 * A task that a person adds: the flags that stint add and stint run share, and the document that they make.
 *
 * A task may be a command: the words behind "--". Then its payload has the words ("argv"), its queue and its executor are
 * "shell" unless the flags name others, and it runs in the current directory.
 */
#pragma once

#include "cli/frame/cli.h"
#include "cli/frame/defaults.h"

// clang-format off
#define NEW_TASK_FLAGS \
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", \
		.text = "the queue (default \"default\"; of a command \"shell\")", .member = "queue"}, \
	{"executor", 'x', FLAG_TEXT, .value = "NAME", \
		.text = "the executor that runs it (default: the worker chooses; of a command \"shell\")", .member = "executor"}, \
	{"cwd", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR", \
		.text = "the directory to work in; a relative path starts here (default of a command: here)"}, \
	{"no-cwd", 0, FLAG_SWITCH, .text = "run the command in an empty directory"}, \
	{"env", 0, FLAG_TEXT, .many = true, .value = "NAME[=VALUE]", \
		.text = "a variable for the command; without =VALUE as it is here. Not for secrets: who may read the task reads it"}, \
	{"worktree", 0, FLAG_SWITCH, \
		.text = "in a git work tree of its own, on a branch of its own", .member = "worktree"}, \
	{"file", 'f', FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instructions from a file; - is standard input"}, \
	{"priority", 'p', FLAG_PRIORITY, .value = "N", \
		.text = "higher first; or urgent, high, normal, low, P0 to P3", .member = "priority"}, \
	{"after", 0, FLAG_NAMES, OFFER_TASKS, true, .value = "ID,…", .text = "not before these tasks are done"}, \
	{"group", 'g', FLAG_TEXT, OFFER_GROUPS, .value = "GROUP", \
		.text = "a member of this group, which begins when it is first named", .member = "group"}, \
	{"after-group", 0, FLAG_NAMES, OFFER_GROUPS, true, .value = "GROUP,…", \
		.text = "not before these groups have ended with all their tasks done", .member = "blockedByGroups"}, \
	{"on-parent-failure", 0, FLAG_CHOICE, .value = "block|run", \
		.text = "when one that it is after has failed: blocked (default), or run once all have ended", .member = "onParentFailure"}, \
	{"not-before", 0, FLAG_MOMENT, .value = "TIME", \
		.text = "not before that: 30m from now, 02:30, or 2026-12-31T18:00", .member = "notBefore"}, \
	{"start-by", 0, FLAG_MOMENT, .value = "TIME", \
		.text = "the task fails if no worker has started it by then", .member = "startBy"}, \
	{"finish-by", 0, FLAG_MOMENT, .value = "TIME", \
		.text = "the task fails if it is not done by then", .member = "finishBy"}, \
	{"timeout", 0, FLAG_DURATION, .value = "TIME", \
		.text = "time limit of one attempt (default 30m)", .member = "timeoutMs"}, \
	{"max-attempts", 0, FLAG_NUMBER, .value = "N", \
		.text = "failures before it is given up (default 3; of stint run 1)", .least = 1, .most = 1000000, \
		.member = "maxAttempts"}, \
	{"needs", 0, FLAG_NAMES, .many = true, .value = "CAP,…", \
		.text = "capabilities that a worker must have", .member = "requires"}, \
	{"isolation", 0, FLAG_TEXT, OFFER_LEVELS, .value = "LEVEL", \
		.text = "at least that: process, sandbox, container or vm; see docs/isolation.md", .member = "isolationLevel"}, \
	{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", \
		.text = "only for the worker in this slot", .member = "owner"}, \
	{"label", 'l', FLAG_NAMES, .many = true, .value = "LABEL,…", .text = "labels to find it by", .member = "labels"}, \
	{"id", 0, FLAG_TEXT, .value = "ID", \
		.text = "the id of the new task; an id that exists is refused", .member = "id"}, \
	{"unique", 'u', FLAG_TEXT, .value = "KEY", \
		.text = "at most one unfinished task of this key: adding again gives that one", .member = "uniqueKey"}, \
	{"on-conflict", 0, FLAG_CHOICE, .value = "existing|reject|replace", \
		.text = "while another task holds the unique key: give that one (default), refuse, or take its place", .member = "onConflict"}, \
	{"unique-for", 0, FLAG_DURATION, .value = "TIME", \
		.text = "hold the unique key so long from now, even if the task is done before", .member = "uniqueForMs"}, \
	{"concurrency-key", 0, FLAG_TEXT, .value = "KEY", \
		.text = "what the limits of its queue count it under: a customer, a repository; see stint queue limit", \
		.member = "concurrencyKey"}, \
	{"key", 'k', FLAG_TEXT, .value = "KEY", .text = "the same key again within a day gives the same task"}, \
	{"workflow", 0, FLAG_TEXT, OFFER_WORKFLOWS, .value = "NAME", \
		.text = "its stages: see stint workflow ls", .member = "workflow"}, \
	{"gate", 0, FLAG_NAMES, .many = true, .value = "NAME,…", \
		.text = "it is done only when somebody has approved it at each gate: see stint approve", .member = "gates"}, \
	{"hold", 0, FLAG_SWITCH, .text = "park it: no worker gets it before stint unpark"}
// clang-format on

struct new_task {
	struct span title, text; /* text: the instructions. Without a title a command is its own */
	const struct span *parents;
	uint32_t parent_count;
	const struct defaults *defaults;
	const char *const *words; /* of the command, NULL at the end; NULL: not a command */
	struct span input;        /* what the command reads; empty: nothing */
	bool once;                /* one attempt, unless --max-attempts says more */
};

/* The arguments from that one on as a command. NULL: there are none. Words that cannot be sent end the run. */
const char *const *new_task_words(struct cli *cli, size_t from);

/* What stands on our own standard input, for the command to read; empty: nothing, as on a terminal or /dev/null. More than
 * fits into a task ends the run. */
struct span new_task_input(struct cli *cli);

/* Adds it. 0 and the reply, or the ending. With a key it is sent again if the reply is lost; without one it is not. */
int new_task_add(struct cli *cli, const struct new_task *entry, const char *key, struct reply *ret_reply);

/* The title and the command alone, of what has its place already: without a title the command is its own. */
void new_task_put_command(
	struct cli *cli, struct json_object *task, const char *title, const char *const *words);

/* The members of its document, into an object that is open. */
void new_task_put_members(struct cli *cli, struct json_object *task, const struct new_task *entry);

/* What came out otherwise than it was asked for, or cannot come out well. */
void new_task_tell_warnings(struct cli *cli, yyjson_val *task);

/* The answer: in JSON; on a terminal a sentence, where the task stands; elsewhere its id. */
int new_task_put(struct cli *cli, yyjson_val *task);
