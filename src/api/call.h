/*
 * What the files of the API share: the table of routes, and small steps that every handler takes.
 *
 * A call goes through up to three handlers of its route. begin() looks at the request and leaves commands; a
 * route without one is a read. read() writes the reply from what the server lends. finish() writes it from the
 * results. A refusal completes the reply.
 *
 * Notes of commands (`note`) are members of a JSON object without its braces, and so are bodies of tasks; data
 * (results, errors, checkpoints, questions, answers) is one JSON value.
 */
#pragma once

#include "api/api.h"
#include "wire/json/json.h"

typedef void call_step(struct api_call *call);
typedef void call_finish(struct api_call *call, const struct result *results);

struct route {
	enum http_method method;
	const char *pattern; /* ":name" stands for one segment */
	uint32_t scopes;     /* bits: any of them will do */
	size_t body_bytes_max;
	call_step *begin, *read;
	call_finish *finish;
	int variant; /* of routes that share a begin(): the command or the state that this one is about */
	bool judges; /* finish() sees refused results too; else api_finish() answers them */
	bool waits;  /* its last command claims the next task, and may wait for one */
};

/* A refusal under the paths of a door, which is the API of an older system: it has the form that the clients of that system
 * know. put() writes the body; it may choose another status. */
struct refused {
	int status;
	const char *code, *title, *detail; /* detail may be NULL */
	struct span members;
};

#define OTHER_QUEUES    "The credential is for other queues than these."
#define SHORT_OF_MEMORY "The server is short of memory. Try again in a moment."

