/*
 * Sessions: a task gets a label, under which it is found and its attempts are told.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/read/sound.h"

enum {
	LABEL_MARK =
		0x1f, /* before the label in its key, and behind it and the notice in what is kept with the task */
	NEXT_PLACE = -1, /* of the rows of task 0: how many sessions there ever were */
	/* before the label: how the session came to be */
	MARK_OWN = '+',
	MARK_LENT = '-',
	MARK_FOUND = '=',
};

static char mark_of(const struct session *session)
{
	return session->own ? MARK_OWN : session->found ? MARK_FOUND : MARK_LENT;
}

static const int64_t no_task = 0;

static int put_number(struct buf *out, uint64_t number, char behind)
{
	buf_put_decimal(out, number);
	buf_put_byte(out, behind);
	return buf_fault(out);
}

static uint64_t take_number(struct span *text)
{
	uint64_t number = 0;

	while (text->len > 0) {
		char c = *text->data++;
		text->len--;
		if (c < '0' || c > '9')
			break;
		number = number * 10 + (uint64_t)(c - '0');
	}
	return number;
}

static int key_of(struct arena *arena, struct span label, struct span *ret_key)
{
	char text[1 + COMMAND_ID_MAX] = {LABEL_MARK};

	assert(label.len <= COMMAND_ID_MAX);
	memcpy(text + 1, label.data, label.len);
	return arena_copy(arena, (struct span){text, 1 + label.len}, ret_key);
}

int store_find_session(struct store *store, struct span label, int64_t *ret_seq)
{
	char text[1 + COMMAND_ID_MAX] = {LABEL_MARK};

	if (label.len == 0 || label.len > COMMAND_ID_MAX)
		return -ENOENT;
	memcpy(text + 1, label.data, label.len);
	return store_rows(store, find_key, (struct span){text, 1 + label.len}, ret_seq);
}

/* What stands before the next mark; the rest of the text is what is behind it. */
static struct span take_part(struct span *text)
{
	const char *mark = text->len > 0 ? memchr(text->data, LABEL_MARK, text->len) : NULL;
	struct span part = {text->data, mark ? (size_t)(mark - text->data) : 0};

	if (mark)
		*text = (struct span){mark + 1, text->len - part.len - 1};
	return part;
}

static void split(struct span kept, struct session_document *ret_session)
{
	*ret_session = (struct session_document){0};
	if (kept.len == 0)
		return;
	ret_session->own = kept.data[0] == MARK_OWN;
	ret_session->found = kept.data[0] == MARK_FOUND;
	kept = (struct span){kept.data + 1, kept.len - 1};
	ret_session->label = take_part(&kept);
	ret_session->notice = take_part(&kept);
	ret_session->spec = kept;
}

int store_read_session(
	struct store *store, int64_t seq, struct arena *arena, struct session_document *ret_session)
{
	struct span kept;
	int r = store_rows(store, get_extra, seq, EXTRA_SPAWNED, 0, arena, &kept);

	if (r < 0)
		return r;
	split(kept, ret_session);
	return ret_session->label.len <= COMMAND_ID_MAX ? 0 : store_damaged(store, "task_extra", seq);
}

/* ---- spawning ---------------------------------------------------------------------------------------- */

int session_taken(
	struct turn *turn, const struct command_spawn *spawn, struct result *result, bool *ret_is_answered)
{
	struct turn_task *view;
	struct span key;
	int64_t seq;

	*ret_is_answered = false;
	if (spawn->label.len == 0)
		return 0;
	int r = key_of(&turn->arena, spawn->label, &key);
	if (r == 0)
		r = store_rows(turn->store, find_key, key, &seq);
	if (r == 0)
		r = turn_task(turn, seq, &view);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*ret_is_answered = true;
	if (!command_sees(turn, &view->task) || task_state_is_final(view->task.state))
		return command_refuse(result, REFUSED_TASK_EXISTS);
	result->deduplicated = true;
	result->task = view->task;
	return turn_id_text(turn, view, &result->id);
}

/* The place of the session among all there ever were. */
static int put_place(struct turn *turn, const struct session *session)
{
	uint64_t count = turn->store->sessions.count + turn->spawned_count;
	struct buf *out = &turn->record;

	buf_clear(out);
	put_number(out, (uint64_t)session->seq, mark_of(session));
	buf_put_span(out, session->label);
	int r = turn_put_record(turn, no_task, EXTRA_SPAWNED, (int64_t)(count % SESSIONS_MAX));
	buf_clear(out);
	put_number(out, count + 1, ' ');
	return r < 0 ? r : turn_put_record(turn, no_task, EXTRA_SPAWNED, NEXT_PLACE);
}

/* What is kept with the task itself; a label that it had before is no longer its own. */
static int put_kept(struct turn *turn, const struct session *session, const struct command_spawn *spawn)
{
	struct buf *out = &turn->record;
	struct span key;

	int r = session_forget(turn, session->seq);
	if (r == 0)
		r = key_of(&turn->arena, session->label, &key);
	if (r < 0)
		return r;
	turn_put(turn, put_key, key, session->seq);
	buf_clear(out);
	buf_put_byte(out, mark_of(session));
	buf_put_span(out, session->label);
	buf_put_byte(out, LABEL_MARK);
	buf_put_span(out, spawn->notice);
	buf_put_byte(out, LABEL_MARK);
	buf_put_span(out, spawn->spec);
	return turn_put_record(turn, session->seq, EXTRA_SPAWNED, 0);
}

