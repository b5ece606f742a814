/*
 * CRC32C: by the instruction that x86-64 has for it (SSE 4.2), eight bytes at a time, or by a table of 256 entries.
 * Rows are some dozen bytes long: interleaving three streams, which pays for kilobytes, was left out.
 */
#include "base/crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

static uint32_t table[256];
static bool has_instruction;

/* Before main(): a store seals some dozen rows per task, and asking each time whether the table is there costs more than the
 * checksum of a short row. */
__attribute__((constructor)) static void prepare(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[i] = crc;
	}
#if defined(__x86_64__)
	__builtin_cpu_init();
	has_instruction = __builtin_cpu_supports("sse4.2") != 0;
#endif
}

uint32_t crc32c_by_table(uint32_t crc, struct span bytes)
{
	crc = ~crc;
	for (size_t i = 0; i < bytes.len; i++)
		crc = crc >> 8 ^ table[(crc ^ (unsigned char)bytes.data[i]) & 0xff];
	return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, struct span bytes)
{
	uint64_t sum = ~crc, word;
	const char *at = bytes.data;
	size_t left = bytes.len;

	for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
		memcpy(&word, at, sizeof word);
		sum = __builtin_ia32_crc32di(sum, word);
	}
	for (; left > 0; at++, left--)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, (unsigned char)*at);
	return ~(uint32_t)sum;
}
#else
static uint32_t by_instruction(uint32_t crc, struct span bytes)
{
	return crc32c_by_table(crc, bytes);
}
#endif

uint32_t crc32c(uint32_t crc, struct span bytes)
{
	return has_instruction ? by_instruction(crc, bytes) : crc32c_by_table(crc, bytes);
}