struct door {
	const char *prefix;
	struct span content_type;    /* of refusals */
	struct span short_of_memory; /* the body of 503 when there is no memory to write one */
	int (*put)(struct api_call *call, struct refused *refused);
	/* Refuses the call in the words of the door. False: the door has no words for this refusal. */
	bool (*refuse)(struct api_call *call, const struct result *result);
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

/* Memory for `count` commands, zeroed, with the actor filled in; the call needs a turn. NULL: the call was refused. */
struct command *call_commands(struct api_call *call, uint32_t count);

/* The same for one command of that kind. */
struct command *call_command(struct api_call *call, enum command_kind kind);

/* Asserts what the step that the call has reached promises. */
void call_assert_step(const struct api_call *call);

/* The reply reflects the last event of all commands of the call, in this turn and in earlier ones. */
void call_note_events(struct api_call *call, const struct result *results);

/* The state that the handlers of a route keep in `detail`: zeroed at the first time. NULL: the call was refused, because
 * there is no memory. */
void *call_detail(struct api_call *call, size_t bytes);

/* 0, or the call was refused because there is no memory for it. */
int call_keep(struct api_call *call, const struct buf *text, struct span *ret_text);

/* The same for an arena: 0, or the fault. */
int buf_keep(const struct buf *text, struct arena *arena, struct span *ret_text);

/* The note of a command: "key":"text". Without a text there is no note. 0, or the call was refused. */
int call_keep_note(struct api_call *call, const char *key, struct span text, struct command *command);

/* The note of a command that an admin gave: principal, route, object, `more` (members, may be empty) and the id of the
 * request, if it has one. For a COMMAND_AUDIT, or whatever leaves an event of its own. False: the call was refused. */
bool call_audit(struct api_call *call, struct command *command, struct span object, const struct buf *more);

/* A COMMAND_AUDIT with such a note; `more` is "key":"text", or nothing without a text. */
void call_audit_begin(struct api_call *call, const char *key, struct span text, struct span object);

/* All workflows, by number. */
const struct workflows *call_workflows(const struct api_call *call);

/* Adds the event to the command, for the workflow of its task. False: the call was refused. */
bool call_tells(struct api_call *call, struct command *command, const struct outside_event *event);

/* Does the data of an event name a pull request (pr_number, pr_url)? */
bool told_has_pr(yyjson_val *data);

/* ---- replies ------------------------------------------------------------------------------------ */

/* A complete reply of `call->body` as it stands; a fault while it was written becomes a refusal. */
void call_reply(struct api_call *call, int status, int fault);

/* The Location of the reply that is complete. If there was no memory for it, the call is refused. */
void call_locate(struct api_call *call, const struct buf *path);

/* JSON that the store keeps, read for a reply; to be freed. NULL: the text is empty; or it cannot be read, which is a fault of
 * `out`, so that no reply leaves without it. */
yyjson_doc *kept_read(struct span json, struct buf *out);

/* The head of a reply of 200 whose body is written in slices: see call_again(). */
void call_reply_begin(struct api_call *call);

/* The read is not finished: read() of the route is to be called again. Its notes are in `detail`. */
void call_again(struct api_call *call);

/* The head of a list that is written in slices, and the beginning of its document. */
void call_slices_begin(struct api_call *call, const char *head);

/* The slice is made. If there is more, read() is called again. Else `tail` ends the document, and that is the reply.
 * `r` is what the walk over the rows returned: 0, a fault, or 1 if the list was full before the rows ended. */
void call_slice(struct api_call *call, int r, bool more, const char *tail);

/* 403: the credential may not do this, and a token of this kind may. The doors of older systems have no word for the kind. */
bool call_refuse_kind(struct api_call *call, const char *detail, const char *kind);

/* A problem with further members, or NULL. If `members` has a fault the reply is 503, so that no reply leaves without them.
 * Refusals of one sentence return false, for callers that end with one. */
void call_problem(struct api_call *call, int status, const char *code, const char *title, const char *detail,
	const struct buf *members);
bool call_bad_request(struct api_call *call, const char *detail);
void call_refuse_with(
	struct api_call *call, enum refusal refusal, const char *detail, const struct buf *members);

/* Returns `is_met`. If it is false, the call was refused: with that code, or as a mistake in that field. */
bool call_require(struct api_call *call, bool is_met, enum refusal refusal, const char *detail);
bool call_require_field(struct api_call *call, bool is_met, const char *field, const char *message);

/* The refusal of a command. call_is_refused() is true if it was refused, and then so is the call. */
void call_refuse_result(struct api_call *call, const struct result *result);

/* The members that such a refusal has beside its words: the state of the task, the limit that keeps it back, … */
void call_put_result(struct buf *members, const struct result *result);
bool call_is_refused(struct api_call *call, const struct result *result);

/* The code and detail of that refusal, as they stand in the problem. */
const char *refusal_detail(const struct result *result);

/* The request cannot be stored: -E2BIG is 413, a shortage of memory 503. */
bool call_refuse_request(struct api_call *call, int fault);

/* A read has failed: 404, 503. call_has_failed() is true if `r` is a fault, and then the call was refused. */
bool call_refuse_fault(struct api_call *call, int fault);
bool call_has_failed(struct api_call *call, int r);

/* Is execution armed? Unknown counts as no. */
bool call_is_armed(const struct api_call *call, int64_t *ret_since_ms);

/* ---- small things ------------------------------------------------------------------------------- */

/* May the principal create, do and see work of that queue? */
bool principal_serves(const struct principal *who, struct span queue);
bool principal_makes_in(const struct principal *who, struct span queue);

/* May the caller serve all of these queues? False: the call was refused. */
bool call_serves_all(struct api_call *call, const struct name_list *queues);
bool principal_serves_all(const struct principal *who, const struct name_list *queues);

/* May the caller see the task? Without SCOPE_READ it sees tasks that it holds or may claim. */
bool principal_sees(const struct api_call *call, const struct task *task);

/* May it read all tasks of its queues? One that only creates gets no more than id and state of a task that another may have
 * made. */
bool principal_reads(const struct principal *who);

/* The same before the task is read: true may become false. */
bool principal_may_see(const struct api_call *call, const struct task_outline *outline);

/* May the caller see that worker? Callers without SCOPE_READ see only their own workers. So do readers whose token is for
 * certain queues, because a worker belongs to no queue. */
bool worker_is_visible(const struct principal *who, struct span id, const struct worker *worker);

/* May the principal give a verdict at that gate? */
bool principal_passes(const struct principal *who, struct span gate);

struct span name_of(const struct api_call *call, uint32_t number);

void json_member_cstr(struct json_object *object, const char *key, const char *value);

/* A string as it was read, or null. */
void json_member_text_or_null(struct json_object *object, const char *key, yyjson_val *text);

/* Optional members: 0, false and the empty value are left out. */
void json_member_raw_if_any(struct json_object *object, const char *key, struct span json);
void json_member_int_if_any(struct json_object *object, const char *key, int64_t value);
void json_member_true_if(struct json_object *object, const char *key, bool value);

/* A reply that is one list: begin, next before each element, end. call_list_begin() is for routes without parameters;
 * false: the call was refused. */
struct call_list {
	struct api_call *call;
	bool any;
};

bool call_list_begin(struct call_list *list, struct api_call *call);
void call_list_next(struct call_list *list);
void call_list_end(struct call_list *list, int fault);

/* "key":["a","b"]: names that come one by one. json_names_put() is also a callback of the store. */
struct json_names {
	struct json_object *object;
	bool any;
};

void json_names_begin(struct json_names *names, struct json_object *object, const char *key);
int json_names_put(void *names, struct span name);
void json_names_end(struct json_names *names, int fault);

/* The names of a set, as a list; and the ids of the tasks that a worker holds. */
void json_member_held(
	const struct api_call *call, struct json_object *object, const char *key, struct span worker);
void json_member_set(const struct api_call *call, struct json_object *object, const char *key, uint32_t set);

/* The decoded value of a parameter of the query; false: it was not given. A bad escape counts as empty. */
struct query_value {
	const char *name;
	struct span value; /* data NULL: not given */
};

/* Fills in the values; a parameter that is not among them, or given twice, refuses the call: false. */
bool query_read(struct api_call *call, struct query_value *values, uint32_t count);

/* As older systems do: others are ignored, and of two with the same name the first counts. */
bool query_read_known(struct api_call *call, struct query_value *values, uint32_t count);

/* A decimal number within the bounds, `fallback` if it was not given. False: the call was refused with that message. */
bool query_int(struct api_call *call, const struct query_value *value, int64_t min, int64_t max,
	int64_t fallback, int64_t *ret, const char *message);

/* "field" cannot be that. */
bool call_refuse_field(struct api_call *call, const char *field, const char *message);

/* Is the first parameter of the path a name? If not, the call is refused. */
bool call_param_is_name(struct api_call *call, const char *param);

/* Has it no Idempotency-Key, or one that can be kept? If not, the call is refused. */
bool call_key_is_good(struct api_call *call);

/* What the request gives for its Idempotency-Key; nothing without one. */
void call_key(const struct api_call *call, struct command_create *create);

/* Two digests of bytes that a client chose; see query.c. */
void digest_request(const struct http_request *request, unsigned char ret_fingerprint[16]);
uint64_t digest_text(struct span first, struct span second); /* never 0 */

/* ---- the handlers, by file ---------------------------------------------------------------------- */

/* task/ */
call_step task_create_begin, task_batch_begin;
call_finish task_create_finish, task_batch_finish;
call_step task_read, task_why_read, task_patch_begin, task_patch_read, task_operate_begin, task_retry_begin,
	task_answer_begin, task_tell_begin;
call_finish task_patch_finish, task_cancel_finish, task_finish;
call_step task_list_read, error_list_read;
call_step claim_next_begin, claim_next_finish_empty, claim_task_begin;
call_finish claim_next_finish, claim_task_finish;
bool claim_next_waits(struct api_call *call, const struct result *results);
int call_compact(struct api_call *call, struct arena *into); /* one that waits: see api_compact() */
call_step report_begin, report_ask_begin;
call_finish report_progress_finish, report_finish, report_wait_finish;
call_step task_emit_begin;
call_finish task_emit_finish;
call_step log_append_begin, log_read;
call_finish log_append_finish;
call_step gate_verdict_begin, approval_list_read;

/* With the token of a claim the caller is the work itself: keep what it says of its end (`outcome`; ENDED_NOT: nothing), for
 * the case that a supervisor stands over it. False: refused. */
bool report_keep_own(struct api_call *call, struct command *command, enum claim_end outcome);

/* worker/ */
void order_put(
	struct buf *out, const char *type, struct span task, bool *any); /* to a worker: {"type","task"} */
void orders_put_worker(
	struct buf *out, const struct worker *worker, bool *any); /* those about the worker itself */
call_step worker_beat_begin;
call_finish worker_register_finish, worker_beat_finish;
call_step worker_list_read, worker_read, worker_news_read, worker_stop_begin, worker_leave_begin;
call_finish worker_finish;
call_step slot_list_read, slot_begin, slot_crash_begin;
call_finish slot_finish;

/* flow/ */
call_step queue_list_read, queue_keys_read, queue_read, queue_set_begin, queue_limit_begin;
call_finish queue_finish, queue_limit_finish;
call_step workflow_list_read, workflow_read;
call_step hold_list_read, hold_set_begin, hold_lift_begin, credential_list_read, credential_set_begin;
call_finish hold_set_finish, hold_lift_finish, credential_set_finish;
call_step group_list_read, group_read, group_begin;
call_finish group_close_finish, group_remove_finish;
call_step bulk_start_begin, bulk_count_read, bulk_list_read, bulk_one_read, bulk_stop_begin, group_bulk_begin;
call_finish bulk_start_finish, bulk_stop_finish;
call_step schedule_list_read, schedule_read_one, schedule_next_read, schedule_create_begin,
	schedule_patch_begin, schedule_set_begin, schedule_run_begin;
call_finish schedule_create_finish, schedule_patch_finish, schedule_set_finish, schedule_remove_finish,
	schedule_run_finish;

/* system/ */
/* False: the dashboard has no such file. */
bool system_asset_begin(struct api_call *call);
void login_code_fill(struct api_call *call, struct span name, struct span role_name);
void login_code_finish(struct api_call *call, const struct result *results);
/* The name of a join code that was given none, and so of a machine that says none. */
#define MACHINE_UNNAMED "machine"
/* What only join codes, machines and renewed tokens have. */
void machine_put_members(struct json_object *object, const struct token *token, int64_t now_ms);
/* The token as the turn left it; with the text that was made just now, or NULL. */
void token_reply(struct api_call *call, int status, struct span id, const struct minted *minted);
void token_refuse_room(struct api_call *call);
call_step enrol_begin, renew_begin;
call_finish enrol_finish, renew_finish;
call_step login_begin, login_list_read, login_end_begin;
call_finish login_finish, login_end_finish;
call_step token_create_begin, token_list_read, token_revoke_begin, key_rotate_begin, key_list_read;
call_finish token_create_finish, token_revoke_finish, key_rotate_finish;
call_step event_list_read, task_events_read;
call_step execution_set_begin, execution_read;
call_finish execution_set_finish;
call_step backup_begin, query_begin;
call_finish backup_finish, query_finish;
call_step system_livez_begin, system_page_begin, system_readyz_read, system_leader_read, system_openapi_begin,
	system_version_read, system_config_read, stats_read_all, system_metrics_read, delivery_tell_begin,
	delivery_list_read;

/* mcp/ */
call_step mcp_begin, mcp_read;
call_finish mcp_finish;

/* door/ */
call_step heartbeat_list_read, heartbeat_beat_begin, heartbeat_beat_read;
call_finish heartbeat_beat_finish;
call_step session_spawn_begin, session_list_read, session_read, session_log_read, session_prompt_read,
	session_stop_begin, session_stop_read;
call_finish session_spawn_finish, session_stop_finish;

/* door/orchestrator/ */
int orchestrator_put_refused(struct api_call *call, struct refused *refused);
bool orchestrator_refuse_result(struct api_call *call, const struct result *result);
call_step orchestrator_claim_begin, orchestrator_progress_begin, orchestrator_release_begin;
call_finish orchestrator_claim_finish, orchestrator_progress_finish, orchestrator_release_finish;
call_step orchestrator_register_begin, orchestrator_leave_begin, orchestrator_beat_begin,
	orchestrator_health_read;
call_finish orchestrator_register_finish, orchestrator_leave_finish, orchestrator_beat_finish;
call_step orchestrator_pending_read, orchestrator_workers_read, orchestrator_stats_read;

/* door/workqueue/ */
int workqueue_put_refused(struct api_call *call, struct refused *refused);
bool workqueue_refuse(struct api_call *call, const struct result *result);
call_step workqueue_enqueue_begin, workqueue_claim_begin, workqueue_report_begin;
call_finish workqueue_enqueue_finish, workqueue_claim_finish, workqueue_report_finish;
call_step workqueue_update_begin, workqueue_update_read, workqueue_delete_begin, workqueue_delete_read,
	workqueue_assign_begin, workqueue_assignments_read;
call_finish workqueue_update_finish, workqueue_delete_finish, workqueue_assign_finish;
call_step workqueue_import_begin;
call_finish workqueue_import_finish;
call_step workqueue_item_read, workqueue_items_read, workqueue_summary_read, workqueue_queues_read;
