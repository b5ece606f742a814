/*
 * stint skill: texts that teach an agent to use stint, from the program itself to where agents look for them. No server is
 * asked.
 *
 * Two directories are enough. Claude Code looks in .claude/skills; Codex, Gemini CLI, opencode and OpenClaw all look in
 * .agents/skills, beside a directory of their own that the others do not read.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/verb/skill_file.h"
#include "cli/verb/task_view.h"

enum {
	SKILLS_MAX = 16,
	JSON_BYTES_MAX = 4 << 20,
};

/* In the order of the words of --agent; the first one is for all. */
#define AGENTS "all|claude|codex|gemini|opencode|openclaw"
enum { AGENT_ALL, AGENT_CLAUDE };

enum skill_directory { IN_CLAUDE, IN_AGENTS, DIRECTORY_COUNT };

static const char *const agents_in[DIRECTORY_COUNT] = {
	[IN_CLAUDE] = "claude",
	[IN_AGENTS] = "codex gemini opencode openclaw",
};

/* A directory in which agents look for skills. */
struct skill_place {
	enum skill_directory directory;
	bool is_project;
	const char *root;   /* exists already */
	const char *skills; /* below the root */
};

/* ---- places ------------------------------------------------------------------------------------------------ */

/* The top of the repository that we are in; else the directory that we are in: agents look in both. */
static const char *find_project(struct cli *cli)
{
	cleanup(free_at) char *here = getcwd(NULL, 0);
	const char *found = here ? cli_text(cli, "%s", here) : NULL;

	while (here && here[0] == '/' && here[1]) {
		if (access(cli_text(cli, "%s/.git", here), F_OK) == 0)
			return cli_text(cli, "%s", here);
		*strrchr(here, '/') = 0;
	}
	return found;
}

static const char *find_home(void)
{
	const char *home = getenv("HOME");

	return home && home[0] == '/' ? home : NULL;
}

static struct skill_place place_of(struct cli *cli, enum skill_directory directory, bool is_project)
{
	const char *moved = directory == IN_CLAUDE && !is_project ? getenv("CLAUDE_CONFIG_DIR") : NULL;
	struct skill_place place = {.directory = directory,
		.is_project = is_project,
		.root = is_project ? find_project(cli) : find_home(),
		.skills = directory == IN_CLAUDE ? ".claude/skills" : ".agents/skills"};

	if (moved && moved[0] == '/') {
		place.root = "/";
		place.skills = cli_text(cli, "%s/skills", moved + strspn(moved, "/"));
	}
	return place;
}

static struct skill_dir dir_of(struct cli *cli, const struct skill_place *place, const struct skill *skill)
{
	return (struct skill_dir){.root = place->root,
		.path = cli_text(cli, "%s/%s", place->skills, skill->name),
		.beneath = place->is_project};
}

static const char *path_of(struct cli *cli, const struct skill_place *place, const struct skill *skill)
{
	return cli_text(cli, "%s%s%s/%s/SKILL.md", place->root, strcmp(place->root, "/") == 0 ? "" : "/",
		place->skills, skill->name);
}

static void put_agents(struct json_object *object, const char *agents)
{
	bool first = true;

	json_put_key(object, "agents");
	buf_put_byte(object->buf, '[');
	for (const char *at = agents; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		buf_printf(object->buf, "%s\"%.*s\"", first ? "" : ",", (int)len, at);
		first = false;
		at += len;
	}
	buf_put_byte(object->buf, ']');
}

static int fail_at(struct cli *cli, const char *path, int fault)
{
	if (fault == -EXDEV)
		return cli_fail(cli, EXIT_FAILED, "failed", "stint skill install --user --dry-run",
			"%s leads out of the project by a symbolic link: nothing is written there", path);
	return cli_fail(cli, EXIT_FAILED, "failed", "stint skill install --dry-run", "%s: %s", path,
		strerror(-fault));
}

/* ---- skills by name ------------------------------------------------------------------------------------------ */

static const struct skill *skill_named(const char *name)
{
	for (size_t i = 0; i < skill_count; i++) {
		if (strcmp(skills[i].name, name) == 0)
			return &skills[i];
	}
	return NULL;
}

