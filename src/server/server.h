/*
 * stintd from the inside.
 *
 *   main.c        start and stop                    turn/      exchanges (requests with their replies), store turns, waiting
 *   options.c     flags and configuration                      claims, reads in slices, shares of principals
 *   home.c        the state directory               net/       connections, for whom they count, strangers
 *   admission.c   host, origin, credential          watch/     event streams, metrics, log, heartbeats, deliveries of webhooks
 *   mint.c        the texts of tokens               backup.c   copies of the store while it serves; restore.c
 *   lead/         a server that stands by, and passes connections on
 *   clock.c       the two clocks                    services.c     what the server does for the API
 *   certificate.c the TLS certificate               net/secure.c   handshakes, by other threads
 *
 * One thread, but for the handshakes of TLS. Everything that is ready is read, decided, committed once, and answered: requests that arrive while a
 * commit is syncing, or while others are read, make up the next turn.
 */
#pragma once

#include "server/admission.h"
#include "server/backup.h"
#include "server/certificate.h"
#include "server/lead/standby.h"
#include "server/net/connections.h"
#include "server/net/payers.h"
#include "server/net/secure.h"
#include "server/turn/steps.h"
#include "server/turn/readers.h"
#include "server/turn/turns.h"
#include "server/turn/waiting.h"
#include "server/watch/deliveries.h"
#include "server/watch/heartbeat_file.h"
#include "server/watch/metrics.h"
#include "server/watch/streams.h"

struct server {
	struct options *options;
	struct store *store;     /* NULL: this server stands by, or starts */
	struct backend *backend; /* the store's */
	struct api_services host;

	/* main.c: the loop, and the end */
	uv_loop_t loop;
	uv_tcp_t tcp, beside; /* `beside` listens on [::1] if `tcp` is 127.0.0.1 */
	uv_pipe_t local;
	uv_check_t check;
	uv_timer_t sweep;
	uv_timer_t due;
	uv_idle_t more; /* runs while there is something to do at once */
	uv_signal_t term, interrupt;
	char url[400]; /* to be written to DIR/url; empty once it is written */
	bool stopping;
	uint64_t stop_by_ms; /* the loop's clock: when the server ends, even with replies unread */

	/* clock.c */
	struct moment now, started;
	uint64_t now_ns;                  /* uv_hrtime() when `now` was read, or when the last turn ended */
	bool now_is_old;                  /* the loop has waited since `now` was read */
	int64_t last_sweep_ms, asleep_ms; /* lease clock; boot time − monotonic time */
	bool slept;                       /* the machine slept or the server stalled since the last sweep */

	struct admission admission;
	struct certificate certificate;
	struct handshakes handshakes;
	struct sources sources;
	struct connections connections;
	struct payers payers;
	struct turns turns;
	struct shares shares;
	struct waiting waiting;
	struct readers readers;
	struct bulk_steps steps;
	struct streams streams;
	struct server_backup backup;
	struct standby standby;
	struct deliveries deliveries;
	struct heartbeat_file heartbeat_file;
	struct metrics metrics;
	uint32_t damages_logged;
	bool was_degraded; /* watch/server_log.c: the store was degraded, and that was logged */
};

/* clock.c */
struct moment clock_now(void);
void clock_tick(struct server *server); /* bring `now` up to date, once per tick of the loop */
int64_t clock_asleep_ms(void);
int clock_boot_id(uint64_t *ret_hi, uint64_t *ret_lo);

/* services.c */
void host_init(struct server *server);
/* A call of the API that has only begun; its caller is unknown. */
struct api_call host_call(
	struct server *server, const struct http_request *request, struct arena *arena, struct buf *body);

/* main.c: end the process at once: the store cannot be trusted any more. */
_Noreturn void server_die(struct server *server, int fault);
