#include "core/record.h"

void record_fact(struct record *record, enum fact fact, int64_t value)
{
	record->facts |= 1u << fact;
	record->fact[fact] = value;
}

bool record_has(const struct record *record, enum fact fact)
{
	return (record->facts & 1u << fact) != 0;
}
