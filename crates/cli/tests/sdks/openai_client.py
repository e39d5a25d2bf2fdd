"""openai_client.py URL KEY: asks a server with OpenAI's own client, and prints what worked."""

import json
import sys
import time

import openai

MODEL = "scripted/test"
URL, KEY = sys.argv[1:]
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=30)
PARAMETERS = {"type": "object", "properties": {"in": {"type": "string"}}, "required": ["in"], "additionalProperties": False}
RESULTS = {"Rome": "sun in Rome", "Oslo": "rain in Oslo"}


def equal(found: object, expected: object) -> None:
    assert found == expected, f"{found!r} is not {expected!r}"


def fails(kind: type, code: object, call) -> openai.APIStatusError:
    try:
        call()
    except kind as error:
        equal(error.code, code)
        assert error.message and error.type, vars(error)
        return error
    raise AssertionError(f"no {kind.__name__}")


def chat() -> None:
    says = lambda text: [{"role": "user", "content": text}]
    create = client.chat.completions.create
    answer = create(model=MODEL, messages=says("hello"), temperature=0.3, max_tokens=50, top_p=0.9, seed=1, stop=["x"], user="u")
    equal((answer.choices[0].message.content, answer.choices[0].finish_reason), ("Turn 0: hello", "stop"))
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=says("hello"))
    assert raw.request_id and raw.headers["x-antiphon-task"] in raw.request_id, raw.headers

    chunks = list(create(model=MODEL, messages=says("hello"), stream=True, stream_options={"include_usage": True}))
    equal("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), "Turn 0: hello")
    equal((chunks[-1].choices, chunks[-1].usage.total_tokens), ([], answer.usage.total_tokens))
    print("chat")

    tools = [{"type": "function", "function": {"name": "weather", "description": "Tells.", "parameters": PARAMETERS, "strict": True}}]
    messages = says("weather")
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    equal([json.loads(call.function.arguments)["in"] for call in message.tool_calls], ["Rome", "Oslo"])
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        said = RESULTS[json.loads(call.function.arguments)["in"]]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    answer = create(model=MODEL, messages=messages, tools=tools)
    equal(answer.choices[0].message.content, "Then: rain in Oslo")
    print("chat tools")

    fails(openai.NotFoundError, "model_not_found", lambda: create(model="nobody", messages=says("hello")))
    refused = fails(openai.BadRequestError, "unsupported_parameter", lambda: create(model=MODEL, messages=says("hello"), logprobs=True))
    equal(refused.param, "logprobs")
    fails(openai.RateLimitError, "rate_limited", lambda: create(model=MODEL, messages=says("busy")))
    stream = create(model=MODEL, messages=says("stall"), stream=True)
    next(chunk for chunk in stream if chunk.choices[0].delta.content)
    stream.close()
    print("chat errors")


def responses() -> None:
    create = client.responses.create
    first = create(model=MODEL, input="hello", instructions="Be brief.", metadata={"a": "b"}, temperature=0.3, max_output_tokens=50)
    equal((first.output_text, first.status, first.error, first.metadata), ("Turn 0: hello", "completed", None, {"a": "b"}))
    assert first._request_id, "no x-request-id"
    found = client.responses.retrieve(first.id)
    equal((found.id, found.output_text, found.status), (first.id, "Turn 0: hello", "completed"))
    items = client.responses.input_items.list(first.id).data
    equal([(item.type, item.role, item.content[0].text) for item in items], [("message", "user", "hello")])
    second = create(model=MODEL, input="again", previous_response_id=first.id)
    equal((second.output_text, second.previous_response_id), ("Turn 1: again", first.id))
    fork = create(model=MODEL, input=[{"role": "user", "content": [{"type": "input_text", "text": "other"}]}], previous_response_id=first.id)
    equal(fork.output_text, "Turn 1: other")
    unstored = create(model=MODEL, input="hello", store=False)
    fails(openai.NotFoundError, "response_not_found", lambda: client.responses.retrieve(unstored.id))
    print("responses")

    events = list(create(model=MODEL, input="hello", stream=True))
    equal([event.sequence_number for event in events], list(range(len(events))))
    equal((events[0].type, events[1].type, events[-1].type), ("response.created", "response.in_progress", "response.completed"))
    equal("".join(event.delta for event in events if event.type == "response.output_text.delta"), "Turn 0: hello")
    with client.responses.stream(model=MODEL, input="think") as stream:
        final = stream.get_final_response()
    equal([item.type for item in final.output], ["reasoning", "message"])
    again = [{"role": "user", "content": "think"}, *final.output, {"role": "user", "content": "more"}]
    equal(create(model=MODEL, input=again, include=["reasoning.encrypted_content"]).output_text, "Turn 1: more")
    print("responses stream")

    tools = [{"type": "function", "name": "weather", "description": "Tells.", "parameters": PARAMETERS, "strict": True}]
    asked = create(model=MODEL, input="weather", tools=tools)
    calls = [item for item in asked.output if item.type == "function_call"]
    equal([json.loads(call.arguments)["in"] for call in calls], ["Rome", "Oslo"])
    outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": RESULTS[json.loads(call.arguments)["in"]]} for call in calls]
    equal(create(model=MODEL, input=outputs, previous_response_id=asked.id, tools=tools).output_text, "Then: rain in Oslo")
    with client.responses.stream(model=MODEL, input="weather", tools=tools) as stream:
        final = stream.get_final_response()
    equal([item.parsed_arguments["in"] for item in final.output if item.type == "function_call"], ["Rome", "Oslo"])
    whole = [{"role": "user", "content": "weather"}, *final.output]
    whole += [{"type": "function_call_output", "call_id": item.call_id, "output": "fog"} for item in final.output if item.type == "function_call"]
    equal(create(model=MODEL, input=whole, tools=tools, store=False).output_text, "Then: fog")
    print("responses tools")

    conversation = client.conversations.create()
    for turn in range(3):
        equal(create(model=MODEL, input="hello", conversation=conversation.id).output_text, f"Turn {turn}: hello")
    background = create(model=MODEL, input="stall", background=True)
    assert background.status in ("queued", "in_progress"), background
    fails(openai.ConflictError, None, lambda: create(model=MODEL, input="more", previous_response_id=background.id))
    equal(client.responses.cancel(background.id).status, "cancelled")
    done = create(model=MODEL, input="hello", background=True)
    while client.responses.retrieve(done.id).status != "completed":
        time.sleep(0.05)
    print("conversations")

    import pydantic

    class Answer(pydantic.BaseModel):
        a: int

    equal(client.responses.parse(model=MODEL, input="deliver", text_format=Answer).output_parsed, Answer(a=1))
    fails(openai.NotFoundError, "model_not_found", lambda: create(model="nobody", input="hello"))
    fails(openai.NotFoundError, "response_not_found", lambda: client.responses.retrieve("resp_nothing"))
    refused = fails(openai.BadRequestError, "unsupported_parameter", lambda: create(model=MODEL, input="hello", max_tool_calls=3))
    equal(refused.param, "max_tool_calls")
    fails(openai.RateLimitError, "rate_limited", lambda: create(model=MODEL, input="busy"))
    stream = create(model=MODEL, input="stall", stream=True)
    next(event for event in stream if event.type == "response.output_text.delta")
    stream.close()
    print("responses errors")


def guard() -> None:
    error = fails(openai.AuthenticationError, "invalid_api_key", client.with_options(api_key="wrong").models.list)
    assert error.request_id, "no x-request-id"
    error = fails(openai.NotFoundError, None, lambda: client.get("/chat/nothing", cast_to=object))
    big = [{"role": "user", "content": "x" * (17 << 20)}]
    fails(openai.APIStatusError, None, lambda: client.chat.completions.create(model=MODEL, messages=big))
    names = [model.id for model in client.models.list()]
    assert MODEL in names and client.models.retrieve(MODEL).owned_by == "scripted", names
    # What the first try of a client with retries has begun, the second one finds.
    key = {"Idempotency-Key": "once"}
    ids = {client.responses.create(model=MODEL, input="hello", extra_headers=key).id for _ in range(2)}
    equal(len(ids), 1)
    print("guard")


chat()
responses()
guard()
