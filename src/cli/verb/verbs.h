/*
 * The rows of the verbs, each in the file of its name.
 */
#pragma once

#include "cli/frame/verb.h"

extern const struct verb verb_up, verb_doctor, verb_add, verb_run, verb_ls, verb_show, verb_why, verb_wait,
	verb_cancel, verb_retry, verb_park, verb_unpark, verb_inbox, verb_answer, verb_approve, verb_deny,
	verb_events, verb_logs, verb_queue_ls, verb_queue_pause, verb_queue_resume, verb_queue_drain,
	verb_workflow_ls, verb_workflow_show, verb_arm, verb_disarm, verb_worker_run, verb_worker_once,
	verb_worker_sweep, verb_worker_trees, verb_worker_ls, verb_worker_show, verb_worker_quiet,
	verb_worker_stop, verb_slot_ls, verb_slot_unquarantine, verb_session_ls, verb_session_show,
	verb_session_stop, verb_session_logs, verb_claim, verb_task_progress, verb_task_done,
	verb_task_review, verb_task_fail, verb_task_block, verb_task_ask, verb_task_release,
	verb_token_create, verb_token_ls, verb_token_revoke, verb_config_show, verb_config_path,
	verb_config_schema, verb_backup, verb_db_query, verb_completion, verb_version, verb_help,
	verb_complete, verb_man, verb_workqueue_enqueue, verb_workqueue_claim, verb_workqueue_progress,
	verb_workqueue_done, verb_workqueue_fail, verb_workqueue_inspect, verb_workqueue_list,
	verb_workqueue_assignments, verb_import_clawnsole, verb_notify_run, verb_notify_test, verb_notify_ls;
