"""A neighbour cannot starve another: connections, and who gives way when there are no more."""
import select
import socket
import unittest

from hang import HANG_S
import proof
import stintd

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


if __name__ == "__main__":
    proof.main()
