"""anthropic_client.py URL KEY: asks a server with Anthropic's own client, and prints what worked."""

import sys

import anthropic

MODEL = "claude-test"
URL, KEY = sys.argv[1:]
client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=30)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER = {
    "name": "weather",
    "description": "Tells.",
    "input_schema": {"type": "object", "properties": {"in": {"type": "string"}}, "required": ["in"]},
}


def equal(found: object, expected: object) -> None:
    assert found == expected, f"{found!r} is not {expected!r}"


def create(text: object = "hello", **more: object):
    messages = more.pop("messages", [{"role": "user", "content": text}])
    return client.messages.create(**{"model": MODEL, "max_tokens": 2000, "messages": messages, **more})


def fails(kind: type, name: str, call) -> anthropic.APIStatusError:
    try:
        call()
    except kind as error:
        equal((error.body["type"], error.body["error"]["type"]), ("error", name))
        assert error.body["error"]["message"] and error.request_id, (error.body, error.request_id)
        return error
    raise AssertionError(f"no {kind.__name__}")


def messages() -> None:
    answer = create(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}], extra_body={"temperature": 0.3, "top_p": 0.9}, stop_sequences=["x"], metadata={"user_id": "u"})
    equal((answer.type, answer.role, answer.content[0].text, answer.stop_reason), ("message", "assistant", "Turn 0: hello", "end_turn"))
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer
    assert answer._request_id, "no request-id"
    more = [{"role": "user", "content": "one"}, {"role": "assistant", "content": answer.content}, {"role": "user", "content": "two"}]
    equal(create(messages=more).content[0].text, "Turn 1: two")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    equal(create([image, {"type": "text", "text": "what is it"}]).content[0].text, "Turn 0: what is it")
    print("messages")

    import pydantic

    class Answer(pydantic.BaseModel):
        a: int

    says = [{"role": "user", "content": "deliver"}]
    parsed = client.messages.parse(model=MODEL, max_tokens=2000, messages=says, output_format=Answer)
    equal(parsed.parsed_output, Answer(a=1))
    print("parse")

    events = []
    with client.messages.stream(model=MODEL, max_tokens=2000, messages=[{"role": "user", "content": "hello"}]) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_message()
    equal(final.content[0].text, "Turn 0: hello")
    equal((events[0], events[1], events[-1]), ("message_start", "content_block_start", "message_stop"))
    raw = [event.type for event in create(stream=True)]
    equal(raw[-3:], ["content_block_stop", "message_delta", "message_stop"])
    print("stream")


def tools() -> None:
    asked = create("weather", tools=[WEATHER])
    uses = [block for block in asked.content if block.type == "tool_use"]
    equal((asked.stop_reason, [use.input["in"] for use in uses]), ("tool_use", ["Rome", "Oslo"]))
    with client.messages.stream(model=MODEL, max_tokens=2000, tools=[WEATHER], messages=[{"role": "user", "content": "weather"}]) as stream:
        final = stream.get_final_message()
    equal([block.type for block in final.content], ["text", "tool_use", "tool_use"])
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": f"sun in {block.input['in']}"} for block in final.content if block.type == "tool_use"]
    history = [{"role": "user", "content": "weather"}, {"role": "assistant", "content": final.content}, {"role": "user", "content": results}]
    equal(create(messages=history, tools=[WEATHER]).content[0].text, "Then: sun in Oslo")
    print("tools")

    @anthropic.beta_tool(name="weather", input_schema=WEATHER["input_schema"])
    def weather(**place: str) -> str:
        """Tells."""
        return f"fog in {place['in']}"

    runner = client.beta.messages.tool_runner(model=MODEL, max_tokens=2000, tools=[weather], messages=[{"role": "user", "content": "weather"}])
    equal(runner.until_done().content[0].text, "Then: fog in Oslo")
    print("tool runner")


def thinking() -> None:
    budget = {"type": "enabled", "budget_tokens": 1024}
    answer = create("think", thinking=budget)
    equal([block.type for block in answer.content], ["thinking", "text"])
    assert answer.content[0].thinking == "Let me see." and answer.content[0].signature, answer
    with client.messages.stream(model=MODEL, max_tokens=2000, thinking=budget, messages=[{"role": "user", "content": "think"}]) as stream:
        final = stream.get_final_message()
    equal(final.content[0].signature, answer.content[0].signature)
    history = [{"role": "user", "content": "one"}, {"role": "assistant", "content": final.content}, {"role": "user", "content": "two"}]
    equal(create(messages=history, thinking=budget).content[0].text, "Turn 1: two")
    print("thinking")


def rest() -> None:
    counted = client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "hello"}], tools=[WEATHER])
    assert counted.input_tokens > 0, counted
    models = client.models.list()
    assert "scripted/test" in [model.id for model in models], models
    equal(client.models.retrieve("scripted/test").type, "model")
    print("models")

    fails(anthropic.NotFoundError, "not_found_error", lambda: create(model="nobody"))
    fails(anthropic.BadRequestError, "invalid_request_error", lambda: create(messages=[]))
    fails(anthropic.RateLimitError, "rate_limit_error", lambda: create("busy"))
    fails(anthropic.AuthenticationError, "authentication_error", client.with_options(api_key="wrong").models.list)
    fails(anthropic.AuthenticationError, "authentication_error", lambda: client.with_options(api_key="wrong").messages.create(model=MODEL, max_tokens=9, messages=[]))
    fails(anthropic.NotFoundError, "not_found_error", lambda: client.get("/v1/messages/nothing", cast_to=object))
    fails(anthropic.RequestTooLargeError, "request_too_large", lambda: create("x" * (17 << 20)))
    bearer = anthropic.Anthropic(base_url=URL, auth_token=KEY, api_key=None, max_retries=0)
    equal(bearer.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "hello"}]).type, "message")
    with client.messages.stream(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "stall"}]) as stream:
        next(iter(stream.text_stream))
    print("errors")


messages()
tools()
thinking()
rest()
