"""What `whorl bench regions` shows: the figures of REGIONS, each as a series of cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whorl.bench.case import Case
from whorl.bench.region_cases import PARTITIONS, PORTIONS, SELECTIONS, SIZES
from whorl.bench.series import Series, metrics_of

_WHATS = {"load": "loading", "delete": "one deletion"}


def _both(name: str, title: str, varies: str, points: Mapping[str, str]) -> tuple[Series, ...]:
    """Return a series for the load, and one for deletions."""
    return tuple(
        Series(f"{name}-{kind}", f"{title}: {what}", varies, points, metrics_of(kind)) for kind, what in _WHATS.items()
    )


REGION_SERIES: tuple[Series, ...] = (
    *_both(
        "network",
        "reachability in a network",
        "links loaded",
        {f"{each} %": f"regions-network-{each}" for each in PORTIONS},
    ),
    *_both(
        "sensors",
        "regions of sensors",
        "sensors triggered",
        {f"{each} %": f"regions-sensors-{each}" for each in PORTIONS},
    ),
    *_both("dense", "dense networks", "links", {str(each): f"regions-dense-{each}" for each in SIZES}),
    *_both("sparse", "sparse networks", "links", {str(each): f"regions-sparse-{each}" for each in SIZES}),
    *_both(
        "partitions",
        "a network in more partitions",
        "partitions",
        {str(each): f"regions-partitions-{each}" for each in PARTITIONS},
    ),
    *(
        series
        for density in ("dense", "sparse")
        for series in _both(
            f"select-{density}",
            f"aggregate selections in a {density} network",
            "selections",
            {each: f"regions-select-{density}-{each}" for each in SELECTIONS},
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
