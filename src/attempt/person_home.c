#include "attempt/person_home.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/take.h"
#include "attempt/git_identity.h"
#include "exec/request/ancestors.h"

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static const char *const toolchains[] = {".pyenv", ".nvm", ".volta", ".asdf", ".sdkman", ".rbenv", ".nodenv",
	".rustup", ".bun", ".deno", ".ghcup", ".cargo/bin", ".cargo/env", ".cargo/config.toml",
	".cargo/registry", ".cargo/git", "go", ".local/bin", ".local/lib", ".local/share/uv",
	".local/share/pipx", ".local/share/pnpm", ".local/share/mise", ".local/share/fnm",
	".local/share/virtualenvs", ".local/share/claude", ".m2/repository", ".config/git/ignore",
	".config/git/attributes"};

/* Beneath the home. A star stands for part of a name. */
static const char *const secrets[] = {".ssh", ".gnupg", ".pki", ".aws", ".azure", ".kube", ".docker",
	".config/gcloud", ".config/gh", ".config/glab-cli", ".config/op", ".config/rclone", ".config/sops",
	".config/containers", ".config/doctl", ".config/stripe", ".config/ngrok", ".config/Code",
	".config/JetBrains", ".config/stint", ".config/systemd", ".config/autostart", ".netrc",
	".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip",
	".cargo/credentials*", ".gem", ".bundle", ".m2/settings*.xml", ".gradle", ".nuget", ".composer",
	".terraform.d", ".vault-token", ".password-store", ".local/share/keyrings", ".local/share/kwalletd",
	".pgpass", ".my.cnf", ".mylogin.cnf", "*_history", ".Xauthority", ".ICEauthority", ".mozilla",
	".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/BraveSoftware",
	".config/microsoft-edge*", ".config/vivaldi", ".config/Signal", ".config/Slack", ".config/discord",
	".var", "snap", "Mail", "Maildir", ".claude*", ".codex", ".gemini", ".openclaw", ".config/opencode",
	".bitcoin", ".electrum", ".cache/huggingface", "*.kdbx", "*.pem", "*.key", "id_*"};

/* Where a toolchain looks for itself. With a private HOME it finds the person's tree by these alone. */
static const struct {
	const char *variable, *tree; /* NULL: only if it is set */
} tools[] = {
	{"PYENV_ROOT", ".pyenv"},
	{"NVM_DIR", ".nvm"},
	{"VOLTA_HOME", ".volta"},
	{"ASDF_DATA_DIR", ".asdf"},
	{"RUSTUP_HOME", ".rustup"},
	{"SDKMAN_DIR", ".sdkman"},
	{"RBENV_ROOT", ".rbenv"},
	{"NODENV_ROOT", ".nodenv"},
	{"MISE_DATA_DIR", ".local/share/mise"},
	{"FNM_DIR", ".local/share/fnm"},
	{"UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"},
	{"GOROOT", NULL},
};

