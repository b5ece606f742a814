"""A slot worker of old, in Node, run as it is against a server that asks for no token: picks up, monitors, reports,
shuts down, dies and recovers. A scripted claimant stands where its sessions would run."""
import os
import shutil
import signal
import subprocess
import unittest

from hang import HANG_S
import proof
import test_sessions
import test_slots

NODE = shutil.which("node") or shutil.which("nodejs")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slot-worker")
HURRY = 100


@unittest.skipUnless(NODE, "there is no node; ./dev check installs it")
class WorkerCase(proof.Proved, test_sessions.SessionCase):
    flags = test_slots.OPEN + proof.settings(restart_graceMs=1000)
    limits = ("restart_grace_ms=1000",)

    def setUp(self):
        self.clocks = proof.Clocks()
        super().setUp()

    pass_time = test_slots.Silence.pass_time

    def node(self, program, *args):
        environment = {**os.environ, "STINT_URL": self.server.url, "STINT_HURRY": str(HURRY)}
        log = open(os.path.join(self.server.home, program + ".log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([NODE, "--require", os.path.join(PROGRAMS, "hurry.cjs"),
                                    os.path.join(PROGRAMS, program), *args], env=environment,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait, HANG_S)
        self.addCleanup(process.kill)
        return process

    def start(self, slot="slot-1"):
        process = self.node("worker.mjs", slot)
        self.wait_until(lambda: self.entry(slot).get("metadata", {}).get("workerPid") == process.pid, what="it beats")
        return process

    def entry(self, slot="slot-1"):
        return self.document().get(slot, {})

    def status(self, task=test_slots.TASK):
        return self.task(task)["status"]

    def serve_next(self):
        """The session that the worker has asked for, once it has."""
        self.wait_until(lambda: any(session["status"] == "queued" for session in self.sessions()),
                        what="no session was spawned")
        return self.serve()

    def finish(self, outcome="complete", **fields):
        claim = self.serve_next()
        self.assertEqual(self.report(outcome, claim, "agents", **fields).status, 200)
        return claim["task"]["id"]


class Loop(WorkerCase):
    def test_from_pick_up_to_done_and_on_to_the_next(self):
        self.own("second", title="later")
        self.own(title="Review code changes for PR #42", description="look", steps=["one", "two"], priority=5)
        worker = self.start()
        claim = self.serve_next()
        self.assertIn("**Task ID**: %s" % test_slots.TASK, claim["task"]["instructions"])
        self.assertIn("1. one\n2. two", claim["task"]["instructions"])
        entry, task = self.entry(), self.task()
        self.assertEqual((entry["status"], entry["task"], entry["taskTitle"], entry["sessionId"]),
                         ("working", test_slots.TASK, "Review code changes for PR #42", claim["task"]["id"]))
        self.assertEqual((task["status"], task["workerId"]), ("in-progress", "slot-1"))
        self.assertEqual(self.status("second"), "todo")
        self.report("complete", claim, "agents")
        self.wait_until(lambda: self.status() == "done")
        self.finish()
        self.wait_until(lambda: self.status("second") == "done")
        self.wait_until(lambda: self.entry()["status"] == "idle")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(HANG_S), 0)
        self.assertEqual((self.entry()["status"], self.entry()["metadata"]["offlineReason"]),
                         ("offline", "graceful-shutdown"))
        self.assertEqual(self.types_of(test_slots.TASK), ["task.created", "task.claimed", "task.completed"])

    def test_a_signal_lets_the_task_in_hand_end(self):
        self.own()
        worker = self.start()
        claim = self.serve_next()
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(self.status(), "in-progress")
        self.report("complete", claim, "agents")
        self.assertEqual(worker.wait(HANG_S), 0)
        self.assertEqual((self.status(), self.entry()["status"]), ("done", "offline"))

    def test_a_session_that_fails_blocks_the_task(self):
        self.own()
        self.start()
        self.finish("fail", error={"code": "EXECUTION_ERROR", "message": "no"})
        self.wait_until(lambda: self.status() == "blocked")
        self.wait_until(lambda: self.entry()["status"] == "idle")

    def test_one_that_takes_too_long_is_killed_and_says_why(self):
        self.own(timeoutMs=60000)
        self.start()
        session = self.serve_next()["task"]["id"]
        self.wait_until(lambda: self.status() == "blocked")
        self.wait_until(lambda: self.session(session)["status"] == "stopped")
        self.wait_until(lambda: "errorReason" in self.task().get("metadata", {}))
        metadata = self.task()["metadata"]
        self.assertEqual((metadata["errorReason"], metadata["sessionId"]), ("Session timeout exceeded", session))
        self.assertIsInstance(metadata["failedAt"], int)


class Death(WorkerCase):
    def test_killed_amid_its_work_it_is_offline_after_90_seconds_and_the_task_comes_back_once(self):
        self.own()
        worker = self.start()
        session = self.serve_next()["task"]["id"]
        self.wait_until(lambda: self.task().get("sessionId") == session)
        worker.kill()
        worker.wait(HANG_S)
        self.pass_time(85)
        self.assertEqual((self.entry()["status"], self.status()), ("working", "in-progress"))
        self.pass_time(8)
        self.wait_until(lambda: self.status() == "todo")
        entry, task = self.entry(), self.task()
        self.assertEqual((entry["status"], entry["metadata"]["offlineReason"], entry["metadata"]["restartCount"]),
                         ("offline", "stale-heartbeat", 1))
        self.assertEqual(task["metadata"], {"crashRecovery": True, "previousSession": session,
                                            "recoveredAt": entry["metadata"]["detectedAt"]})
        self.assertEqual(self.node("watchdog.mjs").wait(HANG_S), 0)
        self.assertEqual(self.types_of(test_slots.TASK), ["task.created", "task.claimed", "task.expired"])
        self.start()
        self.finish()
        self.wait_until(lambda: self.status() == "done")
        self.assertEqual(self.types_of(test_slots.TASK)[3:], ["task.claimed", "task.completed"])
        self.assertEqual(self.entry()["metadata"]["restartCount"], 1)

    def test_restarted_at_once_it_recovers_by_itself_and_nothing_runs_twice(self):
        self.own()
        worker = self.start()
        session = self.serve_next()["task"]["id"]
        self.wait_until(lambda: self.task().get("sessionId") == session)
        worker.kill()
        worker.wait(HANG_S)
        self.start()
        self.wait_until(lambda: self.session(session)["status"] == "stopped")
        second = self.serve_next()
        task = self.task()
        self.assertEqual((task["metadata"]["crashRecovery"], task["metadata"]["previousSession"]), (True, session))
        self.assertEqual(self.entry()["metadata"]["restartCount"], 1)
        self.report("complete", second, "agents")
        self.wait_until(lambda: self.status() == "done")
        self.assertEqual([event for event in self.types_of(test_slots.TASK) if event != "task.updated"],
                         ["task.created", "task.claimed", "task.released", "task.claimed", "task.completed"])


if __name__ == "__main__":
    proof.main()
