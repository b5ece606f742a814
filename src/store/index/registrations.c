#include "store/index/registrations.h"

#include "base/hash.h"

struct item {
	uint64_t subject;
	struct pace pace;
};

static struct item *item_at(const struct registrations *registrations, uint32_t slot)
{
	return slab_at(&registrations->items, slot);
}

static uint64_t item_hash(void *context, uint32_t slot)
{
	return hash_u64(item_at(context, slot)->subject);
}

static const struct map_ops item_ops = {.hash_of = item_hash};

void registrations_init(struct registrations *registrations)
{
	slab_init(&registrations->items, sizeof(struct item));
	map_init(&registrations->by_subject, &item_ops, registrations);
}

void registrations_done(struct registrations *registrations)
{
	map_done(&registrations->by_subject);
	slab_done(&registrations->items);
}

struct pace *registrations_of(struct registrations *registrations, enum registrar kind, uint32_t number)
{
	uint64_t subject = (uint64_t)number << 1 | kind;
	struct map_probe probe;
	uint32_t slot = map_first(&registrations->by_subject, hash_u64(subject), &probe);

	while (slot != MAP_NONE && item_at(registrations, slot)->subject != subject)
		slot = map_next(&registrations->by_subject, &probe);
	if (slot != MAP_NONE)
		return &item_at(registrations, slot)->pace;
	if (slab_alloc(&registrations->items, &slot) < 0)
		return NULL;
	item_at(registrations, slot)->subject = subject;
	if (map_insert(&registrations->by_subject, hash_u64(subject), slot) < 0) {
		slab_free(&registrations->items, slot);
		return NULL;
	}
	return &item_at(registrations, slot)->pace;
}
