/*
 * The API: requests become commands, results become replies. It owns the JSON of the product and no rule.
 *
 *   api_begin()   routes the request, checks scope and syntax, and leaves either a finished reply, or
 *                 commands for the next turn, or a read to be done
 *   api_read()    does the read, from the store, a bounded slice of it per call
 *   api_finish()  turns the results of the commands into the reply; or asks for one more turn: then `step` says so
 *
 * A command that leaves here is valid by construction. Everything a call makes lives in its arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "core/command.h"
#include "core/task/document.h"
#include "core/task/given.h"
#include "core/admin_query.h"
#include "core/record.h"
#include "core/why.h"
#include "store/read.h"
#include "wire/http/http.h"

/* What a credential may do. A route names one or more. A route without a scope fails to compile. */
enum scope {
	SCOPE_PUBLIC = 1, /* no credential needed */
	SCOPE_ANY,        /* any valid credential */
	SCOPE_READ,       /* see everything except credentials */
	SCOPE_PRODUCE,    /* create tasks */
	SCOPE_WORK,       /* register, beat, claim, report; see tasks that it may claim or holds */
	SCOPE_CLAIM,      /* report on one claim and see its task, while the claim lives */
	SCOPE_OPERATE,    /* cancel, retry, park, answer, queues, workers */
	SCOPE_APPROVE,    /* answer questions; pass any gate */
	SCOPE_GATE,       /* pass one gate */
	SCOPE_EMIT,       /* send events from outside */
	SCOPE_ADMIN,
	SCOPE_METRICS,
	SCOPE_COUNT,
};

#define SCOPE_BIT(scope) (1u << (scope))

/* Who leads a store that several servers share. */
struct api_leader {
	const char *name, *url; /* host and process; where clients reach it, or empty */
	int64_t since_ms;       /* wall */
	bool is_here;           /* this server leads */
};

/* Who asks: known from the credential alone. */
struct principal {
	struct span name;        /* for people: kind and name of its token */
	struct span id;          /* of its token; "admin" for the one in admin.token */
	uint32_t number;         /* workers and claims remember their owner by it */
	uint32_t scopes;         /* bit per enum scope; 0: no credential */
	struct name_list queues; /* it creates, does and sees work of these queues only; empty: all queues */
	struct name_list makes_in; /* SCOPE_CLAIM: the queues of its subtasks; empty: all queues */
	struct span worker;        /* it acts as this worker only; empty: as any worker of its own */
	struct span gate;          /* SCOPE_GATE: the one gate */
	struct span task;          /* SCOPE_CLAIM: the one task */
	int64_t task_seq;
	uint64_t fence;    /* SCOPE_CLAIM: the claim of `worker` on that task */
	struct span login; /* the browser session that it comes by; empty: by a token */
};

/* Bits of what a token of that kind may do. */
uint32_t api_scopes_of(enum token_kind kind);

/* A token that was just made: its text is known here and in the reply. */
struct minted {
	struct span id, text;
	unsigned char hash[TOKEN_HASH_BYTES];
};

/* A backup that is complete and on disk. */
struct backup_made {
	struct span file, path;
	int64_t bytes, last_event;
};

/* Which server it is, on which store. */
struct about {
	const char *store; /* kind */
	uint32_t schema, generation;
	uint64_t starts;
	int64_t started_ms, up_ms;
	bool armed;       /* work is handed out */
	int64_t armed_ms; /* wall: since when `armed` is as it is; 0: it was never set */
};

/* A file that browsers load without a credential. */
struct site_file {
	struct span bytes, type, encoding;
	bool immutable; /* its name changes with its bytes */
};

/* Of a server that speaks TLS. */
struct api_certificate {
	int64_t ends_ms;     /* wall */
	const char *problem; /* why a newer one that lies in its place is not used; "": there is none */
};

enum {
	API_PEER_BYTES = 64,
	API_URL_BYTES = 300,
};

struct api_call;

/* What only the server knows or makes; the rest is read from the store. Every function may be NULL. */
/* The cookie of browser sessions. */
struct api_cookie {
	const char *name, *path;
	bool secure;
};

