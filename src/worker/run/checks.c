/*
 * The checks of an agent's executor: programs that run one after the other in its work tree, confined as it was and without a
 * token, once its processes are gone and it says that the work is done. One that fails ends the attempt (CHECK_FAILED); the next
 * attempt goes on with the same session and reads what the check said.
 */
#include "worker/run/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"

enum { TAIL_BYTES = 3000 };

static void run_next(struct run *run);

/* The end of what it wrote, from the beginning of a character on. */
static struct span tail_of(const struct job *job)
{
	struct span text = job->err.len > 0 ? buf_span(&job->err) : buf_span(&job->out);

	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.len--;
	if (text.len > TAIL_BYTES) {
		text.data += text.len - TAIL_BYTES;
		text.len = TAIL_BYTES;
	}
	while (text.len > 0 && ((unsigned char)text.data[0] & 0xc0) == 0x80)
		text.data++, text.len--;
	return text;
}

static void note_result(struct run *run, const struct agent_check *check, bool passed, int64_t took_ms)
{
	struct run_agent *agent = run->agent;
	struct json_object object;

	if (agent->check_results.len > 0)
		buf_put_byte(&agent->check_results, ',');
	json_begin(&object, &agent->check_results);
	json_member_string(&object, "name", span_of(check->name));
	json_member_bool(&object, "passed", passed);
	json_member_int(&object, "ms", took_ms);
	json_end(&object);
	agent->session.now_ms = worker_clock_ms();
	session_note(&agent->session,
		span_of(arena_text(&run->arena, "%s check %s, %lld s", passed ? "✓" : "✗", check->name,
			(long long)(took_ms / 1000))));
}

static void finish(struct run *run)
{
	run->agent->checking = false;
	run->agent->checked(run);
}

static void on_check_ended(void *context)
{
	struct run *run = context;
	struct run_agent *agent = run->agent;
	const struct agent_check *check = &run->executor->agent->checks[agent->check_next];
	const struct job *job = &agent->check;
	bool passed = job_went_well(job);
	char why[400];

	if (run->stop != STOP_NOT) { /* killed with its task */
		finish(run);
		return;
	}
	note_result(run, check, passed, worker_clock_ms() - agent->check_since_ms);
	agent->check_next++;
	if (passed) {
		run_next(run);
		return;
	}
	struct span tail = tail_of(job);
	bool unstarted = job->end.how == ENDED_UNSTARTED;
	snprintf(why, sizeof why,
		job->timed_out      ? "it took longer than checkMs"
			: unstarted ? "it cannot be started"
				    : "%s %d",
		job->end.how == ENDED_SIGNAL ? "signal" : "exit status", job->end.code);
	agent->check_code =
		unstarted ? "WORKER_INIT_FAILED" : "CHECK_FAILED"; /* what cannot start is the host's fault */
	agent->check_failed = arena_text(&run->arena, "check %s failed: %s. The end of its output:\n%.*s",
		check->name, why, SPAN_ARGS(tail));
	finish(run);
}

int run_start_beside(struct run *run, const char *const *argv, int64_t most_ms, void (*done)(void *run))
{
	const char *token = run->token;
	struct process_spec spec = process_spec_default();
	cleanup(close_at) int dir_fd = open(run->workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *const *own = run->argv;

	if (dir_fd < 0)
		return -errno;
	run->dir_fd = open(arena_text(&run->arena, "%s/runs/%s", run->supervisor->state_dir.home, run->name),
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run->dir_fd < 0)
		return -errno;
	run->token = NULL;
	run->argv = argv;
	int r = run_fill_spec(run, dir_fd, &spec);
	run->token = token;
	run->argv = own;
	spec.stdin_from = STDIN_NULL;
	spec.input = (struct span){0};
	if (r == 0)
		r = job_start(&run->agent->check, &spec, most_ms, done);
	close_at(&run->dir_fd);
	run->dir_fd = -1;
	return r;
}

/* A task may choose among them. */
static bool is_chosen(const struct run *run, const char *name)
{
	const char *const *chosen = run->agent->checks_chosen;

	if (!chosen)
		return true;
	for (size_t i = 0; chosen[i]; i++)
		if (strcmp(chosen[i], name) == 0)
			return true;
	return false;
}

static void run_next(struct run *run)
{
	struct run_agent *agent = run->agent;
	const struct agent_settings *settings = run->executor->agent;

	while (agent->check_next < settings->check_count &&
		!is_chosen(run, settings->checks[agent->check_next].name))
		agent->check_next++;
	if (agent->check_next == settings->check_count) {
		agent->checks_passed = true;
		finish(run);
		return;
	}
	agent->check_since_ms = worker_clock_ms();
	int r = run_start_beside(
		run, settings->checks[agent->check_next].argv, settings->check_ms, on_check_ended);
	if (r == 0)
		return;
	agent->check_code = "WORKER_INIT_FAILED";
	agent->check_failed = arena_text(&run->arena, "check %s cannot be started: %s",
		settings->checks[agent->check_next].name, strerror(-r));
	finish(run);
}

void run_check_work(struct run *run, void (*checked)(struct run *run))
{
	struct run_agent *agent = run->agent;

	agent->checked = checked;
	agent->checking = true;
	session_note(&agent->session, SPAN("stint: the agent is done; its checks start"));
	run_next(run);
}

/* Names of checks that the executor does not have: the first of them; NULL: there is none. */
const char *run_choose_checks(struct run *run, yyjson_val *names)
{
	const struct agent_settings *settings = run->executor->agent;
	const char **chosen;
	size_t i, count = yyjson_arr_size(names);
	yyjson_val *name;

	if (!yyjson_is_arr(names) || count == 0)
		return NULL;
	chosen = arena_alloc(&run->arena, (count + 1) * sizeof *chosen);
	yyjson_arr_foreach(names, i, count, name)
	{
		bool known = false;
		for (size_t j = 0; j < settings->check_count; j++)
			known |= yyjson_equals_str(name, settings->checks[j].name);
		if (!chosen || !known)
			return yyjson_is_str(name) ? arena_text(&run->arena, "%s", yyjson_get_str(name))
						   : "a value that is not a name";
		chosen[i] = arena_text(&run->arena, "%s", yyjson_get_str(name));
	}
	run->agent->checks_chosen = chosen;
	return NULL;
}
