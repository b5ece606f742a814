"""The server over a PostgreSQL of its own: killed under load, the database killed under it, a second server behind it, and what
each fault of the database says."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "postgres"))
import proof
import server as postgres
import stintd
import test_crash
import test_worker
from hang import HANG_S

STINT = os.environ.get("STINT", "build/stint")
LEAD = os.environ.get("STINT_POSTGRES_LEAD", "build/tests/store/test_postgres_lead")
ROUNDS = int(os.environ.get("STINT_CRASH_ROUNDS", "4"))
test_crash.ROUNDS = ROUNDS


class Server(proof.Server):
    """stintd with a database that nobody else uses."""

    def __init__(self, *flags, clocks=None):
        self.postgres = postgres.Server().start()
        try:
            super().__init__("--store", self.postgres.url, *flags, clocks=clocks)
        except BaseException:
            self.postgres.remove()
            raise

    def end(self):
        super().end()
        self.postgres.remove()


class OnPostgres:
    make_server = Server

    def prove(self, said=(), limits=()):
        wrong = proof.verify_url(self.server.postgres.url, said, limits)
        self.assertIsNone(wrong, wrong)


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Crash(OnPostgres, test_crash.Crash):
    """The server dies, the database dies, or the session between them is ended: nothing that anyone was told is lost."""

    def die(self, dice, away, prove):
        chance = dice.random()
        if chance < 0.5:
            super().die(dice, away, prove)
        elif chance < 0.8:
            self.server.postgres.sql("SELECT pg_terminate_backend(pid) FROM stint.lead")
            self.assertEqual(self.client.get("/readyz").status, 200)  # it has not noticed anything
        else:
            self.server.postgres.kill()
            self.server.postgres.start()
            if self.server.process.poll() is not None:
                self.server.start()
        if not away:
            away.append(0)


del test_crash.Crash  # unittest would run it a second time


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Pair(OnPostgres, proof.ProofCase):
    def second(self, **options):
        """Another server on the same store, with a home of its own."""
        other = SecondServer(self.server.postgres.url, **options)
        self.addCleanup(other.end)
        return other

    def standby(self):
        """… that stands by, with the same admin's token."""
        other = self.second(token=self.server.token)
        other.wait_for("standing by")
        client = other.client()
        self.addCleanup(client.close)
        return other, client

    def once(self, server, method, path, body=None):
        client = server.client()
        try:
            return client.call(method, path, body)
        finally:
            client.close()

    def test_a_server_that_stands_by_says_who_leads(self):
        other, client = self.standby()
        self.assertEqual(client.get("/livez").status, 200)
        for path in "/readyz", "/healthz":
            ready = client.get(path).json
            self.assertEqual((ready["status"], ready["leader"]["url"], ready["leader"]["here"]),
                             ("standby", self.server.url, False))
        asked = client.get("/health/leader")
        self.assertEqual((asked.status, asked.json["code"], asked.headers["Stint-Leader"]),
                         (503, "not_leader", self.server.url))
        self.assertIn("led by %s" % ready["leader"]["name"], asked.json["detail"])
        self.assertIn("stint_leads 0\n", client.get("/metrics").body.decode())
        leader = self.client.get("/health/leader").json["leader"]
        self.assertEqual((leader["here"], leader["synchronous"]), (True, False))
        self.wait_until(lambda: client.get("/readyz").json["leader"]["turn"] >= leader["turn"], HANG_S, "it does not look on")
        self.assertIn("stint_leads 1\n", self.client.get("/metrics").body.decode())

    def test_a_server_that_stands_by_passes_connections_on(self):
        other, client = self.standby()
        task = client.post("/api/tasks", {"title": "by way of the other"}).json["id"]
        self.assertEqual(self.client.get("/api/tasks/" + task).json["state"], "ready")
        local = other.client(local=True)
        self.addCleanup(local.close)
        self.assertEqual(local.get("/api/tasks/" + task).status, 200)
        held = client.post("/api/claims", {"workerId": "w", "leaseMs": 60000}).json["claims"][0]
        self.assertEqual(held["task"]["id"], task)
        client.send("POST", "/api/claims", {"workerId": "w", "waitMs": 60000})  # a long poll …
        self.wait_until(lambda: self.client.get("/metrics").body.decode().count("\nstint_waiting_claims 1\n") == 1, HANG_S,
                        "nobody waits")
        more = self.create()
        self.assertEqual(client.receive().json["claims"][0]["task"]["id"], more)  # … is answered by the leader
        body = {"title": "large", "payload": {"text": "x" * 500000}}
        large = client.post("/api/tasks", body).json["id"]
        self.assertEqual(len(client.get("/api/tasks/" + large).json["payload"]["text"]), 500000)
        self.assertIn("stint_passed_connections 2\n", self.once(other, "GET", "/metrics").body.decode())

    def test_what_a_stranger_does_wrong_by_way_of_a_standby_counts_for_the_stranger(self):
        _, client = self.standby()
        client.token = "stint_admin_wrong"
        self.assertEqual(client.get("/api/tasks").status, 401)
        with socket.create_connection(("127.0.0.1", self.server.port)) as raw:
            raw.sendall(b"STINT-PASS/1 1 " + b"00" * 16 + b" evil.example:80\r\nGET /livez HTTP/1.1\r\nHost: evil.example:80\r\n\r\n")
            self.assertIn(b" 503 ", raw.recv(4096))  # only who knows the term of the lead passes connections on

    def test_what_was_passed_on_to_the_leader_of_before_is_to_be_asked_again(self):
        """The leader takes the lead over from itself, and for a moment the other server knows its old term."""
        _, client = self.standby()
        self.assertEqual(client.get("/api/queues").status, 200)
        for round_ in range(10):
            client.close()
            self.server.postgres.sql("SELECT pg_terminate_backend(pid) FROM stint.lead")
            self.create()  # now it has
            asked = client.post("/api/tasks", {"title": "by way of the other", "queue": "p"})
            self.assertIn((asked.status, asked.json.get("code")), ((201, None), (503, "not_leader")))
            client.close()
            self.wait_until(lambda: self.once(client.server, "POST", "/api/tasks", {"title": "x", "queue": "p"}).status == 201, HANG_S, "never")

    def test_a_connection_by_way_of_a_standby_ends_with_its_leader_and_the_standby_leads(self):
        other, client = self.standby()
        task = client.post("/api/tasks", {"title": "stays"}).json["id"]
        self.server.kill()
        with self.assertRaises(proof.GONE):
            client.get("/api/tasks/" + task)
        client.close()
        self.wait_until(lambda: self.once(other, "GET", "/health/leader").status == 200, HANG_S, "nobody leads")
        self.assertEqual(self.once(other, "GET", "/api/tasks/" + task).json["state"], "ready")

    def test_a_leader_that_cannot_be_reached_is_named(self):
        other, client = self.standby()
        os.kill(self.server.process.pid, signal.SIGSTOP)  # it holds the lead, and its port is not connected to …
        try:
            self.server.postgres.sql("UPDATE stint.lead SET url = 'http://127.0.0.1:1'")
            self.wait_until(lambda: client.get("/readyz").json["leader"].get("url") == "http://127.0.0.1:1", HANG_S, "it looks on")
            asked = self.once(other, "POST", "/api/tasks", {"title": "no"})
            self.assertEqual((asked.status, asked.json["code"], asked.headers["Stint-Leader"]),
                             (503, "not_leader", "http://127.0.0.1:1"))
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)

    def test_a_server_that_stands_by_stops_when_told(self):
        other, _ = self.standby()
        self.assertEqual(other.stop(), 0)
        self.assertEqual(self.client.get("/health/leader").status, 200)

    def test_one_state_directory_is_for_one_server(self):
        run = subprocess.run([stintd.STINTD, "--home", self.server.home, "--listen", "127.0.0.1:0", "--store",
                              self.server.postgres.url], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(run.returncode, 78, run.stderr)
        self.assertIn("another stintd uses this state directory", run.stderr)

    def test_a_second_server_stands_by_and_takes_over_when_the_first_is_killed(self):
        tasks = [self.create() for _ in range(3)]
        held = self.claim(leaseMs=60000)[0]
        other = self.second()
        other.wait_for("standing by")
        self.server.kill()
        other.wait_for("listening")
        client = other.client()
        self.addCleanup(client.close)
        self.assertEqual([client.get("/api/tasks/" + task).json["state"] for task in tasks],
                         ["claimed", "ready", "ready"])
        done = client.post("/api/tasks/%s/complete" % held["task"]["id"], {"workerId": "w", "fence": held["fence"]})
        self.assertEqual(done.status, 200, done.body)  # the claim of before is still one

    def test_a_server_that_stops_hands_over_at_once(self):
        task = self.create()
        other = self.second()
        other.wait_for("standing by")
        self.assertEqual(self.server.stop(), 0)
        other.wait_for("listening")
        client = other.client()
        self.addCleanup(client.close)
        self.assertEqual(client.get("/api/tasks/" + task).json["state"], "ready")

    def test_a_leader_that_was_stopped_writes_no_more_when_it_wakes(self):
        self.create()
        other = self.second()
        other.wait_for("standing by")
        self.server.process.send_signal(signal.SIGSTOP)
        other.wait_for("listening")
        self.client.send("GET", "/api/queues")  # while it sleeps: nobody may be told what was once true
        self.server.process.send_signal(signal.SIGCONT)
        with self.assertRaises(proof.GONE):
            self.client.receive()
        self.assertEqual(self.server.process.wait(HANG_S), 74)
        self.assertIn("another stintd has taken this store over", self.server.said())
        client = other.client()
        self.addCleanup(client.close)
        self.assertEqual(client.post("/api/tasks", {"title": "more"}).status, 201)


class BothUrls:
    """What a worker needs to know of a server; this one is two."""

    def __init__(self, *servers):
        self.home = tempfile.mkdtemp(prefix="stint-both-")
        self.url = ",".join(server.url for server in servers)
        with open(os.path.join(self.home, "admin.token"), "w", opener=lambda path, how: os.open(path, how, 0o600)) as file:
            file.write(servers[0].token + "\n")

    def end(self):
        shutil.rmtree(self.home, ignore_errors=True)


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class SeveralUrls(Pair):
    """Programs that know both servers go on by themselves when the leader dies."""

    def setUp(self):
        super().setUp()
        self.other, self.client_of_other = self.standby()
        self.both = BothUrls(self.server, self.other)
        self.addCleanup(self.both.end)

    def stint(self, *words):
        run = subprocess.run([STINT, *words], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             env=stintd.environment(STINT_URL=self.both.url, STINT_TOKEN=self.server.token, STINT_HOME=self.both.home))
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def state(self, task):
        return self.once(self.other, "GET", "/api/tasks/" + task).json["state"]

    def test_a_command_goes_on_with_the_other_server(self):
        first = json.loads(self.stint("add", "one", "--json"))["task"]["id"]
        self.server.kill()
        second = json.loads(self.stint("add", "two", "--json"))["task"]["id"]
        self.assertEqual([self.state(task) for task in (first, second)], ["ready", "ready"])

    def test_no_credential_goes_in_the_clear_to_any_of_the_servers(self):
        run = subprocess.run([STINT, "ls"], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             env=stintd.environment(STINT_URL=self.server.url + ",http://192.0.2.1:1", STINT_TOKEN=self.server.token,
                                                    STINT_HOME=self.both.home))
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("in the clear", run.stderr)

    def test_a_worker_reports_what_it_did_under_the_leader_of_before(self):
        go = os.path.join(self.both.home, "go")
        worker = test_worker.Worker(self.both, {"sh": test_worker.sh("echo began; while ! [ -e %s ]; do sleep 0.05; done" % go)},
                                    home=self.both.home)
        self.addCleanup(worker.end)
        task = self.client.post("/api/tasks", {"title": "long", "queue": "q", "executor": "sh"}).json["id"]
        self.wait_until(lambda: self.client.get("/api/tasks/" + task).json["state"] == "running", HANG_S, "nobody runs it")
        self.server.kill()
        self.wait_until(lambda: self.once(self.other, "GET", "/health/leader").status == 200, HANG_S, "nobody leads")
        open(go, "w").close()
        self.wait_until(lambda: self.state(task) == "done", HANG_S, worker.said)
        self.assertEqual(self.once(self.other, "GET", "/api/tasks/" + task).json["attempt"], 1)
        self.assertEqual(worker.stop(), 0)

    def test_an_event_stream_goes_on_at_its_cursor(self):
        events = subprocess.Popen([STINT, "events", "--follow", "--after", "0", "-o", "jsonl"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env=stintd.environment(STINT_URL=self.both.url, STINT_TOKEN=self.server.token, STINT_HOME=self.both.home))
        self.addCleanup(events.stdout.close)
        self.addCleanup(events.wait)
        self.addCleanup(events.kill)

        def next_created():
            for line in events.stdout:
                event = json.loads(line)
                seen.append(event["seq"])
                if event["type"] == "task.created":
                    return event["task"]

        seen = []
        first = self.create()
        self.assertEqual(next_created(), first)
        self.server.kill()
        self.wait_until(lambda: self.once(self.other, "GET", "/health/leader").status == 200, HANG_S, "nobody leads")
        second = self.once(self.other, "POST", "/api/tasks", {"title": "two"}).json["id"]
        self.assertEqual(next_created(), second)
        self.assertEqual(seen, list(range(seen[0], seen[0] + len(seen))))  # without a gap, each once


for name in [name for name in dir(Pair) if name.startswith("test_")]:
    setattr(SeveralUrls, name, None)  # these are Pair's own


class SecondServer(proof.Server):
    def __init__(self, url, token=None):
        self.port = self.url = None
        self.given_token = token
        super().__init__("--store", url)

    def start(self):
        """It may not lead yet."""
        self.log = open(os.path.join(self.home, "log"), "ab")
        if self.given_token:
            with open(os.path.join(self.home, "admin.token"), "w", opener=lambda path, how: os.open(path, how, 0o600)) as file:
                file.write(self.given_token + "\n")
        self.launch()

    def wait_for(self, words):
        until = time.monotonic() + HANG_S
        while words not in self.said() or not os.path.exists(os.path.join(self.home, "url")):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("it does not say %s: %s" % (words, self.said()))
            time.sleep(0.02)
        self.url, self.token = self.read("url"), self.read("admin.token")
        self.port = int(self.url.rsplit(":", 1)[1])

    def read(self, name):
        with open(os.path.join(self.home, name)) as file:
            return file.read().strip()


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Away(OnPostgres, proof.ProofCase):
    def test_a_database_that_goes_away_while_nothing_is_under_way_is_waited_for(self):
        task = self.create()
        held = self.claim(leaseMs=1000)[0]
        for how in signal.SIGINT, signal.SIGQUIT:
            self.server.postgres.stop(how)
            self.wait_until(lambda: self.client.get("/api/tasks/" + task).status == 503, HANG_S, "it answers from memory for ever")
            self.assertIn("whether it still leads", self.client.get("/api/queues").json["detail"])
            self.assertEqual(self.client.get("/livez").status, 200)
            self.wait_until(lambda: self.client.post("/api/tasks", {"title": "no"}).status == 503, HANG_S, "it accepts changes")
            self.server.postgres.start()
            self.wait_until(lambda: self.client.post("/api/tasks", {"title": "yes"}).status == 201, HANG_S, "it does not come back")
            self.assertIsNone(self.server.process.poll())
        done = self.client.post("/api/tasks/%s/complete" % task, {"workerId": "w", "fence": held["fence"]})
        self.assertEqual(done.status, 200, done.body)  # its lease stood still
        self.assertEqual(self.server.stop(), 0)
        self.prove()


    def test_a_full_disk_refuses_changes_with_a_sentence_and_passes(self):
        self.create()
        self.server.postgres.sql("""
            CREATE FUNCTION stint.full() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END$$;
            CREATE TRIGGER full_disk BEFORE INSERT ON stint.event FOR EACH ROW EXECUTE FUNCTION stint.full()""")
        refused = self.client.post("/api/tasks", {"title": "no"})
        self.assertEqual((refused.status, refused.json["code"]), (503, "unavailable"))
        self.assertEqual(len(self.client.get("/api/tasks").json), 1)  # reads go on
        self.assertEqual(self.client.get("/readyz").status, 503)
        self.assertIn("the disk of PostgreSQL is full", self.server.said())
        self.server.postgres.sql("DROP TRIGGER full_disk ON stint.event")
        self.wait_until(lambda: self.client.post("/api/tasks", {"title": "yes"}).status == 201, HANG_S, "it does not come back")
        self.assertEqual(self.server.stop(), 0)
        self.prove()


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class LostTail(OnPostgres, proof.ProofCase):
    """A failover of the database to a copy that was behind is a restore, and is told."""

    def restored(self):
        found = [event for event in self.client.get("/api/events?limit=1000").json["events"] if event["type"] == "server.restored"]
        return found[-1]["data"] if found else None

    def test_a_leader_that_remembers_says_how_many_commits_are_gone(self):
        for _ in range(3):
            self.create()
        held = self.claim(leaseMs=60000)[0]
        self.server.postgres.sql("""
            BEGIN; DELETE FROM stint.turn WHERE turn > (SELECT max(turn) FROM stint.turn) - 2;
            SELECT pg_terminate_backend(pid) FROM stint.lead; COMMIT""")
        with self.assertRaises(proof.GONE):
            while True:
                self.client.post("/api/tasks", {"title": "more"})
        self.assertEqual(self.server.process.wait(HANG_S), 74)
        self.assertIn("has lost 2 turns", self.server.said())
        self.server.start()
        self.client.close()
        self.client = self.connect()
        self.assertEqual(self.restored()["lost"], 2)
        done = self.client.post("/api/tasks/%s/complete" % held["task"]["id"], {"workerId": "w", "fence": held["fence"]})
        self.assertEqual(done.status, 409, done.body)

    def test_a_start_on_another_timeline_says_that_nobody_knows(self):
        task = self.create()
        self.claim(leaseMs=60000)
        self.server.kill()
        self.server.postgres.sql("UPDATE stint.lead SET timeline = '0000007F'")
        self.server.start()
        self.client.close()
        self.client = self.connect()
        self.assertEqual(self.restored()["lost"], "unknown")
        self.assertEqual(self.client.get("/api/tasks/" + task).json["state"], "ready")


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Lead(unittest.TestCase):
    def test_who_leads_and_what_became_of_a_turn_whose_reply_was_lost(self):
        with postgres.Server() as server:
            run = subprocess.run([LEAD], capture_output=True, text=True, timeout=10 * HANG_S,
                                 env={**os.environ, "STINT_TEST_POSTGRES": server.url})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Refused(unittest.TestCase):
    """Each fault has a sentence with its cause and what to do."""

    @classmethod
    def setUpClass(cls):
        cls.postgres = postgres.Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.postgres.remove()

    def refused(self, url, *words):
        with tempfile.TemporaryDirectory() as home:
            run = subprocess.run([stintd.STINTD, "--home", home, "--listen", "127.0.0.1:0", "--store", url],
                                 capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(run.returncode, 74, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertEqual(run.stderr.count('"level":"error"'), 1, run.stderr)
        self.assertNotIn("secret", run.stderr)

    def at(self, **parameters):
        return self.postgres.url + "".join("&%s=%s" % item for item in parameters.items())

    def test_nobody_listens(self):
        """… yet: it is waited for."""
        server = SecondServer("postgres://a:secret@/x?host=/nonexistent")
        self.addCleanup(server.end)
        server.wait_for("PostgreSQL is away")
        for words in "cannot connect", "is PostgreSQL running there":
            self.assertIn(words, server.said())
        self.assertNotIn("secret", server.said())
        client = server.client()
        self.addCleanup(client.close)
        asked = client.get("/readyz")
        self.assertEqual((asked.status, asked.json["code"]), (503, "not_leader"))
        self.assertIn("waits for PostgreSQL", asked.json["detail"])
        self.assertEqual(server.stop(), 0)

    def test_no_such_role_or_database(self):
        self.refused(self.postgres.url.replace("stint@", "nobody-here@"), "does not exist", "createuser")
        self.refused(self.postgres.url.replace("/postgres?", "/nothing-here?"), "does not exist", "createdb")

    def waits(self, url, *words):
        """It may pass, so the server waits, and says why."""
        server = SecondServer(url)
        self.addCleanup(server.end)
        server.wait_for("PostgreSQL is away")
        for word in words:
            self.assertIn(word, server.said())
        self.assertNotIn("secret", server.said())
        client = server.client()
        self.addCleanup(client.close)
        self.assertEqual(client.get("/readyz").json["code"], "not_leader")
        return server

    def test_a_wrong_password(self):
        self.postgres.sql("CREATE ROLE locked LOGIN PASSWORD 'right'")
        with open(os.path.join(self.postgres.data, "pg_hba.conf")) as file:
            before = file.read()
        try:
            with open(os.path.join(self.postgres.data, "pg_hba.conf"), "w") as file:
                file.write("local all locked scram-sha-256\n" + before)
            self.postgres.sql("SELECT pg_reload_conf()")
            self.refused(self.postgres.url.replace("stint@", "locked:secret@"), "password authentication failed", "~/.pgpass")
        finally:
            with open(os.path.join(self.postgres.data, "pg_hba.conf"), "w") as file:
                file.write(before)
            self.postgres.sql("SELECT pg_reload_conf()")

    def test_a_url_that_is_none(self):
        self.refused("postgres://stint@/postgres?host=%s&nonsense=1" % self.postgres.directory, "invalid", "postgres://USER@HOST")
        self.refused("postgres://stint@/postgres?host=%s&port=9999999" % self.postgres.directory, "invalid", "postgres://USER@HOST")

    def test_a_database_that_has_no_place_for_one_more_session(self):
        self.postgres.sql("CREATE ROLE one LOGIN CONNECTION LIMIT 0")
        server = self.waits(self.postgres.url.replace("stint@", "one@"), "too many connections", "max_connections")
        self.assertEqual(server.stop(), 0)

    def test_what_a_role_has_set_for_readers_is_not_ours(self):
        self.postgres.sql("CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on; "
                          "ALTER ROLE reader SET synchronous_commit = off; CREATE SCHEMA readers AUTHORIZATION reader")
        with Started(self.postgres.url.replace("stint@", "reader@") + "&schema=readers") as server:
            client = server.client()
            self.addCleanup(client.close)
            self.assertEqual(client.post("/api/tasks", {"title": "yes"}).status, 201)

    def test_a_standby_is_waited_for_until_it_is_promoted(self):
        import pair
        with pair.Pair(synchronous=False) as both:
            server = self.waits(both.standby.url, "is a standby or still recovering", "name the primary")
            both.promote()
            server.wait_for("listening")
            client = server.client()
            self.addCleanup(client.close)
            self.wait_until_leads(client)
            self.assertEqual(client.post("/api/tasks", {"title": "yes"}).status, 201)
            self.assertEqual(server.stop(), 0)

    def wait_until_leads(self, client):
        until = time.monotonic() + HANG_S
        while client.get("/health/leader").status != 200:
            self.assertLess(time.monotonic(), until, "it never leads")
            time.sleep(0.02)

    def test_a_bad_name_of_a_schema(self):
        self.refused(self.at(schema="Bad-Name"), "small letters")

    def test_a_schema_that_is_not_ours_and_one_of_a_newer_release(self):
        self.postgres.sql("CREATE SCHEMA theirs; CREATE TABLE theirs.lead (a int)")
        self.refused(self.at(schema="theirs"), "theirs holds something that is not stint's")
        with Started(self.at(schema="newer")):
            pass
        self.postgres.sql("UPDATE newer.lead SET schema = 99, schema_min = 99")
        self.refused(self.at(schema="newer"), "newer stintd (schema 99")

    def test_a_role_that_may_make_no_schema(self):
        self.postgres.sql("CREATE ROLE poor LOGIN")
        self.refused(self.postgres.url.replace("stint@", "poor@") + "&schema=poors", "may not", "AUTHORIZATION")
        self.postgres.sql("CREATE SCHEMA poors AUTHORIZATION poor")
        with Started(self.postgres.url.replace("stint@", "poor@") + "&schema=poors"):
            pass

    def test_a_row_with_a_flipped_bit_is_found_at_the_start(self):
        with Started(self.at(schema="bits")):
            pass
        self.postgres.sql("UPDATE bits.meta SET value = value + 1 WHERE key = 1")
        self.refused(self.at(schema="bits"), "row 1 of table meta is damaged")

    def test_settings_that_lose_what_was_acknowledged(self):
        other = postgres.Server({"fsync": "off"}).start()
        self.addCleanup(other.remove)
        self.refused(other.url, "fsync is off", "set it on")


class Started:
    """A server that starts, is stopped and leaves its store."""

    def __init__(self, url):
        self.server = stintd.Server("--store", url)

    def __enter__(self):
        return self.server

    def __exit__(self, *_):
        self.server.stop()
        self.server.end()


if __name__ == "__main__":
    proof.main()
