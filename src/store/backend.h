/*
 * Backends: where rows live. One interface, behind which are SQLite, memory (tests/backend/) and later PostgreSQL.
 *
 * A backend is dumb: it keeps rows and makes one transaction at a time durable. Rules, indexes, events and
 * their encoding are above it. All put_*() and delete_*() calls happen between begin() and send(); a read
 * inside a transaction sees what was put before. A commit has two halves, so that a backend on another machine need not
 * block: send() hands the transaction over, settle() says whether everything is on disk. Between the two nothing is put.
 *
 * Faults: 0 or negative errno. -ENOSPC, -EDQUOT and -EROFS mean "not now": the transaction is rolled back
 * and a later one may succeed. -ESTALE means that another writer has taken the store over (its epoch is
 * higher than ours). -EBADMSG means that a row, or a page of a table, holds what we never wrote: it is noted in
 * backend.damages, and what was asked for cannot be had. Anything else from a transaction means that what is on disk is no longer known: it is
 * never retried, the store acknowledges nothing more and the program ends. -ENOENT from a look-up: no such row.
 *
 * Spans given to put_*() are borrowed for the call. Spans returned by look-ups are copied into `arena`; those
 * given to a scan's callback live for that call. A callback that returns non-zero ends its scan with that value.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "core/task/document.h"
#include "core/admin_query.h"
#include "core/task/task.h"
#include "core/worker/token.h"
#include "core/worker/worker.h"

struct task_row {
	struct task task;   /* claim.holder is not stored: the text below is */
	struct span holder; /* worker id of a live claim, else empty */
};

struct worker_row {
	struct worker worker; /* handle and held are not stored; lease.deadline_ms is the stored deadline */
	struct span id;       /* key of the row */
	uint32_t instance;    /* rises when a name comes back */
	struct span metadata;
	int64_t ended_ms; /* wall: since when it is inactive, else 0 */
};

/* Small records: each is one row, found by its kind and the name that it is about. Stored numbers. A new kind needs a number
 * here and its encoding in record/small.c; no backend knows of it. */
enum small_kind {
	SMALL_QUEUE = 1,      /* a queue that is not open */
	SMALL_SLOT = 2,       /* a slot with a history */
	SMALL_ASSIGNMENT = 3, /* of a slot: its queues in order, each after the character 31 */
	SMALL_HOLD = 4,       /* of an account */
	SMALL_TOLD = 5,       /* by the number of a task: it was told something that nobody has heard */
	SMALL_LIMITS = 6,     /* of a queue */
	SMALL_RESTORED =
		10, /* a token that the last restore brought back or took away: see enum restored_token */
	SMALL_SIGNING_KEY = 11,    /* a key of derived tokens, by its id */
	SMALL_ADMIN_HASH = 12,     /* SHA-256 of the admin's token, in hexadecimal digits */
	SMALL_LOGIN = 15,          /* a login code, or the browser session that it became */
	SMALL_SCHEDULE = 20,       /* a schedule by its id: record/schedule.h */
	SMALL_SCHEDULE_STATE = 21, /* what became of it */
	SMALL_GROUP = 24,          /* a group, with its members counted by state */
	SMALL_BULK = 34,           /* a bulk action by its id: record/bulk.h */
	SMALL_BULK_STATE = 35,     /* how far it is */
	SMALL_STATS =
		40, /* by hour and queue: what ended, and how long claims were waited for: record/stats_row.h */
	SMALL_SPENT = 41,   /* by hour and executor: money and tokens */
	SMALL_KEY_CAP = 50, /* of a concurrency key: a queue, the character 31, and the key */
	SMALL_BUCKET = 51,  /* of a rate: a queue, the character 31, and the number of a key */
	SMALL_LOST = 58, /* "turns": how many a failover of PostgreSQL has lost, in decimal, or "unknown" */
	SMALL_TOKEN =
		60, /* by its id: what else is known of a join code, of a machine's token, and of one with a new secret */
	SMALL_DAY_BUDGET =
		63,    /* 'q' and a queue, or 'a' and an account: what it may use in a day, and has used */
	SMALL_KIND_END /* above all of them */
};

