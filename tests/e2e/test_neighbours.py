"""A neighbour cannot starve another: connections, and who gives way when there are no more; places in a turn; and a hostile child that
wants everything at once."""
import asyncio
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
import unittest

from figures import figure
from hang import HANG_S
import proof
import stintd
import test_worker

NEIGHBOUR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "neighbour.py")
WAYS = ("crowd-0", "crowd-1", "crowd-2", "crowd-3", "crowd-4", "liar", "patcher", "deaf", "poller")
FILES = 512  # descriptors of the server: 64 places for strangers, 320 for those it knows
LOBBY = 64
KNOWN = 320


class FewFiles(stintd.Server):
    def command(self):
        return ["sh", "-c", 'ulimit -n %d && exec "$@"' % FILES, "sh", *super().command()]


class Case(stintd.Case):
    def setUp(self):
        self.server = FewFiles(*self.flags)
        self.client = self.server.client()
        self.open = []

    def tearDown(self):
        for one in self.open:
            one.close()
        super().tearDown()

    def keep(self, **options):
        self.open.append(self.server.client(**options))
        return self.open[-1]

    def stranger(self):
        """A connection over the socket that says nothing."""
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(HANG_S)
        line.connect(self.server.home + "/stint.sock")
        self.open.append(line)
        return line

    @staticmethod
    def is_closed(client):
        line = client.connection.sock if isinstance(client, stintd.Client) else client
        if line is None:
            return True
        readable, _, _ = select.select([line], [], [], 0)
        try:
            return bool(readable) and line.recv(1, socket.MSG_PEEK) == b""
        except ConnectionResetError:
            return True

    def token(self, kind, name):
        reply = self.client.post("/api/tokens", {"kind": kind, "name": name})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json["token"]

    def claim(self, task="t", worker="w", token=None):
        """A claimed task; the token of its claim, and its fence."""
        self.create(id=task)
        client = self.keep(token=token or self.token("worker", "of-" + task))
        self.assertEqual(client.post("/api/workers/register", {"workerId": worker, "leaseMs": 3600000}).status, 200)
        claimed, = client.post("/api/claims", {"workerId": worker, "queues": ["q"], "tokens": True}).json["claims"]
        return claimed["token"], claimed["fence"]

    def metric(self, name):
        for line in self.client.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return int(line.split()[1])
        self.fail(name)

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.json["code"]), (status, code), reply.body)


