#include "store/record/inbox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	FORM = 1,
	DIGITS = INBOX_KEY_BYTES - 1,
};

struct span inbox_key(int64_t id, char text[INBOX_KEY_BYTES])
{
	return (struct span){text, (size_t)snprintf(text, INBOX_KEY_BYTES, "%0*" PRId64, DIGITS, id)};
}

int inbox_id_of(struct span key, int64_t *ret_id)
{
	int64_t id = 0;

	if (key.len != DIGITS)
		return -EPROTO;
	for (size_t i = 0; i < key.len; i++) {
		int digit = key.data[i] - '0';
		if (digit < 0 || digit > 9 || __builtin_mul_overflow(id, 10, &id) ||
			__builtin_add_overflow(id, digit, &id))
			return -EPROTO;
	}
	*ret_id = id;
	return 0;
}

int inbox_put(const struct inbox_document *document, struct buf *out)
{
	buf_put_uvarint(out, FORM);
	buf_put_svarint(out, document->since_ms);
	buf_put_bytes(out, document->queue);
	buf_put_bytes(out, document->role);
	buf_put_bytes(out, document->why);
	buf_put_bytes(out, document->task);
	return buf_fault(out);
}

int inbox_read(struct span data, struct inbox_document *ret_document)
{
	struct inbox_document document = {0};
	struct reader reader;

	reader_init(&reader, data);
	reader.broken |= reader_uvarint(&reader) != FORM;
	document.since_ms = reader_svarint(&reader);
	document.queue = reader_bytes(&reader);
	document.role = reader_bytes(&reader);
	document.why = reader_bytes(&reader);
	document.task = reader_bytes(&reader);
	if (!reader_is_done(&reader))
		return -EPROTO;
	*ret_document = document;
	return 0;
}
