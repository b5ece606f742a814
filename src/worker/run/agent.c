/*
 * A run of an agent. Its standard output is a conversation (agent/session/session.h): each line is heard, the log for people is
 * uploaded in place of what it wrote, and what the session wants to say goes to its standard input.
 *
 *	process starts ──prompt──▶ lines … ──last word──▶ has it worked? ──yes, or it was nudged──▶ input closed, 10 s to go
 *	                              ▲                        └──no──▶ one nudge, in the same process ──┐
 *	                              └─────────────────────────────────────────────────────────────────┘
 */
#include "worker/run/parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/prompt/prompt.h"
#include "agent/session/changes.h"
#include "agent/session/verdict.h"
#include "attempt/git_identity.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/take.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "exec/request/search.h"

enum {
	PROMPT_ROOM_BYTES = 2 << 20,
	RESULT_BYTES_MAX = 256 << 10,
	WORDS_BYTES_MAX = 4 << 10,
	STREAM_BYTES_MAX = 16 << 20, /* of stream.jsonl: then it begins anew */
	STREAM_KEPT_BYTES = 8 << 20, /* of standard output in memory */
	VARIABLES_MAX = 32,
	EVIDENCE_BYTES_MAX = 256 << 10,
	NOTE_ROOM_BYTES = 800 << 10, /* of a report of progress: the first one has the prompt */
};

static const struct agent_settings *settings_of(const struct run *run)
{
	return run->executor->agent;
}

/* ---- what it begins with ------------------------------------------------------------------------------------ */

static const char *home_of(struct run *run)
{
	return arena_text(&run->arena, "%s/home", run->agent->memory.path);
}

