"""What always holds of the owners of a host: id, who keeps it, what holds (see invariants.py)."""

OF_THE_HOST: tuple[tuple[str, str, str], ...] = (
    (
        "AUTH-1",
        "McpAuthActor",
        "One refresh for a server, whatever number of seats and processes want it.",
    ),
    (
        "AUTH-2",
        "McpAuthActor",
        "Whoever waited for a refresh gets the tokens that came of it.",
    ),
    (
        "AUTH-3",
        "McpAuthActor",
        (
            "Who stops waiting stops only his waiting: an exchange that began goes to its end and "
            "is saved, also when its owner ends."
        ),
    ),
    (
        "AUTH-4",
        "McpAuthActor",
        "A late `invalid_grant` never removes tokens that came after those that were sent.",
    ),
    (
        "AUTH-5",
        "McpAuthActor",
        (
            "New tokens are durable before anybody sees them, and the intent to refresh before "
            "the request; an answer that nobody saw is followed by one retry, then by a sign-in."
        ),
    ),
    (
        "AUTH-6",
        "McpAuthActor",
        (
            "Flights go by the stable id of a server; one sign-in for a server in a host, and its "
            "receiver takes nobody else's answer."
        ),
    ),
    (
        "AUTH-7",
        "McpAuthActor",
        (
            "Tokens belong to a URL, an issuer and a resource: a server that moved finds none, "
            "and only documents of the right place say where they are sent."
        ),
    ),
    (
        "HANDOFF-1",
        "HandoffActor",
        "A handoff's receipt is given as soon as it is durable; no later stage can hide it.",
    ),
    (
        "HANDOFF-2",
        "vault",
        (
            "A notice goes pending, delivered, acknowledged: it comes again until an "
            "acknowledgement names it, which clears it as it was then and nothing newer."
        ),
    ),
    (
        "HANDOFF-3",
        "vault",
        (
            "Recovery, recap and lists choose handoffs by one selector: the number in the "
            "journal, never a name or a time."
        ),
    ),
    (
        "HANDOFF-4",
        "HandoffActor",
        (
            "Every stage of a handoff ends as ok, skipped or failed, and a failed one keeps no "
            "other from running."
        ),
    ),
    (
        "HANDOFF-5",
        "vault",
        (
            "Git commits only when it was asked to, only the files that we wrote, in the vault's "
            "own repository, and leaves the user's index alone."
        ),
    ),
    (
        "HANDOFF-6",
        "vault",
        (
            "The same idempotency key gives the same receipt, in every process; with another text "
            "it is `KeyReused`."
        ),
    ),
    (
        "HANDOFF-7",
        "vault",
        (
            "What a model says of a brief stands beside the brief, never in its place, and only "
            "in sentences that cite an item."
        ),
    ),
    (
        "HANDOFF-8",
        "vault",
        (
            "Notes are data: nothing in them runs, no item can pass for a section, and no name or "
            "link leads outside the vault."
        ),
    ),
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
        (
            "A complete target is backed up before it is replaced; an unreadable one is replaced "
            "only where a complete backup stands behind it, else both are set aside."
        ),
    ),
    (
        "INDEX-4",
        "index",
        (
            "A reader serves one complete generation, the last; a run whose lease is dead is "
            "shown as failed."
        ),
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
    (
        "INSTALL-1",
        "InstallerActor",
        "The manifest is written last in the stage: what is listed is there.",
    ),
    (
        "INSTALL-2",
        "InstallerActor",
        (
            "The only copy of a package is never deleted; a reader finds the target, else the "
            "backup that the open journal names."
        ),
    ),
    (
        "INSTALL-3",
        "InstallerActor",
        (
            "A backup restores when the target is missing or empty; a target with a readable "
            "manifest owns its name."
        ),
    ),
    (
        "INSTALL-4",
        "InstallerActor",
        "A failed rename restores the backup.",
    ),
    (
        "INSTALL-5",
        "InstallerActor",
        (
            "Install, sweep and prune are one mailbox and one claim, in the order sweep, install, "
            "prune; a prune spares what a retained backup still needs."
        ),
    ),
    (
        "INSTALL-6",
        "InstallerActor",
        "A reload is single-flight; a rejected one leaves the next free.",
    ),
    (
        "INSTALL-7",
        "InstallerActor",
        "An archive writes only inside its stage and within its limits, or not at all.",
    ),
)
