#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/take.h"
#include "store/postgres/postgres_backend.h"

enum {
	PATIENCE_MS = 3000,
	LOOK_AWAY_MS = 3000,
};

const struct backend_ops postgres_ops = {.name = "postgres",
#define X(op) .op = postgres_##op,
	BACKEND_OPS(X)
#undef X
};

bool postgres_is_url(const char *url)
{
	return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

/* ---- the URL ---------------------------------------------------------------------------------------------------- */

/* With the '&' behind it, or what stands before it. */
static void cut_parameter(char *start, size_t len)
{
	const char *end = start + len;

	if (*end == '&')
		end++;
	else
		start--;
	memmove(start, end, strlen(end) + 1);
}

/* A parameter of the URL by its name: where its value is; NULL: there is none. */
static char *find_parameter(char *url, const char *name, size_t *ret_len)
{
	char *at = strchr(url, '?');
	size_t len = strlen(name);

	for (; at; at = strchr(at + 1, '&')) {
		if (strncmp(at + 1, name, len) == 0 && at[1 + len] == '=') {
			*ret_len = strcspn(at + 2 + len, "&");
			return at + 2 + len;
		}
	}
	return NULL;
}

static void drop_parameter(char *url, const char *name)
{
	size_t len;
	char *value = find_parameter(url, name, &len);

	if (value)
		cut_parameter(value - strlen(name) - 1, len + strlen(name) + 1);
}

char *postgres_url_for_people(const char *url)
{
	char *shown = strdup(url);

	if (!shown)
		return NULL;
	char *user = strstr(shown, "://");
	user = user ? user + 3 : shown;
	char *at = memchr(user, '@', strcspn(user, "/?#"));
	char *colon = at ? memchr(user, ':', (size_t)(at - user)) : NULL;
	if (colon)
		memmove(colon, at, strlen(at) + 1);
	drop_parameter(shown, "password");
	drop_parameter(shown, "sslpassword");
	return shown;
}

static bool is_schema_name(const char *name, size_t len)
{
	if (len == 0 || len >= PG_NAME_MAX || strncmp(name, "pg_", 3) == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
			name[i] == '_';
		if (!good)
			return false;
	}
	return true;
}

static int read_url(struct postgres *store, const char *url)
{
	size_t len = 0;

	store->url = strdup(url);
	store->shown = postgres_url_for_people(url);
	if (!store->url || !store->shown)
		return -ENOMEM;
	const char *schema = find_parameter(store->url, "schema", &len);
	if (!schema) {
		schema = "stint";
		len = strlen(schema);
	}
	if (!is_schema_name(schema, len))
		return pg_complain(store, -EINVAL,
			"%s: schema must be small letters, digits and underscores, as in postgres://…?schema=stint_team",
			store->shown);
	memcpy(store->schema, schema, len);
	store->schema[len] = 0;
	drop_parameter(store->url, "schema");
	return 0;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static int prepare(struct postgres *store, const char *url)
{
	if (getrandom(&store->key, sizeof store->key, 0) != sizeof store->key)
		return -EIO;
	int r = read_url(store, url);
	if (r == 0 && libpq_load() < 0)
		r = pg_complain(store, -ENOTSUP,
			"this machine lacks the library libpq (14 or newer), which speaks to PostgreSQL; install libpq5");
	return r;
}

static int open_store(struct postgres *store, const struct postgres_options *options)
{
	store->patience_ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
	store->look_away_ms = options->look_away_ms ? options->look_away_ms : LOOK_AWAY_MS;
	snprintf(store->holder, sizeof store->holder, "%s", options->holder ? options->holder : "stintd");
	snprintf(store->leader_url, sizeof store->leader_url, "%s",
		options->leader_url ? options->leader_url : "");
	int r = prepare(store, options->url);
	return r == 0 ? lead_take(store, options) : r;
}

static void store_free(struct postgres *store)
{
	if (store->link)
		link_close(store);
	if (store->turn.row_by_key.ops)
		turn_forget(store);
	map_done(&store->turn.row_by_key);
	arena_done(&store->turn.arena);
	buf_done(&store->turn.pack);
	free(store->turn.rows);
	free(store->turn.dropped);
	buf_done(&store->row);
	buf_done(&store->found);
	for (int i = 0; i < PG_COLUMNS_MAX; i++)
		buf_done(&store->columns[i]);
	kept_free(store);
	free(store->url);
	free(store->shown);
	free(store);
}

static int finish_open(struct postgres *store, int fault, struct backend **ret_backend, char **ret_complaint)
{
	if (fault < 0) {
		if (ret_complaint)
			*ret_complaint = store->complaint[0] ? strdup(store->complaint) : NULL;
		store_free(store);
		return fault;
	}
	store->backend.ops = &postgres_ops;
	store->backend.complaint = NULL;
	store->backend.schema = PG_MIGRATION_COUNT;
	*ret_backend = &store->backend;
	return 0;
}

int postgres_open(const struct postgres_options *options, struct backend **ret_backend, char **ret_complaint)
{
	struct postgres *store = calloc(1, sizeof *store);

	return store ? finish_open(store, open_store(store, options), ret_backend, ret_complaint) : -ENOMEM;
}

int postgres_open_to_look(const char *url, struct backend **ret_backend, char **ret_complaint)
{
	struct postgres *store = calloc(1, sizeof *store);

	if (!store)
		return -ENOMEM;
	store->only_looks = true;
	int r = prepare(store, url);
	if (r == 0)
		r = link_open(store);
	if (r == 0)
		r = lead_look_only(store);
	return finish_open(store, r, ret_backend, ret_complaint);
}

bool postgres_leads(const struct backend *backend, struct postgres_leader *ret_leader)
{
	if (backend->ops != &postgres_ops)
		return false;
	const struct postgres *store = (const struct postgres *)backend;
	*ret_leader = (struct postgres_leader){.since_ms = store->since_ms,
		.turn = store->head,
		.term = store->terms[0],
		.is_synchronous = store->is_synchronous};
	snprintf(ret_leader->name, sizeof ret_leader->name, "%s", store->holder);
	snprintf(ret_leader->url, sizeof ret_leader->url, "%s", store->leader_url);
	return true;
}

/* The lead is given back, so that another server need not wait. */
void postgres_close(struct backend *backend)
{
	if (!backend)
		return;
	struct postgres *store = postgres_of(backend);
	if (store->turn.begun)
		postgres_rollback(backend);
	store->patience_ms = 0;
	lead_resign(store);
	store_free(store);
}
