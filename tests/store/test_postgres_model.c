/*
 * A model of who may write to a store in PostgreSQL, and every way in which two writers, lost replies, ended sessions, a crash and one failover
 * that loses a tail can follow each other. It says nothing about the code; it says that the rules which lead.c, turn.c and lost.c follow are
 * enough, and that none of them can be left out: each of six mutants of the rules is found.
 *
 * The database is a chain of turns, each with the term that wrote it. A turn first passes the fence and is pending, with the lead's row locked;
 * then it is committed, and then its reply arrives, or none of these. The copy is the database as it was at any earlier moment.
 *
 * One thing the rules cannot do: a leader that has died, and with it the only one that knew its turns, is not asked. What it had acknowledged
 * is looked for no more (see on_crash()).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	WRITERS = 2,
	TURNS = 3,
	CONTENTS = 4, /* what the turns say: each is decided once */
	CUTS = 1,
	TERMS_MAX = 5,
	STATES_MAX = 1 << 22,
};

enum mutant {
	NO_MUTANT,
	NO_SHARE_LOCK,   /* a take-over does not wait for a turn that has passed the fence */
	LOOKS_FIRST,     /* looks at the turns, and then takes over from itself */
	EPOCH_FOR_TERM,  /* the number of the take-over is the term */
	COMPARES_ACKS,   /* only its own acknowledgements, and not the head */
	LEFT_IN_SILENCE, /* who finds another term does not look for its own turns */
	NO_COMPARISON,
};

enum mode { STANDS_BY, LEADS, SENT, LOST, LOOKED };
enum session { NO_TURN, PENDING, COMMITTED };
enum looked { LOOKED_NOTHING, LOOKED_EQUAL, LOOKED_HAPPENED, LOOKED_OTHER };

struct turn {
	uint8_t term, content;
};

struct database {
	uint8_t count, lead, epoch;
	uint8_t timeline, noted; /* noted: where the lead was last taken */
	uint8_t told;            /* that a tail is lost */
	struct turn turns[TURNS];
};

struct writer {
	uint8_t mode, term, session, looked;
	uint8_t count; /* turns that it knows */
	struct turn turns[TURNS];
	uint8_t flight, flight_term;                /* what was sent, or is to be sent again; 0: nothing */
	uint8_t orphan, orphan_term, orphan_number; /* of a session that the client has lost */
};

struct state {
	struct database db, copy;
	struct writer writers[WRITERS];
	uint8_t next_term, next_content;
	uint8_t acked[WRITERS]; /* contents, as bits */
	uint8_t refused;
	uint8_t cuts, has_crashed, has_failed_over;
};

/* ---- every state that was seen ---- */

struct seen {
	struct state state;
	uint32_t before; /* 0: the first one */
	const char *how;
	uint8_t who;
};

static struct seen *seen;
static uint32_t *table, seen_count, at;
static enum mutant mutant;
static const char *violation;

/* ---- what must never be ---- */

static bool holds(const struct database *db, uint8_t content)
{
	for (int i = 0; i < db->count; i++) {
		if (db->turns[i].content == content)
			return true;
	}
	return false;
}

static void wrong(const char *what)
{
	if (!violation)
		violation = what;
}

/* Behind each commit. */
static void judge_chain(const struct state *state)
{
	const struct database *db = &state->db;

	for (int i = 0; i < db->count; i++) {
		if (state->refused >> db->turns[i].content & 1)
			wrong("a turn that was answered as not done is done");
		for (int j = 0; j < i; j++) {
			if (db->turns[i].content == db->turns[j].content)
				wrong("a turn is done twice");
		}
	}
}

/* Behind each acknowledgement. */
static void acknowledge(struct state *state, int who, uint8_t content)
{
	struct writer *writer = &state->writers[who];
	const struct database *db = &state->db;

	for (int i = 0; i < writer->count; i++) {
		if (i >= db->count || writer->turns[i].content != db->turns[i].content) {
			wrong("a turn was decided on what is not there");
			break;
		}
	}
	state->acked[who] |= (uint8_t)(1 << content);
}

static bool remembers(const struct writer *writer, uint8_t content)
{
	for (int i = 0; i < writer->count && writer->mode != STANDS_BY; i++) {
		if (writer->turns[i].content == content)
			return true;
	}
	return false;
}

/* In every state: of what was acknowledged and is gone somebody has told, or will: who still remembers it, or who takes the lead next. */
static void judge_losses(const struct state *state)
{
	const struct database *db = &state->db;
	uint8_t acked = state->acked[0] | state->acked[1];

	for (uint8_t c = 1; c <= CONTENTS && !db->told && db->noted == db->timeline; c++) {
		bool is_gone = (acked >> c & 1) != 0 && !holds(db, c);
		if (is_gone && !remembers(&state->writers[0], c) && !remembers(&state->writers[1], c))
			wrong("what was acknowledged is gone, and nobody will tell");
	}
}