/* A session of an earlier attempt is continued, unless it stalled twice or cannot be found. */
void run_agent_choose_session(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct memory *memory = &agent->memory;
	const struct adapter *adapter = settings_of(run)->adapter;

	agent->resumes =
		memory->session[0] && memory->stalls < 2 && !run->anew && memory_has_session(memory, adapter);
	agent->lost = memory->session[0] && memory->begun && !agent->resumes;
	if (agent->resumes)
		return;
	memory->session[0] = 0;
	memory->begun = false;
	memory->usd_total = 0;
	memory->thread_input = memory->thread_output = 0;
	memory->stalls = 0;
	memory->told = 0;
	if (adapter->takes_id) { /* before it starts: whatever happens then, we know its name */
		char text[UUID_CHARS + 1];
		uint64_t hi = rng_u64(&run->supervisor->rng), lo = rng_u64(&run->supervisor->rng);
		uuid_write((hi & ~UINT64_C(0xf000)) | 0x4000, (lo & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63,
			text);
		snprintf(memory->session, sizeof memory->session, "%s", text);
	}
	snprintf(memory->adapter, sizeof memory->adapter, "%s", adapter->name);
}

/* As the agent can type it: by its name if that leads to us, else by its whole path. */
static const char *command_line(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;
	char file[SEARCH_PATH_BYTES];

	if (search_program(supervisor->settings->path_text, "stint", file) == 0)
		return "stint";
	return supervisor->program[0] ? supervisor->program : "stint";
}

/* A server that does not know the field keeps it in the metadata. */
static yyjson_val *member_of(yyjson_val *task, const char *name)
{
	yyjson_val *value = yyjson_obj_get(task, name);

	return value ? value : yyjson_obj_get(yyjson_obj_get(task, "metadata"), name);
}

bool run_is_main(const struct run *run)
{
	const struct once_config *once = run->supervisor->options->once;

	return once && run->executor->agent && once->execution_mode &&
		strcmp(once->execution_mode, "main") == 0;
}

/* A home of the task's own; or that of the one session that all tasks of an agent's name share with this executor. */
static int open_memory(struct run *run, int64_t created_ms)
{
	struct run_agent *agent = run->agent;
	const char *state = run->supervisor->state_dir.home;

	if (!run_is_main(run))
		return memory_open(&agent->memory, state, run->task, created_ms);
	int r = memory_open(&agent->memory, state,
		arena_text(&run->arena, "main@%s@%s", run->supervisor->options->once->agent_id,
			run->executor->name),
		1);
	agent->is_main = true;
	agent->turns_to = r == 0 && memory_turn_to(&agent->memory, run->task);
	return r;
}

bool run_agent_open(struct run *run)
{
	const struct settings *settings = run->supervisor->settings;
	const char *state = run->supervisor->state_dir.home;
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(run->input, JSON_REPLY_DEPTH_MAX, &complaint);
	yyjson_val *task = yyjson_doc_get_root(doc);
	struct run_agent *agent = calloc(1, sizeof *agent);

	if (!agent || !doc) {
		free(agent);
		return run_refuse(run, "WORKER_INIT_FAILED", strerror(ENOMEM));
	}
	run->agent = agent;
	agent->stream_fd = -1;
	session_init(&agent->session, settings_of(run)->adapter, &settings_of(run)->policy);
	buf_init(&agent->line, SESSION_LINE_BYTES_MAX);
	buf_init(&agent->err_line, WORDS_BYTES_MAX);
	buf_init(&agent->prompt, PROMPT_ROOM_BYTES);
	buf_init(&agent->evidence, EVIDENCE_BYTES_MAX);
	buf_init(&agent->ask_body, 512 << 10);
	buf_init(&agent->tells, PROMPT_ROOM_BYTES / 2);
	buf_init(&run->note, NOTE_ROOM_BYTES);
	buf_init(&agent->check_results, EVIDENCE_BYTES_MAX / 4);
	buf_init(&agent->commits, EVIDENCE_BYTES_MAX / 4);
	job_init(&agent->check, run->supervisor->loop, run->supervisor->host, run);
	int r = open_memory(run, json_int(task, "createdAt"));
	if (r < 0)
		return run_refuse(run, "WORKER_INIT_FAILED",
			arena_text(&run->arena, "the home of its agent cannot be made: %s", strerror(-r)));
	const char *unknown = run_choose_checks(run, member_of(task, "checks"));
	if (unknown)
		return run_refuse(run, "NOT_ALLOWED",
			arena_text(&run->arena,
				"the task wants check \"%s\", which executor %s does not have", unknown,
				run->executor->name));
	run_agent_choose_session(run);
	agent->model = settings_of(run)->model;
	struct span model = json_text(yyjson_obj_get(task, "model"));
	if (!agent->model && model.len > 0)
		agent->model = arena_text(&run->arena, "%.*s", SPAN_ARGS(model));
	if (!run_read_budget(run, task, member_of(task, "budget")))
		return false;
	login_find(&agent->login, &run->arena, settings_of(run)->adapter, run->executor->env,
		settings->home.path, state, clock_wall_ms() + run->timeout_ms);
	agent->session.resumes = agent->resumes;
	agent->session.usd_before = agent->memory.usd_total;
	snprintf(agent->session.id, sizeof agent->session.id, "%s", agent->memory.session);
	return true;
}

static void on_check_closed(void *context)
{
	run_handle_closed(context);
}

void run_agent_release(struct run *run)
{
	if (!run->agent)
		return;
	supervisor_give_client(run->supervisor, run->agent->asker);
	run->open_handles++;
	job_close(&run->agent->check, on_check_closed);
}

void run_agent_free(struct run *run)
{
	struct run_agent *agent = run->agent;

	if (!agent)
		return;
	buf_done(&agent->check_results);
	buf_done(&agent->commits);
	close_at(&agent->stream_fd);
	session_done(&agent->session);
	buf_done(&agent->line);
	buf_done(&agent->err_line);
	buf_done(&agent->prompt);
	buf_done(&agent->evidence);
	buf_done(&agent->ask_body);
	buf_done(&agent->tells);
	free(agent);
	run->agent = NULL;
}

/* ---- its environment ---------------------------------------------------------------------------------------- */

struct variables {
	struct run *run;
	const char **items;
	size_t count;
};

static void add_variable(struct variables *list, const char *name, const char *value)
{
	if (value && value[0] && list->count < VARIABLES_MAX)
		list->items[list->count++] = arena_text(&list->run->arena, "%s=%s", name, value);
}

/* Who commits: the operator, without a signature that would ask for a passphrase. */
static void add_git(struct variables *list)
{
	struct git_identity identity = {0};
	const char *home = list->run->supervisor->settings->home.path;
	const char *name = getenv("GIT_AUTHOR_NAME"), *email = getenv("GIT_AUTHOR_EMAIL");

	if (home)
		git_identity_read(&identity, &list->run->arena, home);
	name = name && name[0] ? name : identity.name ? identity.name : "stint";
	email = email && email[0] ? email : identity.email ? identity.email : "stint@localhost";
	add_variable(list, "GIT_AUTHOR_NAME", name);
	add_variable(list, "GIT_AUTHOR_EMAIL", email);
	add_variable(list, "GIT_COMMITTER_NAME", name);
	add_variable(list, "GIT_COMMITTER_EMAIL", email);
	add_variable(list, "GIT_TERMINAL_PROMPT", "0");
	add_variable(list, "GIT_CONFIG_COUNT", "1");
	add_variable(list, "GIT_CONFIG_KEY_0", "commit.gpgsign");
	add_variable(list, "GIT_CONFIG_VALUE_0", "false");
}

const char *const *run_agent_variables(struct run *run)
{
	const struct adapter *adapter = settings_of(run)->adapter;
	struct run_agent *agent = run->agent;
	struct variables list = {
		.run = run, .items = arena_alloc(&run->arena, (VARIABLES_MAX + 1) * sizeof(char *))};

	if (!list.items)
		return NULL;
	for (size_t i = 0; adapter->env && adapter->env[i] && list.count < VARIABLES_MAX; i++) {
		const char *tilde = strstr(adapter->env[i], "=~/");
		list.items[list.count++] = tilde
			? arena_text(&run->arena, "%.*s=%s/%s", (int)(tilde - adapter->env[i]),
				  adapter->env[i], home_of(run), tilde + 3)
			: adapter->env[i];
	}
	/* a key that is meant for a gateway goes to no other place */
	for (size_t i = 0; adapter->gateway && adapter->gateway[i]; i++)
		add_variable(&list, adapter->gateway[i], getenv(adapter->gateway[i]));
	if (agent->login.kind != LOGIN_NONE)
		add_variable(&list, agent->login.variable, agent->login.token);
	add_variable(&list, "STINT_AGENT_SESSION", agent->memory.session);
	add_variable(&list, "STINT_AGENT_RESUMES", agent->resumes ? "1" : "0");
	add_git(&list);
	return list.items;
}

/* ---- its start ---------------------------------------------------------------------------------------------- */

static const char *const *check_names(struct run *run)
{
	const struct agent_settings *settings = settings_of(run);
	const char **names = arena_alloc(&run->arena, (settings->check_count + 1) * sizeof *names);

	for (size_t i = 0; names && i < settings->check_count; i++)
		names[i] = settings->checks[i].name;
	return names;
}

/* All that people told the task so far is in its prompt. */
static void note_told(struct run_agent *agent, yyjson_val *task)
{
	size_t i, count;
	yyjson_val *one;

	yyjson_arr_foreach(yyjson_obj_get(task, "tells"), i, count, one)
	{
		int64_t number = json_int(one, "id");
		agent->memory.told = number > agent->memory.told ? number : agent->memory.told;
	}
	agent->tells_last = agent->memory.told;
}

/* Beside its settings, in its home. */
static const char *keep_text(void *context, const char *name, struct span text)
{
	struct run *run = context;
	const char *file = arena_text(&run->arena, "task/%s", name);

	if (memory_put_file(&run->agent->memory, file, text) < 0)
		return NULL;
	return arena_text(&run->arena, "%s/%s", home_of(run), file);
}

static int make_prompt(struct run *run)
{
	const struct agent_settings *settings = settings_of(run);
	struct run_agent *agent = run->agent;
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(run->input, JSON_REPLY_DEPTH_MAX, &complaint);
	struct prompt_facts facts = {.task = yyjson_doc_get_root(doc),
		.stint = agent->stint,
		.cwd = run->workspace,
		.branch = run->tree ? worktree_record(run->tree)->branch : NULL,
		.resumes = agent->resumes,
		.in_place_of = run->in_place_of,
		.lost = agent->lost,
		.told = agent->memory.told,
		.near = agent->near,
		.progress_every_ms = run->supervisor->options->once
			? run->supervisor->options->once->progress_every_ms
			: 0,
		.checks = check_names(run),
		.keep = keep_text,
		.context = run};

	if (!doc)
		return -ENOMEM;
	buf_clear(&agent->prompt);
	int r = agent->resumes && !agent->turns_to
		? prompt_put_resume(&agent->prompt, &facts)
		: prompt_put(&agent->prompt, settings->prompt ? settings->prompt : prompt_template, &facts);
	if (r == 0)
		r = memory_put_beside(&agent->memory, "prompt.md", buf_span(&agent->prompt));
	if (r == 0)
		note_told(agent, facts.task);
	return r;
}

void run_agent_hide_secrets(struct run *run)
{
	struct agent_session *session = &run->agent->session;

	session_hide(session, run->token);
	session_hide(session, run->agent->login.token);
	for (size_t i = 0; run->executor->env && run->executor->env[i]; i++) {
		const char *equals = strchr(run->executor->env[i], '=');
		bool named = strcasestr(run->executor->env[i], "key") ||
			strcasestr(run->executor->env[i], "token") ||
			strcasestr(run->executor->env[i], "secret") ||
			strcasestr(run->executor->env[i], "password");
		if (equals && named)
			session_hide(session, equals + 1);
	}
}

static void open_stream(struct run *run)
{
	struct run_agent *agent = run->agent;

	agent->stream_fd = open(arena_text(&run->arena, "%s/stream.jsonl", agent->memory.path),
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (agent->stream_fd >= 0)
		agent->stream_bytes = lseek(agent->stream_fd, 0, SEEK_END);
}

static int fill_argv(struct run *run, struct process_spec *spec)
{
	const struct agent_settings *settings = settings_of(run);
	const struct adapter *adapter = settings->adapter;
	struct run_agent *agent = run->agent;
	struct adapter_words *words = arena_alloc(&run->arena, sizeof *words);
	struct adapter_start start = {.program = run->executor->argv,
		.session = agent->memory.session[0] ? agent->memory.session : NULL,
		.resumes = agent->resumes,
		.model = agent->model,
		.prompt_file = arena_text(&run->arena, "%s/home/prompt.md", agent->memory.path),
		.settings = adapter->settings_file
			? arena_text(&run->arena, "%s/%s", home_of(run), adapter->settings_file)
			: NULL,
		.turns_max = (int64_t)run_budget_left(run, BUDGET_TURNS),
		.usd_max = run_budget_left(run, BUDGET_USD),
		.walled = true};

	if (!words)
		return -ENOMEM;
	words->arena = &run->arena;
	adapter->put_argv(words, &start);
	spec->argv = words->items;
	return words->failed ? -E2BIG : 0;
}

int run_agent_fill(struct run *run, struct process_spec *spec)
{
	const struct adapter *adapter = settings_of(run)->adapter;
	struct run_agent *agent = run->agent;

	agent->stint = command_line(run);
	agent->session.cwd = run->workspace;
	if (run->tree)
		snprintf(agent->memory.tree, sizeof agent->memory.tree, "%s",
			worktree_record(run->tree)->name);
	int r = agent->prompt_is_made ? 0 : make_prompt(run);
	if (r == 0)
		r = memory_put_file(&agent->memory, "prompt.md", buf_span(&agent->prompt));
	if (r == 0 && adapter->settings)
		r = memory_put_file(&agent->memory, adapter->settings_file, span_of(adapter->settings));
	if (r == 0)
		r = memory_save(&agent->memory); /* its id is on disk before it runs */
	if (r == 0)
		r = fill_argv(run, spec);
	if (r < 0)
		return r;
	run_agent_hide_secrets(run);
	if (agent->stream_fd < 0)
		open_stream(run);
	if (agent->since_ns == 0) /* the work of all processes of this attempt counts */
		agent->since_ns = changes_mark_ns(run->workspace);
	spec->stdin_from = adapter->talk == TALK_STREAM ? STDIN_PIPE : STDIN_BYTES;
	spec->input = adapter->talk == TALK_STREAM ? (struct span){0} : buf_span(&agent->prompt);
	spec->output_bytes_max[STREAM_OUT] = STREAM_KEPT_BYTES;
	spec->overflow[STREAM_OUT] = OVERFLOW_HOLDS;
	return 0;
}

static void put_first_line(struct run *run)
{
	struct run_agent *agent = run->agent;
	const struct adapter *adapter = settings_of(run)->adapter;
	cleanup(buf_done) struct buf line = {0};

	buf_init(&line, 4096);
	buf_printf(&line, "stint: %s, %s; login: %s", adapter->name,
		agent->resumes        ? "the same session goes on"
			: agent->lost ? "a new session, because the one before cannot be continued"
				      : "a new session",
		login_describe(&agent->login, &run->arena, clock_wall_ms()));
	if (run->in_place_of)
		buf_printf(&line, "; in place of executor %s, whose account is held", run->in_place_of);
	if (run->tree)
		buf_printf(&line, "; branch %s", worktree_record(run->tree)->branch);
	session_note(&agent->session, buf_span(&line));
}

void run_agent_begin(struct run *run)
{
	struct run_agent *agent = run->agent;
	const struct adapter *adapter = settings_of(run)->adapter;

	agent->session.now_ms = worker_clock_ms();
	if (agent->session.start_ms == 0)
		agent->session.start_ms = agent->session.now_ms;
	put_first_line(run);
	agent->dirty = true; /* the server learns that there is a session */
	agent->session.prompt = buf_span(&agent->prompt);
	if (adapter->begin)
		adapter->begin(&agent->session);
	run_agent_move(run);
}

/* ---- what it says ------------------------------------------------------------------------------------------- */

/* The stream as it came. It is for people who look for a mistake: without room on the disk there is none. */
static void keep_line(struct run *run, struct span line)
{
	struct run_agent *agent = run->agent;
	cleanup(buf_done) struct buf text = {0};

	if (agent->stream_fd < 0)
		return;
	if (agent->stream_bytes > STREAM_BYTES_MAX && ftruncate(agent->stream_fd, 0) == 0)
		agent->stream_bytes = 0;
	buf_init(&text, 2 * SESSION_LINE_BYTES_MAX);
	session_put(&agent->session, &text, line);
	buf_put_byte(&text, '\n');
	if (buf_fault(&text) < 0 || file_write_all(agent->stream_fd, buf_span(&text)) < 0)
		close_at(&agent->stream_fd), agent->stream_fd = -1;
	agent->stream_bytes += (int64_t)text.len;
}

static void hear_line(struct run *run, struct span line)
{
	struct agent_session *session = &run->agent->session;
	uint32_t retries = session->retries;

	keep_line(run, line);
	session_hear(session, line, worker_clock_ms());
	if (session->retries == retries) { /* a notice that it tries again is no sign of progress */
		run->heard_ms = worker_clock_ms();
		run->spoke = true;
	}
}

/* Calls for each line; the rest stays in the buffer. A line that is too long is left out. */
static void split(
	struct run *run, struct buf *rest, struct span bytes, void (*each)(struct run *run, struct span line))
{
	while (bytes.len > 0) {
		const char *newline = memchr(bytes.data, '\n', bytes.len);
		size_t len = newline ? (size_t)(newline - bytes.data) : bytes.len;
		if (buf_put(rest, bytes.data, len) < 0)
			run->agent->line_too_long = true;
		bytes.data += len + (newline != NULL);
		bytes.len -= len + (newline != NULL);
		if (!newline)
			return;
		if (run->agent->line_too_long)
			session_note(
				&run->agent->session, SPAN("stint: a line that was too long is left out"));
		else
			each(run, buf_span(rest));
		run->agent->line_too_long = false;
		buf_clear(rest);
	}
}

static void note_error(struct run *run, struct span line)
{
	run->agent->session.now_ms = worker_clock_ms();
	session_note(&run->agent->session, line);
}

static void read_stream(struct run *run, enum process_stream stream)
{
	struct run_agent *agent = run->agent;
	const struct output *output = process_output(run->process, stream);
	struct span part;

	while ((part = output_unread(output, NULL)).len > 0) {
		if (stream == STREAM_OUT && settings_of(run)->adapter->output == OUTPUT_LINES)
			split(run, &agent->line, part, hear_line);
		else if (stream == STREAM_ERR)
			split(run, &agent->err_line, part, note_error);
		process_advance(run->process, stream, part.len);
	}
}

static void upload_log(struct run *run)
{
	struct buf *log = &run->agent->session.log;

	if (log->len > 0)
		output_put(&run->words, buf_span(log));
	buf_clear(log);
	log_upload_look(&run->upload);
}

static void say(struct run *run)
{
	struct buf *reply = &run->agent->session.reply;

	if (reply->len == 0 && buf_fault(reply) == 0)
		return;
	int r = buf_fault(reply) < 0 ? buf_fault(reply) : process_write(run->process, buf_span(reply));
	if (r < 0)
		log_warn("an agent does not read its standard input", log_cstr("task", run->task),
			log_cstr("reason", strerror(-r)));
	buf_clear(reply);
}

/* ---- money and turns ---------------------------------------------------------------------------------------- */

/* Of an agent that counts its whole thread: what earlier processes used is not this one's. */
static struct session_usage usage_of(const struct run *run)
{
	const struct run_agent *agent = run->agent;
	struct session_usage usage = agent->session.usage;

	if (usage.tokens_known) { /* before that it has not said how much its thread has used */
		usage.input_tokens -= agent->memory.thread_input;
		usage.output_tokens -= agent->memory.thread_output;
	}
	run_add_price(run, &usage);
	return usage;
}

struct session_spending run_agent_spending(const struct run *run)
{
	const struct run_agent *agent = run->agent;
	struct session_spending sum = agent->before;
	struct session_usage now = usage_of(run);

	session_usage_add(&sum.usage, &now);
	sum.turns += agent->session.turns;
	sum.tool_calls += agent->session.tool_calls;
	return sum;
}

/* In single quotes, if it is not plain. */
static void put_shell_word(struct buf *out, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:@%+=,";

	if (word[0] && word[strspn(word, plain)] == 0) {
		buf_printf(out, "%s", word);
		return;
	}
	buf_put_byte(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_put_span(out, SPAN("'\\''"));
		else
			buf_put_byte(out, *word);
	}
	buf_put_byte(out, '\'');
}

/* As a person goes on with the session on this host: in its directory, with its home. */
static void put_attach(struct run *run, struct buf *out)
{
	const struct adapter *adapter = settings_of(run)->adapter;
	const char *home = home_of(run);

	buf_printf(out, "cd ");
	put_shell_word(out, run->workspace);
	buf_printf(out, " && HOME=");
	put_shell_word(out, home);
	for (size_t i = 0; adapter->env && adapter->env[i]; i++) {
		const char *tilde = strstr(adapter->env[i], "=~/");
		if (!tilde)
			continue;
		buf_printf(out, " %.*s", (int)(tilde + 1 - adapter->env[i]), adapter->env[i]);
		put_shell_word(out, arena_text(&run->arena, "%s/%s", home, tilde + 3));
	}
	const char *hole = strstr(adapter->by_hand, "%s");
	buf_printf(out, " %.*s", (int)(hole - adapter->by_hand), adapter->by_hand);
	put_shell_word(out, run->agent->session.id);
	buf_printf(out, "%s", hole + 2);
}

static void put_session(struct run *run)
{
	const struct adapter *adapter = settings_of(run)->adapter;
	const struct agent_session *session = &run->agent->session;
	const char *model = run_agent_model(run);
	char host[65] = "";
	cleanup(buf_done) struct buf attach = {0};
	struct json_object object;

	buf_init(&attach, WORDS_BYTES_MAX);
	json_begin(&object, &run->note);
	json_member_string(&object, "id", span_of(run->name));
	json_member_string_if_any(&object, "agentSessionId", span_of(session->id));
	json_member_word(&object, "adapter", adapter->name);
	json_member_string_if_any(&object, "model", span_of(model ? model : ""));
	gethostname(host, sizeof host - 1);
	json_member_string_if_any(&object, "host", span_of(host));
	if (adapter->by_hand && session->id[0] && run->workspace)
		put_attach(run, &attach);
	if (attach.len > 0 && buf_fault(&attach) == 0)
		json_member_string(&object, "attach", buf_span(&attach));
	json_end(&object);
}

static void put_progress(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct session_spending spending = run_agent_spending(run);
	struct json_object object;

	if (!agent->dirty)
		return;
	agent->dirty = false;
	buf_clear(&run->note);
	json_begin(&object, &run->note);
	json_member_string(&object, "workerId", heartbeat_worker_id(run->supervisor->heartbeat));
	json_member_string(&object, "fence", span_of(run->fence));
	bool used = spending.usage.tokens_known || spending.usage.usd_known || spending.turns > 0 ||
		spending.tool_calls > 0;
	if (used && json_put_key(&object, "usage"))
		session_put_usage(&run->note, &spending, agent->session.model);
	if (agent->memory.told > 0)
		json_member_int(&object, "told", agent->memory.told);
	if (json_put_key(&object, "session"))
		put_session(run);
	if (agent->is_main && agent->lost && !agent->prompt_told)
		json_member_word(&object, "note", "the main session cannot be continued: a new one begins");
	if (!agent->prompt_told)
		json_member_string(&object, "prompt", utf8_cut(buf_span(&agent->prompt), PROMPT_BYTES_MAX));
	run->note_waits = json_end(&object) == 0;
	run_send_progress(run);
}

/* ---- its last word ------------------------------------------------------------------------------------------ */

static void close_it(struct run *run)
{
	struct run_agent *agent = run->agent;

	agent->closing = true;
	process_close_stdin(run->process);
	if (run->final_ms == 0)
		run->final_ms = worker_clock_ms() + 10 * 1000;
	run_arm_clock(run);
}

static void nudge(struct run *run)
{
	struct run_agent *agent = run->agent;
	cleanup(buf_done) struct buf text = {0};
	struct prompt_facts facts = {.stint = agent->stint, .near = agent->near};

	agent->nudged = true;
	buf_init(&text, PROMPT_ROOM_BYTES);
	if (prompt_put_nudge(&text, &facts) < 0 || !session_go_on(&agent->session, buf_span(&text))) {
		close_it(run);
		return;
	}
	session_note(&agent->session,
		SPAN("stint: nothing was reported and nothing has changed: asked to go on, once"));
	run->heard_ms = worker_clock_ms();
	say(run);
	run_arm_clock(run);
}

/* What a person has told the task meanwhile is its next turn. */
static void tell(struct run *run)
{
	struct run_agent *agent = run->agent;
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, PROMPT_ROOM_BYTES);
	if (run_put_tells(run, &text) < 0 || !session_go_on(&agent->session, buf_span(&text))) {
		close_it(run);
		return;
	}
	session_note(&agent->session, SPAN("stint: its next turn is what a person has said"));
	run->heard_ms = worker_clock_ms();
	say(run);
	run_arm_clock(run);
}

/* Its turn has ended. Whether it has reported, and what people have told the task, the server knows best: it is asked first. */
static void end_turn(struct run *run)
{
	struct run_agent *agent = run->agent;

	if (agent->closing || agent->looks_to_end)
		return;
	run_look_for_work(run);
	if (agent->session.final == FINAL_BAD || !settings_of(run)->adapter->go_on) {
		close_it(run);
		return;
	}
	agent->looks_to_end = true;
	run_look(run);
}

/* The server has answered, or cannot. */
static void decide_turn(struct run *run)
{
	struct run_agent *agent = run->agent;

	agent->looks_to_end = false;
	agent->worked |= agent->reported;
	if (run_has_tells(run))
		tell(run);
	else if (agent->worked || agent->nudged)
		close_it(run);
	else
		nudge(run);
	upload_log(run);
	put_progress(run);
}

static void settle_gone(struct run *run);

/* What the work has said of its end. */
static void hear_report(struct run_agent *agent, yyjson_val *report)
{
	struct span outcome = json_text(yyjson_obj_get(report, "outcome"));

	agent->reported |= yyjson_is_obj(report);
	agent->reported_trouble =
		yyjson_is_obj(report) && !span_is(outcome, "complete") && !span_is(outcome, "review");
}

void run_agent_see(struct run *run, yyjson_val *task)
{
	struct run_agent *agent = run->agent;

	if (run->phase != RUN_STARTED)
		return;
	hear_report(agent, yyjson_obj_get(task, "report"));
	if (agent->gone) {
		if (agent->looks_to_end)
			settle_gone(run);
		return;
	}
	if (run->stop != STOP_NOT)
		return;
	run_hear_tells(run, task);
	if (agent->looks_to_end) {
		decide_turn(run);
		return;
	}
	if (task)
		run_ask_see(run, task);
	if (session_open_question(&agent->session))
		run_ask(run);
}

void run_agent_move(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct agent_session *session = &agent->session;

	if (run->phase != RUN_STARTED)
		return;
	if (session->turns > 0 || session->lines > 0)
		agent->memory.begun = true;
	say(run);
	run_look_at_budget(run);
	run_ask_withdraw(run);
	if (session_open_question(session))
		run_ask(run);
	if (session->final != FINAL_NONE)
		end_turn(run);
	upload_log(run);
	put_progress(run);
	if (run->phase == RUN_STARTED && run->stop == STOP_NOT)
		run_arm_clock(run); /* it may be silent for another time than before */
}

int64_t run_agent_silent_until_ms(const struct run *run)
{
	const struct run_agent *agent = run->agent;
	int64_t limit_ms = run->spoke ? run->executor->stall_ms : run->executor->start_ms;

	if (agent->closing)
		return INT64_MAX; /* the clock behind its last word counts */
	if (session_has_open_tool(&agent->session))
		limit_ms = settings_of(run)->tool_ms;
	return limit_ms > 0 ? run->heard_ms + limit_ms : INT64_MAX;
}

/* ---- its process -------------------------------------------------------------------------------------------- */

static void on_started(void *context, struct process *process)
{
	struct run *run = context;

	(void)process;
	run->supervisor->troubles = 0;
	run_note(run);
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	struct run *run = context;
	struct agent_session *session = &run->agent->session;
	struct session_usage before = session->usage;
	uint32_t turns = session->turns, calls = session->tool_calls;
	char id[ADAPTER_ID_BYTES];

	(void)process;
	memcpy(id, session->id, sizeof id);
	read_stream(run, stream);
	run->agent->dirty |= before.output_tokens != session->usage.output_tokens ||
		before.input_tokens != session->usage.input_tokens || before.usd != session->usage.usd ||
		turns != session->turns || calls != session->tool_calls || strcmp(id, session->id) != 0;
	run_agent_move(run);
}

/* What the next attempt has to know. */
void run_agent_remember(struct run *run)
{
	struct run_agent *agent = run->agent;
	struct memory *memory = &agent->memory;
	struct session_usage usage = usage_of(run);
	bool stalled = run->stop == STOP_STALLED;

	if (agent->is_counted)
		return;
	agent->is_counted = true;
	if (agent->session.id[0])
		snprintf(memory->session, sizeof memory->session, "%s", agent->session.id);
	/* nothing came of the resume: the id is not known there any more, and another session begins */
	if (session_is_unknown(&agent->session) && run->stop == STOP_NOT)
		memory->session[0] = 0;
	memory->stalls = stalled ? memory->stalls + 1 : 0;
	memory->usd_total = agent->session.agent_usd > 0 ? agent->session.agent_usd : memory->usd_total;
	memory->usd_spent += usage.usd;
	memory->tokens_spent += usage.input_tokens + usage.output_tokens + usage.cache_write_tokens;
	memory->turns_spent += agent->session.turns;
	memory->tool_calls_spent += agent->session.tool_calls;
	if (settings_of(run)->adapter->counts_thread && agent->session.usage.tokens_known) {
		memory->thread_input = agent->session.usage.input_tokens;
		memory->thread_output = agent->session.usage.output_tokens;
	}
	if (memory_save(memory) < 0)
		log_warn("the session of an agent cannot be written down", log_cstr("task", run->task));
}

static int judge(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	struct run_agent *agent = run->agent;
	cleanup(buf_done) struct buf err = {0};

	buf_init(&err, WORDS_BYTES_MAX);
	struct process_end ended = *process_end(run->process);
	ended.stop_asked |=
		agent->was_checked && run->stop != STOP_NOT; /* it was stopped while it was judged */
	int r = output_tail(process_output(run->process, STREAM_ERR), WORDS_BYTES_MAX, &err);
	struct attempt_end attempt = {.stop = run->stop,
		.end = &ended,
		.err = buf_span(&err),
		.limit_ms = run->limit_ms,
		.limit_is_budget = run->timeout_is_budget,
		.limits = &run->executor->limits,
		.wall_ms = clock_wall_ms()};
	struct session_end end = {.session = &agent->session,
		.attempt = &attempt,
		.worked = agent->worked,
		.account = settings_of(run)->credential,
		.over = agent->over,
		.over_limit = agent->over_limit,
		.asked_for_budget = agent->asked_for_budget,
		.check_code = agent->check_code,
		.check_failed = agent->check_failed,
		.checks_passed = agent->checks_passed,
		.undelivered = agent->undelivered,
		.evidence = buf_span(&agent->evidence)};
	return r < 0 ? r : session_judge(&end, ret_verb, members);
}

/* What came last, without a newline; the whole answer of an agent that says nothing before; and its end as its last word. */
static void hear_end(struct run *run, const struct process_end *end)
{
	struct run_agent *agent = run->agent;
	const struct adapter *adapter = settings_of(run)->adapter;
	cleanup(buf_done) struct buf all = {0};

	read_stream(run, STREAM_OUT);
	read_stream(run, STREAM_ERR);
	if (agent->line.len > 0 && !agent->line_too_long)
		hear_line(run, buf_span(&agent->line));
	if (agent->err_line.len > 0)
		note_error(run, buf_span(&agent->err_line));
	buf_init(&all, STREAM_KEPT_BYTES);
	if (output_tail(process_output(run->process, STREAM_OUT),
		    adapter->output == OUTPUT_WHOLE ? STREAM_KEPT_BYTES : RESULT_BYTES_MAX, &all) == 0)
		session_hear_all(&agent->session, buf_span(&all), worker_clock_ms());
	if (adapter->ended && end->how == ENDED_EXIT && run->stop == STOP_NOT)
		adapter->ended(&agent->session, end->code);
}

/* What it took of the minutes of its task: without the time in which it waited for people. */
static void note_time(struct run *run)
{
	struct memory *memory = &run->agent->memory;
	int64_t took_ms = worker_clock_ms() - run->claimed_ms - run->waited_ms;

	memory->ms_spent += took_ms > 0 ? took_ms : 0;
	if (memory_save(memory) < 0)
		log_warn("what an agent has used cannot be written down", log_cstr("task", run->task));
}

/* Nothing of it runs any more, its checks included. */
static void end_attempt(struct run *run)
{
	const struct process_end *end = process_end(run->process);

	run_close_sockets(run);
	if (end->how != ENDED_UNSTARTED)
		run_look_for_work(run);
	run->agent->dirty = true;
	put_progress(run);
	upload_log(run);
	run_agent_remember(run);
	note_time(run);
	run_end(run, end, judge);
}

/* Does it say that the work is done? Or is its budget spent? Then the work in hand is judged. */
static bool is_to_judge(const struct run *run, const struct process_end *end)
{
	struct attempt_end attempt = {.stop = run->stop, .end = end};
	struct session_end said = {.session = &run->agent->session, .attempt = &attempt, .worked = true};

	if (run->stop != STOP_NOT && run->stop != STOP_FINAL)
		return false;
	return run->agent->over ? run->agent->worked : session_went_well(&said);
}

static void after_checks(struct run *run)
{
	struct run_agent *agent = run->agent;

	upload_log(run);
	if (agent->over && !agent->checks_passed) {
		if (!run_ask_for_budget(run, end_attempt))
			end_attempt(run);
	} else if (!run_deliver(run, end_attempt)) {
		end_attempt(run);
	}
}

/* Nothing of its process is left, and no other one goes on. */
static void finish_work(struct run *run)
{
	struct run_agent *agent = run->agent;

	if (agent->over)
		run_look_for_work(run); /* it was ended in the middle of its turn */
	if (!is_to_judge(run, process_end(run->process))) {
		if (!run_ask_for_budget(run, end_attempt))
			end_attempt(run);
		return;
	}
	run->stop = STOP_NOT; /* its last word was heard: from here on a stop is another one */
	agent->was_checked = true;
	run_look_for_work(run);
	if (settings_of(run)->check_count > 0)
		run_check_work(run, after_checks);
	else
		after_checks(run);
	upload_log(run);
}

static void settle_gone(struct run *run)
{
	struct run_agent *agent = run->agent;

	agent->looks_to_end = false;
	agent->worked |= agent->reported;
	if (!run_agent_goes_on(run))
		finish_work(run);
}

/* Before a process that ends with its turn counts as the end the server is asked: perhaps there is a reason to go on. */
static void on_gone(void *context, struct process *process)
{
	struct run *run = context;
	struct run_agent *agent = run->agent;

	uv_timer_stop(&run->clock);
	uv_timer_stop(&run->note_timer);
	hear_end(run, process_end(process));
	agent->gone = true;
	agent->looks_to_end = run_agent_may_go_on(run);
	if (agent->looks_to_end) {
		run_look_for_work(run);
		run_look(run);
	} else {
		settle_gone(run);
	}
}

const struct process_events run_agent_events = {
	.started = on_started,
	.output = on_output,
	.gone = on_gone,
};

/* ---- afterwards --------------------------------------------------------------------------------------------- */

static bool is_final(struct span state)
{
	return span_is(state, "done") || span_is(state, "failed") || span_is(state, "cancelled");
}

void run_agent_settled(struct run *run, struct span state)
{
	struct memory *memory = &run->agent->memory;

	if (!is_final(state) || run->agent->is_main) /* the main session is for the next task, too */
		return;
	if (memory->tree[0])
		leftovers_add_name(&run->supervisor->leftovers, memory->tree);
	memory->final_ms = clock_wall_ms();
	if (memory_save(memory) < 0)
		log_warn("what an agent left cannot be marked as done with", log_cstr("task", run->task));
}
