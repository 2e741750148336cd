"""How names become safe file names, and which session a transcript's file name tells."""

from hashlib import sha256
from urllib.parse import quote

TRANSCRIPT_SUFFIX = ".jsonl"
_NAME_BYTES_MAX = 100


def safe_name(name: str) -> str:
    """A file name that no other name gives, and that leads nowhere else."""
    safe = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    if safe.startswith("."):
        safe = f"%2E{safe[1:]}"
    if not safe or len(safe) > _NAME_BYTES_MAX:
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{safe[:30]}~{digest}"
    return safe


def named_session(path: str) -> str:
    """What `<time>_<session id>.jsonl` says; empty for a file that is named otherwise."""
    name = path.rpartition("/")[2].removesuffix(TRANSCRIPT_SUFFIX)
    moment, _, session = name.partition("_")
    return session if len(moment) >= 20 and moment[:4].isdigit() else ""
