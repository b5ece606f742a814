"""Slot workers through the door that they know: heartbeats, lanes, and what becomes of those that fall silent."""
import json
import os
import shutil
import tempfile
import unittest

import proof
import stintd

STEP_MS = 1500  # of the clocks: a longer one would look like a suspend
OPEN = proof.settings(auth="open", sweep_intervalMs=10)
TASK = "task-abc123-1770865000000"
SESSION = "agent:main:worker-slot-2:def456"


class SlotCase(proof.ProofCase):
    """An old client: it shows no token."""
    flags = OPEN

    def connect(self, **options):
        return super().connect(**{"token": "", **options})

    def beat_slot(self, slot="slot-1", status="idle", expect=200, **fields):
        reply = self.client.post("/api/heartbeats", {"slot": slot, "status": status, **fields})
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def work(self, task=TASK, slot="slot-1", session=SESSION, **fields):
        return self.beat_slot(slot, "working", task=task, sessionId=session, **fields)

    def own(self, task=TASK, slot="slot-1", **fields):
        return self.create(id=task, owner=slot, **fields)

    def move(self, status, task=TASK, expect=200, method="PATCH", **fields):
        reply = self.client.call(method, "/api/tasks/" + task, {"status": status, **fields})
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def task(self, task=TASK):
        return self.client.get("/api/tasks/" + task).json

    def document(self):
        return self.client.get("/api/heartbeats").json["workers"]


class Document(SlotCase):
    def test_a_slot_is_idle_works_and_is_idle_again(self):
        self.own(title="Review code changes for PR #42")
        started = self.beat_slot(task=None, taskTitle=None, sessionId=None, lastUpdate=1770865572000,
                                 startedAt=1770860000000,
                                 metadata={"workerPid": 12345, "workerVersion": "1.0.0", "restartCount": 0})
        now = started.pop("lastUpdate")
        self.assertGreater(now, 1770865572000, "the time is the server's")
        self.assertEqual(started, {
            "slot": "slot-1", "status": "idle", "task": None, "taskTitle": None, "sessionId": None,
            "startedAt": 1770860000000,
            "metadata": {"workerPid": 12345, "workerVersion": "1.0.0", "restartCount": 0}})
        self.work(taskTitle="what the worker calls it", metadata={"taskStartedAt": 1770865400000})
        self.move("in-progress")
        self.work()
        entry = self.document()["slot-1"]
        entry.pop("lastUpdate")
        self.assertEqual(entry, {
            "slot": "slot-1", "status": "working", "task": TASK, "taskTitle": "Review code changes for PR #42",
            "sessionId": SESSION, "startedAt": 1770860000000,
            "metadata": {"workerPid": 12345, "workerVersion": "1.0.0", "restartCount": 0,
                         "taskStartedAt": 1770865400000}})
        self.assertEqual(self.task()["sessionId"], SESSION)
        self.move("done")
        self.beat_slot()
        self.assertEqual(self.document()["slot-1"]["metadata"],
                         {"workerPid": 12345, "workerVersion": "1.0.0", "restartCount": 0})
        self.assertEqual(self.types_of(TASK), ["task.created", "task.claimed", "task.completed"])

    def test_before_the_claim_its_word_counts(self):
        self.beat_slot()
        entry = self.work(taskTitle="soon")
        self.assertEqual((entry["status"], entry["task"], entry["taskTitle"]), ("working", TASK, "soon"))

    def test_a_goodbye_gives_its_work_back_and_says_why(self):
        self.own()
        self.beat_slot(metadata={"workerPid": 7})
        self.move("in-progress")
        for _ in range(2):  # the second one changes nothing
            entry = self.beat_slot(status="offline", metadata={"offlineReason": "graceful-shutdown"})
            self.assertEqual(entry["status"], "offline")
            self.assertEqual(entry["metadata"], {"workerPid": None, "workerVersion": None, "restartCount": 0,
                                                 "offlineReason": "graceful-shutdown"})
        task = self.task()
        self.assertEqual((task["status"], task["crashes"]), ("todo", 0))
        self.assertNotIn("metadata", task)
        self.assertEqual(self.types_of(TASK)[-1], "task.released")
        self.assertEqual(self.beat_slot(metadata={"workerPid": 8})["metadata"]["restartCount"], 0)
        self.assertNotIn("offlineReason", self.document()["slot-1"]["metadata"])

    def test_a_worker_that_comes_back_as_another_process_is_counted(self):
        self.beat_slot(metadata={"workerPid": 7})
        self.beat_slot(metadata={"workerPid": 7})
        self.assertEqual(self.beat_slot(metadata={"workerPid": 8})["metadata"]["restartCount"], 1)
        self.assertEqual(self.client.get("/api/slots").json[0]["restarts"], 1)

    def test_a_slot_of_a_native_worker_is_there_too(self):
        self.client.post("/api/workers/register", {"workerId": "w-9", "slot": "slot-9", "pid": 4711})
        task = self.create(title="native")
        claim, = self.claim("w-9", slot="slot-9")
        entry = self.document()["slot-9"]
        self.assertEqual((entry["status"], entry["task"], entry["taskTitle"], entry["metadata"]["workerPid"]),
                         ("working", task, "native", 4711))

    def test_many_slots_and_none_twice(self):
        count = 700
        for i in range(count):
            self.beat_slot("slot-%d" % i)
        self.client.call("DELETE", "/api/workers/slot-3")
        workers = self.document()
        self.assertEqual(set(workers), {"slot-%d" % i for i in range(count)})
        self.assertEqual(workers["slot-3"]["status"], "offline")
        rows = self.client.get("/api/heartbeats?shape=array").json["workers"]
        self.assertEqual(len(rows), count)

    def test_it_survives_a_restart_of_the_server(self):
        self.own()
        self.beat_slot(startedAt=1770860000000, metadata={"workerPid": 7, "workerVersion": "1.0.0"})
        self.move("in-progress")
        before = self.work()
        self.restart()
        self.assertEqual({**self.document()["slot-1"], "lastUpdate": 0}, {**before, "lastUpdate": 0})
        self.move("done")


