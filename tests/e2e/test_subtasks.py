"""Subtasks: the work on a task creates tasks with the token of its claim, waits for them, and goes on with their results."""
import json
import os
import subprocess

import proof
import stintd
import test_ask
from hang import HANG_S


class SubtaskCase(proof.Proved, proof.ProofCase):

    def begin(self, task="p", worker="w", **fields):
        """A task that a worker holds, and a client with the token of its claim."""
        if task is not None:
            self.create(id=task, **fields)
        claim = self.claim(worker, tokens=True)[0]
        token = claim.get("token") or self.client.post(
            "/api/tokens", {"kind": "claim", "task": claim["task"]["id"], "fence": claim["fence"]}).json["token"]
        return claim, self.connect(token=token)

    def add(self, work, **fields):
        return work.post("/api/tasks", {"title": "a part", **fields})

    def added(self, work, **fields):
        reply = self.add(work, **fields)
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def refused(self, work, field, **fields):
        reply = self.add(work, **fields)
        self.assertEqual(reply.status, 422, reply.body)
        self.assertEqual([error["field"] for error in reply.json["errors"]], [field])
        return reply.json["errors"][0]["message"]

    def task(self, name):
        return self.client.get("/api/tasks/" + name).json

    def wait(self, claim, worker="w"):
        task = claim["task"]["id"]
        return self.client.post(f"/api/tasks/{task}/wait", {"workerId": worker, "fence": claim["fence"]})

    def finish(self, task, worker="w2", result="ok"):
        claim = self.client.post(f"/api/tasks/{task}/claim", {"workerId": worker}).json
        reply = self.client.post(f"/api/tasks/{task}/complete", {"workerId": worker, "fence": claim["fence"], "result": result})
        self.assertEqual(reply.json["state"], "done", reply.body)

    def stint(self, *words):
        done = subprocess.run([os.path.join(os.path.dirname(stintd.STINTD), "stint"), "--home", self.server.home, *words], capture_output=True,
                              text=True, timeout=HANG_S, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check_store(self):
        self.client.close()
        self.server.stop()
        done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--check-store"], capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Waiting(SubtaskCase):
    def test_the_work_reads_what_it_has_created_and_changes_nothing_of_it(self):
        _, work = self.begin()
        before = self.added(work, id="c1")["version"]
        self.assertEqual(work.get("/api/tasks/c1").status, 200)
        for change in ({"metadata": {"mine": True}}, {"status": "done"}):
            reply = work.call("PATCH", "/api/tasks/c1", change)
            self.assertEqual((reply.status, reply.json["code"]), (404, "not_found"), reply.body)
        self.assertEqual((self.task("c1")["state"], self.task("c1")["version"]), ("ready", before))

    def test_a_task_waits_for_its_subtasks_and_goes_on_with_their_results(self):
        claim, work = self.begin()
        first, second = self.added(work, id="c1"), self.added(work, id="c2")
        self.assertEqual((first["parent"], first["queue"], first["state"]), ("p", "q", "ready"))
        self.assertEqual(second["id"], "c2")
        waits = self.wait(claim)
        self.assertEqual(waits.status, 200, waits.body)
        self.assertEqual(waits.json["state"], "waiting")
        self.assertEqual([child["state"] for child in waits.json["children"]], ["ready", "ready"])
        self.assertEqual(self.wait(claim).json["state"], "waiting")  # repeated: answered as the first time
        self.restart()
        self.assertEqual(self.task("p")["reason"], "children")
        self.finish("c1", result={"n": 1})
        self.assertEqual(self.task("p")["state"], "waiting")
        self.finish("c2", result={"n": 2})
        parent = self.task("p")
        self.assertEqual((parent["state"], parent["spent"], parent["crashes"]), ("ready", 0, 0))
        again = self.claim()[0]
        self.assertEqual(again["task"]["children"], [
            {"id": "c1", "state": "done", "result": {"n": 1}}, {"id": "c2", "state": "done", "result": {"n": 2}}])
        self.assertEqual(self.report("complete", again).json["state"], "done")
        kinds = [event["type"] for event in self.events() if event.get("task") == "p"]
        self.assertIn("task.suspended", kinds)
        self.check_store()

    def test_a_failed_subtask_is_told_and_fails_nobody(self):
        claim, work = self.begin()
        self.added(work, id="c1", maxAttempts=1)
        self.wait(claim)
        child = self.client.post("/api/tasks/c1/claim", {"workerId": "w2"}).json
        self.client.post("/api/tasks/c1/fail", {"workerId": "w2", "fence": child["fence"], "error": {
            "code": "EXECUTION_ERROR", "message": "no", "retry": False}})
        parent = self.task("p")
        self.assertEqual(parent["state"], "ready")
        self.assertEqual([one["state"] for one in parent["children"]], ["failed"])

    def test_without_open_subtasks_the_claim_is_kept(self):
        claim, work = self.begin()
        reply = self.wait(claim)
        self.assertEqual((reply.status, reply.json["state"], reply.json["children"]), (200, "claimed", []))
        self.added(work, id="c1")
        self.finish("c1")
        reply = self.wait(claim)
        self.assertEqual([child["state"] for child in reply.json["children"]], ["done"])
        self.assertEqual(self.report("complete", claim).json["state"], "done")

    def test_the_same_subtask_again_is_the_same(self):
        claim, work = self.begin()
        self.added(work, id="c1")
        again = self.add(work, id="c1")
        self.assertEqual((again.status, again.json["deduplicated"], again.json["id"]), (200, True, "c1"))
        self.client.post("/api/tasks/p/release", {"workerId": "w", "fence": claim["fence"]})
        claim, work = self.begin(task=None)
        while claim["task"]["id"] != "p":
            claim, work = self.begin(task=None)
        self.assertEqual(self.add(work, id="c1").status, 200)
        self.create(id="other")
        self.assertEqual(self.add(work, id="other").json["code"], "task_exists")
        self.assertEqual([child["id"] for child in self.task("p")["children"]], ["c1"])


class Rights(SubtaskCase):
    def test_a_subtask_has_no_more_than_its_parent(self):
        _, work = self.begin(priority=5, executor="agent", isolationLevel="sandbox", workingDir="/srv/a", credential="team")
        child = self.added(work, id="c1")
        inherited = {name: child[name] for name in ("priority", "executor", "isolationLevel", "credential", "parent")}
        self.assertEqual(inherited, {"priority": 5, "executor": "agent", "isolationLevel": "sandbox", "credential": "team",
                                     "parent": "p"})
        self.refused(work, "priority", priority=6)
        self.refused(work, "executor", executor="shell")
        self.refused(work, "isolationLevel", isolationLevel="process")
        self.refused(work, "workingDir", workingDir="/srv/ab")
        self.refused(work, "workingDir", workingDir="/srv/a/../b")
        self.refused(work, "credential", credential="mine")
        self.refused(work, "owner", owner="slot-1")
        self.refused(work, "workflow", workflow="autopilot")
        self.refused(work, "group", group="g")
        self.refused(work, "parent", parent="c1")
        self.refused(work, "blockedByGroups", blockedByGroups=["g"])
        self.create(id="foreign")
        self.assertIn("foreign", self.refused(work, "blockedBy", blockedBy=["foreign"]))
        self.refused(work, "blockedBy", blockedBy=["p"])
        self.assertEqual(self.added(work, id="c2", workingDir="/srv/a/b", isolationLevel="vm", blockedBy=["c1"])["state"], "waiting")

    def test_a_budget_comes_out_of_what_the_parent_has_left(self):
        claim, work = self.begin(budget={"usd": 2, "turns": 10})
        self.report("progress", claim, usage={"usd": 0.5, "turns": 2})
        self.assertIn("1.5", self.refused_first(work, "budget"))
        self.assertIn("1.5", self.refused_first(work, "budget", budget={"usd": 1.6, "turns": 1}))
        self.added(work, id="c1", budget={"usd": 1, "turns": 8})
        self.assertIn("no turns left", self.refused_first(work, "budget", budget={"usd": 0.5, "turns": 1}))
        self.finish("c1")
        self.added(work, id="c2", budget={"usd": 1.5, "turns": 8})  # it has used nothing

    def test_an_attempt_may_repeat_a_subtask_that_has_all_of_the_budget(self):
        claim, work = self.begin(budget={"usd": 2})
        self.added(work, id="c1", budget={"usd": 1.5})
        self.assertIn("0.5", self.refused(work, "budget", id="c2", budget={"usd": 1.5}))
        again = self.add(work, id="c1", budget={"usd": 1.5})
        self.assertEqual((again.status, again.json["id"]), (200, "c1"), again.body)
        self.added(work, id="c3", budget={"usd": 0.5})
        self.assertEqual(self.add(work, id="c3", budget={"usd": 0.5}).status, 200)

    def test_what_a_worker_listed_is_known_after_a_restart(self):
        self.create(id="p", executor="agent")
        claim = self.claim("w", executors=["agent"], subtasks={"agent": ["tests"]})[0]
        token = self.client.post("/api/tokens", {"kind": "claim", "task": "p", "fence": claim["fence"]}).json["token"]
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.server.client()
        work = self.connect(token=token)
        self.assertEqual(self.added(work, id="c1", executor="tests")["executor"], "tests")
        self.refused(work, "executor", executor="shell")

    def test_show_draws_the_tree(self):
        claim, work = self.begin()
        self.added(work, id="c1", title="first part")
        self.added(work, id="c2", title="second part")
        deeper, below = self.begin(None, "w2")
        self.added(below, id="c1-a", title="deeper")
        lines = self.stint("show", "p", "--no-timeline").splitlines()
        at = lines.index("Subtasks")
        self.assertEqual([line.split()[-len(words):] for line, words in zip(lines[at + 1:at + 4], (4 * "x", 3 * "x", 4 * "x"))],
                         [["claimed", "c1", "first", "part"], ["ready", "c1-a", "deeper"], ["ready", "c2", "second", "part"]])
        self.assertEqual([len(line) - len(line.lstrip()) for line in lines[at + 1:at + 4]], [2, 4, 2])
        tree = json.loads(self.stint("show", "p", "--json"))["subtasks"]
        self.assertEqual([(each["id"], each["parent"], each["level"]) for each in tree], [("c1", "p", 1), ("c1-a", "c1", 2), ("c2", "p", 1)])
        self.assertNotIn("Subtasks", self.stint("show", "c2"))

    def test_a_command_is_a_subtask(self):
        claim, _ = self.begin()
        env = {**os.environ, "STINT_HOME": self.server.home, "STINT_TASK_ID": "p", "STINT_FENCE": claim["fence"], "STINT_WORKER_ID": "w"}
        stint = os.path.join(os.path.dirname(stintd.STINTD), "stint")
        add = lambda *words: subprocess.run([stint, "task", "add", *words], env=env, capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(add("--id", "p1", "--", "echo", "hi there").stdout, "p1\n")
        self.assertEqual((self.task("p1")["title"], self.task("p1")["payload"]), ("echo hi there", {"argv": ["echo", "hi there"]}))
        self.assertEqual(add("named", "--id", "p2", "--", "true").returncode, 0)
        self.assertEqual((self.task("p2")["title"], self.task("p2")["payload"]), ("named", {"argv": ["true"]}))
        self.assertEqual(add("--id", "p3").returncode, 2)
        self.assertEqual(add("x", "--payload", "1", "--", "true").returncode, 2)

    def test_a_subtask_does_not_wait_for_itself_in_a_sequential_queue(self):
        reply = self.client.call("PATCH", "/api/queues/q", {"sequential": True})
        self.assertEqual(reply.status, 200, reply.body)
        claim, work = self.begin(concurrencyKey="acme")
        self.assertIn("wait for itself", self.refused(work, "concurrencyKey", concurrencyKey="acme"))
        self.added(work, id="c1", concurrencyKey="other")
        self.added(work, id="c2")
        deeper, below = self.begin(None, "w2")
        self.assertEqual(deeper["task"]["id"], "c1")
        self.refused(below, "concurrencyKey", concurrencyKey="acme")  # its grandparent has it

    def refused_first(self, work, field, **fields):
        reply = self.add(work, **fields)
        self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, field), reply.body)
        return reply.json["errors"][0]["message"]

    def test_nobody_else_names_a_parent(self):
        self.create(id="p")
        reply = self.client.post("/api/tasks", {"title": "x", "parent": "p"})
        self.assertEqual([error["field"] for error in reply.json["errors"]], ["parent"])

    def test_a_worker_may_list_executors_for_subtasks(self):
        self.create(id="p", executor="agent")
        claim = self.claim("w", executors=["agent"], subtasks={"agent": ["tests"]})[0]
        token = self.client.post("/api/tokens", {"kind": "claim", "task": "p", "fence": claim["fence"]}).json["token"]
        work = self.connect(token=token)
        self.assertEqual(self.added(work, id="c1", executor="tests")["executor"], "tests")
        self.refused(work, "executor", executor="shell")

    def test_levels_and_numbers_have_limits(self):
        self.server.stop()
        self.server.flags = (*self.server.flags, "--set", "task.childrenMax=2", "--set", "task.treeMax=4")
        self.server.start()
        self.client.close()
        _, work = self.begin()
        self.added(work, id="c1")
        self.added(work, id="c2")
        self.assertIn("2", self.refused(work, "parent", id="c3"))
        work1 = self.begin(task=None, worker="w1")[1]
        self.added(work1, id="c11")
        self.assertIn("4", self.refused(work1, "parent", id="c12"))

    def test_a_tree_has_four_levels(self):
        _, work = self.begin()
        for name in ("c1", "c2", "c3"):
            self.added(work, id=name)
            work = self.begin(task=None, worker="w-" + name)[1]
        self.assertIn("4", self.refused(work, "parent", id="c4"))


