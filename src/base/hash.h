/*
 * Hashes for tables in memory. Only the number of a concurrency key is ever stored (core/flow/limit.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Secret and random per process: clients choose the strings we hash. */
struct hash_key {
	uint64_t k0;
	uint64_t k1;
};

/* SipHash-1-3. The same on every machine for the same key and bytes. */
uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len);

/*
 * Mixes every bit into every other, one to one. Unkeyed: for numbers that we
 * chose ourselves, not for those a client can pick.
 */
static inline uint64_t hash_u64(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u; /* the finaliser of splitmix64 */
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}
