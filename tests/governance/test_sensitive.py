"""What looks like a secret, a schema or a full result, and what only sounds like one."""

from __future__ import annotations

import base64
import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.domain.sensitive import finding

RANDOM = random.Random(7)


def letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Made here, so that no key-like text stands in the sources. A digit, a small and a capital letter are in it."""
    return "a7K" + "".join(RANDOM.choices(alphabet, k=count - 3))


HEX = "".join(RANDOM.choices("0123456789abcdef", k=40))
WEB_TOKEN = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
    for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "name": "x"}, "signature here")
)

SECRETS = {
    "pem": "-----BEGIN " + "PRIVATE KEY-----\nMIIE",
    "rsa pem in a line": "wrote -----BEGIN RSA " + "PRIVATE KEY----- to disk",
    "openai": "called with sk-" + letters(40),
    "openai project": "sk-proj-" + letters(40),
    "stripe": "used sk_live_" + letters(24),
    "github": "cloned with ghp_" + letters(36),
    "github fine grained": "github_pat_" + letters(60),
    "gitlab": "glpat-" + letters(20),
    "slack": "xoxb-" + "123456789012-" + letters(20),
    "aws": "the id AKIA" + letters(16, string.ascii_uppercase + string.digits).upper() + " was used",
    "google": "AIza" + letters(35),
    "web token": f"got {WEB_TOKEN}",
    "bearer": "Authorization: Bearer " + letters(32),
    "assigned": "API_KEY=" + letters(32),
    "quoted": '"access_key": "' + letters(32) + '"',
    "with a word": "the api key is " + letters(24),
    "prefixed name": "MY_SERVICE_TOKEN: " + HEX,
    "hex": f"secret {HEX}",
    "password": "password=correct7horse",
    "passphrase": "passphrase: 'tr0ub4dor&3'",
    "in an address": "fetched https://ana:hunter22@example.org/x",
}

SCHEMAS = {
    "json schema": 'took {"type": "object", "properties": {"city": {"type": "string"}}}',
    "tool": "{'name': 'f', 'parameters': {'type': 'object'}}",
    "named": '"$schema": "https://json-schema.org/draft/2020-12/schema"',
    "input": '"inputSchema" : {"a": 1}',
    "xsd": '<xs:schema xmlns:xs="…">',
    "openapi": "openapi: 3.1.0\ninfo: x",
}

RESULTS = {
    "object": '{"temperature": 21, "unit": "C"}',
    "list": "[1, 2, 3]",
    "cut": '{"rows": [{"id": 1, "name": "A',
    "cut list": '[{"id": 1, "na',
    "html": "<!DOCTYPE html><html><body>…",
    "xml": "<?xml version='1.0'?><a/>",
    "http": "HTTP/1.1 200 OK\nContent-Type: text/plain",
    "page": "\n".join(f"line {n}" for n in range(13)),
}

PLAIN = [
    "",
    "Looked up the weather in Oslo; it is 21 degrees.",
    "Used 4096 tokens of the window, prompt_tokens=3000.",
    "The token was refreshed successfully and the call went through.",
    "The user forgot the password, so a reset was sent.",
    "password: incorrect",
    "Asked for the API key and got none.",
    "The key is under the pot by the third door.",
    "Secret santa list was drawn for 12 people.",
    "secretary2024-meeting-notes-final was opened",
    f"sha256 of the file: {HEX}",
    "Commit 5f2c9e1b7a was pushed to main.",
    "Request 550e8400-e29b-41d4-a716-446655440000 failed with 503.",
    "Wrote /var/lib/service/data2024/config-2026.json",
    "Authorization failed: insufficient_permissions_for_this_account",
    "token: <redacted>",
    "api key: [hidden]",
    "Opened https://example.org/path?page=2 and ana@example.org.",
    "[retry] worked the second time",
    "{city} was not filled in",
    "The schema has properties for city and country.",
    "Parameters: city=Oslo, unit=C",
    "[]",
    "{}",
    "- one\n- two\n- three",
    "ask-me-anything-about-this-topic-please-now",
    "risk-" + "a" * 30,
    "Bearer of bad news: the build is red.",
    "茶を入れた。温度は21度。",
    "session id was missing",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found(name: str) -> None:
    assert finding(SECRETS[name]) == "secret"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_found(name: str) -> None:
    assert finding(SCHEMAS[name]) == "schema"


@pytest.mark.parametrize("name", RESULTS)
def test_a_full_result_is_found(name: str) -> None:
    assert finding(RESULTS[name]) == "full_result"


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_summary_is_none(text: str) -> None:
    assert finding(text) is None


@given(st.text(alphabet=st.characters(categories=("Ll", "Lu", "Zs", "Po")), max_size=512))
def test_words_alone_are_no_secret(text: str) -> None:
    assert finding(text) != "secret"


@given(st.text(max_size=512))
def test_any_text_is_judged(text: str) -> None:
    assert finding(text) in (None, "secret", "schema", "full_result")