/* What tools write: one directory for each executor. */
static const struct {
	const char *variable, *dir;
} caches[] = {
	{"XDG_CACHE_HOME", ""},
	{"npm_config_cache", "/npm"},
	{"CARGO_HOME", "/cargo"},
	{"GOCACHE", "/go-build"},
	{"GOMODCACHE", "/go-mod"},
	{"PIP_CACHE_DIR", "/pip"},
	{"UV_CACHE_DIR", "/uv"},
	{"GRADLE_USER_HOME", "/gradle"},
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

static size_t depth_of(const char *path)
{
	size_t depth = 1;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

/* The length of the first names of `rel`, as many as `count`; 0: it has fewer. */
static size_t length_of_names(const char *rel, size_t count)
{
	const char *at = rel;

	for (size_t i = 1; (at = strchrnul(at, '/')), i < count && *at; i++)
		at++;
	return depth_of(rel) < count ? 0 : (size_t)(at - rel);
}

/* Is `rel` what the pattern says, or does it lie in it? */
static bool is_in_secret(const char *rel, const char *pattern)
{
	size_t len = length_of_names(rel, depth_of(pattern));
	char head[NAME_MAX * 2];

	if (len == 0 || len >= sizeof head)
		return false;
	memcpy(head, rel, len);
	head[len] = 0;
	return fnmatch(pattern, head, FNM_PATHNAME) == 0;
}

static bool is_secret(const char *rel)
{
	size_t len = strlen(rel);

	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		bool holds = strncmp(secrets[i], rel, len) == 0 && secrets[i][len] == '/';
		if (holds || is_in_secret(rel, secrets[i]))
			return true;
	}
	return false;
}

/* `rel` lies in the tree, or is it. */
static const char *toolchain_of(const char *rel)
{
	for (size_t i = 0; i < sizeof toolchains / sizeof *toolchains; i++)
		if (path_lies_in(rel, toolchains[i]))
			return toolchains[i];
	return NULL;
}

static const char *name_in(const struct person_home *home, const char *path)
{
	size_t len = strlen(home->path);

	return path_lies_in(path, home->path) && path[len] == '/' && path[len + 1] ? path + len + 1 : NULL;
}

enum home_kind person_home_kind(const struct person_home *home, const char *path)
{
	const char *rel = home->path ? name_in(home, path) : NULL;

	if (home->state && (path_lies_in(path, home->state) || path_lies_in(home->state, path)))
		return home->path && path_lies_in(home->path, path) ? HOME_ABOVE : HOME_STATE;
	if (home->path && path_lies_in(home->path, path))
		return HOME_ABOVE;
	if (home->token && (path_lies_in(path, home->token) || path_lies_in(home->token, path)))
		return HOME_SECRET;
	for (size_t i = 0; i < home->led_count; i++)
		if (path_lies_in(path, home->led[i]) || path_lies_in(home->led[i], path))
			return HOME_SECRET;
	if (!rel)
		return HOME_OUTSIDE;
	if (is_secret(rel))
		return HOME_SECRET;
	if (toolchain_of(rel))
		return HOME_TOOLCHAIN;
	return rel[0] == '.' ? HOME_CLOSED : HOME_OPEN;
}

bool person_home_allows(const struct person_home *home, const char *path)
{
	switch (person_home_kind(home, path)) {
	case HOME_OUTSIDE:
	case HOME_OPEN:
	case HOME_TOOLCHAIN:
	case HOME_CLOSED:
		return true;
	case HOME_ABOVE:
	case HOME_SECRET:
	case HOME_STATE:
		break;
	}
	return false;
}

const char *person_home_toolchain(const struct person_home *home, struct arena *arena, const char *path)
{
	const char *rel = home->path ? name_in(home, path) : NULL, *tree = rel ? toolchain_of(rel) : NULL;

	return tree ? arena_text(arena, "%s/%s", home->path, tree) : NULL;
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

int person_home_find(struct person_home *home, struct arena *arena, const char *state)
{
	const char *given = getenv("HOME");
	char real[ANCESTORS_NAME_BYTES];

	*home = (struct person_home){0};
	if (state && ancestors_real_name(state, real))
		home->state = arena_text(arena, "%s", real);
	if (given && given[0] == '/' && ancestors_real_name(given, real) && strcmp(real, "/") != 0)
		home->path = arena_text(arena, "%s", real);
	return (home->state && !home->state[0]) || (home->path && !home->path[0]) ? -ENOMEM : 0;
}

/* A secret that is found by its own name is closed already. */
static void note_led(struct person_home *home, struct arena *arena, const char **led, const char *path)
{
	char real[ANCESTORS_NAME_BYTES];

	if (home->led_count < PERSON_HOME_LED_MAX && realpath(path, real) && strcmp(real, path) != 0 &&
		!path_lies_in(home->path, real))
		led[home->led_count++] = arena_text(arena, "%s", real);
}

/* Patterns of entries of the home itself: in one pass over it. */
static void look_at_entries(struct person_home *home, struct arena *arena, const char **led)
{
	char path[ANCESTORS_NAME_BYTES];
	struct dirent *entry;
	DIR *dir = opendir(home->path);

	while (dir && (entry = readdir(dir)))
		for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
			if (entry->d_type != DT_DIR && entry->d_type != DT_REG && strchr(secrets[i], '*') &&
				!strchr(secrets[i], '/') && fnmatch(secrets[i], entry->d_name, 0) == 0 &&
				(size_t)snprintf(path, sizeof path, "%s/%s", home->path, entry->d_name) <
					sizeof path)
				note_led(home, arena, led, path);
	if (dir)
		closedir(dir);
}

/* Those in a directory of the home, as .cargo/credentials*. */
static void look_beneath(struct person_home *home, struct arena *arena, const char **led, const char *pattern)
{
	glob_t found = {0};

	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			note_led(home, arena, led, found.gl_pathv[i]);
	globfree(&found);
}

int person_home_look(struct person_home *home, struct arena *arena)
{
	char path[ANCESTORS_NAME_BYTES];

	home->led_count = 0;
	if (!home->path)
		return 0;
	cleanup(close_at) int home_fd = open(home->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char **led = arena_alloc(arena, PERSON_HOME_LED_MAX * sizeof *led);
	if (!led)
		return -ENOMEM;
	home->led = led;
	look_at_entries(home, arena, led);
	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		bool star = strchr(secrets[i], '*') != NULL;
		if ((size_t)snprintf(path, sizeof path, "%s/%s", home->path, secrets[i]) >= sizeof path)
			continue;
		if (star && strchr(secrets[i], '/'))
			look_beneath(home, arena, led, path);
		else if (!star && faccessat(home_fd, secrets[i], F_OK, 0) == 0) /* most are not there */
			note_led(home, arena, led, path);
	}
	return 0;
}

/* ---- work dirs --------------------------------------------------------------------------------------------------- */

/* Does the configuration name this place itself, or one in the same dot entry above it? */
static bool is_named(const struct person_home *home, const char *const *roots, size_t count, const char *path)
{
	char real[ANCESTORS_NAME_BYTES];

	for (size_t i = 0; i < count; i++) {
		if (!ancestors_real_name(roots[i], real) || !path_lies_in(path, real))
			continue;
		if (strcmp(real, path) == 0)
			return true;
		enum home_kind kind = person_home_kind(home, real);
		if (kind == HOME_CLOSED || kind == HOME_TOOLCHAIN || kind == HOME_SECRET)
			return true;
	}
	return false;
}

const char *person_home_bars(
	const struct person_home *home, const char *const *roots, size_t root_count, const char *path)
{
	const char *rel = home->path ? name_in(home, path) : NULL, *why = NULL;

	switch (person_home_kind(home, path)) {
	case HOME_ABOVE:
		why = "holds the private files of your home";
		break;
	case HOME_SECRET:
		why = "is a place where secrets are kept, or holds one";
		break;
	case HOME_CLOSED:
		why = "lies in an entry of your home that begins with a dot";
		break;
	case HOME_TOOLCHAIN:
		why = rel && rel[0] == '.' ? "lies in an entry of your home that begins with a dot" : NULL;
		break;
	case HOME_OUTSIDE:
	case HOME_OPEN:
	case HOME_STATE: /* process_start() knows which part of it is the attempt's own */
		break;
	}
	return why && !is_named(home, roots, root_count, path) ? why : NULL;
}

/* ---- grants ------------------------------------------------------------------------------------------------------ */

struct showing {
	const struct person_home *home;
	struct arena *arena;
	struct grant *grants;
	size_t count, most, seen;
	bool failed;
	person_home_omitted omitted;
	void *context;
};

static int open_plain(int dir, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);

	return fd < 0 ? -errno : (int)fd;
}

/* One link is followed: the first on the way, which stands in the home or in a dot entry of it, where no task writes. A link
 * behind it may be a task's. */
static int open_entry(int home_fd, const char *rel)
{
	char head[PATH_MAX], target[PATH_MAX], joined[2 * PATH_MAX];
	int fd = open_plain(home_fd, rel);

	for (size_t i = 1; fd == -ELOOP && i <= depth_of(rel); i++) {
		size_t len = length_of_names(rel, i);
		snprintf(head, sizeof head, "%.*s", (int)len, rel);
		ssize_t got = readlinkat(home_fd, head, target, sizeof target - 1);
		if (got <= 0)
			continue;
		target[got] = 0;
		char *slash = strrchr(head, '/');
		head[slash ? slash - head : 0] = 0;
		int n = target[0] == '/' ? snprintf(joined, sizeof joined, "%s%s", target, rel + len)
					 : snprintf(joined, sizeof joined, "%s%s%s%s", head,
						   head[0] ? "/" : "", target, rel + len);
		return n < (int)sizeof joined ? open_plain(target[0] == '/' ? AT_FDCWD : home_fd, joined)
					      : -ENAMETOOLONG;
	}
	return fd;
}

static const char *name_of(struct arena *arena, int fd)
{
	char link[64], path[PATH_MAX];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	path[len > 0 ? len : 0] = 0;
	return path[0] == '/' ? arena_text(arena, "%s", path) : NULL;
}

static void omit(struct showing *showing, const char *rel, const char *why)
{
	if (showing->omitted)
		showing->omitted(
			showing->context, arena_text(showing->arena, "%s/%s", showing->home->path, rel), why);
}

static const char *why_omitted(enum home_kind kind, bool linked, bool named)
{
	switch (kind) {
	case HOME_OUTSIDE:
	case HOME_OPEN:
	case HOME_TOOLCHAIN:
		return NULL;
	case HOME_CLOSED:
		return linked && !named ? "it leads into an entry that begins with a dot" : NULL;
	case HOME_ABOVE:
		return "it leads to the home itself or above it";
	case HOME_SECRET:
		return linked ? "it leads to a known secret" : "it is a known secret, or holds one";
	case HOME_STATE:
		return "it holds the state directory of stint";
	}
	return NULL;
}

/* `path` has no links in it. `named`: it is a toolchain tree by its name. */
static void show(struct showing *showing, const char *rel, const char *path, bool linked, bool named)
{
	const char *why = why_omitted(person_home_kind(showing->home, path), linked, named);

	if (why) {
		omit(showing, rel, why);
		return;
	}
	showing->seen++;
	if (showing->count == showing->most)
		return;
	showing->failed |= path[0] == 0;
	showing->grants[showing->count++] = (struct grant){.path = path,
		.fd = -1,
		.access = GRANT_READ,
		.optional = true,
		.direct = true,
		.outside = linked, /* where a link leads was compared a moment ago */
		.inside = linked ? arena_text(showing->arena, "%s/%s", showing->home->path, rel) : NULL};
}

static void show_opened(struct showing *showing, int home_fd, const char *rel, bool named)
{
	cleanup(close_at) int fd = open_entry(home_fd, rel);
	struct stat stat_;
	const char *path = fd >= 0 ? name_of(showing->arena, fd) : NULL;

	if (fd == -ELOOP)
		omit(showing, rel, "it leads through more than one link");
	if (!path || fstat(fd, &stat_) < 0 || !(S_ISDIR(stat_.st_mode) || S_ISREG(stat_.st_mode)))
		return;
	const char *own = arena_text(showing->arena, "%s/%s", showing->home->path, rel);
	show(showing, rel, path, strcmp(own, path) != 0, named);
}

static void show_entries(struct showing *showing, DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)) && !showing->failed) {
		if (entry->d_name[0] == '.')
			continue;
		if (entry->d_type != DT_DIR && entry->d_type != DT_REG)
			show_opened(showing, dirfd(dir), entry->d_name, false);
		else
			show(showing, entry->d_name,
				arena_text(showing->arena, "%s/%s", showing->home->path, entry->d_name),
				false, false);
	}
}

