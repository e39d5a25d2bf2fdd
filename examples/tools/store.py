"""A tool of your own: an MCP server that knows what is in store. Python's standard library is enough."""
import json
import sys

STORE = {"lanterns": 12, "ropes": 3}
TOOL = {
    "name": "count",
    "description": "How many of an item are in store.",
    "inputSchema": {
        "type": "object",
        "properties": {"item": {"type": "string"}},
        "required": ["item"],
    },
}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "store", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        item = params["arguments"]["item"]
        text = f"{STORE.get(item, 0)} {item}"
        return {"content": [{"type": "text", "text": text}]}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    reply = {"jsonrpc": "2.0", "id": asked["id"]}
    result = answer(asked["method"], asked.get("params", {}))
    if result is None:
        reply["error"] = {"code": -32601, "message": f"no method {asked['method']}"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
