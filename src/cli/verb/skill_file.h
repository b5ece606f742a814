/*
 * Skills: texts that teach an agent to use stint. They are a part of the program (tools/embed-skills makes the table from
 * skills/), and are written as SKILL.md into the directories where agents look for them.
 *
 * The last line of a file that we wrote is a mark with our version and a checksum of all lines above it. So a file of another
 * version, which may be replaced, is told apart from one that a person has changed, which may not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

struct skill {
	const char *name; /* also of its directory */
	const char *description;
	struct span text;
};

extern const struct skill skills[]; /* by name */
extern const size_t skill_count;

enum skill_state {
	SKILL_ABSENT,
	SKILL_CURRENT,
	SKILL_OUTDATED, /* as another version of stint wrote it */
	SKILL_CHANGED,  /* changed by hand, or not ours from the beginning */
};

struct skill_found {
	enum skill_state state;
	char version[32]; /* that wrote it; empty: there is no mark */
	bool is_link;     /* of a changed one: SKILL.md is a symbolic link */
	/* Of a changed one: the lines of the file that differ from our text. If last < first, lines of ours are missing before
	 * `first`. */
	uint32_t first_line, last_line;
};

/* The bytes of the file: the text and the mark. */
int skill_put(struct buf *out, const struct skill *skill, const char *version);

/* What a file with these bytes is. */
void skill_judge(struct span bytes, const struct skill *skill, struct skill_found *ret_found);

/* Where a skill is kept: `path` below the directory `root`, as ".claude/skills/NAME". With `beneath`, links that lead out
 * of the root are not followed: -EXDEV. */
struct skill_dir {
	const char *root, *path;
	bool beneath;
};

/* Looks at SKILL.md in that directory. 0, or why it cannot be read; what is not there is SKILL_ABSENT. */
int skill_look(const struct skill_dir *dir, const struct skill *skill, struct skill_found *ret_found);

/* Makes the directories that are missing, and puts the file in the place of what was there: whole or not at all. */
int skill_write(const struct skill_dir *dir, const struct skill *skill, const char *version);
