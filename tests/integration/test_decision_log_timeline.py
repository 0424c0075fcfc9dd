"""Timelines of any length come in pages that fit into a message, with what was on the screen where asked for."""

import decision_log_world as world
import msgspec
from integration.conftest import Postgres

from apex_decision_log import migrate
from apex_decision_log.decide import row_of
from apex_decision_log.store import Store, open_store
from apex_decision_log.timeline import tasks, timeline
from apex_schemas.geometry import Bounds, Size
from apex_schemas.queries import MOST_TASKS, SceneBox, TasksQuery, TimelineQuery, TimelineStep
from apex_schemas.scene import Element, Scene, Screen
from apex_schemas.slots import Slot

TASK, OTHER = world.task_id(0), world.task_id(1)
LONG = "لأن المفتاح 🙂 " * 700  # about 10,000 characters
TURNS = 200


async def test_two_hundred_turns_with_long_reasons_come_whole_and_in_order(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    async with open_store(postgres.dsn) as store:
        messages = world.whole_task(TASK, turns=TURNS)
        messages += [world.decided(TASK, turn, said=LONG) for turn in range(TURNS)]
        messages += [world.planned(TASK, turn, rationale=LONG) for turn in range(TURNS)]
        await _write(store, messages)
        steps, pages = await _all(store, scenes=False)
        assert [step.turn for step in steps] == list(range(TURNS))
        assert all(step.rationale == LONG for step in steps)
        assert pages > 1
        with_scenes, _ = await _all(store, scenes=True)
        assert all(step.scene is not None for step in with_scenes)


async def test_a_scene_is_told_by_its_boxes_and_what_a_password_field_holds_is_not(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    place = Bounds(left=0, top=0, right=100, bottom=50)
    elements = (
        Element(id="e1", role="switch", label="Wi-Fi", bounds=place, interactive=True, checked=True),
        Element(id="e2", role="field", label="Password", value="hunter2", bounds=place, password=True, focused=True),
        Element(id="e3", role="field", label="Name", value="Zoë", bounds=place),
        Element(id="e4", role="text", label="nowhere"),
    )
    body = Scene(app="a", page="p", screen=Screen(size=Size(width=1080, height=2400)), elements=elements)
    seen = world.stored(Slot(device=world.DEVICE, task=TASK, kind="scene", turn=0), body)
    async with open_store(postgres.dsn) as store:
        await _write(store, [world.started(TASK), seen, world.planned(TASK, 0)])
        [step], _ = await _all(store, scenes=True)
        assert step.scene is not None
        assert (step.scene.width, step.scene.height, step.scene.elements) == (1080, 2400, 4)
        assert step.scene.boxes == (
            SceneBox(element="e1", role="switch", bounds=place, label="Wi-Fi", interactive=True, checked=True),
            SceneBox(element="e2", role="field", bounds=place, label="Password", focused=True),
            SceneBox(element="e3", role="field", bounds=place, label="Name", value="Zoë"),
        )
        [row] = await store.fetch("select wireframe::text as text from scenes")
        assert "hunter2" not in row["text"]
        [without], _ = await _all(store, scenes=False)
        assert without.scene is None


async def test_an_effect_is_known_by_what_the_next_turn_saw_in_the_timeline_and_in_the_view(
    postgres: Postgres,
) -> None:
    await migrate.upgrade(postgres.dsn)
    seen = [None, True, False, None]  # by the Scene of each turn, of the turn before
    async with open_store(postgres.dsn) as store:
        await _write(store, [world.started(TASK), *(world.planned(TASK, n, changed=s) for n, s in enumerate(seen))])
        steps, _ = await _all(store, scenes=False)
        assert [step.effect_seen for step in steps] == [True, False, None, None]
        rows = await store.fetch("select effect_seen from v_steps where task_id = $1 order by turn", TASK)
        assert [row["effect_seen"] for row in rows] == [True, False, None, None]


async def test_as_many_tasks_as_one_may_ask_for_are_answered_and_never_more(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    async with open_store(postgres.dsn) as store:
        await _write(store, [world.started(world.task_id(n), sequence=n) for n in range(MOST_TASKS + 2)])
        for limit, told in ((MOST_TASKS - 1, MOST_TASKS - 1), (MOST_TASKS, MOST_TASKS), (10**6, MOST_TASKS)):
            found = (await tasks(store, TasksQuery(limit=limit))).tasks
            assert [each.task for each in found] == [world.task_id(MOST_TASKS + 1 - n) for n in range(told)]


async def test_scenes_from_before_wireframes_are_told_without_boxes(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    async with open_store(postgres.dsn) as store:
        await _write(store, [world.started(TASK), world.scene(TASK, 0), world.planned(TASK, 0)])
        await store.fetch("update scenes set wireframe = null")
        [step], _ = await _all(store, scenes=True)
        assert step.scene is not None
        assert step.scene.boxes is None


async def test_tasks_are_chosen_by_goal_failure_and_time(postgres: Postgres) -> None:
    await migrate.upgrade(postgres.dsn)
    async with open_store(postgres.dsn) as store:
        await _write(store, [*world.whole_task(TASK), world.started(OTHER, goal="أضف Zoë 100%", sequence=99_000)])

        async def found(**query: object) -> list[str]:
            return [each.task for each in (await tasks(store, msgspec.convert(query, TasksQuery))).tasks]

        assert await found(goal="zoë 100%") == [OTHER]
        assert await found(goal="WI-FI") == [TASK]
        assert await found(goal="_") == []
        assert await found(since_ms=world.START_MS + 90_000) == [OTHER]
        assert await found(failure="max_turns") == []
        assert await found(status="running", goal="zoë") == [OTHER]
        assert await found(task=TASK) == [TASK]
        assert await found(task=TASK[:5]) == [OTHER, TASK]
        assert await found(task="%") == []


async def _all(store: Store, *, scenes: bool) -> tuple[list[TimelineStep], int]:
    """All turns, and how many pages they took; no page is larger than a message may be."""
    steps: list[TimelineStep] = []
    pages, turn = 0, 0
    while turn is not None:
        page = await timeline(store, TimelineQuery(task=TASK, from_turn=turn, scenes=scenes))
        assert page is not None
        assert len(msgspec.json.encode(page)) < 2_000_000
        steps += page.steps
        pages, turn = pages + 1, page.next_turn
    return steps, pages


async def _write(store: Store, messages: list[world.Message]) -> None:
    await store.write([row_of(subject, data, stored_at_ms=world.START_MS) for subject, data in messages])
