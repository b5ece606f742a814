"""The dashboard's files: from the program, from a directory, and a build that has none."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from hang import HANG_S
import stintd

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = {"Accept": "text/html"}


class Directory(stintd.Case):
    """stintd --ui-dir: for those who change the page."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="stint-ui-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "index.html").write_text("<html>first</html>")
        (self.dir / "app.js").write_text("first();")
        (self.dir / "notes.txt").write_text("not for browsers")
        (self.dir.parent / (self.dir.name + ".js")).write_text("beside();")
        self.addCleanup(os.unlink, self.dir.parent / (self.dir.name + ".js"))
        self.flags = ("--ui-dir", str(self.dir))
        super().setUp()

    def page(self, path, **headers):
        client = self.server.client(token="")
        try:
            return client.call("GET", path, headers=headers, judged=False)
        finally:
            client.close()

    def test_files_are_read_anew_for_each_request(self):
        self.assertEqual(self.page("/", **PAGE).body, b"<html>first</html>")
        (self.dir / "index.html").write_text("<html>second</html>")
        (self.dir / "app.js").write_text("second();")
        self.assertEqual(self.page("/", **PAGE).body, b"<html>second</html>")
        reply = self.page("/assets/app.js")
        self.assertEqual([reply.status, reply.headers["Content-Type"], reply.body], [200, "text/javascript; charset=utf-8", b"second();"])
        self.assertNotIn("immutable", reply.headers.get("Cache-Control", ""))

    def test_nothing_else_is_served(self):
        name = self.dir.name + ".js"
        for path in ("../" + name, "%2e%2e/" + name, "..%2f" + name, "notes.txt", "missing.js", "", ".", "/etc/passwd"):
            self.assertIn(self.page("/assets/" + path).status, (400, 401, 404), path)

    def test_the_page_keeps_its_policy(self):
        policy = self.page("/", **PAGE).headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'; script-src 'self'", policy)

    def test_without_an_index_the_page_says_what_is_missing(self):
        (self.dir / "index.html").unlink()
        self.assertIn(b"the directory of --ui-dir has no index.html", self.page("/", **PAGE).body)


class Program(stintd.Case):
    def test_what_a_file_with_a_hash_in_its_name_says_never_changes(self):
        client = self.server.client(token="")
        page = client.call("GET", "/", headers=PAGE, judged=False)
        if b"is not part of this build" in page.body:
            self.skipTest("stintd was built without the dashboard")
        html = gzip.decompress(page.body).decode()
        for name in re.findall(r"assets/([\w.-]+)", html):
            reply = client.call("GET", "/assets/" + name, judged=False)
            self.assertEqual(reply.status, 200, name)
            self.assertIn("immutable", reply.headers["Cache-Control"], name)
            self.assertEqual(reply.headers["Content-Encoding"], "gzip", name)
            self.assertGreater(len(gzip.decompress(reply.body)), 0, name)
        client.close()


class Build(unittest.TestCase):
    def build(self, path, modules):
        """tools/build-site with the programs of that directory alone: where Debian's Python is, node is too."""
        out = tempfile.mkdtemp(prefix="stint-site-")
        self.addCleanup(shutil.rmtree, out, ignore_errors=True)
        done = subprocess.run([sys.executable, str(TOP / "tools/build-site"), str(TOP / "src/web"), modules, out + "/table.c", out + "/site"],
                              env={"PATH": path, "HOME": out}, capture_output=True, text=True, timeout=HANG_S, check=False)
        return done, pathlib.Path(out, "table.c").read_text() if os.path.exists(out + "/table.c") else ""

    def test_without_node_everything_else_is_built_and_the_page_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as empty:
            done, table = self.build(empty, empty)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no dashboard: it was built without node and npm", done.stderr)
        self.assertIn('const char site_missing[] = "it was built without node and npm', table)
        self.assertIn("const struct embedded_file site_files[] = {\n\t{0},\n};", table)

    def test_an_old_node_is_named(self):
        with tempfile.TemporaryDirectory() as programs:
            for name, says in (("node", "v16.20.2"), ("npm", "8.0.0")):
                path = pathlib.Path(programs, name)
                path.write_text(f"#!/bin/sh\necho {says}\n")
                path.chmod(0o755)
            done, table = self.build(programs + ":/bin", programs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it was built with node v16.20.2, and needs 18 or newer", table)


if __name__ == "__main__":
    unittest.main()
