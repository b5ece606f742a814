/*
 * The frames of stint top: what is drawn, what of it is sent, and which rows stay where they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#undef fail /* the command has one of its own */

#include "cli/top/board.h"
#include "cli/top/keys.h"

enum { NOW_MS = 1700000000 };

struct stage {
	struct cli cli;
	struct board board;
	struct screen screen;
	yyjson_doc *docs[8];
	size_t doc_count;
};

static yyjson_val *read_json(struct stage *stage, const char *text)
{
	yyjson_doc *doc = NULL;

	assert_int_equal(json_read_reply(span_of(text), &doc), 0);
	stage->docs[stage->doc_count++] = doc;
	return yyjson_doc_get_root(doc);
}

static const char needs[] =
	"[{\"id\":\"t-9r4\",\"title\":\"Cut the 2.4 release branch\",\"state\":\"asking\",\"workerId\":\"slot-1\",\"attempt\":1,"
	"\"question\":{\"id\":\"q1\",\"tool\":\"Bash\",\"text\":\"May I?\",\"input\":{\"command\":\"git push\"}},"
	"\"updatedAt\":1699940000,\"createdAt\":1,\"why\":{\"text\":\"Wants to run git push\"}}]";
static const char running[] =
	"[{\"id\":\"t-9q2\",\"title\":\"Refuse \\u001b[31mfolded headers\",\"state\":\"running\",\"workerId\":\"slot-3\","
	"\"attempt\":3,\"spent\":2,\"createdAt\":1698200000,\"why\":{\"text\":\"Checks are running\"}}]";
static const char waiting[] =
	"[{\"id\":\"t-1\",\"title\":\"One\",\"state\":\"ready\",\"createdAt\":1697540000,\"why\":{\"text\":\"Behind 1 task\"}},"
	"{\"id\":\"t-2\",\"title\":\"Two\",\"state\":\"ready\",\"createdAt\":1697540000,\"why\":{\"text\":\"Behind 2 tasks\"}}]";
static const char workers[] =
	"[{\"workerId\":\"slot-3\",\"state\":\"active\",\"leaseMs\":252000,\"leaseGrantedMs\":300000,\"heartbeatAgeMs\":3000,"
	"\"held\":1,\"maxConcurrent\":2,\"tasks\":[\"t-9q2\"],\"host\":\"atlas\",\"anyQueue\":true},"
	"{\"workerId\":\"gone\",\"state\":\"inactive\"}]";
static const char queues[] =
	"[{\"name\":\"default\",\"state\":\"open\",\"tasks\":{\"asking\":1,\"running\":1,\"ready\":40}}]";

static void stage_begin(struct stage *stage, size_t columns, size_t rows)
{
	*stage = (struct stage){.cli.term = {.tty = true, .utf8 = true, .glyphs = true, .color = true},
		.cli.now_ms = NOW_MS,
		.screen.utf8 = true};
	arena_init(&stage->cli.arena, 1 << 20);
	struct board *board = &stage->board;
	board->filter = board->asks = board->typed = board->said = "";
	board->server = SPAN("atlas");
	board->event = SPAN("48211");
	board->fetched_ms = NOW_MS;
	board->tasks[STAND_NEEDS] = read_json(stage, needs);
	board->tasks[STAND_RUNNING] = read_json(stage, running);
	board->tasks[STAND_WAITING] = read_json(stage, waiting);
	board->workers = read_json(stage, workers);
	board->queues = read_json(stage, queues);
	assert_int_equal(screen_resize(&stage->screen, rows, columns), 0);
	board_arrange(board, true);
}

static void stage_end(struct stage *stage)
{
	for (size_t i = 0; i < stage->doc_count; i++)
		yyjson_doc_free(stage->docs[i]);
	screen_done(&stage->screen);
	arena_done(&stage->cli.arena);
}

static void stage_draw(struct stage *stage)
{
	assert_int_equal(screen_resize(&stage->screen, stage->screen.rows, stage->screen.columns), 0);
	board_draw(&stage->board, &stage->cli, &stage->screen);
}

static void expect_row(struct stage *stage, size_t row, const char *text)
{
	struct buf out;

	buf_init(&out, 10000);
	assert_int_equal(screen_put_row(&out, &stage->screen, row), 0);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, text);
	buf_done(&out);
}

/* ---- frames --------------------------------------------------------------------------------------------------------- */

