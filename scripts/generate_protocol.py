"""Generates src/agentvisor/protocol/v1 from proto/, or with --check says what of it is not fresh.

The output depends on the versions of grpcio-tools and mypy-protobuf alone, and pyproject.toml pins both: the same
proto files give the same bytes on every machine. Raising them may raise the bounds of grpcio and protobuf there too,
because generated code refuses a runtime older than its generator.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("agentvisor/protocol/v1")
PROTO = ROOT / "proto"
SRC = ROOT / "src"
PACKAGE_DOCSTRING = '"""Generated from proto/agentvisor/protocol/v1 by scripts/generate_protocol.py."""\n'


def main() -> int:
    """Generate, or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the generated code is not fresh")
    check = bool(parser.parse_args().check)
    fresh = generate()
    present = {path.name: path.read_bytes() for path in (SRC / PACKAGE).glob("*.py*") if path.is_file()}
    stale = sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))
    if not check:
        write(fresh, gone=present.keys() - fresh.keys())
        print(f"{len(fresh)} files, {len(stale)} changed")
        return 0
    if stale:
        print("not fresh, run make proto:", *(f"src/{PACKAGE}/{name}" for name in stale), sep="\n  ", file=sys.stderr)
        return 1
    return 0


def generate() -> dict[str, bytes]:
    """Run protoc into a temporary folder; returns file name -> content."""
    sources = sorted(str(path) for path in (PROTO / PACKAGE).glob("*.proto"))
    if not sources:
        sys.exit(f"no .proto files in {PROTO / PACKAGE}")
    with tempfile.TemporaryDirectory() as folder:
        outputs = [f"--{kind}_out={folder}" for kind in ("python", "grpc_python")]
        stubs = [f"--{kind}_out=quiet:{folder}" for kind in ("mypy", "mypy_grpc")]
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", *outputs, *stubs, *sources]
        # protoc finds the mypy-protobuf plugins, which pip put beside this interpreter, by PATH.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"protoc failed:\n{done.stderr}")
        files = {path.name: path.read_bytes() for path in (Path(folder) / PACKAGE).iterdir()}
    return {name: content for name, content in files.items() if not is_empty_service(name, files)} | {
        "__init__.py": PACKAGE_DOCSTRING.encode()
    }


def is_empty_service(name: str, files: dict[str, bytes]) -> bool:
    """Whether a *_pb2_grpc file belongs to a proto file without a service (protoc writes those too)."""
    stem, _, _ = name.partition(".")
    return stem.endswith("_pb2_grpc") and b"class " not in files[f"{stem}.py"]


def write(fresh: dict[str, bytes], *, gone: set[str]) -> None:
    """Make the package folder hold exactly the fresh files."""
    folder = SRC / PACKAGE
    folder.mkdir(parents=True, exist_ok=True)
    for name in gone:
        (folder / name).unlink()
    for name, content in fresh.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
