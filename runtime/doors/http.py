"""HTTP: the one place that chooses the client library.

`httpx2` is the successor of `httpx` with the same interface.  authlib builds on
it where it is installed and on `httpx` where it is not, and two libraries in one
process do not know each other's exceptions; so we choose as authlib does, and
everything else takes `httpx` from here.
"""

import ssl
from functools import cache
from typing import TYPE_CHECKING

from tenure.runtime.doors.web import CONNECT_S_MAX, READ_S_MAX

if TYPE_CHECKING:
    import httpx
else:
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx

__all__ = ["client", "httpx", "ssl_context", "timeouts"]


@cache
def ssl_context() -> ssl.SSLContext:
    """The trust settings of this process.  Built once: it reads many certificates and blocks."""
    return httpx.create_ssl_context()


def client(*, read_s_max: float = READ_S_MAX) -> httpx.AsyncClient:
    """A client for the real network; see `web.Web.client`."""
    return httpx.AsyncClient(verify=ssl_context(), timeout=timeouts(read_s_max))


def timeouts(read_s_max: float) -> httpx.Timeout:
    """Our bounds on how long each part of a request may take."""
    return httpx.Timeout(read_s_max, connect=CONNECT_S_MAX, pool=CONNECT_S_MAX)
