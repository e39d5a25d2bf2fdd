#!/usr/bin/env python3
"""openai_sdk.py URL KEY: asks the server at URL with OpenAI's own client, and prints what worked.

Installs the client once, into ANTIPHON_CACHE, and runs itself again in there; with `--install` in
place of URL and KEY, that is all it does.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[5] / "scripts"))
import python_env  # noqa: E402

PACKAGES = ["openai==3.49.0"]


def main(url: str, key: str) -> None:
    import openai

    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=30)
    model = "scripted/test"

    def says(text: str) -> list:
        return [{"role": "user", "content": text}]

    answer = client.chat.completions.create(model=model, messages=says("hello"), temperature=0.3, max_tokens=50)
    assert answer.choices[0].message.content == "You said hello", answer
    assert answer.choices[0].finish_reason == "stop", answer
    assert answer.usage.total_tokens == 6, answer
    print("chat")

    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model=model, messages=says("hello"), stream=True, stream_options=options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "You said hello", chunks
    assert chunks[-1].choices == [] and chunks[-1].usage.total_tokens == 6, chunks
    print("stream")

    parameters = {"type": "object", "properties": {"in": {"type": "string"}}, "required": ["in"]}
    tools = [{"type": "function", "function": {"name": "weather", "description": "Tells.", "parameters": parameters}}]
    messages = says("weather")
    answer = client.chat.completions.create(model=model, messages=messages, tools=tools)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls", answer
    assert [json.loads(call.function.arguments)["in"] for call in message.tool_calls] == ["Rome", "Oslo"], answer
    messages.append(message)
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"sun in {call.id}"})
    answer = client.chat.completions.create(model=model, messages=messages, tools=tools)
    assert answer.choices[0].message.content == "Then: sun in c2", answer
    print("tools")

    with client.chat.completions.stream(model=model, messages=says("weather"), tools=tools) as stream:
        final = stream.get_final_completion()
    calls = [(call.id, call.function.name, call.function.arguments) for call in final.choices[0].message.tool_calls]
    assert calls == [("c1", "weather", '{"in":"Rome"}'), ("c2", "weather", '{"in":"Oslo"}')], calls
    print("streamed tools")

    import pydantic

    class Answer(pydantic.BaseModel):
        a: int

    parsed = client.chat.completions.parse(model=model, messages=says("deliver"), response_format=Answer)
    assert parsed.choices[0].message.parsed == Answer(a=1), parsed
    print("parse")

    def fails(kind: type, code: object, **request: object) -> None:
        try:
            client.chat.completions.create(**{"model": model, "messages": says("hello"), **request})
        except kind as error:
            assert error.code == code, (error.code, error)
        else:
            raise AssertionError(request)

    fails(openai.NotFoundError, "model_not_found", model="nobody")
    fails(openai.BadRequestError, "unsupported_parameter", n=2)
    fails(openai.RateLimitError, "rate_limited", messages=says("busy"))
    try:
        list(client.chat.completions.create(model=model, messages=says("break"), stream=True))
    except openai.APIError as error:
        assert error.code == "overloaded", error
    else:
        raise AssertionError("it broke")
    try:
        client.with_options(api_key="wrong").models.list()
    except openai.AuthenticationError:
        pass
    else:
        raise AssertionError("let in")
    print("errors")

    assert [known.id for known in client.models.list()] == ["boss", "helper", model]
    assert client.models.retrieve(model).owned_by == "scripted"
    print("models")

    stream = client.chat.completions.create(model=model, messages=says("stall"), stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    stream.close()
    print("left")


if __name__ == "__main__":
    main(*python_env.run_inside("openai-sdk", PACKAGES, __doc__, arguments=2))
