/*
 * The way into the dashboard: a link with a code for once.
 */
#pragma once

#include "cli/frame/cli.h"

/* A link to the server's page, by the server that was found already. NULL: the server gives none; if `needed`, that was reported. */
const char *dashboard_link(struct cli *cli, const char *url, const char *role, bool needed);

/* Opens the link in the browser of the desktop, if there is one that can: by a file in the state directory that only its user
 * can read, because the words of a command can be read by every process of the user. */
bool dashboard_open(struct cli *cli, const char *home, const char *link);
