/*
 * stint top: how things stand, on a screen that is kept fresh. It asks the server once a second whether something happened, and
 * reads the lists again when it did, or every five seconds; so leases and heartbeats are never older than that.
 *
 * A key acts on the row in focus and on the question that this row shows: an answer carries the question's id, and no key acts on a row
 * that came into focus by itself less than half a second ago.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/cli.h"
#include "cli/top/board.h"
#include "cli/top/keys.h"
#include "cli/top/raw.h"
#include "cli/verb/task_view.h"

enum {
	TICK_MS = 1000,   /* ages and countdowns are drawn anew */
	POLL_MS = 1000,   /* has something happened? */
	LISTS_MS = 5000,  /* heartbeats come without an event */
	RETRY_MS = 3000,  /* while the server is away */
	ANSWER_MS = 3000, /* so long a request may take; keys wait meanwhile */
	SETTLE_MS = 500,  /* a row or a prompt that is younger takes no key */
	ADOPT_MS = 10000, /* without a key, at the top of the list: rows go where they belong */
	ESCAPE_MS = 50,   /* ESC alone, or the beginning of a key? */
	ROWS_ASKED = 190, /* of each group */
	ENDED_ASKED = 50,
	UNDO_MS = 10000, /* so long u calls back what was done last */
	LOG_BYTES = 8192,
	FRAME_BYTES_MAX = 16 << 20,
	TYPED_BYTES = 1000,
};

/* What a prompt is for. */
enum purpose { FOR_CANCEL, FOR_DENIAL, FOR_ANSWER, FOR_REJECTION, FOR_FILTER };

struct top {
	struct cli *cli;
	struct board board;
	struct screen shown, wanted;
	struct reply tasks[STAND_GROUPS], workers, queues, log;
	char event[32], server[256], filter[TYPED_BYTES], said[BOARD_TEXT_BYTES], asks[BOARD_TEXT_BYTES];
	char typed[TYPED_BYTES];
	size_t typed_len;
	enum purpose purpose;
	/* The thing that the prompt is about, as it was when the prompt came. */
	char about[BOARD_ID_BYTES], question[BOARD_ID_BYTES], gate[BOARD_ID_BYTES];
	char log_of[BOARD_ID_BYTES];     /* the task whose output is shown */
	char focus_asks[BOARD_ID_BYTES]; /* the question of the row in focus */
	int64_t settled_ms;              /* when the row in focus, or the prompt, came */
	int64_t key_ms, polled_ms, lists_ms;
	const char *undo; /* path of what calls back the last change; NULL: nothing does */
	char undo_of[BOARD_ID_BYTES];
	int64_t undo_until_ms;
	bool goes; /* g was typed: the next key names a page */
	bool quits;
};

static void copy_text(char *to, size_t room, struct span text)
{
	snprintf(to, room, "%.*s", SPAN_ARGS(utf8_cut(text, room - 1)));
}

static void say(struct top *top, bool bad, const char *text)
{
	copy_text(top->said, sizeof top->said, span_of(text));
	top->board.said_is_bad = bad;
}

/* ---- asking ------------------------------------------------------------------------------------------------------- */

/* Nothing is printed: the screen says what is wrong. False: no answer, or a refusal. */
static bool look(
	struct top *top, const char *path, const char *name, const char *query, struct reply *ret_reply)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = path,
		.names = {name},
		.query = span_of(query),
		.timeout_ms = ANSWER_MS,
		.optional = true,
		.keeps_refusals = true};

	*ret_reply = (struct reply){0};
	return server_ask(top->cli, &question, ret_reply) == 0;
}

static bool is_good(const struct reply *reply)
{
	return reply->status < 300;
}

/* A list in place of the one before. One that this token may not see is empty. */
static bool renew(struct top *top, const char *path, const char *query, struct reply *list, bool *ret_more)
{
	struct reply reply;

	if (!look(top, path, NULL, query, &reply))
		return false;
	if (!is_good(&reply)) {
		bool away = reply.status >= 500;
		reply_done(&reply);
		if (away)
			return false;
	}
	*ret_more = reply.next.len > 0;
	reply_done(list);
	*list = reply;
	list->next = (struct span){0}; /* it would not outlive this round */
	return true;
}

