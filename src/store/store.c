/*
 * The turns of a store as the caller sees them, what a fault makes of it, and backups.
 *
 * When the disk is full the store gives its ballast back, refuses changes, lets retention make room, and
 * serves again once the ballast fits: until then no lease runs out. Any other fault of a transaction
 * means that what is on disk is not known; then the store is dead, and only a restart finds out.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/read/sound.h"
#include "store/turn/turn.h"

enum { LOW_RETRY_MS = 5000 }; /* for those that are refused because the disk is nearly full */

uint64_t store_next_token(struct store *store)
{
	/* The start's number is in the high bits, the counter in the low ones: no token is issued twice. */
	return store->starts << 40 | ++store->tokens;
}

bool fault_will_pass(int fault)
{
	return fault == -ENOSPC || fault == -EDQUOT || fault == -EROFS;
}

void store_degrade(struct store *store, int fault)
{
	const char *why = store->backend->complaint;

	snprintf(store->complaint, sizeof store->complaint, "%s", why ? why : "there is no room");
	store->degraded = true;
	store->grace.frozen = true;
	store->backend->complaint = NULL;
	store_rows(store, relieve);
	size_t len = strlen(store->complaint);
	if (fault == -ENOSPC && store->backend->complaint)
		snprintf(store->complaint + len, sizeof store->complaint - len, "; %s",
			store->backend->complaint);
}

int store_fail(struct store *store, int fault)
{
	if (fault_will_pass(fault)) {
		store_degrade(store, fault);
		return 0;
	}
	if (fault == -ENOMEM && !store->turn.in_doubt)
		return 0; /* refused for now; after a commit has begun, what is on disk would be a guess */
	if (fault == -EBADMSG && !store->turn.in_doubt &&
		damage_is_of_history(store, &store->backend->last_damage))
		return 0; /* refused: everything else is served */
	const char *why = store->backend->complaint;
	store->dead = true;
	snprintf(store->complaint, sizeof store->complaint,
		"the store failed (%s): nothing more is acknowledged", why ? why : strerror(-fault));
	return fault;
}

/* A renewal lives in memory alone, so a full disk does not stop it. */
static bool needs_no_disk(const struct store *store, const struct command *command)
{
	const struct command_beat *beat = &command->beat;

	if (!store->started) /* a token must not be given out before its start is on disk */
		return false;
	if (command->kind != COMMAND_BEAT || beat->describes || beat->bound.count + beat->unbound.count > 0)
		return false;
	uint32_t number = index_find_holder(&store->index, command->worker);
	return number != 0 && worker_is_alive(&index_holder(&store->index, number)->worker);
}

/* Does it begin something that takes room and can wait? What ends something, and what keeps somebody alive, cannot. */
static bool begins_something(const struct store *store, const struct command *command)
{
	static const bool begins[COMMAND_KIND_COUNT] = {
		[COMMAND_CREATE] = true,
		[COMMAND_UPDATE] = true,
		[COMMAND_CLAIM_NEXT] = true,
		[COMMAND_CLAIM] = true,
		[COMMAND_LOG] = true,
		[COMMAND_REGISTER] = true,
	};

	if (command->oversees && command->principal != PRINCIPAL_OPEN)
		return false;
	return begins[command->kind] ||
		(command->kind == COMMAND_BEAT && index_find_holder(&store->index, command->worker) == 0);
}

static void refuse_all(struct result *results, uint32_t count, enum refusal refusal)
{
	for (uint32_t i = 0; i < count; i++)
		results[i] = (struct result){.refusal = refusal};
}

