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
        self.assertRegex(ran.lines[-1], r"^✗ failed  +t-fails  Break  +1 of 3 failures spent\. Last: exit 3  +✗  +\d+ s$")
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


if __name__ == "__main__":
    unittest.main()
