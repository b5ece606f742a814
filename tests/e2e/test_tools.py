"""Real tools behind isolation, as `stint run` runs them for a person whose toolchains lie in the home: each works twice, what it
keeps is found again, and nothing outside of the work dir and the cache of the executor changes.

What takes long runs only with STINT_NEWCOMER=1 in the environment."""
import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import unittest
import zipfile

from hang import HANG_S
from test_home import SYSTEM_PATH, Case

LONG = bool(os.environ.get("STINT_NEWCOMER"))
OWN_HOME = os.environ.get("HOME", "/nonexistent")


def says(*argv):
    """What a program says when this test runs it; None: it is not here, or does not work here."""
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL)
    except OSError:
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None


class Tools(Case):
    def setUp(self):
        super().setUp()
        self.path = []

    def start(self):
        return self.shell(path=self.path)

    def outside(self):
        """Everything that must stay as it is: the home without the work dir, and the trees that its links lead to."""
        seen = {}
        for top in [self.home] + [os.path.realpath(self.at(name)) for name in os.listdir(self.home) if os.path.islink(self.at(name))]:
            for folder, folders, files in os.walk(top):
                if folder == self.home:
                    folders.remove("work")
                for name in files + folders:
                    stat = os.lstat(os.path.join(folder, name))
                    seen[os.path.join(folder, name)] = stat.st_mtime_ns, stat.st_size, stat.st_ino
        return seen

    def cache(self, *names):
        return os.path.join(self.server.home, "cache/shell", *names)

    def twice(self, *argv, between=None):
        before = self.outside()
        for again in range(2):
            task = self.run_words(*argv)
            state = self.until(lambda: (lambda t: t if t["state"] in ("done", "failed", "blocked") else None)(self.client.get(
                "/api/tasks/" + task).json), "%s ends" % (argv,))
            self.assertEqual(state["state"], "done", state.get("error"))
            if not again and between:
                between()
        self.assertEqual(self.outside(), before)
        return state["result"]

    def wheel(self):
        """A package that needs nothing."""
        path = self.at("work/greeting-1.0-py3-none-any.whl")
        files = {"greeting.py": "def greet():\n    return 'hello of a wheel'\n",
                 "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
                 "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
        record = "".join("%s,sha256=%s,%d\n" % (name, base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode(), len(text))
                         for name, text in files.items()) + "greeting-1.0.dist-info/RECORD,,\n"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in {**files, "greeting-1.0.dist-info/RECORD": record}.items():
                archive.writestr(name, text)
        return path

    def python(self):
        """The Python of the person's pyenv if there is one, else the system's."""
        root = os.path.join(OWN_HOME, ".pyenv")
        if os.path.exists(os.path.join(root, "shims/python3")) and says(os.path.join(root, "shims/python3"), "-m", "ensurepip", "--version"):
            os.symlink(root, self.at(".pyenv"))
            self.path.append(".pyenv/shims")
        elif not says("/usr/bin/python3", "-m", "ensurepip", "--version"):
            self.skipTest("no Python here can make a virtual environment (python3-venv is not installed)")

    def test_python_makes_an_environment_and_installs_a_wheel(self):
        self.python()
        self.wheel()
        self.start()
        # pip in the environment takes long to make: without STINT_NEWCOMER it is run out of its own wheel
        wheels = "import ensurepip, glob, os; print((glob.glob(os.path.dirname(ensurepip.__file__) + '/_bundled/pip-*.whl') + " \
            "glob.glob('/usr/share/python-wheels/pip-*.whl'))[0])"
        make, pip = ("venv", "env/bin/pip") if LONG else ("venv --without-pip", 'env/bin/python "$(python3 -c "%s")"/pip' % wheels)
        self.assertEqual(self.twice("sh", "-ec", "python3 -m %s env >&2\n%s install --no-index --disable-pip-version-check "
                                    "--force-reinstall ./greeting-1.0-py3-none-any.whl >&2\n"
                                    "env/bin/python -c 'import greeting; print(greeting.greet())'" % (make, pip)), "hello of a wheel")

    def test_npm_installs_a_package_and_finds_it_again_in_its_cache(self):
        if not says("/usr/bin/npm", "--version"):
            self.skipTest("npm is not installed in /usr/bin")
        with tarfile.open(self.at("work/greeting.tgz"), "w:gz") as archive:
            for name, text in (("package.json", '{"name":"greeting","version":"1.0.0"}'), ("index.js", "module.exports = 'hello of a package'")):
                entry = tarfile.TarInfo("package/" + name)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        self.start()
        self.assertEqual(self.twice("sh", "-ec", "rm -rf node_modules package*.json\nnpm install --offline --no-audit --no-fund ./greeting.tgz >&2\n"
                                    "node -p \"require('greeting')\"",
                                    between=lambda: self.assertTrue(os.path.isdir(self.cache("npm/_cacache")))), "hello of a package")

    def test_cargo_builds_with_the_persons_toolchain(self):
        real = os.environ.get("RUSTUP_HOME") or os.path.join(OWN_HOME, ".rustup")
        own = os.path.join(OWN_HOME, ".cargo/bin")
        if os.path.exists(os.path.join(own, "cargo")) and os.path.isdir(real):
            os.symlink(real, self.at(".rustup"))
            os.mkdir(self.at(".cargo"))
            os.symlink(own, self.at(".cargo/bin"))
            self.path.append(".cargo/bin")
        elif not says("/usr/bin/cargo", "--version"):
            self.skipTest("there is no cargo here, neither of rustup nor in /usr/bin")
        self.put("work/Cargo.toml", '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2018"\n')
        self.put("work/src/main.rs", 'fn main() { println!("hello of cargo"); }\n')
        self.put(".cargo/credentials.toml", "private")
        self.start()
        self.assertEqual(self.twice("sh", "-ec", "cargo build --offline >&2\n./target/debug/hello",
                                    between=lambda: self.assertTrue(os.path.isdir(self.cache("cargo")))), "hello of cargo")
        self.fails("cat", self.at(".cargo/credentials.toml"))

    @unittest.skipUnless(LONG, "compiles Go's runtime: STINT_NEWCOMER=1 runs it")
    def test_go_builds_and_compiles_nothing_twice(self):
        go = shutil.which("go", path="/usr/local/go/bin:" + SYSTEM_PATH)
        if not go:
            self.skipTest("go is not installed")
        os.symlink(os.path.dirname(go), self.at("go-bin"))
        self.path.append("go-bin")
        self.put("work/go.mod", "module hello\n\ngo 1.18\n")
        self.put("work/main.go", 'package main\n\nfunc main() { print("") }\n')
        self.start()
        compiled = self.twice("sh", "-ec", "go build -v -o hello . 2>&1 && ./hello",
                              between=lambda: self.assertTrue(os.path.isdir(self.cache("go-build"))))
        self.assertEqual(compiled, "")

    def uv(self, to):
        """The one that is installed; with STINT_NEWCOMER the one of PyPI, if that can be reached."""
        found, wheels = shutil.which("uv"), os.path.join(self.folder, "wheels")
        if found:
            shutil.copy2(os.path.realpath(found), to)
            return
        if not LONG or says("python3", "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", wheels, "uv") is None:
            self.skipTest("uv is not installed, and is taken from PyPI only with STINT_NEWCOMER=1")
        with zipfile.ZipFile(os.path.join(wheels, os.listdir(wheels)[0])) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/scripts/uv"))
            with open(to, "wb") as file:
                file.write(archive.read(name))
        os.chmod(to, 0o755)

    def test_uv_runs_a_script(self):
        self.python()
        os.makedirs(self.at(".local/bin"))
        self.uv(self.at(".local/bin/uv"))
        self.path.append(".local/bin")
        self.put("work/job.py", "print('hello of uv')\n")
        self.start()
        self.assertEqual(self.twice("uv", "run", "--offline", "--no-project", "job.py"), "hello of uv")


if __name__ == "__main__":
    unittest.main()