/* The board looks at what the replies have, also after one of them failed. */
static void lend(struct top *top)
{
	for (size_t i = 0; i < STAND_GROUPS; i++)
		top->board.tasks[i] = top->tasks[i].root;
	top->board.workers = top->workers.root;
	top->board.queues = top->queues.root;
	top->board.log = field_text(top->log.root, "data");
}

/* The end of the output of the task in focus. */
static void read_log(struct top *top)
{
	const struct board_row *focus = board_focus(&top->board);
	bool task = top->board.tab == TAB_TASKS || top->board.tab == TAB_INBOX;
	struct reply head = {0};

	reply_done(&top->log);
	top->board.log = (struct span){0};
	copy_text(top->log_of, sizeof top->log_of, span_of(focus ? focus->id : ""));
	if (!focus || !task || field_int(focus->item, "attempt", 0) == 0)
		return;
	if (look(top, "/api/tasks/*/log", focus->id, "limit=16", &head) && is_good(&head)) {
		int64_t length = field_int(head.root, "length", 0);
		const char *query = cli_text(top->cli, "limit=%d&after=%lld", LOG_BYTES,
			(long long)(length > LOG_BYTES ? length - LOG_BYTES : 0));
		if (look(top, "/api/tasks/*/log", focus->id, query, &top->log))
			top->log.next = (struct span){0};
	}
	reply_done(&head);
	top->board.log = is_good(&top->log) ? field_text(top->log.root, "data") : (struct span){0};
}

static void settle(struct top *top)
{
	top->settled_ms = top->cli->now_ms;
}

/* Rows and focus after the lists have changed. */
static void arrange(struct top *top, bool adopt)
{
	bool rests = top->board.focus == 0 && top->board.prompt == PROMPT_NONE &&
		top->cli->now_ms - top->key_ms >= ADOPT_MS;

	if (board_arrange(&top->board, adopt || rests))
		settle(top);
	const struct board_row *focus = board_focus(&top->board);
	struct span asks = field_text(field_get(focus ? focus->item : NULL, "question"), "id");
	if (!span_equal(asks, span_of(top->focus_asks)))
		settle(top); /* it asks something else now */
	copy_text(top->focus_asks, sizeof top->focus_asks, asks);
}

static bool read_lists(struct top *top)
{
	struct cli *cli = top->cli;
	const char *filter = top->filter[0]
		? cli_text(cli, "&q=%.*s", SPAN_ARGS(cli_encode(cli, span_of(top->filter))))
		: "";
	bool good = true, more;

	for (size_t i = 0; good && i < STAND_GROUPS; i++) {
		good = renew(top, "/api/tasks",
			cli_text(cli, "state=%s&include=why&limit=%d%s", stand_states[i],
				i == STAND_ENDED ? ENDED_ASKED : ROWS_ASKED, filter),
			&top->tasks[i], &more);
		if (good && i == STAND_ENDED)
			top->board.more_ended = more;
	}
	good = good && renew(top, "/api/workers", "", &top->workers, &more) &&
		renew(top, "/api/queues", "", &top->queues, &more);
	lend(top);
	arrange(top, false);
	if (good)
		read_log(top);
	return good;
}

/* The number of the newest event; true: it is another one. */
static bool poll_events(struct top *top, bool *ret_changed)
{
	struct reply reply;

	if (!look(top, "/api/events", NULL, "after=now&limit=1", &reply))
		return false;
	struct span next = field_text(reply.root, "next");
	bool good = is_good(&reply);
	*ret_changed = !span_equal(next, span_of(top->event));
	copy_text(top->event, sizeof top->event, next);
	top->board.event = span_of(top->event);
	reply_done(&reply);
	return good;
}

