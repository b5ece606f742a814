#include "server/net/sources.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"

enum {
	BURST_US = 1000 * 1000, /* what a source may spend ahead */
	UID_MARK = 0xff,        /* no address that connects begins so: multicast */
	NET_BYTES = 8,          /* of an IPv6 address: what follows is its owner's to choose */
	PID_AT = 8,
	UID_AT = 12,
	LOOPBACK_TIMES = 20,
};

static const struct source_key loopback = {.bytes = {[10] = 0xff, 0xff, 127, [15] = 1}};

struct source_key source_at(const unsigned char address[SOURCE_BYTES])
{
	static const unsigned char six_loopback[SOURCE_BYTES] = {[SOURCE_BYTES - 1] = 1};
	static const unsigned char four[NET_BYTES + 4] = {[10] = 0xff, 0xff};
	struct source_key key = {0};

	if (memcmp(address, six_loopback, SOURCE_BYTES) == 0)
		return loopback;
	bool is_four = memcmp(address, four, sizeof four) == 0;
	memcpy(key.bytes, address, is_four ? SOURCE_BYTES : NET_BYTES);
	return is_four && key.bytes[sizeof four] == 127 ? loopback : key;
}

bool address_of(uv_stream_t *stream, unsigned char ret_address[SOURCE_BYTES])
{
	struct sockaddr_storage address = {0};
	int len = sizeof address;

	if (stream->type != UV_TCP ||
		uv_tcp_getpeername((const uv_tcp_t *)stream, (struct sockaddr *)&address, &len) < 0)
		return false;
	memset(ret_address, 0, SOURCE_BYTES);
	if (address.ss_family == AF_INET6) {
		memcpy(ret_address, &((const struct sockaddr_in6 *)&address)->sin6_addr, SOURCE_BYTES);
	} else {
		ret_address[10] = ret_address[11] = 0xff;
		memcpy(ret_address + 12, &((const struct sockaddr_in *)&address)->sin_addr, 4);
	}
	return true;
}

struct source_key source_of(uv_stream_t *stream)
{
	unsigned char address[SOURCE_BYTES];
	struct source_key key = {0};

	if (stream->type == UV_TCP)
		return address_of(stream, address) ? source_at(address) : key;
	struct ucred peer;
	socklen_t size = sizeof peer;
	uv_os_fd_t fd;
	key.bytes[0] = UID_MARK;
	if (uv_fileno((uv_handle_t *)stream, &fd) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
		memcpy(key.bytes + PID_AT, &peer.pid, sizeof peer.pid);
		memcpy(key.bytes + UID_AT, &peer.uid, sizeof peer.uid);
	}
	return key;
}

/* Wrong credentials count for the user: a process is soon made. */
static struct source_key user_of(const struct source_key *key)
{
	struct source_key user = *key;

	if (key->bytes[0] == UID_MARK)
		memset(user.bytes + PID_AT, 0, UID_AT - PID_AT);
	return user;
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
		if (set[i].free_at_us <= now_ms * 1000 && set[i].count == 0)
			spare = &set[i];
	}
	if (!spare)
		return &sources->others;
	*spare = (struct source){.key = *key};
	return spare;
}

bool source_is_barred(struct sources *sources, const struct source_key *key, int64_t now_ms)
{
	struct source_key user = user_of(key);

	return find(sources, &user, now_ms)->free_at_us - now_ms * 1000 >= BURST_US;
}

void source_failed(struct sources *sources, const struct source_key *key, uint32_t per_s, int64_t now_ms)
{
	struct source_key user = user_of(key);
	struct source *source = find(sources, &user, now_ms);
	int64_t from_us = source->free_at_us > now_ms * 1000 ? source->free_at_us : now_ms * 1000;

	if (is_same(source, &loopback))
		per_s *= LOOPBACK_TIMES;
	source->free_at_us = from_us + 1000 * 1000 / per_s;
}

struct source *source_take(struct sources *sources, const struct source_key *key, int64_t now_ms)
{
	struct source *source = find(sources, key, now_ms);

	if (source->count++ == 0) {
		TAILQ_INIT(&source->strangers);
		LIST_INSERT_HEAD(&sources->crowd, source, crowd);
	}
	return source;
}

void source_release(struct source *source)
{
	assert(source->count > 0);
	if (--source->count == 0)
		LIST_REMOVE(source, crowd);
}

struct source *sources_most_strangers(struct sources *sources)
{
	struct source *source, *most = NULL;

	LIST_FOREACH(source, &sources->crowd, crowd)
	{
		if (!most || source->count > most->count)
			most = source;
	}
	return most;
}
