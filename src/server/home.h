/*
 * The state directory: ours alone, with the admin token and the address of the server in it.
 */
#pragma once

#include "server/mint.h"

/* Make the directory (0700) if it is not there; refuse one that others may write to. 0, or an exit status after a
 * line in the log. */
int home_prepare(const char *home);

/* Of several servers that share a store each has a directory of its own: nobody else has this one, until we end. 0, or an exit status
 * after a line in the log. */
int home_lock(const char *home);

/* The admin token; made and written (0600) at the first start. */
int home_admin_token(const char *home, char token[TOKEN_BYTES_MAX]);

/* Replace home/NAME by this text, atomically, 0600, and so that a loss of power does not undo it. 0 or negative errno. */
int home_write(const char *home, const char *name, const char *text);

void home_remove(const char *home, const char *name);
