/*
 * What the doors of older systems share: lists that are made in slices.
 */
#pragma once

#include "api/call.h"

/* What a list remembers from one slice to the next, as the caller's struct: `bytes` that are zeroed before the first one.
 * NULL: there is no memory, and the call was refused. */
void *door_list(struct api_call *call, size_t bytes);

/* From here on what is in the body may be sent while the list goes on. `head` is the beginning of the document. */
void door_list_begin(struct api_call *call, const char *head);

/* The slice is made. There is more: the call is asked again. Else `tail` ends the document, and that is the reply. */
void door_list_slice(struct api_call *call, int fault, bool more, const char *tail);
