#include "worker/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/find/find.h"
#include "agent/settings.h"
#include "attempt/job.h"
#include "attempt/reach.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/take.h"
#include "worker/settings/flags.h"

enum {
	AGENTS_MAX = EXECUTORS_MAX,
	VERSION_MS = 15 * 1000,
	ARENA_BYTES = 8 << 20,
	OUT_BYTES_MAX = 1 << 20,
	TOKEN_BYTES_MAX = 16 << 10,
	SERVER_MS = 10 * 1000,
	ATTEMPT_MS = 30 * 60 * 1000, /* so long a login must last to be of use */
};

/* One agent of this machine. */
struct agent_found {
	const char *name; /* of the executor */
	const struct adapter *adapter;
	const struct executor *executor; /* that the configuration or the search has made */
	const char *program;             /* NULL: it is not there */
	char version[48];                /* "": not known */
	char why[300];                   /* why not */
	struct login login;
	struct job job;
	struct agent_look *look;
	struct reach reach;
	struct grant_list grants;
};

struct agent_look {
	const struct settings *settings;
	const struct agents_request *request;
	struct arena arena;
	uv_loop_t loop;
	struct host *host;
	struct agent_found items[AGENTS_MAX];
	uint32_t count, running, closing;
	int probe_fd;
	char probe[4096];
	char complaint[HOST_COMPLAINT_BYTES];
};

/* ---- what there is ------------------------------------------------------------------------------------------ */

static void add(struct agent_look *look, const struct executor *executor)
{
	const struct settings *settings = look->settings;
	struct agent_found *found = &look->items[look->count++];

	*found = (struct agent_found){.name = executor->name,
		.adapter = executor->agent->adapter,
		.executor = executor,
		.look = look};
	found->program = program_find(&settings->place, &look->arena, executor->argv[0], true);
	if (found->program && access(found->program, X_OK) < 0)
		found->program = NULL;
	login_find(&found->login, &look->arena, found->adapter, executor->env, settings->home.path,
		look->request->home, clock_wall_ms() + ATTEMPT_MS);
}

/* ---- its version -------------------------------------------------------------------------------------------- */

static void on_closed(void *context)
{
	struct agent_found *found = context;

	found->look->closing--;
}

static void on_version(void *context)
{
	struct agent_found *found = context;
	struct span said = buf_span(&found->job.out);

	found->look->running--;
	if (!job_went_well(&found->job))
		job_explain(&found->job, found->why, sizeof found->why);
	else if (adapter_version(said, found->version, sizeof found->version) == 0)
		snprintf(found->why, sizeof found->why, "it says no version: %.*s",
			(int)(said.len < 100 ? said.len : 100), said.data ? said.data : "");
}

/* What a person has written may know no --version, and begin to work instead. */
static bool has_version(const struct adapter *adapter)
{
	return adapter->tried_from != NULL;
}

/* Confined as an attempt would be: what it says is what an attempt gets. */
static int ask_version(struct agent_found *found, const char *run)
{
	struct agent_look *look = found->look;
	const struct settings *settings = look->settings;
	const char *argv[] = {found->executor->argv[0], "--version", NULL};
	const char *env[] = {arena_text(&look->arena, "HOME=%s/home", look->probe),
		arena_text(&look->arena, "TMPDIR=%s/tmp", look->probe), "DISABLE_AUTOUPDATER=1",
		arena_text(&look->arena, "PATH=%s", settings->path_text), NULL};
	static const char *const allow[] = {"LANG", NULL};
	struct process_spec spec = process_spec_default();

	int r = reach_look(&found->reach, &look->arena, &settings->place, found->executor,
		found->executor->argv, WALL_PROCESS);
	if (r == 0)
		r = grants_begin(&found->grants, &look->arena, found->executor, look->probe, look->probe_fd);
	if (r < 0)
		return r;
	grants_add_executor(&found->grants, found->executor);
	r = reach_grant(
		&found->reach, &look->arena, &settings->place, found->executor, WALL_PROCESS, &found->grants);
	cleanup(close_at) int dir_fd =
		open(arena_text(&look->arena, "%s/tmp", look->probe), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r < 0 || dir_fd < 0)
		return r < 0 ? r : -errno;
	spec.run = run;
	spec.argv = argv;
	spec.program = found->program;
	spec.env = env;
	spec.env_allow = allow;
	spec.workdir_fd = dir_fd;
	spec.confine.limits = found->executor->limits;
	spec.confine.grants = found->grants.items;
	spec.confine.grant_count = found->grants.count;
	spec.confine.keep_out = look->request->home;
	return job_start(&found->job, &spec, VERSION_MS, on_version);
}

