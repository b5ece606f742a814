/*
 * Only the file at the top of the repository counts, not one further up: the owner of a directory above, such as /tmp,
 * must not decide where our tasks go. For the same reason the file must be ours or root's.
 */
#include "cli/frame/defaults.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

enum { FILE_BYTES_MAX = 64 << 10 };

/* The path of the file, if we are in a repository; else NULL. */
static const char *find_file(struct cli *cli)
{
	cleanup(free_at) char *dir = getcwd(NULL, 0);

	while (dir && dir[0] == '/' && dir[1]) {
		if (access(cli_text(cli, "%s/.git", dir), F_OK) == 0)
			return cli_text(cli, "%s/.stint/config.json", dir);
		*strrchr(dir, '/') = 0;
	}
	return NULL;
}

/* Is it there, and ours or root's? Something else than a small file ends the run. */
static bool is_followed(struct cli *cli, const char *path)
{
	struct stat stat_;

	if (!path || stat(path, &stat_) < 0)
		return false;
	if (stat_.st_uid != geteuid() && stat_.st_uid != 0) {
		cli_say(cli, "stint: ignored %s: it belongs to another user", path);
		return false;
	}
	if (!S_ISREG(stat_.st_mode) || stat_.st_size > FILE_BYTES_MAX)
		cli_die(cli, EXIT_USAGE, "invalid", NULL, "%s is not a file of at most %d KiB", path,
			FILE_BYTES_MAX >> 10);
	return true;
}

static _Noreturn void refuse(struct cli *cli, const char *path, struct span text, size_t at, const char *what)
{
	struct json_place place = json_place(text, at);

	cli_die(cli, EXIT_USAGE, "invalid", NULL, "%s:%u:%u: %s", path, place.line, place.column, what);
}

static bool are_texts(yyjson_val *list)
{
	size_t at, count;
	yyjson_val *one;

	yyjson_arr_foreach(list, at, count, one)
	{
		if (!yyjson_is_str(one))
			return false;
	}
	return yyjson_is_arr(list);
}

static struct span keep_labels(struct cli *cli, yyjson_val *list)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 2 * FILE_BYTES_MAX);
	json_put_value(&text, list);
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &text))));
}

/* What is wrong with it, or NULL. */
static const char *take_member(
	struct cli *cli, const char *name, yyjson_val *value, struct defaults *defaults)
{
	bool is_queue = strcmp(name, "queue") == 0;

	if (is_queue || strcmp(name, "executor") == 0) {
		if (yyjson_get_len(value) == 0 || !yyjson_is_str(value))
			return cli_text(cli, "%s takes a name", name);
		*(is_queue ? &defaults->queue : &defaults->executor) =
			cli_text(cli, "%s", yyjson_get_str(value));
		return NULL;
	}
	if (strcmp(name, "labels") != 0)
		return cli_text(cli,
			"a repository may say queue, executor and labels, not %s: what runs is said by the "
			"configuration of a worker",
			cli_quote(cli, name));
	if (!are_texts(value))
		return "labels takes a list of texts";
	defaults->labels = keep_labels(cli, value);
	return NULL;
}

static void take_text(struct cli *cli, const char *path, struct span text, struct defaults *defaults)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(text, &complaint);
	size_t at, count;
	yyjson_val *key, *value;

	if (!doc)
		refuse(cli, path, text, complaint.at, complaint.reason);
	if (!yyjson_is_obj(yyjson_doc_get_root(doc)))
		refuse(cli, path, text, 0, "it must be an object, as in {\"queue\": \"ci\"}");
	yyjson_obj_foreach(yyjson_doc_get_root(doc), at, count, key, value)
	{
		const char *wrong = take_member(cli, yyjson_get_str(key), value, defaults);
		if (wrong)
			refuse(cli, path, text, json_string_at(doc, key), wrong);
	}
}

struct defaults defaults_read(struct cli *cli)
{
	const char *path = find_file(cli);
	struct defaults defaults = {0};

	if (is_followed(cli, path))
		take_text(cli, path, cli_read_input(cli, path), &defaults);
	return defaults;
}
