#!/usr/bin/env python3
"""Lists and answers say what is so: why a task waits, how far it is, who serves what, and all of it however long it is."""

import os
import pathlib
import re
import subprocess
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


class Whole(CliCase):
    """What goes into a pipe is all there is."""

    def test_ids_lines_and_objects_are_never_cut(self):
        for _ in range(2):
            self.client.post("/api/tasks/batch", [{"title": "x", "queue": "many", "labels": ["nightly"]} for _ in range(150)])
        for form in (["-o", "id"], ["-o", "jsonl"], []):
            ran = self.stint("ls", "--label", "nightly", *form)
            self.assertEqual((len(ran.lines), ran.err), (300, ""))
        self.assertEqual(len(self.stint("ls", "-Q", "many", "-o", "id", "--limit", "7").lines), 7)
        ran = self.stint("ls", "-Q", "many", "--json").json
        self.assertEqual((len(ran["tasks"]), ran["more"]), (100, True))

    def test_a_table_says_how_many_it_leaves_out(self):
        self.client.post("/api/tasks/batch", [{"title": "x", "queue": "much"} for _ in range(130)])
        ran = self.terminal("ls", "-Q", "much", "--color", "never", talk=True)
        self.assertIn("Waiting 130", ran.lines)
        self.assertEqual(ran.lines[-1], "30 more: stint ls --limit 0 lists all of them.")

    def test_a_list_takes_several_states_at_once(self):
        self.add("x", "--id", "of-pending", "-Q", "states", "--hold")
        self.add("x", "--id", "of-ready", "-Q", "states")
        found = self.client.get("/api/tasks?queue=states&state=ready,pending").json
        self.assertEqual({task["id"] for task in found}, {"of-pending", "of-ready"})
        self.assertEqual(self.client.get("/api/tasks?queue=states&state=ready,").status, 422)
        self.assertEqual(self.stint("ls", "-Q", "states", "-s", "parked", "-o", "id").lines, ["of-pending"])
        self.assertEqual(len(self.stint("ls", "-Q", "states", "-s", "parked,ready", "-o", "id").lines), 2)


