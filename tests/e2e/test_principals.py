"""Who works and who approves: a worker that starts with the admin's token has a credential of its own, a task with an open gate
goes to review whatever ran it, and a report that the server refuses leaves neither a claim nor a place occupied."""
import glob
import json
import os
import subprocess
import time
import unittest

from between import Between
from hang import HANG_S
import proof
import stintd
import test_cli
import test_once
import test_pool
import test_worktrees
from test_worker import STINT, Case, sh


class Up(unittest.TestCase):
    """`stint up`: the worker and the person are two principals."""
    setUp, end_all, up, up_and_ready, stint = (vars(test_cli.Up)[name] for name in ("setUp", "end_all", "up", "up_and_ready", "stint"))

    def test_the_person_approves_what_the_worker_of_up_did(self):
        self.up_and_ready("--no-demo")
        added = self.stint("add", "x", "--id", "t", "-Q", "shell", "-x", "shell", "--gate", "security", "--payload", '{"argv":["true"]}')
        self.assertEqual(added.returncode, 0, added.stderr)
        until = time.monotonic() + HANG_S
        while json.loads(self.stint("show", "t", "--json").stdout)["task"]["state"] != "review":
            self.assertLess(time.monotonic(), until, "in review")
            time.sleep(0.02)
        approved = self.stint("approve", "t")
        self.assertEqual(approved.returncode, 0, approved.stderr)
        self.assertEqual(self.stint("wait", "t").returncode, 0)
        self.assertRegex(self.stint("token", "ls").stdout, r"(?m)^\S+\tworker\t")


class Credential(Case):
    def tokens(self):
        return [token for token in self.client.get("/api/tokens").json if token["kind"] == "worker"]

    def kept(self):
        (path,) = glob.glob(os.path.join(self.server.home, "worker-*.token"))
        return path

    def test_the_admin_token_is_exchanged_once_and_the_worker_keeps_what_it_got(self):
        first = self.worker({"x": sh("true")})
        self.create(id="a")
        self.is_in("a", "done")
        self.assertEqual(first.stop(), 0)
        self.worker({"x": sh("true")})
        self.create(id="b")
        self.is_in("b", "done")
        (token,) = self.tokens()
        self.assertIsNone(token["expiresAt"])
        self.assertEqual(os.stat(self.kept()).st_mode & 0o777, 0o600)
        actors = {event["actor"] for event in self.client.get("/api/tasks/a/events").json["events"] if event["type"] != "task.created"}
        self.assertEqual(actors, {"worker:" + token["name"]})

    def test_a_token_that_was_revoked_is_replaced_at_the_next_start(self):
        worker = self.worker({"x": sh("true")})
        (token,) = self.until(self.tokens, "a token")
        self.until(lambda: "registered" in worker.said(), "it is registered")
        worker.stop()
        self.assertEqual(self.client.call("DELETE", "/api/tokens/" + token["id"]).status, 200)
        self.worker({"x": sh("true")})
        self.create(id="t")
        self.is_in("t", "done")
        self.assertEqual(len(self.tokens()), 2)

    def test_workers_that_start_together_share_one_token(self):
        workers = [self.worker({"x": sh("true")}, "--name", "w%d" % number) for number in range(4)]
        self.until(lambda: workers[0].said().count('"registered"') == 4, "all are registered")
        self.assertEqual(len(self.tokens()), 1)

    def test_a_worker_token_is_used_as_it_is(self):
        made = self.client.post("/api/tokens", {"kind": "worker", "name": "ci"}).json["token"]
        self.worker({"x": sh("true")}, STINT_TOKEN=made)
        self.create(id="t")
        self.is_in("t", "done")
        self.assertEqual([token["name"] for token in self.tokens()], ["ci"])

    def test_a_worker_waits_for_a_server_that_is_away_and_exchanges_then(self):
        self.client.close()
        self.server.stop()
        worker = self.worker({"x": sh("true")})
        self.until(lambda: "the server does not answer" in worker.said(), "it says so")
        self.server.start()
        self.create(id="t")
        self.is_in("t", "done")

    def test_the_refusal_says_who_may_approve(self):
        self.create(id="t", gates=["security"])
        fence = self.client.post("/api/tasks/t/claim", {"workerId": "me"}).json["fence"]
        self.assertEqual(self.client.post("/api/tasks/t/review", {"workerId": "me", "fence": fence}).status, 200)
        ran = subprocess.run([STINT, "--home", self.server.home, "approve", "t"], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment())
        self.assertIn("Whoever worked on a task may not approve it, and this token did. Approve with another one.", ran.stderr)
        self.assertRegex(ran.stderr, r"try:? +stint token create --kind approver --name reviewer --out reviewer.token")


