"""The official client of PyPI against Antiphon's MCP server, in both generations of the protocol.

    client.py stdio ANTIPHON
    client.py http URL TOKEN
"""

import sys

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

asked = []


async def decide(context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"decision": "allow_once"})


async def exercise(transport, mode):
    asked.clear()
    reports = []

    async def progress(progress, total, message):
        reports.append(message)

    async with Client(transport, mode=mode, elicitation_callback=decide) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"helper", "task_get", "task_wait"} <= tools, tools
        result = await client.call_tool("helper", {"message": "hello"}, progress_callback=progress)
        assert result.content[0].text == "You said hello", result
        assert reports, "no progress was reported"
        task = result.structured_content
        assert task["status"] == "completed", task
        result = await client.call_tool("helper", {"message": "ask"})
        assert result.structured_content["status"] == "completed", result
        assert len(asked) == 1 and "touch asked.txt" in asked[0], asked
        uri = f"antiphon://tasks/{task['taskId']}"
        assert uri in {resource.uri for resource in (await client.list_resources()).resources}
        read = await client.read_resource(uri)
        assert "You said hello" in read.contents[0].text, read
        prompt = await client.get_prompt("helper", {"message": "Look."})
        assert "Look." in prompt.messages[0].content.text, prompt


def transport():
    if sys.argv[1] == "stdio":
        return stdio_client(StdioServerParameters(command=sys.argv[2], args=["mcp", "serve"]))
    headers = {"Authorization": f"Bearer {sys.argv[3]}"}
    http = httpx2.AsyncClient(headers=headers, timeout=40)
    return streamable_http_client(sys.argv[2], http_client=http)


async def main():
    for mode in ["legacy", "2026-07-28"]:
        await exercise(transport(), mode)
    print("ok")


anyio.run(main)
