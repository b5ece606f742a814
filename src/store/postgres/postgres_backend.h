/*
 * Inside the PostgreSQL backend. Nobody outside this directory and its tests includes this.
 *
 *   libpq.c    the library, loaded when it is needed
 *   fault.c    what PostgreSQL says, as faults with a sentence
 *   link.c     one session: connected, looked over, made ready
 *   lead.c     the schema, and who writes to it
 *   lost.c     a tail that a failover has lost
 *   open.c     a store is opened and closed
 *   row.c      a row as bytes; the rows of the turn and the rows that are kept
 *   turn.c     the turn: what it changes is sent in one round trip, and what became of it
 *   ask.c      statements that give rows
 *   tasks.c    tasks
 *   records.c  everything else that has one row for each key
 *   events.c   events, several to a row
 *   scan.c     pages and scans
 *   upkeep.c   signs of life, and what this backend has no use for
 *
 * Until send() nothing of a turn has left this process, as a rule: its rows are in memory, and a look-up finds them there. A
 * read of several rows amid a turn that has changed some of that table sends what there is and reads in the same
 * transaction; that costs round trips and is rare.
 *
 * The SQL is in statements.sql and schema/, and becomes postgres_sql.h when built.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "store/backend.h"
#include "store/postgres.h"
#include "store/postgres/libpq.h"
#include "store/postgres/postgres_sql.h"

enum {
	PG_COLUMNS_MAX = 26,
	PG_COMPLAINT_MAX = 1024,
	PG_NAME_MAX = 64, /* of a schema, with its NUL */
	PG_TERMS_MAX = 4,
	PG_KEPT_ROWS = 8192, /* places for tasks, and as many for bodies */
	PG_KEPT_BYTES_MAX = 2000,
	PG_SYSTEM_BYTES = 24,
	PG_TIMELINE_BYTES = 12,
};

enum pg_table {
	PG_TASK,
	PG_BODY,
	PG_EXTRA,
	PG_EVENT,
	PG_BASE,
	PG_TASK_ID,
	PG_TASK_KEY,
	PG_EDGE,
	PG_NAME,
	PG_WORKER,
	PG_SMALL,
	PG_SECRET,
	PG_TOKEN,
	PG_IDEM,
	PG_META,
	PG_INBOX, /* rows are put by others, without a seal */
	PG_TABLE_COUNT,
};

struct pg_table_form {
	const char *name;
	const char *columns;  /* 'l': int8, 'b': bytea, 'c': int4, the seal, which is the last one */
	int keys;             /* the first so many columns are the key; in the table of tasks there is one */
	int put, get, remove; /* statements; -1: none */
};
extern const struct pg_table_form pg_tables[PG_TABLE_COUNT];

/* A row that the turn under way has put or deleted. Its bytes are each column as PostgreSQL has it in COPY and in
 * arrays: four bytes of length, highest first, and the value. The key stands first. */
struct pg_row {
	enum pg_table table;
	bool gone;
	bool sent; /* the server has heard of it, in the transaction that is open there */
	uint32_t key_len, len;
	char bytes[];
};

struct kept_row {
	int64_t seq; /* 0: none */
	uint32_t len, cap;
	char *bytes;
};

/* What the turn under way is going to do, in this order: delete tasks, events and requests, then put and delete rows. */
struct pg_turn {
	bool begun;
	bool open;     /* a transaction is open at the server, with the fence and the rows that are sent */
	bool in_doubt; /* it was sent, and what became of it is not known */
	struct arena arena;
	struct pg_row **rows;
	uint32_t row_count, row_cap;
	struct map row_by_key;
	uint32_t of_table[PG_TABLE_COUNT]; /* rows */
	int64_t *dropped;                  /* tasks */
	uint32_t dropped_count, dropped_cap, dropped_sent;
	int64_t drop_events; /* up to it; 0: none */
	int64_t drop_idems_before_ms;
	uint32_t drop_idems_limit; /* 0: none */
	int64_t first_event;       /* that was put; 0: none */
	struct buf pack;           /* events that were put and are in no row yet: see events.c */
	int64_t pack_last;
};

