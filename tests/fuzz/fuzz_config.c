/*
 * A file of the configuration. Whatever it says, every key keeps a value that it may have; every complaint has a place
 * in the file and no control character in it; and all of it can be told, for people and as JSON.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "config/config.h"
#include "fuzz/fuzz.h"
#include "wire/json/json.h"

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

/* A file of our own, written anew each time. */
static const char *file_of(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0) {
		strcpy(path, "/tmp/stint-fuzz-config-XXXXXX");
		fd = mkostemp(path, O_CLOEXEC);
		assert(fd >= 0);
		atexit(remove_file);
	}
	assert(ftruncate(fd, 0) == 0);
	assert(pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

static void expect_values(const struct config *config)
{
	for (int i = 0; i < CONFIG_KEY_COUNT; i++) {
		enum config_key key = (enum config_key)i;
		const struct config_value *value = &config->values[key];
		int64_t number;
		if (value->origin.source == CONFIG_DEFAULT)
			continue;
		assert(config_key_parse(key, value->text, &number));
		assert(number == value->number);
		assert(value->origin.source == CONFIG_FILE);
		assert(value->origin.line > 0);
	}
}

static void expect_problems(const struct config *config, size_t size)
{
	for (uint32_t i = 0; i < config->problem_count && i < CONFIG_PROBLEMS_MAX; i++) {
		const struct config_problem *problem = &config->problems[i];
		assert(problem->where.line <= size + 1);
		assert(problem->where.column <= size + 1);
		for (const char *at = problem->what; *at; at++)
			assert((unsigned char)*at >= ' ' && *at != 0x7f);
	}
}

static void expect_told(const struct config *config)
{
	cleanup(buf_done) struct buf out;
	struct json_complaint complaint;

	buf_init(&out, 16 << 20);
	assert(config_put_problems(&out, config, "stintd: ") == 0);
	assert(config_put_table(&out, config) == 0);
	buf_clear(&out);
	assert(config_put_json(&out, config) == 0);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&out), &complaint);
	assert(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config config;
	const struct config_request request = {.home = "/nonexistent", .file = file_of(data, size)};

	for (int key = 0; key < CONFIG_KEY_COUNT; key++)
		unsetenv(config_keys[key].variable);
	config_read(&config, &request);
	expect_values(&config);
	expect_problems(&config, size);
	expect_told(&config);
	config_done(&config);
	return 0;
}
