"""Requests made up from spec/openapi.json, good ones and bad ones, against a fresh server: run.py SCHEMATHESIS ARGS...

What may be asked of the contract in general is in schemathesis.toml beside this. The server is on loopback, with a home
of its own that is removed afterwards; if it dies, or a sanitizer complains, that is a failure too.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "e2e"))
import stintd


def main():
    # wrong credentials are among what is made up, and must not bar the others
    server = stintd.Server("--set", "limits.authFailuresPerS=1000")
    try:
        status = subprocess.run(
            [os.path.abspath(sys.argv[1]), "--config-file", HERE / "schemathesis.toml", "run", stintd.openapi.PATH,
             "--url", server.url, "--header", "Authorization: Bearer " + server.token, *sys.argv[2:]],
            env={**os.environ, "SCHEMATHESIS_HOOKS": str(HERE / "hooks.py")}, stdin=subprocess.DEVNULL,
            cwd=server.home).returncode
        if server.process.poll() is not None or server.stop() != 0 or "Sanitizer" in server.said():
            print("the server did not survive it:\n" + server.said())
            status = 1
    finally:
        server.end()
    return status


sys.exit(main())
