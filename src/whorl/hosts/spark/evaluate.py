"""`whorl.evaluate`: data frames in, views as data frames out, once.

The same kernel as under a stream, with a single epoch. The views are files in a temporary folder, which goes when this
process ends; on several machines it must be one that they share.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Mapping
from os import PathLike
from typing import Any
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.bringing import bringer_for
from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.lanes import Frame, gather, lanes_of, match_inputs
from whorl.hosts.spark.layout import new_token
from whorl.hosts.spark.opening import discard, temporary_store
from whorl.hosts.spark.program import GivenProgram
from whorl.hosts.spark.protocol import Brought
from whorl.hosts.spark.session import check_session
from whorl.hosts.spark.store import Store
from whorl.hosts.spark.view_files import column_names
from whorl.hosts.spark.view_frames import read_changes
from whorl.model.delta import Change
from whorl.model.limits import Limits
from whorl.physical.lower import lower_plan


def evaluate_frames(
    spark: Any,
    program: GivenProgram,
    inputs: Mapping[str, Frame],
    event_time: Mapping[str, str],
    *,
    partitions: int | None,
    strategy: str,
    limits: Limits,
    folder: str | PathLike[str] | None,
) -> dict[str, Frame]:
    """Return every view of a program over frames; a row that does not fit is an error."""
    context = check_session(spark)
    matched, types = match_inputs(inputs, program.compile, program.names, event_time)
    # Nothing will change, so nothing is kept for changes, unless somebody asks for it.
    plan = lower_plan(program.compile(types), "recompute" if strategy == "auto" else strategy, "auto")
    store = temporary_store(spark, folder)
    layout = store.layout
    atexit.register(discard, store)
    count = context.defaultParallelism if partitions is None else partitions
    deployment = Deployment(context, store, uuid4().hex, count, limits, "files", once=True)
    deployment.use(plan)
    token = new_token(1)
    if matched:
        frame = gather(matched)
        arriving = bringer_for(frame, lanes_of(matched, plan), store).bring(frame, 1, None)
        stepped = deployment.step_with(arriving, token, None, facts=True)
        check_misfits(stepped.brought, store)
    else:
        deployment.log(token, None, [Change(fact.relation, fact.row, 1) for fact in plan.logical.program.facts], ())
        stepped = deployment.step(token, None)
    for view in stepped.changed:
        store.move(layout.staging / token / view, layout.epoch_changes(view, 1))
    outputs = plan.logical.outputs
    return {each.name: read_changes(spark, store, each, 0, 1).select(*column_names(each)) for each in outputs}


def check_misfits(brought: Brought, store: Store) -> None:
    """Raise if a row did not fit, with the first reason."""
    if not brought.misfits:
        return
    name = next(iter(brought.misfits))
    folder = store.layout.quarantine(1)
    first = next(each for each in store.names(folder) if each.startswith(f"{name}-"))
    told = json.loads(store.read(folder / first).splitlines()[0])
    facts = {"name": name, "count": brought.misfits[name], "reason": told["reason"], "row": told["row"]}
    raise UserError("E809", None, **facts)
