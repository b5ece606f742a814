"""Configuration and logs of the real server: where values come from, what is said about wrong ones, and that a log
tells much and no secret, and never stops anybody."""
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from hang import HANG_S
import stintd


class ConfigurationCase(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="stint-e2e-")
        self.home = os.path.join(self.top, "home")
        os.makedirs(os.path.join(self.top, "user", "stint"), 0o700)
        os.mkdir(self.home, 0o700)

    def tearDown(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.top, name)
        with open(path, "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(path, mode)
        return path

    def run_stintd(self, *flags, variables=None):
        environment = stintd.environment(XDG_CONFIG_HOME=os.path.join(self.top, "user"), **(variables or {}))
        return subprocess.run([stintd.STINTD, "--home", self.home, *flags], env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_S)

    def effective(self, *flags, **variables):
        run = self.run_stintd("--check-config", "--json", *flags, variables=variables)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stderr)
        return {row["key"]: row for row in json.loads(run.stdout)["keys"]}


class Precedence(ConfigurationCase):
    def test_each_source_stands_above_the_last(self):
        budget = "task.crashBudget"
        self.assertEqual(self.effective()[budget], {"key": budget, "value": 3, "source": "default"})
        user = self.write("user/stint/config.json", '{\n  "task": { "crashBudget": 4 }\n}')
        self.assertEqual(self.effective()[budget], {"key": budget, "value": 4, "source": "file", "origin": user,
                                                    "line": 2, "column": 13})
        home = self.write("home/config.json", '{ "task":\n\n{ "crashBudget": 5, }} // mine')
        self.assertEqual(self.effective()[budget], {"key": budget, "value": 5, "source": "file", "origin": home,
                                                    "line": 3, "column": 3})
        variable = {"STINT_TASK_CRASH_BUDGET": "6"}
        self.assertEqual(self.effective(**variable)[budget], {"key": budget, "value": 6, "source": "environment",
                                                              "origin": "STINT_TASK_CRASH_BUDGET"})
        self.assertEqual(self.effective("--set", budget + "=7", **variable)[budget],
                         {"key": budget, "value": 7, "source": "flag", "origin": "--set"})

    def test_a_named_file_replaces_the_others_and_flags_stand_above_it(self):
        self.write("home/config.json", {"task": {"crashBudget": 5}, "listen": "127.0.0.1:1"})
        named = self.write("named.json", {"listen": "127.0.0.1:2"})
        got = self.effective("--config", named)
        self.assertEqual((got["task.crashBudget"]["value"], got["listen"]["value"]), (3, "127.0.0.1:2"))
        got = self.effective("--config", named, "--listen", "127.0.0.1:3", "--store", "sqlite:/x/y.db")
        self.assertEqual((got["listen"]["value"], got["listen"]["origin"]), ("127.0.0.1:3", "--listen"))
        self.assertEqual((got["store"]["value"], got["store"]["origin"]), ("sqlite:/x/y.db", "--store"))

    def test_the_table_for_people_names_every_key_and_its_origin(self):
        home = self.write("home/config.json", '{\n"log": {"level": "debug"},\n"executors": {"a": 1}}')
        run = self.run_stintd("--check-config")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"(?m)^home +%s +--home$" % self.home)
        self.assertRegex(run.stdout, r"(?m)^log\.level +debug +%s:2:9$" % home)
        self.assertRegex(run.stdout, r"(?m)^executors +is left to stint-worker +%s:3:1$" % home)
        self.assertEqual(set(self.effective()) - set(run.stdout.split()), set())
        self.assertFalse(os.path.exists(os.path.join(self.home, "stint.db")))

    def test_the_command_names_what_the_files_have_for_a_worker_and_no_values(self):
        home = self.write("home/config.json", '{"roots": ["/srv/a", "/srv/b"],\n"executors": {"tests": {"env": {"K": "secret"}}, "web": {}}}')
        run = subprocess.run([os.environ.get("STINT", "build/stint"), "config", "show", "--origin", "--home", self.home], text=True,
                             env=stintd.environment(XDG_CONFIG_HOME=os.path.join(self.top, "user")), capture_output=True, timeout=HANG_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("roots\t/srv/a, /srv/b\t%s:1:2\n" % home, run.stdout)
        self.assertIn("executors\ttests, web\t%s:2:1\n" % home, run.stdout)
        self.assertNotIn("secret", run.stdout)

    def test_a_key_from_the_file_has_its_effect(self):
        self.write("home/config.json", {"log": {"level": "error"}, "listen": "127.0.0.1:0"})
        server = stintd.Server("--config", os.path.join(self.home, "config.json"))
        try:
            client = server.client()
            self.assertEqual(client.get("/livez").status, 200)
            client.close()
            self.assertEqual(server.said(), "")
        finally:
            server.end()


class Refused(ConfigurationCase):
    def test_a_bad_file_is_refused_with_its_line(self):
        cases = [
            ("{\n  // a comment\n  \"lisen\": \"127.0.0.1:1\"\n}", ":3:3: ", "did you mean listen?"),
            ("{\"executers\": {}}", ":1:2: ", "did you mean executors?"),
            ("{\n  \"retry\": {\n    \"baseMs\": \"soon\" }}", ":3:5: ", "from 1 to 86400000; it is \"soon\""),
            ("{\n\"task\": {\"crashBudget\": 0}}", ":2:10: ", "from 1 to 1000"),
            ("{\n\"task\": {},\n\"task\": {}}", ":3:1: ", "repeated"),
            ("{\n\"task\": {]}}", ":2:10: ", "not JSON"),
            ("[\n]", ":1:1: ", "one object"),
            ("", ":1:1: ", "empty"),
            ("{\n\"listen\": \"0.0.0.0:80\"}", ":2:1: ", "--behind-proxy"),
            ("{\n\"listen\": \"nonsense\"}", ":2:1: ", "ADDRESS:PORT"),
            ("{\n\"store\": \"redis:\"}", ":2:1: ", "sqlite:PATH"),
            ("{\"retry\": {\n\"baseMs\": 20,\n\"maxMs\": 10}}", ":2:1: ", "retry.maxMs (10)"),
        ]
        for text, place, said in cases:
            with self.subTest(text=text):
                path = self.write("home/config.json", text)
                for flags in (), ("--check-config",):
                    run = self.run_stintd(*flags)
                    self.assertEqual((run.returncode, run.stdout), (78, ""), run.stderr)
                    self.assertIn(path + place, run.stderr)
                    self.assertIn(said, run.stderr)
        self.assertEqual(os.listdir(self.home), ["config.json"])

    def test_a_file_that_others_may_change_is_refused(self):
        path = self.write("home/config.json", "{}", 0o666)
        run = self.run_stintd()
        self.assertEqual(run.returncode, 78)
        self.assertIn(path + ": others may write to it (mode 666); fix: chmod go-w", run.stderr)
        os.unlink(path)
        self.write("user/stint/config.json", "{}")
        os.chmod(os.path.join(self.top, "user"), 0o770)
        run = self.run_stintd()
        self.assertEqual(run.returncode, 78)
        self.assertIn("fix: chmod go-w %s/user" % self.top, run.stderr)

    def test_a_named_file_must_be_there_and_be_a_file(self):
        for path, said in (self.top + "/nowhere.json", "No such file"), (self.top, "is not a file"):
            run = self.run_stintd("--config", path)
            self.assertEqual((run.returncode, said in run.stderr, path in run.stderr), (78, True, True), run.stderr)

    def test_everything_that_is_wrong_is_told_at_once(self):
        user = self.write("user/stint/config.json", '{"a": 1, "b": 2}')
        home = self.write("home/config.json", '{"log": {"level": 1}}')
        run = self.run_stintd("--check-config", "--set", "c=3", "--listen", "x", variables={"STINT_LOG_FORMAT": "xml"})
        self.assertEqual((run.returncode, run.stderr.count("\n")), (78, 6), run.stderr)
        for said in (user + ":1:2: ", user + ":1:10: ", home + ":1:10: ", "STINT_LOG_FORMAT: ", "--set: ", "--listen: "):
            self.assertIn("stintd: " + said, run.stderr)

    def test_problems_are_told_to_programs_too(self):
        path = self.write("home/config.json", '{"a": 1}')
        run = self.run_stintd("--check-config", "--json")
        self.assertEqual(run.returncode, 78)
        problem, = json.loads(run.stdout)["problems"]
        self.assertEqual((problem["origin"], problem["line"], problem["column"]), (path, 1, 2))

    def test_a_key_without_an_effect_is_unknown(self):
        for key in "no.such", "ask.parks":
            run = self.run_stintd("--check-config", "--set", key + "=1")
            self.assertEqual((run.returncode, key + " is not a known key" in run.stderr), (78, True), run.stderr)


def lines_of(server):
    return [json.loads(line) for line in server.said().splitlines()]


def wait_for(what):
    until = time.monotonic() + HANG_S
    while not what():
        if time.monotonic() > until:
            raise AssertionError("it did not come to pass")
        time.sleep(0.01)


class Logs(unittest.TestCase):
    def test_a_worker_that_makes_the_token_of_its_claim_is_no_admin(self):
        server = stintd.Server()
        try:
            admin = server.client()
            admin.post("/api/tasks", {"id": "t", "title": "x", "queue": "q"})
            token = admin.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
            worker = server.client(token=token)
            claim, = worker.post("/api/claims", {"workerId": "w"}).json["claims"]
            body = {"kind": "claim", "task": "t", "fence": claim["fence"]}
            self.assertEqual(worker.post("/api/tokens", body).status, 201)
            self.assertEqual(worker.post("/api/tokens", {"kind": "admin", "name": "me"}).status, 403)
            self.assertEqual(worker.call("DELETE", "/api/tokens/0123456789abcdef").status, 403)
            for client in (admin, worker):
                client.close()
            self.assertEqual(server.stop(), 0)
            self.assertEqual([(line["actor"], line["method"], line["status"]) for line in lines_of(server)
                              if line["msg"] == "admin action"],
                             [("admin", "POST", 201), ("worker:w", "POST", 403), ("worker:w", "DELETE", 403)])
        finally:
            server.end()

    def test_start_admin_actions_and_stop_are_logged(self):
        server = stintd.Server()
        try:
            client = server.client()
            made = client.post("/api/tokens", {"kind": "viewer", "name": "v"}).json
            client.post("/api/tasks", {"title": "a task"})
            client.close()
            self.assertEqual(server.stop(), 0)
            lines = lines_of(server)
            self.assertEqual([line["msg"] for line in lines],
                             ["admin token written", "listening", "admin action", "stopping", "stopped"])
            listening = lines[1]
            self.assertEqual((listening["url"], listening["starts"], listening["generation"], listening["tasks"]),
                             (server.url, 1, 1, 0))
            self.assertTrue(listening["store"].endswith("/stint.db"))
            self.assertEqual({name: lines[2][name] for name in ("level", "actor", "method", "path", "status")},
                             {"level": "info", "actor": "admin", "method": "POST", "path": "/api/tokens", "status": 201})
            self.assertNotIn(made["token"], server.said())
            for line in lines:
                self.assertEqual(list(line)[:3], ["time", "level", "msg"])
        finally:
            server.end()

    def test_no_token_is_ever_logged(self):
        server = stintd.Server("--set", "log.level=debug")
        try:
            client = server.client()
            canary = "c4n4ry-in-a-payload"
            secrets = [server.token, canary]
            for kind in "operator", "producer", "worker", "viewer":
                made = client.post("/api/tokens", {"kind": kind, "name": kind})
                self.assertEqual(made.status, 201, made.body)
                secrets.append(made.json["token"])
                other = server.client(token=made.json["token"])
                other.get("/api/tasks")
                other.get("/api/tasks/" + made.json["token"])
                other.get("/api/events?after=" + made.json["token"])
                other.post("/api/tasks", {"title": canary, "payload": {"x": canary}})
                other.call("GET", "/" + made.json["token"], headers={"Authorization": "Bearer stint_x_y_z" + kind})
                other.close()
                client.call("DELETE", "/api/tokens/" + made.json["id"])
            self.assertEqual(client.call("GET", "/api/tasks", headers={"Origin": "http://" + server.token}).status, 403)
            client.close()
            self.assertEqual(server.stop(), 0)
            said = server.said()
            self.assertIn('"msg":"request"', said)
            self.assertIn("***", said)
            for secret in secrets:
                self.assertNotIn(secret, said)
                self.assertNotIn(secret[-20:], said)
            self.assertNotIn("Bearer", said)
        finally:
            server.end()

    def test_wrong_credentials_are_told_a_few_times_and_counted(self):
        server = stintd.Server("--set", "sweep.intervalMs=50", "--set", "limits.authFailuresPerS=1000")
        try:
            stranger = server.client(token="stint_worker_00_no")
            for _ in range(200):
                self.assertEqual(stranger.get("/api/tasks").status, 401)
            stranger.close()

            def refused():
                return [line for line in lines_of(server) if line["msg"] == "credential refused"]
            wait_for(lambda: sum(line.get("suppressed", 0) + ("path" in line) for line in refused()) == 200)
            self.assertLess(len(refused()), 100)
        finally:
            server.end()

    def test_a_log_that_nobody_reads_does_not_stop_the_server(self):
        read_end, write_end = os.pipe()
        fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, 4096)
        server = stintd.Server("--set", "log.level=debug", log=write_end)
        try:
            client = server.client()
            for number in range(500):
                self.assertEqual(client.post("/api/tasks", {"title": "task %d" % number}).status, 201)
            metrics = client.get("/metrics").body.decode()
            dropped = int(metrics.split("\nstint_log_lines_dropped_total ")[1].split("\n")[0])
            self.assertGreater(dropped, 400)
            os.read(read_end, 1 << 20)  # somebody does at last
            client.get("/livez")
            told = [json.loads(line) for line in os.read(read_end, 1 << 20).decode().splitlines()]
            self.assertIn("dropped", told[0]["msg"])
            self.assertGreaterEqual(told[0]["count"], dropped)
            client.close()
            self.assertEqual(server.stop(), 0)
        finally:
            server.end()
            os.close(read_end)
            os.close(write_end)

    def test_a_refused_start_is_logged(self):
        first = stintd.Server()
        try:
            second = subprocess.run(first.command(), env=stintd.environment(), text=True, capture_output=True,
                                    stdin=subprocess.DEVNULL, timeout=HANG_S)
            self.assertEqual(second.returncode, 74)
            line = json.loads(second.stderr.splitlines()[-1])
            self.assertEqual(line["level"], "error")
            self.assertIn("not started", line["msg"])
        finally:
            first.end()

    def test_without_a_stderr_nothing_else_is_written_to(self):
        home = tempfile.mkdtemp(prefix="stint-e2e-")
        url = os.path.join(home, "url")
        process = subprocess.Popen(["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", stintd.STINTD, "--home", home,
                                    "--listen", "127.0.0.1:0", "--set", "log.level=debug"], env=stintd.environment())
        try:
            wait_for(lambda: os.path.exists(url))
            for number in range(3 if os.geteuid() == 0 else 0):  # others may not look
                self.assertEqual(os.readlink("/proc/%d/fd/%d" % (process.pid, number)), "/dev/null")
        finally:
            process.terminate()
            self.assertEqual(process.wait(HANG_S), 0)
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
