/*
 * What index/index.c and index/holder.c share. Only they include this.
 */
#pragma once

#include "store/index/index.h"

/* Grace moves timers later, never earlier, and a full disk must not lose one: they are set for the bare times. */
static inline struct given given_bare(const struct given *given)
{
	struct given bare = *given;

	bare.grace.frozen = false;
	return bare;
}

/* index/holder.c */
void holders_init(struct index *index);
void holders_done(struct index *index);
int holders_loaded(struct index *index); /* all of them: see index_loaded() */

/* Sets the timer of the holder's lease; without a lease it drops the timer. */
void holder_arm(struct index *index, struct holder *holder, const struct given *given);

/* The principal has a live worker more, or less. */
void account_worker(struct index *index, uint32_t principal, bool is_more);
