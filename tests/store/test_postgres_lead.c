/*
 * Who writes to a store in PostgreSQL, and what became of a turn whose reply was lost. The server is real; between it and us stand
 * functions of the test, which cut the connection at the moment that matters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/flow/execution.h"
#include "postgres_place.h"
#include "store/postgres/postgres_backend.h"

struct scene {
	char url[512];
	struct backend *backend;
};

static struct scene *scene; /* for the functions that stand between */

static int scene_setup(void **state)
{
	*state = scene = calloc(1, sizeof *scene);
	postgres_place(scene->url, sizeof scene->url);
	scene->backend = postgres_open_at(scene->url);
	return 0;
}

static int scene_teardown(void **state)
{
	(void)state;
	scene->backend->ops->close(scene->backend);
	postgres_remove(scene->url);
	free(scene);
	return 0;
}

static const char *schema(void)
{
	return strrchr(scene->url, '=') + 1;
}

/* One number, asked for by another session. */
static int64_t ask_number(const char *format)
{
	PGconn *link = pq.PQconnectdb(postgres_server());
	char sql[300];

	snprintf(sql, sizeof sql, "SET search_path = %s", schema());
	pq.PQclear(pq.PQexec(link, sql));
	PGresult *result = pq.PQexec(link, format);
	if (pq.PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", format, pq.PQerrorMessage(link));
	int64_t number = pq.PQntuples(result) > 0 ? strtoll(pq.PQgetvalue(result, 0, 0), NULL, 10) : -1;
	pq.PQclear(result);
	pq.PQfinish(link);
	return number;
}

static int64_t turns(void)
{
	return ask_number("SELECT max(turn) FROM turn");
}

static int64_t stored(void)
{
	return ask_number("SELECT value FROM meta WHERE key = 3");
}

static int commit_floor(struct backend *backend, int64_t value)
{
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_TASK_FLOOR, value), 0);
	return backend_commit(backend);
}

static struct backend *open_in_place_of_a_live_one(void)
{
	struct postgres_options options = {.url = scene->url, .look_away_ms = 1};
	struct backend *backend = NULL;
	char *complaint = NULL;

	if (postgres_open(&options, &backend, &complaint) != 0)
		fail_msg("%s", complaint);
	return backend;
}

/* ---- what stands between ---- */

static int cuts_left;
static bool cuts_behind; /* the server does all of it first */
static struct backend *taker;
static bool lets_another_take_over;
static __typeof__(PQpipelineSync) *real_sync;

/* Whatever was on its way is lost: the socket becomes one whose other end is closed. */
static void cut(PGconn *link)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	close(ends[0]);
	assert_true(dup2(ends[1], pq.PQsocket(link)) >= 0);
	close(ends[1]);
}

static int sync_and_cut(PGconn *link)
{
	int64_t before = cuts_left > 0 ? turns() : 0;

	if (cuts_left == 0)
		return real_sync(link);
	cuts_left--;
	if (!cuts_behind) {
		cut(link);
	} else {
		assert_int_equal(real_sync(link), 1);
		while (pq.PQflush(link) == 1)
			;
		while (turns() == before)
			poll(NULL, 0, 1);
		cut(link);
	}
	if (lets_another_take_over)
		taker = open_in_place_of_a_live_one();
	return cuts_behind ? 1 : real_sync(link);
}

static void stand_between(int cuts, bool behind)
{
	real_sync = pq.PQpipelineSync;
	pq.PQpipelineSync = sync_and_cut;
	cuts_left = cuts;
	cuts_behind = behind;
}

static void step_aside(void)
{
	pq.PQpipelineSync = real_sync;
	assert_int_equal(cuts_left, 0);
}

/* ---- the tests ---- */

