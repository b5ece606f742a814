/*
 * Who may come in: the Host must be ours, an Origin too if there is one, and the credential is compared by its
 * hash in constant time. A page in somebody's browser gets no further than this.
 */
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "server/server.h"

/* A token that is NULL is the one in admin.token. */
struct caller {
	enum caller_kind kind;
	const struct token *token;         /* the parent of an instance's and a claim's */
	struct task task;                  /* of a claim */
	struct span worker;                /* of an instance or a claim; the store's */
	uint32_t holder;                   /* the store's number of that worker */
	uint64_t credential;               /* of an instance; of a token: which of its secrets was shown */
	bool by_open;                      /* a claim's: its parent showed no token */
	const struct browser_login *login; /* of a browser; the store's */
};

/* Old clients without a token may do all but what an admin does, and pass no gate. */
static const struct principal open_principal = {
	.name = {"open", 4},
	.id = {"open", 4},
	.number = PRINCIPAL_OPEN,
	.scopes = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_PRODUCE) | SCOPE_BIT(SCOPE_WORK) |
		SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_EMIT) | SCOPE_BIT(SCOPE_METRICS),
};

/* ---- seals ----------------------------------------------------------------------------------------------- */

/*
 * Hashing a secret costs more than all the rest of admission, and most requests show one that was right a moment ago.
 * Its short keyed hash is remembered then: that the text is of our making, and which token it is of while no token of
 * the store is changed. Whether that one is still good is asked every time. What was wrong is not remembered, and no
 * secret is kept.
 */
struct seal {
	unsigned char bytes[SEAL_BYTES];
	uint16_t place;
};

#define WHOSE_UNKNOWN UINT64_MAX

static struct seal seal_of(const struct admission *admission, struct span text)
{
	struct seal seal;

	_Static_assert(SEAL_BYTES == crypto_shorthash_siphashx24_BYTES, "the hash is that long");
	_Static_assert(SEAL_BYTES == crypto_shorthash_siphashx24_KEYBYTES, "and so is its key");
	crypto_shorthash_siphashx24(
		seal.bytes, (const unsigned char *)text.data, text.len, admission->seal_key);
	seal.place = (uint16_t)((seal.bytes[0] | seal.bytes[1] << 8) % SEALS_MAX);
	return seal;
}

static bool is_sealed(const struct admission *admission, const struct seal *seal)
{
	return memcmp(admission->known[seal->place].seal, seal->bytes, SEAL_BYTES) == 0;
}

static void remember(
	struct admission *admission, const struct seal *seal, const struct token *token, uint64_t changes)
{
	struct known_secret *known = &admission->known[seal->place];

	memcpy(known->seal, seal->bytes, SEAL_BYTES);
	known->token = token;
	known->changes = changes;
}

/* ---- where does it come from? ---------------------------------------------------------------------------- */

static void allow_host(struct admission *admission, const char *host, uint16_t port)
{
	bool bare = strchr(host, ':') != NULL;

	assert(admission->host_count < ADMISSION_HOSTS_MAX);
	snprintf(admission->hosts[admission->host_count++], sizeof admission->hosts[0],
		bare ? "[%s]:%u" : "%s:%u", host, port);
}

static void init_cookies(struct admission *admission, const struct options *options, uint16_t port)
{
	const struct front *front = &options->front;
	struct login_cookie *cookie = &admission->cookie;

	*cookie = (struct login_cookie){.path = "/", .secure = options->identity != NULL};
	snprintf(cookie->name, sizeof cookie->name, "%sstint_%u", cookie->secure ? "__Host-" : "", port);
	cookie = &admission->front_cookie;
	*cookie = (struct login_cookie){
		.path = front->prefix[0] ? front->prefix : "/", .secure = front->secure};
	if (front->secure && front->prefix[0])
		snprintf(cookie->name, sizeof cookie->name, "__Secure-stint");
	else
		snprintf(cookie->name, sizeof cookie->name, "%sstint_%u", front->secure ? "__Host-" : "",
			port);
}

void admission_init(
	struct admission *admission, const struct options *options, uint16_t port, const char *admin_token)
{
	struct span id = token_id(span_of(admin_token));

