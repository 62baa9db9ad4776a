"""What the tests share: the repository's scenarios, and settings that make them short."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

# Long enough for some thousand frames.
SHORT = dict(polling_starts_ms=0, warmup_ms=0.1, window_ms=0.2, flows=2000, table_entries=4096, cores=2)


@pytest.fixture
def main_job():
    """The scenario of the main job."""
    return ROOT / "scenarios" / "nat-200g.toml"


@pytest.fixture
def command():
    """The command line of the same version, where the caller built one."""
    path = os.environ.get("NICFORGE_COMMAND")
    if not path:
        pytest.skip("NICFORGE_COMMAND names no command line")
    return path


@pytest.fixture
def scenario(tmp_path):
    """Writes a scenario of one variant, with more lines in [settings] if asked."""

    def write(more="", head='name = "mine"\nmachine = "xeon-4216-cx5"\n'):
        settings = "".join(f"{key} = {value}\n" for key, value in SHORT.items())
        (tmp_path / "machines").mkdir(exist_ok=True)
        machine = ROOT / "machines" / "xeon-4216-cx5.toml"
        (tmp_path / "machines" / machine.name).write_text(machine.read_text())
        file = tmp_path / "mine.toml"
        file.write_text(f'[scenario]\n{head}[settings]\napp = "nat"\nnics = 2\noffered_gbps = 200\n{settings}{more}')
        return file

    return write
