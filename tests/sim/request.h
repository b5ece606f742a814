/*
 * Requests and replies as they travel. A request owns every byte its command points to and never moves, so
 * that the very same one can arrive twice, late, or again after its reply was lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/command.h"

enum {
	REQUEST_TEXT_MAX = 4096,
	REQUEST_LIST_MAX = 40,
	REPLY_CLAIMS_MAX = 8,
	REPLY_LIST_MAX = 24,
	ID_MAX = 32, /* bytes of the ids of the simulated world, with NUL */
	TOKEN_TEXT_MAX = 64,
};

struct request {
	uint32_t refs; /* the actor's patience, arrivals under way, replies under way */
	uint32_t actor, instance;
	struct command command;
	struct span path, body; /* what a remote worker says; path empty: the command itself travels */
	int64_t sent_ms;        /* true time: before it was said for the first time */
	int64_t task;           /* seq of what the actor believes it is about, 0 = none */
	uint32_t tries;
	uint32_t arrivals; /* how often it reached the server */
	bool settled;      /* the actor waits no longer */
	int64_t made;      /* CREATE: seq of the task it was first answered with */
	int64_t made_wall_ms;
	uint32_t made_era; /* … and in which life of the store that was */
	uint32_t text_len, list_len;
	char text[REQUEST_TEXT_MAX];
	struct span list[REQUEST_LIST_MAX];
};

/* A claim as its claimant was told. */
struct told_claim {
	char id[ID_MAX];
	int64_t seq;
	uint64_t fence;
};

struct reply {
	uint32_t request;
	uint32_t era; /* rises with each restore: what was told before may be gone */
	enum command_kind kind;
	enum refusal refusal;
	bool repeated;
	char id[ID_MAX];
	int64_t seq;
	uint64_t fence;
	uint64_t token;
	char token_text[TOKEN_TEXT_MAX]; /* a remote worker knows only this */
	uint32_t granted_ms;
	enum worker_state worker_state;
	uint32_t claim_count, lost_count, stop_count, park_count;
	struct told_claim claims[REPLY_CLAIMS_MAX];
	char lost[REPLY_LIST_MAX][ID_MAX];
	char stop[REPLY_LIST_MAX][ID_MAX];
	char park[REPLY_LIST_MAX][ID_MAX];
};

/* Copy a text into the request. */
struct span request_text(struct request *request, struct span text);
struct span request_printf(struct request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Lists are built one after the other: begin, add …, and the list. */
struct name_list request_begin_list(struct request *request);
void request_add(struct request *request, struct name_list *list, struct span text);

/* A list of those words whose bit is set. */
struct name_list request_words(
	struct request *request, const struct span *words, uint32_t count, uint32_t mask);

/* What the actor will read of a result. */
void reply_fill(struct reply *reply, const struct command *command, const struct result *result);

/* A span as a C string of the simulated world. */
void id_copy(char out[ID_MAX], struct span text);
