"""stint up and stint down: what is killed comes back where it was, in the background too; stopping says what it waits for."""
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from hang import HANG_S
import stintd
from test_cli import STINT, environment


class UpCase(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stint-up-")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.addCleanup(self.stint, "down", "--now")

    def stint(self, *args, **options):
        return subprocess.run([STINT, *args], capture_output=True, text=True, timeout=HANG_S,
                              env=environment(STINT_HOME=self.home), **options)

    def up(self, *args):
        process = subprocess.Popen([STINT, "up", "--home", self.home, "--listen", "127.0.0.1:0", "--no-demo", *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
                                   start_new_session=True)

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(HANG_S)
            process.stdout.close()
            process.stderr.close()
        self.addCleanup(end)
        while not (line := process.stdout.readline()).startswith("try "):
            self.assertTrue(line, process.stderr.read() if not line else "")
        return process

    def until(self, condition):
        until = time.monotonic() + HANG_S
        while not (found := condition()):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        return found

    def running(self, *command):
        """A task whose process runs: its first line is in its log."""
        script = "echo begun in $PWD; " + " ".join(command)
        task = self.stint("add", "long work", "--queue", "shell", "--executor", "shell", "--payload",
                          json.dumps({"argv": ["sh", "-c", script]})).stdout.strip()
        self.until(lambda: "begun" in self.stint("logs", task).stdout)
        return task

    def state(self, task):
        return json.loads(self.stint("show", task, "--json").stdout)["task"]["state"]

    def url(self):
        with open(os.path.join(self.home, "url")) as file:
            return file.read().strip()

    def server_pid(self):
        """Of whoever listens on the socket; 0: no process does."""
        with socket.socket(socket.AF_UNIX) as peer:
            if peer.connect_ex(os.path.join(self.home, "stint.sock")):
                return 0
            return struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Killed(UpCase):
    def test_a_server_that_is_killed_comes_back_on_its_address_and_work_goes_on(self):
        process = self.up()
        before, first = self.url(), self.server_pid()
        task = self.running("sleep 3; echo '\"still here\"'")
        os.kill(first, signal.SIGKILL)
        self.until(lambda: self.server_pid() not in (0, first) and self.stint("ls").returncode == 0)
        self.assertEqual(self.url(), before)
        self.assertEqual(self.stint("wait", "--timeout", "60s", task).returncode, 0)
        shown = json.loads(self.stint("show", task, "--json").stdout)["task"]
        self.assertEqual((shown["attempt"], shown["result"]), (1, "still here"))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertIn("stint: the server was ended by signal 9; another one is started in 1 s\n", process.stderr.read())

    def test_ctrl_c_while_the_server_is_away_ends_everything(self):
        process = self.up()
        os.kill(self.server_pid(), signal.SIGKILL)
        self.assertIn("another one is started", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertEqual(self.server_pid(), 0)


class Stopping(UpCase):
    def test_ctrl_c_says_at_once_what_it_waits_for(self):
        process = self.up()
        task = self.running("sleep 600")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stderr.readline(), f"stint: stopping; {task} (long work) has 5 s to end; Ctrl-C again gives "
                         "it back at once\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(HANG_S), 0)
        self.up()
        shown = json.loads(self.stint("show", task, "--json").stdout)["task"]
        self.assertEqual(shown["spent"], 0, "it was given back, not lost")

    def test_down_waits_for_what_runs_and_says_so(self):
        process = self.up()
        task = self.running("until [ -e go ]; do sleep 0.05; done; echo well done")
        waits = self.stint("add", "later", "--queue", "elsewhere").stdout.strip()
        down = subprocess.Popen([STINT, "down"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment(STINT_HOME=self.home))
        self.addCleanup(down.wait, HANG_S)
        self.assertEqual(down.stderr.readline(),
                         f"Stopping: {task} (long work) runs and has 5 min to end; Ctrl-C gives it back at once\n")
        self.assertEqual(self.stint("logs", task).returncode, 0, "the server goes on answering")
        with open(os.path.join(self.stint("logs", task).stdout.split()[2], "go"), "w"):
            pass
        out, _ = down.communicate(timeout=HANG_S)
        self.assertEqual((down.returncode, out), (0, "Stopped. 1 task waits for the next stint up\n"))
        self.assertEqual(process.wait(HANG_S), 0)
        self.up()
        self.assertEqual((self.state(task), self.state(waits)), ("done", "ready"))

    def test_down_gives_back_what_does_not_end_in_time(self):
        process = self.up()
        task = self.running("sleep 600")
        ran = self.stint("down", "--wait", "1s")
        self.assertEqual((ran.returncode, process.wait(HANG_S)), (0, 0), ran.stderr)
        self.assertIn(f"{task} (long work) runs and has 1 s to end", ran.stderr)
        task = self.again(task)
        self.assertEqual(task["spent"], 0)

    def test_down_now_gives_it_back_and_kills_nothing(self):
        process = self.up()
        task = self.running("sleep 600")
        ran = self.stint("down", "--now")
        self.assertEqual((ran.returncode, ran.stdout, process.wait(HANG_S)), (0, "Stopped. 1 task waits for the next stint up\n", 0))
        self.assertEqual(ran.stderr, f"Stopping: {task} (long work) goes back to the queue\n")
        self.up()
        self.assertIn("task.released", [event["type"] for event in map(json.loads, self.stint("events", "--task", task, "--json").stdout.splitlines())])

    def test_ctrl_c_of_down_gives_it_back_at_once(self):
        process = self.up()
        task = self.running("sleep 600")
        down = subprocess.Popen([STINT, "down"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment(STINT_HOME=self.home))
        down.stderr.readline()
        down.send_signal(signal.SIGINT)
        out, _ = down.communicate(timeout=HANG_S)
        self.assertEqual((down.returncode, process.wait(HANG_S)), (0, 0), out)
        self.assertEqual(self.again(task)["spent"], 0)

    def again(self, task):
        self.up()
        return json.loads(self.stint("show", task, "--json").stdout)["task"]

    def test_nothing_to_stop_is_no_failure(self):
        ran = self.stint("down")
        self.assertEqual((ran.returncode, ran.stdout), (0, f"Nothing to stop: no server runs in {self.home}\n"))
        self.assertEqual(json.loads(self.stint("down", "--json").stdout)["down"], {"stopped": False, "home": self.home})

    def test_a_server_of_somebody_else_is_named_and_left_alone(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        ran = subprocess.run([STINT, "down", "--home", server.home], capture_output=True, text=True, timeout=HANG_S, env=environment())
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"^stint: the server in \S+ was not started by stint up; it is process (\d+) \(not_ours\)\n  try:? +kill \1\n$")
        client = server.client()
        self.addCleanup(client.close)
        self.assertEqual(client.get("/livez").status, 200)


class Failing(UpCase):
    def test_a_port_that_is_taken_is_named(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        with open(os.path.join(server.home, "url")) as file:
            address = file.read().strip().removeprefix("http://")
        ran = self.stint("up", "--listen", address)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(f"stint: another program listens on {address} (ended)\n  try  stint up --listen 127.0.0.1:0", ran.stderr)

    def test_a_state_directory_that_cannot_be_written_is_named(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        os.chmod(self.home, 0o500)
        self.addCleanup(os.chmod, self.home, 0o700)
        ran = self.stint("up", "--home", os.path.join(self.home, "a", "b"))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("cannot write to the state directory", ran.stderr)


class Detached(UpCase):
    def test_it_goes_on_in_the_background_until_down(self):
        ran = self.stint("up", "--detach", "--listen", "127.0.0.1:0", "--no-demo")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertRegex(ran.stdout, r"^stint [\d.]+, new store in \S+; stint down stops it\nserver  http://127")
        self.assertEqual(self.stint("run", "--no-cwd", "--", "echo", "hello").stdout, "hello\n")
        again = self.stint("up", "--detach")
        self.assertEqual((again.returncode, again.stdout.split(":")[0]), (0, "stint is already up"))
        self.assertEqual(self.stint("down").returncode, 0)
        self.assertEqual(self.stint("ls").returncode, 7)

    def test_a_server_that_cannot_start_says_why(self):
        ran = self.stint("up", "--detach", "--set", "nonsense=1")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("nonsense is not a known key", ran.stderr)
        self.assertIn("ended by itself", ran.stderr)

    def test_what_it_says_is_in_its_log(self):
        self.assertEqual(self.stint("up", "--detach", "--listen", "127.0.0.1:0", "--no-demo").returncode, 0)
        os.kill(self.server_pid(), signal.SIGKILL)
        log = os.path.join(self.home, "logs", "up.log")
        self.until(lambda: "the server was ended by signal 9" in pathlib.Path(log).read_text())
        self.until(lambda: self.stint("ls").returncode == 0)


if __name__ == "__main__":
    unittest.main()
