"""What reaches a person who looks elsewhere: stint inbox --follow, notices on the desktop, the title of the window."""
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.request

from hang import HANG_S
import proof
from test_cli import STINT, CliCase, environment


class NoticeCase(CliCase):
    def setUp(self):
        super().setUp()
        place = tempfile.TemporaryDirectory(prefix="stint-notices-")
        self.addCleanup(place.cleanup)
        self.notices = os.path.join(place.name, "notices")
        program = os.path.join(place.name, "notify-send")
        with open(program, "w") as file:
            file.write(f'#!/bin/sh\nprintf "%s|" "$@" >> {self.notices}\necho >> {self.notices}\n')
        os.chmod(program, 0o755)
        self.desktop = {"DISPLAY": ":0", "PATH": place.name + ":" + os.environ["PATH"]}

    def seen(self):
        try:
            with open(self.notices) as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def on_terminal(self, *words, before=(), **env):
        """A command that goes on; what it writes comes from the descriptor."""
        master, slave = pty.openpty()
        process = subprocess.Popen([*before, STINT, *words], stdin=slave, stdout=slave, stderr=slave,
                                   env=environment(**{"STINT_HOME": self.server.home, **env}))
        os.close(slave)
        self.addCleanup(os.close, master)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait(HANG_S)
        self.addCleanup(end)
        return process, master

    def read_until(self, master, text, drawn=""):
        until = time.monotonic() + HANG_S
        while text not in drawn:
            self.assertLess(time.monotonic(), until, drawn)
            if select.select([master], [], [], 1)[0]:
                drawn += os.read(master, 65536).decode()
        return drawn

    def wait_for_stream(self):
        until = time.monotonic() + HANG_S
        while b"\nstint_event_streams 1\n" not in self.client.get("/metrics").body:
            self.assertLess(time.monotonic(), until)

    def line_of(self, process):
        self.assertTrue(select.select([process.stdout], [], [], HANG_S)[0], "nothing is said")
        return process.stdout.readline()

    def asking(self, queue):
        task = self.add("cut the release", "--queue", queue)
        claim = self.claim(queue)
        asked = self.client.post(f"/api/tasks/{task}/ask", {"workerId": "w", "fence": claim["fence"], "question": "tea or coffee?"})
        self.assertEqual(asked.status, 200, asked.body)
        return task


class Following(NoticeCase):
    def test_what_needs_somebody_is_told_as_it_comes(self):
        process = self.begin("inbox", "--follow", stdout=subprocess.PIPE)
        self.wait_for_stream()
        task = self.asking("asks")
        line = self.line_of(process)
        self.assertIn(f"{task} is asking. Asks: tea or coffee?", line)
        self.client.post(f"/api/tasks/{task}/cancel", {})
        blocked = self.add("stuck", "--queue", "blocks")
        claim = self.claim("blocks")
        self.client.post(f"/api/tasks/{blocked}/block", {"workerId": "w", "fence": claim["fence"],
                                                         "error": {"code": "BAD_WORKDIR", "message": "no such directory"}})
        self.assertIn(f"{blocked} is blocked", self.line_of(process))
        process.terminate()
        self.assertEqual(process.stdout.read(), "")

    def test_a_person_has_it_on_the_desktop_too_with_a_command(self):
        process, master = self.on_terminal("inbox", "--follow", "--color", "never", **self.desktop)
        self.wait_for_stream()
        task = self.asking("desktop")
        drawn = self.read_until(master, "try")
        self.assertRegex(drawn, r"\d\d:\d\d:\d\d\S*  " + task + " is asking")
        self.read_until(master, f"stint show {task}", drawn)
        until = time.monotonic() + HANG_S
        while "tea or coffee?" not in self.seen():
            self.assertLess(time.monotonic(), until)
        self.assertIn("stint needs you", self.seen())
        process.terminate()

    def test_without_a_desktop_nothing_is_started(self):
        process, master = self.on_terminal("inbox", "--follow", PATH=self.desktop["PATH"])
        self.wait_for_stream()
        task = self.asking("no-desktop")
        self.read_until(master, f"stint show {task}")
        self.assertEqual(self.seen(), "")
        process.terminate()


