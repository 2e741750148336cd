"""Archives and folders: each hostile one is refused as a whole, before a byte is written."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib

import pytest
from msgspec.structs import replace
from packages_world import HOME, PackagesWorld, manifest, skill, tarred, tree, zipped

from tenure.messages.install import PackageInstalled, PackageRefused
from tenure.runtime.doors.packages.archives import read_archive
from tenure.runtime.doors.packages.names import UnsafePath, safe_path
from tenure.runtime.doors.packages.tree import LIMITS, Limits, Rejected

GOOD = tree()
SMALL = Limits(
    download_bytes=200_000,
    entries=50,
    file_bytes=20_000,
    total_bytes=50_000,
    ratio=10,
    ratio_free_bytes=30_000,
)

HOSTILE_PATHS = {
    "upward": "../x",
    "upward in the middle": "a/../../x",
    "upward behind what a strip would take": "demo/../x",
    "absolute": "/etc/x",
    "upward with backslashes": "..\\x",
    "drive": "C:\\x",
    "drive without a slash": "c:x",
    "network share": "\\\\host\\x",
    "dot": "a/./x",
    "empty part": "a//x",
    "control character": "a\x01b",
    "line end": "a\nb",
    "invisible direction mark": "a\u202eb",
    "stream": "a:b",
    "ends in a dot": "a./x",
    "ends in a blank": "x ",
    "device": "nul",
    "device with an ending": "skills/COM1.txt",
    "device with a superscript": "lpt\u00b9",
    "wildcard": "a*b",
    "too deep": "/".join(["d"] * 40),
    "too long a name": "n" * 250,
    "too long a path": "/".join(["n" * 190] * 6),
    "very deep": "/".join(["d"] * 900),
}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", HOSTILE_PATHS)
@pytest.mark.witness("INSTALL-7")
def test_a_path_that_some_platform_would_take_elsewhere_refuses_the_archive(
    name: str, kind: str
) -> None:
    """S122, G12."""
    path = HOSTILE_PATHS[name]
    files = [*GOOD.items(), (path, b"x")]
    data = zipped(files) if kind == "zip" else tarred(files)
    world = PackagesWorld()
    world.disk.put("/src/bad.zip", data)
    before = set(world.disk.paths())
    refused = world.install("/src/bad.zip")
    assert isinstance(refused, PackageRefused)
    assert refused.violations
    assert set(world.disk.paths()) == before


def test_a_name_with_a_null_character_is_refused() -> None:
    data = zipped([*GOOD.items(), ("abc", b"x")]).replace(b"abc", b"a\0c")
    with pytest.raises(Rejected, match="control"):
        read_archive(data, LIMITS)


def test_a_safe_path_has_forward_slashes() -> None:
    """S121."""
    assert safe_path("skills\\a\\b.md") == "skills/a/b.md"
    with pytest.raises(UnsafePath, match="UTF-8"):
        safe_path("a\udcff")


COLLIDING = {
    "twice": ["a/x", "a/x"],
    "by case": ["a/Readme", "a/README"],
    "by Unicode form": ["a/\u00e9", "a/e\u0301"],
    "by case of a folder": ["Docs/x", "docs/y"],
    "by full width": ["a/\uff41", "a/a"],
    "by sharp s": ["a/\u00df", "a/ss"],
    "file and folder": ["a", "a/x"],
    "folder and file": ["a/x", "a"],
}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", COLLIDING)
@pytest.mark.witness("INSTALL-7")
def test_names_that_are_one_on_some_platform_refuse_the_archive(name: str, kind: str) -> None:
    files = [*GOOD.items(), *((path, b"x") for path in COLLIDING[name])]
    if name == "twice" and kind == "zip":
        with pytest.warns(UserWarning, match="Duplicate"):
            data = zipped(files)
    else:
        data = zipped(files) if kind == "zip" else tarred(files)
    with pytest.raises(Rejected):
        read_archive(data, LIMITS)


def odd(name: str, kind: bytes, leads_to: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = leads_to
    return info


ODD = {
    "link outside": odd("a", tarfile.SYMTYPE, "/etc/passwd"),
    "link inside": odd("a", tarfile.SYMTYPE, "plugin.json"),
    "dangling link": odd("a", tarfile.SYMTYPE, "nowhere"),
    "hard link": odd("a", tarfile.LNKTYPE, "plugin.json"),
    "pipe": odd("a", tarfile.FIFOTYPE),
    "character device": odd("a", tarfile.CHRTYPE),
    "block device": odd("a", tarfile.BLKTYPE),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.witness("INSTALL-7")
def test_links_pipes_and_devices_in_a_tar_refuse_it(name: str) -> None:
    with pytest.raises(Rejected, match="packages hold files and folders only"):
        read_archive(tarred(GOOD, ODD[name]), LIMITS)


@pytest.mark.parametrize(("mode", "what"), [(0o120777, "a link"), (0o010644, "a pipe")])
@pytest.mark.witness("INSTALL-7")
def test_links_and_pipes_in_a_zip_refuse_it(mode: int, what: str) -> None:
    out = io.BytesIO(zipped(GOOD))
    with zipfile.ZipFile(out, "a") as archive:
        info = zipfile.ZipInfo("a")
        info.external_attr = mode << 16
        archive.writestr(info, b"/etc/passwd")
    with pytest.raises(Rejected, match=what):
        read_archive(out.getvalue(), LIMITS)


OVER = {
    "entries": {f"f{number}": b"" for number in range(60)},
    "one file": {"big": bytes(range(256)) * 100},
    "all files": {f"f{number}": bytes(range(256)) * 60 for number in range(5)},
    "ratio": {"zeros": bytes(19_000), "zeros2": bytes(19_000)},
}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("limit", OVER)
@pytest.mark.witness("INSTALL-7")
def test_over_a_limit_it_is_refused_whole(limit: str, kind: str) -> None:
    files = {**GOOD, **OVER[limit]}
    with pytest.raises(Rejected):
        read_archive(zipped(files) if kind == "zip" else tarred(files), SMALL)


@pytest.mark.witness("INSTALL-7")
def test_many_folders_count_as_entries() -> None:
    folders = [odd(f"d{number}", tarfile.DIRTYPE) for number in range(60)]
    with pytest.raises(Rejected, match="entries"):
        read_archive(tarred(GOOD, *folders), replace(SMALL, ratio=1_000))


@pytest.mark.witness("INSTALL-7")
def test_a_bomb_of_zeros_is_stopped_while_it_grows() -> None:
    bomb = gzip.compress(bytes(3_000_000))
    with pytest.raises(Rejected, match="grow"):
        read_archive(bomb, SMALL)


def test_an_archive_inside_is_a_file_and_is_not_opened() -> None:
    inner = zipped({"x": bytes(1_000)})
    found = read_archive(zipped({**GOOD, "inner.zip": inner}), SMALL)
    assert found["inner.zip"] == inner


def test_a_zip_that_lies_about_its_sizes_is_refused() -> None:
    data = zipped({**GOOD, "big": b"abc" * 1_000})
    for wrong in (10, 3_001):
        lying = data.replace(struct.pack("<L", 3_000), struct.pack("<L", wrong))
        assert lying != data
        with pytest.raises(Rejected):
            read_archive(lying, LIMITS)


def test_a_zip_whose_entries_overlap_is_refused() -> None:
    data = bytearray(zipped([("a.txt", b"x" * 50), ("b.txt", b"y" * 50)]))
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    with pytest.raises(Rejected):
        read_archive(bytes(data), LIMITS)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.witness("INSTALL-7")
def test_an_archive_that_is_cut_off_anywhere_is_refused(kind: str) -> None:
    data = zipped(GOOD) if kind == "zip" else tarred(GOOD)
    for size in range(4, len(data) - 1, 7):
        with pytest.raises(Rejected):
            read_archive(data[:size], LIMITS)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_with_a_changed_byte_is_refused_or_has_the_same_files(kind: str) -> None:
    data = zipped(GOOD) if kind == "zip" else tarred(GOOD)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x55
        try:
            found = read_archive(bytes(changed), LIMITS)
        except Rejected:
            continue
        assert set(found.values()) <= set(GOOD.values()), at


@pytest.mark.witness("INSTALL-7")
def test_a_tar_without_its_end_mark_is_refused() -> None:
    raw = gzip.decompress(tarred(GOOD))
    cut = raw[: len(raw.rstrip(b"\0")) + 512 & ~511]
    with pytest.raises(Rejected, match="end mark"):
        read_archive(gzip.compress(cut), LIMITS)


@pytest.mark.witness("INSTALL-7")
def test_a_broken_header_in_the_middle_does_not_end_a_tar_early() -> None:
    raw = bytearray(gzip.decompress(tarred({**GOOD, "zz": b"last"})))
    at = raw.index(b"zz\0")
    raw[at + 148] ^= 0xFF
    with pytest.raises(Rejected):
        read_archive(gzip.compress(bytes(raw)), LIMITS)


def test_what_is_no_archive_is_refused() -> None:
    for data in (b"", b"hello", b"PK\x03\x04", b"\x1f\x8b", zlib.compress(b"x"), b"\x1f\x8b" * 40):
        with pytest.raises(Rejected):
            read_archive(data, LIMITS)


def test_an_encrypted_zip_is_refused() -> None:
    data = bytearray(zipped(GOOD))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    with pytest.raises(Rejected, match="encrypted"):
        read_archive(bytes(data), LIMITS)


# --- folders -------------------------------------------------------------------------------


LINKS = {"outside": "/etc/passwd", "dangling": "nowhere", "cycle": "..", "inside": "plugin.json"}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.witness("INSTALL-7")
def test_a_link_in_a_folder_refuses_it(name: str) -> None:
    world = PackagesWorld()
    world.put("/src/demo", GOOD)
    world.disk.put_link("/src/demo/skills/link", LINKS[name])
    refused = world.install("/src/demo")
    assert isinstance(refused, PackageRefused)
    assert "a link" in refused.violations[0]
    assert not world.names(HOME)


def test_a_folder_over_a_limit_is_refused_whole() -> None:
    world = PackagesWorld(SMALL)
    world.put("/src/demo", {**GOOD, "big": bytes(21_000)})
    assert isinstance(world.install("/src/demo"), PackageRefused)
    assert not world.names(HOME)


def test_the_history_of_version_control_is_no_part_of_a_package() -> None:
    world = PackagesWorld()
    world.put("/src/demo", {**GOOD, ".git/HEAD": b"x"})
    world.disk.put_link("/src/demo/.git/link", "/etc")
    assert isinstance(world.install("/src/demo"), PackageInstalled)
    assert not {each for each in world.names(f"{HOME}/demo") if ".git" in each}


def test_every_violation_is_named_and_a_flood_of_them_is_counted() -> None:
    files = [*GOOD.items(), ("../a", b""), ("nul", b""), ("B", b""), ("b", b"")]
    with pytest.raises(Rejected) as rejected:
        read_archive(tarred(files), LIMITS)
    assert len(rejected.value.violations) == 3
    flood = [(f"../{number}", b"") for number in range(100)]
    with pytest.raises(Rejected) as rejected:
        read_archive(tarred(flood), LIMITS)
    assert rejected.value.violations[-1] == "and 80 more"


def test_a_good_archive_of_each_kind_gives_the_same_files() -> None:
    """S121."""
    assert read_archive(zipped(GOOD), LIMITS) == read_archive(tarred(GOOD), LIMITS) == GOOD
    world = PackagesWorld()
    for name, data in (("a.zip", zipped(GOOD)), ("a.tgz", tarred(GOOD))):
        world.disk.put(f"/src/{name}", data)
        assert isinstance(world.install(f"/src/{name}"), PackageInstalled)
    wrapped = {f"package/{path}": data for path, data in GOOD.items()}
    world.disk.put("/src/w.tar.gz", tarred(wrapped))
    assert isinstance(world.install("/src/w.tar.gz"), PackageInstalled)
    assert manifest() == GOOD["plugin.json"]
    assert skill(body="Version 1.") == GOOD["skills/review/SKILL.md"]
