#include "agent/find/find.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "exec/request/search.h"
#include "wire/json/json.h"

enum { LOGIN_BYTES_MAX = 64 << 10 };

/* ---- the program -------------------------------------------------------------------------------------------- */

/* Patterns in a home; of several that match, the last one counts: its version is the highest. */
static const char *const places[] = {".local/bin/%s", ".claude/local/%s", ".npm-global/bin/%s",
	".npm-packages/bin/%s", ".nvm/versions/node/*/bin/%s", ".volta/bin/%s", ".bun/bin/%s",
	".local/share/pnpm/%s", "node_modules/.bin/%s", ".opencode/bin/%s",
	".local/share/fnm/node-versions/*/installation/bin/%s"};

static const char *find_in(struct arena *arena, const char *home, const char *place, const char *name)
{
	char within[256], pattern[4096];
	const char *at = strstr(place, "%s"), *found = NULL;
	glob_t matches = {0};

	snprintf(within, sizeof within, "%.*s%.100s", (int)(at - place), place, name);
	if ((size_t)snprintf(pattern, sizeof pattern, "%s/%s", home, within) < sizeof pattern &&
		glob(pattern, 0, NULL, &matches) == 0)
		for (size_t i = 0; i < matches.gl_pathc; i++)
			if (access(matches.gl_pathv[i], X_OK) == 0)
				found = matches.gl_pathv[i];
	if (found)
		found = arena_text(arena, "%s", found);
	globfree(&matches);
	return found;
}

const char *agent_find(struct arena *arena, const char *name, const char *path, const char *home)
{
	char file[SEARCH_PATH_BYTES];

	if (path && search_program(path, name, file) == 0)
		return arena_text(arena, "%s", file);
	for (size_t i = 0; home && home[0] == '/' && i < sizeof places / sizeof *places; i++) {
		const char *found = find_in(arena, home, places[i], name);
		if (found)
			return found;
	}
	return NULL;
}

/* ---- its login ---------------------------------------------------------------------------------------------- */

/* The value of NAME in the list; NULL: it is not there, or empty. */
static const char *value_in(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=' && env[i][len + 1])
			return env[i] + len + 1;
	return NULL;
}

static bool take_key(struct login *login, const struct adapter *adapter, const char *const *env)
{
	for (size_t i = 0; adapter->login.variables && adapter->login.variables[i]; i++) {
		const char *name = adapter->login.variables[i], *value = value_in(env, name);
		if (!value)
			value = getenv(name);
		if (value && value[0]) {
			*login = (struct login){.kind = LOGIN_KEY, .variable = name, .token = value};
			return true;
		}
	}
	return false;
}

/* "a.b" in an object. */
static yyjson_val *value_at(yyjson_val *object, const char *path)
{
	while (object && path && *path) {
		size_t len = strcspn(path, ".");
		object = yyjson_obj_getn(object, path, len);
		path += len + (path[len] == '.');
	}
	return object;
}

static bool read_in(const char *dir, const char *name, struct buf *text)
{
	cleanup(close_at) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir_fd >= 0 && file_read(dir_fd, name, text) == 0;
}

static bool take_persons(struct login *login, struct arena *arena, const struct adapter *adapter,
	const char *home, int64_t needed_ms)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint complaint;
	const char *file = adapter->login.file, *slash = file ? strrchr(file, '/') : NULL;

	buf_init(&text, LOGIN_BYTES_MAX);
	if (!slash || !home ||
		!read_in(arena_text(arena, "%s/%.*s", home, (int)(slash - file), file), slash + 1, &text))
		return false;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&text), &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc), *until = value_at(root, adapter->login.until);
	struct span token = json_text(value_at(root, adapter->login.token));
	if (token.len == 0)
		return false;
	int64_t until_ms = yyjson_is_int(until) ? yyjson_get_sint(until) : 0;
	if (until_ms < needed_ms) {
		login->too_short = true;
		login->until_ms = until_ms;
		return false;
	}
	*login = (struct login){.kind = LOGIN_PERSON,
		.variable = adapter->login.variable,
		.token = arena_text(arena, "%.*s", SPAN_ARGS(token)),
		.until_ms = until_ms};
	return true;
}

static void take_own(
	struct login *login, struct arena *arena, const struct adapter *adapter, const char *state)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, LOGIN_BYTES_MAX);
	if (!adapter->login.variable || !read_in(arena_text(arena, "%s/logins", state), adapter->name, &text))
		return;
	struct span token = buf_span(&text);
	while (token.len > 0 && strchr(" \t\r\n", token.data[token.len - 1]))
		token.len--;
	if (token.len > 0)
		*login = (struct login){.kind = LOGIN_OWN,
			.variable = adapter->login.variable,
			.token = arena_text(arena, "%.*s", SPAN_ARGS(token))};
}

void login_find(struct login *login, struct arena *arena, const struct adapter *adapter,
	const char *const *env, const char *home, const char *state, int64_t needed_ms)
{
	*login = (struct login){0};
	if (!take_key(login, adapter, env) && !take_persons(login, arena, adapter, home, needed_ms))
		take_own(login, arena, adapter, state);
}

const char *login_describe(const struct login *login, struct arena *arena, int64_t now_ms)
{
	int64_t left_min = (login->until_ms - now_ms) / 60000;

	switch (login->kind) {
	case LOGIN_KEY:
		return arena_text(arena, "key %s", login->variable);
	case LOGIN_PERSON:
		return arena_text(arena, "your login, for %lld min more", (long long)left_min);
	case LOGIN_OWN:
		return "a token of stint's own";
	case LOGIN_NONE:
		break;
	}
	if (login->too_short)
		return left_min > 0 ? arena_text(arena, "your login ends in %lld min, too soon for a task",
					      (long long)left_min)
				    : "your login has ended";
	return "not logged in";
}

int login_keep(const char *state, const struct adapter *adapter, struct span token)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof path, "%s/logins", state) >= sizeof path)
		return -ENAMETOOLONG;
	int r = directory_make(path);
	if (r < 0)
		return r;
	cleanup(close_at) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -errno : file_write(dir_fd, adapter->name, token, true);
}
