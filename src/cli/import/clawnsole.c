/*
 * stint import clawnsole: the state files of the clawnsole workqueue become tasks.
 *
 * The files are looked through twice: first everything is read, here and by the server, and nothing is changed; then it
 * is taken over, some hundred items at a time. However large they are, little of them is in memory at once. What is there
 * already stays as it is, so the same import once more, or one that was cut off, goes on where it left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/frame/json_walk.h"
#include "cli/verb/verbs.h"

enum {
	PATH_BYTES = 4096,
	BATCH_ITEMS = 400,
	BATCH_BYTES = 700 << 10, /* a request has 1 MiB at most */
	ITEM_BYTES_MAX = 1000 << 10,
	REST_BYTES_MAX = 16 << 20, /* of a member other than the items */
	FORGET_BYTES = 8 << 20,    /* then the kernel may have the room of what was passed */
};

#define QUEUES_FILE      "work-queues.json"
#define ASSIGNMENTS_FILE "work-queue-assignments.json"

/* A file mapped into memory; only the pages that are read are in memory. */
struct import_file {
	char path[PATH_BYTES];
	struct span text; /* empty: there is no such file */
	size_t items_at;  /* where the list begins; 0: the file has no list */
	struct span assignments, agents, defaults;
};

struct import {
	struct cli *cli;
	struct import_file queues, older;
	bool dry_run;
	uint64_t items, imported, existing, assigned;
};