class Waiting(NoticeCase):
    def end_group(self, group, task, queue):
        claim = self.claim(queue)
        self.client.post(f"/api/tasks/{task}/complete", {"workerId": "w", "fence": claim["fence"]})
        self.client.post(f"/api/groups/{group}/close", {})

    def test_the_title_of_the_window_is_set_and_put_back(self):
        task = self.add("part", "--queue", "title", "--group", "title")
        process, master = self.on_terminal("wait", "--group", "title")
        drawn = self.read_until(master, "title 0 of 1")
        self.assertIn("\x1b[22;2t\x1b]2;title 0 of 1\x07", drawn)
        self.end_group("title", task, "title")
        drawn = self.read_until(master, "\x1b[23;2t", drawn)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertEqual(drawn.count("\x1b[22;2t"), 1)
        self.assertIn("title ended: 1 done", drawn)

    def test_a_terminal_without_a_title_gets_none(self):
        task = self.add("part", "--queue", "plain", "--group", "plain")
        process, master = self.on_terminal("wait", "--group", "plain", TERM="linux")
        drawn = self.read_until(master, "plain 0 of 1")
        self.end_group("plain", task, "plain")
        drawn = self.read_until(master, "plain ended", drawn)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertNotIn("\x1b]2;", drawn)

    def test_after_a_long_wait_a_notice_comes(self):
        clocks = proof.Clocks()
        task = self.add("part", "--queue", "long", "--group", "long")
        process, master = self.on_terminal("wait", "--group", "long", before=clocks.command(), **self.desktop)
        drawn = self.read_until(master, "long 0 of 1")
        clocks.advance(11000)
        self.end_group("long", task, "long")
        self.read_until(master, "long ended", drawn)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertIn("|stint|long ended: 1 done|", self.seen())

    def test_after_a_short_one_none_does(self):
        task = self.add("part", "--queue", "short", "--group", "short")
        process, master = self.on_terminal("wait", "--group", "short", **self.desktop)
        drawn = self.read_until(master, "short 0 of 1")
        self.end_group("short", task, "short")
        self.read_until(master, "short ended", drawn)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertEqual(self.seen(), "")


class Up(NoticeCase):
    def test_stint_up_says_what_needs_somebody(self):
        home = tempfile.mkdtemp(prefix="stint-up-")
        self.addCleanup(shutil.rmtree, home, True)
        env = {"STINT_HOME": home}
        self.addCleanup(subprocess.run, [STINT, "down", "--now"], env=environment(**env), capture_output=True, timeout=HANG_S)
        _, master = self.on_terminal("up", "--listen", "127.0.0.1:0", "--no-demo", "--no-open", **env, **self.desktop)
        self.read_until(master, "try ")
        self.wait_for_stream_of(home)
        task = self.stint("add", "x", "--cwd", "/nonexistent/place", "--", "true", **env)
        self.read_until(master, f"{task.out.strip()} is blocked")
        until = time.monotonic() + HANG_S
        while "stint needs you" not in self.seen():
            self.assertLess(time.monotonic(), until)

    def wait_for_stream_of(self, home):
        with open(os.path.join(home, "url")) as file:
            url = file.read().strip()
        with open(os.path.join(home, "admin.token")) as file:
            ask = urllib.request.Request(url + "/metrics", headers={"Authorization": "Bearer " + file.read().strip()})
        until = time.monotonic() + HANG_S
        while b"\nstint_event_streams 1\n" not in urllib.request.urlopen(ask).read():
            self.assertLess(time.monotonic(), until)


class Groups(NoticeCase):
    def failed_group(self, name):
        tasks = [self.add(f"part {i}", "--queue", name, "--group", name, "--max-attempts", "1") for i in range(3)]
        claim = self.claim(name)
        self.client.post(f"/api/tasks/{tasks[0]}/fail", {"workerId": "w", "fence": claim["fence"],
                                                         "error": {"code": "CHECK_FAILED", "message": "make test, 2 failed"}})
        return tasks

    def test_show_has_a_bar_the_time_that_is_left_and_what_failed(self):
        tasks = self.failed_group("show")
        shown = self.terminal("group", "show", "show", "--color", "never").out
        self.assertRegex(shown, r"show is open, 1 of 3 ended  ━{8}─{16}")
        self.assertIn(f"✗ failed  {tasks[0]}  make test, 2 failed", shown)
        self.assertNotIn("━", self.stint("group", "show", "show").out)

    def test_wait_names_what_failed(self):
        tasks = self.failed_group("wait")
        for task in tasks[1:]:
            self.client.post(f"/api/tasks/{task}/cancel", {})
        self.client.post("/api/groups/wait/close", {})
        shown = self.terminal("wait", "--group", "wait", "--color", "never", status=9).out
        self.assertIn(f"✗ failed  {tasks[0]}  make test, 2 failed", shown)
        self.assertIsNotNone(re.search(r"wait ended: 1 failed, 2 cancelled", shown), shown)


if __name__ == "__main__":
    unittest.main()
