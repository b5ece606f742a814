#include "cli/verb/checklist.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/take.h"

enum {
	TAB_WIDTH = 4,
	TITLE_BYTES_MAX = 4096,
	TEXT_BYTES_MAX = 256 << 10,
};

struct checklist_line {
	size_t indent;
	struct span text; /* without the blanks around it */
};

struct marker {
	bool item, numbered, done;
	struct span title;
};

/* The items that a next one may lie below, outermost first. */
struct level {
	size_t indent;
	int32_t item;
	int32_t last; /* the item before at this level, if it was numbered */
};

struct checklist_reading {
	struct checklist *list;
	struct arena *arena;
	struct level levels[CHECKLIST_DEPTH_MAX];
	size_t depth;
	struct buf text; /* of the last item */
	char fence;      /* ` or ~ while the lines are code; 0: they are not */
	struct checklist_complaint *complaint;
};

static struct checklist_line measure(struct span raw)
{
	struct checklist_line line = {0};
	size_t at = 0;

	while (at < raw.len && (raw.data[at] == ' ' || raw.data[at] == '\t')) {
		line.indent += raw.data[at] == '\t' ? TAB_WIDTH - line.indent % TAB_WIDTH : 1;
		at++;
	}
	while (raw.len > at && (unsigned char)raw.data[raw.len - 1] <= ' ')
		raw.len--;
	line.text = (struct span){raw.data + at, raw.len - at};
	return line;
}

/* "- ", "* ", "+ ", "12. " or "12) "; then perhaps "[ ] " or "[x] ". */
static struct marker read_marker(struct span text)
{
	struct marker marker = {0};
	size_t at = 0;

	while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
		at++;
	marker.numbered = at > 0;
	if (at > 9 || at + 1 >= text.len || !strchr(marker.numbered ? ".)" : "-*+", text.data[at]) ||
		text.data[at + 1] != ' ')
		return marker;
	at += 2;
	while (at < text.len && text.data[at] == ' ')
		at++;
	if (text.len - at >= 3 && text.data[at] == '[' && text.data[at + 2] == ']' &&
		strchr(" xX", text.data[at + 1])) {
		marker.done = text.data[at + 1] != ' ';
		at += 3;
		while (at < text.len && text.data[at] == ' ')
			at++;
	}
	marker.item = true;
	marker.title = (struct span){text.data + at, text.len - at};
	return marker;
}

static int complain(struct checklist_reading *parsing, uint32_t line, const char *reason)
{
	*parsing->complaint = (struct checklist_complaint){line, reason};
	return -EINVAL;
}

static int end_item(struct checklist_reading *parsing)
{
	struct checklist *list = parsing->list;
	int r = 0;

	if (list->count > 0 && parsing->text.len > 0)
		r = arena_copy(parsing->arena, buf_span(&parsing->text), &list->items[list->count - 1].text);
	buf_clear(&parsing->text);
	return r;
}

/* The level of the line: a level deeper than the last item, or one that is open. */
static int find_level(struct checklist_reading *parsing, size_t indent, uint32_t number)
{
	while (parsing->depth > 0 && indent < parsing->levels[parsing->depth - 1].indent)
		parsing->depth--;
	if (parsing->depth > 0 && indent == parsing->levels[parsing->depth - 1].indent)
		return 0;
	if (parsing->depth == CHECKLIST_DEPTH_MAX)
		return complain(parsing, number, "is indented too deep: at most 32 levels");
	parsing->levels[parsing->depth++] = (struct level){indent, CHECKLIST_NONE, CHECKLIST_NONE};
	return 0;
}

static int take_item(struct checklist_reading *parsing, const struct checklist_line *line,
	const struct marker *marker, uint32_t number)
{
	struct checklist *list = parsing->list;

	if (marker->title.len == 0)
		return complain(parsing, number, "has no text");
	if (marker->title.len > TITLE_BYTES_MAX)
		return complain(parsing, number, "is longer than 4096 bytes");
	if (list->count == CHECKLIST_ITEMS_MAX)
		return complain(parsing, number, "is one too many: at most 1000 items");
	int r = end_item(parsing);
	if (r == 0)
		r = find_level(parsing, line->indent, number);
	if (r < 0)
		return r;
	struct level *level = &parsing->levels[parsing->depth - 1];
	list->items[list->count] = (struct checklist_item){
		.title = marker->title,
		.parent = parsing->depth > 1 ? parsing->levels[parsing->depth - 2].item : CHECKLIST_NONE,
		.before = marker->numbered ? level->last : CHECKLIST_NONE,
		.line = number,
		.done = marker->done,
	};
	level->item = (int32_t)list->count++;
	level->last = marker->numbered ? level->item : CHECKLIST_NONE;
	return 0;
}

/* Text counts for the item above it if it is indented deeper than that. */
static int take_text(struct checklist_reading *parsing, const struct checklist_line *line)
{
	if (line->text.len == 0 || parsing->list->count == 0 || parsing->depth == 0 ||
		line->indent <= parsing->levels[parsing->depth - 1].indent)
		return 0;
	if (parsing->text.len > 0)
		buf_put_byte(&parsing->text, '\n');
	buf_put_span(&parsing->text, line->text);
	return buf_fault(&parsing->text);
}

/* ``` or ~~~: where code begins, or ends that began so. */
static bool is_fence(const struct checklist_reading *parsing, struct span text)
{
	if (text.len < 3 || text.data[1] != text.data[0] || text.data[2] != text.data[0])
		return false;
	return parsing->fence ? text.data[0] == parsing->fence : text.data[0] == '`' || text.data[0] == '~';
}

static int take_line(struct checklist_reading *parsing, struct span raw, uint32_t number)
{
	struct checklist_line line = measure(raw);
	struct marker marker = read_marker(line.text);
	bool code = parsing->fence != 0;

	if (is_fence(parsing, line.text))
		parsing->fence = code ? 0 : line.text.data[0];
	return marker.item && !code ? take_item(parsing, &line, &marker, number) : take_text(parsing, &line);
}

/* An item that is done makes everything below it done. */
static void spread_done(struct checklist *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		int32_t parent = list->items[i].parent;
		if (parent != CHECKLIST_NONE && list->items[parent].done)
			list->items[i].done = true;
	}
}

int checklist_parse(struct span text, struct arena *arena, struct checklist *ret,
	struct checklist_complaint *ret_complaint)
{
	struct checklist list = {.items = arena_alloc(arena, CHECKLIST_ITEMS_MAX * sizeof *list.items)};
	struct checklist_reading parsing = {.list = &list, .arena = arena, .complaint = ret_complaint};
	uint32_t number = 0;
	int r = list.items ? 0 : -ENOMEM;

	buf_init(&parsing.text, TEXT_BYTES_MAX);
	while (r == 0 && text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		r = take_line(&parsing, (struct span){text.data, len}, ++number);
		text = end ? (struct span){end + 1, text.len - len - 1} : (struct span){0};
	}
	if (r == 0)
		r = end_item(&parsing);
	buf_done(&parsing.text);
	spread_done(&list);
	if (r == 0 && list.count == 0)
		r = complain(&parsing, 0, "there is no item in it: lines such as \"- [ ] title\"");
	if (r == 0)
		*ret = list;
	return r == -E2BIG ? complain(&parsing, number, "has too much text below it") : r;
}