	crypto_hash_sha256(admission->admin_hash, (const unsigned char *)admin_token, strlen(admin_token));
	snprintf(admission->admin_id, sizeof admission->admin_id, "%.*s", SPAN_ARGS(id));
	randombytes_buf(admission->nobody_hash, sizeof admission->nobody_hash);
	randombytes_buf(admission->seal_key, sizeof admission->seal_key);
	struct seal seal = seal_of(admission, span_of(admin_token));
	remember(admission, &seal, NULL, WHOSE_UNKNOWN);
	admission->any_host = options->behind_proxy && !options->front.host[0];
	snprintf(admission->port, sizeof admission->port, "%u", port);
	init_cookies(admission, options, port);
	allow_host(admission, "127.0.0.1", port);
	allow_host(admission, "localhost", port);
	allow_host(admission, "::1", port);
	if (strcmp(options->host, "127.0.0.1") != 0 && strcmp(options->host, "::1") != 0)
		allow_host(admission, options->host, port);
}

static bool is_listed(const struct admission *admission, struct span host)
{
	uint32_t i = 0;

	while (i < admission->host_count && !span_equal(host, span_of(admission->hosts[i])))
		i++;
	return i < admission->host_count;
}

/* HOST:PORT, or [HOST]:PORT, with a host that our certificate is for, and our port? */
static bool is_certified(const struct server *server, struct span host)
{
	const struct tls_identity *identity = server->certificate.identity;
	const char *colon = identity ? memrchr(host.data, ':', host.len) : NULL;

	if (!colon ||
		!span_equal((struct span){colon + 1, (size_t)(host.data + host.len - colon - 1)},
			span_of(server->admission.port)))
		return false;
	host.len = (size_t)(colon - host.data);
	if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
		host = (struct span){host.data + 1, host.len - 2};
	return tls_facts_name(tls_identity_facts(identity), host);
}

/* The client connected to a server on standby, and names that one. */
static bool is_passed(const struct exchange *exchange, struct span host)
{
	struct span passed =
		exchange->connection ? connection_passed_host(exchange->connection) : (struct span){0};

	return passed.len > 0 && span_equal(host, passed);
}

/* By the address that publicUrl names. */
static bool is_front(const struct server *server, struct span host)
{
	const struct front *front = &server->options->front;

	return front->host[0] && span_equal(host, span_of(front->host));
}

/* "localhost" without a port: over the socket, which has none. */
static bool host_is_ours(const struct server *server, const struct exchange *exchange, struct span host)
{
	const struct admission *admission = &server->admission;

	return admission->any_host || is_front(server, host) || span_equal(host, SPAN("localhost")) ||
		is_listed(admission, host) || is_certified(server, host) || is_passed(exchange, host);
}

static struct span behind(struct span text, struct span prefix);

/* A page of ours came by the way that this server is reached. */
static bool origin_is_ours(const struct server *server, const struct exchange *exchange, struct span origin)
{
	const struct front *front = &server->options->front;
	bool secure = server->certificate.identity != NULL;

	if (front->origin[0] && span_equal(origin, span_of(front->origin)))
		return true;
	struct span host = behind(origin, secure ? SPAN("https://") : SPAN("http://"));

	return is_listed(&server->admission, host) || is_certified(server, host) || is_passed(exchange, host);
}

/* What follows the prefix; empty if the text does not begin with it. */
static struct span behind(struct span text, struct span prefix)
{
	if (text.len <= prefix.len || memcmp(text.data, prefix.data, prefix.len) != 0)
		return SPAN("");
	return (struct span){text.data + prefix.len, text.len - prefix.len};
}

/* ---- who is it? ------------------------------------------------------------------------------------------ */

/* Which secret of its token it is: the beginning of its hash. */
static uint64_t secret_number(const unsigned char hash[TOKEN_HASH_BYTES])
{
	uint64_t number;

	memcpy(&number, hash, sizeof number);
	return number;
}

enum secret { SECRET_WRONG, SECRET_RIGHT, SECRET_OLD };

/* Every random credential that is not remembered costs one look-up, one hash and three comparisons. A seal says that the text was
 * right once: for a token whose secret is replaced that is not enough. */
static enum secret judge_secret(const struct server *server, struct span text, const struct seal *seal,
	struct span id, const struct token *token, bool *ret_admin)
{
	const struct admission *admission = &server->admission;
	unsigned char hash[TOKEN_HASH_BYTES];
	bool is_fixed = !token || token->more.renewed_ms == 0;

