/*
 * The log: one line per message on stderr, with named fields. Programs log; libraries return their faults.
 *
 *	log_info("listening", log_cstr("url", url), log_int("tasks", count));
 *
 *	{"time":1700000000000,"level":"info","msg":"listening","url":"http://127.0.0.1:8787","tasks":3}
 *	12:00:00.000 info  listening url=http://127.0.0.1:8787 tasks=3
 *
 * Names are those of events. A line allocates nothing, is at most LOG_LINE_BYTES_MAX long, and never waits: what
 * the reader of stderr does not take at once is dropped, and counted in the next line that it does take. What looks
 * like a token of ours comes out as ***. The arguments of a message whose level is not wanted are not evaluated. For
 * one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum log_level { LEVEL_ERROR, LEVEL_WARN, LEVEL_INFO, LEVEL_DEBUG };

enum log_format {
	LOG_FORMAT_AUTO, /* text on a terminal, JSON elsewhere */
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON,
};

enum {
	LOG_LINE_BYTES_MAX = 4096, /* with its newline: a pipe takes as much in one piece */
};

/* Without it: text on stderr, up to info. The descriptor stays the caller's; its flags are not touched, because
 * others may share them. */
void log_start(int fd, enum log_format format, enum log_level level);

/* Lines that could not be written since the start. */
uint64_t log_dropped(void);

struct log_field {
	const char *name; /* NULL ends the list */
	struct span text; /* data NULL: the number counts */
	int64_t number;
};

static inline struct log_field log_span(const char *name, struct span text)
{
	return (struct log_field){name, {text.data ? text.data : "", text.len}, 0};
}

static inline struct log_field log_cstr(const char *name, const char *text)
{
	return log_span(name, span_of(text));
}

static inline struct log_field log_int(const char *name, int64_t number)
{
	return (struct log_field){name, {0}, number};
}

extern enum log_level log_wanted;

void log_write(enum log_level level, const char *msg, const struct log_field *fields);

#define log_at(level, msg, ...)                                                                           \
	do {                                                                                              \
		if ((level) <= log_wanted)                                                                \
			log_write(level, msg, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}}); \
	} while (0)

#define log_error(...) log_at(LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LEVEL_DEBUG, __VA_ARGS__)

/* A message that others can provoke: at most `most` lines in a second. Those left out are counted in the field
 * `suppressed` of the next one, or in a line of its own by log_limit_settle(), to be called about once a second. */
struct log_limit {
	enum log_level level;
	const char *msg;
	uint32_t most;
	uint32_t said; /* in that second */
	int64_t second;
	int64_t suppressed;
};

void log_write_limited(struct log_limit *limit, const struct log_field *fields);
void log_limit_settle(struct log_limit *limit);

#define log_limited(limit, ...)                                                                              \
	do {                                                                                                 \
		if ((limit)->level <= log_wanted)                                                            \
			log_write_limited(limit, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}}); \
	} while (0)
