"""Clients that mean ill, or are only slow: they cost themselves, and nobody else."""
import json
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from figures import MIB, figure
from hang import HANG_S
import stintd


def setUpModule():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Stream:
    """A reader of events. It reads when it is told to, and remembers how far it got."""

    def __init__(self, server, query="", last=None, receive_bytes=None, local=False, token=None, headers=None):
        family = socket.AF_UNIX if local else socket.AF_INET
        self.wire = socket.socket(family, socket.SOCK_STREAM)
        if receive_bytes:
            self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.wire.settimeout(HANG_S)
        self.wire.connect(server.home + "/stint.sock" if local else ("127.0.0.1", server.port))
        lines = ["GET /api/events%s HTTP/1.1" % query, "Host: localhost:%d" % server.port, "Accept: text/event-stream"]
        lines += ["%s: %s" % pair for pair in (headers or {"Authorization": "Bearer " + (token or server.token)}).items()]
        if last is not None:
            lines.append("Last-Event-ID: %d" % last)
        self.wire.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.bytes, self.head, self.status, self.last = b"", None, None, last

    def piece(self, end):
        """Up to and without `end`; None when the stream is over before it."""
        while end not in self.bytes:
            got = self.wire.recv(65536)
            if not got:
                return None
            self.bytes += got
        piece, self.bytes = self.bytes.split(end, 1)
        return piece

    def begin(self):
        self.head = self.piece(b"\r\n\r\n").decode()
        self.status = int(self.head.split(" ")[1])
        return self

    def rest(self):
        while True:
            got = self.wire.recv(65536)
            if not got:
                return self.bytes
            self.bytes += got

    def event(self):
        """The next event, or None when the stream has ended."""
        if self.head is None:
            self.begin()
        while True:
            piece = self.piece(b"\n\n")
            if piece is None:
                return None
            fields = dict(line.split(": ", 1) for line in piece.decode().split("\n") if not line.startswith(":"))
            if "data" in fields:
                event = json.loads(fields["data"])
                assert (int(fields["id"]), fields["event"]) == (event["seq"], event["type"]), fields
                assert self.last is None or event["seq"] == self.last + 1, (self.last, event)
                self.last = event["seq"]
                return event

    def read_to(self, seq):
        while self.last is None or self.last < seq:
            if self.event() is None:
                raise AssertionError("the stream ended after %s, before %d" % (self.last, seq))

    def close(self):
        self.wire.close()


class HostileCase(unittest.TestCase):
    flags = ("--set", "limits.progressPerMinute=0")  # how noise is made

    def setUp(self):
        self.server = stintd.Server(*self.flags)
        self.addCleanup(self.server.end)
        self.addCleanup(self.end_well)
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def end_well(self):
        """Whatever happened to it, it still runs, and ends when it is asked to."""
        if self.server.process.poll() is None:
            self.server.stop()
        self.assertEqual((self.server.process.returncode, "Sanitizer" in self.server.said()), (0, False),
                         self.server.said())

    def wire(self, data=b""):
        wire = socket.create_connection(("127.0.0.1", self.server.port))
        self.addCleanup(wire.close)
        wire.settimeout(HANG_S)
        wire.sendall(data)
        return wire

    def stream(self, *arguments, **options):
        stream = Stream(self.server, *arguments, **options)
        self.addCleanup(stream.close)
        return stream

    def head(self, line, *headers):
        lines = [line + " HTTP/1.1", "Host: localhost:%d" % self.server.port,
                 "Authorization: Bearer " + self.server.token, *headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def create(self, count=1):
        for at in range(0, count, 1000):
            tasks = [{"title": "x", "queue": "q"}] * min(1000, count - at)
            self.assertEqual(self.client.post("/api/tasks/batch", {"tasks": tasks}).status, 200)

    def last_event(self):
        base, last = 0, None
        while last != base:
            base = last or 0
            last = int(self.client.get("/api/events?after=%d&limit=1000" % base).json["next"])
        return last

    def work(self, rounds=20):
        """Create, claim, complete; the slowest round in seconds."""
        slowest = 0.0
        for _ in range(rounds):
            began = time.monotonic()
            self.create()
            claim, = self.client.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"]
            done = self.client.post("/api/tasks/%s/complete" % claim["task"]["id"],
                                    {"workerId": "w", "fence": claim["fence"]})
            self.assertEqual(done.status, 200)
            slowest = max(slowest, time.monotonic() - began)
        return slowest

    def make_noise(self, events, note_bytes=60000):
        """So many events with a long note each."""
        task = self.client.post("/api/tasks", {"title": "noisy", "queue": "noise"}).json["id"]
        claim, = self.client.post("/api/claims", {"workerId": "noisy", "queues": ["noise"]}).json["claims"]
        for _ in range(events):
            body = {"workerId": "noisy", "fence": claim["fence"], "note": "n" * note_bytes}
            self.assertEqual(self.client.post("/api/tasks/%s/progress" % task, body).status, 200)

    def metric(self, name):
        for line in self.client.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split(" ")[1])
        return None

    def resident_bytes(self):
        with open("/proc/%d/statm" % self.server.process.pid) as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def wait_until(self, condition, seconds=HANG_S):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "it never came true")
            time.sleep(0.01)


