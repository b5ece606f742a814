"""spec/openapi.json against the real server: every example is said, and what comes back is what the file shows.

A story in x-replay is told to a server of its own, step by step. A step is a request line, with headers if it needs
some, and either the name of an example or a body that only prepares what follows. The example of that name is the body
of the request, if the operation has one, and the reply: there is exactly one under that name. The reply must be equal
to it, but for what the schema marks with x-varies (times, secrets): such a value must only be of its kind, and where a
later step uses the value of the example, what the server really gave out takes its place.

  test_openapi.py --record    put the replies of this server into the file as its examples; then read the diff
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import stintd
from stintd import openapi

API_TESTS = os.environ.get("STINT_API_TESTS", "").split()
RECORDING = "--record" in sys.argv


def schemas_of(schema):
    """The schema and those that it is made of."""
    yield schema
    for key in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(key, []):
            yield from schemas_of(each)


def inner(schemas, *path):
    """What these schemas say of a member or an element."""
    for schema in schemas:
        for key in path:
            schema = schema.get(key, {})
            if not isinstance(schema, dict):
                break
        else:
            yield from schemas_of(schema)


def varies(schemas):
    return any(schema.get("x-varies") for schema in schemas)


def is_time(schemas):
    """A moment: two of them may be the same one day and not the next."""
    return any(schema.get("format") == "date-time" for schema in schemas)


class Story:
    """One telling: knows what the values of the examples stand for this time."""

    def __init__(self, contract, server):
        self.contract, self.server = contract, server
        self.client = server.client()
        self.meaning = {"http://127.0.0.1:8787": server.url}

    def meant(self, value):
        """The value with what this server gave out in place of what the examples show."""
        if isinstance(value, dict):
            return {key: self.meant(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.meant(each) for each in value]
        if isinstance(value, str):
            for shown, given in sorted(self.meaning.items(), key=lambda each: -len(each[0])):
                value = value.replace(shown, given)
        return value

    def examples(self, step):
        """The media of the request and of the reply that have the example, and the status of the reply."""
        method, _, url = step["request"].partition(" ")
        operation, _ = self.contract.find(method, url.partition("?")[0])
        name = step["example"]
        said = [media for media in (operation.body or {}).get("content", {}).values()
                if name in media.get("examples", {})]
        (status, kind, media), = [(int(status), kind, media) for status, response in operation.responses.items()
                                  for kind, media in response.get("content", {}).items()
                                  if name in media.get("examples", {})]
        return said[0]["examples"][name]["value"] if said else None, status, kind, media

    def tell(self, step):
        method, _, url = self.meant(step["request"]).partition(" ")
        headers = self.meant(step.get("headers", {}))
        if "example" not in step:
            reply = self.client.call(method, url, self.meant(step["body"]), headers)
            if reply.status >= 300:
                raise AssertionError(f"{step['request']} prepares nothing: {reply.status} {reply.body}")
            return
        body, status, kind, media = self.examples(step)
        if kind == "text/event-stream":
            wanted = media["examples"][step["example"]]["value"]
            given = self.read_stream(url, headers, (wanted or "data:data:").count("data:"))
        else:
            reply = self.client.call(method, url, self.meant(body), headers)
            if reply.status != status:
                raise AssertionError(f"{step['request']} ({step['example']}): {reply.status} {reply.body}")
            given = reply.json if kind.endswith("json") else reply.body.decode()
        self.compare(step, kind, media, given)

    def read_stream(self, url, headers, count):
        headers = {"Authorization": "Bearer " + self.server.token, **headers}
        connection = self.client.open()
        connection.request("GET", url, headers=headers)
        stream = connection.getresponse()
        text = ""
        while text.count("data:") < count or not text.endswith("\n\n"):
            line = stream.fp.readline().decode()
            if not line:
                raise ConnectionResetError("the stream ended")
            text += line
        connection.close()
        return text

    def compare(self, step, kind, media, given):
        example = media["examples"][step["example"]]
        if kind == "text/event-stream":
            schemas, wanted = [self.inline({"type": "array", "items": media["x-data"]})], pieces(example["value"])
            given_value = pieces(given)
        else:
            schemas, wanted, given_value = list(schemas_of(self.inline(media["schema"]))), example["value"], given
        if RECORDING:
            merged = self.merge(schemas, wanted, given_value)
            example["value"] = unpieces(merged, given) if kind == "text/event-stream" else merged
            wanted = merged
        self.equal(schemas, wanted, given_value, f"{step['request']} ({step['example']})")
        wrong = self.contract.errors(media["schema"], example["value"])
        if wrong:
            raise AssertionError(f"{step['request']}: the example {step['example']} is not of its schema: {wrong}")

    def inline(self, schema):
        return openapi.inline(self.contract.document, schema)

    def equal(self, schemas, wanted, given, where):
        if varies(schemas):
            if type(wanted) is not type(given):
                raise AssertionError(f"{where}: {given!r} is not of the kind of {wanted!r}")
            stands_for = isinstance(wanted, str) and "\n" not in wanted and not is_time(schemas)
            if stands_for and self.meaning.setdefault(wanted, given) != given:
                raise AssertionError(f"{where}: {wanted!r} stood for {self.meaning[wanted]!r} before")
        elif isinstance(wanted, dict) and isinstance(given, dict) and wanted.keys() == given.keys():
            for key in wanted:
                found = list(inner(schemas, "properties", key))
                self.equal(found, wanted[key], given[key], f"{where}/{key}")
        elif isinstance(wanted, list) and isinstance(given, list) and len(wanted) == len(given):
            found = list(inner(schemas, "items"))
            for i, (one, other) in enumerate(zip(wanted, given)):
                self.equal(found, one, other, f"{where}/{i}")
        elif (type(wanted), self.meant(wanted)) != (type(given), given):
            raise AssertionError(f"{where}: the file shows {wanted!r}, the server said {given!r}")

    def merge(self, schemas, old, given):
        """What was given, with the old values where values vary: so that a recording changes what has changed."""
        back = {value: key for key, value in self.meaning.items()} if isinstance(given, str) else {}
        if varies(schemas):
            return back.get(given, given) if type(old) is not type(given) else old
        if isinstance(given, dict):
            old = old if isinstance(old, dict) else {}
            return {key: self.merge(list(inner(schemas, "properties", key)), old.get(key), each)
                    for key, each in given.items()}
        if isinstance(given, list):
            old = old if isinstance(old, list) and len(old) == len(given) else [None] * len(given)
            return [self.merge(list(inner(schemas, "items")), *pair) for pair in zip(old, given)]
        return back.get(given, given)


def pieces(text):
    """The data of a stream's events."""
    return [json.loads(line[len("data: "):]) for line in (text or "").splitlines() if line.startswith("data: ")]


