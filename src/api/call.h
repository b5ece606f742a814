/*
 * What the files of the API share: the table of routes, and small steps that every handler takes.
 *
 * A call goes through up to three handlers of its route. begin() looks at the request and leaves commands; a
 * route without one is a read. read() writes the reply from what the server lends. finish() writes it from the
 * results. Whoever refuses has completed the reply.
 *
 * Notes of commands (`note`) are members of a JSON object without its braces, and so are bodies of tasks; data
 * (results, errors, checkpoints, questions, answers) is one JSON value.
 */
#pragma once

#include "api/api.h"
#include "wire/json/json.h"

struct route {
	enum http_method method;
	const char *pattern; /* ":name" stands for one segment */
	uint32_t scopes;     /* bits: any of them will do */
	size_t body_bytes_max;
	void (*begin)(struct api_call *call);
	void (*read)(struct api_call *call);
	void (*finish)(struct api_call *call, const struct result *results);
	bool waits; /* its last command claims the next task, and may wait for one */
};

/* A door of an older system: under its paths whatever is refused has the shape that its clients know. put() writes the
 * body; it may choose another status. */
struct refused {
	int status;
	const char *code, *title, *detail; /* detail may be NULL */
	struct span members;
};

struct door {
	const char *prefix;
	int (*put)(struct api_call *call, struct refused *refused);
};

extern const struct door doors[];
extern const uint32_t door_count;

extern const struct route routes[];
extern const uint32_t route_count;

enum {
	API_TEXT_MAX = 1 << 20, /* bytes of any text or value that is kept */
	IDEMPOTENCY_KEY_MAX = 255,
	WAIT_MS_MAX = 60000, /* for work, or for news */
};

/* ---- commands ----------------------------------------------------------------------------------- */

/* Room for that many, zeroed, with the actor filled in; the call wants a turn. NULL: it was refused. */
struct command *call_commands(struct api_call *call, uint32_t count);

/* 0, or the call was refused because there is no memory for it. */
int call_keep(struct api_call *call, const struct buf *text, struct span *ret_text);

/* The note of a command that an admin gave: principal, route, object, `more` (members, may be empty) and the id of the
 * request, if it has one. For a COMMAND_AUDIT, or whatever leaves an event of its own. False: the call was refused. */
bool call_audit(struct api_call *call, struct command *command, struct span object, struct span more);

/* All workflows that there are, by number. */
const struct workflows *call_workflows(const struct api_call *call);

/* What the command tells about its task, for the task's workflow. False: the call was refused. */
bool call_tells(struct api_call *call, struct command *command, const struct tiding *tiding);

/* Does what was told name a pull request (pr_number, pr_url)? */
bool told_has_pr(yyjson_val *data);

/* ---- replies ------------------------------------------------------------------------------------ */

/* A complete reply of `call->body` as it stands; a fault while it was written becomes a refusal. */
void call_reply(struct api_call *call, int status, int fault);

/* The head of a reply of 200 whose body is written in slices: see call_again(). */
void call_reply_begin(struct api_call *call);

/* The read is not finished: read() of the route is to be called again. Its notes are in `detail`. */
void call_again(struct api_call *call);

/* A problem with more members than usual. */
void call_problem(struct api_call *call, int status, const char *code, const char *title, const char *detail,
	struct span members);
void call_bad_request(struct api_call *call, const char *detail);
void call_refuse_with(struct api_call *call, enum refusal refusal, const char *detail, struct span members);

/* The refusal of a command. */
void call_refuse_result(struct api_call *call, const struct result *result);

/* The code and detail of that refusal, as they stand in the problem. */
const char *refusal_detail(const struct result *result);

/* What the request asks for cannot be kept: -E2BIG is 413, a shortage of memory 503. */
void call_refuse_request(struct api_call *call, int fault);

/* A read has failed: 404, 503. */
void call_refuse_fault(struct api_call *call, int fault);

/* Is work handed out? Who cannot say is taken to say no. */
bool call_is_armed(const struct api_call *call, int64_t *ret_since_ms);

/* ---- small things ------------------------------------------------------------------------------- */

/* May it create work in that queue, do it, or see it? */
bool principal_serves(const struct principal *who, struct span queue);

/* Is the task there for it? Without SCOPE_READ that is what it holds, and what it may claim. */
bool principal_sees(const struct api_call *call, const struct task *task);

/* May it be so, as far as that is known before the task is read? */
bool principal_may_see(const struct api_call *call, const struct task_outline *outline);

