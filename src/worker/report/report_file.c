#include "worker/report/report_file.h"

#include <errno.h>
#include <string.h>

#include "base/files.h"
#include "base/take.h"

/* ---- one ---- */

int report_put(struct buf *out, struct span target, struct span body)
{
	buf_put_span(out, target);
	buf_put_byte(out, '\n');
	return buf_put_span(out, body);
}

static struct span take_line(struct span *text)
{
	const char *newline = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
	struct span line = {text->data, newline ? (size_t)(newline - text->data) : text->len};
	size_t used = line.len + (newline != NULL);

	*text = (struct span){text->data + used, text->len - used};
	return line;
}

int report_read(struct span text, struct report_text *ret_report)
{
	struct span line = take_line(&text);
	struct report_text report = {.by_report = line.len > 0 && line.data[0] == '?'};

	if (report.by_report)
		line = take_line(&text);
	if (line.len == 0 || line.data[0] != '/')
		return -EINVAL;
	report.target = line;
	report.body = text;
	*ret_report = report;
	return 0;
}

/* ---- several ---- */

/* So many of them, from the first, make one file. */
static size_t count_together(const struct report_file *reports, size_t count)
{
	size_t bytes = 0, together = 0;

	while (together < count && together < REPORTS_TOGETHER_MAX) {
		bytes += reports[together].text.len;
		if (together > 0 && bytes > REPORTS_TOGETHER_BYTES_MAX)
			break;
		together++;
	}
	return together;
}

static int write_together(int dir_fd, const struct report_file *reports, size_t count)
{
	cleanup(buf_done) struct buf file = {0};
	const char *names[REPORTS_TOGETHER_MAX];

	buf_init(&file, REPORT_BYTES_MAX);
	for (size_t i = 0; i < count; i++) {
		names[i] = reports[i].name;
		buf_printf(&file, "*%s %zu\n", reports[i].name, reports[i].text.len);
		buf_put_span(&file, reports[i].text);
	}
	int r = buf_fault(&file);
	return r < 0 ? r : file_write_as(dir_fd, names, count, buf_span(&file), true);
}

static void write_some(int dir_fd, struct report_file *reports, size_t count)
{
	if (count > 1 && write_together(dir_fd, reports, count) == 0) {
		for (size_t i = 0; i < count; i++)
			reports[i].fault = 0;
		return;
	}
	/* without links, or without room for all of them: each for itself */
	for (size_t i = 0; i < count; i++)
		reports[i].fault = file_write(dir_fd, reports[i].name, reports[i].text, true);
}

void reports_write(int dir_fd, struct report_file *reports, size_t count)
{
	while (count > 0) {
		size_t together = count_together(reports, count);
		write_some(dir_fd, reports, together);
		reports += together;
		count -= together;
	}
}

/* "*NAME BYTES" and as many bytes. False: the file has ended, or is damaged. */
static bool take_one(struct span *file, struct span *ret_name, struct span *ret_text)
{
	struct span line = take_line(file);
	const char *space = line.len > 0 && line.data[0] == '*' ? memrchr(line.data, ' ', line.len) : NULL;
	size_t bytes = 0;

	if (!space || space + 1 == line.data + line.len)
		return false;
	for (const char *at = space + 1; at < line.data + line.len; at++) {
		if (*at < '0' || *at > '9' || bytes > file->len)
			return false;
		bytes = bytes * 10 + (size_t)(*at - '0');
	}
	if (bytes > file->len)
		return false;
	*ret_name = (struct span){line.data + 1, (size_t)(space - line.data - 1)};
	*ret_text = (struct span){file->data, bytes};
	*file = (struct span){file->data + bytes, file->len - bytes};
	return true;
}

int report_load(int dir_fd, const char *name, struct buf *file, struct span *ret_text)
{
	struct span its_name, text;

	buf_clear(file);
	int r = file_read(dir_fd, name, file);
	if (r < 0)
		return r;
	struct span rest = buf_span(file);
	if (rest.len == 0 || rest.data[0] != '*') {
		*ret_text = rest;
		return 0;
	}
	while (take_one(&rest, &its_name, &text)) {
		if (span_equal(its_name, span_of(name))) {
			*ret_text = text;
			return 0;
		}
	}
	return -EINVAL;
}
