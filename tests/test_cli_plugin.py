"""`tenure plugin` and `tenure doctor` as a user runs them: real files, real processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packages_world import tree


def put(folder: Path, version: str) -> Path:
    for path, data in tree(version=version).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def tenure(root: Path, *arguments: str, exits: int = 0) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "tenure.runtime.cli.main", *arguments, "--root", str(root)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == exits, ran.stderr
    return ran.stdout + ran.stderr


@pytest.mark.timeout(120)
def test_a_package_lives_from_its_installation_to_its_removal(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    source = put(tmp_path / "demo", "1")
    assert "demo 1 is installed" in tenure(root, "plugin", "install", str(source))
    put(source, "2")
    assert "demo 2 is installed (was 1)" in tenure(root, "plugin", "update", "demo")
    listed = json.loads(tenure(root, "plugin", "ls", "--json"))
    assert [each["version"] for each in listed["packages"]] == ["2"]
    assert "demo is 1 again" in tenure(root, "plugin", "rollback", "demo")
    assert "nothing is wrong" in tenure(root, "doctor")
    (root / ".tenure/plugins/demo/skills/review/data.txt").write_text("other")
    assert "damaged" in tenure(root, "plugin", "verify", exits=1)
    assert "tenure plugin update demo" in tenure(root, "doctor", exits=1)
    assert "demo is removed" in tenure(root, "plugin", "rm", "demo")
    assert "there is no package" in tenure(root, "plugin", "rm", "demo", exits=3)
