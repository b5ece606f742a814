/*
 * Only the Markdown that docs/ has: headings, paragraphs, lists, tables, code between ``` and links. What is something else is shown as it is.
 */
#include "cli/frame/manual.h"

#include <string.h>

#include "base/take.h"

enum {
	PARAGRAPH_BYTES_MAX = 64 << 10,
	LIST_INDENT = 2,
};

const struct manual_page *manual_find(const char *name)
{
	size_t len = strlen(name);

	if (len > 3 && strcmp(name + len - 3, ".md") == 0)
		len -= 3;
	for (size_t i = 0; i < manual_page_count; i++) {
		if (strlen(manual_pages[i].name) == len && strncmp(manual_pages[i].name, name, len) == 0)
			return &manual_pages[i];
	}
	return NULL;
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

/* "[text](target)" that begins there: how long it is, with both parts; 0: it is none. */
static size_t link_at(struct span text, size_t at, struct span *ret_text, struct span *ret_target)
{
	const char *begin = text.data + at, *end = text.data + text.len;
	const char *middle = begin[0] == '[' ? memmem(begin, (size_t)(end - begin), "](", 2) : NULL;
	const char *close = middle ? memchr(middle, ')', (size_t)(end - middle)) : NULL;

	if (!close || memchr(begin + 1, '[', (size_t)(middle - begin - 1)))
		return 0;
	*ret_text = (struct span){begin + 1, (size_t)(middle - begin - 1)};
	*ret_target = (struct span){middle + 2, (size_t)(close - middle - 2)};
	return (size_t)(close - begin) + 1;
}

/* Without the marks: a link is its text, with the target behind it where that says more. */
static void put_words(struct buf *out, struct span text)
{
	struct span name, target;

	for (size_t at = 0; at < text.len; at++) {
		size_t len = link_at(text, at, &name, &target);
		if (len > 0) {
			buf_put_span(out, name);
			if (target.len > 0 && target.data[0] != '#' && !span_equal(name, target))
				buf_printf(out, " (%.*s)", SPAN_ARGS(target));
			at += len - 1;
		} else if (text.len - at > 1 && memcmp(text.data + at, "**", 2) == 0)
			at++;
		else
			buf_put_byte(out, text.data[at]);
	}
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

struct page {
	struct cli *cli;
	struct buf paragraph; /* what is read of it so far */
	size_t indent;        /* of its lines but the first */
	bool is_code;
};

static void end_paragraph(struct page *page)
{
	cleanup(buf_done) struct buf words = {.max = 2 * PARAGRAPH_BYTES_MAX};

	if (page->paragraph.len == 0)
		return;
	put_words(&words, cli_span(page->cli, &page->paragraph));
	buf_put_byte(&words, 0);
	cli_put_wrapped(page->cli, cli_span(page->cli, &words).data, page->indent);
	buf_clear(&page->paragraph);
	page->indent = 0;
}

static void add_line(struct page *page, struct span line)
{
	while (line.len > 0 && line.data[0] == ' ')
		line = (struct span){line.data + 1, line.len - 1};
	if (page->paragraph.len > 0)
		buf_put_byte(&page->paragraph, ' ');
	buf_put_span(&page->paragraph, line);
}

static bool begins(struct span line, const char *with)
{
	size_t len = strlen(with);

	return line.len >= len && memcmp(line.data, with, len) == 0;
}

/* "- " or "12. " */
static bool is_item(struct span line)
{
	size_t digits = 0;

	while (digits < line.len && line.data[digits] >= '0' && line.data[digits] <= '9')
		digits++;
	return begins(line, "- ") ||
		(digits > 0 && begins((struct span){line.data + digits, line.len - digits}, ". "));
}

/* "| a | b |": its cells, without the bars. The row beneath the names has none. */
static void put_row(struct page *page, struct span line)
{
	bool first = true, escaped;

	end_paragraph(page);
	if (strspn(line.data, "|- :") >= line.len)
		return;
	for (size_t at = 1, from = 1; at < line.len; at++) {
		escaped = line.data[at - 1] == '\\';
		if (line.data[at] != '|' || escaped)
			continue;
		struct span cell = {line.data + from, at - from};
		while (cell.len > 0 && cell.data[cell.len - 1] == ' ')
			cell.len--;
		if (!first)
			buf_put_span(&page->paragraph, SPAN(" "));
		add_line(page, cell);
		first = false;
		from = at + 1;
	}
	page->indent = LIST_INDENT;
	end_paragraph(page);
}

static void put_heading(struct page *page, struct span line)
{
	end_paragraph(page);
	while (line.len > 0 && (line.data[0] == '#' || line.data[0] == ' '))
		line = (struct span){line.data + 1, line.len - 1};
	cli_put_painted(page->cli, PAINT_BOLD, line);
	cli_put(page->cli, "\n");
}

static void put_line(struct page *page, struct span line)
{
	bool is_fence = begins(line, "```");

	if (is_fence)
		end_paragraph(page);
	if (is_fence)
		page->is_code = !page->is_code;
	else if (page->is_code)
		cli_put_line(page->cli, "    %.*s", SPAN_ARGS(line));
	else if (begins(line, "#"))
		put_heading(page, line);
	else if (begins(line, "|"))
		put_row(page, line);
	else if (line.len == 0) {
		end_paragraph(page);
		cli_put(page->cli, "\n");
	} else {
		if (is_item(line)) {
			end_paragraph(page);
			page->indent = LIST_INDENT;
		}
		add_line(page, line);
	}
}

void manual_put(struct cli *cli, const struct manual_page *manual)
{
	struct page page = {.cli = cli};
	struct span rest = manual->text;

	buf_init(&page.paragraph, PARAGRAPH_BYTES_MAX);
	while (rest.len > 0) {
		const char *end = memchr(rest.data, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.data) : rest.len;
		put_line(&page, (struct span){rest.data, len});
		len += end != NULL;
		rest = (struct span){rest.data + len, rest.len - len};
	}
	end_paragraph(&page);
	buf_done(&page.paragraph);
}
