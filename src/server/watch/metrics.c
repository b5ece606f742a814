#include "server/watch/metrics.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/process.h"
#include "server/server.h"

/* Upper ends. The last bucket has no end and takes everything longer. */
static const int64_t bucket_ends_ns[METRICS_BUCKETS - 1] = {100000, 250000, 500000, 1000000, 2500000, 5000000,
	10000000, 50000000, 100000000, 500000000, 1000000000};

/* ---- counting ------------------------------------------------------------------------------------------ */

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	uint32_t i = 0;

	while (i < METRICS_BUCKETS - 1 && (int64_t)ns > bucket_ends_ns[i])
		i++;
	histogram->buckets[i]++;
	histogram->sum_ns += ns;
}

void metrics_count_reply(struct metrics *metrics, int status)
{
	assert(status >= 100);
	assert(status < METRICS_STATUS_MAX);
	metrics->replies[status]++;
}

/* ---- the text --------------------------------------------------------------------------------------------- */

struct text {
	struct buf *out; /* keeps its first fault */
	bool open;       /* OpenMetrics, whose counters have a family name without _total */
	int64_t now_ms;
};

#define PUT(text, ...) buf_printf((text)->out, __VA_ARGS__)

static void put_head(struct text *text, const char *name, const char *type, const char *help)
{
	static const char total[] = "_total";
	int len = (int)strlen(name);

	if (text->open && strcmp(type, "counter") == 0) {
		assert(strcmp(name + len - (sizeof total - 1), total) == 0);
		len -= (int)sizeof total - 1;
	}
	PUT(text, "# HELP %.*s %s\n# TYPE %.*s %s\n", len, name, help, len, name, type);
}

static void put_one(struct text *text, const char *name, const char *type, const char *help, uint64_t value)
{
	put_head(text, name, type, help);
	PUT(text, "%s %llu\n", name, (unsigned long long)value);
}

static void put_seconds(struct text *text, const char *name, const char *type, const char *help, double value)
{
	put_head(text, name, type, help);
	PUT(text, "%s %.3f\n", name, value);
}

static void put_labelled(
	struct text *text, const char *name, const char *label, const char *value, uint64_t number)
{
	PUT(text, "%s{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long)number);
}

/* `ends` are the upper ends of all buckets but the last, in units of which a second has `per_s`. */
static void put_buckets(struct text *text, const char *name, const char *help, const uint64_t *buckets,
	const int64_t *ends, double sum, double per_s)
{
	uint64_t count = 0;

	put_head(text, name, "histogram", help);
	for (uint32_t i = 0; i < METRICS_BUCKETS - 1; i++) {
		count += buckets[i];
		PUT(text, "%s_bucket{le=\"%g\"} %llu\n", name, (double)ends[i] / per_s,
			(unsigned long long)count);
	}
	count += buckets[METRICS_BUCKETS - 1];
	PUT(text, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)count);
	PUT(text, "%s_sum %.9f\n%s_count %llu\n", name, sum / per_s, name, (unsigned long long)count);
}

static void put_histogram(
	struct text *text, const char *name, const char *help, const struct histogram *histogram)
{
	put_buckets(text, name, help, histogram->buckets, bucket_ends_ns, (double)histogram->sum_ns, 1e9);
}

_Static_assert((int)TIMES_BUCKETS == (int)METRICS_BUCKETS, "one function writes both");

static void put_times(struct text *text, const char *name, const char *help, const struct times *times)
{
	put_buckets(text, name, help, times->buckets, times_ends_ms, (double)times->sum_ms, 1e3);
}

/* ---- what there is to say ---------------------------------------------------------------------------------- */

static void put_label_text(struct text *text, struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		char byte = value.data[i];
		if (byte == '\\' || byte == '"')
			PUT(text, "\\%c", byte);
		else if (byte == '\n')
			PUT(text, "\\n");
		else
			PUT(text, "%c", byte);
	}
}

