"""A store that has lost something is met with a sentence: the file, the place, and what to do. Never with silence, and never
with an empty store."""
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import time
import unittest

import stintd
from hang import HANG_S

PAGE = 2048
FRAME = 24 + PAGE


class DamageCase(stintd.Case):
    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.server.home, "stint.db")
        self.mark = os.path.join(self.server.home, "store.mark")
        self.log = self.store + "-wal"

    def run_server(self, *flags):
        """A start that is to fail: one that serves is told to stop, and ends with 0."""
        url = os.path.join(self.server.home, "url")
        was_there = os.path.exists(url)
        process = subprocess.Popen([*self.server.command(), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=stintd.environment())
        while not was_there and process.poll() is None and not os.path.exists(url):
            time.sleep(0.01)
        if not was_there and os.path.exists(url) and process.poll() is None:
            process.terminate()
        out, err = process.communicate(timeout=HANG_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def assert_refused(self, *words):
        done = self.run_server()
        self.assertEqual(done.returncode, 74, done.stderr)
        for word in (*words, "--restore FILE", "--accept-loss", "--new-store"):
            self.assertIn(word, done.stderr)

    def start_with(self, *flags):
        self.server.flags = flags
        self.server.start()
        self.server.flags = ()
        self.client = self.server.client()

    def killed(self):
        self.client.close()
        self.server.kill()
        os.unlink(os.path.join(self.server.home, "url"))

    def stopped(self):
        self.client.close()
        self.assertEqual(self.server.stop(), 0)

    def generation(self):
        return self.client.get("/api/version").json["generation"]

    def frames(self):
        """Of the log: (salted like its header, commits)."""
        with open(self.log, "rb") as file:
            log = file.read()
        salts = log[16:24]
        found = []
        for at in range(32, len(log) - FRAME + 1, FRAME):
            page, commit = struct.unpack(">II", log[at:at + 8])
            found.append((page != 0 and log[at + 8:at + 16] == salts, commit != 0))
        return found

    def flip(self, path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 0x10]))


class Mark(DamageCase):
    def test_the_mark_says_which_store_it_is_and_how_far(self):
        self.stopped()
        with open(self.mark) as file:
            lines = dict(line.rsplit(" ", 1) for line in file.read().splitlines())
        self.assertEqual(lines["generation"], "1")
        self.assertGreaterEqual(int(lines["event"]), 1)
        self.assertEqual(os.stat(self.mark).st_mode & 0o777, 0o600)

    def test_a_store_that_is_missing_is_not_begun_anew(self):
        self.create(id="kept")
        self.stopped()
        os.rename(self.store, self.store + ".gone")
        self.assert_refused("stint.db is missing")
        self.assertFalse(os.path.exists(self.store))
        os.rename(self.store + ".gone", self.store)
        self.start_with()
        self.assertEqual(self.client.get("/api/tasks/kept").status, 200)

    def test_a_store_that_was_emptied_is_not_opened_as_new(self):
        self.stopped()
        os.truncate(self.store, 0)
        self.assert_refused("stint.db is empty")

    def test_an_emptied_store_is_refused_without_a_mark_while_its_log_is_there(self):
        self.create(id="kept")
        self.killed()
        os.unlink(self.mark)
        os.truncate(self.store, 0)
        size = os.stat(self.log).st_size
        self.assert_refused("stint.db is empty", "log")
        self.assertEqual(os.stat(self.log).st_size, size)

    def test_a_file_of_zero_pages_of_ours_is_refused(self):
        self.stopped()
        os.unlink(self.store)
        other = sqlite3.connect(self.store)
        other.execute("PRAGMA user_version = 0")
        other.execute("VACUUM")
        other.close()
        self.assert_refused("a store was here")

    def test_another_store_in_its_place_is_refused(self):
        other = stintd.Server()
        self.addCleanup(other.end)
        other.stop()
        self.stopped()
        shutil.copy(os.path.join(other.home, "stint.db"), self.store)
        self.assert_refused("another store")

    def test_an_older_copy_in_its_place_is_refused_and_the_right_one_is_not(self):
        self.stopped()
        old = self.store + ".old"
        shutil.copy(self.store, old)
        self.start_with()
        self.create(id="since")
        self.stopped()
        shutil.copy(self.store, self.store + ".new")
        shutil.copy(old, self.store)
        self.assert_refused("older than its mark", "last event")
        shutil.copy(self.store + ".new", self.store)
        self.start_with()
        self.assertEqual(self.client.get("/api/tasks/since").status, 200)

    def test_a_log_that_was_removed_is_noticed(self):
        self.create(id="lost")
        self.killed()
        os.unlink(self.log)
        self.assert_refused("a store was here")

    def test_a_damaged_mark_is_named(self):
        self.stopped()
        self.flip(self.mark, 40)
        done = self.run_server()
        self.assertEqual(done.returncode, 74)
        self.assertIn("store.mark is damaged", done.stderr)

    def test_accepting_the_loss_is_a_new_generation_and_the_next_start_is_plain(self):
        self.create(id="before")
        self.stopped()
        old = self.store + ".old"
        shutil.copy(self.store, old)
        self.start_with()
        held = self.client.post("/api/claims", {"workerId": "w1"}).json["claims"]
        self.assertEqual(len(held), 1)
        self.stopped()
        shutil.copy(old, self.store)
        self.start_with("--accept-loss")
        self.assertEqual(self.generation(), 2)
        self.assertEqual(self.client.get("/api/tasks/before").json["state"], "ready")
        reply = self.client.post("/api/tasks/before/complete", {"workerId": "w1", "fence": held[0]["fence"]})
        self.assertEqual((reply.status, reply.json["code"]), (409, "stale_claim"))
        self.stopped()
        self.start_with()
        self.assertEqual(self.generation(), 2)

    def test_a_new_store_keeps_the_old_one_and_goes_on_behind_its_numbers(self):
        self.create(id="before")
        self.stopped()
        self.start_with("--new-store")
        self.assertEqual(self.generation(), 2)
        self.assertEqual(self.client.get("/api/tasks/before").status, 404)
        kept, = [name for name in os.listdir(self.server.home) 
                 if ".before-new-" in name and not name.endswith("-wal")]
        old = sqlite3.connect(f"file:{self.server.home}/{kept}?mode=ro", uri=True)
        self.assertEqual(old.execute("SELECT count(*) FROM task").fetchone(), (1,))
        old.close()

    def test_a_new_store_takes_the_place_of_one_that_is_gone(self):
        self.stopped()
        os.unlink(self.store)
        self.start_with("--new-store")
        self.assertEqual(self.generation(), 2)

    def test_the_ways_out_exclude_each_other(self):
        done = self.run_server("--accept-loss", "--new-store")
        self.assertEqual(done.returncode, 2)
        self.assertIn("choose one", done.stderr)

    def test_a_store_in_use_is_not_put_aside(self):
        done = self.run_server("--new-store")
        self.assertEqual(done.returncode, 74)
        self.assertIn("in use", done.stderr)
        self.create(id="still-served")