class Gated(Case):
    """A success with an open gate is in review, and the next task finds a place."""

    def expect_review(self, **fields):
        self.create(id="gated", gates=["security"], **fields)
        task = self.is_in("gated", "review", "failed", "blocked", "scheduled")
        self.assertEqual((task["state"], task["attempt"]), ("review", 1), task)
        self.create(id="next", **fields)
        self.is_in("next", "done")
        self.assertEqual(self.client.post("/api/tasks/gated/gates/security", {"verdict": "pass"}).json["state"], "done")

    def test_a_command(self):
        self.worker({"x": sh("true")})
        self.expect_review()


class GatedPool(test_pool.Case):
    def test_a_pool(self):
        self.pool("any")
        Gated.expect_review(self, module="echo")


class GatedTree(test_worktrees.TreeCase):
    def test_a_work_tree(self):
        self.worker({"x": self.executor("true")}, roots=[self.folder])
        Gated.expect_review(self, workingDir=self.repo)


class GatedOnce(test_once.Case):
    def test_run_once(self):
        self.create(id="gated", gates=["security"])
        status, result = self.result()
        self.assertEqual((status, result["action"], self.task("gated")["state"]), (0, "completed", "review"))
        self.assertEqual(self.client.post("/api/tasks/gated/gates/security", {"verdict": "pass"}).json["state"], "done")


class Refused(Case):
    """The server refuses one kind of report of task t: another report ends its claim."""
    flags = (*Case.flags, "--set", "claim.verifyAfterMs=1000")

    def refuse(self, verbs):
        self.door = Between(self.server)
        self.addCleanup(self.door.close)
        self.refused = []

        def before(request):
            items = request.json.get("finish", []) if request.is_claim() else []
            if any(item["id"] == "t" and item["outcome"] in verbs for item in items):
                return 422, {"code": "invalid"}
            if request.method == "POST" and request.path in ["/api/tasks/t/" + verb for verb in verbs]:
                self.refused.append(request)
                return 422, {"code": "invalid", "detail": "no"}
            return None

        self.door.before = before
        return "--url", self.door.url, "--token-file", os.path.join(self.server.home, "admin.token")

    def expect_free(self, state, **fields):
        self.until(lambda: self.refused, "a report was refused")
        self.create(id="next", **fields)
        self.is_in("next", "done")
        task = self.is_in("t", state)
        self.assertIsNone(task["workerId"])
        return task

    def test_a_success_is_a_failed_attempt(self):
        self.worker({"x": sh("true")}, *self.refuse(["complete"]))
        self.create(id="t", maxAttempts=1)
        error = self.expect_free("failed")["error"]
        self.assertEqual((error["code"], error["message"]),
                         ("EXECUTION_ERROR", "the server did not accept how the attempt ended (complete): invalid"))

    def test_a_failure_is_given_back(self):
        self.worker({"x": sh("[ $STINT_TASK_ID != t ]")}, *self.refuse(["fail"]))
        self.create(id="t", maxAttempts=1)
        self.expect_free("scheduled")
        self.assertIn("task.released", self.events("t"))

    def test_a_return_is_a_failed_attempt(self):
        self.worker({"x": sh("[ $STINT_TASK_ID != t ] || exit 75")}, *self.refuse(["release"]))
        self.create(id="t", maxAttempts=1)
        self.expect_free("failed")

    def test_of_a_server_that_refuses_every_report_the_claim_is_let_go(self):
        self.worker({"x": sh("true")}, *self.refuse(["complete", "fail", "release"]))
        self.create(id="t")
        self.until(lambda: len(self.refused) >= 3, "each way was tried once")
        self.door.before = lambda request: None
        self.is_in("t", "done")

    def test_a_task_that_cannot_be_started_is_given_back(self):
        self.worker({"x": sh("true")}, *self.refuse(["fail"]))
        self.create(id="t", workingDir="/nonexistent")
        self.until(lambda: "task.released" in self.events("t"), "given back")
        self.create(id="next")
        self.is_in("next", "done")


class RefusedPool(test_pool.Case):
    def test_a_pool(self):
        flags = Refused.refuse(self, ["complete"])
        self.worker({"p": self.executor("any")}, "--name", "host", *flags)
        self.create(id="t", module="echo", maxAttempts=1)
        Refused.expect_free(self, "failed", module="echo")


class RefusedTree(test_worktrees.TreeCase):
    def test_a_work_tree(self):
        self.worker({"x": self.executor("true")}, *Refused.refuse(self, ["complete"]), roots=[self.folder])
        self.create(id="t", workingDir=self.repo, maxAttempts=1)
        Refused.expect_free(self, "failed", workingDir=self.repo)


class RefusedOnce(test_once.Case):
    def test_run_once(self):
        flags = Refused.refuse(self, ["complete"])
        self.create(id="t", maxAttempts=1)
        status, result = self.result(*flags)
        self.assertEqual((status, result["action"], self.task("t")["state"]), (1, "failed", "failed"))


if __name__ == "__main__":
    proof.main()
