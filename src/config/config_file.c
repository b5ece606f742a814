/*
 * One file of the configuration. yyjson reads it; its keys tell their places in the text, so that every complaint
 * has a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "config/reading.h"
#include "wire/form/form.h"

struct config_file {
	struct config *config;
	const char *path;
	struct span text;
	yyjson_doc *doc;
	size_t seen_at; /* keys come in the order of the text: lines are counted on from the last one */
	struct json_place seen;
};

static struct config_origin origin_at(struct config_file *file, size_t at)
{
	if (at < file->seen_at) { /* the caller goes back to an earlier key */
		file->seen_at = 0;
		file->seen = (struct json_place){1, 1};
	}
	struct span between = {file->text.data + file->seen_at, file->text.len - file->seen_at};
	struct json_place further = json_place(between, at - file->seen_at);

	file->seen.column = further.line > 1 ? further.column : file->seen.column + further.column - 1;
	file->seen.line += further.line - 1;
	file->seen_at = at;
	return (struct config_origin){CONFIG_FILE, file->path, file->seen.line, file->seen.column};
}

struct config_origin config_form_origin(const struct form *form)
{
	struct config_file *file = form->context;

	return origin_at(file, json_string_at(file->doc, form->place));
}

struct config *config_of(const struct form *form)
{
	return ((struct config_file *)form->context)->config;
}

static void note_error(struct form *form, const char *name, const char *message)
{
	struct config_file *file = form->context;

	config_note_problem(file->config, config_form_origin(form), "%s %s", name, message);
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

static void take_object(struct config_file *file, const char *group, yyjson_val *object);

/* What is in it, without the values of members: they may be secrets. */
static const char *names_in(struct config *config, yyjson_val *value)
{
	bool is_object = yyjson_is_obj(value);
	size_t count = yyjson_get_len(value), at = 0;
	yyjson_obj_iter members = yyjson_obj_iter_with(value);
	yyjson_arr_iter items = yyjson_arr_iter_with(value);
	char text[512];

	text[0] = 0;
	for (size_t i = 0; (is_object || yyjson_is_arr(value)) && i < count && at < sizeof text; i++) {
		yyjson_val *one = is_object ? yyjson_obj_iter_next(&members) : yyjson_arr_iter_next(&items);
		if (yyjson_is_str(one))
			at += (size_t)snprintf(
				text + at, sizeof text - at, "%s%s", at > 0 ? ", " : "", yyjson_get_str(one));
	}
	return config_keep(config, text);
}

static void note_foreign(struct config_file *file, const char *program, yyjson_val *key, yyjson_val *value,
	struct config_origin where)
{
	struct config *config = file->config;
	const char *name = yyjson_get_str(key);
	struct form form;

	form_start(&form, &config->arena);
	form.note = note_error;
	form.context = file;
	form.place = key;
	form.noun = "key";
	form.null_is_wrong = true;
	if (config->foreign_read)
		config->foreign_read(config->foreign_context, config, &form, json_text(key), value);
	if (form.fault < 0)
		config_note_problem(config, where, "%s is too large, or there is no memory to read it", name);

	if (config->foreign_count < CONFIG_FOREIGN_MAX)
		config->foreign[config->foreign_count++] = (struct config_foreign){
			config_keep(config, name), program, names_in(config, value), where};
}

static void take_group(
	struct config_file *file, const char *name, yyjson_val *value, struct config_origin origin)
{
	char given[256];

	if (yyjson_is_obj(value)) {
		take_object(file, name, value);
		return;
	}
	form_describe(value, given, sizeof given);
	config_note_problem(
		file->config, origin, "%s is a group of keys: { \"NAME\": VALUE, … }; it is %s", name, given);
}

static void take_member(struct config_file *file, const char *group, yyjson_val *key, yyjson_val *value)
{
	struct config_origin origin = origin_at(file, json_string_at(file->doc, key));
	const char *own = yyjson_get_str(key);
	char name[CONFIG_NAME_MAX];
	bool fits =
		snprintf(name, sizeof name, "%s%s%s", group, group[0] ? "." : "", own) < (int)sizeof name &&
		strlen(own) == yyjson_get_len(key);
	const char *owner = group[0] ? NULL : config_key_owner(own);
	enum config_key found = fits ? config_key_find(name) : CONFIG_KEY_COUNT;

	if (owner)
		note_foreign(file, owner, key, value, origin);
	else if (found != CONFIG_KEY_COUNT && strchr(own, '.'))
		config_note_problem(file->config, origin,
			"%s: in a file, write groups as objects: { \"%.*s\": { \"%s\": … } }", name,
			(int)strcspn(own, "."), own, strchr(own, '.') + 1);
	else if (found != CONFIG_KEY_COUNT)
		config_set(file->config, found, NULL, value, origin);
	else if (fits && config_key_is_group(name))
		take_group(file, name, value, origin);
	else
		config_note_unknown(file->config, origin, name);
}

static void take_object(struct config_file *file, const char *group, yyjson_val *object)
{
	size_t index, max;
	yyjson_val *key, *value;

	yyjson_obj_foreach(object, index, max, key, value)
	{
		take_member(file, group, key, value);
	}
}

static void take_text(struct config_file *file)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(file->text, &complaint);

	if (!doc) {
		config_note_problem(file->config, origin_at(file, complaint.at), "%s", complaint.reason);
		return;
	}
	file->doc = doc;
	yyjson_val *root = yyjson_doc_get_root(doc);
	if (yyjson_is_obj(root))
		take_object(file, "", root);
	else
		config_note_problem(file->config, origin_at(file, 0),
			"a configuration is one object: { \"KEY\": VALUE, … }");
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static int read_all(int fd, struct buf *text)
{
	char block[4096];
	ssize_t got;
	int r = 0;

	while (r == 0 && (got = read(fd, block, sizeof block)) != 0)
		r = got < 0 ? -errno : buf_put(text, block, (size_t)got);
	return r;
}

void config_read_file(struct config *config, const char *path, bool must)
{
	struct config_file file = {.config = config, .path = config_keep(config, path), .seen = {1, 1}};
	struct config_origin whole = {.source = CONFIG_FILE, .name = file.path};
	char reason[512];
	cleanup(buf_done) struct buf text;

	buf_init(&text, CONFIG_FILE_BYTES_MAX);
	/* Not blocking: a FIFO must not keep us from refusing it. */
	cleanup(close_at) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && !must && (errno == ENOENT || errno == ENOTDIR))
		return;
	if (fd < 0) {
		config_note_problem(config, whole, "cannot be read: %s", strerror(errno));
		return;
	}
	if (trust_file(fd, path, reason, sizeof reason) < 0) {
		config_note_problem(config, whole, "%s", reason);
		return;
	}
	int r = read_all(fd, &text);
	if (r == -E2BIG)
		config_note_problem(config, whole, "is larger than a configuration may be: %d bytes",
			CONFIG_FILE_BYTES_MAX);
	else if (r < 0)
		config_note_problem(config, whole, "cannot be read: %s", strerror(-r));
	if (r < 0)
		return;
	file.text = buf_span(&text);
	take_text(&file);
}
