"""The checks of `tenure doctor`.  A part of a host adds its own to `CHECKS`."""

from collections.abc import Awaitable, Callable
from typing import Literal

import click
import msgspec

from tenure.runtime.cli.screen import print_json
from tenure.runtime.cli.terminal import visible
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_FAILED
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host


class Finding(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """One thing that is wrong."""

    part: str
    """Which part of the host: `plugins`, `sessions`."""
    what: str
    safe: str
    """What can be done without losing anything."""


Check = Callable[[Host], Awaitable[tuple[Finding, ...]]]


async def check_plugins(host: Host) -> tuple[Finding, ...]:
    """Packages that cannot be used in full, and what else lies in their folder."""
    found = await host.plugins.loaded()
    verified = await host.plugins.verify()
    findings = [
        Finding(
            part="plugins",
            what=f"{each.name} is {each.status}: {'; '.join(each.problems) or 'no reason given'}",
            safe=_repair(each.status, each.name),
        )
        for each in found.packages
        if each.status in ("damaged", "failed", "partial")
    ]
    known = {each.name for each in found.packages if each.status == "damaged"}
    findings += [
        Finding(
            part="plugins",
            what=f"{each.name}: {len(each.damaged):,} files were changed since it was installed",
            safe=_repair("damaged", each.name),
        )
        for each in verified.packages
        if each.damaged and each.name not in known
    ]
    findings += [
        Finding(
            part="plugins",
            what=f"{each.path}: {each.reason}",
            safe="`tenure plugin sweep` recovers what it can and deletes nothing unknown; "
            "look at the rest, and move it away yourself",
        )
        for each in found.leftovers
    ]
    return tuple(findings)


async def check_sessions(host: Host) -> tuple[Finding, ...]:
    """Sessions with damaged lines."""
    return tuple(
        Finding(
            part="sessions",
            what=f"{each.id}: {each.damage:,} damaged lines",
            safe=f"`tenure sessions verify {each.id}` shows them; the rest is readable",
        )
        for each in await host.sessions.list()
        if each.damage
    )


CHECKS: dict[str, Check] = {"plugins": check_plugins, "sessions": check_sessions}


async def examine(root: str, form: Literal["text", "json"]) -> int:
    """Run every check; one that fails is a finding, and hides no other."""
    findings: list[Finding] = []
    async with Host.open(root) as host:
        for part, check in CHECKS.items():
            try:
                findings += await check(host)
            except (Refused, OSError) as failed:
                safe = "see to what it names, then look again"
                findings.append(Finding(part=part, what=str(failed), safe=safe))
    for finding in findings:
        if form == "json":
            print_json(finding)
        else:
            click.echo(visible(f"{finding.part}: {finding.what}\n  safe: {finding.safe}"))
    if not findings and form == "text":
        click.echo(f"nothing is wrong ({', '.join(CHECKS)})")
    return EXIT_FAILED if findings else EXIT_DONE


def _repair(status: str, name: str) -> str:
    if status == "partial":
        return f"`tenure plugin show {name}` says what was left out; the rest works"
    return (
        f"`tenure plugin update {name}` installs it again from where it came, and "
        f"`tenure plugin rollback {name}` brings the version before it back"
    )
