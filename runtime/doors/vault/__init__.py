"""The vault door: handoffs, checkpoints, notes and briefs of one root, as plain files.

A vault is the root itself: `handoffs/`, `projects/`, `decisions/` and so on lie in it, as
in a vault of ClawVault, and what is ours alone lies in `.tenure/`.  The layers, each of
which knows only those above it:

    paths.py        every path, resolved inside the vault
    frontmatter.py  safe YAML between `---`, and how it is written
    names.py        file names from titles, times, digests
    journal.py      `.tenure/handoffs.jsonl`: what happened, in order
    ...             what is built on them
    door.py         the handlers of the HandoffActor's effects
"""