class BadInput(SlotCase):
    def refused(self, body, *fields, status=422):
        reply = self.client.post("/api/heartbeats", body)
        self.assertEqual(reply.status, status, reply.body)
        self.assertEqual([error["field"] for error in reply.json.get("errors", [])], list(fields))
        self.assertEqual(self.document(), {})

    def test_what_is_wrong_is_said_and_nothing_changes(self):
        self.refused({}, "slot", "status")
        self.refused({"slot": "slot-1", "status": "busy"}, "status")
        self.refused({"slot": "slot-1", "status": "working"}, "task")
        self.refused({"slot": "slot-1", "status": "working", "task": "no such/id"}, "task")
        self.refused({"slot": "s" * 129, "status": "idle"}, "slot")
        self.refused({"slot": "slot-1", "status": "idle", "metadata": []}, "metadata")
        self.refused({"slot": "slot-1", "status": "idle", "metadata": {"workerPid": "x"}}, "metadata.workerPid")
        self.refused({"slot": "slot-1", "status": "idle", "startedAt": "today"}, "startedAt")
        self.refused(b"{", status=400)
        self.assertEqual(self.client.get("/api/heartbeats?shape=tree").status, 422)

    def test_what_it_does_not_know_is_left_out(self):
        self.assertEqual(self.beat_slot(mood="fine")["status"], "idle")

    def test_a_task_that_it_does_not_hold_is_not_its_own(self):
        self.own(slot="slot-2")
        self.move("in-progress")
        self.beat_slot("slot-1")
        self.work(slot="slot-1")
        self.assertEqual(self.task()["workerId"], "slot-2")


