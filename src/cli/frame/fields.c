/*
 * Members of what the server answered, and values from the command line and from files.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
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

const char *cli_join(struct cli *cli, yyjson_val *list, const char *between)
{
	const char *text = "";
	size_t at, count;
	yyjson_val *word;

	yyjson_arr_foreach(list, at, count, word)
	{
		text = cli_text(cli, "%s%s%.*s", text, at > 0 ? between : "", SPAN_ARGS(json_text(word)));
	}
	return text;
}

/* ---- input ------------------------------------------------------------------------------------------------- */

static _Noreturn void fail_to_read(struct cli *cli, const char *path)
{
	cli_die(cli, EXIT_USAGE, "unreadable", NULL, "cannot read %s: %s", path, strerror(errno));
}

struct span cli_read_input(struct cli *cli, const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	cleanup(close_at) int opened = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	cleanup(buf_done) struct buf text = {0};
	char block[16 << 10];
	struct span kept;
	ssize_t got = 0;

	if (!standard && opened < 0)
		fail_to_read(cli, path);
	if (standard && isatty(STDIN_FILENO))
		cli_say(cli, "stint: reading from the terminal; Ctrl-D ends it");
	buf_init(&text, INPUT_BYTES_MAX);
	while (!buf_fault(&text) && (got = read(standard ? STDIN_FILENO : opened, block, sizeof block)) > 0)
		buf_put(&text, block, (size_t)got);
	if (got < 0)
		fail_to_read(cli, path);
	if (buf_fault(&text) == -E2BIG)
		cli_die(cli, EXIT_USAGE, "too_large", NULL, "%s has more than %d MiB", path,
			INPUT_BYTES_MAX >> 20);
	int r = arena_copy(&cli->arena, cli_span(cli, &text), &kept);
	if (r < 0)
		cli_exit(cli, cli_fail_fault(cli, r));
	return kept;
}

/* The reason without "This is not JSON": our sentence says that already. */
static const char *what_is_wrong(const struct json_complaint *complaint)
{
	static const char said[] = "This is not JSON: ";
	bool says_it = strncmp(complaint->reason, said, sizeof said - 1) == 0;

	return complaint->reason + (says_it ? sizeof said - 1 : 0);
}

/* The value of a flag of kind FLAG_JSON: text, @FILE or - for standard input. */
static struct span read_json(struct cli *cli, const char *flag, const char *value)
{
	bool from_file = value[0] == '@' || strcmp(value, "-") == 0;
	struct span text = from_file ? cli_read_input(cli, value + (value[0] == '@')) : span_of(value);
	struct json_complaint complaint;

	yyjson_doc *doc = json_read(text, &complaint);
	if (!doc)
		cli_die(cli, EXIT_USAGE, "invalid", cli_text(cli, "stint help %s", cli->verb->name),
			"--%s is not JSON at byte %zu: %s", flag, complaint.at, what_is_wrong(&complaint));
	yyjson_doc_free(doc);
	return text;
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

struct json_object *cli_body(struct cli *cli)
{
	buf_clear(&cli->body);
	json_begin(&cli->members, &cli->body);
	return &cli->members;
}

struct span cli_body_end(struct cli *cli)
{
	json_end(&cli->members);
	return cli_span(cli, &cli->body);
}

const char *cli_random_key(struct cli *cli)
{
	uint64_t bits[2] = {0};

	if (getrandom(bits, sizeof bits, 0) != sizeof bits)
		return NULL;
	return cli_text(cli, "cli-%016llx%016llx", (unsigned long long)bits[0], (unsigned long long)bits[1]);
}

void cli_member_text(struct json_object *object, const char *key, const char *text)
{
	if (text)
		json_member_string(object, key, span_of(text));
}

void cli_put_names(struct buf *list, const struct args *args, const char *flag)
{
	struct args_names walk = {0};
	struct span name;

	while (args_each_name(args, flag, &walk, &name)) {
		if (list->len > 1)
			buf_put_byte(list, ',');
		json_put_string(list, name);
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

/* The values of a flag that may be repeated. */
static void member_texts(struct cli *cli, struct json_object *object, const struct flag *flag)
{
	bool any = false;
	const char *text;
	size_t at = 0;

	json_put_key(object, flag->member);
	buf_put_byte(object->buf, '[');
	while ((text = args_each(&cli->args, flag->name, &at))) {
		json_put_comma(object->buf, &any);
		json_put_string(object->buf, span_of(text));
	}
	buf_put_byte(object->buf, ']');
}

static void member_flag(struct cli *cli, struct json_object *object, const struct flag *flag)
{
	const char *text = args_text(&cli->args, flag->name);

	switch (flag->kind) {
	case FLAG_SWITCH:
		json_member_bool(object, flag->member, true);
		break;
	case FLAG_NAMES:
		cli_member_names(cli, object, flag->name, flag->member);
		break;
	case FLAG_TEXT:
	case FLAG_CHOICE:
	case FLAG_FIELDS:
		if (flag->many)
			member_texts(cli, object, flag);
		else if (text &&
			(text[0] || !cli->verb->stands_in)) /* the other program takes nothing for no flag */
			json_member_string(object, flag->member, span_of(text));
		break;
	case FLAG_NUMBER:
	case FLAG_DURATION:
	case FLAG_MOMENT:
	case FLAG_PRIORITY:
		json_member_int(object, flag->member, args_number(&cli->args, flag->name, 0));
		break;
	case FLAG_JSON:
		json_member_raw(object, flag->member, read_json(cli, flag->name, text));
		break;
	}
}

void cli_member_flags(struct cli *cli, struct json_object *object)
{
	for (const struct flag *flag = cli->verb->flags; flag && flag->name; flag++) {
		if (flag->member && args_has(&cli->args, flag->name))
			member_flag(cli, object, flag);
	}
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