static int open_probe(struct agent_look *look)
{
	static const char *const names[] = {"home", "tmp"};

	for (size_t i = 0; i < 2; i++) {
		snprintf(look->probe, sizeof look->probe, "%s/agents/.probe/%s", look->request->home,
			names[i]);
		int r = directory_make(look->probe);
		if (r < 0)
			return r;
	}
	*strrchr(look->probe, '/') = 0;
	look->probe_fd = open(look->probe, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return look->probe_fd < 0 ? -errno : 0;
}

/* All at once: some take seconds to say it. */
static void ask_versions(struct agent_look *look)
{
	struct host_options options = {.landlock_optional = look->settings->landlock_optional};

	if (open_probe(look) < 0 || uv_loop_init(&look->loop) < 0)
		return;
	if (host_open(&look->loop, &options, &look->host, look->complaint) < 0)
		return;
	for (uint32_t i = 0; i < look->count; i++) {
		struct agent_found *found = &look->items[i];
		job_init(&found->job, &look->loop, look->host, found);
		bool asks = found->program && has_version(found->adapter);
		int r = asks ? ask_version(found, arena_text(&look->arena, "agent-%d-%u", (int)getpid(), i))
			     : 0;
		if (r == 0)
			look->running += asks;
		else
			snprintf(found->why, sizeof found->why, "it cannot be started: %s", strerror(-r));
	}
	while (look->running > 0)
		uv_run(&look->loop, UV_RUN_ONCE);
	for (uint32_t i = 0; i < look->count; i++) {
		look->closing++;
		job_close(&look->items[i].job, on_closed);
	}
	host_close(look->host);
	while (uv_run(&look->loop, UV_RUN_DEFAULT))
		;
	uv_loop_close(&look->loop);
}

/* ---- what is said of it ------------------------------------------------------------------------------------- */

static const char *version_text(struct agent_look *look, const struct agent_found *found)
{
	if (!found->program)
		return "not installed";
	if (!has_version(found->adapter))
		return "version not asked";
	if (!found->version[0])
		return "version unknown";
	return adapter_has_tried(found->adapter, found->version)
		? found->version
		: arena_text(&look->arena, "%s (untried)", found->version);
}

static void put_json(struct agent_look *look, struct buf *out, const struct agent_found *found)
{
	static const char *const kinds[] = {
		[LOGIN_NONE] = "none", [LOGIN_KEY] = "key", [LOGIN_PERSON] = "person", [LOGIN_OWN] = "own"};
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "name", span_of(found->name));
	json_member_word(&object, "adapter", found->adapter->name);
	json_member_string_or_null(&object, "program", span_of(found->program));
	json_member_string_or_null(&object, "version", span_of(found->version));
	json_member_bool(&object, "tried",
		found->version[0] && found->adapter->tried_from &&
			adapter_has_tried(found->adapter, found->version));
	json_member_word(&object, "login", kinds[found->login.kind]);
	json_member_string(
		&object, "loginText", span_of(login_describe(&found->login, &look->arena, clock_wall_ms())));
	json_member_bool(&object, "resumes", found->adapter->resumes);
	json_member_bool(&object, "asks", found->adapter->asks);
	json_member_string_or_null(&object, "problem", span_of(found->why));
	json_end(&object);
}

static void put_row(struct agent_look *look, struct buf *out, const struct agent_found *found)
{
	buf_printf(out, "%-12s %-18s %s\n", found->name, version_text(look, found),
		login_describe(&found->login, &look->arena, clock_wall_ms()));
}

/* What to type if it has no login. */
static void put_login_hint(struct buf *out, const struct agent_found *found)
{
	if (found->login.kind == LOGIN_NONE && found->adapter->login.variable)
		buf_printf(out, "  try  stint agent login %s   (with %s)\n", found->name,
			found->adapter->login.command);
}

