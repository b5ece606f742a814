#include "store/copy.h"

#include <string.h>

#include "base/buf.h"

enum {
	PAGE_ROWS = 500,
	ASK_EVERY = 256, /* rows */
	KEY_BYTES_MAX = 1 << 10,
};

struct copy {
	struct backend *from, *to; /* `to` NULL: the rows are only read */
	const struct copy_options *options;
	uint64_t rows;
	int64_t last_event;
	int64_t last;   /* of a page: its last number … */
	uint32_t seen;  /* … and how many rows it had */
	struct buf key; /* … or its last key */
	enum small_kind kind;
};

/* Behind each row. */
static int count(struct copy *copy, int fault)
{
	const struct copy_options *options = copy->options;
	int r = fault;

	copy->rows++;
	copy->seen++;
	if (r == 0 && copy->to && copy->rows % ASK_EVERY == 0 && options->spill)
		r = options->spill(copy->to);
	if (r == 0 && options && copy->rows % ASK_EVERY == 0 && options->go_on)
		r = options->go_on(options->context, copy->rows);
	return r;
}

#define PUT(copy, op, ...) count(copy, (copy)->to ? (copy)->to->ops->op((copy)->to, ##__VA_ARGS__) : 0)

/* ---- rows ---- */

static int copy_name(void *context, const struct name_row *row)
{
	return PUT((struct copy *)context, put_name, row);
}

static int copy_worker(void *context, const struct worker_row *row)
{
	return PUT((struct copy *)context, put_worker, row);
}

static int copy_token(void *context, const struct token *token)
{
	return PUT((struct copy *)context, put_token, token);
}

static int copy_edge(void *context, const struct edge_row *row)
{
	return PUT((struct copy *)context, put_edge, row);
}

static int copy_body(void *context, int64_t seq, struct span body)
{
	return PUT((struct copy *)context, put_body, seq, body);
}

static int copy_extra(void *context, int64_t seq, int64_t kind, int64_t n, struct span data)
{
	return PUT((struct copy *)context, put_extra, seq, (enum extra_kind)kind, n, data);
}

static int copy_id(void *context, struct span id, int64_t seq)
{
	return PUT((struct copy *)context, put_id, id, seq);
}

static int copy_key(void *context, struct span key, int64_t seq)
{
	return PUT((struct copy *)context, put_key, key, seq);
}

static int copy_idem(void *context, const struct idem_row *row)
{
	return PUT((struct copy *)context, put_idem, row);
}

static int copy_task(void *context, const struct task_row *row)
{
	struct copy *copy = context;

	copy->last = row->task.seq;
	return PUT(copy, put_task, row, false);
}

static int copy_event(void *context, int64_t seq, struct span data)
{
	struct copy *copy = context;

	copy->last = copy->last_event = seq;
	return PUT(copy, put_event, seq, data);
}

static int copy_base(void *context, int64_t seq, struct span data)
{
	struct copy *copy = context;

	copy->last = seq;
	return PUT(copy, put_base, seq, data);
}

static int copy_small(void *context, struct span key, struct span data)
{
	struct copy *copy = context;

	buf_clear(&copy->key);
	int r = buf_put_span(&copy->key, key);
	return r < 0 ? r : PUT(copy, put_small, copy->kind, key, data);
}

/* ---- tables ---- */

static int names(struct copy *copy)
{
	return copy->from->ops->scan_names(copy->from, copy_name, copy);
}

static int tasks(struct copy *copy)
{
	int r = 0;

	copy->last = INT64_MIN;
	do {
		copy->seen = 0;
		r = copy->from->ops->page_tasks(copy->from, copy->last, PAGE_ROWS, copy_task, copy);
	} while (r == 0 && copy->seen == PAGE_ROWS);
	return r;
}

static int bodies(struct copy *copy)
{
	return copy->from->ops->scan_bodies(copy->from, copy_body, copy);
}

static int extras(struct copy *copy)
{
	return copy->from->ops->scan_extras(copy->from, copy_extra, copy);
}

static int events(struct copy *copy)
{
	int r = 0;

	copy->last = 0;
	do {
		copy->seen = 0;
		r = copy->from->ops->page_events(copy->from, copy->last, PAGE_ROWS, copy_event, copy);
	} while (r == 0 && copy->seen == PAGE_ROWS);
	return r;
}

static int bases(struct copy *copy)
{
	int r = 0;

	copy->last = INT64_MIN;
	do {
		copy->seen = 0;
		r = copy->from->ops->page_bases(copy->from, copy->last, PAGE_ROWS, copy_base, copy);
	} while (r == 0 && copy->seen == PAGE_ROWS);
	return r;
}

