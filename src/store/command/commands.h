/*
 * What the files of command/ share. Each run_*() takes one command: load the views, let the core decide,
 * stage, fill in the result.
 *
 * A command is refused before anything of it is staged, so a refusal leaves nothing behind: the names that it made are
 * taken back, and written only if it was accepted. A fault (< 0) ends the whole turn.
 */
#pragma once

#include "store/turn/turn.h"

/* Refuses the command: the result says so, and the turn goes on. Always 0. */
int command_refuse(struct result *result, enum refusal refusal);

/* The row of the request that the caller made under this key: -ENOENT if there was none, or no key. And keep one:
 * the caller fills in the fingerprint and the outcome. */
int command_get_request(
	struct turn *turn, const struct command *command, struct span key, struct idem_row *ret_row);
int command_keep_request(
	struct turn *turn, const struct command *command, struct span key, struct idem_row row);

/* The number of the next task. */
int command_next_seq(struct turn *turn, int64_t *ret_seq);

/* Is the task in one of the queues that the command may see? */
bool command_sees(const struct turn *turn, const struct task *task);

/* The task that the command is about, into the result too. *ret_view is NULL if the command was refused: there is no
 * such task, or, for command_load(), it has another version than the caller knows. */
int command_find(
	struct turn *turn, const struct command *command, struct result *result, struct turn_task **ret_view);
int command_load(
	struct turn *turn, const struct command *command, struct result *result, struct turn_task **ret_view);

/* Has the task another version than the caller knows? */
bool command_is_late(const struct command *command, const struct task *task);

/* Stage a decision about it, or refuse. */
int command_write(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct result *result);

/* … and keep what came with the command beside the task. */
int command_write_keeping(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	enum extra_kind kind, struct result *result);

/* The tasks of these ids as parents of a task that is created or changed: an edge for each. If a parent does
 * not exist, or the caller may not see it, the command is refused and the result names the parent. */
struct parents {
	struct edge_row *edges; /* in the turn's arena; the child is not filled in */
	uint32_t count, dead, done;
	uint32_t own_group; /* of a subtask: that of its parent */
	int64_t subtask_of;
	int64_t replaces; /* the task whose place it takes: what waits for that one waits for it */
};

int command_parents(
	struct turn *turn, struct name_list ids, struct parents *ret_parents, struct result *result);
bool parents_have(const struct parents *parents, int64_t parent);

/* command/group.c: may the task be created with the groups that it names? And then: they begin, the draft is a member of its own,
 * and waits for the others by edges of `parents`. */
int command_check_groups(struct turn *turn, const struct command_create *create,
	const struct parents *parents, struct result *result);
int command_name_groups(
	struct turn *turn, const struct command_create *create, struct task *draft, struct parents *parents);
/* Does one of the parents wait for the task, or for its group? *ret_through is that one, or 0. A way that is longer than
 * GROUP_CYCLE_LOOKS_MAX is not found. */
int command_find_cycle(
	struct turn *turn, int64_t task, uint32_t group, const struct parents *parents, int64_t *ret_through);
/* A subtask, or one that takes the place of another: do those that block it wait for its parent, or for one above, or for that other? */
int command_check_tree(struct turn *turn, const struct parents *parents, struct result *result);
int command_refuse_cycle(struct turn *turn, int64_t through, struct result *result);
int command_put_edge(struct turn *turn, int64_t child, struct edge_row edge);
int command_drop_edge(struct turn *turn, const struct edge_row *edge);

/* The task that holds a unique key now; NULL: none does. */
int command_find_key(struct turn *turn, struct span key, struct turn_task **ret_holder);

/* Does another task hold the unique key that this one, which is final, would take back? */
int command_key_is_taken(struct turn *turn, const struct turn_task *view, bool *ret_taken);

/* Was the store restored since the stale fence of the command was given out? */
bool command_fence_is_of_before(const struct turn *turn, const struct command *command);

/* What the caller shows as proof of its claim. */
struct proof command_proof(const struct turn *turn, const struct command *command);

/* Has the principal held an attempt of the task, the last one or an earlier one; or of a task in its tree? */
int command_has_held_one(struct turn *turn, const struct task *task, uint32_t principal, bool *ret_has_held);
int command_has_held(struct turn *turn, const struct task *task, uint32_t principal, bool *ret_has_held);

/* What the command tells of the task goes into turn->outside_event; from command_apply_workflow_event() on it moves the stage. */
int command_prepare_workflow_event(
	struct turn *turn, const struct turn_task *view, const struct command *command);
