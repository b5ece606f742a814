"""A full disk, and room again: changes are refused, reads go on, nobody is lost; then it serves again by itself.

The disk is a small file system in a mount namespace of this process alone."""
import contextlib
import ctypes
import os
import subprocess
import tempfile
import threading
import time
import unittest

from hang import HANG_S
import proof
import test_worker

MIB = 1 << 20
DISK_MIB = 28  # of which the ballast takes eight
LEASE_MS = 2000
GRACE_MS = 300
CLONE_NEWNS = 0x20000


def setUpModule():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise unittest.SkipTest("no mount namespace of our own: " + os.strerror(ctypes.get_errno()))
    private = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True)
    if private.returncode != 0:
        raise unittest.SkipTest("mounts cannot be made private: " + private.stderr)


class Disk:
    """A file system of a few megabytes and a file that fills it."""

    def __init__(self, case, mib=DISK_MIB):
        self.place = tempfile.mkdtemp(prefix="stint-disk-")
        case.addCleanup(os.rmdir, self.place)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dM,mode=0700" % mib, "stint-disk",
                                  self.place], capture_output=True, text=True)
        if mounted.returncode != 0:
            case.skipTest("no small file system to fill: " + mounted.stderr)
        case.addCleanup(subprocess.run, ["umount", self.place], check=True)
        self.filler = os.path.join(self.place, "filler")

    def fill(self):
        """To the last byte."""
        fd = os.open(self.filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for piece in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while os.write(fd, b"x" * piece) == piece:
                    pass
        os.close(fd)

    def make_room(self):
        os.unlink(self.filler)


class FullCase(proof.Proved, proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=GRACE_MS, sweep_intervalMs=50)
    limits = ("restart_grace_ms=%d" % GRACE_MS,)

    disk_mib = DISK_MIB

    def setUp(self):
        self.disk = Disk(self, self.disk_mib)
        before, tempfile.tempdir = tempfile.tempdir, self.disk.place
        try:
            super().setUp()
        finally:
            tempfile.tempdir = before
        self.made, self.refused = {}, 0

    def make(self, size=30000, client=None, key=None):
        """Create a task; False if it was refused because the disk is full."""
        text = "%08d" % len(self.made) + "p" * size
        reply = (client or self.client).post("/api/tasks", {"title": "x", "queue": "made", "payload": text},
                                             {"Idempotency-Key": key} if key else None)
        if reply.status == 503:
            self.assertEqual(reply.json["code"], "unavailable")
            self.refused += 1
            return False
        self.assertEqual(reply.status, 201, reply.body)
        self.made[reply.json["id"]] = text
        return True

    def is_degraded(self):
        return self.metric("stint_store_degraded") == 1

    def fill_up(self):
        """Somebody fills the disk, and whatever the server gives back too."""
        self.disk.fill()
        until = time.monotonic() + HANG_S
        while self.make() or not self.is_degraded():
            self.assertLess(time.monotonic(), until)
        self.fill_for_good()

    def fill_for_good(self):
        """A server that was quicker to take its ballast back than we are finds the disk full once more."""
        until = time.monotonic() + HANG_S
        self.disk.fill()
        while not self.is_degraded():
            self.assertLess(time.monotonic(), until)
            self.make()
            self.disk.fill()

    def come_back(self):
        self.disk.make_room()
        self.wait_until(lambda: self.client.get("/readyz").status == 200, what=self.server.said())

    def assert_all_there(self):
        for task, text in self.made.items():
            self.assertEqual(self.client.get("/api/tasks/" + task).json["payload"], text)
        created = [event["task"] for event in self.events() if event["type"] == "task.created"]
        self.assertEqual(len(created), len(set(created)))
        self.assertEqual(set(self.made) - set(created), set())
        return set(created)


class LowDisk(FullCase):
    """A disk on which there is a low-water mark: 16 MiB, and open again at 48."""
    disk_mib = 128

    def leave(self, mib):
        """So much room, and no more."""
        def free():
            found = os.statvfs(self.disk.place)
            return found.f_bavail * found.f_frsize
        with open(self.disk.filler, "ab") as file:
            while free() > mib * MIB:
                file.write(b"x" * min(MIB, max(4096, free() - mib * MIB)))
                file.flush()
        with open(self.disk.filler, "ab") as file:
            size = file.tell()
            if free() < mib * MIB:
                os.truncate(self.disk.filler, max(0, size - (mib * MIB - free())))

    def token(self, kind):
        made = self.client.post("/api/tokens", {"kind": kind, "name": kind})
        self.assertEqual(made.status, 201, made.body)
        client = self.server.client(token=made.json["token"])
        self.addCleanup(client.close)
        return client

    def become(self, low):
        self.wait_until(lambda: self.metric("stint_disk_low") == low, what=self.server.said())

    def is_low(self, reply):
        self.assertEqual((reply.status, reply.json["code"]), (503, "disk_low"), reply.body)
        self.assertRegex(reply.json["detail"], r"has \d+ MiB left, less than the 16 MiB .* again when there are 48 MiB")
        self.assertEqual(reply.headers["Retry-After"], "5")

    def test_below_the_mark_nothing_new_is_begun_and_what_is_under_way_is_reported(self):
        producer, worker = self.token("producer"), self.token("worker")
        worker.post("/api/workers/register", {"workerId": "w"})
        for number in range(5):
            self.assertEqual(producer.post("/api/tasks", {"id": "t%d" % number, "title": "x", "queue": "q"}).status, 201)
        claims = [claim for _ in range(3)
                  for claim in worker.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"]]
        held = [{"id": claim["task"]["id"], "workerId": "w", "fence": claim["fence"]} for claim in claims]
        self.leave(12)
        self.become(1)

        def say(verb, body):
            return worker.post("/api/tasks/%s/%s" % (body["id"], verb), {k: v for k, v in body.items() if k != "id"})
        self.is_low(producer.post("/api/tasks", {"title": "x", "queue": "q"}))
        self.is_low(worker.post("/api/claims", {"workerId": "w", "queues": ["q"]}))
        self.is_low(worker.post("/api/tasks/t4/claim", {"workerId": "w"}))
        self.is_low(worker.post("/api/workers/register", {"workerId": "new"}))
        self.is_low(worker.post("/api/workers/heartbeat", {"workerId": "newer"}))
        self.is_low(say("log", {**held[0], "offset": 0, "data": "x"}))
        self.assertEqual(say("progress", {**held[0], "note": "half"}).status, 200)
        self.assertEqual(say("complete", {**held[0], "result": 1}).status, 200)
        self.assertEqual(say("release", held[1]).status, 200)
        self.assertEqual(self.client.post("/api/tasks", {"title": "an operator's", "queue": "ops"}).status, 201)
        self.assertEqual(self.client.get("/readyz").status, 200)
        both = worker.post("/api/claims", {"workerId": "w", "queues": ["q"], "finish": [{"id": held[2]["id"], "fence": held[2]["fence"], "outcome": "complete"}]})
        self.assertEqual((both.status, both.json["code"]), (503, "disk_low"))
        self.assertEqual(self.client.get("/api/tasks/%s" % held[2]["id"]).json["state"], "done")
        self.leave(40)
        self.is_low(producer.post("/api/tasks", {"title": "x", "queue": "q"}))
        self.disk.make_room()
        self.become(0)
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "queue": "q"}).status, 201)
        self.assertEqual(len(worker.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"]), 1)
        self.assertIn("nearly full", self.server.said())


    def test_an_attempt_ends_although_its_log_is_not_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            go = os.path.join(folder, "go")
            worker = test_worker.Worker(self.server, {"x": test_worker.sh(
                "touch %s/begun; while [ ! -e %s ]; do sleep 0.05; done; echo 7" % (folder, go), read=[folder], write=[folder])})
            self.addCleanup(worker.end)
            self.client.post("/api/tasks", {"id": "t", "title": "x", "queue": "q", "executor": "x"})
            self.wait_until(lambda: os.path.exists(folder + "/begun"), what=worker.said())
            self.leave(12)
            self.become(1)
            with open(go, "w"):
                pass
            self.wait_until(lambda: self.client.get("/api/tasks/t").json["state"] == "done", what=worker.said())
            self.assertEqual(self.client.get("/api/tasks/t").json["result"], 7)
            self.assertEqual(worker.stop(), 0)


class SmallDisk(FullCase):
    disk_mib = 6

    def test_room_of_its_own_ballast_is_no_room_and_it_says_how_much_it_needs(self):
        self.disk.fill()
        while self.make() or not self.is_degraded():
            pass
        for _ in range(40):  # sweeps go on meanwhile
            self.assertFalse(self.make())
            self.assertEqual(self.client.get("/readyz").status, 503)
            time.sleep(0.01)
        self.assertNotIn("can be written again", self.server.said())
        self.assertIn("KiB are free", self.server.said())
        self.come_back()
        self.assertTrue(self.make())
        self.assert_all_there()


class FullDisk(FullCase):
    def test_changes_are_refused_reads_go_on_and_nobody_is_lost(self):
        task, other, third = self.create(), self.create(), self.create()
        plain, = self.claim("plain", leaseMs=LEASE_MS)
        token = self.beat("beats", leaseMs=LEASE_MS).json["token"]
        bound, = self.claim("beats")
        token = self.beat("beats", token=token, leaseMs=LEASE_MS, boundTasks=[other]).json["token"]
        renew = lambda: self.report("progress", plain, "plain", leaseMs=LEASE_MS).status == 200
        self.disk.fill()
        until = time.monotonic() + HANG_S
        while renew() and self.beat("beats", token=token, leaseMs=LEASE_MS).status in (200, 409):
            self.make(300000)  # more than the log has in hand
            self.assertLess(time.monotonic(), until)
            token = self.client.get("/api/workers/beats").json.get("token", token)
            reply = self.beat("beats", token=token, leaseMs=LEASE_MS)
            token = reply.json["token"]
        self.fill_for_good()
        self.while_full(plain, third)
        held = self.state(task)  # whether the log had room for its first progress
        self.assertIn(held, ("claimed", "running"))
        since = time.monotonic()
        while time.monotonic() - since < 3 * LEASE_MS / 1000:
            self.assertEqual((self.state(task), self.state(other)), (held, "running"))
        reply = self.beat("beats", token=token, leaseMs=LEASE_MS)  # a renewal needs no disk
        self.assertIn(reply.status, (200, 409), reply.body)
        self.come_back()
        self.assertEqual(self.report("complete", plain, "plain").status, 200)
        self.assertEqual(self.report("complete", bound, "beats").status, 200)
        self.assertEqual((self.state(task), self.state(other)), ("done", "done"))
        self.assertIn("server.degraded", [event["type"] for event in self.events()])
        self.assert_all_there()

    def while_full(self, claim, ready):
        last = self.events()[-1]["seq"]
        for method, path, body in (
                ("POST", "/api/tasks", {"title": "x", "queue": "q"}),
                ("POST", "/api/tasks/batch", {"tasks": [{"title": "x", "queue": "q"}]}),
                ("POST", "/api/claims", {"workerId": "new", "queues": ["q"]}),
                ("POST", "/api/claims", {"workerId": "new", "queues": ["q"], "waitMs": 100}),
                ("POST", "/api/tasks/%s/claim" % ready, {"workerId": "new"}),
                ("POST", "/api/tasks/%s/complete" % claim["task"]["id"], {"workerId": "plain", "fence": claim["fence"]}),
                ("POST", "/api/tasks/%s/cancel" % ready, {}),
                ("PATCH", "/api/tasks/" + ready, {"title": "y"}),
                ("POST", "/api/workers/register", {"workerId": "new"}),
                ("POST", "/api/queues/q/pause", {}),
                ("POST", "/api/tokens", {"kind": "viewer", "name": "x"})):
            reply = self.client.call(method, path, body)
            if path == "/api/tasks/batch":
                self.assertEqual([item["status"] for item in reply.json.get("results", [reply.json])], [503], reply.body)
                continue
            self.assertEqual((reply.status, reply.json["code"]), (503, "unavailable"), (path, reply.body))
            self.assertGreaterEqual(int(reply.headers.get("Retry-After", 0)), 1, path)
        self.assertEqual(self.client.get("/livez").status, 200)
        self.assertEqual((self.client.get("/readyz").status, self.client.get("/readyz").json["code"]),
                         (503, "unavailable"))
        for path in ("/api/tasks", "/api/tasks/" + ready, "/api/workers", "/api/queues", "/metrics", "/api/tokens",
                     "/api/tasks/%s/why" % ready):
            self.assertEqual(self.client.get(path).status, 200, path)
        self.assertEqual(self.events()[-1]["seq"], last, "what was refused left an event")

    def test_it_comes_back_again_and_again(self):
        for _ in range(3):
            self.fill_up()
            self.come_back()
            self.assertTrue(self.make())
        self.assertGreaterEqual(self.refused, 3)
        self.restart()
        self.assert_all_there()

    def test_a_claim_that_waits_is_answered_once_there_is_room_and_work(self):
        body = b'{"workerId":"w","queues":["q"],"waitMs":20000}'
        wire = self.wire(self.request_bytes("POST", "/api/claims", body))
        self.wait_until(lambda: self.metric("stint_waiting_claims") == 1)
        self.fill_up()
        self.assertEqual(self.client.post("/api/tasks", {"title": "x", "queue": "q"}).status, 503)
        self.come_back()
        task = self.create()
        self.assertIn(b'{"task":{"id":"%s"' % task.encode(), wire.recv(65536))


class KilledWhileFull(FullCase):
    def start_full(self):
        """There is no room for the file that says where it listens: the socket is found without."""
        self.client.close()
        self.server.process = subprocess.Popen(self.server.command(), stderr=self.server.log)
        self.client = self.connect(local=True)

        def answers():
            self.assertIsNone(self.server.process.poll(), self.server.said())
            try:
                return self.client.get("/livez").status == 200
            except proof.GONE:
                self.client.close()
                return False

        self.wait_until(answers, what="it answers")

    def assert_no_wrong_url(self):
        """That of the killed one is gone; a new one may have found room in its place."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.server.home, "url")) as file:
            self.server.port = int(file.read().strip().rsplit(":", 1)[1])
            self.assertEqual(self.connect().get("/livez").status, 200)

    def test_it_starts_on_the_full_disk_and_reads(self):
        task = self.create()
        claim, = self.claim(leaseMs=60000)
        self.fill_up()
        for _ in range(3):
            self.server.kill()
            self.start_full()
            self.assert_no_wrong_url()
            self.assertEqual(self.client.get("/api/tasks/" + task).json["state"], "claimed")
            while self.make():  # there may be room in the log still
                pass
            self.disk.fill()
            self.assertEqual(self.client.get("/readyz").status, 503)
        self.assert_all_there()
        self.come_back()
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertTrue(self.make())
        self.assert_all_there()
        url = os.path.join(self.server.home, "url")
        self.wait_until(lambda: os.path.exists(url), what="where it listens is said once there is room")
        with open(url) as file:
            self.server.port = int(file.read().strip().rsplit(":", 1)[1])
        self.assertEqual(self.connect().get("/readyz").status, 200)

    def test_it_stops_on_the_full_disk_and_loses_nothing(self):
        self.fill_up()
        self.assertEqual(self.server.stop(), 0)
        self.disk.fill()
        self.start_full()
        self.assert_all_there()
        self.come_back()
        self.assertTrue(self.make())

    def test_it_starts_after_room_was_made(self):
        self.fill_up()
        self.server.kill()
        self.client.close()
        self.disk.make_room()
        self.server.start()
        self.wait_until(lambda: self.client.get("/readyz").status == 200)
        self.assertTrue(self.make())
        self.assert_all_there()


class FullUnderLoad(FullCase):
    def test_what_was_refused_did_not_happen_and_what_was_not_did(self):
        """Many at once run into the wall; each asks again under the same key until it is answered."""
        asked, stopping = {}, threading.Event()

        def produce(name):
            client, number = self.server.client(), 0
            while not stopping.is_set():
                key = "%s-%d" % (name, number)
                try:
                    reply = client.post("/api/tasks", {"title": key, "queue": "made", "payload": "p" * 20000},
                                        {"Idempotency-Key": key})
                except proof.GONE:
                    client.close()
                    time.sleep(0.01)
                    continue
                if reply.status == 201:
                    asked.setdefault(key, set()).add(reply.json["id"])
                    number += 1
                    claim = client.post("/api/claims", {"workerId": name, "queues": ["made"]})
                    for claim in claim.json["claims"] if claim.status == 200 else []:
                        self.report("complete", claim, name, client)
                else:
                    self.refused += 1
                    time.sleep(0.005)
            client.close()

        self.disk.fill()
        with open(self.disk.filler, "r+b") as file:
            file.truncate(os.path.getsize(self.disk.filler) - 3 * MIB)
        threads = [threading.Thread(target=produce, args=("p%d" % i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        try:
            self.wait_until(lambda: self.refused > 20)
            self.server.kill()
            self.client.close()
            self.disk.make_room()
            self.server.start()
            self.wait_until(lambda: self.client.get("/readyz").status == 200)
            before = len(asked)
            self.wait_until(lambda: len(asked) > before + 20)
        finally:
            stopping.set()
            for thread in threads:
                thread.join(HANG_S)
        self.assertEqual([key for key, tasks in asked.items() if len(tasks) != 1], [])
        titles = {}
        for event in self.events():
            if event["type"] == "task.created":
                title = self.client.get("/api/tasks/" + event["task"]).json["title"]
                self.assertNotIn(title, titles, "made twice")
                titles[title] = event["task"]
        for key, (task,) in asked.items():
            self.assertEqual(titles[key], task)


if __name__ == "__main__":
    proof.main()