class Lanes(SlotCase):
    """Every move of the table, by whoever acts for the slot."""

    def test_in_progress_is_a_confirmed_claim_for_the_time_that_the_task_may_take(self):
        self.own(timeoutMs=60000)
        task = self.move("in-progress")
        self.assertEqual((task["state"], task["workerId"], task["leaseMs"]), ("running", "slot-1", 60000))
        claimed = [event for event in self.events() if event["type"] == "task.claimed"]
        self.assertEqual((claimed[0]["data"]["nameOnly"], claimed[0]["actor"]), (True, "open"))
        self.assertNotIn("operator", claimed[0]["data"])
        self.assertEqual(self.move("in-progress", method="PUT")["fence"], task["fence"], "said again by the holder")
        self.assertEqual(self.types_of(TASK), ["task.created", "task.claimed"])

    def test_a_task_of_nobody_cannot_be_taken_so(self):
        self.create(id=TASK)
        self.assertEqual(self.move("in-progress", expect=409)["state"], "ready")

    def test_todo_gives_it_back(self):
        self.own()
        self.move("in-progress")
        task = self.move("todo", metadata={"crashRecovery": True, "previousSession": SESSION,
                                           "recoveredAt": 1770865400000})
        self.assertEqual((task["status"], task["crashes"]), ("todo", 0))
        self.assertEqual(task["metadata"], {"crashRecovery": True, "previousSession": SESSION,
                                            "recoveredAt": 1770865400000})
        self.move("todo")  # and again: it is there
        self.assertEqual(self.types_of(TASK).count("task.released"), 1)

    def test_the_ends_need_work_in_progress(self):
        for status in ("done", "blocked", "review"):
            with self.subTest(status):
                task = self.own("t:" + status)
                refused = self.move(status, task, expect=409)
                self.assertEqual((refused["code"], refused["state"]), ("bad_transition", "ready"))
                self.move("in-progress", task)
                self.assertEqual(self.move(status, task)["status"], status)
                self.assertEqual(self.move(status, task)["status"], status, "said again")

    def test_a_failure_says_its_reason(self):
        self.own()
        self.move("in-progress")
        task = self.move("blocked", metadata={"errorReason": "Session timeout exceeded", "failedAt": 1770865400000,
                                              "sessionId": SESSION})
        self.assertEqual(task["metadata"], {"errorReason": "Session timeout exceeded", "failedAt": 1770865400000,
                                            "sessionId": SESSION})
        self.assertEqual(task["error"]["message"], "Session timeout exceeded")

    def test_a_failure_without_a_word_says_what_the_server_knows(self):
        self.own(metadata={"pr": 42})
        self.beat_slot()
        self.move("in-progress")
        self.work()
        task = self.move("blocked")
        failed = task["metadata"].pop("failedAt")
        self.assertEqual(task["metadata"], {"pr": 42, "errorReason": task["error"]["message"], "sessionId": SESSION})
        self.assertEqual(failed, task["updatedAt"])
        self.assertEqual(self.client.get("/api/tasks").json[0]["metadata"]["failedAt"], failed)

    def test_a_failure_that_a_native_worker_reports_is_told_in_the_same_words(self):
        self.own(maxAttempts=2)
        claim, = self.claim("w-1", slot="slot-1")
        self.report("progress", claim, "w-1", session="s-1")
        failed = self.report("fail", claim, "w-1", error={"code": "EXECUTION_ERROR", "message": "no luck",
                                                          "retryAt": 1}).json
        self.wait_until(lambda: self.task()["state"] == "ready")
        self.assertEqual(self.task()["metadata"],
                         {"errorReason": "no luck", "failedAt": failed["updatedAt"], "sessionId": "s-1"})
        claim, = self.claim("w-1", slot="slot-1")
        self.assertNotIn("metadata", self.task(), "it is being tried again")
        self.report("fail", claim, "w-1", error={"code": "STALLED", "message": "nothing moved"})
        task = self.task()
        self.assertEqual((task["status"], task["metadata"]["errorReason"]), ("blocked", "nothing moved"))

    def test_whoever_said_it_last_counts(self):
        said = {"errorReason": "the worker's words", "failedAt": 7, "sessionId": "old"}
        self.own()
        self.move("in-progress")
        self.assertEqual(self.move("blocked", metadata=said)["metadata"], said)
        self.client.post("/api/tasks/%s/retry" % TASK)
        self.beat_slot()
        self.move("in-progress")
        self.work()
        task = self.move("blocked")
        self.assertEqual(task["metadata"], {"errorReason": "its status was set to blocked",
                                            "failedAt": task["updatedAt"], "sessionId": SESSION})
        reply = self.client.call("PATCH", "/api/tasks/" + TASK, {"metadata": said}).json
        self.assertEqual(reply["metadata"], said)

    def test_a_task_of_nobody_has_no_words_of_a_slot(self):
        task = self.create()
        claim, = self.claim("w-1")
        self.report("fail", claim, "w-1", error={"code": "EXECUTION_ERROR", "message": "no", "retry": False})
        self.assertNotIn("metadata", self.task(task))

    def test_nobody_else_moves_what_a_worker_holds(self):
        self.own()
        self.client.post("/api/workers/register", {"workerId": "w-1", "slot": "slot-1"})
        self.client.post("/api/tasks/%s/claim" % TASK, {"workerId": "w-1"})
        for status in ("todo", "in-progress", "done", "blocked", "review"):
            self.assertEqual(self.move(status, expect=409)["code"], "claimed_by_other")

    def test_an_operator_is_recorded_as_such(self):
        self.own()
        self.client = self.connect(token=self.server.token)
        self.move("in-progress")
        claimed = [event for event in self.events() if event["type"] == "task.claimed"]
        self.assertTrue(claimed[0]["data"]["operator"])

    def test_with_the_token_of_a_claim_it_acts_for_that_claim(self):
        self.create(id=TASK)
        admin = self.connect(token=self.server.token)
        claim = admin.post("/api/tasks/%s/claim" % TASK, {"workerId": "w"}).json
        token = admin.post("/api/tokens", {"kind": "claim", "task": TASK, "fence": claim["fence"]}).json["token"]
        self.client = self.connect(token=token)
        self.assertEqual(self.move("review")["status"], "review")

    def test_what_is_no_lane_is_refused_and_nothing_changes(self):
        self.own()
        for wrong in ("doing", "", "cancelled", 7, None):
            self.assertEqual(self.move(wrong, expect=422)["errors"][0]["field"], "status")
        self.assertEqual(self.types_of(TASK), ["task.created"])