void command_apply_workflow_event(struct turn *turn, const struct turn_task *view);

/* Refuses a report about a claim. A task that the caller may not see counts as not found; a late result of its own is
 * kept. */
int command_refuse_report(struct turn *turn, const struct command *command, struct turn_task *view,
	const struct task_decision *decision, struct result *result);

/* Does the command come from the work itself, while a supervisor holds its claim? */
int command_is_from_supervised_work(
	struct turn *turn, const struct command *command, const struct task *task, bool *ret_heard);

/* Keep the work's report: the supervisor ends the attempt when no process of it is left, as the report says. The same report
 * again changes nothing, another one replaces it. */
int command_keep_work_ending(
	struct turn *turn, const struct command *command, struct turn_task *view, struct result *result);

/* ---- questions: command/ask.c ---- */

/* What is known of a question that is asked now. */
enum asked {
	ASKED_NEVER,
	ASKED_NOW,     /* by this attempt, and it is the last one it asked */
	ASKED_BEFORE,  /* by an earlier one, and there is an answer */
	ASKED_GRANTED, /* it was allowed for the whole task */
};

struct asking {
	struct questions questions; /* before the command */
	enum asked asked;
};

/* Decide a COMMAND_ASK, and keep what follows from it beside the task. */
int question_decide(struct turn *turn, const struct task *task, const struct command *command,
	struct asking *ret_asking, struct task_decision *ret_decision);
int question_keep(struct turn *turn, const struct task *task, const struct command *command,
	const struct asking *asking);

/* Nobody answered the open question in time: what is kept in place of an answer. */
int question_keep_late(struct turn *turn, const struct task *task);

/* What earlier attempts were answered, for the next one. */
int question_hand_over(struct turn *turn, struct claimed *claimed);

/* The task has ended, and begins again: what was allowed is not allowed any more. */
int questions_forget_allowed(struct turn *turn, int64_t seq);

/* command/usage.c: the attempt has used so much so far. ret_turned: turns of its agent have ended since it said so last. */
int usage_keep(struct turn *turn, const struct task *task, const struct usage *said, bool *ret_turned);

/* ---- what people tell: command/tell.c ---- */

/* A claim carries what the task was told: that counts as heard. */
int tellings_hand_over(struct turn *turn, struct claimed *claimed);

/* ---- holds: command/hold.c ---- */

/* What the worker says of its executors; lists that are not given stay as they are. */
int holder_announce(struct turn *turn, uint32_t holder, const struct command_announced *said);

/* Has it announced that tasks of that executor may create subtasks of the other one? */
bool holder_lists(const struct turn *turn, uint32_t holder, struct span executor, struct span other);

/* Is the task kept from a new claim by that holder: by a limit, or by a hold? Then the result says by what, and until when. */
bool command_is_limited(struct turn *turn, const struct task *task, uint32_t holder, struct result *result);

bool holds_exist(const struct turn *turn);

/* May the holder claim a task with that executor and account now? If not, until when is the account held (0: not known)? */
bool holds_let_claim(const struct turn *turn, uint32_t holder, uint32_t executor, uint32_t credential);
int64_t holds_until_ms(const struct turn *turn, uint32_t holder, const struct task *task);

/* The task was claimed: it is the one that tries its account, or one of so many in a minute. `is_new`: its worker did not have it. */
int holds_take_permit(struct turn *turn, const struct task *task, bool is_new);

/* The executor that takes the place of the one that a claimed task names, because that one's account is held; empty: none. */
struct span holds_fallback(const struct turn *turn, const struct task *task);

/* The account that a failing attempt has used, if a failure of it holds the account; else empty. */
struct span holds_account_of(const struct turn *turn, const struct task *task, const struct command *command);

/* The account that an attempt uses now, as far as is known; else empty. */
struct span holds_account_in_use(const struct turn *turn, const struct task *task);
int holds_note_failure(struct turn *turn, struct span account, const struct failure *failure);

/* The attempt with that fence has shown that its account works. */
int holds_note_success(struct turn *turn, const struct task *task, uint64_t fence);

/* What a program can say with the token of its claim alone leaves an event each time: so many of the attempt's changes of a minute
 * are used up, or the command is refused. What ends the attempt is free. */
int command_take_pace(struct turn *turn, const struct turn_task *view, size_t times, struct result *result);

/* The worker is gone: record it, and free what it held. */
int command_end_worker(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision);

/* Why a claim was lost; `task` is as it was. */
void command_add_loss_facts(const struct turn *turn, struct record *record, const struct task *task);

