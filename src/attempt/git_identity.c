#include "attempt/git_identity.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

enum { VALUE_BYTES_MAX = 256 };

static struct span trimmed(struct span text)
{
	while (text.len > 0 && strchr(" \t\r", text.data[0]))
		text = (struct span){text.data + 1, text.len - 1};
	while (text.len > 0 && strchr(" \t\r", text.data[text.len - 1]))
		text.len--;
	return text;
}

static bool is_word(struct span text, const char *word)
{
	return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

/* Without quotes and the comment behind it. NULL: too long, or it has a control character. */
static const char *value_of(struct arena *arena, struct span text)
{
	char value[VALUE_BYTES_MAX];
	size_t len = 0, keep = 0;
	bool quoted = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '"') {
			quoted = !quoted;
			keep = len;
			continue;
		}
		if (!quoted && (c == '#' || c == ';'))
			break;
		if (c == '\\' && i + 1 < text.len)
			c = text.data[++i];
		if ((unsigned char)c < ' ' || len + 1 == sizeof value)
			return NULL;
		value[len++] = c;
		if (quoted || c != ' ')
			keep = len;
	}
	value[keep] = 0;
	const char *kept = arena_text(arena, "%s", value);
	return kept[0] ? kept : NULL;
}

static void take_line(struct git_identity *identity, struct arena *arena, struct span line, bool *in_user)
{
	const char *equals = line.len > 0 ? memchr(line.data, '=', line.len) : NULL;

	if (line.len > 0 && line.data[0] == '[') {
		*in_user = is_word(line, "[user]");
		return;
	}
	if (!*in_user || !equals)
		return;
	struct span key = trimmed((struct span){line.data, (size_t)(equals - line.data)});
	struct span rest = trimmed((struct span){equals + 1, (size_t)(line.data + line.len - equals - 1)});
	const char **into = is_word(key, "name") ? &identity->name
		: is_word(key, "email")          ? &identity->email
						 : NULL;
	const char *value = into ? value_of(arena, rest) : NULL;
	if (value)
		*into = value;
}

void git_identity_take(struct git_identity *identity, struct arena *arena, struct span text)
{
	bool in_user = false;

	while (text.len > 0) {
		const char *newline = memchr(text.data, '\n', text.len);
		size_t len = newline ? (size_t)(newline - text.data) : text.len;
		take_line(identity, arena, trimmed((struct span){text.data, len}), &in_user);
		text = (struct span){text.data + len + (newline != NULL), text.len - len - (newline != NULL)};
	}
}

void git_identity_read(struct git_identity *identity, struct arena *arena, const char *home)
{
	static const char *const names[] = {".config/git/config", ".gitconfig"};

	*identity = (struct git_identity){0};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct stat stat_;
		cleanup(close_at) int fd = open(arena_text(arena, "%s/%s", home, names[i]),
			O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 || fstat(fd, &stat_) < 0 || !S_ISREG(stat_.st_mode) ||
			stat_.st_size > GIT_SETTINGS_BYTES_MAX)
			continue;
		char *text = arena_alloc(arena, (size_t)stat_.st_size + 1);
		ssize_t got = text ? read(fd, text, (size_t)stat_.st_size) : 0;
		if (got > 0)
			git_identity_take(identity, arena, (struct span){text, (size_t)got});
	}
}
