"""What `whorl bench regions` shows: the figures of REGIONS, each as a series of cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whorl.bench.case import Case
from whorl.bench.region_cases import PARTITIONS, PORTIONS, SIZES
from whorl.bench.selection_cases import NETWORKS, POINTS
from whorl.bench.series import Series, metrics_of

REGION_NOTES = (
    "Rows, bytes, work, CPU time and state are those of all partitions together. A deletion is the mean of several.",
    "Time on the network is that of messages alone; time to converge adds the CPU time, divided by the partitions.",
    "Our DRed keeps counts, and a sender remembers what it has told: one that does neither may ship more.",
    "recompute ships what a system without maintenance would: everything again, after each change.",
)
_WHATS = {"load": "loading", "delete": "one deletion"}


def _both(
    name: str, title: str, varies: str, points: Mapping[str, str], figures: tuple[str, str] = ("", "")
) -> tuple[Series, ...]:
    """Return a series for the load, and one for deletions, with the figures of REGIONS that they stand for."""
    return tuple(
        Series(
            f"{name}-{kind}",
            f"{title}: {what}{f' (figure {figure})' if figure else ''}",
            varies,
            points,
            metrics_of(kind),
        )
        for (kind, what), figure in zip(_WHATS.items(), figures, strict=True)
    )


REGION_SERIES: tuple[Series, ...] = (
    *_both(
        "network",
        "reachability in a network",
        "links loaded",
        {f"{each} %": f"regions-network-{each}" for each in PORTIONS},
        ("7", "8"),
    ),
    *_both(
        "sensors",
        "regions of sensors",
        "sensors triggered",
        {f"{each} %": f"regions-sensors-{each}" for each in PORTIONS},
        ("9", "10"),
    ),
    *_both("dense", "dense networks", "links", {str(each): f"regions-dense-{each}" for each in SIZES}, ("11", "12")),
    *_both("sparse", "sparse networks", "links", {str(each): f"regions-sparse-{each}" for each in SIZES}, ("11", "12")),
    *_both(
        "partitions",
        "a network in more partitions",
        "partitions",
        {str(each): f"regions-partitions-{each}" for each in PARTITIONS},
        ("13", "13"),
    ),
    *(
        series
        for network, selections in POINTS.items()
        for series in _both(
            f"select-{network}",
            f"aggregate selections in a {network} network of {NETWORKS[network]}",
            "selections",
            {each: f"regions-select-{network}-{each}" for each in selections},
            ("14", "14"),
        )
    ),
)


def data_series(cases: Sequence[Case]) -> tuple[Series, ...]:
    """Return the series of real networks."""
    names = {case.name.removeprefix("regions-data-"): case.name for case in cases}
    static = {name: case for name, case in names.items() if not name.startswith("bgp-")}
    routes = {name.removeprefix("bgp-"): case for name, case in names.items() if name not in static}
    return (
        *_both("data", "real networks", "network", static),
        Series("routes-load", "paths announced: loading half of them", "stream", routes, metrics_of("load")),
        Series("routes-epoch", "paths announced and withdrawn: an epoch", "stream", routes, metrics_of("epoch")),
    )
