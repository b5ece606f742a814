/*
 * Walking through a large text: it never leaves the text, always comes to an end, and calls a text wrong that json_read()
 * would not read; what it lets pass, with values that can be read, can be read as a whole.
 */
#include <assert.h>

#include "cli/frame/json_walk.h"
#include "fuzz/fuzz.h"
#include "wire/json/json.h"

static bool is_within(struct span part, struct span whole)
{
	return part.data >= whole.data && part.data + part.len <= whole.data + whole.len;
}

static bool can_be_read(struct span text)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(text, &complaint);

	yyjson_doc_free(doc);
	return doc != NULL;
}

/* Is all of it good, to the walk and in its values? */
static bool walk_through(struct span text, bool list)
{
	struct json_walk walk;
	struct span key = {text.data, 0}, value;
	bool good = list ? json_walk_list(&walk, text, 0) : json_walk_object(&walk, text, 0);
	bool all = good;

	while (good &&
		(list ? json_walk_element(&walk, &value)
		      : json_walk_key(&walk, &key) && json_walk_value(&walk, &value))) {
		assert(is_within(key, text));
		assert(is_within(value, text));
		assert(value.len > 0);
		all = all && can_be_read(value);
	}
	return json_walk_end(&walk) && all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {size > 0 ? (const char *)data : "", size};
	bool good = walk_through(text, false) || walk_through(text, true);
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(text, &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);

	assert(good || !(yyjson_is_obj(root) || yyjson_is_arr(root)));
	yyjson_doc_free(doc);
	return 0;
}