static uint64_t hash_of(const struct state *state)
{
	return hash_bytes(&(struct hash_key){1, 2}, state, sizeof *state);
}

static void reach(const struct state *state, const char *how, int who)
{
	judge_losses(state);
	uint64_t place = hash_of(state) & (2 * STATES_MAX - 1);

	while (table[place] != 0) {
		if (memcmp(&seen[table[place]].state, state, sizeof *state) == 0)
			return;
		place = (place + 1) & (2 * STATES_MAX - 1);
	}
	assert_true(seen_count < STATES_MAX - 1);
	table[place] = ++seen_count;
	seen[seen_count] = (struct seen){*state, at, how, (uint8_t)who};
}

/* ---- steps ---- */

static bool any_pending(const struct state *state)
{
	for (int i = 0; i < WRITERS; i++) {
		if (state->writers[i].session == PENDING || state->writers[i].orphan != 0)
			return true;
	}
	return false;
}

/* An INSERT of a number waits for another one of that number that is not committed yet. */
static bool number_is_pending(const struct state *state, int but, uint8_t number)
{
	for (int i = 0; i < WRITERS; i++) {
		const struct writer *writer = &state->writers[i];
		if (i != but && writer->session == PENDING && writer->count + 1 == number)
			return true;
		if (writer->orphan != 0 && writer->orphan_number == number)
			return true;
	}
	return false;
}

static void stand_by(struct writer *writer)
{
	uint8_t orphan = writer->orphan, term = writer->orphan_term, number = writer->orphan_number;

	*writer = (struct writer){
		.mode = STANDS_BY, .orphan = orphan, .orphan_term = term, .orphan_number = number};
}

static void load(struct writer *writer, const struct database *db)
{
	writer->count = db->count;
	memcpy(writer->turns, db->turns, sizeof writer->turns);
	writer->flight = 0;
	writer->session = NO_TURN;
	writer->mode = LEADS;
}

static void append(struct database *db, uint8_t term, uint8_t content)
{
	db->turns[db->count++] = (struct turn){term, content};
}

static void send_turn(struct state state, int who)
{
	struct writer *writer = &state.writers[who];
	uint8_t number = writer->count + 1;

	if (writer->mode != LEADS || writer->count == TURNS || number_is_pending(&state, who, number))
		return;
	if (writer->flight == 0) {
		if (state.next_content > CONTENTS)
			return;
		writer->flight = state.next_content++;
	}
	writer->flight_term = writer->term;
	if (state.db.lead != writer->term || state.db.count != writer->count) {
		stand_by(writer); /* the fence */
		reach(&state, "sends and is refused", who);
		return;
	}
	writer->mode = SENT;
	writer->session = PENDING;
	reach(&state, "sends", who);
}

static void commit(struct state state, int who)
{
	struct writer *writer = &state.writers[who];

	if (writer->mode != SENT || writer->session != PENDING)
		return;
	if (state.db.count != writer->count) {
		stand_by(writer);
		reach(&state, "'s number is taken", who);
		return;
	}
	append(&state.db, writer->flight_term, writer->flight);
	writer->session = COMMITTED;
	judge_chain(&state);
	reach(&state, "'s turn is committed", who);
}

static void orphan_ends(struct state state, int who, bool commits)
{
	struct writer *writer = &state.writers[who];

	if (writer->orphan == 0 || (commits && state.db.count + 1 != writer->orphan_number))
		return;
	if (commits)
		append(&state.db, writer->orphan_term, writer->orphan);
	writer->orphan = writer->orphan_term = writer->orphan_number = 0;
	judge_chain(&state);
	reach(&state, commits ? "'s old session commits" : "'s old session ends", who);
}

static void reply(struct state state, int who)
{
	struct writer *writer = &state.writers[who];

	if (writer->mode != SENT || writer->session != COMMITTED)
		return;
	uint8_t content = writer->flight;
	writer->turns[writer->count++] = (struct turn){writer->flight_term, content};
	writer->flight = writer->flight_term = 0;
	writer->session = NO_TURN;
	writer->mode = LEADS;
	acknowledge(&state, who, content);
	reach(&state, " hears that it is done", who);
}

/* Its client does not know it; the server may go on. */
static void lose_session(struct writer *writer, bool server_goes_on)
{
	if (writer->session == PENDING && server_goes_on) {
		writer->orphan = writer->flight;
		writer->orphan_term = writer->flight_term;
		writer->orphan_number = writer->count + 1;
	}
	writer->session = NO_TURN;
}

