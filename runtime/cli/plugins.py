"""What `tenure plugin` does: one question to the packages of a root, and its answer printed."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Literal

import click

from tenure.messages.base import Reply
from tenure.messages.install import (
    ChoiceSaved,
    DownloadAdvanced,
    PackageInstalled,
    PackageName,
    PackageNotFound,
    PackageRemoved,
    PackageRolledBack,
    Packages,
    PackageView,
    Swept,
    Verified,
)
from tenure.runtime.cli.screen import print_json, print_note, screen_of
from tenure.runtime.cli.terminal import visible
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host
from tenure.runtime.host_plugins import HostPlugins
from tenure.runtime.seat import refused

Form = Literal["text", "json"]


def absolute(source: str) -> str:
    """A source as the user's own folder has it, not the workspace's."""
    return source if "://" in source else os.path.abspath(source)


async def ask_plugins(root: str, form: Form, ask: Callable[[HostPlugins], Awaitable[Reply]]) -> int:
    """Ask, print the answer, and give the exit code."""
    async with Host.open(root) as host:
        watching = asyncio.create_task(_tell_progress(host))
        try:
            reply = await ask(host.plugins)
        except Refused as said:
            screen_of(form).refusal(said.reply)
            return EXIT_REFUSED
        finally:
            watching.cancel()
    if form == "json":
        print_json(reply)
    else:
        for line in lines_of(reply):
            click.echo(visible(line))
    return _exit_code(reply)


async def show_package(plugins: HostPlugins, name: str) -> Packages:
    """One package alone, in the form of the whole list."""
    found = await plugins.loaded()
    mine = tuple(each for each in found.packages if each.name == name)
    if not mine:
        raise refused(PackageNotFound(name=name))
    return Packages(packages=mine, skills=mine[0].skills, servers=mine[0].servers)


def lines_of(reply: Reply) -> list[str]:
    """An answer for people."""
    match reply:
        case Packages(packages=packages, leftovers=left):
            lines = [line for package in packages for line in _of_package(package)]
            lines += [f"left over: {each.path}: {each.reason}" for each in left]
            return lines or ["no packages"]
        case PackageInstalled():
            was = f" (was {reply.replaced})" if reply.replaced else ""
            said = f"{reply.name} {reply.version or 'without a version'} is installed{was}"
            return [said, *(f"  note: {each}" for each in reply.warnings)]
        case PackageRolledBack():
            return [f"{reply.name} is {reply.version} again (generation {reply.generation})"]
        case PackageRemoved():
            return [f"{reply.name} is removed"]
        case ChoiceSaved():
            return [f"{reply.name}: saved"]
        case Swept():
            lines = [*reply.recovered, *(f"deleted {each}" for each in reply.deleted)]
            lines += [f"left over: {each.path}: {each.reason}" for each in reply.leftovers]
            return lines or ["nothing to do"]
        case Verified():
            return [line for each in reply.packages for line in _of_check(each)] or ["no packages"]
        case _:
            return [type(reply).__name__]


def _of_package(package: PackageView) -> list[str]:
    off = "" if package.enabled else ", disabled"
    lines = [f"{package.name} {package.version}".rstrip() + f"  [{package.status}{off}]"]
    if package.source:
        lines.append(f"  from {package.source}")
    lines += [f"  skill {each.name}: {each.description}" for each in package.skills]
    lines += [
        f"  server {each.id} {each.url} ({'allowed' if each.allowed else 'not allowed'})"
        for each in package.servers
    ]
    lines += [f"  kept: generation {each.generation}, {each.version}" for each in package.kept]
    return lines + [f"  problem: {each}" for each in package.problems]


def _of_check(checked: object) -> list[str]:
    from tenure.messages.install import PackageVerified

    assert isinstance(checked, PackageVerified)
    lines = [f"{PackageName(checked.name)}: {checked.status}, {checked.files:,} files"]
    return lines + [f"  {each.path}: {each.reason}" for each in checked.damaged]


def _exit_code(reply: Reply) -> int:
    if isinstance(reply, Verified) and any(each.status == "damaged" for each in reply.packages):
        return EXIT_FAILED
    return EXIT_DONE


async def _tell_progress(host: Host) -> None:
    async for published in host.events():
        event = published.event
        if isinstance(event, DownloadAdvanced):
            of = f" of {event.expected_bytes:,}" if event.expected_bytes else ""
            print_note(f"{event.received_bytes:,}{of} bytes of {event.source}")
