/*
 * stint import pm2: what the apps of a PM2 ecosystem file are here.
 *
 * PM2 keeps processes alive; stint runs tasks. So an app is one of three things:
 *
 *	cron_restart, autorestart false      a job by the clock: a schedule of the server
 *	SLOT_ID in its env, or --slot         the worker of a slot: a command that starts stint-worker in its place
 *	anything else                         an executor of a worker's configuration: each task starts the program once
 *
 * Schedules are made; the configuration is printed, or written to a new file, because executors belong to the operator of a worker. The
 * file is read as JSON and never run: an ecosystem.config.js is a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/take.h"
#include "cli/import/intake.h"
#include "cli/verb/verbs.h"
#include "wire/form/form.h"

enum {
	WORDS_MAX = 128,
	NOTES_MAX = 8,
	APPS_MAX = 200,
	CONFIG_BYTES_MAX = 4 << 20,
};

enum becomes { BECOMES_EXECUTOR, BECOMES_SCHEDULE, BECOMES_SLOT };

struct app {
	struct intake_place place;
	yyjson_val *value;
	const char *name, *cwd, *slot, *cron;
	enum becomes becomes;
	const char *words[WORDS_MAX + 1]; /* what is run */
	size_t word_count;
	const char *notes[NOTES_MAX]; /* what PM2 did that stint does otherwise */
	size_t note_count;
	const char *outcome; /* of a schedule */
};

struct pm2 {
	struct cli *cli;
	const char *file, *directory; /* of the file: relative paths begin there */
	struct app apps[APPS_MAX];
	size_t count;
	uint64_t scheduled, existing;
	bool dry_run;
};

static void note(struct app *app, const char *text)
{
	if (app->note_count < NOTES_MAX)
		app->notes[app->note_count++] = text;
}

/* ---- words ---------------------------------------------------------------------------------------------------------- */

static void add_word(struct pm2 *pm2, struct app *app, const char *word)
{
	if (app->word_count == WORDS_MAX)
		intake_die(pm2->cli, app->place, "%s has more than %d words", app->name, WORDS_MAX);
	app->words[app->word_count++] = word;
}

/* The words of a text, as PM2 takes it apart: at spaces, but not within quotes. */
static void split_words(struct pm2 *pm2, struct app *app, struct span text, const char *key)
{
	char *word = arena_alloc(&pm2->cli->arena, text.len + 1), quote = 0;
	size_t len = 0;
	bool any = false;

	if (!word)
		cli_exit(pm2->cli, cli_fail_fault(pm2->cli, -ENOMEM));
	for (size_t i = 0; i <= text.len; i++) {
		char byte = i < text.len ? text.data[i] : ' ';
		if (quote && i < text.len) {
			if (byte == quote)
				quote = 0;
			else
				word[len++] = byte;
		} else if (byte == '"' || byte == '\'') {
			quote = byte;
			any = true;
		} else if (strchr(" \t\n", byte)) {
			if (any)
				add_word(pm2, app, cli_text(pm2->cli, "%.*s", (int)len, word));
			len = 0;
			any = false;
		} else {
			word[len++] = byte;
			any = true;
		}
	}
	if (quote)
		intake_die(
			pm2->cli, app->place, "\"%s\" of %s has a quote that does not end", key, app->name);
}

/* A text, or a list of words. */
static void add_words(struct pm2 *pm2, struct app *app, const char *key)
{
	yyjson_val *value = field_get(app->value, key), *word;
	size_t i, limit;

	if (yyjson_is_str(value)) {
		split_words(pm2, app, json_text(value), key);
		return;
	}
	if (value && !yyjson_is_null(value) && !yyjson_is_arr(value))
		intake_die(pm2->cli, app->place, "\"%s\" of %s must be a text, or a list of texts", key,
			app->name);
	yyjson_arr_foreach(value, i, limit, word)
	{
		if (!yyjson_is_str(word))
			intake_die(pm2->cli, app->place, "\"%s\" of %s must be a text, or a list of texts",
				key, app->name);
		add_word(pm2, app, yyjson_get_str(word));
	}
}

static const char *text_of(struct pm2 *pm2, const struct app *app, const char *key)
{
	struct span text = intake_text(pm2->cli, app->place, app->value, key);

	return text.len > 0 ? cli_text(pm2->cli, "%.*s", SPAN_ARGS(text)) : NULL;
}