static void refresh(struct top *top, bool now)
{
	struct cli *cli = top->cli;
	bool changed = now, good = true;

	if (!now && cli->now_ms < top->board.next_try_ms)
		return;
	good = poll_events(top, &changed);
	if (good && (now || changed || cli->now_ms - top->lists_ms >= LISTS_MS)) {
		good = read_lists(top);
		top->lists_ms = cli->now_ms;
	}
	cli->now_ms = clock_wall_ms();
	if (good)
		top->board.fetched_ms =
			changed || cli->now_ms - top->lists_ms < LISTS_MS ? top->lists_ms : cli->now_ms;
	top->board.next_try_ms = cli->now_ms + (good ? POLL_MS : RETRY_MS);
}

/* ---- acting -------------------------------------------------------------------------------------------------------- */

/* What calls a change back. */
static const struct inverse {
	const char *path, *back, *done;
} inverses[] = {
	{"/api/tasks/*/cancel", "/api/tasks/*/retry", "gets another try"},
	{"/api/queues/*/pause", "/api/queues/*/resume", "is open"},
	{"/api/queues/*/resume", "/api/queues/*/pause", "is paused"},
};

static const struct inverse *inverse_of(const char *path)
{
	for (size_t i = 0; i < sizeof inverses / sizeof *inverses; i++) {
		if (strcmp(inverses[i].path, path) == 0)
			return &inverses[i];
	}
	return NULL;
}

static void note_undo(struct top *top, const char *path, const char *id)
{
	top->undo = inverse_of(path) ? path : NULL;
	copy_text(top->undo_of, sizeof top->undo_of, span_of(id));
	top->undo_until_ms = top->cli->now_ms + UNDO_MS;
}

/* Does it, and says what came of it. */
static void act(struct top *top, const char *path, const char *id, const char *second, struct span body,
	const char *done)
{
	struct cli *cli = top->cli;
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = path,
		.names = {id, second},
		.body = body,
		.timeout_ms = ANSWER_MS,
		.optional = true,
		.keeps_refusals = true};
	cleanup(reply_done) struct reply reply = {0};

	if (server_ask(cli, &question, &reply) != 0) {
		say(top, true, cli_text(cli, "no answer from the server: it may have been done or not"));
	} else if (!is_good(&reply)) {
		struct span detail = field_text(reply.root, "detail");
		say(top, true,
			cli_text(cli, "%s: %.*s (%s)", id,
				SPAN_ARGS(detail.len > 0 ? detail : SPAN("the server refuses")),
				field_cstr(cli, reply.root, "code")));
	} else {
		note_undo(top, path, id);
		say(top, false, cli_text(cli, "%s %s%s", id, done, top->undo ? "; u calls it back" : ""));
	}
	refresh(top, true);
}

static void undo(struct top *top)
{
	const struct inverse *inverse =
		top->undo && top->cli->now_ms < top->undo_until_ms ? inverse_of(top->undo) : NULL;
	char id[BOARD_ID_BYTES];

	if (!inverse) {
		say(top, false, "nothing to call back");
		return;
	}
	copy_text(id, sizeof id, span_of(top->undo_of));
	act(top, inverse->back, id, NULL, SPAN("{}"), inverse->done);
	top->undo = NULL;
}

/* Into the clipboard of the terminal, however far away that is (OSC 52). One that has none ignores it. */
static void copy_command(struct top *top)
{
	cleanup(buf_done) struct buf out = {0};
	const char *command = board_command(&top->board, top->cli);

	buf_init(&out, 16 << 10);
	buf_put_span(&out, SPAN("\033]52;c;"));
	size_t quote = out.len;
	json_put_base64(&out, span_of(command));
	buf_put_byte(&out, '\a');
	if (buf_fault(&out))
		return;
	memmove(out.data + quote, out.data + quote + 1, out.len - quote - 3); /* without its quotes */
	out.data[out.len - 3] = '\a';
	if (raw_write((struct span){out.data, out.len - 2}) == 0)
		say(top, false, cli_text(top->cli, "copied: %s", command));
}

static void answer(
	struct top *top, const char *id, const char *question, const char *text, const char *allow, bool deny)
{
	struct json_object *body = cli_body(top->cli);

