"""`agentvisor doctor` and `agentvisor setup` on real servers: what is wrong is named, with what to do and a code."""

import asyncio
import json
import os
import resource
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import grpc
import pytest
from tests.cli.conftest import Ended, run_command
from tests.support.encryption import encryption
from tests.support.secure_cluster import SecureCluster, secure_cluster
from tests.support.temporal import free_ports
from tests.support.waiting import until

from agentvisor.core.errors import Sealed
from agentvisor.host.checks.data_folder import check_data_folder
from agentvisor.host.checks.examine import NAMES, Examination
from agentvisor.host.checks.finding import Finding, Verdict
from agentvisor.host.checks.write import check_write
from agentvisor.host.config import Config, load_config
from agentvisor.host.temporal_client import client_of, connect
from agentvisor.host.temporal_server_ready import SEARCH_ATTRIBUTES
from agentvisor.host.workflow.thread import WORKFLOW

pytestmark = pytest.mark.flow

AGENTS = "agents: {desk: './desk.py:desk'}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text("def desk(input):\n    return input\n")
    (tmp_path / "agentvisor.yaml").write_text(f"{AGENTS}http: {{port: {free_ports(1)[0]}}}\n")
    return tmp_path


@pytest.fixture
async def cluster(temporal: str) -> AsyncGenerator[SecureCluster]:
    """The server, with rights that can be taken away."""
    async with secure_cluster(temporal, None) as cluster:
        yield cluster


def config_of(folder: Path, address: str, **settings: str) -> Config:
    overrides = {name.replace("__", "."): value for name, value in settings.items()}
    return load_config(folder, environ={}, overrides={"temporal.address": address, **overrides})


async def examined(config: Config, *names: str, patience: float = 15) -> dict[str, Finding]:
    """What the checks of these names find; the connection is always needed."""
    skip = set(NAMES) - {*names, "connection"} if names else ()
    findings = [one async for one in Examination(config, patience=patience).findings(skip)]
    return {one.name: one for one in findings}


async def new_namespace(address: str, *, attributes: bool = True) -> str:
    name = f"n-{uuid4().hex[:8]}"
    ended = await run_command(
        "setup", "--temporal-address", address, "--namespace-retention", "7d", AGENTVISOR_TEMPORAL_NAMESPACE=name
    )
    assert ended.code == 0, ended.err
    if not attributes:
        client = await connect(address, name)
        from temporalio.api.operatorservice.v1 import RemoveSearchAttributesRequest

        await client.operator_service.remove_search_attributes(
            RemoveSearchAttributesRequest(search_attributes=["AgentVisorOwner"], namespace=name)
        )
    return name


async def test_an_api_key_that_goes_in_the_clear_is_warned_of(project: Path, temporal: str) -> None:
    config = config_of(project, temporal, temporal__api_key="canary", temporal__tls__enabled="false")
    found = (await examined(config, "connection"))["connection"]
    assert found.verdict is Verdict.WARNING
    assert "without TLS, with an API key" in found.seen
    assert "switch TLS on" in found.advice


async def test_a_host_that_could_start_is_told_so(project: Path, temporal: str) -> None:
    ended = await run_command("doctor", "--config", str(project), "--temporal-address", temporal, "--json")
    found = json.loads(ended.out)
    assert {one["check"]: one["verdict"] for one in found} == dict.fromkeys((*NAMES, "clock"), "ok"), ended.out
    assert (ended.code, ended.err) == (0, "")
    seen = {one["check"]: one["seen"] for one in found}
    assert "Temporal 1." in seen["connection"]
    assert "the server takes payloads of 2097152 bytes" in seen["limits"]
    assert "differ by less than" in seen["clock"]
    assert seen["agents"] == "desk: loaded in a guest"
    # Nothing of it stays.
    assert not (project / ".agentvisor").exists()
    client = await connect(temporal, "default")

    async def nothing_left() -> bool:
        return (await client.count_workflows("WorkflowType = 'AgentVisorDoctor'")).count == 0

    await until(nothing_left)


