"""Which names may stand in a package: those that every platform keeps as they are.

A package that unpacks here and nowhere else is a surprise for later, so what one
platform cannot hold is refused on all of them.
"""

import re
import unicodedata

PATH_BYTES_MAX = 1_024
PART_BYTES_MAX = 200
"""Of one name; file systems hold 255, and a stage adds to it."""
DEPTH_MAX = 32

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{kind}{number}" for kind in ("com", "lpt") for number in "0123456789\u00b9\u00b2\u00b3"]
)
_HOSTILE = frozenset('<>:"|?*')
_PACKAGE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_SKILL_NAME_EXTRA = frozenset("-")


class UnsafePath(ValueError):
    """A path that must not be written; its text says why."""


def safe_path(raw: str) -> str:
    """The path with forward slashes, relative to the package.

    Raises:
        UnsafePath: it is absolute, leads upward, or has a name that some platform
            cannot hold.
    """
    path = raw.replace("\\", "/")
    if not path:
        raise UnsafePath("an empty name")
    if len(_encoded(path, raw)) > PATH_BYTES_MAX:
        raise UnsafePath(f"{shown(raw)}: longer than {PATH_BYTES_MAX:,} bytes")
    if path.startswith("/") or (len(path) > 1 and path[1] == ":"):
        raise UnsafePath(f"{shown(raw)}: an absolute path")
    parts = path.split("/")
    if len(parts) > DEPTH_MAX:
        raise UnsafePath(f"{shown(raw)}: deeper than {DEPTH_MAX} folders")
    for part in parts:
        wrong = _wrong_part(part)
        if wrong:
            raise UnsafePath(f"{shown(raw)}: {wrong}")
    return path


def _encoded(path: str, raw: str) -> bytes:
    try:
        return path.encode()
    except UnicodeEncodeError:
        raise UnsafePath(f"{shown(raw)}: a name that is not UTF-8 text") from None


def _wrong_part(part: str) -> str:
    """What is wrong with one name of a path; empty where nothing is."""
    if part == "":
        return "an empty name in it"
    if part in (".", ".."):
        return f"{part!r} in it"
    if part[-1] in ". ":
        return "a name that ends in a dot or a blank"
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in part):
        return "a control or invisible character in it"
    if not _HOSTILE.isdisjoint(part):
        return 'one of < > : " | ? * in it'
    if part.partition(".")[0].rstrip().casefold() in _DEVICES:
        return "a device name"
    if len(part.encode()) > PART_BYTES_MAX:
        return f"a name of more than {PART_BYTES_MAX} bytes"
    return ""


def collision_key(path: str) -> str:
    """Equal for two paths that some file system takes for one."""
    folded = unicodedata.normalize("NFKC", path).casefold()
    return unicodedata.normalize("NFKC", folded)


def shown(raw: str) -> str:
    """A foreign name, safe to print."""
    text = raw if len(raw) <= 120 else f"{raw[:117]}..."
    return ascii(text)


def wrong_package_name(name: str) -> str:
    """Why this is no name of a package; empty where it is one."""
    if not _PACKAGE_NAME.fullmatch(name) or "--" in name or ".." in name:
        return (
            "a name has 1 to 64 of a-z, 0-9, dot and hyphen, begins and ends with a letter "
            "or digit, and has no two hyphens or dots in a row"
        )
    if name.partition(".")[0] in _DEVICES:
        return "it is a device name on some platforms"
    return ""


def wrong_skill_name(name: str) -> str:
    """Why this is no name of a skill; empty where it is one."""
    if unicodedata.normalize("NFKC", name) != name:
        return "it is not in its normal Unicode form (NFKC)"
    if not 1 <= len(name) <= 64:
        return "it has 1 to 64 characters"
    if not all(_in_skill_name(each) for each in name):
        return "it has lower-case letters, digits and hyphens only"
    if name[0] == "-" or name[-1] == "-" or "--" in name:
        return "it begins or ends with a hyphen, or has two in a row"
    return _wrong_part(name)


def _in_skill_name(each: str) -> bool:
    if each in _SKILL_NAME_EXTRA or each.isdecimal():
        return True
    return each.isalpha() and each == each.lower()


def slug(text: str) -> str:
    """A package name out of any text; `plugin` where nothing of it can be used."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"[^a-z0-9.]+", "-", plain)
    plain = re.sub(r"\.{2,}", ".", re.sub(r"-{2,}", "-", plain)).strip("-.")[:64].strip("-.")
    return plain if plain and not wrong_package_name(plain) else "plugin"


def skill_slug(text: str) -> str:
    """A skill name out of any text; `skill` where nothing of it can be used."""
    plain = slug(text).replace(".", "-")
    plain = re.sub(r"-{2,}", "-", plain).strip("-")
    return plain if plain and not wrong_skill_name(plain) else "skill"
