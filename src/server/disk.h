/*
 * How much room is left where the store lies. The store's own ballast helps it out of a full disk; the low-water mark keeps it from
 * getting there: below it nothing new is begun, so that what is under way can be reported.
 */
#pragma once

struct server;

/* Once, before it serves: says if the file system is too small for a mark. */
void disk_begin(struct server *server);

/* A look, with every sweep. */
void disk_look(struct server *server);
