"""Pools: programs that stay and speak frames over standard input and output, good ones and bad ones. spec/stdio.md."""
import json
import os
import shutil
import signal
import sys
import time
import unittest

import stintd
import test_worker

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples", "pool-worker")
STINT = test_worker.STINT
NODE = shutil.which("node")


class Case(test_worker.Case):
    """A worker with one pool, `p`, in queue `q`."""

    def pool(self, program, *arguments, size=1, flags=(), home=None, **more):
        """One that runs this file as a worker that behaves in a certain way."""
        argv = [sys.executable, "-u", os.path.join(HERE, "pool_worker.py"), program, self.folder, *map(str, arguments)]
        return self.run_pool(argv, size, flags, home, **more)

    def run_pool(self, argv, size=1, flags=(), home=None, **more):
        read = [HERE, os.path.realpath(EXAMPLES), os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))]
        executor = {"kind": "pool", "argv": argv, "size": size, "read": read, "write": [self.folder], "graceMs": 1000, **more}
        return self.worker({"p": executor}, "--name", "host", *flags, home=home)

    def slot(self, name="host/p-1"):
        return {slot["name"]: slot for slot in self.ok(self.client.get("/api/slots"))}.get(name)

    def is_quarantined(self, name="host/p-1"):
        return self.until(lambda: (slot := self.slot(name)) and slot["state"] == "quarantined" and slot, "quarantine")

    def lines(self, name):
        """What workers left in a file; there may be none yet."""
        try:
            with open(self.path(name)) as file:
                return file.read().split()
        except FileNotFoundError:
            return []


class Examples(Case):
    def expect_work(self, argv):
        self.run_pool(argv, size=2)
        self.create(id="t", module="echo", payload={"n": [1, 2]})
        self.assertEqual(self.is_in("t", "done", "blocked", "failed")["result"], {"n": [1, 2]}, self.task("t"))
        events = self.events("t")
        self.assertEqual((events[0], events[-1]), ("task.created", "task.completed"))
        self.assertIn("task.progressed", events)
        for number in range(8):
            self.create(id="more-%d" % number, module="echo", payload=number)
        for number in range(8):
            self.assertEqual(self.is_in("more-%d" % number, "done")["result"], number)
        self.create(id="other", module="nothing")
        error = self.is_in("other", "blocked")["error"]
        self.assertEqual((error["code"], error["class"]), ("EXECUTOR_NOT_FOUND", "policy"))
        self.assertIn("echo, sleep", error["message"])

    def test_the_worker_in_python(self):
        self.expect_work([sys.executable, os.path.join(EXAMPLES, "worker.py")])

    @unittest.skipUnless(NODE, "there is no node here")
    def test_the_worker_in_node(self):
        self.expect_work([NODE, os.path.join(EXAMPLES, "worker.js")])

    def test_each_is_short_enough_to_be_read(self):
        for name in ("worker.py", "worker.js"):
            with open(os.path.join(EXAMPLES, name)) as file:
                self.assertLess(len(file.readlines()), 100, name)


if __name__ == "__main__":
    unittest.main()