static const char *path_from(struct cli *cli, const char *directory, const char *path)
{
	const char *home = getenv("HOME");

	if (strncmp(path, "~/", 2) == 0 && home && home[0] == '/')
		return cli_text(cli, "%s/%s", home, path + 2);
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (strcmp(path, ".") == 0 || !path[0])
		return directory;
	return path[0] == '/' ? path : cli_text(cli, "%s/%s", directory, path);
}

/* Who runs a script: PM2 goes by the end of its name, too. NULL: it runs itself. */
static const char *interpreter_of(struct pm2 *pm2, const struct app *app, const char *script)
{
	static const struct {
		const char *end, *program;
	} known[] = {{".js", "node"}, {".mjs", "node"}, {".cjs", "node"}, {".ts", "bun"}, {".py", "python3"},
		{".sh", "bash"}, {".rb", "ruby"}, {".pl", "perl"}, {".php", "php"}, {".lua", "lua"}};
	const char *given = text_of(pm2, app, "interpreter"), *dot = strrchr(script, '.');

	if (!given)
		given = text_of(pm2, app, "exec_interpreter");
	if (given)
		return strcmp(given, "none") == 0 ? NULL : given;
	for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++) {
		if (strcmp(dot, known[i].end) == 0)
			return known[i].program;
	}
	return NULL;
}

/* A script that is no file is a program of PATH, as "npm". */
static void take_words(struct pm2 *pm2, struct app *app, const char *script)
{
	const char *path = path_from(pm2->cli, app->cwd, script);
	const char *interpreter = interpreter_of(pm2, app, script);
	bool is_program = !strchr(script, '/') && access(path, F_OK) != 0 && !interpreter;

	if (interpreter) {
		add_word(pm2, app, interpreter);
		add_words(pm2, app, "interpreter_args");
		add_words(pm2, app, "node_args");
	}
	add_word(pm2, app, is_program ? script : path);
	add_words(pm2, app, "args");
}

/* ---- an app -------------------------------------------------------------------------------------------------------------- */

static bool is_slot_flag(const char *word)
{
	return strcmp(word, "--slot") == 0;
}

/* Which slot does it fill? NULL: none. */
static const char *slot_of(struct pm2 *pm2, const struct app *app)
{
	struct span slot = field_text(field_get(app->value, "env"), "SLOT_ID");

	if (slot.len > 0)
		return cli_text(pm2->cli, "%.*s", SPAN_ARGS(slot));
	for (size_t i = 0; i + 1 < app->word_count; i++) {
		if (is_slot_flag(app->words[i]))
			return app->words[i + 1];
	}
	return NULL;
}

/* What PM2 does and stint does in another way, or not. */
static void take_notes(struct pm2 *pm2, struct app *app)
{
	bool restarts = !yyjson_is_false(field_get(app->value, "autorestart"));

	if (app->becomes == BECOMES_EXECUTOR && restarts)
		note(app,
			"PM2 keeps it running for ever; here each task runs it once, and it must end. A server that never ends stays with PM2 or "
			"systemd");
	if (app->becomes == BECOMES_EXECUTOR && text_of(pm2, app, "cron_restart"))
		note(app, "cron_restart of a program that is kept running is not taken over");
	if (field_get(app->value, "max_restarts") || field_get(app->value, "min_uptime") ||
		field_get(app->value, "restart_delay"))
		note(app,
			app->becomes == BECOMES_SLOT
				? "restarts: a slot that crashes three times in a minute is quarantined (stint slot ls)"
				: "restarts: a task is tried again after 10 s, 20 s … 5 min, maxAttempts times (stint add --max-attempts)");
	if (yyjson_is_true(field_get(app->value, "watch")) || yyjson_is_arr(field_get(app->value, "watch")))
		note(app, "watch is not taken over");
	if (field_get(app->value, "out_file") || field_get(app->value, "error_file") ||
		field_get(app->value, "output"))
		note(app, "what it prints is in stint logs ID");
}