/* A tree that a variable of ours names. A task may have put a link on its way: none is followed. */
static void show_named(struct showing *showing, const char *tree)
{
	cleanup(close_at) int fd = tree && tree[0] == '/' ? open_plain(AT_FDCWD, tree) : -1;
	const char *path = fd >= 0 ? name_of(showing->arena, fd) : NULL;

	if (path && person_home_allows(showing->home, path))
		show(showing, tree, path, false, true);
}

int person_home_grants(const struct person_home *home, struct arena *arena, struct grant *grants, size_t most,
	person_home_omitted omitted, void *context)
{
	struct showing showing = {home, arena, grants, .most = most, .omitted = omitted, .context = context};
	DIR *dir = home->path ? opendir(home->path) : NULL;

	if (!dir)
		return home->path && errno == ENOMEM ? -ENOMEM : 0;
	for (size_t i = 0; i < sizeof toolchains / sizeof *toolchains; i++)
		if (toolchains[i][0] == '.')
			show_opened(&showing, dirfd(dir), toolchains[i], true);
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
		show_named(&showing, getenv(tools[i].variable));
	show_entries(&showing, dir);
	closedir(dir);
	if (showing.seen > showing.count && omitted)
		omitted(context, home->path, "it has more entries than can be shown");
	return showing.failed ? -ENOMEM : (int)showing.count;
}

/* Unless the worker has them in its own environment, in which case those count. */
static void put_identity(
	const struct person_home *home, struct arena *arena, person_home_variable each, void *context)
{
	struct git_identity identity = {0};

	if (home->path)
		git_identity_read(&identity, arena, home->path);
	const char *values[] = {identity.name, identity.email, identity.name, identity.email};
	static const char *const names[] = {
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *own = getenv(names[i]), *value = own && own[0] ? own : values[i];
		if (value)
			each(context, names[i], value);
	}
}

void person_home_variables(const struct person_home *home, struct arena *arena, const char *cache,
	person_home_variable each, void *context)
{
	put_identity(home, arena, each, context);
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
		const char *own = getenv(tools[i].variable);
		const char *tree = home->path && tools[i].tree
			? arena_text(arena, "%s/%s", home->path, tools[i].tree)
			: NULL;
		if (own && own[0] == '/')
			each(context, tools[i].variable, own);
		else if (tree && access(tree, F_OK) == 0)
			each(context, tools[i].variable, tree);
	}
	for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
		each(context, caches[i].variable, arena_text(arena, "%s%s", cache, caches[i].dir));
}
