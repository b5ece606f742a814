"""The server over a PostgreSQL of its own: killed under load, the database killed under it, a second server behind it, and what
each fault of the database says."""
import os
import signal
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
from hang import HANG_S

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
    def second(self):
        """Another server on the same store, with a home of its own."""
        other = SecondServer(self.server.postgres.url)
        self.addCleanup(other.end)
        return other

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
        self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.server.process.wait(HANG_S), 74)
        self.assertIn("another stintd has taken this store over", self.server.said())
        client = other.client()
        self.addCleanup(client.close)
        self.assertEqual(client.post("/api/tasks", {"title": "more"}).status, 201)


class SecondServer(proof.Server):
    def __init__(self, url):
        self.port = self.url = None
        super().__init__("--store", url)

    def start(self):
        """It does not serve yet."""
        self.log = open(os.path.join(self.home, "log"), "ab")
        self.launch()

    def wait_for(self, words):
        until = time.monotonic() + HANG_S
        while words not in self.said():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("it does not say %s: %s" % (words, self.said()))
            time.sleep(0.02)
        if words == "listening":
            while not os.path.exists(os.path.join(self.home, "url")):
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
            self.wait_until(lambda: self.client.post("/api/tasks", {"title": "no"}).status == 503, HANG_S, "it accepts changes")
            self.server.postgres.start()
            self.wait_until(lambda: self.client.post("/api/tasks", {"title": "yes"}).status == 201, HANG_S, "it does not come back")
            self.assertIsNone(self.server.process.poll())
        done = self.client.post("/api/tasks/%s/complete" % task, {"workerId": "w", "fence": held["fence"]})
        self.assertEqual(done.status, 200, done.body)  # its lease stood still
        self.assertEqual(self.server.stop(), 0)
        self.prove()


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
        self.refused("postgres://a:secret@/x?host=/nonexistent", "cannot connect", "is PostgreSQL running there")

    def test_no_such_role_or_database(self):
        self.refused(self.postgres.url.replace("stint@", "nobody-here@"), "does not exist", "createuser")
        self.refused(self.postgres.url.replace("/postgres?", "/nothing-here?"), "does not exist", "createdb")

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