static void source_done(struct import_file *source)
{
	if (source->text.len > 0)
		munmap((void *)source->text.data, source->text.len);
	source->text = (struct span){0};
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* Something in the file is wrong: says where, and ends the run. */
static _Noreturn void complain_at(
	const struct import *import, const struct import_file *source, size_t at, const char *wrong)
{
	struct json_place place = json_place(source->text, at);

	cli_die(import->cli, EXIT_FAILED, "invalid", NULL, "%s:%u:%u: %s; nothing was changed", source->path,
		place.line, place.column, wrong);
}

static void check_walk(
	const struct import *import, const struct import_file *source, const struct json_walk *walk)
{
	size_t base = (size_t)(walk->text.data - source->text.data);

	if (walk->wrong)
		complain_at(import, source, base + walk->at, walk->wrong);
}

static _Noreturn void complain_of_file(struct cli *cli, const char *path)
{
	cli_die(cli, errno == ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED, "unreadable", NULL, "cannot read %s: %s",
		path, strerror(errno));
}

/* Maps it, if it is there; one that must be there and is not ends the run. */
static void source_open(struct cli *cli, struct import_file *source, bool must)
{
	cleanup(close_at) int file = open(source->path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (file < 0 && errno == ENOENT && !must)
		return;
	if (file < 0 || fstat(file, &status) < 0)
		complain_of_file(cli, source->path);
	if (!S_ISREG(status.st_mode) || status.st_size == 0)
		cli_die(cli, EXIT_FAILED, "invalid", NULL, "%s is empty, or no file; nothing was changed",
			source->path);
	void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (data == MAP_FAILED)
		complain_of_file(cli, source->path);
	madvise(data, (size_t)status.st_size, MADV_SEQUENTIAL);
	source->text = (struct span){data, (size_t)status.st_size};
}

/* What lies before that place is not looked at again soon: the kernel may have its room. */
static void source_forget(const struct import_file *source, size_t upto)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (upto > page)
		madvise((void *)source->text.data, upto / page * page, MADV_DONTNEED);
}

static bool join(char path[PATH_BYTES], const char *directory, const char *name)
{
	return snprintf(path, PATH_BYTES, "%s/%s", directory, name) < PATH_BYTES;
}

/* Where the original has them: a directory, or one of the two files in it. */
static void find_files(struct import *import)
{
	struct cli *cli = import->cli;
	const char *given = args_plain(&cli->args, 0), *home = getenv("OPENCLAW_HOME");
	char directory[PATH_BYTES - 64];
	struct stat status;
	bool fits = true;

	if (given)
		fits = snprintf(directory, sizeof directory, "%s", given) < (int)sizeof directory;
	else if (home && home[0])
		fits = snprintf(directory, sizeof directory, "%s/clawnsole", home) < (int)sizeof directory;
	else
		fits = snprintf(directory, sizeof directory, "%s/.openclaw/clawnsole",
			       getenv("HOME") ? getenv("HOME") : "") < (int)sizeof directory;
	bool is_file = fits && stat(directory, &status) == 0 && S_ISREG(status.st_mode);
	char *slash = strrchr(directory, '/');
	if (is_file) {
		bool older = strcmp(slash ? slash + 1 : directory, ASSIGNMENTS_FILE) == 0;
		snprintf(older ? import->older.path : import->queues.path, PATH_BYTES, "%s", directory);
		if (slash)
			*slash = 0;
		else
			strcpy(directory, ".");
	}
	if (!import->queues.path[0])
		fits = fits && join(import->queues.path, directory, QUEUES_FILE);
	if (!import->older.path[0])
		fits = fits && join(import->older.path, directory, ASSIGNMENTS_FILE);
	if (!fits)
		cli_die(cli, EXIT_USAGE, "usage", NULL, "that path is too long");
	source_open(cli, &import->older, false);
	source_open(cli, &import->queues, import->older.text.len == 0);
}

/* ---- what is in them --------------------------------------------------------------------------------------------- */

/* Values that are small enough to be read at once. */
static void check_value(
	const struct import *import, const struct import_file *source, struct span value, size_t max)
{
	struct json_complaint complaint;
	size_t at = (size_t)(value.data - source->text.data);

	if (value.len > max)
		complain_at(import, source, at, "this is larger than it may be");
	yyjson_doc *doc = json_read(value, &complaint);
	if (!doc)
		complain_at(import, source, at + complaint.at, complaint.reason);
	yyjson_doc_free(doc);
}

/* To their end; they are looked at later, one by one. */
static void pass_items(struct import_file *source, struct json_walk *walk)
{
	struct json_walk items;
	struct span item;

	source->items_at = walk->at;
	if (json_walk_list(&items, walk->text, walk->at)) {
		while (json_walk_element(&items, &item)) {
			if (items.at - walk->at > FORGET_BYTES) {
				source_forget(source, items.at);
				walk->at = items.at;
			}
		}
	}
	walk->at = items.at;
	walk->wrong = items.wrong;
}

static void take_member(struct import *import, struct import_file *source, struct span key, struct span value)
{
	check_value(import, source, value, REST_BYTES_MAX);
	if (span_equal(key, SPAN("version")) && !span_equal(value, SPAN("1")))
		complain_at(import, source, (size_t)(value.data - source->text.data),
			"only version 1 of these files is known");
	if (span_equal(key, SPAN("assignments")))
		source->assignments = value;
	else if (span_equal(key, SPAN("agents")))
		source->agents = value;
	else if (span_equal(key, SPAN("defaults")))
		source->defaults = value;
}

/* What it has at its top. */
static void source_read(struct import *import, struct import_file *source)
{
	struct json_walk walk;
	struct span key, value;

	if (source->text.len == 0)
		return;
	json_walk_object(&walk, source->text, 0);
	while (!walk.wrong && json_walk_key(&walk, &key)) {
		if (span_equal(key, SPAN("items")))
			pass_items(source, &walk);
		else if (json_walk_value(&walk, &value))
			take_member(import, source, key, value);
	}
	json_walk_end(&walk);
	check_walk(import, source, &walk);
	source_forget(source, source->text.len);
}

/* ---- items ---------------------------------------------------------------------------------------------------------- */

/* Some items on their way to the server. */
struct import_batch {
	struct buf body;
	size_t places[BATCH_ITEMS]; /* where each stands in the file */
	uint32_t count;
};

static void batch_begin(struct import_batch *batch, bool tries)
{
	batch->count = 0;
	buf_clear(&batch->body);
	buf_printf(&batch->body, "{%s\"items\":[", tries ? "\"dryRun\":true," : "");
}

/* "items[3].createdAt" and what is wrong with it, where it stands in the file. */
static _Noreturn void tell_wrong_item(
	struct import *import, const struct import_batch *batch, const struct reply *reply)
{
	struct cli *cli = import->cli;
	yyjson_val *error = yyjson_arr_get_first(field_get(reply->root, "errors"));
	const char *name = field_cstr(cli, error, "field");
	unsigned index;
	int used = 0;

	if (sscanf(name, "items[%u]%n", &index, &used) != 1 || index >= batch->count)
		cli_die(cli, EXIT_FAILED, "refused", "stint doctor", "%s",
			field_cstr(cli, reply->root, "message"));
	name += used + (name[used] == '.');
	complain_at(import, &import->queues, batch->places[index],
		cli_text(cli, "%s%s%s", name, name[0] ? " " : "this ", field_cstr(cli, error, "message")));
}

static void count_items(struct import *import, const struct reply *reply)
{
	struct cli *cli = import->cli;
	size_t i, limit;
	yyjson_val *item;

	yyjson_arr_foreach(field_get(reply->root, "items"), i, limit, item)
	{
		import->imported += field_bool(item, "imported");
		import->existing += field_bool(item, "exists");
		if (!field_get(item, "error"))
			continue;
		cli_die(cli, EXIT_CONFLICT, "refused", "stint queue ls",
			"%s: the item %s: %s; what came before it is imported", import->queues.path,
			field_cstr(cli, item, "id"), field_cstr(cli, item, "message"));
	}
}

static void batch_send(struct import *import, struct import_batch *batch)
{
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/workqueue/import",
		.may_repeat = true, /* what is there already stays as it is */
		.patience = 3,
		.keeps_refusal = 400};

	if (batch->count == 0)
		return;
	buf_printf(&batch->body, "]}");
	question.body = cli_span(import->cli, &batch->body);
	struct reply reply = server_need(import->cli, &question);
	if (reply.status == 400)
		tell_wrong_item(import, batch, &reply);
	count_items(import, &reply);
	reply_done(&reply);
	arena_reset(&import->cli->arena);
}

