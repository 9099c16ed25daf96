"""What a host says of itself."""

import httpx


async def test_a_client_is_told_what_a_host_can_do(api: httpx.AsyncClient) -> None:
    told = (await api.get("/info")).json()
    assert told["flags"] == {"assistants": True, "crons": True, "langsmith": False, "strict_resume": True}
    routes = (await api.get("/openapi.json")).json()["paths"]
    assert {"/assistants", "/runs/crons"} <= routes.keys(), "a flag of what is not there"
