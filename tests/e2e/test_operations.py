"""What operators see and do: slots and workers, taking a slot over, backup and restore, questions in SQL, figures."""
import json
import os
import re
import socket
import stat
import subprocess
import threading
import time
import unittest

import stintd


def boot_id():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_time(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


class OperationsCase(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.server = stintd.Server(*self.flags)
        self.addCleanup(self.server.end)
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def ok(self, reply, status=200):
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def create(self, **fields):
        return self.ok(self.client.post("/api/tasks", {"title": "a task", "queue": "q", **fields}), 201)

    def claim(self, worker, **fields):
        return self.ok(self.client.post("/api/claims", {"workerId": worker, "queues": ["q"], **fields}))["claims"]

    def register(self, worker, **fields):
        return self.client.post("/api/workers/register", {"workerId": worker, **fields})

    def events(self, kind=None):
        events = self.ok(self.client.get("/api/events?after=0&limit=1000"))["events"]
        return [event for event in events if kind in (None, event["type"])]

    def mint(self, kind):
        token = self.ok(self.client.post("/api/tokens", {"kind": kind, "name": "x"}), 201)["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        return client


class Slots(OperationsCase):
    def slots(self):
        return {slot["name"]: slot for slot in self.ok(self.client.get("/api/slots"))}

    def test_a_slot_is_filled_empty_or_quarantined(self):
        self.assertEqual(self.ok(self.client.get("/api/slots")), [])
        self.ok(self.register("w1", slot="slot-1"))
        filled = self.slots()["slot-1"]
        self.assertEqual((filled["state"], filled["workerId"], filled["crashes"], filled["restarts"]),
                         ("filled", "w1", 0, 0))
        self.assertEqual(filled["since"], self.ok(self.client.get("/api/workers/w1"))["registeredAt"])
        self.ok(self.client.post("/api/slots/slot-2/crash"))
        empty = self.slots()["slot-2"]
        self.assertEqual((empty["state"], empty["workerId"], empty["since"], empty["crashes"], empty["restarts"]),
                         ("empty", None, None, 1, 1))
        for _ in range(2):
            self.ok(self.client.post("/api/slots/slot-2/crash"))
        quarantined = self.slots()["slot-2"]
        self.assertEqual((quarantined["state"], quarantined["crashes"]), ("quarantined", 3))
        self.assertEqual(quarantined["trialAt"] - quarantined["since"], 10 * 60 * 1000)
        self.ok(self.client.post("/api/slots/slot-2/unquarantine"))
        self.assertEqual(self.slots()["slot-2"]["state"], "empty")

    def test_the_slot_of_a_pool_has_a_slash_in_its_name(self):
        for _ in range(3):
            self.ok(self.client.post("/api/slots/w1%2Ftests-1/crash"))
        self.assertEqual(self.slots()["w1/tests-1"]["state"], "quarantined")
        self.ok(self.client.post("/api/slots/w1%2ftests-1/unquarantine"))
        self.assertEqual(self.slots()["w1/tests-1"]["state"], "empty")
        self.assertEqual(self.client.post("/api/slots/w1/tests-1/crash").status, 404)
        self.assertEqual(list(self.slots()), ["w1/tests-1"])

    def test_a_quarantine_is_seen_after_a_restart_too(self):
        for _ in range(3):
            self.client.post("/api/slots/s/crash")
        since = self.slots()["s"]["since"]
        self.client.close()
        self.server.kill()
        self.server.start()
        self.assertEqual(self.slots()["s"]["state"], "quarantined")
        self.assertAlmostEqual(self.slots()["s"]["since"], since, delta=1000)


class Workers(OperationsCase):
    def test_a_worker_is_shown_with_everything_it_said(self):
        metadata = {"revision": "abc", "nested": {"list": [1, "two", None]}}
        self.ok(self.register("w/1", slot="slot-1", capabilities=["gpu"], executors=["claude"], maxConcurrent=3,
                              leaseMs=30000, metadata=metadata, host="a-host", bootId=boot_id(), pid=17,
                              startTime=12345))
        ids = [self.create(id=f"job-{i}")["id"] for i in range(2)] + [self.create()["id"]]
        self.assertEqual(len(self.claim("w/1", max=3)), 3)
        worker = self.ok(self.client.get("/api/workers/w%2F1"))
        self.assertEqual((worker["workerId"], worker["state"], worker["slot"], worker["capabilities"],
                          worker["executors"], worker["maxConcurrent"], worker["held"], worker["leaseGrantedMs"]),
                         ("w/1", "active", "slot-1", ["gpu"], ["claude"], 3, 3, 30000))
        self.assertEqual((worker["host"], worker["bootId"], worker["pid"], worker["startTime"], worker["metadata"]),
                         ("a-host", boot_id(), 17, 12345, metadata))
        self.assertTrue(0 < worker["leaseMs"] <= 30000, worker)
        self.assertEqual(worker["lastBeatAt"], worker["registeredAt"])
        self.assertEqual(sorted(worker["tasks"]), sorted(ids))
        listed, = self.ok(self.client.get("/api/workers"))
        self.assertEqual(listed["metadata"], metadata)
        self.assertNotIn("tasks", listed)

    def test_a_worker_that_has_ended_says_why_and_since_when(self):
        self.ok(self.register("w1"))
        self.ok(self.register("w2"))
        self.ok(self.client.call("DELETE", "/api/workers/w1?how=terminated"))
        gone = self.ok(self.client.get("/api/workers/w1"))
        self.assertEqual((gone["state"], gone["ended"], gone["leaseMs"]), ("inactive", "terminated", 0))
        self.assertGreaterEqual(gone["endedAt"], gone["registeredAt"])
        self.assertEqual([worker["workerId"] for worker in self.ok(self.client.get("/api/workers"))], ["w2", "w1"])
        inactive = self.ok(self.client.get("/api/workers?state=inactive"))
        self.assertEqual([worker["workerId"] for worker in inactive], ["w1"])
        self.assertEqual(len(self.ok(self.client.get("/api/workers?limit=1"))), 1)
        for query in ("state=busy", "limit=0", "limit=10001", "x=1"):
            reply = self.client.get("/api/workers?" + query)
            self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, query.split("=")[0]))
        self.assertEqual(self.client.get("/api/workers/w3").status, 404)

    def test_what_a_worker_said_is_known_after_a_restart(self):
        self.ok(self.register("w1", host="h", pid=5, metadata={"a": 1}))
        self.client.close()
        self.server.kill()
        self.server.start()
        worker = self.ok(self.client.get("/api/workers/w1"))
        self.assertEqual((worker["host"], worker["pid"], worker["metadata"]), ("h", 5, {"a": 1}))


class TakingASlotOver(OperationsCase):
    def setUp(self):
        super().setUp()
        self.process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        self.addCleanup(self.end_process)
        self.old = {"pid": self.process.pid, "startTime": start_time(self.process.pid)}
        self.here = {"host": "a-host", "bootId": boot_id()}
        self.ok(self.register("old", slot="s", **self.here, **self.old))

    def end_process(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    def newcomer(self, worker="new", here=None, **replaces):
        return self.register(worker, slot="s", **(here or self.here), pid=os.getpid(),
                             startTime=start_time(os.getpid()), replaces={"workerId": "old", **self.old, **replaces})

    def refused(self, reply, word):
        self.assertEqual((reply.status, reply.json["code"], reply.json["holder"]), (409, "slot_taken", "old"))
        self.assertIn(word, reply.json["detail"])
        self.assertEqual(self.ok(self.client.get("/api/workers/old"))["state"], "active")
        self.assertEqual(self.client.get("/api/workers/new").status, 404)

    def test_the_slot_of_a_dead_process_is_handed_over(self):
        self.create()
        self.claim("old")
        self.end_process()
        self.ok(self.newcomer())
        old = self.ok(self.client.get("/api/workers/old"))
        self.assertEqual((old["state"], old["ended"]), ("inactive", "replaced"))
        self.assertEqual(self.ok(self.client.get("/api/slots"))[0]["workerId"], "new")
        task = self.ok(self.client.get("/api/tasks/t-1"))
        self.assertEqual((task["state"], task["crashes"]), ("ready", 1))

    def test_a_first_beat_may_take_over_as_well(self):
        self.end_process()
        self.ok(self.client.post("/api/workers/heartbeat", {
            "workerId": "new", "slot": "s", **self.here, "replaces": {"workerId": "old", **self.old}}))
        self.assertEqual(self.ok(self.client.get("/api/workers/old"))["ended"], "replaced")

    def test_a_process_that_lives_keeps_its_slot_whatever_is_said(self):
        self.refused(self.newcomer(), "is alive")
        self.refused(self.register("new", slot="s", **self.here), "replaces")

    def test_lies_are_told_apart(self):
        self.end_process()
        self.refused(self.newcomer(here={**self.here, "host": "elsewhere"}), "same host and boot")
        self.refused(self.newcomer(here={**self.here, "bootId": "0" * 31 + "1"}), "same host and boot")
        self.refused(self.newcomer(startTime=self.old["startTime"] + 1), "another process")
        self.refused(self.newcomer(pid=self.old["pid"] + 1), "another process")
        self.refused(self.newcomer(workerId="somebody"), "another worker")

    def test_a_worker_that_never_said_who_it_is_cannot_be_shown_dead(self):
        self.ok(self.register("mute", slot="t"))
        reply = self.register("new", slot="t", **self.here, replaces={"workerId": "mute", "pid": 1, "startTime": 1})
        self.assertEqual((reply.status, reply.json["holder"]), (409, "mute"))
        self.assertIn("did not say", reply.json["detail"])


if __name__ == "__main__":
    unittest.main()