class Ends(SubtaskCase):
    def test_cancel_goes_down_the_tree(self):
        _, work = self.begin()
        self.added(work, id="c1")
        _, below = self.begin(task=None, worker="w1")
        self.added(below, id="c11")
        self.client.post("/api/tasks/p/cancel", {})
        self.assertEqual([self.state(task) for task in ("p", "c1", "c11")], ["cancelled"] * 3)
        self.assertIn(self.add(work, id="late").status, (401, 409))
        self.check_store()

    def test_done_leaves_subtasks_running(self):
        claim, work = self.begin()
        self.added(work, id="c1")
        self.report("complete", claim)
        self.assertEqual(self.state("c1"), "ready")

    def test_an_operators_retry_begins_without_them(self):
        claim, work = self.begin()
        self.added(work, id="c1")
        self.client.post("/api/tasks/p/cancel", {})
        self.client.post("/api/tasks/p/retry", {})
        self.assertEqual(self.task("p")["children"], [])
        claim, work = self.begin(task=None)
        again = self.add(work, id="c1")
        self.assertEqual((again.status, again.json["state"]), (200, "ready"))
        self.assertEqual([child["id"] for child in self.task("p")["children"]], ["c1"])
        self.assertEqual(self.wait(claim).json["state"], "waiting")

    def test_a_result_that_is_needed_is_not_removed(self):
        claim, work = self.begin()
        self.added(work, id="c1")
        self.finish("c1")
        self.create(id="before")
        self.create(id="after", blockedBy=["before"])
        self.finish("before", result="kept")
        for task in ("c1", "before"):
            reply = self.client.post("/api/workqueue/delete", {"itemId": task})
            self.assertEqual((reply.status, reply.json["error"]), (409, "in_use"))
            self.assertEqual(self.state(task), "done")
        after = self.client.post("/api/tasks/after/claim", {"workerId": "w9"}).json
        self.assertEqual(after["task"]["parents"], [{"id": "before", "state": "done", "result": "kept"}])