/* One sample of a queue; `label` and `value` may be NULL. */
static void put_of_queue(
	struct text *text, const char *name, struct span queue, const char *label, const char *value)
{
	PUT(text, "%s{queue=\"", name);
	put_label_text(text, queue);
	if (label)
		PUT(text, "\",%s=\"%s", label, value);
	PUT(text, "\"} ");
}

static int put_depths(void *context, const struct queue_figures *figures)
{
	struct text *text = context;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		enum task_state state = (enum task_state)i;
		if (task_state_is_final(state))
			continue;
		put_of_queue(text, "stint_tasks", figures->name, "state", task_state_name(state));
		PUT(text, "%u\n", figures->count[i]);
	}
	return buf_fault(text->out);
}

static int put_moves(void *context, const struct queue_figures *figures)
{
	struct text *text = context;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		if (figures->came[i] == 0)
			continue;
		put_of_queue(text, "stint_task_transitions_total", figures->name, "to",
			task_state_name((enum task_state)i));
		PUT(text, "%llu\n", (unsigned long long)figures->came[i]);
	}
	return buf_fault(text->out);
}

static int put_age(void *context, const struct queue_figures *figures)
{
	struct text *text = context;
	bool waits = figures->oldest_ready_ms != INT64_MAX && figures->oldest_ready_ms < text->now_ms;

	put_of_queue(text, "stint_oldest_waiting_seconds", figures->name, NULL, NULL);
	PUT(text, "%.3f\n", waits ? (double)(text->now_ms - figures->oldest_ready_ms) / 1000 : 0.0);
	return buf_fault(text->out);
}

/* A fault of the store's own is kept in the text. */
static void put_each_queue(
	struct text *text, const struct store *store, int (*put)(void *, const struct queue_figures *))
{
	buf_fail(text->out, store_each_queue_figures(store, put, text));
}

static void put_queues(struct text *text, const struct store *store)
{
	put_head(text, "stint_tasks", "gauge", "Tasks that are not final, by queue and state.");
	put_each_queue(text, store, put_depths);
	put_head(text, "stint_task_transitions_total", "counter",
		"Tasks that moved into a state since the start, by queue.");
	put_each_queue(text, store, put_moves);
	put_head(text, "stint_oldest_waiting_seconds", "gauge",
		"How long the task has been ready that waits longest, by queue; 0 if none waits.");
	put_each_queue(text, store, put_age);
}

static void put_reasons(struct text *text, struct store *store, struct moment now)
{
	uint32_t counts[WHY_COUNT];
	uint32_t unasked = store_count_reasons(store, now, counts);

	put_head(text, "stint_waiting_tasks", "gauge", "Tasks that nobody works on, by the reason.");
	for (int i = 0; i < WHY_COUNT; i++) {
		enum why why = (enum why)i;
		if (why != WHY_UNCONFIRMED && why != WHY_RUNNING && why != WHY_STOPPING &&
			why != WHY_OVERDUE && why != WHY_ENDED)
			put_labelled(text, "stint_waiting_tasks", "reason", why_name(why), counts[i]);
	}
	if (unasked > 0)
		put_labelled(text, "stint_waiting_tasks", "reason", "not_examined", unasked);
}

static void put_workers(struct text *text, const struct store *store, struct moment now)
{
	put_head(text, "stint_workers", "gauge", "Live workers, by status.");
	for (int i = WORKER_ACTIVE; i < WORKER_INACTIVE; i++)
		put_labelled(text, "stint_workers", "status", worker_state_name((enum worker_state)i),
			store_workers(store, (enum worker_state)i));
	put_seconds(text, "stint_worker_heartbeat_age_seconds_max", "gauge",
		"Age of the oldest last heartbeat among live workers that send them.",
		(double)store_heartbeat_age_max_ms(store, now) / 1000);
	put_one(text, "stint_workers_created_total", "counter", "Worker instances that came into being.",
		store_counts(store)->events[EVENT_WORKER_REGISTERED]);
	put_one(text, "stint_worker_registrations_refused_total", "counter",
		"Registrations refused because there were too many within a minute.",
		store_counts(store)->registrations_refused);
	put_one(text, "stint_creates_refused_total", "counter",
		"Tasks that were not created because their token has as many open tasks, or bytes in them, as it may.",
		store_counts(store)->creates_refused);
	put_one(text, "stint_slots_quarantined", "gauge", "Slots that crashed too often.",
		store_slots_quarantined(store));
}

