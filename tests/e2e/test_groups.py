"""Groups: thousands of tasks side by side and one after all of them, while the server is killed; and the verbs for people."""
import json
import subprocess

import proof
import stintd
from hang import HANG_S
from test_cli import STINT

MEMBERS = 2000
BATCH = 500
KILLS = 4


class GroupCase(proof.ProofCase):
    def add(self, task, **fields):
        return self.client.post("/api/tasks", {"id": task, "title": task, "queue": "q", **fields})

    def group(self, name="g"):
        return self.client.get("/api/groups/" + name).json

    def kill(self):
        self.server.kill()
        self.client.close()
        self.server.start()


class FanOut(GroupCase):
    def add_members(self):
        for first in range(0, MEMBERS, BATCH):
            tasks = [{"id": f"m{i}", "title": "part", "queue": "q", "group": "g"} for i in range(first, first + BATCH)]
            reply = self.client.post("/api/tasks/batch", {"tasks": tasks})
            self.assertTrue(all(one["ok"] for one in reply.json["results"]), reply.body[:300])

    def finish(self, most):
        """Complete at most so many tasks; how many there were."""
        done = 0
        while done < most:
            claims = self.claim(max=100)
            if not claims:
                break
            for claim in claims:
                self.assertEqual(self.report("complete", claim).status, 200)
            done += len(claims)
        return done

    def test_one_task_follows_thousands_across_kills(self):
        self.add_members()
        self.assertEqual(self.add("last", blockedByGroups=["g"]).json["state"], "waiting")
        self.kill()
        self.assertEqual(self.group()["counts"]["ready"], MEMBERS)
        self.assertTrue(self.client.post("/api/groups/g/close", {}).json["closed"])
        for _ in range(KILLS):
            self.finish(MEMBERS // (KILLS + 1))
            self.kill()
            group = self.group()
            self.assertEqual(group["tasks"], MEMBERS)
            self.assertEqual(sum(group["counts"].values()), MEMBERS)
            self.assertEqual(self.state("last"), "waiting")
        self.finish(self.group()["open"])
        self.assertEqual(self.group()["counts"]["done"], MEMBERS)
        self.assertTrue(self.group()["ended"])
        self.assertEqual(self.state("last"), "ready")
        kinds = [event["type"] for event in self.events() if event["type"].startswith("group.")]
        self.assertEqual(kinds, ["group.closed", "group.ended"])
        self.check_store()

    def check_store(self):
        self.client.close()
        self.server.stop()
        done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--check-store"], capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Rules(GroupCase):
    def test_a_closed_group_keeps_out_also_in_a_batch(self):
        self.add("a", group="g")
        self.client.post("/api/groups/g/close", {})
        reply = self.add("b", group="g")
        self.assertEqual((reply.status, reply.json["code"]), (409, "group_closed"))
        batch = self.client.post("/api/tasks/batch", {"tasks": [{"title": "b", "group": "g"}, {"title": "c"}]}).json["results"]
        self.assertEqual([(one["status"], one.get("code")) for one in batch], [(409, "group_closed"), (201, None)])

    def test_what_waits_for_itself_is_named(self):
        self.add("a", group="one", blockedByGroups=["two"])
        reply = self.add("b", group="two", blockedByGroups=["one"])
        self.assertEqual(reply.status, 422)
        self.assertEqual(reply.json["errors"][0]["field"], "blockedByGroups")
        self.assertIn("one", reply.json["errors"][0]["message"])
        reply = self.add("c", blockedByGroups=[f"g{i}" for i in range(11)])
        self.assertEqual(reply.status, 422)

    def test_a_patch_keeps_the_groups_that_a_task_waits_for(self):
        self.add("a", group="g")
        self.add("b", blockedByGroups=["g"])
        reply = self.client.call("PATCH", "/api/tasks/b", {"blockedBy": []})
        self.assertEqual((reply.status, reply.json["state"]), (200, "waiting"))
        reply = self.client.call("PATCH", "/api/tasks/a", {"blockedBy": ["b"]})
        self.assertEqual(reply.status, 422, reply.body)
        reply = self.client.call("PATCH", "/api/tasks/a", {"group": "h"})
        self.assertEqual(reply.status, 422, reply.body)

    def test_a_group_that_is_in_use_stays(self):
        self.add("a", group="g")
        self.assertEqual(self.client.call("DELETE", "/api/groups/g", {}).json["code"], "in_use")
        self.client.post("/api/tasks/a/cancel", {})
        self.client.post("/api/groups/g/close", {})
        self.assertEqual(self.add("b", blockedByGroups=["g"]).json["state"], "blocked")
        self.assertEqual(self.client.call("DELETE", "/api/groups/g", {}).json["code"], "in_use")
        self.client.post("/api/tasks/b/cancel", {})
        self.assertEqual(self.client.call("DELETE", "/api/groups/g", {}).status, 200)
        self.assertEqual(self.client.get("/api/groups/g").status, 404)
        self.assertEqual(self.client.get("/api/groups").json, [])

    def test_the_list_has_the_members_open_and_final(self):
        for task in "ab":
            self.add(task, group="g")
        self.add("c", group="h")
        self.add("d")
        self.client.post("/api/tasks/a/cancel", {})
        self.assertEqual([task["id"] for task in self.client.get("/api/tasks?group=g").json], ["b", "a"])
        self.assertEqual(self.client.get("/api/tasks?group=nobody").json, [])

    def test_why_names_the_group(self):
        self.add("a", group="g")
        self.add("b", blockedByGroups=["g"])
        why = self.client.get("/api/tasks/b/why").json
        self.assertIn("group g, of which 1 of 1 members have not ended; it is not closed", why["text"])
        self.assertEqual(why["try"], "stint group close g")


class Verbs(GroupCase):
    def stint(self, *words, status=0):
        done = subprocess.run([STINT, *words], capture_output=True, text=True, timeout=HANG_S,
                              env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_a_group_by_hand(self):
        self.stint("add", "one", "--id", "a", "--queue", "q", "--group", "g")
        self.stint("add", "last", "--id", "b", "--after-group", "g")
        self.assertIn("g is open, 0 of 1 ended", self.stint("group", "show", "g"))
        self.stint("group", "close", "g")
        self.stint("wait", "--group", "g", "--timeout", "10ms", status=8)
        self.report("complete", self.claim()[0])
        self.assertIn("g ended: 1 done", self.stint("wait", "--group", "g"))
        self.assertEqual(self.state("b"), "ready")
        self.assertEqual([one["name"] for one in json.loads(self.stint("group", "ls", "--json"))["groups"]], ["g"])
        self.stint("group", "rm", "g")
        self.stint("group", "show", "g", status=3)

    def test_a_group_that_is_closed_while_one_waits_is_waited_for(self):
        self.add("a", group="g")
        process = subprocess.Popen([STINT, "wait", "--group", "g"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=stintd.environment(STINT_HOME=self.server.home))
        self.wait_until(lambda: self.metric("stint_event_streams") == 1)
        self.client.post("/api/groups/g/close", {})
        self.report("complete", self.claim()[0])
        out, err = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("g ended: 1 done", out)

    def test_a_failed_member_is_an_unsuccessful_wait(self):
        self.add("a", group="g")
        self.client.post("/api/tasks/a/cancel", {})
        self.stint("group", "close", "g")
        self.assertIn("g ended: 1 cancelled", self.stint("wait", "--group", "g", status=9))


if __name__ == "__main__":
    proof.main()
