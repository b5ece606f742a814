"""Many who do nothing: they cost little, disturb nobody, and leave nothing behind when they go."""
import os
import signal
import time

from figures import MIB, figure
import proof


def setUpModule():
    proof.raise_limits()


class Idle(proof.ProofCase):
    flags = proof.settings(sweep_intervalMs=100)

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()
        self.many = min(3000, proof.raise_limits() // 3 - 100)
        self.work(50)  # whatever it takes for its first work, it takes now
        self.before = self.server.descriptors()

    def work(self, rounds):
        """Create, claim, complete; the slowest round in milliseconds."""
        slowest = 0.0
        for _ in range(rounds):
            began = time.monotonic()
            task = self.create(queue="busy")
            claim, = self.claim("busy", queues=["busy"])
            self.assertEqual(claim["task"]["id"], task)
            self.assertEqual(self.report("complete", claim, "busy").status, 200)
            slowest = max(slowest, time.monotonic() - began)
        return slowest * 1000

    def used_bytes(self):
        self.wait_for_rest()
        return self.server.resident_bytes()

    def wait_for_rest(self):
        """Some sweeps: idle connections give their buffers back."""
        time.sleep(0.3)

    def idle_connections(self, count):
        """Each has asked once and stays."""
        request = self.request_bytes("GET", "/livez")
        wires = [self.wire(request) for _ in range(count)]
        for wire in wires:
            self.assertTrue(wire.recv(1000).startswith(b"HTTP/1.1 200 "))
        return wires

    def waiting_claims(self, count):
        wires = [self.wire(self.request_bytes("POST", "/api/claims", b'{"workerId":"w%d","queues":["q"],"waitMs":60000}'
                                              % number), local=number % 2 == 1) for number in range(count)]
        self.wait_until(lambda: self.metric("stint_waiting_claims") == count)
        return wires

    def assert_released(self, wires, used):
        for wire in wires:
            wire.close()
        self.wait_until(lambda: self.server.descriptors() <= self.before, what="descriptors were left open")
        self.assertEqual((self.metric("stint_waiting_claims"), self.metric("stint_connections")), (0, 1))
        figure("memory kept when %d connections have gone" % len(wires), (self.used_bytes() - used) / MIB, "MiB", 10)

    def test_idle_connections_disturb_nobody_and_leave_nothing(self):
        self.work(50)  # what the first work of a server needs is nobody's
        used = self.used_bytes()
        wires = self.idle_connections(self.many)
        each = (self.used_bytes() - used) / len(wires)
        figure("an idle connection", each, "bytes", 2048)
        figure("slowest of 50 tasks beside %d idle connections" % len(wires), self.work(50), "ms", 2000)
        self.assert_released(wires, used)
        wires = self.idle_connections(self.many)
        figure("as many idle connections once more", (self.used_bytes() - used) / MIB, "MiB",
               round(1.5 * each * len(wires) / MIB + 4, 1))
        self.assert_released(wires, used)

    def test_waiting_claims_disturb_nobody_and_are_all_answered(self):
        used = self.used_bytes()
        wires = self.waiting_claims(self.many)
        each = (self.used_bytes() - used) / len(wires)
        figure("a waiting claim", each, "bytes", 4096)
        figure("slowest of 50 tasks beside %d waiting claims" % len(wires), self.work(50), "ms", 2000)
        tasks = [{"title": "x", "queue": "q"}] * 1000
        self.assertEqual(self.client.post("/api/tasks/batch", {"tasks": tasks}).status, 200)
        self.wait_until(lambda: self.metric("stint_waiting_claims") == len(wires) - 1000)
        got = set()
        for wire in wires:
            wire.setblocking(False)
        for wire in wires:
            try:
                reply = wire.recv(65536)
            except BlockingIOError:
                continue
            self.assertIn(b'"claims":[{"task":{"id":"', reply)
            got.add(reply.split(b'"id":"', 1)[1].split(b'"', 1)[0])
        self.assertEqual(len(got), 1000)
        self.assert_released(wires, used)

    def ask_at_one_moment(self, wires):
        """Every claim lies before the server when it looks."""
        self.server.process.send_signal(signal.SIGSTOP)
        for number, wire in enumerate(wires):
            wire.sendall(self.request_bytes(
                "POST", "/api/claims", b'{"workerId":"w%d","queues":["q"],"waitMs":60000}' % number))
        self.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.metric("stint_waiting_claims") == len(wires))

    def test_claims_that_come_and_end_as_one_are_all_answered(self):
        used = self.used_bytes()
        wires = self.idle_connections(self.many)
        for wave in range(1, 4):
            self.ask_at_one_moment(wires)
            each = (self.used_bytes() - used) / len(wires)
            figure("a waiting claim of wave %d" % wave, each, "bytes", 4096)
            self.clocks.set(boot_ms=self.clocks.boot_ms + 60000)
            for wire in wires:
                self.assertIn(b'{"claims":[]}', wire.recv(4096))
            self.client.close()  # it was idle for a minute
            self.client = self.connect()
        self.assert_released(wires, used)

    def test_both_at_once_and_a_stop_amid_them(self):
        wires = self.idle_connections(self.many // 2) + self.waiting_claims(self.many // 2)
        self.work(20)
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        figure("stop amid %d connections" % len(wires), time.monotonic() - began, "s", 5)
        for wire in wires[-10:]:
            self.assertIn(b'{"claims":[]}', wire.recv(4096))


class Descriptors(proof.ProofCase):
    """A server that may open few files."""

    def setUp(self):
        super().setUp()
        self.server.stop()
        self.client.close()
        plain = self.server.command
        self.server.command = lambda: ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *plain()]
        self.server.start()

    def test_more_clients_than_descriptors_are_turned_away_and_the_others_served(self):
        self.create()
        wires = []
        for _ in range(200):
            wires.append(self.wire())
        self.assertEqual(self.claim("w")[0]["task"]["id"], "t-1")
        self.assertEqual(self.client.get("/readyz").status, 200)
        for wire in wires:
            wire.close()
        self.wait_until(lambda: self.metric("stint_connections") == 1)
        figure("processor after descriptors ran out", self.processor_seconds_in(0.5), "s in 0.5 s", 0.25)
        self.create()
        self.restart()
        self.assertEqual(self.state("t-1"), "claimed")

    def test_whoever_was_there_first_is_served_while_there_are_none_left(self):
        self.client.get("/livez")
        for _ in range(200):
            self.wire()
        self.assertEqual(self.client.get("/livez").status, 200)
        figure("processor while descriptors have run out", self.processor_seconds_in(0.5), "s in 0.5 s", 0.3)
        self.assertEqual(self.client.get("/livez").status, 200)

    def processor_seconds_in(self, seconds):
        def used():
            with open("/proc/%d/stat" % self.server.process.pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = used()
        time.sleep(seconds)
        return used() - before


class Small(proof.ProofCase):
    def test_a_server_that_has_worked_says_how_large_it_is(self):
        fresh = self.server.resident_bytes()
        for _ in range(200):
            task = self.create()
            claim, = self.claim()
            self.assertEqual((self.report("complete", claim).status, claim["task"]["id"]), (200, task))
        self.client.get("/api/tasks")
        self.assertGreater(self.metric("process_resident_memory_bytes"), 0)
        figure("an idle server after its start", fresh / MIB, "MiB", 10)
        figure("an idle server after 200 tasks", self.server.resident_bytes() / MIB, "MiB", 10)


if __name__ == "__main__":
    proof.main()
