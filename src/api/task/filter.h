/*
 * Which tasks are meant: the filters of a list of tasks, of a bulk action and of their like, wherever they were written.
 */
#pragma once

#include "api/call.h"
#include "core/task/search.h"

enum filter_field {
	FILTER_STATUS,
	FILTER_STATE,
	FILTER_QUEUE,
	FILTER_OWNER,
	FILTER_LABEL,
	FILTER_Q,
	FILTER_SCHEDULE,
	FILTER_GROUP,
	FILTER_PARENT,
	FILTER_WORKFLOW,
	FILTER_STAGE,
	FILTER_ERROR,
	FILTER_FIELDS,
};

extern const char *const filter_names[FILTER_FIELDS];

struct task_filter {
	/* as they were given; data NULL: not given */
	struct span values[FILTER_FIELDS];
	const char *path; /* stands before the names in errors: "", or "filter." */
	/* what they mean */
	uint32_t states; /* bit per state that is wanted */
	enum workflow workflow;
	enum stage stage;
	struct search_words search; /* the words of `q` */
	uint32_t group;             /* number; 0: any */
	int64_t parent;             /* its subtasks; 0: any */
	bool reads_text;            /* it needs more of a task than its outline */
	bool reads_causes;          /* it needs its failure */
};

/* Finds out what the values mean. False: the call was refused. */
bool task_filter_judge(struct api_call *call, struct task_filter *filter);

/* Does it let the task through? By its outline, if the caller may see it; and then by what is kept beside it, if the filter
 * `reads_text`. */
bool task_filter_takes_outline(
	const struct api_call *call, const struct task_filter *filter, const struct task_outline *outline);
bool task_filter_takes_text(
	const struct api_call *call, const struct task_filter *filter, const struct task_document *document);

/* Why a task has failed or is blocked. */
struct task_cause {
	struct span code;
	struct span text; /* its words, with N for each number */
	uint64_t digest;  /* of both */
};

enum {
	TASK_CAUSE_BYTES = 512,
	CAUSE_ID_BYTES = 272,
};

/* False: the task has neither failed nor is it blocked. Texts are in `room`. */
bool task_cause_read(const struct api_call *call, const struct task_document *document,
	char room[TASK_CAUSE_BYTES], struct task_cause *ret_cause);

/* "CODE:0123456789ab", by which the filter `error` finds its tasks. */
struct span task_cause_id_put(const struct task_cause *cause, char text[CAUSE_ID_BYTES]);