class Connections(Case):
    def test_a_ninth_connection_of_a_claim_ends_its_longest_idle_one(self):
        token, _ = self.claim()
        clients = [self.keep(token=token, local=True) for _ in range(9)]
        for client in clients:
            self.assertEqual(client.get("/api/tasks/t").status, 200)
        self.until(lambda: self.is_closed(clients[0]), "the oldest is closed")
        self.assertFalse(any(self.is_closed(client) for client in clients[1:]))

    def test_a_claim_whose_connections_are_all_under_way_is_busy_and_may_still_report(self):
        token, _ = self.claim()
        waiting = [self.keep(token=token, local=True) for _ in range(8)]
        for client in waiting:
            client.send("GET", "/api/workers/w/news?waitMs=60000")
        self.until(lambda: self.metric("stint_waiting_news") == 8, "they wait")
        ninth = self.keep(token=token, local=True)
        reply = ninth.get("/api/tasks/t")
        self.refused(reply, 503, "busy")
        self.assertEqual((reply.headers["Connection"], reply.headers["Retry-After"]), ("close", "1"))
        self.until(lambda: self.server.said().count("connection refused") == 1, "the log says so")
        self.assertIn("claim:of-t", self.server.said())
        ninth.close()
        reply = ninth.post("/api/tasks/t/complete", {"result": "done"})
        self.assertEqual((reply.status, reply.headers["Connection"]), (200, "close"), reply.body)

    def test_strangers_leave_room_for_those_who_show_a_token(self):
        """Ten times the lobby, all at once, by the same user."""
        silent = [self.stranger() for _ in range(10 * LOBBY)]
        for _ in range(20):
            self.assertEqual(self.keep(local=True).get("/api/tasks").status, 200)
            silent += [self.stranger() for _ in range(LOBBY)]
        self.until(lambda: self.metric("stint_connections_strangers") <= LOBBY, "they are few")
        self.assertTrue(self.is_closed(silent[0]), "the oldest go")
        self.assertIn("too many without a token from one source", self.server.said())

    def test_few_strangers_of_one_source_are_left_alone_while_there_is_room(self):
        silent = [self.stranger() for _ in range(LOBBY // 2)]
        self.assertEqual(self.keep(local=True).get("/api/tasks").status, 200)
        self.assertFalse(any(self.is_closed(line) for line in silent))

    def test_when_all_places_are_taken_the_largest_gives_way_to_the_smaller(self):
        crowd = [self.keep(token=self.token("worker", "crowd"), local=True)]
        crowd += [self.keep(token=crowd[0].token, local=True) for _ in range(KNOWN - 1)]
        for client in crowd:
            self.assertEqual(client.get("/api/tasks").status, 200)
        few = [self.keep(token=self.token("viewer", "few"), local=True) for _ in range(5)]
        for client in few:
            self.assertEqual(client.get("/api/tasks").status, 200)
        self.assertGreaterEqual(self.metric("stint_connections_ended_total"), 5)
        self.until(lambda: all(self.is_closed(client) for client in crowd[:5]), "the longest idle of the crowd")
        self.assertFalse(any(self.is_closed(client) for client in few))
        self.assertEqual(self.metric("stint_connections"), KNOWN)

    def test_at_each_fork_the_larger_branch_gives_way(self):
        """A fleet of one token: the worker with many connections yields to the worker with one."""
        fleet = self.token("worker", "fleet")
        of = {}
        for name in ("greedy-%d" % number for number in range(KNOWN // 16)):
            reply = self.keep(token=fleet).post("/api/workers/register", {"workerId": name, "leaseMs": 3600000})
            of[name] = reply.json["credential"]
            self.open.pop().close()
        for name, token in of.items():
            for _ in range(16):
                self.assertEqual(self.keep(token=token, local=True).get("/api/workers/" + name).status, 200)
        reply = self.keep(token=fleet, local=True).post("/api/workers/register", {"workerId": "modest", "leaseMs": 3600000})
        self.assertEqual(reply.status, 200, reply.body)
        modest = self.keep(token=reply.json["credential"], local=True)
        self.assertEqual(modest.get("/api/workers/modest").status, 200)
        self.assertFalse(self.is_closed(modest))
        self.assertEqual(self.keep(token=fleet).post("/api/workers/heartbeat", {"workerId": "modest", "token": reply.json["token"]}).status, 200)

    def test_the_long_body_of_a_stranger_is_not_read(self):
        head = (b"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100000\r\n\r\n{")
        for token, status in ((b"stint_admin_0000000000000000_" + 43 * b"A", b"HTTP/1.1 401"), (b"", b"HTTP/1.1 401")):
            line = self.stranger()
            line.sendall(head % token)
            self.assertEqual(line.recv(65536)[:12], status)
        reply = self.keep(local=True).post("/api/tasks", {"title": "x", "queue": "q", "instructions": 100000 * "x"})
        self.assertEqual(reply.status, 201)

    def half(self, token, size, path="/api/tasks/t/complete"):
        """A connection that has sent the head of a request, and one byte of its body."""
        line = self.stranger()
        head = "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{"
        line.sendall((head % (path, token, size)).encode())
        return line

    def held(self, count, *lines):
        """So many bytes are held; those lines have sent something just now, so that no time runs out."""
        def look():
            for line in lines:
                line.sendall(b" " * 600)
            return self.metric("stint_requests_held_bytes") == count
        self.until(look, "%d bytes are held" % count)

    def answer(self, line):
        head = line.recv(65536).decode()
        return head.splitlines()[0][9:12] if head else "closed"

    def test_bodies_of_a_claim_hold_a_mebibyte_and_then_more_are_not_read(self):
        token, _ = self.claim()
        other, _ = self.claim("u", "v")
        first = self.half(token, 600000)
        self.held(600000, first)
        self.assertEqual(self.answer(self.half(token, 600000)), "503")
        second = self.half(token, 400000)
        self.held(1000000, first, second)
        self.assertEqual(self.keep(token=token, local=True).get("/api/tasks/t").status, 200, "short requests are served")
        neighbour = self.half(other, 1000000)
        self.held(2000000, first, second, neighbour)  # which has a share of its own
        first.close()
        self.held(1400000, second, neighbour)
        second.sendall(b" " * 399999)  # more than is missing
        self.assertEqual(self.answer(second)[0], "4", "whole, and read: it is no JSON")
        self.held(1000000, neighbour)
        neighbour.close()

    def test_the_workers_of_a_fleet_share_what_one_token_may_hold_while_half_of_all_is_held(self):
        greedy, modest = self.token("worker", "greedy"), self.token("worker", "modest")
        lines = [self.half(greedy, 1 << 20) for _ in range(33)]
        self.held(33 << 20, *lines)  # alone it may have more than its share
        self.assertEqual(self.answer(self.half(greedy, 1 << 20)), "503")
        lines += [self.half(modest, 1 << 20) for _ in range(16)]
        self.held(49 << 20, *lines)
        self.assertEqual(self.answer(self.half(modest, 1 << 20)), "503")

    def test_a_body_without_a_known_length_counts_as_it_comes(self):
        token, _ = self.claim()
        line = self.stranger()
        line.sendall(("POST /api/tasks/t/complete HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n" % token).encode())
        first = self.half(token, 900000)
        self.held(900000, first)
        line.sendall(b"20000\r\n")
        self.held(900000 + (1 << 17), first)  # a chunk was announced
        line.sendall(b"x" * (1 << 17) + b"\r\n20000\r\n")
        self.assertEqual(self.answer(line), "503")
        first.close()

    def test_a_long_request_behind_others_of_its_connection_is_answered_behind_them(self):
        token, _ = self.claim()
        holder = self.half(token, 1 << 20)
        self.held(1 << 20, holder)
        line = self.stranger()
        head = "POST /api/tasks/t/complete HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        line.sendall((head % (token, 2) + "{}" + head % (token, 100000) + "{").encode())
        said = b""
        while b"503" not in said:
            piece = line.recv(65536)
            self.assertNotEqual(piece, b"", said)
            said += piece
        self.assertLess(said.index(b"HTTP/1.1 200"), said.index(b"HTTP/1.1 503"))
        holder.close()

    def test_a_flood_of_connects_does_not_hold_up_those_who_are_served(self):
        known = self.keep(local=True)
        self.assertEqual(known.get("/api/tasks").status, 200)
        line = known.connection
        for _ in range(5):
            for _ in range(200):
                self.stranger().close()
            self.assertEqual(known.get("/api/tasks").status, 200)
        self.assertIs(known.connection, line)


class Changes(Case):
    flags = ("--set", "limits.progressPerMinute=60")

    def test_a_claim_that_patches_without_end_is_slowed_down_and_may_still_report(self):
        token, fence = self.claim()
        child = self.keep(token=token, local=True)
        statuses = [child.call("PATCH", "/api/tasks/t", {"metadata": {"n": n}}).status for n in range(70)]
        self.assertEqual(statuses[:60], [200] * 60)
        self.assertIn(429, statuses)
        reply = child.call("PATCH", "/api/tasks/t", {"metadata": {"n": -1}, "status": "in-progress"})
        self.refused(reply, 429, "rate_limited")
        self.assertIn("Retry-After", reply.headers)
        self.assertEqual(child.post("/api/tasks/t/complete", {"result": 1}).status, 200)
        replies = [child.post("/api/tasks/t/complete", {"result": n}) for n in range(70)]
        self.assertIn(429, {reply.status for reply in replies}, "another report each time is a change as well")
        self.assertEqual(self.client.call("PATCH", "/api/tasks/t", {"priority": 5}).status, 200, "an operator is not its claim")


class Quotas(Case):
    flags = ("--set", "quota.openTasks=5", "--set", "quota.openBytes=65536", "--set", "limits.workers=3")

    def test_a_token_has_so_many_open_tasks_and_others_are_not_affected(self):
        producer = self.keep(token=self.token("producer", "a"))
        batch = producer.post("/api/tasks/batch", {"tasks": [{"id": "t-a%d" % n, "title": "x", "queue": "q"} for n in range(8)]})
        kinds = [item.get("code") or item.get("error", {}).get("code") for item in batch.json["results"]]
        self.assertEqual(kinds.count("quota_exceeded"), 3, batch.body)
        reply = producer.post("/api/tasks", {"title": "x", "queue": "q"})
        self.refused(reply, 429, "quota_exceeded")
        self.assertIn("quota.openTasks", reply.json["detail"])
        self.assertEqual(self.keep(token=self.token("producer", "b")).post("/api/tasks", {"title": "x", "queue": "q"}).status, 201)
        self.assertEqual(self.client.post("/api/tasks", {"title": "x", "queue": "q"}).status, 201, "an admin's are not counted")
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.keep()
        producer.close()
        self.refused(producer.post("/api/tasks", {"title": "x", "queue": "q"}), 429, "quota_exceeded")
        self.assertIn(self.client.post("/api/tasks/t-a0/cancel").status, (200, 202))
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "queue": "q"}).status, 201, "one has ended")
        self.refused(producer.post("/api/tasks", {"title": "x", "queue": "q"}), 429, "quota_exceeded")

    def test_the_bytes_of_open_tasks_are_limited(self):
        producer = self.keep(token=self.token("producer", "a"))
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "queue": "q", "instructions": 60000 * "x"}).status, 201)
        self.refused(producer.post("/api/tasks", {"title": "x", "queue": "q", "instructions": 8000 * "x"}), 429, "quota_exceeded")
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "queue": "q"}).status, 201)

    def test_a_token_has_so_many_live_workers(self):
        client = self.keep(token=self.token("worker", "a"))
        for name in ("w-1", "w-2", "w-3"):
            self.assertEqual(client.post("/api/workers/register", {"workerId": name}).status, 200)
        reply = client.post("/api/workers/register", {"workerId": "w-4"})
        self.refused(reply, 429, "quota_exceeded")
        self.assertIn("limits.workers", reply.json["detail"])
        self.assertEqual(client.post("/api/workers/register", {"workerId": "w-1"}).status, 200, "it is there already")
        self.assertEqual(client.call("DELETE", "/api/workers/w-2", {}).status, 200)
        self.assertEqual(client.post("/api/workers/register", {"workerId": "w-4"}).status, 200)

    def test_metadata_of_a_worker_are_small(self):
        client = self.keep(token=self.token("worker", "a"))
        reply = client.post("/api/workers/register", {"workerId": "w", "metadata": {"x": 20000 * "x"}})
        self.assertEqual(reply.status, 422, reply.body)
        self.assertIn("an object of at most 16384 bytes", reply.body.decode())
        self.assertEqual(client.post("/api/workers/register", {"workerId": "w", "metadata": {"x": 4000 * "x"}}).status, 200)


