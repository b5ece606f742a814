#!/usr/bin/env python3
"""Run a test of this directory as an ordinary user: as_nobody.py PROGRAM [ARGUMENT...]

For root only; everybody else is an ordinary user already. What the test needs is copied to where that user can reach it.
"""
import os
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def main():
    if os.geteuid() != 0:
        print("skipped: not root, so the test without this has done it")
        return 77
    with tempfile.TemporaryDirectory(prefix="stint-nobody-") as place:
        os.chmod(place, 0o755)
        env = {"PATH": os.environ["PATH"], "TMPDIR": "/tmp"}
        for name in ("STINT_SHIM", "STINT_EXEC_CHILD", "STINT_EXEC_HOSTILE", "STINT_EXEC_SUPERVISOR",
                     "STINT_EXEC_LATE_SHIM"):
            env[name] = shutil.copy(os.environ[name], place)
        program = shutil.copy(sys.argv[1], place)
        return subprocess.run([program, *sys.argv[2:]], env=env, cwd="/", preexec_fn=become_nobody).returncode


sys.exit(main())