static void take_app(struct pm2 *pm2, yyjson_val *value, struct intake_place place)
{
	struct cli *cli = pm2->cli;

	if (pm2->count == APPS_MAX)
		intake_die(cli, place, "more than %d apps", APPS_MAX);
	struct app *app = &pm2->apps[pm2->count];
	*app = (struct app){.place = place, .value = value, .name = "the app"};
	if (!yyjson_is_obj(value))
		intake_die(
			cli, place, "an app must be an object, as {\"name\":\"api\",\"script\":\"api.js\"}");
	const char *script = text_of(pm2, app, "script"), *name = text_of(pm2, app, "name"),
		   *cwd = text_of(pm2, app, "cwd");
	if (!script)
		intake_die(cli, place, "the app%s%s has no \"script\"", name ? " " : "", name ? name : "");
	const char *slash = strrchr(script, '/'), *base = slash ? slash + 1 : script;
	app->name = name ? name : cli_text(cli, "%.*s", (int)strcspn(base, "."), base);
	if (!text_is_id(span_of(app->name)))
		intake_die(cli, place,
			"\"name\" of an app must have letters, digits, '.', '_', ':' or '-', and begin with a letter or digit; it is %s",
			cli_quote(cli, app->name));
	for (size_t i = 0; i < pm2->count; i++) {
		if (strcmp(pm2->apps[i].name, app->name) == 0)
			intake_die(cli, place, "there are two apps with the name %s", app->name);
	}
	app->cwd = path_from(cli, pm2->directory, cwd ? cwd : ".");
	take_words(pm2, app, script);
	app->cron = text_of(pm2, app, "cron_restart");
	app->slot = slot_of(pm2, app);
	app->becomes = app->slot                                                ? BECOMES_SLOT
		: app->cron && yyjson_is_false(field_get(value, "autorestart")) ? BECOMES_SCHEDULE
										: BECOMES_EXECUTOR;
	take_notes(pm2, app);
	pm2->count++;
}

static void read_file(struct pm2 *pm2)
{
	struct cli *cli = pm2->cli;
	const char *path = args_plain(&cli->args, 0), *slash, *dot = strrchr(path, '.');
	struct intake_walk walk;
	struct intake_place place;

	if (dot && (strcmp(dot, ".js") == 0 || strcmp(dot, ".cjs") == 0 || strcmp(dot, ".mjs") == 0))
		cli_die(cli, EXIT_USAGE, "usage", NULL,
			"%s is a program, and stint runs none to read a configuration. Make JSON of it: "
			"node -p 'JSON.stringify(require(\"%s%s\"),null,2)' > ecosystem.json",
			path, path[0] == '/' || path[0] == '.' ? "" : "./", path);
	pm2->file = path;
	const char *full = strcmp(path, "-") == 0 ? cli_path(cli, "./-") : cli_path(cli, path);
	slash = full ? strrchr(full, '/') : NULL;
	pm2->directory = slash && slash > full ? cli_text(cli, "%.*s", (int)(slash - full), full) : "/";
	struct span text = intake_read_file(cli, path);
	if (intake_walk_open(&walk, cli, path, text, "apps")) {
		for (yyjson_val *value; (value = intake_walk_next(&walk, &place));)
			take_app(pm2, value, place);
	} else
		take_app(pm2, intake_read_value(cli, path, text, text), intake_place(path, text, 0));
}

/* ---- schedules -------------------------------------------------------------------------------------------------------- */

static void put_env(struct json_object *task, const struct app *app)
{
	yyjson_val *env = field_get(app->value, "env"), *key, *value;
	struct json_object object;
	size_t i, limit;

	if (!yyjson_is_obj(env) || yyjson_obj_size(env) == 0)
		return;
	json_put_key(task, "env");
	json_begin(&object, task->buf);
	yyjson_obj_foreach(env, i, limit, key, value)
	{
		/* PM2 makes texts of numbers and booleans */
		json_put_key(&object, yyjson_get_str(key));
		if (yyjson_is_str(value))
			json_put_value(object.buf, value);
		else {
			buf_put_byte(object.buf, '"');
			json_put_value(object.buf, value);
			buf_put_byte(object.buf, '"');
		}
	}
	json_end(&object);
}

static void put_words(struct json_object *object, const char *key, const struct app *app)
{
	bool any = false;

	json_put_key(object, key);
	buf_put_byte(object->buf, '[');
	for (size_t i = 0; i < app->word_count; i++) {
		json_put_comma(object->buf, &any);
		json_put_string(object->buf, span_of(app->words[i]));
	}
	buf_put_byte(object->buf, ']');
}