class Turns(Case):
    flags = ("--set", "limits.progressPerMinute=0")

    def progress(self, task, token, count):
        """Requests for a connection of their own."""
        body = b'{"note":"x"}'
        return self.stranger(), count * (
            b"POST /api/tasks/%s/progress HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (task.encode(), token.encode(), len(body), body))

    def test_a_claim_that_says_much_lets_its_sibling_speak(self):
        """Both of one token. All that they say lies before the server when it looks."""
        parent = self.token("worker", "parent")
        greedy, _ = self.claim("greedy", "w-1", parent)
        modest, _ = self.claim("modest", "w-2", parent)
        said = [self.progress("greedy", greedy, 40) for _ in range(8)] + [self.progress("modest", modest, 1)]
        for line, _ in said:  # all are known before they speak at once
            line.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"200 OK", line.recv(65536))
        self.server.process.send_signal(signal.SIGSTOP)
        for line, words in said:
            line.sendall(words)
        self.server.process.send_signal(signal.SIGCONT)
        for line, words in said:
            got = b""
            while got.count(b"HTTP/1.1 200") < words.count(b"POST "):
                got += line.recv(65536)
        events = [event["task"] for event in self.client.get("/api/events?after=0&limit=1000").json["events"]
                  if event["type"] == "task.progressed"]
        self.assertEqual(len(events), 8 * 40 + 1)
        self.assertLess(events.index("modest"), 32, "it was served beside the first of the other")


