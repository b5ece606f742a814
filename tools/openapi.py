"""The contract in spec/openapi.json, for those who check it: its form, its operations, and whether a reply keeps it.

Extensions of ours in the file:
  x-scope      of an operation: what a credential must be allowed, one scope or any of a list (see src/api/routes.c)
  x-body-max   of an operation: the bytes that its body may have
  x-codes      of a response: the codes that a problem may have there
  x-anywhere   of a response in components: the statuses with which any request may be refused so
  x-varies     of a schema: the value differs from run to run, so an example shows what it looks like
  x-data       of a stream: the schema of what stands in each event's data
  x-replay     of the document: stories; see tests/e2e/test_openapi.py
"""
import json
import pathlib
import re
import urllib.parse

TOP = pathlib.Path(__file__).resolve().parent.parent
PATH = TOP / "spec/openapi.json"
METHODS = ("get", "put", "post", "patch", "delete")
WIDTH = 112
# Headers of replies that mean something here; the others (lengths, caching, connections) are HTTP's own.
HEADERS = ("Location", "ETag", "Link", "Allow", "Retry-After", "WWW-Authenticate", "Stint-Seq")


def load(path=PATH):
    with open(path, encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=unrepeated)


def unrepeated(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} is repeated")
    return dict(pairs)


# ---- the form of the file ---------------------------------------------------------------------------


def dump(value):
    return put(value, 0, 0, False) + "\n"


def put(value, depth, used, fills):
    """JSON with an indent of two. What fits on a line stands on one; members of examples share lines."""
    line = json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict) and value:
        line = "{ " + line[1:-1] + " }"
    if not isinstance(value, (dict, list)) or not value or (used + len(line) <= WIDTH and depth > 1):
        return line
    is_list = isinstance(value, list)
    members = [(None, each) for each in value] if is_list else value.items()
    inner, lines = "  " * (depth + 1), []
    for key, each in members:
        name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
        text = name + put(each, depth + 1, len(inner) + len(name) + 1, fills or (key == "value"))
        if (fills or is_list) and lines and "\n" not in text + lines[-1] and not isinstance(each, dict) \
                and len(inner + lines[-1]) + len(text) + 3 <= WIDTH:
            lines[-1] += ", " + text
        else:
            lines.append(text)
    opened, closed = "[]" if is_list else "{}"
    return opened + "\n" + ",\n".join(inner + each for each in lines) + "\n" + "  " * depth + closed


# ---- what it says -----------------------------------------------------------------------------------


def resolve(document, node):
    """What a reference stands for; anything else is itself."""
    while isinstance(node, dict) and "$ref" in node:
        target = document
        if not node["$ref"].startswith("#/"):
            raise KeyError(node["$ref"])
        for part in node["$ref"][2:].split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def inline(document, schema):
    """The schema without references: they are looked up once, not with every reply."""
    schema = resolve(document, schema)
    if isinstance(schema, dict):
        return {key: value if key in ("enum", "const", "default") else inline(document, value)
                for key, value in schema.items()}
    return [inline(document, each) for each in schema] if isinstance(schema, list) else schema


class Operation:
    def __init__(self, document, method, path, item):
        self.method, self.path, self.node = method.upper(), path, item[method]
        self.id = self.node.get("operationId")
        self.pattern = re.compile("/".join(
            "[^/]+" if part.startswith("{") else re.escape(part) for part in path.split("/")))
        self.parameters = [resolve(document, each) for each in
                           item.get("parameters", []) + self.node.get("parameters", [])]
        self.responses = {status: resolve(document, each) for status, each in self.node["responses"].items()}
        self.body = resolve(document, self.node.get("requestBody"))

    def __str__(self):
        return f"{self.method} {self.path}"


def operations(document):
    found = [Operation(document, method, path, item)
             for path, item in document["paths"].items() for method in METHODS if method in item]
    # as in the table of the server: what is spelt out comes before what stands for anything
    return sorted(found, key=lambda each: each.path.count("{"))


# ---- does a reply keep it? --------------------------------------------------------------------------


class Broken(AssertionError):
    """A reply, or what was accepted, is not as the contract says."""


