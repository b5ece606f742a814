/*
 * What the files of this folder share. Only they include this.
 *
 *	run.c       the life of a run, its reports, and the supervisor's calls
 *	claim.c     reading its claim
 *	start.c     its token, its directory, its process
 *	network.c   its ways to the server and to other hosts
 *	tree.c      a work tree of its own
 *	process.c   the events of its process, and its end
 *	agent.c     the same of an agent: its session, its home, its verdict
 *	budget.c    what it may use, and asking for more
 *	again.c     another process of an agent in the same attempt
 *	tells.c     what people tell an agent while it works
 *	asking.c    permissions that an agent asks for
 *	checks.c    checks of an agent's work, once it is gone
 *	deliver.c   its branch and its pull request, after the checks
 *	evidence.c  what it has changed
 *	pool.c      the same in a pool
 *	progress.c  progress, told to the server
 *	clock.c     its limits of time
 *	lease.c     its lease: how long its shim lets it run without us
 */
#pragma once

#include "agent/find/find.h"
#include "agent/session/memory.h"
#include "agent/session/session.h"
#include "agent/session/verdict.h"
#include "agent/settings.h"
#include "attempt/job.h"
#include "attempt/reach.h"
#include "attempt/relay/child_socket.h"
#include "exec/wall/short_link.h"
#include "pool/pool.h"
#include "worker/run/run.h"
#include "worker/report/log_upload.h"
#include "worktree/worktree.h"

enum {
	RUN_BODY_BYTES_MAX = 1 << 20, /* of a report */
	RUN_BARRED_MAX = 16,          /* hosts that the log names */
};

struct run;

/* Writes the report of a run: the verb, and the members of the body besides workerId and fence. -ENOMEM: it is asked again
 * later; any other fault: what the report would say is lost. */
typedef int (*report_writer)(struct run *run, enum report_verb *ret_verb, struct buf *members);

/*
 * The phase of a run. Only run_move() changes it, and asserts that the move is in this picture and that the run is as its new
 * phase says (run_check()).
 *
 *	CLAIMED ──run_start_in(), a pool begins──▶ STARTED ──on_gone(), on_job_ended()──▶ ENDED ──run_log_ended()──▶ SENDING
 *	   ├──run_refuse(), run_end_unstarted(), a pool refuses it──────────────────────────────────────────────────▶ │
 *	   │                                                                      ENDED ──lost: nothing is reported──▶ │
 *	   └──lost before it began──▶ OVER ◀──finish(): settled, lost, or given up────────────────────────────────────┘
 */
enum run_phase {
	RUN_CLAIMED, /* nothing of it runs yet */
	RUN_STARTED, /* its process runs, or strays of it do */
	RUN_ENDED,   /* its process is gone; the report is written, the rest of the log is uploaded */
	RUN_SENDING, /* the report is on its way */
	RUN_OVER,
};

/* Where the open question of an agent stands. */
enum asking {
	ASKING_NOTHING,
	ASKING_SENDS,     /* the server is being told */
	ASKING_WAITS,     /* a person is */
	ASKING_WITHDRAWS, /* the agent does not want to know any more: the server is being told */
};

enum budget_part { BUDGET_USD, BUDGET_TOKENS, BUDGET_TURNS, BUDGET_TOOL_CALLS, BUDGET_PARTS };

struct run_budget {
	double most[BUDGET_PARTS];  /* this attempt may use so much; 0: no limit */
	double said[BUDGET_PARTS];  /* the limit that this follows from, as it was configured or asked for */
	double spent[BUDGET_PARTS]; /* of that by earlier attempts */
};