/* What a restore did to a token. Stored numbers. */
enum restored_token {
	RESTORED_TOKEN_UNKNOWN =
		0, /* of no token: the tokens of the store that was replaced could not be read */
	RESTORED_TOKEN_CAME = 1,  /* it is valid again */
	RESTORED_TOKEN_WENT = 2,  /* it was valid and is gone */
	RESTORED_TOKEN_ENDED = 3, /* the replaced store had forgotten it after its end: it is revoked */
};

/* Is it in no backup? */
static inline bool small_is_secret(enum small_kind kind)
{
	return kind == SMALL_SIGNING_KEY || kind == SMALL_ADMIN_HASH;
}

/* A name, its number, and the principal that added it. */
struct name_row {
	uint32_t id, principal;
	struct span text;
};

/* A request that was answered, by (principal, key). */
struct idem_row {
	struct span principal;
	struct span key;
	unsigned char fingerprint[16];
	int64_t task;
	int64_t created_ms;
	bool deduplicated;
};

struct edge_row {
	int64_t parent; /* a task, or below 0 a group: see group_edge() */
	int64_t child;
	bool dead; /* the parent failed or was cancelled */
	bool done; /* the parent is done: the child waits for it no more, and may still want its result */
};

/* How the parent of an edge stands, as rows have it: the numbers are stored. */
enum edge_standing {
	EDGE_OPEN = 0,
	EDGE_DEAD = 1,
	EDGE_DONE = 2,
};

static inline enum edge_standing edge_standing(const struct edge_row *row)
{
	return row->done ? EDGE_DONE : row->dead ? EDGE_DEAD : EDGE_OPEN;
}

/* A group as the parent of those that wait for it, and back. */
static inline int64_t group_edge(uint32_t group)
{
	return -(int64_t)group;
}

static inline uint32_t group_of_edge(int64_t parent)
{
	return (uint32_t)-parent;
}

/* What may be kept beside a task. Stored numbers. */
enum extra_kind {
	EXTRA_RESULT = 1,
	EXTRA_ERROR = 2,
	EXTRA_CHECKPOINT = 3,
	EXTRA_QUESTION = 4,
	EXTRA_ANSWER = 5,
	EXTRA_ORPHAN = 6, /* one per fence */
	EXTRA_KEY = 7,    /* its unique key, so that a retry can claim it again */
	EXTRA_ID = 8,     /* the caller's own id */
	EXTRA_LOG = 9,    /* one per attempt: where the chunks of its log lie; 0: which attempts have one */
	EXTRA_LOG_CHUNK = 10,  /* by attempt and offset; see log.c */
	EXTRA_EMITTED = 11,    /* by the digest of its id: an event from outside */
	EXTRA_EMITTED_AT = 12, /* the digests in order, round and round; -1: how many there were */
	EXTRA_EVIDENCE = 13,
	EXTRA_SESSION = 14,
	EXTRA_RECOVERED =
		15, /* it was lost by the slot that owns it: when (wall, decimal), a space, the session of then */
	EXTRA_SPAWNED =
		16, /* it is a session: see command/session.c; of task 0 by place: which tasks are, round and round */
	EXTRA_WORDS = 17,       /* the holder's last message for people */
	EXTRA_LAST_HOLDER = 18, /* holder of the last claim that was made by name; see last_holder_put() */
	EXTRA_CLAIMANT = 19,    /* by number: a principal that held an attempt before the last one */
	EXTRA_REPORT = 20,      /* of the claim that is marked as reported */
	EXTRA_FAILED = 21,      /* a slot owns it, and it failed or was blocked: as EXTRA_RECOVERED */
	EXTRA_WORKFLOW = 22,    /* of task 0 by number: the name of a workflow that was configured */
	EXTRA_ASKED =
		24, /* the last question, as the fence of the attempt that asked it (decimal), a space, what it was */
	EXTRA_PROGRESS =
		25, /* how far an attempt is: its fence (decimal), a space, what it said last, as members of JSON */
	EXTRA_QUESTIONS =
		30,         /* struct questions as numbers; EXTRA_QUESTION and EXTRA_ANSWER also by number */
	EXTRA_ALLOWED = 31, /* one by one: what was allowed for the whole task */
	EXTRA_PERMISSION =
		32, /* what the open question asks for: the next EXTRA_ALLOWED, if a person says so */
	EXTRA_TELL =
		33, /* by number: what it was told; 0: the last number, and the last one that was heard */
	EXTRA_USAGE = 34,  /* what its attempts have used: see command/usage.c */
	EXTRA_AGENT = 58,  /* the agent of its last attempt: adapter, host, its own session id */
	EXTRA_PROMPT = 57, /* what the agent of its last attempt was told first */
	EXTRA_SUBTASK =
		60, /* by number from 1: a task that it created under its claim; 0: how many; -1: of the last claim, its fence and which executors its subtasks may name: see command/subtask.c */
	EXTRA_EVENTS = 75, /* its last events that are no longer in the log: see kept.h */
	EXTRA_AUDIT = 76,  /* of task 0, by number from 1; 0: which there are: see kept.h */
	EXTRA_SCHEDULE =
		50, /* it was made by a schedule: the planned instant (wall, decimal), a space, the id of the schedule */
};