static void batch_add(struct import *import, struct import_batch *batch, struct span item)
{
	if (batch->count > 0)
		buf_put_byte(&batch->body, ',');
	buf_put_span(&batch->body, item);
	batch->places[batch->count++] = (size_t)(item.data - import->queues.text.data);
}

/* All of them: tried, so that nothing is changed before everything is known to be good; or taken over. */
static void each_item(struct import *import, bool tries)
{
	const struct import_file *source = &import->queues;
	struct import_batch batch = {0};
	struct json_walk walk;
	struct span item;

	import->items = import->imported = import->existing = 0;
	if (source->items_at == 0)
		return;
	buf_init(&batch.body, 4 << 20);
	batch_begin(&batch, tries);
	json_walk_list(&walk, source->text, source->items_at);
	while (json_walk_element(&walk, &item)) {
		if (tries)
			check_value(import, source, item, ITEM_BYTES_MAX);
		bool full = batch.count == BATCH_ITEMS || batch.body.len + item.len > BATCH_BYTES;
		if (full && batch.count > 0) {
			batch_send(import, &batch);
			cli_progress(import->cli, (int)(walk.at * 100 / source->text.len),
				cli_text(import->cli, "%llu items", (unsigned long long)import->items),
				tries ? "checking" : "importing");
			source_forget(source, walk.at);
			batch_begin(&batch, tries);
		}
		batch_add(import, &batch, item);
		import->items++;
	}
	check_walk(import, source, &walk);
	batch_send(import, &batch);
	buf_done(&batch.body);
}

/* ---- assignments ------------------------------------------------------------------------------------------------------ */

static yyjson_doc *read_span(struct span text)
{
	struct json_complaint complaint;

	return text.len > 0 ? json_read(text, &complaint) : NULL;
}

static void assign(struct import *import, struct span agent, yyjson_val *queues)
{
	struct json_object *body = cli_body(import->cli);

	json_member_string(body, "agentId", agent);
	json_put_key(body, "queues");
	json_put_value(body->buf, queues);
	struct reply reply =
		server_post(import->cli, "/api/workqueue/assignments", NULL, cli_body_end(import->cli));
	reply_done(&reply);
}

/* An agent that has queues here already keeps them: an operator or an earlier import set them. */
static void assign_each(struct import *import, yyjson_val *agents, const char *member, yyjson_val *known)
{
	size_t i, limit;
	yyjson_val *key, *value;

	yyjson_obj_foreach(agents, i, limit, key, value)
	{
		struct span agent = json_text(key);
		yyjson_val *queues = member ? field_get(value, member) : value;
		bool wanted = yyjson_is_arr(queues) && yyjson_arr_size(queues) > 0 && agent.len > 0 &&
			!yyjson_obj_getn(known, agent.data, agent.len);
		if (wanted && !import->dry_run)
			assign(import, agent, queues);
		import->assigned += wanted;
	}
}

