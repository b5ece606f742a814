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

    def test_bad_limits_are_refused_with_what_is_allowed(self):
        for body, field in (({"concurrency": 0}, "concurrency"), ({"concurrency": "two"}, "concurrency"), ({}, "concurrency"),
                            ({"rate": {"count": 1}}, "rate"), ({"concurrency": 1, "perKey": 2}, "perKey")):
            reply = self.client.call("PATCH", "/api/queues/q", body)
            self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, field), body)
        self.assertEqual(self.client.get("/api/queues/q").status, 404)


if __name__ == "__main__":
    unittest.main()
