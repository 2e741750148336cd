import asyncio

from tenure import Host


async def main() -> None:
    async with Host.open("notes") as host:
        seat = await host.seat()
        async for event in seat.prompt("What did we decide about pricing?"):
            print(event)


asyncio.run(main())
