/*
 * Growing bytes, and the reader of what was put into them.
 *
 * Capacity doubles, clipped to the maximum. One byte more than `cap` is always
 * allocated, so that vsnprintf has room for its NUL when the text fills the
 * buf to the last byte. Numbers have one encoding only: the reader refuses the
 * longer ones, so equal values are equal bytes.
 */
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_CAP_MIN  64
#define EIGHT_DIGITS 100000000u

void buf_init(struct buf *buf, size_t max)
{
	assert(max < SIZE_MAX); /* the byte for the NUL */
	*buf = (struct buf){.max = max};
}

void buf_done(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	buf_init(buf, buf->max);
}

void buf_set_max(struct buf *buf, size_t max)
{
	assert(max < SIZE_MAX);
	assert(buf->len <= max);
	buf->max = max;
	if (buf->cap > max) /* memory beyond it is there, and not used */
		buf->cap = max;
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->fault = 0;
}

void buf_cut(struct buf *buf, size_t len)
{
	assert(len <= buf->len);
	buf->len = len;
	buf->fault = 0;
}

void buf_drop(struct buf *buf, size_t bytes)
{
	if (buf->fault)
		return;
	assert(bytes <= buf->len);
	buf->len -= bytes;
}

/* Without room between `len` and `cap` the quick half of buf_reserve() never succeeds, and needs no look at the fault. */
int buf_fail(struct buf *buf, int fault)
{
	assert(fault <= 0);
	if (fault && !buf->fault) {
		buf->fault = fault;
		buf->cap = buf->len;
	}
	return buf->fault;
}

static size_t buf_cap_for(const struct buf *buf, size_t need)
{
	size_t cap = buf->cap > buf->max / 2 ? buf->max : buf->cap * 2;

	if (cap < BUF_CAP_MIN)
		cap = BUF_CAP_MIN;
	if (cap < need)
		cap = need;
	return cap < buf->max ? cap : buf->max;
}

int buf_grow(struct buf *buf, size_t more)
{
	size_t cap;
	char *data;

	assert(buf->len <= buf->cap);
	assert(buf->cap <= buf->max);
	if (buf->fault)
		return buf->fault;
	if (more > buf->max - buf->len)
		return buf_fail(buf, -E2BIG);

	cap = buf_cap_for(buf, buf->len + more);
	data = realloc(buf->data, cap + 1);
	if (!data)
		return buf_fail(buf, -ENOMEM);
	buf->data = data;
	buf->cap = cap;
	return 0;
}

/*
 * Eight digits at once, the leading zeros too, each a byte of the number and the first one lowest. The value is cut in
 * two, then both halves at the same time and then all four quarters: parts lie beside each other in one word, and
 * n * 10486 >> 20 is n / 100 and n * 103 >> 10 is n / 10 of parts that are small enough.
 */
static inline uint64_t eight_digits(uint32_t value)
{
	uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
	uint64_t hundreds = fours * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
	uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
	uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000f000f000f000f);

	return tens | (twos - 10 * tens) << 8;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

static inline void put_eight(char *at, uint64_t digits)
{
	digits += UINT64_C(0x3030303030303030);
	memcpy(at, &digits, sizeof digits);
}

/* Up to eight: the leading zeros are shifted out. What is written behind the digits instead is overwritten, or
 * nobody's. */
static inline char *put_first(char *at, uint32_t value)
{
	uint64_t digits = eight_digits(value);
	unsigned zeros = (unsigned)__builtin_ctzll(digits) / 8;

	put_eight(at, digits >> 8 * zeros);
	return at + 8 - zeros;
}

char *decimal_write_long(char *at, uint64_t value)
{
	uint64_t before = value / EIGHT_DIGITS;

	if (before == 0)
		return put_first(at, (uint32_t)value);
	at = before < EIGHT_DIGITS ? put_first(at, (uint32_t)before) : decimal_write_long(at, before);
	put_eight(at, eight_digits((uint32_t)(value % EIGHT_DIGITS)));
	return at + 8;
}

