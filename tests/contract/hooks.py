"""What made-up requests must not do by chance: wait for work that nobody will bring, use a key that was used before, or
wait for tasks that are not there.

What the contract does not allow is sent as it is.
"""
import itertools

import schemathesis

WAIT_MS_MAX = 60000
keys = itertools.count(1)


def is_list_of_ids(value):
    return isinstance(value, list) and len(value) <= 100 and all(
        isinstance(each, str) and 0 < len(each) <= 128 and each.isprintable() for each in value)


@schemathesis.hook
def before_call(context, case, **_):
    body = case.body
    wait = body.get("waitMs") if isinstance(body, dict) else None
    if isinstance(wait, (int, float)) and not isinstance(wait, bool) and 0 < wait <= WAIT_MS_MAX:
        case.body = {**body, "waitMs": 1 if wait == int(wait) else wait}
    if is_list_of_ids(body.get("blockedBy") if isinstance(body, dict) else None):
        case.body = {**case.body, "blockedBy": []}
    if case.meta and getattr(case.meta.phase.data, "parameter", None) == "Authorization":
        return  # that header is left out, and stays so only if the others are not touched
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and key.strip() and key.isprintable() and len(key) < 200:
        case.headers["Idempotency-Key"] = f"{key} {next(keys)}"
