/*
 * Why a line never waits: the one thread that logs is the one that commits. A pipe that nobody reads must not stop
 * it. Setting O_NONBLOCK on stderr itself would set it for everyone who shares it (the shell, other programs in the
 * pipe), so the same pipe or terminal is opened once more for us alone. Sockets, which cannot be opened again, can
 * be told per message. A file takes what it is given. Where opening fails, poll() is asked first: that leaves a
 * race with other writers of the same pipe, and nothing better is left.
 *
 * Secrets are looked for in the texts as they were given, before escaping and cutting, so that half a secret cannot
 * slip out at the end of a line.
 */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/utf8.h"

enum {
	END_BYTES_MAX = 32, /* kept free for the end of a line that is cut */
	FIELDS_MAX = 32,
};

enum log_level log_wanted = LEVEL_INFO;

static struct {
	int fd;
	bool ours; /* the descriptor: opened here */
	bool is_socket, polls;
	bool json;
	bool torn; /* half a line was written */
	uint64_t dropped, told;
} sink = {.fd = STDERR_FILENO, .polls = true};

static const char *const level_names[] = {
	[LEVEL_ERROR] = "error", [LEVEL_WARN] = "warn", [LEVEL_INFO] = "info", [LEVEL_DEBUG] = "debug"};

/* ---- where it goes ------------------------------------------------------------------------------------- */

static void open_again(int fd, const struct stat *about)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	sink.polls = again < 0 && !S_ISREG(about->st_mode);
	sink.ours = again >= 0;
	sink.fd = again >= 0 ? again : fd;
}

void log_start(int fd, enum log_format format, enum log_level level)
{
	struct stat about = {0};

	if (sink.ours)
		close(sink.fd);
	sink.ours = sink.polls = sink.torn = false;
	sink.fd = fd;
	fstat(fd, &about);
	sink.is_socket = S_ISSOCK(about.st_mode);
	/* A file opened again would have an offset of its own: another program that shares it would write over our lines. */
	if (!sink.is_socket && !S_ISREG(about.st_mode))
		open_again(fd, &about);
	sink.json = format == LOG_FORMAT_JSON || (format == LOG_FORMAT_AUTO && !isatty(fd));
	log_wanted = level;
}

static bool has_room(void)
{
	struct pollfd poll_fd = {.fd = sink.fd, .events = POLLOUT};

	return !sink.polls || (poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLOUT);
}

/* False: it was not written, or not all of it. */
static bool put_out(const char *bytes, size_t len)
{
	ssize_t done;

	if (!has_room())
		return false;
	do {
		done = sink.is_socket ? send(sink.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
				      : write(sink.fd, bytes, len);
	} while (done < 0 && errno == EINTR);
	if (done > 0 && (size_t)done < len)
		sink.torn = true;
	return done == (ssize_t)len;
}

uint64_t log_dropped(void)
{
	return sink.dropped;
}

/* ---- secrets ------------------------------------------------------------------------------------------- */

/* stint_<kind>_…: whatever follows a kind may be a secret, however little of it there is. */
static size_t token_len(struct span text)
{
	static const struct span prefix = {"stint_", 6};

	if (text.len < prefix.len || memcmp(text.data, prefix.data, prefix.len) != 0)
		return 0;
	size_t kind_end = secret_word_end(text, prefix.len, ":.-");
	if (kind_end == prefix.len || kind_end == text.len || text.data[kind_end] != '_')
		return 0;
	size_t end = secret_word_end(text, kind_end + 1, "_-.");
	return end > kind_end + 1 ? end : 0;
}

/* ---- a line -------------------------------------------------------------------------------------------- */

struct log_line {
	char bytes[LOG_LINE_BYTES_MAX];
	size_t len;
	bool cut; /* the rest did not fit */
};

static bool fits(const struct log_line *line, size_t len)
{
	return !line->cut && line->len + len <= sizeof line->bytes - END_BYTES_MAX;
}

/* What must stand there whatever was cut: there is room for it. */
static void put_end(struct log_line *line, const char *text)
{
	size_t len = strlen(text);

	assert(line->len + len <= sizeof line->bytes);
	memcpy(line->bytes + line->len, text, len);
	line->len += len;
}

static void put(struct log_line *line, const char *bytes, size_t len)
{
	if (!fits(line, len)) {
		line->cut = true;
		return;
	}
	memcpy(line->bytes + line->len, bytes, len);
	line->len += len;
}

static void put_cstr(struct log_line *line, const char *text)
{
	put(line, text, strlen(text));
}

/* A character that would end the line, or the string, or move a terminal's cursor; `code` is below 0x100. */
static void put_escaped(struct log_line *line, unsigned code)
{
	char escape[8];

	if (code == '"' || code == '\\')
		snprintf(escape, sizeof escape, "\\%c", (char)code);
	else if (code == '\n')
		snprintf(escape, sizeof escape, "\\n");
	else
		snprintf(escape, sizeof escape, "\\u%04x", code);
	put_cstr(line, escape);
}

/* One character of the text; its length there. */
static size_t put_character(struct log_line *line, struct span text)
{
	bool good;
	size_t len = utf8_next(text, &good);
	unsigned char first = (unsigned char)text.data[0];

	if (!good)
		put_cstr(line, "\xef\xbf\xbd");
	else if (len == 1 && (first < ' ' || first == 0x7f || first == '"' || first == '\\'))
		put_escaped(line, first);
	else if (len == 2 && first == 0xc2 && (unsigned char)text.data[1] < 0xa0) /* controls, too */
		put_escaped(line, (unsigned char)text.data[1]);
	else
		put(line, text.data, len);
	return len;
}

static void put_text(struct log_line *line, struct span text)
{
	while (text.len > 0 && !line->cut) {
		size_t len = text.data[0] == 's' ? token_len(text) : 0;
		if (len > 0)
			put_cstr(line, "***");
		else
			len = put_character(line, text);
		text = (struct span){text.data + len, text.len - len};
	}
}

static void put_quoted(struct log_line *line, struct span text)
{
	put(line, "\"", 1);
	bool opened = !line->cut;
	put_text(line, text);
	if (opened)
		put_end(line, line->cut ? "…\"" : "\"");
}

static void put_number(struct log_line *line, int64_t number)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%" PRId64, number);
	put_cstr(line, digits);
}

