/*
 * What the files of the worker connector's surface share: its words, its times, its tasks.
 */
#pragma once

#include "api/form.h"
#include "api/task/form.h"

enum {
	ORCHESTRATOR_LIVENESS_MS = 5 * 60 * 1000,
	ORCHESTRATOR_MESSAGE_MAX = 64 << 10,
};

/* ---- what is asked ----------------------------------------------------------------------------------- */

struct orchestrator_body {
	struct span worker, event, message, reason, active, version, metadata;
	struct name_list capabilities;
	int64_t max_concurrent, expires_minutes;
	uint64_t fence;
	bool has_fence, has_pr;
};

/* Bits: what a body must have. */
enum orchestrator_row {
	ORCHESTRATOR_WORKER = 1 << 0,
	ORCHESTRATOR_EVENT = 1 << 1,
	ORCHESTRATOR_FENCE = 1 << 2,
};

/* Reads the body; unknown fields are ignored. False: the call was refused. */
bool orchestrator_read(struct api_call *call, unsigned required, struct orchestrator_body *body);

/* The VTID of the path, as something that a task may be called; false: the call was refused. */
bool orchestrator_has_vtid(struct api_call *call);

/* A command about the task of the path, by the worker of the body. NULL: the call was refused. */
struct command *orchestrator_command(
	struct api_call *call, enum command_kind kind, const struct orchestrator_body *body);

/* ---- what is answered ---------------------------------------------------------------------------------- */

/* A refusal in the words of this surface; `code` may be NULL. orchestrator_put_no() begins one that has more members. */
void orchestrator_refuse(struct api_call *call, int status, const char *code, const char *text);
void orchestrator_put_no(
	struct api_call *call, struct json_object *object, const char *code, const char *text);

/* Yes: begins the answer with "ok":true, and ends it with its time. */
void orchestrator_put_yes(struct api_call *call, struct json_object *object);
void orchestrator_reply(struct api_call *call, struct json_object *object, const struct result *result);

/* Time as people write it: 2026-01-16T21:30:00.000Z; null for 0. */
void orchestrator_time(struct json_object *object, const char *key, int64_t wall_ms);
void orchestrator_put_now(const struct api_call *call, struct json_object *object); /* as "timestamp" */

/* Of the text of a task (`doc`, may be NULL): what the metadata say of it; the id of its snapshot; and what is to be
 * done. */
void orchestrator_put_summary(struct json_object *object, yyjson_doc *doc);
void orchestrator_put_snapshot(struct json_object *object, yyjson_doc *doc);
struct span orchestrator_spec(yyjson_doc *doc);

/* The members of a task that are told everywhere: vtid, title, summary … `doc` is its text, may be NULL. */
void orchestrator_put_task(struct json_object *object, const struct task_document *document, yyjson_doc *doc);

/* Until when it was claimed (wall), whatever its worker's heartbeats say; 0: it is not. */
int64_t orchestrator_claim_expires_ms(const struct api_call *call, const struct task *task);

/* Is the worker the caller's own, or may the caller see everything? */
bool orchestrator_sees_worker(const struct api_call *call, const struct worker *worker);
