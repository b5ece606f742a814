"""Time that goes wrong: the server is stopped, the machine sleeps, somebody sets the clock. Nobody is called lost who
was not, and nothing is late for ever."""
import signal
import time

from hang import HANG_S
import proof

LEASE_MS = 20000  # a busy machine takes no part of it
DAY_MS = 24 * 3600 * 1000
STALL_MS = LEASE_MS + 5000


class StallCase(proof.Proved, proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=100, sweep_intervalMs=50, retry_baseMs=1000)
    limits = ("restart_grace_ms=100", "retry_base_ms=1000")

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()

    def outlive_the_start(self):
        """Until the grace of the start says nothing any more."""
        self.create(queue="other")
        claim, = self.claim("early", queues=["other"], leaseMs=100)
        self.wait_until(lambda: self.state(claim["task"]["id"]) != "claimed")

    def stall(self, *requests, ms=STALL_MS):
        """Stop the server, for so long by its own clocks; the requests reach it while it is stopped. Their wires."""
        wires = [self.wire() for _ in requests]
        self.client.get("/livez")
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            for wire, request in zip(wires, requests):
                wire.sendall(request)
            self.clocks.advance(ms)
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        return wires


class Stalls(StallCase):
    def test_a_beat_that_came_during_the_stall_saves_the_worker(self):
        self.outlive_the_start()
        token = self.beat("w", leaseMs=LEASE_MS).json["token"]
        task = self.create()
        claim, = self.claim()
        token = self.beat("w", token=token, leaseMs=LEASE_MS, boundTasks=[task]).json["token"]
        body = ('{"workerId":"w","leaseMs":%d,"token":"%s"}' % (LEASE_MS, token)).encode()
        wire, = self.stall(self.request_bytes("POST", "/api/workers/heartbeat", body))
        reply = wire.recv(4096)
        self.assertTrue(reply.startswith(b"HTTP/1.1 200 "), reply)
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.types_of(task), ["task.created", "task.claimed", "task.confirmed", "task.completed"])

    def test_a_holder_has_time_to_be_heard_after_the_stall(self):
        self.outlive_the_start()
        task = self.create()
        claim, = self.claim(leaseMs=LEASE_MS)
        # somebody else's request is the first thing that it sees when it goes on
        wire, = self.stall(self.request_bytes("POST", "/api/claims", b'{"workerId":"x","queues":["q"]}'))
        self.assertIn(b'{"claims":[]}', wire.recv(4096))
        self.assertEqual(self.report("progress", claim, leaseMs=LEASE_MS).status, 200)
        self.assertNotIn("task.expired", self.types_of(task))

    def test_and_is_lost_if_it_does_not_use_it(self):
        self.outlive_the_start()
        task = self.create()
        self.claim(leaseMs=LEASE_MS)
        self.stall()
        self.assertGreaterEqual(self.pass_time_until(lambda: self.state(task) == "ready"), LEASE_MS / 2)
        self.assertEqual(self.types_of(task)[-1], "task.expired")


class Connections(StallCase):
    def test_nobody_is_cut_off_for_what_the_server_slept_through(self):
        self.outlive_the_start()
        amid = self.request_bytes("POST", "/api/tasks", b'{"title":"slow","queue":"q"}')
        slow, idle = self.wire(amid[:-10]), self.wire()
        self.client.get("/livez")
        self.stall(self.request_bytes("GET", "/livez"), ms=5500)  # the head may take five seconds
        self.outlive_the_start()  # several sweeps pass
        slow.sendall(amid[-10:])
        idle.sendall(self.request_bytes("GET", "/livez"))
        reply = slow.recv(4096)
        self.assertTrue(reply.startswith(b"HTTP/1.1 201 "), reply)
        self.assertTrue(idle.recv(4096).startswith(b"HTTP/1.1 200 "))

    def test_a_waiting_claim_is_answered_late_and_not_never(self):
        body = b'{"workerId":"w","queues":["q"],"waitMs":60000}'
        wire = self.wire(self.request_bytes("POST", "/api/claims", body))
        self.wait_until(lambda: self.metric("stint_waiting_claims") == 1)
        self.stall(ms=60500)
        self.assertIn(b'{"claims":[]}', wire.recv(4096))