/* The table of such a row, as damage is named: logs and old events can be done without. */
static inline const char *extra_table(enum extra_kind kind)
{
	switch ((int)kind) {
	case EXTRA_LOG:
	case EXTRA_LOG_CHUNK:
		return "task_extra (log)";
	case EXTRA_EVENTS:
	case EXTRA_AUDIT:
		return "task_extra (events)";
	}
	return "task_extra";
}

/* Is the store opened for the first time after a restore? */
enum restored {
	RESTORED_NOT = 0,
	RESTORED = 1,
	RESTORED_OVER_DISARMED =
		2, /* … over a store in which execution was disarmed, or that nobody could ask */
};

/* The few facts about the store as a whole. Stored numbers; integers. */
enum meta_key {
	META_GENERATION = 1, /* rises with each restore; the first is 1 */
	META_STARTS = 2,     /* how often it was opened for writing: the epoch of the writer */
	META_TASK_FLOOR = 3, /* no task seq at or below it is given out again */
	META_EVENT_BASE = 4, /* events up to and including it are folded into the baseline */
	META_RESTORED = 5,   /* enum restored */
	META_BOOT_HI = 6,    /* boot id, 128 bits */
	META_BOOT_LO = 7,
	META_PRINCIPALS = 8,    /* the last number given to one */
	META_EXECUTION = 9,     /* enum execution */
	META_EXECUTION_MS = 10, /* wall: when that was set */
	META_STORE_HI = 11,     /* which store it is, 128 random bits; 0: not known yet */
	META_STORE_LO = 12,
	META_UNSEALED_TASK =
		13, /* rows of tasks up to it, and what hangs on them, may have no checksum; -1: none */
	META_UNSEALED_EVENT = 14,
	META_KEY_OF_ADMIN =
		15,       /* 1: derived tokens were signed with the key that follows from the admin's token */
	META_GROUPS = 18, /* the last number given to a group */
	META_BULKS = 22,  /* … and to a bulk action */
	META_KEY_COUNT,
};

/* What open() found, so that nothing has to be counted twice. */
struct backend_facts {
	int64_t last_event;  /* highest event seq, or META_EVENT_BASE */
	int64_t last_task;   /* highest task seq */
	uint64_t shadow_ids; /* callers' ids that look like generated ones: "t-" and base 36 */
	uint64_t finals;     /* final tasks */
};

struct backend;

struct backend_ops {
	const char *name;

	/* transactions */
	int (*begin)(struct backend *backend);
	int (*send)(struct backend *backend); /* a fault of it is as one of settle() */
	int (*settle)(
		struct backend *backend); /* 0: on disk; -EAGAIN: not known yet, ask again; or a fault */
	void (*rollback)(
		struct backend *backend); /* forgets everything since begin(); also after a failed commit */

