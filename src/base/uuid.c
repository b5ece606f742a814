#include "base/uuid.h"

#include <stdio.h>

bool uuid_read(struct span text, uint64_t *ret_hi, uint64_t *ret_lo)
{
	uint64_t halves[2] = {0, 0};
	uint32_t digits = 0;

	for (size_t i = 0; i < text.len; i++) {
		int digit = hex_digit(text.data[i]);
		if (text.data[i] == '-')
			continue;
		if (digit < 0 || digits == 32)
			return false;
		halves[digits / 16] = halves[digits / 16] << 4 | (uint64_t)digit;
		digits++;
	}
	if (digits != 32)
		return false;
	*ret_hi = halves[0];
	*ret_lo = halves[1];
	return true;
}

void uuid_write(uint64_t hi, uint64_t lo, char ret_text[UUID_CHARS + 1])
{
	snprintf(ret_text, UUID_CHARS + 1, "%08x-%04x-%04x-%04x-%012llx", (uint32_t)(hi >> 32),
		(uint32_t)(hi >> 16) & 0xffff, (uint32_t)hi & 0xffff, (uint32_t)(lo >> 48),
		(unsigned long long)(lo & 0xffffffffffff));
}
