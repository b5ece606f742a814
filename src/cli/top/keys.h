/*
 * What a person types: the bytes of a terminal as keys.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key {
	KEY_NONE = 0, /* bytes that mean nothing to us */
	/* a printable character is itself */
	KEY_UP = 0x110000, /* beyond every character */
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_ENTER,
	KEY_ESCAPE,
	KEY_TAB,
	KEY_BACK_TAB,
	KEY_ERASE,
};

/* The first key of these bytes, and how many they are. 0: it may go on, and more bytes are needed; an ESC alone is taken as the
 * key once nothing follows (`ended`). */
size_t key_read(const char *bytes, size_t len, bool ended, uint32_t *ret_key);
