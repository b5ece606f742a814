"""W3C traces: from the producer to the task, to the child of an attempt and on to the tasks that it makes; and spans of OpenTelemetry for a
collector, which stands in the test."""
import json
import os
import subprocess
import unittest

from hang import HANG_S
import stintd
from test_examples import environment
import test_notify
import test_worker

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# opentelemetry-proto from PyPI, where ./dev check could fetch it
JUDGE = os.environ.get("STINT_OTEL_PYTHON", os.path.join(TOP, "build", "otel", "bin", "python"))
# the OTLP receiver of OpenTelemetry's collector, where ./dev collector could build it
COLLECTOR = os.path.join(TOP, "build", "otel-collector", "collector")
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


class Producer(stintd.Case):
    def made(self, body=None, path="/api/tasks", headers=None):
        reply = self.client.call("POST", path, body or {"title": "x"}, headers)
        self.assertLess(reply.status, 300, reply.body)
        return reply.json

    def trace(self, *args, **kwargs):
        return self.made(*args, **kwargs).get("metadata", {}).get("traceparent")

    def test_the_header_of_the_producer_stands_in_the_metadata(self):
        self.assertEqual(self.trace(headers={"traceparent": PARENT}), PARENT)
        self.assertEqual(self.trace({"title": "x", "metadata": {"a": 1}}, headers={"traceparent": PARENT}), PARENT)

    def test_what_the_document_says_counts_more(self):
        own = PARENT.replace("4bf9", "0000")
        for body in ({"title": "x", "metadata": {"traceparent": own}}, {"title": "x", "traceparent": own}):
            self.assertEqual(self.trace(body, headers={"traceparent": PARENT}), own)

    def test_a_header_that_is_none_counts_for_nothing(self):
        for bad in ("x", PARENT[:-1], PARENT.upper(), f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{SPAN}-01", PARENT + "-more",
                    f"{PARENT}, {PARENT}"):
            with self.subTest(header=bad):
                self.assertIsNone(self.trace(headers={"traceparent": bad}))
        later = f"01-{TRACE}-{SPAN}-01-more"  # a version that comes after this one
        self.assertEqual(self.trace(headers={"traceparent": later}), later)

    def test_every_task_of_a_batch_and_no_task_of_a_schedule(self):
        made = self.made({"tasks": [{"title": "a"}, {"title": "b", "metadata": {"traceparent": "mine"}}]}, "/api/tasks/batch", headers={"traceparent": PARENT})
        self.assertEqual([result["task"]["metadata"]["traceparent"] for result in made["results"]], [PARENT, "mine"])
        self.made({"id": "s", "cron": "@daily", "task": {"title": "c"}}, "/api/schedules", headers={"traceparent": PARENT})
        self.assertNotIn("metadata", self.client.get("/api/schedules/s").json["task"])

    def test_the_same_request_in_another_span_is_the_same_request(self):
        other = PARENT.replace(SPAN, "1" * 16)
        for header in (PARENT, other):
            reply = self.client.call("POST", "/api/tasks", {"title": "x"}, headers={"traceparent": header, "Idempotency-Key": "k"})
            self.assertEqual((reply.status, reply.json["metadata"]["traceparent"]), (201, PARENT))

    def test_the_command_line_goes_on_with_the_trace_that_it_runs_in(self):
        for given, wanted in ((PARENT, PARENT), ("nonsense\nHost: x", None)):
            ran = subprocess.run([STINT, "add", "x", "--json"], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                                 env=environment(self.server.home, STINT_HOME=self.server.home, TRACEPARENT=given))
            self.assertEqual(json.loads(ran.stdout)["task"].get("metadata", {}).get("traceparent"), wanted, ran.stderr)