class Neighbour(test_worker.Case):
    """A child that tries all of it at once, beside another child of the same worker, and a server with few descriptors."""
    flags = ("--set", "retry.baseMs=10")

    def setUp(self):
        super().setUp()
        self.server.end()
        self.server = FewFiles(*self.flags)
        self.client = self.server.client(local=True)
        for name in ("work", "sibling"):
            os.mkdir(self.path(name))

    def ask(self, what, answer):
        """It is answered; how long that took is printed."""
        began = time.monotonic()
        answer()
        self.took.setdefault(what, []).append(time.monotonic() - began)

    @staticmethod
    def came_in(client):
        """A full queue says "again", as it does to our own clients, who come back too."""
        client.connection = client.open()
        try:
            client.connection.connect()
        except BlockingIOError:
            client.close()
            return False
        return True

    def is_served(self, method, path, token, body=None, statuses=(200, 201)):
        client = self.server.client(token=token, local=True)
        self.until(lambda: self.came_in(client), "the queue of the socket has room")
        reply = client.call(method, path, body)
        client.close()
        self.assertIn(reply.status, statuses, (path, reply.body))
        return reply.json

    def lists(self):
        ran = subprocess.run([test_worker.STINT, "--home", self.server.home, "ls"], env=stintd.environment(), capture_output=True,
                             text=True, timeout=HANG_S)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("sibling", ran.stdout)

    def beats(self):
        """The first one after a restart learns the token of then, and is repeated."""
        for statuses in ((200, 409), (200,)):
            reply = self.is_served("POST", "/api/workers/heartbeat", self.fleet, {"workerId": "beside", "token": self.beat}, statuses)
            self.beat = reply["token"]

    def reports(self):
        """A task is made, claimed by a worker that beats, and done."""
        self.number += 1
        task = "report-%d" % self.number
        self.is_served("POST", "/api/tasks", self.server.token, {"id": task, "title": "x", "queue": "other"})
        claimed, = self.is_served("POST", "/api/claims", self.fleet, {"workerId": "beside", "queues": ["other"]})["claims"]
        self.is_served("POST", "/api/tasks/%s/complete" % task, self.fleet, {"workerId": "beside", "fence": claimed["fence"]})

    def never_seen(self):
        """A token that is shown for the first time."""
        self.is_served("GET", "/api/tasks/sibling", self.is_served("POST", "/api/tokens", self.server.token,
                                                                  {"kind": "viewer", "name": "new"})["token"])

    def all_are_served(self, rounds):
        for _ in range(rounds):
            for what, answer in (("ls", self.lists), ("beat", self.beats), ("report", self.reports), ("new token", self.never_seen)):
                self.ask(what, answer)
            self.assertEqual(self.client.get("/readyz").status, 200)

    def begin(self):
        with open(NEIGHBOUR) as file:
            script = file.read()
        self.took, self.number = {}, 0
        self.fleet = self.client.post("/api/tokens", {"kind": "worker", "name": "fleet"}).json["token"]
        self.beat = self.is_served("POST", "/api/workers/register", self.fleet, {"workerId": "beside"})["token"]
        self.worker({"hostile": {"kind": "command", "argv": [sys.executable, "-c", script]},
                     "honest": test_worker.sh("while [ ! -e finish ]; do sleep 0.1; done; echo fine")},
                    "--concurrency", "2", roots=[self.path("work"), self.path("sibling")])
        self.create(id="sibling", executor="honest", workingDir=self.path("sibling"))
        self.is_in("sibling", "running")
        self.create(id="hostile", executor="hostile", workingDir=self.path("work"),
                    payload={"socket": os.path.join(self.server.home, "stint.sock")})
        for way in WAYS:
            self.until(lambda: os.path.exists(self.path("work/begun-" + way)), way)

    def nobody_was_lost(self):
        kinds = {event["type"] for event in self.client.get("/api/events?after=0&limit=1000").json["events"]}
        self.assertEqual(kinds & {"worker.lost", "worker.expired", "task.lost", "task.failed"}, set())

    def test_its_sibling_operators_and_reports_are_served(self):
        self.begin()
        self.all_are_served(10)
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.server.client(local=True)
        self.until(lambda: self.came_in(self.client), "the queue of the socket has room")
        self.all_are_served(10)
        open(self.path("sibling/finish"), "w").close()
        self.assertEqual(self.is_in("sibling", "done", "failed")["result"], "fine")
        self.assertEqual(self.task("sibling")["attempt"], 1)
        open(self.path("work/stop"), "w").close()
        self.is_in("hostile", "done", "failed", "review", "blocked")
        self.nobody_was_lost()
        self.assertRegex(self.server.said(), "connection refused|credential refused")
        for what, times in self.took.items():
            figure("beside a hostile child: %s, the slowest" % what, max(times) * 1000, "ms", 1000)


