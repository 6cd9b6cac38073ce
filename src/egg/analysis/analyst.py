"""The analyst: graph, costs and facts of every workload of a task."""

from __future__ import annotations

import time
from collections.abc import Callable

from egg.analysis.costs import op_costs, total_costs
from egg.analysis.export import export_graph
from egg.analysis.facts import facts_of
from egg.schema.analysis import Analysis
from egg.schema.device import Device
from egg.schema.task import Task, Workload


class TorchAnalyst:
    """Analyses tasks through `torch.export`."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock

    def analyze(self, task: Task, device: Device) -> tuple[Analysis, ...]:
        """Returns one analysis a workload, in order. Raises TaskError where the task can't be exported."""
        return tuple(self._workload(task, workload, device) for workload in task.workloads)

    def _workload(self, task: Task, workload: Workload, device: Device) -> Analysis:
        start = self._clock()
        graph = export_graph(task, workload)
        export_s = self._clock() - start
        ops = op_costs(graph, device)
        totals = total_costs(graph, ops, device)
        return Analysis(
            task_hash=task.content_hash,
            workload=workload.name,
            graph=graph,
            ops=ops,
            flops=totals.flops,
            min_bytes=totals.min_bytes,
            arithmetic_intensity=totals.arithmetic_intensity,
            floor_ms=totals.floor_ms,
            bound=totals.bound,
            facts=facts_of(graph, ops, totals, device, task.training),
            export_s=export_s,
        )
