/*
 * What goes wrong with the server and its machine, and what of it is still in the air.
 */
#pragma once

#include <stdint.h>

#include "sim/options.h"

struct sim;

struct faults {
	enum fault last;
	int64_t until_ms; /* true time: so long it counts as the weather */
	uint64_t count[FAULT_COUNT];
};

/* Perhaps something goes wrong now. */
void faults_step(struct sim *sim);

/* What the current operations happen under. */
enum fault faults_weather(const struct sim *sim);

/* It is over, and felt for a while from now. */
void faults_linger(struct sim *sim);

/* The disk has room again. */
void faults_relieve(struct sim *sim);
