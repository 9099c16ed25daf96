"""The configuration is one typed tree; a mistake in it is named, with its place and what was probably meant."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from agentvisor.host.config import Config, ConfigError, http_in_force, load_config
from agentvisor.host.config_langgraph import parse_env_file
from agentvisor.host.config_settings import PROCESS_VARIABLES, SETTINGS
from agentvisor.host.config_units import format_duration, format_size, parse_duration, parse_size


def load(folder: Path, content: object = None, environ: Mapping[str, str] | None = None, **overrides: object) -> Config:
    if content is not None:
        (folder / "agentvisor.yaml").write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    options = {path.replace("__", "."): value for path, value in overrides.items()}
    return load_config(folder, environ=environ or {}, overrides=options)


def refused(folder: Path, content: object = None, environ: Mapping[str, str] | None = None, **overrides: object) -> str:
    with pytest.raises(ConfigError) as error:
        load(folder, content, environ, **overrides)
    assert error.value.code == "config_invalid"
    return str(error.value)


def langgraph_project(folder: Path, **project: object) -> Config:
    (folder / "agent.py").touch()
    (folder / "langgraph.json").write_text(json.dumps({"graphs": {"agent": "./agent.py:graph"}} | project))
    return load_config(folder, environ={})


def test_a_folder_without_a_file_gives_the_documented_defaults(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config.http.port == 8090
    assert config.dev.temporal_ui_port == 8233
    assert config.temporal.run_restart.max_attempts == 3
    assert config.temporal.run_timeout == timedelta(minutes=30)
    assert config.temporal.pending_writes_enabled
    assert config.base_dir == tmp_path


def test_options_beat_variables_beat_the_file_beats_the_default(tmp_path: Path) -> None:
    file = {"http": {"port": 1001}}
    variable = {"AGENTVISOR_HTTP_PORT": "1002"}
    assert load(tmp_path, file).http.port == 1001
    assert load(tmp_path, file, variable).http.port == 1002
    assert load(tmp_path, file, variable, http__port=1003).http.port == 1003
    assert load(tmp_path, file, variable, http__port=None).http.port == 1002


@pytest.mark.parametrize(
    "variable, text, path, value",
    [
        ("AGENTVISOR_TEMPORAL_RUN_RESTART_MAX_ATTEMPTS", "0", "temporal.run_restart.max_attempts", 0),
        ("AGENTVISOR_TEMPORAL_MAX_CHECKPOINT_HISTORY", "-1", "temporal.max_checkpoint_history", -1),
        ("AGENTVISOR_TEMPORAL_MAX_RUN_HISTORY", "7", "temporal.max_run_history", 7),
        ("AGENTVISOR_TEMPORAL_PENDING_WRITES_ENABLED", "false", "temporal.pending_writes_enabled", False),
        ("AGENTVISOR_TEMPORAL_HEARTBEAT_TIMEOUT", "2500ms", "temporal.heartbeat_timeout", timedelta(seconds=2.5)),
        ("AGENTVISOR_STORAGE_MAX_VALUE", "2MiB", "storage.max_value", 2 * 1024 * 1024),
        ("AGENTVISOR_GUEST_START_METHOD", "exec", "guest.start_method", "exec"),
    ],
)
def test_variables_set_what_they_are_named_for(
    tmp_path: Path, variable: str, text: str, path: str, value: object
) -> None:
    found: object = load(tmp_path, environ={variable: text})
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value


@pytest.mark.parametrize("path", [path for path, setting in SETTINGS.items() if not setting.is_table])
def test_every_setting_is_read_from_its_variable_and_from_its_file_key(tmp_path: Path, path: str) -> None:
    # A text that no setting but a free one takes: the error then names the right setting.
    try:
        from_variable = load(tmp_path, environ={SETTINGS[path].variable: "%"})
    except ConfigError as error:
        assert path in str(error) or "http.operator_key" in str(error)  # noqa: PT017
    else:
        assert from_variable != load(tmp_path)


def test_every_setting_says_what_it_is_for_and_no_two_share_a_variable() -> None:
    assert all(setting.description.endswith(".") for setting in SETTINGS.values())
    variables = {setting.variable for setting in SETTINGS.values()}
    assert len(variables) == len(SETTINGS)
    assert not variables & PROCESS_VARIABLES


@pytest.mark.parametrize(
    "content, key, meant",
    [
        ({"temporl": {}}, "temporl", "temporal"),
        ({"temporal": {"max_checkpoints_history": 5}}, "temporal.max_checkpoints_history", "max_checkpoint_history"),
        ({"temporal": {"run_restart": {"attempts": 5}}}, "temporal.run_restart.attempts", "run_restart.max_attempts"),
        ({"heartbeat_timeout": "5s"}, "heartbeat_timeout", "temporal.heartbeat_timeout"),
        ({"agents": {"a": {"entrypoint": "a:b", "pre_load": True}}}, "agents.a.pre_load", "agents.a.preload"),
        ({"agents": {"a": {"entry_point": "a:b"}}}, "agents.a.entry_point", "agents.a.entrypoint"),
    ],
)
def test_an_unknown_key_is_named_with_its_file_and_the_nearest_right_key(
    tmp_path: Path, content: object, key: str, meant: str
) -> None:
    message = refused(tmp_path, content)
    assert f"unknown key {key} in {tmp_path / 'agentvisor.yaml'}" in message
    assert f"{meant}?" in message


def test_the_folder_of_the_file_is_not_a_setting(tmp_path: Path) -> None:
    assert "unknown key base_dir" in refused(tmp_path, {"base_dir": "/"})


def test_an_unknown_variable_is_named_with_the_nearest_right_one(tmp_path: Path) -> None:
    message = refused(tmp_path, environ={"AGENTVISOR_TEMPORAL_MAX_RUN_HISTROY": "3"})
    assert "AGENTVISOR_TEMPORAL_MAX_RUN_HISTROY" in message
    assert "AGENTVISOR_TEMPORAL_MAX_RUN_HISTORY?" in message


def test_variables_of_agent_processes_and_empty_ones_are_passed_over(tmp_path: Path) -> None:
    environ = dict.fromkeys(PROCESS_VARIABLES, "x") | {"AGENTVISOR_HTTP_PORT": "", "OTHER": "y"}
    assert load(tmp_path, environ=environ) == load(tmp_path)


def test_a_value_that_is_not_allowed_is_named_with_where_it_was_set(tmp_path: Path) -> None:
    assert "temporal.run_timeout: 'soon' is no duration" in refused(tmp_path, {"temporal": {"run_timeout": "soon"}})
    message = refused(tmp_path, environ={"AGENTVISOR_HTTP_PORT": "99999"})
    assert "http.port" in message
    assert "environment variable AGENTVISOR_HTTP_PORT" in message


@pytest.mark.parametrize("span", [".inf", "99999999h", "9" * 30 + "h", "3661d", 10**30])
def test_a_duration_beyond_ten_years_is_named_and_not_left_to_fail_in_temporal(tmp_path: Path, span: object) -> None:
    said = refused(tmp_path, f"temporal:\n  run_timeout: {span}\n")
    assert said.startswith("temporal.run_timeout: ")
    assert "3660d" in said
    assert load(tmp_path, {"temporal": {"run_timeout": "3660d"}}).temporal.run_timeout == timedelta(days=3660)


@pytest.mark.parametrize(
    "key, value",
    [
        ("temporal.max_checkpoint_history", 2**31),
        ("temporal.max_run_history", -(2**31) - 1),
        ("storage.patch_chain", 2**32),
        ("storage.max_value", "9" * 30),
        ("http.max_body", "99999999999 GiB"),
    ],
)
def test_a_number_that_no_record_can_hold_is_refused(tmp_path: Path, key: str, value: object) -> None:
    section, _, name = key.partition(".")
    assert refused(tmp_path, {section: {name: value}}).startswith(f"{key}: ")


@pytest.mark.parametrize(
    "key",
    [
        "temporal.run_timeout",
        "temporal.thread_ttl",
        "temporal.idle_heartbeat",
        "temporal.session_idle_timeout",
        "guest.heartbeat",
        "guest.operation_timeout",
        "store.default_ttl",
    ],
)
def test_a_time_in_which_nothing_can_happen_is_refused(tmp_path: Path, key: str) -> None:
    section, _, name = key.partition(".")
    assert refused(tmp_path, {section: {name: 0}}).startswith(f"{key}: must be more than 0 seconds")


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_an_address_of_temporal_has_a_port_that_there_is(tmp_path: Path, port: str) -> None:
    said = refused(tmp_path, {"temporal": {"address": f"temporal.internal:{port}"}})
    assert "is no address of Temporal" in said


def test_true_is_no_number(tmp_path: Path) -> None:
    assert refused(tmp_path, "http:\n  port: yes\n").startswith("http.port: must be a whole number, not true")
    assert refused(tmp_path, {"guest": {"max_live_runs": True}}).startswith("guest.max_live_runs: ")


@pytest.mark.parametrize("name", ["", "a/b", "a\tb", "x" * 129, ".", ".."])
def test_a_name_that_no_url_could_carry_is_refused_in_words(tmp_path: Path, name: str) -> None:
    said = refused(tmp_path, {"agents": {name: "pack.module:agent"}})
    assert "is no name of an agent: use 1 to 128 characters" in said


def test_an_agent_that_is_no_table_is_told_what_to_write(tmp_path: Path) -> None:
    assert refused(tmp_path, {"agents": {"desk": 5}}).startswith("agents.desk: write its entrypoint, ./file.py:name")


@pytest.mark.parametrize("name, text", [("", "hunter2"), ("A=B", "hunter2"), ("A\0B", "hunter2"), ("A", "hunter2\0")])
def test_a_variable_that_no_process_can_have_is_refused(tmp_path: Path, name: str, text: str) -> None:
    said = refused(tmp_path, {"agents": {"desk": {"entrypoint": "pack.module:agent", "env": {name: text}}}})
    assert said.startswith("agents.desk.env: ")
    assert "hunter2" not in said


def test_a_memory_limit_into_which_no_agent_fits_is_refused(tmp_path: Path) -> None:
    says = refused(tmp_path, {"guest": {"memory_limit": 512}})
    assert "guest.memory_limit" in says
    assert "write 512MiB, or 0 for no limit" in says


def test_all_values_that_are_not_allowed_are_named_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path, {"http": {"port": 0}, "guest": {"max_live_runs": "many"}})
    assert "http.port" in message
    assert "guest.max_live_runs" in message


def test_a_secret_is_in_no_message_and_no_representation(tmp_path: Path) -> None:
    environ = {"AGENTVISOR_HTTP_OPERATOR_KEY": "canary-5d", "AGENTVISOR_HTTP_PORT": "x"}
    assert "canary" not in refused(tmp_path, environ=environ)
    config = load(
        tmp_path,
        {"agents": {"a": {"entrypoint": "a:b", "env": {"KEY": "canary-6e"}}}},
        {**environ, "AGENTVISOR_HTTP_PORT": "1"},
    )
    assert "canary" not in repr(config)


@pytest.mark.parametrize("section", ["http", "grpc"])
def test_listening_beyond_loopback_needs_a_key(tmp_path: Path, section: str) -> None:
    assert "http.operator_key" in refused(tmp_path, {section: {"host": "0.0.0.0"}})
    assert load(tmp_path, {section: {"host": "0.0.0.0"}, "http": {"operator_key": "k", "host": "::1"}})


def test_heartbeats_that_one_lost_beat_would_end_are_refused(tmp_path: Path) -> None:
    assert "idle_heartbeat" in refused(tmp_path, {"temporal": {"heartbeat_timeout": "1s"}})


@pytest.mark.parametrize("text", ["a: [", "- a", "just text", "http: 3", "agents: 3"])
def test_a_file_of_another_form_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    assert str(tmp_path / "agentvisor.yaml") in refused(tmp_path, text)


@pytest.mark.parametrize("text", ["", "http:\n", "agents:\n", "# nothing\n"])
def test_empty_parts_of_a_file_mean_the_defaults(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == load_config(tmp_path, environ={})
    assert load(tmp_path, text).http.port == 8090


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        load_config(tmp_path / "nowhere.yaml", environ={})


def test_paths_are_relative_to_the_file_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent.py").touch()
    agent = {"entrypoint": "./agent.py:run", "python_path": ["lib"], "env": {"A": "1"}}
    (tmp_path / "agentvisor.yaml").write_text(yaml.safe_dump({"agents": {"a": agent, "b": "pkg.module:run"}}))
    monkeypatch.chdir("/")
    config = load_config(tmp_path / "agentvisor.yaml", environ={})
    assert config.agents["a"].entrypoint == f"{tmp_path}/agent.py:run"
    assert config.agents["a"].python_path == [tmp_path / "lib"]
    assert config.agents["b"].entrypoint == "pkg.module:run"
    assert config.dev.data_dir == tmp_path / ".agentvisor"


def test_an_agent_whose_file_is_missing_or_whose_entrypoint_is_none_is_named(tmp_path: Path) -> None:
    assert f"there is no file {tmp_path}/gone.py" in refused(tmp_path, {"agents": {"a": "./gone.py:run"}})
    for entrypoint in ("agent.py", "agent.py:", ":run", "agent.py:3", "", "a:b c"):
        message = refused(tmp_path, {"agents": {"a": entrypoint}})
        assert "agents.a.entrypoint" in message
        assert "./file.py:name" in message


def test_agents_can_come_from_the_environment(tmp_path: Path) -> None:
    environ = {"AGENTVISOR_AGENTS": '{"a": {"entrypoint": "pkg:run", "framework": "function"}}'}
    assert load(tmp_path, environ=environ).agents["a"].framework == "function"
    assert "AGENTVISOR_AGENTS" in refused(tmp_path, environ={"AGENTVISOR_AGENTS": "{"})
    assert "agents.a.entrypoint?" in refused(tmp_path, environ={"AGENTVISOR_AGENTS": '{"a": {"entrypont": "a:b"}}'})


@pytest.mark.parametrize("name", ["openai-agents", "openai_agents", "pydantic-ai"])
def test_a_framework_may_be_named_as_it_is_installed(tmp_path: Path, name: str) -> None:
    environ = {"AGENTVISOR_AGENTS": json.dumps({"a": {"entrypoint": "pkg:run", "framework": name}})}
    assert load(tmp_path, environ=environ).agents["a"].framework == name.replace("-", "_")


def test_an_agent_has_the_hosts_variables_that_it_names_and_its_own_count_more(tmp_path: Path) -> None:
    agent = {"entrypoint": "pkg:run", "inherit_env": ["API_KEY", "MODEL", "UNSET"], "env": {"MODEL": "mine"}}
    environ = {"API_KEY": "k", "MODEL": "theirs", "OTHER": "secret"}
    assert load(tmp_path, {"agents": {"a": agent}}, environ=environ).agents["a"].env == {
        "API_KEY": "k",
        "MODEL": "mine",
    }
    assert load(tmp_path, {"agents": {"a": "pkg:run"}}, environ=environ).agents["a"].env == {}


def test_an_unmodified_langgraph_project_loads(tmp_path: Path) -> None:
    (tmp_path / "packages" / "shared" / "src").mkdir(parents=True)
    (tmp_path / ".env").write_text("# keys\nexport A=1 # one\nB='two # 2'\nC=\"x\\ny\"\nD=\n")
    config = langgraph_project(
        tmp_path,
        graphs={"agent": "./agent.py:graph", "Deep Researcher": {"path": "agent:make", "description": "d"}},
        dependencies=[".", "./packages/shared", "langchain_openai"],
        env=".env",
        python_version="3.12",
        store={"index": {}},
    )
    agent = config.agents["agent"]
    shared = tmp_path / "packages" / "shared"
    assert agent.entrypoint == f"{tmp_path}/agent.py:graph"
    assert agent.framework == "langgraph"
    assert agent.env == {"A": "1", "B": "two # 2", "C": "x\ny", "D": ""}
    assert agent.python_path == [tmp_path, shared, shared / "src"]
    assert config.agents["Deep Researcher"].entrypoint == "agent:make"


def test_a_langgraph_project_may_give_its_environment_inline_or_name_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert langgraph_project(tmp_path, env={"A": "1", "B": 2}).agents["agent"].env == {"A": "1", "B": "2"}
    assert langgraph_project(tmp_path, env=".env").agents["agent"].env == {}


def test_how_long_items_live_is_taken_from_langgraph_json(tmp_path: Path) -> None:
    ttl = {"default_ttl": 90, "refresh_on_read": False, "sweep_interval_minutes": 5}
    store = langgraph_project(tmp_path, store={"ttl": ttl, "index": {"dims": 3}}).store
    assert (store.default_ttl, store.refresh_on_read) == (timedelta(minutes=90), False)
    assert langgraph_project(tmp_path, store={"index": {"dims": 3}}).store.default_ttl is None
    for ttl in ({"default_ttl": 0}, {"default_ttl": "a while"}, {"refresh_on_read": "maybe"}, "soon"):
        with pytest.raises(ConfigError):
            langgraph_project(tmp_path, store={"ttl": ttl})


def test_our_own_file_comes_before_langgraph_json(tmp_path: Path) -> None:
    langgraph_project(tmp_path)
    assert load(tmp_path, {"agents": {"mine": "a:b"}}).agents.keys() == {"mine"}


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"graphs": {}}', '{"graphs": {"a": 3}}', '{"graphs": {"a": {"description": "no path"}}}']
)
def test_a_langgraph_json_that_names_no_graph_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "langgraph.json").write_text(text)
    assert str(tmp_path / "langgraph.json") in refused(tmp_path)


def test_a_line_of_an_env_file_that_is_no_assignment_is_named(tmp_path: Path) -> None:
    for line in ("nonsense", "A='b", "3=4"):
        with pytest.raises(ConfigError, match="line 2"):
            parse_env_file(f"A=1\n{line}\n", ".env", {})


@pytest.mark.parametrize(
    "line, value",
    [
        ("A=b", "b"),
        ("A = b ", "b"),
        ("A=b c  # d", "b c"),
        ("A=b#c", "b#c"),
        ("A='b\"c'", 'b"c'),
        ('A="b\\"c"', 'b"c'),
        ("A=", ""),
        ("A= # c", ""),
        ("A='b' # c", "b"),
        ("A=''", ""),
        ("A=https://x/y?z=1&q=#frag", "https://x/y?z=1&q=#frag"),
        ("A='it\\'s' # c", "it's"),
        ('A="C:\\dir\\tx \\$d"', "C:\\dir\tx \\$d"),
    ],
)
def test_env_files_are_read_as_dotenv_reads_them(line: str, value: str) -> None:
    assert parse_env_file(line, ".env", {}) == {"A": value}


def test_what_an_env_file_names_is_put_in_as_dotenv_does() -> None:
    text = """
        KEY="-----BEGIN KEY-----
        # no comment
        -----END KEY-----"   # one
        export DB_HOST = db.example
        URL=postgres://${DB_USER}@${DB_HOST}:${DB_PORT:-5432}/$x
        LATER='${NOWHERE}${DB_HOST:-else}'
        my-name=1
    """
    assert parse_env_file(text.replace("\n", "\r\n"), ".env", {"DB_USER": "me", "DB_HOST": "not.this"}) == {
        "KEY": "-----BEGIN KEY-----\r\n        # no comment\r\n        -----END KEY-----",
        "DB_HOST": "db.example",
        "URL": "postgres://me@db.example:5432/$x",
        "LATER": "db.example",
        "my-name": "1",
    }


def test_a_langgraph_project_may_name_variables_of_the_host_and_begin_its_files_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    project = json.dumps({"graphs": {"a": "./agent.py:graph"}, "env": ".env"})
    (tmp_path / "langgraph.json").write_text(project, encoding="utf-8-sig")
    (tmp_path / ".env").write_text("A=${B}\n", encoding="utf-8-sig")
    assert load_config(tmp_path, environ={"B": "of the host"}).agents["a"].env == {"A": "of the host"}
    (tmp_path / ".env").write_bytes("A=\xe9".encode("latin-1"))
    assert f"{tmp_path / '.env'} is no text in UTF-8" in refused(tmp_path)


@pytest.mark.parametrize(
    "text, seconds",
    [("30m", 1800), ("2s", 2), ("500ms", 0.5), ("1h30m", 5400), ("1.5s", 1.5), (3, 3), ("3", 3), (0.25, 0.25)],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text).total_seconds() == seconds
    assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


@pytest.mark.parametrize(
    "text, size", [("2MiB", 2 << 20), ("1.5 KB", 1500), (7, 7), ("7", 7), ("24KiB", 24576), ("0", 0)]
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("value", [True, -1, "-1s", "soon", "", "3 parsecs", None, [], "1m nonsense", "ms"])
def test_what_is_neither_duration_nor_size_is_refused(value: object) -> None:
    for parse in (parse_duration, parse_size):
        with pytest.raises(ValueError, match="write"):
            parse(value)


def test_a_configuration_does_not_change_after_loading(tmp_path: Path) -> None:
    config = load(tmp_path)
    with pytest.raises(ValidationError, match="frozen"):
        config.http.port = 1


@pytest.mark.parametrize("key", ["", " ", "\t", " s3cret", "s3cret ", "s3crët", "s3cret\n", "s3cret\x7f"])
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_key_that_no_header_can_carry_starts_no_host(tmp_path: Path, host: str, key: str) -> None:
    message = refused(tmp_path, {"http": {"host": host, "operator_key": key}})
    assert message.startswith("http.operator_key: this key is empty, or no header can carry it")
    assert "agentvisor.yaml" in message
    assert "s3cr" not in message


def test_an_empty_variable_is_no_key(tmp_path: Path) -> None:
    empty = {"AGENTVISOR_HTTP_OPERATOR_KEY": ""}
    assert "needs a key" in refused(tmp_path, {"http": {"host": "0.0.0.0"}}, empty)
    assert load(tmp_path, {}, empty).http.operator_key is None


@pytest.mark.parametrize("key", ["k", "a pass phrase", "~!@#$%^&*()_+=/"])
def test_any_key_that_a_header_carries_unchanged_is_taken(tmp_path: Path, key: str) -> None:
    taken = load(tmp_path, {"http": {"host": "0.0.0.0", "operator_key": key}}).http.operator_key
    assert taken is not None
    assert taken.get_secret_value() == key


def test_two_ends_on_one_port_are_refused_by_name(tmp_path: Path) -> None:
    assert "http.port and grpc.port are both 4000" in refused(
        tmp_path, {"http": {"port": 4000}, "grpc": {"port": 4000}}
    )
    assert "http.port and dev.temporal_port are both 7233" in refused(tmp_path, {"http": {"port": 7233}})
    assert load(tmp_path, {"http": {"port": 7233}, "temporal": {"address": "far:7233"}}).http.port == 7233


@pytest.mark.parametrize(
    "text, says",
    [
        ("http: {port: 1}\nhttp: {port: 2}\n", "the key http is there twice, in line 1 and in line 2"),
        ("http:\n  port: 1\n  port: 2\n", "the key port is there twice, in line 2 and in line 3"),
        ("agents:\n  a: m:f\n  a: m:g\n", "the key a is there twice"),
        ("agents:\n  yes: m:f\n", "the key yes in line 2 is of the type bool in YAML: put it into quotes"),
        ("agents: {007: m:f}\n", "the key 007 in line 1 is of the type int in YAML: put it into quotes"),
    ],
)
def test_a_key_that_is_there_twice_or_is_no_text_is_named(tmp_path: Path, text: str, says: str) -> None:
    message = refused(tmp_path, text)
    assert says in message
    assert "agentvisor.yaml" in message


def test_a_table_that_takes_in_another_may_change_its_keys(tmp_path: Path) -> None:
    text = "agents:\n  a: &a {entrypoint: m:f, preload: true}\n  b:\n    <<: *a\n    entrypoint: m:g\n"
    agents = load(tmp_path, text).agents
    assert (agents["b"].entrypoint, agents["b"].preload) == ("m:g", True)


def test_where_a_folders_host_listens_is_known_without_its_agents(tmp_path: Path) -> None:
    assert http_in_force(tmp_path, environ={}).port == 8090
    (tmp_path / "langgraph.json").write_text("{")
    assert http_in_force(tmp_path, environ={}).port == 8090
    (tmp_path / "agentvisor.yaml").write_text("agents: {a: ./half_written.py:a}\nhttp: {port: 8123}\n")
    assert http_in_force(tmp_path, environ={}).port == 8123
    assert http_in_force(tmp_path, environ={"AGENTVISOR_HTTP_PORT": "8124"}).port == 8124
    with pytest.raises(ConfigError, match=r"http\.port: .* AGENTVISOR_HTTP_PORT"):
        http_in_force(tmp_path, environ={"AGENTVISOR_HTTP_PORT": "none"})


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "agentvisor.yaml"
    assert f"unknown key temporal.adress in {file}, line 2; did you mean temporal.address?" in refused(
        tmp_path, "temporal:\n  adress: a\n"
    )
    assert f"(set in {file}, line 3)" in refused(tmp_path, "temporal:\n\n  run_timeout: soon\n")
    agents = "agents:\n  a:\n    entrypoint: m:f\n    env: {PORT: 8080}\n"
    assert f"agents.a.env.PORT: must be text: write the value in quotes (set in {file}, line 2)" in refused(
        tmp_path, agents
    )


def test_an_unknown_key_within_a_list_is_named_with_the_nearest(tmp_path: Path) -> None:
    keys = {"http": {"api_keys": [{"nmae": "n", "owner": "o", "hash": "sha256:" + "a" * 64}]}}
    says = refused(tmp_path, keys)
    assert "http.api_keys.0.nmae: there is no such key; did you mean name?" in says
    assert "http.api_keys.0.name: is needed" in says


def test_tables_are_read_from_variables_as_json(tmp_path: Path) -> None:
    options = {"AGENTVISOR_STORAGE_OPTIONS": '{"region": "eu-1"}'}
    assert load(tmp_path, {"storage": {"url": "s3://b"}}, options).storage.options == {"region": "eu-1"}
    assert "AGENTVISOR_STORAGE_OPTIONS is not JSON" in refused(tmp_path, environ={"AGENTVISOR_STORAGE_OPTIONS": "a=b"})
    assert "AGENTVISOR_HTTP_PORT?" in refused(tmp_path, environ={"AGENTVISOR_HTTP_PROT": "1"})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "agentvisor.yaml"
    file.write_bytes(b"\xff\xfe")
    assert f"{file} is not YAML" in refused(tmp_path)


PASTED = ["@canary", "*canary", "!canary", "a: canary", '"canary', "`canary", "%canary", "&canary x: y", "[canary"]


@pytest.mark.parametrize(
    "line", ["http: canary", "http: [canary]", "agents: [canary]", *(f"storage:\n  url: {text}" for text in PASTED)]
)
def test_a_file_that_cannot_be_read_is_not_quoted(tmp_path: Path, line: str) -> None:
    """It is a secret that breaks a file: pasted without quotes, with characters that mean something in YAML."""
    (tmp_path / "agentvisor.yaml").write_text(f"{line}\n")
    said = refused(tmp_path)
    assert "canary" not in said
    assert re.search(r"line [1-4]\b", said)


def test_every_unit_is_one_that_the_page_explains() -> None:
    units = {path: setting.unit for path, setting in SETTINGS.items()}
    assert units["temporal.thread_ttl"] == units["store.default_ttl"] == "duration"
    assert units["http.operator_key"] == units["temporal.api_key"] == "secret"
    assert units["temporal.tls.enabled"] == "true or false"
    assert units["guest.start_method"] == "zygote or exec"
    assert units["temporal.tls.ca_file"] == "path"
