/*
 * What the server does for the API: credentials, metrics, questions in SQL, and what it knows of itself.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "server/process.h"
#include "server/server.h"
#include "server/site/site.h"

struct api_call host_call(
	struct server *server, const struct http_request *request, struct arena *arena, struct buf *body)
{
	return (struct api_call){
		.request = request,
		.arena = arena,
		.body = body,
		.rules = &server->options->storage.rules,
		.now = server->now,
		.store = server->store,
		.host = &server->host,
	};
}

static struct server *of(void *context)
{
	return context;
}

static const char *default_queues(void *context)
{
	return of(context)->options->default_queues;
}

static bool process_is_alive(void *context, uint64_t boot_hi, uint64_t boot_lo, uint32_t pid, uint64_t start)
{
	const struct store_options *ours = &of(context)->options->storage;

	return boot_hi == ours->boot_hi && boot_lo == ours->boot_lo && process_is_seen(pid, start);
}

static int put_metrics(void *context, bool open, struct buf *out)
{
	return metrics_put(of(context), open, out);
}

static bool is_draining(void *context)
{
	return of(context)->stopping;
}

static int make_token(void *context, enum token_kind kind, struct arena *arena, struct minted *ret_minted)
{
	char text[TOKEN_BYTES_MAX], id[TOKEN_ID_BYTES_MAX];

	(void)context;
	mint_token(token_kind_name(kind), text, id);
	crypto_hash_sha256(ret_minted->hash, (const unsigned char *)text, strlen(text));
	int r = arena_copy(arena, span_of(id), &ret_minted->id);
	if (r == 0)
		r = arena_copy(arena, span_of(text), &ret_minted->text);
	sodium_memzero(text, sizeof text);
	return r;
}

static int make_secret(
	void *context, const char *kind, struct span id, struct arena *arena, struct minted *ret_minted)
{
	char text[TOKEN_BYTES_MAX], made[TOKEN_ID_BYTES_MAX];

	(void)context;
	if (id.len == 0) {
		mint_id(made);
		id = span_of(made);
	}
	mint_secret(kind, id, text);
	crypto_hash_sha256(ret_minted->hash, (const unsigned char *)text, strlen(text));
	int r = arena_copy(arena, id, &ret_minted->id);
	if (r == 0)
		r = arena_copy(arena, span_of(text), &ret_minted->text);
	sodium_memzero(text, sizeof text);
	return r;
}

static int make_join(void *context, struct arena *arena, struct minted *ret_minted)
{
	char text[TOKEN_BYTES_MAX], id[TOKEN_ID_BYTES_MAX];

	mint_join(of(context)->certificate.pin, text, id);
	crypto_hash_sha256(ret_minted->hash, (const unsigned char *)text, strlen(text));
	int r = arena_copy(arena, span_of(id), &ret_minted->id);
	if (r == 0)
		r = arena_copy(arena, span_of(text), &ret_minted->text);
	sodium_memzero(text, sizeof text);
	return r;
}

static const char *public_url(void *context)
{
	return config_text(&of(context)->options->config, CONFIG_PUBLIC_URL);
}

/* Does the name mean this machine to itself alone, or many? */
static bool is_near(const char *name)
{
	static const char *const near[] = {"localhost", "127.0.0.1", "::1"};
	bool found = strchr(name, '*') != NULL;

	for (size_t i = 0; i < sizeof near / sizeof *near; i++)
		found |= strcmp(name, near[i]) == 0;
	return found;
}

/* publicUrl; else the first whole name or address of the certificate; else the first word, as the name of the machine. */
static void put_url(void *context, char ret_url[API_URL_BYTES])
{
	const struct server *server = of(context);
	const struct tls_identity *identity = server->certificate.identity;
	const struct tls_facts *facts = identity ? tls_identity_facts(identity) : NULL;
	const char *best = NULL, *given = public_url(context);

	for (uint32_t i = 0; facts && i < facts->name_count; i++) {
		const char *name = facts->names[i];
		bool is_whole = strpbrk(name, ".:") != NULL, is_better = !best || !strpbrk(best, ".:");
		if (!is_near(name) && (!best || (is_whole && is_better)))
			best = name;
	}
	snprintf(ret_url, API_URL_BYTES, "%s", given);
	if (best && !given[0])
		snprintf(ret_url, API_URL_BYTES, "https://%s%s%s:%s", strchr(best, ':') ? "[" : "", best,
			strchr(best, ':') ? "]" : "", server->admission.port);
}

static bool put_certificate(void *context, struct api_certificate *ret_certificate)
{
	const struct certificate *certificate = &of(context)->certificate;

	if (!certificate->identity)
		return false;
	*ret_certificate = (struct api_certificate){
		.ends_ms = tls_identity_facts(certificate->identity)->ends_ms,
		.problem = certificate->complaint,
	};
	return true;
}

static void put_peer(void *context, const struct api_call *call, char ret_address[API_PEER_BYTES])
{
	const struct exchange *exchange =
		(const struct exchange *)((const char *)call - offsetof(struct exchange, call));

	(void)context;
	connection_peer(exchange->connection, ret_address);
}

static void hash_text(void *context, struct span text, unsigned char ret_hash[TOKEN_HASH_BYTES])
{
	(void)context;
	crypto_hash_sha256(ret_hash, (const unsigned char *)text.data, text.len);
}