	if (question[0])
		json_member_string(body, "question", span_of(question));
	if (text && text[0])
		json_member_string(body, "text", span_of(text));
	if (allow)
		json_member_string(body, "allow", span_of(allow));
	if (deny)
		json_member_bool(body, "deny", true);
	act(top, "/api/tasks/*/answer", id, NULL, cli_body_end(top->cli),
		deny            ? "was told no"
			: allow ? "is allowed that"
				: "has its answer");
}

static void judge(struct top *top, const char *id, const char *gate, bool passes, const char *reason)
{
	struct json_object *body = cli_body(top->cli);

	json_member_string(body, "verdict", passes ? SPAN("pass") : SPAN("reject"));
	if (reason && reason[0])
		json_member_string(body, "reason", span_of(reason));
	act(top, "/api/tasks/*/gates/*", id, gate, cli_body_end(top->cli),
		cli_text(top->cli, passes ? "has passed gate %s" : "is rejected at gate %s", gate));
}

/* The one gate that it waits at; NULL, and why not is said. */
static const char *only_gate(struct top *top, yyjson_val *task)
{
	size_t count;
	const char *last, *all = view_open_gates(top->cli, task, &count, &last);

	if (count == 1)
		return last;
	say(top, true,
		cli_text(top->cli, "it waits at %zu gates (%s): stint approve %s --gate NAME", count, all,
			field_cstr(top->cli, task, "id")));
	return NULL;
}

static void ask_for(struct top *top, enum purpose purpose, const struct board_row *row, const char *asks)
{
	top->purpose = purpose;
	top->board.prompt = purpose == FOR_CANCEL ? PROMPT_CONFIRM : PROMPT_TEXT;
	copy_text(top->asks, sizeof top->asks, span_of(asks));
	copy_text(top->about, sizeof top->about, span_of(row ? row->id : ""));
	copy_text(top->question, sizeof top->question,
		row ? field_text(field_get(row->item, "question"), "id") : SPAN(""));
	top->typed_len = 0;
	top->typed[0] = 0;
	if (purpose == FOR_FILTER) {
		copy_text(top->typed, sizeof top->typed, span_of(top->filter));
		top->typed_len = strlen(top->typed);
	}
	settle(top);
}

static void end_prompt(struct top *top)
{
	top->board.prompt = PROMPT_NONE;
}

static void adopt_filter(struct top *top, const char *words)
{
	copy_text(top->filter, sizeof top->filter, span_of(words));
	top->board.row_count = top->board.focus = 0;
	refresh(top, true);
}

/* Enter in a field of text. */
static void send_typed(struct top *top)
{
	end_prompt(top);
	switch (top->purpose) {
	case FOR_DENIAL:
		answer(top, top->about, top->question, top->typed, NULL, true);
		break;
	case FOR_ANSWER:
		if (top->typed[0])
			answer(top, top->about, top->question, top->typed, NULL, false);
		break;
	case FOR_REJECTION:
		judge(top, top->about, top->gate, false, top->typed);
		break;
	case FOR_FILTER:
		adopt_filter(top, top->typed);
		break;
	case FOR_CANCEL:
		break;
	}
}

/* ---- keys ------------------------------------------------------------------------------------------------------------ */

static bool is_task_tab(const struct top *top)
{
	return top->board.tab == TAB_TASKS || top->board.tab == TAB_INBOX;
}

static void show_tab(struct top *top, enum board_tab tab)
{
	top->board.tab = tab;
	top->board.row_count = top->board.focus = top->board.first = 0;
	top->board.open = false;
	arrange(top, true);
}

static void on_yes(struct top *top, const struct board_row *row)
{
	yyjson_val *task = row->item, *question = field_get(task, "question");
	struct cli *cli = top->cli;

	if (board_is_in_review(task)) {
		const char *gate = only_gate(top, task);
		if (gate)
			judge(top, row->id, gate, true, NULL);
	} else if (board_is_asking(task) && field_get(question, "tool")) {
		answer(top, row->id, field_cstr(cli, question, "id"), NULL, "once", false);
	} else if (board_is_asking(task)) {
		ask_for(top, FOR_ANSWER, row, cli_text(cli, "Answer %s:", row->id));
	}
}

