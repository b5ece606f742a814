/*
 * What has changed in a directory since a time, by the clock of its file system: evidence that an agent has worked, with git and
 * without. The walk follows no link and looks at a bounded number of entries; what git keeps for itself is left out, except that
 * a commit counts.
 */
#pragma once

#include "base/buf.h"

enum { CHANGES_LOOKED_MAX = 50000, CHANGES_LISTED_MAX = 1000 };

struct changes {
	uint32_t files;  /* changed or new */
	bool something;  /* these, or a removal, or a commit */
	bool incomplete; /* there are more entries than were looked at */
};

/* A mark for `since`: the time of a file that is made and removed there now; 0: it cannot be made. */
int64_t changes_mark_ns(const char *dir);

/* `git` is git's own directory of the work tree, or NULL. `list` gets the paths of the first files as a JSON list. */
int changes_look(
	const char *dir, const char *git, int64_t since_ns, struct changes *ret_changes, struct buf *list);
