/*
 * What stays of a task's sessions on this host until the task is final: a home for the agent and a file that says which session
 * to resume, in agents/TASK below the state directory.
 *
 *	agents/TASK/session.json    this struct
 *	agents/TASK/home/           HOME of the agent: its transcripts, settings of ours
 *	agents/TASK/stream.jsonl    what the agent wrote, line by line, without known secrets; the newest few MiB
 *	agents/TASK/prompt.md       the prompt of the newest attempt
 *
 * A store that was begun anew gives ids of tasks again: what a task of another time left is removed, not resumed.
 */
#pragma once

#include "agent/adapter/adapter.h"
#include "base/span.h"

enum { MEMORY_RULES_MAX = 32, MEMORY_SUBJECT_BYTES = 1024, MEMORY_PATH_BYTES = 4096 };

struct memory_rule {
	char tool[64];
	char subject[MEMORY_SUBJECT_BYTES]; /* exactly this is allowed until the task is final */
};

struct memory {
	char path[MEMORY_PATH_BYTES];   /* of the directory */
	char session[ADAPTER_ID_BYTES]; /* the agent's own id; "": none */
	char adapter[32];
	char task[160];     /* that a session of many tasks worked on last; "": it is a session of one */
	char tree[256];     /* name of the record of its work tree; "": none */
	int64_t created_ms; /* of the task */
	int64_t final_ms;   /* when the task was final; 0: it is not */
	uint32_t stalls;    /* in a row */
	bool begun;         /* the session has had a turn */
	double usd_total;   /* the agent's own total, as it said it last */
	double usd_spent;   /* by all attempts here */
	int64_t tokens_spent, turns_spent, tool_calls_spent, ms_spent;
	uint32_t budgets_given;              /* how often a person gave the task as much again */
	char budget_question[32];            /* the question whether it may have more; "": none is open */
	int64_t thread_input, thread_output; /* of an agent that counts its whole thread */
	int64_t told; /* number of the last thing that people told the task and the session was given */
	struct memory_rule rules[MEMORY_RULES_MAX];
	uint32_t rule_count;
};

/* Opens what there is for the task and makes the directories. What belongs to another task of that name is removed first.
 * -ENOMEM, -ENOSPC … */
int memory_open(struct memory *memory, const char *state, const char *task, int64_t created_ms);

/* A session of many tasks goes on with this one: what was counted, allowed and told of the one before is forgotten. True: it is
 * another one than before. */
bool memory_turn_to(struct memory *memory, const char *task);

/* On disk when it returns. */
int memory_save(const struct memory *memory);

/* Does the agent's home have the session? True where the adapter does not say where it would be. */
bool memory_has_session(const struct memory *memory, const struct adapter *adapter);

/* A file of ours in the agent's home, in place of what is there; directories on the way are made. */
int memory_put_file(const struct memory *memory, const char *name, struct span text);

/* A file beside the home. */
int memory_put_beside(const struct memory *memory, const char *name, struct span text);

bool memory_allows(const struct memory *memory, const char *tool, struct span subject);
void memory_allow(struct memory *memory, const char *tool, struct span subject);

/* Removes what tasks left that have been final for so long. Called once, when a worker starts. */
void memory_sweep(const char *state, int64_t now_ms, int64_t keep_ms);