/* What the tasks of lost workers came to. */
static void put_rescheduled(struct text *text, const struct store *store)
{
	static const char *const names[RESCHEDULE_ERROR_COUNT] = {[RESCHEDULE_RETRY] = "retry",
		[RESCHEDULE_PERMANENT] = "permanent",
		[RESCHEDULE_SKIPPED] = "skipped"};

	put_one(text, "stint_worker_tasks_rescheduled_total", "counter",
		"Tasks of lost workers that were set free for others.", store_counts(store)->rescheduled);
	put_head(text, "stint_worker_reschedule_errors_total", "counter",
		"Tasks of lost workers that were not: the store could not be written and it is tried again (retry), the crash "
		"budget was spent (permanent), there was nothing to do or it is turned off (skipped).");
	for (int i = 0; i < RESCHEDULE_ERROR_COUNT; i++)
		put_labelled(text, "stint_worker_reschedule_errors_total", "type", names[i],
			store_counts(store)->unscheduled[i]);
}

/* The names that every Prometheus client has. */
static void put_process(struct text *text, const struct server *server)
{
	struct process_figures figures = process_figures();

	put_seconds(text, "process_cpu_seconds_total", "counter", "Processor time, user and system.",
		figures.cpu_s);
	put_one(text, "process_resident_memory_bytes", "gauge", "Memory in use.", figures.resident_bytes);
	put_one(text, "process_virtual_memory_bytes", "gauge", "Address space.", figures.virtual_bytes);
	if (figures.open_files > 0)
		put_one(text, "process_open_fds", "gauge", "Open descriptors.", figures.open_files);
	put_one(text, "process_max_fds", "gauge", "Descriptors that may be open.", figures.files_max);
	put_seconds(text, "process_start_time_seconds", "gauge", "When it started, since 1970.",
		(double)server->started.wall_ms / 1000);
}

static void put_store(struct text *text, const struct server *server)
{
	struct stat stat_buf;

	if (stat(server->options->store, &stat_buf) == 0)
		put_one(text, "stint_store_bytes", "gauge", "Size of the store's file, without its log.",
			(uint64_t)stat_buf.st_size);
	put_one(text, "stint_store_generation", "gauge", "Rises with each restore.",
		store_generation(server->store));
	put_one(text, "stint_event_seq", "gauge", "Number of the last event.",
		(uint64_t)store_last_event(server->store));
	put_one(text, "stint_backup_running", "gauge", "1 while a backup is being made.",
		server->backup.exchange != NULL);
}

/* Nothing of a server without TLS. */
static void put_tls(struct text *text, const struct server *server)
{
	const struct tls_identity *identity = server->certificate.identity;
	int64_t left_ms = identity ? tls_identity_facts(identity)->ends_ms - server->now.wall_ms : 0;

	if (!identity)
		return;
	put_one(text, "stint_tls_certificate_expires_seconds", "gauge",
		"Time until the certificate ends; 0: it has ended.",
		left_ms > 0 ? (uint64_t)left_ms / 1000 : 0);
	put_one(text, "stint_tls_certificate_stale", "gauge",
		"1 while a newer certificate lies in its place that cannot be used.",
		server->certificate.complaint[0] != 0);
	put_one(text, "stint_tls_handshakes_total", "counter", "Handshakes that came to their end.",
		server->handshakes.done);
	put_one(text, "stint_tls_handshakes_failed_total", "counter", "Handshakes that failed.",
		server->handshakes.failed);
	put_one(text, "stint_tls_handshakes_waiting", "gauge", "Handshakes that wait for a thread.",
		server->handshakes.waiting_count);
}

/* ---- what agents have used ---- */

struct spending {
	struct text *text;
	const char *name;
	enum { OF_ATTEMPTS, OF_TOKENS, OF_MONEY, OF_UNPRICED } part;
};