static void a_leader_that_was_replaced_writes_nothing_more(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	struct backend *other = open_in_place_of_a_live_one();
	assert_int_equal(commit_floor(scene->backend, 2), -ESTALE);
	assert_int_equal(stored(), 1);
	assert_int_equal(commit_floor(other, 3), 0);
	assert_int_equal(scene->backend->ops->begin(scene->backend), -ESTALE);
	assert_int_equal(stored(), 3);
	other->ops->close(other);
}

static void a_turn_without_its_predecessor_is_refused(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	postgres_of(scene->backend)->head += 1; /* as if a turn had been forgotten by the server */
	assert_int_equal(commit_floor(scene->backend, 2), -ESTALE);
	assert_int_equal(stored(), 1);
}

static void a_session_that_ends_between_turns_is_not_noticed(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	int64_t before = turns(), value;
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
	assert_int_equal(commit_floor(scene->backend, 2), 0);
	assert_int_equal(stored(), 2);
	assert_int_equal(turns(), before + 1);
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
	assert_int_equal(scene->backend->ops->get_meta(scene->backend, META_TASK_FLOOR, &value), 0);
	assert_int_equal(value, 2);
}

static void a_turn_that_was_done_and_whose_reply_is_lost_is_not_done_again(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	int64_t before = turns();
	stand_between(1, true);
	assert_int_equal(commit_floor(scene->backend, 2), 0);
	step_aside();
	assert_int_equal(stored(), 2);
	assert_int_equal(turns(), before + 1);
	assert_int_equal(commit_floor(scene->backend, 3), 0);
	assert_int_equal(turns(), before + 2);
}

static void a_turn_that_was_not_done_is_sent_again(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	int64_t before = turns();
	stand_between(1, false);
	assert_int_equal(commit_floor(scene->backend, 2), 0);
	step_aside();
	assert_int_equal(stored(), 2);
	assert_int_equal(turns(), before + 1);
}

static void a_turn_whose_reply_is_lost_to_another_leader_is_not_acknowledged(void **state)
{
	(void)state;
	for (int done = 0; done < 2; done++) {
		int64_t before = ask_number("SELECT count(*) FROM turn");
		stand_between(1, done);
		lets_another_take_over = true;
		assert_int_equal(commit_floor(scene->backend, 10 + done), -ESTALE);
		lets_another_take_over = false;
		step_aside();
		assert_int_equal(ask_number("SELECT count(*) FROM turn"), before + done);
		scene->backend->ops->close(scene->backend);
		scene->backend = taker;
	}
}

static void a_warning_at_the_commit_is_looked_into(void **state)
{
	char sql[500];

	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	int64_t before = turns();
	snprintf(sql, sizeof sql,
		"SET search_path = %s; CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS "
		"$$BEGIN RAISE WARNING 'canceling wait'; RETURN NEW; END$$; "
		"CREATE TRIGGER warns BEFORE INSERT ON turn FOR EACH ROW EXECUTE FUNCTION warn()",
		schema());
	postgres_run(sql);
	int64_t epoch = ask_number("SELECT epoch FROM lead");
	assert_int_equal(commit_floor(scene->backend, 2), 0);
	assert_int_equal(stored(), 2);
	assert_int_equal(turns(), before + 1);
	assert_int_equal(
		ask_number("SELECT epoch FROM lead"), epoch + 1); /* the lead was taken over from ourselves */
}

/* ---- a lost tail ---- */

static int64_t meta(enum meta_key key)
{
	char sql[100];

	snprintf(sql, sizeof sql, "SELECT value FROM meta WHERE key = %d", key);
	return ask_number(sql);
}

static void forget_turns(int count)
{
	char sql[200];

	snprintf(sql, sizeof sql,
		"WITH gone AS (DELETE FROM turn WHERE turn > (SELECT max(turn) FROM turn) - %d RETURNING 1) SELECT count(*) FROM gone",
		count);
	assert_int_equal(ask_number(sql), count);
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
}