class Waits(SubtaskCase):
    """What would wait for itself, through trees and groups."""

    def test_a_subtask_that_its_parents_group_waits_for(self):
        _, work = self.begin(group="g")
        self.create(id="report", blockedByGroups=["g"])
        self.client.post("/api/groups/g/close", {})
        self.assertEqual(self.added(work, id="c1", group="g")["group"], "g")  # closed, and its parent is an open member
        reply = self.client.call("PATCH", "/api/tasks/c1", {"blockedBy": ["report"]})
        self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, "blockedBy"), reply.body)

    def test_a_change_that_closes_a_circle_through_a_tree(self):
        _, work = self.begin()
        self.added(work, id="a")
        self.added(work, id="b")
        _, below = self.begin(task=None, worker="w1")
        self.assertEqual(self.added(below, id="a1")["parent"], "a")
        self.assertEqual(self.client.call("PATCH", "/api/tasks/b", {"blockedBy": ["a"]}).json["state"], "waiting")
        reply = self.client.call("PATCH", "/api/tasks/a1", {"blockedBy": ["b"]})  # b waits for a, and a may wait for a1
        self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, "blockedBy"), reply.body)

    def test_a_draining_queue_takes_subtasks_of_its_own(self):
        _, work = self.begin()
        self.client.post("/api/queues/q/drain", {})
        self.assertEqual(self.client.post("/api/tasks", {"title": "x", "queue": "q"}).json["code"], "queue_draining")
        self.added(work, id="c1")

    def test_filter_and_reason(self):
        claim, work = self.begin()
        self.added(work, id="c1")
        self.create(id="other")
        self.assertEqual([task["id"] for task in self.client.get("/api/tasks?parent=p").json], ["c1"])
        self.assertEqual(self.client.get("/api/tasks?parent=nothing").json, [])
        self.wait(claim)
        self.assertEqual(self.client.get("/api/tasks/p/why").json["reason"], "children")


