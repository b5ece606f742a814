#include "config/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base32.h"
#include "base/files.h"
#include "base/take.h"
#include "config/config.h"
#include "wire/tls/tls.h"

enum {
	SECRET_BYTES = 32,
	ID_DIGITS = MACHINE_ID_BYTES - 1,
	BASE32_CHARS = MACHINE_PIN_BYTES - 1,
};

void machine_path(const char *home, const char *name, char ret_path[MACHINE_PATH_BYTES])
{
	snprintf(ret_path, MACHINE_PATH_BYTES, "%s/%s/%s", home, MACHINE_DIR, name);
}

bool machine_is_enrolled(const char *home)
{
	char path[MACHINE_PATH_BYTES];

	snprintf(path, sizeof path, "%s/admin.token", home);
	if (!home[0] || access(path, F_OK) == 0)
		return false;
	machine_path(home, MACHINE_TOKEN, path);
	return access(path, F_OK) == 0;
}

/* ---- secrets ---- */

static int random_bytes(unsigned char *bytes, size_t count)
{
	ssize_t got = getrandom(bytes, count, 0);

	return got == (ssize_t)count ? 0 : got < 0 ? -errno : -EIO;
}

static void put_hex(const unsigned char *bytes, size_t count, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * count] = 0;
}

/* Base64 for URLs without padding: 43 characters of 32 bytes. */
static void put_base64(const unsigned char bytes[SECRET_BYTES], char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0, count = 0;

	for (int i = 0; i < SECRET_BYTES; i++) {
		bits = (bits << 8 | bytes[i]) & 0xffffff;
		for (count += 8; count >= 6; count -= 6)
			*text++ = digits[bits >> (count - 6) & 63];
	}
	*text++ = digits[bits << (6 - count) & 63];
	*text = 0;
}

/* "worker" and "0123…" of stint_worker_0123…_SECRET. */
static bool split(struct span token, struct span *ret_kind, struct span *ret_id)
{
	static const char prefix[] = "stint_";
	size_t len = sizeof prefix - 1;
	const char *end = token.data + token.len;

	if (token.len <= len || memcmp(token.data, prefix, len) != 0)
		return false;
	const char *kind = token.data + len, *id = memchr(kind, '_', (size_t)(end - kind));
	const char *secret = id ? memchr(id + 1, '_', (size_t)(end - id - 1)) : NULL;
	if (!secret || id == kind || secret == id + 1)
		return false;
	*ret_kind = (struct span){kind, (size_t)(id - kind)};
	*ret_id = (struct span){id + 1, (size_t)(secret - id - 1)};
	return true;
}

struct span machine_token_id(struct span token)
{
	struct span kind, id = {0};

	return split(token, &kind, &id) ? id : (struct span){0};
}

int machine_mint(struct span token, char ret_token[MACHINE_TOKEN_BYTES])
{
	unsigned char secret[SECRET_BYTES], random_id[ID_DIGITS / 2];
	char text[2 * SECRET_BYTES], made[MACHINE_ID_BYTES];
	struct span kind = SPAN("worker"), id = {made, ID_DIGITS};

	if (token.len > 0 && !split(token, &kind, &id))
		return -EINVAL;
	int r = random_bytes(secret, sizeof secret);
	if (r == 0)
		r = random_bytes(random_id, sizeof random_id);
	if (r < 0)
		return r;
	put_hex(random_id, sizeof random_id, made);
	put_base64(secret, text);
	int len = snprintf(
		ret_token, MACHINE_TOKEN_BYTES, "stint_%.*s_%.*s_%s", SPAN_ARGS(kind), SPAN_ARGS(id), text);
	explicit_bzero(secret, sizeof secret);
	explicit_bzero(text, sizeof text);
	return len > 0 && len < MACHINE_TOKEN_BYTES ? 0 : -EINVAL;
}

int machine_hash(struct span token, char ret_hash[MACHINE_HASH_BYTES])
{
	unsigned char hash[TLS_HASH_BYTES];
	int r = tls_sha256(token, hash);

	if (r == 0)
		put_hex(hash, sizeof hash, ret_hash);
	return r;
}

/* ---- files ---- */

/* The directory of the file, and the names of both in it. */
struct beside {
	int dir_fd;
	const char *name;
	char next[300];
};

static int open_beside(const char *file, struct beside *ret_beside)
{
	const char *slash = strrchr(file, '/');
	char dir[MACHINE_PATH_BYTES];

	*ret_beside = (struct beside){.dir_fd = -1, .name = slash ? slash + 1 : file};
	int len = snprintf(ret_beside->next, sizeof ret_beside->next, "%s.next", ret_beside->name);
	if (len < 0 || (size_t)len >= sizeof ret_beside->next)
		return -ENAMETOOLONG;
	snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) + (slash == file) : 1,
		slash ? file : ".");
	ret_beside->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret_beside->dir_fd < 0 ? -errno : 0;
}

int machine_read_next(const char *file, char ret_token[MACHINE_TOKEN_BYTES])
{
	char path[MACHINE_PATH_BYTES];
	int len = snprintf(path, sizeof path, "%s.next", file);

	return len > 0 && (size_t)len < sizeof path ? config_read_line(path, ret_token, MACHINE_TOKEN_BYTES)
						    : -ENAMETOOLONG;
}

/* The owner of the file that is replaced owns the new one: a service's user, where root made this. */
int machine_keep_next(const char *file, const char *token)
{
	char line[MACHINE_TOKEN_BYTES + 1];
	struct beside beside;
	int r = open_beside(file, &beside);

	snprintf(line, sizeof line, "%s\n", token);
	if (r == 0)
		r = file_write(beside.dir_fd, beside.next, span_of(line), true);
	explicit_bzero(line, sizeof line);
	close_at(&beside.dir_fd);
	return r;
}

int machine_take_next(const char *file)
{
	struct beside beside;
	int r = open_beside(file, &beside);

	if (r == 0 && renameat(beside.dir_fd, beside.next, beside.dir_fd, beside.name) < 0)
		r = -errno;
	if (r == 0 && fsync(beside.dir_fd) < 0)
		r = -errno;
	close_at(&beside.dir_fd);
	return r;
}

void machine_drop_next(const char *file)
{
	struct beside beside;

	if (open_beside(file, &beside) == 0)
		unlinkat(beside.dir_fd, beside.next, 0);
	close_at(&beside.dir_fd);
}

/* ---- codes ---- */

static bool is_base32(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz234567") >= BASE32_CHARS;
}

bool join_code_read(const char *text, struct join_code *ret_code)
{
	static const char prefix[] = "stint_join_";
	const char *id = strncmp(text, prefix, sizeof prefix - 1) == 0 ? text + sizeof prefix - 1 : "";
	const char *secret = id + ID_DIGITS + 1;
	struct join_code code = {0};

	if (strspn(id, "0123456789abcdef") != ID_DIGITS || id[ID_DIGITS] != '_' || !is_base32(secret))
		return false;
	memcpy(code.id, id, ID_DIGITS);
	const char *pin = secret + BASE32_CHARS;
	if (*pin == '_' && is_base32(pin + 1)) {
		memcpy(code.pin, pin + 1, BASE32_CHARS);
		pin += 1 + BASE32_CHARS;
	}
	*ret_code = code;
	return *pin == 0;
}

bool join_code_names(const struct join_code *code, const unsigned char *hash)
{
	char pin[MACHINE_PIN_BYTES];

	base32_put(hash, BASE32_CHARS, pin);
	return strcmp(pin, code->pin) == 0;
}