class Member:
    """One worker of a large fleet: a connection that is kept, and beats. Whatever happens to it, it comes back."""

    def __init__(self, fleet, number):
        self.fleet, self.id = fleet, "w-%d" % number
        self.token = self.reader = self.writer = None
        self.beats = 0
        self.slowest_s = 0.0

    async def ask(self, path, body):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_unix_connection(self.fleet.server.home + "/stint.sock")
        data = json.dumps(body).encode()
        self.writer.write(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (path.encode(), self.fleet.fleet.encode(), len(data), data))
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ", 1)[1].split("\r\n", 1)[0])
        reply = json.loads(await self.reader.readexactly(length))
        if "\r\nconnection: close" in head:
            self.close()
        return int(head.split(" ")[1]), reply

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
        self.reader = self.writer = None

    async def act(self):
        began = time.monotonic()
        try:
            if self.token is None:
                status, reply = await asyncio.wait_for(self.ask("/api/workers/register", {"workerId": self.id, "leaseMs": 300000}), HANG_S)
            else:
                status, reply = await asyncio.wait_for(self.ask("/api/workers/heartbeat", {"workerId": self.id, "token": self.token}), HANG_S)
        except (OSError, EOFError, asyncio.TimeoutError):
            self.close()
            return random.uniform(0, 5)
        if status not in (200, 409):
            self.fleet.refused.append((self.id, status, reply))
            return random.uniform(0, 5)
        self.token = reply["token"]
        self.beats += status == 200
        if self.beats > 1:  # the first ones come all at once
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        return random.uniform(10, 15) if status == 200 else 0

    async def run(self):
        await asyncio.sleep(random.uniform(0, 15))
        while not self.fleet.over:
            await asyncio.sleep(await self.act())
        self.close()


