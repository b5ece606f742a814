"""Bad lines to machines elsewhere: delay, loss and cuts between network namespaces, by a proxy of ours and by nft; and HAProxy in front."""
import glob
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from hang import HANG_S
import stintd
import test_tls
from test_worker import WORKER, sh
from tls import STINT, Certificates, Cutter

NFT = shutil.which("nft") or ("/usr/sbin/nft" if os.path.exists("/usr/sbin/nft") else None)
HAPROXY = shutil.which("haproxy") or ("/usr/sbin/haproxy" if os.path.exists("/usr/sbin/haproxy") else None)


class Slow(Cutter):
    """Each piece is late, by its draw, and the line breaks now and then amid what is said."""

    def __init__(self, target, address, seed):
        self.draw, self.breaks = random.Random(seed), 0
        super().__init__(target, address)

    def carry(self, source, sink):
        try:
            while block := source.recv(4096):
                time.sleep(self.draw.uniform(0, 0.05))  # the line itself, and no waiting of the test
                if self.draw.random() < 0.02:
                    self.breaks += 1
                    sink.sendall(block[:len(block) // 2])
                    break
                sink.sendall(block)
        except OSError:
            pass
        self.end(source, sink)


class Case(test_tls.Namespaces):
    test_a_worker_on_the_other_machine_and_a_cable_that_is_pulled = None
    test_the_clear_needs_a_word_and_a_stranger_gets_nothing = None

    def rules(self, *lines):
        """Of the other machine; without any, nothing is in the way."""
        chain = ["type filter hook output priority 0", "oif lo accept", *lines]
        text = "flush ruleset\n" + ("table inet bad {\nchain out {\n%s\n}\n}\n" % "\n".join(chain) if lines else "")
        return subprocess.run(["ip", "netns", "exec", self.far, NFT, "-f", "-"], input=text, capture_output=True, text=True)

    def work(self, script, *flags, concurrency=1):
        """A worker there, with the lease that the test wants to be short."""
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
        config = os.path.join(self.folder, "worker.json")
        with open(config, "w") as file:
            json.dump({"executors": {"x": sh(script)}, "queues": {"q": {}}}, file)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            worker = subprocess.Popen(["ip", "netns", "exec", self.far, WORKER, "--home", self.folder, "--config", config, "--url", self.server.url,
                                       "--ca", self.certificates.ca, "--concurrency", str(concurrency), *flags], stdin=subprocess.DEVNULL, stderr=log,
                                      env=stintd.environment(STINT_TOKEN=token), start_new_session=True)
        self.addCleanup(worker.wait, HANG_S)
        self.addCleanup(worker.kill)
        return worker

    def until(self, question, what):
        case = stintd.Case()
        return case.until(question, what)

    def create(self, task):
        self.assertEqual(self.client.post("/api/tasks", {"id": task, "title": "x", "queue": "q"}).status, 201)

    def is_in(self, task, state):
        return self.until(lambda: (found := self.client.get("/api/tasks/" + task).json)["state"] == state and found, (task, state))

    def completed(self):
        events = self.client.get("/api/events?limit=1000").json["events"]
        return [event["task"] for event in events if event["type"] == "task.completed"]


@unittest.skipUnless(NFT, "there is no nft here (package nftables)")
class Lossy(Case):
    def setUp(self):
        super().setUp()
        if self.rules("counter").returncode != 0:
            self.skipTest("this kernel has no nftables")

    def test_on_a_line_that_loses_one_packet_in_eight_all_work_ends_once(self):
        self.serve(*self.certificates.flags())
        if self.rules("numgen random mod 8 == 0 drop").returncode != 0:
            self.skipTest("this kernel draws no numbers in nftables")
        self.work("echo '{\"a\":1}'", concurrency=3)
        for n in range(15):
            self.create("t%d" % n)
        for n in range(15):
            self.assertEqual(self.is_in("t%d" % n, "done")["result"], {"a": 1})
        self.assertEqual(sorted(self.completed()), sorted("t%d" % n for n in range(15)))

    def test_a_line_that_swallows_everything_for_a_while_costs_no_work(self):
        self.serve(*self.certificates.flags())
        go = os.path.join(self.folder, "go")
        self.work("while [ ! -e %s ]; do sleep 0.05; done; echo '{\"a\":1}'" % go)
        self.create("t")
        self.is_in("t", "claimed")
        self.assertEqual(self.rules("drop").returncode, 0)
        open(go, "w").close()
        self.assertEqual(self.client.get("/api/tasks/t").json["attempt"], 1)
        self.rules()
        done = self.is_in("t", "done")
        self.assertEqual((done["result"], done["attempt"]), ({"a": 1}, 1))

    def test_a_firewall_that_resets_connections_makes_the_worker_try_again(self):
        self.serve(*self.certificates.flags())
        worker = self.work("echo '{\"a\":1}'")
        self.create("before")
        self.is_in("before", "done")
        self.assertEqual(self.rules("meta l4proto tcp reject with tcp reset").returncode, 0)
        self.create("t")
        self.assertIsNone(worker.poll())
        self.rules()
        self.assertEqual(self.is_in("t", "done")["spent"], 0)

    def sleeps(self):
        """The task of the last test, by the time that it sleeps."""
        def words(path):
            try:
                with open(path, "rb") as file:
                    return file.read()
            except OSError:
                return b""
        return any(words(path) == b"sleep\x001000.%d\x00" % os.getpid() for path in glob.glob("/proc/[0-9]*/cmdline"))

    def test_a_machine_that_is_cut_off_for_longer_than_its_lease_stops_and_another_does_the_work(self):
        self.serve(*self.certificates.flags(), "--set", "restart.graceMs=0")
        self.work("exec sleep %d.%d" % (1000, os.getpid()), "--lease-ms", "2000")
        self.create("t")
        self.until(self.sleeps, "it is begun")
        self.assertEqual(self.rules("drop").returncode, 0)
        self.until(lambda: not self.sleeps(), "its process is ended at nine tenths of its lease")
        self.is_in("t", "ready")
        other = self.client.post("/api/claims", {"workerId": "here", "queues": ["q"]}).json["claims"][0]
        self.rules()
        self.assertEqual(self.client.post("/api/tasks/t/complete", {"workerId": "here", "fence": other["fence"], "result": "here"}).json["result"], "here")
        self.assertEqual(self.completed(), ["t"])


class Late(Case):
    LISTENS = "127.0.0.1"  # the line is at the address that others use

    def test_on_a_line_that_is_slow_and_breaks_amid_what_is_said_all_work_ends_once(self):
        self.serve(*self.certificates.flags())
        code = ("import sys; sys.path.insert(0, %r); import test_lines; "
                "s = test_lines.Slow((%r, %d), (%r, %d), 7); print(s.port, flush=True); sys.stdin.read(); print(s.breaks)" %
                (os.path.dirname(os.path.abspath(__file__)), self.LISTENS, self.server.port, self.HERE, self.server.port))
        proxy = subprocess.Popen(["ip", "netns", "exec", self.near, "/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(proxy.wait, HANG_S)
        self.addCleanup(proxy.kill)
        self.assertEqual(int(proxy.stdout.readline()), self.server.port)
        self.server.url = self.server.url.replace(self.LISTENS, self.HERE)
        self.work("echo '{\"a\":1}'", concurrency=3)
        for n in range(25):
            self.create("t%d" % n)
        for n in range(25):
            self.assertEqual(self.is_in("t%d" % n, "done")["result"], {"a": 1})
        self.assertEqual(sorted(self.completed()), sorted("t%d" % n for n in range(25)))
        breaks, _ = proxy.communicate("", timeout=HANG_S)
        self.assertGreater(int(breaks), 0)


@unittest.skipUnless(HAPROXY, "there is no haproxy here (package haproxy)")
class Proxied(unittest.TestCase):
    """HAProxy, as docs/operations.md has it, speaks TLS; the server behind it does not."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stint-proxy-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.certificates = Certificates("queue.example")
        self.addCleanup(self.certificates.close)
        with open(self.path("stint.pem"), "w") as out:
            for name in ("server.crt", "ca.crt", "server.key"):
                with open(self.certificates.path(name)) as file:
                    out.write(file.read())
        self.port = self.free_port()
        self.url = "https://localhost:%d/stint" % self.port
        self.server = stintd.Server("--behind-proxy", "--set", "publicUrl=" + self.url, "--set", "proxy.from=127.0.0.1", "--set", "worker.leaseMinMs=1000")
        self.addCleanup(self.server.end)
        self.client = self.server.client(local=True)
        self.addCleanup(self.client.close)
        self.proxy()

    def path(self, name):
        return os.path.join(self.folder, name)

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as door:
            return door.getsockname()[1]

    def proxy(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/operations.md")) as file:
            text, = re.findall(r"^```\n(defaults\n.*?)^```$", file.read(), re.S | re.M)
        text = text.replace("bind :443", "bind 127.0.0.1:%d" % self.port).replace("/etc/haproxy/stint.pem", self.path("stint.pem"))
        with open(self.path("haproxy.cfg"), "w") as file:
            file.write(text.replace("127.0.0.1:8787", "127.0.0.1:%d" % self.server.port))
        self.process = subprocess.Popen([HAPROXY, "-db", "-f", self.path("haproxy.cfg")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(HANG_S)

    def stint(self, *words, status=0, **variables):
        ran = subprocess.run([STINT, *words], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             env=stintd.environment(STINT_HOME=self.path("elsewhere"), **variables))
        self.assertEqual(ran.returncode, status, ran)
        return ran

    def until(self, question, what):
        return stintd.Case().until(question, what)

    def wait_for_proxy(self):
        self.until(lambda: subprocess.run([STINT, "ls", "--url", self.url, "--ca", self.certificates.ca], capture_output=True, stdin=subprocess.DEVNULL,
                                          timeout=HANG_S, env=stintd.environment(STINT_TOKEN=self.server.token, STINT_HOME=self.path("elsewhere"))).returncode == 0,
                   "it passes on")

    def test_a_machine_joins_through_it_and_goes_on_when_the_proxy_dies_and_comes_back(self):
        ca = self.certificates.ca
        self.wait_for_proxy()
        made = self.client.post("/api/tokens", {"kind": "join", "name": "far"}).json
        self.assertEqual(made["url"], self.url)
        home, go = self.path("machine"), self.path("go")
        self.stint("worker", "enroll", made["url"], made["code"], "--ca", ca, "--home", home, "--no-start")
        event, = [event for event in self.client.get("/api/events?limit=100").json["events"] if event.get("actor") == "join:far"]
        self.assertEqual(event["data"]["address"], "127.0.0.1")
        with open(self.path("worker.json"), "w") as file:
            json.dump({"executors": {"x": sh("while [ ! -e %s ]; do sleep 0.05; done; echo '{\"a\":1}'" % go)}, "queues": {"q": {"executor": "x"}}}, file)
        with open(self.path("log"), "wb") as log:
            worker = subprocess.Popen([WORKER, "--home", home, "--config", self.path("worker.json"), "--remote"], stdin=subprocess.DEVNULL, stderr=log,
                                      env=stintd.environment(), start_new_session=True)
        self.addCleanup(worker.wait, HANG_S)
        self.addCleanup(worker.kill)
        self.client.post("/api/tasks", {"id": "t", "title": "x", "queue": "q"})
        self.until(lambda: self.client.get("/api/tasks/t").json["state"] == "claimed", "it is claimed by long poll")
        self.stop()
        open(go, "w").close()
        self.proxy()
        done = self.until(lambda: (found := self.client.get("/api/tasks/t").json)["state"] == "done" and found, "it is done")
        self.assertEqual((done["attempt"], done["result"]), (1, {"a": 1}))

    def test_events_come_through_it_as_they_happen(self):
        self.wait_for_proxy()
        process = subprocess.Popen([STINT, "events", "--follow", "--json", "--url", self.url, "--ca", self.certificates.ca], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=stintd.environment(STINT_TOKEN=self.server.token, STINT_HOME=self.path("elsewhere")))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.until(lambda: b"stint_event_streams 1" in self.client.get("/metrics").body, "it follows")
        self.client.post("/api/tasks", {"id": "seen", "title": "x", "queue": "q"})
        self.assertIn(b'"seen"', process.stdout.readline())


if __name__ == "__main__":
    unittest.main()