/* Does it see that worker? Whoever may not see everything sees its own; and a worker is of no certain queue. */
bool worker_is_visible(const struct principal *who, struct span id, const struct worker *worker);

/* May it give a verdict at that gate? */
bool principal_passes(const struct principal *who, struct span gate);

struct span name_of(const struct api_call *call, uint32_t number);

void json_member_cstr(struct json_object *object, const char *key, const char *value);

/* "a","b": for those who are told names one by one, with a listing as the context. */
struct name_listing {
	struct buf *out;
	bool any;
};

int name_listing_put(void *context, struct span name);

/* The names of a set, as a list; no member if the caller cannot ask for them. */
void json_member_set(const struct api_call *call, struct json_object *object, const char *key, uint32_t set);

/* The decoded value of a parameter of the query; false: it was not given. A bad escape counts as empty. */
struct query_value {
	const char *name;
	struct span value; /* data NULL: not given */
};

/* Fills in the values; a parameter that is not among them, or given twice, refuses the call: false. */
bool query_read(struct api_call *call, struct query_value *values, uint32_t count);

/* A decimal number within the bounds, `fallback` if it was not given. -EINVAL. */
int query_int(const struct query_value *value, int64_t min, int64_t max, int64_t fallback, int64_t *ret);

/* "field" cannot be that. */
void call_refuse_field(struct api_call *call, const char *field, const char *message);

/* Has it no Idempotency-Key, or one that can be kept? If not, the call is refused. */
bool call_key_is_good(struct api_call *call);

/* Two digests of bytes that a client chose; see query.c. */
void digest_request(const struct http_request *request, unsigned char ret_fingerprint[16]);
uint64_t digest_text(struct span first, struct span second); /* never 0 */

/* ---- the handlers, by noun ---------------------------------------------------------------------- */

void task_create_begin(struct api_call *call);
void task_create_finish(struct api_call *call, const struct result *results);
void task_batch_begin(struct api_call *call);
void task_batch_finish(struct api_call *call, const struct result *results);
void task_read(struct api_call *call);
void task_why_read(struct api_call *call);
void task_list_read(struct api_call *call);
void task_patch_begin(struct api_call *call);
void task_patch_read(struct api_call *call);
void task_patch_finish(struct api_call *call, const struct result *results);
void task_cancel_begin(struct api_call *call);
void task_cancel_finish(struct api_call *call, const struct result *results);
void task_retry_begin(struct api_call *call);
void task_park_begin(struct api_call *call);
void task_unpark_begin(struct api_call *call);
void task_answer_begin(struct api_call *call);
void task_finish(struct api_call *call, const struct result *results);

void claim_next_begin(struct api_call *call);
void claim_next_finish(struct api_call *call, const struct result *results);
void claim_task_begin(struct api_call *call);
void claim_task_finish(struct api_call *call, const struct result *results);
bool claim_next_waits(struct api_call *call, const struct result *results);
void claim_next_finish_empty(struct api_call *call);
int call_settle(struct api_call *call, struct arena *into); /* one that waits: see api_settle() */

/* With the token of a claim the caller is the work itself: keep what it says of its end (`outcome`; ENDED_NOT: nothing), for
 * the case that a supervisor stands over it. False: refused. */
bool report_keep_word(struct api_call *call, struct command *command, enum claim_end outcome);
void report_progress_begin(struct api_call *call);
void report_progress_finish(struct api_call *call, const struct result *results);
void report_complete_begin(struct api_call *call);
void report_fail_begin(struct api_call *call);
void report_review_begin(struct api_call *call);
void report_block_begin(struct api_call *call);
void report_release_begin(struct api_call *call);
void report_ask_begin(struct api_call *call);
void report_finish(struct api_call *call, const struct result *results);

void task_emit_begin(struct api_call *call);
void task_emit_finish(struct api_call *call, const struct result *results);

void log_append_begin(struct api_call *call);
void log_append_finish(struct api_call *call, const struct result *results);
void log_read(struct api_call *call);

void worker_register_begin(struct api_call *call);
void worker_register_finish(struct api_call *call, const struct result *results);
void worker_beat_begin(struct api_call *call);
void worker_beat_finish(struct api_call *call, const struct result *results);
void worker_list_read(struct api_call *call);
void worker_read(struct api_call *call);
void worker_news_read(struct api_call *call);
void worker_quiet_begin(struct api_call *call);
void worker_terminate_begin(struct api_call *call);
void worker_leave_begin(struct api_call *call);
void worker_finish(struct api_call *call, const struct result *results);
void slot_list_read(struct api_call *call);
void slot_crash_begin(struct api_call *call);
void slot_enter_begin(struct api_call *call);
void slot_unquarantine_begin(struct api_call *call);
void slot_finish(struct api_call *call, const struct result *results);

