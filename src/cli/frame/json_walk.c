#include "cli/frame/json_walk.h"

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static void skip_space(struct json_walk *walk)
{
	while (walk->at < walk->text.len && is_space(walk->text.data[walk->at]))
		walk->at++;
}

static bool complain(struct json_walk *walk, const char *wrong)
{
	walk->wrong = walk->at >= walk->text.len ? "the text ends here, before it is complete" : wrong;
	return false;
}

/* The byte that must come next, behind space. */
static bool take(struct json_walk *walk, char byte, const char *wrong)
{
	skip_space(walk);
	if (walk->at >= walk->text.len || walk->text.data[walk->at] != byte)
		return complain(walk, wrong);
	walk->at++;
	return true;
}

/* From its quote to behind the other one. */
static bool skip_string(struct json_walk *walk)
{
	for (walk->at++; walk->at < walk->text.len; walk->at++) {
		char byte = walk->text.data[walk->at];
		if (byte == '\\')
			walk->at++;
		else if (byte == '"') {
			walk->at++;
			return true;
		}
	}
	return complain(walk, "");
}

enum {
	DEPTH_MAX = 64,
};

/* To where the list or object that begins here ends. */
static bool skip_nested(struct json_walk *walk)
{
	char closing[DEPTH_MAX];
	size_t depth = 0;

	for (; walk->at < walk->text.len; walk->at++) {
		char byte = walk->text.data[walk->at];
		if (byte == '"') {
			if (!skip_string(walk))
				return false;
			walk->at--; /* its end is behind it */
		} else if (byte == '{' || byte == '[') {
			if (depth == DEPTH_MAX)
				return complain(walk, "this is nested too deep");
			closing[depth++] = byte == '{' ? '}' : ']';
		} else if (byte == '}' || byte == ']') {
			if (closing[--depth] != byte)
				return complain(walk, byte == '}' ? "here should be ]" : "here should be }");
			if (depth == 0) {
				walk->at++;
				return true;
			}
		}
	}
	return complain(walk, "");
}

static bool take_value(struct json_walk *walk, struct span *ret_value)
{
	skip_space(walk);
	size_t from = walk->at;
	char byte = from < walk->text.len ? walk->text.data[from] : 0;

	if (byte == '"') {
		if (!skip_string(walk))
			return false;
	} else if (byte == '{' || byte == '[') {
		if (!skip_nested(walk))
			return false;
	} else {
		while (walk->at < walk->text.len && !is_space(walk->text.data[walk->at]) &&
			!memchr(",]}:", walk->text.data[walk->at], 4))
			walk->at++;
		if (walk->at == from)
			return complain(walk, "here should be a value");
	}
	*ret_value = (struct span){walk->text.data + from, walk->at - from};
	return true;
}

/* Is there another element? A comma stands between two, and no comma behind the last. */
static bool goes_on(struct json_walk *walk, char closing, const char *wrong)
{
	if (walk->wrong)
		return false;
	skip_space(walk);
	if (walk->at < walk->text.len && walk->text.data[walk->at] == closing) {
		walk->at++;
		return false;
	}
	if (walk->any && !take(walk, ',', wrong))
		return false;
	walk->any = true;
	return true;
}

bool json_walk_object(struct json_walk *walk, struct span text, size_t at)
{
	*walk = (struct json_walk){.text = text, .at = at};
	return take(walk, '{', "here should be an object: {");
}

bool json_walk_list(struct json_walk *walk, struct span text, size_t at)
{
	*walk = (struct json_walk){.text = text, .at = at};
	return take(walk, '[', "here should be a list: [");
}

bool json_walk_key(struct json_walk *walk, struct span *ret_key)
{
	struct span key;

	if (!goes_on(walk, '}', "here should be a comma, or the end of the object"))
		return false;
	skip_space(walk);
	if (walk->at >= walk->text.len || walk->text.data[walk->at] != '"')
		return complain(walk, "here should be the name of a member, in quotes");
	if (!take_value(walk, &key) || !take(walk, ':', "here should be a colon"))
		return false;
	*ret_key = (struct span){key.data + 1, key.len - 2};
	skip_space(walk);
	return true;
}

bool json_walk_value(struct json_walk *walk, struct span *ret_value)
{
	return take_value(walk, ret_value);
}

bool json_walk_element(struct json_walk *walk, struct span *ret_value)
{
	return goes_on(walk, ']', "here should be a comma, or the end of the list") &&
		take_value(walk, ret_value);
}

bool json_walk_end(struct json_walk *walk)
{
	if (walk->wrong)
		return false;
	skip_space(walk);
	return walk->at == walk->text.len || complain(walk, "here is more than one value");
}
