"""Whether each rule of reading a provider's answer is held by a test: every rule is broken once, and tests must fail.

    python tests/planner_mutations.py [--only WORD]

A mutation is a text of a module and what takes its place. The planner's source is copied, mutated in the copy, and the
unit tests run against it, first of all without a mutation; rules of HTTP errors need the tests of asking, which start
a NATS server. What no test notices is listed, and the exit code says so.
"""

# ruff: noqa: E501, T201  (a table with a rule on each line; a program that prints)

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "services" / "planner" / "src" / "apex_planner"
UNIT: Final = tuple(f"tests/unit/test_planner_{name}.py" for name in (
    "reading", "grounding", "decide", "prompt", "loops", "view", "prices",
))  # fmt: skip
ASKING: Final = ("tests/integration/test_planner_asking.py", "-k", "direct")


class Mutation(NamedTuple):
    """`rule` is the row of the input page, or a word, and what is broken."""

    rule: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...] = UNIT


READING, ANTHROPIC = "clients/reading.py", "clients/anthropic_answer.py"
CHAT, RESPONSES, REFUSALS = "clients/chat_answer.py", "clients/responses_answer.py", "clients/refusals.py"

MUTATIONS: Final = (
    Mutation("8 no call is a fault", READING, "if not parts.calls:", "if False:"),
    Mutation("8 its text is kept", READING, "text_output=text,\n            thinking", "text_output=None,\n            thinking"),
    Mutation("9 several calls are a fault", READING, "len(parts.calls) > 1", "len(parts.calls) > 9"),
    Mutation("10 anthropic max_tokens", ANTHROPIC, '"max_tokens": "truncated"', '"max_tokens": "ok"'),
    Mutation("10 chat length", CHAT, '"length": "truncated"', '"length": "ok"'),
    Mutation("10 responses incomplete", RESPONSES, '"max_output_tokens": "truncated"', '"max_output_tokens": "ok"'),
    Mutation("10 responses incomplete item", RESPONSES, 'item.get("status") == "incomplete"', "False"),
    Mutation("10 the stop is looked at first", READING, 'case "truncated":\n            return', 'case "truncated" if not parts.calls:\n            return'),
    Mutation("10 more room", "decide.py", 'more_room=reply.code == "truncated"', "more_room=False"),
    Mutation("11 anthropic refusal", ANTHROPIC, '"refusal": "refused"', '"refusal": "ok"'),
    Mutation("11 anthropic unknown stop", ANTHROPIC, '_STOPS.get(stop_reason, "stopped")', '_STOPS.get(stop_reason, "ok")'),
    Mutation("11 chat content_filter", CHAT, '"content_filter": "refused"', '"content_filter": "ok"'),
    Mutation("11 chat unknown stop", CHAT, '_STOPS.get(stop_reason, "stopped")', '_STOPS.get(stop_reason, "ok")'),
    Mutation("11 chat refusal field", CHAT, 'stop == "ok" and refusal and not calls', "False"),
    Mutation("11 responses failed", RESPONSES, 'return "stopped", word(error.get("code"))', 'return "ok", word(error.get("code"))'),
    Mutation("11 responses filter", RESPONSES, '"content_filter": "refused"', '"content_filter": "ok"'),
    Mutation("11 responses refusal part", RESPONSES, 'stop == "ok" and refusal and not calls', "False"),
    Mutation("11 a stop is no retry", READING, 'stopped with {parts.stop_reason!r}{detail}", correctable=False', 'stopped with {parts.stop_reason!r}{detail}", correctable=True'),
    Mutation("12 text joined", READING, '"\\n".join(text.strip() for text in texts if text.strip())', 'next((t.strip() for t in texts if t.strip()), "")'),
    Mutation("12 redacted noted", ANTHROPIC, "thinking.append(REDACTED)", "pass"),
    Mutation("12 unknown blocks counted", ANTHROPIC, "ignored.append(str(other))", "pass"),
    Mutation("12 reasoning summaries", RESPONSES, "thinking.extend(text_of(part", "text.extend(text_of(part"),
    Mutation("13 tool of the set", "grounding.py", "tool is None or tool.name not in offered", "tool is None"),
    Mutation("13 required argument", "tools.py", "if argument.required:", "if False:"),
    Mutation("13 purpose and outcome", "grounding.py", "if blank:", "if False:"),
    Mutation("13 element of the Scene", "grounding.py", "    if element is None:\n        listed", "    if False:\n        listed"),
    Mutation("13 reachable element", "grounding.py", "if element.tap_point is None:", "if False:"),
    Mutation("13 point on the screen", "grounding.py", "    if at is None:\n        return _off_screen(x, y, view)\n    if scene", "    if at is None:\n        at = Point(x=x, y=y)\n    if scene"),
    Mutation("13 point in an element", "grounding.py", "    if element is None:\n        return Refusal(f\"the point {x}", "    if False:\n        return Refusal(f\"the point {x}"),
    Mutation("14 numbers as text", "tools.py", "if isinstance(value, str) and _NUMBER.match(value.strip()):", "if False:"),
    Mutation("14 unwrapped twice", READING, "range(_MOST_UNWRAPPED + 1)", "range(2)"),
    Mutation("14 at most twice", READING, "_MOST_UNWRAPPED: Final = 2", "_MOST_UNWRAPPED: Final = 9"),
    Mutation("14 empty is {}", READING, "value is None or (isinstance(value, str) and not value.strip())", "False"),
    Mutation("14 choices", "tools.py", "if argument.choices and converted not in argument.choices:", "if False:"),
    Mutation("15 no JSON is a fault", READING, "if isinstance(arguments, Unreadable):", "if False:"),
    Mutation("15 with the raw text", READING, "are no JSON object: {shown}", "are no JSON object"),
    Mutation("16 reasoning_content", CHAT, 'message.get("reasoning_content") or message.get("reasoning")', 'message.get("reasoning")'),
    Mutation("16 reasoning", CHAT, 'message.get("reasoning_content") or message.get("reasoning")', 'message.get("reasoning_content")'),
    Mutation("16 chunks", CHAT, "if not isinstance(content, list):", "if True:"),
    Mutation("16 thinking chunks", CHAT, 'case "thinking" | "reasoning":', 'case "never":'),
    Mutation("16 legacy function_call", CHAT, "if legacy and not calls:", "if False:"),
    Mutation("16 <think> in the text", READING, "if inner is not None and text is not None:", "if False:"),
    Mutation("18 id and call id", RESPONSES, 'filter(None, (text_of(body.get("id")), call_id))', 'filter(None, (text_of(body.get("id")),))'),
    Mutation("19 chat no choices", CHAT, "or not choices or not", "or not"),
    Mutation("19 anthropic no message", ANTHROPIC, "if body is None or not (", "if body is None and not ("),
    Mutation("22 cache in the total", ANTHROPIC, " + read_tokens + write_tokens", ""),
    Mutation("22 chat cached", CHAT, 'count(prompt.get("cached_tokens")) or ', ""),
    Mutation("22 responses cached", RESPONSES, 'cache_read_tokens=count(prompt.get("cached_tokens"))', "cache_read_tokens=0"),
    Mutation("one retry and no more", "decide.py", "isinstance(found, Correction) and request.key.call > FIRST_CALL", "False"),
    Mutation("evidence asked again", "decide.py", "if found is False and request.key.call == FIRST_CALL:", "if False:"),
    Mutation("evidence looked for", "decide.py", "found = evidence.is_on_screen(grounded.action.evidence, scene)", "found = True"),
    Mutation("text that cannot be stored", READING, "if \"\\0\" in text:", "if False:"),
    Mutation("numbers that are none", READING, "parse_constant=_refuse", "parse_constant=float"),
    Mutation("17 the model's own fault", REFUSALS, "if status in (400, 422) and _MODELS_FAULT.search(body):", "if False:", ASKING),
    Mutation("17 its words are kept", REFUSALS, "text_output=_failed_generation(body)", "text_output=None", ASKING),
    Mutation("20 request id", REFUSALS, 'f"; request id {refused.request_id}" if refused.request_id else ""', '""', ASKING),
    Mutation("20 what passes", REFUSALS, "status in (408, 409, 429) or status >= 500", "False", ASKING),
    Mutation("21 no credit", REFUSALS, "if status == 402 or (", "if False and (", ASKING),
    Mutation("21 key", REFUSALS, "if status == 401:", "if False:", ASKING),
    Mutation("21 not allowed", REFUSALS, "if status == 403:", "if False:", ASKING),
    Mutation("21 model", REFUSALS, "if status == 404 or (", "if False and (", ASKING),
    Mutation("21 too long", REFUSALS, "if status in (400, 413) and (", "if False and (", ASKING),
    Mutation("20 keys hidden", "clients/exchange.py", 'return text.replace(self._key, "[key]") if', "return text if", ASKING),
    Mutation("7 a feature is dropped", "clients/features.py", "self.dropped.add(known.name)", "pass; return False", ASKING),
    Mutation("7 said once", "clients/features.py", "known.name not in self.dropped and ", "", ASKING),
)  # fmt: skip


def passes(source: Path, tests: tuple[str, ...]) -> bool:
    environ = {**os.environ, "PYTHONPATH": str(source.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout=60", *tests]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutations whose rule has this word in it")
    chosen = [each for each in MUTATIONS if parser.parse_args().only in each.rule]
    unnoticed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "apex_planner"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for tests in dict.fromkeys(each.tests for each in chosen):
            assert passes(copy, tests), f"{tests} fail without a mutation"
        for each in chosen:
            module = copy / each.module
            whole = module.read_text(encoding="utf-8")
            assert whole.count(each.old) >= 1, f"{each.rule}: {each.old!r} is not in {each.module}"
            module.write_text(whole.replace(each.old, each.new, 1), encoding="utf-8")
            noticed = not passes(copy, each.tests)
            module.write_text(whole, encoding="utf-8")
            print(f"{'noticed' if noticed else 'UNNOTICED'}  {each.rule}", flush=True)
            if not noticed:
                unnoticed.append(each.rule)
    print(f"{len(chosen)} rules broken, {len(unnoticed)} of them unnoticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
