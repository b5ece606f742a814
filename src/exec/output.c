/*
 * A ring whose positions never wrap: the byte at position p lies at p % cap. It starts small, because most children
 * say little, and doubles up to its maximum.
 */
#include "exec/output.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { OUTPUT_FIRST_BYTES = 4096 };

void output_init(struct output *output, size_t max)
{
	assert(max > 0);
	*output = (struct output){.max = max};
}

void output_done(struct output *output)
{
	if (!output)
		return;
	free(output->data);
	output_init(output, output->max);
}

/* Position of the oldest byte that is still there. */
static uint64_t oldest(const struct output *output)
{
	return output->end > output->cap ? output->end - output->cap : 0;
}

static void copy_in(char *ring, size_t cap, uint64_t position, struct span bytes)
{
	size_t at = position % cap, first = cap - at < bytes.len ? cap - at : bytes.len;

	memcpy(ring + at, bytes.data, first);
	memcpy(ring, bytes.data + first, bytes.len - first);
}

/* What lies together from a position on, before the ring wraps or ends. */
static struct span together(const struct output *output, uint64_t position)
{
	size_t at, len;

	if (position == output->end)
		return (struct span){0};
	at = position % output->cap;
	len = (size_t)(output->end - position);
	return (struct span){output->data + at, len < output->cap - at ? len : output->cap - at};
}

/* Make room for so many in all, up to the maximum; without memory it stays as it is. */
static void grow(struct output *output, size_t wanted)
{
	size_t cap = output->cap ? output->cap : OUTPUT_FIRST_BYTES;
	uint64_t position = oldest(output);
	struct span part;
	char *data;

	while (cap < wanted && cap < output->max)
		cap *= 2;
	if (cap > output->max)
		cap = output->max;
	if (cap <= output->cap || !(data = malloc(cap)))
		return;
	while (!span_is_empty(part = together(output, position))) {
		copy_in(data, cap, position, part);
		position += part.len;
	}
	free(output->data);
	output->data = data;
	output->cap = cap;
}

void output_put(struct output *output, struct span bytes)
{
	uint64_t held = output->end - oldest(output), first;

	if (bytes.len > output->cap - held)
		grow(output, bytes.len < output->max ? (size_t)held + bytes.len : output->max);
	output->starved |= output->cap < output->max && bytes.len > output->cap - held;
	if (bytes.len > output->cap) { /* only its end would stay anyway */
		size_t lost = bytes.len - output->cap;
		output->end += lost;
		bytes.data += lost;
		bytes.len -= lost;
	}
	if (output->cap)
		copy_in(output->data, output->cap, output->end, bytes);
	output->end += bytes.len;
	first = oldest(output);
	if (output->read < first) {
		output->dropped += first - output->read;
		output->read = first;
	}
	assert(output->cap <= output->max);
	assert(output->read <= output->end);
	assert(output->end - output->read <= output->cap); /* what is unread is there */
}

struct span output_unread(const struct output *output, uint64_t *ret_position)
{
	if (ret_position)
		*ret_position = output->read;
	return together(output, output->read);
}

void output_advance(struct output *output, size_t bytes)
{
	assert(bytes <= output->end - output->read);
	output->read += bytes;
}

size_t output_waiting(const struct output *output)
{
	return (size_t)(output->end - output->read);
}

int output_tail(const struct output *output, size_t most, struct buf *buf)
{
	uint64_t position = oldest(output);
	struct span part;
	int fault;

	if (output->starved)
		return -ENOBUFS;
	if (output->end - position > most)
		position = output->end - most;
	fault = buf_reserve(buf, (size_t)(output->end - position));
	if (fault)
		return fault;
	while (!span_is_empty(part = together(output, position))) {
		buf_put_span(buf, part);
		position += part.len;
	}
	return 0;
}
