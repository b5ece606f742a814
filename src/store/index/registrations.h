/*
 * How often workers are registered, by whom and where: so that one that dies as soon as it starts, again and again, does
 * not keep the store busy. In memory only; a restart begins anew.
 *
 * Each registration is counted for its principal and for its slot. (That of one id again and again is counted with the
 * worker itself: struct holder.) A worker that says goodbye gives that of its slot back: short work is no crash.
 */
#pragma once

#include "base/map.h"
#include "base/slab.h"
#include "core/task/pace.h"

enum registrar {
	REGISTRAR_PRINCIPAL = 0,
	REGISTRAR_SLOT = 1,
};

struct registrations {
	/* One for every principal and slot that ever registered: there are as many as names. */
	struct slab items;
	struct map by_subject;
};

void registrations_init(struct registrations *registrations);
void registrations_done(struct registrations *registrations);

/* NULL: no memory. It never moves. */
struct pace *registrations_of(struct registrations *registrations, enum registrar kind, uint32_t number);
