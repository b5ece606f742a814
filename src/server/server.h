/*
 * stintd from the inside.
 *
 *   main.c        start and stop                    turns.c       requests → one turn → replies; exchange.c: one request
 *   options.c     flags and configuration           connection.c  sockets: bytes in, bytes out; connections.c: their time
 *   home.c        the state directory               gate.c        host, origin, credential; mint.c: new ones
 *   clock.c       the two clocks                    host.c        what the server does for the API
 *   metrics.c     counters, for Prometheus          streams.c     who listens to events, and how far they got
 *   journal.c     what is logged, and how often
 *   process.c     processes of this machine         backup.c      copies of the store while it serves
 *                                                   restore.c     and one of them put in its place
 *   heartbeat_file.c  slots, for those who read files
 *   readers.c     who reads more than a little      waiting.c     who waits for work, or for news
 *   sources.c     where strangers come from         shares.c      whose turn it is
 *
 * One thread. Whatever is ready is read, decided, committed once, and answered: requests that arrive while a
 * commit is syncing, or while others are read, make up the next turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/api.h"
#include "server/turn/exchange.h"
#include "server/watch/metrics.h"
#include "server/mint.h"
#include "server/options.h"
#include "server/net/sources.h"
#include "store/store.h"
#include "wire/http/http.h"

enum {
	READY_QUEUES_MAX = 16,
	WAITING_LINES = 1024,
	SHARES_MAX = 256,
	SEALS_MAX = 4096,
	SEAL_BYTES = 16,
	SPARE_INPUTS_MAX = 16,
	CROWD = 500, /* more connections than that: what each keeps, and looking at all of them, is dear */
};

/* What a principal has of the turn that is being filled. */
struct share {
	uint64_t round; /* the turn it is about */
	uint32_t commands;
};

/* Claims that wait for work, and workers that wait for news: see waiting.c. */
struct waiting {
	struct exchange_list lines[WAITING_LINES]; /* by the hash of the one queue that they name */
	struct exchange_list anywhere;             /* they name several, or none: … */
	uint32_t named[WAITING_LINES];             /* … so many name a queue of that hash, … */
	uint32_t nameless;                         /* … and so many none */
	uint32_t count;
	struct exchange_list news[WAITING_LINES]; /* not for work: by the hash of their worker */
	uint32_t news_count;
	uint64_t wakeups, places;
	uint32_t wake_batch;
	int64_t look_ms; /* when the next look at all of them is due */
	uint32_t ready_queues[READY_QUEUES_MAX];
	uint32_t ready_queue_count;
	bool ready_any; /* more queues than the list has room for */
};

/* Some events as a stream tells them: those behind `after`, up to `last`. */
struct stream_page {
	int64_t after, last;
	/* Made for this one alone, which does not see everything; NULL: for all. */
	const struct exchange *only;
	struct buf bytes;
};

/* A secret that was right a moment ago: see gate.c. */
struct known_secret {
	unsigned char seal[SEAL_BYTES];
	const struct token *token; /* whose it is; NULL: it is the one in admin.token … */
	uint64_t
		changes; /* … as long as the tokens of the store are those of then; UINT64_MAX: it is not known */
};

struct gate {
	unsigned char admin_hash[TOKEN_HASH_BYTES]; /* of the token in admin.token, which no API revokes */
	char admin_id[TOKEN_BYTES_MAX];
	unsigned char nobody_hash[TOKEN_HASH_BYTES]; /* stands for a token that there is none of */
	unsigned char key[MINT_KEY_BYTES];           /* of tokens that follow from others */
	unsigned char seal_key[SEAL_BYTES];          /* and of the seals: see gate.c */
	struct known_secret known[SEALS_MAX];
	char hosts[4][300]; /* allowed values of Host */
	uint32_t host_count;
	bool any_host;
};

enum { LISTENERS_MAX = 3 };

