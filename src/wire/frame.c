#include "wire/frame.h"

#include <errno.h>

enum { KEPT_BYTES = 64 << 10 }; /* of memory, between two frames */

void frame_reader_init(struct frame_reader *reader)
{
	*reader = (struct frame_reader){0};
	buf_init(&reader->body, FRAME_BYTES_MAX);
}

void frame_reader_done(struct frame_reader *reader)
{
	buf_done(&reader->body);
}

static void begin_next(struct frame_reader *reader)
{
	reader->whole = false;
	reader->head_len = 0;
	if (reader->body.cap > KEPT_BYTES)
		buf_done(&reader->body);
	buf_clear(&reader->body);
}

uint32_t frame_length(const struct frame_reader *reader)
{
	const unsigned char *head = reader->head;

	return (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
}

int frame_read(struct frame_reader *reader, struct span bytes, size_t *ret_used, struct span *ret_frame)
{
	size_t used = 0;

	*ret_used = 0;
	if (reader->broken)
		return -EMSGSIZE;
	if (reader->whole)
		begin_next(reader);
	while (reader->head_len < FRAME_HEAD_BYTES && used < bytes.len)
		reader->head[reader->head_len++] = (unsigned char)bytes.data[used++];
	*ret_used = used;
	if (reader->head_len < FRAME_HEAD_BYTES)
		return 0;
	uint32_t length = frame_length(reader);
	if (length > FRAME_BYTES_MAX) {
		reader->broken = true;
		return -EMSGSIZE;
	}
	size_t part = length - reader->body.len;
	if (part > bytes.len - used)
		part = bytes.len - used;
	buf_put(&reader->body, bytes.data + used, part);
	if (buf_fault(&reader->body))
		return buf_fault(&reader->body);
	*ret_used = used + part;
	reader->whole = reader->body.len == length;
	if (reader->whole)
		*ret_frame = buf_span(&reader->body);
	return reader->whole;
}

bool frame_is_open(const struct frame_reader *reader)
{
	return reader->head_len > 0 && !reader->whole;
}

size_t frame_padded_length(size_t length)
{
	if (length & 0x80)
		length = (length | 0xff) + 1;
	if (length & 0x8000)
		length = (length | 0xffff) + 1;
	return length; /* the third byte of FRAME_BYTES_MAX is small */
}

int frame_put(struct buf *out, struct span body)
{
	size_t length = frame_padded_length(body.len);
	unsigned char head[FRAME_HEAD_BYTES] = {(unsigned char)(length >> 24), (unsigned char)(length >> 16),
		(unsigned char)(length >> 8), (unsigned char)length};

	if (body.len > FRAME_BYTES_MAX)
		return buf_fail(out, -EMSGSIZE);
	buf_put(out, head, sizeof head);
	buf_put_span(out, body);
	for (size_t i = body.len; i < length; i++)
		buf_put_byte(out, ' ');
	return buf_fault(out);
}
