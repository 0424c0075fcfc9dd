"""Provider answers as they are seen in the wild, by wire format, and what each comes to.

The rows are those of the input page on provider responses; the bodies are our own. The same table is read by the pure
readers and sent over HTTP through both transports.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Api = Literal["anthropic", "chat", "responses"]
TAP = {"element": "e2", "purpose": "to turn it on", "expected_outcome": "Wi-Fi is on"}
TAP_TEXT = json.dumps(TAP)
LEFT = {"element": "e2"}
SAID = "The page is shown. Next: the switch."


@dataclass(frozen=True)
class Row:
    """`expect` is the tool that is called, or the code of the fault. `also` are fields of the reply."""

    row: int
    name: str
    api: Api
    body: Any
    expect: str
    correctable: bool | None = None
    also: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"row{self.row}-{self.api}-{self.name}"

    @property
    def lacks_something(self) -> bool:
        """Whether it is a call that can be read, but not carried out."""
        return self.expect == "home" or self.name == "huge-number"

    @property
    def raw(self) -> str:
        return self.body if isinstance(self.body, str) else json.dumps(self.body)


def message(*content: dict[str, Any], stop: Any = "tool_use", **more: Any) -> dict[str, Any]:
    usage = more.pop("usage", {"input_tokens": 10, "output_tokens": 5})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
        **more,
    }


def text(said: str = SAID) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(arguments: Any = TAP, name: str = "tap", number: int = 1) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def chat(finish: Any = "tool_calls", usage: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m-1",
        "usage": usage,
        "choices": [
            {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": finish, "stop_reason": 128001}
        ],
    }


def function(arguments: Any = TAP_TEXT, name: str = "tap", number: int = 1) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def response(*output: dict[str, Any], status: Any = "completed", **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "m-1", "status": status, "output": list(output), **more}


def item(arguments: Any = TAP_TEXT, name: str = "tap", number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
        **more,
    }


def said(words: str = SAID) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
    }


def reasoning(*summary: str) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": each} for each in summary],
        "encrypted_content": "c2VjcmV0",
    }


TWICE = json.dumps(json.dumps(TAP))
IN_CONTENT = f'<tool_call>{{"name": "tap", "arguments": {json.dumps(TAP)}}}</tool_call>'
OK = {"arguments": LEFT, "purpose": TAP["purpose"], "expected_outcome": TAP["expected_outcome"], "text_output": SAID}

ROWS: tuple[Row, ...] = (
    # plain
    Row(0, "plain", "anthropic", message(text(), use()), "tap", also=OK),
    Row(0, "plain", "chat", chat(content=SAID, tool_calls=[function()]), "tap", also=OK),
    Row(0, "plain", "responses", response(said(), item()), "tap", also=OK),
    Row(0, "no-text", "anthropic", message(use()), "tap", also={**OK, "text_output": None, "thinking": None}),
    Row(0, "no-text", "chat", chat(content=None, tool_calls=[function()]), "tap", also={"text_output": None}),
    Row(0, "stop-with-call", "chat", chat("stop", content=SAID, tool_calls=[function()]), "tap", also=OK),
    # 8: no call
    Row(8, "text-only", "anthropic", message(text(), stop="end_turn"), "no_tool_call", True, {"text_output": SAID}),
    Row(8, "nothing", "anthropic", message(stop="end_turn"), "no_tool_call", True),
    Row(
        8,
        "in-content",
        "chat",
        chat("stop", content=IN_CONTENT, tool_calls=[]),
        "no_tool_call",
        True,
        {"text_output": IN_CONTENT},
    ),
    Row(
        8,
        "in-reasoning",
        "chat",
        chat("stop", content=None, reasoning_content=IN_CONTENT),
        "no_tool_call",
        True,
        {"thinking": IN_CONTENT},
    ),
    Row(8, "empty-list-though-said-so", "chat", chat("tool_calls", content="", tool_calls=[]), "no_tool_call", True),
    Row(8, "text-only", "responses", response(said()), "no_tool_call", True, {"text_output": SAID}),
    # 9: several calls
    Row(9, "two", "anthropic", message(text(), use(), use(number=2)), "several_tool_calls", True),
    Row(9, "two", "chat", chat(content=SAID, tool_calls=[function(), function(number=2)]), "several_tool_calls", True),
    Row(9, "two", "responses", response(said(), item(), item(number=2)), "several_tool_calls", True),
    # 10: cut off
    Row(10, "empty-input", "anthropic", message(text(), use({}), stop="max_tokens"), "truncated", True),
    Row(10, "valid-beginning", "anthropic", message(text(), use(TAP), stop="max_tokens"), "truncated", True),
    Row(
        10,
        "half-json",
        "chat",
        chat("length", content=None, tool_calls=[function('{"element": "e')]),
        "truncated",
        True,
    ),
    Row(10, "whole-json", "chat", chat("length", content=None, tool_calls=[function()]), "truncated", True),
    Row(10, "empty-list", "chat", chat("length", content="", tool_calls=[]), "truncated", True),
    Row(
        10,
        "incomplete",
        "responses",
        response(
            item("{", status="incomplete"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
        ),
        "truncated",
        True,
    ),
    Row(
        10,
        "whole-call-at-the-limit",
        "responses",
        response(item(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "truncated",
        True,
    ),
    Row(10, "incomplete-item", "responses", response(item(status="incomplete")), "truncated", True),
    # 11: other ends
    Row(
        11,
        "refusal",
        "anthropic",
        message(text(), use(), stop="refusal", stop_details={"type": "refusal", "category": "cyber"}),
        "refused",
        False,
    ),
    Row(
        11,
        "pause",
        "anthropic",
        message(text(), use(), stop="pause_turn"),
        "stopped",
        False,
        {"stop_reason": "pause_turn"},
    ),
    Row(11, "window", "anthropic", message(use(), stop="model_context_window_exceeded"), "stopped", False),
    Row(11, "unknown", "anthropic", message(use(), stop="moonlight"), "stopped", False, {"stop_reason": "moonlight"}),
    Row(11, "filter", "chat", chat("content_filter", content="", tool_calls=[function()]), "refused", False),
    Row(11, "refusal-field", "chat", chat("stop", content=None, refusal="I can't."), "refused", False),
    Row(11, "unknown", "chat", chat("moonlight", content=None, tool_calls=[function()]), "stopped", False),
    Row(
        11,
        "filter",
        "responses",
        response(status="incomplete", incomplete_details={"reason": "content_filter"}),
        "refused",
        False,
    ),
    Row(
        11,
        "refusal-part",
        "responses",
        response({"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]}),
        "refused",
        False,
    ),
    Row(
        11,
        "failed",
        "responses",
        response(status="failed", error={"code": "server_error", "message": "oops"}),
        "stopped",
        False,
        {"stop_reason": "server_error"},
    ),
    Row(11, "unknown", "responses", response(item(), status="moonlight"), "stopped", False),
    # 12: several blocks
    Row(
        12,
        "blocks",
        "anthropic",
        message(
            {"type": "thinking", "thinking": "one", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "thinking", "thinking": "two", "signature": "c2ln"},
            text("It worked."),
            {"type": "hologram", "data": 1},
            text("Next: tap."),
            use(),
        ),
        "tap",
        also={"thinking": "one\n[redacted]\ntwo", "text_output": "It worked.\nNext: tap."},
    ),
    Row(
        12,
        "empty-thinking",
        "anthropic",
        message({"type": "thinking", "thinking": "", "signature": "c2ln"}, use()),
        "tap",
        also={"thinking": None},
    ),
    Row(
        12,
        "items",
        "responses",
        response(
            reasoning("one"), {"type": "hologram"}, said("It worked."), reasoning("two"), said("Next: tap."), item()
        ),
        "tap",
        also={"thinking": "one\ntwo", "text_output": "It worked.\nNext: tap."},
    ),
    # 14: forms of arguments
    Row(14, "json-in-text", "anthropic", message(use(json.dumps(TAP))), "tap", also={"arguments": LEFT}),
    Row(14, "json-in-json", "chat", chat(content=None, tool_calls=[function(TWICE)]), "tap", also={"arguments": LEFT}),
    Row(14, "object", "chat", chat(content=None, tool_calls=[function(TAP)]), "tap", also={"arguments": LEFT}),
    Row(14, "empty", "chat", chat(content=None, tool_calls=[function("", "home")]), "home", also={"arguments": {}}),
    Row(14, "null", "chat", chat(content=None, tool_calls=[function(None, "home")]), "home", also={"arguments": {}}),
    Row(
        14,
        "null-text",
        "chat",
        chat(content=None, tool_calls=[function("null", "home")]),
        "home",
        also={"arguments": {}},
    ),
    Row(14, "null", "anthropic", message(use(None, "home")), "home", also={"arguments": {}}),
    Row(14, "empty", "responses", response(item("", "home")), "home", also={"arguments": {}}),
    Row(14, "three-times", "chat", chat(content=None, tool_calls=[function(json.dumps(TWICE))]), "bad_arguments", True),
    # 15: no JSON
    Row(
        15,
        "no-json",
        "chat",
        chat(content=SAID, tool_calls=[function("tap e2!")]),
        "bad_arguments",
        True,
        {"text_output": SAID},
    ),
    Row(15, "list", "responses", response(item("[1]")), "bad_arguments", True),
    Row(15, "not-finite", "chat", chat(content=None, tool_calls=[function('{"x": NaN}')]), "bad_arguments", True),
    Row(15, "number", "anthropic", message(use(5)), "bad_arguments", True),
    # 16: compatible servers
    Row(
        16,
        "reasoning_content",
        "chat",
        chat(content="", reasoning_content="hm", tool_calls=[function()], function_call=None, audio=None),
        "tap",
        also={"thinking": "hm", "text_output": None},
    ),
    Row(16, "reasoning", "chat", chat(reasoning="hm", tool_calls=[function()]), "tap", also={"thinking": "hm"}),
    Row(
        16,
        "chunks",
        "chat",
        chat(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": SAID},
                {"type": "x"},
            ],
            tool_calls=[function()],
        ),
        "tap",
        also={"thinking": "hm", "text_output": SAID},
    ),
    Row(
        16,
        "think-tags",
        "chat",
        chat(content=f"<think>hm</think>\n{SAID}", tool_calls=[function()]),
        "tap",
        also={"thinking": "hm", "text_output": SAID},
    ),
    Row(16, "no-finish-reason", "chat", chat(None, content=SAID, tool_calls=[function()]), "tap"),
    Row(
        16,
        "legacy-call",
        "chat",
        chat("function_call", content=None, function_call={"name": "tap", "arguments": json.dumps(TAP)}),
        "tap",
    ),
    Row(
        16,
        "half-a-surrogate",
        "chat",
        chat(content="\ud83d ok\0", tool_calls=[function()]),
        "tap",
        also={"text_output": "\ufffd ok"},
    ),
    Row(16, "huge-number", "chat", chat(content=None, tool_calls=[function('{"x": 99999999999999999999999}')]), "tap"),
    # 18: Responses
    Row(
        18,
        "ids",
        "responses",
        response(reasoning("one"), item()),
        "tap",
        also={"thinking": "one", "response_id": "resp_1/call_1"},
    ),
    # 19: no completion
    Row(19, "html", "anthropic", "<html><body>Sign in</body></html>", "not_a_completion", False),
    Row(19, "html", "chat", "<html><body>Sign in</body></html>", "not_a_completion", False),
    Row(19, "html", "responses", "<html><body>Sign in</body></html>", "not_a_completion", False),
    Row(19, "other-json", "anthropic", {"ok": True}, "not_a_completion", False),
    Row(16, "bare", "anthropic", {"content": [use()]}, "tap"),
    Row(16, "no-content", "anthropic", {"type": "message", "stop_reason": "refusal"}, "refused", False),
    Row(19, "no-choices", "chat", {"id": "x", "object": "chat.completion"}, "not_a_completion", False),
    Row(19, "empty-choices", "chat", {"choices": []}, "not_a_completion", False),
    Row(19, "error-in-200", "chat", {"error": {"message": "no such route"}}, "not_a_completion", False),
    Row(19, "list", "anthropic", "[1]", "not_a_completion", False),
)