static void put_spent(void *context, struct span executor, const struct spent_counts *counts)
{
	const struct spending *spending = context;
	struct text *text = spending->text;

	PUT(text, "%s{executor=\"", spending->name);
	put_label_text(text, executor);
	switch (spending->part) {
	case OF_ATTEMPTS:
		PUT(text, "\"} %llu\n", (unsigned long long)counts->attempts);
		break;
	case OF_TOKENS:
		PUT(text, "\"} %llu\n", (unsigned long long)counts->tokens);
		break;
	case OF_MONEY:
		PUT(text, "\"} %.6f\n", (double)counts->micro_usd / 1e6);
		break;
	case OF_UNPRICED:
		PUT(text, "\"} %llu\n", (unsigned long long)counts->unpriced);
		break;
	}
}

static void put_spending(struct text *text, const struct store *store)
{
	static const struct {
		const char *name, *help;
	} parts[] = {
		[OF_ATTEMPTS] = {"stint_agent_attempts_total",
			"Attempts that said what they used, since the start, by executor."},
		[OF_TOKENS] = {"stint_agent_tokens_total", "Tokens that their models read and wrote."},
		[OF_MONEY] = {"stint_agent_usd_total",
			"US dollars that they cost, as far as prices are known."},
		[OF_UNPRICED] = {"stint_agent_unpriced_total",
			"Attempts among them whose price is not known."},
	};

	for (int part = OF_ATTEMPTS; part <= OF_UNPRICED; part++) {
		struct spending spending = {.text = text, .name = parts[part].name, .part = part};
		put_head(text, parts[part].name, "counter", parts[part].help);
		store_each_spent_since_start(store, put_spent, &spending);
	}
}

static void put_events(struct text *text, const struct store *store)
{
	put_head(text, "stint_events_total", "counter", "Events committed since the start, by type.");
	for (int i = EVENT_NONE + 1; i < EVENT_KIND_COUNT; i++) {
		enum event_kind kind = (enum event_kind)i;
		if (!event_kind_is_known(kind))
			continue;
		put_labelled(text, "stint_events_total", "type", event_kind_name(kind),
			store_counts(store)->events[kind]);
	}
	put_one(text, "stint_lease_expirations_total", "counter", "Claims lost because their lease ran out.",
		store_counts(store)->events[EVENT_TASK_EXPIRED]);
	put_one(text, "stint_execution_armed", "gauge",
		"1 while work is handed out, 0 while execution is disarmed.", store_is_armed(store, NULL));
	put_one(text, "stint_disk_free_bytes", "gauge", "Room on the file system of the store.",
		store_room(store)->free_bytes);
	put_one(text, "stint_disk_low", "gauge",
		"1 while nothing new is begun because the disk is nearly full.", store_room(store)->low);
	put_one(text, "stint_store_degraded", "gauge", "1 while the store cannot be written.",
		store_is_degraded(store));
}

static void put_claims(struct text *text, const struct metrics *metrics)
{
	static const char *const names[CLAIM_OUTCOME_COUNT] = {
		[CLAIM_GRANTED] = "granted", [CLAIM_EMPTY] = "empty", [CLAIM_REFUSED] = "refused"};

	put_head(text, "stint_claims_total", "counter", "Requests for work that were answered, by result.");
	for (int i = 0; i < CLAIM_OUTCOME_COUNT; i++)
		put_labelled(text, "stint_claims_total", "result", names[i], metrics->claims[i]);
}

static void put_replies(struct text *text, const struct metrics *metrics)
{
	put_head(text, "stint_http_requests_total", "counter", "Requests answered, by HTTP status.");
	for (int status = 0; status < METRICS_STATUS_MAX; status++) {
		if (metrics->replies[status] > 0)
			PUT(text, "stint_http_requests_total{status=\"%d\"} %llu\n", status,
				(unsigned long long)metrics->replies[status]);
	}
}

static void put_lead(struct text *text, const struct server *server)
{
	put_one(text, "stint_leads", "gauge", "1 if this server leads its store, 0 while it stands by.",
		server->store != NULL);
	put_one(text, "stint_passed_connections", "gauge",
		"Open connections that are passed on to the leader.", server->standby.passing.count);
}