class Groups(CliCase):
    """stint ls for people."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.add("Publish the release", "--id", "t-waits", "--hold")
        case.add("Cut the release branch", "--id", "t-asks", "-Q", "asks")
        case.stint("task", "ask", "Which branch?", **case.holding(case.claim("asks")))
        case.add("Rebuild the site", "--id", "t-runs", "-Q", "runs")
        case.stint("task", "progress", "third page", "--percent", "40", **case.holding(case.claim("runs")))
        case.add("Break", "--id", "t-fails", "-Q", "fails")
        case.stint("task", "fail", "exit 3", "--no-retry", **case.holding(case.claim("fails")))

    def test_what_needs_somebody_comes_first(self):
        ran = self.terminal("ls", "--color", "never", talk=True, LANG="C.UTF-8", columns=80, TERM="xterm")
        shape = [re.sub(r"  +", "|", line) for line in ran.lines]
        self.assertEqual([re.sub(r"until[^|]+…", "until…", re.sub(r"\d+ s$", "AGE", line)) for line in shape],
                         ["STATE|ID|TASK|NOW|AGE", "Needs you 1", "? asking|t-asks|Cut the release branch|AGE", "|Asks: Which branch?",
                          "Running 1", "● running|t-runs|Rebuild the site|40 %: third page|AGE", "Waiting 1",
                          "◌ parked|t-waits|Publish the release|Parked until…|AGE",
                          "1 needs you · 1 running · 1 waiting · 1 failed today"])

    def test_ended_tasks_are_a_group_of_their_own_and_say_why(self):
        ran = self.terminal("ls", "--all", "--color", "never", LANG="C.UTF-8", columns=120, TERM="xterm")
        self.assertIn("Finished 1", ran.lines)
        self.assertRegex(ran.lines[-1], r"^✗ failed  +t-fails  Break  +Not tried again after failure 1 of 3: exit 3  +✗  +\d+ s$")
        self.assertIn("TRY", ran.lines[0])
        self.assertNotIn("QUEUE", ran.lines[0])
        self.assertIn("QUEUE", self.terminal("ls", "--color", "never", columns=140).lines[0])

    def test_a_narrow_screen_has_two_lines_for_each(self):
        ran = self.terminal("ls", "--color", "never", LANG="C.UTF-8", columns=60, TERM="xterm")
        self.assertNotIn("NOW", ran.lines[0])
        at = next(index for index, line in enumerate(ran.lines) if "t-runs" in line)
        self.assertEqual(ran.lines[at + 1].strip(), "40 %: third page")
        self.assertEqual(ran.lines[at + 1].index("40 %"), ran.lines[at].index("Rebuild"))

    def test_signs_have_a_form_for_every_terminal(self):
        for env in ({"LANG": "C"}, {"TERM": "dumb", "LANG": "C.UTF-8"}):
            ran = self.terminal("ls", "--color", "never", talk=True, **env)
            self.assertTrue(any(line.startswith("* running") for line in ran.lines), ran.out)
            self.assertIn("1 needs you | 1 running", ran.out)

    def test_only_what_is_somebodys_move_is_amber(self):
        ran = self.terminal("ls", "--all", "--color", "always", LANG="C.UTF-8", TERM="xterm")
        coloured = {line.split("t-")[1].split()[0].split("\x1b")[0] for line in ran.lines if re.search(r"\x1b\[(1;)?3[13]m", line) and "t-" in line}
        self.assertEqual(coloured, {"asks", "fails"})

    def test_empty_lists_say_what_is_so(self):
        self.assertEqual(self.stint("ls", "-s", "failed", "-Q", "runs", "-o", "table").err, "No task matches. 1 is hidden by the filter.\n")
        server = stintd.Server()
        self.addCleanup(server.end)
        ran = self.terminal("ls", talk=True, STINT_HOME=server.home, NO_COLOR="1")
        self.assertEqual(ran.lines, ["No tasks yet.", "  try  stint run -- echo hello"])


class Served(CliCase):
    """Queues and workers."""

    def test_a_queue_counts_every_state_and_names_what_holds_it_back(self):
        self.client.post("/api/workers/register", {"workerId": "w-1", "executors": ["e"], "leaseMs": 60000})
        for task in ("a", "b", "c"):
            self.add("x", "--id", "s-" + task, "-Q", "served")
        claim, = self.client.post("/api/claims", {"workerId": "w-1", "queues": ["served"]}).json["claims"]
        self.add("x", "-Q", "served", "--hold")
        queue, = (queue for queue in self.client.get("/api/queues").json if queue["name"] == "served")
        self.assertEqual({state: count for state, count in queue["tasks"].items() if count}, {"claimed": 1, "ready": 2, "pending": 1})
        self.assertEqual((queue["workers"], queue["why"]["reason"]), (1, "ready"))
        self.add("x", "-Q", "lonely")
        lonely, = (line for line in self.stint("queue", "ls").lines if line.startswith("lonely\t"))
        self.assertEqual(lonely.split("\t")[-1], "No worker serves queue lonely")
        self.stint("queue", "pause", "served")
        ran = self.terminal("queue", "ls", "--color", "never", LANG="C.UTF-8", TERM="xterm")
        self.assertEqual(ran.lines[0].split("  ")[0], "QUEUE")
        self.assertTrue(any(re.match(r"served +1 +3 +0 +\d+ s  Paused: nothing in it is handed out$", line) for line in ran.lines), ran.out)
        worker, = self.client.get("/api/workers").json
        self.assertEqual((worker["queues"], worker["tasks"], worker["executors"]), (["served"], [claim["task"]["id"]], ["e"]))
        ran = self.terminal("worker", "ls", "--color", "never", LANG="C.UTF-8", TERM="xterm")
        self.assertRegex(ran.lines[1], r"^w-1 +[━─]{8} \d:\d\d  +%s  +served  +e$" % claim["task"]["id"])
        self.client.call("DELETE", "/api/workers/w-1", {})

    def test_a_worker_that_asks_any_queue_says_so(self):
        self.client.post("/api/workers/register", {"workerId": "w-any", "leaseMs": 60000})
        self.client.post("/api/claims", {"workerId": "w-any"})
        worker, = (worker for worker in self.client.get("/api/workers?state=active").json if worker["workerId"] == "w-any")
        self.assertEqual((worker.get("anyQueue"), worker.get("queues")), (True, None))
        self.client.call("DELETE", "/api/workers/w-any", {})


class Words(CliCase):
    """What happened, and what needs somebody, for people."""

    def test_events_are_sentences_with_the_title_of_their_task(self):
        task = self.add("say hello", "-Q", "words")
        claim = self.claim("words")
        self.stint("task", "progress", "half way", "--percent", "50", **self.holding(claim))
        self.stint("task", "fail", "oh no", **self.holding(claim))
        self.stint("cancel", task, "--reason", "enough")
        ran = self.terminal("events", "--task", task, LANG="C.UTF-8", NO_COLOR="1", columns=100)
        self.assertEqual([re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in ran.lines],
                         [f"{task} is created by admin  · say hello", f"{task} attempt 1 begins on w  · say hello",
                          f"{task} goes on, 50 %: half way  · say hello", f"{task} has failed: oh no (EXECUTION_ERROR)  · say hello",
                          f"{task} is cancelled by admin: enough  · say hello"])
        self.assertTrue(all(line.startswith("{") for line in self.stint("events", "--task", task).lines), "elsewhere they are objects")
        self.stint("queue", "pause", "words")
        self.assertIn("queue words is paused by admin\n", self.terminal("events", "--limit", "0", NO_COLOR="1").out)

    def test_every_type_of_event_of_a_task_has_its_words(self):
        source = (pathlib.Path(__file__).parent / "../../src/core/event.h").read_text()
        types = re.findall(r'"((?:task|claim|gate|queue|execution)\.\w+)"', source)
        words = (pathlib.Path(__file__).parent / "../../src/cli/verb/event_view.c").read_text()
        self.assertEqual([name for name in types if f'{{"{name}"' not in words and name != "task.noted"], [])

    def test_the_inbox_has_what_needs_somebody_and_a_command(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        self.assertEqual(self.terminal("inbox", STINT_HOME=server.home).out, "Nothing needs you.\n")
        client = server.client()
        self.addCleanup(client.close)
        for task in ("asks", "stuck"):
            client.post("/api/tasks", {"id": task, "title": "title of " + task, "queue": task})
        holder = {"workerId": "w", "fence": client.post("/api/claims", {"workerId": "w", "queues": ["asks"]}).json["claims"][0]["fence"]}
        client.post("/api/tasks/asks/ask", {**holder, "question": "which?", "options": ["a b", "c"]})
        holder["fence"] = client.post("/api/claims", {"workerId": "w", "queues": ["stuck"]}).json["claims"][0]["fence"]
        client.post("/api/tasks/stuck/block", {**holder, "error": {"code": "STOPPED", "message": "no access"}})
        ran = self.terminal("inbox", STINT_HOME=server.home, NO_COLOR="1", LANG="C.UTF-8", TERM="xterm", talk=True)
        shape = [re.sub(r"\d+ s$", "AGE", re.sub(r"  +", "|", line)) for line in ran.lines]
        self.assertEqual(shape, ["2 need you.", "?|asks|Asks: which? (a b, c)|AGE", "|title of asks", "⊖|stuck|no access|AGE", "|title of stuck",
                                 "|try|stint answer asks 'a b'"])
        self.assertEqual(self.stint("inbox", "-o", "id", STINT_HOME=server.home).lines, ["asks"])

    def test_a_timeline_has_a_sentence_for_each_event(self):
        task = self.add("x", "-Q", "timed")
        self.claim("timed")
        shown = self.stint("show", task).out
        self.assertRegex(shown, r"(?m)^\d\d:\d\d:\d\d  Created by admin\n\d\d:\d\d:\d\d  Attempt 1 on w$")

    def test_a_long_sentence_is_broken_between_words_and_hangs(self):
        task = self.add("x", "-Q", "long")
        self.stint("task", "block", "word " * 40 + "/a/path/that/stays/whole", **self.holding(self.claim("long")))
        ran = self.terminal("why", task, columns=60, NO_COLOR="1")
        self.assertGreater(len(ran.lines), 3)
        for line in ran.lines[1:-1]:
            self.assertRegex(line, r"^  \S")
            self.assertLessEqual(len(line), 60)
        self.assertEqual(len(self.stint("why", task).lines), 2, "a pipe gets one line, and the command")


class Refused(CliCase):
    def test_why_names_the_worker_whose_claims_are_all_refused(self):
        token = self.stint("token", "create", "--kind", "worker", "--name", "ciw", "--queues", "ciw", "--json").json["token"]["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        task = self.add("x", "-Q", "ciw")
        client.post("/api/workers/register", {"workerId": "ci-1", "leaseMs": 60000})
        reply = client.post("/api/claims", {"workerId": "ci-1", "queues": ["ciw", "other"]})
        self.assertEqual((reply.status, reply.json["code"], reply.json["detail"]),
                         (403, "forbidden", "The credential is for other queues than these."))
        why = self.client.get(f"/api/tasks/{task}/why").json
        self.assertEqual((why["reason"], why["text"]), ("queue_unserved", "No worker serves queue ciw; the claims of ci-1 are refused, because "
                                                        "its token is not for all queues that it asks for"))
        claim, = client.post("/api/claims", {"workerId": "ci-1", "queues": ["ciw"]}).json["claims"]
        self.assertEqual(claim["task"]["id"], task)
        self.assertEqual(self.client.get(f"/api/tasks/{self.add('y', '-Q', 'ciw')}/why").json["reason"], "ready")

    def test_what_is_finished_along_with_a_refused_claim_is_not_done(self):
        token = self.stint("token", "create", "--kind", "worker", "--name", "fin", "--queues", "fin", "--json").json["token"]["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        task = self.add("x", "-Q", "fin")
        claim, = client.post("/api/claims", {"workerId": "fin-1", "queues": ["fin"]}).json["claims"]
        reply = client.post("/api/claims", {"workerId": "fin-1", "queues": ["other"],
                                            "finish": [{"id": task, "fence": claim["fence"], "outcome": "complete"}]})
        self.assertEqual((reply.status, self.state(task)), (403, "claimed"))


class Ghosts(CliCase):
    """A worker that is known to be dead is not active."""

    def setUp(self):
        self.process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(self.end_process)
        self.here = {"host": "here", "bootId": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
        self.old = {"pid": self.process.pid, "startTime": self.start_time(self.process.pid)}
        self.name = self.id().rsplit(".", 1)[-1]
        self.register(self.name + "-1", **self.old)

    def end_process(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    @staticmethod
    def start_time(pid):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])

    def register(self, worker, **more):
        reply = self.client.post("/api/workers/register", {"workerId": worker, "leaseMs": 60000, **self.here, **more})
        self.assertEqual(reply.status, 200, reply.body)

    def successor(self, **differs):
        replaces = {"workerId": self.name + "-1", **self.old, **differs}
        self.register(self.name + "-2", pid=os.getpid(), startTime=self.start_time(os.getpid()), replaces=replaces)
        worker = self.client.get(f"/api/workers/{self.name}-1").json
        self.assertEqual(self.client.get(f"/api/workers/{self.name}-2").json["state"], "active", "nobody stands in its way")
        return worker["state"], worker.get("ended")

    def test_its_successor_on_the_host_ends_it_and_what_it_held_is_ready_again(self):
        task = self.add("x", "-Q", "ghost")
        self.claim("ghost", self.name + "-1")
        self.end_process()
        self.assertEqual(self.successor(), ("inactive", "replaced"))
        self.assertEqual(self.state(task), "ready")
        self.assertNotIn(self.name + "-1", self.stint("worker", "ls", "-o", "id").lines)

    def test_a_process_that_lives_stays(self):
        self.assertEqual(self.successor(), ("active", None))

    def test_another_process_proves_nothing(self):
        self.end_process()
        self.assertEqual(self.successor(startTime=self.old["startTime"] + 1), ("active", None))

    def test_a_worker_of_another_principal_stays(self):
        self.end_process()
        token = self.stint("token", "create", "--kind", "worker", "--name", self.name, "--json").json["token"]["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        reply = client.post("/api/workers/register", {"workerId": self.name + "-3", "leaseMs": 60000, **self.here, "pid": 1, "startTime": 1,
                                                      "replaces": {"workerId": self.name + "-1", **self.old}})
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(self.client.get(f"/api/workers/{self.name}-1").json["state"], "active")


if __name__ == "__main__":
    unittest.main()
