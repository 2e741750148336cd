"""What always holds of packages, by id; see `invariants.py`."""

INSTALL: dict[str, str] = {
    "INSTALL-1": "The manifest is written last in the stage: what is listed is there.",
    "INSTALL-2": (
        "The only copy of a package is never deleted; a reader finds the target, else the "
        "backup that the open journal names."
    ),
    "INSTALL-3": (
        "A backup restores when the target is missing or empty; a target with a readable "
        "manifest owns its name."
    ),
    "INSTALL-4": "A failed rename restores the backup.",
    "INSTALL-5": (
        "Install, sweep and prune are one mailbox and one claim, in the order sweep, install, "
        "prune; a prune spares what a retained backup still needs."
    ),
    "INSTALL-6": "A reload is single-flight; a rejected one leaves the next free.",
    "INSTALL-7": "An archive writes only inside its stage and within its limits, or not at all.",
}