	*ret_admin = !token && span_equal(id, span_of(admission->admin_id));
	if ((token || *ret_admin) && is_fixed && is_sealed(admission, seal))
		return SECRET_RIGHT;
	crypto_hash_sha256(hash, (const unsigned char *)text.data, text.len);
	*ret_admin = sodium_memcmp(hash, admission->admin_hash, sizeof hash) == 0;
	bool is_same = sodium_memcmp(hash, token ? token->hash : admission->nobody_hash, sizeof hash) == 0;
	bool is_old = token && token_has_old(token, server->now.wall_ms) &&
		sodium_memcmp(hash, token->more.old_hash, sizeof hash) == 0;
	return *ret_admin || is_same ? SECRET_RIGHT : is_old ? SECRET_OLD : SECRET_WRONG;
}

/* Its secret was right. A join code is shown in the body of an enrolment, and opens nothing else. */
static struct caller caller_of(const struct server *server, const struct token *token)
{
	bool is_live = !token || (token_is_live(token, server->now.wall_ms) && token->kind != TOKEN_JOIN);

	return (struct caller){
		.kind = is_live ? CALLER_TOKEN : CALLER_UNKNOWN,
		.token = token,
		.credential = token ? secret_number(token->hash) : 0,
	};
}

static struct caller identify_token(
	struct server *server, struct span text, const struct seal *seal, struct span id)
{
	const struct token *token = store_find_token(server->store, id);
	bool is_admin;

	enum secret secret = judge_secret(server, text, seal, id, token, &is_admin);
	if (secret == SECRET_WRONG)
		return (struct caller){.kind = CALLER_UNKNOWN};
	if (is_admin)
		token = NULL;
	struct caller caller = caller_of(server, token);
	if (secret ==
		SECRET_OLD) { /* it is not remembered: it ends by itself, or when the new one is shown */
		caller.credential = secret_number(token->more.old_hash);
		return caller;
	}
	if (token && caller.kind == CALLER_TOKEN && token_has_old(token, server->now.wall_ms))
		store_see_secret(server->store, token->id);
	remember(&server->admission, seal, token, store_token_changes(server->store));
	return caller;
}

static uint32_t number_of(const struct token *token)
{
	return token ? token->principal : PRINCIPAL_ADMIN;
}

static bool is_instance(const struct worker *worker, uint64_t credential, uint32_t principal)
{
	return worker_is_alive(worker) && worker->credential == credential && worker->principal == principal;
}

/* One that follows from another is as good as that is, and as what it is for: a live worker that has not registered
 * again since, a live claim. */
static struct caller identify_derived(struct server *server, struct span text, const struct seal *seal)
{
	struct caller caller = {.kind = CALLER_UNKNOWN};
	struct admission *admission = &server->admission;
	struct derived derived;
	struct worker worker;

	const struct signing_keys *keys = store_signing_keys(server->store);
	if (!derived_read(text, keys, is_sealed(admission, seal), &derived))
		return caller;
	remember(admission, seal, NULL, WHOSE_UNKNOWN);
	caller.by_open = span_equal(derived.parent, open_principal.id);
	if (caller.by_open && (!server->options->auth_open || derived.kind != DERIVED_CLAIM))
		return caller;
	if (!caller.by_open && !span_equal(derived.parent, SPAN("admin"))) {
		caller.token = store_find_token(server->store, derived.parent);
		if (!caller.token || !token_is_live(caller.token, server->now.wall_ms))
			return caller;
	}
	if (derived.kind == DERIVED_CLAIM) {
		if (store_live_claim(server->store, (int64_t)derived.number, &caller.task, &caller.worker) &&
			caller.task.fence == derived.fence &&
			caller.task.claim.reissued == derived.reissued) {
			caller.kind = CALLER_CLAIM;
			caller.holder = caller.task.claim.holder;
			caller.credential = derived.reissued;
		}
		return caller;
	}
	struct span id = {derived.worker, derived.worker_len};
	if (store_worker(server->store, id, &worker) &&
		is_instance(&worker, derived.number, number_of(caller.token))) {
		caller.kind = CALLER_INSTANCE;
		caller.holder = worker.handle;
		caller.credential = derived.number;
		caller.worker = store_worker_id(server->store, worker.handle);
	}
	return caller;
}

static struct caller identify_bearer(struct server *server, struct span authorization)
{
	const struct admission *admission = &server->admission;
	struct span text = behind(authorization, SPAN("Bearer "));

	struct seal seal = seal_of(admission, text);
	const struct known_secret *known = &admission->known[seal.place];
	if (is_sealed(admission, &seal) && known->changes == store_token_changes(server->store))
		return caller_of(server, known->token);
	struct span id = token_id(text);
	return derived_looks_like(id) ? identify_derived(server, text, &seal)
				      : identify_token(server, text, &seal, id);
}