/* PM2's cron lines are those of the computer's own clock. */
static const char *local_zone(struct cli *cli)
{
	const char *zone = getenv("TZ");
	char link[512];

	if (zone && zone[0])
		return zone + (zone[0] == ':');
	ssize_t len = readlink("/etc/localtime", link, sizeof link - 1);
	link[len > 0 ? len : 0] = 0;
	const char *found = strstr(link, "zoneinfo/");
	return found ? cli_text(cli, "%s", found + 9) : "UTC";
}

static struct span schedule_body(struct pm2 *pm2, const struct app *app)
{
	struct json_object *body = cli_body(pm2->cli), task, payload;

	json_member_string(body, "id", span_of(app->name));
	json_member_string(body, "cron", span_of(app->cron));
	json_member_string(body, "tz", span_of(local_zone(pm2->cli)));
	json_put_key(body, "task");
	json_begin(&task, body->buf);
	json_member_string(&task, "title", span_of(app->name));
	json_member_string(&task, "queue", SPAN("shell"));
	json_member_string(&task, "executor", SPAN("shell"));
	json_member_string(&task, "workingDir", span_of(app->cwd));
	json_put_key(&task, "payload");
	json_begin(&payload, task.buf);
	put_words(&payload, "argv", app);
	json_end(&payload);
	put_env(&task, app);
	json_end(&task);
	return cli_body_end(pm2->cli);
}

static void make_schedule(struct pm2 *pm2, struct app *app)
{
	struct cli *cli = pm2->cli;
	struct ask look = {.method = HTTP_METHOD_GET,
		.path = "/api/schedules/*",
		.names = {app->name},
		.keeps_refusal = 404};
	struct ask make = {.method = HTTP_METHOD_POST, .path = "/api/schedules", .keeps_refusals = true};

	cleanup(reply_done) struct reply found = server_need(cli, &look);
	bool exists = found.status != 404;
	pm2->existing += exists;
	pm2->scheduled += !exists;
	app->outcome = exists ? "is there already" : pm2->dry_run ? "would be made" : "made";
	if (exists || pm2->dry_run)
		return;
	make.body = schedule_body(pm2, app);
	cleanup(reply_done) struct reply made = server_need(cli, &make);
	yyjson_val *error = yyjson_arr_get_first(field_get(made.root, "errors"));
	if (made.status >= 300)
		cli_die(cli, EXIT_FAILED, "refused", NULL, "%s:%u:%u: the schedule %s: %s %s",
			app->place.file, app->place.line, app->place.column, app->name,
			field_cstr(cli, error, "field"),
			error ? field_cstr(cli, error, "message") : field_cstr(cli, made.root, "detail"));
}

/* ---- the configuration -------------------------------------------------------------------------------------------------- */

static void put_executor(struct pm2 *pm2, struct json_object *executors, const struct app *app)
{
	struct json_object executor, budget;
	double grace = 0;

	json_put_key(executors, app->name);
	json_begin(&executor, executors->buf);
	json_member_string(&executor, "kind", SPAN("command"));
	put_words(&executor, "argv", app);
	put_env(&executor, app);
	if (json_number(field_get(app->value, "kill_timeout"), &grace) && grace >= 0 && grace <= 600000)
		json_member_int(&executor, "graceMs", (int64_t)grace);
	const char *memory = text_of(pm2, app, "max_memory_restart");
	char *end = NULL;
	long long amount = memory ? strtoll(memory, &end, 10) : 0;
	if (amount > 0 && amount < 1 << 20 && end && strchr("KMG", end[0]) && end[0]) {
		json_put_key(&executor, "budget");
		json_begin(&budget, executors->buf);
		json_member_int(&budget, "memoryBytes",
			amount << (end[0] == 'K'        ? 10
					: end[0] == 'M' ? 20
							: 30));
		json_end(&budget);
	}
	json_end(&executor);
}

static bool is_first_of_cwd(const struct pm2 *pm2, size_t i)
{
	for (size_t before = 0; before < i; before++) {
		if (pm2->apps[before].becomes == BECOMES_EXECUTOR &&
			strcmp(pm2->apps[before].cwd, pm2->apps[i].cwd) == 0)
			return false;
	}
	return true;
}

