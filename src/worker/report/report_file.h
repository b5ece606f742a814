/*
 * A report as it lies in the outbox until the server has it, in a file with its name.
 *
 *	/api/tasks/t-1/complete     the target
 *	{"workerId":"w-1",…}        the body
 *
 * Workers of older versions asked for the word of the work themselves. Their reports have a line "?word" (or "?failure",
 * "?question") above: it means "byReport":true, which is not in the body yet.
 *
 * Reports that become ready together are written together. Such a file has all of them, each behind a line "*NAME BYTES",
 * and each of their names is a link to it: they cost the syncs of one, and are removed one by one.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum {
	REPORT_NAME_BYTES = 100,
	REPORT_BYTES_MAX = 2 << 20,
	REPORTS_TOGETHER_MAX = 256,
	REPORTS_TOGETHER_BYTES_MAX = 256 << 10, /* of one file, which is read as a whole */
};

/* As it is read. */
struct report_text {
	bool by_report; /* "byReport":true has to be added to the body */
	struct span target, body;
};

int report_put(struct buf *out, struct span target, struct span body);

/* -EINVAL: not a report. The spans are parts of the text. */
int report_read(struct span text, struct report_text *ret_report);

struct report_file {
	const char *name;
	struct span text;
	int fault; /* 0: it is on disk, also after a loss of power */
};

/* Writes all reports with as few syncs as possible, and sets the fault of each. */
void reports_write(int dir_fd, struct report_file *reports, size_t count);

/* The text of one, a part of what was read into `file`. -ENOENT, -EINVAL, -E2BIG … */
int report_load(int dir_fd, const char *name, struct buf *file, struct span *ret_text);