/* The value of the cookie of that name: "a=1; b=2". Empty: there is none. */
static struct span cookie_value(struct span cookies, struct span name)
{
	const char *at = cookies.data, *end = cookies.data + cookies.len;

	while (at && at < end) {
		const char *stop = memchr(at, ';', (size_t)(end - at));
		struct span pair = {at, (size_t)((stop ? stop : end) - at)};
		if (pair.len > name.len && memcmp(pair.data, name.data, name.len) == 0 &&
			pair.data[name.len] == '=')
			return (struct span){pair.data + name.len + 1, pair.len - name.len - 1};
		at = stop ? stop + 1 : end;
		while (at < end && *at == ' ')
			at++;
	}
	return (struct span){0};
}

static bool hash_is(struct span text, const unsigned char hash[TOKEN_HASH_BYTES])
{
	unsigned char shown[TOKEN_HASH_BYTES];

	crypto_hash_sha256(shown, (const unsigned char *)text.data, text.len);
	return sodium_memcmp(shown, hash, sizeof shown) == 0;
}

const struct login_cookie *admission_cookie(const struct server *server, const struct http_request *request)
{
	return is_front(server, request->host) ? &server->admission.front_cookie : &server->admission.cookie;
}

const struct browser_login *admission_cookie_login(struct server *server, const struct http_request *request)
{
	struct span value = cookie_value(request->cookie, span_of(admission_cookie(server, request)->name));
	const struct browser_login *login =
		value.len > 0 ? store_find_login(server->store, token_id(value)) : NULL;

	return login && login->state != LOGIN_CODE && hash_is(value, login->cookie_hash) ? login : NULL;
}

/* The maker's token is live, and so is the session, which somebody used within two hours. After a start of the server these
 * count from the start. */
static bool login_is_good(const struct server *server, const struct browser_login *login)
{
	int64_t seen_ms = login->seen_ms != 0 ? login->seen_ms : server->started.lease_ms;
	const struct token *maker = store_find_token(server->store, span_of(login->maker));
	bool is_made_well =
		maker ? token_is_live(maker, server->now.wall_ms) : strcmp(login->maker, "admin") == 0;

	return is_made_well && login_is_open(login, server->now.wall_ms) &&
		server->now.lease_ms - seen_ms < LOGIN_IDLE_MS;
}

/* The cookie goes to every port of this host, so that others may hold it. The page's key is kept per origin: whoever sends both
 * is our page. A browser also says so itself. */
static struct caller identify_browser(struct server *server, const struct http_request *request)
{
	const struct browser_login *login = admission_cookie_login(server, request);
	bool is_own = !request->fetch_site.data || span_equal(request->fetch_site, SPAN("same-origin"));

	if (!login || !is_own || !request->page_key.data || !hash_is(request->page_key, login->key_hash) ||
		!login_is_good(server, login))
		return (struct caller){.kind = CALLER_UNKNOWN};
	store_see_login(server->store, span_of(login->id), server->now.lease_ms);
	return (struct caller){
		.kind = CALLER_BROWSER,
		.token = store_find_token(server->store, span_of(login->maker)),
		.login = login,
	};
}

/* A request with the header of a page is a browser's, and nothing else will do for it. */
static struct caller identify(struct server *server, const struct http_request *request)
{
	if (request->authorization.data)
		return identify_bearer(server, request->authorization);
	if (request->page_key.data)
		return identify_browser(server, request);
	return (struct caller){.kind = server->options->auth_open ? CALLER_OPEN : CALLER_UNKNOWN};
}

/* ---- and what may it do? ----------------------------------------------------------------------------------- */

/* "worker:builder"; the exchange may outlive the token, so it gets copies of everything. */
static int put_name(const char *kind, struct span name, struct arena *arena, struct span *ret_name)
{
	size_t kind_len = strlen(kind), len = kind_len + 1 + name.len;
	char *text = arena_alloc(arena, len);

	if (!text)
		return -ENOMEM;
	memcpy(text, kind, kind_len);
	text[kind_len] = ':';
	memcpy(text + kind_len + 1, name.data, name.len);
	*ret_name = (struct span){text, len};
	return 0;
}

static int put_queues(const struct token *token, struct arena *arena, struct name_list *ret_queues)
{
	struct span found[TOKEN_QUEUES_MAX];
	uint32_t count = token_queues(token, found);
	struct span *queues = arena_alloc(arena, (count + 1) * sizeof *queues);
	int r = queues ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = arena_copy(arena, found[i], &queues[i]);
	if (r == 0)
		*ret_queues = (struct name_list){queues, count};
	return r;
}

