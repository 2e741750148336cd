"""The web: HTTP as one process of ours uses it.

The library behind it loads when the first client is made (`runtime/doors/http.py`
chooses it), so that a host which asks nobody pays nothing.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tenure.runtime.doors.http import httpx

CONNECT_S_MAX = 10.0
READ_S_MAX = 300.0
"""The longest silence in the middle of an answer.  A model may think for minutes."""


class Web(Protocol):
    """Clients for servers elsewhere.

    What goes wrong is an exception of `httpx` (`ConnectError`, `ReadTimeout`,
    `RemoteProtocolError`, ...); a status of the server is an answer, whatever it is.
    """

    def client(self, *, read_s_max: float = READ_S_MAX) -> "httpx.AsyncClient":
        """A client with our bounds; the caller closes it.

        It follows no redirects: a key in a header of its own would be sent along.

        Args:
            read_s_max: the longest silence in the middle of an answer.
        """
        ...

    def transport(self) -> "httpx.AsyncBaseTransport":
        """For a client that a library makes by itself: `Client(transport=web.transport())`."""
        ...


class SystemWeb:
    """The real one."""

    def client(self, *, read_s_max: float = READ_S_MAX) -> "httpx.AsyncClient":
        """See `Web`."""
        from tenure.runtime.doors.http import client

        return client(read_s_max=read_s_max)

    def transport(self) -> "httpx.AsyncBaseTransport":
        """See `Web`."""
        from tenure.runtime.doors.http import httpx, ssl_context

        return httpx.AsyncHTTPTransport(verify=ssl_context())
