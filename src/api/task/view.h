/*
 * A task as the API shows it.
 */
#pragma once

#include "api/call.h"

/* The task of the path, if the caller may see it. False: the call was refused. */
bool task_find(struct api_call *call, struct task_document *ret_document);

/* What is shown of the tasks that a task was made to wait for. */
enum parents_shown {
	PARENTS_IN_DOCUMENT, /* `blockedBy`, and `parents` with the results that the caller may see */
	PARENTS_IN_LIST,     /* `blockedBy` alone */
	PARENTS_FOR_ATTEMPT, /* all results */
};

/* The members of a task into an object that is open. */
void task_put_members(const struct api_call *call, struct json_object *object,
	const struct task_document *document, enum parents_shown shown);

/* The result of the task; empty: it has none, or only one of an earlier attempt. */
struct span task_result(const struct task_document *document);

/* task/parents.c: the result into the object; one that is longer than what is left is cut off: a text, and marked. */
void result_put_cut(struct json_object *object, struct span result, size_t *left);

/* task/parents.c: the text of the task, with `blockedBy` as it is now. In the arena of the call. -ENOMEM, or a fault of the
 * store. */
int task_body_put_parents(const struct api_call *call, const struct task *task, struct span body,
	enum parents_shown shown, struct span *ret_body);

/* The task as an object. */
int task_put(const struct api_call *call, struct buf *out, const struct task_document *document);

/* "usage": what was used; a price that is not known is null. */
void task_put_usage(struct json_object *object, const struct usage *usage);

/* The members of `usage`, in the order of enum usage_count. */
extern const char *const usage_names[USAGE_COUNTS];

/* The id of a question, from its number and back. False: it is no such id. */
#define QUESTION_ID_FORM "must be the id of a question, such as q-1"
enum {
	QUESTION_ID_BYTES = 16,
};
struct span question_id_put(uint32_t number, char text[QUESTION_ID_BYTES]);
bool question_id_read(struct span id, uint32_t *ret_number);

/* The members of a question, with its id. The text of one that an older server kept is its `question`. */
int question_put(struct buf *out, struct span question, uint32_t number, struct span answer);

/* An answer as it was given; a denial by the clock has one word in the store. */
struct span answer_shown(struct span answer);

/* The error that was reported for the task; NULL: the server found the failure itself. See kept_read(). */
yyjson_doc *task_error_read(const struct task *task, struct span error, struct buf *out);

enum {
	TASK_FAILURE_BYTES = 2 * COMMAND_NAME_MAX + 200,
};

/* The server's own sentence for the failure code of the task, perhaps written into `room`. */
const char *task_failure_text(
	const struct api_call *call, const struct task *task, char room[TASK_FAILURE_BYTES]);

/* A task that is handed out: {"task":…,"fence":…,"leaseMs":…,"attempt":…,"checkpoint":…}, and its token, if it has one. */
int claim_put(const struct api_call *call, struct buf *out, const struct claimed *claimed, struct span worker,
	struct span token);

/* Sets the document back to the task as this command left it: later commands of the same turn may have changed it. */
void task_set_back(struct task_document *document, const struct result *result);

/* Reply with the task of the result, as it is in the store now. `warnings`: elements of a JSON list. */
void task_reply(struct api_call *call, int status, const struct result *result, struct span warnings);

/* "warnings":[…], left out without warnings. */
void warnings_put(struct json_object *object, struct span warnings);

/* The ETag of the reply, of a task or a schedule: that version. False: there is no memory for it, so the call was refused. */
bool task_etag(struct api_call *call, int64_t version);

/* task/create.c: a parent that is not there, or waits for the task itself, is the caller's mistake in one field. */
bool parent_is_missing(const struct result *result);
void parent_refuse(struct api_call *call, const struct result *result);

/* flow/action_text.c: "judges":{…} of a claim: the task whose workflow has begun this one; and its id, "verdictFor". */
void action_put_judged(const struct api_call *call, struct json_object *object, const struct task *task);
void action_put_verdict_for(const struct api_call *call, struct json_object *object, const struct task *task);
