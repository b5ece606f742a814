/*
 * Run once: one pass of a worker that cron or another agent calls, and a result that it can read.
 *
 *	sweep ──▶ resume its own, else claim one ──▶ run ──▶ report ──▶ {"ok":true,"action":"completed",…}
 *
 * It is no worker in the sense of the server: it does not register and does not beat. It claims under the name of its
 * agent, with a lease of its own, which it renews with a note; so the next pass of the same agent finds what the last
 * one left. Between two renewals it looks at the task, and hears so that it is to stop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "wire/json/json.h"
#include "wire/form/command_line.h"
#include "worker/settings/settings.h"

/* The configuration object: each member is a field of the object and a flag. */
struct once_config {
	const char *agent_id;
	const char *queues;                            /* a,b; NULL: those of the worker's configuration */
	const char *allow_statuses;                    /* ready,pending */
	const char *execution_mode, *model, *thinking; /* NULL: nothing was said */
	int64_t lease_ms, progress_every_ms, max_iterations, poll_interval_ms;
	int64_t max_tool_calls, max_run_s; /* 0: no limit */
	bool enable_pr_sweep;
	int64_t empty_status; /* no field: --empty-exit alone */
};

/* The defaults of the object. */
struct once_config once_config_default(void);

enum { ONCE_COMPLAINT_BYTES = 600 };

/* The object in a file; comments are allowed. -EINVAL, or why it cannot be read: the complaint says it. Texts live in
 * the arena. */
int once_config_read(struct once_config *config, const char *path, struct arena *arena,
	char complaint[ONCE_COMPLAINT_BYTES]);

/* The same fields as flags. */
struct command_table once_config_table(struct once_config *config);

/* Can all of it be kept by these executors? -EINVAL. */
int once_config_check(const struct once_config *config, const struct settings *settings,
	char complaint[ONCE_COMPLAINT_BYTES]);

/* ---- the pass --------------------------------------------------------------------------------------------- */

struct supervisor;
struct run;
struct once;

/* Of a supervisor whose loop is there. NULL: no memory. */
struct once *once_new(struct supervisor *supervisor, const struct once_config *config);

/* Begins the first pass. */
void once_begin(struct once *once);

/* Is it the time to claim? */
bool once_claims(const struct once *once);
void once_put_claim(const struct once *once, struct json_object *object);

/* The lease of its claim, and from when on it counts. */
void once_lease(const struct once *once, int64_t *ret_from_ms, int64_t *ret_lease_ms);

/* What the supervisor tells it. */
void once_claimed(struct once *once, yyjson_val *claim); /* NULL: there was nothing */
void once_settled(struct once *once, int status, struct span answer);
void once_run_over(struct once *once);
void once_seen(struct once *once, struct run *run,
	yyjson_val *task);                     /* as the server has it: is it ours, and to go on? */
void once_hear_news(struct once *once);        /* somebody has done something to what the agent holds */
bool once_is_looking(const struct once *once); /* it has a question out: not yet */
void once_failed(struct once *once, const char *action, const char *error); /* the pass cannot be made */

/* Prints the result if there was none yet, and closes its handles. Returns the status to end with. */
int once_close(struct once *once);
void once_free(struct once *once);
