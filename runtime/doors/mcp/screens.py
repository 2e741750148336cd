"""How a user sees a sign-in where nothing else was said: his browser opens."""

import asyncio

from tenure.runtime.doors.leaves import Leaves


class NoBrowserHere(OSError):
    """There is no browser; the text says what to do."""


class BrowserScreen:
    """Opens the browser of this machine, and takes its answer only."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves

    async def show(self, url: str) -> None:
        """See `SignInScreen`.  Raises `NoBrowserHere`."""
        if not await self._leaves.workers.run(self._leaves.browser.open, url):
            raise NoBrowserHere(
                "there is no browser here; sign in with a screen that shows the address"
            )

    async def pasted(self, problem: str) -> str:
        """See `SignInScreen`."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody pastes here")
