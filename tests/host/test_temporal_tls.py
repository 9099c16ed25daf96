"""A real client against a real server behind TLS, client certificates and API keys; each mistake says what to do."""

from collections.abc import AsyncGenerator
from pathlib import Path

import grpc
import pytest
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from tests.support.secure_cluster import NAME, Authority, SecureCluster, Signed, secure_cluster

from agentvisor.core.errors import PermissionRefused, Unavailable
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import client_of
from agentvisor.host.temporal_server_ready import require_search_attributes

pytestmark = pytest.mark.flow


class Certificates:
    def __init__(self, folder: Path) -> None:
        self.ours, self.others = Authority(folder / "ours"), Authority(folder / "others", "another authority")
        self.server = self.ours.sign(NAME)
        self.client, self.stranger = self.ours.sign("client"), self.others.sign("client")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def cluster(temporal: str, certificates: Certificates) -> AsyncGenerator[SecureCluster]:
    async with secure_cluster(temporal, certificates.server, key="the-key") as cluster:
        yield cluster


async def answer(environ: dict[str, str]) -> str:
    """The server's version, as a host of this environment is told it."""
    client = await client_of(load_config(Path("/tmp"), environ=environ))
    return (await client.workflow_service.get_system_info(GetSystemInfoRequest())).server_version


def ours(address: str, authority: Authority | None, signed: Signed | None = None, **more: str) -> dict[str, str]:
    given = {"address": address, "tls_server_name": NAME, **more}
    if authority is not None:
        given["tls_ca_file"] = str(authority.certificate)
    if signed is not None:
        given |= {"tls_cert_file": str(signed.certificate), "tls_key_file": str(signed.key)}
    return {f"AGENTVISOR_TEMPORAL_{name.upper()}": value for name, value in given.items()}


async def test_the_api_key_goes_with_every_request_by_tls(cluster: SecureCluster, certificates: Certificates) -> None:
    assert await answer(ours(cluster.address, certificates.ours, api_key="the-key"))
    assert cluster.shown == {"Bearer the-key"}


async def test_a_host_connects_by_a_profile_alone(
    cluster: SecureCluster, certificates: Certificates, tmp_path: Path
) -> None:
    profiles = tmp_path / "temporal.toml"
    profiles.write_text(
        f'[profile.cloud]\naddress = "{cluster.address}"\napi_key = "the-key"\n'
        f'[profile.cloud.tls]\nserver_name = "{NAME}"\n'
        f'server_ca_cert_path = "{certificates.ours.certificate}"\n[profile.cloud.grpc_meta]\nteam = "desks"\n'
    )
    for environ in (
        {"TEMPORAL_CONFIG_FILE": str(profiles), "TEMPORAL_PROFILE": "cloud"},
        {"AGENTVISOR_TEMPORAL_CONFIG_FILE": str(profiles), "AGENTVISOR_TEMPORAL_PROFILE": "cloud"},
    ):
        cluster.shown.clear()
        assert await answer(environ)
        assert cluster.shown == {"Bearer the-key"}
        assert cluster.metadata["team"] == "desks"


async def test_a_wrong_key_is_told_as_that(cluster: SecureCluster, certificates: Certificates) -> None:
    for key in ({}, {"api_key": "another"}):
        with pytest.raises(PermissionRefused, match=r"see that the API key \(temporal.api_key, TEMPORAL_API_KEY\)"):
            await answer(ours(cluster.address, certificates.ours, **key))


@pytest.mark.parametrize(
    "environ, says",
    [
        ({"TLS_CA_FILE": "others"}, "signed by nobody whom this host trusts: set temporal.tls.ca_file"),
        ({}, "signed by nobody whom this host trusts: set temporal.tls.ca_file"),
        ({"TLS_CA_FILE": "ours", "TLS_SERVER_NAME": "other.test"}, "for another name .* set temporal.tls.server_name"),
        ({"TLS_ENABLED": "false"}, r"it may want TLS \(temporal.tls.enabled: true, or TEMPORAL_TLS=true\)"),
    ],
)
async def test_a_mistake_with_the_servers_certificate_says_what_to_do(
    cluster: SecureCluster, certificates: Certificates, environ: dict[str, str], says: str
) -> None:
    given = {"ADDRESS": cluster.address, "API_KEY": "the-key", "TLS_SERVER_NAME": NAME, **environ}
    if "TLS_ENABLED" in given:
        del given["TLS_SERVER_NAME"]
    if which := environ.get("TLS_CA_FILE"):
        given["TLS_CA_FILE"] = str(getattr(certificates, which).certificate)
    with pytest.raises(Unavailable, match=says) as failed:
        await answer({f"AGENTVISOR_TEMPORAL_{name}": value for name, value in given.items()})
    assert "the-key" not in str(failed.value)
    assert "Bearer the-key" not in cluster.shown


async def test_client_certificates(temporal: str, certificates: Certificates) -> None:
    async with secure_cluster(temporal, certificates.server, clients=certificates.ours.certificate) as cluster:
        assert await answer(ours(cluster.address, certificates.ours, certificates.client))
        for signed in (None, certificates.stranger):
            with pytest.raises(Unavailable, match="it may want a client certificate"):
                await answer(ours(cluster.address, certificates.ours, signed))
        crossed = Signed(certificates.client.certificate, certificates.stranger.key)
        with pytest.raises(Unavailable, match="its private key do not go together"):
            await answer(ours(cluster.address, certificates.ours, crossed))


async def test_tls_to_a_server_without_says_so(temporal: str) -> None:
    with pytest.raises(Unavailable, match="it does not speak TLS"):
        await answer({"AGENTVISOR_TEMPORAL_ADDRESS": temporal, "AGENTVISOR_TEMPORAL_API_KEY": "the-key"})


async def test_variables_that_do_not_count_are_named_where_that_may_be_the_cause(
    cluster: SecureCluster, temporal: str
) -> None:
    theirs = {"TEMPORAL_API_KEY": "the-key", "TEMPORAL_TLS": "true"}
    assert await answer({**theirs, "AGENTVISOR_TEMPORAL_ADDRESS": temporal})
    with pytest.raises(Unavailable, match=r"TEMPORAL_API_KEY, TEMPORAL_TLS did not count, because temporal.address"):
        await answer({**theirs, "AGENTVISOR_TEMPORAL_ADDRESS": cluster.address})
    assert "Bearer the-key" not in cluster.shown


async def test_who_may_not_list_search_attributes_starts_where_they_are_there(temporal: str) -> None:
    async with secure_cluster(temporal, None) as cluster:
        denied = grpc.StatusCode.PERMISSION_DENIED
        cluster.denied = {"ListSearchAttributes": denied, "AddSearchAttributes": denied}
        client = await client_of(load_config(Path("/tmp"), environ={"TEMPORAL_ADDRESS": cluster.address}))
        await require_search_attributes(client)
        cluster.denied["CountWorkflowExecutions"] = grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(Unavailable, match="temporal operator search-attribute create --namespace default --name"):
            await require_search_attributes(client)