class SlowClients(HostileCase):
    """The limits that are times. They are all waited for at once."""

    def seconds_until_closed(self, wire, began):
        try:
            while wire.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return time.monotonic() - began

    def trickle(self, wire, byte, every):
        def run():
            try:
                while True:
                    time.sleep(every)
                    wire.sendall(byte)
            except OSError:
                pass
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def test_each_slow_client_is_closed_in_its_time_while_others_are_served(self):
        post = self.head("POST /api/tasks", "Content-Type: application/json", "Content-Length: 100000")
        began, took, slowest = time.monotonic(), {}, 0
        slow = {
            "a head that never ends": (self.wire(b"GET / HTTP/1.1\r\nHost: "), 5),
            "a head in single bytes": (self.wire(b"GET / HTTP/1.1\r\nX: "), 5),
            "a body in single bytes": (self.wire(post + b"["), 5),
            "a body that stops in the middle": (self.wire(post + b" " * 50000), 10),
            "a body that stops early": (self.wire(post + b" " * 3000), 10),
        }
        self.trickle(slow["a head in single bytes"][0], b"x", 0.5)
        self.trickle(slow["a body in single bytes"][0], b" ", 0.5)
        self.make_noise(150)
        deaf = [self.stream(local=True).begin() for _ in range(12)]
        deaf_reply = socket.socket(socket.AF_UNIX)
        self.addCleanup(deaf_reply.close)
        deaf_reply.connect(self.server.home + "/stint.sock")
        deaf_reply.sendall(self.head("GET /api/events?after=0&limit=1000"))
        quiet = stintd.Server()
        self.addCleanup(quiet.end)
        bored = Stream(quiet)
        self.addCleanup(bored.close)
        ready = time.monotonic()

        def watch(name, wire):
            took[name] = self.seconds_until_closed(wire, began)

        threads = [threading.Thread(target=watch, args=(name, wire)) for name, (wire, _) in slow.items()]
        for thread in threads:
            thread.start()
        self.assertEqual(self.metric("stint_event_streams"), 12)
        while time.monotonic() < ready + 25:
            slowest = max(slowest, self.work(2))
            time.sleep(0.5)
        for thread in threads:
            thread.join(HANG_S)
        for name, (_, seconds) in slow.items():
            self.assertGreater(took[name], seconds - 1, name)
            figure("closed: " + name, took[name], "s", seconds + 4)
        figure("slowest task beside slow clients", slowest, "s", 5)
        self.assertEqual(bored.event()["seq"], 1)
        self.assertEqual(bored.piece(b"\n\n"), b":")  # the sign of life that comes every 15 seconds
        # Whoever reads nothing for 30 seconds is let go, with its stream and what it had not read.
        figure("server with twelve readers who read nothing", self.resident_bytes() / MIB, "MiB", 40)  # not 9 MB for each
        self.wait_until(lambda: self.metric("stint_connections") == 1)
        self.assertEqual(self.metric("stint_event_streams"), 0)
        self.assertGreater(time.monotonic() - began, 28)
        for stream in deaf:
            self.assertLess(len(stream.rest()), MIB)


