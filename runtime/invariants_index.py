"""What always holds of the index: id, who keeps it, and what holds (see invariants.py)."""

OF_THE_INDEX: tuple[tuple[str, str, str], ...] = (
    (
        "INDEX-1",
        "IndexWriterActor",
        "An index path has one writer, and the writer takes the lease itself.",
    ),
    (
        "INDEX-2",
        "IndexWriterActor",
        "The lease is asked at the moment of every replacement; without it none is made.",
    ),
    (
        "INDEX-3",
        "index",
        "A complete target is backed up before it is replaced; an unreadable one is replaced "
        "only where a complete backup stands behind it, else both are set aside.",
    ),
    (
        "INDEX-4",
        "index",
        "A reader serves one complete generation, the last; a run whose lease is dead is shown "
        "as failed.",
    ),
    (
        "INDEX-5",
        "IndexWriterActor",
        "Where the lease store is not available, nothing is indexed.",
    ),
    (
        "INDEX-6",
        "IndexWriterActor",
        "Closing a view ends its own run, and no other.",
    ),
)