/* What the newer file assigns stands above what the older one does. */
static void take_assignments(struct import *import)
{
	static const char path[] = "/api/workqueue/assignments";
	yyjson_doc *newer = read_span(import->queues.assignments), *older = read_span(import->older.agents);
	yyjson_val *first = yyjson_doc_get_root(newer);
	cleanup(reply_done) struct reply before = server_get(import->cli, path, NULL);

	assign_each(import, first, NULL, field_get(before.root, "assignments"));
	cleanup(reply_done) struct reply after = server_get(import->cli, path, NULL);
	assign_each(import, yyjson_doc_get_root(older), "queues",
		import->dry_run && first ? first : field_get(after.root, "assignments"));
	yyjson_doc_free(newer);
	yyjson_doc_free(older);
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

/* The older file has queues for everybody else: that is a setting of the server, or of the claiming program. */
static void say_defaults(struct import *import)
{
	yyjson_doc *doc = read_span(import->older.defaults);
	yyjson_val *queues = field_get(yyjson_doc_get_root(doc), "queues"), *queue;
	const char *names = "";
	size_t i, limit;

	yyjson_arr_foreach(queues, i, limit, queue)
	{
		if (yyjson_is_str(queue))
			names = cli_text(
				import->cli, "%s%s%s", names, names[0] ? "," : "", yyjson_get_str(queue));
	}
	if (names[0])
		cli_say(import->cli,
			"the default queues there are %s: set workqueue.defaultQueues, or CLAWNSOLE_DEFAULT_QUEUES",
			cli_quote(import->cli, names));
	yyjson_doc_free(doc);
}

static void report(struct import *import)
{
	struct cli *cli = import->cli;
	unsigned long long new_items = import->dry_run ? import->items - import->existing : import->imported;

	say_defaults(import);
	if (cli->output == OUTPUT_JSON) {
		cli_put(cli,
			"{\"schema\":1,\"ok\":true,\"import\":{\"dryRun\":%s,\"items\":%llu,\"imported\":%llu,\"existing\":%llu,"
			"\"assignments\":%llu}}\n",
			import->dry_run ? "true" : "false", (unsigned long long)import->items, new_items,
			(unsigned long long)import->existing, (unsigned long long)import->assigned);
		return;
	}
	cli_put(cli, "%s%llu of %llu items imported, %llu were there already; %llu assignments\n",
		import->dry_run ? "would be: " : "", new_items, (unsigned long long)import->items,
		(unsigned long long)import->existing, (unsigned long long)import->assigned);
}

static int run_clawnsole(struct cli *cli)
{
	struct import import = {.cli = cli, .dry_run = args_has(&cli->args, "dry-run")};

	find_files(&import);
	source_read(&import, &import.older);
	source_read(&import, &import.queues);
	each_item(&import, true);
	if (!import.dry_run)
		each_item(&import, false);
	take_assignments(&import);
	report(&import);
	source_done(&import.queues);
	source_done(&import.older);
	return EXIT_GOOD;
}

static const struct flag flags[] = {
	{"dry-run", 0, FLAG_SWITCH, .text = "read and check everything, and change nothing"},
	{0},
};

const struct verb verb_import_clawnsole = {
	.name = "import clawnsole",
	.arguments = "[PATH]",
	.offer = OFFER_FILES,
	.gives = GIVES_JSON,
	.brief = "take over its workqueue",
	.text = "Takes over the items and assignments of the clawnsole workqueue: work-queues.json and the older "
		"work-queue-assignments.json, in PATH (default ${OPENCLAW_HOME:-~/.openclaw}/clawnsole), or PATH is one of them. "
		"Everything is checked before anything is changed.\n"
		"\n"
		"Every item becomes a task of the same id, with its queue, texts, priority, key, attempts, result, error, note, meta "
		"and time of creation; what a task has no place for stands in its metadata as clawnsoleItem. done and failed stay so. "
		"What was claimed or in progress is ready here: no claim of theirs can be proved. What is there already stays as it "
		"is: an import may be repeated, and one that was cut off goes on. Agents that have queues here keep them.",
	.flags = flags,
	.examples = "stint import clawnsole --dry-run\n"
		    "stint import clawnsole ~/.openclaw/clawnsole\n",
	.run = run_clawnsole,
};