static void put_details(struct agent_look *look, struct buf *out, const struct agent_found *found)
{
	const struct adapter *adapter = found->adapter;

	put_row(look, out, found);
	buf_printf(out, "program   %s\n",
		found->program ? found->program : "not found in PATH or where installers put it");
	buf_printf(out, "adapter   %s, tried with %s to %s\n", adapter->name,
		adapter->tried_from ? adapter->tried_from : "no version",
		adapter->tried_to ? adapter->tried_to : "none");
	buf_printf(out, "session   %s\n",
		adapter->resumes ? "goes on in every attempt of a task" : "begins anew in every attempt");
	buf_printf(out, "policy    %s\n",
		!adapter->asks ? "cannot ask: everything that isolation lets it do is allowed"
			: policy_asks(&found->executor->agent->policy)
			? "asks or denies by its rules"
			: "everything that isolation lets it do is allowed");
	buf_printf(out, "home      %s/agents/TASK/home, one for each task\n", look->request->home);
	buf_printf(out,
		"granted   its work directory, its home, its program with the tree it is installed in, and what \"read\" and "
		"\"write\" of the executor add\n");
	if (found->why[0])
		buf_printf(out, "problem   %s\n", found->why);
	put_login_hint(out, found);
}

/* ---- the actions -------------------------------------------------------------------------------------------- */

static int print(const struct buf *out)
{
	struct span text = buf_span(out);

	fwrite(text.data, 1, text.len, stdout);
	return buf_fault(out) < 0 ? EXIT_UNAVAILABLE : 0;
}

static int list(struct agent_look *look)
{
	cleanup(buf_done) struct buf out = {0};
	bool any = false;

	buf_init(&out, OUT_BYTES_MAX);
	if (look->request->json)
		buf_put_span(&out, SPAN("{\"agents\":["));
	else if (look->count > 0)
		buf_printf(&out, "%-12s %-18s %s\n", "AGENT", "VERSION", "LOGIN");
	for (uint32_t i = 0; i < look->count; i++) {
		if (look->request->json) {
			json_put_comma(&out, &any);
			put_json(look, &out, &look->items[i]);
		} else {
			put_row(look, &out, &look->items[i]);
			put_login_hint(&out, &look->items[i]);
		}
	}
	if (look->request->json)
		buf_put_span(&out, SPAN("]}\n"));
	else if (look->count == 0)
		buf_printf(&out,
			"no agent is installed here (looked for claude, codex, gemini, opencode and openclaw)\n");
	return print(&out);
}

static struct agent_found *find(struct agent_look *look, const char *name)
{
	for (uint32_t i = 0; i < look->count; i++)
		if (strcmp(look->items[i].name, name) == 0)
			return &look->items[i];
	return NULL;
}

/* ---- an account that is held because its login failed --------------------------------------------------------- */

static int call_server(struct http_client *client, const struct server_place *place, enum http_method method,
	const char *target, struct http_answer **ret_answer)
{
	struct http_call call = {.method = method,
		.target = span_of(target),
		.token = span_of(place->token),
		.may_repeat = true,
		.timeout_ms = SERVER_MS};
	enum http_reach reach;
	int r = http_client_call(client, &call, ret_answer, &reach);

	return r < 0 ? r : http_answer_status(*ret_answer);
}

static bool is_held_for_login(struct span holds, const char *account)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(holds, &complaint);
	size_t i, count;
	yyjson_val *hold;

	yyjson_arr_foreach(yyjson_doc_get_root(doc), i, count, hold)
	{
		if (yyjson_equals_str(yyjson_obj_get(hold, "credential"), account) &&
			yyjson_equals_str(yyjson_obj_get(hold, "state"), "held") &&
			yyjson_equals_str(yyjson_obj_get(hold, "code"), "AUTH"))
			return true;
	}
	return false;
}

/* The login works, as far as can be seen: its tasks may try it. Without a server there is no hold. */
static void end_hold(struct agent_look *look, const char *account)
{
	static struct server_place place;
	struct http_answer_limits limits = http_answer_limits_default();
	struct server_place_flags server = look->request->server;
	char complaint[SERVER_PLACE_COMPLAINT_BYTES];
	struct http_answer *answer;

	server.looks = true;
	if (!account || server_place_find(&server, look->request->home, &place, complaint) < 0)
		return;
	struct http_client *client = http_client_new(&place.address, &limits);
	int status = client ? call_server(client, &place, HTTP_METHOD_GET, "/api/holds", &answer) : -ENOMEM;
	if (status == 200 && is_held_for_login(http_answer_body(answer), account)) {
		const char *target = arena_text(&look->arena, "/api/holds/%s", account);
		status = call_server(client, &place, HTTP_METHOD_DELETE, target, &answer);
		if (status == 200 && !look->request->json)
			printf("its account %s was held for its login, and is so no more\n", account);
		else
			worker_complain(
				"its account %s is still held; try  stint hold rm %s", account, account);
	}
	http_client_free(client);
}