/* One that does not exist ends the run. */
static const struct skill *need_skill(struct cli *cli, const char *name)
{
	const struct skill *skill = skill_named(name);

	if (!skill)
		cli_die(cli, EXIT_NOT_FOUND, "not_found", "stint skill ls", "there is no skill %s",
			cli_quote(cli, name));
	return skill;
}

/* Was it named? Without names, every one is. */
static bool is_wanted(const struct cli *cli, const struct skill *skill)
{
	const char *name;

	for (size_t i = 0; (name = args_plain(&cli->args, i)); i++) {
		if (strcmp(name, skill->name) == 0)
			return true;
	}
	return cli->args.plain_count == 0;
}

/* ---- ls ------------------------------------------------------------------------------------------------------ */

static const char *state_word(enum skill_state state)
{
	switch (state) {
	case SKILL_ABSENT:
		return "not installed";
	case SKILL_CURRENT:
		return "up to date";
	case SKILL_OUTDATED:
		return "of another version";
	case SKILL_CHANGED:
		return "changed by hand";
	}
	assert(false);
	return NULL;
}

enum { L_NAME, L_STATE, L_DESCRIPTION, L_COUNT };

static const struct column ls_columns[L_COUNT] = {
	[L_NAME] = {.name = "SKILL"},
	[L_STATE] = {.name = "INSTALLED"},
	[L_DESCRIPTION] = {.name = "DESCRIPTION", .shrinks = true},
};

/* Where it is installed, for people, and the state that they should know first. */
struct skill_seen {
	enum skill_state worst;
	const char *where;
};

static void see_at(struct cli *cli, const struct skill *skill, const struct skill_place *place,
	struct buf *json, struct skill_seen *seen)
{
	struct skill_dir dir = dir_of(cli, place, skill);
	const char *path = path_of(cli, place, skill);
	struct json_object file;
	struct skill_found found;

	dir.beneath = false; /* looking does no harm */
	int r = skill_look(&dir, skill, &found);
	if (r < 0 && r != -ENOTDIR)
		cli_exit(cli, fail_at(cli, path, r));
	if (r < 0 || found.state == SKILL_ABSENT)
		return;
	if (found.state > seen->worst)
		seen->worst = found.state;
	seen->where = cli_text(cli, "%s%sfor %s in %s%s%s%s", seen->where, seen->where[0] ? "; " : "",
		agents_in[place->directory], place->is_project ? "this project" : "your home",
		found.state == SKILL_CURRENT ? "" : " (",
		found.state == SKILL_CURRENT ? "" : state_word(found.state),
		found.state == SKILL_CURRENT ? "" : ")");
	if (json->data[json->len - 1] != '[')
		buf_put_byte(json, ',');
	json_begin(&file, json);
	json_member_string(&file, "path", span_of(path));
	json_member_string(&file, "state", span_of(state_word(found.state)));
	json_member_string_or_null(&file, "version", span_of(found.version));
	put_agents(&file, agents_in[place->directory]);
	json_end(&file);
}

static struct skill_seen see_all(struct cli *cli, const struct skill *skill, struct buf *json)
{
	struct skill_seen seen = {.worst = SKILL_ABSENT, .where = ""};

	for (int project = 0; project < 2; project++) {
		for (int directory = 0; directory < DIRECTORY_COUNT; directory++) {
			struct skill_place place =
				place_of(cli, (enum skill_directory)directory, project == 1);
			/* In the home itself the project is the user. */
			if (place.root &&
				!(project == 1 && find_home() && strcmp(place.root, find_home()) == 0))
				see_at(cli, skill, &place, json, &seen);
		}
	}
	return seen;
}

