"""What operators see and do: slots and workers, taking a slot over, backup and restore, questions in SQL, figures."""
import json
import os
import re
import socket
import sqlite3
import stat
import subprocess
import sys
import time
import unittest

from hang import HANG_S
import stintd


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_time(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


class OperationsCase(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.server = stintd.Server(*self.flags)
        self.addCleanup(self.server.end)
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def ok(self, reply, status=200):
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def create(self, **fields):
        return self.ok(self.client.post("/api/tasks", {"title": "a task", "queue": "q", **fields}), 201)

    def claim(self, worker, **fields):
        return self.ok(self.client.post("/api/claims", {"workerId": worker, "queues": ["q"], **fields}))["claims"]

    def register(self, worker, **fields):
        return self.client.post("/api/workers/register", {"workerId": worker, **fields})

    def events(self, kind=None):
        events = self.ok(self.client.get("/api/events?after=0&limit=1000"))["events"]
        return [event for event in events if kind in (None, event["type"])]

    def mint(self, kind):
        token = self.ok(self.client.post("/api/tokens", {"kind": kind, "name": "x"}), 201)["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        return client


class Slots(OperationsCase):
    def slots(self):
        return {slot["name"]: slot for slot in self.ok(self.client.get("/api/slots"))}

    def test_a_slot_is_filled_empty_or_quarantined(self):
        self.assertEqual(self.ok(self.client.get("/api/slots")), [])
        self.ok(self.register("w1", slot="slot-1"))
        filled = self.slots()["slot-1"]
        self.assertEqual((filled["state"], filled["workerId"], filled["crashes"], filled["restarts"]),
                         ("filled", "w1", 0, 0))
        self.assertEqual(filled["since"], self.ok(self.client.get("/api/workers/w1"))["registeredAt"])
        self.ok(self.client.post("/api/slots/slot-2/crash"))
        empty = self.slots()["slot-2"]
        self.assertEqual((empty["state"], empty["workerId"], empty["since"], empty["crashes"], empty["restarts"]),
                         ("empty", None, None, 1, 1))
        for _ in range(2):
            self.ok(self.client.post("/api/slots/slot-2/crash"))
        quarantined = self.slots()["slot-2"]
        self.assertEqual((quarantined["state"], quarantined["crashes"]), ("quarantined", 3))
        self.assertEqual(quarantined["trialAt"] - quarantined["since"], 10 * 60 * 1000)
        self.ok(self.client.post("/api/slots/slot-2/unquarantine"))
        self.assertEqual(self.slots()["slot-2"]["state"], "empty")

    def test_the_slot_of_a_pool_has_a_slash_in_its_name(self):
        for _ in range(3):
            self.ok(self.client.post("/api/slots/w1%2Ftests-1/crash"))
        self.assertEqual(self.slots()["w1/tests-1"]["state"], "quarantined")
        self.ok(self.client.post("/api/slots/w1%2ftests-1/unquarantine"))
        self.assertEqual(self.slots()["w1/tests-1"]["state"], "empty")
        self.assertEqual(self.client.post("/api/slots/w1/tests-1/crash").status, 404)
        self.assertEqual(list(self.slots()), ["w1/tests-1"])

    def test_a_worker_of_a_quarantined_slot_gets_nothing_by_naming_another(self):
        self.ok(self.register("w1", slot="slot-1"))
        self.ok(self.register("w2"))
        for _ in range(3):
            self.ok(self.client.post("/api/slots/slot-1/crash"))
        task = self.client.post("/api/tasks", {"title": "t"}).json["id"]
        for slot in (None, "slot-1", "slot-2", "w1/tests-1"):
            self.assertEqual(self.ok(self.client.post("/api/claims", {"workerId": "w1", "slot": slot})), {"claims": []})
            reply = self.client.post(f"/api/tasks/{task}/claim", {"workerId": "w1", "slot": slot})
            self.assertEqual((reply.status, reply.json["code"]), (409, "slot_quarantined"), slot)
        reply = self.client.post("/api/workers/register", {"workerId": "w2", "slot": "slot-1"})
        self.assertEqual((reply.status, reply.json["code"]), (409, "slot_taken"))
        self.assertEqual(self.ok(self.client.post(f"/api/tasks/{task}/claim", {"workerId": "w2"}))["attempt"], 1)

    def test_a_quarantine_is_seen_after_a_restart_too(self):
        for _ in range(3):
            self.client.post("/api/slots/s/crash")
        since = self.slots()["s"]["since"]
        self.client.close()
        self.server.kill()
        self.server.start()
        self.assertEqual(self.slots()["s"]["state"], "quarantined")
        self.assertAlmostEqual(self.slots()["s"]["since"], since, delta=1000)


class Workers(OperationsCase):
    def test_a_worker_is_shown_with_everything_it_said(self):
        metadata = {"revision": "abc", "nested": {"list": [1, "two", None]}}
        self.ok(self.register("w/1", slot="slot-1", capabilities=["gpu"], executors=["claude"], maxConcurrent=3,
                              leaseMs=30000, metadata=metadata, host="a-host", bootId=boot_id(), pid=17,
                              startTime=12345))
        ids = [self.create(id=f"job-{i}")["id"] for i in range(2)] + [self.create()["id"]]
        self.assertEqual(len(self.claim("w/1", max=3)), 3)
        worker = self.ok(self.client.get("/api/workers/w%2F1"))
        self.assertEqual((worker["workerId"], worker["state"], worker["slot"], worker["capabilities"],
                          worker["executors"], worker["maxConcurrent"], worker["held"], worker["leaseGrantedMs"]),
                         ("w/1", "active", "slot-1", ["gpu"], ["claude"], 3, 3, 30000))
        self.assertEqual((worker["host"], worker["bootId"], worker["pid"], worker["startTime"], worker["metadata"]),
                         ("a-host", boot_id(), 17, 12345, metadata))
        self.assertTrue(0 < worker["leaseMs"] <= 30000, worker)
        self.assertEqual(worker["lastBeatAt"], worker["registeredAt"])
        self.assertEqual(sorted(worker["tasks"]), sorted(ids))
        listed, = self.ok(self.client.get("/api/workers"))
        self.assertEqual(listed["metadata"], metadata)
        self.assertEqual(len(listed["tasks"]), 3, "a list has the first three")

    def test_a_worker_that_has_ended_says_why_and_since_when(self):
        self.ok(self.register("w1"))
        self.ok(self.register("w2"))
        self.ok(self.client.call("DELETE", "/api/workers/w1?how=terminated"))
        gone = self.ok(self.client.get("/api/workers/w1"))
        self.assertEqual((gone["state"], gone["ended"], gone["leaseMs"]), ("inactive", "terminated", 0))
        self.assertGreaterEqual(gone["endedAt"], gone["registeredAt"])
        self.assertEqual([worker["workerId"] for worker in self.ok(self.client.get("/api/workers"))], ["w2", "w1"])
        inactive = self.ok(self.client.get("/api/workers?state=inactive"))
        self.assertEqual([worker["workerId"] for worker in inactive], ["w1"])
        self.assertEqual(len(self.ok(self.client.get("/api/workers?limit=1"))), 1)
        for query in ("state=busy", "limit=0", "limit=10001", "x=1"):
            reply = self.client.get("/api/workers?" + query)
            self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, query.split("=")[0]))
        self.assertEqual(self.client.get("/api/workers/w3").status, 404)

    def test_what_a_worker_said_is_known_after_a_restart(self):
        self.ok(self.register("w1", host="h", pid=5, metadata={"a": 1}))
        self.client.close()
        self.server.kill()
        self.server.start()
        worker = self.ok(self.client.get("/api/workers/w1"))
        self.assertEqual((worker["host"], worker["pid"], worker["metadata"]), ("h", 5, {"a": 1}))


class TakingASlotOver(OperationsCase):
    def setUp(self):
        super().setUp()
        self.process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        self.addCleanup(self.end_process)
        self.old = {"pid": self.process.pid, "startTime": start_time(self.process.pid)}
        self.here = {"host": "a-host", "bootId": boot_id()}
        self.ok(self.register("old", slot="s", **self.here, **self.old))

    def end_process(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    def newcomer(self, worker="new", here=None, **replaces):
        return self.register(worker, slot="s", **(here or self.here), pid=os.getpid(),
                             startTime=start_time(os.getpid()), replaces={"workerId": "old", **self.old, **replaces})

    def refused(self, reply, word):
        self.assertEqual((reply.status, reply.json["code"], reply.json["holder"]), (409, "slot_taken", "old"))
        self.assertIn(word, reply.json["detail"])
        self.assertEqual(self.ok(self.client.get("/api/workers/old"))["state"], "active")
        self.assertEqual(self.client.get("/api/workers/new").status, 404)

    def test_the_slot_of_a_dead_process_is_handed_over(self):
        self.create()
        self.claim("old")
        self.end_process()
        self.ok(self.newcomer())
        old = self.ok(self.client.get("/api/workers/old"))
        self.assertEqual((old["state"], old["ended"]), ("inactive", "replaced"))
        self.assertEqual(self.ok(self.client.get("/api/slots"))[0]["workerId"], "new")
        task = self.ok(self.client.get("/api/tasks/t-1"))
        self.assertEqual((task["state"], task["crashes"]), ("ready", 1))

    def test_a_first_beat_may_take_over_as_well(self):
        self.end_process()
        self.ok(self.client.post("/api/workers/heartbeat", {
            "workerId": "new", "slot": "s", **self.here, "replaces": {"workerId": "old", **self.old}}))
        self.assertEqual(self.ok(self.client.get("/api/workers/old"))["ended"], "replaced")

    def test_a_process_that_lives_keeps_its_slot_whatever_is_said(self):
        self.refused(self.newcomer(), "is alive")
        self.refused(self.register("new", slot="s", **self.here), "replaces")

    def test_lies_are_told_apart(self):
        self.end_process()
        self.refused(self.newcomer(here={**self.here, "host": "elsewhere"}), "same host and boot")
        self.refused(self.newcomer(here={**self.here, "bootId": "0" * 31 + "1"}), "same host and boot")
        self.refused(self.newcomer(startTime=self.old["startTime"] + 1), "another process")
        self.refused(self.newcomer(pid=self.old["pid"] + 1), "another process")
        self.refused(self.newcomer(workerId="somebody"), "another worker")

    def test_a_worker_that_never_said_who_it_is_cannot_be_shown_dead(self):
        self.ok(self.register("mute", slot="t"))
        reply = self.register("new", slot="t", **self.here, replaces={"workerId": "mute", "pid": 1, "startTime": 1})
        self.assertEqual((reply.status, reply.json["holder"]), (409, "mute"))
        self.assertIn("did not say", reply.json["detail"])


class Backup(OperationsCase):
    def directory(self):
        return os.path.join(self.server.home, "backups")

    def left(self):
        return sorted(os.listdir(self.directory())) if os.path.isdir(self.directory()) else []

    def fill(self, count=40, size=200000):
        """A store of some megabytes: a backup takes many slices."""
        for i in range(count):
            self.create(id=f"big-{i}", payload="x" * size)

    def test_a_backup_is_a_private_file_named_by_the_time(self):
        self.create()
        made = self.ok(self.client.post("/api/backup"), 201)
        self.assertRegex(made["file"], r"^stint-\d{8}T\d{6}\.\d{3}Z\.db$")
        path = os.path.join(self.directory(), made["file"])
        self.assertEqual((made["path"], made["bytes"]), (path, os.path.getsize(path)))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.directory()).st_mode), 0o700)
        self.assertEqual(self.left(), [made["file"]])
        last = self.events()[-1]
        self.assertEqual((last["type"], last["seq"], last["actor"], last["data"]["route"]),
                         ("server.audited", made["lastEvent"], "admin", "POST /api/backup"))

    def test_a_name_is_no_path_and_nothing_is_written_over(self):
        made = self.ok(self.client.post("/api/backup", {"file": "nightly.db"}), 201)
        self.assertEqual(made["file"], "nightly.db")
        with open(made["path"], "rb") as file:
            before = file.read()
        self.create()
        again = self.client.post("/api/backup", {"file": "nightly.db"})
        self.assertEqual((again.status, again.json["code"]), (409, "backup_exists"))
        with open(made["path"], "rb") as file:
            self.assertEqual(file.read(), before)
        for name in ("../x", "a/b", "/tmp/x", "..", ".hidden", "a.partial", "x" * 129, "", "a b", "a\0b", 7, ["a"]):
            with self.subTest(name=name):
                reply = self.client.post("/api/backup", {"file": name})
                self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, "file"))
        self.assertEqual(self.client.post("/api/backup", {"colour": 1}).status, 422)
        self.assertEqual(self.left(), ["nightly.db"])

    def test_a_link_in_the_place_of_the_directory_is_not_followed(self):
        elsewhere = os.path.join(self.server.home, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(elsewhere, self.directory())
        reply = self.client.post("/api/backup")
        self.assertEqual((reply.status, reply.json["code"]), (503, "unavailable"))
        self.assertEqual(os.listdir(elsewhere), [])
        os.unlink(self.directory())
        os.mkdir(self.directory())
        os.symlink(os.path.join(elsewhere, "target"), os.path.join(self.directory(), "x.db"))
        self.assertIn(self.client.post("/api/backup", {"file": "x.db"}).status, (409, 503))
        self.assertEqual(os.listdir(elsewhere), [])

    def test_only_admins_make_backups(self):
        for kind in ("operator", "producer", "worker", "viewer", "metrics"):
            self.assertEqual(self.mint(kind).post("/api/backup").status, 403)
        self.assertEqual(self.left(), [])

    def begin(self):
        """Ask for a backup and do not read the reply; return the socket once the copy has begun."""
        wire = socket.create_connection(("127.0.0.1", self.server.port), timeout=HANG_S)
        wire.sendall((f"POST /api/backup HTTP/1.1\r\nHost: localhost:{self.server.port}\r\n"
                      f"Authorization: Bearer {self.server.token}\r\nContent-Length: 0\r\n\r\n").encode())
        self.addCleanup(wire.close)
        return wire

    def status_of(self, wire):
        bytes_ = b""
        while b"\r\n" not in bytes_:
            got = wire.recv(65536)
            if not got:
                return None
            bytes_ += got
        return int(bytes_.split(b" ")[1])

    def test_the_server_serves_while_it_copies_and_makes_one_at_a_time(self):
        self.fill()
        first, second = self.begin(), self.begin()
        self.create(id="meanwhile")
        self.assertEqual(sorted([self.status_of(first), self.status_of(second)]), [201, 409])
        self.assertEqual(len(self.left()), 1)
        self.ok(self.client.post("/api/backup"), 201)

    def test_a_client_that_leaves_takes_its_backup_with_it(self):
        self.fill()
        wire = self.begin()
        until = time.monotonic() + HANG_S
        while not self.left() and time.monotonic() < until:
            pass
        wire.close()
        while any(name.endswith(".partial") for name in self.left()):
            self.assertLess(time.monotonic(), until)
        self.ok(self.client.post("/api/backup"), 201)
        self.assertEqual([name for name in self.left() if name.endswith(".partial")], [])

    def test_stopping_ends_a_backup(self):
        self.fill()
        wire = self.begin()
        self.client.close()
        self.assertEqual(self.server.stop(), 0)
        self.assertIn(self.status_of(wire), (201, 503, None))
        self.assertEqual([name for name in self.left() if name.endswith(".partial")], [])

    def test_what_a_killed_server_left_half_done_is_removed(self):
        self.ok(self.client.post("/api/backup", {"file": "whole.db"}), 201)
        self.client.close()
        self.server.kill()
        for name in ("half.db.partial", "other.partial"):
            with open(os.path.join(self.directory(), name), "w") as file:
                file.write("half")
        self.server.start()
        self.assertEqual(self.left(), ["whole.db"])


class SmallDisk(unittest.TestCase):
    """In a file system of a few megabytes of its own."""

    def test_a_backup_that_does_not_fit_is_refused_and_leaves_nothing(self):
        probe = subprocess.run(["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"],
                               capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no namespace to mount a small disk in")
        inner = """
import sys, os
sys.path.insert(0, sys.argv[1])
import stintd
server = stintd.Server()
try:
    client = server.client()
    for i in range(30):
        reply = client.post("/api/tasks", {"title": "t", "payload": "x" * 400000})
        assert reply.status == 201, reply.body
    reply = client.post("/api/backup")
    assert (reply.status, reply.json["code"]) == (503, "unavailable"), reply.body
    assert "room" in reply.json["detail"], reply.body
    assert os.listdir(server.home + "/backups") == []
    assert client.get("/readyz").status == 200
    reply = client.post("/api/tasks", {"title": "after"})
    assert reply.status == 201, reply.body
    client.close()
finally:
    server.end()
"""
        script = 'mount -t tmpfs -o size=36m none /mnt && export TMPDIR=/mnt && exec "$@"'
        run = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", inner,
                              os.path.dirname(os.path.abspath(__file__))], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(run.returncode, 0, run.stderr)


class Restore(OperationsCase):
    def restore(self, path, *words, home=None):
        return subprocess.run([stintd.STINTD, "--home", home or self.server.home, "--restore", path, *words],
                              capture_output=True, text=True, timeout=HANG_S)

    def test_no_byte_of_a_hostile_file_reaches_the_terminal(self):
        path = os.path.join(self.server.home, "evil.db")
        database = sqlite3.connect(path)
        for sql in ("PRAGMA application_id = 1937010292", "CREATE TABLE a(x)", "PRAGMA writable_schema = 1",
                    "UPDATE sqlite_master SET name = '\x1b[31m\x9b2J\xe9', sql = 'CREATE garbage'"):
            database.execute(sql)
        database.commit()
        database.close()
        said = self.restore(path, home=os.path.join(self.server.home, "other"))
        self.assertEqual(said.returncode, 74)
        self.assertIn("(\\x1b[31m\\xc2\\x9b2J\xe9)", said.stderr)

    def test_the_store_is_as_it_was_and_nothing_of_since_is_mistaken_for_it(self):
        self.create(id="before")
        self.create(id="held")
        held = {claim["task"]["id"]: claim for claim in self.claim("w1", max=2)}
        self.ok(self.client.post("/api/tasks/before/complete",
                                 {"workerId": "w1", "fence": held["before"]["fence"], "result": 1}))
        generated = self.create()["id"]
        made = self.ok(self.client.post("/api/backup"), 201)
        lost = {self.create()["id"] for _ in range(5)}
        since, = self.claim("w2")
        self.client.close()
        self.server.kill()

        # root may put a backup back though only the service may read its key
        key = ("--set", "tls.cert=%s/cert.pem" % self.server.home, "--set", "tls.key=%s/key.pem" % self.server.home)
        done = self.restore(made["path"], *key)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        for word in (made["path"], "generation", "claim", "fence", "before-restore"):
            self.assertIn(word, done.stdout)
        kept = [name for name in os.listdir(self.server.home) if ".before-restore-" in name]
        self.assertEqual(len(kept), 1)
        old = sqlite3.connect(f"file:{self.server.home}/{kept[0]}?mode=ro", uri=True)
        self.assertEqual(old.execute("SELECT count(*) FROM task").fetchone(), (8,))
        old.close()

        self.server.start()
        self.assertEqual(self.ok(self.client.get("/api/tasks/before"))["state"], "done")
        self.assertEqual(self.ok(self.client.get("/api/tasks/before"))["result"], 1)
        self.assertEqual(self.ok(self.client.get("/api/tasks/held"))["state"], "ready")
        self.assertEqual(self.ok(self.client.get(f"/api/tasks/{generated}"))["state"], "ready")
        for name in lost:
            self.assertEqual(self.client.get(f"/api/tasks/{name}").status, 404)
        for worker, claim in (("w1", held["held"]), ("w2", since)):
            reply = self.client.post(f"/api/tasks/{claim['task']['id']}/complete",
                                     {"workerId": worker, "fence": claim["fence"]})
            self.assertEqual((reply.status, reply.json["code"]), (409, "stale_claim"))
            self.assertIn("restored", reply.json["detail"])
        fresh = self.create()["id"]
        self.assertNotIn(fresh, lost | {generated})
        again = {claim["task"]["id"]: claim for claim in self.claim("w3", max=9)}
        self.assertGreater(int(again["held"]["fence"]), int(held["held"]["fence"]))
        self.assertIn("server.restored", [event["type"] for event in self.events()])
        self.assertEqual(self.ok(self.client.get("/api/version"))["generation"], 2)

    def test_a_worker_that_noticed_nothing_is_told_that_its_work_is_void(self):
        """Its token is the one in the backup, and it beats when the server is there again: for it nothing happened."""
        beating = self.ok(self.register("w1", slot="slot-1", leaseMs=3600000))
        self.create(id="held")
        self.claim("w1")
        token = self.ok(self.client.post("/api/workers/heartbeat",
                                         {"workerId": "w1", "token": beating["token"], "boundTasks": ["held"]}))["token"]
        self.ok(self.client.post("/api/v1/worker/orchestrator/register", {"worker_id": "named"}))
        made = self.ok(self.client.post("/api/backup"), 201)
        self.client.close()
        self.server.stop()
        self.assertEqual(self.restore(made["path"]).returncode, 0)
        self.server.start()
        reply = self.client.post("/api/workers/heartbeat", {"workerId": "w1", "token": token})
        self.assertEqual((reply.status, reply.json["code"]), (410, "WORKER_INACTIVE"))
        self.assertEqual([(event["worker"], event["data"]["ended"]) for event in self.events("worker.inactive")],
                         [("w1", "terminated")])
        self.assertEqual(self.ok(self.client.get("/api/workers/named"))["state"], "active")
        self.ok(self.register("w2", slot="slot-1"))

    def kept(self):
        return sorted(name for name in os.listdir(self.server.home) if ".before-restore-" in name)

    def test_one_restore_after_the_other_keeps_every_store(self):
        made = self.ok(self.client.post("/api/backup"), 201)
        self.client.close()
        self.server.stop()
        for count in range(1, 4):
            done = self.restore(made["path"])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(self.kept()), count)

    def test_the_log_of_a_store_that_cannot_be_read_is_kept_with_it(self):
        made = self.ok(self.client.post("/api/backup"), 201)
        self.client.close()
        self.server.stop()
        self.server.start()
        self.create(id="only-in-the-log")
        self.client.close()
        self.server.kill()
        store = os.path.join(self.server.home, "stint.db")
        with open(store + "-wal", "rb") as file:
            log = file.read()
        self.assertIn(b"only-in-the-log", log)
        with open(store, "r+b") as file:
            file.write(b"not a database any more")
        done = self.restore(made["path"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([name.endswith("-wal") for name in self.kept()], [False, True])
        with open(os.path.join(self.server.home, self.kept()[1]), "rb") as file:
            self.assertEqual(file.read(), log)
        self.server.start()
        self.assertEqual(self.client.get("/api/tasks/only-in-the-log").status, 404)

    def test_a_running_server_is_not_restored_over(self):
        made = self.ok(self.client.post("/api/backup"), 201)
        self.create(id="kept")
        refused = self.restore(made["path"])
        self.assertEqual((refused.returncode, refused.stdout), (74, ""))
        self.assertIn("in use", refused.stderr)
        self.assertEqual([name for name in os.listdir(self.server.home) if "restor" in name], [])
        self.assertEqual(self.client.get("/api/tasks/kept").status, 200)

    def test_what_is_no_backup_is_refused_and_the_store_stays(self):
        self.create(id="kept")
        self.client.close()
        self.server.stop()
        garbage = os.path.join(self.server.home, "garbage")
        for content in (b"", b"not a database at all, and long enough to be read as one" * 100):
            with open(garbage, "wb") as file:
                file.write(content)
            refused = self.restore(garbage)
            self.assertEqual((refused.returncode, refused.stdout), (74, ""))
            self.assertIn("not a stint store", refused.stderr)
        missing = self.restore(os.path.join(self.server.home, "nothing-there"))
        self.assertEqual(missing.returncode, 74)
        self.assertEqual([name for name in os.listdir(self.server.home) if "restor" in name], [])
        self.server.start()
        self.assertEqual(self.client.get("/api/tasks/kept").status, 200)

    def test_a_backup_makes_a_server_where_there_was_none(self):
        self.create(id="moved")
        made = self.ok(self.client.post("/api/backup"), 201)
        other = os.path.join(self.server.home, "other-home")
        done = self.restore(made["path"], home=other)
        self.assertEqual((done.returncode, "kept" in done.stdout), (0, False), done.stderr)
        self.client.close()
        self.server.stop()
        home, self.server.home = self.server.home, other
        try:
            self.server.start()
            moved = self.server.client()
            self.assertEqual(moved.get("/api/tasks/moved").status, 200)
            moved.close()
            self.server.stop()
        finally:
            self.server.home = home


class Query(OperationsCase):
    def ask(self, sql, params=None, client=None):
        body = {"sql": sql} if params is None else {"sql": sql, "params": params}
        return (client or self.client).post("/api/query", body)

    def test_a_question_is_answered_in_columns_and_rows(self):
        self.create(id="a", priority=5)
        answer = self.ok(self.ask("SELECT seq, priority, 1.5 AS half, NULL AS none, 'é' AS text, x'00ff' AS bytes,"
                                  " 9007199254740993 AS big FROM task WHERE priority > ?", [4]))
        self.assertEqual(answer, {
            "columns": ["seq", "priority", "half", "none", "text", "bytes", "big"],
            "rows": [[1, 5, 1.5, None, "é", {"base64": "AP8="}, "9007199254740993"]],
            "truncated": False})
        values = ["a'; DROP TABLE task --", -1, 2.5, None, True]
        self.assertEqual(self.ok(self.ask("SELECT ?, ?, ?, ?, ?", values))["rows"], [values[:4] + [1]])

    def rows(self, sql, params=None):
        answer = self.ok(self.ask(sql, params))
        return [dict(zip(answer["columns"], row)) for row in answer["rows"]]

    def test_tasks_are_a_table_that_people_can_read(self):
        self.create(id="own", title="Fix \"it\"", queue="ci", priority=5, executor="shell", owner="s-1", payload={"n": [1]})
        made = self.create(title="second")
        own, second = self.rows("SELECT * FROM tasks ORDER BY seq")
        self.assertEqual({name: own[name] for name in ("id", "title", "state", "queue", "priority", "executor", "owner", "attempt")},
                         {"id": "own", "title": 'Fix "it"', "state": "ready", "queue": "ci", "priority": 5, "executor": "shell",
                          "owner": "s-1", "attempt": 0})
        self.assertEqual((second["id"], second["worker_id"], second["claimed_at"]), (made["id"], None, None))
        self.assertRegex(own["created_at"], r"^\d{4}-\d\d-\d\dT.*Z$")
        self.assertEqual(json.loads(own["document"])["payload"], {"n": [1]})
        for sql, ids in (("id = 'own'", ["own"]), ("id = ?1", [made["id"]]), ("id = 'none'", []), ("seq > 1", [made["id"]]),
                         ("title LIKE 'fix%'", ["own"]), ("seq = 1 AND id = 'own'", ["own"]), ("seq < 2 OR queue = 'x'", ["own"])):
            found = self.rows("SELECT id FROM tasks WHERE " + sql, [made["id"]] if "?" in sql else None)
            self.assertEqual([row["id"] for row in found], ids, sql)
        self.assertEqual(self.rows("SELECT queue, count(*) AS n FROM tasks GROUP BY queue ORDER BY queue"),
                         [{"queue": "ci", "n": 1}, {"queue": made["queue"], "n": 1}])

    def test_events_are_a_table_that_people_can_read(self):
        self.create(id="own")
        self.claim("w1")
        rows = self.rows("SELECT * FROM events WHERE task = 'own'")
        self.assertEqual([(row["type"], row["worker"], row["actor"]) for row in rows],
                         [("task.created", None, "admin"), ("task.claimed", "w1", "admin")])
        self.assertRegex(rows[0]["time"], r"^\d{4}-\d\d-\d\dT.*Z$")
        last = self.rows("SELECT max(seq) AS last FROM events")[0]["last"]
        self.assertEqual([row["seq"] for row in self.rows("SELECT seq FROM events WHERE seq >= ?1", [last])][0], last)
        self.assertEqual(self.rows("SELECT e.type FROM tasks AS t JOIN events AS e ON e.task = t.id WHERE t.id = 'own' LIMIT 1"),
                         [{"type": "task.created"}])
        self.refused(self.ask("DELETE FROM tasks"), "may not be modified")
        self.refused(self.ask("CREATE VIRTUAL TABLE temp.x USING tasks"), "USING")

    def test_the_tables_of_worker_connectors_are_there(self):
        self.ok(self.register("w1", capabilities=["node", 'q"x'], maxConcurrent=2, metadata={"a": 1}))
        self.create(id="VTID-01180")
        self.claim("w1")
        answer = self.ok(self.ask("SELECT * FROM worker_registry"))
        worker = dict(zip(answer["columns"], answer["rows"][0]))
        self.assertEqual((worker["worker_id"], sorted(json.loads(worker["capabilities"])), worker["max_concurrent"],
                          worker["status"], json.loads(worker["metadata"])),
                         ("w1", ["node", 'q"x'], 2, "active", {"a": 1}))
        self.assertRegex(worker["registered_at"], r"^\d{4}-\d\d-\d\dT.*Z$")
        answer = self.ok(self.ask("SELECT vtid, worker_id, released_at FROM worker_task_claims"))
        self.assertEqual(answer["rows"], [["VTID-01180", "w1", None]])

    def refused(self, reply, word):
        self.assertEqual((reply.status, reply.json["code"]), (422, "invalid"), reply.body)
        self.assertIn(word, reply.json["errors"][0]["message"])

    def test_it_reads_and_does_nothing_else(self):
        self.create(id="kept")
        for sql, word in (("DELETE FROM task", "only read"), ("ATTACH '/tmp/x' AS x", "only read"),
                          ("PRAGMA writable_schema=ON", "PRAGMA"), ("SELECT load_extension('x')", "load_extension"),
                          ("SELECT 1; SELECT 2", "one statement"), ("SELECT * FROM token", "token.hash"),
                          ("WITH x AS (SELECT 1) UPDATE task SET state = 1", "only read"),
                          ("SELECT hash FROM (SELECT 1 AS hash) FULL JOIN token USING (hash)", "USING"),
                          ("SELEKT", "syntax"), ("", "no statement")):
            with self.subTest(sql=sql):
                self.refused(self.ask(sql), word)
        self.refused(self.ask("SELECT ?"), "parameters")
        self.refused(self.ask("SELECT 1", [1]), "parameters")
        self.refused(self.ask("SELECT ?", [{}]), "must be")
        self.assertEqual(self.client.post("/api/query", {}).status, 422)
        self.assertEqual(self.ok(self.client.get("/api/tasks/kept"))["state"], "ready")

    def test_it_ends_in_time_and_in_size(self):
        self.refused(self.ask("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t) SELECT max(n) FROM t"),
                     "20 ms")
        answer = self.ok(self.ask("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t LIMIT 600) SELECT n FROM t"))
        self.assertEqual((len(answer["rows"]), answer["truncated"]), (500, True))
        self.refused(self.ask("SELECT zeroblob(100000000)"), "zeroblob may not be used")
        self.assertEqual(self.client.get("/readyz").status, 200)

    def test_only_admins_ask_and_every_question_leaves_a_trace(self):
        for kind in ("operator", "producer", "worker", "viewer", "metrics"):
            self.assertEqual(self.ask("SELECT 1", client=self.mint(kind)).status, 403)
        self.ok(self.client.post("/api/query", {"sql": "SELECT 'who asked'"}, {"X-Request-Id": "r-1"}))
        trace, = self.events("server.audited")
        self.assertEqual((trace["actor"], trace["data"]["route"], trace["data"]["sql"], trace["data"]["requestId"]),
                         ("admin", "POST /api/query", "SELECT 'who asked'", "r-1"))


class Version(OperationsCase):
    def test_a_server_says_which_one_it_is(self):
        about = self.ok(self.client.get("/api/version"))
        self.assertEqual((about["name"], about["api"], about["store"], about["generation"], about["starts"]),
                         ("stint", 1, "sqlite", 1, 1))
        self.assertGreaterEqual(about["schema"], 1)
        self.assertRegex(about["version"], r"^\d+\.\d+")
        self.assertGreaterEqual(about["uptimeMs"], 0)
        self.client.close()
        self.server.kill()
        before = int(time.time() * 1000)
        self.server.start()
        again = self.ok(self.client.get("/api/version"))
        self.assertEqual(again["starts"], 2)
        self.assertTrue(about["startedAt"] <= before <= again["startedAt"] <= time.time() * 1000, (about, before, again))


SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)')


def parse_metrics(text):
    """Prometheus's text format, strictly: {family: (type, {(name, labels): value})}."""
    families, helped = {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            assert name not in helped and words, line
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name in helped and name not in families, line
            assert kind in ("counter", "gauge", "histogram"), line
            assert kind != "counter" or name.endswith("_total"), line
            families[name] = (kind, {})
            last = name
        else:
            name, labels, value = SAMPLE.match(line).groups()
            kind, samples = families[last]
            known = {last} if kind != "histogram" else {last + end for end in ("_bucket", "_sum", "_count")}
            assert name in known, f"{line} after {last}"
            pairs = tuple(LABEL.findall(labels or ""))
            assert ",".join(f'{key}="{text}"' for key, text in pairs) == (labels or ""), line
            assert (name, pairs) not in samples, "twice: " + line
            samples[name, pairs] = float(value)
    for name, (kind, samples) in families.items():
        if kind == "histogram":
            buckets = [value for (sample, _), value in samples.items() if sample.endswith("_bucket")]
            assert buckets == sorted(buckets), name
            assert buckets[-1] == samples[name + "_count", ()], name
            assert (name + "_bucket", (("le", "+Inf"),)) in samples
    return families


class Metrics(OperationsCase):
    def figures(self):
        reply = self.client.get("/metrics")
        self.assertEqual((reply.status, reply.headers["Content-Type"]),
                         (200, "text/plain; version=0.0.4; charset=utf-8"))
        return parse_metrics(reply.body.decode())

    def value(self, name, family=None, **labels):
        kind, samples = self.figures()[family or name]
        return samples.get((name, tuple(labels.items())))

    def test_every_name_of_the_contract_that_can_be_known_is_there(self):
        self.assertLessEqual({
            "stint_tasks", "stint_task_transitions_total", "stint_task_wait_seconds", "stint_task_run_seconds",
            "stint_oldest_waiting_seconds", "stint_waiting_tasks", "stint_claims_total",
            "stint_lease_expirations_total", "stint_workers", "stint_worker_heartbeat_age_seconds_max",
            "stint_workers_created_total", "stint_worker_tasks_rescheduled_total",
            "stint_worker_reschedule_errors_total", "stint_worker_registrations_refused_total",
            "stint_http_request_seconds", "stint_store_commit_seconds", "stint_store_degraded", "stint_build_info",
            "process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds",
            "process_max_fds", "stint_store_bytes"}, set(self.figures()))
        self.assertGreater(self.value("process_resident_memory_bytes"), 1 << 20)
        self.assertGreater(self.value("stint_store_bytes"), 0)
        self.assertLess(abs(self.value("process_start_time_seconds") - time.time()), 60)

    def test_a_reader_of_openmetrics_gets_that(self):
        reply = self.client.call("GET", "/metrics", headers={
            "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"})
        self.assertEqual(reply.headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        lines = reply.body.decode().splitlines()
        self.assertEqual((lines[-1], lines.count("# EOF")), ("# EOF", 1))
        self.assertIn("# TYPE stint_claims counter", lines)
        self.assertIn('stint_claims_total{result="granted"} 0', lines)
        described = {line.split(" ")[2] for line in lines if line.startswith(("# HELP", "# TYPE"))}
        self.assertEqual([name for name in described if name.endswith("_total")], [])

    def test_tasks_are_counted_by_queue_and_state_and_by_where_they_went(self):
        for i in range(3):
            self.create(id=f"t{i}")
        self.create(id="other", queue='odd "name"\\')
        self.create(id="parked", state="pending")
        claim, *_ = self.claim("w1")
        self.assertEqual(self.value("stint_tasks", queue="q", state="ready"), 2)
        self.assertEqual(self.value("stint_tasks", queue="q", state="claimed"), 1)
        self.assertEqual(self.value("stint_tasks", queue="q", state="pending"), 1)
        self.assertEqual(self.value("stint_tasks", queue='odd \\"name\\"\\\\', state="ready"), 1)
        self.ok(self.client.post("/api/tasks/t0/complete", {"workerId": "w1", "fence": claim["fence"]}))
        self.ok(self.client.call("PATCH", "/api/tasks/t1", {"queue": "moved"}))
        self.assertEqual(self.value("stint_tasks", queue="q", state="claimed"), 0)
        self.assertEqual(self.value("stint_tasks", queue="q", state="ready"), 1)
        self.assertEqual(self.value("stint_tasks", queue="moved", state="ready"), 1)
        moved = {to: self.value("stint_task_transitions_total", queue="q", to=to)
                 for to in ("ready", "pending", "claimed", "done", "failed")}
        self.assertEqual(moved, {"ready": 3, "pending": 1, "claimed": 1, "done": 1, "failed": None})
        self.client.close()
        self.server.kill()
        self.server.start()
        self.assertEqual(self.value("stint_tasks", queue="q", state="ready"), 1)
        self.assertIsNone(self.value("stint_task_transitions_total", queue="q", to="ready"))

    def test_times_of_waiting_and_running_are_kept(self):
        self.create(id="a")
        self.create(id="b")
        self.assertGreaterEqual(self.value("stint_oldest_waiting_seconds", queue="q"), 0)
        claims = self.claim("w1", max=2)
        self.assertEqual(self.value("stint_oldest_waiting_seconds", queue="q"), 0)
        self.assertEqual(self.value("stint_task_wait_seconds_count", "stint_task_wait_seconds"), 2)
        self.assertEqual(self.value("stint_task_run_seconds_count", "stint_task_run_seconds"), 0)
        for claim, how in zip(claims, ("complete", "release")):
            self.ok(self.client.post(f"/api/tasks/{claim['task']['id']}/{how}",
                                     {"workerId": "w1", "fence": claim["fence"]}))
        self.assertEqual(self.value("stint_task_run_seconds_count", "stint_task_run_seconds"), 2)

    def test_what_waits_is_counted_by_its_reason(self):
        def reason(name):
            return self.value("stint_waiting_tasks", reason=name)
        self.create(id="a")
        self.create(id="parked", state="pending")
        self.create(id="later", notBefore=int(time.time() * 1000) + 3600000)
        self.create(id="child", blockedBy=["a"])
        self.assertEqual((reason("ready"), reason("parked"), reason("scheduled"), reason("dependency")), (1, 1, 1, 1))
        self.ok(self.client.post("/api/queues/q/pause"))
        self.assertEqual((reason("ready"), reason("queue_paused")), (0, 1))
        self.ok(self.client.post("/api/queues/q/resume"))
        claim, = self.claim("w1")
        self.ok(self.client.post("/api/tasks/a/fail", {
            "workerId": "w1", "fence": claim["fence"], "error": {"code": "EXECUTION_ERROR", "message": "no"}}))
        self.assertEqual((reason("back_off"), reason("scheduled")), (1, 1))
        self.ok(self.register("w2", executors=["claude"]))
        self.create(id="needs", executor="codex", queue="other")
        self.assertEqual(reason("no_executor"), 1)

    def test_what_agents_use_is_counted_by_executor(self):
        def used(name):
            return [self.value("stint_agent_%s_total" % name, executor=executor) for executor in ("claude", "codex")]
        for task, executor in (("a", "claude"), ("b", "codex")):
            self.create(id=task, executor=executor)
            claim, = self.claim("w1", executors=[executor])
            for spent in ({"inputTokens": 10, "outputTokens": 5, "usd": 0.25}, {"inputTokens": 30, "outputTokens": 6, "usd": 1.5}):
                if executor == "codex":
                    spent["usd"] = None
                self.ok(self.client.post("/api/tasks/%s/progress" % task, {"workerId": "w1", "fence": claim["fence"], "usage": spent}))
        self.assertEqual((used("attempts"), used("tokens"), used("usd"), used("unpriced")), ([1, 1], [36, 36], [1.5, 0], [0, 1]))

    def test_what_was_spent_in_a_week_is_told_by_hour_too(self):
        for executor in ("claude", "codex"):
            self.create(id=executor, executor=executor)
            claim, = self.claim("w1", executors=[executor])
            for usd in (0.25, 1.5):
                spent = {"inputTokens": 10, "outputTokens": 5, "usd": usd if executor == "claude" else None}
                self.ok(self.client.post("/api/tasks/%s/progress" % executor, {"workerId": "w1", "fence": claim["fence"], "usage": spent}))
        week = self.client.get("/api/stats?span=7d").json["spent"]
        self.assertEqual(sorted(one["executor"] for one in week), ["claude", "codex"])
        for one in week:
            sums = {key: sum(hour[key] for hour in one["hours"]) for key in ("attempts", "tokens", "usd", "unpriced")}
            self.assertEqual(sums, {key: one[key] for key in sums}, one["executor"])
            self.assertEqual([hour["at"] % 3600000 for hour in one["hours"]], [0] * len(one["hours"]))
        self.assertNotIn("hours", self.client.get("/api/stats?span=24h").json["spent"][0])

    def test_the_age_of_the_oldest_heartbeat_goes_with_its_worker(self):
        self.ok(self.register("w1"))
        self.assertGreaterEqual(self.value("stint_worker_heartbeat_age_seconds_max"), 0)
        self.assertEqual(self.value("stint_workers", status="active"), 1)
        self.ok(self.client.call("DELETE", "/api/workers/w1"))
        self.assertEqual(self.value("stint_worker_heartbeat_age_seconds_max"), 0)
        self.assertEqual(self.value("stint_workers", status="active"), 0)


if __name__ == "__main__":
    unittest.main()