static int show(struct agent_look *look, const struct agent_found *found, bool tests)
{
	cleanup(buf_done) struct buf out = {0};
	bool works = found->program && !found->why[0] &&
		(found->login.kind != LOGIN_NONE || !found->adapter->login.variable);

	buf_init(&out, OUT_BYTES_MAX);
	if (look->request->json) {
		put_json(look, &out, found);
		buf_put_byte(&out, '\n');
	} else if (tests) {
		buf_printf(&out, "%s %s: %s\n", found->name, works ? "can be started" : "does not work",
			!found->program ? "its program is not there"
				: found->why[0]
				? found->why
				: login_describe(&found->login, &look->arena, clock_wall_ms()));
		put_login_hint(&out, found);
	} else {
		put_details(look, &out, found);
	}
	int r = print(&out);
	if (r == 0 && tests && works)
		end_hold(look, found->executor->agent->credential);
	return r ? r : tests && !works;
}

static int keep_login(const struct agents_request *request, const struct adapter *adapter)
{
	cleanup(buf_done) struct buf text = {0};
	char block[4096];
	ssize_t got;

	if (!adapter->login.variable)
		return worker_complain(
			"%s has no login of its own: give it what it needs with \"env\" of its executor",
			adapter->name);
	if (isatty(STDIN_FILENO))
		fprintf(stderr, "Paste a token from %s, then Ctrl-D:\n", adapter->login.command);
	buf_init(&text, TOKEN_BYTES_MAX);
	while ((got = read(STDIN_FILENO, block, sizeof block)) > 0)
		buf_put(&text, block, (size_t)got);
	struct span token = buf_span(&text);
	while (token.len > 0 && strchr(" \t\r\n", token.data[token.len - 1]))
		token.len--;
	if (token.len == 0 || memchr(token.data, '\n', token.len))
		return worker_complain(
			"standard input has no token, or more than one line: pipe the token of %s in",
			adapter->login.command);
	int r = login_keep(request->home, adapter, token);
	if (r < 0)
		return worker_complain(
			"the token cannot be kept in %s/logins: %s", request->home, strerror(-r));
	printf("kept for %s, which gets it as %s\n", adapter->name, adapter->login.variable);
	return 0;
}

static int act(struct agent_look *look)
{
	const struct agents_request *request = look->request;
	bool lists = !request->action || strcmp(request->action, "ls") == 0, tests = false;

	if (lists) {
		ask_versions(look);
		return list(look);
	}
	tests = strcmp(request->action, "test") == 0;
	if (!tests && strcmp(request->action, "show") != 0 && strcmp(request->action, "login") != 0)
		return worker_complain(
			"agent %s is not known; there are ls, show, test and login", request->action);
	if (!request->name)
		return worker_complain(
			"agent %s wants the name of an agent: stint agent ls lists them", request->action);
	struct agent_found *found = find(look, request->name);
	const struct adapter *adapter = found ? found->adapter : adapter_find(request->name);
	if (adapter && strcmp(request->action, "login") == 0)
		return keep_login(request, adapter);
	if (!found) {
		worker_complain(
			"there is no agent \"%s\" here: stint agent ls lists those there are", request->name);
		return 3;
	}
	look->items[0] = *found; /* the others need not be asked */
	look->count = 1;
	ask_versions(look);
	return show(look, &look->items[0], tests);
}

int agents_run(const struct settings *settings, const struct agents_request *request)
{
	static struct agent_look look;

	look = (struct agent_look){.settings = settings, .request = request, .probe_fd = -1};
	arena_init(&look.arena, ARENA_BYTES);
	for (uint32_t i = 0; i < settings->executor_count && look.count < AGENTS_MAX; i++)
		if (settings->executors[i].agent)
			add(&look, &settings->executors[i]);
	int status = act(&look);
	close_at(&look.probe_fd);
	arena_done(&look.arena);
	return status;
}