class Failure(SubtaskCase):
    def test_a_task_may_run_however_its_parents_ended(self):
        self.create(id="a", maxAttempts=1)
        self.create(id="b")
        after = self.client.post("/api/tasks", {"id": "after", "title": "x", "queue": "q", "blockedBy": ["a", "b"],
                                                "onParentFailure": "run"})
        self.assertEqual((after.status, after.json["onParentFailure"], after.json["state"]), (201, "run", "waiting"), after.body)
        self.client.post("/api/tasks/a/cancel", {})
        self.assertEqual(self.state("after"), "waiting")
        self.restart()
        self.finish("b")
        self.assertEqual(self.state("after"), "ready")
        self.assertEqual([one["state"] for one in self.task("after")["parents"]], ["cancelled", "done"])
        reply = self.client.call("PATCH", "/api/tasks/after", {"onParentFailure": "block"})
        self.assertEqual(reply.status, 422)
        self.check_store()


class Scripts(test_ask.Case):
    """Programs under a worker, which create subtasks and wait for them."""
    flags = test_ask.Case.flags + ("--set", "ask.parkMs=500")

    def test_a_script_waits_is_parked_and_goes_on_with_the_results(self):
        """One place: the subtask has it once the script has given it up."""
        self.worker({"x": {**test_ask.sh("echo attempt $STINT_ATTEMPT; stint task add part --id p1 --executor child >&2 && "
                                         "stint task wait"), "subtasks": ["child"]},
                     "child": test_ask.sh("echo '{\"n\": 1}'")})
        self.create(id="t", executor="x")
        task = self.is_in("t", "done", "failed")
        self.assertEqual(task["children"], [{"id": "p1", "state": "done", "result": {"n": 1}}])
        self.assertEqual((task["result"], task["attempt"], task["spent"], task["crashes"]),
                         ('attempt 2\np1 done {"n":1}', 2, 0, 0))
        self.assertEqual(self.events("t").count("task.suspended"), 1)

    def test_an_executor_that_is_not_listed_is_refused_twice(self):
        self.worker({"x": test_ask.sh("stint task add part --executor child; echo $?"), "child": test_ask.sh("echo out")})
        self.create(id="t", executor="x")
        task = self.is_in("t", "done", "failed")
        self.assertNotIn("children", task)
        self.assertIn("executor", self.client.get("/api/tasks/t/log").json["data"])
        # a server that let it through: another worker had announced it
        claim = self.client.post("/api/claims", {"workerId": "liar", "queues": ["other"], "subtasks": {"x": ["child"]}})
        self.assertEqual(claim.status, 200)
        self.create(id="p", executor="x", queue="other")
        held = self.client.post("/api/tasks/p/claim", {"workerId": "liar", "subtasks": {"x": ["child"]}}).json
        token = self.client.post("/api/tokens", {"kind": "claim", "task": "p", "fence": held["fence"]}).json["token"]
        work = self.server.client(token=token)
        self.addCleanup(work.close)
        child = work.post("/api/tasks", {"id": "c", "title": "x", "executor": "child", "queue": task["queue"]})
        self.assertEqual(child.status, 201, child.body)
        self.assertEqual(self.is_in("c", "blocked", "done")["error"]["code"], "NOT_ALLOWED")


class InPlace(test_ask.Case):
    flags = test_ask.Case.flags + ("--set", "ask.parkMs=0")

    def test_with_two_places_it_waits_in_its_process(self):
        self.worker({"x": test_ask.sh("stint task add part --id p1 --payload '{\"part\": true}' >&2 || exit 0; stint task wait | cut -c1-7")},
                    "--concurrency", "2")
        self.create(id="t", executor="x")
        self.assertEqual(self.is_in("t", "done", "failed")["attempt"], 1)


if __name__ == "__main__":
    proof.main()