class Contract:
    """Judges replies. Validators are made once, when they are first needed."""

    def __init__(self, document=None):
        from jsonschema import Draft202012Validator  # not everyone who reads the file needs it
        self.validator_of = Draft202012Validator
        self.document = document or load()
        self.operations = operations(self.document)
        self.validators = {}
        self.problem = {"$ref": "#/components/schemas/Problem"}
        # doors of older systems: what is refused under their paths has their shape
        self.doors = {"/api/workqueue/": {"$ref": "#/components/schemas/ItemRefusal"},
                      "/api/v1/worker/orchestrator/": {"$ref": "#/components/schemas/ConnectorRefusal"}}
        self.anywhere = {status for each in self.document["components"]["responses"].values()
                         for status in each.get("x-anywhere", [])}

    def find(self, method, path):
        """The operation, or None; and whether the path has any."""
        method, known = "GET" if method == "HEAD" else method, False
        for operation in self.operations:
            if operation.pattern.fullmatch(path):
                if operation.method == method:
                    return operation, True
                known = True
        return None, known

    def errors(self, schema, value):
        """What is wrong with the value, in a few sentences."""
        validator = self.validators.get(id(schema))
        if validator is None:
            validator = self.validators[id(schema)] = self.validator_of(inline(self.document, schema))
        if validator.is_valid(value):
            return []
        return ["%s: %s" % ("/".join(map(str, error.absolute_path)) or "it", error.message[:300])
                for error in list(validator.iter_errors(value))[:5]]

    def judge(self, method, url, status, headers, body, sent=None):
        """Raise Broken unless this reply, and what was sent if it was accepted, are as the contract says."""
        path, _, query = url.partition("?")
        operation, path_known = self.find(method, path)
        wrong = []
        if operation is None:
            self.judge_nowhere(method, path, path_known, status, headers, body, wrong)
        elif str(status) in operation.responses:
            self.judge_response(method, operation.responses[str(status)], status, headers, body, wrong)
            if status < 300:
                self.judge_accepted(operation, query, sent, wrong)
        elif str(status) in self.anywhere:
            self.judge_problem(None, status, body, wrong)
        else:
            wrong.append("that status is not among its replies")
        if wrong:
            raise Broken("spec/openapi.json: %s %s → %d: %s; the reply: %s" % (
                method, url, status, "; ".join(wrong), bytes(body[:2000])))

    def judge_nowhere(self, method, path, path_known, status, headers, body, wrong):
        allowed = (400, 401, 403, 405 if path_known else 404, 413, 421)
        if status not in allowed and str(status) not in self.anywhere:
            wrong.append("no such operation may answer so")
        elif status == 405 and "Allow" not in headers:
            wrong.append("a 405 without Allow")
        elif method != "HEAD" and headers.get("Content-Type") == "application/json":
            shapes = [{"schema": shape} for prefix, shape in self.doors.items() if path.startswith(prefix)]
            self.judge_body((shapes or [{"schema": self.problem}])[0], body, wrong)
        elif method != "HEAD":
            self.judge_problem(None, status, body, wrong)

    def judge_problem(self, codes, status, body, wrong):
        try:
            problem = json.loads(body)
        except ValueError as fault:
            wrong.append(f"the body is no JSON: {fault}")
            return
        wrong += self.errors(self.problem, problem)
        if not wrong and problem["status"] != status:
            wrong.append(f"the problem says {problem['status']}")
        if not wrong and codes is not None and problem["code"] not in codes:
            wrong.append(f"code {problem['code']} is not among those of this reply")

    def judge_response(self, method, response, status, headers, body, wrong):
        self.judge_headers(response.get("headers", {}), headers, wrong)
        content = response.get("content", {})
        given = headers.get("Content-Type")
        media = content.get(given) or content.get((given or "").split(";")[0])
        if method == "HEAD":
            if body:
                wrong.append("a body after HEAD")
        elif not content:
            if body:
                wrong.append("a body where there is none")
        elif media is None:
            wrong.append(f"the type {given} is not among its own")
        elif given == "application/problem+json":
            self.judge_problem(response.get("x-codes"), status, body, wrong)
        else:
            self.judge_body(media, body, wrong)

    def judge_body(self, media, body, wrong):
        if media["schema"].get("type") == "string":
            value = body.decode()
        else:
            try:
                value = json.loads(body)
            except ValueError as fault:
                wrong.append(f"the body is no JSON: {fault}")
                return
        wrong += self.errors(media["schema"], value)

    def judge_headers(self, described, headers, wrong):
        given = {name.lower(): value for name, value in headers.items()}
        for name in HEADERS:
            if name.lower() in given and name not in described:
                wrong.append(f"the header {name} is not described")
        for name, header in described.items():
            header = resolve(self.document, header)
            value = given.get(name.lower())
            if value is None:
                if header.get("required"):
                    wrong.append(f"the header {name} is missing")
                continue
            if header["schema"].get("type") == "integer" and value.isdigit():
                value = int(value)
            wrong += [f"the header {name}: {each}" for each in self.errors(header["schema"], value)]

    def judge_accepted(self, operation, query, sent, wrong):
        """What was accepted must have been allowed."""
        known = {each["name"] for each in operation.parameters if each["in"] == "query"}
        for name, _ in urllib.parse.parse_qsl(query, keep_blank_values=True):
            if name not in known:
                wrong.append(f"the parameter {name} was accepted and is not described")
        if not sent:
            if operation.body and operation.body.get("required"):
                wrong.append("no body was accepted, and one is required")
            return
        if operation.body is None:
            wrong.append("a body was accepted and is not described")
            return
        try:
            value = json.loads(sent)
        except ValueError:
            wrong.append("a body was accepted that is no JSON")
            return
        schema = operation.body["content"]["application/json"]["schema"]
        wrong += [f"what was accepted: {each}" for each in self.errors(schema, value)]
