"""Budgets of a day, of queues and of accounts: counted from what attempts report, told once, and over at midnight of UTC."""
import json
import subprocess
import time
import unittest

import proof
import stintd
from hang import HANG_S
from test_worker import STINT

DAY_MS = 24 * 3600 * 1000


class Budgets(proof.Proved, proof.ProofCase):
    flags = ("--set", "sweep.intervalMs=50")

    def setUp(self):
        self.clocks = proof.Clocks()
        now_ms = int(time.time() * 1000)
        self.clocks.set(wall_ms=DAY_MS // 2 - now_ms % DAY_MS)  # it is noon: the day ends when the test says so
        super().setUp()
        reply = self.client.post("/api/workers/register", {"workerId": "w", "leaseMs": 3600000, "credentials": {"claude": "team", "codex": "other"},
                                                           "fallback": {"claude": ["codex"]}})
        self.assertEqual(reply.status, 200, reply.body)

    def take(self, worker="w", **more):
        reply = self.client.post("/api/claims", {"workerId": worker, "queues": ["q"], **more})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json["claims"]

    def use(self, claim, **usage):
        reply = self.client.post("/api/tasks/%s/progress" % claim["task"]["id"], {"workerId": "w", "fence": claim["fence"], "usage": usage})
        self.assertEqual(reply.status, 200, reply.body)

    def set(self, path, budget, status=200):
        reply = self.client.call("PATCH", path, {"budget": budget})
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def told(self):
        return [(event["type"], event["data"]) for event in self.events() if event["type"].startswith("budget.")]

    def why(self, task):
        return self.client.get("/api/tasks/%s/why" % task).json

    def test_a_queue_whose_budget_is_spent_hands_out_nothing_until_the_next_day(self):
        self.set("/api/queues/q", {"usd": 1, "turns": 100})
        for task in "abc":
            self.create(id=task)
        claim, = self.take()
        self.use(claim, usd=0.5, turns=2)
        self.use(claim, usd=0.79, turns=3)
        self.assertEqual([kind for kind, _ in self.told()], ["budget.updated"])
        self.use(claim, usd=0.8, turns=4)
        self.use(claim, usd=0.9, turns=4)
        other, = self.take()
        self.use(other, usd=0.11, turns=1)
        self.assertEqual(self.told()[1:], [("budget.near", {"queue": "q", "part": "usd", "limit": 1, "used": 0.8}),
                                           ("budget.spent", {"queue": "q", "part": "usd", "limit": 1, "used": 1.01})])
        self.assertEqual(self.take(), [])
        refused = self.client.post("/api/tasks/c/claim", {"workerId": "w"})
        self.assertEqual((refused.status, refused.json["code"], refused.json["limit"]), (409, "limited", "budget"))
        self.assertEqual(refused.json["until"] % DAY_MS, 0)
        self.assertEqual((self.why("c")["reason"], self.why("c")["until"]), ("limited", refused.json["until"]))
        self.assertIn("The budget of queue q for today is used up", self.why("c")["text"])
        self.assertEqual(self.report("complete", claim, "w").json["state"], "done", "what runs goes on")
        self.restart()
        queue = self.client.get("/api/queues/q").json
        self.assertEqual((queue["budget"], queue["spentToday"]), ({"usd": 1, "turns": 100}, {"usd": 1.01, "tokens": 0, "turns": 5, "toolCalls": 0}))
        self.assertEqual(self.take(), [])
        waiter = self.connect()
        self.clocks.set(wall_ms=self.clocks.wall_ms + DAY_MS)
        claim, = waiter.post("/api/claims", {"workerId": "w", "queues": ["q"], "waitMs": 60000}).json["claims"]
        self.assertEqual(claim["task"]["id"], "c")
        self.assertEqual(self.client.get("/api/queues/q").json["spentToday"]["usd"], 0)

    def test_a_larger_budget_lets_who_waits_go_on_at_once(self):
        self.set("/api/queues/q", {"tokens": 100})
        self.create(id="a")
        self.use(self.take()[0], inputTokens=60, outputTokens=40, cacheReadTokens=10000)
        self.create(id="b")
        self.assertEqual(self.take(), [])
        self.set("/api/queues/q", {"tokens": 101})
        self.assertEqual([claim["task"]["id"] for claim in self.take()], ["b"])
        self.assertNotIn("budget", self.set("/api/queues/q", None))

    def test_an_account_whose_budget_is_spent_is_held_and_its_fallback_serves(self):
        self.set("/api/credentials/team", {"toolCalls": 10})
        for task in "abc":
            self.create(id=task, executor="claude")
        claim, = self.take(executors=["claude", "codex"])
        self.use(claim, toolCalls=8)
        self.use(claim, toolCalls=10)
        self.assertEqual([kind for kind, _ in self.told()], ["budget.updated", "budget.near", "budget.spent"])
        self.assertEqual(self.told()[2][1], {"credential": "team", "part": "toolCalls", "limit": 10, "used": 10})
        hold, = self.client.get("/api/holds").json
        self.assertEqual((hold["credential"], hold["code"], hold["until"] % DAY_MS), ("team", "BUDGET_EXCEEDED", 0))
        claim, = self.take(executors=["claude", "codex"])
        self.assertEqual((claim["task"]["id"], claim["fallback"]), ("b", "codex"))
        self.use(claim, toolCalls=3)
        rows = {row["name"]: row for row in self.client.get("/api/credentials").json}
        self.assertEqual((rows["team"]["budget"], rows["team"]["spentToday"]["toolCalls"]), ({"toolCalls": 10}, 10))
        self.assertEqual((rows["other"].get("budget"), rows["other"]["spentToday"]["toolCalls"]), (None, 3))
        self.set("/api/credentials/team", {"toolCalls": 20})
        self.assertEqual(self.client.get("/api/holds").json, [], "a larger budget ends its hold")
        claim, = self.take(executors=["claude", "codex"])
        self.assertNotIn("fallback", claim)

    def test_a_hold_of_a_person_is_not_ended_by_a_budget(self):
        self.set("/api/credentials/team", {"turns": 5})
        self.create(id="a", executor="claude")
        claim, = self.take()
        self.client.post("/api/holds", {"credential": "team", "reason": "a person says so"})
        self.use(claim, turns=5)
        hold, = self.client.get("/api/holds").json
        self.assertEqual((hold["until"], hold.get("code")), (None, None))
        self.set("/api/credentials/team", None)
        self.assertEqual(len(self.client.get("/api/holds").json), 1)

    def test_what_is_no_budget_is_refused(self):
        for budget in ({}, 5, {"usd": 0}, {"usd": -1}, {"usd": 1000001}, {"tokens": 1.5}, {"turns": "5"}, {"minutes": 5}, [], {"toolCalls": True}):
            for path in ("/api/queues/q", "/api/credentials/team"):
                self.assertEqual(self.set(path, budget, 422)["code"], "invalid", budget)
        self.assertEqual(self.client.call("PATCH", "/api/credentials/team", {}).status, 422)
        self.assertEqual(self.told(), [])

    def stint(self, *words):
        done = subprocess.run([STINT, *words, "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S,
                              stdin=subprocess.DEVNULL, env=stintd.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_command_line_sets_and_shows_them(self):
        self.assertEqual(json.loads(self.stint("queue", "budget", "q", "--usd", "2.5", "--json"))["queue"]["budget"], {"usd": 2.5})
        self.assertEqual(json.loads(self.stint("hold", "budget", "team", "--turns", "5", "--json"))["account"]["budget"], {"turns": 5})
        self.create(id="a", executor="claude")
        claim, = self.take()
        self.use(claim, usd=0.25, turns=5)
        self.assertIn("Budget: $2.50 a day (UTC); used today: $0.25", self.stint("queue", "show", "q"))
        self.assertIn("its budget for today is used up", self.stint("hold", "ls"))
        self.assertRegex(self.stint("hold", "accounts"), r"team\s+claude\s+5 turns\s+5 turns\s+w")


if __name__ == "__main__":
    unittest.main()