/* Connections that are closed as soon as they are taken; see net/refused.c. */
struct refused_connections {
	union {
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	bool is_busy;                        /* the handle is being closed */
	uv_stream_t *waiting[LISTENERS_MAX]; /* listeners whose next connection it takes then */
	uint32_t waiting_count;
};

/* A backup under way; its exchange waits for it. */
struct server_backup {
	struct exchange *exchange; /* NULL: none */
	uv_idle_t step;            /* runs while there is one */
	char name[160];
	char path[OPTIONS_PATH_MAX + 200];
};

/* The document of heartbeats as a file; see heartbeat_file.c. */
struct heartbeat_file {
	const char *path; /* NULL: none is written */
	bool is_array, is_busy;
	bool is_off; /* it is somebody else's */
	int fault;   /* that was told last */
	int64_t interval_ms, not_before_ms;
	uint64_t seen_changes, saved; /* digest of the last one written */
	uint64_t spent_ns;
	uv_idle_t step; /* runs while one is being made */
	struct api_call call;
	struct http_request request;
	struct arena arena;
	struct buf body;
};

struct server {
	struct options *options;
	uv_loop_t loop;
	uv_tcp_t tcp, beside; /* the second: [::1] to 127.0.0.1 */
	uv_pipe_t local;
	uv_check_t check;
	uv_timer_t sweep;
	uv_timer_t due;
	bool times_set; /* by a turn, since `due` was */
	uv_idle_t more; /* runs while there is something to do at once */
	uv_signal_t term, interrupt;
	struct store *store;
	struct gate gate;
	struct api_host host;
	struct refused_connections refused;
	struct connection *connections;
	struct connection *dirty; /* have something to write, or to read on */
	uint32_t connection_count;
	uint32_t sweeps;                                   /* over a crowd of connections */
	struct http_input *spare_inputs[SPARE_INPUTS_MAX]; /* of connections that have nothing to read */
	uint32_t spare_input_count;
	uint32_t crowd;               /* the most connections since memory was last given back */
	struct exchange_list pending; /* want a turn */
	uint32_t gathered, looks; /* so many did at the last look at the network; looks since the last turn */
	struct waiting waiting;   /* claims that wait for work */
	struct exchange_list streams;              /* of events; those fed last stand last */
	struct exchange_list fresh, reading, line; /* reads; see readers.c */
	struct exchange_list later; /* want one after it: their principals have their share of the next */
	struct share shares[SHARES_MAX];
	uint64_t share_round;
	uint32_t share_count; /* principals that have one */
	struct exchange_list spare;
	struct stream_page page; /* the last one read */
	int64_t streams_last;    /* the last event when streams were last fed */
	bool streams_hungry;     /* one has room again, or could not be given all there was */
	struct server_backup backup;
	struct heartbeat_file heartbeat_file;
	uint64_t read_ns;    /* spent on reads in this turn of the loop, before or after its replies */
	bool readers_hungry; /* one might be given a slice */
	struct sources sources;
	struct metrics metrics;
	struct moment now, started;
	uint64_t now_ns; /* of uv_hrtime(): when `now` was asked for, or when the last turn ended */
	bool now_is_old; /* the loop has waited since */
	int64_t last_sweep_ms, asleep_ms; /* lease clock; boot time − monotonic time */
	bool slept;                       /* since the last sweep: the machine, or the server itself */
	char url[400];                    /* for DIR/url; empty once it stands there */
	bool stopping;
	uint64_t stop_by_ms; /* the loop's clock: then it ends, whoever still reads */
	bool was_degraded;   /* and it was said so */
	int exit_status;
};

/* clock.c */
struct moment clock_now(void);
void clock_tick(struct server *server); /* make `now` what it is, once per turn of the loop */
int64_t clock_asleep_ms(void);
int clock_boot_id(uint64_t *ret_hi, uint64_t *ret_lo);

/* process.c: is there a process of that number that started then and has not ended? */
bool process_is_seen(uint32_t pid, uint64_t start);

/* What we cost. */
struct process_figures {
	double cpu_s;
	uint64_t resident_bytes, virtual_bytes;
	uint64_t open_files, files_max; /* open_files 0: this kernel does not say */
};
struct process_figures process_figures(void);

/* heartbeat_file.c: write it, if there is anything new and it is time */
void heartbeat_file_start(struct server *server);
void heartbeat_file_look(struct server *server);
void heartbeat_file_done(struct server *server);

/* gate.c */
void gate_init(struct gate *gate, const struct options *options, uint16_t port, const char *admin_token);
/* May the request in, and as whom? False: the exchange has its reply. */
bool gate_pass(struct server *server, struct exchange *exchange);
/* Is its credential still good? For whoever stays longer than a request: waiting claims, streams. */
bool gate_still_knows(struct server *server, const struct exchange *exchange);

/* journal.c */
void journal_listening(const struct server *server, struct span url);
void journal_store(struct server *server); /* after whatever may have changed whether it can be written */
void journal_turn(const struct server *server, uint32_t commands, uint64_t ns);
void journal_reply(const struct exchange *exchange); /* before it is handed over */
void journal_refused_connection(const char *reason);
void journal_refused_request(const struct http_complaint *complaint);
void journal_sweep(void); /* about once a second */

/* host.c */
void host_init(struct server *server);

/* turns.c */
void turns_run(struct server *server);
/* Has more come while those that want a turn were read? Then that is read first, and shares their commit. */
bool turns_may_grow(struct server *server);
/* Take one now if much has been read: each request holds memory until its turn. */
void turns_hurry(struct server *server);
void turns_stop(struct server *server);
void turns_done(struct server *server);

/* shares.c: the exchange wants a turn, the next one or one after it; who is alone may have more of it; and the turn is
 * over. */
void share_turn(struct server *server, struct exchange *exchange);
void shares_fill_up(struct server *server);
void shares_next_round(struct server *server);

/* waiting.c: a claim that found nothing, and may wait, is added and stands there until it is removed; so is whoever waits
 * for news. */
void waiting_add(struct server *server, struct exchange *exchange);
void waiting_remove(struct server *server, struct exchange *exchange);
struct exchange *waiting_first_for(struct server *server, struct span queue); /* NULL: nobody */
void waiting_tell(struct server *server);  /* after a turn: those for whom it has brought news */
bool waiting_wake(struct server *server);  /* after a turn. True: it made some of them want the next one */
void waiting_sweep(struct server *server); /* about once a second; and all of them when the server stops */

/* connection.c */
void connection_accept(uv_stream_t *listener, int status);
void connection_refuse(
	struct server *server, uv_stream_t *listener); /* refused.c: take its next one and close it */
void connection_reply(struct connection *connection, struct exchange *exchange); /* takes the exchange over */
/* Where it comes from, and whether it has shown a good credential. */
struct visitor {
	struct source_key source;
	bool known;
};
struct visitor *connection_visitor(struct connection *connection);
/* The head of a stream, which stays the current exchange until either side ends it. */
void connection_begin_stream(struct connection *connection);
void connection_end_stream(struct connection *connection);    /* after what it was given has been written */
struct buf *connection_output(struct connection *connection); /* for more of the stream; it will be written */
size_t connection_unsent(const struct connection *connection); /* bytes that the kernel has not taken yet */
/* A reply in pieces, of the current exchange: its head, parts of its body, its end. False: the connection was closed.
 * The end frees the exchange. */
bool connection_begin_pieces(struct connection *connection);
bool connection_put_piece(struct connection *connection, struct span bytes);
void connection_end_pieces(struct connection *connection);
void connection_rest(struct connection *connection);  /* it has nothing to do for a while */
void connection_close(struct connection *connection); /* amid whatever it is doing */
void connections_flush(struct server *server);
bool connections_are_quiet(const struct server *server); /* nothing has come since the loop looked */
void connections_timeout(struct server *server);
/* The time that the server itself stood still counts against no connection: every timeout starts again. */
void connections_outlast_stall(struct server *server);
bool connections_have_unsent(const struct server *server);
void connections_close_all(struct server *server);

/* streams.c: a stream of events begins with the exchange whose step is API_STREAM. False: it was refused and has its
 * reply. streams_feed() is to be called after whatever may have committed events. */
bool stream_begin(struct server *server, struct exchange *exchange);
void streams_feed(struct server *server);
void streams_sweep(struct server *server); /* about once a second */
void streams_stop(struct server *server);
void streams_done(struct server *server);

/* backup.c: makes the backup that the exchange asks for and answers it; a few pages between one turn and the next.
 * backups_prepare() removes what an earlier run left half done. */
void backups_prepare(struct server *server);
void backup_start(struct server *server, struct exchange *exchange);
void backup_abandon(struct server *server); /* nobody waits for it any more */
void backup_stop(struct server *server);

/* restore.c: an exit status after one line that says what was done, or why not. */
int restore_run(const struct options *options);

/* readers.c: a read begins with the exchange whose step is API_READ. readers_run() is to be called after the replies of
 * a turn have gone out. */
void reader_begin(struct server *server, struct exchange *exchange);
void readers_run(struct server *server);
void readers_sweep(struct server *server); /* about once a second */
void readers_stop(struct server *server);

/* main.c: end the process at once: the store cannot be trusted any more. */
_Noreturn void server_die(struct server *server, int fault);
