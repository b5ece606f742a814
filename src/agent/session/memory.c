#include "agent/session/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "exec/rundir.h"

enum { FILE_BYTES_MAX = 256 << 10, SWEPT_MAX = 10000 };

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void read_rules(struct memory *memory, yyjson_val *rules)
{
	size_t i, count;
	yyjson_val *rule;

	yyjson_arr_foreach(rules, i, count, rule)
	{
		if (memory->rule_count == MEMORY_RULES_MAX)
			return;
		struct memory_rule *into = &memory->rules[memory->rule_count++];
		json_copy_text(rule, "tool", into->tool, sizeof into->tool);
		json_copy_text(rule, "subject", into->subject, sizeof into->subject);
	}
}

static double number_of(yyjson_val *root, const char *key)
{
	double number = 0;

	return json_number(yyjson_obj_get(root, key), &number) ? number : 0;
}

static void read_root(struct memory *memory, yyjson_val *root)
{
	json_copy_text(root, "session", memory->session, sizeof memory->session);
	json_copy_text(root, "adapter", memory->adapter, sizeof memory->adapter);
	json_copy_text(root, "task", memory->task, sizeof memory->task);
	json_copy_text(root, "tree", memory->tree, sizeof memory->tree);
	memory->created_ms = json_int(root, "createdAt");
	memory->final_ms = json_int(root, "finalAt");
	memory->stalls = (uint32_t)json_int(root, "stalls");
	memory->begun = yyjson_is_true(yyjson_obj_get(root, "begun"));
	memory->usd_total = number_of(root, "usdTotal");
	memory->usd_spent = number_of(root, "usdSpent");
	memory->tokens_spent = json_int(root, "tokensSpent");
	memory->turns_spent = json_int(root, "turnsSpent");
	memory->tool_calls_spent = json_int(root, "toolCallsSpent");
	memory->thread_input = json_int(root, "threadInput");
	memory->thread_output = json_int(root, "threadOutput");
	memory->told = json_int(root, "told");
	memory->ms_spent = json_int(root, "msSpent");
	memory->budgets_given = (uint32_t)json_int(root, "budgetsGiven");
	snprintf(memory->budget_question, sizeof memory->budget_question, "%.*s",
		SPAN_ARGS(json_text(yyjson_obj_get(root, "budgetQuestion"))));
	read_rules(memory, yyjson_obj_get(root, "allowed"));
}

/* A file that cannot be read is none: the session begins anew. */
static void read_file(struct memory *memory, int dir_fd)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint complaint;

	buf_init(&text, FILE_BYTES_MAX);
	if (file_read(dir_fd, "session.json", &text) < 0)
		return;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&text), &complaint);
	if (doc)
		read_root(memory, yyjson_doc_get_root(doc));
}

static int look(struct memory *memory, const char *state, const char *task, int64_t created_ms)
{
	cleanup(close_at) int dir_fd = open_dir(memory->path);

	if (dir_fd == -ENOENT)
		return 0;
	if (dir_fd < 0)
		return dir_fd;
	read_file(memory, dir_fd);
	if (memory->created_ms == created_ms && memory->final_ms == 0)
		return 0;
	char path[MEMORY_PATH_BYTES];
	snprintf(path, sizeof path, "%s/agents", state);
	cleanup(close_at) int agents_fd = open_dir(path);
	snprintf(path, sizeof path, "%s", memory->path);
	bool same = memory->created_ms == created_ms; /* it was final and is opened again: go on with it */
	if (same) {
		memory->final_ms = 0;
		return 0;
	}
	*memory = (struct memory){0};
	snprintf(memory->path, sizeof memory->path, "%s", path);
	return agents_fd < 0 ? agents_fd : rundir_remove(agents_fd, task);
}

int memory_open(struct memory *memory, const char *state, const char *task, int64_t created_ms)
{
	char home[MEMORY_PATH_BYTES + 8];

	*memory = (struct memory){0};
	if ((size_t)snprintf(memory->path, sizeof memory->path, "%s/agents/%s", state, task) >=
		sizeof memory->path - 200)
		return -ENAMETOOLONG;
	int r = look(memory, state, task, created_ms);
	if (r < 0)
		return r;
	memory->created_ms = created_ms;
	snprintf(home, sizeof home, "%s/home", memory->path);
	return directory_make(home);
}

bool memory_turn_to(struct memory *memory, const char *task)
{
	if (strcmp(memory->task, task) == 0)
		return false;
	snprintf(memory->task, sizeof memory->task, "%s", task);
	memory->usd_spent = 0;
	memory->tokens_spent = memory->turns_spent = memory->tool_calls_spent = memory->ms_spent = 0;
	memory->budgets_given = 0;
	memory->budget_question[0] = 0;
	memory->told = 0;
	memory->rule_count = 0;
	return true;
}

