"""Resources and prompts."""

from __future__ import annotations

import re

from beetle.mcp.guide import guide
from beetle.mcp.tools import Tools
from tests.mcp.host import Host


def read(host: Host, uri: str) -> str:
    (content,) = host.ask("resources/read", {"uri": uri})["result"]["contents"]
    assert content["uri"] == uri
    return content["text"]


def test_what_is_listed_can_be_read(host: Host) -> None:
    for each in host.ask("resources/list")["result"]["resources"]:
        assert each["description"].endswith(".")
        assert read(host, each["uri"])
    templates = {each["uriTemplate"] for each in host.ask("resources/templates/list")["result"]["resourceTemplates"]}
    assert templates == {"beetle://projection{?query}", "beetle://conversation/{channel}/{conversation}"}


def test_the_projection_of_a_query_and_a_conversation(host: Host) -> None:
    assert "flower pot" in read(host, "beetle://projection?query=spare%20key")
    said = read(host, "beetle://conversation/local/kitchen")
    assert "Mara: I prefer green tea." in said
    assert "assistant: The spare key" in said


def test_an_address_of_nothing_is_not_found(host: Host) -> None:
    for uri in (
        "beetle://guide/x", "beetle://guide?x=1", "beetle://projection?queri=x", "beetle://conversation/local", "beetle://",
        "beetle://conversation/local/", "beetle://conversation/a/b/c", "beetle://conversation/local/never", "http://[",
    ):  # fmt: skip
        assert host.ask("resources/read", {"uri": uri})["error"]["code"] == -32002, uri


def test_the_prompt_brings_back_what_was_spoken_of(host: Host) -> None:
    (prompt,) = host.ask("prompts/list")["result"]["prompts"]
    assert prompt["name"] == "resume"
    got = host.ask("prompts/get", {"name": "resume", "arguments": {"topic": "spare key"}})["result"]
    (message,) = got["messages"]
    assert message["role"] == "user"
    assert "flower pot" in message["content"]["text"]
    assert host.ask("prompts/get", {"name": "resume", "arguments": {"topik": "x"}})["error"]["code"] == -32602


def test_the_page_speaks_only_of_tools_that_are_there(host: Host) -> None:
    page = read(host, "beetle://guide")
    assert page == guide(host.tools())
    for toolset in ("memory", "all"):
        names = Tools(toolset).names()
        spoken = set(re.findall(r"\bmemory_[a-z_]+", guide(names)))
        assert spoken <= set(names), toolset