static void a_small_screen_has_every_group_and_the_keys_of_the_focus(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 80, 24);
	stage_draw(&stage);
	expect_row(&stage, 1, "  Tasks 42  Inbox 1  Workers 1  Queues 1");
	expect_row(
		&stage, 2, " STATE      ID     TASK                    NOW                              AGE");
	expect_row(&stage, 3, " Needs you 1");
	expect_row(
		&stage, 4, "▌? asking   t-9r4  Cut the 2.4 release b…  Wants to run git push          1 min");
	expect_row(&stage, 5, " Running 1");
	expect_row(
		&stage, 6, " ● running  t-9q2  Refuse �[31mfolded he…  Checks are running            30 min");
	expect_row(&stage, 7, " Waiting 40");
	expect_row(
		&stage, 8, " ○ ready    t-1    One                     Behind 1 task                 41 min");
	expect_row(&stage, 18,
		"── t-9r4 Cut the 2.4 release branch ─────────────────────── 38 more waiting ↓ ──");
	expect_row(&stage, 19, " ? Asking. Wants to run git push");
	expect_row(&stage, 20, "   May I?");
	expect_row(&stage, 22,
		" $ stint approve t-9r4                                     • live · event 48211");
	expect_row(&stage, 23, " a allow  A for task  d deny  C cancel  j k move  Enter open  q quit");
	stage_end(&stage);
}

static void a_roomy_screen_has_attempts_workers_and_leases(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 120, 40);
	board_move_focus(&stage.board, 1);
	stage_draw(&stage);
	expect_row(&stage, 1, " 1 needs you. 1 task runs on slot-3 and 40 wait.");
	expect_row(&stage, 7,
		"▌● running    t-9q2  Refuse �[31mfolded headers       Checks are running                    ✗✗●  slot-3   ━━━─   30 min");
	expect_row(&stage, 32,
		" ● Running. Checks are running                                      slot-3 ━━━━━━━━━━── 4:12 left of 5:00, beat 3 s ago");
	stage_end(&stage);
}

static void without_news_nothing_is_counted_down(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 120, 40);
	board_move_focus(&stage.board, 1);
	stage.cli.now_ms = NOW_MS + 42000;
	stage.board.next_try_ms = NOW_MS + 45000;
	stage_draw(&stage);
	struct buf out;
	buf_init(&out, 10000);
	for (size_t i = 0; i < 40; i++)
		screen_put_row(&out, &stage.screen, i);
	buf_put_byte(&out, 0);
	assert_non_null(strstr(out.data, " No news from the server for 42 s. This screen shows "));
	assert_non_null(strstr(out.data, "Next try: 3 s"));
	assert_non_null(strstr(out.data, "slot-3   ┄┄┄┄"));
	assert_null(strstr(out.data, "left of"));
	buf_done(&out);
	stage_end(&stage);
}

static void workers_show_lease_and_beat_and_the_gone_are_left_out(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 80, 24);
	stage.board.tab = TAB_WORKERS;
	board_arrange(&stage.board, true);
	stage.cli.now_ms = NOW_MS + 2000;
	stage_draw(&stage);
	expect_row(&stage, 3, " Here 1");
	expect_row(&stage, 4, "▌slot-3    ━━━━━─ 4:10       5 s  t-9q2            any queue      anything");
	expect_row(&stage, 5, "");
	expect_row(&stage, 19, " Holds 1 of 2 on atlas.");
	stage_end(&stage);
}

static void a_terminal_that_is_too_small_is_told_so(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 40, 10);
	stage_draw(&stage);
	expect_row(&stage, 0, "The board needs 80 x 24.");
	expect_row(&stage, 1, "here: 40 x 10");
	stage_end(&stage);
}

static void every_size_is_drawn_within_its_edges(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 80, 24);
	for (size_t columns = 1; columns < 240; columns += 7) {
		for (size_t rows = 1; rows < 70; rows += 3) {
			assert_int_equal(screen_resize(&stage.screen, rows, columns), 0);
			for (enum board_tab tab = 0; tab < TAB_COUNT; tab++) {
				stage.board.tab = tab;
				stage.board.open = rows % 2 == 0;
				board_arrange(&stage.board, true);
				board_draw(&stage.board, &stage.cli, &stage.screen);
				arena_reset(&stage.cli.arena);
			}
		}
	}
	stage_end(&stage);
}

/* ---- rows that stay --------------------------------------------------------------------------------------------------- */

static void rows_keep_their_place_until_they_are_adopted(void **state)
{
	struct stage stage;

	(void)state;
	stage_begin(&stage, 80, 24);
	board_move_focus(&stage.board, 2);
	assert_string_equal(board_focus(&stage.board)->id, "t-1");
	stage.board.tasks[STAND_WAITING] = read_json(
		&stage, "[{\"id\":\"t-0\",\"state\":\"ready\"},{\"id\":\"t-2\",\"state\":\"ready\"}]");
	stage.board.tasks[STAND_ENDED] = read_json(&stage, "[{\"id\":\"t-1\",\"state\":\"done\"}]");
	assert_false(board_arrange(&stage.board, false));
	assert_int_equal(stage.board.fresh, 1);
	assert_int_equal(stage.board.moved, 1);
	assert_int_equal(stage.board.row_count, 4);
	assert_string_equal(board_focus(&stage.board)->id, "t-1");
	stage_draw(&stage);
	expect_row(
		&stage, 2, "                                                              1 new, 1 moved  .");
	assert_true(board_arrange(&stage.board, true));
	assert_int_equal(stage.board.fresh, 0);
	assert_string_equal(stage.board.rows[2].id, "t-0");
	stage_end(&stage);
}