static void add_skill(struct cli *cli, const struct skill *skill, struct table *table, struct buf *json)
{
	cleanup(buf_done) struct buf files = {.max = JSON_BYTES_MAX};
	struct json_object object;

	buf_put_byte(&files, '[');
	if (buf_fault(&files))
		cli_exit(cli, cli_fail_fault(cli, buf_fault(&files)));
	struct skill_seen seen = see_all(cli, skill, &files);
	buf_put_byte(&files, ']');
	if (json->len > 0)
		buf_put_byte(json, ',');
	json_begin(&object, json);
	json_member_string(&object, "name", span_of(skill->name));
	json_member_string(&object, "description", span_of(skill->description));
	json_member_buf(&object, "files", &files);
	json_end(&object);
	table_row(table);
	table_cell(table, L_NAME, span_of(skill->name), PAINT_BOLD);
	table_cell(table, L_STATE, span_of(state_word(seen.worst)),
		seen.worst > SKILL_CURRENT ? PAINT_YELLOW : PAINT_NONE);
	table_cell(table, L_DESCRIPTION, span_of(skill->description), PAINT_NONE);
	if (seen.where[0])
		table_under(table, L_STATE, span_of(seen.where), PAINT_DIM);
}

/* A list that we made, in the form that was asked for. */
static int put_list(
	struct cli *cli, struct table *table, const char *key, const struct buf *members, const char *id)
{
	cleanup(buf_done) struct buf list = {.max = JSON_BYTES_MAX};

	buf_put_byte(&list, '[');
	buf_put_span(&list, cli_span(cli, members));
	buf_put_byte(&list, ']');
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = cli_read_made(cli, &list);
	return view_put_rows(cli, table, key, yyjson_doc_get_root(doc), id);
}

static int run_ls(struct cli *cli)
{
	cleanup(buf_done) struct buf json = {.max = JSON_BYTES_MAX};
	struct table table;

	table_init(&table, ls_columns, L_COUNT, cli->term.utf8);
	for (size_t i = 0; i < skill_count; i++)
		add_skill(cli, &skills[i], &table, &json);
	int r = put_list(cli, &table, "skills", &json, "name");
	table_done(&table);
	return r;
}

const struct verb verb_skill_ls = {
	.name = "skill ls",
	.gives = NEEDS_NO_SERVER | GIVES_JSON | GIVES_ROWS,
	.brief = "skills that stint has",
	.text = "Lists the skills: texts that teach an agent to use stint. INSTALLED says whether the file is where agents look "
		"for skills, in your home or in the project of this directory, and whether a person has changed it.",
	.examples = "stint skill ls\nstint skill ls --json=name,files\n",
	.run = run_ls,
};

/* ---- show ---------------------------------------------------------------------------------------------------- */

static int run_show(struct cli *cli)
{
	const struct skill *skill = need_skill(cli, args_plain(&cli->args, 0));
	cleanup(buf_done) struct buf json = {.max = JSON_BYTES_MAX};
	struct json_object object;

	if (cli->output != OUTPUT_JSON) {
		cli_put(cli, "%.*s", SPAN_ARGS(skill->text));
		return EXIT_GOOD;
	}
	json_begin(&object, &json);
	json_member_string(&object, "name", span_of(skill->name));
	json_member_string(&object, "description", span_of(skill->description));
	json_member_string(&object, "text", skill->text);
	json_end(&object);
	return cli_put_json_buf(cli, true, "skill", &json);
}

const struct verb verb_skill_show = {
	.name = "skill show",
	.arguments = "SKILL",
	.offer = OFFER_SKILLS,
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "the text of a skill",
	.text = "Prints a skill: its SKILL.md.",
	.examples = "stint skill show stint-task\nstint skill show stint-supervise --json=description\n",
	.run = run_show,
	.pages = true,
};

/* ---- install --------------------------------------------------------------------------------------------------- */

static const struct flag install_flags[] = {
	{"agent", 'a', FLAG_CHOICE, .value = AGENTS, .text = "where this agent looks (default all)"},
	{"user", 0, FLAG_SWITCH, .text = "for all your projects, below your home (default)"},
	{"project", 0, FLAG_SWITCH,
		.text = "for this project: at the top of the git repository of this directory, else here"},
	{"dry-run", 'n', FLAG_SWITCH, .text = "only say what would be written"},
	{"force", 0, FLAG_SWITCH, .text = "also replace files that were changed by hand"},
	{0},
};

/* One file to be. */
struct skill_plan {
	const struct skill *skill;
	struct skill_place place;
	struct skill_found found;
};

struct skill_plans {
	struct skill_plan items[SKILLS_MAX * DIRECTORY_COUNT];
	size_t count;
};

