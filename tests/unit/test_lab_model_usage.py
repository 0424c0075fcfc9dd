"""Usage figures: what prompt caches of both manners would have charged."""

from hypothesis import given
from hypothesis import strategies as st

from apex_lab.model.usage import IMAGE_TOKENS, Piece, PrefixCache, count_tokens, piece


def block(name: str, tokens: int = 600, mark: str | None = None) -> Piece:
    return Piece(content=(name * 4 * tokens)[: 4 * tokens].encode(), tokens=tokens, mark=mark)


def test_a_repeated_prefix_is_read_and_what_follows_is_written() -> None:
    cache = PrefixCache()
    first = cache.at_breakpoints("m", [block("tools"), block("one", mark="5m"), block("scene a")], minimum=1024)
    grown = [block("tools"), block("one"), block("two", mark="5m"), block("scene b")]
    second = cache.at_breakpoints("m", grown, minimum=1024)

    assert (first.read, first.written, first.fresh) == (0, 1200, 600)
    assert (second.read, second.written, second.fresh) == (1200, 600, 600)


def test_a_breakpoint_on_the_changing_block_never_hits() -> None:
    cache = PrefixCache()
    charges = [
        cache.at_breakpoints("m", [block("tools"), block(f"scene {turn}", mark="5m")], minimum=1024)
        for turn in range(3)
    ]

    assert [charge.read for charge in charges] == [0, 0, 0]


def test_a_prefix_under_the_minimum_is_silently_not_cached() -> None:
    cache = PrefixCache()
    for _ in range(2):
        charge = cache.at_breakpoints("m", [block("tools", 500, mark="5m"), block("scene", 500)], minimum=1024)

    assert (charge.read, charge.written, charge.fresh) == (0, 0, 1000)


def test_a_prefix_changed_at_its_beginning_or_of_another_model_is_not_read() -> None:
    cache = PrefixCache()
    cache.at_breakpoints("m", [block("tools"), block("one", mark="5m")], minimum=10)

    assert cache.at_breakpoints("m", [block("other"), block("one", mark="5m")], minimum=10).read == 0
    assert cache.at_breakpoints("n", [block("tools"), block("one", mark="5m")], minimum=10).read == 0


def test_an_entry_expires_after_its_life() -> None:
    now = [0.0]
    cache = PrefixCache(clock=lambda: now[0])
    pieces = [block("short", mark="5m"), block("long")]
    cache.at_breakpoints("m", pieces, minimum=10)

    now[0] = 299
    assert cache.at_breakpoints("m", pieces, minimum=10).read == 600
    now[0] = 700
    assert cache.at_breakpoints("m", pieces, minimum=10).read == 0


def test_the_hour_cache_is_told_apart() -> None:
    pieces = [block("tools", mark="1h"), block("history", mark="5m"), block("scene")]

    charge = PrefixCache().at_breakpoints("m", pieces, minimum=10)

    assert (charge.written, charge.written_1h) == (1200, 600)


def test_openai_reads_any_prefix_in_steps_of_128_tokens_from_1024_on() -> None:
    cache = PrefixCache()
    first = cache.by_prefix("m", [block("a", 1000), block("b", 1000)])
    second = cache.by_prefix("m", [block("a", 1000), block("b", 500), block("c", 1000)])
    short = cache.by_prefix("m", [block("a", 1000)])

    assert (first.read, second.read, short.read) == (0, 1408, 0)
    assert second.total == 2500


def test_a_picture_counts_a_flat_figure() -> None:
    assert piece({"type": "image", "source": {"data": "x" * 400_000}}).tokens == IMAGE_TOKENS
    assert count_tokens("") == 0
    assert count_tokens("日本") == 2


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "5m", "1h"])), max_size=6), max_size=5)
)
def test_no_token_is_lost_or_counted_twice(requests: list[list[tuple[str, str | None]]]) -> None:
    cache = PrefixCache()
    for request in requests:
        pieces = [block(name, 50, mark) for name, mark in request]
        charge = cache.at_breakpoints("m", pieces, minimum=100)
        assert charge.total == 50 * len(pieces)
        assert min(charge.fresh, charge.read, charge.written) >= 0
        assert charge.written_1h <= charge.written