static void cut(struct state state, int who)
{
	struct writer *writer = &state.writers[who];
	bool has_turn = writer->session == PENDING;

	if ((writer->mode != LEADS && writer->mode != SENT) || state.cuts == CUTS ||
		(has_turn && writer->orphan != 0))
		return;
	state.cuts++;
	if (writer->mode == LEADS)
		writer->flight_term = 0; /* what is to be sent again was not sent by this session */
	lose_session(writer, true);
	writer->mode = LOST;
	reach(&state, " loses its session", who);
}

static enum looked look(const struct writer *writer, const struct database *db)
{
	bool has_last = writer->count == 0 ||
		(db->count >= writer->count &&
			db->turns[writer->count - 1].term == writer->turns[writer->count - 1].term);

	if (mutant == NO_COMPARISON || (mutant == COMPARES_ACKS && has_last))
		return LOOKED_EQUAL;
	if (writer->flight != 0 && writer->flight_term != 0 && has_last && db->count == writer->count + 1 &&
		db->turns[writer->count].term == writer->flight_term)
		return LOOKED_HAPPENED;
	return has_last && db->count == writer->count ? LOOKED_EQUAL : LOOKED_OTHER;
}

static void new_term(struct state *state, int who)
{
	state->db.epoch++;
	state->db.lead = mutant == EPOCH_FOR_TERM ? state->db.epoch : state->next_term++;
	state->writers[who].term = state->db.lead;
}

/* The lead is its own again: what became of the turn in flight? */
static void find_out(struct state state, int who, enum looked looked)
{
	struct writer *writer = &state.writers[who];
	uint8_t content = writer->flight;

	state.db.noted = state.db.timeline;
	writer->looked = LOOKED_NOTHING;
	writer->mode = LEADS;
	writer->flight_term = 0;
	if (looked == LOOKED_EQUAL) {
		reach(&state, " takes over from itself, and sends again", who);
		if (content == 0)
			return;
		writer->flight = 0;
		state.refused |= (uint8_t)(1 << content);
		judge_chain(&state);
		reach(&state, " takes over from itself, and refuses", who);
	} else if (looked == LOOKED_HAPPENED) {
		writer->turns[writer->count] = (struct turn){state.db.turns[writer->count].term, content};
		writer->count++;
		writer->flight = 0;
		acknowledge(&state, who, content);
		reach(&state, " takes over from itself: it was done", who);
	} else {
		state.db.told = 1;
		load(writer, &state.db);
		reach(&state, " takes over from itself, and tells of a loss", who);
	}
}

/* Somebody else leads. Is its own last turn there? */
static void leave(struct state state, int who)
{
	struct writer *writer = &state.writers[who];
	bool is_there = writer->count == 0 ||
		(state.db.count >= writer->count &&
			state.db.turns[writer->count - 1].term == writer->turns[writer->count - 1].term);

	if (is_there || mutant == LEFT_IN_SILENCE || mutant == NO_COMPARISON) {
		stand_by(writer);
		reach(&state, " finds another leader", who);
		return;
	}
	new_term(&state, who);
	state.db.told = 1;
	state.db.noted = state.db.timeline;
	load(writer, &state.db);
	reach(&state, " finds another leader, and tells of a loss", who);
}

static void take_from_itself(struct state state, int who)
{
	struct writer *writer = &state.writers[who];

	if (writer->mode == LOST && mutant == LOOKS_FIRST) {
		writer->looked = (uint8_t)look(writer, &state.db);
		writer->mode = LOOKED;
		reach(&state, " looks", who);
		return;
	}
	if ((writer->mode != LOST && writer->mode != LOOKED) || state.next_term > TERMS_MAX)
		return;
	if (any_pending(&state) && mutant != NO_SHARE_LOCK)
		return; /* it waits for the row of the lead */
	if (state.db.lead != writer->term) {
		leave(state, who);
		return;
	}
	enum looked looked = writer->mode == LOOKED ? (enum looked)writer->looked : look(writer, &state.db);
	new_term(&state, who);
	find_out(state, who, looked);
}

static void take_over(struct state state, int who)
{
	struct writer *writer = &state.writers[who];

	if (writer->mode != STANDS_BY || state.next_term > TERMS_MAX ||
		(any_pending(&state) && mutant != NO_SHARE_LOCK))
		return;
	new_term(&state, who);
	if (state.db.noted != state.db.timeline && mutant != NO_COMPARISON)
		state.db.told = 1;
	state.db.noted = state.db.timeline;
	load(writer, &state.db);
	reach(&state, " takes over", who);
}

