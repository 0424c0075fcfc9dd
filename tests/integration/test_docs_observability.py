"""What deploy/ gives to those with Prometheus and Grafana speaks of metrics that there are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from apex_bus.metrics import INSTRUMENTS, prometheus_name

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "observability"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana" / "dashboards" / "apex.json").read_text())
NAMES = {prometheus_name(each): each for each in INSTRUMENTS}
METRIC = re.compile(r"\b(?:apex|gen_ai_client)_\w+")


def _expressions() -> list[str]:
    alerts = re.findall(r"expr: (.*)", (FOLDER / "alerts.yml").read_text())
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]] + alerts


@pytest.mark.parametrize("expression", _expressions())
def test_a_query_names_a_metric_of_the_table_and_labels_that_it_has(expression: str) -> None:
    [name] = METRIC.findall(re.sub(r"by \([^)]*\)|\{[^}]*\}", "", expression))
    instrument = NAMES[re.sub(r"_(bucket|sum|count)$", "", name)]
    assert (re.search(r"_(bucket|sum|count)$", name) is not None) == (instrument.kind == "histogram")
    labels = (
        set(re.findall(r"by \(([^)]*)\)", expression)[0].replace(" ", "").split(",")) if "by (" in expression else set()
    )
    labels |= set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression))
    known = {attribute.replace(".", "_") for attribute in instrument.attributes} | {"le", "service_name"}
    assert labels <= known


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    assert [name for name in NAMES if name not in shown] == []


def test_panels_do_not_cover_each_other() -> None:
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & places, panel["title"]
        places |= cells