static bool is_place_wanted(const struct cli *cli, enum skill_directory directory)
{
	int64_t agent = args_number(&cli->args, "agent", AGENT_ALL);

	return agent == AGENT_ALL || (agent == AGENT_CLAUDE) == (directory == IN_CLAUDE);
}

/* Looks at every file that is wanted, before one is written. 0, or the ending. */
static int make_plans(struct cli *cli, struct skill_plans *plans)
{
	bool is_project = args_has(&cli->args, "project");

	for (size_t i = 0; i < skill_count; i++) {
		for (int directory = 0; directory < DIRECTORY_COUNT; directory++) {
			if (!is_wanted(cli, &skills[i]) ||
				!is_place_wanted(cli, (enum skill_directory)directory))
				continue;
			assert(plans->count < sizeof plans->items / sizeof *plans->items);
			struct skill_plan *plan = &plans->items[plans->count++];
			*plan = (struct skill_plan){
				&skills[i], place_of(cli, (enum skill_directory)directory, is_project), {0}};
			if (!plan->place.root)
				return cli_fail(cli, EXIT_FAILED, "failed", "stint help skill install",
					is_project
						? "the current directory is gone"
						: "HOME is not set: there is no place for skills of yours");
			struct skill_dir dir = dir_of(cli, &plan->place, plan->skill);
			int r = skill_look(&dir, plan->skill, &plan->found);
			if (r < 0)
				return fail_at(cli, path_of(cli, &plan->place, plan->skill), r);
		}
	}
	return 0;
}

/* "PATH was changed by hand in lines 3 to 5" */
static const char *change_sentence(struct cli *cli, const struct skill_plan *plan)
{
	const char *path = path_of(cli, &plan->place, plan->skill);
	unsigned first = plan->found.first_line, last = plan->found.last_line;

	if (plan->found.is_link)
		return cli_text(cli, "%s is a symbolic link", path);
	if (last < first)
		return cli_text(
			cli, "%s was changed by hand: something is missing before line %u", path, first);
	if (last == first)
		return cli_text(cli, "%s was changed by hand in line %u", path, first);
	return cli_text(cli, "%s was changed by hand in lines %u to %u", path, first, last);
}

/* The same command, with --force. */
static const char *forced(struct cli *cli)
{
	const char *agent = args_text(&cli->args, "agent"), *words = "", *name;

	for (size_t i = 0; (name = args_plain(&cli->args, i)); i++)
		words = cli_text(cli, "%s%s%s", words, words[0] ? " " : "", name);
	if (agent)
		words = cli_text(cli, "%s%s--agent %s", words, words[0] ? " " : "", agent);
	if (args_has(&cli->args, "project"))
		words = cli_text(cli, "%s%s--project", words, words[0] ? " " : "");
	return words[0] ? cli_text(cli, "stint skill install %s --force", words)
			: "stint skill install --force";
}

/* Files that a person has changed are kept, and then none is written: the command does what it says or nothing. */
static int refuse_changed(struct cli *cli, const struct skill_plans *plans)
{
	const struct skill_plan *first = NULL;
	const char *sentences = "";

	for (size_t i = 0; i < plans->count; i++) {
		const struct skill_plan *plan = &plans->items[i];
		if (plan->found.state != SKILL_CHANGED || args_has(&cli->args, "force"))
			continue;
		sentences = cli_text(cli, "%s%s%s", sentences, first ? "; " : "", change_sentence(cli, plan));
		first = first ? first : plan;
	}
	if (!first)
		return 0;
	return cli_fail(cli, EXIT_CONFLICT, "changed_by_hand", forced(cli),
		"%s. Nothing was written. To see the difference: stint skill show %s | diff %s -", sentences,
		first->skill->name, cli_quote(cli, path_of(cli, &first->place, first->skill)));
}

enum { I_STATE, I_NAME, I_PATH, I_COUNT };

static const struct column install_columns[I_COUNT] = {
	[I_STATE] = {.name = "DONE"},
	[I_NAME] = {.name = "SKILL"},
	[I_PATH] = {.name = "FILE", .shrinks = true},
};

