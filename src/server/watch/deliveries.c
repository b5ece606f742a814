#include "server/watch/deliveries.h"

#include <errno.h>
#include <string.h>

void deliveries_done(struct deliveries *deliveries)
{
	for (uint32_t i = 0; i < DELIVERIES_MAX; i++)
		buf_done(&deliveries->entries[i].text);
}

static bool is_of(const struct deliveries_entry *entry, struct span teller)
{
	return entry->told > 0 && span_equal(span_of(entry->teller), teller);
}

/* The same target of the same teller; else, if it has as many as it may have, its oldest; else a free place, or the oldest of all. */
static struct deliveries_entry *place_for(
	struct deliveries *deliveries, struct span teller, struct span target)
{
	struct deliveries_entry *own = NULL, *oldest = &deliveries->entries[0];
	uint32_t count = 0;

	for (uint32_t i = 0; i < DELIVERIES_MAX; i++) {
		struct deliveries_entry *entry = &deliveries->entries[i];
		if (entry->told < oldest->told)
			oldest = entry;
		if (!is_of(entry, teller))
			continue;
		if (span_equal(span_of(entry->target), target))
			return entry;
		count++;
		if (!own || entry->told < own->told)
			own = entry;
	}
	return count >= DELIVERIES_OF_TELLER_MAX ? own : oldest;
}

int deliveries_keep(struct deliveries *deliveries, struct span teller, struct span target, struct span text)
{
	if (teller.len >= DELIVERIES_TELLER_BYTES || target.len >= DELIVERIES_TARGET_BYTES ||
		text.len > DELIVERIES_TEXT_BYTES_MAX)
		return -E2BIG;
	struct buf copy;
	buf_init(&copy, DELIVERIES_TEXT_BYTES_MAX);
	int r = buf_put_span(&copy, text);
	if (r < 0) {
		buf_done(&copy);
		return r;
	}
	struct deliveries_entry *entry = place_for(deliveries, teller, target);
	buf_done(&entry->text);
	*entry = (struct deliveries_entry){.told = ++deliveries->told, .text = copy};
	memcpy(entry->teller, teller.data, teller.len);
	memcpy(entry->target, target.data, target.len);
	return 0;
}

int deliveries_put(const struct deliveries *deliveries, struct span teller, struct buf *out)
{
	bool any = false;

	for (uint32_t i = 0; i < DELIVERIES_MAX; i++) {
		const struct deliveries_entry *entry = &deliveries->entries[i];
		if (entry->told == 0 || (teller.len > 0 && !is_of(entry, teller)))
			continue;
		if (any)
			buf_put_byte(out, ',');
		any = true;
		buf_put_span(out, buf_span(&entry->text));
	}
	return buf_fault(out);
}
