"""Restarts: who held something holds it still, who is lost is lost in time and not before, nothing said is taken back."""
import os
import random
import shutil
import socket
import subprocess
import threading
import time

from figures import figure
from hang import HANG_S
import proof
import stintd

GRACE_MS, LEASE_MS = 60000, 20000  # a busy machine takes little of them: time passes by the server's clocks
DAY_MS = 24 * 3600 * 1000


class RestartCase(proof.Proved, proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=GRACE_MS, sweep_intervalMs=50)
    limits = ("restart_grace_ms=%d" % GRACE_MS,)

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()

    def away(self, ms=0):
        """Killed, and started again after a while."""
        self.server.kill()
        self.client.close()
        self.clocks.advance(ms)
        self.server.start()


class Claims(RestartCase):
    def test_a_holder_goes_on_with_its_fence(self):
        for kill in (True, False):
            for how in ("complete", "progress", "release"):
                with self.subTest(kill=kill, how=how):
                    task = self.create()
                    claim, = self.claim(leaseMs=60000)
                    self.restart(kill)
                    self.assertEqual(self.state(task), "claimed")
                    self.assertEqual(self.report(how, claim).status, 200)
                    self.client.post("/api/tasks/%s/cancel" % task)

    def test_a_claim_that_is_longer_than_the_grace_is_kept_for_its_whole_lease(self):
        task = self.create()
        self.claim(leaseMs=2 * GRACE_MS)
        self.restart()
        self.assertGreater(self.pass_time_until(lambda: self.state(task) == "ready"), 1.5 * GRACE_MS)
        self.assertEqual(self.types_of(task)[-1], "task.expired")

    def test_a_claim_that_is_shorter_than_the_grace_is_kept_for_the_grace(self):
        task = self.create()
        self.claim(leaseMs=LEASE_MS)
        self.away()
        self.assertGreater(self.pass_time_until(lambda: self.state(task) == "ready"), GRACE_MS / 2)

    def test_a_holder_may_still_report_within_the_grace_although_its_lease_is_over(self):
        task = self.create()
        claim, = self.claim(leaseMs=LEASE_MS)
        self.away(2 * LEASE_MS)
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.state(task), "done")

    def test_restarts_in_quick_succession_expire_nobody(self):
        task = self.create()
        claim, = self.claim(leaseMs=LEASE_MS)
        for number in range(6):
            self.restart(kill=number % 2 == 0)
            for _ in range(LEASE_MS // 2 // proof.STEP_MS):  # together they are longer than lease and grace
                self.clocks.advance(proof.STEP_MS)
                self.assertEqual(self.state(task), "claimed")
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertNotIn("task.expired", self.types_of(task))
        starts = [event["data"]["start"] for event in self.events() if event["type"] == "server.started"]
        self.assertEqual(starts, list(range(1, 8)))

    def test_what_was_asked_again_after_a_restart_is_answered_as_before(self):
        made = self.client.post("/api/tasks", {"title": "x", "queue": "q"}, {"Idempotency-Key": "k"}).json
        claim, = self.claim(requestId="r", leaseMs=60000)
        self.restart()
        again, = self.claim(requestId="r", leaseMs=60000)
        self.assertEqual((again["fence"], again["task"]["id"]), (claim["fence"], made["id"]))
        self.assertEqual(self.report("complete", claim, result=1).status, 200)
        self.restart()
        self.assertEqual(self.report("complete", claim, result=1).status, 200)
        reply = self.client.post("/api/tasks", {"title": "x", "queue": "q"}, {"Idempotency-Key": "k"})
        self.assertEqual((reply.status, reply.json["id"]), (201, made["id"]))
        reply = self.client.post("/api/tasks", {"title": "y", "queue": "q"}, {"Idempotency-Key": "k"})
        self.assertEqual((reply.status, reply.json["code"]), (422, "idempotency_conflict"))
        self.assertEqual(self.types_of(made["id"]), ["task.created", "task.claimed", "task.completed"])

    def test_a_stale_fence_is_stale_after_the_restart_too(self):
        self.create()
        old, = self.claim("w1", leaseMs=100)
        self.wait_until(lambda: self.state(old["task"]["id"]) == "ready")
        new, = self.claim("w2", leaseMs=60000)
        self.restart()
        reply = self.report("complete", old, "w1")
        self.assertEqual((reply.status, reply.json["code"]), (409, "stale_claim"))
        self.assertEqual(self.report("complete", new, "w2").status, 200)

    def test_paused_queues_checkpoints_and_times_outlive_it(self):
        self.client.post("/api/queues/q/pause")
        task, later = self.create(), self.create(notBefore=int(time.time() * 1000) + DAY_MS)
        self.restart()
        self.assertEqual(self.claim(), [])
        self.client.post("/api/queues/q/resume")
        claim, = self.claim()
        self.assertEqual(self.report("progress", claim, data={"step": 7}).status, 200)
        self.restart()
        self.assertEqual(self.report("release", claim).status, 200)
        again, = self.claim()
        self.assertEqual((again["task"]["id"], again["checkpoint"], again["attempt"]), (task, {"step": 7}, 2))
        self.assertEqual(self.state(later), "scheduled")
        self.clocks.set(wall_ms=DAY_MS)
        late, = self.claim("w2", waitMs=60000)
        self.assertEqual(late["task"]["id"], later)


class Workers(RestartCase):
    def begin(self, lease_ms):
        """A worker that beats and holds a task."""
        token = self.beat("w", leaseMs=60000).json["token"]
        self.create()
        claim, = self.claim()
        token = self.beat("w", token=token, leaseMs=lease_ms, boundTasks=[claim["task"]["id"]]).json["token"]
        return claim, token

    def go_on(self, token, lease_ms):
        """Beat as a worker does that may have missed a reply."""
        reply = self.beat("w", token=token, leaseMs=lease_ms)
        if reply.status == 409:
            self.assertEqual(reply.json["code"], "TOKEN_MISMATCH")
            reply = self.beat("w", token=reply.json["token"], leaseMs=lease_ms)
        self.assertEqual((reply.status, reply.json.get("lost")), (200, []), reply.body)
        return reply.json["token"]

    def test_a_worker_that_beats_again_keeps_its_work(self):
        for lease_ms in (LEASE_MS, 4 * LEASE_MS):
            with self.subTest(lease_ms=lease_ms):
                claim, token = self.begin(lease_ms)
                for _ in range(3):  # more than a grace and more than a lease altogether
                    self.restart()
                    for _ in range(4):
                        self.pass_time(LEASE_MS // 2)
                        token = self.go_on(token, lease_ms)
                self.assertEqual(self.state(claim["task"]["id"]), "running")
                self.assertEqual(self.report("complete", claim).status, 200)
                self.assertEqual(self.client.call("DELETE", "/api/workers/w").status, 200)
                self.assertNotIn("task.expired", self.types_of(claim["task"]["id"]))
                self.doCleanups()
                self.setUp()

    def test_tokens_are_never_given_out_twice(self):
        tokens = [self.beat("w").json["token"]]
        for _ in range(3):
            for _ in range(5):
                tokens.append(self.go_on(tokens[-1], 60000))
            self.restart()
        self.assertEqual(len(tokens), len(set(tokens)))

    def lost_after(self, lease_ms):
        """How many milliseconds after the start the silent worker lost its task."""
        claim, _ = self.begin(lease_ms)
        self.away()
        task = claim["task"]["id"]
        took = self.pass_time_until(lambda: self.state(task) == "ready")
        self.assertEqual(self.types_of(task)[-1], "task.expired")
        reply = self.report("complete", claim)
        self.assertIn(reply.json["code"], ("stale_claim", "WORKER_INACTIVE"))
        self.assertEqual(self.beat("w", token="1").status, 410)
        return took

    def test_a_worker_that_never_comes_back_loses_it_after_the_grace(self):
        self.assertGreater(self.lost_after(LEASE_MS), GRACE_MS / 2)

    def test_and_not_before_a_whole_lease_if_that_is_longer(self):
        self.assertGreater(self.lost_after(2 * GRACE_MS), 1.5 * GRACE_MS)

    def test_renewals_that_were_only_heard_count(self):
        claim, token = self.begin(LEASE_MS)
        for _ in range(2 * (GRACE_MS + LEASE_MS) // LEASE_MS):  # by now what was written first is over
            self.pass_time(LEASE_MS // 2)
            token = self.go_on(token, LEASE_MS)
        self.restart()
        self.go_on(token, LEASE_MS)
        self.assertEqual(self.report("complete", claim).status, 200)


class Stopping(RestartCase):
    def test_whoever_waits_is_answered_at_once(self):
        wires = []
        for number in range(200):
            body = b'{"workerId":"w%d","queues":["q"],"waitMs":60000}' % number
            wires.append(self.wire(self.request_bytes("POST", "/api/claims", body), local=number % 2 == 1))
        self.wait_until(lambda: self.metric("stint_waiting_claims") == len(wires))
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        figure("stop amid 200 claims that wait", time.monotonic() - began, "s", 5)
        for wire in wires:
            reply = b""
            while got := wire.recv(4096):
                reply += got
            self.assertTrue(reply.startswith(b"HTTP/1.1 200 ") and reply.endswith(b'{"claims":[]}'), reply)
        self.assertFalse(os.path.exists(os.path.join(self.server.home, "url")))
        self.assertFalse(os.path.exists(os.path.join(self.server.home, "stint.sock")))

    def test_clients_that_do_not_read_do_not_hold_it_up(self):
        for _ in range(300):
            self.create(payload={"long": "x" * 20000})
        for _ in range(5):
            wire = self.wire()
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.sendall(self.request_bytes("GET", "/api/tasks") * 3)
        self.wire(self.request_bytes("GET", "/api/events?after=0", b"", "Accept: text/event-stream"))
        self.wire(b"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\n")
        self.client.get("/livez")
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        figure("stop amid clients that do not read", time.monotonic() - began, "s", 5)

    def test_under_load_nothing_said_is_lost(self):
        for number in range(3):
            acked, done, started = [], [], threading.Semaphore(0)

            def work(name):
                client = self.server.client(local=name.endswith("1"))
                try:
                    while True:
                        reply = client.post("/api/tasks", {"title": "x", "queue": "q"})
                        if reply.status != 201:
                            self.assertEqual((reply.status, reply.json["code"]), (503, "unavailable"))
                            return
                        acked.append(reply.json["id"])
                        for claim in self.claim(name, client, max=2):
                            if self.report("complete", claim, name, client).status == 200:
                                done.append(claim["task"]["id"])
                        started.release()
                except (AssertionError, *proof.GONE):
                    pass
                finally:
                    client.close()

            threads = [threading.Thread(target=work, args=("w%d-%d" % (number, i),)) for i in range(8)]
            for thread in threads:
                thread.start()
            for _ in range(60):
                started.acquire(timeout=HANG_S)
            self.restart(kill=False)
            for thread in threads:
                thread.join(HANG_S)
            self.assertGreater(len(done), 20)
            for task in acked:
                self.assertEqual(self.client.get("/api/tasks/" + task).status, 200)
            self.assertEqual({self.state(task) for task in done}, {"done"})

    def test_a_second_signal_ends_it_all_the_sooner(self):
        for _ in range(20):
            self.wire(self.request_bytes("POST", "/api/claims", b'{"workerId":"w","waitMs":60000}'))
        self.wait_until(lambda: self.metric("stint_waiting_claims") == 20)
        self.server.process.terminate()
        self.server.process.terminate()
        self.assertEqual(self.server.process.wait(HANG_S), 0)


class Starting(RestartCase):
    def test_kill_9_while_it_starts_leaves_a_store_that_starts(self):
        dice = random.Random(11)
        task = self.create()
        claim, = self.claim(leaseMs=60000)
        self.server.kill()
        self.client.close()
        for _ in range(25):
            self.server.launch()
            time.sleep(dice.uniform(0, 0.02))
            self.server.kill()
        self.prove(limits=self.limits)
        self.server.start()
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.state(task), "done")

    def empty_home(self):
        shutil.rmtree(os.path.join(self.server.home, "door"), True)
        for name in os.listdir(self.server.home):
            if name != "log":
                os.unlink(os.path.join(self.server.home, name))

    def test_kill_9_while_the_first_start_makes_its_home(self):
        dice = random.Random(12)
        for _ in range(15):
            self.server.kill()
            self.client.close()
            self.empty_home()
            self.server.launch()
            time.sleep(dice.uniform(0, 0.012))
            self.server.kill()
            self.server.start()
            self.client.token = self.server.token
            self.assertEqual(self.client.get("/readyz").status, 200)
            self.create()

    def test_kill_9_while_the_log_is_written_back(self):
        """Large bodies fill the log, so that it is written back every few requests."""
        dice, kept = random.Random(13), {}
        for _ in range(4):
            stopping = threading.Event()

            def fill():
                client = self.server.client()
                try:
                    while not stopping.is_set():
                        text = "%x" % dice.getrandbits(64) * 8000
                        reply = client.post("/api/tasks", {"title": "x", "queue": "q", "payload": text})
                        if reply.status == 201:
                            kept[reply.json["id"]] = text
                except proof.GONE:
                    pass
                finally:
                    client.close()

            before = len(kept)
            threads = [threading.Thread(target=fill) for _ in range(3)]
            for thread in threads:
                thread.start()
            self.wait_until(lambda: len(kept) > before + 60)  # some eight megabytes: more than the log may hold
            time.sleep(dice.uniform(0, 0.1))
            self.server.kill()
            stopping.set()
            for thread in threads:
                thread.join(HANG_S)
            self.client.close()
            self.prove(limits=self.limits)
            self.server.start()
        for task, text in kept.items():
            self.assertEqual(self.client.get("/api/tasks/" + task).json["payload"], text)

    def test_what_the_killed_one_left_lying_about_is_no_hindrance(self):
        url = os.path.join(self.server.home, "url")
        before = self.server.url
        self.server.kill()
        self.client.close()
        self.assertTrue(os.path.exists(url) and os.path.exists(os.path.join(self.server.home, "stint.sock")))
        for name in (".url.new", ".admin.token.new"):
            with open(os.path.join(self.server.home, name), "w") as file:
                file.write("half")
        self.server.process = subprocess.Popen(self.server.command(), stderr=self.server.log)

        def is_new():
            with open(url) as file:
                return file.read().strip() != before

        self.wait_until(is_new)
        with open(url) as file:
            self.server.port = int(file.read().strip().rsplit(":", 1)[1])
        self.assertEqual(self.client.get("/api/tasks").status, 200)
        self.assertEqual(self.connect(local=True).get("/api/tasks").status, 200)

    def test_a_second_one_is_turned_away_and_disturbs_nothing(self):
        task = self.create()
        local = self.connect(local=True)
        for _ in range(5):
            second = subprocess.run(self.server.command(), capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual((second.returncode, "in use" in second.stderr), (74, True), second.stderr)
        with open(os.path.join(self.server.home, "url")) as file:
            self.assertEqual(file.read().strip(), self.server.url)
        self.assertEqual(local.get("/api/tasks/" + task).status, 200)
        self.assertEqual(self.connect(local=True).get("/api/tasks/" + task).status, 200)
        self.assertEqual(self.state(task), "ready")

    def test_two_that_start_at_once_leave_one(self):
        """In a home that is not there yet, too: then the token in the file is that of the one which is left."""
        for number in range(20):
            self.server.kill()
            self.client.close()
            if number % 4:
                self.empty_home()
            self.server.launch()
            first = self.server.process
            second = subprocess.Popen(self.server.command(), stderr=subprocess.DEVNULL)
            try:
                self.wait_until(lambda: first.poll() is not None or second.poll() is not None)
                loser, winner = (first, second) if first.poll() is not None else (second, first)
                self.assertEqual(loser.returncode, 74)
                self.server.process = winner
                self.wait_until(lambda: os.path.exists(os.path.join(self.server.home, "url")))
                with open(os.path.join(self.server.home, "url")) as file:
                    self.server.port = int(file.read().strip().rsplit(":", 1)[1])
                with open(os.path.join(self.server.home, "admin.token")) as file:
                    self.client.token = file.read().strip()
                self.create()
            finally:
                other = second if self.server.process is first else first
                if other.poll() is None:
                    other.kill()
                other.wait(HANG_S)


if __name__ == "__main__":
    proof.main()
