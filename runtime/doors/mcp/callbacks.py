"""Where the browser comes back to: a receiver that belongs to one sign-in alone.

A request that is not this sign-in's (another path, another state, a second one)
is told so and changes nothing.  The one that is its own learns how the sign-in
ended, and not before it has: a page that says that all is well must be true.
"""

import asyncio
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tenure.runtime.doors.loopback import HOST, Loopback, LoopbackListener, Page
from tenure.runtime.doors.mcp.fetching import said

PATH = "/callback"
FIELDS_MAX = 32


class CameBack(msgspec.Struct, frozen=True, kw_only=True):
    """What the authorization server sent by way of the browser.  Secret: never in a message."""

    code: str = ""
    error: str = ""
    issuer: str | None = None
    """None: it did not say."""


class NotOurs(Exception):
    """This is not the answer to this sign-in; the text says why."""


class PortTaken(OSError):
    """Somebody else listens there."""


class Receiver:
    """Waits for the one answer to the sign-in with this state.  Use it as a context manager."""

    def __init__(self, loopback: Loopback, state: str) -> None:
        self._loopback = loopback
        self.state = state
        self._listener: LoopbackListener | None = None
        loop = asyncio.get_running_loop()
        self._came: asyncio.Future[CameBack] = loop.create_future()
        self._ended: asyncio.Future[Page] = loop.create_future()
        self.redirect_uri = ""

    async def listen(self, ports: tuple[int, ...]) -> None:
        """Listen at the first of these ports that is free; 0 is any.  Raises `PortTaken`."""
        for port in ports:
            try:
                self._listener = await self._loopback.listen(port, self._visited)
            except OSError:
                continue
            self.redirect_uri = f"http://{HOST}:{self._listener.port}{PATH}"
            return
        raise PortTaken(f"port {ports[-1]} is taken by another program")

    async def answer(self) -> CameBack:
        """What came back."""
        return await asyncio.shield(self._came)

    def take(self, address: str) -> None:
        """An answer that the user has brought by hand: the address that his browser ended at.

        Raises `NotOurs`.
        """
        came = self._read(address)
        if self._came.done():
            raise NotOurs("an answer has come already")
        self._came.set_result(came)

    def end(self, status: int, text: str) -> None:
        """Tell the browser how the sign-in ended."""
        if not self._ended.done():
            self._ended.set_result(Page(status=status, text=text))

    async def close(self) -> None:
        """Nothing is received any more."""
        self.end(410, "This sign-in is over.")
        self._came.cancel()
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    async def _visited(self, target: str) -> Page:
        try:
            self.take(target)
        except NotOurs as refused:
            return Page(status=400 if target.startswith(PATH) else 404, text=str(refused))
        return await asyncio.shield(self._ended)

    def _read(self, address: str) -> CameBack:
        fields = _fields(address)
        if fields.get("state") != self.state:  # guard: AUTH-6
            raise NotOurs("this does not belong to the sign-in that is under way")
        code, error = fields.get("code", ""), fields.get("error", "")
        if not code and not error:
            raise NotOurs("there is neither a code nor an error in this address")
        described = fields.get("error_description", "")
        text = said(f"{error}: {described}" if described else error) if error else ""
        return CameBack(code=code if not error else "", error=text, issuer=fields.get("iss"))


def _fields(address: str) -> dict[str, str]:
    """The fields of an address's query; one that stands twice is none of ours."""
    try:
        parts = urlsplit(address)
        if not parts.path.endswith(PATH):
            raise NotOurs("there is nothing here")
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise NotOurs("this address cannot be read") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotOurs("a field stands twice in this address")
    return fields
