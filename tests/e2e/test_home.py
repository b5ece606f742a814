"""What a command of `stint run` reads of the home of its user: the entries without a leading dot and the toolchains, and none of
the private ones. And how a task says that isolation made it fail."""
import json
import os
import subprocess
import tempfile
import unittest

import stintd
import test_worker
from hang import HANG_S
from test_worker import STINT, WORKER

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
FORGOTTEN = {name: "" for name in ("PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "RUSTUP_HOME", "GOROOT")}  # of whoever runs the tests


class Case(test_worker.Case):
    def setUp(self):
        super().setUp()
        self.home = os.path.join(os.path.realpath(self.folder), "ann")
        os.mkdir(self.home)
        self.put("work/sub/file", "here")

    def at(self, name):
        return os.path.join(self.home, name)

    def put(self, name, text, mode=0o644):
        path = self.at(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def shell(self, *flags, executors=None, path=(), **variables):
        dirs = [self.at(name) for name in path] + [SYSTEM_PATH]
        return self.worker(executors or {}, "--shell", "--under-home", *flags, HOME=self.home, PATH=":".join(dirs),
                           **{**FORGOTTEN, **variables})

    def run_words(self, *argv, cwd="work", executor="shell", queue="shell"):
        return self.client.post("/api/tasks", {"title": "x", "queue": queue, "executor": executor, "payload": {"argv": list(argv)},
                                               "maxAttempts": 1, "workingDir": self.at(cwd) if cwd is not None else None}).json["id"]

    def does(self, *argv, **more):
        return self.is_in(self.run_words(*argv, **more), "done")["result"]

    def fails(self, *argv, **more):
        return self.is_in(self.run_words(*argv, **more), "failed")["error"]

    def is_blocked(self, *argv, **more):
        return self.is_in(self.run_words(*argv, **more), "blocked")["error"]


class Reading(Case):
    def test_entries_without_a_dot_are_read_and_nothing_of_them_is_changed(self):
        self.put("scripts/job.sh", "echo ran", 0o755)
        self.put("notes.txt", "noted")
        self.shell()
        self.assertEqual(self.does("sh", self.at("scripts/job.sh")), "ran")
        self.assertEqual(self.does("cat", self.at("notes.txt")), "noted")
        self.fails("sh", "-c", "echo x >> " + self.at("notes.txt"))
        self.fails("touch", self.at("scripts/new"))
        self.fails("touch", self.at("new"))
        self.assertEqual(self.does("sh", "-c", "echo new > made && cat made"), "new")

    def test_entries_with_a_dot_are_closed_without_a_list(self):
        for name in (".ssh/id_ed25519", ".config/tool-of-tomorrow/token", ".tomorrow", ".local/share/keyrings/login", ".cargo/credentials.toml"):
            self.put(name, "private")
        self.shell()
        for name in (".ssh/id_ed25519", ".config/tool-of-tomorrow/token", ".tomorrow", ".local/share/keyrings/login", ".cargo/credentials.toml"):
            self.assertIn("Permission denied", self.fails("cat", self.at(name))["message"], name)
            self.assertNotIn("grant", self.fails("cat", self.at(name))["message"], name)
        self.fails("ls", self.home)

    def test_a_secret_stays_closed_whatever_links_lead_to_it(self):
        self.put("dotfiles/aws/credentials", "private")
        self.put("dotfiles/vimrc", "set nu")
        self.put(".config/tool/token", "private")
        os.symlink("dotfiles/aws", self.at(".aws"))
        os.symlink(".config/tool", self.at("tool"))
        os.symlink("/", self.at("root"))
        os.symlink("..", self.at("above"))
        self.put("server.key", "private")
        for name, link in (("agents/claude.json", ".claude.json"), ("rust/credentials.toml", ".cargo/credentials.toml")):
            self.put(name, "private")
            os.makedirs(os.path.dirname(self.at(link)), exist_ok=True)
            os.symlink(self.at(name), self.at(link))
        self.put("elsewhere/plain", "plain")
        os.symlink("elsewhere", self.at("link"))
        self.shell()
        for name in ("agents/claude.json", "rust/credentials.toml", "dotfiles/aws/credentials", ".aws/credentials", "dotfiles/vimrc", "tool/token", "server.key",
                     "root" + self.at(".config/tool/token"), "above/ann/.config/tool/token"):
            self.fails("cat", self.at(name))
        self.assertEqual(self.does("cat", self.at("link/plain")), "plain")

    def test_a_link_that_a_task_puts_behind_one_of_the_home_is_not_followed(self):
        other = tempfile.mkdtemp(prefix="stint-other-", dir="/var/tmp")
        self.addCleanup(subprocess.run, ["rm", "-rf", other])
        with open(os.path.join(other, "x"), "w") as file:
            file.write("private")
        os.makedirs(self.at("work/data"))
        os.symlink("work/data", self.at("data"))
        self.shell()
        self.does("sh", "-c", "rmdir data && ln -s %s data" % other)
        self.fails("cat", self.at("data/x"))

    def test_the_state_directory_stays_closed_where_it_is_an_entry_of_the_home(self):
        state = self.at("state/stint")
        os.makedirs(state, 0o700)
        self.put("state/beside", "x")
        self.put("plain", "plain")
        self.worker({}, "--shell", "--under-home", home=state, HOME=self.home, PATH=SYSTEM_PATH)
        self.fails("ls", state)
        self.fails("cat", self.at("state/beside"))
        self.assertEqual(self.does("cat", self.at("plain")), "plain")

    def test_toolchains_are_read_and_variables_lead_to_them_and_to_one_cache(self):
        self.put(".pyenv/version", "v3")
        self.put(".rustup/settings.toml", "x")
        self.put(".cargo/bin/cargo", "x", 0o755)
        self.put(".cargo/credentials.toml", "private")
        self.put(".local/share/uv/python/a", "x")
        self.put("go/bin/x", "x")
        self.shell(NVM_DIR=self.at(".nvm-of-mine"))
        self.assertEqual(self.does("sh", "-c", "cat $PYENV_ROOT/version"), "v3")
        self.assertEqual(self.does("sh", "-c", "echo $RUSTUP_HOME $NVM_DIR $VOLTA_HOME"),
                         "%s %s" % (self.at(".rustup"), self.at(".nvm-of-mine")))
        self.does("cat", self.at(".cargo/bin/cargo"), self.at(".local/share/uv/python/a"))
        self.fails("cat", self.at(".cargo/credentials.toml"))
        cache = os.path.join(self.server.home, "cache/shell")
        self.does("sh", "-c", "mkdir -p $CARGO_HOME && echo kept > $CARGO_HOME/x")
        self.assertEqual(self.does("sh", "-c", "cat $CARGO_HOME/x; echo $XDG_CACHE_HOME; test $HOME != %s" % self.home), "kept\n" + cache)

    def test_the_repository_above_the_work_dir_is_seen(self):
        env = {**os.environ, "HOME": self.home, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "init", "-q", self.at("work")], check=True, env=env)
        self.put(".gitconfig", '[user]\n\tname = "Ann Example" ; me\n\temail = ann@example.org\n[credential]\n\thelper = store\n')
        self.shell()
        self.assertEqual(self.does("git", "rev-parse", "--show-toplevel", cwd="work/sub"), self.at("work"))
        self.assertEqual(self.does("git", "var", "GIT_COMMITTER_IDENT", cwd="work/sub").rsplit(" ", 2)[0], "Ann Example <ann@example.org>")
        self.fails("cat", self.at(".gitconfig"))

    def test_an_executor_reads_the_home_only_if_it_says_so(self):
        self.put("notes.txt", "noted")
        word = {"kind": "command", "argv": "payload", "read": ["home"]}
        self.worker({"plain": {"kind": "command", "argv": "payload"}, "reads": word, "sandboxed": {**word, "isolation": "sandbox"}},
                    roots=[self.at("work")], HOME=self.home, PATH=SYSTEM_PATH, queues={"q": {}})
        self.fails("cat", self.at("notes.txt"), executor="plain", queue="q")
        self.assertEqual(self.does("cat", self.at("notes.txt"), executor="reads", queue="q"), "noted")
        self.assertEqual(self.does("sh", "-c", "echo -n $CARGO_HOME", executor="plain", queue="q"), "")
        level = subprocess.run([WORKER, "--check-isolation", "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S)
        if {"level": "sandbox", "works": True}.items() <= json.loads(level.stdout)[1].items():
            self.assertEqual(self.does("sh", "-c", "ls -A %s | wc -l; cat %s" % (self.home, self.at("notes.txt")), executor="sandboxed",
                                       queue="q").split(), ["2", "noted"])


class WorkDirs(Case):
    def test_private_entries_and_the_home_itself_are_no_work_dirs(self):
        os.makedirs(self.at(".config/tool"))
        self.put("dotfiles/gnupg/key", "x")
        os.symlink("dotfiles/gnupg", self.at(".gnupg"))
        self.shell()
        for cwd, words in ((".config/tool", "begins with a dot"), ("", "holds the private files of your home"),
                           ("dotfiles", "secrets are kept"), ("dotfiles/gnupg", "secrets are kept")):
            error = self.is_blocked("true", cwd=cwd)
            self.assertEqual(error["code"], "BAD_WORKDIR")
            self.assertIn(words, error["message"])
        self.does("true", cwd="work")

    def test_a_root_that_names_a_private_entry_opens_it(self):
        os.makedirs(self.at(".config/tool/sub"))
        os.makedirs(self.at(".config/other"))
        self.worker({"x": {"kind": "command", "argv": "payload"}}, roots=[self.at(".config/tool"), self.home], HOME=self.home,
                    queues={"shell": {}})
        self.does("true", cwd=".config/tool/sub", executor="x")
        self.does("true", cwd="", executor="x")
        self.is_blocked("true", cwd=".config/other", executor="x")

    def test_one_outside_is_told_with_roots_and_file(self):
        worker = self.shell()
        message = self.is_blocked("true", cwd="/usr")["message"]
        self.assertRegex(message, r'^/usr is not among this worker\'s "roots" \(%s\)\. Add it in %s, restart the worker, then: stint retry t-1$'
                         % (self.home, worker.config))


class Programs(Case):
    def test_a_program_is_the_one_that_a_terminal_finds(self):
        self.put(".pyenv/libexec/pyenv", "#!/bin/sh\necho of pyenv\n", 0o755)
        self.put(".pyenv/shims/python3", '#!/usr/bin/env sh\nexec "%s" "$@"\n' % self.at(".pyenv/libexec/pyenv"), 0o755)
        self.shell(executors={"own": {"kind": "command", "argv": ["python3", "job.py"]}}, path=[".pyenv/shims"])
        self.assertEqual(self.does("python3", "-V"), "of pyenv")
        self.create(id="own", queue="q", executor="own")
        self.assertEqual(self.is_in("own", "done")["result"], "of pyenv")

    def test_the_tree_that_a_program_is_installed_in_is_read(self):
        self.put(".npm-global/lib/node_modules/tool/cli.sh", '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/words"\n', 0o755)
        self.put(".npm-global/lib/node_modules/tool/words", "of the tool")
        os.makedirs(self.at(".npm-global/bin"))
        os.symlink("../lib/node_modules/tool/cli.sh", self.at(".npm-global/bin/tool"))
        self.put(".local/share/secret-of-tomorrow", "private")
        self.put(".local/bin/ours", "#!/bin/sh\necho ours\n", 0o755)
        self.shell(path=[".npm-global/bin", ".local/bin"])
        self.assertEqual(self.does("tool"), "of the tool")
        self.assertEqual(self.does(self.at(".npm-global/bin/tool")), "of the tool")
        self.assertEqual(self.does("ours"), "ours")
        self.fails("cat", self.at(".local/share/secret-of-tomorrow"))

    def test_a_task_that_puts_a_link_where_programs_are_found_is_shown_nothing_more(self):
        self.put(".private/bin/x", "#!/bin/sh\necho private\n", 0o755)
        os.makedirs(self.at("work/bin"))
        self.shell(path=["work/bin"])
        self.does("ln", "-s", self.at(".private/bin/x"), "bin/planted")
        self.fails("planted")
        self.does("sh", "-c", "printf '#!%s\n' > bin/script; chmod +x bin/script" % self.at(".private/bin/x"))
        self.fails("script")

    def test_files_in_the_operators_own_argv_are_read(self):
        self.put("scripts/job.sh", "echo job; cat %s" % self.at("scripts/beside"))
        self.put("scripts/beside", "beside")
        self.put(".ssh/run.sh", "echo private")
        sh = [{"kind": "command", "argv": ["sh", self.at(name)]} for name in ("scripts/job.sh", ".ssh/run.sh")]
        self.worker({"job": sh[0], "secret": sh[1]}, HOME=self.home, PATH=SYSTEM_PATH)
        for name in ("job", "secret"):
            self.create(id=name, queue="q", executor=name, maxAttempts=1)
        self.assertIn("beside: Permission denied", self.is_in("job", "failed")["error"]["message"])
        self.assertIn("run.sh: Permission denied", self.is_in("secret", "failed")["error"]["message"])

    def test_a_directory_of_the_path_that_cannot_be_entered_fails_nothing(self):
        os.makedirs(self.at("closed/bin"))
        os.chmod(self.at("closed"), 0)
        self.addCleanup(os.chmod, self.at("closed"), 0o700)
        self.shell(path=["closed/bin", "missing"])
        self.assertEqual(self.does("echo", "ran"), "ran")


class Hints(Case):
    def outside(self, name, text, mode=0o644):
        folder = tempfile.mkdtemp(prefix="stint-outside-", dir="/var/tmp")
        self.addCleanup(subprocess.run, ["rm", "-rf", folder])
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def test_what_isolation_hid_is_told_with_the_line_to_add(self):
        path = self.outside("data/table", "numbers")
        folder = os.path.dirname(path)
        plain = {"kind": "command", "argv": "payload"}
        worker = self.worker({"x": plain}, roots=[self.at("work")], HOME=self.home, queues={"shell": {}})
        message = self.fails("cat", path, executor="x")["message"]
        self.assertTrue(message.endswith('%s: Permission denied. It says that %s was refused: isolation hides %s; grant it with "read" of '
                                         'executors.x in %s, and restart the worker' % (path, path, folder, worker.config)), message)
        worker.stop()
        self.worker({"x": {**plain, "read": [folder]}}, roots=[self.at("work")], HOME=self.home, queues={"shell": {}})
        self.assertEqual(self.does("cat", path, executor="x"), "numbers")
        message = self.fails("touch", os.path.join(folder, "new"), executor="x")["message"]
        self.assertIn('isolation lets it read and not change %s; grant it with "write" of executors.x in ' % folder, message)

    def test_for_the_executor_of_stint_up_the_line_can_be_pasted(self):
        path = self.outside("data/table", "numbers")
        self.put(".config/stint/config.json", "{}", 0o600)
        env = stintd.environment(HOME=self.home, PATH=SYSTEM_PATH, XDG_CONFIG_HOME=self.at(".config"))

        def start():
            process = subprocess.Popen([WORKER, "--home", self.server.home, "--shell", "--under-home"], env=env,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait(HANG_S)))
            return process

        process = start()
        message = self.fails("cat", path)["message"]
        self.assertIn("isolation hides %s; to grant it, put " % os.path.dirname(path), message)
        line, file = message.split("to grant it, put ", 1)[1].split(" into ", 1)
        self.assertEqual(file, self.at(".config/stint/config.json") + ", and restart the worker")
        self.put(".config/stint/config.json", "{" + line + "}", 0o600)
        process.terminate()
        self.assertEqual(process.wait(HANG_S), 0)
        start()
        self.assertEqual(self.does("cat", path), "numbers")

    def test_a_granted_path_that_is_gone_is_told(self):
        folder = os.path.dirname(self.outside("data/table", "numbers"))
        self.worker({"x": {"kind": "command", "argv": "payload", "read": [folder]}}, roots=[self.at("work")], HOME=self.home,
                    queues={"shell": {}})
        self.assertEqual(self.does("echo", "there", executor="x"), "there")
        subprocess.run(["rm", "-r", folder], check=True)
        self.assertEqual(self.is_blocked("true", executor="x")["message"], "its executor grants %s, which does not exist any more" % folder)

    def test_a_program_that_is_hidden_is_refused_and_no_other_is_taken(self):
        path = self.outside("tools/sh", "#!/bin/sh\necho hidden\n", 0o755)
        folder = os.path.dirname(path)
        # the task names the file itself: its tree is not granted for that
        self.shell()
        message = self.fails(path, "-c", "true")["message"]
        self.assertIn("cannot execute '%s': Permission denied. Isolation hides %s; to grant it" % (path, folder), message)

    def test_nothing_is_said_of_what_isolation_did_not_refuse(self):
        self.put("work/locked", "x", 0o644)
        self.shell()
        for words in ("/etc/shadow: Permission denied", self.at("work/locked") + ": Permission denied", "/nonexistent: Permission denied",
                      self.at("") + ": Permission denied", self.at(".ssh") + ": Permission denied", "Permission denied"):
            self.assertNotIn("solation", self.fails("sh", "-c", "echo '%s' >&2; exit 1" % words)["message"], words)

    def test_a_sandbox_says_it_of_what_does_not_exist_there(self):
        level = subprocess.run([WORKER, "--check-isolation", "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S)
        if not json.loads(level.stdout)[1]["works"]:
            self.skipTest("no sandbox works here")
        path = self.outside("data/table", "numbers")
        self.worker({"x": {"kind": "command", "argv": "payload", "isolation": "sandbox"}}, roots=[self.at("work")], HOME=self.home,
                    queues={"shell": {}})
        self.assertIn("isolation hides %s; grant it" % os.path.dirname(path), self.fails("cat", path, executor="x")["message"])


class Checks(Case):
    def check(self, config, *flags, **variables):
        path = self.put(".config/stint/config.json", json.dumps(config), 0o600)
        ran = subprocess.run([WORKER, "--home", self.server.home, "--check-config", *flags], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment(HOME=self.home, XDG_CONFIG_HOME=os.path.dirname(os.path.dirname(path)),
                                                    **{"PATH": SYSTEM_PATH, **FORGOTTEN, **variables}))
        return ran.returncode, ran.stdout + ran.stderr

    def test_what_would_fail_later_is_found(self):
        for executor, words in (({"argv": ["maek", "test"]}, 'executors.x.argv begins with "maek", and no directory of the worker\'s PATH has'),
                                ({"argv": ["/usr/bin/maek"]}, 'executors.x.argv begins with "/usr/bin/maek", which is not a program'),
                                ({"argv": ["true"], "read": ["~/nope"]}, "executors.x.read names %s, which does not exist" % self.at("nope")),
                                ({"argv": ["true"], "write": ["/nope"]}, "executors.x.write names /nope, which does not exist"),
                                ({"argv": ["node", "~/job.js"]},
                                 'executors.x.argv has "~/job.js": no shell reads it, so write the whole path: ' + self.at("job.js"))):
            status, said = self.check({"executors": {"x": {"kind": "command", **executor}}})
            self.assertEqual(status, 78, said)
            self.assertIn(words, said)
            self.assertIn(self.at(".config/stint/config.json") + ":1:", said)
        self.assertEqual(self.check({"executors": {"x": {"kind": "command", "argv": ["true"]}}})[0], 0)

    def test_a_worker_starts_without_a_program_and_says_so(self):
        worker = self.worker({"x": {"kind": "command", "argv": ["maek"]}, "y": {"kind": "command", "argv": ["echo", "there"]}}, HOME=self.home)
        self.create(id="t", queue="q", executor="y")
        self.is_in("t", "done")
        self.assertIn("the program of an executor is not there", worker.said())

    def test_what_of_the_home_is_left_out_is_said(self):
        self.put("dotfiles/ssh/id", "x")
        os.symlink("dotfiles/ssh", self.at(".ssh"))
        status, said = self.check({}, "--shell", "--under-home")
        self.assertEqual(status, 0, said)
        self.assertIn("leaves out %s: it is a known secret, or holds one" % self.at("dotfiles"), said)
        self.assertRegex(said, r"reads 1 entries and toolchains of %s" % self.home)
        self.assertIn("root     %s, in entries that do not begin with a dot" % self.home, said)

    def test_the_doctor_finds_a_missing_program(self):
        with open(os.path.join(self.server.home, "config.json"), "w") as file:
            json.dump({"executors": {"x": {"kind": "command", "argv": ["maek"]}}}, file)
        os.chmod(file.name, 0o600)
        ran = subprocess.run([STINT, "doctor", "--json"], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment(STINT_HOME=self.server.home, HOME=self.home, PATH=SYSTEM_PATH))
        found = [check for check in json.loads(ran.stdout)["checks"] if check["name"] == "program"]
        self.assertEqual([(check["verdict"], check["group"]) for check in found], [("fail", "isolation")], ran.stdout)
        self.assertIn('executors.x.argv begins with "maek"', found[0]["text"])


class Tokens(Case):
    """The token of a worker may lie where every program reads: in /etc, /opt or /usr."""

    def setUp(self):
        if not os.access("/opt", os.W_OK):  # before a server is started: a skip here ends nothing
            self.skipTest("only who may write to /opt can keep a token there")
        super().setUp()
        self.place = tempfile.mkdtemp(prefix="stint-token-", dir="/opt")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.place])
        self.token = os.path.join(self.place, "keys/worker.token")
        os.makedirs(os.path.dirname(self.token))
        with open(self.token, "w") as file:
            file.write(self.client.post("/api/tokens", {"kind": "worker", "name": "w", "queues": ["q"]}).json["token"])
        os.chmod(self.token, 0o600)
        for name in ("beside", "keys/beside"):
            with open(os.path.join(self.place, name), "w") as file:
                file.write("plain")

    def test_no_task_reads_it_and_all_beside_it_can_be_read(self):
        level = subprocess.run([WORKER, "--check-isolation", "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S)
        works = json.loads(level.stdout)[1]["works"]
        payload = {"kind": "command", "argv": "payload"}
        self.worker({"process": payload, **({"sandbox": {**payload, "isolation": "sandbox"}} if works else {})}, "--token-file", self.token,
                    roots=[self.at("work")], HOME=self.home)
        for executor in ("process", "sandbox") if works else ("process",):
            more = {"executor": executor, "queue": "q"}
            for script in ("cat " + self.token, "cat %s/keys/../keys/worker.token" % self.place, "grep -r stint_worker " + self.place):
                self.assertNotIn("stint_worker", json.dumps(self.fails("sh", "-c", script + " 2>&1", **more)).replace("grep -r stint_worker", ""))
            self.assertEqual(self.does("cat", self.place + "/beside", self.place + "/keys/beside", **more), "plainplain")
            self.does("cat", "/etc/passwd", **more)

    def test_an_executor_that_grants_it_is_a_mistake_and_the_check_says_that_it_is_hidden(self):
        path = self.put("c.json", json.dumps({"executors": {"x": {"kind": "command", "argv": ["true"], "read": [self.place]}}}), 0o600)
        for flags in ((), ("--check-config",)):
            ran = subprocess.run([WORKER, "--home", self.server.home, "--config", path, "--token-file", self.token, *flags],
                                 capture_output=True, text=True, timeout=HANG_S, env=stintd.environment(HOME=self.home))
            self.assertEqual(ran.returncode, 78, ran.stderr)
            self.assertIn("which holds the worker's own token " + self.token, ran.stderr)
        ran = subprocess.run([WORKER, "--home", self.server.home, "--check-config", "--shell", "--token-file", self.token],
                             capture_output=True, text=True, timeout=HANG_S, env=stintd.environment(HOME=self.home))
        self.assertIn("token    %s, hidden from tasks" % self.token, ran.stdout)
        ran = subprocess.run([STINT, "doctor", "--json"], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment(STINT_HOME=self.server.home, STINT_TOKEN_FILE=self.token))
        self.assertIn("the worker hides this one file by its name", ran.stdout)

    def test_one_in_an_open_entry_of_the_home_is_not_shown(self):
        os.makedirs(self.at("keys"))
        os.rename(self.token, self.at("keys/worker.token"))
        self.worker({"x": {"kind": "command", "argv": "payload", "read": ["home"]}}, "--token-file", self.at("keys/worker.token"),
                    "--under-home", HOME=self.home)
        self.fails("cat", self.at("keys/worker.token"), executor="x", queue="q")
        self.is_blocked("cat", "worker.token", cwd="keys", executor="x", queue="q")


if __name__ == "__main__":
    unittest.main()