/* {"roots":[…],"executors":{…},"queues":{…}}; nothing if no app is an executor. */
static void put_config(struct pm2 *pm2, struct buf *out)
{
	struct json_object config, inner, queue;
	bool any = false;

	for (size_t i = 0; i < pm2->count; i++)
		any |= pm2->apps[i].becomes == BECOMES_EXECUTOR;
	if (!any)
		return;
	json_begin(&config, out);
	json_put_key(&config, "roots");
	buf_put_byte(out, '[');
	any = false;
	for (size_t i = 0; i < pm2->count; i++) {
		if (pm2->apps[i].becomes != BECOMES_EXECUTOR || !is_first_of_cwd(pm2, i))
			continue;
		json_put_comma(out, &any);
		json_put_string(out, span_of(pm2->apps[i].cwd));
	}
	buf_put_byte(out, ']');
	json_put_key(&config, "executors");
	json_begin(&inner, out);
	for (size_t i = 0; i < pm2->count; i++) {
		if (pm2->apps[i].becomes == BECOMES_EXECUTOR)
			put_executor(pm2, &inner, &pm2->apps[i]);
	}
	json_end(&inner);
	json_put_key(&config, "queues");
	json_begin(&inner, out);
	for (size_t i = 0; i < pm2->count; i++) {
		if (pm2->apps[i].becomes != BECOMES_EXECUTOR)
			continue;
		json_put_key(&inner, pm2->apps[i].name);
		json_begin(&queue, out);
		json_member_string(&queue, "executor", span_of(pm2->apps[i].name));
		json_end(&queue);
	}
	json_end(&inner);
	json_end(&config);
	cli_span(pm2->cli, out);
}

/* A file that is there already is never written over: it may be somebody's configuration. The same bytes are no change. */
static void write_config(struct pm2 *pm2, const char *path, struct span text)
{
	struct cli *cli = pm2->cli;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST && span_equal(cli_read_input(cli, path), text))
		return;
	if (fd < 0)
		cli_die(cli, EXIT_CONFLICT, "exists", NULL, "cannot write %s: %s", path,
			errno == EEXIST ? "it is there already, with another content" : strerror(errno));
	bool wrote = write(fd, text.data, text.len) == (ssize_t)text.len;
	if (close(fd) < 0 || !wrote)
		cli_die(cli, EXIT_FAILED, "failed", NULL, "cannot write %s: %s", path, strerror(errno));
}

/* ---- the answer ------------------------------------------------------------------------------------------------------- */

static const char *command_of(struct pm2 *pm2, const struct app *app)
{
	switch (app->becomes) {
	case BECOMES_EXECUTOR:
		return cli_text(pm2->cli, "stint add --queue %s --cwd %s %s", app->name,
			cli_quote(pm2->cli, app->cwd), app->name);
	case BECOMES_SCHEDULE:
		return cli_text(pm2->cli, "stint schedule show %s", app->name);
	case BECOMES_SLOT:
		return cli_text(pm2->cli, "stint worker --slot %s", cli_quote(pm2->cli, app->slot));
	}
	return "";
}

static const char *sentence_of(struct pm2 *pm2, const struct app *app)
{
	switch (app->becomes) {
	case BECOMES_EXECUTOR:
		return cli_text(pm2->cli, "an executor and a queue of a worker's configuration");
	case BECOMES_SCHEDULE:
		return cli_text(pm2->cli, "a schedule, which %s: %s", app->outcome, app->cron);
	case BECOMES_SLOT:
		return cli_text(pm2->cli, "the worker of slot %s", app->slot);
	}
	return "";
}

static const char *const becomes_words[] = {
	[BECOMES_EXECUTOR] = "executor", [BECOMES_SCHEDULE] = "schedule", [BECOMES_SLOT] = "slot"};

