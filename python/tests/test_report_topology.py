"""The drawing of a network: ways as the engine takes them, and a layout without avoidable crossings."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.report.drawing import draw_topology
from anabranch.report.layout import layered, spread
from anabranch.report.paths import Paths, Wire
from anabranch.report.topology import member, read_topology, settings
from support import REPOSITORY, TWO_PATHS

SCENARIOS = sorted((REPOSITORY / "scenarios").rglob("*.toml"))


def wire(*ends: str, medium: bool = False) -> Wire:
    return Wire("-".join(ends), ends, (), (), medium)


def canonical(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(ab.load(path).scenario.canonical)
    return content


def test_a_way_goes_through_its_way_points() -> None:
    topology = read_topology(canonical(REPOSITORY / "scenarios/papers/mfvl/setup3.toml"))
    ways = {
        route.names[0]: [topology.wires[hop.wire].name for hop in route.hops] for route in topology.routes
    }
    assert ways["meter/path1"] == ["S-GW1", "GW1-R1", "R1-R2", "R2-GW3", "GW3-D"]
    assert ways["cbr2"] == ["N3-R3", "R3-R4", "R4-N4"]
    assert not topology.is_reduced


def test_an_agent_uses_every_pair_of_addresses_where_no_subflows_are_listed() -> None:
    content = canonical(REPOSITORY / "examples/agent/handover.toml")
    listed = [route.names for route in read_topology(content).routes]
    assert listed == [("upload/wifi",), ("upload/cellular",)]
    del content["connection"][0]["subflow"]
    names = {name for route in read_topology(content).routes for name in route.names}
    assert names == {"upload/wlan0.line", "upload/wwan0.core"}


def test_of_several_shortest_ways_the_first_in_the_file_counts_links_before_media() -> None:
    wires = [wire("a", "c"), wire("c", "d"), wire("a", "b"), wire("b", "d"), wire("a", "d", medium=True)]
    assert [hop.wire for hop in Paths(wires[:4]).through(["a", "d"])] == [0, 1]
    assert [hop.wire for hop in Paths(wires).through(["a", "d"])] == [4]
    assert [hop.wire for hop in Paths(wires).through(["a", "b", "d"])] == [2, 3]
    assert Paths(wires[:1]).through(["a", "d"]) == ()


def test_a_medium_is_left_by_its_nearest_station() -> None:
    wires = [wire("near", "goal"), wire("far", "near"), wire("start", "far", "near", medium=True)]
    hops = Paths(wires).through(["start", "goal"])
    assert [(hop.wire, hop.start, hop.end) for hop in hops] == [(2, "start", "near"), (0, "near", "goal")]


def test_names_of_families_are_those_of_the_engine() -> None:
    assert [member("m{i}-{i/3}-{i%3}", index) for index in (0, 4)] == ["m0-0-0", "m4-1-1"]


def test_of_a_large_family_the_first_member_is_drawn() -> None:
    node = {"names": ["meter{i}"], "count": 1000.0}
    hub = {"name": "hub"}
    link = {
        "between": ["meter{i}", "hub"],
        "count": 1000.0,
        "rate": "1 Mbit/s",
        "delay": "1 ms",
        "queue": "9 packets",
    }
    flow = {"name": "flow{i}", "count": 1000.0, "from": "meter{i}", "to": "hub"}
    topology = read_topology({"node": [node, hub], "link": [link], "connection": [flow]})
    assert topology.is_reduced
    assert [tuple(one) for one in topology.nodes] == [("meter0", 1000), ("hub", 1)]
    assert topology.routes[0].names == ("flow0",)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"rate": "3 Mbit/s", "delay": "5 ms", "queue": "9 packets"}, ("3 Mbit/s", "5 ms", "9 packets")),
        (
            {"trace": "0123", "delay": "5 ms", "queue": {"kind": "codel"}},
            ("rate from a trace", "5 ms", "codel"),
        ),
        ({"rate": "1 Mbit/s", "loss": "0 %"}, ("1 Mbit/s",)),
        (
            {"rate": "1 Mbit/s", "loss": 0.001, "jitter": {"range": "2 ms"}},
            ("1 Mbit/s", "loss 0.001", "jitter 2 ms"),
        ),
        (
            {"queue": {"kind": "red", "limit": "50 packets"}, "loss": {"kind": "x"}},
            ("red 50 packets", "loss in bursts"),
        ),
    ],
)
def test_settings_are_said_in_words(entry: dict[str, Any], words: tuple[str, ...]) -> None:
    assert settings(entry) == words


def test_neighbours_of_a_way_are_drawn_from_left_to_right() -> None:
    layout = layered(4, [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert [point.layer for point in layout.boxes] == [0, 1, 2, 3]
    assert {point.height for point in layout.boxes} == {0.0}


def test_two_separate_ways_do_not_cross() -> None:
    # Two pairs of ways in an order of the file that crosses them.
    lines = [(0, 2), (1, 2), (4, 3), (5, 3), (2, 6), (3, 7)]
    layout = layered(8, lines, lines)
    ends = [(layout.boxes[one], layout.boxes[other]) for one, other in lines]
    for (a, b), (c, d) in itertools.combinations(ends, 2):
        if a.layer == c.layer:
            assert (a.height - c.height) * (b.height - d.height) >= 0


def test_heights_differ_least_from_those_wanted() -> None:
    assert spread([0.0, 0.0, 5.0]) == [-0.5, 0.5, 5.0]
    assert spread([3.0, 1.0]) == [1.5, 2.5]


def test_a_line_over_several_layers_passes_none_of_their_boxes() -> None:
    lines = [(0, 1), (1, 2), (0, 2)]
    layout = layered(3, lines, lines)
    assert len(layout.lines[2]) == 3
    assert abs(layout.lines[2][1].height - layout.boxes[1].height) >= 1


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.relative_to(REPOSITORY / "scenarios")))
def test_every_scenario_has_a_drawing(path: Path) -> None:
    topology = read_topology(canonical(path))
    assert topology.routes
    for route in topology.routes:
        for one, other in itertools.pairwise(route.hops):
            assert one.end == other.start
    figure = draw_topology(topology)
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {node.name for node in topology.nodes if node.members == 1} <= texts
    places = [text.get_position() for text in figure.axes[0].texts if text.get_fontsize() == 9]
    assert len(set(places)) == len(topology.nodes)


@pytest.mark.parametrize(
    ("scenario", "overrides"),
    [
        ("tutorial/first.toml", {"duration": "3 s"}),
        ("tutorial/handover.toml", {}),
        ("tutorial/relay.toml", {}),
        ("papers/mfvl/setup3.toml", {"duration": "8 s", "datagram.cbr1.on": '[["5 s", "7 s"]]'}),
        ("regress/medium.toml", {}),
        ("agreement/lia-shared-bottleneck.toml", {"duration": "5 s", "measure.from": "1 s"}),
    ],
)
def test_packets_go_where_ways_are_drawn(scenario: str, overrides: dict[str, str], tmp_path: Path) -> None:
    run = ab.load(REPOSITORY / "scenarios" / scenario).with_(**overrides).run(out=tmp_path)
    measured, carried = set(), set()
    for figure in run.figures:
        if figure.subject.link is not None and figure.metric == "packets":
            name = figure.subject.link.removesuffix("/reverse")
            measured.add(name)
            if figure.value > 0:
                carried.add(name)
    topology = read_topology(run.manifest["canonical"])
    drawn = {topology.wires[hop.wire].name for route in topology.routes for hop in route.hops}
    assert drawn & measured == carried


def test_subflows_of_a_path_manager_are_drawn_as_it_opens_them(tmp_path: Path) -> None:
    path = tmp_path / "mesh.toml"
    text = TWO_PATHS[: TWO_PATHS.index("[[connection.subflow]]")]
    # A second way from R1 to R2, so that every wire of S pairs with every wire of D.
    text += """path_manager = "fullmesh"

[[link]]
name = "across"
between = ["R1", "R2"]
rate = "10 Mbit/s"
delay = "1 ms"
queue = "20 packets"
"""
    path.write_text(text, encoding="utf-8")
    run = ab.load(path).run(out=tmp_path / "out")
    topology = read_topology(run.manifest["canonical"])
    names = [name for route in topology.routes for name in route.names]
    assert names == ["meter/s-r1.path1", "meter/s-r2.path1", "meter/s-r1.path2", "meter/s-r2.path2"]
    opened = {figure.subject for figure in run.figures if figure.subject.subflow is not None}
    assert {str(subject) for subject in opened} == set(names)
    ways = [[topology.wires[hop.wire].name for hop in route.hops] for route in topology.routes]
    assert ways[1] == ["s-r2", "across", "path1"]