/* The agent of a run. */
struct run_agent {
	bool is_main;  /* it goes on with the session that all tasks of an agent's name share */
	bool turns_to; /* … which has not heard of this task yet */
	struct agent_session session;
	struct memory memory;
	struct login login;
	struct buf line;     /* the beginning of a line whose end has not come */
	struct buf err_line; /* the same of standard error */
	bool line_too_long;
	struct buf prompt;
	int64_t since_ns;  /* changes after this are its work */
	bool reported;     /* the work has said how it ended */
	bool nudged;       /* it was told once that nothing came of its turn */
	bool closing;      /* its last word counts: it has to go */
	bool looks_to_end; /* the answer of the next look at the task decides how it goes on */
	bool gone;         /* its process is gone */
	bool cold; /* the agent did not know the session to resume: a new one was begun in this attempt */
	bool resumes;
	bool lost;        /* a session of an earlier attempt cannot be continued */
	bool worked;      /* it has reported, or changed something */
	bool dirty;       /* there is usage that the server was not told */
	const char *over; /* the budget that it has used up; NULL: none */
	double over_limit;
	int stream_fd; /* what it wrote, as it came; -1: not kept */
	int64_t stream_bytes;
	struct buf evidence;
	struct job check; /* the check that runs */
	bool checking, was_checked;
	size_t check_next;
	int64_t check_since_ms;
	struct buf check_results;         /* elements of a JSON list */
	bool checks_passed;               /* all of them */
	const char *check_failed;         /* in words; NULL: none has failed */
	const char *check_code;           /* its code */
	const char *const *checks_chosen; /* by the task, NULL at the end; NULL: all */
	void (*checked)(struct run *run);
	bool reported_trouble;   /* the work has said that it failed, is blocked, or gives the task up */
	struct buf commits;      /* elements of a JSON list: what it committed, and we for it */
	const char *link;        /* of its pull request; NULL: none */
	const char *undelivered; /* why its work could not be delivered; NULL: it was, or was not to be */
	enum asking asking;
	char asked[ADAPTER_ID_BYTES]; /* the agent's id of the question that the server was told */
	char question[32];            /* the server's id of it */
	struct api_client *asker;
	struct buf ask_body;
	const char *stint; /* our command line, as the agent calls it */
	const char *model; /* that was asked for; NULL: the agent's default */
	struct run_budget budget;
	const char *near;               /* most of a budget is used: which, and how much; NULL: not yet */
	bool asked_for_budget;          /* a person is asked for more */
	struct session_spending before; /* of the processes of this attempt that are gone */
	struct buf tells;    /* what people told the task and the agent does not know yet, in blocks */
	int64_t tells_last;  /* number of the last of them; memory.told: there is none */
	bool prompt_is_made; /* of a process that goes on in the same attempt */
	bool prompt_told;    /* the server has what its process was told first */
	bool is_counted;     /* what the process that is gone has used is in the memory */
};

struct run {
	struct supervisor *supervisor;
	enum run_phase phase;
	char name[PROCESS_RUN_BYTES_MAX + 1];
	struct arena arena; /* all texts below */
	const char *task, *fence, *queue, *working_dir, *module;
	const char *token; /* good for its claim only; NULL: no token is needed */
	const char *const *argv;
	const char *first_words; /* of ours, for the head of its log; NULL: none */
	const char *traceparent; /* of this attempt; NULL: its task belongs to no trace */
	const char *const *env;  /* NAME=value, NULL at the end: variables of the task; NULL: none */
	const struct executor *executor;
	const char *
		in_place_of; /* the executor that the task names: its account is held, and this one takes its place; NULL: none */
	bool anew; /* a person said so: an agent goes on with no session that it has had */
	struct wall wall;
	struct span input, log_target;
	uint32_t attempt;
	int64_t timeout_ms,
		granted_ms;           /* may run so long (the shortest limit); and the server's limit alone */
	bool timeout_is_budget;       /* the shortest limit is the executor's budget */
	int64_t waited_ms;            /* time spent waiting for answers, which does not count */
	int64_t claimed_ms, heard_ms; /* clock of leases: when it was claimed; its last sign of life */
	int64_t lease_ms;             /* of its claim, from claimed_ms on */
	bool bound;                   /* a heartbeat has bound it: it lives under the worker's lease */
	bool spoke;                   /* it has written something */
	bool asks;                    /* it waited for an answer when it was last looked at */
	struct run_record record;
	bool remembered;        /* its record and its run dir are on disk */
	bool unneeded;          /* its record and its run dir may be removed */
	bool cleared;           /* its run dir was removed to make room for its report */
	struct process_end end; /* once its process is gone */
	bool has_end;
	bool logged; /* its end was logged */
	enum stop_reason stop;
	struct pending_report *report; /* NULL: no report, or it is settled */
	report_writer writer;          /* of the report; NULL: nothing is reported */
	uint32_t tries;                /* attempts to write the report that found no memory */
	uint32_t refusals;             /* reports that the server refused */
	bool in_outbox;                /* the report is in the outbox */
	bool log_ended;
	bool taken;            /* the server has the report */
	enum report_verb verb; /* of the report */
	int64_t limit_ms;
	int64_t final_ms; /* when its processes must be gone, after it reported its end; 0: it has not */
	struct api_client *client;
	struct api_client *looks;           /* for run_look(); NULL: not used yet */
	struct settings_worktree tree_wish; /* of the executor, as the task wants it */
	bool tree_unwanted;                 /* the task says so in its payload */
	struct worktree *tree;              /* its own work tree, or NULL */
	const char *refused_code, *refused; /* reported as soon as its work tree is gone */
	const char *tree_rest;              /* path of the task's work dir below the top of its repository */
	struct process *process;
	struct reach reach;          /* what it was shown, for the hint after a failure */
	struct grant_list grants;    /* the same */
	const char *workspace;       /* its work dir */
	struct child_socket *socket; /* in its run dir: its way to the server; NULL: not yet, or no more */
	struct child_socket *proxy;  /* the same: its way to the hosts of its executor; NULL: none */
	const char *barred[RUN_BARRED_MAX]; /* hosts that the proxy refused to it */
	uint32_t barred_count;
	const char *last_words; /* of ours, for the end of its log; NULL: none */
	char short_link
		[SHORT_LINK_BYTES]; /* to its run dir, where that is too long for an address; "": none */
	int dir_fd;                 /* its run dir, until its process is started; -1: none is open */
	struct log_upload upload;
	uv_timer_t clock;
	int open_handles;
	struct run_agent *agent; /* of an executor of kind agent, from its start on; else NULL */
	/* of a run in a pool */
	struct pool_job job;
	enum report_verb answer_verb; /* how its worker answered */
	struct buf answer;
	bool answer_lost;         /* there was no memory to keep the answer */
	struct output words;      /* standard error of its worker, while it has this task */
	struct api_client *notes; /* sends its progress; NULL: no progress yet */
	uv_timer_t note_timer;
	struct buf note; /* body of the newest progress report, sent or not */
	bool note_waits;
};