static void on_no(struct top *top, const struct board_row *row)
{
	struct cli *cli = top->cli;

	if (board_is_in_review(row->item)) {
		const char *gate = only_gate(top, row->item);
		if (gate) {
			copy_text(top->gate, sizeof top->gate, span_of(gate));
			ask_for(top, FOR_REJECTION, row, cli_text(cli, "Reject %s, say why:", row->id));
		}
	} else if (board_is_asking(row->item)) {
		ask_for(top, FOR_DENIAL, row, cli_text(cli, "Deny %s, say why:", row->id));
	}
}

/* A key that changes something about the task in focus. */
static void on_task_key(struct top *top, uint32_t key, const struct board_row *row)
{
	yyjson_val *task = row->item, *question = field_get(task, "question");
	yyjson_val *option =
		key >= '1' && key <= '9' ? yyjson_arr_get(field_get(question, "options"), key - '1') : NULL;
	struct cli *cli = top->cli;

	if (cli->now_ms - top->settled_ms < SETTLE_MS)
		return; /* it came under the finger by itself */
	if (key == 'a') {
		on_yes(top, row);
	} else if (key == 'A' && board_is_asking(task) && field_get(question, "tool")) {
		answer(top, row->id, field_cstr(cli, question, "id"), NULL, "task", false);
	} else if (key == 'd') {
		on_no(top, row);
	} else if (option && board_is_asking(task)) {
		answer(top, row->id, field_cstr(cli, question, "id"),
			cli_text(cli, "%.*s", SPAN_ARGS(json_text(option))), NULL, false);
	} else if (key == 'r' && board_may_retry(task)) {
		act(top, "/api/tasks/*/retry", row->id, NULL, SPAN("{}"), "gets another try");
	} else if (key == 'C' && board_may_cancel(task)) {
		ask_for(top, FOR_CANCEL, row, cli_text(cli, "Cancel %s? y yes, any other key no:", row->id));
	}
}

static void on_queue_key(struct top *top, uint32_t key, const struct board_row *row)
{
	bool open = span_equal(field_text(row->item, "state"), SPAN("open"));

	if (key == 'p' && top->cli->now_ms - top->settled_ms >= SETTLE_MS)
		act(top, open ? "/api/queues/*/pause" : "/api/queues/*/resume", row->id, NULL, SPAN("{}"),
			open ? "is paused" : "is open");
}

/* Where to: false, it is no such key. */
static bool on_move_key(struct top *top, uint32_t key)
{
	int64_t page = (int64_t)board_page(&top->board, top->shown.rows);
	const struct {
		uint32_t key;
		int64_t by;
	} moves[] = {{'j', 1}, {KEY_DOWN, 1}, {'k', -1}, {KEY_UP, -1}, {KEY_PAGE_DOWN, page},
		{KEY_PAGE_UP, -page}, {KEY_HOME, -BOARD_ROWS_MAX}, {KEY_END, BOARD_ROWS_MAX}};

	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		if (moves[i].key == key) {
			board_move_focus(&top->board, moves[i].by);
			return true;
		}
	}
	return false;
}

static void on_page_key(struct top *top, uint32_t key)
{
	static const char letters[TAB_COUNT] = {
		[TAB_TASKS] = 't', [TAB_INBOX] = 'i', [TAB_WORKERS] = 'w', [TAB_QUEUES] = 'q'};

	top->goes = false;
	for (enum board_tab tab = 0; tab < TAB_COUNT; tab++) {
		if (key == (uint32_t)letters[tab])
			show_tab(top, tab);
	}
}

