#include "core/record.h"

void record_fact(struct record *record, enum fact fact, int64_t value)
{
	record->facts |= UINT64_C(1) << fact;
	record->fact[fact] = value;
}

bool record_has(const struct record *record, enum fact fact)
{
	return (record->facts & UINT64_C(1) << fact) != 0;
}