static struct span cookie_login(void *context, const struct http_request *request)
{
	const struct browser_login *login = admission_cookie_login(of(context), request);

	return login ? span_of(login->id) : (struct span){0};
}

static struct api_cookie cookie(void *context, const struct http_request *request)
{
	const struct login_cookie *found = admission_cookie(of(context), request);

	return (struct api_cookie){.name = found->name, .path = found->path, .secure = found->secure};
}

static int put_config(void *context, struct buf *out)
{
	return config_put_json(out, &of(context)->options->config);
}

static int keep_deliveries(void *context, struct span teller, struct span target, struct span text)
{
	return deliveries_keep(&of(context)->deliveries, teller, target, text);
}

static int put_deliveries(void *context, struct span teller, struct buf *out)
{
	return deliveries_put(&of(context)->deliveries, teller, out);
}

static bool find_site_file(void *context, struct span name, struct arena *arena, struct site_file *ret_file)
{
	return site_find(of(context)->options->ui_dir, name, arena, ret_file);
}

static const char *no_site(void *context)
{
	return of(context)->options->ui_dir ? "the directory of --ui-dir has no index.html" : site_missing;
}

static int make_instance(void *context, struct span parent, struct span worker, uint64_t number,
	struct arena *arena, struct span *ret_text)
{
	struct derived derived = {.kind = DERIVED_INSTANCE, .parent = parent, .number = number};

	if (worker.len > sizeof derived.worker)
		return -E2BIG;
	memcpy(derived.worker, worker.data, worker.len);
	derived.worker_len = worker.len;
	return derived_text(&derived, store_signing_keys(of(context)->store), arena, ret_text);
}

static int make_claim(void *context, struct span parent, const struct task *task, struct arena *arena,
	struct span *ret_text)
{
	struct derived derived = {
		.kind = DERIVED_CLAIM,
		.parent = parent,
		.number = (uint64_t)task->seq,
		.fence = task->fence,
		.reissued = task->claim.reissued,
	};

	return derived_text(&derived, store_signing_keys(of(context)->store), arena, ret_text);
}

static struct span root_token(void *context)
{
	return span_of(of(context)->admission.admin_id);
}

/* A query may run for its share of the processor. On a busy machine other programs have the processor too: that is not the query's
 * fault, but it holds up the requests behind it, so there is a limit to that as well. */
struct query_clock {
	uint64_t early_ns, late_ns; /* before and after these the processor's time is not looked at */
	uint64_t used_until_ns;     /* of this thread */
};

static uint64_t thread_used_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

static bool is_over(void *context)
{
	const struct query_clock *clock = context;
	uint64_t now_ns = uv_hrtime();

	return now_ns > clock->early_ns &&
		(now_ns > clock->late_ns || thread_used_ns() > clock->used_until_ns);
}

static int ask(void *context, struct admin_query *question)
{
	const uint64_t run_ns = ADMIN_QUERY_RUN_MS * UINT64_C(1000000);
	struct query_clock clock = {
		.early_ns = uv_hrtime() + run_ns,
		.late_ns = uv_hrtime() + 25 * run_ns,
		.used_until_ns = thread_used_ns() + run_ns,
	};

	struct moment now = clock_now();

	question->now_wall_ms = now.wall_ms;
	question->now_lease_ms = now.lease_ms;
	question->is_over = is_over;
	question->over_context = &clock;
	return store_query(of(context)->store, question);
}

static bool is_backing_up(void *context)
{
	return of(context)->backup.exchange != NULL;
}

static struct about about(void *context)
{
	const struct server *server = of(context);
	struct moment now = clock_now();
	int64_t armed_ms;
	bool armed = store_is_armed(server->store, &armed_ms);

	return (struct about){
		.armed = armed,
		.armed_ms = armed_ms,
		.store = store_kind(server->store),
		.schema = store_schema(server->store),
		.generation = store_generation(server->store),
		.starts = store_starts(server->store),
		.started_ms = server->started.wall_ms,
		.up_ms = now.lease_ms - server->started.lease_ms,
	};
}

static bool find_leader(void *context, struct api_leader *ret_leader)
{
	const struct server *server = of(context);
	struct postgres_leader leader;

	if (!server->backend || !postgres_leads(server->backend, &leader))
		return false;
	*ret_leader = (struct api_leader){server->standby.holder, server->standby.url, leader.since_ms, true};
	return true;
}

void host_init(struct server *server)
{
	server->host = (struct api_services){
		.context = server,
		.mint_token = make_token,
		.mint_instance = make_instance,
		.mint_claim = make_claim,
		.root_token = root_token,
		.mint_join = make_join,
		.peer = put_peer,
		.certificate = put_certificate,
		.url_from_afar = put_url,
		.mint_secret = make_secret,
		.site_file = find_site_file,
		.no_site = no_site,
		.hash = hash_text,
		.cookie_login = cookie_login,
		.cookie = cookie,
		.public_url = public_url,
		.put_config = put_config,
		.keep_deliveries = keep_deliveries,
		.put_deliveries = put_deliveries,
		.process_is_alive = process_is_alive,
		.put_metrics = put_metrics,
		.ask = ask,
		.default_queues = default_queues,
		.about = about,
		.leader = find_leader,
		.is_backing_up = is_backing_up,
		.is_draining = is_draining,
	};
}