static void on_list_key(struct top *top, uint32_t key)
{
	struct board *board = &top->board;

	top->said[0] = 0;
	if (top->goes) {
		on_page_key(top, key);
		return;
	}
	if (on_move_key(top, key)) {
		const struct board_row *focus = board_focus(board);
		copy_text(top->focus_asks, sizeof top->focus_asks,
			field_text(field_get(focus ? focus->item : NULL, "question"), "id"));
		return;
	}
	if (key == 'q')
		top->quits = true;
	else if (key == 'g')
		top->goes = true;
	else if (key == '?')
		board->prompt = PROMPT_KEYS;
	else if (key == '.')
		arrange(top, true);
	else if (key == 'u')
		undo(top);
	else if (key == 'c')
		copy_command(top);
	else if (key == KEY_TAB || key == KEY_RIGHT)
		show_tab(top, (board->tab + 1) % TAB_COUNT);
	else if (key == KEY_BACK_TAB || key == KEY_LEFT)
		show_tab(top, (board->tab + TAB_COUNT - 1) % TAB_COUNT);
	else if ((key == KEY_ENTER || key == 'f') && is_task_tab(top))
		board->open = !board->open;
	else if (key == '/' && is_task_tab(top))
		ask_for(top, FOR_FILTER, NULL, "Words in the task:");
	else if (key == KEY_ESCAPE && board->open)
		board->open = false;
	else if (key == KEY_ESCAPE && top->filter[0])
		adopt_filter(top, "");
	else if (board_focus(board) && is_task_tab(top))
		on_task_key(top, key, board_focus(board));
	else if (board_focus(board) && board->tab == TAB_QUEUES)
		on_queue_key(top, key, board_focus(board));
}

static void type(struct top *top, uint32_t key, const char *bytes, size_t len)
{
	if (key == KEY_ESCAPE) {
		end_prompt(top);
	} else if (key == KEY_ENTER) {
		send_typed(top);
	} else if (key == KEY_ERASE) {
		while (top->typed_len > 0 && ((unsigned char)top->typed[--top->typed_len] & 0xc0) == 0x80)
			;
		top->typed[top->typed_len] = 0;
	} else if (key != KEY_NONE && key < KEY_UP && top->typed_len + len < sizeof top->typed) {
		memcpy(top->typed + top->typed_len, bytes, len);
		top->typed_len += len;
		top->typed[top->typed_len] = 0;
	}
}

static void on_key(struct top *top, uint32_t key, const char *bytes, size_t len)
{
	struct cli *cli = top->cli;

	cli->now_ms = clock_wall_ms();
	top->key_ms = cli->now_ms;
	switch (top->board.prompt) {
	case PROMPT_NONE:
		on_list_key(top, key);
		break;
	case PROMPT_KEYS:
		end_prompt(top);
		break;
	case PROMPT_TEXT:
		type(top, key, bytes, len);
		break;
	case PROMPT_CONFIRM:
		if (cli->now_ms - top->settled_ms < SETTLE_MS)
			break; /* typed before the question was read */
		end_prompt(top);
		if (key == 'y')
			act(top, "/api/tasks/*/cancel", top->about, NULL, SPAN("{}"),
				"is cancelled, or told to stop");
		break;
	}
}

