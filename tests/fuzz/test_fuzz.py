"""Readers of others' bytes, on saved inputs and on thousands of damaged ones: no crash, no hang, memory bounded."""

import random
import time
import tracemalloc
from pathlib import Path

import pytest
from fuzz.corpus import REACHING, SAVED, corpus, files_of
from fuzz.mutate import mutated
from fuzz.targets import TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = {"page_source": 300, "message": 1_500, "answer": 800}
LONGEST_S = 30.0  # what takes milliseconds, on a machine that others hold
ALLOWED_BYTES = 64 * 2**20
SAVED_FILES = sorted(path for path in SAVED.rglob("*") if path.is_file())


def test_there_is_a_corpus_for_every_target() -> None:
    assert {path.parent.name for path in SAVED_FILES} == set(TARGETS) == set(EXAMPLES)
    assert all(len(corpus(target)) >= 4 for target in TARGETS)


def bounded(target: str, data: bytes) -> None:
    """Read an input, in bounded time and memory."""
    tracemalloc.start()
    began = time.monotonic()
    try:
        TARGETS[target](data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < LONGEST_S
    assert peak < ALLOWED_BYTES + 100 * len(data)


@pytest.mark.parametrize("path", SAVED_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_saved_input_is_read_in_bounded_time_and_memory(path: Path) -> None:
    bounded(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_that_reaches_far_is_read_in_bounded_time_and_memory(target: str) -> None:
    files = files_of(REACHING / target)
    assert len(files) >= 5
    for path in files:
        bounded(target, path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_input_is_read_or_refused(target: str) -> None:
    inputs = corpus(target)

    @settings(max_examples=EXAMPLES[target], deadline=LONGEST_S * 1_000, suppress_health_check=list(HealthCheck))
    @given(seed=st.integers(min_value=0, max_value=2**64 - 1))
    def read(seed: int) -> None:
        TARGETS[target](mutated(inputs, random.Random(seed)))

    read()


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=300, deadline=LONGEST_S * 1_000)
@given(data=st.binary(max_size=2_000))
def test_any_bytes_are_read_or_refused(target: str, data: bytes) -> None:
    TARGETS[target](data)