struct api_services {
	void *context;
	/* Credentials: the text of a new token, of a worker's own token, of a claim's token; the id of the token in admin.token.
	 * A worker's and a claim's token are derived and not stored: `parent` is the id of the token they come from. */
	int (*mint_token)(
		void *context, enum token_kind kind, struct arena *arena, struct minted *ret_minted);
	int (*mint_instance)(void *context, struct span parent, struct span worker, uint64_t number,
		struct arena *arena, struct span *ret_text);
	int (*mint_claim)(void *context, struct span parent, const struct task *task, struct arena *arena,
		struct span *ret_text);
	struct span (*root_token)(void *context);
	/* A code for machines: stint_join_ID_SECRET, with the beginning of the hash of the authority that signs the server's
	 * certificate behind it, if there is one. */
	int (*mint_join)(void *context, struct arena *arena, struct minted *ret_minted);
	/* A name by which other machines reach the server, as https://HOST:PORT; "" if its certificate has none. */
	void (*url_from_afar)(void *context, char ret_url[API_URL_BYTES]);
	/* False: the server speaks no TLS. */
	bool (*certificate)(void *context, struct api_certificate *ret_certificate);
	/* Where the call comes from: an address, or "socket". */
	void (*peer)(void *context, const struct api_call *call, char ret_address[API_PEER_BYTES]);
	/* Browsers: the text stint_KIND_ID_SECRET with its hash (an empty id is made up); the hash of a text; the session whose cookie
	 * the request shows, with the right secret, or an empty id; that cookie. */
	int (*mint_secret)(void *context, const char *kind, struct span id, struct arena *arena,
		struct minted *ret_minted);
	void (*hash)(void *context, struct span text, unsigned char ret_hash[TOKEN_HASH_BYTES]);
	struct span (*cookie_login)(void *context, const struct http_request *request);
	struct api_cookie (*cookie)(void *context, const struct http_request *request);
	/* Where browsers reach the server, as somebody has configured it; empty: nobody has. */
	const char *(*public_url)(void *context);
	/* The effective configuration, each value with its origin, and no secret. */
	int (*put_config)(void *context, struct buf *out);
	/* What a credential tells of the deliveries to a target, an object, in place of what it told before; and all that was told, with
	 * commas between the objects (`teller`: only by that credential, unless it is empty). In memory alone. */
	int (*keep_deliveries)(void *context, struct span teller, struct span target, struct span text);
	int (*put_deliveries)(void *context, struct span teller, struct buf *out);
	/* A file of the dashboard: index.html, or what its page loads. False: there is none. `no_site` says why there is no page. */
	bool (*site_file)(void *context, struct span name, struct arena *arena, struct site_file *ret_file);
	const char *(*no_site)(void *context);
	/* Does the server, on a machine of that boot, see that process? */
	bool (*process_is_alive)(
		void *context, uint64_t boot_hi, uint64_t boot_lo, uint32_t pid, uint64_t start);
	/* Counters and gauges in the text format of Prometheus, or in that of OpenMetrics. */
	int (*put_metrics)(void *context, bool open, struct buf *out);
	/* A question to the store; it is ended after ADMIN_QUERY_RUN_MS. */
	int (*ask)(void *context, struct admin_query *question);
	const char *(*default_queues)(void *context); /* for slots without assigned queues: "a,b" */
	struct about (*about)(void *context);
	/* Who leads. False: nobody but this server can have the store. */
	bool (*leader)(void *context, struct api_leader *ret_leader);
	bool (*is_backing_up)(void *context);
	bool (*is_draining)(void *context);
};

enum api_step {
	API_REPLY,  /* the reply is complete */
	API_TURN,   /* `commands` need a turn, then api_finish() */
	API_BACKUP, /* the server makes the backup that `backup_file` names, then api_finish_backup() */
	/* api_read() completes the reply, or sets `step` to API_TURN or API_STREAM; or leaves it at API_READ: there is more to
	 * read, and it may be called again after any number of turns */
	API_READ,
	API_STREAM, /* the reply is its head; then api_put_stream_event() for all events after `stream_after` */
	API_NEWS,   /* it waits up to `wait_ms` for news of the worker `news_of`, then api_finish_news() */
};

struct route;

struct api_call {
	/* given */
	const struct http_request *request;
	struct principal who;
	struct arena *arena;
	struct buf *body; /* the body of the reply is written here */
	const struct rules *rules;
	struct moment now;
	struct store *store; /* for reading only */
	const struct api_services *host;
	/* made */
	const struct route *route;
	enum api_step step;
	struct command *commands;
	uint32_t command_count;
	int64_t stream_after;
	struct span backup_file; /* empty: a name made of the time */
	int64_t wait_ms;         /* how long a claim that found nothing may wait for work */
	struct span news_of;
	struct http_reply reply;
	struct span params[2]; /* of the path, decoded */
	bool takes_trace;      /* the tasks of this request belong to the trace of its header */
	bool query_taken;      /* the route has looked at the query */
	void *detail;          /* state of the route's handlers: see call_detail() */
};

