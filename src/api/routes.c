/*
 * The whole API on one screen.
 */
#include "api/call.h"

enum {
	NO_BODY = 0,
	SMALL = 64 << 10,
	LARGE = 1 << 20,
};

/* Any of these will do: READ | WORK. */
enum {
	PUBLIC = SCOPE_BIT(SCOPE_PUBLIC),
	ANY = SCOPE_BIT(SCOPE_ANY),
	READ = SCOPE_BIT(SCOPE_READ),
	PRODUCE = SCOPE_BIT(SCOPE_PRODUCE),
	WORK = SCOPE_BIT(SCOPE_WORK),
	CLAIM = SCOPE_BIT(SCOPE_CLAIM),
	OPERATE = SCOPE_BIT(SCOPE_OPERATE),
	APPROVE = SCOPE_BIT(SCOPE_APPROVE),
	GATE = SCOPE_BIT(SCOPE_GATE),
	EMIT = SCOPE_BIT(SCOPE_EMIT),
	ADMIN = SCOPE_BIT(SCOPE_ADMIN),
	METRICS = SCOPE_BIT(SCOPE_METRICS),
};

/* A route without a valid scope fails to compile: the array would have a negative size. */
#define NEEDS(any) ((any) + 0 * sizeof(char[(any) >= PUBLIC && (any) < SCOPE_BIT(SCOPE_COUNT) ? 1 : -1]))

