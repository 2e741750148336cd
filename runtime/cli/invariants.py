"""`tenure invariants`: what always holds, and the tests that would notice."""

import textwrap

import click

from tenure.runtime.cli.options import json_option


@click.command("invariants")
@json_option
def command(as_json: bool) -> None:
    """List what always holds, who keeps it, and the tests that would notice."""
    from tenure.runtime.cli.screen import print_json, print_text
    from tenure.runtime.invariants import INVARIANTS

    for invariant in INVARIANTS:
        if as_json:
            print_json(invariant)
            continue
        count = len(invariant.witnesses)
        kept = f"{invariant.owner}, {count} {'witness' if count == 1 else 'witnesses'}"
        text = textwrap.fill(invariant.text, 88, initial_indent="    ", subsequent_indent="    ")
        print_text(f"{invariant.id}  ({kept})\n{text}\n")
