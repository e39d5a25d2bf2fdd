"""An agent made with the Python SDK of A2A. Usage: agent.py PORT BINDING. Prints the address of its card.

`ask` asks for a color and waits, `hang` works until it is canceled, `fail` fails, anything else is echoed in chunks.
"""

import asyncio
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            task.id, task.context_id = context.task_id, context.context_id
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        text = context.get_user_input()
        said = lambda words: updater.new_agent_message([new_text_part(words)])
        if text == "ask":
            await updater.requires_input(said("Which color?"))
            return
        await updater.start_work(said("On it."))
        if text == "hang":
            await asyncio.Event().wait()
        if text == "fail":
            await updater.failed(said("It broke."))
            return
        await updater.add_artifact([new_text_part("You ")], artifact_id="a", name="result")
        await updater.add_artifact([new_text_part(f"said {text}")], artifact_id="a", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main():
    port, binding = int(sys.argv[1]), sys.argv[2]
    url = f"http://127.0.0.1:{port}"
    card = AgentCard(
        name="sdk",
        description="Echoes.",
        version="1",
        supported_interfaces=[AgentInterface(url=url + "/a2a", protocol_binding=binding, protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Echoes.", tags=["echo"])],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = create_agent_card_routes(card)
    if binding == "JSONRPC":
        routes += create_jsonrpc_routes(handler, "/a2a")
    else:
        routes += create_rest_routes(handler, path_prefix="/a2a")
    config = uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error")
    server = uvicorn.Server(config)

    async def serve():
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(url, flush=True)
        await serving

    asyncio.run(serve())


main()
