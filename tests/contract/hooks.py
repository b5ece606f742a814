"""What made-up requests must not do by chance: wait for work or news that nobody will bring, use a key or an id that was used
before, wait for tasks that are not there, or leave out what only certain credentials need not say.

What the contract does not allow is sent as it is.
"""
import itertools
import re

import schemathesis

WAIT_MS_MAX = 60000
REPORTS = re.compile(r"/api/tasks/\{id\}/(progress|complete|review|fail|block|release|ask|log)$")
WORKFLOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")
PLACE = re.compile(r"(f-[0-9a-z]+|o-[0-9a-z]+-[0-9a-z]+-[0-9a-z-]+)\Z")
keys = itertools.count(1)


def is_list_of_ids(value):
    return isinstance(value, list) and len(value) <= 100 and all(
        isinstance(each, str) and 0 < len(each) <= 128 and each.isprintable() for each in value)


def of_nobody(body):
    """Only the work on a task may name it as a parent, a group that is waited for must be able to end, and what is about a key needs one."""
    groups, parent = body.get("blockedByGroups"), body.get("parent")
    if is_list_of_ids(groups) and len(groups) <= 10:
        body = {**body, "blockedByGroups": []}
    if isinstance(parent, str) and ID.match(parent):
        body = {name: value for name, value in body.items() if name != "parent"}
    long = body.get("uniqueForMs")
    if body.get("uniqueKey") is None and isinstance(long, (int, float)) and 1 <= long <= 31622400000 and long == int(long):
        body = {name: value for name, value in body.items() if name != "uniqueForMs"}
    if body.get("uniqueKey") is None and body.get("onConflict") in ("existing", "reject", "replace"):
        body = {name: value for name, value in body.items() if name != "onConflict"}
    return body


@schemathesis.hook
def before_call(context, case, **_):
    body = case.body
    wait = body.get("waitMs") if isinstance(body, dict) else None
    if isinstance(wait, (int, float)) and not isinstance(wait, bool) and 0 < wait <= WAIT_MS_MAX:
        case.body = {**body, "waitMs": 1 if wait == int(wait) else wait}
    asked = str((case.query or {}).get("waitMs", ""))
    if asked.isdecimal() and asked.isascii() and 0 < int(asked) <= WAIT_MS_MAX:
        case.query["waitMs"] = 1
    if is_list_of_ids(body.get("blockedBy") if isinstance(body, dict) else None):
        case.body = {**case.body, "blockedBy": []}
    if case.path == "/api/tasks" and PLACE.match(str((case.query or {}).get("after", ""))):
        del case.query["after"]  # a place in a list is as it was given out
    if case.method == "POST" and case.path == "/api/tasks" and isinstance(case.body, dict):
        case.body = of_nobody(case.body)
    if isinstance(body, dict) and isinstance(body.get("workflow"), str) and WORKFLOW.match(body["workflow"]):
        case.body = {**case.body, "workflow": "autopilot"}  # no schema says which of them the server has
    if isinstance((case.query or {}).get("workflow"), str) and WORKFLOW.match(case.query["workflow"]):
        case.query["workflow"] = "autopilot"
    if case.method == "POST" and REPORTS.match(case.path) and isinstance(case.body, dict):
        case.body = {"workerId": "w1", "fence": "1", **{key: each for key, each in case.body.items()
                                                        if each is not None or key not in ("workerId", "fence")}}
    if case.path == "/api/tasks/{id}/events" and isinstance(body, dict) and isinstance(body.get("id"), str) \
            and 0 < len(body["id"]) < 200:
        case.body = {**case.body, "id": f"{body['id']} {next(keys)}"}
    if case.meta and getattr(case.meta.phase.data, "parameter", None) == "Authorization":
        return  # that header is left out, and stays so only if the others are not touched
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and key.strip() and key.isprintable():
        number = str(next(keys))  # a key as long as it may be stays so
        case.headers["Idempotency-Key"] = f"{key} {number}" if len(key) < 200 else key[:-len(number)] + number
