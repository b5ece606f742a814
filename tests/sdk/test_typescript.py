"""The TypeScript SDK, compiled, packed and installed from its tarball. It needs the compiler in build/sdk: ./dev check puts it there."""
import os
import shutil
import subprocess
import tempfile
import unittest

from scenarios import TOP, Scenarios, lines_of_code

SDK = os.path.join(TOP, "sdk", "typescript")
MODULES = os.path.join(os.environ.get("STINT_SDK_TOOLS", os.path.join(TOP, "build", "sdk")), "node_modules")
made = tempfile.TemporaryDirectory(prefix="stint-sdk-")
PROJECT = os.path.join(made.name, "project")


def run(*command, where):
    done = subprocess.run(command, cwd=where, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError("%s: %s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


def setUpModule():
    if not os.path.exists(os.path.join(MODULES, ".bin", "tsc")) or not shutil.which("npm"):
        raise unittest.SkipTest("the TypeScript compiler cannot be had from npm (see make_sdk in dev)")
    source, tsc = os.path.join(made.name, "source"), os.path.join(MODULES, ".bin", "tsc")
    shutil.copytree(SDK, source)
    os.symlink(MODULES, os.path.join(made.name, "node_modules"))
    run(tsc, "-p", ".", where=source)
    tarball = run("npm", "pack", "--silent", "--offline", "--ignore-scripts", where=source).strip().splitlines()[-1]
    os.mkdir(PROJECT)
    with open(os.path.join(PROJECT, "package.json"), "w") as file:
        file.write('{"type": "module"}')
    run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", os.path.join(source, tarball), where=PROJECT)
    for file in (os.path.join(TOP, "tests", "sdk", "driver.ts"), os.path.join(SDK, "examples", "pages.ts")):
        shutil.copy(file, PROJECT)
    run(tsc, "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "--typeRoots", os.path.join(MODULES, "@types"), "driver.ts", "pages.ts",
        where=PROJECT)


def tearDownModule():
    made.cleanup()


class TypeScript(Scenarios):
    command = (["node", os.path.join(PROJECT, "driver.js")], {})


class Package(unittest.TestCase):
    def test_the_package_has_no_dependencies_and_only_what_was_compiled(self):
        installed = os.path.join(PROJECT, "node_modules")
        self.assertEqual([name for name in os.listdir(installed) if not name.startswith(".")], ["stint-sdk"])
        self.assertEqual(sorted(os.listdir(os.path.join(installed, "stint-sdk"))), ["README.md", "dist", "package.json"])

    def test_what_people_wrote_has_fewer_than_700_lines_of_code(self):
        self.assertLess(lines_of_code(os.path.join(SDK, "src"), "api.ts"), 700)


del Scenarios

if __name__ == "__main__":
    unittest.main()
