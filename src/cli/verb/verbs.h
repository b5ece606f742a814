/*
 * Every verb there is, in the order of the help: its group there, and the name of its row.
 */
#pragma once

#include "cli/frame/verb.h"

// clang-format off
#define VERBS(X) \
	X(START, up) X(START, down) X(START, doctor) \
	X(WORK, add) X(WORK, run) X(WORK, ls) X(WORK, show) X(WORK, why) X(WORK, wait) \
	X(WORK, edit) X(WORK, cancel) X(WORK, retry) X(WORK, park) X(WORK, unpark) \
	X(DECIDE, inbox) X(DECIDE, answer) X(DECIDE, approve) X(DECIDE, deny) X(DECIDE, tell) \
	X(WATCH, top) X(WATCH, dashboard) X(WATCH, events) X(WATCH, errors) X(WATCH, logs) \
	X(WORKERS, group_ls) X(WORKERS, group_show) X(WORKERS, group_close) X(WORKERS, group_cancel) X(WORKERS, group_retry) \
	X(WORKERS, group_rm) \
	X(WORKERS, bulk_cancel) X(WORKERS, bulk_retry) X(WORKERS, bulk_park) X(WORKERS, bulk_unpark) X(WORKERS, bulk_move) \
	X(WORKERS, bulk_priority) X(WORKERS, bulk_purge) X(WORKERS, bulk_ls) X(WORKERS, bulk_show) X(WORKERS, bulk_stop) \
	X(WORKERS, hold_ls) X(WORKERS, hold_add) X(WORKERS, hold_rm) X(WORKERS, hold_budget) X(WORKERS, hold_accounts) \
	X(WORKERS, queue_ls) X(WORKERS, queue_show) X(WORKERS, queue_keys) X(WORKERS, queue_limit) X(WORKERS, queue_budget) X(WORKERS, queue_pause) X(WORKERS, queue_resume) X(WORKERS, queue_drain) \
	X(WORKERS, schedule_add) X(WORKERS, schedule_ls) X(WORKERS, schedule_show) X(WORKERS, schedule_run) \
	X(WORKERS, schedule_pause) X(WORKERS, schedule_resume) X(WORKERS, schedule_rm) X(WORKERS, schedule_next) \
	X(WORKERS, workflow_ls) X(WORKERS, workflow_show) X(WORKERS, workflow_act) \
	X(WORKERS, disarm) X(WORKERS, arm) \
	X(WORKERS, worker_run) X(WORKERS, worker_once) X(WORKERS, worker_sweep) X(WORKERS, worker_trees) \
	X(WORKERS, worker_invite) X(WORKERS, worker_enroll) \
	X(WORKERS, worker_ls) X(WORKERS, worker_show) X(WORKERS, worker_quiet) X(WORKERS, worker_stop) \
	X(WORKERS, agent_ls) X(WORKERS, agent_show) X(WORKERS, agent_test) X(WORKERS, agent_login) \
	X(WORKERS, slot_ls) X(WORKERS, slot_unquarantine) \
	X(WORKERS, session_ls) X(WORKERS, session_show) X(WORKERS, session_stop) X(WORKERS, session_logs) X(WORKERS, session_prompt) X(WORKERS, session_attach) \
	X(PROTOCOL, claim) \
	X(PROTOCOL, task_progress) X(PROTOCOL, task_done) X(PROTOCOL, task_review) X(PROTOCOL, task_fail) \
	X(PROTOCOL, task_block) X(PROTOCOL, task_ask) X(PROTOCOL, task_release) \
	X(PROTOCOL, task_add) X(PROTOCOL, task_wait) \
	X(PROTOCOL, workqueue_enqueue) X(PROTOCOL, workqueue_claim) X(PROTOCOL, workqueue_progress) \
	X(PROTOCOL, workqueue_done) X(PROTOCOL, workqueue_fail) X(PROTOCOL, workqueue_inspect) \
	X(PROTOCOL, workqueue_list) X(PROTOCOL, workqueue_assignments) \
	X(PROTOCOL, mcp) X(PROTOCOL, skill_ls) X(PROTOCOL, skill_show) X(PROTOCOL, skill_install) \
	X(PROTOCOL, notify_run) X(PROTOCOL, notify_test) X(PROTOCOL, notify_ls) \
	X(ADMIN, token_create) X(ADMIN, token_ls) X(ADMIN, token_revoke) X(ADMIN, token_rotate) \
	X(ADMIN, tls_init) X(ADMIN, tls_show) \
	X(ADMIN, config_show) X(ADMIN, config_path) X(ADMIN, config_schema) \
	X(ADMIN, backup) X(ADMIN, bundle) X(ADMIN, db_query) X(ADMIN, import_clawnsole) X(ADMIN, import_clawhub) \
	X(ADMIN, import_pm2) X(ADMIN, import_github) X(ADMIN, import_beads) X(ADMIN, import_tasks) X(ADMIN, export) \
	X(ADMIN, completion) X(ADMIN, version) X(ADMIN, help) X(ADMIN, complete) X(ADMIN, man)
// clang-format on

#define X(group, name) extern const struct verb verb_##name;
VERBS(X)
#undef X

/* stint without a verb: stand.c. */
extern const struct verb verb_stand;
