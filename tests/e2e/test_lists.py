#!/usr/bin/env python3
"""Lists and answers say what is so: why a task waits, how far it is, who serves what, and all of it however long it is."""

import re
import unittest

import stintd
from test_cli import CliCase


class Told(CliCase):
    """What the server says of a task, in its document."""

    def test_a_list_and_a_task_carry_the_sentence_if_it_is_wanted(self):
        self.stint("queue", "pause", "told")
        task = self.add("x", "--queue", "told")
        expected = {"reason": "queue_paused", "text": "Queue told is paused", "try": "stint queue resume told"}
        self.assertEqual(self.client.get(f"/api/tasks/{task}?include=why").json["why"], expected)
        listed, = self.client.get("/api/tasks?queue=told&include=why").json
        self.assertEqual(listed["why"], expected)
        self.assertNotIn("why", self.client.get(f"/api/tasks/{task}").json)
        self.assertNotIn("why", self.client.get("/api/tasks?queue=told").json[0])
        self.assertEqual(self.client.get("/api/tasks?include=everything").status, 422)

    def test_every_page_of_a_list_carries_the_sentence(self):
        for _ in range(3):
            self.add("x", "--queue", "pages", "--hold")
        reply = self.client.get("/api/tasks?queue=pages&include=why&limit=2")
        more = re.match(r"<(.*)>", reply.headers["Link"]).group(1)
        self.assertEqual(self.client.get(more).json[0]["why"]["text"], "Parked until somebody unparks it")

    def test_progress_stands_in_the_task_while_its_attempt_lasts(self):
        task = self.add("x", "--queue", "far")
        claim = self.claim("far")
        self.stint("task", "progress", "third file", "--percent", "62", **self.holding(claim))
        found = self.client.get("/api/tasks/" + task).json
        self.assertEqual((found["note"], found["percent"]), ("third file", 62))
        self.stint("task", "progress", **self.holding(claim))
        self.assertEqual(self.client.get("/api/tasks/" + task).json["note"], "third file", "a bare renewal says nothing new")
        self.stint("task", "progress", "fourth", **self.holding(claim))
        found = self.client.get("/api/tasks/" + task).json
        self.assertEqual((found["note"], found.get("percent")), ("fourth", None))
        self.stint("task", "release", **self.holding(claim))
        self.claim("far")
        found = self.client.get("/api/tasks/" + task).json
        self.assertEqual((found.get("note"), found.get("percent")), (None, None), "the next attempt begins anew")

    def test_progress_survives_a_restart_and_a_long_note_is_cut(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        client = server.client()
        self.addCleanup(client.close)
        client.post("/api/tasks", {"id": "t", "title": "x"})
        claim, = client.post("/api/claims", {"workerId": "w"}).json["claims"]
        client.post("/api/tasks/t/progress", {"workerId": "w", "fence": claim["fence"], "note": "\u00e4" * 2000, "percent": 1})
        server.kill()
        server.start()
        client.close()
        found = client.get("/api/tasks/t").json
        self.assertEqual((found["note"], found["percent"]), ("\u00e4" * 500, 1))


if __name__ == "__main__":
    unittest.main()