class Child(test_worker.Case):
    def test_each_attempt_has_a_span_of_its_own_in_the_trace_of_its_task(self):
        self.worker({"x": test_worker.sh("echo $TRACEPARENT >> $DIR/seen; test $STINT_ATTEMPT = 2", env={"DIR": self.folder}, write=[self.folder])})
        self.create(id="t", metadata={"traceparent": PARENT})
        self.is_in("t", "done")
        first, second = self.read("seen").split()
        for seen in (first, second):
            self.assertRegex(seen, f"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        self.assertEqual(len({first, second, PARENT}), 3)

    def test_a_task_of_no_trace_sets_no_variable(self):
        self.worker({"x": test_worker.sh('test -z "${TRACEPARENT+x}"')})
        self.create(id="t")
        self.create(id="u", metadata={"traceparent": "nonsense"})
        self.is_in("t", "done")
        self.is_in("u", "done")


class Spans(test_notify.NotifyCase):
    def collect(self, **fields):
        collector = self.receiver("collector")
        self.configure({"collector": {"url": collector.url, "allow": ["127.0.0.1"], "format": "otlp", **fields}})
        return collector

    def spans(self, collector, count):
        """So many of them, by name; the same one may come twice."""
        def found():
            return [span for message in collector.messages for resource in message.json["resourceSpans"] for scope in resource["scopeSpans"]
                    for span in scope["spans"]]

        self.wait_until(lambda: len(found()) >= count, what=lambda: f"{len(found())} of {count} spans")
        return found()

    def judge(self, collector):
        if not os.path.exists(JUDGE):
            self.skipTest("opentelemetry-proto is not here: ./dev check fetches it from PyPI where it can")
        for message in collector.messages:
            judged = subprocess.run([JUDGE, os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge_otlp.py")], input=message.body,
                                    capture_output=True, timeout=HANG_S)
            self.assertEqual(judged.returncode, 0, judged.stderr)

    def attributes(self, span):
        return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}

    def live(self, id="t", **fields):
        """Two attempts, the first of which fails."""
        self.create(id=id, **fields)
        self.report("fail", self.claim()[0], error={"code": "EXECUTION_ERROR", "message": "no", "retryAt": 1})
        self.wait_until(lambda: self.client.get("/api/tasks/" + id).json["state"] == "ready", what="it is not ready again")
        self.report("complete", self.claim()[0])

    def test_a_task_and_its_attempts_are_spans_of_the_producers_trace(self):
        collector = self.collect()
        self.start()
        self.live(metadata={"traceparent": PARENT}, title="Fix it")
        first, second, task = self.spans(collector, 3)
        self.assertEqual({span["traceId"] for span in (first, second, task)}, {TRACE})
        self.assertEqual((task["parentSpanId"], first["parentSpanId"], second["parentSpanId"]), (SPAN, task["spanId"], task["spanId"]))
        self.assertEqual(len({span["spanId"] for span in (first, second, task)}), 3)
        self.assertEqual([span["status"]["code"] for span in (first, second, task)], [2, 1, 1])
        self.assertEqual(first["status"]["message"], "no")
        told = self.attributes(first)
        self.assertEqual((told["stint.task.id"], told["stint.task.title"], told["stint.attempt"], told["error.type"], told["stint.event"]),
                         ("t", "Fix it", "1", "EXECUTION_ERROR", "task.failed"))
        events = {event["type"]: event for event in self.events() if event.get("task") == "t"}
        nano = 1000000
        self.assertEqual((second["startTimeUnixNano"], second["endTimeUnixNano"]),
                         (str(events["task.claimed"]["time"] * nano), str(events["task.completed"]["time"] * nano)))
        self.assertEqual(task["startTimeUnixNano"], str(events["task.created"]["time"] * nano))
        self.judge(collector)

    @unittest.skipUnless(os.path.exists(COLLECTOR), "there is no collector here: ./dev collector builds it where Go can fetch its modules")
    def test_a_collector_that_is_built_from_its_own_modules_takes_them(self):
        process = subprocess.Popen([COLLECTOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate, timeout=HANG_S)
        url = "http://%s/v1/traces" % process.stdout.readline().strip()
        self.configure({"collector": {"url": url, "allow": ["127.0.0.1"], "format": "otlp"}})
        self.start()
        self.live(metadata={"traceparent": PARENT}, title="Fix it")
        taken = [process.stdout.readline().split(None, 3) for _ in range(3)]
        self.assertEqual({trace for trace, *_ in taken}, {TRACE})
        self.assertEqual([status for _, _, status, _ in taken], ["Error", "Ok", "Ok"])

    def test_without_a_producers_trace_a_task_has_one_of_its_own(self):
        collector = self.collect()
        self.start()
        self.live("t")
        self.create(id="u")
        self.client.post("/api/tasks/u/cancel")
        *attempts, task, other = self.spans(collector, 4)
        self.assertEqual([span["traceId"] for span in attempts], [task["traceId"]] * 2)
        self.assertNotIn("parentSpanId", task)
        self.assertNotEqual(other["traceId"], task["traceId"])
        self.assertEqual((other["status"]["code"], self.attributes(other)["stint.state"]), (2, "cancelled"))
        self.judge(collector)

    def test_what_the_producer_does_not_sample_is_not_exported(self):
        collector = self.collect()
        self.start()
        self.live("quiet", metadata={"traceparent": PARENT[:-1] + "0"})
        self.live("loud")
        self.assertEqual({self.attributes(span)["stint.task.id"] for span in self.spans(collector, 3)}, {"loud"})

    def test_a_span_that_is_sent_twice_is_the_same_span(self):
        collector = self.collect()
        collector.answers = [None]  # it is killed while the first one is on its way
        self.start()
        self.live()
        self.wait_for(collector, 1)
        self.kill()
        collector.let_go()
        self.start()
        spans = self.spans(collector, 4)
        self.assertEqual(spans[0], spans[1])
        self.assertEqual(len({span["spanId"] for span in spans}), 3)

    def test_the_span_of_an_attempt_is_the_one_that_its_child_was_told(self):
        collector = self.collect()
        self.start()
        self.worker = test_worker.Worker(self.server, {"x": test_worker.sh("echo \\\"$TRACEPARENT\\\"")})
        self.addCleanup(self.worker.end)
        self.create(id="t", queue="q", executor="x", metadata={"traceparent": PARENT})
        attempt, task = self.spans(collector, 2)
        self.assertEqual(self.client.get("/api/tasks/t").json["result"], f"00-{TRACE}-{attempt['spanId']}-01")

    def test_webhooks_carry_the_trace(self):
        ops = self.receiver()
        self.configure({"ops": self.target(events=["task.completed"])})
        self.start()
        self.create(id="t", metadata={"traceparent": PARENT})
        self.report("complete", self.claim()[0])
        self.create(id="u")
        self.report("complete", self.claim()[0])
        self.wait_for(ops, 2)
        self.assertEqual([message.json.get("traceparent") for message in ops.messages], [PARENT, None])
        self.assertNotIn("trace", ops.messages[0].json["data"])

    def test_events_have_no_place_beside_spans(self):
        self.collect(events=["task.failed"])
        ran = self.ask()
        self.assertEqual(ran.returncode, 78)
        self.assertIn('format otlp sends the spans of every task; leave out "events"', ran.stderr)


if __name__ == "__main__":
    unittest.main()