/* ---- what is sent ------------------------------------------------------------------------------------------------------- */

static void expect_changes(const struct screen *shown, const struct screen *wanted, const char *bytes)
{
	struct buf out;

	buf_init(&out, 10000);
	assert_int_equal(screen_put_changes(&out, shown, wanted, true), 0);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, bytes);
	buf_done(&out);
}

static void only_the_cells_that_changed_are_sent(void **state)
{
	struct screen shown = {.utf8 = true}, wanted = {.utf8 = true};

	(void)state;
	assert_int_equal(screen_resize(&shown, 3, 20), 0);
	assert_int_equal(screen_resize(&wanted, 3, 20), 0);
	expect_changes(&shown, &wanted, "");
	screen_put(&shown, 1, 0, 20, SPAN("age 41 min"), PAINT_DIM);
	screen_put(&wanted, 1, 0, 20, SPAN("age 42 min"), PAINT_DIM);
	expect_changes(&shown, &wanted, "\033[2;6H\033[2m2\033[0m");
	screen_done(&shown);
	screen_done(&wanted);
}

static void the_column_is_addressed_behind_a_sign_that_may_be_drawn_wide(void **state)
{
	struct screen shown = {.utf8 = true}, wanted = {.utf8 = true};

	(void)state;
	assert_int_equal(screen_resize(&shown, 1, 9), 0);
	assert_int_equal(screen_resize(&wanted, 1, 9), 0);
	screen_put(&wanted, 0, 0, 9, SPAN("●ab"), PAINT_NONE);
	expect_changes(&shown, &wanted, "\033[1;1H●\033[1;2Hab");
	screen_put(&wanted, 0, 0, 9, SPAN("日本x"), PAINT_NONE);
	expect_changes(&shown, &wanted, "\033[1;1H日\033[1;3H本\033[1;5Hx");
	screen_done(&shown);
	screen_done(&wanted);
}

static void a_wide_character_is_not_cut_in_half_at_the_edge(void **state)
{
	struct screen screen = {.utf8 = true};
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	assert_int_equal(screen_resize(&screen, 1, 4), 0);
	screen_put(&screen, 0, 0, 9, SPAN("日本語"), PAINT_NONE);
	assert_int_equal(screen_put_row(&out, &screen, 0), 0);
	assert_true(span_equal(buf_span(&out), SPAN("日…")));
	buf_done(&out);
	screen_done(&screen);
}

/* ---- keys ----------------------------------------------------------------------------------------------------------------- */

static void expect_key(const char *bytes, bool ended, size_t used, uint32_t key)
{
	uint32_t found = 12345;

	assert_int_equal(key_read(bytes, strlen(bytes), ended, &found), used);
	if (used > 0)
		assert_int_equal(found, key);
}

static void keys_are_read_one_at_a_time(void **state)
{
	(void)state;
	expect_key("jk", false, 1, 'j');
	expect_key("\033[A", false, 3, KEY_UP);
	expect_key("\033OB", false, 3, KEY_DOWN);
	expect_key("\033[6~x", false, 4, KEY_PAGE_DOWN);
	expect_key("\033[", false, 0, KEY_NONE);
	expect_key("\033", false, 0, KEY_NONE);
	expect_key("\033", true, 1, KEY_ESCAPE);
	expect_key("\033[1;5D", false, 6, KEY_NONE); /* a key that we do not have */
	expect_key("\r", false, 1, KEY_ENTER);
	expect_key("\x7f", false, 1, KEY_ERASE);
	expect_key("\xc3", false, 0, KEY_NONE);
	expect_key("ü", false, 2, 0xfc);
	expect_key("\xff", true, 1, KEY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_screen_has_every_group_and_the_keys_of_the_focus),
		cmocka_unit_test(a_roomy_screen_has_attempts_workers_and_leases),
		cmocka_unit_test(without_news_nothing_is_counted_down),
		cmocka_unit_test(workers_show_lease_and_beat_and_the_gone_are_left_out),
		cmocka_unit_test(a_terminal_that_is_too_small_is_told_so),
		cmocka_unit_test(every_size_is_drawn_within_its_edges),
		cmocka_unit_test(rows_keep_their_place_until_they_are_adopted),
		cmocka_unit_test(only_the_cells_that_changed_are_sent),
		cmocka_unit_test(the_column_is_addressed_behind_a_sign_that_may_be_drawn_wide),
		cmocka_unit_test(a_wide_character_is_not_cut_in_half_at_the_edge),
		cmocka_unit_test(keys_are_read_one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