class Silence(proof.Proved, SlotCase):
    """90 seconds, by clocks that the test sets."""
    flags = OPEN + proof.settings(restart_graceMs=1000)
    limits = ("restart_grace_ms=1000",)

    def setUp(self):
        self.clocks = proof.Clocks()
        super().setUp()

    def pass_time(self, seconds):
        """Step by step, each of them seen by the server: a claim that waits in vain is answered by a turn."""
        end = self.clocks.boot_ms + 1000 * seconds
        while self.clocks.boot_ms < end:
            step = min(STEP_MS, end - self.clocks.boot_ms)
            self.clocks.set(wall_ms=self.clocks.wall_ms + step, boot_ms=self.clocks.boot_ms + step)
            self.client.post("/api/claims", {"workerId": "idler", "queues": ["nothing"], "waitMs": 1})

    def test_a_worker_that_falls_silent_is_offline_and_its_task_is_in_line_again_once(self):
        self.own()
        self.beat_slot(metadata={"workerPid": 7, "workerVersion": "1.0.0"})
        self.move("in-progress")
        self.work()
        self.pass_time(88)
        self.assertEqual((self.document()["slot-1"]["status"], self.task()["status"]), ("working", "in-progress"))
        self.pass_time(4)
        self.wait_until(lambda: self.document()["slot-1"]["status"] == "offline")
        entry, task = self.document()["slot-1"], self.task()
        self.assertEqual((entry["task"], entry["taskTitle"], entry["sessionId"]), (None, None, None))
        detected = entry["metadata"].pop("detectedAt")
        self.assertGreaterEqual(detected - entry["lastUpdate"], 90000)
        self.assertEqual(entry["metadata"], {"workerPid": None, "workerVersion": "1.0.0", "restartCount": 1,
                                             "offlineReason": "stale-heartbeat"})
        self.assertEqual((task["status"], task["state"], task["attempt"]), ("todo", "ready", 1))
        self.assertEqual(task["metadata"], {"crashRecovery": True, "previousSession": SESSION,
                                            "recoveredAt": detected})
        # the watchdog and the worker that comes back do the same, too late: nothing happens twice
        self.move("todo")
        self.move("todo", metadata={"crashRecovery": True, "previousSession": SESSION, "recoveredAt": 5})
        self.assertEqual(self.beat_slot(metadata={"workerPid": 8})["metadata"]["restartCount"], 1)
        self.assertEqual(self.task()["metadata"]["recoveredAt"], 5)
        self.assertEqual([event for event in self.types_of(TASK) if event != "task.updated"],
                         ["task.created", "task.claimed", "task.expired"])

    def test_a_second_loss_is_told_over_the_words_of_the_first(self):
        self.own(metadata={"crashRecovery": True, "previousSession": "old", "recoveredAt": 5})
        self.beat_slot()
        self.move("in-progress")
        self.pass_time(92)
        self.wait_until(lambda: self.document()["slot-1"]["status"] == "offline")
        task = self.task()
        self.assertEqual(task["status"], "todo")
        self.assertEqual(task["metadata"], {"crashRecovery": True, "previousSession": None,
                                            "recoveredAt": self.document()["slot-1"]["metadata"]["detectedAt"]})

    def test_a_slot_that_is_offline_can_be_spoken_for(self):
        self.own()
        self.beat_slot(status="offline")
        self.assertEqual(self.move("in-progress")["workerId"], "slot-1")
        self.beat_slot()
        self.work()
        self.assertEqual(self.document()["slot-1"]["status"], "working")
        self.move("done")

    def test_beats_keep_it_alive_however_long_the_work_takes(self):
        self.own(timeoutMs=60000)
        self.beat_slot()
        self.move("in-progress")
        for _ in range(5):
            self.work()
            self.pass_time(15)
        self.assertEqual(self.task()["status"], "in-progress")
        self.move("done")

    def test_who_beats_for_nothing_that_it_holds_loses_it_after_a_while(self):
        """It came back without a memory, and never recovers what it had."""
        self.own()
        self.beat_slot(metadata={"workerPid": 7})
        self.move("in-progress")
        self.work()
        self.beat_slot(metadata={"workerPid": 8})
        for _ in range(9):
            self.pass_time(15)
            self.beat_slot()
        self.wait_until(lambda: self.task()["status"] == "todo")
        self.assertEqual(self.types_of(TASK), ["task.created", "task.claimed", "task.expired"])


