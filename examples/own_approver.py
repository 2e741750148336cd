"""An approver of your own: an async callable that sees each request and decides.

It lets files be written under drafts/ and nowhere else.  What it denies is told
to the model with the reason, and the turn goes on.

    python examples/own_approver.py examples/notes
"""

import asyncio
import sys

from tenure import Allow, ApprovalRequest, Deny, Host
from tenure.messages.turn import ModelAnswered


async def drafts_only(request: ApprovalRequest) -> Allow | Deny:
    """Asked only for what the settings say to ask about: by default all that changes files."""
    if request.preview is not None:
        print(request.preview.diff)
        if request.preview.path.startswith("drafts/"):
            return Allow()
    return Deny(reason="files are written under drafts/ only")


async def main(root: str) -> None:
    async with Host.open(root, approve=drafts_only) as host:
        seat = await host.seat()
        for prompt in ("write drafts/idea.md: a shelf in the bakery", "write idea.md: the same"):
            async for event in seat.prompt(prompt):
                if isinstance(event, ModelAnswered) and event.text:
                    print(event.text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "notes"))
