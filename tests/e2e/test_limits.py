"""Limits of a queue over HTTP: a claim that waits gets the place that is freed, and a killed server forgets neither limit nor claim."""
import concurrent.futures
import unittest

from hang import HANG_S
import stintd


class Limits(stintd.Case):
    def limit(self, concurrency):
        reply = self.client.call("PATCH", "/api/queues/q", {"concurrency": concurrency})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def claim(self, worker="w", client=None, **fields):
        return (client or self.client).post("/api/claims", {"workerId": worker, "queues": ["q"], **fields}).json["claims"]

    def test_a_killed_server_knows_the_limit_and_the_live_claim(self):
        self.limit(1)
        first, second = self.create(), self.create()
        claim = self.claim()[0]
        self.assertEqual(self.claim("v"), [])
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.server.client()
        self.assertEqual(self.client.get("/api/queues/q").json["limits"], {"concurrency": 1})
        self.assertEqual(self.claim("v"), [])
        refused = self.client.post("/api/tasks/%s/claim" % second["id"], {"workerId": "v"})
        self.assertEqual((refused.status, refused.json["code"], refused.json["limit"]), (409, "limited", "concurrency"))
        self.assertEqual(self.client.get("/api/tasks/%s/why" % second["id"]).json["reason"], "limited")
        done = self.client.post("/api/tasks/%s/complete" % first["id"], {"workerId": "w", "fence": claim["fence"]})
        self.assertEqual(done.status, 200, done.body)
        self.assertEqual([each["task"]["id"] for each in self.claim("v")], [second["id"]])

    def waits(self, free):
        """What a claim gets that waits while the limit is reached, when free() has been called."""
        self.limit(1)
        first, second = self.create(), self.create()
        proof = {"workerId": "w", "fence": self.claim()[0]["fence"]}
        client = self.server.client()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(self.claim, "v", client, waitMs=30000)
            self.until(lambda: b"\nstint_waiting_claims 1\n" in self.client.get("/metrics").body, "no claim waits")
            free(first["id"], proof)
            claims = waiting.result(HANG_S)
        client.close()
        self.assertEqual([each["task"]["id"] for each in claims], [second["id"]])

    def test_a_waiting_claim_gets_the_place_that_is_freed(self):
        self.waits(lambda task, proof: self.client.post("/api/tasks/%s/complete" % task, proof))

    def test_a_waiting_claim_is_woken_when_the_limit_is_lifted(self):
        self.waits(lambda task, proof: self.limit(None))

    def limits(self, **limits):
        reply = self.client.call("PATCH", "/api/queues/q", limits)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json.get("limits")

    def restart(self):
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.server.client()

    def keyed(self, key, **fields):
        return self.create(concurrencyKey=key, **fields)["id"]

    def refused_by(self, task):
        refused = self.client.post("/api/tasks/%s/claim" % task, {"workerId": "x"})
        self.assertEqual((refused.status, refused.json["code"]), (409, "limited"), refused.body)
        why = self.client.get("/api/tasks/%s/why" % task).json
        self.assertEqual(why["reason"], "limited")
        return refused.json["limit"], why["text"]

    def test_each_key_has_its_own_limit_and_a_killed_server_knows_them(self):
        self.assertEqual(self.limits(perKey=1, keys={"big": 2}), {"perKey": 1, "keys": {"big": 2}})
        names = [self.keyed(key) for key in ("a", "a", "big", "big", "big")]
        free = self.create()["id"]
        claims = self.claim(max=10)
        self.assertEqual([each["task"]["id"] for each in claims], [names[0], names[2], names[3], free])
        self.assertEqual(claims[0]["task"]["concurrencyKey"], "a")
        for _ in range(2):
            limit, text = self.refused_by(names[1])
            self.assertEqual(limit, "perKey")
            self.assertEqual(text, "Queue q hands out 1 of key a at a time, and 1 of them is in work; one has to end first")
            self.assertEqual(self.claim("v", max=10), [])
            self.restart()
        self.assertEqual(self.client.get("/api/queues/q").json["limits"], {"perKey": 1, "keys": {"big": 2}})
        self.assertEqual(self.limits(keys={"big": None}), {"perKey": 1})
        self.assertEqual(self.limits(perKey=None, keys=None), None)
        self.assertEqual([each["task"]["id"] for each in self.claim("v", max=10)], [names[1], names[4]])

    def test_the_next_of_a_sequential_key_waits_for_the_end_of_the_one_that_has_begun(self):
        self.assertEqual(self.limits(sequential=True), {"sequential": True})
        first, second = self.keyed("repo"), self.keyed("repo", priority=100)
        self.assertEqual(self.claim()[0]["task"]["id"], second)
        fence = self.client.get("/api/tasks/" + second).json["fence"]
        error = {"code": "EXECUTION_ERROR", "message": "no"}
        failed = self.client.post("/api/tasks/%s/fail" % second, {"workerId": "w", "fence": fence, "error": error})
        self.assertEqual(failed.json["state"], "scheduled")
        for _ in range(2):
            limit, text = self.refused_by(first)
            self.assertEqual(limit, "sequential")
            self.assertIn("key repo one after the other, and one that has begun is not final yet", text)
            self.assertEqual(self.claim("v"), [])
            self.restart()
        self.assertEqual(self.client.post("/api/tasks/%s/cancel" % second, {}).json["state"], "cancelled")
        self.assertEqual(self.claim("v")[0]["task"]["id"], first)

    def test_a_waiting_claim_gets_the_next_task_of_the_key_that_is_freed(self):
        self.limits(perKey=1)
        first, second = self.keyed("a"), self.keyed("a")
        proof = {"workerId": "w", "fence": self.claim()[0]["fence"]}
        client = self.server.client()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(self.claim, "v", client, waitMs=30000)
            self.until(lambda: b"\nstint_waiting_claims 1\n" in self.client.get("/metrics").body, "no claim waits")
            self.client.post("/api/tasks/%s/complete" % first, proof)
            claims = waiting.result(HANG_S)
        client.close()
        self.assertEqual([each["task"]["id"] for each in claims], [second])

    def test_a_key_moves_with_its_task(self):
        self.limits(perKey=1)
        first, second = self.keyed("a"), self.keyed("a")
        self.claim()
        self.assertEqual(self.refused_by(second)[0], "perKey")
        self.assertEqual(self.client.call("PATCH", "/api/tasks/" + first, {"concurrencyKey": None}).status, 200)
        self.assertEqual(self.claim("v")[0]["task"]["id"], second)

    def test_a_rate_is_kept_over_kill_and_says_when_the_next_permit_comes(self):
        day = 86400000
        self.assertEqual(self.limits(rate={"count": 1, "perMs": day}),
                         {"rate": {"count": 1, "perMs": day, "burst": 1, "per": "queue"}})
        first, second = self.create()["id"], self.create()["id"]
        self.assertEqual(self.claim()[0]["task"]["id"], first)
        for _ in range(2):
            self.assertEqual(self.claim("v"), [])
            refused = self.client.post("/api/tasks/%s/claim" % second, {"workerId": "v"})
            self.assertEqual((refused.status, refused.json["limit"]), (409, "rate"))
            claimed = self.client.get("/api/tasks/%s/events" % first).json["events"]
            at = [event["time"] for event in claimed if event["type"] == "task.claimed"][0]
            self.assertLessEqual(abs(refused.json["until"] - at - day), 1000)
            self.restart()
        self.assertEqual(self.limits(rate=None), None)
        self.assertEqual(self.claim("v")[0]["task"]["id"], second)

    def test_a_waiting_claim_is_served_when_a_permit_comes(self):
        self.limits(rate={"count": 1, "perMs": 300, "per": "key"})
        first, second = self.keyed("a"), self.keyed("a")
        self.assertEqual(self.claim()[0]["task"]["id"], first)
        self.assertEqual(self.claim("v", waitMs=30000)[0]["task"]["id"], second)

    def test_nothing_is_handed_out_while_too_many_are_in_review(self):
        self.assertEqual(self.limits(review=1), {"review": 1})
        first, second = self.create()["id"], self.create()["id"]
        fence = self.claim()[0]["fence"]
        self.assertEqual(self.client.post("/api/tasks/%s/review" % first, {"workerId": "w", "fence": fence}).status, 200)
        self.assertEqual(self.refused_by(second)[0], "review")
        self.assertEqual(self.claim("v"), [])
        self.client.post("/api/tasks/%s/gates/review" % first, {"verdict": "pass"})
        self.assertEqual(self.claim("v")[0]["task"]["id"], second)

    def test_a_tenant_with_many_tasks_does_not_hold_up_another_and_a_killed_server_knows_that_the_queue_is_fair(self):
        self.assertEqual(self.limits(fair=True), {"fair": True})
        big = [self.keyed("big") for _ in range(20)]
        small = [self.keyed("small") for _ in range(3)]
        self.assertEqual([each["task"]["id"] for each in self.claim(max=2)], [big[0], small[0]])
        self.restart()
        self.assertEqual(self.client.get("/api/queues/q").json["limits"], {"fair": True})
        got = {each["task"]["id"] for each in self.claim("v", max=4)}
        self.assertEqual(got, {big[1], big[2], small[1], small[2]})
        self.assertEqual(self.limits(fair=None), None)
        self.assertEqual(self.claim("v")[0]["task"]["id"], big[3])

    def test_a_full_queue_takes_no_new_task_until_one_has_ended(self):
        self.assertEqual(self.limits(maxOpen=2), {"maxOpen": 2})
        first, second = self.create()["id"], self.create()["id"]
        refused = self.client.post("/api/tasks", {"title": "third", "queue": "q"})
        self.assertEqual((refused.status, refused.json["code"]), (429, "queue_full"), refused.body)
        self.assertIn("Retry-After", refused.headers)
        batch = self.client.post("/api/tasks/batch", {"tasks": [{"title": "x", "queue": "q"}, {"title": "y", "queue": "other"}]})
        self.assertEqual([each.get("code", "made") for each in batch.json["results"]], ["queue_full", "made"], batch.body)
        self.assertEqual(self.client.post("/api/tasks/%s/cancel" % second, {}).status, 200)
        self.create()
        self.assertEqual(self.client.post("/api/tasks/%s/retry" % second, {}).status, 200)  # a retry is never refused

    def test_the_keys_of_a_queue_are_listed_with_what_they_have(self):
        claimed, _, _ = self.keyed("acme"), self.keyed("acme"), self.keyed("small")
        fence = self.claim()[0]["fence"]
        self.create()
        keys = lambda: self.client.get("/api/queues/q/keys").json
        small = {"key": "small", "live": 0, "begun": 0, "waiting": 1}
        none = {"key": None, "live": 0, "begun": 0, "waiting": 1}
        listed = keys()
        self.assertEqual(listed[0], {"key": "acme", "live": 1, "begun": 1, "waiting": 1})
        self.assertCountEqual(listed[1:], [small, none])
        for _ in ("acme", "small"):  # what only has work that was begun is found, too
            self.client.post("/api/claims", {"workerId": "v", "queues": ["q"]})
        self.client.post("/api/tasks/%s/review" % claimed, {"workerId": "w", "fence": fence})
        self.assertCountEqual(keys(), [{"key": "acme", "live": 1, "begun": 2, "waiting": 0}, {"key": "small", "live": 1, "begun": 1, "waiting": 0},
                                       none])
        self.assertEqual(len(self.client.get("/api/queues/q/keys?limit=1").json), 1)
        self.assertEqual(self.client.get("/api/queues/nowhere/keys").status, 404)

    def test_bad_limits_are_refused_with_what_is_allowed(self):
        for body, field in (({"concurrency": 0}, "concurrency"), ({"concurrency": "two"}, "concurrency"), ({}, ""),
                            ({"perKey": 0}, "perKey"), ({"perKey": 1000001}, "perKey"), ({"sequential": 1}, "sequential"),
                            ({"keys": 3}, "keys"), ({"keys": {"": 1}}, "keys."), ({"keys": {"a": 0}}, "keys.a"),
                            ({"keys": {"a": "two"}}, "keys.a"), ({"concurrency": 1, "budget": {"usd": 0}}, "budget.usd"),
                            ({"rate": {"count": 1}}, "rate.perMs"), ({"rate": {"count": 0, "perMs": 1}}, "rate.count"), ({"review": 0}, "review"),
                            ({"fair": 1}, "fair"), ({"maxOpen": 0}, "maxOpen"),
                            ({"rate": {"count": 1, "perMs": 1000, "per": "task"}}, "rate.per"),
                            ({"rate": {"count": 1, "perMs": 31622400000, "burst": 2}}, "rate.burst")):
            reply = self.client.call("PATCH", "/api/queues/q", body)
            self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, field), body)
        self.assertEqual(self.client.get("/api/queues/q").status, 404)


if __name__ == "__main__":
    unittest.main()