/* Waits for keys until the next tick. */
static int read_keys(struct top *top)
{
	char bytes[512];
	size_t len = 0;
	int r = raw_read(bytes, sizeof bytes, TICK_MS);

	while (r > 0) {
		len += (size_t)r;
		size_t at = 0;
		while (at < len && !top->quits) {
			uint32_t key;
			size_t used = key_read(bytes + at, len - at, 0, &key);
			if (used == 0)
				break;
			on_key(top, key, bytes + at, used);
			at += used;
		}
		memmove(bytes, bytes + at, len - at);
		len -= at;
		if (len == 0 || top->quits)
			return 0;
		r = len < sizeof bytes ? raw_read(bytes + len, sizeof bytes - len, ESCAPE_MS) : 0;
		if (r == 0) {
			uint32_t key;
			size_t used = key_read(bytes, len, 1, &key);
			on_key(top, key, bytes, used);
		}
	}
	return r;
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------- */

/* One frame: the cells that have changed, in one write. */
static int draw(struct top *top)
{
	cleanup(buf_done) struct buf out = {0};
	size_t rows, columns;

	raw_size(&rows, &columns);
	if (raw_was_disturbed())
		screen_done(&top->shown);
	if (screen_resize(&top->wanted, rows, columns) < 0)
		return -ENOMEM;
	board_draw(&top->board, top->cli, &top->wanted);
	buf_init(&out, FRAME_BYTES_MAX);
	bool anew = top->shown.rows != top->wanted.rows || top->shown.columns != top->wanted.columns;
	buf_printf(&out, "\033[?2026h%s", anew ? "\033[0m\033[2J" : ""); /* shown when it is complete */
	int r = screen_put_changes(&out, &top->shown, &top->wanted, top->cli->term.color);
	buf_printf(&out, "\033[?2026l");
	if (r == 0)
		r = raw_write(buf_span(&out));
	struct screen was = top->shown;
	top->shown = top->wanted;
	top->wanted = was;
	return r;
}

static int go_on(struct top *top)
{
	struct cli *cli = top->cli;
	int r = 0;

	while (r == 0 && !top->quits) {
		arena_reset(&cli->arena); /* of the last round: this may go on for weeks */
		cli->now_ms = clock_wall_ms();
		raw_stop_if_asked();
		refresh(top, false);
		const struct board_row *focus = board_focus(&top->board);
		if (focus && strcmp(focus->id, top->log_of) != 0 && top->board.next_try_ms > cli->now_ms)
			read_log(top);
		r = draw(top);
		if (r == 0)
			r = read_keys(top);
	}
	return r == -EPIPE || r == -EIO ? EXIT_FAILED : r; /* the terminal is gone: nobody reads a message */
}

static void done(struct top *top)
{
	for (size_t i = 0; i < STAND_GROUPS; i++)
		reply_done(&top->tasks[i]);
	reply_done(&top->workers);
	reply_done(&top->queues);
	reply_done(&top->log);
	screen_done(&top->shown);
	screen_done(&top->wanted);
}

/* The name of this computer, or the address of another. */
static void name_server(struct top *top)
{
	const char *url = top->cli->place.url, *host = strstr(url, "://");
	bool here = !host || strncmp(host, "://127.", 7) == 0 || strncmp(host, "://[::1]", 8) == 0 ||
		strncmp(host, "://localhost", 12) == 0;

	if (!here)
		copy_text(top->server, sizeof top->server, span_of(host + 3));
	else if (gethostname(top->server, sizeof top->server) != 0)
		copy_text(top->server, sizeof top->server, SPAN("this computer"));
	top->server[sizeof top->server - 1] = 0;
}

static int watch(struct cli *cli)
{
	struct top top = {.cli = cli, .shown.utf8 = cli->term.utf8, .wanted.utf8 = cli->term.utf8};

	name_server(&top);
	top.board.server = span_of(top.server);
	top.board.filter = top.filter;
	top.board.said = top.said;
	top.board.asks = top.asks;
	top.board.typed = top.typed;
	top.board.fetched_ms = cli->now_ms;
	refresh(&top, true);
	int r = raw_begin();
	if (r == 0)
		r = go_on(&top);
	raw_end();
	done(&top);
	return r < 0 ? cli_fail_fault(cli, r) : r;
}

static int run(struct cli *cli)
{
	const struct ask question = {
		.method = HTTP_METHOD_GET, .path = "/api/tasks", .query = SPAN("limit=1")};
	cleanup(reply_done) struct reply reply = {0};

	if (!cli->term.moves)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint ls",
			cli->term.tty
				? "top needs a terminal whose cursor can be moved; TERM says that this one is dumb"
				: "top needs a terminal; standard output is not one");
	if (!raw_is_terminal())
		return cli_fail(cli, EXIT_USAGE, "usage", "stint ls",
			"top needs a terminal; standard input is not one");
	int r = server_ask(cli, &question, &reply); /* what is wrong from the beginning is said as usual */
	return r != 0 ? r : watch(cli);
}

const struct verb verb_top = {
	.name = "top",
	.brief = "live board",
	.text = "Shows on the whole screen what needs you, what runs with its last words, and what waits; and on further pages the inbox, "
		"the workers with their leases and heartbeats, and the queues with what holds them back. The keys on the last line are "
		"what the row in focus allows: retry, cancel, allow, deny, answer; ? lists all of them and q quits. Rows keep their "
		"place: new ones are counted, and . shows them. It needs a terminal of at least 80 columns and 24 lines.",
	.examples = "stint top\nssh -t build-host stint top\n",
	.run = run,
};