class File(SlotCase):
    """The document as a file, where others keep theirs."""
    shape = "map"

    def setUp(self):
        self.place = os.path.join(tempfile.mkdtemp(prefix="stint-clawhub-"), ".clawhub")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.place))
        os.mkdir(self.place)
        self.path = os.path.join(self.place, "worker-heartbeats.json")
        for name in ("lock.json", "origin.json"):
            self.put(name, name)
        self.prepare()
        self.flags = OPEN + proof.settings(heartbeats_file=self.path, heartbeats_shape=self.shape,
                                           heartbeats_intervalMs=100)
        super().setUp()

    def prepare(self):
        pass

    def put(self, name, text):
        with open(os.path.join(self.place, name), "w") as file:
            file.write(text)

    def read(self):
        with open(self.path) as file:
            return json.load(file)

    def read_until(self, condition):
        self.wait_until(lambda: os.path.exists(self.path) and condition(self.read()["workers"]))

    def tearDown(self):
        for name in ("lock.json", "origin.json"):
            with open(os.path.join(self.place, name)) as file:
                self.assertEqual(file.read(), name)


class MapFile(File):
    def test_it_follows_the_slots(self):
        self.beat_slot(metadata={"workerPid": 7})
        self.read_until(lambda workers: "slot-1" in workers)
        self.own(title="Review code changes for PR #42")
        self.move("in-progress")
        self.read_until(lambda workers: workers["slot-1"]["status"] == "working")
        self.assertEqual(self.read()["workers"], self.document())
        self.beat_slot(status="offline")
        self.read_until(lambda workers: workers["slot-1"]["status"] == "offline")
        self.assertEqual(sorted(os.listdir(self.place)), ["lock.json", "origin.json", "worker-heartbeats.json"])

    def test_it_is_not_written_while_nothing_changes(self):
        self.beat_slot()
        self.read_until(lambda workers: "slot-1" in workers)
        before = os.stat(self.path)
        for _ in range(30):  # other people's work: the document is made anew, and is the same
            self.create()
        self.client.post("/api/claims", {"workerId": "w", "queues": ["nothing"], "waitMs": 500})
        self.assertEqual(os.stat(self.path).st_ino, before.st_ino)

    def test_a_new_server_takes_its_own_file_over(self):
        self.beat_slot()
        self.read_until(lambda workers: "slot-1" in workers)
        os.chmod(self.path, 0o640)
        self.restart()
        self.beat_slot("slot-2")
        self.read_until(lambda workers: set(workers) == {"slot-1", "slot-2"})
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)

    def test_a_file_that_somebody_puts_there_later_is_left_alone(self):
        self.beat_slot()
        self.read_until(lambda workers: "slot-1" in workers)
        self.put("theirs", '{"workers":{}}')
        os.rename(os.path.join(self.place, "theirs"), self.path)
        self.beat_slot("slot-2")
        self.wait_until(lambda: "did not create" in self.server.said())
        self.assertEqual(self.read(), {"workers": {}})

    def test_without_its_directory_the_server_serves_and_says_so(self):
        self.beat_slot()
        self.read_until(lambda workers: "slot-1" in workers)
        os.rename(self.place, self.place + "-away")
        self.beat_slot("slot-2")
        self.wait_until(lambda: "cannot be written" in self.server.said())
        os.rename(self.place + "-away", self.place)
        self.read_until(lambda workers: "slot-2" in workers)
        self.wait_until(lambda: "written again" in self.server.said())