static int run_commands(
	struct turn *turn, const struct command *commands, uint32_t count, struct result *ret_results)
{
	for (uint32_t i = 0; i < count; i++) {
		if (turn->memory_only && !needs_no_disk(turn->store, &commands[i])) {
			ret_results[i] = (struct result){.refusal = REFUSED_UNAVAILABLE};
			continue;
		}
		if (turn->store->room.low && begins_something(turn->store, &commands[i])) {
			ret_results[i] =
				(struct result){.refusal = REFUSED_DISK_LOW, .retry_ms = LOW_RETRY_MS};
			continue;
		}
		int r = command_run(turn, &commands[i], &ret_results[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The turn is over: after a fault every command is refused, and the store may be degraded or dead. */
static int end_turn(struct store *store, int fault, struct result *results, uint32_t count)
{
	assert(store->turn.state == TURN_IDLE);
	assert(!store->turn.begun); /* nothing is under way to the disk */
	store->turn.memory_only = false;
	if (fault == 0)
		return 0;
	refuse_all(results, count, fault == -EBADMSG ? REFUSED_STORE_DAMAGED : REFUSED_UNAVAILABLE);
	return store_fail(store, fault);
}

int store_send(struct store *store, struct moment now, const struct command *commands, uint32_t count,
	struct result *ret_results)
{
	struct turn *turn = &store->turn;

	assert(count <= STORE_COMMANDS_MAX);
	assert(store->turn.state == TURN_IDLE); /* the last turn is settled */
	if (store->dead)
		return -EIO;
	store->backend->complaint = NULL; /* of what was before */
	turn_begin(turn, now);
	turn->memory_only = store->degraded;
	int r = store->degraded ? 0 : timers_run(turn);
	if (r == 0)
		r = run_commands(turn, commands, count, ret_results);
	if (r < 0)
		turn_abort(turn);
	else
		r = turn_send(turn);
	return r < 0 ? end_turn(store, r, ret_results, count) : 0;
}

int store_settle(struct store *store, struct result *results, uint32_t count)
{
	if (store->turn.state == TURN_IDLE) /* it ended when it was sent: the results say how */
		return 0;
	int r = turn_settle(&store->turn);
	return r == -EAGAIN ? r : end_turn(store, r, results, count);
}

int store_turn(struct store *store, struct moment now, const struct command *commands, uint32_t count,
	struct result *ret_results)
{
	int r = store_send(store, now, commands, count, ret_results);

	if (r == 0) {
		do
			r = store_settle(store, ret_results, count);
		while (r == -EAGAIN);
	}
	return r;
}

int64_t store_idle_ms(const struct store *store, struct moment now)
{
	const struct heap_entry *next = heap_peek(&store->index.wall_timers);
	int64_t lease_idle_ms = wheel_idle_ms(&store->index.lease_timers, now.lease_ms);
	int64_t wall_idle_ms = INT64_MAX;

	if (store->degraded)
		return INT64_MAX; /* nothing happens by itself until there is room again */
	int64_t at_ms = holds_next_ms(store);

	if (next && next->at < at_ms)
		at_ms = next->at;
	if (rates_next_ms(store) < at_ms)
		at_ms = rates_next_ms(store);
	if (store->schedules.next_ms < at_ms)
		at_ms = store->schedules.next_ms;
	if (at_ms != INT64_MAX)
		wall_idle_ms = at_ms > now.wall_ms ? at_ms - now.wall_ms : 0;
	return lease_idle_ms < wall_idle_ms ? lease_idle_ms : wall_idle_ms;
}

void store_woke(struct store *store, struct moment now)
{
	store->grace.woke_ms = now.lease_ms;
}

void store_set_room(struct store *store, const struct store_room *room)
{
	assert(!room->low || room->low_bytes > 0);
	assert(room->open_bytes >= room->low_bytes);
	store->room = *room;
}

const struct store_room *store_room(const struct store *store)
{
	return &store->room;
}

bool store_is_degraded(const struct store *store)
{
	return store->degraded;
}

bool store_is_dead(const struct store *store)
{
	return store->dead;
}

const char *store_complaint(const struct store *store)
{
	return store->dead || store->degraded ? store->complaint : store->backend->complaint;
}

int store_checkpoint(struct store *store)
{
	if (store->dead)
		return -EIO;
	store->backend->complaint = NULL;
	int r = store_rows(store, checkpoint, false);
	return r < 0 ? store_fail(store, r) : 0;
}

/* ---- backup ---------------------------------------------------------------------------------------- */

int store_backup_begin(struct store *store, const char *path)
{
	if (store->backing_up)
		return -EALREADY;
	store->backend->complaint = NULL;
	int r = store_rows(store, backup_begin, path);
	store->backing_up = r == 0;
	return r;
}

int store_backup_step(struct store *store, uint32_t pages, uint32_t *ret_remaining)
{
	assert(store->backing_up);
	store->backend->complaint = NULL;
	return store_rows(store, backup_step, pages, ret_remaining);
}

void store_backup_end(struct store *store)
{
	if (store->backing_up)
		store_rows(store, backup_end);
	store->backing_up = false;
}
