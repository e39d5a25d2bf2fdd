"""The Python SDK of A2A as a client. Usage: client.py SERVER TOKEN BINDING. Prints the steps that it did.

The agent is `helper`: it echoes what it is told, `stall` never ends, `act` needs an approval.
"""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from jwt import PyJWK


def request(message_id, *parts, **more):
    message = Message(message_id=message_id, role=Role.ROLE_USER, parts=parts, **more)
    return SendMessageRequest(message=message)


async def collect(stream):
    return [event async for event in stream]


def state(event):
    return (event.task if event.HasField("task") else event.status_update).status.state


def artifact(events):
    """The artifact after these events. A task that ends early is the only event."""
    found = None
    for event in events:
        if event.HasField("artifact_update"):
            found = event.artifact_update.artifact
        elif event.HasField("task") and event.task.artifacts:
            found = event.task.artifacts[0]
    return found


async def until(stream, state):
    async for event in stream:
        task = event.task if event.HasField("task") else event.status_update
        if task.status.state == state:
            return task
    raise AssertionError(f"no {state}")


async def main(url, token, binding):
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
    keys = (await http.get(f"{url}/.well-known/jwks.json")).json()["keys"]

    def key(kid, jku):
        assert jku == f"{url}/.well-known/jwks.json", jku
        return next(PyJWK(known) for known in keys if known["kid"] == kid)

    verify = create_signature_verifier(key, ["ES256"])
    card = await A2ACardResolver(http, f"{url}/a2a/helper").get_agent_card(signature_verifier=verify)
    changed = type(card)()
    changed.CopyFrom(card)
    changed.description = "Changed."
    try:
        verify(changed)
        raise AssertionError("a changed card is accepted")
    except SignatureVerificationError:
        print("signed card")
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
    client = ClientFactory(config).create(card)
    run = binding

    events = await collect(client.send_message(request(f"{run}-1", Part(text="hi"))))
    assert events[0].HasField("task"), events
    task_id = events[0].task.id
    assert state(events[-1]) == TaskState.TASK_STATE_COMPLETED, events
    assert artifact(events).parts[0].text == "You said hi", events
    print("stream")

    again = await collect(client.send_message(request(f"{run}-1", Part(text="hi"))))
    assert again[0].task.id == task_id
    print("once")

    task = await client.get_task(GetTaskRequest(id=task_id, history_length=10))
    assert task.artifacts[0].parts[0].text == "You said hi", task
    assert task.history[0].parts[0].text == "hi", task
    print("get")

    listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
    assert [one.id for one in listed.tasks] == [task_id], listed
    print("list")

    stream = client.send_message(request(f"{run}-2", Part(text="stall")))
    stalled = (await anext(stream)).task.id
    following = client.subscribe(SubscribeToTaskRequest(id=stalled))
    assert (await anext(following)).task.id == stalled
    canceled = await client.cancel_task(CancelTaskRequest(id=stalled))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED, canceled
    assert state((await collect(following))[-1]) == TaskState.TASK_STATE_CANCELED
    await collect(stream)
    print("subscribe and cancel")

    asked = await until(client.send_message(request(f"{run}-3", Part(text="act"))), TaskState.TASK_STATE_INPUT_REQUIRED)
    (data,) = [part.data for part in asked.status.message.parts if part.HasField("data")]
    approval = data.struct_value["approval"]["id"]
    decision = ParseDict({"approval": {"id": approval, "decision": "allow_once"}}, Value())
    answer = request(f"{run}-4", Part(data=decision), task_id=asked.task_id if hasattr(asked, "task_id") else asked.id)
    await until(client.send_message(answer), TaskState.TASK_STATE_COMPLETED)
    print("approval")

    hook = TaskPushNotificationConfig(task_id=task_id, id="mine", url="https://hooks.invalid/a2a", token="t")
    made = await client.create_task_push_notification_config(hook)
    assert (made.id, made.url) == ("mine", hook.url), made
    one = GetTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    assert (await client.get_task_push_notification_config(one)).url == hook.url
    listing = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    assert len((await client.list_task_push_notification_configs(listing)).configs) == 1
    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="mine"))
    assert not (await client.list_task_push_notification_configs(listing)).configs
    print("push")

    for call, error in [
        (client.get_task(GetTaskRequest(id="nothing")), TaskNotFoundError),
        (client.cancel_task(CancelTaskRequest(id=task_id)), TaskNotCancelableError),
    ]:
        try:
            await call
            raise AssertionError("no error")
        except error:
            pass
    print("errors")

    extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest(), signature_verifier=verify)
    assert extended.name == card.name, extended
    print("extended card")


asyncio.run(main(*sys.argv[1:]))
