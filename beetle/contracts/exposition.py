"""Metrics as text that Prometheus reads (exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.admin import Metric, MetricSample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(metrics: Iterable[Metric]) -> str:
    """The text, one line a sample, ended by a line break."""
    return "".join(f"{line}\n" for each in metrics for line in _lines(each))


def _lines(metric: Metric) -> Iterable[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for sample in metric.samples:
        yield f"{metric.name}{sample.suffix}{_labels(sample)} {_number(sample.value)}"


def _labels(sample: MetricSample) -> str:
    labels = ",".join(f'{each.name}="{_escaped(each.value)}"' for each in sample.labels)
    return f"{{{labels}}}" if labels else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
