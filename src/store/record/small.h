/*
 * Small records: what the data of each kind says. Text for people too: numbers with a blank between them, "-" for none.
 */
#pragma once

#include "core/flow/group.h"
#include "core/flow/hold.h"
#include "core/flow/limit.h"
#include "core/flow/queue.h"
#include "core/worker/login.h"
#include "core/worker/signing_key.h"
#include "core/worker/slot.h"
#include "core/worker/token.h"
#include "store/backend.h"

enum {
	GROUP_STATES =
		TASK_CANCELLED, /* that a row of a group counts: a state that is added later needs another form */
	SMALL_GROUP_NUMBERS = 5 + 2 * GROUP_STATES,
	SMALL_NUMBERS_MAX =
		8 + SLOT_CRASHES_KEPT > SMALL_GROUP_NUMBERS ? 8 + SLOT_CRASHES_KEPT : SMALL_GROUP_NUMBERS,
	SMALL_SLOT_NUMBERS = 4 + SLOT_CRASHES_KEPT,
	SMALL_HOLD_NUMBERS = 8,
	SMALL_BYTES_MAX = SMALL_NUMBERS_MAX * 21,
	SMALL_LOGIN_BYTES_MAX = 512,
};

/* Into `text`, which is borrowed. */
struct span small_queue_put(enum queue_state state, char text[SMALL_BYTES_MAX]);
struct span small_key_put(const struct signing_key *key, char text[SMALL_BYTES_MAX]);
struct span small_hash_put(const unsigned char hash[TOKEN_HASH_BYTES], char text[SMALL_BYTES_MAX]);
struct span small_slot_put(const struct slot *slot, char text[SMALL_BYTES_MAX]);
struct span small_token_put(const struct token_more *more, char text[SMALL_BYTES_MAX]);
struct span small_login_put(const struct browser_login *login, char text[SMALL_LOGIN_BYTES_MAX]);

/* Number, principal, closed, begun, ended; then the members of each state, and how many of these were removed. */
struct span small_group_put(const struct group_state *group, char text[SMALL_BYTES_MAX]);
struct span small_limits_put(const struct queue_limits *limits, char text[SMALL_BYTES_MAX]);
struct span small_hold_put(const struct hold *hold, char text[SMALL_BYTES_MAX]);

/* False: not what we wrote. */
bool small_queue_read(struct span data, enum queue_state *ret_state);
struct span small_cap_put(uint32_t most, char text[SMALL_BYTES_MAX]);
bool small_cap_read(struct span data, uint32_t *ret_most);
struct span small_bucket_put(int64_t due_ns, char text[SMALL_BYTES_MAX]);
bool small_bucket_read(struct span data, int64_t *ret_due_ns);
bool small_limits_read(struct span data, struct queue_limits *ret_limits);
bool small_slot_read(struct span data, struct slot *ret_slot);
bool small_token_read(struct span data, struct token_more *ret_more);
bool small_login_read(struct span key, struct span data, struct browser_login *ret_login);
bool small_group_read(struct span data, struct group_state *ret_group);
bool small_hold_read(struct span data, struct hold *ret_hold);
bool small_key_read(struct span id, struct span data, struct signing_key *ret_key);