static int put_json(struct pm2 *pm2, const struct buf *config)
{
	cleanup(buf_done) struct buf json = {.max = 2 * CONFIG_BYTES_MAX};
	struct json_object object, app;
	bool any = false, any_note;

	json_begin(&object, &json);
	json_member_bool(&object, "dryRun", pm2->dry_run);
	json_member_int(&object, "imported", (int64_t)pm2->scheduled);
	json_member_int(&object, "existing", (int64_t)pm2->existing);
	json_put_key(&object, "apps");
	buf_put_byte(&json, '[');
	for (size_t i = 0; i < pm2->count; i++) {
		const struct app *of = &pm2->apps[i];
		json_put_comma(&json, &any);
		json_begin(&app, &json);
		json_member_string(&app, "name", span_of(of->name));
		json_member_string(&app, "becomes", span_of(becomes_words[of->becomes]));
		json_member_string(&app, "command", span_of(command_of(pm2, of)));
		json_put_key(&app, "notes");
		buf_put_byte(&json, '[');
		any_note = false;
		for (size_t n = 0; n < of->note_count; n++) {
			json_put_comma(&json, &any_note);
			json_put_string(&json, span_of(of->notes[n]));
		}
		buf_put_byte(&json, ']');
		json_end(&app);
	}
	buf_put_byte(&json, ']');
	if (config->len > 0)
		json_member_raw(&object, "config", buf_span(config));
	json_end(&object);
	return cli_put_json_buf(pm2->cli, true, "import", &json);
}

static void say_apps(struct pm2 *pm2)
{
	for (size_t i = 0; i < pm2->count; i++) {
		const struct app *app = &pm2->apps[i];
		cli_say(pm2->cli, "%s: %s. %s", app->name, sentence_of(pm2, app), command_of(pm2, app));
		for (size_t n = 0; n < app->note_count; n++)
			cli_say(pm2->cli, "  %s", app->notes[n]);
	}
}

static int run_pm2(struct cli *cli)
{
	static struct pm2 pm2;
	cleanup(buf_done) struct buf config = {.max = CONFIG_BYTES_MAX}, pretty = {.max = CONFIG_BYTES_MAX};
	const char *out = args_text(&cli->args, "out");

	pm2 = (struct pm2){.cli = cli, .dry_run = args_has(&cli->args, "dry-run")};
	read_file(&pm2);
	put_config(&pm2, &config);
	for (size_t i = 0; i < pm2.count; i++) {
		if (pm2.apps[i].becomes == BECOMES_SCHEDULE)
			make_schedule(&pm2, &pm2.apps[i]);
	}
	if (config.len > 0) {
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = cli_read_made(cli, &config);
		size_t len = 0;
		char *text = yyjson_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, &len);
		if (!text)
			return cli_fail_fault(cli, -ENOMEM);
		buf_put(&pretty, text, len);
		buf_put_byte(&pretty, '\n');
		free(text);
		cli_span(cli, &pretty);
	}
	if (out && pretty.len > 0 && !pm2.dry_run)
		write_config(&pm2, out, buf_span(&pretty));
	if (cli->output == OUTPUT_JSON)
		return put_json(&pm2, &config);
	say_apps(&pm2);
	if (pretty.len > 0 && !out)
		cli_put(cli, "%.*s", SPAN_ARGS(buf_span(&pretty)));
	if (pretty.len > 0)
		cli_say(cli, "the worker of these executors: stint worker run --config %s",
			out ? cli_quote(cli, out) : "FILE");
	return EXIT_GOOD;
}

static const struct flag flags[] = {
	INTAKE_DRY_RUN,
	{"out", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "write the worker's configuration there; a file of other content is never written over (default: print it)"},
	{0},
};

const struct verb verb_import_pm2 = {
	.name = "import pm2",
	.arguments = "FILE",
	.offer = OFFER_FILES,
	.gives = GIVES_JSON,
	.brief = "the apps of PM2",
	.text = "Reads an ecosystem file of PM2 in JSON and says what each app is here. An app with cron_restart and without autorestart becomes "
		"a schedule, on the clock of this computer; a worker of a slot (SLOT_ID in its env) is replaced by the command that is printed; any "
		"other becomes an executor and a queue of a worker's configuration, which is printed, or written with --out. What PM2 does and stint "
		"does otherwise is said for each app.\n"
		"\n"
		"The file is never run: an ecosystem.config.js is a program, and the message says how to make JSON of it. A schedule that is there "
		"already stays as it is: the import may be repeated.",
	.flags = flags,
	.examples = "stint import pm2 ecosystem.json --dry-run\n"
		    "stint import pm2 ecosystem.json --out worker-pm2.json\n",
	.run = run_pm2,
};
