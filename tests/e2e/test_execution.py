"""The kill switch: what it stops, what it does not, and that it stays as it was set."""
import json
import os
import subprocess
import threading
import unittest

from hang import HANG_S
import stintd

STINT = os.environ.get("STINT", "build/stint")


class Execution(stintd.Case):
    def arm(self, armed, **more):
        reply = self.client.post("/api/execution", {"armed": armed, **more})
        self.assertEqual((reply.status, reply.json["armed"]), (200, armed), reply.body)
        return reply

    def refused(self, reply):
        self.assertEqual((reply.status, reply.json["code"]), (403, "EXECUTION_DISARMED"), reply.body)

    def test_no_door_hands_anything_out_and_all_else_goes_on(self):
        held = self.create(id="held")
        claim = self.client.post("/api/tasks/held/claim", {"workerId": "w"}).json
        self.create(id="mine", owner="slot-1")
        self.arm(False, reason="stop")
        self.refused(self.client.post("/api/claims", {"workerId": "w"}))
        self.refused(self.client.post("/api/tasks/mine/claim", {"workerId": "slot-1"}))
        self.refused(self.client.call("PATCH", "/api/tasks/mine", {"status": "in-progress"}))
        self.assertEqual(self.client.get("/api/tasks/mine/why").json["reason"], "execution_disarmed")
        proof = {"workerId": "w", "fence": claim["fence"]}
        self.assertEqual(self.client.post("/api/tasks/held/progress", proof).status, 200)
        self.assertEqual(self.client.post("/api/tasks/held/complete", proof).status, 200)
        self.assertEqual(self.client.post("/api/workers/register", {"workerId": "v"}).status, 200)
        self.create(id="more")
        self.assertEqual(held["state"], "ready")
        self.arm(True)
        self.assertEqual(len(self.client.post("/api/claims", {"workerId": "w"}).json["claims"]), 1)

    def restored(self, *paths):
        self.client.close()
        self.server.kill()
        for path in paths:
            done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--restore", path],
                                  capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("disarmed", done.stdout)
        self.server.start()
        return self.client.get("/api/execution").json["armed"]

    def backup(self):
        return self.client.post("/api/backup").json["path"]

    def kinds(self):
        return [event["type"] for event in self.client.get("/api/events?after=0&limit=1000").json["events"]
                if event["type"] not in ("task.created", "server.audited")]

    def test_a_restore_arms_nothing_that_was_disarmed(self):
        self.create(id="t")
        armed = self.backup()
        self.arm(False)
        disarmed = self.backup()
        self.assertFalse(self.restored(armed), "the store that went was disarmed")
        self.refused(self.client.post("/api/claims", {"workerId": "w"}))
        self.assertEqual(self.kinds(), ["server.started", "server.restored", "execution.disarmed", "server.started"])
        self.arm(True)
        self.assertTrue(self.restored(armed), "neither was")
        self.assertFalse(self.restored(disarmed), "the backup was")

    def test_nor_does_a_second_one_before_the_first_start(self):
        armed = self.backup()
        self.arm(False)
        self.assertFalse(self.restored(armed, armed))

    def test_what_is_finished_with_a_claim_is_finished(self):
        self.create(id="t")
        claim = self.client.post("/api/tasks/t/claim", {"workerId": "w"}).json
        self.arm(False)
        reply = self.client.post("/api/claims", {"workerId": "w", "finish": [
            {"id": "t", "fence": claim["fence"], "outcome": "complete"}]})
        self.refused(reply)
        self.assertEqual(reply.json["finished"], [{"id": "t", "ok": True, "state": "done"}])
        self.assertEqual(self.client.get("/api/tasks/t").json["state"], "done")

    def test_those_who_wait_are_told_at_once(self):
        replies, threads = [], []

        def wait(queues):
            client = self.server.client()
            replies.append(client.post("/api/claims", {"workerId": "w", "queues": queues, "waitMs": 60000}))
            client.close()
        for queues in ([], ["a"], ["a", "b"]):
            threads.append(threading.Thread(target=wait, args=(queues,)))
            threads[-1].start()
        while "stint_waiting_claims 3" not in self.client.get("/metrics").body.decode():
            pass
        self.arm(False)
        for thread in threads:
            thread.join(HANG_S)
            self.assertFalse(thread.is_alive())
        for reply in replies:
            self.refused(reply)

    def test_it_stays_over_a_kill_and_is_seen_everywhere(self):
        self.assertEqual(self.client.get("/api/execution").json, {"armed": True, "since": None})
        self.arm(False, reason="stop")
        self.server.kill()
        self.server.start()
        self.client.close()
        self.refused(self.client.post("/api/claims", {"workerId": "w"}))
        self.assertIs(self.client.get("/api/version").json["armed"], False)
        self.assertIn("stint_execution_armed 0", self.client.get("/metrics").body.decode())
        events = [event for event in self.client.get("/api/events").json["events"] if event["type"].startswith("execution.")]
        self.assertEqual([(event["type"], event["data"]) for event in events],
                         [("execution.disarmed", {"reason": "stop"})])

    def test_the_verbs(self):
        def stint(*args):
            done = subprocess.run([STINT, *args, "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S,
                                  env=stintd.environment())
            return done.returncode, done.stdout + done.stderr
        self.create(id="t")
        self.assertEqual(stint("disarm", "--reason", "stop")[0], 0)
        self.assertIs(self.client.get("/api/execution").json["armed"], False)
        self.assertIn("stint arm", stint("why", "t")[1])
        self.assertIn("disarmed", stint("doctor")[1])
        self.assertEqual(stint("claim")[0], 6)
        code, text = stint("arm", "--json")
        self.assertEqual((code, json.loads(text)["execution"]["armed"]), (0, True))


class Open(stintd.Case):
    flags = ("--set", "auth=open")

    def test_whoever_shows_no_token_may_disarm_and_not_arm(self):
        stranger = self.server.client(token="")
        self.assertEqual(stranger.post("/api/execution", {"armed": False}).status, 200)
        reply = stranger.post("/api/execution", {"armed": True})
        self.assertEqual((reply.status, reply.json["code"]), (403, "forbidden"))
        self.assertIs(stranger.get("/api/execution").json["armed"], False)
        self.assertEqual(self.client.post("/api/execution", {"armed": True}).status, 200)
        stranger.close()


class OptIn(stintd.Case):
    flags = ("--set", "execution.optInQueues=careful other")

    def claim(self, task):
        return self.client.post(f"/api/tasks/{task}/claim", {"workerId": "w"})

    def test_only_what_says_so_strictly_is_handed_out(self):
        values = {"a": True, "b": "true", "c": 1, "d": False, "e": None}
        for name, value in values.items():
            self.create(id=name, queue="careful", metadata={"autonomous_execution": value})
        self.create(id="f", queue="careful")
        for name in "bcdef":
            reply = self.claim(name)
            self.assertEqual((reply.status, reply.json["code"]), (409, "NOT_AUTONOMOUS_TASK"), name)
            self.assertEqual(self.client.get(f"/api/tasks/{name}/why").json["reason"], "not_autonomous")
        claims = self.client.post("/api/claims", {"workerId": "w", "max": 10}).json["claims"]
        self.assertEqual([claim["task"]["id"] for claim in claims], ["a"])
        self.create(id="g", queue="q")
        self.assertEqual(self.claim("g").status, 200)

    def test_what_is_said_later_counts(self):
        self.create(id="t", queue="careful", metadata={"x": 1})
        patch = lambda body: self.assertEqual(self.client.call("PATCH", "/api/tasks/t", body).status, 200)
        patch({"metadata": {"autonomous_execution": True}})
        patch({"title": "another"})
        patch({"metadata": {"autonomous_execution": None}})
        self.assertEqual(self.claim("t").status, 409)
        patch({"metadata": {"autonomous_execution": True, "x": None}})
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual(self.claim("t").status, 200)

    def test_a_slot_that_was_given_the_task_may_take_it(self):
        self.create(id="t", queue="careful", owner="slot-1")
        self.assertEqual(self.client.call("PATCH", "/api/tasks/t", {"status": "in-progress"}).status, 200)


class Bad(stintd.Case):
    def test_what_is_no_switch_changes_nothing(self):
        for body in ({}, {"armed": "yes"}, {"armed": None}, {"armed": 0}, {"armed": True, "who": "me"}):
            reply = self.client.post("/api/execution", body)
            self.assertEqual((reply.status, reply.json["code"]), (422, "invalid"), body)
        self.assertEqual(self.client.get("/api/execution").json, {"armed": True, "since": None})


if __name__ == "__main__":
    unittest.main()
