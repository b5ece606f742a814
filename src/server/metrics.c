#include "server/metrics.h"

#include <assert.h>

#include "server/server.h"

static const double second_ns = 1e9;

/* Upper ends in nanoseconds; what is longer goes into the last bucket, which has none. */
static const struct {
	uint64_t ns;
	const char *text; /* in seconds */
} bucket_ends[METRICS_BUCKETS - 1] = {
	{100000, "0.0001"},
	{250000, "0.00025"},
	{500000, "0.0005"},
	{1000000, "0.001"},
	{2500000, "0.0025"},
	{5000000, "0.005"},
	{10000000, "0.01"},
	{50000000, "0.05"},
	{100000000, "0.1"},
	{500000000, "0.5"},
	{1000000000, "1"},
};

/* ---- counting ------------------------------------------------------------------------------------------ */

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	uint32_t i = 0;

	while (i < METRICS_BUCKETS - 1 && ns > bucket_ends[i].ns)
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

/* ---- the text: the first fault counts, and after it nothing is put ---------------------------------------- */

struct text {
	struct buf *out;
	int fault;
};

#define PUT(text, ...) \
	((text)->fault = (text)->fault < 0 ? (text)->fault : buf_printf((text)->out, __VA_ARGS__))

static void put_head(struct text *text, const char *name, const char *type, const char *help)
{
	PUT(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(struct text *text, const char *name, const char *type, const char *help, uint64_t value)
{
	put_head(text, name, type, help);
	PUT(text, "%s %llu\n", name, (unsigned long long)value);
}

static void put_labelled(
	struct text *text, const char *name, const char *label, const char *value, uint64_t number)
{
	PUT(text, "%s{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long)number);
}

static void put_histogram(
	struct text *text, const char *name, const char *help, const struct histogram *histogram)
{
	uint64_t count = 0;

	put_head(text, name, "histogram", help);
	for (uint32_t i = 0; i < METRICS_BUCKETS; i++) {
		count += histogram->buckets[i];
		PUT(text, "%s_bucket{le=\"%s\"} %llu\n", name,
			i < METRICS_BUCKETS - 1 ? bucket_ends[i].text : "+Inf", (unsigned long long)count);
	}
	PUT(text, "%s_sum %.9f\n%s_count %llu\n", name, (double)histogram->sum_ns / second_ns, name,
		(unsigned long long)count);
}

/* ---- what there is to say ---------------------------------------------------------------------------------- */

static void put_tasks(struct text *text, const struct store *store)
{
	put_head(text, "stint_tasks", "gauge", "Tasks that are not final, by state.");
	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		enum task_state state = (enum task_state)i;
		if (!task_state_is_final(state))
			put_labelled(text, "stint_tasks", "state", task_state_name(state),
				store_count(store, state));
	}
}

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

static int put_queue(void *context, struct span name, enum queue_state state, uint32_t waiting)
{
	struct text *text = context;

	(void)state;
	PUT(text, "stint_tasks_ready{queue=\"");
	put_label_text(text, name);
	PUT(text, "\"} %u\n", waiting);
	return text->fault;
}

static void put_queues(struct text *text, const struct store *store)
{
	put_head(text, "stint_tasks_ready", "gauge", "Tasks that may be claimed now, by queue.");
	int r = store_each_queue(store, put_queue, text);
	if (text->fault == 0)
		text->fault = r;
}

static int count_worker(void *context, struct span id, const struct worker *worker)
{
	uint64_t *counts = context;

	(void)id;
	counts[worker->state]++;
	return 0;
}

static void put_workers(struct text *text, const struct store *store)
{
	uint64_t counts[WORKER_INACTIVE + 1] = {0};

	store_each_worker(store, count_worker, counts);
	put_head(text, "stint_workers", "gauge", "Live workers, by status.");
	for (int i = WORKER_ACTIVE; i < WORKER_INACTIVE; i++)
		put_labelled(
			text, "stint_workers", "status", worker_state_name((enum worker_state)i), counts[i]);
}

static void put_events(struct text *text, const struct store *store)
{
	put_head(text, "stint_events_total", "counter", "Events committed since the start, by type.");
	for (int i = EVENT_NONE + 1; i < EVENT_KIND_COUNT; i++) {
		enum event_kind kind = (enum event_kind)i;
		put_labelled(text, "stint_events_total", "type", event_kind_name(kind),
			store_events_told(store, kind));
	}
	put_one(text, "stint_lease_expirations_total", "counter", "Claims lost because their lease ran out.",
		store_events_told(store, EVENT_TASK_EXPIRED));
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

int metrics_put(const struct server *server, struct buf *out)
{
	const struct metrics *metrics = &server->metrics;
	struct text text = {.out = out};

	put_head(&text, "stint_build_info", "gauge", "Always 1; the version is in the label.");
	put_labelled(&text, "stint_build_info", "version", STINT_VERSION, 1);
	put_tasks(&text, server->store);
	put_queues(&text, server->store);
	put_workers(&text, server->store);
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
		"Requests refused without a look at their credential: too many wrong ones came from there.",
		metrics->auth_barred);
	put_one(&text, "stint_strangers_closed_total", "counter",
		"Connections closed because too many of one source had shown no good credential.",
		metrics->strangers_closed);
	put_one(&text, "stint_connections", "gauge", "Open connections.", server->connection_count);
	put_one(&text, "stint_waiting_claims", "gauge", "Claims that wait for work.", server->waiting.count);
	put_one(&text, "stint_event_streams", "gauge", "Open streams of events.", server->streams.count);
	return text.fault;
}
