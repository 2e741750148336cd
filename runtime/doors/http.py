"""HTTP: the one place that chooses the client library.

`httpx2` is the successor of `httpx` with the same interface.  authlib builds on
it where it is installed and on `httpx` where it is not, and two libraries in one
process do not know each other's exceptions; so we choose as authlib does, and
everything else takes `httpx` from here.
"""

import ssl
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx
else:
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx

__all__ = ["client", "httpx", "ssl_context"]

CONNECT_S_MAX = 10.0
READ_S_MAX = 300.0
"""The longest silence in the middle of an answer.  A model may think for minutes."""


@cache
def ssl_context() -> ssl.SSLContext:
    """The trust settings of this process.  Built once: it reads many certificates and blocks."""
    return httpx.create_ssl_context()


def client(*, read_s_max: float = READ_S_MAX) -> httpx.AsyncClient:
    """A client with our bounds; the caller closes it.

    It follows no redirects: a key in a header of its own would be sent along.
    """
    return httpx.AsyncClient(
        verify=ssl_context(),
        timeout=httpx.Timeout(read_s_max, connect=CONNECT_S_MAX, pool=CONNECT_S_MAX),
    )
