"""One task, over real sockets: what its routes say, and what they refuse."""
import unittest

import stintd


class TaskCase(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.server = stintd.Server(*self.flags)
        self.client = self.server.client()

    def tearDown(self):
        self.client.close()
        self.server.end()

    def create(self, **fields):
        reply = self.client.post("/api/tasks", {"title": "a task", "queue": "q", **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def claim(self, worker="w1", **fields):
        reply = self.client.post("/api/claims", {"workerId": worker, "queues": ["q"], **fields})
        self.assertEqual(reply.status, 200, reply.body)
        claim, = reply.json["claims"]
        return claim

    def report(self, verb, claim, worker="w1", **fields):
        path = "/api/tasks/%s/%s" % (claim["task"]["id"], verb)
        return self.client.post(path, {"workerId": worker, "fence": claim["fence"], **fields})

    def read(self, task_id="t-1"):
        reply = self.client.get("/api/tasks/" + task_id)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def patch(self, body, task_id="t-1", headers=None):
        return self.client.call("PATCH", "/api/tasks/" + task_id, body, headers)

    def events(self, task_id=None):
        reply = self.client.get("/api/events?after=0&limit=1000")
        self.assertEqual(reply.status, 200, reply.body)
        return [event for event in reply.json["events"] if task_id in (None, event.get("task"))]

    def kinds(self, task_id="t-1"):
        return [event["type"] for event in self.events(task_id)]

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.json.get("code")), (status, code), reply.body)
        return reply.json


class Times(TaskCase):
    def test_every_document_says_when_the_task_changed_last(self):
        made = self.create()
        self.assertEqual(made["updatedAt"], made["createdAt"])
        claim = self.claim()
        self.assertGreaterEqual(claim["task"]["updatedAt"], made["updatedAt"])
        self.assertEqual(self.read()["updatedAt"], claim["task"]["updatedAt"])
        done = self.report("complete", claim).json
        last = self.events("t-1")[-1]["time"]
        self.assertEqual((done["updatedAt"], self.read()["updatedAt"]), (last, last))
        self.assertEqual(self.report("complete", claim).json["updatedAt"], last)
        self.assertEqual([task["updatedAt"] for task in self.client.get("/api/tasks").json], [last])


class Versions(TaskCase):
    def test_a_command_about_a_version_that_has_passed_is_refused(self):
        first = self.create()
        seen = {"If-Match": '"%d"' % first["version"]}
        parked = self.client.post("/api/tasks/t-1/park", {}, seen)
        self.assertEqual((parked.status, parked.headers["ETag"]), (200, '"%d"' % parked.json["version"]))
        before = self.kinds()
        for verb in ("unpark", "cancel", "retry", "park"):
            self.refused(self.client.post("/api/tasks/t-1/" + verb, {}, seen), 412, "version_mismatch")
        self.refused(self.patch({"priority": 3}, headers=seen), 412, "version_mismatch")
        self.assertEqual(self.kinds(), before)
        now = {"If-Match": parked.headers["ETag"]}
        self.assertEqual(self.client.post("/api/tasks/t-1/unpark", {}, now).status, 200)

    def test_a_reader_that_has_the_version_gets_304(self):
        etag = self.client.get("/api/tasks/" + self.create()["id"]).headers["ETag"]
        again = self.client.call("GET", "/api/tasks/t-1", headers={"If-None-Match": etag})
        self.assertEqual((again.status, again.body, again.headers["ETag"]), (304, b"", etag))
        self.patch({"title": "another"})
        changed = self.client.call("GET", "/api/tasks/t-1", headers={"If-None-Match": etag})
        self.assertEqual((changed.status, changed.json["title"]), (200, "another"))


if __name__ == "__main__":
    unittest.main()