void run_move(struct run *run, enum run_phase to);

static inline int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* claim.c: reads the claim; -EPROTO: it is not a claim. And finds the executor and argv; false: we have no such executor, which
 * was reported. */
int run_read_claim(struct run *run, yyjson_val *claim);
bool run_find_executor(struct run *run, yyjson_val *claim);

/* subtask.c: has a subtask no more rights than its parent? False: it has, which was reported. */
bool run_check_rights(struct run *run, yyjson_val *claim);

/* Into the outbox, at once or as soon as there is memory for it. After the process has ended the report is held until the log
 * is uploaded. */
void run_report(struct run *run, report_writer writer);
/* Nothing of its processes is left: that is reported, unless the claim is lost, and then its tree and its log come to an end. */
void run_end(struct run *run, const struct process_end *end, report_writer writer);

/* The log is uploaded: for log_upload_finish(). */
void run_log_ended(void *run);

/* Writes its end into our own log, once the end is certain. */
void run_log_end(struct run *run, const char *as);

/* Ends the run before anything was started, because of trouble of this host, or because of what the task asks for. Returns
 * false, for callers that say whether to go on. */
bool run_refuse(struct run *run, const char *code, const char *message);

/* The same, by what kept it from being started. */
void run_refuse_start(struct run *run, int fault);

/* Stopped before it had a process. */
void run_end_unstarted(struct run *run);

/* Its record and its run dir may be removed. */
void run_let_go(struct run *run);

/* start.c: begin; or go on in that directory. */
void run_begin(struct run *run);
void run_start_in(struct run *run, int workdir_fd);

/* Writes its record: that it exists, and its processes so far. */
int run_note(struct run *run);

/* For its process, and for what sets its work tree up. */
int run_fill_spec(void *run, int workdir_fd, struct process_spec *spec);
const char *run_path_of(struct run *run, int fd);

/* network.c: its sockets; a fault leaves none. And the names of them in its wall. */
int run_open_sockets(struct run *run);
int run_name_sockets(struct run *run, const char *run_path);

/* None of its processes is left: nobody is served at its sockets any more. */
void run_close_sockets(struct run *run);

/* A line of ours behind all that it wrote. */
void run_add_last_words(struct run *run, const char *line);

/* tree.c: makes its work tree. True: the start waits for the tree, or was refused. */
bool run_make_tree(struct run *run, int workdir_fd);

/* Removes a work tree that was never used; then the refusal or the stop is reported. */
void run_drop_tree(struct run *run);

/* The attempt is over: ends its work tree, and then its log. */
void run_end_tree(struct run *run);

/* process.c */
extern const struct process_events run_process_events;

/* pool.c */
void run_start_pooled(struct run *run);

/* progress.c: sends run->note, now or in a second, if run->note_waits. Is the last one of an agent still to be answered? Then
 * run_log_ended() comes again. */
bool run_owes_note(const struct run *run);
void run_send_progress(struct run *run);

/* agent.c: opens what earlier attempts left and finds the login. False: it was refused. */
bool run_is_main(const struct run *run); /* executionMode main, for an agent */
bool run_agent_open(struct run *run);
void run_agent_release(struct run *run); /* closes what is open; run->open_handles counts it */
void run_agent_free(struct run *run);