void heartbeat_list_read(struct api_call *call);
void heartbeat_beat_begin(struct api_call *call);
void heartbeat_beat_read(struct api_call *call);
void heartbeat_beat_finish(struct api_call *call, const struct result *results);

void session_spawn_begin(struct api_call *call);
void session_spawn_finish(struct api_call *call, const struct result *results);
void session_list_read(struct api_call *call);
void session_read(struct api_call *call);
void session_log_read(struct api_call *call);
void session_stop_begin(struct api_call *call);
void session_stop_read(struct api_call *call);
void session_stop_finish(struct api_call *call, const struct result *results);

void queue_list_read(struct api_call *call);
void queue_pause_begin(struct api_call *call);
void queue_resume_begin(struct api_call *call);
void queue_drain_begin(struct api_call *call);
void queue_finish(struct api_call *call, const struct result *results);

int orchestrator_put_refused(struct api_call *call, struct refused *refused);
void orchestrator_register_begin(struct api_call *call);
void orchestrator_register_finish(struct api_call *call, const struct result *results);
void orchestrator_leave_begin(struct api_call *call);
void orchestrator_leave_finish(struct api_call *call, const struct result *results);
void orchestrator_pending_read(struct api_call *call);
void orchestrator_claim_begin(struct api_call *call);
void orchestrator_claim_finish(struct api_call *call, const struct result *results);
void orchestrator_progress_begin(struct api_call *call);
void orchestrator_progress_finish(struct api_call *call, const struct result *results);
void orchestrator_release_begin(struct api_call *call);
void orchestrator_release_finish(struct api_call *call, const struct result *results);
void orchestrator_beat_begin(struct api_call *call);
void orchestrator_beat_finish(struct api_call *call, const struct result *results);
void orchestrator_workers_read(struct api_call *call);
void orchestrator_stats_read(struct api_call *call);
void orchestrator_health_read(struct api_call *call);

void gate_verdict_begin(struct api_call *call);
void approval_list_read(struct api_call *call);

void execution_set_begin(struct api_call *call);
void execution_set_finish(struct api_call *call, const struct result *results);
void execution_read(struct api_call *call);

/* workflows.c */
void workflow_list_read(struct api_call *call);
void workflow_read(struct api_call *call);

void token_create_begin(struct api_call *call);
void token_create_finish(struct api_call *call, const struct result *results);
void token_list_read(struct api_call *call);
void token_revoke_begin(struct api_call *call);
void token_revoke_finish(struct api_call *call, const struct result *results);

int workqueue_put_refused(struct api_call *call, struct refused *refused);
void workqueue_enqueue_begin(struct api_call *call);
void workqueue_enqueue_finish(struct api_call *call, const struct result *results);
void workqueue_claim_begin(struct api_call *call);
void workqueue_claim_finish(struct api_call *call, const struct result *results);
void workqueue_transition_begin(struct api_call *call);
void workqueue_progress_begin(struct api_call *call);
void workqueue_done_begin(struct api_call *call);
void workqueue_fail_begin(struct api_call *call);
void workqueue_report_finish(struct api_call *call, const struct result *results);
void workqueue_update_begin(struct api_call *call);
void workqueue_update_read(struct api_call *call);
void workqueue_update_finish(struct api_call *call, const struct result *results);
void workqueue_delete_begin(struct api_call *call);
void workqueue_delete_read(struct api_call *call);
void workqueue_delete_finish(struct api_call *call, const struct result *results);
void workqueue_assign_begin(struct api_call *call);
void workqueue_assign_finish(struct api_call *call, const struct result *results);
void workqueue_assignments_read(struct api_call *call);
void workqueue_import_begin(struct api_call *call);
void workqueue_import_finish(struct api_call *call, const struct result *results);
void workqueue_item_read(struct api_call *call);
void workqueue_items_read(struct api_call *call);
void workqueue_summary_read(struct api_call *call);
void workqueue_queues_read(struct api_call *call);

void event_list_read(struct api_call *call);
void task_events_read(struct api_call *call);

void backup_begin(struct api_call *call);
void backup_finish(struct api_call *call, const struct result *results);
void query_begin(struct api_call *call);
void query_finish(struct api_call *call, const struct result *results);

void system_livez_begin(struct api_call *call);
void system_readyz_read(struct api_call *call);
void system_openapi_begin(struct api_call *call);
void system_version_read(struct api_call *call);
void system_metrics_read(struct api_call *call);