struct postgres {
	struct backend backend; /* first: see postgres_of() */
	PGconn *link;
	char *url, *shown; /* with its password, and without */
	char schema[PG_NAME_MAX];
	char holder[LEADER_NAME_BYTES], leader_url[LEADER_URL_BYTES];
	int64_t since_ms; /* wall: when the lead was taken */
	uint32_t patience_ms, look_away_ms;
	int64_t terms
		[PG_TERMS_MAX]; /* the first one is ours; the others may be, if a take-over was done and its reply lost */
	int term_count;
	int64_t head, head_term; /* the last turn that was committed, as far as we know */
	int64_t heard_ms;        /* when */
	int64_t pruned;          /* the head when old turns were last removed */
	int pid;                 /* of our session */
	int64_t maybe_term;      /* an empty turn of this term may stand behind the head; 0: none does */
	bool is_away;            /* PostgreSQL could not be reached: until it can, nobody waits for it */
	bool is_stale; /* another server leads, or the store is another one than in memory: nothing is tried any more */
	bool only_looks; /* it never leads, and reads one snapshot */
	bool has_notice; /* the server said something beside the replies */
	struct hash_key key;
	struct pg_turn turn;
	struct kept_row *kept[2]; /* tasks and bodies */
	struct buf row, found;    /* a row that is put together; one that was read */
	struct buf columns[PG_COLUMNS_MAX];
	uint64_t round_trips; /* of look-ups */
	char system[PG_SYSTEM_BYTES],
		timeline[PG_TIMELINE_BYTES]; /* which PostgreSQL it is, and which of its lives */
	bool is_synchronous;                 /* a commit waits for a standby */
	int64_t looked_ms;                   /* when that was asked */
	bool has_execution;                  /* … was put by this process: */
	int64_t execution;                   /* the last one */
	char notice[256];
	char complaint[PG_COMPLAINT_MAX];
};

static inline struct postgres *postgres_of(struct backend *backend)
{
	return (struct postgres *)backend;
}

/* fault.c */

/* The fault of a result that is no success; NULL: the connection. Sets the complaint. -ENOTCONN: the session is lost, and what became
 * of a transaction under way is not known. */