int buf_put_decimal(struct buf *buf, uint64_t value)
{
	char digits[DECIMAL_DIGITS_MAX];

	return buf_put(buf, digits, (size_t)(decimal_write(digits, value) - digits));
}

static size_t uvarint_len(uint64_t value)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);

	return (bits + 6) / 7;
}

/* The rare half of buf_put_uvarint(): more than one byte, or no room. */
int buf_put_long_uvarint(struct buf *buf, uint64_t value)
{
	int fault = buf_reserve(buf, uvarint_len(value));

	if (fault)
		return fault;
	buf->len = (size_t)(uvarint_write(buf->data + buf->len, value) - buf->data);
	return 0;
}

int buf_put_bytes(struct buf *buf, struct span bytes)
{
	size_t prefix_len = uvarint_len(bytes.len);
	int fault;

	if (bytes.len > SIZE_MAX - prefix_len)
		return buf_fail(buf, -E2BIG);
	/* Room for both before either: a length without its bytes must not stay behind. */
	fault = buf_reserve(buf, prefix_len + bytes.len);
	if (fault)
		return fault;
	fault = buf_put_uvarint(buf, bytes.len);
	assert(fault == 0);
	fault = buf_put_span(buf, bytes);
	assert(fault == 0);
	return 0;
}

/* Returns what vsnprintf does: the length the whole text has. */
__attribute__((format(printf, 2, 0))) static int buf_print_tail(
	struct buf *buf, const char *format, va_list args)
{
	return vsnprintf(buf->data + buf->len, buf->cap - buf->len + 1, format, args);
}

int buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;
	int len, fault;

	fault = buf->fault ? buf->fault : buf_reserve(buf, 0);
	if (fault)
		return fault;
	va_copy(again, args);
	len = buf_print_tail(buf, format, again);
	va_end(again);
	if (len < 0)
		return buf_fail(buf, -EINVAL);

	if ((size_t)len > buf->cap - buf->len) {
		fault = buf_reserve(buf, (size_t)len);
		if (fault)
			return fault;
		va_copy(again, args);
		len = buf_print_tail(buf, format, again);
		va_end(again);
		assert(len >= 0);
		assert((size_t)len <= buf->cap - buf->len);
	}
	buf->len += (size_t)len;
	return 0;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int fault = buf_vprintf(buf, format, args);
	va_end(args);
	return fault;
}

void reader_init(struct reader *reader, struct span span)
{
	/* No arithmetic on NULL: an empty span may have no address. */
	const unsigned char *at = (const unsigned char *)(span.len ? span.data : "");

	*reader = (struct reader){.at = at, .end = at + span.len};
}

static uint64_t reader_break(struct reader *reader)
{
	reader->broken = true;
	return 0;
}

unsigned char reader_byte(struct reader *reader)
{
	if (reader->broken || reader->at == reader->end)
		return (unsigned char)reader_break(reader);
	return *reader->at++;
}

uint64_t reader_uvarint(struct reader *reader)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		unsigned char byte = reader_byte(reader);
		uint64_t bits = byte & 0x7f;

		if (reader->broken)
			return 0;
		if (shift == 63 && byte > 1) /* past bit 63, or an eleventh byte to come */
			return reader_break(reader);
		value |= bits << shift;
		if (byte & 0x80)
			continue;
		if (byte == 0 && shift > 0) /* a shorter form exists */
			return reader_break(reader);
		return value;
	}
	return reader_break(reader);
}

int64_t reader_svarint(struct reader *reader)
{
	uint64_t value = reader_uvarint(reader);
	uint64_t sign = value & 1 ? UINT64_MAX : 0;

	return (int64_t)((value >> 1) ^ sign);
}

struct span reader_bytes(struct reader *reader)
{
	uint64_t len = reader_uvarint(reader);
	struct span bytes;

	if (reader->broken)
		return (struct span){0};
	if (len > (uint64_t)(reader->end - reader->at)) {
		reader_break(reader);
		return (struct span){0};
	}
	bytes = (struct span){(const char *)reader->at, (size_t)len};
	reader->at += len;
	return bytes;
}
