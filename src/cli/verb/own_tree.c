#include "cli/verb/own_tree.h"

#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/spawn.h"

enum { STATUS_BYTES_MAX = 1 << 20 };

bool takes_changes(const struct cli *cli)
{
	return verb_flag(cli->verb, "with-changes", 12) && args_has(&cli->args, "with-changes");
}

static bool is_in_repository(struct cli *cli, const char *dir)
{
	for (size_t len = strlen(dir); len > 0;) {
		if (access(cli_text(cli, "%.*s/.git", (int)len, dir), F_OK) == 0)
			return true;
		while (len > 0 && dir[len - 1] != '/')
			len--;
		len -= len > 0;
	}
	return false;
}

/* How many files git calls changed or new. 0 also if git cannot tell. */
static size_t count_changes(const char *dir)
{
	const char *argv[] = {"git", "-C", dir, "status", "--porcelain", "--untracked-files=normal", NULL};
	cleanup(buf_done) struct buf said = {0};
	size_t count = 0;

	buf_init(&said, STATUS_BYTES_MAX);
	if (spawn_and_read(argv, &said) != 0)
		return 0;
	struct span text = buf_span(&said);
	for (size_t i = 0; i < text.len; i++)
		count += text.data[i] == '\n';
	return count;
}

/*
 * The changes as a commit on top of HEAD, made in an index of its own: the person's tree, index and branch stay as they are. A ref keeps
 * the commit until somebody removes it, because the task may wait for longer than git keeps what nothing leads to.
 */
static const char snapshot[] =
	"index=$(mktemp) || exit 1\n"
	"trap 'rm -f \"$index\"' EXIT\n"
	"cp \"$(git rev-parse --path-format=absolute --git-path index)\" \"$index\" 2>/dev/null\n"
	"GIT_INDEX_FILE=$index git add --all . >&2 || exit 1\n"
	"tree=$(GIT_INDEX_FILE=$index git write-tree) || exit 1\n"
	"commit=$(git commit-tree \"$tree\" -p HEAD -m 'Changes that were not committed') || exit 1\n"
	"git update-ref \"refs/stint/changes/$commit\" \"$commit\" || exit 1\n"
	"printf %s \"$commit\"\n";

/* The commit. */
static struct span take_changes(struct cli *cli, const char *dir)
{
	const char *argv[] = {"sh", "-c",
		"cd \"$1\" && cd \"$(git rev-parse --show-toplevel)\" && eval \"$2\"", "sh", dir, snapshot,
		NULL};
	struct buf said = {0};

	buf_init(&said, STATUS_BYTES_MAX);
	if (spawn_and_hear(argv, &said) != 0 || said.len == 0)
		cli_die(cli, EXIT_FAILURE, "git", NULL,
			"the changes in %s cannot be taken along: git says why above; commit them, or leave out --with-changes",
			dir);
	return cli_span(cli, &said);
}

void own_tree_put(struct cli *cli, struct json_object *task, const char *dir)
{
	struct json_object tree;
	bool in_repository = is_in_repository(cli, dir);

	if (takes_changes(cli) && !in_repository)
		cli_die(cli, EXIT_USAGE, "usage", "stint help add",
			"--with-changes takes along what git calls changed, and %s is in no git repository",
			dir);
	if (takes_changes(cli) && args_has(&cli->args, "worktree"))
		cli_die(cli, EXIT_USAGE, "usage", "stint help add",
			"--with-changes gives it a work tree already: leave out --worktree");
	if (!in_repository)
		return;
	size_t count = takes_changes(cli) ? count_changes(dir) : 0;
	if (count == 0) {
		if (!args_has(&cli->args, "worktree"))
			json_member_bool(task, "worktree", true);
		return;
	}
	struct span commit = take_changes(cli, dir);
	cli_say(cli,
		"stint: %zu changed file%s in %s %s taken along, as commit %.12s; your own tree stays as it is",
		count, count == 1 ? "" : "s", dir, count == 1 ? "is" : "are", commit.data);
	if (json_put_key(task, "worktree")) {
		json_begin(&tree, task->buf);
		json_member_string(&tree, "base", commit);
		json_end(&tree);
	}
}

/* A work tree begins with what is committed. */
void own_tree_tell(struct cli *cli, yyjson_val *task)
{
	const char *dir = field_cstr(cli, task, "workingDir");
	size_t count = yyjson_is_true(field_get(task, "worktree")) && dir[0] ? count_changes(dir) : 0;

	if (count > 0)
		cli_say(cli,
			"stint: %zu changed file%s in %s %s not committed and stay%s behind: the agent does not see %s; "
			"--with-changes takes %s along",
			count, count == 1 ? "" : "s", dir, count == 1 ? "is" : "are", count == 1 ? "s" : "",
			count == 1 ? "it" : "them", count == 1 ? "it" : "them");
}