class IdleClients(HostileCase):
    """Strangers that may stay."""
    flags = HostileCase.flags + ("--set", "limits.unauthenticatedConnections=2000")

    def test_two_thousand_idle_connections_do_not_disturb_a_client(self):
        idle = []
        while len(idle) < 2000:  # never more than stand in line before the kernel drops some
            idle += [self.wire() for _ in range(500)]
            self.wait_until(lambda: self.metric("stint_connections") == len(idle) + 1)
        figure("slowest task beside %d connections" % len(idle), self.work(), "s", 2)
        self.assertEqual(self.metric("stint_connections"), len(idle) + 1)
        for wire in idle[:10]:
            wire.sendall(self.head("GET /livez"))
            self.assertTrue(wire.recv(100).startswith(b"HTTP/1.1 200 "))


class RudeClients(HostileCase):
    def test_a_flood_of_garbage_is_shown_the_door(self):
        seed = random.Random(7)
        for _ in range(500):
            wire = socket.create_connection(("127.0.0.1", self.server.port))
            try:
                wire.sendall(seed.randbytes(seed.choice((1, 10, 1000, 30000))))
            except OSError:
                pass
            wire.close()
        figure("slowest task after 500 connections of garbage", self.work(), "s", 2)
        self.wait_until(lambda: self.metric("stint_connections") == 1)

    def test_uploads_that_break_off_leave_nothing_behind(self):
        post = self.head("POST /api/tasks", "Content-Type: application/json", "Content-Length: 500000")
        for sent in (0, 1, 499999):
            for _ in range(20):
                wire = socket.create_connection(("127.0.0.1", self.server.port))
                wire.sendall(post + b" " * sent)
                wire.close()
        chunked = self.head("POST /api/tasks", "Content-Type: application/json", "Transfer-Encoding: chunked")
        wire = self.wire(chunked + b'5\r\n{"tit\r\n')
        wire.shutdown(socket.SHUT_WR)
        self.assertEqual(wire.recv(100), b"")
        self.wait_until(lambda: self.metric("stint_connections") == 1)
        self.assertEqual(self.client.get("/api/tasks").json, [])

    def test_a_client_that_asks_before_it_sends_is_told_to_go_on(self):
        body = b'{"title":"x","queue":"q"}'
        wire = self.wire(self.head("POST /api/tasks", "Content-Type: application/json", "Expect: 100-continue",
                                   "Content-Length: %d" % len(body)))
        self.assertEqual(wire.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        wire.sendall(body)
        self.assertTrue(wire.recv(4096).startswith(b"HTTP/1.1 201 "))

    def test_head_is_get_without_the_body(self):
        self.create()
        for path in ("/api/tasks/t-1", "/api/tasks", "/metrics", "/livez"):
            got, asked = self.client.get(path), self.client.call("HEAD", path)
            self.assertEqual((asked.status, asked.body), (200, b""), path)
            self.assertIn("Content-Length", asked.headers)
            self.assertEqual(asked.headers["Content-Type"], got.headers["Content-Type"])

    def test_a_thousand_pipelined_requests_are_answered_one_by_one(self):
        body = b'{"title":"x","queue":"q"}'
        post = self.head("POST /api/tasks", "Content-Type: application/json", "Content-Length: %d" % len(body))
        wire = self.wire((post + body) * 999 + self.head("GET /livez", "Connection: close"))
        seen = b""
        while True:
            got = wire.recv(MIB)
            if not got:
                break
            seen += got
        self.assertEqual(seen.count(b"HTTP/1.1 201 "), 999)
        self.assertEqual(seen.count(b"HTTP/1.1 200 "), 1)
        ids = [int(part.split(b'"', 1)[0], 36) for part in seen.split(b'"id":"t-')[1:]]
        self.assertEqual(ids, list(range(1, 1000)))

    def test_more_than_the_server_holds_may_be_sent_ahead_of_a_slow_reply(self):
        body = json.dumps({"title": "x", "queue": "later", "payload": "p" * 20000}).encode()
        wait = json.dumps({"workerId": "w", "queues": ["q"], "waitMs": 1000}).encode()

        def post(path, data):
            return self.head("POST " + path, "Content-Type: application/json", "Content-Length: %d" % len(data)) + data

        wire = self.wire()
        data = post("/api/claims", wait) + post("/api/tasks", body) * 200
        sender = threading.Thread(target=wire.sendall, args=(data,))
        sender.start()
        seen = b""
        while seen.count(b"HTTP/1.1 201 ") < 200:
            got = wire.recv(MIB)
            self.assertNotEqual(got, b"")
            seen += got
        sender.join(HANG_S)
        self.assertTrue(seen.startswith(b"HTTP/1.1 200 "))

    def test_a_body_of_one_mebibyte_is_taken_and_one_byte_more_is_not(self):
        body = b'{"title":"x","queue":"q","payload":"%s"}'
        body = body % (b"p" * (MIB - len(body) + 2))
        self.assertEqual(len(body), MIB)
        self.assertEqual(self.client.post("/api/tasks", body).status, 201)
        wire = self.wire(self.head("POST /api/tasks", "Content-Type: application/json",
                                   "Content-Length: %d" % (MIB + 1)))
        wire.sendall(body + b" ")
        reply = b""
        while True:
            got = wire.recv(65536)
            if not got:
                break
            reply += got
        self.assertTrue(reply.startswith(b"HTTP/1.1 413 "), reply[:200])
        self.assertIn(b'"code":"too_large"', reply)

    def test_more_large_tasks_than_a_turn_hands_out_are_claimed_all_the_same(self):
        workers, each = 20, 4  # 80 MiB of bodies, asked for in one moment
        self.create(workers)
        payload = "p" * (MIB - 100)
        for _ in range(workers * each):
            self.assertEqual(self.client.post("/api/tasks", {"title": "x", "queue": "large", "payload": payload}).status, 201)
        clients, bodies = [self.server.client() for _ in range(workers)], []
        for i, client in enumerate(clients):
            self.addCleanup(client.close)
            claim, = client.post("/api/claims", {"workerId": "w%d" % i, "queues": ["q"]}).json["claims"]
            finish = {"id": claim["task"]["id"], "fence": claim["fence"], "outcome": "complete"}
            bodies.append({"workerId": "w%d" % i, "queues": ["large"], "max": each, "finish": [finish]})
        self.server.process.send_signal(signal.SIGSTOP)
        for client, body in zip(clients, bodies):
            client.connection.request("POST", "/api/claims", json.dumps(body), {
                "Authorization": "Bearer " + client.token, "Content-Type": "application/json"})
        self.server.process.send_signal(signal.SIGCONT)
        taken = set()
        for client, body in zip(clients, bodies):
            answer = client.connection.getresponse()
            reply = json.loads(answer.read())
            self.assertEqual(answer.status, 200, reply)
            self.assertEqual(reply["finished"], [{"id": body["finish"][0]["id"], "ok": True, "state": "done"}])
            self.assertEqual(len(reply["claims"]), each)
            taken.update(claim["task"]["id"] for claim in reply["claims"])
        self.assertEqual(len(taken), workers * each)

    def test_whoever_has_used_up_its_names_stops_nobody_else(self):
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "bob"}).json["token"]
        bob = self.server.client(token=token)
        self.addCleanup(bob.close)

        def register(number):
            return bob.post("/api/workers/register", {
                "workerId": "w%d" % number, "capabilities": ["c%d-%d" % (number, i) for i in range(100)],
                "executors": ["e%d-%d" % (number, i) for i in range(100)]})

        replies = (register(number) for number in range(600))
        refused = next(reply for reply in replies if reply.status != 200)
        self.assertEqual((refused.status, refused.json["code"]), (413, "too_large"))
        self.assertIn("This credential has introduced as many new names", refused.json["detail"])
        self.assertEqual(register(1).status, 200)  # what is known costs nothing
        for queue in ("new", "newer"):
            self.assertEqual(self.client.post("/api/tasks", {"title": "x", "queue": queue}).status, 201)
            self.server.stop()
            self.server.start()
            self.client.close()
            bob.close()
        self.assertEqual(register(1000).status, 413)

    def test_whoever_reads_no_replies_is_not_served_for_ever(self):
        self.make_noise(20)
        ask = self.head("GET /api/events?after=0&limit=1000")
        wire = socket.socket()
        self.addCleanup(wire.close)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect(("127.0.0.1", self.server.port))
        wire.sendall(ask * 500)  # 600 MB, if it were all answered
        figure("slowest task beside one who reads no replies", self.work(), "s", 2)
        self.assertEqual(self.metric("stint_connections"), 2)
        figure("server beside one who reads no replies", self.resident_bytes() / MIB, "MiB", 40)


