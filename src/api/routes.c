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

#define ROUTE(method, pattern, scopes, body, begin, read, finish, ...) \
	{HTTP_METHOD_##method, pattern, NEEDS(scopes), body, begin, read, finish, __VA_ARGS__}

/* finish() gets what was accepted. */
#define R(method, pattern, scopes, body, begin, read, finish) \
	ROUTE(method, pattern, scopes, body, begin, read, finish, .judges = false)

/* One of several that share their begin(). */
#define V(method, pattern, scopes, body, begin, which, finish) \
	ROUTE(method, pattern, scopes, body, begin, NULL, finish, .variant = (which))

/* One of several bulk actions: it reads, and finish() gets what was refused, too. */
#define B(method, pattern, scopes, body, begin, read, finish, which) \
	ROUTE(method, pattern, scopes, body, begin, read, finish, .variant = (which), .judges = true)

/* finish() gets what was refused, too. */
#define J(method, pattern, scopes, body, begin, read, finish) \
	ROUTE(method, pattern, scopes, body, begin, read, finish, .judges = true)

#define CONNECTOR "/api/v1/worker/orchestrator/"

// clang-format off
const struct route routes[] = {
	ROUTE(POST, "/api/claims", WORK, LARGE, claim_next_begin, NULL, claim_next_finish, .judges = true, .waits = true),
	J(POST,   "/api/tasks",                           PRODUCE|CLAIM, LARGE,   task_create_begin,           NULL,                       task_create_finish),
	V(POST,   "/api/tasks/:id/complete",                 WORK|CLAIM, LARGE,   report_begin,                COMMAND_COMPLETE,           report_finish),
	V(POST,   "/api/tasks/:id/progress",                 WORK|CLAIM, LARGE,   report_begin,                COMMAND_PROGRESS,           report_progress_finish),
	V(POST,   "/api/workers/heartbeat",                        WORK, SMALL,   worker_beat_begin,           COMMAND_BEAT,               worker_beat_finish),
	J(POST,   "/api/tasks/batch",                           PRODUCE, LARGE,   task_batch_begin,            NULL,                       task_batch_finish),
	R(GET,    "/api/tasks",                               READ|WORK, NO_BODY, NULL,                        task_list_read,             NULL),
	R(GET,    "/api/tasks/:id",                     READ|WORK|CLAIM, NO_BODY, NULL,                        task_read,                  NULL),
	J(PATCH,  "/api/tasks/:id",                       OPERATE|CLAIM, LARGE,   task_patch_begin,            task_patch_read,            task_patch_finish),
	J(PUT,    "/api/tasks/:id",                       OPERATE|CLAIM, LARGE,   task_patch_begin,            task_patch_read,            task_patch_finish),
	R(GET,    "/api/tasks/:id/events",                   READ|CLAIM, NO_BODY, NULL,                        task_events_read,           NULL),
	R(POST,   "/api/tasks/:id/events",                         EMIT, LARGE,   task_emit_begin,             NULL,                       task_emit_finish),
	R(GET,    "/api/tasks/:id/why",                 READ|WORK|CLAIM, NO_BODY, NULL,                        task_why_read,              NULL),
	J(POST,   "/api/tasks/:id/log",                      WORK|CLAIM, LARGE,   log_append_begin,            NULL,                       log_append_finish),
	R(GET,    "/api/tasks/:id/log",                 READ|WORK|CLAIM, NO_BODY, NULL,                        log_read,                   NULL),
	R(POST,   "/api/tasks/:id/claim",                          WORK, SMALL,   claim_task_begin,            NULL,                       claim_task_finish),
	V(POST,   "/api/tasks/:id/fail",                     WORK|CLAIM, LARGE,   report_begin,                COMMAND_FAIL,               report_finish),
	V(POST,   "/api/tasks/:id/review",                   WORK|CLAIM, LARGE,   report_begin,                COMMAND_REVIEW,             report_finish),
	V(POST,   "/api/tasks/:id/block",                    WORK|CLAIM, LARGE,   report_begin,                COMMAND_BLOCK,              report_finish),
	V(POST,   "/api/tasks/:id/release",                  WORK|CLAIM, SMALL,   report_begin,                COMMAND_RELEASE,            report_finish),
	V(POST,   "/api/tasks/:id/ask",                      WORK|CLAIM, LARGE,   report_ask_begin,            COMMAND_ASK,                report_finish),
	V(POST,   "/api/tasks/:id/wait",                     WORK|CLAIM, SMALL,   report_begin,                COMMAND_WAIT,               report_wait_finish),
	R(POST,   "/api/tasks/:id/answer",              OPERATE|APPROVE, LARGE,   task_answer_begin,           NULL,                       task_finish),
	R(POST,   "/api/tasks/:id/tell",                        OPERATE, LARGE,   task_tell_begin,             NULL,                       task_finish),
	V(POST,   "/api/tasks/:id/cancel",                      OPERATE, SMALL,   task_operate_begin,          COMMAND_CANCEL,             task_cancel_finish),
	V(POST,   "/api/tasks/:id/retry",                       OPERATE, SMALL,   task_retry_begin,            COMMAND_RETRY,              task_finish),
	V(POST,   "/api/tasks/:id/park",                        OPERATE, SMALL,   task_operate_begin,          COMMAND_PARK,               task_finish),
	V(POST,   "/api/tasks/:id/unpark",                      OPERATE, SMALL,   task_operate_begin,          COMMAND_UNPARK,             task_finish),
	V(POST,   "/api/workers/register",                         WORK, SMALL,   worker_beat_begin,           COMMAND_REGISTER,           worker_register_finish),
	R(GET,    "/api/workers",                                  READ, NO_BODY, NULL,                        worker_list_read,           NULL),
	R(GET,    "/api/workers/:id",                         READ|WORK, NO_BODY, NULL,                        worker_read,                NULL),
	R(GET,    "/api/workers/:id/news",                   WORK|CLAIM, NO_BODY, NULL,                        worker_news_read,           NULL),
	R(DELETE, "/api/workers/:id",                      WORK|OPERATE, SMALL,   worker_leave_begin,          NULL,                       worker_finish),
	V(POST,   "/api/workers/:id/quiet",                     OPERATE, SMALL,   worker_stop_begin,           COMMAND_QUIET,              worker_finish),
	V(POST,   "/api/workers/:id/terminate",                 OPERATE, SMALL,   worker_stop_begin,           COMMAND_TERMINATE,          worker_finish),
	R(GET,    "/api/slots",                                    READ, NO_BODY, NULL,                        slot_list_read,             NULL),
	V(POST,   "/api/slots/:slot/crash",                        WORK, SMALL,   slot_crash_begin,            COMMAND_SLOT_CRASH,         slot_finish),
	V(POST,   "/api/slots/:slot/enter",                        WORK, SMALL,   slot_begin,                  COMMAND_SLOT_ENTER,         slot_finish),
	V(POST,   "/api/slots/:slot/unquarantine",              OPERATE, SMALL,   slot_begin,                  COMMAND_UNQUARANTINE,       slot_finish),
	R(GET,    "/api/holds",                                    READ, NO_BODY, NULL,                        hold_list_read,             NULL),
	R(POST,   "/api/holds",                                 OPERATE, SMALL,   hold_set_begin,              NULL,                       hold_set_finish),
	R(DELETE, "/api/holds/:credential",                     OPERATE, SMALL,   hold_lift_begin,             NULL,                       hold_lift_finish),
	R(GET,    "/api/credentials",                              READ, NO_BODY, NULL,                        credential_list_read,       NULL),
	R(PATCH,  "/api/credentials/:name",                     OPERATE, SMALL,   credential_set_begin,        NULL,                       credential_set_finish),
	R(GET,    "/api/queues",                                   READ, NO_BODY, NULL,                        queue_list_read,            NULL),
	R(GET,    "/api/queues/:name",                             READ, NO_BODY, NULL,                        queue_read,                 NULL),
	R(GET,    "/api/queues/:name/keys",                        READ, NO_BODY, NULL,                        queue_keys_read,            NULL),
	R(PATCH,  "/api/queues/:name",                          OPERATE, SMALL,   queue_limit_begin,           NULL,                       queue_limit_finish),
	V(POST,   "/api/queues/:name/pause",                    OPERATE, SMALL,   queue_set_begin,             QUEUE_PAUSED,               queue_finish),
	V(POST,   "/api/queues/:name/resume",                   OPERATE, SMALL,   queue_set_begin,             QUEUE_OPEN,                 queue_finish),
	V(POST,   "/api/queues/:name/drain",                    OPERATE, SMALL,   queue_set_begin,             QUEUE_DRAINING,             queue_finish),
	R(GET,    "/api/groups",                                   READ, NO_BODY, NULL,                        group_list_read,            NULL),
	R(GET,    "/api/groups/:name",                             READ, NO_BODY, NULL,                        group_read,                 NULL),
	V(DELETE, "/api/groups/:name",                  PRODUCE|OPERATE, SMALL,   group_begin,                 COMMAND_GROUP_REMOVE,       group_remove_finish),
	V(POST,   "/api/groups/:name/close",            PRODUCE|OPERATE, SMALL,   group_begin,                 COMMAND_GROUP_CLOSE,        group_close_finish),
	B(POST,   "/api/groups/:name/cancel",                   OPERATE, SMALL,   group_bulk_begin,            bulk_count_read,            bulk_start_finish,          BULK_CANCEL),
	B(POST,   "/api/groups/:name/retry",                    OPERATE, SMALL,   group_bulk_begin,            bulk_count_read,            bulk_start_finish,          BULK_RETRY),
	J(POST,   "/api/tasks/bulk",                            OPERATE, SMALL,   bulk_start_begin,            bulk_count_read,            bulk_start_finish),
	R(GET,    "/api/errors",                                   READ, NO_BODY, NULL,                        error_list_read,            NULL),
	R(GET,    "/api/bulk",                                     READ, NO_BODY, NULL,                        bulk_list_read,             NULL),
	R(GET,    "/api/bulk/:id",                                 READ, NO_BODY, NULL,                        bulk_one_read,              NULL),
	J(DELETE, "/api/bulk/:id",                              OPERATE, SMALL,   bulk_stop_begin,             NULL,                       bulk_stop_finish),
	R(GET,    "/api/schedules",                                READ, NO_BODY, NULL,                        schedule_list_read,         NULL),
	J(POST,   "/api/schedules",                             OPERATE, LARGE,   schedule_create_begin,       NULL,                       schedule_create_finish),
	R(GET,    "/api/schedules/:id",                            READ, NO_BODY, NULL,                        schedule_read_one,          NULL),
	J(PATCH,  "/api/schedules/:id",                         OPERATE, LARGE,   schedule_patch_begin,        NULL,                       schedule_patch_finish),
	V(DELETE, "/api/schedules/:id",                         OPERATE, SMALL,   schedule_set_begin,          COMMAND_SCHEDULE_REMOVE,    schedule_remove_finish),
	J(POST,   "/api/schedules/:id/run",                     OPERATE, SMALL,   schedule_run_begin,          NULL,                       schedule_run_finish),
	V(POST,   "/api/schedules/:id/pause",                   OPERATE, SMALL,   schedule_set_begin,          COMMAND_SCHEDULE_PAUSE,     schedule_set_finish),
	V(POST,   "/api/schedules/:id/resume",                  OPERATE, SMALL,   schedule_set_begin,          COMMAND_SCHEDULE_RESUME,    schedule_set_finish),
	R(GET,    "/api/schedules/:id/next",                       READ, NO_BODY, NULL,                        schedule_next_read,         NULL),
	R(GET,    "/api/events",                                   READ, NO_BODY, NULL,                        event_list_read,            NULL),
	J(POST,   "/api/tokens",                             ADMIN|WORK|READ, SMALL, token_create_begin,       NULL,                       token_create_finish),
	R(GET,    "/api/tokens",                                  ADMIN, NO_BODY, NULL,                        token_list_read,            NULL),
	J(DELETE, "/api/tokens/:id",                              ADMIN, SMALL,   token_revoke_begin,          NULL,                       token_revoke_finish),
	J(POST,   "/api/enroll",                                 PUBLIC, SMALL,   enrol_begin,                 NULL,                       enrol_finish),
	J(POST,   "/api/renew",                                     ANY, SMALL,   renew_begin,                 NULL,                       renew_finish),
	J(POST,   "/api/login",                                  PUBLIC, SMALL,   login_begin,                 NULL,                       login_finish),
	R(GET,    "/api/logins",                                   READ, NO_BODY, NULL,                        login_list_read,            NULL),
	J(DELETE, "/api/logins/:id",                               READ, SMALL,   login_end_begin,             NULL,                       login_end_finish),
	J(POST,   "/api/signing-keys",                            ADMIN, SMALL,   key_rotate_begin,            NULL,                       key_rotate_finish),
	R(GET,    "/api/signing-keys",                            ADMIN, NO_BODY, NULL,                        key_list_read,              NULL),
	R(GET,    "/api/heartbeats",                          READ|WORK, NO_BODY, NULL,                        heartbeat_list_read,        NULL),
	R(POST,   "/api/heartbeats",                               WORK, SMALL,   heartbeat_beat_begin,        heartbeat_beat_read,        heartbeat_beat_finish),
	J(POST,   "/api/sessions/spawn",                PRODUCE|OPERATE, LARGE,   session_spawn_begin,         NULL,                       session_spawn_finish),
	R(GET,    "/api/sessions",                            READ|WORK, NO_BODY, NULL,                        session_list_read,          NULL),
	R(GET,    "/api/sessions/:id",                  READ|WORK|CLAIM, NO_BODY, NULL,                        session_read,               NULL),
	R(GET,    "/api/sessions/:id/prompt",           READ|WORK|CLAIM, NO_BODY, NULL,                        session_prompt_read,        NULL),
	R(GET,    "/api/sessions/:id/log",              READ|WORK|CLAIM, NO_BODY, NULL,                        session_log_read,           NULL),
	J(DELETE, "/api/sessions/:id",                          OPERATE, SMALL,   session_stop_begin,          session_stop_read,          session_stop_finish),

	R(POST,   "/api/workqueue/claim-next",                     WORK, SMALL,   workqueue_claim_begin,       NULL,                       workqueue_claim_finish),
	R(POST,   "/api/workqueue/enqueue",                     PRODUCE, LARGE,   workqueue_enqueue_begin,     NULL,                       workqueue_enqueue_finish),
	V(POST,   "/api/workqueue/transition",               WORK|CLAIM, LARGE,   workqueue_report_begin,      COMMAND_KIND_COUNT,         workqueue_report_finish),
	V(POST,   "/api/workqueue/progress",                 WORK|CLAIM, LARGE,   workqueue_report_begin,      COMMAND_PROGRESS,           workqueue_report_finish),
	V(POST,   "/api/workqueue/done",                     WORK|CLAIM, LARGE,   workqueue_report_begin,      COMMAND_COMPLETE,           workqueue_report_finish),
	V(POST,   "/api/workqueue/fail",                     WORK|CLAIM, LARGE,   workqueue_report_begin,      COMMAND_FAIL,               workqueue_report_finish),
	J(POST,   "/api/workqueue/update",                      OPERATE, LARGE,   workqueue_update_begin,      workqueue_update_read,      workqueue_update_finish),
	J(POST,   "/api/workqueue/delete",                      OPERATE, SMALL,   workqueue_delete_begin,      workqueue_delete_read,      workqueue_delete_finish),
	R(GET,    "/api/workqueue/assignments",                    READ, NO_BODY, NULL,                        workqueue_assignments_read, NULL),
	R(POST,   "/api/workqueue/assignments",                 OPERATE, SMALL,   workqueue_assign_begin,      NULL,                       workqueue_assign_finish),
	J(POST,   "/api/workqueue/import",                        ADMIN, LARGE,   workqueue_import_begin,      NULL,                       workqueue_import_finish),
	R(GET,    "/api/workqueue/item/:item",          READ|WORK|CLAIM, NO_BODY, NULL,                        workqueue_item_read,        NULL),
	R(GET,    "/api/workqueue/items",                     READ|WORK, NO_BODY, NULL,                        workqueue_items_read,       NULL),
	R(GET,    "/api/workqueue/summary",                        READ, NO_BODY, NULL,                        workqueue_summary_read,     NULL),
	R(GET,    "/api/workqueue/queues",                         READ, NO_BODY, NULL,                        workqueue_queues_read,      NULL),
	R(GET,    "/livez",                                      PUBLIC, NO_BODY, system_livez_begin,          NULL,                       NULL),
	R(GET,    "/healthz",                                    PUBLIC, NO_BODY, NULL,                        system_readyz_read,         NULL),
	R(GET,    "/readyz",                                     PUBLIC, NO_BODY, NULL,                        system_readyz_read,         NULL),
	R(GET,    "/health/leader",                              PUBLIC, NO_BODY, NULL,                        system_leader_read,         NULL),
	R(GET,    "/metrics",                                   METRICS, NO_BODY, NULL,                        system_metrics_read,        NULL),
	R(GET,    "/api/openapi.json",                              ANY, NO_BODY, system_openapi_begin,        NULL,                       NULL),
	R(GET,    "/api/config",                                OPERATE, NO_BODY, NULL,                        system_config_read,         NULL),
	R(GET,    "/api/stats",                                    READ, NO_BODY, NULL,                        stats_read_all,             NULL),
	R(GET,    "/api/deliveries",                               READ, NO_BODY, NULL,                        delivery_list_read,         NULL),
	R(POST,   "/api/deliveries",                               READ, SMALL,   delivery_tell_begin,         NULL,                       NULL),
	R(GET,    "/api/version",                                  READ, NO_BODY, NULL,                        system_version_read,        NULL),
	J(POST,   "/api/backup",                                  ADMIN, SMALL,   backup_begin,                NULL,                       backup_finish),
	R(POST,   "/api/tasks/:id/gates/:gate",            APPROVE|GATE, LARGE,   gate_verdict_begin,          NULL,                       task_finish),
	R(GET,    "/api/approvals",                                READ, NO_BODY, NULL,                        approval_list_read,         NULL),
	R(GET,    "/api/workflows",                           READ|WORK, NO_BODY, NULL,                        workflow_list_read,         NULL),
	R(GET,    "/api/workflows/:name",                     READ|WORK, NO_BODY, NULL,                        workflow_read,              NULL),
	R(GET,    "/api/execution",                           READ|WORK, NO_BODY, NULL,                        execution_read,             NULL),
	R(POST,   "/api/execution",                             OPERATE, SMALL,   execution_set_begin,         NULL,                       execution_set_finish),
	R(POST,   CONNECTOR "register",                            WORK, SMALL,   orchestrator_register_begin, NULL,                       orchestrator_register_finish),
	J(DELETE, CONNECTOR "register/:id",                WORK|OPERATE, NO_BODY, orchestrator_leave_begin,    NULL,                       orchestrator_leave_finish),
	R(GET,    CONNECTOR "tasks/pending",                  READ|WORK, NO_BODY, NULL,                        orchestrator_pending_read,  NULL),
	J(POST,   CONNECTOR "tasks/:vtid/claim",                   WORK, SMALL,   orchestrator_claim_begin,    NULL,                       orchestrator_claim_finish),
	J(POST,   CONNECTOR "tasks/:vtid/progress",                WORK, LARGE,   orchestrator_progress_begin, NULL,                       orchestrator_progress_finish),
	J(POST,   CONNECTOR "tasks/:vtid/release",                 WORK, SMALL,   orchestrator_release_begin,  NULL,                       orchestrator_release_finish),
	R(POST,   CONNECTOR "heartbeat",                           WORK, SMALL,   orchestrator_beat_begin,     NULL,                       orchestrator_beat_finish),
	R(GET,    CONNECTOR "workers",                        READ|WORK, NO_BODY, NULL,                        orchestrator_workers_read,  NULL),
	R(GET,    CONNECTOR "stats",                          READ|WORK, NO_BODY, NULL,                        orchestrator_stats_read,    NULL),
	R(GET,    CONNECTOR "health",                               ANY, NO_BODY, NULL,                        orchestrator_health_read,   NULL),
	J(POST,   "/mcp",                                           ANY, LARGE,   mcp_begin,                   mcp_read,                   mcp_finish),
	J(POST,   "/api/query",                                   ADMIN, SMALL,   query_begin,                 NULL,                       query_finish),
};
// clang-format on

const uint32_t route_count = sizeof routes / sizeof *routes;

#define TEXT(literal) {literal, sizeof literal - 1}
#define JSON_TYPE     TEXT("application/json")

const struct door doors[] = {
	{
		.prefix = "/api/workqueue/",
		.content_type = JSON_TYPE,
		.short_of_memory = TEXT(
			"{\"ok\":false,\"error\":\"workqueue_error\",\"message\":\"" SHORT_OF_MEMORY "\"}"),
		.put = workqueue_put_refused,
		.refuse = workqueue_refuse,
	},
	{
		.prefix = CONNECTOR,
		.content_type = JSON_TYPE,
		.short_of_memory = TEXT(
			"{\"ok\":false,\"error\":\"" SHORT_OF_MEMORY "\",\"error_code\":\"unavailable\"}"),
		.put = orchestrator_put_refused,
		.refuse = orchestrator_refuse_result,
	},
};

const uint32_t door_count = sizeof doors / sizeof *doors;
