/*
 * JSON. What is read can be written, and reads again as the same; what is refused is refused with a sentence and
 * a place; a configuration takes all that is JSON; and any bytes at all can be written as a string.
 */
#include <assert.h>
#include <string.h>

#include "base/take.h"
#include "fuzz/fuzz.h"
#include "wire/json/json.h"

#define TEXT_MAX ((size_t)64 << 20)

static int deeper(int depth, int other)
{
	return depth > other ? depth : other;
}

static int depth_of(yyjson_val *value)
{
	size_t index, max;
	yyjson_val *key, *inner;
	int deepest = 0;

	yyjson_arr_foreach(value, index, max, inner)
	{
		deepest = deeper(deepest, depth_of(inner));
	}
	yyjson_obj_foreach(value, index, max, key, inner)
	{
		deepest = deeper(deepest, depth_of(inner));
	}
	return yyjson_is_ctn(value) ? deepest + 1 : 0;
}

static void expect_complaint(const struct json_complaint *complaint, struct span text)
{
	assert(complaint->at <= text.len);
	assert(complaint->reason[0]);
	assert(memchr(complaint->reason, 0, sizeof complaint->reason));
}

static void write_and_read_again(yyjson_doc *doc)
{
	cleanup(buf_done) struct buf first, second;
	struct json_complaint complaint;

	buf_init(&first, TEXT_MAX);
	buf_init(&second, TEXT_MAX);
	assert(json_put_value(&first, yyjson_doc_get_root(doc)) == 0);
	cleanup(yyjson_doc_free_at) yyjson_doc *again = json_read(buf_span(&first), &complaint);
	assert(again);
	assert(json_put_value(&second, yyjson_doc_get_root(again)) == 0);
	assert(span_equal(buf_span(&first), buf_span(&second)));
}

static void read_strictly(struct span text)
{
	struct json_complaint complaint = {.at = SIZE_MAX};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(text, &complaint);

	if (!doc) {
		expect_complaint(&complaint, text);
		return;
	}
	assert(depth_of(yyjson_doc_get_root(doc)) <= JSON_DEPTH_MAX);
	write_and_read_again(doc);
	cleanup(yyjson_doc_free_at) yyjson_doc *config = json_read_config(text, &complaint);
	assert(config);
}

static void read_as_config(struct span text)
{
	struct json_complaint complaint = {.at = SIZE_MAX};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(text, &complaint);

	if (doc)
		write_and_read_again(doc);
	else
		expect_complaint(&complaint, text);
}

static void write_as_string(struct span text)
{
	cleanup(buf_done) struct buf out;
	struct json_complaint complaint;
	struct json_object object;

	buf_init(&out, TEXT_MAX);
	json_begin(&object, &out);
	json_member_string(&object, "text", text);
	json_member_int(&object, "len", (int64_t)text.len);
	assert(json_end(&object) == 0);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&out), &complaint);
	assert(doc);
	yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(doc), "text");
	assert(yyjson_get_len(value) >= text.len ||
		memchr(yyjson_get_str(value), 0xef, yyjson_get_len(value)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};

	read_strictly(text);
	read_as_config(text);
	write_as_string(text);
	return 0;
}