static void a_read_that_finds_a_lost_tail_out_ends_the_writing_too(void **state)
{
	int64_t value;

	(void)state;
	for (int i = 1; i <= 4; i++)
		assert_int_equal(commit_floor(scene->backend, i), 0);
	forget_turns(3);
	assert_int_equal(scene->backend->ops->get_meta(scene->backend, META_TASK_FLOOR, &value), -EIO);
	assert_int_equal(scene->backend->ops->begin(scene->backend), -ESTALE);
	assert_non_null(strstr(scene->backend->complaint, "has lost 3 turns"));
	assert_int_equal(meta(META_RESTORED), RESTORED);
}

static void turns_that_a_failover_has_lost_are_counted_and_the_store_is_one_that_was_restored(void **state)
{
	(void)state;
	for (int i = 1; i <= 4; i++)
		assert_int_equal(commit_floor(scene->backend, i), 0);
	forget_turns(3);
	assert_int_equal(commit_floor(scene->backend, 9), -EIO);
	assert_non_null(strstr(scene->backend->complaint, "has lost 3 turns"));
	assert_int_equal(meta(META_RESTORED), RESTORED);
	assert_true(meta(META_GENERATION) > 1);
	assert_true(stored() > 1000000);
	assert_int_equal(ask_number("SELECT count(*) FROM small WHERE kind = 58 AND data = '3'"), 1);
	assert_int_equal(
		scene->backend->ops->begin(scene->backend), -ESTALE); /* its memory is of another store */
	assert_non_null(strstr(scene->backend->complaint, "has lost 3 turns"));
}

/* A failover went back to before we led, and the leader of then goes on: it cannot know what is gone. */
static void a_leader_that_was_replaced_tells_that_a_failover_has_lost_its_own_turns(void **state)
{
	(void)state;
	for (int i = 1; i <= 4; i++)
		assert_int_equal(commit_floor(scene->backend, i), 0);
	ask_number(
		"WITH gone AS (DELETE FROM turn WHERE turn > (SELECT max(turn) FROM turn) - 3 RETURNING 1), "
		"one AS (UPDATE lead SET term = 77, holder = 'another' RETURNING 1) "
		"SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM one)");
	ask_number(
		"WITH more AS (INSERT INTO turn (turn, term) SELECT max(turn) + 1, 77 FROM turn RETURNING 1) SELECT count(*) FROM more");
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
	assert_int_equal(commit_floor(scene->backend, 9), -EIO);
	assert_non_null(strstr(scene->backend->complaint, "has lost 3 turns"));
	assert_int_equal(meta(META_RESTORED), RESTORED);
	assert_int_equal(
		ask_number("SELECT count(*) FROM lead WHERE term = 77"), 0); /* that one writes no more */
}

static void a_leader_that_was_replaced_and_has_lost_nothing_leaves_the_store_as_it_is(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	ask_number(
		"WITH one AS (UPDATE lead SET term = 77, holder = 'another' RETURNING 1) SELECT count(*) FROM one");
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
	assert_int_equal(commit_floor(scene->backend, 2), -ESTALE);
	assert_int_equal(meta(META_RESTORED), -1);
	assert_int_equal(ask_number("SELECT count(*) FROM lead WHERE term = 77"), 1);
}

static void what_was_disarmed_stays_so_over_a_lost_tail(void **state)
{
	const struct backend_ops *ops = scene->backend->ops;

	(void)state;
	assert_int_equal(ops->begin(scene->backend), 0);
	assert_int_equal(ops->put_meta(scene->backend, META_EXECUTION, EXECUTION_DISARMED), 0);
	assert_int_equal(backend_commit(scene->backend), 0);
	forget_turns(1);
	assert_int_equal(commit_floor(scene->backend, 9), -EIO);
	assert_int_equal(meta(META_RESTORED), RESTORED_OVER_DISARMED);
}

/* The leader is gone, and its store is opened after this was noted of the last take-over. */
static void open_after(const char *note)
{
	char sql[300];

	scene->backend->ops->close(scene->backend);
	snprintf(sql, sizeof sql, "UPDATE %s.lead SET %s", schema(), note);
	postgres_run(sql);
	scene->backend = postgres_open_at(scene->url);
}