static bool is_plain(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		if (byte <= ' ' || byte == '"' || byte == '=' || byte == '\\' || byte >= 0x7f)
			return false;
	}
	return text.len > 0;
}

/* ---- as JSON, as text ---------------------------------------------------------------------------------- */

static void put_field(struct log_line *line, const struct log_field *field)
{
	const size_t before = line->len;
	bool quotes = sink.json || (field->text.data && !is_plain(field->text));

	/* A name without its value would not be JSON. */
	if (!fits(line, strlen(field->name) + 32)) {
		line->cut = true;
		return;
	}
	put_cstr(line, sink.json ? ",\"" : " ");
	put_cstr(line, field->name);
	put_cstr(line, sink.json ? "\":" : "=");
	if (!field->text.data)
		put_number(line, field->number);
	else if (quotes)
		put_quoted(line, field->text);
	else
		put_text(line, field->text);
	assert(line->len > before);
}

static void put_head(struct log_line *line, enum log_level level, const char *msg)
{
	struct timespec now;
	struct tm parts;
	char time[32];

	clock_gettime(CLOCK_REALTIME, &now);
	if (sink.json) {
		put_cstr(line, "{\"time\":");
		put_number(line, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
		put_cstr(line, ",\"level\":\"");
		put_cstr(line, level_names[level]);
		put_cstr(line, "\",\"msg\":");
		put_quoted(line, span_of(msg));
		return;
	}
	localtime_r(&now.tv_sec, &parts);
	snprintf(time, sizeof time, "%02d:%02d:%02d.%03ld %-5s ", parts.tm_hour, parts.tm_min, parts.tm_sec,
		now.tv_nsec / 1000000, level_names[level]);
	put_cstr(line, time);
	put_text(line, span_of(msg));
}

/* False: nobody took it. */
static bool write_line(
	enum log_level level, const char *msg, const struct log_field *fields, struct log_field last)
{
	struct log_line line;

	line.len = 0;
	line.cut = false;
	if (sink.torn)
		put(&line, "\n", 1);
	put_head(&line, level, msg);
	for (uint32_t i = 0; fields[i].name; i++) {
		assert(i < FIELDS_MAX);
		put_field(&line, &fields[i]);
	}
	if (last.name)
		put_field(&line, &last);
	if (line.cut)
		put_end(&line, sink.json ? ",\"cut\":true" : " …");
	put_end(&line, sink.json ? "}\n" : "\n");
	bool was_torn = sink.torn;
	sink.torn = false;
	bool done = put_out(line.bytes, line.len);
	sink.torn |= was_torn && !done;
	return done;
}

static void write_with(
	enum log_level level, const char *msg, const struct log_field *fields, struct log_field last)
{
	static const struct log_field none[1];

	if (sink.dropped > sink.told) {
		struct log_field count = log_int("count", (int64_t)(sink.dropped - sink.told));
		if (write_line(LEVEL_WARN, "log lines were dropped: nobody read them", none, count))
			sink.told = sink.dropped;
	}
	if (!write_line(level, msg, fields, last))
		sink.dropped++;
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields)
{
	write_with(level, msg, fields, (struct log_field){0});
}

/* ---- messages that others can provoke ------------------------------------------------------------------ */

static int64_t this_second(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

void log_write_limited(struct log_limit *limit, const struct log_field *fields)
{
	int64_t second = this_second();
	struct log_field last = {0};

	if (second != limit->second) {
		limit->second = second;
		limit->said = 0;
	}
	if (limit->said == limit->most) {
		limit->suppressed++;
		return;
	}
	limit->said++;
	if (limit->suppressed > 0)
		last = log_int("suppressed", limit->suppressed);
	limit->suppressed = 0;
	write_with(limit->level, limit->msg, fields, last);
}

void log_limit_settle(struct log_limit *limit)
{
	static const struct log_field none[1];

	if (limit->suppressed > 0 && this_second() != limit->second)
		log_write_limited(limit, none);
}