static const char *done_word(enum skill_state before, bool dry)
{
	switch (before) {
	case SKILL_ABSENT:
		return dry ? "would write" : "written";
	case SKILL_CURRENT:
		return "up to date";
	case SKILL_OUTDATED:
		return dry ? "would update" : "updated";
	case SKILL_CHANGED:
		return dry ? "would replace" : "replaced";
	}
	assert(false);
	return NULL;
}

static void add_done(struct cli *cli, const struct skill_plan *plan, struct table *table, struct buf *json)
{
	const char *path = path_of(cli, &plan->place, plan->skill);
	const char *done = done_word(plan->found.state, args_has(&cli->args, "dry-run"));
	struct json_object file;

	if (json->len > 0)
		buf_put_byte(json, ',');
	json_begin(&file, json);
	json_member_string(&file, "path", span_of(path));
	json_member_string(&file, "skill", span_of(plan->skill->name));
	json_member_string(&file, "done", span_of(done));
	put_agents(&file, agents_in[plan->place.directory]);
	json_end(&file);
	table_row(table);
	table_cell(
		table, I_STATE, span_of(done), plan->found.state == SKILL_CURRENT ? PAINT_DIM : PAINT_GREEN);
	table_cell(table, I_NAME, span_of(plan->skill->name), PAINT_BOLD);
	table_cell(table, I_PATH, span_of(path), PAINT_NONE);
}

/* Writes what is missing or old. 0, or the ending. */
static int carry_out(struct cli *cli, const struct skill_plans *plans)
{
	for (size_t i = 0; i < plans->count; i++) {
		const struct skill_plan *plan = &plans->items[i];
		struct skill_dir dir = dir_of(cli, &plan->place, plan->skill);
		if (plan->found.state == SKILL_CURRENT || args_has(&cli->args, "dry-run"))
			continue;
		int r = skill_write(&dir, plan->skill, STINT_VERSION);
		if (r < 0)
			return fail_at(cli, path_of(cli, &plan->place, plan->skill), r);
	}
	return 0;
}

static int put_done(struct cli *cli, const struct skill_plans *plans)
{
	cleanup(buf_done) struct buf json = {.max = JSON_BYTES_MAX};
	struct table table;

	table_init(&table, install_columns, I_COUNT, cli->term.utf8);
	for (size_t i = 0; i < plans->count; i++)
		add_done(cli, &plans->items[i], &table, &json);
	int r = put_list(cli, &table, "files", &json, "path");
	table_done(&table);
	return r;
}

static int run_install(struct cli *cli)
{
	struct skill_plans plans = {0};
	const char *name;

	assert(skill_count <= SKILLS_MAX);
	if (args_has(&cli->args, "user") && args_has(&cli->args, "project"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help skill install",
			"give --user or --project, not both");
	for (size_t i = 0; (name = args_plain(&cli->args, i)); i++)
		need_skill(cli, name);
	int r = make_plans(cli, &plans);
	if (r == 0)
		r = refuse_changed(cli, &plans);
	if (r == 0)
		r = carry_out(cli, &plans);
	return r == 0 ? put_done(cli, &plans) : r;
}

const struct verb verb_skill_install = {
	.name = "skill install",
	.arguments = "[SKILL...]",
	.most = SKILLS_MAX,
	.offer = OFFER_SKILLS,
	.gives = NEEDS_NO_SERVER | GIVES_JSON | GIVES_ROWS,
	.brief = "where agents look",
	.text = "Writes skills, all of them or those that are named, where agents look for them: .claude/skills for Claude Code (below "
		"$CLAUDE_CONFIG_DIR if that is set), .agents/skills for Codex, Gemini CLI, opencode and OpenClaw; below your home, or with "
		"--project in the project. Files that are up to date stay; files of another version of stint are replaced. If a person "
		"has changed one of the files, nothing is written, the lines are named, and the exit status is 4; --force replaces it. "
		"An agent reads its skills when it starts.",
	.flags = install_flags,
	.examples = "stint skill install\n"
		    "stint skill install --agent claude --project --dry-run\n"
		    "stint skill install stint-task --agent codex\n",
	.run = run_install,
};