/* As if it were a token of that kind. */
static int principal_from(const struct token *token, enum token_kind kind, const char *kind_name,
	struct arena *arena, struct principal *principal)
{
	principal->number = number_of(token);
	principal->scopes = api_scopes_of(kind);
	if (!token) {
		principal->id = SPAN("admin");
		principal->name = SPAN("admin");
		return kind == TOKEN_ADMIN ? 0 : put_name(kind_name, SPAN("admin"), arena, &principal->name);
	}
	int r = put_name(kind_name, token->name, arena, &principal->name);
	if (r == 0)
		r = arena_copy(arena, token->id, &principal->id);
	if (r == 0)
		r = arena_copy(arena, token->gate, &principal->gate);
	if (r == 0)
		r = put_queues(token, arena, &principal->queues);
	return r;
}

static int principal_of_claim(const struct server *server, const struct caller *caller, struct arena *arena,
	struct principal *principal)
{
	int r = principal_from(caller->token, TOKEN_WORKER, "claim", arena, principal);

	principal->scopes = SCOPE_BIT(SCOPE_CLAIM);
	principal->makes_in = principal->queues; /* its own task may have been moved elsewhere */
	principal->queues = (struct name_list){0};
	principal->number = caller->task.claimant; /* an admin may have made it for somebody else's claim */
	if (caller->by_open) {
		principal->name = SPAN("claim:open");
		principal->id = open_principal.id;
	}
	principal->task_seq = caller->task.seq;
	principal->fence = caller->task.fence;
	if (r == 0)
		r = arena_copy(arena, caller->worker, &principal->worker);
	if (r == 0)
		r = store_task_id(server->store, &caller->task, arena, &principal->task);
	return r;
}

/* It acts for the maker of its code, with the scopes that its role and the maker have in common. */
static int principal_of_browser(const struct server *server, const struct caller *caller, struct arena *arena,
	struct principal *principal)
{
	enum token_kind maker = caller->token ? caller->token->kind : TOKEN_ADMIN;
	enum token_kind role = login_role(caller->login, server->now.wall_ms);
	int r = principal_from(caller->token, role, "browser", arena, principal);

	principal->scopes &= api_scopes_of(maker);
	if (r == 0)
		r = put_name("browser", span_of(caller->login->name), arena, &principal->name);
	if (r == 0)
		r = arena_copy(arena, span_of(caller->login->id), &principal->login);
	return r;
}

/* Without memory for it nobody is let in. */
static struct principal principal_of(struct server *server, struct exchange *exchange)
{
	struct caller caller = identify(server, exchange->request);
	enum token_kind kind = caller.token ? caller.token->kind : TOKEN_ADMIN;
	struct arena *arena = &exchange->arena;
	struct principal who = {0};
	int r = 0;

	exchange->caller = caller.kind;
	exchange->credential = caller.credential;
	exchange->holder = caller.holder;
	switch (caller.kind) {
	case CALLER_UNKNOWN:
		break;
	case CALLER_OPEN:
		return open_principal;
	case CALLER_TOKEN:
		r = principal_from(caller.token, kind, token_kind_name(kind), arena, &who);
		break;
	case CALLER_INSTANCE:
		r = principal_from(caller.token, TOKEN_WORKER, token_kind_name(TOKEN_WORKER), arena, &who);
		if (r == 0)
			r = arena_copy(arena, caller.worker, &who.worker);
		break;
	case CALLER_CLAIM:
		r = principal_of_claim(server, &caller, arena, &who);
		break;
	case CALLER_BROWSER:
		r = principal_of_browser(server, &caller, arena, &who);
		break;
	}
	return r < 0 ? (struct principal){0} : who;
}

/* Of a token with its own secret: that one must still be valid, too. */
static bool secret_is_good(const struct server *server, const struct exchange *exchange)
{
	const struct token *token = store_find_token(server->store, exchange->call.who.id);

	return !token || exchange->credential == secret_number(token->hash) ||
		(token_has_old(token, server->now.wall_ms) &&
			exchange->credential == secret_number(token->more.old_hash));
}

static bool token_is_good(const struct server *server, const struct principal *who)
{
	const struct token *token = store_find_token(server->store, who->id);

	if (!token)
		return span_equal(who->id, SPAN("admin")); /* the one in admin.token */
	return token_is_live(token, server->now.wall_ms);
}

