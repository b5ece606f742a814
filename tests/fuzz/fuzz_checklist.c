/*
 * Checklists and the other texts that people give: no item names one that comes later, titles are never empty, and
 * text for a terminal holds nothing that could steer it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "cli/verb/checklist.h"
#include "cli/frame/text.h"
#include "cli/frame/when.h"
#include "fuzz/fuzz.h"

static void check_list(struct span text)
{
	struct checklist list;
	struct checklist_complaint complaint;
	struct arena arena;

	arena_init(&arena, 16 << 20);
	int r = checklist_parse(text, &arena, &list, &complaint);
	assert(r == 0 || r == -EINVAL);
	for (uint32_t i = 0; r == 0 && i < list.count; i++) {
		assert(list.items[i].title.len > 0);
		assert(list.items[i].parent < (int32_t)i);
		assert(list.items[i].before < (int32_t)i);
	}
	arena_done(&arena);
}

static void check_text(struct span text, bool utf8)
{
	cleanup(buf_done) struct buf clean, cut;

	buf_init(&clean, 64 << 20);
	buf_init(&cut, 64 << 20);
	assert(text_clean(&clean, text, utf8, false) == 0);
	for (size_t i = 0; i < clean.len; i++) {
		assert((unsigned char)clean.data[i] >= ' ');
		assert(clean.data[i] != 127);
		assert(utf8 || (unsigned char)clean.data[i] < 128);
	}
	for (size_t width = 0; width < 12; width++) {
		buf_clear(&cut);
		assert(text_fit(&cut, buf_span(&clean), width, utf8) == 0);
		assert(text_width(buf_span(&cut)) <= width);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = {(const char *)data, size};
	char word[64];
	int64_t ms;

	check_list(bytes);
	check_text(bytes, true);
	check_text(bytes, false);
	size_t len = size < sizeof word - 1 ? size : sizeof word - 1;
	if (len > 0)
		memcpy(word, data, len);
	word[len] = 0;
	if (when_duration(word, &ms) == 0)
		assert(ms >= 0);
	when_moment(word, 0, &ms);
	return 0;
}
