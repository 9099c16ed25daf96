"""/openapi.json says what every field and parameter means."""

from collections.abc import Iterator
from typing import Any

import httpx

from agentvisor.host.http.meanings import IN_BODIES, OF_FIELDS


def told(described: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Where, name and meaning of every field of a body, and of every parameter that no path names."""
    for body, schema in described["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield body, name, field.get("description", "")
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            for one in operation.get("parameters", []):
                if one["in"] != "path":
                    yield (
                        f"{method} {path}",
                        one["name"],
                        one.get("description") or one["schema"].get("description", ""),
                    )
            for kind in operation.get("requestBody", {}).get("content", {}).values():
                for name, field in kind["schema"].get("properties", {}).items():
                    yield f"{method} {path}", name, field.get("description", "")


async def test_every_field_and_parameter_says_what_it_means(api: httpx.AsyncClient) -> None:
    all_of_them = list(told((await api.get("/openapi.json")).json()))
    assert len(all_of_them) > 200
    assert [(place, name) for place, name, meaning in all_of_them if not meaning] == []


async def test_every_meaning_is_of_something_that_there_is(api: httpx.AsyncClient) -> None:
    all_of_them = list(told((await api.get("/openapi.json")).json()))
    assert OF_FIELDS.keys() - {name for _, name, meaning in all_of_them if meaning == OF_FIELDS.get(name)} == set()
    said = {f"{place}.{name}": meaning for place, name, meaning in all_of_them}
    assert {name: said.get(name) for name in IN_BODIES} == IN_BODIES
