"""The inbox: SELECT stint.enqueue('queue', '{…}') in another program's own transaction. A commit makes one task, a rollback none, whatever
dies meanwhile; and the examples of docs/many-machines.md are run."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "postgres"))
import proof
import server as postgres
import stintd
import test_postgres
from hang import HANG_S

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/many-machines.md")
ROUNDS = int(os.environ.get("STINT_CRASH_ROUNDS", "4"))


class OnPostgres(test_postgres.OnPostgres, proof.ProofCase):
    def sql(self, text, url=None):
        return self.server.postgres.sql(text, url)

    def titles(self, queue="q"):
        return [task["title"] for task in self.client.get("/api/tasks?queue=" + queue).json]

    def wait_for_titles(self, *titles, queue="q"):
        self.wait_until(lambda: sorted(self.titles(queue)) == sorted(titles), HANG_S, lambda: "there is %s" % self.titles(queue))

    def kept(self):
        return self.client.get("/api/inbox").json

    def wait_for_kept(self, count):
        self.wait_until(lambda: len(self.kept()) == count, HANG_S, lambda: "kept is %s" % self.kept())
        return self.kept()


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Inbox(OnPostgres):
    def test_a_commit_makes_one_task_and_a_rollback_none(self):
        self.sql("CREATE TABLE orders (n int)")
        self.sql("BEGIN; INSERT INTO orders VALUES (1); SELECT stint.enqueue('q', '{\"title\":\"no\"}'); ROLLBACK")
        self.sql("BEGIN; INSERT INTO orders VALUES (2); SELECT stint.enqueue('q', '{\"title\":\"yes\",\"priority\":\"high\",\"payload\":{\"order\":2}}'); COMMIT")
        self.wait_for_titles("yes")
        task = self.client.get("/api/tasks?queue=q").json[0]
        self.assertEqual((task["priority"], task["payload"], task["state"]), (50, {"order": 2}, "ready"))
        self.assertEqual(self.sql("SELECT count(*) FROM stint.inbox"), "0")
        created = [event for event in self.events() if event["type"] == "task.created"]
        self.assertEqual([event["actor"] for event in created], ["inbox stint"])
        self.assertEqual(self.server.stop(), 0)
        self.prove()

    def test_a_waiting_worker_is_given_the_task(self):
        self.client.send("POST", "/api/claims", {"workerId": "w", "queues": ["q"], "waitMs": 30000})
        self.sql("SELECT stint.enqueue('q', '{\"title\":\"now\"}')")
        self.assertEqual(self.client.receive().json["claims"][0]["task"]["title"], "now")

    def test_many_rows_become_tasks_in_their_order(self):
        self.sql("SELECT stint.enqueue('q', jsonb_build_object('title', n::text)) FROM generate_series(1, 200) AS n")
        self.wait_until(lambda: len(self.titles()) == 200, HANG_S, "they are not all there")
        self.assertEqual(self.titles(), [str(n) for n in range(1, 201)])

    def test_the_queue_of_the_call_counts_and_the_document_may_be_left_out(self):
        self.sql("SELECT stint.enqueue('q', '{\"title\":\"a\",\"queue\":\"elsewhere\"}')")
        self.sql("SELECT stint.enqueue('q')")
        self.wait_until(lambda: len(self.client.get("/api/tasks?queue=q").json) == 2, HANG_S, "they are not there")

    def test_a_role_that_may_use_the_schema_may_call_and_nothing_else(self):
        self.sql("CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA stint TO app")
        url = self.server.postgres.url.replace("stint@", "app@")
        self.sql("CREATE TEMP TABLE inbox (queue text, task text); SELECT stint.enqueue('q', '{\"title\":\"by app\"}')", url)
        self.wait_for_titles("by app")
        for text in "SELECT * FROM stint.inbox", "SELECT * FROM stint.token", "DELETE FROM stint.task":
            with self.assertRaisesRegex(RuntimeError, "permission denied"):
                self.sql(text, url)
        created = [event for event in self.events() if event["type"] == "task.created"]
        self.assertEqual(created[-1]["actor"], "inbox app")

    def test_what_cannot_become_a_task_is_kept_with_its_reason_and_told(self):
        for document in '{"title":7}', '[1]', '{"title":"x","timeoutMs":-1}', '{"title":"s","schedule":"no"}':
            self.sql("SELECT stint.enqueue('q', '%s')" % document)
        self.sql("SELECT stint.enqueue('q', '{\"title\":\"good\"}')")
        self.wait_for_titles("good")
        rows = self.wait_for_kept(4)
        self.assertEqual([row["task"] for row in rows][1], [1])
        self.assertEqual({(row["queue"], row["role"]) for row in rows}, {("q", "stint")})
        self.assertIn("title", json.dumps(rows[0]["error"]))
        told = [event["data"] for event in self.events() if event["type"] == "inbox.refused"]
        self.assertEqual([data["inbox"] for data in told], [row["id"] for row in rows])
        self.assertEqual({(data["queue"], data["code"]) for data in told}, {("q", "invalid")})
        said = self.stint("queue", "inbox")
        self.assertIn("title", said)
        self.assertEqual(len(json.loads(self.stint("queue", "inbox", "--json"))["inbox"]), 4)
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual([row["id"] for row in self.kept()], [row["id"] for row in rows])  # … over a restart
        self.assertEqual(self.server.stop(), 0)
        self.prove()

    def stint(self, *words, status=0):
        run = subprocess.run([test_postgres.STINT, *words], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout

    def test_a_row_that_was_kept_is_tried_again_once_or_dropped(self):
        self.create_id("taken")
        self.sql("SELECT stint.enqueue('q', '{\"id\":\"taken\",\"title\":\"second\"}')")
        self.sql("SELECT stint.enqueue('q', '{\"title\":8}')")
        first, second = [str(row["id"]) for row in self.wait_for_kept(2)]
        self.assertEqual(self.client.post("/api/inbox/%s/retry" % first).status, 409)
        self.stint("cancel", "taken")
        self.client.post("/api/tasks/bulk", {"filter": {"queue": "default"}, "action": "purge"})
        self.wait_until(lambda: self.client.get("/api/tasks/taken").status == 404, HANG_S, "it is not purged")
        self.assertIn("taken", self.stint("queue", "inbox", "--retry", first))
        self.assertEqual(self.client.post("/api/inbox/%s/retry" % first).status, 404)
        self.wait_for_titles("second")
        self.stint("queue", "inbox", "--drop", second)
        self.stint("queue", "inbox", "--drop", second, status=3)
        self.assertEqual(self.kept(), [])
        self.assertEqual([event["data"]["inbox"] for event in self.events() if event["type"] == "inbox.dropped"], [int(second)])

    def create_id(self, name):
        self.assertEqual(self.client.post("/api/tasks", {"id": name, "title": "first"}).status, 201)

    def test_rows_wait_while_their_queue_is_full(self):
        self.client.call("PATCH", "/api/queues/q", {"maxOpen": 1})
        for title in "one", "two":
            self.sql("SELECT stint.enqueue('q', '{\"title\":\"%s\"}')" % title)
        self.sql("SELECT stint.enqueue('other', '{\"title\":\"three\"}')")
        self.wait_for_titles("three", queue="other")
        self.assertEqual((self.titles(), self.kept()), (["one"], []))
        held = self.claim(queues=["q"])[0]
        self.client.post("/api/tasks/%s/complete" % held["task"]["id"], {"workerId": "w", "fence": held["fence"]})
        self.wait_until(lambda: "two" in self.titles(), HANG_S, "it waits for ever")

    def test_a_document_that_is_too_long_is_refused_to_the_caller(self):
        with self.assertRaisesRegex(RuntimeError, "the_task_is_at_most_1_mib"):
            self.sql("SELECT stint.enqueue('q', jsonb_build_object('title', 'x', 'payload', repeat('y', 1100000)))")

    def test_a_unique_key_makes_one_task_of_several_rows(self):
        for _ in range(3):
            self.sql("SELECT stint.enqueue('q', '{\"title\":\"once\",\"uniqueKey\":\"k\"}')")
        self.wait_until(lambda: self.sql("SELECT count(*) FROM stint.inbox") == "0", HANG_S, "rows are left")
        self.assertEqual(self.titles(), ["once"])


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Crash(OnPostgres):
    """The server, its session and the database die while rows come in."""

    def enqueue(self, over, told, started):
        n = 0
        while not over.is_set():
            n += 1
            keeps = n % 3 != 0
            try:
                self.sql("BEGIN; SELECT stint.enqueue('q', '{\"title\":\"%s-%d\"}'); %s"
                         % (started, n, "COMMIT" if keeps else "ROLLBACK"))
                told.append(("%s-%d" % (started, n), keeps))
            except RuntimeError:
                told.append(("%s-%d" % (started, n), None))  # nobody knows

    def test_every_commit_makes_exactly_one_task_and_every_rollback_none(self):
        over, told = threading.Event(), []
        threads = [threading.Thread(target=self.enqueue, args=(over, told, name)) for name in "abc"]
        self.addCleanup(over.set)
        for thread in threads:
            thread.start()
        for round_ in range(ROUNDS):
            before = len(told)
            self.wait_until(lambda: len(told) > before + 5, HANG_S, "nobody enqueues")
            if round_ % 4 == 3:
                self.server.postgres.kill()
                self.server.postgres.start()
                if self.server.process.poll() is not None:
                    self.server.start()
            elif round_ % 4 == 1:
                self.server.postgres.sql("SELECT pg_terminate_backend(pid) FROM stint.lead")
            else:
                self.server.kill()
                self.server.start()
            self.client.close()
        over.set()
        for thread in threads:
            thread.join(HANG_S)
        self.wait_until(self.is_empty, HANG_S, "rows are left")
        titles = [task["title"] for task in self.all_tasks()]
        self.assertEqual(len(titles), len(set(titles)), "a row has become two tasks")
        for title, keeps in told:
            if keeps is not None:
                self.assertEqual(title in titles, keeps, title)
        self.assertEqual(self.kept(), [])
        self.assertEqual(self.server.stop(), 0)
        self.prove()

    def is_empty(self):
        try:
            return self.client.get("/health/leader").status == 200 and self.sql("SELECT count(*) FROM stint.inbox") == "0"
        except proof.GONE:
            self.client.close()
            return False

    def all_tasks(self):
        return self.client.get("/api/tasks?queue=q").json


def example(language, words):
    """The code block of docs/many-machines.md in that language that has these words."""
    with open(DOCS) as file:
        blocks = re.findall(r"```%s\n(.*?)```" % language, file.read(), re.S)
    found = [block for block in blocks if words in block]
    assert len(found) == 1, "docs/many-machines.md has %d examples in %s with %s" % (len(found), language, words)
    return found[0]


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Examples(OnPostgres):
    def setUp(self):
        super().setUp()
        self.sql("CREATE TABLE orders (id bigserial PRIMARY KEY, customer text)")
        self.place = tempfile.mkdtemp(prefix="stint-example-")
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def run_it(self, *command, **variables):
        run = subprocess.run(command, capture_output=True, text=True, timeout=10 * HANG_S, cwd=self.place,
                             env={**os.environ, "PGHOST": self.server.postgres.directory, "PGUSER": "stint", "PGDATABASE": "postgres",
                                  **variables})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def fetched(self, *command):
        """A driver, from its registry: without one the test is skipped."""
        run = subprocess.run(command, capture_output=True, text=True, timeout=20 * HANG_S, cwd=self.place)
        if run.returncode != 0:
            self.skipTest("%s cannot be fetched" % command[-1])

    def wait_for_order(self):
        self.wait_until(lambda: len(self.titles("mail")) == 1, HANG_S, "there is no task")
        self.assertEqual(self.sql("SELECT count(*) FROM orders"), "1")

    def test_psql(self):
        self.run_it(os.path.join(self.server.postgres.bin, "psql"), "-v", "ON_ERROR_STOP=1", "-c", example("sql", "INSERT INTO orders"))
        self.wait_for_order()

    def test_psycopg(self):
        self.fetched(sys.executable, "-m", "pip", "install", "--quiet", "--target", self.place, "psycopg")
        with open(os.path.join(self.place, "order.py"), "w") as file:
            file.write(example("python", "psycopg"))
        self.run_it(sys.executable, "order.py", PYTHONPATH=self.place)
        self.wait_for_order()

    def test_node_postgres(self):
        if not shutil.which("npm"):
            self.skipTest("npm is not here")
        self.fetched("npm", "install", "--silent", "--prefix", self.place, "pg")
        with open(os.path.join(self.place, "order.mjs"), "w") as file:
            file.write(example("js", "pg"))
        self.run_it("node", "order.mjs")
        self.wait_for_order()



if __name__ == "__main__":
    proof.main()