async def test_a_dead_server_is_named_with_what_to_do(project: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    ended = await run_command("doctor", "--config", str(project), "--temporal-address", address, "--skip", "agents")
    assert ended.code == 7
    assert f"failed   connection         no Temporal for us at {address}" in ended.out
    assert "-> nothing listens there: start it, or give its address (temporal.address, TEMPORAL_ADDRESS)" in ended.out
    assert "skipped  namespace          needs the connection" in ended.out


async def test_a_server_that_takes_connections_and_never_answers_holds_nobody_up(project: Path) -> None:
    silent = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    found = await examined(config_of(project, f"127.0.0.1:{port}"), "namespace", patience=1)
    assert found["connection"].verdict is Verdict.FAILED
    assert "it did not answer within 1 s" in found["connection"].advice
    assert found["namespace"].verdict is Verdict.SKIPPED
    silent.close()


async def test_a_wrong_namespace_is_named(project: Path, temporal: str) -> None:
    ended = await run_command(
        *("doctor", "--config", str(project), "--temporal-address", temporal, "--skip", "agents"),
        AGENTVISOR_TEMPORAL_NAMESPACE="nowhere",
    )
    assert ended.code == 3
    assert "failed   namespace          'nowhere' does not exist" in ended.out
    assert "agentvisor setup --namespace-retention 7d" in ended.out
    assert "skipped  search-attributes  needs the namespace" in ended.out


async def test_a_host_says_of_a_wrong_namespace_what_setup_says(project: Path, temporal: str) -> None:
    for command in ("serve", "setup"):
        ended = await run_command(
            *(command, "--config", str(project), "--temporal-address", temporal),
            AGENTVISOR_TEMPORAL_NAMESPACE="nowhere",
        )
        assert ended.code == 3
        assert "has no namespace 'nowhere': make it with `agentvisor setup --namespace-retention 7d`" in ended.err


async def test_a_wrong_encryption_key_is_found_by_the_threads_that_are_there(project: Path, temporal: str) -> None:
    queue = f"q-{uuid4().hex[:8]}"

    def with_keys(*ids: str) -> Config:
        config = config_of(project, temporal, temporal__task_queue=queue)
        return config.model_copy(update={"encryption": encryption(*ids)})

    async def finding(*ids: str) -> Finding:
        return (await examined(with_keys(*ids), "namespace", "encryption"))["encryption"]

    client = await client_of(with_keys("first"))
    thread = await client.start_workflow(WORKFLOW, b"state", id=queue, task_queue=queue)

    async def is_listed() -> bool:
        return "the newest 1 threads" in (await finding("first")).seen

    await until(is_listed)
    assert (await finding("first")).verdict is Verdict.OK
    assert "key second encrypts, second, first decrypt" in (await finding("second", "first")).seen
    lost = await finding("second")
    await thread.terminate()
    assert (lost.verdict, lost.error) == (Verdict.FAILED, Sealed)
    assert "1 of the newest 1 threads cannot be read here" in lost.seen
    assert "'first', which this host does not have" in lost.seen
    assert "agentvisor encryption-key used" in lost.advice


async def test_missing_search_attributes_are_named_and_registered_by_setup(project: Path, temporal: str) -> None:
    namespace = await new_namespace(temporal, attributes=False)
    config = config_of(project, temporal, temporal__namespace=namespace)

    async def finding() -> Finding:
        return (await examined(config, "namespace", "search-attributes"))["search-attributes"]

    async def is_missing() -> bool:
        return (await finding()).verdict is Verdict.FAILED

    await until(is_missing)
    found = await finding()
    assert found.seen == "missing: AgentVisorOwner"
    command = f"temporal operator search-attribute create --namespace {namespace} --name AgentVisorOwner --type Keyword"
    assert command in found.advice
    assert "agentvisor setup" in found.advice

    async def setup(*options: str) -> Ended:
        return await run_command(
            "setup", "--temporal-address", temporal, *options, AGENTVISOR_TEMPORAL_NAMESPACE=namespace
        )

    dry = await setup("--dry-run")
    assert "search attribute AgentVisorOwner: would be registered" in dry.out
    assert (await finding()).verdict is Verdict.FAILED
    done = await setup()
    assert f"namespace {namespace}: is there" in done.out
    assert "search attribute AgentVisorOwner: was registered" in done.out
    assert "search attribute AgentVisorStatus: is there" in done.out
    assert (await finding()).verdict is Verdict.OK
    again = json.loads((await setup("--json")).out)
    assert [one for one in again if one["changed"]] == []


async def test_setup_makes_a_namespace_only_when_that_is_asked_for(temporal: str) -> None:
    name = f"n-{uuid4().hex[:8]}"

    async def setup(*options: str) -> Ended:
        return await run_command("setup", "--temporal-address", temporal, *options, AGENTVISOR_TEMPORAL_NAMESPACE=name)

    refused = await setup()
    assert refused.code == 3
    assert "agentvisor setup --namespace-retention 7d" in refused.err
    dry = await setup("--namespace-retention", "7d", "--dry-run")
    assert f"namespace {name}: would be made, keeps executions that have ended for 168 hours" in dry.out
    assert (await setup()).code == 3
    assert (await setup("--namespace-retention", "soon")).code == 2
    made = await setup("--namespace-retention", "7d")
    assert f"namespace {name}: was made" in made.out
    assert made.out.count("was registered") == len(SEARCH_ATTRIBUTES)
    client = await connect(temporal, name)
    assert (await client.count_workflows("AgentVisorStatus = 'idle'")).count == 0


async def test_without_the_right_to_register_setup_says_the_command(cluster: SecureCluster, temporal: str) -> None:
    namespace = await new_namespace(temporal, attributes=False)
    cluster.denied = {"AddSearchAttributes": grpc.StatusCode.PERMISSION_DENIED}
    refused = await run_command("setup", "--temporal-address", cluster.address, AGENTVISOR_TEMPORAL_NAMESPACE=namespace)
    assert refused.code == 5
    assert f"temporal operator search-attribute create --namespace {namespace} --name AgentVisorOwner" in refused.err
    cluster.denied = {"RegisterNamespace": grpc.StatusCode.PERMISSION_DENIED}
    refused = await run_command(
        *("setup", "--temporal-address", cluster.address, "--namespace-retention", "3d"),
        AGENTVISOR_TEMPORAL_NAMESPACE="n-not-there",
    )
    assert refused.code == 5
    assert "temporal operator namespace create --namespace n-not-there --retention 259200s" in refused.err


async def test_missing_rights_are_told_as_that(cluster: SecureCluster, project: Path) -> None:
    config = config_of(project, cluster.address)
    denied = grpc.StatusCode.PERMISSION_DENIED
    cluster.denied = {"StartWorkflowExecution": denied, "ListSearchAttributes": denied}
    found = await examined(config, "namespace", "search-attributes", "write")
    assert found["write"].verdict is Verdict.FAILED
    assert "PERMISSION_DENIED" in found["write"].seen
    assert "the right to write to the namespace" in found["write"].advice
    assert found["search-attributes"].verdict is Verdict.WARNING
    assert "found by searching" in found["search-attributes"].seen
    cluster.denied = {"DescribeNamespace": denied}
    found = await examined(config, "namespace")
    assert "the API key or certificate of this namespace" in found["namespace"].advice


async def test_limits_that_the_server_does_not_take_are_named_with_the_setting(project: Path, temporal: str) -> None:
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

    from agentvisor.host.checks.limits import check_limits

    client = await connect(temporal, "default")
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    config = config_of(project, temporal)
    assert check_limits(config, described).verdict is Verdict.OK
    described.namespace_info.limits.blob_size_limit_error = 1_000_000
    small = check_limits(config, described)
    assert small.verdict is Verdict.FAILED
    assert "payloads of 1000000 bytes, and storage.max_state lets 1800000 through" in small.seen
    described.namespace_info.ClearField("limits")
    assert check_limits(config, described).verdict is Verdict.WARNING


async def test_a_clock_that_is_off_is_told_by_how_much(project: Path, temporal: str) -> None:
    from time import time

    config, client = config_of(project, temporal), await connect(temporal, "default")
    for ahead, verdict in ((10.0, Verdict.WARNING), (-10.0, Verdict.WARNING), (120.0, Verdict.FAILED)):
        found = [one async for one in check_write(config, client, now=lambda ahead=ahead: time() + ahead)]
        assert [one.verdict for one in found] == [Verdict.OK, verdict]
        assert ("behind" if ahead > 0 else "ahead of") in found[1].seen
        assert "set both by NTP" in found[1].advice


async def test_what_a_port_is_taken_by_is_told(project: Path, temporal: str) -> None:
    other = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    found = await examined(config_of(project, temporal, http__port=str(port)), "ports")
    assert found["ports"].verdict is Verdict.FAILED
    assert f"port {port} for HTTP is taken by process {os.getpid()}" in found["ports"].seen
    other.close()


async def test_an_agent_that_cannot_be_imported_is_named_and_the_others_are_tried(project: Path, temporal: str) -> None:
    (project / "broken.py").write_text("import no_such_package\n")
    (project / "agentvisor.yaml").write_text("agents: {broken: './broken.py:agent', desk: './desk.py:desk'}\n")
    findings = [
        one async for one in Examination(config_of(project, temporal), patience=30).findings(set(NAMES) - {"agents"})
    ]
    assert [(one.verdict, one.seen.partition(":")[0]) for one in findings] == [
        (Verdict.FAILED, "broken"),
        (Verdict.OK, "desk"),
    ]
    assert "no_such_package" in findings[0].seen
    assert "agents.broken.python_path" in findings[0].advice


async def test_an_unknown_check_is_refused_with_those_that_there_are(project: Path) -> None:
    ended = await run_command("doctor", "--config", str(project), "--skip", "everything")
    assert ended.code == 2
    assert "there are keys, data-folder, ports, connection" in ended.err


# --- disks -----------------------------------------------------------------------------------------------------------


@contextmanager
def full_disk(folder: Path) -> Generator[None]:
    """A file system of its own that has room for 64 KiB, or, where none may be mounted, a limit on files' sizes."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=False, capture_output=True
    )
    if mounted.returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", folder], check=True)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_is_told_as_that(project: Path, temporal: str) -> None:
    data = project / "data"
    with full_disk(data):
        ended = await run_command(
            *("doctor", "--config", str(project), "--temporal-address", temporal, "--data-dir", str(data)),
            *("--skip", "agents", "--skip", "write"),
        )
    assert ended.code == 7
    assert f"failed   data-folder        {data}: the disk is full" in ended.out
    assert "make room there, or choose another folder" in ended.out
    assert "ok       namespace" in ended.out


async def test_a_folder_that_cannot_be_written_to_is_named_and_one_that_is_missing_is_not_made(project: Path) -> None:
    (project / "file").touch()
    assert "cannot be written to" in check_data_folder(config_of(project, "a:1", dev__data_dir="file")).seen
    found = check_data_folder(config_of(project, "a:1", dev__data_dir="new/folder"))
    assert found.verdict is Verdict.OK
    assert "to be made in" in found.seen
    assert not (project / "new").exists()