class Streams(HostileCase):
    def test_a_stream_begins_where_it_is_told_and_follows_what_happens(self):
        self.create(3)
        everything, later = self.stream().begin(), self.stream("?after=2").begin()
        self.assertIn("Content-Type: text/event-stream\r\n", everything.head)
        self.assertEqual(everything.piece(b"\n\n"), b"retry: 2000")
        everything.read_to(4)
        self.assertEqual(later.event()["seq"], 3)
        self.create()
        everything.read_to(5)
        later.read_to(5)
        listed = self.client.get("/api/events?after=4").json["events"]
        again = self.stream("?after=1", last=4)
        self.assertEqual([again.event()], listed)

    def test_a_cursor_that_is_gone_is_410(self):
        stream = self.stream("?after=1000").begin()
        self.assertEqual(stream.status, 410)
        self.assertIn("application/problem+json", stream.head)
        self.assertEqual(self.stream("?after=x").begin().status, 422)

    def test_a_backlog_of_many_pages_is_told_without_a_gap(self):
        self.create(5000)
        streams = [self.stream() for _ in range(4)]
        for stream in streams:
            stream.read_to(5001)

    def test_a_long_event_is_told_whole(self):
        self.make_noise(1)
        task = self.client.get("/api/tasks").json[0]
        body = {"workerId": "noisy", "fence": "1000000000001", "data": {"long": "d" * 900000}}
        self.assertEqual(self.client.post("/api/tasks/%s/progress" % task["id"], body).status, 200)
        self.create()
        self.stream().read_to(self.last_event())

    def test_a_credential_has_sixteen_streams_and_no_more(self):
        streams = [self.stream().begin() for _ in range(16)]
        self.assertEqual([stream.status for stream in streams], [200] * 16)
        refused = self.stream().begin()
        self.assertEqual(refused.status, 429)
        self.assertIn("Retry-After: ", refused.head)
        streams[3].close()
        self.wait_until(lambda: self.metric("stint_event_streams") == 15)
        self.assertEqual(self.stream().begin().status, 200)

    def test_a_stream_ends_with_its_credential(self):
        token = self.client.post("/api/tokens", {"kind": "viewer", "name": "guest"}).json
        stream = self.stream(token=token["token"])
        self.assertEqual(stream.event()["seq"], 1)
        self.assertEqual(self.client.call("DELETE", "/api/tokens/" + token["id"]).status, 200)
        self.create()
        self.assertNotIn("task.created", stream.rest().decode())
        self.assertEqual(self.stream(token=token["token"]).begin().status, 401)

    def test_stalled_and_killed_readers_do_not_disturb_the_others(self):
        stalled = [self.stream(receive_bytes=4096).begin() for _ in range(5)]
        viewer = self.client.post("/api/tokens", {"kind": "viewer", "name": "other"}).json["token"]
        reading = [self.stream() for _ in range(10)] + [self.stream(token=viewer) for _ in range(4)]
        killed = subprocess.Popen([sys.executable, "-c", (
            "import sys; sys.path.insert(0, %r); import test_hostile, types\n"
            "server = types.SimpleNamespace(port=%d, token=%r)\n"
            "test_hostile.Stream(server).read_to(1 << 40)\n")
            % (sys.path[0], self.server.port, self.server.token)], stdin=subprocess.DEVNULL)
        self.addCleanup(killed.wait, HANG_S)
        self.addCleanup(killed.kill)
        self.wait_until(lambda: self.metric("stint_event_streams") == 20)
        ended = threading.Event()

        def follow(stream):
            while not ended.is_set() and stream.event():
                pass

        threads = [threading.Thread(target=follow, args=(stream,)) for stream in reading]
        for thread in threads:
            thread.start()
        self.make_noise(100)
        killed.send_signal(signal.SIGKILL)
        figure("slowest of 50 tasks beside stalled readers", self.work(50), "s", 2)
        ended.set()
        self.create()
        for thread in threads:
            thread.join(HANG_S)
        for stream in reading:
            stream.read_to(self.last_event())
        for stream in stalled:  # and those who wake up have missed nothing
            stream.read_to(self.last_event())
        self.wait_until(lambda: self.metric("stint_event_streams") == 19)

    def test_after_kill_9_a_stream_goes_on_without_gap_or_repeat(self):
        seen, stopping = [], threading.Event()

        def produce():
            client = self.server.client()
            while not stopping.is_set():
                try:
                    client.post("/api/tasks", {"title": "x", "queue": "q"})
                except (OSError, ValueError, stintd.http.client.HTTPException):
                    client.close()
                    time.sleep(0.01)
            client.close()

        thread = threading.Thread(target=produce)
        thread.start()
        last = None
        for _ in range(4):
            stream = self.stream(last=last)  # which itself insists that each follows the one before
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                seen.append(stream.event())
            self.server.kill()
            try:
                while (event := stream.event()) is not None:
                    seen.append(event)
            except OSError:
                pass
            last = stream.last
            self.client.close()
            self.server.start()
        stopping.set()
        thread.join(HANG_S)
        self.assertEqual([event["seq"] for event in seen], list(range(1, len(seen) + 1)))
        listed, base = [], 0
        while len(listed) < len(seen):
            page = self.client.get("/api/events?after=%d&limit=1000" % base).json
            listed, base = listed + page["events"], int(page["next"])
        self.assertEqual(seen, listed[:len(seen)])

    def test_a_server_that_stops_ends_its_streams_with_all_that_happened(self):
        stream = self.stream()
        stalled = self.stream(receive_bytes=4096)
        stalled.begin()
        self.create(10)
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        figure("stop beside a stalled stream", time.monotonic() - began, "s", 2)
        stream.read_to(11)
        self.assertIsNone(stream.event())


class Metrics(HostileCase):
    def test_metrics_count_what_happened(self):
        self.work(3)
        self.client.post("/api/claims", {"workerId": "w", "queues": ["q"]})
        self.client.get("/api/tasks/nope")
        reply = self.client.get("/metrics")
        self.assertEqual(reply.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        lines = reply.body.decode().splitlines()
        for line in ('stint_claims_total{result="granted"} 3', 'stint_claims_total{result="empty"} 1',
                     'stint_events_total{type="task.completed"} 3', 'stint_http_requests_total{status="404"} 1',
                     'stint_tasks{queue="q",state="ready"} 0', "stint_lease_expirations_total 0", "stint_connections 1",
                     "stint_store_commit_seconds_count 9"):
            self.assertIn(line, lines)
        for line in lines:
            self.assertRegex(line, r'^(# (HELP|TYPE) (stint|process)_\w+ .+|(stint|process)_\w+(\{.*\})? [0-9.]+)$')

    def test_metrics_want_a_credential(self):
        stranger = self.server.client(token="")
        self.addCleanup(stranger.close)
        self.assertEqual(stranger.get("/metrics").status, 401)


if __name__ == "__main__":
    unittest.main()
