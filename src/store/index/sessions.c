#include "store/index/sessions.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static uint64_t session_hash(void *context, uint32_t at)
{
	const struct sessions *sessions = context;

	return hash_u64((uint64_t)sessions->items[at].seq);
}

void sessions_init(struct sessions *sessions)
{
	static const struct map_ops ops = {.hash_of = session_hash};

	*sessions = (struct sessions){0};
	map_init(&sessions->by_seq, &ops, sessions);
}

void sessions_done(struct sessions *sessions)
{
	for (uint32_t i = 0; sessions->items && i < SESSIONS_MAX; i++)
		free((char *)sessions->items[i].label.data);
	free(sessions->items);
	map_done(&sessions->by_seq);
	sessions->items = NULL;
}

struct session *sessions_find(const struct sessions *sessions, int64_t seq)
{
	struct map_probe probe;

	if (!sessions->items)
		return NULL;
	uint32_t at = map_first(&sessions->by_seq, hash_u64((uint64_t)seq), &probe);
	while (at != MAP_NONE && sessions->items[at].seq != seq)
		at = map_next(&sessions->by_seq, &probe);
	return at == MAP_NONE ? NULL : &sessions->items[at];
}

static void empty_place(struct sessions *sessions, struct session *place)
{
	if (place->seq == 0)
		return;
	map_remove(&sessions->by_seq, hash_u64((uint64_t)place->seq), (uint32_t)(place - sessions->items));
	free((char *)place->label.data);
	*place = (struct session){0};
}

int sessions_reserve(struct sessions *sessions)
{
	if (!sessions->items)
		sessions->items = calloc(SESSIONS_MAX, sizeof *sessions->items);
	return sessions->items ? map_reserve(&sessions->by_seq, SESSIONS_MAX + 1) : -ENOMEM;
}

void sessions_add(struct sessions *sessions, const struct session *session)
{
	uint32_t at = (uint32_t)(sessions->count % SESSIONS_MAX);
	struct session *former = sessions_find(sessions, session->seq);

	assert(sessions->items); /* sessions_reserve() was called */
	assert(session->seq > 0);
	if (former)
		empty_place(sessions, former);
	empty_place(sessions, &sessions->items[at]);
	sessions->items[at] = *session;
	sessions->count++;
	int r = map_insert(&sessions->by_seq, hash_u64((uint64_t)session->seq), at);
	assert(r == 0);
	assert(sessions->by_seq.used <= SESSIONS_MAX); /* a place has one session */
	assert(sessions_find(sessions, session->seq) == &sessions->items[at]);
}
