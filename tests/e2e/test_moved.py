"""From a file into PostgreSQL and back, with every kind of row: a backup of either is a SQLite store, and --restore reads it into an
empty schema."""
import json
import os
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "postgres"))
import proof
import server as postgres
import stintd
import test_postgres
from hang import HANG_S

# What a restore changes: claims are set free, and times and numbers go on.
# What says who works, and on what.
AFTER_WORK = ("/api/tasks", "/api/queues", "/api/queues/q", "/api/approvals", "/api/slots", "/api/errors")
MOVING = {"reason", "now", "updatedAt", "version", "leaseMs", "age", "ageMs", "serverTime"}


def run(*words, home=None, status=0):
    done = subprocess.run([stintd.STINTD, *(("--home", home) if home else ()), *words], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == status, (words, done.returncode, done.stdout + done.stderr)
    return done.stdout + done.stderr


def still(value):
    """Without what may change while nobody does anything."""
    if isinstance(value, dict):
        return {key: still(member) for key, member in value.items() if key not in MOVING}
    return [still(member) for member in value] if isinstance(value, list) else value


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Moved(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.postgres = postgres.Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.postgres.remove()

    def at(self, schema):
        return "%s&schema=%s" % (self.postgres.url, schema)

    def serve(self, *flags):
        server = stintd.Server(*flags)
        self.addCleanup(server.end)
        client = server.client()
        self.addCleanup(client.close)
        return server, client

    def ok(self, reply, *statuses):
        self.assertIn(reply.status, statuses or (200, 201, 202), reply.body)
        return reply.json

    def fill(self, client):
        """Something of every noun, and tasks in every state that a restore keeps."""
        post = lambda path, body=None, headers=None: self.ok(client.post(path, body, headers))
        post("/api/tasks", {"id": "ready", "title": "ready ✓", "queue": "q", "priority": "high", "labels": ["a", "b"],
                            "uniqueKey": "k", "payload": {"n": 1}, "metadata": {"x": [1, 2]}})
        post("/api/tasks", {"title": "keyed", "queue": "q"}, {"Idempotency-Key": "once"})
        post("/api/tasks", {"id": "parked", "title": "parked", "queue": "p", "state": "pending"})
        post("/api/tasks", {"id": "later", "title": "later", "queue": "p", "notBefore": 4102444800000})
        post("/api/tasks", {"id": "child", "title": "child", "queue": "p", "blockedBy": ["parked"], "group": "g"})
        post("/api/tasks", {"id": "behind", "title": "behind a group", "queue": "p", "blockedByGroups": ["g"]})
        for name in "done", "failed", "review", "asked", "logged":
            post("/api/tasks", {"id": name, "title": name, "queue": name, "maxAttempts": 1})
        token = post("/api/workers/register", {"workerId": "w", "slot": "s", "capabilities": ["gpu"], "executors": ["sh"]})["token"]
        post("/api/workers/heartbeat", {"workerId": "w", "token": token, "credentials": {"sh": "acc"}})
        fence = {name: self.claim(client, name) for name in ("done", "failed", "review", "asked", "logged")}
        post("/api/tasks/done/complete", {"workerId": "v", "fence": fence["done"], "result": {"answer": 42}, "evidence": {"files": ["f"]}})
        post("/api/tasks/failed/fail", {"workerId": "v", "fence": fence["failed"], "error": {"code": "EXECUTION_ERROR", "message": "no"}})
        post("/api/tasks/review/review", {"workerId": "v", "fence": fence["review"], "result": "look"})
        post("/api/tasks/asked/ask", {"workerId": "v", "fence": fence["asked"], "question": "may I?"})
        post("/api/tasks/logged/progress", {"workerId": "v", "fence": fence["logged"], "note": "half", "percent": 50, "data": {"at": 3}})
        post("/api/tasks/logged/log", {"fence": fence["logged"], "workerId": "v", "offset": 0, "data": "hello\n" * 500})
        post("/api/tasks", {"id": "gone", "title": "gone", "queue": "p"})
        post("/api/tasks/gone/cancel")
        self.ok(client.call("PATCH", "/api/queues/q", {"concurrency": 3, "rate": {"count": 5, "perMs": 1000}, "keys": {"k1": 2}, "budget": {"usd": 9}}))
        post("/api/queues/p/pause")
        post("/api/holds", {"credential": "acc", "reason": "late"})
        self.ok(client.call("PATCH", "/api/credentials/acc", {"budget": {"tokens": 1000}}))
        post("/api/schedules", {"id": "nightly", "cron": "0 3 * * *", "tz": "Europe/Berlin", "task": {"title": "n", "queue": "q"}})
        post("/api/tasks/bulk", {"filter": {"queue": "nothing"}, "action": "park"})
        tokens = {kind: post("/api/tokens", {"kind": kind, "name": kind})["token"] for kind in ("producer", "viewer")}
        revoked = post("/api/tokens", {"kind": "operator", "name": "old"})
        self.ok(client.call("DELETE", "/api/tokens/" + revoked["id"]))
        post("/api/tasks/ready/tell", {"text": "take care"})
        return tokens

    def claim(self, client, name):
        return self.ok(client.post("/api/claims", {"workerId": "v", "queues": [name]}))["claims"][0]["fence"]

    def look(self, client):
        """All that a client can see, as far as it stays."""
        tasks = self.ok(client.get("/api/tasks"))
        paths = ["/api/tasks", "/api/queues", "/api/queues/q", "/api/holds", "/api/groups", "/api/schedules", "/api/tokens",
                 "/api/slots", "/api/bulk", "/api/errors", "/api/approvals", "/api/inbox"]
        paths += ["/api/tasks/%s%s" % (task["id"], tail) for task in tasks for tail in ("", "/log")]
        return {path: still(self.ok(client.get(path))) for path in paths}

    def events(self, client):
        return self.ok(client.get("/api/events?limit=1000"))["events"]

    def backup(self, server, name):
        done = subprocess.run([test_postgres.STINT, "backup", name], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                              env=stintd.environment(STINT_HOME=server.home))
        self.assertEqual(done.returncode, 0, done.stderr)
        path = done.stdout.strip()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(sorted(os.listdir(os.path.dirname(path))), [name])
        run("--check-store", path)
        return path

    def test_a_store_goes_into_postgresql_and_back_with_all_that_it_holds(self):
        first, client = self.serve()
        tokens = self.fill(client)
        before_events = self.events(client)
        copy = self.backup(first, "out.db")
        told = run("--store", self.at("moved"), "--restore", copy, home=first.home + "/pg")
        self.assertIn("restored", told)
        with self.subTest("into PostgreSQL"):
            second, there = self.serve("--store", self.at("moved"))
            self.judge(client, there, tokens, before_events)
            run("--check-store", self.at("moved"))
        back = self.backup(second, "back.db")
        with self.subTest("and back"):
            third, home = self.restored(back)
            self.judge(there, home, tokens, self.events(there))
        self.assertEqual((second.stop(), third.stop()), (0, 0))
        run("--check-store", self.at("moved"))

    def restored(self, copy):
        home = stintd.tempfile.mkdtemp(prefix="stint-e2e-")
        self.addCleanup(stintd.shutil.rmtree, home, ignore_errors=True)
        run("--restore", copy, home=home)
        return self.serve("--store", "sqlite:%s/stint.db" % home)

    def judge(self, before, after, tokens, before_events):
        old, new = self.look(before), self.look(after)
        claimed = {task["id"] for task in old["/api/tasks"] if task["state"] in ("claimed", "running", "asking")}
        for path, document in old.items():
            if not any("/" + name in path + "/" for name in claimed) and path not in AFTER_WORK:
                self.assertEqual(new[path], document, path)
        self.assertEqual({task["id"] for task in new["/api/tasks"]}, {task["id"] for task in old["/api/tasks"]})
        self.assertEqual(new["/api/tasks/logged/log"], old["/api/tasks/logged/log"])
        self.assertEqual([one.get("question") for one in new["/api/approvals"]], [one.get("question") for one in old["/api/approvals"]])
        for member in "limits", "budget", "state":
            self.assertEqual(new["/api/queues/q"].get(member), old["/api/queues/q"].get(member), member)
        self.assertEqual([event["seq"] for event in self.events(after)][:len(before_events)], [event["seq"] for event in before_events])
        self.assertEqual(self.events(after)[:len(before_events)], before_events)
        self.assertEqual(len([event for event in self.events(after)[len(before_events):] if event["type"] == "server.restored"]), 1)
        again = after.post("/api/tasks", {"title": "keyed", "queue": "q"}, {"Idempotency-Key": "once"})
        self.assertEqual((again.status, again.json["id"]), (201, before.post("/api/tasks", {"title": "keyed", "queue": "q"},
                                                                           {"Idempotency-Key": "once"}).json["id"]))
        for kind, text in tokens.items():
            client = after.server.client(token=text)
            self.addCleanup(client.close)
            self.assertIn(client.get("/api/tasks").status, (200, 403), kind)
        self.assertGreater(proof.task_number(after.post("/api/tasks", {"title": "new", "queue": "z"}).json["id"]), 1000000)

    def test_a_backup_is_of_one_moment_while_work_goes_on(self):
        server, client = self.serve("--store", self.at("busy"))
        over = threading.Event()

        def work():
            mine = server.client()
            while not over.is_set():
                task = mine.post("/api/tasks", {"title": "x", "queue": "q"}).json["id"]
                mine.post("/api/tasks/%s/cancel" % task)
            mine.close()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for number in range(3):
                done = self.ok(client.post("/api/backup", {"file": "n%d.db" % number}))
                run("--check-store", os.path.join(server.home, "backups", "n%d.db" % number))
                self.assertGreater(done["lastEvent"], 0)
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def test_a_schema_that_holds_a_store_is_not_restored_over(self):
        server, client = self.serve("--store", self.at("full"))
        self.ok(client.post("/api/tasks", {"title": "mine", "queue": "q"}))
        copy = self.backup(server, "a.db")
        told = run("--store", self.at("full"), "--restore", copy, home=server.home + "/x", status=74)
        self.assertIn("is led by another stintd", told)
        self.assertEqual(server.stop(), 0)
        told = run("--store", self.at("full"), "--restore", copy, home=server.home + "/x", status=74)
        self.assertIn("there is a store in that schema", told)
        server.start()
        again = server.client()
        self.addCleanup(again.close)
        self.assertEqual(len(self.ok(again.get("/api/tasks"))), 1)

    def test_what_is_no_backup_leaves_the_schema_empty(self):
        place = stintd.tempfile.mkdtemp(prefix="stint-e2e-")
        self.addCleanup(stintd.shutil.rmtree, place, ignore_errors=True)
        with open(os.path.join(place, "no.db"), "w") as file:
            file.write("nonsense\n" * 1000)
        told = run("--store", self.at("nothing"), "--restore", os.path.join(place, "no.db"), home=place + "/h", status=74)
        self.assertIn("is not a stint store", told)
        self.serve("--store", self.at("nothing"))

    def test_a_damaged_row_is_found_by_the_check_and_named(self):
        server, client = self.serve("--store", self.at("bits"))
        self.ok(client.post("/api/tasks", {"title": "mine", "queue": "q"}))
        self.assertEqual(run("--check-store", self.at("bits")), "")
        self.postgres.sql("UPDATE bits.task_body SET body = body || '\\x00'::bytea")
        done = subprocess.run([stintd.STINTD, "--check-store", self.at("bits")], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[0])["table"], "task_body")
        run("--check-store", self.at("not_there"), status=74)

    def test_a_backup_that_cannot_be_made_says_why(self):
        server, client = self.serve("--store", self.at("reply"))
        self.ok(client.post("/api/backup", {"file": "a.db"}))
        again = client.post("/api/backup", {"file": "a.db"})
        self.assertEqual((again.status, again.json["code"]), (409, "backup_exists"))


if __name__ == "__main__":
    proof.main()
