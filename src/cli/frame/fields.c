/*
 * Members of what the server answered, and values from the command line and from files.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/cli.h"

enum {
	INPUT_BYTES_MAX = 16 << 20,
};

yyjson_val *field_get(yyjson_val *object, const char *key)
{
	return yyjson_obj_get(object, key);
}

struct span field_text(yyjson_val *object, const char *key)
{
	return json_text(yyjson_obj_get(object, key));
}

const char *field_cstr(struct cli *cli, yyjson_val *object, const char *key)
{
	struct span text = field_text(object, key);

	return cli_text(cli, "%.*s", SPAN_ARGS(text));
}

int64_t field_int(yyjson_val *object, const char *key, int64_t otherwise)
{
	yyjson_val *value = yyjson_obj_get(object, key);

	return yyjson_is_int(value) ? yyjson_get_sint(value) : otherwise;
}

bool field_bool(yyjson_val *object, const char *key)
{
	return yyjson_is_true(yyjson_obj_get(object, key));
}

/* "a,b" and the next "c" are three. */
void cli_put_names(struct buf *list, const struct args *args, const char *flag)
{
	const char *names;
	size_t at = 0;

	while ((names = args_each(args, flag, &at))) {
		for (size_t len; *names; names += len + (names[len] == ',')) {
			len = strcspn(names, ",");
			if (len > 0 && list->len > 1)
				buf_put_byte(list, ',');
			if (len > 0)
				json_put_string(list, (struct span){names, len});
		}
	}
}

void cli_member_names(struct cli *cli, struct json_object *object, const char *flag, const char *key)
{
	cleanup(buf_done) struct buf list = {0};

	if (!args_has(&cli->args, flag))
		return;
	buf_init(&list, INPUT_BYTES_MAX);
	buf_put_byte(&list, '[');
	cli_put_names(&list, &cli->args, flag);
	buf_put_byte(&list, ']');
	json_member_buf(object, key, &list);
}

void cli_members_of(struct json_object *object, yyjson_val *from, const char *but)
{
	size_t at, count;
	yyjson_val *key, *value;

	yyjson_obj_foreach(from, at, count, key, value)
	{
		if (!but || strcmp(yyjson_get_str(key), but) != 0)
			json_member_node(object, key, value);
	}
}

int cli_read_input(struct cli *cli, const char *path, struct span *ret_text)
{
	bool standard = strcmp(path, "-") == 0;
	cleanup(close_at) int opened = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	cleanup(buf_done) struct buf text = {0};
	char block[16 << 10];
	ssize_t got = 0;

	if (!standard && opened < 0)
		return cli_fail(
			cli, EXIT_USAGE, "unreadable", NULL, "cannot read %s: %s", path, strerror(errno));
	if (standard && isatty(STDIN_FILENO))
		cli_say(cli, "stint: reading from the terminal; Ctrl-D ends it");
	buf_init(&text, INPUT_BYTES_MAX);
	while (!buf_fault(&text) && (got = read(standard ? STDIN_FILENO : opened, block, sizeof block)) > 0)
		buf_put(&text, block, (size_t)got);
	if (got < 0)
		return cli_fail(
			cli, EXIT_USAGE, "unreadable", NULL, "cannot read %s: %s", path, strerror(errno));
	int r = buf_fault(&text);
	if (r == -E2BIG)
		return cli_fail(cli, EXIT_USAGE, "too_large", NULL, "%s has more than %d MiB", path,
			INPUT_BYTES_MAX >> 20);
	if (r == 0)
		r = arena_copy(&cli->arena, buf_span(&text), ret_text);
	return r < 0 ? cli_fail_fault(cli, r) : 0;
}

/* That it is not JSON is said already. */
static const char *what_is_wrong(const struct json_complaint *complaint)
{
	static const char said[] = "This is not JSON: ";
	bool says_it = strncmp(complaint->reason, said, sizeof said - 1) == 0;

	return complaint->reason + (says_it ? sizeof said - 1 : 0);
}

int cli_read_json_flag(struct cli *cli, const char *flag, struct span *ret_json)
{
	const char *value = args_text(&cli->args, flag);
	struct span text = span_of(value);
	struct json_complaint complaint;
	int r = 0;

	if (!value)
		return 0;
	if (value[0] == '@' || strcmp(value, "-") == 0)
		r = cli_read_input(cli, value[0] == '@' ? value + 1 : value, &text);
	if (r != 0)
		return r;
	yyjson_doc *doc = json_read(text, &complaint);
	if (!doc)
		return cli_fail(cli, EXIT_USAGE, "invalid", cli_text(cli, "stint help %s", cli->verb->name),
			"--%s is not JSON at byte %zu: %s", flag, complaint.at, what_is_wrong(&complaint));
	yyjson_doc_free(doc);
	*ret_json = text;
	return 0;
}
