/*
 * Who commits: `name` and `email` of section [user] in the person's settings of git. A program that is shown the home gets them
 * as variables. The settings themselves stay closed: they may hold tokens and name helpers.
 */
#pragma once

#include "base/arena.h"
#include "base/span.h"

enum { GIT_SETTINGS_BYTES_MAX = 64 << 10 };

struct git_identity {
	const char *name, *email; /* in the arena; NULL: not said */
};

/* What the text of such a file says replaces what was said before. Includes are not followed. */
void git_identity_take(struct git_identity *identity, struct arena *arena, struct span text);

/* From .config/git/config and .gitconfig in that home. */
void git_identity_read(struct git_identity *identity, struct arena *arena, const char *home);
