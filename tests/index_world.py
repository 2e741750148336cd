"""For tests of the index: hosts in a simulated world, with notes and a model of words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenure.messages.index_work import IndexProgress, IndexResult, IndexWork, RunComplete
from tenure.runtime.doors.search.leases import Leases
from tenure.runtime.doors.search.wiring import IndexWishes
from tenure.runtime.host_index import HostIndex
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.embedding import Embedders, WordEmbedder
from tenure.runtime.testing.nodes import NameEdit
from tenure.runtime.testing.world import ROOT, SimHost, World, simulate

INDEX = f"{ROOT}/.tenure/index"

NOTES = {
    "pricing.md": "# Pricing\n\nA loaf costs four euros.\n",
    "dogs.md": "---\ntags: [animals]\n---\n# Dogs\n\nThe puppy sleeps by the oven.\n",
    "plans/roadmap.md": "# Roadmap\n\nA second shop opens in May.\n",
    "plans/fleet.md": "# Fleet\n\nTwo vans and a bicycle. #animals\n",
}


class Indexed:
    """A world with notes, and hosts that index them."""

    def __init__(self, world: World, embedder: WordEmbedder) -> None:
        self.world = world
        self.embedder = embedder

    def host(
        self, name: str = "a", leases: Leases | None = None, model: str = "words", **wishes: Any
    ) -> SimHost:
        index = IndexWishes(
            leases=leases, choose=Embedders(self.embedder, WordEmbedder("others", dimensions=8))
        )
        settings = {"index": {"model": model}}
        return self.world.host(name, settings=settings, index=index, **wishes)

    def index(self, host: SimHost) -> HostIndex:
        self.world.run(host.start())
        return host.host.index

    def do(self, host: SimHost, work: Any) -> Any:
        """Run what the index's methods give, in the process of the host."""

        async def inside() -> Any:
            return await work

        return self.world.run(self.world.inside(host.process, inside()))

    def begin(self, host: SimHost, work: Any) -> Any:
        """The same, without waiting."""

        async def inside() -> Any:
            return await work

        return self.world.loop.create_task(self.world.inside(host.process, inside()))

    def build(self, host: SimHost, **wishes: Any) -> IndexResult:
        result: IndexResult = self.do(host, self.index(host).build(**wishes))
        return result

    def found(self, host: SimHost, query: str) -> list[str]:
        """The paths of what a search finds, best first."""
        results = self.do(host, self.index(host).search(query))
        return [hit.path for hit in results.hits]

    def slow(self, seconds: float = 1.0) -> None:
        """Every batch takes so long."""

        async def wait() -> None:
            await self.world.clock.sleep(seconds)

        self.embedder.before = wait

    # --- the notes ---------------------------------------------------------------------------

    def write(self, path: str, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        self.world.disk.put(f"{ROOT}/{path}", data)

    def remove(self, path: str) -> None:
        place = self.world.disk.place(f"{ROOT}/{path}")
        self.world.disk.change_names(NameEdit(folder=place.folder, name=place.name, node=None))

    def read(self, name: str) -> bytes:
        """A file of the index."""
        return self.world.disk.content(f"{INDEX}/{name}")

    def spoil(self, name: str, data: bytes = b"{") -> None:
        """Another program damages a file of the index."""
        self.world.disk.put(f"{INDEX}/{name}", data)

    def names(self) -> list[str]:
        start = f"{INDEX}/"
        return sorted(
            path.removeprefix(start) for path in self.world.disk.paths() if path.startswith(start)
        )


@contextmanager
def indexed(seed: int = 0, notes: dict[str, str] | None = None, **model: Any) -> Iterator[Indexed]:
    with simulate(seed, watchers=all_checkers()) as world:
        indexing = Indexed(world, WordEmbedder(**model))
        for path, text in (NOTES if notes is None else notes).items():
            indexing.write(path, text)
        yield indexing


def complete(result: IndexResult) -> RunComplete:
    assert isinstance(result, RunComplete), result
    return result


def works(told: list[IndexWork | IndexProgress]) -> list[IndexWork]:
    return [each for each in told if isinstance(each, IndexWork)]