def unpieces(events, text):
    """The stream with other data."""
    events = iter(events)
    return "".join("data: " + json.dumps(next(events), ensure_ascii=False, separators=(",", ":")) + "\n"
                   if line.startswith("data: ") else line for line in text.splitlines(keepends=True))


class Replay(unittest.TestCase):
    def test_every_story_goes_as_the_file_says(self):
        contract = stintd.contract()
        for story in contract.document["x-replay"]:
            with self.subTest(story["story"]):
                server = stintd.Server()
                telling = Story(contract, server)
                try:
                    for step in story["steps"]:
                        telling.tell(step)
                finally:
                    telling.client.close()
                    server.end()
        if RECORDING:
            openapi.PATH.write_text(openapi.dump(contract.document), encoding="utf-8")


class Served(unittest.TestCase):
    def test_the_server_tells_the_contract_as_it_is(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        client = server.client()
        self.addCleanup(client.close)
        reply = client.get("/api/openapi.json")
        self.assertEqual(reply.body, openapi.PATH.read_bytes())
        again = client.call("GET", "/api/openapi.json", headers={"If-None-Match": reply.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))
        self.assertIn("no-cache", again.headers["Cache-Control"])


class Judge(unittest.TestCase):
    """The judge of all replies can say no."""

    def judged(self, *reply, **sent):
        stintd.contract().judge(*reply, **sent)

    def refuses(self, words, *reply, **sent):
        with self.assertRaisesRegex(openapi.Broken, words):
            self.judged(*reply, **sent)

    def test_a_reply_that_is_not_described_is_noticed(self):
        json_type = {"Content-Type": "application/json"}
        self.judged("GET", "/livez", 200, json_type, b'{"status":"ok"}')
        self.refuses("status", "GET", "/livez", 204, {}, b"")
        self.refuses("Additional properties", "GET", "/livez", 200, json_type, b'{"status":"ok","x":1}')
        self.refuses("no JSON", "GET", "/livez", 200, json_type, b"{")
        self.refuses("type text/html", "GET", "/livez", 200, {"Content-Type": "text/html"}, b'{"status":"ok"}')
        self.refuses("ETag is not described", "GET", "/livez", 200, {**json_type, "ETag": '"1"'}, b'{"status":"ok"}')
        self.refuses("no such operation", "GET", "/nowhere", 200, json_type, b"{}")
        self.refuses("body after HEAD", "HEAD", "/livez", 200, json_type, b'{"status":"ok"}')

    def test_a_problem_has_a_code_of_its_reply_and_the_headers_that_belong_to_it(self):
        kind = {"Content-Type": "application/problem+json"}

        def problem(status, code):
            return json.dumps({"type": "urn:stint:problem:" + code, "title": "x", "status": status,
                               "code": code}).encode()

        self.judged("GET", "/livez", 403, kind, problem(403, "forbidden"))
        self.refuses("not among those", "GET", "/livez", 403, kind, problem(403, "not_found"))
        self.refuses("says 404", "GET", "/livez", 403, kind, problem(404, "forbidden"))
        self.refuses("WWW-Authenticate is missing", "GET", "/api/tasks", 401, kind, problem(401, "unauthorized"))
        self.refuses("without Allow", "DELETE", "/livez", 405, kind, problem(405, "method_not_allowed"))

    def test_what_is_accepted_must_be_allowed(self):
        reply = ("POST", "/api/queues/q/pause", 200, {"Content-Type": "application/json"},
                 b'{"name":"q","state":"paused"}')
        self.judged(*reply, sent=b"{}")
        self.refuses("what was accepted", *reply, sent=b'{"reason":"x"}')
        self.refuses("parameter x", "GET", "/livez?x=1", 200, {"Content-Type": "application/json"},
                     b'{"status":"ok"}')


@unittest.skipUnless(API_TESTS, "STINT_API_TESTS names no programs")
class Dialogues(unittest.TestCase):
    """The replies in the unit tests of src/api keep the contract too."""

    def test_every_reply_in_the_tests_of_the_api_is_as_the_file_says(self):
        count = 0
        with tempfile.TemporaryDirectory() as directory:
            for program in API_TESTS:
                path = os.path.join(directory, os.path.basename(program))
                subprocess.run([program], check=True, capture_output=True, env={**os.environ, "STINT_REPLIES": path})
                with open(path, encoding="utf-8") as file:
                    for line in file:
                        reply = json.loads(line)
                        headers = {name: str(value) for name, value in reply["headers"].items()}
                        count += 1
                        with self.subTest(program=os.path.basename(program), url=reply["url"]):
                            stintd.contract().judge(
                                reply["method"], reply["url"], reply["status"], headers,
                                reply["body"].encode(), reply["sent"].encode())
        self.assertGreater(count, 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "Replay"] if RECORDING else sys.argv)