class ArrayFile(File):
    shape = "array"

    def test_the_other_historical_form(self):
        self.beat_slot()
        self.read_until(lambda workers: len(workers) == 1)
        row, = self.read()["workers"]
        self.assertEqual((row["slot"], row["mode"], row["task"]), ("slot-1", "waiting", None))
        self.assertRegex(row["lastBeatAt"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


class ForeignFile(File):
    def prepare(self):
        self.put("worker-heartbeats.json", '{"workers":{"slot-1":{"status":"idle"}}}')

    def test_a_file_that_stint_did_not_create_is_never_touched(self):
        before = os.stat(self.path)
        self.beat_slot("slot-9")
        self.wait_until(lambda: "did not create" in self.server.said())
        self.client.post("/api/claims", {"workerId": "w", "queues": ["nothing"], "waitMs": 300})
        after = os.stat(self.path)
        self.assertEqual((after.st_ino, after.st_mtime_ns, after.st_size),
                         (before.st_ino, before.st_mtime_ns, before.st_size))
        self.assertEqual(self.server.said().count("did not create"), 1)
        self.assertEqual(sorted(os.listdir(self.place)), ["lock.json", "origin.json", "worker-heartbeats.json"])


class LinkedFile(File):
    def prepare(self):
        os.symlink("lock.json", self.path)

    def test_nor_what_it_points_to(self):
        self.beat_slot()
        self.wait_until(lambda: "did not create" in self.server.said())
        self.assertTrue(os.path.islink(self.path))


class Strangers(unittest.TestCase):
    def test_a_token_sees_and_says_what_it_may(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        admin = server.client()
        self.addCleanup(admin.close)
        admin.post("/api/heartbeats", {"slot": "slot-1", "status": "idle"})
        tokens = {kind: admin.post("/api/tokens", {"kind": kind, "name": kind}).json["token"]
                  for kind in ("worker", "viewer")}
        worker, viewer = server.client(token=tokens["worker"]), server.client(token=tokens["viewer"])
        self.addCleanup(worker.close)
        self.addCleanup(viewer.close)
        beat = {"slot": "slot-2", "status": "idle"}
        self.assertEqual(viewer.post("/api/heartbeats", beat).status, 403)
        self.assertEqual(worker.post("/api/heartbeats", beat).status, 200)
        self.assertEqual(worker.post("/api/heartbeats", {**beat, "slot": "slot-1"}).status, 403)
        admin.post("/api/heartbeats", {"slot": "slot-1", "status": "offline", "metadata": {"secret": 1}})
        for status in ("idle", "offline"):
            self.assertEqual(worker.post("/api/heartbeats", {"slot": "slot-1", "status": status}).status, 403)
        self.assertEqual(set(worker.get("/api/heartbeats").json["workers"]), {"slot-2"})
        self.assertEqual(set(viewer.get("/api/heartbeats").json["workers"]), {"slot-1", "slot-2"})
        nobody = server.client(token="")
        self.addCleanup(nobody.close)
        self.assertEqual(nobody.get("/api/heartbeats").status, 401)


if __name__ == "__main__":
    proof.main()
