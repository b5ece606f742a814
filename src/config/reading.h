/*
 * What the files of this room share while a configuration is read.
 */
#pragma once

#include "config/config.h"

/* There is no such key. */
void config_note_unknown(struct config *config, struct config_origin where, const char *name);

/* Stores a word, or a value of JSON, if the key takes it; a problem if not. */
void config_set(struct config *config, enum config_key key, const char *word, struct yyjson_val *value,
	struct config_origin origin);

/* config_file.c: a file that is not there is a problem if it `must` be. */
void config_read_file(struct config *config, const char *path, bool must);

/* trust.c: may what this file says be followed? `ret_reason` says why not. -EACCES, or the fault of looking. */
int trust_file(int fd, const char *path, char *ret_reason, size_t reason_bytes);
