"""A PostgreSQL server of our own: Debian's programs, a free port, a data folder of its own, fsync on."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """Where initdb is: on the PATH, or in Debian's folders, the newest version first."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    return folders[-1] if folders else None


@contextmanager
def postgres() -> Generator[str]:
    """The address of a server that lives as long as the context. PostgreSQL refuses to run as root: `nobody` does."""
    where = programs()
    if where is None:
        raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-postgres-"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    try:
        subprocess.run(
            [where / "initdb", "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C"],
            check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user,
        )  # fmt: skip
        server = subprocess.Popen(
            [where / "postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **as_user,
        )  # fmt: skip
        try:
            ready = [where / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-U", "bench", "-t", "30"]
            while subprocess.run(ready, stdout=subprocess.DEVNULL, check=False).returncode and server.poll() is None:
                pass
            yield f"postgresql://bench@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
