/*
 * Audits: the rows against the model, the memory against the rows, the folded events against the rows, and
 * no lease or time that is over and was not noticed.
 */
#pragma once

struct sim;

/* After a turn: now and then, because it reads every row. */
void audit_turn(struct sim *sim);

/* Everything, whatever it costs. */
void audit_all(struct sim *sim);
