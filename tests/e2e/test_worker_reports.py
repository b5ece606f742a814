"""Reports of a worker that something stands in the way of: memory that is short, a server that refuses them or is gone. Whatever
it is, neither a claim nor a place stays occupied, and the worker ends when it is told to."""
import os
import signal

import proof
import test_worker
from test_worker import sh

LONG = 100000  # the result of a task; more in one piece than a worker gets that is starved
UNTIL_GO = "echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done; "


class Starved(test_worker.Case):
    """Large pieces of memory are refused while the file "short" is there."""

    def setUp(self):
        super().setUp()
        self.long = self.worker(
            {"long": sh("printf '\"'; head -c %d /dev/zero | tr '\\0' x; printf '\"'; " % LONG + UNTIL_GO, env={"DIR": self.folder},
                        write=[self.folder]),
             "small": sh("echo small")},
            LD_PRELOAD=os.environ["STINT_STARVE_SO"], STINT_STARVE=self.path("short"), STINT_STARVE_BYTES="65536")
        self.create(id="t", executor="long")
        self.read("pid")
        self.until(lambda: self.log("t")["length"] == LONG + 2, "what it wrote is in the log")
        open(self.path("short"), "w").close()
        open(self.path("go"), "w").close()
        self.until(lambda: "there is no memory for the report" in self.long.said(), "it is short of memory")

    def test_a_report_that_finds_no_memory_is_tried_again_and_nothing_of_it_is_lost(self):
        os.unlink(self.path("short"))
        self.assertEqual(self.is_in("t", "done")["result"], "x" * LONG)
        self.assertEqual(self.events("t").count("task.completed"), 1)

    def test_one_that_never_finds_any_is_told_as_trouble_of_the_host_and_leaves_its_place(self):
        error = self.until(lambda: self.task("t")["error"], "it is given back")
        self.assertEqual(error["code"], "WORKER_INIT_FAILED")
        self.assertIn("no memory", error["message"])
        task = self.task("t")
        self.assertEqual((task["state"], task["spent"], task["crashes"]), ("scheduled", 0, 0))
        self.create(id="next", executor="small")
        self.assertEqual(self.is_in("next", "done")["result"], "small")
        self.assertEqual(self.long.stop(), 0)


class ServerGone(test_worker.Case):
    def begin(self, name):
        """A worker with a task whose end the server is not there to hear."""
        worker = self.worker({"x": sh(UNTIL_GO, env={"DIR": self.folder}, write=[self.folder])}, "--slot", name)
        self.create(id=name)
        self.is_in(name, "running")
        return worker

    def test_the_second_signal_does_not_wait_for_a_server_that_is_gone(self):
        patient, hurried = self.begin("patient"), self.begin("hurried")
        self.server.kill()
        open(self.path("go"), "w").close()
        self.until(lambda: patient.said().count('"ended"') == 2, "both have ended")
        patient.process.send_signal(signal.SIGTERM)
        hurried.process.send_signal(signal.SIGTERM)
        self.until(lambda: patient.said().count('"stopping"') == 2, "both stop")
        hurried.process.send_signal(signal.SIGTERM)
        self.assertEqual(hurried.process.wait(60), 0)
        self.assertIsNone(patient.process.poll(), "the one that was told once still waits")
        self.client.close()
        self.server.start()
        self.worker({"x": sh("true")}, "--slot", "hurried")
        self.is_in("hurried", "done")
        self.assertEqual(self.events("hurried").count("task.completed"), 1)


if __name__ == "__main__":
    proof.main()
