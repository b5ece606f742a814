/*
 * The prompt of an attempt, from the task and a template. Words of others stand in marked blocks that name their origin, and
 * never at the beginning: an agent takes a line that begins with "/" for a command.
 *
 * {name} in a template stands for: id title owner cwd description instructions steps deliverables parents before report
 */
#pragma once

#include "base/buf.h"
#include "wire/json/json.h"

enum { PROMPT_BYTES_MAX = 256 << 10 };

struct prompt_facts {
	yyjson_val *task;   /* as its claim had it */
	const char *stint;  /* our command line, as the agent can call it */
	const char *cwd;    /* where it works */
	const char *branch; /* of its work tree; NULL: none */
	bool resumes;       /* the same session goes on */
	const char *
		in_place_of; /* the executor that the task names and whose account is held; NULL: this is the one */
	bool lost;           /* an earlier session cannot be continued: this one begins anew */
	const char *const *checks; /* names of checks that will follow; NULL at the end; NULL: none */
	int64_t progress_every_ms; /* of a pass of run-once: so often it is to tell of its progress; 0: as it likes */
	const char *near;          /* most of a budget is used: which; NULL: not so */
	int64_t told;              /* what people told the task up to this number is known to the session */
	/* Keeps the whole of a text that the prompt cannot have, and returns the file's path as the agent sees it; NULL: it cannot. */
	const char *(*keep)(void *context, const char *name, struct span text); /* NULL: nothing is kept */
	void *context;
	unsigned halvings; /* blocks are shorter by so many halves, until the prompt has its length */
};

extern const char prompt_template[];

/* Is there nothing in the template that we do not know? Else the unknown name is in ret_name. */
bool prompt_is_template(const char *text, char ret_name[64]);

/* Appends the prompt, at most PROMPT_BYTES_MAX where the template itself is not longer; what is too long is cut, and names the file that
 * has the whole. -ENOMEM, -E2BIG. */
int prompt_put(struct buf *out, const char *text, const struct prompt_facts *facts);

/* The prompt of a session that goes on: only what is new. */
int prompt_put_resume(struct buf *out, const struct prompt_facts *facts);

/* What people told the task after facts->told, each in a block. Returns the number of the last one; facts->told: there is none. */
int64_t prompt_put_tells(struct buf *out, const struct prompt_facts *facts);

/* For the next turn of a session that works on the task: those blocks. */
int prompt_put_told(struct buf *out, const struct prompt_facts *facts, struct span blocks);

/* When an agent has ended its turn without a report and without a change. */
int prompt_put_nudge(struct buf *out, const struct prompt_facts *facts);