int pg_fault(struct postgres *store, const PGresult *result);
int pg_complain(struct postgres *store, int fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int pg_is_stale(struct postgres *store);
int pg_fault_row(struct postgres *store, enum pg_table table, struct span row);
bool pg_is_state(const PGresult *result, const char *state);
void pg_take_notice(void *context, const PGresult *result);
/* What the library says about the connection, in one line. */
const char *pg_last_words(const struct postgres *store, char *text, size_t size);

/* link.c: a session, with every setting and statement that the rest counts on. */
int link_open(struct postgres *store);
void link_close(struct postgres *store);
/* A statement that is not prepared, with text parameters and results. NULL: no memory. */
PGresult *link_run(struct postgres *store, const char *sql, int count, const char *const *values);
/* The same, of which only success counts. */
int link_do(struct postgres *store, const char *sql);
int64_t pg_now_ms(void);

/* lead.c */

/* Make the schema if it is not there; -EPROTO: not ours, or newer. Then wait until nobody leads, and take the lead. */
int lead_prepare(struct postgres *store);
int lead_take(struct postgres *store, const struct postgres_options *options);
/* The session was lost: have another one, with the lead taken over from ourselves. *ret_happened: the turn that was sent is committed.
 * -ESTALE: another server leads. -ENOTCONN: PostgreSQL cannot be reached. */
int lead_again(struct postgres *store, bool was_sent, bool *ret_happened);
void lead_resign(struct postgres *store);
/* The session reads one snapshot from here on, without the lead. */
int lead_look_only(struct postgres *store);

/* lost.c */

/* Where the lead was taken by the one before. */
struct lead_place {
	char system[PG_SYSTEM_BYTES], timeline[PG_TIMELINE_BYTES]; /* empty: not known */
	bool is_synchronous;
};

/* May a failover between that take-over and ours have lost turns? */
bool lost_may_be(const struct postgres *store, const struct lead_place *before);
/* The store is one that was restored, from the next start on; `lost` turns, -1: nobody knows how many. We lead, and no turn is
 * under way. */
int lost_mark(struct postgres *store, int64_t lost);
int lost_note_place(struct postgres *store);
int lost_look(struct postgres *store);

/* row.c: a row is put together in store->row. */
void row_begin(struct postgres *store);
void row_int(struct postgres *store, int64_t value);
void row_bytes(struct postgres *store, struct span value);
void row_null(struct postgres *store);
/* It is whole: its seal is added, and it waits to be sent. */
int row_put(struct postgres *store, enum pg_table table);
/* The columns put together are the key of a row that goes. */
int row_delete(struct postgres *store, enum pg_table table);

struct row_columns {
	const char *at, *end;
	bool broken; /* the bytes are not what was asked for */
};

int64_t column_int(struct row_columns *columns);
struct span column_span(struct row_columns *columns);

/* The row whose key was put together, wherever it is: -ENOENT, a fault, or the columns, which are borrowed until the next
 * look-up. */
int row_find(struct postgres *store, enum pg_table table, struct row_columns *ret_columns);
/* The row of a result, put together in `bytes`. -EBADMSG: its seal is wrong. */
int row_of_result(struct postgres *store, enum pg_table table, const PGresult *result, int at,
	struct buf *bytes, struct row_columns *ret_columns);
bool turn_drops(const struct postgres *store, int64_t seq);
void turn_forget(struct postgres *store);
void turn_forget_rows(struct postgres *store); /* the server has all of them */
void turn_keep(struct postgres *store);        /* it is committed: some of its rows are kept */
/* Rows of the table that hang on the task are put no more. */
void turn_forget_task(struct postgres *store, int64_t seq);
void turn_forget_table(struct postgres *store, enum pg_table table);
void kept_free(struct postgres *store);
void kept_drop(struct postgres *store, int64_t seq);
void kept_clear(struct postgres *store);

/* turn.c: send what was not sent yet and leave the transaction open, so that a read sees it. */
int turn_flush(struct postgres *store);
/* The same, if there is something unsent that a read of this table must see. */
int turn_show(struct postgres *store, enum pg_table table);

/* ask.c: a prepared statement with its parameters, in the session and in the transaction that is open there. */
struct pg_parameter {
	const char *data;
	int len;
	char number[8];
};
struct pg_parameter pg_int(int64_t value);
struct pg_parameter pg_bytes(struct span value);
int pg_ask(struct postgres *store, enum pg_statement which, int count, struct pg_parameter *parameters,
	PGresult **ret_result);
#define ASK(store, which, ret_result, ...)                                                               \
	pg_ask(store, which, sizeof((struct pg_parameter[]){__VA_ARGS__}) / sizeof(struct pg_parameter), \
		(struct pg_parameter[]){__VA_ARGS__}, ret_result)
/* Wait until the session has a result for whoever asks next, or is lost. */
PGresult *pg_next_result(struct postgres *store);

/* tasks.c, records.c: a row as what it means. False: no row that we wrote. */
bool task_of_columns(struct row_columns columns, struct task_row *ret_row);
bool worker_of_columns(struct row_columns columns, struct worker_row *ret_row);
bool token_of_columns(struct row_columns columns, struct token *ret_token);
bool idem_of_columns(struct row_columns columns, struct idem_row *ret_row);

/* events.c: the events that are in no row yet become one. */
int pack_close(struct postgres *store);

/* Every function of the interface, declared with the type that backend.h gives it and named postgres_ and its
 * name there. */
#define X(op) __typeof__(*((struct backend_ops *)0)->op) postgres_##op;
BACKEND_OPS(X)
#undef X

extern const struct backend_ops postgres_ops;