class Log(DamageCase):
    def setUp(self):
        super().setUp()
        for i in range(6):
            self.create(id=f"t{i}")
        self.killed()
        self.assertGreaterEqual(sum(commit for salted, commit in self.frames() if salted), 7)

    def commits(self):
        return [i for i, (salted, commit) in enumerate(self.frames()) if salted and commit]

    def test_a_flipped_bit_with_commits_behind_it_is_damage_with_its_frame(self):
        frame = self.commits()[2]
        self.flip(self.log, 32 + frame * FRAME + 24 + 100)
        with open(self.log, "rb") as file:
            before = file.read()
        self.assert_refused("stint.db-wal", f"frame {frame + 1} ", f"byte {32 + frame * FRAME}")
        with open(self.log, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_a_bad_last_frame_is_the_end(self):
        """The turn that was being written when the server was killed."""
        self.flip(self.log, 32 + self.commits()[-1] * FRAME + 24 + 100)
        self.start_with()
        self.assertEqual(self.client.get("/api/tasks/t4").status, 200)
        self.assertEqual(self.client.get("/api/tasks/t5").status, 404)

    def test_one_torn_turn_is_damage_as_long_as_the_machine_was_not_booted(self):
        before, last = self.commits()[-2:]
        self.assertGreater(last, before + 1)
        self.flip(self.log, 32 + (before + 1) * FRAME + 24 + 100)
        self.assert_refused(f"frame {before + 2} ", "1 commits")

    def test_a_damaged_header_with_commits_that_the_file_does_not_have_is_damage(self):
        self.flip(self.log, 18)
        self.assert_refused("stint.db-wal is damaged in its header")

    def test_a_damaged_header_of_a_log_that_was_copied_whole_loses_nothing(self):
        """As the power may leave it when the log is begun again."""
        shutil.copy(self.log, self.log + ".kept")
        db = sqlite3.connect(self.store)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        shutil.copy(self.log + ".kept", self.log)
        self.flip(self.log, 18)
        self.start_with()
        self.assertEqual(self.client.get("/api/tasks/t5").status, 200)

    def test_a_log_cut_before_its_mark_is_noticed(self):
        with open(self.log, "r+b") as file:
            file.truncate(32 + FRAME)
        self.assert_refused("a store was here")

    def test_accepting_the_loss_serves_what_is_before_the_damage(self):
        frame = self.commits()[-3]
        self.flip(self.log, 32 + frame * FRAME + 24 + 100)
        self.start_with("--accept-loss")
        self.assertEqual(self.generation(), 2)
        found = [self.client.get(f"/api/tasks/t{i}").status for i in range(6)]
        self.assertIn(200, found)
        self.assertIn(404, found)


class History(DamageCase):
    """What is damaged in history, final tasks and logs is refused; the rest is served."""

    def setUp(self):
        super().setUp()
        for i in range(4):
            self.create(id=f"t{i}")
        held, = self.client.post("/api/claims", {"workerId": "w1"}).json["claims"]
        self.done = held["task"]["id"]
        reply = self.client.post(f"/api/tasks/{self.done}/complete",
                                 {"workerId": "w1", "fence": held["fence"], "result": {"a": 1}})
        self.assertEqual(reply.status, 200)
        self.stopped()

    def alter(self, sql):
        db = sqlite3.connect(self.store)
        self.assertGreater(db.execute(sql).rowcount, 0)
        db.commit()
        db.close()
        self.start_with()

    def seq(self, name):
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        seq, = db.execute("SELECT seq FROM task_id WHERE id = ?", (name,)).fetchone()
        db.close()
        return seq

    def told(self):
        """The number of events that tell of damage."""
        last = self.client.get("/api/events?after=now&limit=1").json["next"]
        events = self.client.get(f"/api/events?after={max(0, int(last) - 3)}&limit=10").json["events"]
        return sum("damage" in event["data"] for event in events if event["type"] == "server.degraded")

    def assert_known(self):
        reply = self.client.get("/readyz").json
        self.assertEqual((reply["status"], reply["damage"], len(reply["places"])), ("ready", 1, 1))
        viewer = self.server.client(token=self.client.post("/api/tokens", {"kind": "viewer", "name": "w"}).json["token"])
        self.assertEqual(viewer.get("/readyz").json, {"status": "ready", "damage": 1})
        viewer.close()
        self.until(lambda: self.told() == 1, "an event that tells of the damage")
        doctor = subprocess.run([os.environ["STINT"], "--home", self.server.home, "doctor"], capture_output=True,
                                text=True, timeout=HANG_S)
        self.assertNotEqual(doctor.returncode, 0)
        self.assertIn("1 damaged place", doctor.stdout)
        self.assertIn(reply["places"][0], " ".join(doctor.stdout.split()))
        self.create(id="served")
        self.assertEqual(len(self.client.post("/api/claims", {"workerId": "w2"}).json["claims"]), 1)

    def assert_damaged(self, path, table):
        reply = self.client.get(path)
        self.assertEqual((reply.status, reply.json["code"]), (503, "store_damaged"))
        self.assertIn(f"table {table}", reply.json["detail"])
        viewer = self.client.post("/api/tokens", {"kind": "viewer", "name": "v"}).json["token"]
        narrow = self.server.client(token=viewer)
        reply = narrow.get(path)
        self.assertEqual((reply.status, reply.json["code"]), (503, "store_damaged"))
        self.assertNotIn("table", reply.json.get("detail", ""))
        narrow.close()

    def test_a_final_task(self):
        seq = self.seq(self.done)
        self.alter(f"UPDATE task SET priority = priority + 1 WHERE seq = {seq}")
        self.assert_damaged(f"/api/tasks/{self.done}", "task")
        self.assert_known()

    def test_the_body_of_a_final_task(self):
        seq = self.seq(self.done)
        self.alter(f"UPDATE task_body SET body = CAST(body || ' ' AS BLOB) WHERE seq = {seq}")
        self.assert_damaged(f"/api/tasks/{self.done}", "task_body")
        self.assert_known()

    def test_the_result_of_a_final_task(self):
        seq = self.seq(self.done)
        self.alter(f"UPDATE task_extra SET data = CAST('{{\"a\":2}}' AS BLOB) WHERE seq = {seq} AND kind = 1")
        self.assert_damaged(f"/api/tasks/{self.done}", "task_extra")
        self.assert_known()

    def assert_gone(self, first, last):
        reply = self.client.get(f"/api/events?after={first - 1}")
        self.assertEqual((reply.status, reply.json["code"], reply.json["next"]), (410, "cursor_gone", str(last)))
        reply = self.client.call("GET", f"/api/events?after={first - 1}", headers={"Accept": "text/event-stream"})
        self.assertEqual((reply.status, reply.json["next"]), (410, str(last)))
        self.assertEqual(self.client.get(f"/api/events?after={last}").json["events"][0]["seq"], last + 1)
        before = self.client.get("/api/events?after=0").json
        self.assertEqual([event["seq"] for event in before["events"]], list(range(1, first)))
        self.assertEqual(before["next"], str(first - 1))

    def packs(self):
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        found = [last for last, in db.execute("SELECT last FROM event ORDER BY last")]
        db.close()
        return found

    def test_a_pack_of_events(self):
        packs = self.packs()
        self.alter(f"UPDATE event SET data = CAST(data || 'x' AS BLOB) WHERE last = {packs[2]}")
        self.assert_gone(packs[1] + 1, packs[2])
        self.assert_known()

    def test_a_pack_of_events_that_is_missing(self):
        packs = self.packs()
        self.alter(f"DELETE FROM event WHERE last = {packs[2]}")
        self.assert_gone(packs[1] + 1, packs[2])
        self.assert_known()

    def test_a_damaged_open_task_stops_the_server_with_its_place(self):
        seq = self.seq("t3")
        db = sqlite3.connect(self.store)
        db.execute("UPDATE task SET priority = priority + 1 WHERE seq = ?", (seq,))
        db.commit()
        db.close()
        done = self.run_server()
        self.assertEqual(done.returncode, 74)
        for word in ("stint.db", "table task ", f"row {seq} ", "--restore FILE"):
            self.assertIn(word, done.stderr)


class Check(DamageCase):
    def setUp(self):
        super().setUp()
        for i in range(5):
            self.create(id=f"t{i}")
        held, = self.client.post("/api/claims", {"workerId": "w1"}).json["claims"]
        self.client.post(f"/api/tasks/{held['task']['id']}/complete",
                         {"workerId": "w1", "fence": held["fence"], "result": {"a": 1}})

    def check(self, *arguments):
        done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--check-store", *arguments],
                              capture_output=True, text=True, timeout=HANG_S)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def files(self):
        found = {}
        for name in os.listdir(self.server.home):
            if name.startswith(("stint.db", "store.mark")):
                with open(os.path.join(self.server.home, name), "rb") as file:
                    found[name] = file.read()
        return found

    def alter(self, sql):
        db = sqlite3.connect(self.store)
        self.assertGreater(db.execute(sql).rowcount, 0)
        db.commit()
        db.close()

    def test_a_whole_store_is_called_whole_and_no_byte_of_it_changes(self):
        for end in (self.killed, self.stopped):
            end()
            before = self.files()
            done, findings = self.check()
            self.assertEqual((done.returncode, findings, done.stderr), (0, [], ""))
            self.assertEqual(self.files(), before)
            self.start_with()
        self.stopped()

    def test_a_store_in_use_is_refused(self):
        done, findings = self.check()
        self.assertEqual((done.returncode, findings), (75, []))
        self.assertIn("in use", done.stderr)

    def test_what_is_no_store_is_unreadable(self):
        other = os.path.join(self.server.home, "garbage")
        with open(other, "wb") as file:
            file.write(b"no store" * 1000)
        for path in (other, os.path.join(self.server.home, "missing")):
            done, findings = self.check(path)
            self.assertEqual((done.returncode, len(findings)), (74, 1), path)
            self.assertEqual(findings[0]["file"], path)
            self.assertIn(path, done.stderr)

    def test_each_damage_is_found_at_its_place(self):
        self.stopped()
        done_task = 1
        for sql, table in ((f"UPDATE task SET priority = priority + 1 WHERE seq = {done_task}", "task"),
                           (f"UPDATE task_body SET body = CAST(body || ' ' AS BLOB) WHERE seq = {done_task}", "task_body"),
                           (f"UPDATE task_extra SET data = CAST('x' AS BLOB) WHERE seq = {done_task}", "task_extra"),
                           ("UPDATE event SET data = CAST(data || 'x' AS BLOB) WHERE last = 1", "event")):
            shutil.copy(self.store, self.store + ".whole")
            self.alter(sql)
            done, findings = self.check()
            self.assertEqual(done.returncode, 1, sql)
            self.assertEqual({(finding["table"], finding["row"]) for finding in findings}, {(table, 1)}, sql)
            shutil.copy(self.store + ".whole", self.store)

    def test_a_row_that_its_events_do_not_tell_of_is_found(self):
        self.stopped()
        self.alter("DELETE FROM event WHERE last = 3")
        done, findings = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("event", findings[0]["what"])

    def test_a_damaged_log_is_a_finding(self):
        self.killed()
        frame = [i for i, (salted, commit) in enumerate(self.frames()) if salted and commit][-3]
        self.flip(self.log, 32 + frame * FRAME + 24 + 100)
        before = self.files()
        done, findings = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"frame {frame + 1} ", findings[0]["what"])
        self.assertEqual(self.files(), before)


if __name__ == "__main__":
    unittest.main()