/* A stream is a page that somebody looks at: its session is in use. */
static bool browser_is_good(struct server *server, const struct principal *who)
{
	const struct browser_login *login = store_find_login(server->store, who->login);

	if (!login || !login_is_good(server, login))
		return false;
	store_see_login(server->store, who->login, server->now.lease_ms);
	return true;
}

/* That its credential is of our making was seen when it came in; ten thousand may wait, and are asked every second. */
bool admission_is_still_good(struct server *server, const struct exchange *exchange)
{
	const struct principal *who = &exchange->call.who;
	struct worker worker;
	struct task task;
	struct span holder;

	switch (exchange->caller) {
	case CALLER_UNKNOWN:
		return false;
	case CALLER_OPEN:
		return true;
	case CALLER_TOKEN:
		return token_is_good(server, who) && secret_is_good(server, exchange);
	case CALLER_BROWSER:
		return browser_is_good(server, who);
	case CALLER_INSTANCE:
		return token_is_good(server, who) && store_worker(server->store, who->worker, &worker) &&
			is_instance(&worker, exchange->credential, who->number);
	case CALLER_CLAIM:
		return token_is_good(server, who) &&
			store_live_claim(server->store, who->task_seq, &task, &holder) &&
			task.fence == who->fence && task.claim.reissued == exchange->credential;
	}
	return false;
}

/* ---- may it come in? ----------------------------------------------------------------------------------------- */

/* A right credential passes, whatever wrong ones its source has shown: a child that shares the user, or the proxy, of an honest
 * client must not be able to shut that client out. Guessing is hopeless anyway, as a secret has 256 bits. Only wrong ones are
 * slowed down, and only their own source's. False: the exchange has its reply. */
static bool judge_credential(struct server *server, struct exchange *exchange)
{
	const struct source_key *source = connection_source(exchange->connection);

	if (exchange->call.who.scopes != 0 || !exchange->request->authorization.data)
		return true;
	if (source_is_barred(&server->sources, source, server->now.lease_ms)) {
		server->metrics.auth_barred++;
		return api_refuse(&exchange->call, REFUSED_RATE_LIMITED,
			"This credential is wrong, as too many others from the same place were; a right one is let in at any time.");
	}
	server->metrics.auth_failures++;
	source_failed(&server->sources, source, server->options->auth_failures_per_s, server->now.lease_ms);
	return true;
}

bool admission_payer(struct server *server, const struct source_key *source, const struct http_request *head,
	struct payer_key *ret_key, uint32_t *ret_scopes)
{
	struct caller caller = identify(server, head);
	enum token_kind kind = caller.token ? caller.token->kind : TOKEN_ADMIN;
	struct payer_key key = {.principal = number_of(caller.token), .holder = caller.holder};

	switch (caller.kind) {
	case CALLER_UNKNOWN:
		server->metrics.auth_failures += head->authorization.data != NULL;
		if (head->authorization.data)
			source_failed(&server->sources, source, server->options->auth_failures_per_s,
				server->now.lease_ms);
		return false;
	case CALLER_OPEN:
		key.principal = PRINCIPAL_OPEN;
		break;
	case CALLER_CLAIM:
		key.principal = caller.task.claimant;
		key.task = caller.task.seq;
		key.fence = caller.task.fence;
		break;
	case CALLER_TOKEN:
	case CALLER_INSTANCE:
	case CALLER_BROWSER:
		break;
	}
	*ret_key = key;
	*ret_scopes = api_scopes_of(kind);
	return true;
}

bool admission_pass(struct server *server, struct exchange *exchange)
{
	const struct http_request *request = exchange->request;
	assert(exchange->state == EXCHANGE_NEW);
	bool unsafe = request->method != HTTP_METHOD_GET && request->method != HTTP_METHOD_HEAD;

	if (!host_is_ours(server, exchange, request->host))
		return api_refuse(&exchange->call, REFUSED_WRONG_HOST,
			"The Host header names another server than this one.");
	if (request->origin.data && !origin_is_ours(server, exchange, request->origin))
		return api_refuse(
			&exchange->call, REFUSED_FORBIDDEN, "Requests from that origin are not served.");
	if (unsafe && span_equal(request->fetch_site, SPAN("cross-site")))
		return api_refuse(&exchange->call, REFUSED_FORBIDDEN,
			"A page of another site may change nothing here.");
	exchange->call.who = principal_of(server, exchange);
	return judge_credential(server, exchange);
}
