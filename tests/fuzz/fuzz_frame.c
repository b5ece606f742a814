/*
 * Frames of a worker of a pool, and what is in them. The first byte says in which pieces the rest comes: whatever they
 * are, the same frames come out, or the stream is found broken at the same place. A frame that is understood has all that
 * its kind must have.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "fuzz/fuzz.h"
#include "wire/frame.h"
#include "pool/text.h"

static void look_into(struct span frame)
{
	struct pool_message message;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	struct pool_complaint complaint = {0};

	int r = pool_text_read(frame, &doc, &message, &complaint);
	assert(r == 0 ? doc && !complaint.reason[0] : r == -EPROTO && complaint.reason[0]);
	if (r == 0 && message.kind == POOL_HELLO)
		assert(message.module_count <= POOL_MODULES_MAX);
	if (r == 0 && message.kind >= POOL_PROGRESS)
		assert(message.task.len > 0);
	if (r == 0 && message.kind == POOL_PROGRESS)
		assert(message.percent >= -1 && message.percent <= 100);
}

/* Appends length and bytes of each frame; returns how the stream ended. */
static int read_all(struct span all, size_t piece, struct buf *out)
{
	struct frame_reader reader;
	int r = 0;

	frame_reader_init(&reader);
	while (all.len > 0 && r >= 0) {
		struct span part = {all.data, piece < all.len ? piece : all.len}, frame;
		size_t used = 0;
		r = frame_read(&reader, part, &used, &frame);
		assert(used <= part.len);
		assert(r != 0 || used == part.len);
		assert(r < 0 || frame_is_open(&reader) == (r == 0));
		if (r == 1)
			assert(buf_put_bytes(out, frame) == 0);
		all.data += used;
		all.len -= used;
	}
	frame_reader_done(&reader);
	return r;
}

static void look_at_all(struct span frames)
{
	struct reader reader;

	reader_init(&reader, frames);
	while (!reader.broken && reader.at < reader.end)
		look_into(reader_bytes(&reader));
	assert(!reader.broken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(buf_done) struct buf whole, pieces;
	size_t piece = size > 0 ? (size_t)data[0] + 1 : 1;
	struct span all = {(const char *)data + 1, size > 0 ? size - 1 : 0};

	buf_init(&whole, (size_t)64 << 20);
	buf_init(&pieces, (size_t)64 << 20);
	int first = read_all(all, SIZE_MAX, &whole);
	int second = read_all(all, piece, &pieces);
	assert(first == second);
	assert(span_equal(buf_span(&whole), buf_span(&pieces)));
	look_at_all(buf_span(&whole));
	return 0;
}
