/*
 * The end of a run: faults stop, everybody behaves, and every task must come to rest within a bound.
 */
#pragma once

struct sim;

void calm_run(struct sim *sim);
