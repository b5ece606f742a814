"""A day of every rule of flow control over HTTP, with kill -9 in each simulated hour: what the clients saw is judged at every step, the
store and its history at the end."""
import collections
import random

import proof

MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
STEPS = 4  # of an hour
TENANTS = ("acme", "bell", "coop", "dow")


class Day(proof.Proved, proof.ProofCase):
    flags = proof.settings(sweep_intervalMs=50, restart_graceMs=1000, queue_ageMs=1000)
    limits = ("restart_grace_ms=1000",)

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()
        self.rng = random.Random(7)
        self.held = {}  # what the workers hold: task → claim
        self.ended = collections.Counter()
        self.replaced = None

    def call(self, method, path, body=None, status=200):
        reply = self.client.call(method, path, body)
        self.assertEqual(reply.status, status, (path, reply.body))
        return reply.json

    def add(self, **fields):
        reply = self.client.post("/api/tasks", {"title": "work", "timeoutMs": 7200000, **fields})
        self.assertIn(reply.status, (200, 201), reply.body)
        return reply.json

    def prepare(self):
        for name, limits in {"tenants": {"perKey": 1, "fair": True}, "merge": {"sequential": True}, "deploy": {"concurrency": 2},
                             "api": {"rate": {"count": 1, "perMs": HOUR_MS // 2, "burst": 2}}, "small": {"maxOpen": 3}}.items():
            self.call("PATCH", "/api/queues/" + name, limits)
        for tenant in TENANTS:
            self.call("POST", "/api/schedules", {"id": "nightly-" + tenant, "cron": "30 2 * * *", "tz": "Europe/Berlin", "overlap": "queue", "task": {
                "title": "nightly", "queue": "tenants", "concurrencyKey": tenant, "timeoutMs": 7200000}}, 201)
        self.call("POST", "/api/schedules", {"id": "hourly", "every": "1h", "overlap": "skip", "task": {
            "title": "hourly", "queue": "deploy", "timeoutMs": 7200000}}, 201)

    def bring(self, hour):
        """What producers do in an hour."""
        for tenant in TENANTS:
            for _ in range(5 if tenant == "acme" else 1):
                self.add(queue="tenants", concurrencyKey=tenant)
        for _ in range(2):
            self.add(queue="merge", concurrencyKey="repo", maxAttempts=2)
            self.add(queue="deploy", priority=self.rng.choice([0, 50]), requires=self.rng.choice([[], ["gpu"]]))
            self.add(queue="api", credential="team")
        group = f"fan-{hour}"
        for part in range(3):
            self.add(queue="fan", group=group, id=f"{group}-{part}", maxAttempts=1)
        self.add(queue="fan", id=f"{group}-report", blockedByGroups=[group], onParentFailure="run")
        self.call("POST", f"/api/groups/{group}/close", {})
        self.replaced = self.add(queue="debounce", uniqueKey="sync", onConflict="replace", uniqueForMs=4 * HOUR_MS)["id"]
        full = [self.client.post("/api/tasks", {"title": "x", "queue": "small"}).status for _ in range(4)]
        self.assertIn(429, full)
        if hour % 6 == 1:
            self.call("POST", "/api/holds", {"credential": "team", "until": self.now() + HOUR_MS}, 201)
        if hour % 8 == 2:
            made = self.call("POST", "/api/tasks/bulk", {"filter": {"queue": "small"}, "action": "cancel"}, 202)
            self.crash()
            self.wait_until(lambda: self.client.get("/api/bulk/" + made["id"]).json["state"] == "done")
        elif hour % 2 == 0:
            for task in self.client.get("/api/tasks?queue=small&state=ready").json:
                self.call("POST", f"/api/tasks/{task['id']}/cancel", {})

    def now(self):
        return self.client.get("/api/version").json["now"]

    def crash(self):
        self.server.kill()
        self.client.close()
        self.server.start()

    def take(self):
        """Two workers claim; what they get is judged against all that is held."""
        for worker, capabilities in (("w1", []), ("w2", ["gpu"])):
            reply = self.client.post("/api/claims", {"workerId": worker, "capabilities": capabilities, "max": 8, "leaseMs": 2 * HOUR_MS})
            for claim in reply.json["claims"]:
                self.assertNotIn(claim["task"]["id"], self.held)
                self.held[claim["task"]["id"]] = {**claim, "worker": worker}
                self.assertTrue(set(claim["task"].get("requires") or []) <= set(capabilities))
        self.judge_limits()

    def judge_limits(self):
        queues = collections.defaultdict(list)
        for claim in self.held.values():
            queues[claim["task"]["queue"]].append(claim["task"])
        self.assertLessEqual(len(queues["deploy"]), 2)
        tenants = collections.Counter(task["concurrencyKey"] for task in queues["tenants"])
        self.assertLessEqual(max(tenants.values(), default=0), 1, tenants)
        self.assertLessEqual(len(queues["merge"]), 1)

    def finish(self):
        """Some of what is held ends, in one way or another."""
        for task, claim in list(self.held.items()):
            if self.rng.random() < 0.3:
                continue
            kind = "complete"
            if claim["task"]["queue"] in ("fan", "merge") and self.rng.random() < 0.2:
                kind = "fail"
            body = {"error": {"code": "CHECK_FAILED", "message": "no"}} if kind == "fail" else {"result": "ok"}
            if claim["task"]["queue"] == "api" and self.rng.random() < 0.2:
                kind, body = "fail", {"error": {"code": "QUOTA", "message": "limit", "retryAt": self.now() + 30 * MINUTE_MS}}
            reply = self.report(kind, claim, claim["worker"], **body)
            del self.held[task]
            if claim["task"]["queue"] == "small" and self.state(task) == "cancelled":
                self.assertEqual(reply.status, 409, reply.body)  # by the bulk action
                continue
            self.assertEqual(reply.status, 200, (claim, reply.body))
            self.ended[claim["task"]["queue"]] += reply.json["state"] == "done"

    def hour(self, hour):
        self.bring(hour)
        for _ in range(STEPS):
            self.take()
            if self.rng.random() < 0.5:
                self.finish()
            self.clocks.advance(HOUR_MS // STEPS)
            self.claim("nobody", queues=["nothing"])
        self.crash()
        self.judge_limits()
        for task in self.held:
            states = ("claimed", "running", "cancelled") if self.held[task]["task"]["queue"] == "small" else ("claimed", "running")
            self.assertIn(self.state(task), states)
        self.finish()

    def end(self):
        """The last tasks: people let go what is held, and workers take the rest."""
        for schedule in self.client.get("/api/schedules").json:
            self.call("DELETE", "/api/schedules/" + schedule["id"], {})
        for _ in range(2000):
            open_tasks = [task for task in self.client.get("/api/tasks?limit=1000").json
                          if task["state"] not in ("done", "failed", "cancelled")]
            if not open_tasks:
                return
            for task in open_tasks:
                if task["state"] == "blocked":
                    self.call("POST", f"/api/tasks/{task['id']}/cancel", {})
            for hold in self.client.get("/api/holds").json:
                if hold["state"] == "held":
                    self.call("DELETE", "/api/holds/" + hold["credential"], {})
            self.take()
            self.finish()
            self.clocks.advance(10 * MINUTE_MS)
            self.claim("nobody", queues=["nothing"])
        self.fail(f"these do not end: {open_tasks[:5]}")

    def test_a_day_with_a_kill_in_each_hour(self):
        self.prepare()
        for hour in range(24):
            self.hour(hour)
        fired = [(event["data"]["schedule"], event["data"]["at"]) for event in self.events() if event["type"] == "schedule.fired"]
        self.assertEqual(len(fired), len(set(fired)), "a planned time made two tasks")
        nightly = [at for name, at in fired if name == "nightly-acme"]
        self.assertEqual(len(nightly), 1)
        hourly = self.client.get("/api/schedules/hourly").json
        self.assertEqual(hourly["made"] + hourly["skipped"], 24)
        self.end()
        for hour in range(24):
            report = self.client.get(f"/api/tasks/fan-{hour}-report").json
            self.assertEqual(report["state"], "done")
            group = self.client.get(f"/api/groups/fan-{hour}").json
            self.assertEqual((group["ended"], group["open"], group["tasks"]), (True, 0, 3))
        self.assertGreaterEqual(self.ended["tenants"], 24)


if __name__ == "__main__":
    proof.main()
