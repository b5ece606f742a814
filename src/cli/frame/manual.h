/*
 * The manual in the terminal: the pages of docs/, embedded at build (tools/embed-manual), so that they are those of this version.
 */
#pragma once

#include <stddef.h>

#include "base/span.h"
#include "cli/frame/cli.h"

struct manual_page {
	const char *name; /* "concepts" */
	const char *title;
	struct span text; /* Markdown */
};

extern const struct manual_page manual_pages[];
extern const size_t manual_page_count;

/* By its name, also with ".md"; NULL: there is no such page. */
const struct manual_page *manual_find(const char *name);

/* The page as a text for a terminal: paragraphs broken between words, headings painted, rows of tables and code as they are. */
void manual_put(struct cli *cli, const struct manual_page *page);