/* A quarantined slot allows only one trial: the first registration or claim uses it up. */
struct slot_entry {
	uint32_t slot;
	struct slot_decision decision;
};

struct slot_entry slot_entry_of(struct turn *turn, uint32_t slot, struct span worker);
int slot_entry_pass(struct turn *turn, struct slot_entry *entry);

/* The live worker that fills the slot, other than `except`; NULL: none. */
struct turn_worker *slot_filler(struct turn *turn, uint32_t slot, uint32_t except);

/* Does the slot belong to another principal (store_slot_owner()), or the slot or worker behind which it is? */
bool slot_is_foreign(struct turn *turn, const struct command *command, struct span slot);

/* Is the caller's label taken? Then the result is that session, if it has not ended. */
int session_taken(
	struct turn *turn, const struct command_spawn *spawn, struct result *result, bool *ret_is_answered);

/* The task is a session from now on. */
int session_spawn(struct turn *turn, struct turn_task *view, const struct command_spawn *spawn, bool own);

/* Its worker runs an agent for the task: that is a session, unless a person has given the task one, or the label is taken. */
int session_find(struct turn *turn, struct turn_task *view, const struct command_spawn *spawn);

int execute_create(struct turn *turn, const struct command *command, struct result *result);
int execute_tell(struct turn *turn, struct turn_task *view, struct result *result);
/* command/budget.c: the attempt has used that much more since it said so last. */
int budgets_use(
	struct turn *turn, const struct task *task, const struct usage *before, const struct usage *after);
int budget_set(struct turn *turn, enum budget_scope scope, struct span text,
	const struct day_budget_patch *patch, struct result *result);
int execute_budget(struct turn *turn, const struct command *command, struct result *result);

int execute_hold(struct turn *turn, const struct command *command, struct result *result);
int execute_schedule_put(struct turn *turn, const struct command *command, struct result *result);
int execute_group(struct turn *turn, const struct command *command, struct result *result);
int execute_schedule(struct turn *turn, const struct command *command, struct result *result);
int execute_bulk(struct turn *turn, const struct command *command, struct result *result);
int execute_queue_set(struct turn *turn, const struct command *command, struct result *result);
int execute_queue_limit(struct turn *turn, const struct command *command, struct result *result);
int execute_execution_set(struct turn *turn, const struct command *command, struct result *result);
int execute_claim_next(struct turn *turn, const struct command *command, struct result *result);
int execute_claim(struct turn *turn, const struct command *command, struct result *result);
int execute_beat(struct turn *turn, const struct command *command, struct result *result);
int execute_worker_command(struct turn *turn, const struct command *command, struct result *result);
int execute_token_put(struct turn *turn, const struct command *command, struct result *result);
int execute_login_code(struct turn *turn, const struct command *command, struct result *result);
int execute_login(struct turn *turn, const struct command *command, struct result *result);
int execute_logout(struct turn *turn, const struct command *command, struct result *result);
int execute_enrol(struct turn *turn, const struct command *command, struct result *result);
int execute_token_renew(struct turn *turn, const struct command *command, struct result *result);
/* Of a sweep: writes that the secrets before renewals have ended, of so many tokens. */
int tokens_settle_rows(struct turn *turn, uint32_t most);
int execute_token_revoke(struct turn *turn, const struct command *command, struct result *result);
int execute_key_rotate(struct turn *turn, const struct command *command, struct result *result);
int execute_audit(struct turn *turn, const struct command *command, struct result *result);
int execute_slot_assign(struct turn *turn, const struct command *command, struct result *result);
int execute_slot(struct turn *turn, const struct command *command, struct result *result);
int execute_slot_enter(struct turn *turn, const struct command *command, struct result *result);

/* … and on the task that the command names. */
int execute_update(struct turn *turn, struct turn_task *view, struct result *result);
int execute_call_off(struct turn *turn, struct turn_task *view, struct result *result);
int execute_retry(struct turn *turn, struct turn_task *view, struct result *result);
int execute_answer(struct turn *turn, struct turn_task *view, struct result *result);
int execute_purge(struct turn *turn, struct turn_task *view, struct result *result);
int execute_report(struct turn *turn, struct turn_task *view, struct result *result);
int execute_verdict(struct turn *turn, struct turn_task *view, struct result *result);
int execute_emit(struct turn *turn, struct turn_task *view, struct result *result);
int execute_log(struct turn *turn, struct turn_task *view, struct result *result);
int execute_return(struct turn *turn, struct turn_task *view, struct result *result);
