"""The manifests are valid for the versions of Kubernetes that are in use, and say of our hosts what is so."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.deploy.files import DEPLOY, ROUTES, check_command, check_stop, config_of, loaded

FOLDER = DEPLOY / "kubernetes"
MANIFESTS = sorted(file for file in FOLDER.glob("*.yaml") if file.name != "kustomization.yaml")
OTHERS = {"ServiceMonitor"}
"""Kinds that are not Kubernetes' own."""
SECRET = "x" * 40


@pytest.mark.parametrize("version", ["1.31", "1.34", "1.37"])
@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_a_manifest_is_valid_and_has_no_field_that_kubernetes_does_not_know(file: Path, version: str) -> None:
    manifest = yaml.safe_load(file.read_text())
    # Whoever applies it says where.
    assert "namespace" not in manifest["metadata"]
    if manifest["kind"] not in OTHERS:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_field_that_does_not_exist_is_found() -> None:
    manifest = loaded("kubernetes/deployment.yaml")
    manifest["spec"]["template"]["spec"]["terminationGracePeriod"] = 60
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, "1.34", strict=True)


def test_what_is_applied_is_all_that_is_there_less_what_is_not_for_everybody() -> None:
    assert {*loaded("kubernetes/kustomization.yaml")["resources"], "secret.example.yaml", "service-monitor.yaml"} == {
        file.name for file in MANIFESTS
    }


@pytest.fixture
def pod() -> dict[str, Any]:
    return dict(loaded("kubernetes/deployment.yaml")["spec"]["template"]["spec"])


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["containers"]
    return dict(container)


def environment(container: dict[str, Any]) -> dict[str, str]:
    given = {
        one["name"]: one.get("value", SECRET) for one in container["env"] if "fieldRef" not in one.get("valueFrom", {})
    }
    return {name: value.replace("$(POD_IP)", "10.1.2.3") for name, value in given.items()}


def test_a_host_starts_with_what_the_manifests_tell_it(
    pod: dict[str, Any], container: dict[str, Any], tmp_path: Path
) -> None:
    assert "command" not in container  # it would take the place of the image's entrypoint, and of its process 1
    check_command(container["args"])
    data = loaded("kubernetes/configmap.yaml")["data"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert container["args"][-1] == f"{mounts['config']}/{next(iter(data))}"
    # The agents are in the image, where the sample's are in the compose file.
    text = data["agentvisor.yaml"].replace("/app/", f"{DEPLOY}/agents/")
    (tmp_path / "agentvisor.yaml").write_text(text)
    config = config_of(environment(container), tmp_path)
    assert config.http.peer_address == "10.1.2.3:8090"
    assert config.http.needs_key
    # Requests come for a moment after the pod was taken out of the service, and a host without runs ends at once.
    program, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "sleep"
    assert float(seconds) >= 5
    check_stop(pod["terminationGracePeriodSeconds"] - float(seconds), config)
    # A host takes its own time to be warm, and less than it is given.
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] > 60
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in ROUTES
        assert ports[asked["port"]] == config.http.port
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_everything_selects_the_hosts_and_asks_for_what_is_there(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    labels = loaded("kubernetes/deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        loaded("kubernetes/deployment.yaml")["spec"]["selector"]["matchLabels"],
        loaded("kubernetes/service.yaml")["spec"]["selector"],
        loaded("kubernetes/disruption.yaml")["spec"]["selector"]["matchLabels"],
        loaded("kubernetes/network-policy.yaml")["spec"]["podSelector"]["matchLabels"],
        *(one["labelSelector"]["matchLabels"] for one in pod["topologySpreadConstraints"]),
    ]
    assert all(one.items() <= labels.items() for one in selectors)
    monitor, service = loaded("kubernetes/service-monitor.yaml")["spec"], loaded("kubernetes/service.yaml")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in {one["name"] for one in service["spec"]["ports"]}
    assert {one["targetPort"] for one in service["spec"]["ports"]} <= {one["name"] for one in container["ports"]}
    secret = loaded("kubernetes/secret.example.yaml")
    wanted = [
        one["valueFrom"]["secretKeyRef"] for one in container["env"] if "secretKeyRef" in one.get("valueFrom", {})
    ]
    assert {one["key"] for one in [*wanted, endpoint["authorization"]["credentials"]]} <= secret["stringData"].keys()
    assert {one["name"] for one in wanted} == {secret["metadata"]["name"]}
    assert pod["serviceAccountName"] == loaded("kubernetes/service-account.yaml")["metadata"]["name"]
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}


def test_the_pods_pass_the_restricted_standard_of_pod_security(pod: dict[str, Any], container: dict[str, Any]) -> None:
    of_pod, of_container = pod["securityContext"], container["securityContext"]
    assert of_pod["runAsNonRoot"] is True
    assert of_pod["runAsUser"] > 0
    assert of_pod["seccompProfile"]["type"] == "RuntimeDefault"
    assert of_container["allowPrivilegeEscalation"] is False
    assert of_container["capabilities"] == {"drop": ["ALL"]}
    assert of_container["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False
    assert all(volume.keys() & {"configMap", "emptyDir", "secret"} for volume in pod["volumes"])
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


def test_hosts_are_replaced_one_by_one_by_such_as_are_ready() -> None:
    spec = loaded("kubernetes/deployment.yaml")["spec"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert loaded("kubernetes/disruption.yaml")["spec"]["maxUnavailable"] == 1
