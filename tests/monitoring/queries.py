"""PromQL, taken apart: which series a query reads, what it does with them, and which labels its result has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser as promql
from prometheus_client import REGISTRY

from agentvisor.host.metrics import TABLE

PROMETHEUS_OWN = {"up": frozenset({"job", "instance"})}
SCRAPED = frozenset({"job", "instance"})
"""Labels that Prometheus gives to whatever it scrapes."""
GROWING = ("rate", "increase")


@dataclass(frozen=True)
class Series:
    """What a selector may name."""

    kind: str
    """counter, gauge, or what a part of a histogram is: bucket, counter."""
    labels: frozenset[str]
    values: dict[str, tuple[str, ...]]
    """Of those labels whose values are listed."""
    top: float = 0.0
    """Of a histogram: its last bucket's end."""


def known() -> dict[str, Series]:
    """Every series that there is: the table's, and those of the process."""
    found = {name: Series("gauge", labels, {}) for name, labels in PROMETHEUS_OWN.items()}
    for name, one in TABLE.items():
        labels = frozenset(one.labels) | SCRAPED
        values = {label: listed for label, listed in one.labels.items() if not isinstance(listed, str)}
        if one.kind == "histogram":
            found[f"{name}_bucket"] = Series("bucket", labels | {"le"}, values, one.buckets[-1])
            found[f"{name}_count"] = found[f"{name}_sum"] = Series("counter", labels, values)
        else:
            found[name] = Series(one.kind, labels, values)
    for family in REGISTRY.collect():
        if family.name.startswith(("process_", "python_")):
            for sample in family.samples:
                kind = "counter" if family.type == "counter" else "gauge"
                found[sample.name] = Series(kind, frozenset(sample.labels) | SCRAPED, {})
    return found


KNOWN = known()


def parsed(query: str) -> Any:
    """A query with Grafana's own words filled in; `ValueError` where it is none."""
    filled = query.replace("$__rate_interval", "5m").replace("$__range", "6h").replace("$instance", ".*")
    assert "$" not in filled, f"a variable that the dashboard does not have: {query}"
    return promql.parse(filled)


def faults(query: str) -> list[str]:
    """What is wrong with a query; nothing where it makes sense."""
    return list(_faults(parsed(query), ()))


def _faults(node: Any, above: tuple[Any, ...]) -> Iterator[str]:
    if isinstance(node, promql.MatrixSelector):
        yield from _selector_faults(node.vector_selector, above)
        return
    if isinstance(node, promql.VectorSelector):
        yield from _selector_faults(node, above)
        return
    if isinstance(node, promql.Call) and node.func.name == "histogram_quantile":
        inner = node.args[1]
        if not isinstance(inner, promql.AggregateExpr) or "le" not in result_labels(inner):
            yield "histogram_quantile of what does not keep le"
        if {KNOWN[one].kind for one in names(inner) if one in KNOWN} != {"bucket"}:
            yield "histogram_quantile of what is no histogram"
    if isinstance(node, promql.AggregateExpr):
        wanted = set(node.modifier.labels) if node.modifier is not None else set()
        for name in names(node.expr):
            missing = wanted - KNOWN[name].labels if name in KNOWN else set()
            if missing:
                yield f"by {missing}, which {name} does not have"
    if isinstance(node, promql.BinaryExpr) and (top := _quantile_top(node)) is not None:
        (limit,) = [one.val for one in (node.lhs, node.rhs) if isinstance(one, promql.NumberLiteral)]
        if not 0 < limit < top:
            yield f"a quantile is never over its last bucket: {limit} of {top}"
    for child in _children(node):
        yield from _faults(child, (*above, node))


def _selector_faults(node: Any, above: tuple[Any, ...]) -> Iterator[str]:
    series = KNOWN.get(node.name)
    if series is None:
        yield f"there is no {node.name}"
        return
    calls = [one.func.name for one in above if isinstance(one, promql.Call)]
    grows = any(one in GROWING for one in calls)
    if grows != (series.kind in ("counter", "bucket")):
        yield f"{node.name} is a {series.kind}, and the query has {calls}"
    for matcher in node.matchers.matchers:
        if matcher.name not in series.labels:
            yield f"{node.name} has no label {matcher.name}"
        elif matcher.name in series.values and not any(_matches(matcher, one) for one in series.values[matcher.name]):
            yield f"{matcher.name} of {node.name} is never {matcher.value}"
        elif matcher.name in series.values:
            for part in re.split(r"\|", matcher.value):
                if re.fullmatch(r"\w+", part) and part not in series.values[matcher.name]:
                    yield f"{matcher.name} of {node.name} is never {part}"


def _matches(matcher: Any, value: str) -> bool:
    equal, regex = promql.MatchOp.Equal, promql.MatchOp.Re
    hit = (
        bool(re.fullmatch(matcher.value, value))
        if matcher.op in (regex, promql.MatchOp.NotRe)
        else (matcher.value == value)
    )
    return hit if matcher.op in (equal, regex) else not hit


def _quantile_top(node: Any) -> float | None:
    for side in (node.lhs, node.rhs):
        if isinstance(side, promql.Call) and side.func.name == "histogram_quantile":
            return min(KNOWN[one].top for one in names(side))
    return None


def _children(node: Any) -> list[Any]:
    match node:
        case promql.Call():
            return list(node.args)
        case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return [node.expr]
        case promql.BinaryExpr():
            return [node.lhs, node.rhs]
        case _:
            return []


def names(node: Any) -> set[str]:
    """Of all series that are read."""
    if isinstance(node, promql.MatrixSelector):
        return {node.vector_selector.name}
    if isinstance(node, promql.VectorSelector):
        return {node.name}
    return {name for child in _children(node) for name in names(child)}


def result_labels(node: Any) -> set[str]:
    """Those that the result has, for a legend or an alert's text."""
    match node:
        case promql.AggregateExpr():
            if node.modifier is None:  # topk keeps them
                return result_labels(node.expr) if node.param is not None else set()
            return set(node.modifier.labels)
        case promql.Call():
            if node.func.name == "absent":
                return set()
            inner: set[str] = set().union(*map(result_labels, node.args))
            return inner - {"le"} if node.func.name == "histogram_quantile" else inner
        case promql.VectorSelector():
            return set(KNOWN[node.name].labels)
        case promql.MatrixSelector():
            return set(KNOWN[node.vector_selector.name].labels)
        case promql.BinaryExpr():
            sides = [one for one in (node.lhs, node.rhs) if not isinstance(one, promql.NumberLiteral)]
            return set.intersection(*map(result_labels, sides))
        case promql.ParenExpr() | promql.UnaryExpr():
            return result_labels(node.expr)
        case _:
            return set()


def table_name(series: str) -> str:
    """The metric of a series."""
    for ending in ("_bucket", "_sum", "_count"):
        if series.removesuffix(ending) in TABLE:
            return series.removesuffix(ending)
    return series