/* The caller fills in the fields under "given" before api_begin(). If a read is not finished and has a status in `reply`, the
 * head of its reply is complete: the bytes in `body` may be sent and the body cleared. If the read then ends with a status
 * of 400 or more, it failed on the way. */
void api_begin(struct api_call *call);
void api_read(struct api_call *call);
void api_finish(struct api_call *call, const struct result *results);

/* What a server that stands by says itself. */
void api_reply_live(struct api_call *call);
void api_reply_standby(struct api_call *call, const struct api_leader *leader);
void api_reply_metrics(struct api_call *call);

/* The backup is complete, or failed with `fault`. */
void api_finish_backup(struct api_call *call, int fault, const struct backup_made *made);

/* The turn is over and its results are known. True: the call found nothing to claim and wants to wait up to
 * `wait_ms`. What it finished has been noted, and `commands` is the claim alone: to be tried again with every
 * turn that may bring work, then api_finish(), or api_finish_empty() when the time is up. */
bool api_begin_wait(struct api_call *call, const struct result *results);

/* There are news, or the time is up. */
void api_finish_news(struct api_call *call, bool news);

/* A call may wait for long, and ten thousand may wait at once. So all that the call still needs is copied into `into`, which
 * is empty; of its request only the method is kept. 0: its own arena may be freed. -ENOMEM, -ENOTSUP: the call stays as it
 * was. */
int api_compact(struct api_call *call, struct arena *into);

/* The pattern of its route, as in "/api/claims". */
const char *api_route_of(const struct api_call *call);

/* True: the turn had handed out enough to others. What the call finished has been noted, and `commands` is the claim
 * alone, for the next turn. */
bool api_retry_next_turn(struct api_call *call, const struct result *results);

/* A claim that waited in vain, or the server stops: the reply that says "nothing". */
void api_finish_empty(struct api_call *call);

/* Is the call a change that only an administrator may make, allowed or refused? */
bool api_is_admin_action(const struct api_call *call);

/* A complete reply that refuses: problem+json with that code; `detail` is a sentence for people. Returns false. */
bool api_refuse(struct api_call *call, enum refusal refusal, const char *detail);

/* The same for what cannot be read as a request: bad_request, with a status of HTTP. The call needs its body, and the path of
 * its request, because each API for older clients has its own form of refusals. */
void api_refuse_early(struct api_call *call, int status, const char *detail);

/*
 * A look at the tasks of a bulk action that runs, for its next step: bounded, between two turns. The call lends its store, its
 * arena and its body, and needs no caller. The server keeps `look` for each action.
 */
struct bulk_look {
	uint32_t number; /* of the action; 0: the place is free */
	int64_t cursor;  /* of the action, when … */
	int64_t looked;  /* … tasks up to here were found not to match */
	uint32_t most;   /* items of a step; 1 after a step met a damaged row, … */
	bool passes_by;  /* … and then the next item is passed over */
};

/* 1: the command is the next step, and lives as long as the arena of the call. 0: nothing was found so far. A fault: it is worth trying
 * again later. */
int api_look_for_step(struct api_call *call, struct bulk_look *look, struct command *ret_command);

/* May the caller see the event? A token with queues sees the events of tasks that are in them now. */
bool api_sees_event(const struct api_call *call, const struct record *record);

/* The parts of a stream (text/event-stream): its beginning, an event, and a sign of life. All or nothing; -ENOMEM,
 * -E2BIG. */
int api_put_stream_start(struct buf *out);
int api_put_stream_event(struct buf *out, const struct record *record);
int api_put_stream_comment(struct buf *out);

/* A line of stintd --check-store. `table` may be NULL, `row` 0. */
int api_put_finding(
	struct buf *out, const char *file, const char *table, int64_t row, const char *key, const char *what);

/* The texts of the tasks that workflows begin: see struct action_tasks in store/store.h. */
int api_action_body(struct arena *arena, enum action action, struct span id, struct span *ret_body);
int api_action_error(
	struct arena *arena, enum action action, struct span id, struct span said, struct span *ret_error);
