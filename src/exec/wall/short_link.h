/*
 * A short name for a long path: a link in $XDG_RUNTIME_DIR or /tmp, whose name nobody could know beforehand. podman takes
 * no long path for what it keeps while a container runs, and a state directory may lie anywhere.
 *
 * It goes with its process. What a worker that was killed has left is a link that leads nowhere once the run dir is
 * removed, and the next short_link_make() removes it.
 */
#pragma once

enum { SHORT_LINK_BYTES = 40 }; /* with its NUL */

int short_link_make(const char *path, char ret_link[SHORT_LINK_BYTES]);
void short_link_remove(char short_link[SHORT_LINK_BYTES]); /* does nothing with ""; leaves "" */
