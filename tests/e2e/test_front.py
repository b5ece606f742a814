"""Behind a proxy: the address that browsers use, a path before ours, and who may speak for others."""
import os
import subprocess
import unittest

from hang import HANG_S
import stintd

STINT = os.environ.get("STINT", "build/stint")
PAGE = "https://stint.example/board"
OURS = {"Host": "stint.example", "X-Forwarded-For": "198.51.100.7"}


class FrontCase(stintd.Case):
    url = PAGE
    proxies = "127.0.0.1"

    def setUp(self):
        flags = ["--behind-proxy", "--set", "publicUrl=" + self.url, "--set", "limits.authFailuresPerS=1"]
        self.server = stintd.Server(*flags, *(["--set", "proxy.from=" + self.proxies] if self.proxies else []))
        self.client = self.server.client(local=True)  # the socket has no proxy before it

    def browse(self, method, path, body=None, **headers):
        """As the proxy passes it on."""
        client = self.server.client(token="")
        try:
            return client.call(method, path, body, OURS | {name.replace("_", "-"): value for name, value in headers.items()}, judged=False)
        finally:
            client.close()

    def log_in(self, path, **headers):
        code = self.client.post("/api/tokens", {"kind": "login"}).json["code"]
        return self.browse("POST", path, {"code": code}, **{"Origin": "https://stint.example", "Sec_Fetch_Site": "same-origin", **headers})


class Path(FrontCase):
    def test_the_page_and_the_api_are_beneath_the_path(self):
        for path in ("/board/livez", "/livez"):  # a proxy may take the path off, and need not
            self.assertEqual(self.browse("GET", path).status, 200, path)
        page = self.browse("GET", "/board/", Accept="text/html")
        self.assertEqual([page.status, page.headers["Content-Type"]], [200, "text/html; charset=utf-8"])
        self.assertEqual(self.browse("GET", "/boards/livez").status, 401)

    def test_the_path_without_its_slash_leads_to_the_one_with_it(self):
        reply = self.browse("GET", "/board")
        self.assertEqual([reply.status, reply.headers["Location"]], [308, "/board/"])

    def test_a_login_gets_a_cookie_for_that_path_alone_and_it_works(self):
        reply = self.log_in("/board/api/login")
        self.assertEqual(reply.status, 200, reply.body)
        cookie, _, rest = reply.headers["Set-Cookie"].partition("; ")
        self.assertEqual(cookie.partition("=")[0], "__Secure-stint")
        self.assertEqual(rest, "Path=/board; HttpOnly; SameSite=Strict; Max-Age=43200; Secure")
        shown = {"Cookie": cookie, "Stint_Page_Key": reply.json["pageKey"], "Sec_Fetch_Site": "same-origin"}
        self.assertEqual(self.browse("GET", "/board/api/version", **shown).status, 200)
        self.assertEqual(self.browse("GET", "/board/api/version", **(shown | {"Cookie": "stint_1=x"})).status, 401)

    def test_the_link_of_stint_dashboard_leads_to_the_proxy(self):
        said = subprocess.run([STINT, "--home", self.server.home, "dashboard", "--no-open"], capture_output=True, text=True,
                              env=stintd.environment(), timeout=HANG_S, check=True)
        self.assertTrue(said.stdout.startswith(PAGE + "/#k=stint_login_"), said.stdout)


class Origin(FrontCase):
    def test_a_host_that_is_not_the_public_one_is_refused(self):
        for host in ("evil.example", "stint.example:8443", "stint.example.evil"):
            self.assertEqual(self.browse("GET", "/livez", Host=host).status, 421, host)

    def test_an_origin_that_is_not_the_public_one_is_refused(self):
        for origin in ("http://stint.example", "https://evil.example", "https://stint.example:8443", "null"):
            self.assertEqual(self.log_in("/board/api/login", Origin=origin).status, 403, origin)


class Root(FrontCase):
    url = "https://stint.example"

    def test_without_a_path_the_cookie_is_for_the_host_alone(self):
        reply = self.log_in("/api/login")
        self.assertEqual(reply.status, 200, reply.body)
        self.assertRegex(reply.headers["Set-Cookie"], r"^__Host-stint_%d=[^;]+; Path=/; .*; Secure$" % self.server.port)


class Peers(FrontCase):
    proxies = "192.0.2.1"

    def test_a_peer_that_is_no_proxy_gets_no_answer_by_tcp(self):
        client = self.server.client()
        with self.assertRaises(OSError):
            client.get("/livez")
        client.close()
        self.assertEqual(self.client.get("/api/version").status, 200)  # by the socket


class Clients(FrontCase):
    def wrong(self, forwarded):
        return self.browse("GET", "/api/version", Authorization="Bearer wrong", X_Forwarded_For=forwarded).status

    def test_wrong_credentials_count_for_the_client_behind_the_proxy(self):
        spent = [self.wrong("198.51.100.7") for _ in range(4)]
        self.assertIn(429, spent)
        self.assertEqual(self.wrong("198.51.100.8"), 401)
        self.assertEqual(self.wrong("198.51.100.8, 198.51.100.7"), 429, "what the client wrote itself is not believed")


class Strangers(FrontCase):
    proxies = None

    def test_without_named_proxies_the_header_says_nothing(self):
        spent = [self.browse("GET", "/api/version", Authorization="Bearer wrong", X_Forwarded_For="198.51.100.%d" % i).status for i in range(200)]
        self.assertIn(429, spent)


class Settings(unittest.TestCase):
    def test_what_is_wrong_is_said(self):
        for setting, words in (("publicUrl=http://stint.example", "publicUrl must be https://HOST"), ("publicUrl=stint.example", "publicUrl must be"),
                               ("proxy.from=proxy.example", 'it is wrong from "proxy.example" on'), ("proxy.from=127.0.0.1", "is for a server with behindProxy")):
            flags = [] if "behindProxy" in words else ["--behind-proxy"]
            done = subprocess.run([stintd.STINTD, "--check-config", *flags, "--set", setting], capture_output=True, text=True,
                                  env=stintd.environment(), timeout=HANG_S, check=False)
            self.assertEqual(done.returncode, 78)
            self.assertIn(words, done.stderr)


class Config(stintd.Case):
    flags = ("--set", "task.crashBudget=4")

    def test_the_effective_configuration_says_where_each_value_came_from(self):
        reply = self.client.get("/api/config")
        keys = {key["key"]: key for key in reply.json["keys"]}
        self.assertEqual([keys["task.crashBudget"][name] for name in ("value", "source", "origin")], [4, "flag", "--set"])
        self.assertEqual(keys["retry.baseMs"], {"key": "retry.baseMs", "value": 10000, "source": "default"})
        self.assertEqual(reply.json["home"], self.server.home)

    def test_a_viewer_is_not_told_the_configuration(self):
        token = self.client.post("/api/tokens", {"kind": "viewer", "name": "looks"}).json["token"]
        client = self.server.client(token=token)
        self.assertEqual(client.get("/api/config").status, 403)
        client.close()


if __name__ == "__main__":
    unittest.main()
