/*
 * Runs a fuzz target once over each file named, and over the files in each directory named: the known inputs,
 * checked anew without libFuzzer.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/take.h"
#include "fuzz/fuzz.h"

#define INPUT_BYTES_MAX ((size_t)16 << 20)

static unsigned inputs;

static void give_up(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(1);
}

static void replay_file(const char *path)
{
	cleanup(buf_done) struct buf bytes;
	char block[4096];
	size_t len;
	FILE *file = fopen(path, "rbe");

	if (!file)
		give_up(path);
	buf_init(&bytes, INPUT_BYTES_MAX);
	while ((len = fread(block, 1, sizeof block, file)) > 0)
		assert(buf_put(&bytes, block, len) == 0);
	if (ferror(file))
		give_up(path);
	fclose(file);
	printf("%s\n", path);
	fflush(stdout); /* the last one named is the one that failed */
	LLVMFuzzerTestOneInput((const uint8_t *)bytes.data, bytes.len);
	inputs++;
}

static void replay_directory(const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	if (count < 0)
		give_up(path);
	for (int i = 0; i < count; i++) {
		cleanup(free_at) char *inner = NULL;
		if (entries[i]->d_name[0] != '.') {
			assert(asprintf(&inner, "%s/%s", path, entries[i]->d_name) > 0);
			replay_file(inner);
		}
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct stat status;
		if (stat(argv[i], &status) < 0)
			give_up(argv[i]);
		if (S_ISDIR(status.st_mode))
			replay_directory(argv[i]);
		else
			replay_file(argv[i]);
	}
	if (inputs == 0) {
		fprintf(stderr, "usage: %s FILE|DIRECTORY...\n", argv[0]);
		return 2;
	}
	printf("%u inputs\n", inputs);
	return 0;
}
