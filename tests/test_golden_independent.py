"""The expected files of golden cases, computed a second time: NetworkX, DuckDB, NumPy and plain loops, not the engine.

Each check is a function from the base facts of an epoch to the rows of every view, for all epochs of its cases.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import numpy as np
import pytest

from tests.golden_replay import Rows, Stream, plain_row, replay, replay_views

GOLDEN = Path(__file__).parent / "golden"
HOUR, DAY = 3_600, 86_400


class Facts(dict[str, Rows]):
    """The facts of each base relation; none where nothing has arrived."""

    def __missing__(self, _name: str) -> Rows:
        return set()


Views = dict[str, Rows]
Check = Callable[[Facts], Views]


def closure(edges: Rows) -> Rows:
    """Return all pairs connected by at least one edge."""
    graph = nx.DiGraph(list(edges))
    return {(x, z) for x, y in edges for z in {y} | nx.descendants(graph, y)}


def sql(query: str, **tables: tuple[str, Rows]) -> Rows:
    """Run a query over tables, each given as its column declarations and its rows."""
    with duckdb.connect() as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"create table {name} ({columns})")
            if rows:
                marks = ", ".join("?" * len(next(iter(rows))))
                connection.executemany(f"insert into {name} values ({marks})", [list(row) for row in rows])
        return set(connection.execute(query).fetchall())


def leaves_and_roots(edges: Rows) -> tuple[set[Any], set[Any]]:
    """Return the nodes without children, and those without parents."""
    parents, children = {x for x, _ in edges}, {y for _, y in edges}
    return children - parents, parents - children


# Regions and connectivity


def reachability(facts: Facts) -> Views:
    return {"reachable": closure(facts["link"])}


def walks(links: Rows) -> Iterator[tuple[Any, Any, tuple[Any, ...], Any, int]]:
    """Yield every simple path and simple cycle with its cost and number of links.

    With positive costs the cheapest and the shortest walk between two nodes are among them.
    """
    waiting: list[tuple[Any, Any, tuple[Any, ...], Any, int]] = [(x, y, (x, y), c, 1) for x, y, c in links]
    while waiting:
        x, y, path, cost, hops = walk = waiting.pop()
        yield walk
        if y != x:
            waiting.extend(
                (x, z, (*path, z), cost + c, hops + 1) for y1, z, c in links if y1 == y and z not in path[1:]
            )


def shortest_path(facts: Facts) -> Views:
    paths = set(walks(facts["link"]))
    cost: dict[tuple[Any, Any], Any] = {}
    hops: dict[tuple[Any, Any], int] = {}
    for x, y, _path, c, n in paths:
        cost[x, y] = min(c, cost.get((x, y), c))
        hops[x, y] = min(n, hops.get((x, y), n))
    cheapest = {(x, y, p, c) for x, y, p, c, _n in paths if c == cost[x, y]}
    fewest = {(x, y, p, n) for x, y, p, _c, n in paths if n == hops[x, y]}
    return {
        "minCost": {(*pair, c) for pair, c in cost.items()},
        "minHops": {(*pair, n) for pair, n in hops.items()},
        "cheapestPath": cheapest,
        "fewestHops": fewest,
        "shortestCheapestPath": {
            (x, y, p, c, q, n) for x, y, p, c in cheapest for x1, y1, q, n in fewest if (x, y) == (x1, y1)
        },
    }


def shortest_path_all(facts: Facts) -> Views:
    return {**shortest_path(facts), "path": set(walks(facts["link"]))}


def shortest_path_bound(facts: Facts) -> Views:
    views = shortest_path(facts)
    return {
        "cheapestPath": {row for row in views["cheapestPath"] if row[0] == "a"},
        "minCost": {row for row in views["minCost"] if row[1] == "a"},
    }


def largest_region(facts: Facts) -> Views:
    triggered = {x for (x,) in facts["isTriggered"]}
    place = {x: tuple(n for n in at if n != "loc") for x, at in facts["sensor"]}
    graph = nx.DiGraph()
    graph.add_nodes_from(place)
    graph.add_edges_from((x, y) for x in place if x in triggered for y in place if math.dist(place[x], place[y]) < 20)
    regions: dict[Any, set[Any]] = defaultdict(set)
    for rid, x in facts["mainSensorInRegion"]:
        if x in triggered and x in place:
            regions[rid] |= {x} | nx.descendants(graph, x)
    largest = max((len(region) for region in regions.values()), default=None)
    return {
        "activeRegion": {(rid, x) for rid, region in regions.items() for x in region},
        "regionSizes": {(rid, len(region)) for rid, region in regions.items()},
        "largestRegion": set() if largest is None else {(largest,)},
        "largestRegions": {(rid,) for rid, region in regions.items() if len(region) == largest},
    }


def resilience(facts: Facts) -> Views:
    graph = nx.DiGraph(list(facts["link"]))
    counts = {(x, y): len(list(nx.all_simple_paths(graph, x, y))) for x in graph for y in graph if x != y}
    return {"routes": {(x, y, n) for (x, y), n in counts.items() if n}}


def subtree_height(facts: Facts) -> Views:
    graph = nx.DiGraph(list(facts["tree"]))
    below = {x: graph.subgraph({x} | nx.descendants(graph, x)) for x in graph}
    return {"height": {(x, nx.dag_longest_path_length(below[x])) for x in graph}}


def imbalance(facts: Facts) -> Views:
    graph = nx.DiGraph(list(facts["tree"]))
    leaves, roots = leaves_and_roots(facts["tree"])
    found = set()
    for root in roots:
        depths = [d for x, d in nx.single_source_shortest_path_length(graph, root).items() if x in leaves]
        found.add((root, max(depths) - min(depths)))
    return {"imbalance": found}


def same_generation(facts: Facts) -> Views:
    """Two nodes are of one generation if some node lies equally many steps above both."""
    found: Rows = set()
    level = set(facts["tree"])
    while level:
        found |= {(x, y) for p, x in level for q, y in level if p == q}
        level = {(p, y) for p, x in level for x1, y in facts["tree"] if x == x1}
    return {"sg": found}


# Maintained views


def reach(facts: Facts) -> Views:
    query = """with recursive reach(s, d) as (
        select s, d from edge union select reach.s, edge.d from reach join edge on reach.d = edge.s
    ) select * from reach"""
    return {"reach": sql(query, edge=("s varchar, d varchar", facts["edge"]))}


def peer(facts: Facts) -> Views:
    supervisors = closure(facts["immediateSupervisor"])
    names = {name for name, _department, _salary in facts["employee"]}
    peers = {(a, b) for a in names for b in names if not {(a, b), (b, a)} & supervisors}
    return {"supervisor": supervisors, "peer": peers}


# Sensors


def uncovered(enemies: Rows, friends: Rows) -> Views:
    covered = {(at, t) for at, t in enemies for other, t1 in friends if t == t1 and math.dist(at, other) <= 5}
    return {"cov": covered, "uncov": enemies - covered}


def uncovered_vehicles(facts: Facts) -> Views:
    sides = {side: {(at, t) for s, at, t in facts["veh"] if s == side} for side in ("enemy", "friendly")}
    return uncovered(sides["enemy"], sides["friendly"])


def uncovered_vehicles_by_id(facts: Facts) -> Views:
    sides = {side: {(at[1:], t) for t, _id, s, at in facts["veh"] if s == side} for side in ("enemy", "friendly")}
    views = uncovered(sides["enemy"], sides["friendly"])
    return {name: {(("loc", *at), t) for at, t in rows} for name, rows in views.items()}


def trajectories(facts: Facts) -> Views:
    reports = {r for (r,) in facts["report"]}

    def follows(p: tuple[int, int, int], q: tuple[int, int, int]) -> bool:
        return q[2] == p[2] + 1 and max(abs(p[0] - q[0]), abs(p[1] - q[1])) < 3

    def parallel(p: Any, q: Any) -> bool:
        shifts = {(a[0] - b[0], a[1] - b[1], a[2] - b[2]) for a, b in zip(p, q, strict=True)}
        return len(shifts) == 1 and min(shifts)[2] == 0

    starts = [r for r in reports if not any(follows(p, r) for p in reports)]
    growing: list[tuple[Any, ...]] = [(r,) for r in starts]
    trajs: Rows = set()
    while growing:
        path = growing.pop()
        growing.extend((*path, r) for r in reports if follows(path[-1], r))
        if len(path) > 1:
            trajs.add(path)
    complete = {path for path in trajs if not any(follows(path[-1], r) for r in reports)}
    pairs = {(p, q) for p in complete for q in complete if p != q and len(p) == len(q) and parallel(p, q)}
    return {"traj": {(p,) for p in trajs}, "completeTraj": {(p,) for p in complete}, "parallel": pairs}


def shortest_path_tree(facts: Facts) -> Views:
    graph = nx.DiGraph(list(facts["G"]))
    graph.add_node("A")
    depth = nx.single_source_shortest_path_length(graph, "A")
    tree = {(x, y, depth[y]) for x, y in facts["G"] if x in depth and depth[y] == depth[x] + 1}
    return {
        "H": tree | {("A", "A", 0)},
        "J": set(depth.items()),
        "H'": {(y, depth[x] + 1) for x, y in facts["G"] if x in depth and depth[y] < depth[x] + 1},
    }


def shortest_path_tree_h(facts: Facts) -> Views:
    return {"H": shortest_path_tree(facts)["H"]}


def sliding_window(facts: Facts) -> Views:
    query = "select distinct s.a, s.t, w.t from S s join S w on s.t between w.t - 3 and w.t"
    return {"R": sql(query, S=("a varchar, t integer", facts["S"]))}


# Streams


def transitive_closure(facts: Facts) -> Views:
    return {"tc": closure(facts["arc"])}


def employee_count(facts: Facts) -> Views:
    """Count each employee once in every place, and a department with all it counts where it is itself employed."""
    members: dict[str, set[str]] = defaultdict(set)
    for department, employee in facts["dptEmpl"]:
        members[department].add(employee)
    employed = {employee for _department, employee in facts["dptEmpl"]}

    def count(name: str) -> int:
        return (name in employed) + sum(count(member) for member in members.get(name, ()))

    return {"empCnt": {(name, count(name)) for name in employed | set(members)}}


def sub_organization(facts: Facts) -> Views:
    return {"isSubOrg": closure(facts["subOrg"])}


def cheap_path(facts: Facts) -> Views:
    graph = nx.DiGraph()
    for x, y, fare in facts["ride"]:
        old = graph.get_edge_data(x, y, {"weight": fare})["weight"]
        graph.add_edge(x, y, weight=min(fare, old))
    best: dict[tuple[str, str], float] = {}
    for x, y, fare in graph.edges(data="weight"):
        for z, cost in nx.single_source_dijkstra_path_length(graph, y).items():
            best[x, z] = min(fare + cost, best.get((x, z), math.inf))
    return {"bestPrice": {(x, y, cost) for (x, y), cost in best.items()}}


def earliest_organizer(facts: Facts) -> Views:
    related = closure(facts["relateTo"]) | {(x, x) for x, _ in facts["relateTo"]}
    return {"earliestOrg": {(y, min(x for x, z in related if z == y)) for _, y in related}}


def lloyd_clustering(facts: Facts) -> Views:
    def matrix(rows: Rows) -> tuple[list[str], Any]:
        names = sorted({name for name, _dim, _value in rows})
        values = {(name, dim): value for name, dim, value in rows}
        return names, np.array([[values[name, dim] for dim in (1, 2)] for name in names])

    names, centers = matrix(facts["init"])
    _points, points = matrix(facts["point"])
    for _stage in range(30):
        if not names or not len(points):
            return {"center": set()}
        nearest = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        kept = sorted(set(nearest.tolist()))
        names = [names[k] for k in kept]
        centers = np.array([points[nearest == k].mean(axis=0) for k in kept])
    rows = {(30, name, d + 1, float(centers[k, d])) for k, name in enumerate(names) for d in (0, 1)}
    return {"center": rows}


def paper_rank(facts: Facts) -> Views:
    graph = nx.DiGraph(list(facts["pub"]))
    rank: dict[str, float] = {}
    for paper in nx.topological_sort(graph):
        own = 1.0 if graph.out_degree(paper) else 0.0
        rank[paper] = own + sum(rank[citing] / graph.out_degree(citing) for citing in graph.predecessors(paper))
    return {"prank": set(rank.items())}


# Windows: the life of facts is the point, the view is reachability.


def named_closure(view: str, base: str) -> Check:
    return lambda facts: {view: closure(facts[base])}


def slide(facts: Facts) -> Views:
    closed = {x for (x,) in facts["closed"]}
    return {"reach": closure({(x, y) for x, y in facts["edge"] if y not in closed})}


def event_time(facts: Facts) -> Views:
    return {"a": facts["a"], "b": facts["b"], "both": facts["a"] & facts["b"] & facts["c"]}


def query_window(facts: Facts) -> Views:
    persons = {x for (x,) in facts["person"]}
    contacts = {(x, y) for x, y in facts["call"] | facts["mail"] if {x, y} <= persons}
    return {"knows": closure(contacts)}


def timestamp_as_attribute(facts: Facts) -> Views:
    columns = ("t integer, u varchar", facts["login"])
    quick = "select a.u, a.t, b.t from login a join login b on a.u = b.u and a.t < b.t and b.t - a.t <= 10"
    return {"quick": sql(quick, login=columns), "last": sql("select u, max(t) from login group by u", login=columns)}


# Aggregates


def aggregates(facts: Facts) -> Views:
    table = ("o integer, c varchar, p integer", facts["order"])
    views = {
        name: sql(f"select c, {aggregate} from t group by c", t=table)
        for name, aggregate in (
            ("n", "count(*)"),
            ("revenue", "sum(p)"),
            ("mean", "avg(p)"),
            ("cheapest", "min(p)"),
            ("dearest", "max(p)"),
        )
    }
    total = sql("select count(*), sum(p * 2 + 1) from t having count(*) > 0", t=table)
    return {**views, "all": {row[:1] for row in total}, "gross": {row[1:] for row in total}}


def several_aggregates(facts: Facts) -> Views:
    table = ("d varchar, e varchar, s integer", facts["salary"])
    low = sql("select d, min(s) from t group by d", t=table)
    high = sql("select d, max(s) from t group by d", t=table)
    return {
        "low": low,
        "high": high,
        "stats": sql("select d, count(*), sum(s), min(s), max(s), avg(s) from t group by d", t=table),
        "spread": sql("select d, max(s), min(s), max(s) - min(s) from t group by d", t=table),
        "between": sql("select min(s), d, max(s) from t group by d", t=table),
    }


def count_distinct(facts: Facts) -> Views:
    table = ("g varchar, i integer, v integer", facts["sample"])
    return {
        "values": sql("select g, count(distinct v) from t group by g", t=table),
        "samples": sql("select g, count(*) from t group by g", t=table),
        "groups": sql("select count(distinct g) from t having count(*) > 0", t=table),
    }


def mmin_mmax(facts: Facts) -> Views:
    """Relax every arc as often as there are nodes: nothing that goes round improves a value further."""
    dist = {x: 0 for (x,) in facts["source"]}
    widest = {x: 1000 for (x,) in facts["source"]}
    for _pass in range(len(facts["arc"]) + 1):
        for x, y, weight, capacity in facts["arc"]:
            if x in dist:
                dist[y] = min(dist[x] + weight, dist.get(y, dist[x] + weight))
                widest[y] = max(min(widest[x], capacity), widest.get(y, 0))
    return {"dist": set(dist.items()), "widest": set(widest.items()), "far": {(x,) for x, d in dist.items() if d > 8}}


def mcount(facts: Facts) -> Views:
    coming = {p for (p,) in facts["organizer"]}
    while True:
        friends = Counter(p for p, f in facts["friend"] if f in coming)
        more = coming | {p for p, n in friends.items() if n >= 3}
        if more == coming:
            return {"coming": {(p,) for p in coming}, "friends": set(friends.items())}
        coming = more


def min_in_recursion(facts: Facts) -> Views:
    shortest = shortest_path(Facts(link=facts["arc"]))["minCost"]
    groups = nx.connected_components(nx.Graph([(x, y) for x, y, _c in facts["arc"]]))
    return {"path": shortest, "cc": {(x, min(group)) for group in groups for x in group}}


CHECKS: dict[str, tuple[Check, dict[str, Stream]]] = {
    "regions/reachability": (reachability, {}),
    "regions/shortest_path": (shortest_path, {}),
    "regions/shortest_path_cyclic": (shortest_path, {}),
    "regions/shortest_path_all": (shortest_path_all, {}),
    "regions/shortest_path_bound": (shortest_path_bound, {}),
    "regions/largest_region": (largest_region, {}),
    "regions/largest_region_terms": (largest_region, {}),
    "regions/resilience": (resilience, {}),
    "regions/resilience_sum": (resilience, {}),
    "regions/subtree_height": (subtree_height, {}),
    "regions/imbalance": (imbalance, {}),
    "regions/same_generation": (same_generation, {}),
    "views/reach_left": (reach, {}),
    "views/reach_right": (reach, {}),
    "views/reach_nonlinear": (reach, {}),
    "views/peer": (peer, {}),
    "sensors/uncovered_vehicles": (uncovered_vehicles, {}),
    "sensors/uncovered_vehicles_by_id": (uncovered_vehicles_by_id, {"veh": Stream(10, carried=False)}),
    "sensors/trajectories": (trajectories, {}),
    "sensors/shortest_path_tree_h": (shortest_path_tree_h, {}),
    "sensors/shortest_path_tree_j": (shortest_path_tree, {}),
    "sensors/sliding_window": (sliding_window, {}),
    "streamlog/transitive_closure": (transitive_closure, {}),
    "streamlog/employee_count": (employee_count, {"dptEmpl": Stream(365 * DAY, 90 * DAY)}),
    "streamlog/sub_organization": (sub_organization, {"subOrg": Stream()}),
    "streamlog/cheap_path": (cheap_path, {"ride": Stream(HOUR)}),
    "streamlog/cheap_path_figure": (cheap_path, {"ride": Stream(3, 1)}),
    "streamlog/earliest_organizer": (earliest_organizer, {"relateTo": Stream()}),
    "streamlog/lloyd_clustering": (lloyd_clustering, {"point": Stream(HOUR), "init": Stream(HOUR)}),
    "streamlog/paper_rank": (paper_rank, {"pub": Stream(365 * DAY)}),
    "streamlog/paper_rank_cyclic": (paper_rank, {"pub": Stream(365 * DAY)}),
    "windows/time": (named_closure("reach", "edge"), {"edge": Stream(10)}),
    "windows/slide": (slide, {"edge": Stream(10, 5)}),
    "windows/late": (named_closure("path", "edge"), {"edge": Stream(10)}),
    "windows/refresh": (named_closure("reach", "link"), {"link": Stream(10)}),
    "windows/deletes": (named_closure("reach", "link"), {"link": Stream(10)}),
    "windows/event_time": (event_time, {"a": Stream(10), "b": Stream(20)}),
    "windows/query_window": (query_window, {"call": Stream(120, 60), "mail": Stream(120, 60)}),
    "windows/timestamp_as_attribute": (timestamp_as_attribute, {"login": Stream(100, carried=False)}),
    "language/aggregates": (aggregates, {}),
    "language/several_aggregates": (several_aggregates, {}),
    "language/count_distinct": (count_distinct, {}),
    "language/mmin_mmax": (mmin_mmax, {}),
    "language/mcount": (mcount, {}),
    "language/min_in_recursion": (min_in_recursion, {}),
}


@pytest.mark.parametrize("name", CHECKS)
def test_views_equal_a_second_computation(name: str) -> None:
    check, streams = CHECKS[name]
    epochs = list(replay(GOLDEN / name, streams))
    assert epochs
    for number, (facts, shown) in enumerate(epochs, 1):
        computed = {view: {plain_row(row) for row in rows} for view, rows in check(Facts(facts)).items() if rows}
        assert shown == computed, f"epoch {number}"


def test_every_program_of_the_papers_is_checked() -> None:
    areas = ("regions", "views", "sensors", "streamlog")
    cases = {f"{area}/{path.name}" for area in areas for path in (GOLDEN / area).iterdir()}
    assert cases <= set(CHECKS)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("**/expected.deltas")), ids=lambda path: str(path.parent.name))
def test_rows_appear_while_absent_and_vanish_while_present(path: Path) -> None:
    assert replay_views(path.parent)


def test_deleting_one_edge_removes_four_pairs_of_nine() -> None:
    before, after = replay_views(GOLDEN / "views/reach_left")[:2]
    assert before["reach"] - after["reach"] == {("e", "f"), ("e", "h"), ("b", "f"), ("b", "h")}


def test_a_redundant_link_takes_nothing_with_it() -> None:
    before, after = replay_views(GOLDEN / "regions/reachability")[:2]
    assert before == after
    assert before["reachable"] == {(x, y) for x in "ABC" for y in "ABC"}


def test_the_cheap_ride_ages_out_and_the_dearer_way_takes_over() -> None:
    _at0, _at1, at2, at3 = replay_views(GOLDEN / "streamlog/cheap_path_figure")[:4]
    assert ("A", "C", 1.0) in at2["bestPrice"]
    assert ("A", "C", 2.0) in at3["bestPrice"]