static void another_timeline_may_lack_turns_unless_commits_waited_for_a_standby(void **state)
{
	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	open_after("timeline = timeline");
	assert_int_equal(meta(META_RESTORED), -1); /* nothing has happened */
	open_after("timeline = '0000007F', synchronous = true");
	assert_int_equal(meta(META_RESTORED), -1);
	open_after("timeline = '0000007F', synchronous = false");
	assert_int_equal(meta(META_RESTORED), RESTORED);
	int64_t generation = meta(META_GENERATION);
	open_after("timeline = timeline"); /* it is told once */
	assert_int_equal(meta(META_GENERATION), generation);
	open_after("system = '1'");
	assert_true(meta(META_GENERATION) > generation);
}

static void a_failover_that_has_lost_nothing_is_not_noticed(void **state)
{
	char sql[200];

	(void)state;
	assert_int_equal(commit_floor(scene->backend, 1), 0);
	snprintf(sql, sizeof sql, "UPDATE %s.lead SET timeline = '0000007F'", schema());
	postgres_run(sql);
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
	assert_int_equal(commit_floor(scene->backend, 2), 0);
	assert_int_equal(stored(), 2);
	assert_int_equal(ask_number("SELECT count(*) FROM lead WHERE timeline = '0000007F'"), 0);
}

static void a_transaction_that_was_open_when_its_session_ended_is_given_up(void **state)
{
	const struct backend_ops *ops = scene->backend->ops;
	struct idem_row row = {.principal = SPAN("p"), .key = SPAN("k"), .created_ms = 1}, found;

	(void)state;
	assert_int_equal(ops->begin(scene->backend), 0);
	assert_int_equal(ops->put_idem(scene->backend, &row), 0);
	assert_int_equal(ops->delete_idems(scene->backend, 0, 1), 0); /* the server is asked amid the turn */
	ask_number("SELECT count(pg_terminate_backend(pid)) FROM lead");
	assert_int_equal(backend_commit(scene->backend), -EROFS);
	assert_int_equal(ops->get_idem(scene->backend, SPAN("p"), SPAN("k"), &found), -ENOENT);
	assert_int_equal(commit_floor(scene->backend, 5), 0);
	assert_int_equal(stored(), 5);
}

#define SCENE(function) cmocka_unit_test_setup_teardown(function, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(a_leader_that_was_replaced_writes_nothing_more),
		SCENE(a_turn_without_its_predecessor_is_refused),
		SCENE(a_session_that_ends_between_turns_is_not_noticed),
		SCENE(a_turn_that_was_done_and_whose_reply_is_lost_is_not_done_again),
		SCENE(a_turn_that_was_not_done_is_sent_again),
		SCENE(a_turn_whose_reply_is_lost_to_another_leader_is_not_acknowledged),
		SCENE(a_warning_at_the_commit_is_looked_into),
		SCENE(turns_that_a_failover_has_lost_are_counted_and_the_store_is_one_that_was_restored),
		SCENE(a_read_that_finds_a_lost_tail_out_ends_the_writing_too),
		SCENE(a_leader_that_was_replaced_tells_that_a_failover_has_lost_its_own_turns),
		SCENE(a_leader_that_was_replaced_and_has_lost_nothing_leaves_the_store_as_it_is),
		SCENE(what_was_disarmed_stays_so_over_a_lost_tail),
		SCENE(another_timeline_may_lack_turns_unless_commits_waited_for_a_standby),
		SCENE(a_failover_that_has_lost_nothing_is_not_noticed),
		SCENE(a_transaction_that_was_open_when_its_session_ended_is_given_up),
	};

	if (!postgres_server()) {
		puts("skipped: no PostgreSQL is named (STINT_TEST_POSTGRES); tests/e2e/test_postgres.py starts one");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