/* Nobody else knows what it has acknowledged: that is not looked for any more, unless the database still has to be asked for it. */
static void on_crash(struct state state, int who)
{
	struct writer *writer = &state.writers[who];

	if (writer->mode == STANDS_BY || state.has_crashed ||
		(writer->session == PENDING && writer->orphan != 0))
		return;
	state.has_crashed = 1;
	state.acked[who] = 0;
	lose_session(writer, true);
	stand_by(writer);
	reach(&state, " dies and starts again", who);
}

static void replicate(struct state state)
{
	if (state.has_failed_over || memcmp(&state.copy, &state.db, sizeof state.db) == 0)
		return;
	state.copy = state.db;
	reach(&state, "the copy follows", WRITERS);
}

static void fail_over(struct state state)
{
	if (state.has_failed_over)
		return;
	state.has_failed_over = 1;
	state.db = state.copy;
	memset(&state.copy, 0, sizeof state.copy);
	state.db.timeline = 1;
	for (int i = 0; i < WRITERS; i++) {
		struct writer *writer = &state.writers[i];
		writer->orphan = writer->orphan_term = writer->orphan_number = 0;
		if (writer->mode == LEADS)
			writer->flight_term = 0;
		if (writer->mode == LEADS || writer->mode == SENT)
			writer->mode = LOST;
		lose_session(writer, false);
	}
	reach(&state, "the database fails over to its copy", WRITERS);
}

static void step(const struct state *state)
{
	for (int who = 0; who < WRITERS; who++) {
		send_turn(*state, who);
		commit(*state, who);
		reply(*state, who);
		orphan_ends(*state, who, true);
		orphan_ends(*state, who, false);
		cut(*state, who);
		take_from_itself(*state, who);
		take_over(*state, who);
		on_crash(*state, who);
	}
	replicate(*state);
	fail_over(*state);
}

static void print_way(void)
{
	uint32_t way[64], length = 0;

	for (uint32_t i = at; i != 0 && length < 64; i = seen[i].before)
		way[length++] = i;
	while (length > 0) {
		const struct seen *one = &seen[way[--length]];
		if (one->who < WRITERS)
			printf("    %c%s%s\n", 'A' + one->who, strchr("' ", one->how[0]) ? "" : " ",
				one->how);
		else
			printf("    %s\n", one->how);
	}
}

/* NULL: nothing is wrong, whatever happens. */
static const char *walk(enum mutant which)
{
	struct state first = {.next_term = 1, .next_content = 1};

	mutant = which;
	violation = NULL;
	seen_count = at = 0;
	memset(table, 0, 2 * STATES_MAX * sizeof *table);
	reach(&first, "nobody leads", WRITERS);
	for (at = 1; at <= seen_count && !violation; at++) {
		struct state state = seen[at].state;
		if (!state.db.told) /* from there on it is another store */
			step(&state);
		if (violation) {
			print_way();
			printf("    and then: %s\n", violation);
		}
	}
	return violation;
}

/* ---- the tests ---- */

static void the_rules_hold_whatever_happens_in_whatever_order(void **state)
{
	(void)state;
	assert_null(walk(NO_MUTANT));
	printf("  %u states\n", seen_count);
	assert_true(seen_count > 40000);
}

static void without_the_share_lock_a_refused_turn_is_done(void **state)
{
	(void)state;
	assert_non_null(walk(NO_SHARE_LOCK));
}

static void looking_before_taking_over_is_wrong(void **state)
{
	(void)state;
	assert_non_null(walk(LOOKS_FIRST));
}

static void an_epoch_is_no_term(void **state)
{
	(void)state;
	assert_non_null(walk(EPOCH_FOR_TERM));
}

static void ones_own_acknowledgements_are_not_enough(void **state)
{
	(void)state;
	assert_non_null(walk(COMPARES_ACKS));
}

static void a_leader_of_before_must_look_for_its_turns(void **state)
{
	(void)state;
	assert_non_null(walk(LEFT_IN_SILENCE));
}

static void without_a_comparison_a_lost_tail_is_silent(void **state)
{
	(void)state;
	assert_non_null(walk(NO_COMPARISON));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rules_hold_whatever_happens_in_whatever_order),
		cmocka_unit_test(without_the_share_lock_a_refused_turn_is_done),
		cmocka_unit_test(looking_before_taking_over_is_wrong),
		cmocka_unit_test(an_epoch_is_no_term),
		cmocka_unit_test(ones_own_acknowledgements_are_not_enough),
		cmocka_unit_test(a_leader_of_before_must_look_for_its_turns),
		cmocka_unit_test(without_a_comparison_a_lost_tail_is_silent),
	};

	seen = calloc(STATES_MAX, sizeof *seen);
	table = calloc(2 * STATES_MAX, sizeof *table);
	if (!seen || !table)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(seen);
	free(table);
	return failed;
}
