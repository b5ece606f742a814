"""Accounts that are exhausted: their tasks wait, one tries, and the others follow."""
import concurrent.futures
import socket
import subprocess
import time
import unittest

from hang import HANG_S
import stintd
import test_worker
from test_worker import STINT


class Holds(test_worker.Case):
    def stint(self, *words):
        return subprocess.run([STINT, *words, "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S,
                              stdin=subprocess.DEVNULL, env=stintd.environment())

    def setUp(self):
        super().setUp()
        self.client.post("/api/workers/register", {"workerId": "w", "leaseMs": 3600000, "credentials": {"claude": ["team"]}})

    def make(self, task, **more):
        self.create(id=task, executor="claude", **more)

    def claim(self, **more):
        return self.client.post("/api/claims", {"workerId": "w", "queues": ["q"], **more}).json["claims"]

    def fail(self, claim, **error):
        reply = self.client.post("/api/tasks/%s/fail" % claim["task"]["id"], {
            "workerId": "w", "fence": claim["fence"], "error": {"message": "usage limit reached", **error}})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def test_the_tasks_of_an_exhausted_account_wait_through_a_restart_and_spend_nothing(self):
        self.make("a", credential="team")
        self.make("b")
        claim, = self.claim()
        task = self.fail(claim, code="QUOTA")
        self.assertEqual((task["state"], task["spent"], task["error"]["code"], task["credential"]), ("ready", 0, "QUOTA", "team"))
        self.assertEqual(self.claim(), [])
        hold, = self.client.get("/api/holds").json
        self.assertEqual((hold["credential"], hold["state"], hold["code"], hold["tasks"]), ("team", "held", "QUOTA", 1))
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual(self.claim(credentials={"claude": "team"}), [])
        for task in "ab":
            self.assertEqual(self.client.get("/api/tasks/%s/why" % task).json["reason"], "held")
        refused = self.client.post("/api/tasks/a/claim", {"workerId": "w"})
        self.assertEqual((refused.status, refused.json["code"], refused.json["limit"]), (409, "limited", "hold"))
        self.assertEqual(refused.json["until"], hold["until"])
        self.assertRegex(self.stint("why", "a").stdout, r"a is ready\. Account team is held for \d+ min")
        self.assertIn("limit reached", self.stint("hold", "ls").stdout)

    def test_a_lost_login_is_held_until_a_person_lifts_it_and_who_waits_is_woken(self):
        self.make("a", credential="team")
        self.fail(self.claim()[0], code="AUTH")
        self.assertIsNone(self.client.get("/api/holds").json[0]["until"])
        waiter = self.server.client()
        self.addCleanup(waiter.close)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(waiter.post, "/api/claims", {"workerId": "w", "queues": ["q"], "waitMs": 60000})
            self.until(lambda: b"\nstint_waiting_claims 1\n" in self.client.get("/metrics").body, "it waits")
            self.assertEqual(self.stint("hold", "rm", "team").returncode, 0)
            self.assertEqual([claim["task"]["id"] for claim in future.result(HANG_S).json["claims"]], ["a"])
        self.assertEqual(self.stint("hold", "rm", "team").returncode, 3)

    def wait_for_claim(self, worker):
        """A claim by long poll, on a connection of its own."""
        body = b'{"workerId": "%s", "queues": ["q"], "waitMs": 60000}' % worker
        wire = socket.create_connection(("127.0.0.1", self.server.port), HANG_S)
        self.addCleanup(wire.close)
        wire.sendall(b"POST /api/claims HTTP/1.1\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                     % (self.server.port, self.server.token.encode(), len(body), body))
        return wire

    def test_who_waits_behind_hundreds_of_others_is_woken_too(self):
        """More than one turn asks again, none of which may take the task."""
        self.make("a", credential="team")
        self.fail(self.claim()[0], code="AUTH")
        others = 300
        for number in range(others):
            self.client.post("/api/workers/register", {"workerId": "w%d" % number, "credentials": {"claude": ["other"]}})
            self.wait_for_claim(b"w%d" % number)
        self.until(lambda: b"\nstint_waiting_claims %d\n" % others in self.client.get("/metrics").body, "they wait")
        last = self.wait_for_claim(b"w")
        self.until(lambda: b"\nstint_waiting_claims %d\n" % (others + 1) in self.client.get("/metrics").body, "it waits")
        self.assertEqual(self.stint("hold", "rm", "team").returncode, 0)
        self.assertIn(b'"id":"a"', last.recv(65536))

    def test_when_its_time_is_over_who_waits_is_woken_one_tries_and_the_others_follow(self):
        for task in "abc":
            self.make(task, credential="team")
        self.fail(self.claim()[0], code="QUOTA", retryAt=int(time.time() * 1000) + 500)
        first, = self.claim(waitMs=60000)
        self.assertEqual(first["task"]["id"], "a")
        self.assertEqual((self.claim(), self.client.get("/api/holds").json[0]["state"]), ([], "probing"))
        self.client.post("/api/tasks/a/progress", {"workerId": "w", "fence": first["fence"], "usage": {"outputTokens": 1}})
        self.assertEqual(self.claim()[0]["task"]["id"], "b")
        self.assertEqual(self.claim(waitMs=60000)[0]["task"]["id"], "c")
        self.assertEqual(self.claim(waitMs=4000), [], "claims may go through again after 2 s, and none is there")
        told = [e["type"] for e in self.client.get("/api/events?limit=1000").json["events"] if e["type"].startswith("hold.")]
        self.assertEqual(told, ["hold.opened", "hold.probing", "hold.closed"])

    def test_a_person_holds_an_account_for_a_while(self):
        self.make("a", credential="team")
        self.assertEqual(self.stint("hold", "add", "team", "--until", "2h", "--reason", "invoice").returncode, 0)
        self.assertEqual(self.claim(), [])
        self.assertIn("held by a person", self.stint("hold", "ls").stdout)
        self.assertEqual(self.client.get("/api/credentials").json, [{"name": "team", "executor": "claude", "worker": "w"}])
        self.assertEqual(self.client.post("/api/holds", {"credential": "team", "until": 5}).status, 422)


if __name__ == "__main__":
    unittest.main()
