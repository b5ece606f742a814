/*
 * What the files of the worker connector's surface share: its words, its times, its tasks.
 */
#pragma once

#include "api/form.h"
#include "api/task_form.h"

/* Time as people write it: 2026-01-16T21:30:00.000Z; null for 0. */
void orchestrator_time(struct json_object *object, const char *key, int64_t wall_ms);

/* The members of a task that are told everywhere: vtid, title, summary … `doc` is its text, may be NULL. */
void orchestrator_put_task(struct json_object *object, const struct task_document *document, yyjson_doc *doc);

/* Until when it was claimed (wall), whatever its worker's heartbeats say; 0: it is not. */
int64_t orchestrator_claim_expires_ms(const struct api_call *call, const struct task *task);

/* Is the worker the caller's own, or may the caller see everything? */
bool orchestrator_sees_worker(const struct api_call *call, const struct worker *worker);
