"""What is installed: one package, `tenure`, typed, and cheap to import."""

import ast
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from sources import ROOT, files

pytestmark = pytest.mark.real

HEAVY = ("anyio", "asyncio", "authlib", "httpx", "httpx2", "msgspec", "portalocker", "pykka", "ssl")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of this checkout."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed; the extra `dev` has it")
    folder = tmp_path_factory.mktemp("dist")
    ran = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return folder


def _run(program: str, cwd: Path, **environment: str) -> str:
    """Run a program elsewhere, in an interpreter that knows nothing of this checkout's folder."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _installed_name(file: str) -> str:
    """Where a file of the root folders stands in the package; the build hook moves a few."""
    for node in ast.parse((ROOT / "hatch_build.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FILES":
            moved: dict[str, str] = ast.literal_eval(node.value)
            return f"tenure/{moved.get(file, file)}"
    raise AssertionError("hatch_build.py has no FILES")


def test_wheel_has_every_module_below_tenure_and_nothing_beside_it(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {_installed_name(file) for file in files("actors", "messages", "runtime")}
    assert sorted(expected - names) == []
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"tenure"}
    assert "tenure/py.typed" in names


def test_source_distribution_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    (wheel,) = built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    ran = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")],
        cwd=unpacked,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (again,) = (tmp_path / "again").glob("*.whl")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


def test_wheel_is_imported_without_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = """
import tenure
from tenure import Host
from tenure.runtime.invariants import INVARIANTS
print(tenure.__file__, Host.__module__, all(each.witnesses for each in INVARIANTS))
"""
    said = _run(program, tmp_path, PYTHONPATH=str(tmp_path / "site")).split()
    here = str(tmp_path / "site" / "tenure" / "__init__.py")
    assert said == [here, "tenure.runtime.host", "True"]


def test_programs_for_a_checkout_say_so_where_there_is_none(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    for program in ("guards", "architecture"):
        ran = subprocess.run(
            [sys.executable, "-P", "-m", f"tenure.runtime.testing.{program}"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert ran.returncode == 2
        assert "is no checkout of tenure" in ran.stderr
        assert "Traceback" not in ran.stderr


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    program = f"import sys, tenure; print(sorted(set(sys.modules) & set({HEAVY!r})))"
    assert _run(program, tmp_path).strip() == "[]"


def test_every_name_of_the_package_can_be_had(tmp_path: Path) -> None:
    program = "import tenure; print([getattr(tenure, name) is None for name in tenure.__all__])"
    assert "True" not in _run(program, tmp_path)


def test_a_script_beside_a_module_of_ours_by_name_does_not_shadow_it(tmp_path: Path) -> None:
    (tmp_path / "messages.py").write_text("raise SystemExit('shadowed')\n")
    (tmp_path / "script.py").write_text("from tenure import Host\nprint(Host.__name__)\n")
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("Host\n", "")


def test_metadata_has_the_version_of_the_package_and_its_command() -> None:
    import tenure

    found = importlib.metadata.distribution("tenure")
    assert found.version == tenure.__version__
    commands = {point.name: point.value for point in found.entry_points}
    assert commands == {"tenure": "tenure.runtime.cli.main:main"}
