#include "server/net/sources.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"

enum {
	BURST_MS = 1000, /* what a source may spend ahead */
	UID_MARK = 0xff, /* no address that connects begins so: multicast */
};

struct source_key source_of(uv_stream_t *stream)
{
	struct sockaddr_storage address = {0};
	int len = sizeof address;
	struct source_key key = {0};

	if (stream->type == UV_TCP) {
		if (uv_tcp_getpeername((const uv_tcp_t *)stream, (struct sockaddr *)&address, &len) < 0)
			return key;
		if (address.ss_family == AF_INET6) {
			memcpy(key.bytes, &((struct sockaddr_in6 *)&address)->sin6_addr, sizeof key.bytes);
		} else {
			key.bytes[10] = key.bytes[11] = 0xff;
			memcpy(key.bytes + 12, &((struct sockaddr_in *)&address)->sin_addr, 4);
		}
		return key;
	}
	struct ucred peer;
	socklen_t size = sizeof peer;
	uv_os_fd_t fd;
	key.bytes[0] = UID_MARK;
	if (uv_fileno((uv_handle_t *)stream, &fd) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		memcpy(key.bytes + 12, &peer.uid, sizeof peer.uid);
	return key;
}

static bool is_same(const struct source *source, const struct source_key *key)
{
	return memcmp(&source->key, key, sizeof *key) == 0;
}

/* Its place, or one that nobody needs any more; with neither, the one that is for all others. */
static struct source *find(struct sources *sources, const struct source_key *key, int64_t now_ms)
{
	static const struct hash_key any = {0x736f7572, 0x636573};
	struct source *set =
		sources->places[hash_bytes(&any, (const char *)key->bytes, sizeof key->bytes) % SOURCES_SETS];
	struct source *spare = NULL;

	for (int i = 0; i < SOURCES_WAYS; i++) {
		if (is_same(&set[i], key))
			return &set[i];
		bool counts = set[i].counted == sources->sweep && sources->sweep != 0;
		if (set[i].free_at_ms <= now_ms && !counts)
			spare = &set[i];
	}
	if (!spare)
		return &sources->others;
	*spare = (struct source){.key = *key};
	return spare;
}

bool source_is_barred(struct sources *sources, const struct source_key *key, int64_t now_ms)
{
	return find(sources, key, now_ms)->free_at_ms - now_ms >= BURST_MS;
}

void source_failed(struct sources *sources, const struct source_key *key, uint32_t per_s, int64_t now_ms)
{
	struct source *source = find(sources, key, now_ms);
	int64_t from_ms = source->free_at_ms > now_ms ? source->free_at_ms : now_ms;

	source->free_at_ms = from_ms + 1000 / per_s;
}

void sources_begin_sweep(struct sources *sources)
{
	sources->sweep++;
}

uint32_t source_count(struct sources *sources, const struct source_key *key, int64_t now_ms)
{
	struct source *source = find(sources, key, now_ms);

	if (source->counted != sources->sweep)
		source->strangers = 0;
	source->counted = sources->sweep;
	return ++source->strangers;
}