class ClockCase(StallCase):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.client.get("/livez").status, 200)


class LongWaits(ClockCase):
    def test_a_claim_that_waits_a_minute_for_nothing_is_told_so(self):
        body = b'{"workerId":"w","queues":["q"],"waitMs":60000}'
        wire = self.wire(self.request_bytes("POST", "/api/claims", body))
        self.wait_until(lambda: self.metric("stint_waiting_claims") == 1)
        self.clocks.set(boot_ms=59000)  # the sweep that finds its wait over must not call its connection idle
        self.assertIn(b'{"claims":[]}', wire.recv(4096))


class WallClock(ClockCase):
    def test_setting_it_moves_no_lease(self):
        self.outlive_the_start()
        token = self.beat("w", leaseMs=60000).json["token"]
        tasks = [self.create(), self.create()]
        bound, = self.claim("w")
        plain, = self.claim("v", leaseMs=60000)
        self.assertEqual(self.beat("w", token=token, leaseMs=60000, boundTasks=[bound["task"]["id"]]).status, 200)
        for jump in (6 * DAY_MS, -3650 * DAY_MS, 3600 * 1000, 0):  # retention goes by this clock: not beyond it
            self.clocks.set(wall_ms=jump)
            for _ in range(10):  # some turns and some sweeps
                self.create(queue="other")
                time.sleep(0.02)
            remaining = self.client.get("/api/tasks/" + plain["task"]["id"]).json["leaseMs"]
            self.assertTrue(50000 < remaining <= 60000, remaining)
        self.assertEqual(self.report("complete", bound, "w").status, 200)
        self.assertEqual(self.report("complete", plain, "v").status, 200)
        for task in tasks:
            self.assertNotIn("task.expired", self.types_of(task))

    def test_a_lease_ends_in_time_although_the_clock_went_back(self):
        self.outlive_the_start()
        task = self.create()
        self.claim(leaseMs=LEASE_MS)
        self.clocks.set(wall_ms=-365 * DAY_MS)
        self.pass_time_until(lambda: self.state(task) == "ready")

    def test_what_waits_for_a_time_comes_when_the_clock_says_so(self):
        task = self.create(notBefore=int(time.time() * 1000) + DAY_MS)
        self.assertEqual(self.claim(), [])
        self.clocks.set(wall_ms=DAY_MS + 60000)
        claim, = self.claim(waitMs=60000)
        self.assertEqual(claim["task"]["id"], task)
        self.clocks.set(wall_ms=0)  # back again: what happened has happened
        self.assertEqual(self.report("complete", claim).status, 200)
        times = [event["seq"] for event in self.events()]
        self.assertEqual(times, list(range(1, len(times) + 1)))


class Suspend(ClockCase):
    def test_after_a_sleep_of_the_machine_everyone_has_time_to_be_heard(self):
        self.outlive_the_start()
        task, other = self.create(), self.create()
        claim, = self.claim(leaseMs=60000)
        self.claim("never-heard-again", leaseMs=100)
        self.clocks.set(boot_ms=3600 * 1000)
        # the first thing that it hears is not from the holder
        self.assertEqual(self.claim("x"), [])
        self.assertEqual(self.state(task), "claimed")
        self.assertEqual(self.report("progress", claim, leaseMs=60000).status, 200)
        self.wait_until(lambda: self.state(other) == "ready")
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertNotIn("task.expired", self.types_of(task))

    def test_a_worker_that_beats_after_it_keeps_its_work(self):
        self.outlive_the_start()
        token = self.beat("w", leaseMs=LEASE_MS).json["token"]
        task = self.create()
        self.claim()
        token = self.beat("w", token=token, leaseMs=LEASE_MS, boundTasks=[task]).json["token"]
        for hours in (1, 20):
            self.clocks.set(boot_ms=hours * 3600 * 1000)
            reply = self.beat("w", token=token, leaseMs=LEASE_MS)
            self.assertEqual(reply.status, 200, reply.body)
            token = reply.json["token"]
        self.assertEqual(self.state(task), "running")


if __name__ == "__main__":
    proof.main()
