"""stint top on real terminals (tmux), at three sizes: what is seen, what keys do, and how the terminal is left."""
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import stintd
from hang import HANG_S

STINT = os.environ.get("STINT", "build/stint")
TMUX = shutil.which("tmux")


class Screen:
    """A terminal of that size, in which a shell runs stint top and says how it ended."""

    def __init__(self, case, columns, rows, **env):
        self.case, self.dir = case, tempfile.mkdtemp(prefix="stint-top-")
        case.addCleanup(shutil.rmtree, self.dir)
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in {"STINT_HOME": case.server.home, "LANG": "C.UTF-8", **env}.items())
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"stty -a >{self.dir}/before; {words} sh -c 'echo $$ >{self.dir}/pid; exec {STINT} top'; "
                  f"status=$?; stty -a >{self.dir}/after; echo ended with $status; cat")
        case.addCleanup(self.tmux, "kill-server")

    def tmux(self, *words):
        return subprocess.run([TMUX, "-S", f"{self.dir}/socket", *words], env=stintd.environment(TERM="xterm-256color"),
                              capture_output=True, text=True, timeout=HANG_S, check=False).stdout

    def see(self, escapes=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    def until(self, *words):
        """All of them are on the screen."""
        end = time.monotonic() + HANG_S
        while True:
            seen = self.see()
            if all(word in seen for word in words):
                return seen
            self.case.assertLess(time.monotonic(), end, f"not seen: {words}\n{seen}")
            time.sleep(0.05)

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def pid(self):
        with open(f"{self.dir}/pid", encoding="ascii") as file:
            return int(file.read())

    def left_as_found(self):
        with open(f"{self.dir}/before", encoding="ascii") as before, open(f"{self.dir}/after", encoding="ascii") as after:
            self.case.assertEqual(before.read(), after.read())
        self.case.assertEqual(self.tmux("display", "-p", "#{alternate_on} #{cursor_flag}").strip(), "0 1")


@unittest.skipUnless(TMUX, "tmux is not installed")
class Top(stintd.Case):
    def fill(self):
        for number in range(3):
            self.create(id=f"wait-{number}", title=f"Waiting {number}")
        self.client.post("/api/workers/register", {"workerId": "slot-3", "executors": ["shell"], "leaseMs": 300000})
        self.create(id="run-1", title="Refuse folded headers")
        fence = self.claim("run-1", "slot-3")
        self.client.post("/api/tasks/run-1/log", {"workerId": "slot-3", "fence": fence, "offset": 0,
                                                  "data": "first line\n\x1b[31mlast\x1b[2J line\n"})
        self.client.post("/api/tasks/run-1/progress", {"workerId": "slot-3", "fence": fence, "note": "compiling", "percent": 40})
        self.create(id="ask-1", title="Cut the release")
        fence = self.claim("ask-1", "slot-1")
        self.client.post("/api/tasks/ask-1/ask", {"workerId": "slot-1", "fence": fence, "question": "Which clock?",
                                                  "options": ["boot time", "monotonic"]})

    def claim(self, task, worker):
        return self.client.post(f"/api/tasks/{task}/claim", {"workerId": worker, "leaseMs": 600000}).json["fence"]

    def state(self, task):
        return self.client.get("/api/tasks/" + task).json["state"]

    def press_until(self, screen, key, done):
        """A key that is not taken while its row is young is typed again."""
        end = time.monotonic() + HANG_S
        while not done():
            self.assertLess(time.monotonic(), end, screen.see())
            screen.press(key() if callable(key) else key)
            time.sleep(0.6)

    def test_it_shows_what_there_is_at_three_sizes(self):
        self.fill()
        for columns, rows in ((80, 24), (120, 40), (200, 60)):
            screen = Screen(self, columns, rows)
            seen = screen.until("Needs you 1", "Running 1", "Waiting 3", "Asks: Which clock?", "1 boot time   2 monotonic", "q quit")
            self.assertEqual(len(seen.rstrip("\n").split("\n")), rows, seen)
            self.assertEqual("LEASE" in seen, columns >= 110)
            screen.press("j")
            screen.until("● Running.", "first line", "last␛[2J line")
            screen.press("q")
            screen.until("ended with 0")
            screen.left_as_found()

    def test_keys_answer_cancel_and_retry(self):
        self.fill()
        screen = Screen(self, 80, 24)
        screen.until("Which clock?")
        self.press_until(screen, "2", lambda: self.state("ask-1") == "running")
        self.assertEqual(self.client.get("/api/tasks/ask-1").json["answer"]["text"], "monotonic")
        screen.until("ask-1 has its answer")
        screen.press("End")
        screen.until("$ stint show wait-2")
        self.press_until(screen, "C", lambda: "Cancel wait-2?" in screen.see())
        screen.press("n")
        screen.until("$ stint show wait-2")
        self.assertEqual(self.state("wait-2"), "ready")
        # A second C, typed because the first was slow to show, closes the prompt again.
        self.press_until(screen, lambda: "y" if "Cancel wait-2?" in screen.see() else "C", lambda: self.state("wait-2") == "cancelled")
        screen.until("wait-2 is cancelled")
        self.press_until(screen, "r", lambda: self.state("wait-2") == "ready")
        screen.press("q")
        screen.until("ended with 0")

    def test_the_last_change_is_called_back_and_the_command_is_copied(self):
        self.create(id="t-1", title="Called back")
        screen = Screen(self, 80, 24)
        screen.until("Called back")
        self.press_until(screen, lambda: "y" if "Cancel t-1?" in screen.see() else "C", lambda: self.state("t-1") == "cancelled")
        screen.until("t-1 is cancelled", "u calls it back")
        screen.press("u")
        screen.until("t-1 gets another try")
        self.assertEqual(self.state("t-1"), "ready")
        screen.press("u")
        screen.until("nothing to call back")
        screen.tmux("set", "-s", "set-clipboard", "on")
        screen.press("c")
        screen.until("copied: stint show t-1")
        self.assertEqual(screen.tmux("show-buffer"), "stint show t-1")
        screen.press("q")
        screen.until("ended with 0")
        screen.left_as_found()

    def test_pages_filter_and_a_refusal(self):
        self.fill()
        viewer = self.client.post("/api/tokens", {"kind": "viewer", "name": "eyes"}).json["token"]
        screen = Screen(self, 120, 40, STINT_TOKEN=viewer)
        screen.until("Which clock?")
        self.press_until(screen, "1", lambda: "forbidden" in screen.see())
        self.assertEqual(self.state("ask-1"), "asking")
        screen.press("Tab", "Tab")
        screen.until("LEASE LEFT", "BEAT", "slot-3", "run-1")
        screen.press("g", "q")
        screen.until("WHAT HOLDS IT BACK", "Flowing 1")
        screen.press("g", "t", "/", *"folded", "Enter")
        screen.until("/ folded", "1 match")
        self.assertNotIn("wait-1", screen.see())
        screen.press("q")
        screen.until("ended with 0")

    def test_it_stays_when_the_server_goes_and_comes(self):
        self.fill()
        screen = Screen(self, 80, 24)
        screen.until("Which clock?")
        self.client.close()
        self.server.kill()
        screen.until("No news from the server", "Which clock?")
        self.server.start()
        self.client = self.server.client()
        screen.until("• live")
        screen.press("q")
        screen.until("ended with 0")

    def test_the_size_may_change(self):
        self.fill()
        screen = Screen(self, 80, 24)
        self.assertNotIn("LEASE", screen.until("q quit"))
        screen.tmux("resize-window", "-x", "130", "-y", "45")
        screen.until("LEASE", "q quit")
        screen.tmux("resize-window", "-x", "50", "-y", "12")
        screen.until("needs 80 x 24")
        screen.press("q")
        screen.until("ended with 0")

    def test_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV):
            screen = Screen(self, 80, 24)
            screen.until("No open tasks.")
            os.kill(screen.pid(), number)
            screen.until(f"ended with {128 + number}")
            screen.left_as_found()

    def test_no_color_and_ascii(self):
        self.fill()
        screen = Screen(self, 80, 24, NO_COLOR="1", LANG="C")
        seen = screen.until("[Tasks 5]", ">? asking", "* running")
        self.assertTrue(seen.isascii(), seen)
        self.assertNotIn("\x1b[3", screen.see(escapes=True))
        screen.press("q")
        screen.until("ended with 0")

    def test_elsewhere_than_on_a_terminal_it_says_what_to_type(self):
        ran = subprocess.run([STINT, "top"], env=stintd.environment(STINT_HOME=self.server.home), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=HANG_S, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertEqual(ran.stdout, "")
        self.assertIn("top needs a terminal; standard output is not one", ran.stderr)
        self.assertIn("stint ls", ran.stderr)


if __name__ == "__main__":
    unittest.main()