	/* rows; put replaces what is there */
	int (*put_task)(
		struct backend *backend, const struct task_row *row, bool fresh); /* fresh: seq is new */
	int (*put_body)(struct backend *backend, int64_t seq, struct span body);
	int (*put_extra)(
		struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data);
	int (*put_event)(struct backend *backend, int64_t seq, struct span data); /* seq is always new */
	int (*put_base)(
		struct backend *backend, int64_t seq, struct span data); /* folded columns of a task */
	int (*put_name)(struct backend *backend, const struct name_row *row);
	int (*put_id)(struct backend *backend, struct span id, int64_t seq);
	int (*put_key)(struct backend *backend, struct span key, int64_t seq);
	int (*put_edge)(struct backend *backend, const struct edge_row *row);
	int (*put_worker)(struct backend *backend, const struct worker_row *row);
	int (*put_small)(struct backend *backend, enum small_kind kind, struct span key, struct span data);
	int (*put_token)(struct backend *backend, const struct token *token);
	int (*put_idem)(struct backend *backend, const struct idem_row *row);
	int (*put_meta)(struct backend *backend, enum meta_key key, int64_t value);
	int (*delete_task)(struct backend *backend, int64_t seq); /* with body, extras, edges and its id */
	int (*delete_base)(struct backend *backend, int64_t seq);
	int (*delete_extra)(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n);
	int (*delete_key)(struct backend *backend, struct span key);
	int (*delete_edge)(struct backend *backend, int64_t parent, int64_t child);
	int (*delete_worker)(struct backend *backend, struct span id);
	int (*delete_token)(struct backend *backend, struct span id);
	int (*delete_small)(struct backend *backend, enum small_kind kind, struct span key);
	int (*delete_events)(struct backend *backend, int64_t upto); /* seq ≤ upto */
	int (*delete_idems)(struct backend *backend, int64_t before_ms,
		uint32_t limit); /* created before; at most limit */

	/* look-ups */
	int (*get_task)(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row);
	int (*get_body)(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body);
	int (*get_extra)(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
		struct arena *arena, struct span *ret_data);
	int (*get_event)(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data);
	int (*get_base)(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data);
	int (*get_worker)(
		struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row);
	int (*get_idem)(
		struct backend *backend, struct span principal, struct span key, struct idem_row *ret_row);
	int (*get_meta)(struct backend *backend, enum meta_key key, int64_t *ret_value);
	int (*get_small)(struct backend *backend, enum small_kind kind, struct span key, struct arena *arena,
		struct span *ret_data);
	int (*find_id)(struct backend *backend, struct span id, int64_t *ret_seq);
	int (*find_key)(struct backend *backend, struct span key, int64_t *ret_seq);
	int (*children)(struct backend *backend, int64_t parent,
		int (*each)(void *context, const struct edge_row *row), void *context);
	int (*parents)(struct backend *backend, int64_t child,
		int (*each)(void *context, const struct edge_row *row), void *context);

	/* everything, at open: in order of key */
	int (*scan_names)(struct backend *backend, int (*each)(void *context, const struct name_row *row),
		void *context);
	int (*scan_live_tasks)(struct backend *backend,
		int (*each)(void *context, const struct task_row *row), void *context,
		struct backend_facts *ret_facts); /* not final */
	int (*scan_edges)(struct backend *backend, int (*each)(void *context, const struct edge_row *row),
		void *context);
	int (*scan_workers)(struct backend *backend, int (*each)(void *context, const struct worker_row *row),
		void *context);
	int (*scan_tokens)(struct backend *backend, int (*each)(void *context, const struct token *token),
		void *context);

	/* pages: at most `limit` rows with a key above `after`, in order of key; the caller continues by key */
	int (*page_tasks)(struct backend *backend, int64_t after, uint32_t limit,
		int (*each)(void *context, const struct task_row *row), void *context);
	/* backwards: those with a key below `before`, the last one first; only what a list looks at */
	int (*page_outlines)(struct backend *backend, int64_t before, uint32_t limit,
		int (*each)(void *context, const struct task_outline *outline), void *context);
	int (*page_events)(struct backend *backend, int64_t after, uint32_t limit,
		int (*each)(void *context, int64_t seq, struct span data), void *context);
	int (*page_bases)(struct backend *backend, int64_t after, uint32_t limit,
		int (*each)(void *context, int64_t seq, struct span data), void *context);
	int (*page_small)(struct backend *backend, enum small_kind kind, struct span after, uint32_t limit,
		int (*each)(void *context, struct span key, struct span data), void *context);

