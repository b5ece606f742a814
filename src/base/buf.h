/*
 * A buf owns bytes that grow up to a hard maximum. A reader takes apart what
 * the buf_put family put together.
 *
 * The first fault stays in the buf, and from then on every put does nothing:
 *   -E2BIG   the bytes would pass the maximum
 *   -ENOMEM  the machine has no memory
 * So a caller puts all it has, one line each, and asks once, before it hands
 * the bytes over:
 *
 *	buf_put_span(&buf, SPAN("task "));
 *	buf_put_decimal(&buf, number);
 *	buf_put_byte(&buf, '\n');
 *	return buf_fault(&buf);
 *
 * Bytes that were cut short never leave: buf_span() of a buf with a fault is
 * empty. A put returns the fault of the buf, so that the last one may be the
 * question, as in "return json_end(&object)"; between puts nobody asks.
 *
 * Three things take the fault away: buf_clear() and buf_done(), with all bytes;
 * and buf_cut(), with the bytes since a length of before the fault, for a
 * caller that may leave a part out.
 *
 * Growing moves the bytes: a span of the buf lives until the next put. For the
 * same reason the bytes put must not lie inside the buf itself.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct buf {
	char *data; /* NULL until the first byte */
	size_t len;
	size_t cap; /* no more than `len` after a fault: no put finds room */
	size_t max;
	int fault; /* the first one: a negative errno, or 0 */
};

/* The longest encoding of a 64-bit number, and its most digits. */
#define UVARINT_BYTES_MAX  10
#define DECIMAL_DIGITS_MAX 20

/* Allocates nothing and cannot fail. */
void buf_init(struct buf *buf, size_t max);

/* Frees the bytes; the buf is empty again and keeps its maximum. NULL is fine. */
void buf_done(struct buf *buf);

/* A new maximum; the bytes that are in the buf must fit. */
void buf_set_max(struct buf *buf, size_t max);

/* Forgets the bytes and the fault, and keeps the memory. */
void buf_clear(struct buf *buf);

/* Forgets the bytes behind the first `len`, and the fault if there is one: `len` is a length that the buf had before it. */
void buf_cut(struct buf *buf, size_t len);

/* Takes so many bytes off the end; after a fault it does nothing. */
void buf_drop(struct buf *buf, size_t bytes);

/* A fault of the caller, who could not make the bytes to put: as if a put had failed. 0 changes nothing. Returns the
 * fault that the buf has now. */
int buf_fail(struct buf *buf, int fault);

/* The first fault, or 0. */
static inline int buf_fault(const struct buf *buf)
{
	return buf->fault;
}

/* The rare half of buf_reserve(): not for others. */
int buf_grow(struct buf *buf, size_t more);

/* After it, putting up to `more` bytes cannot fail. If there is no such room, that is a fault of the buf. Inline, because
 * replies are written in many small puts, and there is room for most of them. */
static inline int buf_reserve(struct buf *buf, size_t more)
{
	return buf->data && more <= buf->cap - buf->len ? 0 : buf_grow(buf, more);
}

static inline int buf_put(struct buf *buf, const void *data, size_t len)
{
	if (len == 0)
		return 0;
	int fault = buf_reserve(buf, len);
	if (fault)
		return fault;
	memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	return 0;
}

static inline int buf_put_span(struct buf *buf, struct span span)
{
	return buf_put(buf, span.data, span.len);
}

static inline int buf_put_byte(struct buf *buf, unsigned char byte)
{
	int fault = buf_reserve(buf, 1);
	if (fault)
		return fault;
	buf->data[buf->len++] = (char)byte;
	return 0;
}

/* The rare half of decimal_write(): not for others. */
char *decimal_write_long(char *at, uint64_t value);

/* The digits of the number where there is room for DECIMAL_DIGITS_MAX of them, be they fewer; returns their end. */
static inline char *decimal_write(char *at, uint64_t value)
{
	if (value >= 10)
		return decimal_write_long(at, value);
	*at = (char)('0' + value);
	return at + 1;
}

int buf_put_decimal(struct buf *buf, uint64_t value);

/* LEB128 where there is room for it, at most UVARINT_BYTES_MAX; returns its end. */
static inline char *uvarint_write(char *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (char)(value | 0x80);
	*at++ = (char)value;
	return at;
}

/* Zigzag: small numbers of either sign become small ones. */
static inline uint64_t zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

/* The rare half of buf_put_uvarint(): not for others. */
int buf_put_long_uvarint(struct buf *buf, uint64_t value);

/* LEB128: seven bits a byte, lowest first. */
static inline int buf_put_uvarint(struct buf *buf, uint64_t value)
{
	return value < 0x80 ? buf_put_byte(buf, (unsigned char)value) : buf_put_long_uvarint(buf, value);
}

static inline int buf_put_svarint(struct buf *buf, int64_t value)
{
	return buf_put_uvarint(buf, zigzag(value));
}

/* The length as a uvarint, then the bytes. */
int buf_put_bytes(struct buf *buf, struct span bytes);

/* Appends the text without its NUL. -EINVAL if the format itself fails. */
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* The bytes; empty after a fault, so that bytes that were cut short never leave. Ask buf_fault() before. */
static inline struct span buf_span(const struct buf *buf)
{
	return buf->fault ? (struct span){0} : (struct span){buf->data, buf->len};
}

/*
 * A reader borrows the bytes it reads. Truncated or overlong input, including
 * a number not in its shortest form, breaks it; from then on it stays broken
 * and every read gives 0 or the empty span. So a caller reads all its fields
 * and asks `broken` once.
 */
struct reader {
	const unsigned char *at;
	const unsigned char *end;
	bool broken;
};

void reader_init(struct reader *reader, struct span span);
unsigned char reader_byte(struct reader *reader);
uint64_t reader_uvarint(struct reader *reader);
int64_t reader_svarint(struct reader *reader);

/* Borrowed from the bytes given to reader_init. */
struct span reader_bytes(struct reader *reader);

/* Everything was read and nothing was wrong. */
static inline bool reader_is_done(const struct reader *reader)
{
	return !reader->broken && reader->at == reader->end;
}
