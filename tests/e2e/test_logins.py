"""Browsers: a code for once becomes a session, and a cookie alone opens nothing."""
import json
import os
import subprocess
import unittest

from hang import HANG_S
import proof
import stintd
from test_hostile import Stream

STINT = os.environ.get("STINT", "build/stint")


class Browser:
    """What a browser keeps of one server: its cookies, and the key of the page."""

    def __init__(self, case, server):
        self.server, self.client = server, server.client(token="")
        self.cookies, self.key, self.id = {}, None, None
        case.addCleanup(self.client.close)

    def headers(self, **others):
        sent = {"Sec-Fetch-Site": "same-origin", "Cookie": "; ".join("%s=%s" % pair for pair in self.cookies.items())}
        if self.key:
            sent["Stint-Page-Key"] = self.key
        sent.update({name.replace("_", "-"): value for name, value in others.items()})
        return {name: value for name, value in sent.items() if value}

    def origin(self):
        return "http://127.0.0.1:%d" % self.server.port

    def login(self, code, judged=True, **headers):
        sent = self.headers(Origin=self.origin()) | headers
        reply = self.client.post("/api/login", {"code": code}, {name: value for name, value in sent.items() if value},
                                 judged=judged)
        if reply.status == 200:
            name, _, value = reply.headers["Set-Cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
            self.key, self.id = reply.json["pageKey"], reply.json["id"]
        return reply

    def get(self, path, **headers):
        return self.client.call("GET", path, headers=self.headers(**headers))

    def post(self, path, body=None, **headers):
        return self.client.post(path, body, self.headers(**{"Origin": self.origin(), **headers}))

    def end(self, login):
        return self.client.call("DELETE", "/api/logins/" + login, headers=self.headers(Origin=self.origin()))


class LoginCase(stintd.Case):
    clocks = None

    def setUp(self):
        if self.clocks is None:
            super().setUp()
            return
        self.server = proof.Server(clocks=self.clocks)
        self.client = self.server.client()

    def code(self, client=None, **fields):
        reply = (client or self.client).post("/api/tokens", {"kind": "login", **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json["code"]

    def browser(self, **fields):
        browser = Browser(self, self.server)
        self.assertEqual(browser.login(self.code(**fields)).status, 200)
        return browser

    def holder(self, kind):
        made = self.client.post("/api/tokens", {"kind": kind, "name": kind}).json
        client = self.server.client(token=made["token"])
        self.addCleanup(client.close)
        return made["id"], client


class Idle(LoginCase):
    HOUR_MS = 3600 * 1000

    def setUp(self):
        self.clocks = proof.Clocks()
        super().setUp()

    def test_a_server_that_has_run_for_a_day_takes_new_sessions(self):
        self.clocks.advance(24 * self.HOUR_MS)
        self.assertEqual(self.browser().get("/api/tasks").status, 200)

    def test_a_session_that_nobody_uses_ends_after_two_hours(self):
        browser, used = self.browser(), self.browser()
        for _ in range(2):
            self.clocks.advance(self.HOUR_MS)
            self.assertEqual(used.get("/api/tasks").status, 200)
        self.assertEqual(browser.get("/api/tasks").status, 401)


class Exchange(LoginCase):
    def test_a_code_becomes_a_session_that_reads_and_acts(self):
        browser = self.browser(name="mara")
        self.assertEqual(browser.get("/api/tasks").status, 200)
        task = self.create()
        self.assertEqual(browser.post("/api/tasks/%s/cancel" % task["id"]).status, 200)
        told = self.client.get("/api/tasks/%s/events" % task["id"]).json["events"][-1]
        self.assertEqual((told["type"], told["actor"]), ("task.cancelled", "browser:mara"))

    def test_the_cookie_is_named_after_the_port_and_scripts_cannot_read_it(self):
        browser = Browser(self, self.server)
        cookie = browser.login(self.code()).headers["Set-Cookie"]
        self.assertTrue(cookie.startswith("stint_%d=" % self.server.port), "its name")
        for attribute in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(attribute, cookie.split("; "))

    def test_a_code_used_twice_ends_the_first_session(self):
        code = self.code()
        first, second = Browser(self, self.server), Browser(self, self.server)
        self.assertEqual(first.login(code).status, 200)
        refused = second.login(code)
        self.assertEqual((refused.status, refused.json["code"]), (410, "code_gone"))
        self.assertIn("used before", refused.json["detail"])
        self.assertEqual(first.get("/api/tasks").status, 401)

    def test_a_code_that_is_wrong_is_gone(self):
        code = self.code()
        for wrong in (code[:-1] + ("A" if code[-1] != "A" else "B"), "x", "stint_login_00_x", self.server.token):
            self.assertEqual(Browser(self, self.server).login(wrong).status, 410)
        self.assertEqual(Browser(self, self.server).login(code).status, 200)  # nothing was spent

    def test_a_login_comes_from_the_server_s_own_page(self):
        code = self.code()
        browser = Browser(self, self.server)
        for headers in ({"Origin": None}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "https://evil.example"},
                        {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(browser.login(code, **headers).status, 403, headers)
        self.assertEqual(browser.login(code).status, 200)

    def test_a_second_login_of_a_browser_ends_its_first_session(self):
        browser = self.browser()
        first = browser.id
        self.assertEqual(browser.login(self.code()).status, 200)
        self.assertNotEqual(browser.id, first)
        states = {row["id"]: row["state"] for row in self.client.get("/api/logins").json}
        self.assertEqual((states[first], states[browser.id]), ("ended", "open"))

    def test_secrets_stand_in_no_event_and_no_list(self):
        browser = self.browser()
        told = self.client.get("/api/events?after=0").body + self.client.get("/api/logins").body
        for secret in (browser.key, *browser.cookies.values()):
            self.assertNotIn(secret.encode(), told)
        kinds = [(event["type"], event["data"]["kind"]) for event in self.client.get("/api/events?after=0").json["events"]
                 if event["type"].startswith("token.")]
        self.assertEqual(kinds, [("token.created", "login"), ("token.created", "session")])


class Attacks(LoginCase):
    def test_the_cookie_alone_opens_nothing(self):
        browser = self.browser()
        for path in ("/api/tasks", "/api/events", "/api/logins", "/api/openapi.json"):
            self.assertEqual(browser.get(path, Stint_Page_Key=None).status, 401, path)

    def test_the_key_alone_opens_nothing(self):
        browser = self.browser()
        browser.cookies.clear()
        self.assertEqual(browser.get("/api/tasks").status, 401)

    def test_the_key_of_another_session_opens_nothing(self):
        mine, other = self.browser(), self.browser()
        mine.key = other.key
        self.assertEqual(mine.get("/api/tasks").status, 401)

    def test_a_page_of_another_port_that_holds_cookie_and_guesses_no_key_is_refused(self):
        browser = self.browser()
        for site in ("same-site", "cross-site", "none"):
            self.assertEqual(browser.get("/api/tasks", Sec_Fetch_Site=site).status, 401, site)
        refused = browser.post("/api/execution", {"armed": False}, Origin="http://127.0.0.1:1")
        self.assertEqual(refused.status, 403)

    def test_a_session_is_not_known_to_another_server_of_the_same_host(self):
        browser, other = self.browser(), stintd.Server()
        self.addCleanup(other.end)
        stranger = Browser(self, other)
        stranger.cookies = {"stint_%d" % other.port: next(iter(browser.cookies.values())), **browser.cookies}
        stranger.key = browser.key
        self.assertEqual(stranger.get("/api/tasks").status, 401)

    def test_a_session_makes_no_codes_and_no_tokens(self):
        browser = self.browser(role="admin")
        self.assertEqual(browser.post("/api/tokens", {"kind": "login"}).status, 403)
        operator = self.browser()
        self.assertEqual(operator.post("/api/tokens", {"kind": "admin", "name": "x"}).status, 403)

    def test_a_session_survives_a_restart_and_not_a_revocation(self):
        browser = self.browser()
        self.server.kill()
        port = self.server.port
        self.server.command = lambda: [stintd.STINTD, "--home", self.server.home, "--listen", "127.0.0.1:%d" % port]
        self.server.start()
        browser.client.close()
        self.assertEqual(browser.get("/api/tasks").status, 200)
        self.client.close()
        self.assertEqual(self.client.call("DELETE", "/api/logins/" + browser.id).status, 200)
        self.assertEqual(browser.get("/api/tasks").status, 401)

    def test_a_revoked_session_loses_its_stream(self):
        browser = self.browser()
        stream = Stream(self.server, "?after=0", headers=browser.headers()).begin()
        self.addCleanup(stream.close)
        self.assertIsNotNone(stream.event())
        self.assertEqual(self.client.call("DELETE", "/api/logins/" + browser.id).status, 200)
        while stream.event() is not None:
            pass  # it ends

    def test_a_session_ends_with_the_token_that_made_its_code(self):
        token, client = self.holder("operator")
        browser = Browser(self, self.server)
        browser.login(self.code(client))
        self.assertEqual(browser.get("/api/tasks").status, 200)
        self.client.call("DELETE", "/api/tokens/" + token)
        self.assertEqual(browser.get("/api/tasks").status, 401)


class Roles(LoginCase):
    def test_a_role_is_never_above_that_of_its_maker(self):
        may = {"viewer": {"viewer"}, "approver": {"viewer", "approver"}, "operator": {"viewer", "approver", "operator"},
               "worker": set(), "producer": set(), "metrics": set()}
        for kind, roles in may.items():
            _, client = self.holder(kind)
            for role in ("viewer", "approver", "operator", "admin"):
                reply = client.post("/api/tokens", {"kind": "login", "role": role})
                self.assertEqual(reply.status, 201 if role in roles else 403, (kind, role))

    def test_a_viewer_looks_and_changes_nothing(self):
        browser, task = self.browser(role="viewer"), self.create()
        self.assertEqual(browser.get("/api/tasks/" + task["id"]).status, 200)
        self.assertEqual(browser.post("/api/tasks/%s/cancel" % task["id"]).status, 403)

    def test_without_a_role_it_is_as_much_as_the_maker_has_and_no_admin(self):
        for kind, role in (("admin", "operator"), ("operator", "operator"), ("approver", "approver"), ("viewer", "viewer")):
            _, client = self.holder(kind)
            self.assertEqual(client.post("/api/tokens", {"kind": "login"}).json["role"], role)

    def test_sessions_are_seen_and_ended_by_their_maker_and_by_admins(self):
        _, one = self.holder("operator")
        _, two = self.holder("operator")
        browser = Browser(self, self.server)
        browser.login(self.code(one))
        self.assertEqual([row["current"] for row in browser.get("/api/logins").json], [True])
        self.assertEqual(two.get("/api/logins").json, [])
        self.assertEqual(two.call("DELETE", "/api/logins/" + browser.id).status, 404)
        self.assertEqual(one.call("DELETE", "/api/logins/" + browser.id).json["state"], "ended")

    def test_a_viewer_ends_its_own_session_and_no_other(self):
        mine, other = self.browser(role="viewer"), self.browser(role="viewer")
        self.assertEqual(mine.end(other.id).status, 403)
        self.assertEqual(mine.end(mine.id).status, 200)
        self.assertEqual(mine.get("/api/tasks").status, 401)
        self.assertEqual(other.get("/api/tasks").status, 200)

    def test_fields_that_are_not_for_a_code_are_named(self):
        refused = self.client.post("/api/tokens", {"kind": "login", "role": "king", "queues": ["q"], "expiresInMs": 5})
        self.assertEqual(refused.status, 422)
        self.assertEqual({error["field"] for error in refused.json["errors"]}, {"role", "queues", "expiresInMs"})


class Verb(LoginCase):
    def dashboard(self, *words):
        return subprocess.run([STINT, "dashboard", "--home", self.server.home, *words], capture_output=True, text=True,
                              timeout=HANG_S, env=stintd.environment(USER="mara"), check=False)

    def test_the_link_that_is_printed_opens_a_session(self):
        done = self.dashboard("--no-open", "--role", "viewer")
        self.assertEqual(done.returncode, 0, done.stderr)
        url, _, code = done.stdout.strip().partition("/#k=")
        self.assertEqual(url, self.server.url)
        made = Browser(self, self.server).login(code).json
        self.assertEqual((made["name"], made["role"]), ("mara", "viewer"))

    def test_json_has_the_link(self):
        done = self.dashboard("--json")
        self.assertIn("/#k=stint_login_", json.loads(done.stdout)["dashboard"]["url"])


if __name__ == "__main__":
    unittest.main()