	/* The row holds what we never wrote. Notes it and sets the complaint, which says where it is and what to do. Returns
	 * -EBADMSG. */
	int (*damaged)(struct backend *backend, const char *table, int64_t row);

	/* upkeep, between transactions */
	int (*checkpoint)(
		struct backend *backend, bool idle); /* after the replies have gone out; idle: no hurry */
	/* Note outside of the rows how far they are: then a start finds out that the store has lost something. */
	int (*mark)(struct backend *backend);
	int (*relieve)(struct backend *backend); /* give the ballast back to a full disk */
	int (*reserve)(struct backend *backend); /* have the ballast again; -ENOSPC: still full */
	/* A question in the backend's own language, between transactions. It changes nothing. -EINVAL, -EPERM,
	 * -ETIME, -E2BIG: its complaint says why it was refused or ended; -ENOTSUP: this backend has no language. */
	int (*query)(struct backend *backend, struct admin_query *question);
	int (*backup_begin)(struct backend *backend, const char *path);
	int (*backup_step)(struct backend *backend, uint32_t pages,
		uint32_t *ret_remaining);            /* 0 remaining: complete and synced */
	void (*backup_end)(struct backend *backend); /* also gives one up half way */
	void (*close)(struct backend *backend);      /* accepts NULL */
};

/* Every one of them by its name. */
// clang-format off
#define BACKEND_OPS(X) \
	X(begin) X(send) X(settle) X(rollback) \
	X(put_task) X(put_body) X(put_extra) X(put_event) X(put_base) X(put_name) X(put_id) X(put_key) X(put_edge) \
	X(put_worker) X(put_small) X(put_token) X(put_idem) X(put_meta) \
	X(delete_task) X(delete_base) X(delete_extra) X(delete_key) X(delete_edge) X(delete_worker) X(delete_token) X(delete_small) X(delete_events) X(delete_idems) \
	X(get_task) X(get_body) X(get_extra) X(get_event) X(get_base) X(get_worker) X(get_idem) X(get_meta) X(get_small) \
	X(find_id) X(find_key) X(children) X(parents) \
	X(scan_names) X(scan_live_tasks) X(scan_edges) X(scan_workers) X(scan_tokens) \
	X(page_tasks) X(page_outlines) X(page_events) X(page_bases) X(page_small) \
	X(damaged) X(checkpoint) X(mark) X(relieve) X(reserve) X(query) X(backup_begin) X(backup_step) X(backup_end) X(close)
// clang-format on

#define X(op) +1
_Static_assert(sizeof(struct backend_ops) == (1 BACKEND_OPS(X)) * sizeof(void *), "none is missing");
#undef X

/* A place of the store that holds what we never wrote. */
enum {
	DAMAGES_MAX = 100, /* that are remembered one by one */
	DAMAGE_KEY_BYTES = 48,
};

struct damage {
	char table[24];
	int64_t row;                /* 0: the row has no number, or it is a page of the table */
	char key[DAMAGE_KEY_BYTES]; /* of a row without a number, as backend_key_text() writes it; else "" */
};

struct backend {
	const struct backend_ops *ops;
	struct damage damages[DAMAGES_MAX]; /* found by this run */
	uint32_t damage_count;
	struct damage last_damage;
	const char *complaint; /* of the last fault, for people, or NULL */
	uint32_t schema;       /* version of the layout of its rows; 0: no versions */
};

/* Remember it, once; `key` may be NULL. Returns -EBADMSG. */
int backend_note_damage(struct backend *backend, const char *table, int64_t row, const char *key);

/* The key of a row for people: it may be damaged, too, so what is no plain character is a question mark, and a long one is cut. */
void backend_key_text(struct span key, char ret_text[DAMAGE_KEY_BYTES]);

/* Both halves of a commit, for callers that may wait. */
static inline int backend_commit(struct backend *backend)
{
	int r = backend->ops->send(backend);

	if (r == 0) {
		do
			r = backend->ops->settle(backend);
		while (r == -EAGAIN);
	}
	return r;
}