#define R(method, pattern, scopes, body, begin, read, finish) \
	{HTTP_METHOD_##method, pattern, NEEDS(scopes), body, begin, read, finish, false}

/* One that claims the next task, and may wait for it. */
#define W(method, pattern, scopes, body, begin, read, finish) \
	{HTTP_METHOD_##method, pattern, NEEDS(scopes), body, begin, read, finish, true}

#define CONNECTOR "/api/v1/worker/orchestrator/"

#define O(method, path, scopes, body, begin, read, finish) \
	R(method, CONNECTOR path, scopes, body, begin, read, finish)

// clang-format off
const struct route routes[] = {
	W(POST,   "/api/claims",                     WORK,    LARGE,   claim_next_begin,        NULL,               claim_next_finish),
	R(POST,   "/api/tasks",                      PRODUCE, LARGE,   task_create_begin,       NULL,               task_create_finish),
	R(POST,   "/api/tasks/:id/complete",      WORK|CLAIM, LARGE,   report_complete_begin,   NULL,               report_finish),
	R(POST,   "/api/tasks/:id/progress",      WORK|CLAIM, LARGE,   report_progress_begin,   NULL,               report_progress_finish),
	R(POST,   "/api/workers/heartbeat",          WORK,    SMALL,   worker_beat_begin,       NULL,               worker_beat_finish),
	R(POST,   "/api/tasks/batch",                PRODUCE, LARGE,   task_batch_begin,        NULL,               task_batch_finish),
	R(GET,    "/api/tasks",                    READ|WORK, NO_BODY, NULL,                    task_list_read,     NULL),
	R(GET,    "/api/tasks/:id",          READ|WORK|CLAIM, NO_BODY, NULL,                    task_read,          NULL),
	R(PATCH,  "/api/tasks/:id",            OPERATE|CLAIM, LARGE,   task_patch_begin,        task_patch_read,    task_patch_finish),
	R(PUT,    "/api/tasks/:id",            OPERATE|CLAIM, LARGE,   task_patch_begin,        task_patch_read,    task_patch_finish),
	R(GET,    "/api/tasks/:id/events",        READ|CLAIM, NO_BODY, NULL,                    task_events_read,   NULL),
	R(POST,   "/api/tasks/:id/events",           EMIT,    LARGE,   task_emit_begin,         NULL,               task_emit_finish),
	R(GET,    "/api/tasks/:id/why",      READ|WORK|CLAIM, NO_BODY, NULL,                    task_why_read,      NULL),
	R(POST,   "/api/tasks/:id/log",           WORK|CLAIM, LARGE,   log_append_begin,        NULL,               log_append_finish),
	R(GET,    "/api/tasks/:id/log",      READ|WORK|CLAIM, NO_BODY, NULL,                    log_read,           NULL),
	R(POST,   "/api/tasks/:id/claim",            WORK,    SMALL,   claim_task_begin,        NULL,               claim_task_finish),
	R(POST,   "/api/tasks/:id/fail",          WORK|CLAIM, LARGE,   report_fail_begin,       NULL,               report_finish),
	R(POST,   "/api/tasks/:id/review",        WORK|CLAIM, LARGE,   report_review_begin,     NULL,               report_finish),
	R(POST,   "/api/tasks/:id/block",         WORK|CLAIM, LARGE,   report_block_begin,      NULL,               report_finish),
	R(POST,   "/api/tasks/:id/release",       WORK|CLAIM, SMALL,   report_release_begin,    NULL,               report_finish),
	R(POST,   "/api/tasks/:id/ask",           WORK|CLAIM, LARGE,   report_ask_begin,        NULL,               report_finish),
	R(POST,   "/api/tasks/:id/answer",   OPERATE|APPROVE, LARGE,   task_answer_begin,       NULL,               task_finish),
	R(POST,   "/api/tasks/:id/cancel",           OPERATE, SMALL,   task_cancel_begin,       NULL,               task_cancel_finish),
	R(POST,   "/api/tasks/:id/retry",            OPERATE, SMALL,   task_retry_begin,        NULL,               task_finish),
	R(POST,   "/api/tasks/:id/park",             OPERATE, SMALL,   task_park_begin,         NULL,               task_finish),
	R(POST,   "/api/tasks/:id/unpark",           OPERATE, SMALL,   task_unpark_begin,       NULL,               task_finish),
	R(POST,   "/api/workers/register",           WORK,    SMALL,   worker_register_begin,   NULL,               worker_register_finish),
	R(GET,    "/api/workers",                    READ,    NO_BODY, NULL,                    worker_list_read,   NULL),
	R(GET,    "/api/workers/:id",              READ|WORK, NO_BODY, NULL,                    worker_read,        NULL),
	R(GET,    "/api/workers/:id/news",        WORK|CLAIM, NO_BODY, NULL,                    worker_news_read,   NULL),
	R(DELETE, "/api/workers/:id",           WORK|OPERATE, SMALL,   worker_leave_begin,      NULL,               worker_finish),
	R(POST,   "/api/workers/:id/quiet",          OPERATE, SMALL,   worker_quiet_begin,      NULL,               worker_finish),
	R(POST,   "/api/workers/:id/terminate",      OPERATE, SMALL,   worker_terminate_begin,  NULL,               worker_finish),
	R(GET,    "/api/slots",                      READ,    NO_BODY, NULL,                    slot_list_read,     NULL),
	R(POST,   "/api/slots/:slot/crash",          WORK,    SMALL,   slot_crash_begin,        NULL,               slot_finish),
	R(POST,   "/api/slots/:slot/enter",          WORK,    SMALL,   slot_enter_begin,        NULL,               slot_finish),
	R(POST,   "/api/slots/:slot/unquarantine",   OPERATE, SMALL,   slot_unquarantine_begin, NULL,               slot_finish),
	R(GET,    "/api/queues",                     READ,    NO_BODY, NULL,                    queue_list_read,    NULL),
	R(POST,   "/api/queues/:name/pause",         OPERATE, SMALL,   queue_pause_begin,       NULL,               queue_finish),
	R(POST,   "/api/queues/:name/resume",        OPERATE, SMALL,   queue_resume_begin,      NULL,               queue_finish),
	R(POST,   "/api/queues/:name/drain",         OPERATE, SMALL,   queue_drain_begin,       NULL,               queue_finish),
	R(GET,    "/api/events",                     READ,    NO_BODY, NULL,                    event_list_read,    NULL),
	R(POST,   "/api/tokens",                  ADMIN|WORK, SMALL,   token_create_begin,      NULL,               token_create_finish),
	R(GET,    "/api/tokens",                     ADMIN,   NO_BODY, NULL,                    token_list_read,    NULL),
	R(DELETE, "/api/tokens/:id",                 ADMIN,   SMALL,   token_revoke_begin,      NULL,               token_revoke_finish),
	R(GET,    "/api/heartbeats",               READ|WORK, NO_BODY, NULL,                    heartbeat_list_read, NULL),
	R(POST,   "/api/heartbeats",                 WORK,    SMALL,   heartbeat_beat_begin,    heartbeat_beat_read, heartbeat_beat_finish),
	R(POST,   "/api/sessions/spawn",     PRODUCE|OPERATE, LARGE,   session_spawn_begin,     NULL,               session_spawn_finish),
	R(GET,    "/api/sessions",                 READ|WORK, NO_BODY, NULL,                    session_list_read,  NULL),
	R(GET,    "/api/sessions/:id",       READ|WORK|CLAIM, NO_BODY, NULL,                    session_read,       NULL),
	R(GET,    "/api/sessions/:id/log",   READ|WORK|CLAIM, NO_BODY, NULL,                    session_log_read,   NULL),
	R(DELETE, "/api/sessions/:id",               OPERATE, SMALL,   session_stop_begin,      session_stop_read,  session_stop_finish),

	R(POST,   "/api/workqueue/claim-next",       WORK,    SMALL,   workqueue_claim_begin,   NULL,               workqueue_claim_finish),
	R(POST,   "/api/workqueue/enqueue",          PRODUCE, LARGE,   workqueue_enqueue_begin, NULL,               workqueue_enqueue_finish),
	R(POST,   "/api/workqueue/transition",    WORK|CLAIM, LARGE,   workqueue_transition_begin, NULL,            workqueue_report_finish),
	R(POST,   "/api/workqueue/progress",      WORK|CLAIM, LARGE,   workqueue_progress_begin, NULL,              workqueue_report_finish),
	R(POST,   "/api/workqueue/done",          WORK|CLAIM, LARGE,   workqueue_done_begin,    NULL,               workqueue_report_finish),
	R(POST,   "/api/workqueue/fail",          WORK|CLAIM, LARGE,   workqueue_fail_begin,    NULL,               workqueue_report_finish),
	R(POST,   "/api/workqueue/update",           OPERATE, LARGE,   workqueue_update_begin,  workqueue_update_read, workqueue_update_finish),
	R(POST,   "/api/workqueue/delete",           OPERATE, SMALL,   workqueue_delete_begin,  workqueue_delete_read, workqueue_delete_finish),
	R(GET,    "/api/workqueue/assignments",      READ,    NO_BODY, NULL,                    workqueue_assignments_read, NULL),
	R(POST,   "/api/workqueue/assignments",      OPERATE, SMALL,   workqueue_assign_begin,  NULL,               workqueue_assign_finish),
	R(POST,   "/api/workqueue/import",           ADMIN,   LARGE,   workqueue_import_begin,  NULL,               workqueue_import_finish),
	R(GET,    "/api/workqueue/item/:item", READ|WORK|CLAIM, NO_BODY, NULL,                  workqueue_item_read, NULL),
	R(GET,    "/api/workqueue/items",          READ|WORK, NO_BODY, NULL,                    workqueue_items_read, NULL),
	R(GET,    "/api/workqueue/summary",          READ,    NO_BODY, NULL,                    workqueue_summary_read, NULL),
	R(GET,    "/api/workqueue/queues",           READ,    NO_BODY, NULL,                    workqueue_queues_read, NULL),
	R(GET,    "/livez",                          PUBLIC,  NO_BODY, system_livez_begin,      NULL,               NULL),
	R(GET,    "/readyz",                         PUBLIC,  NO_BODY, NULL,                    system_readyz_read, NULL),
	R(GET,    "/metrics",                        METRICS, NO_BODY, NULL,                    system_metrics_read, NULL),
	R(GET,    "/api/openapi.json",               ANY,     NO_BODY, system_openapi_begin,    NULL,               NULL),
	R(GET,    "/api/version",                    READ,    NO_BODY, NULL,                    system_version_read, NULL),
	R(POST,   "/api/backup",                     ADMIN,   SMALL,   backup_begin,            NULL,               backup_finish),
	R(POST,   "/api/tasks/:id/gates/:gate", APPROVE|GATE, LARGE,   gate_verdict_begin,      NULL,               task_finish),
	R(GET,    "/api/approvals",                  READ,    NO_BODY, NULL,                    approval_list_read, NULL),
	R(GET,    "/api/workflows",                READ|WORK, NO_BODY, NULL,                    workflow_list_read, NULL),
	R(GET,    "/api/workflows/:name",          READ|WORK, NO_BODY, NULL,                    workflow_read,      NULL),
	R(GET,    "/api/execution",                READ|WORK, NO_BODY, NULL,                    execution_read,     NULL),
	R(POST,   "/api/execution",                  OPERATE, SMALL,   execution_set_begin,     NULL,               execution_set_finish),
	O(POST,   "register",                        WORK,    SMALL,   orchestrator_register_begin, NULL,           orchestrator_register_finish),
	O(DELETE, "register/:id",               WORK|OPERATE, NO_BODY, orchestrator_leave_begin, NULL,              orchestrator_leave_finish),
	O(GET,    "tasks/pending",                 READ|WORK, NO_BODY, NULL,                    orchestrator_pending_read, NULL),
	O(POST,   "tasks/:vtid/claim",               WORK,    SMALL,   orchestrator_claim_begin, NULL,              orchestrator_claim_finish),
	O(POST,   "tasks/:vtid/progress",            WORK,    LARGE,   orchestrator_progress_begin, NULL,           orchestrator_progress_finish),
	O(POST,   "tasks/:vtid/release",             WORK,    SMALL,   orchestrator_release_begin, NULL,            orchestrator_release_finish),
	O(POST,   "heartbeat",                       WORK,    SMALL,   orchestrator_beat_begin, NULL,               orchestrator_beat_finish),
	O(GET,    "workers",                       READ|WORK, NO_BODY, NULL,                    orchestrator_workers_read, NULL),
	O(GET,    "stats",                         READ|WORK, NO_BODY, NULL,                    orchestrator_stats_read, NULL),
	O(GET,    "health",                          ANY,     NO_BODY, NULL,                    orchestrator_health_read, NULL),
	R(POST,   "/api/query",                      ADMIN,   SMALL,   query_begin,             NULL,               query_finish),
};
// clang-format on

const uint32_t route_count = sizeof routes / sizeof *routes;

const struct door doors[] = {
	{"/api/workqueue/", workqueue_put_refused},
	{CONNECTOR, orchestrator_put_refused},
};

const uint32_t door_count = sizeof doors / sizeof *doors;
