"""Digest and signature of what was fetched, compared with what was asked for."""

import base64
import binascii
import hashlib
import hmac

from tenure.messages.install import Ed25519, Signature, Unsigned
from tenure.runtime.doors.packages.tree import Rejected, Tree

_ALGORITHMS = {"sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tree_digest(tree: Tree) -> str:
    """Of a folder: its paths and contents, whatever order they were read in."""
    whole = hashlib.sha256()
    for path, data in sorted(tree.items()):
        whole.update(f"{len(path.encode())}:{path}:{len(data)}:".encode())
        whole.update(data)
    return f"sha256:{whole.hexdigest()}"


def check_digest(data: bytes, wanted: str) -> None:
    """Raises `Rejected` where the bytes do not have this digest; an empty one asks for nothing.

    Args:
        wanted: `sha256:HEX`, or `sha512-BASE64` as package registries write it.
    """
    if not wanted:
        return
    algorithm, mark, value = wanted.strip().partition(":")
    encoded = not mark
    if encoded:
        algorithm, _, value = wanted.strip().partition("-")
    make = _ALGORITHMS.get(algorithm.lower())
    if make is None or not value:
        raise Rejected(f"{wanted!r} is no digest: write sha256:HEX or sha512-BASE64")
    found = make(data).digest()
    said = base64.b64encode(found).decode() if encoded else found.hex()
    if not hmac.compare_digest(said, value if encoded else value.lower()):
        raise Rejected(f"its digest is {algorithm}{'-' if encoded else ':'}{said}, not {wanted}")


def check_signature(data: bytes, signature: Signature) -> None:
    """Raises `Rejected` where the bytes do not bear the signature that was given."""
    match signature:
        case Unsigned():
            return
        case Ed25519(key=key, signature=signed):
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

            try:
                public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
                public.verify(base64.b64decode(signed, validate=True), data)
            except (binascii.Error, ValueError):
                raise Rejected("the key or the signature is not in base64, or too short") from None
            except InvalidSignature:
                raise Rejected("its signature is not of this key") from None