@unittest.skipUnless(os.environ.get("STINT_LONG") == "1", "STINT_LONG=1 runs it: 10,000 workers")
class LargeFleet(Neighbour):
    """The same, with 10,000 workers of one token, through a restart."""
    size = 10000

    def setUp(self):
        super().setUp()
        self.server.end()
        self.server = stintd.Server(*self.flags)
        self.client = self.server.client(local=True)

    async def beats_so_often(self, times):
        while not all(member.beats >= times for member in self.members):
            await asyncio.sleep(0.2)

    async def live(self):
        self.members = [Member(self, number) for number in range(self.size)]
        running = [asyncio.create_task(member.run()) for member in self.members]
        await asyncio.wait_for(self.beats_so_often(2), 10 * HANG_S)
        await asyncio.to_thread(self.all_are_served, 10)
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.server.client(local=True)
        await asyncio.to_thread(self.until, lambda: self.came_in(self.client), "the queue of the socket has room")
        await asyncio.to_thread(self.all_are_served, 10)
        await asyncio.wait_for(self.beats_so_often(5), 10 * HANG_S)
        self.over = True
        await asyncio.wait(running, timeout=HANG_S)

    def test_its_sibling_operators_and_reports_are_served(self):
        self.over, self.refused = False, []
        self.begin()
        asyncio.run(self.live())
        open(self.path("sibling/finish"), "w").close()
        self.assertEqual(self.is_in("sibling", "done", "failed")["result"], "fine")
        open(self.path("work/stop"), "w").close()
        self.is_in("hostile", "done", "failed", "review", "blocked")
        self.assertEqual(self.refused, [])
        self.nobody_was_lost()
        slowest = sorted(member.slowest_s for member in self.members)
        figure("10,000 workers beside a hostile child: the slowest beat of 99 in 100", slowest[len(slowest) * 99 // 100] * 1000, "ms", 1000)
        for what, times in self.took.items():
            figure("10,000 workers beside a hostile child: %s, the slowest" % what, max(times) * 1000, "ms", 1000)


if __name__ == "__main__":
    proof.main()