static int ids(struct copy *copy)
{
	return copy->from->ops->scan_ids(copy->from, copy_id, copy);
}

static int keys(struct copy *copy)
{
	return copy->from->ops->scan_keys(copy->from, copy_key, copy);
}

static int edges(struct copy *copy)
{
	return copy->from->ops->scan_edges(copy->from, copy_edge, copy);
}

static int workers(struct copy *copy)
{
	return copy->from->ops->scan_workers(copy->from, copy_worker, copy);
}

static int tokens(struct copy *copy)
{
	return copy->from->ops->scan_tokens(copy->from, copy_token, copy);
}

static int idems(struct copy *copy)
{
	return copy->from->ops->scan_idems(copy->from, copy_idem, copy);
}

static int smalls_of(struct copy *copy)
{
	int r = 0;

	buf_clear(&copy->key);
	do {
		char after[KEY_BYTES_MAX];
		struct span key = buf_span(&copy->key);
		copy->seen = 0;
		if (key.len > sizeof after)
			return -E2BIG;
		if (key.len > 0)
			memcpy(after, key.data, key.len);
		key = (struct span){key.len > 0 ? after : NULL, key.len};
		r = copy->from->ops->page_small(copy->from, copy->kind, key, PAGE_ROWS, copy_small, copy);
	} while (r == 0 && copy->seen == PAGE_ROWS);
	return r;
}

static int smalls(struct copy *copy)
{
	int r = 0;

	for (int kind = 1; r == 0 && kind < SMALL_KIND_END; kind++) {
		copy->kind = (enum small_kind)kind;
		if (!small_is_secret(copy->kind))
			r = smalls_of(copy);
	}
	return r;
}

/* Which rows of an old SQLite store may lack a checksum is a fact about that file. */
static bool is_of_file(enum meta_key key)
{
	return key == META_UNSEALED_TASK || key == META_UNSEALED_EVENT;
}

static int facts(struct copy *copy)
{
	int r = 0;

	for (int key = 1; r == 0 && key < META_KEY_COUNT; key++) {
		int64_t value;
		r = copy->from->ops->get_meta(copy->from, (enum meta_key)key, &value);
		if (r == 0 && key == META_EVENT_BASE)
			copy->last_event = value;
		if (r == 0 && !is_of_file((enum meta_key)key))
			r = PUT(copy, put_meta, (enum meta_key)key, value);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

static const struct {
	const char *name;
	int (*copy)(struct copy *copy);
} tables[] = {
	{"meta", facts},
	{"name", names},
	{"task", tasks},
	{"task_body", bodies},
	{"task_extra", extras},
	{"event", events},
	{"task_base", bases},
	{"task_id", ids},
	{"task_key", keys},
	{"edge", edges},
	{"worker", workers},
	{"small", smalls},
	{"token", tokens},
	{"idem", idems},
};

int copy_rows(struct backend *from, struct backend *to, const struct copy_options *options,
	struct copied *ret_copied)
{
	static const struct copy_options none;
	struct copy copy = {.from = from, .to = to, .options = options ? options : &none};
	int r = to->ops->begin(to);

	buf_init(&copy.key, KEY_BYTES_MAX);
	for (size_t i = 0; r == 0 && i < sizeof tables / sizeof *tables; i++)
		r = tables[i].copy(&copy);
	if (r == 0)
		r = backend_commit(to);
	if (r != 0)
		to->ops->rollback(to);
	buf_done(&copy.key);
	*ret_copied = (struct copied){copy.rows, copy.last_event};
	return r;
}

int copy_check_table(struct backend *from, uint32_t number, const char **ret_table)
{
	static const struct copy_options none;
	struct copy copy = {.from = from, .options = &none};

	if (number >= sizeof tables / sizeof *tables)
		return -ENOENT;
	*ret_table = tables[number].name;
	buf_init(&copy.key, KEY_BYTES_MAX);
	int r = tables[number].copy(&copy);
	buf_done(&copy.key);
	return r;
}

static int stop_at_one(void *context, const struct task_row *row)
{
	(void)context;
	(void)row;
	return 1;
}

int copy_is_empty(struct backend *backend)
{
	int64_t starts;
	int r = backend->ops->get_meta(backend, META_STARTS, &starts);

	if (r != -ENOENT)
		return r < 0 ? r : 0;
	r = backend->ops->page_tasks(backend, INT64_MIN, 1, stop_at_one, NULL);
	return r < 0 ? r : r == 0;
}
