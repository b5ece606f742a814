#!/usr/bin/env python3
"""Every promise of docs/isolation.md names the tests that fail if it is broken, and these exist: check_manual.py

A promise is a line of a table whose last column is "tested by". A test is a function that cmocka is given in tests/exec/*.c, or one
of tests/e2e/*.py whose name begins with test_; a file of the repository will do where a rule is checked by a tool.
"""
import glob
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROMISES_LEAST = 60  # fewer: the tables were not found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tests():
    found = set()
    for path in glob.glob(os.path.join(TOP, "tests/exec/*.c")):
        found |= set(re.findall(r"cmocka_unit_test\w*\(\s*(\w+)", read(path)))
    for path in glob.glob(os.path.join(TOP, "tests/e2e/*.py")):
        found |= set(re.findall(r"^    def (test_\w+)\(", read(path), re.M))
    return found


def promises(text):
    """(line number, what is promised, the names in its last column)"""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells[-1] == "tested by":
            inside = True
        elif inside and set(cells[0]) != {"-"}:
            yield number, cells[0], re.findall(r"`([^`]+)`", cells[-1])


def main():
    known, wrong, count = tests(), [], 0
    for number, what, names in promises(read(os.path.join(TOP, "docs/isolation.md"))):
        count += 1
        missing = [name for name in names if name not in known and not ("/" in name and os.path.exists(os.path.join(TOP, name)))]
        if not names or missing:
            wrong.append("docs/isolation.md:%d: %s: %s" % (number, what, "no such test: " + ", ".join(missing) if missing else "no test"))
    if count < PROMISES_LEAST:
        wrong.append("docs/isolation.md has %d promises; at least %d were expected" % (count, PROMISES_LEAST))
    print("\n".join(wrong) or "%d promises, each with a test" % count)
    return 1 if wrong else 0


sys.exit(main())