int memory_save(const struct memory *memory)
{
	cleanup(buf_done) struct buf text = {0};
	cleanup(close_at) int dir_fd = open_dir(memory->path);
	struct json_object object, rule;

	if (dir_fd < 0)
		return dir_fd;
	buf_init(&text, FILE_BYTES_MAX);
	json_begin(&object, &text);
	json_member_string(&object, "session", span_of(memory->session));
	json_member_string(&object, "adapter", span_of(memory->adapter));
	if (memory->task[0])
		json_member_string(&object, "task", span_of(memory->task));
	json_member_string(&object, "tree", span_of(memory->tree));
	json_member_int(&object, "createdAt", memory->created_ms);
	json_member_int(&object, "finalAt", memory->final_ms);
	json_member_int(&object, "stalls", memory->stalls);
	json_member_bool(&object, "begun", memory->begun);
	json_put_key(&object, "usdTotal");
	buf_printf(&text, "%.12g", memory->usd_total);
	json_put_key(&object, "usdSpent");
	buf_printf(&text, "%.12g", memory->usd_spent);
	json_member_int(&object, "tokensSpent", memory->tokens_spent);
	json_member_int(&object, "turnsSpent", memory->turns_spent);
	json_member_int(&object, "toolCallsSpent", memory->tool_calls_spent);
	json_member_int(&object, "threadInput", memory->thread_input);
	json_member_int(&object, "threadOutput", memory->thread_output);
	json_member_int(&object, "told", memory->told);
	json_member_int(&object, "msSpent", memory->ms_spent);
	json_member_int(&object, "budgetsGiven", memory->budgets_given);
	json_member_string(&object, "budgetQuestion", span_of(memory->budget_question));
	json_put_key(&object, "allowed");
	buf_put_byte(&text, '[');
	for (uint32_t i = 0; i < memory->rule_count; i++) {
		if (i > 0)
			buf_put_byte(&text, ',');
		json_begin(&rule, &text);
		json_member_string(&rule, "tool", span_of(memory->rules[i].tool));
		json_member_string(&rule, "subject", span_of(memory->rules[i].subject));
		json_end(&rule);
	}
	buf_put_byte(&text, ']');
	int r = json_end(&object);
	return r < 0 ? r : file_write(dir_fd, "session.json", buf_span(&text), true);
}

bool memory_has_session(const struct memory *memory, const struct adapter *adapter)
{
	char pattern[2 * MEMORY_PATH_BYTES], name[512];
	glob_t found = {0};

	if (!memory->session[0] || strcmp(memory->adapter, adapter->name) != 0 || !adapter->resumes ||
		strpbrk(memory->session, "/*?[]{}"))
		return false;
	if (!adapter->transcript)
		return memory->begun;
	const char *at = strstr(adapter->transcript, "%s");
	snprintf(name, sizeof name, "%.*s%s%s", (int)(at - adapter->transcript), adapter->transcript,
		memory->session, at + 2);
	snprintf(pattern, sizeof pattern, "%s/home/%s", memory->path, name);
	bool there = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0;
	globfree(&found);
	return there;
}

/* The agent may have put links into its home: none is followed. */
int memory_put_file(const struct memory *memory, const char *name, struct span text)
{
	char path[MEMORY_PATH_BYTES + 8], part[256];
	snprintf(path, sizeof path, "%s/home", memory->path);
	int fd = open_dir(path);

	for (const char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
		if (mkdirat(fd, part, 0700) < 0 && errno != EEXIST) {
			int fault = -errno;
			close(fd);
			return fault;
		}
		int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int fault = -errno;
		close(fd);
		fd = next < 0 ? fault : next;
	}
	if (fd < 0)
		return fd;
	int r = file_write(fd, name, text, false);
	close(fd);
	return r;
}

int memory_put_beside(const struct memory *memory, const char *name, struct span text)
{
	cleanup(close_at) int dir_fd = open_dir(memory->path);

	return dir_fd < 0 ? dir_fd : file_write(dir_fd, name, text, false);
}

bool memory_allows(const struct memory *memory, const char *tool, struct span subject)
{
	for (uint32_t i = 0; i < memory->rule_count; i++)
		if (strcmp(memory->rules[i].tool, tool) == 0 &&
			span_equal(span_of(memory->rules[i].subject), subject))
			return true;
	return false;
}

void memory_allow(struct memory *memory, const char *tool, struct span subject)
{
	if (memory->rule_count == MEMORY_RULES_MAX || subject.len >= MEMORY_SUBJECT_BYTES ||
		memchr(subject.data, 0, subject.len))
		return; /* it is asked again */
	struct memory_rule *rule = &memory->rules[memory->rule_count++];
	snprintf(rule->tool, sizeof rule->tool, "%s", tool);
	snprintf(rule->subject, sizeof rule->subject, "%.*s", SPAN_ARGS(subject));
}

struct sweep {
	const char *state;
	int agents_fd;
	int64_t before_ms;
};

static int sweep_one(void *context, const char *name)
{
	struct sweep *sweep = context;
	struct memory memory = {0};
	cleanup(close_at) int dir_fd =
		openat(sweep->agents_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir_fd < 0)
		return 0;
	read_file(&memory, dir_fd);
	if (memory.final_ms > 0 && memory.final_ms < sweep->before_ms)
		rundir_remove(sweep->agents_fd, name);
	return 0;
}

void memory_sweep(const char *state, int64_t now_ms, int64_t keep_ms)
{
	char path[MEMORY_PATH_BYTES];
	snprintf(path, sizeof path, "%s/agents", state);
	cleanup(close_at) int agents_fd = open_dir(path);
	struct sweep sweep = {state, agents_fd, now_ms - keep_ms};

	if (agents_fd >= 0 && file_each(agents_fd, SWEPT_MAX, sweep_one, &sweep) < 0)
		return; /* the next start tries again */
}