int session_spawn(struct turn *turn, struct turn_task *view, const struct command_spawn *spawn, bool own)
{
	struct session session = {.seq = view->task.seq,
		.own = own,
		.found = spawn->found,
		.fence = spawn->found ? view->task.fence : 0,
		.label = spawn->label};
	int r = session.label.len == 0 ? turn_id_text(turn, view, &session.label) : 0;

	if (r == 0)
		r = put_kept(turn, &session, spawn);
	if (r == 0)
		r = put_place(turn, &session);
	return r < 0 ? r : turn_write_session(turn, view, &session);
}

/* The label that a worker gives is another task's, or a person has given this task one: then it stays without. */
static int is_free(struct turn *turn, int64_t seq, struct span label, bool *ret_free)
{
	struct session_document was = {0};
	int64_t other = seq;

	int r = store_find_session(turn->store, label, &other);
	if (r == 0 || r == -ENOENT)
		r = store_read_session(turn->store, seq, &turn->arena, &was);
	*ret_free = other == seq && (r == -ENOENT || was.found);
	return r == -ENOENT ? 0 : r;
}

int session_find(struct turn *turn, struct turn_task *view, const struct command_spawn *spawn)
{
	bool is_one;

	if (spawn->label.len == 0 || spawn->label.len > COMMAND_ID_MAX ||
		span_equal(turn_session_label(turn, view->task.seq), spawn->label))
		return 0;
	int r = is_free(turn, view->task.seq, spawn->label, &is_one);
	return r < 0 || !is_one ? r : session_spawn(turn, view, spawn, false);
}

int store_read_prompt(struct store *store, int64_t seq, struct arena *arena, struct span *ret_prompt)
{
	return store_get_kept(store, seq, EXTRA_PROMPT, arena, ret_prompt);
}

int store_read_agent(struct store *store, int64_t seq, struct arena *arena, struct span *ret_agent)
{
	return store_get_kept(store, seq, EXTRA_AGENT, arena, ret_agent);
}

/* The task goes, or gets another label. */
int session_forget(struct turn *turn, int64_t seq)
{
	struct session_document was;
	struct span key;

	int r = store_read_session(turn->store, seq, &turn->arena, &was);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = key_of(&turn->arena, was.label, &key);
	return r < 0 ? r : turn_put(turn, delete_key, key);
}

/* ---- at the start ------------------------------------------------------------------------------------ */

static int load_place(struct store *store, int64_t at, struct arena *arena)
{
	struct session session = {0};
	struct task_row row;
	struct span text;

	int r = store_rows(store, get_extra, no_task, EXTRA_SPAWNED, at, arena, &text);
	if (r < 0)
		return r == -ENOENT ? store_damaged(store, "task_extra", no_task) : r;
	const char *number = text.data;
	session.seq = (int64_t)take_number(&text);
	session.own = text.data > number && text.data[-1] == MARK_OWN;
	session.found = text.data > number && text.data[-1] == MARK_FOUND;
	session.label = text;
	if (session.seq <= 0 || text.len > COMMAND_ID_MAX)
		return store_damaged(store, "task_extra", no_task);
	if (index_find(&store->index, session.seq) == MAP_NONE) {
		r = store_rows(store, get_task, session.seq, arena, &row);
		session.ended_ms = r == 0 ? row.task.updated_ms : 1; /* purged since: long ago */
	}
	if (r == 0 || r == -ENOENT)
		r = sessions_reserve(&store->sessions);
	char *label = r == 0 ? index_copy(text) : NULL;
	if (!label)
		return r < 0 ? r : -ENOMEM;
	session.label.data = label;
	sessions_add(&store->sessions, &session);
	return 0;
}

int sessions_load(struct store *store)
{
	struct arena arena;
	struct span text;

	arena_init(&arena, 1 << 20);
	int r = store_rows(store, get_extra, no_task, EXTRA_SPAWNED, NEXT_PLACE, &arena, &text);
	uint64_t count = r == 0 ? take_number(&text) : 0;
	uint64_t at = count > SESSIONS_MAX ? count - SESSIONS_MAX : 0;
	if (r == -ENOENT)
		r = 0;
	for (store->sessions.count = at; r == 0 && at < count; at++) {
		arena_reset(&arena);
		r = load_place(store, (int64_t)(at % SESSIONS_MAX), &arena);
	}
	arena_done(&arena);
	return r;
}

/* ---- looking ----------------------------------------------------------------------------------------- */

int store_page_sessions(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, int64_t seq, int64_t ended_ms), void *context)
{
	const struct sessions *sessions = &store->sessions;
	uint64_t first = sessions->count > SESSIONS_MAX ? sessions->count - SESSIONS_MAX : 0;
	uint64_t from = first + *at, end = sessions->count - from > limit ? from + limit : sessions->count;
	int r = 0;

	if (from > sessions->count)
		end = from = sessions->count;
	for (; r == 0 && from < end; from++) {
		const struct session *session = &sessions->items[from % SESSIONS_MAX];
		if (session->seq != 0)
			r = each(context, session->seq, session->ended_ms);
	}
	*at = end < sessions->count ? (uint32_t)(end - first) : 0;
	return r;
}
