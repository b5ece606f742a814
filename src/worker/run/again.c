/*
 * Another process of an agent in the same attempt. Nothing of the process before it is left, and nothing is spent by that:
 *
 *	the agent did not know the session that it was to resume      a new session, whose prompt says so; once
 *	its process ends with its turn, and a person has said more    the same session, with what was said
 *	its process ends with its turn, and nothing came of that      the same session, asked to go on; once
 *
 * An agent that takes turns on its standard input is told the last two in the same process (agent.c).
 */
#include "worker/run/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/prompt/prompt.h"
#include "base/log.h"
#include "base/take.h"

static const struct adapter *adapter_of(const struct run *run)
{
	return run->executor->agent->adapter;
}

/* A program that ends with its turn, has ended it well, and can be resumed under the id that it said. */
static bool is_resumable(const struct run *run)
{
	const struct run_agent *agent = run->agent;
	const struct adapter *adapter = adapter_of(run);

	return adapter->talk == TALK_ONCE && adapter->resumes && adapter->transcript &&
		agent->session.final == FINAL_GOOD && agent->session.id[0] && run->stop == STOP_NOT &&
		!agent->over;
}

bool run_agent_may_go_on(const struct run *run)
{
	return is_resumable(run);
}

/* What its session was is counted; the next process has one of its own, with the same log and the same clock. */
static void renew_session(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct agent_session *session = &agent->session;
	int64_t start_ms = session->start_ms, now_ms = session->now_ms;
	struct buf log = session->log;

	session->log = (struct buf){0};
	session_done(session);
	session_init(session, adapter_of(run), &run->executor->agent->policy);
	session->log = log;
	session->start_ms = start_ms;
	session->now_ms = now_ms;
	session->cwd = run->workspace;
	session->resumes = agent->resumes;
	session->usd_before = agent->memory.usd_total;
	snprintf(session->id, sizeof session->id, "%s", agent->memory.session);
	buf_clear(&agent->line);
	buf_clear(&agent->err_line);
	agent->line_too_long = false;
	run_agent_hide_secrets(run);
}

static void begin(struct run *run, struct process *next)
{
	struct run_agent *agent = run->agent;

	process_free(run->process); /* it is gone */
	run->process = next;
	agent->gone = agent->closing = agent->looks_to_end = agent->is_counted = false;
	run->final_ms = 0;
	run->spoke = false;
	run->heard_ms = worker_clock_ms();
	run_note(run);
	run_arm_clock(run);
	run_agent_begin(run);
}

bool run_agent_start_again(struct run *run, bool cold)
{
	struct run_agent *agent = run->agent;
	struct process_spec spec = process_spec_default();
	struct process *next = NULL;
	cleanup(close_at) int workdir_fd =
		open(run->workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	run->dir_fd = open(arena_text(&run->arena, "%s/runs/%s", run->supervisor->state_dir.home, run->name),
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = workdir_fd < 0 || run->dir_fd < 0 ? -errno : 0;
	struct session_spending before = agent->before;
	agent->before = run_agent_spending(run);
	run_agent_remember(run);
	if (cold) {
		run_agent_choose_session(run);
		agent->lost = true;
	} else {
		agent->resumes = true;
	}
	agent->prompt_is_made = !cold;
	if (r == 0)
		r = run_fill_spec(run, workdir_fd, &spec);
	if (r == 0)
		r = run_agent_fill(run, &spec);
	agent->prompt_is_made = false;
	spec.events = &run_agent_events;
	spec.lease = run_lease(run);
	if (r == 0)
		r = process_start(run->supervisor->host, &spec, &next);
	close_at(&run->dir_fd);
	run->dir_fd = -1;
	if (r < 0) {
		log_warn("an agent cannot be started again", log_cstr("task", run->task),
			log_cstr("reason", strerror(-r)));
		agent->before = before;
		return false;
	}
	renew_session(run);
	begin(run, next);
	return true;
}

/* False: the attempt ends as it was. */
static bool go_on_with(struct run *run, struct span note, int fault)
{
	if (fault < 0)
		return false;
	session_note(&run->agent->session, note);
	return run_agent_start_again(run, false);
}

bool run_agent_goes_on(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct prompt_facts facts = {.stint = agent->stint, .near = agent->near};

	if (run->stop == STOP_NOT && !agent->over && !agent->cold && session_is_unknown(&agent->session)) {
		agent->cold = true;
		session_note(&agent->session,
			SPAN("stint: the agent does not know its session: a new one begins"));
		return run_agent_start_again(run, true);
	}
	if (!is_resumable(run))
		return false;
	buf_clear(&agent->prompt);
	if (run_has_tells(run))
		return go_on_with(run, SPAN("stint: its next turn is what a person has said"),
			run_put_tells(run, &agent->prompt));
	if (agent->worked || agent->nudged)
		return false;
	agent->nudged = true;
	return go_on_with(run,
		SPAN("stint: nothing was reported and nothing has changed: asked to go on, once"),
		prompt_put_nudge(&agent->prompt, &facts));
}
