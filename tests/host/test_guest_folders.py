"""What a killed host has left of its guests' folders, wherever they are, is gone when the next one starts."""

from pathlib import Path

from agentvisor.host.guest_folders import ELSEWHERE, LOCK, clear_abandoned, guest_folder


def test_an_abandoned_folder_goes_with_its_sockets_folder_and_a_live_one_stays(tmp_path: Path) -> None:
    parent, elsewhere = tmp_path / "guests", tmp_path / "short"
    abandoned = parent / "g0"
    abandoned.mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "host.sock").touch()
    (abandoned / LOCK).touch()
    (abandoned / ELSEWHERE).symlink_to(elsewhere)
    with guest_folder(parent, "g1") as live:
        clear_abandoned(parent)
        assert not abandoned.exists()
        assert not elsewhere.exists()
        assert live.exists()