/* A handle of the run is closed: the last one frees it. */
void run_handle_closed(struct run *run);

/* Its argv, its input and its events, for a spec that is filled otherwise; `workspace` is where it works. -ENOMEM … */
int run_agent_fill(struct run *run, struct process_spec *spec);

extern const struct process_events run_agent_events;

/* NAME=value, NULL at the end: for its environment. NULL: no memory. */
const char *const *run_agent_variables(struct run *run);

/* Its process runs: what it is to do goes in. */
void run_agent_begin(struct run *run);

/* The task as the server has it now. */
void run_agent_see(struct run *run, yyjson_val *task);

/* budget.c: what it may use, of its executor's budget and of the task's, NULL if it has none. False: it was refused. */
bool run_read_budget(struct run *run, yyjson_val *task, yyjson_val *budget);

/* The budget of a task for an executor that is no agent. False: it was refused. */
bool run_check_plain_budget(struct run *run, yyjson_val *budget);

/* What the next process may use; 0: no limit. */
double run_budget_left(const struct run *run, enum budget_part part);
void run_look_at_budget(struct run *run);

/* The money, where the agent says none and its model has a price. */
void run_add_price(const struct run *run, struct session_usage *usage);
const char *run_agent_model(const struct run *run);

/* It has used up its budget: a person is asked, and then `asked` is called. False: nobody is. */
bool run_ask_for_budget(struct run *run, void (*asked)(struct run *run));

/* again.c: its session is to be told more in another process, with run->agent->prompt as it is; or, `cold`, begins anew. False: it cannot be
 * started, and nothing has changed. */
bool run_agent_start_again(struct run *run, bool cold);

/* What this process and the ones before it in this attempt have used. */
struct session_spending run_agent_spending(const struct run *run);

/* Parts of agent.c that another process of the same attempt needs, too. */
void run_agent_choose_session(struct run *run);
void run_agent_hide_secrets(struct run *run);
void run_agent_remember(struct run *run);

/* again.c: its process is gone. Does another one go on? True: it does. */
bool run_agent_goes_on(struct run *run);

/* Would another process go on, if the server says that there is a reason? */
bool run_agent_may_go_on(const struct run *run);

/* tells.c: notes what the task, as the server has it now, was told. */
void run_hear_tells(struct run *run, yyjson_val *task);
bool run_has_tells(const struct run *run);

/* The next turn with what was told, as a prompt; from now on the session knows it. -ENOMEM, -E2BIG */
int run_put_tells(struct run *run, struct buf *prompt);

/* Its report was answered: the task may be final. */
void run_agent_settled(struct run *run, struct span state);

/* For the clocks: until when may it be silent? INT64_MAX: as long as it likes. */
int64_t run_agent_silent_until_ms(const struct run *run);

/* Sends what the session wants to say, and looks whether it has ended. */
void run_agent_move(struct run *run);

/* checks.c: runs the checks; `checked` comes when all have passed, one has failed, or the run was stopped. */
void run_check_work(struct run *run, void (*checked)(struct run *run));

/* Runs a program as the agent ran, but without a token: nobody reports while its work is judged. `done` comes from the loop. */
int run_start_beside(struct run *run, const char *const *argv, int64_t most_ms, void (*done)(void *run));

/* deliver.c: `delivered` comes when its branch and its pull request are where they belong, or cannot be (agent->undelivered), or the
 * run was stopped. False: nothing is to be delivered. */
bool run_deliver(struct run *run, void (*delivered)(struct run *run));

/* evidence.c: what has changed since the attempt began; agent->worked, agent->evidence. */
void run_look_for_work(struct run *run);

/* Takes the task's choice among the checks. Returns a name that the executor does not have; NULL: it has all. */
const char *run_choose_checks(struct run *run, yyjson_val *names);

/* asking.c: the session has an open question; it is told to the server, if it is not. */
void run_ask(struct run *run);
void run_ask_see(struct run *run, yyjson_val *task);

int run_put_ask_target(const struct run *run, struct buf *target);

/* The agent has taken its question back, perhaps: then the server is told. */
void run_ask_withdraw(struct run *run);

/* lease.c: the lease for its shim as of now; and is that lease over? Then nothing is started before the server has answered. */
struct process_lease run_lease(struct run *run);
bool run_is_past_lease(struct run *run);

/* If its shim has ended it because its lease was over, the end is no crash. */
void run_heed_lapse(struct run *run, const struct process_end *end);

/* clock.c */
void run_arm_clock(struct run *run);
int64_t run_times_out_ms(const struct run *run); /* when it has run too long */
