"""Schedules: a planned time makes at most one task, whatever happens to the server and to its clocks; and the verbs for people."""
import datetime
import json
import os
import subprocess
import time
import zoneinfo

from hang import HANG_S
import proof
import stintd
from test_cli import STINT

MINUTE_MS = 60 * 1000
HOUR_MS, DAY_MS = 60 * MINUTE_MS, 24 * 60 * MINUTE_MS


class ScheduleCase(proof.Proved, proof.ProofCase):
    flags = proof.settings(sweep_intervalMs=50, restart_graceMs=1000)
    limits = ("restart_grace_ms=1000",)

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()

    def schedule(self, name="s", **fields):
        fields.setdefault("task", {"title": "again", "queue": "q"})
        reply = self.client.post("/api/schedules", {"id": name, **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def look(self, name="s"):
        return self.client.get("/api/schedules/" + name).json

    def turn(self):
        """A turn sees what the clocks say."""
        self.claim("somebody", queues=["nothing"])

    def later(self, ms):
        self.clocks.advance(ms)
        self.turn()

    def fired(self):
        return [event["data"]["at"] for event in self.events() if event["type"] == "schedule.fired"]

    def expect_each_once(self):
        fired = self.fired()
        self.assertEqual(sorted(set(fired)), sorted(fired), "a planned time made two tasks")
        created = [event for event in self.events() if event["type"] == "task.created"]
        self.assertEqual(len(created), len(fired))


class Occurrences(ScheduleCase):
    def test_a_kill_around_an_occurrence_makes_one_task(self):
        self.schedule(every="1m", overlap="allow", catchUp="all")
        for _ in range(6):
            self.clocks.advance(MINUTE_MS - 40)  # just before; the server meets the time by itself, or dies before it
            self.server.kill()
            self.client.close()
            self.clocks.advance(40)
            self.server.start()
            self.turn()
            self.server.kill()
            self.client.close()
            self.server.start()
            self.turn()
        self.expect_each_once()
        self.assertEqual(self.look()["made"], 6)
        self.assertEqual(self.look()["skipped"], 0)

    def test_the_server_meets_a_planned_time_by_itself(self):
        self.schedule(every=1000, overlap="allow")
        self.wait_until(lambda: self.look()["made"] >= 2)
        self.expect_each_once()
        task, = [each for each in self.client.get("/api/tasks").json if each["schedule"]["at"] == min(self.fired())]
        self.assertEqual(task["schedule"]["id"], "s")
        self.create()
        self.assertEqual({each["title"] for each in self.client.get("/api/tasks?schedule=s").json}, {"again"})
        self.assertEqual(self.client.get("/api/tasks?schedule=other").json, [])

    def test_a_night_without_a_server_is_caught_up_once_and_told_in_one_event(self):
        self.schedule(cron="0 * * * *", overlap="allow")
        self.server.kill()
        self.client.close()
        self.clocks.advance(8 * HOUR_MS)
        self.server.start()
        self.turn()
        self.assertEqual(len(self.fired()), 1)
        skipped = [event["data"] for event in self.events() if event["type"] == "schedule.skipped"]
        self.assertEqual([each["reason"] for each in skipped], ["missed"])
        self.assertEqual(skipped[0]["count"], 7)

    def test_a_clock_that_jumps_makes_nothing_twice(self):
        self.schedule(every="1m", overlap="allow", catchUp="all")
        for wall_ms in (5 * MINUTE_MS, MINUTE_MS, 3 * MINUTE_MS, 0, 7 * MINUTE_MS):
            self.clocks.set(wall_ms=wall_ms)
            self.turn()
        self.expect_each_once()
        self.assertEqual(self.look()["made"], 7)

    def test_a_clock_far_behind_is_told_and_a_change_starts_it_from_now(self):
        self.schedule(every="1m")
        self.clocks.set(wall_ms=DAY_MS)
        self.turn()
        self.clocks.set(wall_ms=0)
        self.assertIn("clock was set back", self.look()["problem"])
        reply = self.client.call("PATCH", "/api/schedules/s", {"every": "2m"})
        self.assertEqual(reply.status, 200, reply.body)
        self.assertNotIn("problem", reply.json)
        self.assertEqual(reply.json["every"], 2 * MINUTE_MS)

    def test_a_day_of_hours_with_a_kill_in_each(self):
        self.schedule("hourly", cron="0 * * * *", tz="Europe/Berlin", overlap="queue")
        self.schedule("nightly", cron="30 2 * * *", tz="Europe/Berlin", overlap="skip")
        for _ in range(24):
            self.server.kill()
            self.client.close()
            self.clocks.advance(HOUR_MS)
            self.server.start()
            self.turn()
            for claim in self.claim(max=1):
                self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.look("hourly")["made"], 24)
        self.assertEqual(self.look("nightly")["made"], 1)
        self.assertEqual(self.look("hourly")["skipped"], 0)


class Restored(ScheduleCase):
    def test_a_restored_backup_makes_nothing_of_the_time_before_the_restore(self):
        self.schedule(every="1h", overlap="allow", catchUp="all")
        self.later(2 * HOUR_MS)
        self.assertEqual(self.look()["made"], 2)
        backup = self.client.post("/api/backup", {"file": "noon.db"})
        self.assertEqual(backup.status, 201, backup.body)
        for _ in range(5):
            self.later(HOUR_MS)
        self.assertEqual(self.look()["made"], 7)
        self.client.close()
        self.server.stop()
        done = subprocess.run([*self.clocks.command(), stintd.STINTD, "--home", self.server.home, "--restore",
                               os.path.join(self.server.home, "backups", "noon.db")], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.clocks.advance(10 * MINUTE_MS)
        self.server.start()
        self.turn()
        self.assertEqual(self.look()["made"], 2)  # as the backup has it: the five hours between are nobody's
        self.later(HOUR_MS)
        self.assertEqual(self.look()["made"], 3)


class ClockChanges(ScheduleCase):
    """Both changes of the clock in Berlin, a minute for each turn: what the server makes is what a calendar says."""
    ZONE = zoneinfo.ZoneInfo("Europe/Berlin")
    flags = proof.settings(sweep_intervalMs=50, restart_graceMs=1000, retention_eventMs=3650 * DAY_MS, retention_finalMs=3650 * DAY_MS)

    def begin(self, *date):
        """At midnight of that day."""
        midnight = datetime.datetime(*date, tzinfo=self.ZONE).timestamp() * 1000
        self.clocks.set(wall_ms=int(midnight - time.time() * 1000))
        self.turn()

    def day(self, hours):
        for name, line in (("fixed", "30 2 * * *"), ("star", "*/30 * * * *"), ("step", "15 */2 * * *"), ("noon", "0 12 * * *")):
            self.schedule(name, cron=line, tz="Europe/Berlin", overlap="allow")
        for _ in range(hours * 4):
            self.later(15 * MINUTE_MS)
        made = {}
        for event in self.events():
            if event["type"] == "schedule.fired":
                local = datetime.datetime.fromtimestamp(event["data"]["at"] / 1000, self.ZONE)
                made.setdefault(event["data"]["schedule"], []).append(f"{local:%H:%M}")
        return made

    def test_the_night_that_lacks_an_hour(self):
        self.begin(2027, 3, 28)
        made = self.day(22)
        self.assertEqual(made["fixed"], ["03:00"])  # 02:30 is in the gap: its end
        self.assertEqual(made["noon"], ["12:00"])
        self.assertEqual(len(made["star"]), 44)  # every half an hour of real time
        self.assertNotIn("02:15", made["step"])
        self.assertIn("04:15", made["step"])

    def test_the_night_that_has_an_hour_twice(self):
        self.begin(2027, 10, 31)
        made = self.day(22)
        self.assertEqual(made["fixed"], ["02:30"])
        self.assertEqual(made["noon"], ["12:00"])
        self.assertEqual(len(made["star"]), 44)
        self.assertEqual(made["step"].count("02:15"), 2)


class Overlaps(ScheduleCase):
    def test_the_next_one_waits_until_the_one_before_has_ended(self):
        self.schedule(every="1m", overlap="queue")
        self.later(MINUTE_MS)
        first, = self.claim(leaseMs=HOUR_MS)
        self.later(MINUTE_MS)
        waiting = self.client.get("/api/tasks?state=waiting").json[0]
        why = self.client.get("/api/tasks/%s/why" % waiting["id"]).json
        self.assertEqual(why["reason"], "schedule")
        self.assertIn(first["task"]["id"], why["text"])
        self.restart()
        self.assertEqual(self.report("fail", first, error={"code": "REFUSED", "retry": False}).status, 200)
        self.assertEqual(self.state(waiting["id"]), "ready")

    def test_three_skips_are_told(self):
        self.schedule(every="1m", overlap="skip")
        for _ in range(5):
            self.later(MINUTE_MS)
        failing = [event["data"] for event in self.events() if event["type"] == "schedule.failing"]
        self.assertEqual(failing, [{"schedule": "s", "inARow": 3}])
        self.assertTrue(self.look()["failing"])

    def test_a_skipped_time_can_be_made_by_hand_once(self):
        self.schedule(every="1m", overlap="skip")
        self.later(MINUTE_MS)
        self.later(MINUTE_MS)
        skipped = self.look()["history"][-1]["at"]
        self.assertEqual(self.client.post("/api/schedules/s/run", {"at": skipped}).status, 201)
        self.assertEqual(self.client.post("/api/schedules/s/run", {"at": skipped}).status, 422)
        self.restart()
        self.assertEqual(self.client.post("/api/schedules/s/run", {"at": skipped}).status, 422)
        self.expect_each_once()


class BadInput(ScheduleCase):
    def refused(self, field, **fields):
        reply = self.client.post("/api/schedules", {"id": "x", "task": {"title": "x"}, **fields})
        self.assertEqual(reply.status, 422, reply.body)
        errors = {error["field"]: error["message"] for error in reply.json["errors"]}
        self.assertIn(field, errors)
        return errors[field]

    def test_what_cannot_be_right_is_refused_with_the_reason(self):
        self.assertIn("never comes", self.refused("cron", cron="0 0 30 2 *"))
        self.assertIn("from 0 to 23", self.refused("cron", cron="0 24 * * *"))
        self.assertIn("Europe/Berlin", self.refused("tz", cron="@daily", tz="Mars/Olympus"))
        self.assertIn("30s", self.refused("every", every="soon"))
        self.assertIn("has passed", self.refused("at", at=1000))
        self.assertIn("absolute", self.refused("task.finishBy", every="1m", task={"title": "x", "finishBy": 1794743531286}))
        self.assertIn("leave it out", self.refused("task.id", every="1m", task={"title": "x", "id": "same"}))
        self.assertIn("one of", self.refused("", task={"title": "x"}))
        self.assertIn("several", self.refused("", every="1m", cron="@daily"))
        self.refused("jitterMs", every="1m", jitterMs=-1)
        self.refused("overlap", every="1m", overlap="sometimes")

    def test_a_foreign_job_with_a_wrong_value_is_refused_even_where_its_kind_does_not_use_it(self):
        job = {"name": "sweep", "schedule": {"kind": "every", "everyMs": 60000}, "payload": {"text": "sweep"}}
        for field, value in (("everyMs", "soon"), ("expr", 5), ("tz", ["UTC"])):
            reply = self.client.post("/api/schedules", {**job, "schedule": {**job["schedule"], field: value}})
            self.assertEqual(reply.status, 422, reply.body)
            self.assertEqual([error["field"] for error in reply.json["errors"]], ["schedule." + field])
        self.assertEqual(self.client.post("/api/schedules", job).status, 201)

    def test_a_change_may_ask_for_the_version_that_was_read(self):
        made = self.client.post("/api/schedules", {"id": "s", "every": "1h", "task": {"title": "x"}})
        first = made.headers["ETag"]
        self.assertEqual(self.client.get("/api/schedules/s").headers["ETag"], first)
        changed = self.client.call("PATCH", "/api/schedules/s", {"overlap": "queue"}, {"If-Match": first})
        self.assertEqual(changed.status, 200, changed.body)
        self.assertNotEqual(changed.headers["ETag"], first)
        late = self.client.call("PATCH", "/api/schedules/s", {"overlap": "skip"}, {"If-Match": first})
        self.assertEqual((late.status, late.json["code"]), (412, "version_mismatch"))
        self.assertEqual(self.client.call("DELETE", "/api/schedules/s", {}, {"If-Match": first}).status, 412)
        self.assertEqual(self.client.get("/api/schedules/s").json["overlap"], "queue")
        self.assertEqual(self.client.call("PATCH", "/api/schedules/s", {"overlap": "allow"}, {"If-Match": "*"}).status, 200)
        last = self.client.get("/api/schedules/s").headers["ETag"]
        self.assertEqual(self.client.call("DELETE", "/api/schedules/s", {}, {"If-Match": last}).status, 200)

    def test_schedules_are_for_operators(self):
        token = self.client.post("/api/tokens", {"kind": "producer", "name": "p"}).json["token"]
        producer = self.connect(token=token)
        reply = producer.post("/api/schedules", {"id": "x", "every": "1m", "task": {"title": "x"}})
        self.assertEqual(reply.status, 403)


class People(ScheduleCase):
    def stint(self, *words, status=0):
        run = subprocess.run([STINT, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                             env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout

    def test_the_verbs_of_a_schedule(self):
        self.assertEqual(self.stint("schedule", "add", "nightly", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--overlap",
                                    "queue", "--finish-by", "1h", "--no-cwd", "--", "make", "test"), "nightly\n")
        shown = json.loads(self.stint("schedule", "show", "nightly", "--json"))["schedule"]
        self.assertEqual(shown["task"]["finishBy"], HOUR_MS)
        self.assertEqual(shown["task"]["payload"], {"argv": ["make", "test"]})
        self.assertEqual(shown["when"], "every day 02:30")
        self.assertIn("nightly\tevery day 02:30\tEurope/Berlin", self.stint("schedule", "ls"))
        self.assertEqual(self.stint("schedule", "ls", "-o", "id"), "nightly\n")
        self.assertEqual(self.stint("schedule", "next", "nightly", "-n", "2").count("02:30"), 2)
        task = self.stint("schedule", "run", "nightly").strip()
        self.assertEqual(self.client.get("/api/tasks/" + task).json["schedule"]["id"], "nightly")
        self.stint("schedule", "pause", "nightly")
        self.assertTrue(self.look("nightly")["paused"])
        self.stint("schedule", "resume", "nightly")
        self.stint("schedule", "rm", "nightly")
        self.assertIn("nightly", self.stint("events"))
        self.stint("schedule", "show", "nightly", status=3)
        self.stint("schedule", "add", "x", "--", "true", status=2)


if __name__ == "__main__":
    proof.main()