/* A server that stands by knows nothing of the store. */
static int put_standby(struct text *text, const struct server *server)
{
	put_head(text, "stint_build_info", "gauge", "Always 1; the version is in the label.");
	put_labelled(text, "stint_build_info", "version", STINT_VERSION, 1);
	put_lead(text, server);
	put_replies(text, &server->metrics);
	put_one(text, "stint_connections", "gauge", "Open connections.", server->connections.count);
	put_process(text, server);
	if (text->open)
		PUT(text, "# EOF\n");
	return buf_fault(text->out);
}

int metrics_put(const struct server *server, bool open, struct buf *out)
{
	const struct metrics *metrics = &server->metrics;
	struct moment now = clock_now();
	struct text text = {.out = out, .open = open, .now_ms = now.wall_ms};

	if (!server->store)
		return put_standby(&text, server);
	put_head(&text, "stint_build_info", "gauge", "Always 1; the version is in the label.");
	put_labelled(&text, "stint_build_info", "version", STINT_VERSION, 1);
	put_queues(&text, server->store);
	put_spending(&text, server->store);
	put_reasons(&text, server->store, now);
	put_times(&text, "stint_task_wait_seconds", "From being ready to a claim.",
		&store_counts(server->store)->wait_times);
	put_times(&text, "stint_task_run_seconds", "From a claim to its end.",
		&store_counts(server->store)->run_times);
	put_workers(&text, server->store, now);
	put_rescheduled(&text, server->store);
	put_claims(&text, metrics);
	put_events(&text, server->store);
	put_histogram(&text, "stint_store_commit_seconds",
		"A turn that wrote something: from its first command to the end of its one commit.",
		&metrics->turn);
	put_histogram(&text, "stint_http_request_seconds",
		"From the last byte of a request to its reply; claims that waited for work are left out.",
		&metrics->request);
	put_replies(&text, metrics);
	put_one(&text, "stint_auth_failures_total", "counter", "Credentials that are wrong, or have ended.",
		metrics->auth_failures);
	put_one(&text, "stint_auth_barred_total", "counter",
		"Wrong credentials that were answered 429: too many had come from there.",
		metrics->auth_barred);
	put_one(&text, "stint_strangers_closed_total", "counter",
		"Connections closed because they had shown no right credential: after 10 s, or too many of one source.",
		metrics->strangers_closed);
	put_one(&text, "stint_connections", "gauge", "Open connections.", server->connections.count);
	put_one(&text, "stint_connections_max", "gauge",
		"Places for connections that have shown a right credential.", server->payers.known_max);
	put_one(&text, "stint_connections_strangers", "gauge", "Open connections that have shown none.",
		server->payers.lobby);
	put_one(&text, "stint_requests_held_bytes", "gauge", "Bytes of long requests on their way.",
		server->payers.held_bytes);
	put_one(&text, "stint_connections_ended_total", "counter",
		"Connections of the largest client that were ended for others, because all places were taken.",
		metrics->connections_ended);
	put_one(&text, "stint_connections_refused_total", "counter",
		"Requests answered 503 because all places for connections, or those of their credential, were taken.",
		metrics->connections_refused);
	put_one(&text, "stint_waiting_claims", "gauge", "Claims that wait for work.", server->waiting.count);
	put_one(&text, "stint_waiting_news", "gauge", "Workers that wait for news.",
		server->waiting.news_count);
	put_one(&text, "stint_log_lines_dropped_total", "counter",
		"Log lines that nobody read in time, and that were not written therefore.", log_dropped());
	put_one(&text, "stint_reads", "gauge", "Reads under way that are done in slices.",
		server->readers.fresh.count + server->readers.reading.count + server->readers.queued.count);
	put_one(&text, "stint_event_streams", "gauge", "Open streams of events.", server->streams.open.count);
	put_lead(&text, server);
	put_store(&text, server);
	put_tls(&text, server);
	put_process(&text, server);
	if (open)
		PUT(&text, "# EOF\n");
	return buf_fault(out);
}
