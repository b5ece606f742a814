/*
 * The terminal while stint top has it: another screen, no echo, no cursor. It is given back as it was on every way out: at the
 * end, when another verb ends the run, when a signal does, and while we are stopped by Ctrl-Z.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* Is standard input one? Keys are read from there. */
bool raw_is_terminal(void);

/* 0, or a negative errno: the terminal is as before. */
int raw_begin(void);
void raw_end(void);

/* Rows and columns as they are now. */
void raw_size(size_t *ret_rows, size_t *ret_columns);

/* Something happened to the terminal since the last call: another size, or we were stopped and go on. All of the screen is drawn
 * anew. */
bool raw_was_disturbed(void);

/* Ctrl-Z was typed: gives the terminal back, stops, and takes it again. */
void raw_stop_if_asked(void);

/* Waits for bytes that were typed: how many; 0: none within that time; -EPIPE: the terminal is gone. */
int raw_read(char *bytes, size_t room, int wait_ms);

/* 0, or a negative errno. */
int raw_write(struct span bytes);
