"""`tenure plugin`: packages of skills and MCP servers."""

from collections.abc import Awaitable, Callable

import click

from tenure.messages.base import Reply
from tenure.runtime.cli.options import json_option, root_option, workspace
from tenure.runtime.host_plugins import HostPlugins

name_argument = click.argument("name", metavar="NAME")


@click.group("plugin")
def command() -> None:
    """Install, look at and remove packages of skills and MCP servers.

    A package is a folder, a .zip, .tar.gz or .tgz, or an address of one.  It is
    installed whole or not at all, and the versions before it are kept.
    """


@command.command("install")
@click.argument("source", metavar="SOURCE")
@click.option("--digest", metavar="DIGEST", default="", help="sha256:HEX or sha512-BASE64.")
@click.option("--key", metavar="BASE64", default="", help="An Ed25519 key; with --signature.")
@click.option("--signature", metavar="BASE64", default="", help="Of the archive's bytes.")
@root_option
@json_option
def install(
    source: str, digest: str, key: str, signature: str, root: str | None, as_json: bool
) -> None:
    """Install a package, or update the one of its name."""
    if bool(key) != bool(signature):
        raise click.UsageError("--key and --signature belong together: give both or neither")

    from tenure.messages.install import Ed25519, Unsigned
    from tenure.runtime.cli.plugins import absolute

    signed = Ed25519(key=key, signature=signature) if key else Unsigned()
    place = absolute(source)
    _do(root, as_json, lambda plugins: plugins.install(place, digest=digest, signature=signed))


@command.command("ls")
@root_option
@json_option
def list_(root: str | None, as_json: bool) -> None:
    """List the packages, their skills and servers, and what else lies there."""
    _do(root, as_json, lambda plugins: plugins.loaded())


@command.command("show")
@name_argument
@root_option
@json_option
def show(name: str, root: str | None, as_json: bool) -> None:
    """Show one package: where it came from, what it gives, what is wrong with it."""
    from tenure.runtime.cli.plugins import show_package

    _do(root, as_json, lambda plugins: show_package(plugins, name))


@command.command("enable")
@name_argument
@root_option
@json_option
def enable(name: str, root: str | None, as_json: bool) -> None:
    """Offer the skills and servers of a package."""
    _do(root, as_json, lambda plugins: plugins.enable(name))


@command.command("disable")
@name_argument
@root_option
@json_option
def disable(name: str, root: str | None, as_json: bool) -> None:
    """Offer them no more; the package stays."""
    _do(root, as_json, lambda plugins: plugins.disable(name))


@command.command("allow")
@click.argument("server", metavar="SERVER")
@root_option
@json_option
def allow(server: str, root: str | None, as_json: bool) -> None:
    """Let an MCP server of a package be used; `ls` shows the ids."""
    _do(root, as_json, lambda plugins: plugins.allow_server(server))


@command.command("forbid")
@click.argument("server", metavar="SERVER")
@root_option
@json_option
def forbid(server: str, root: str | None, as_json: bool) -> None:
    """Take that back."""
    _do(root, as_json, lambda plugins: plugins.forbid_server(server))


@command.command("update")
@name_argument
@root_option
@json_option
def update(name: str, root: str | None, as_json: bool) -> None:
    """Install a package again from where it came."""
    _do(root, as_json, lambda plugins: plugins.update(name))


@command.command("rollback")
@name_argument
@click.option("--to", "generation", metavar="N", type=int, default=0, help="As `show` counts.")
@root_option
@json_option
def rollback(name: str, generation: int, root: str | None, as_json: bool) -> None:
    """Bring an earlier version back; the present one is kept."""
    _do(root, as_json, lambda plugins: plugins.rollback(name, generation))


@command.command("verify")
@root_option
@json_option
def verify(root: str | None, as_json: bool) -> None:
    """Compare every file with the digest that it was installed with."""
    _do(root, as_json, lambda plugins: plugins.verify())


@command.command("rm")
@name_argument
@root_option
@json_option
def remove(name: str, root: str | None, as_json: bool) -> None:
    """Remove a package, its kept versions, and what was chosen about it."""
    _do(root, as_json, lambda plugins: plugins.remove(name))


@command.command("sweep")
@root_option
@json_option
def sweep(root: str | None, as_json: bool) -> None:
    """Recover what a crash left, delete what is superfluous, and show what else is there."""
    _do(root, as_json, lambda plugins: plugins.sweep())


def _do(root: str | None, as_json: bool, ask: Callable[[HostPlugins], Awaitable[Reply]]) -> None:
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.plugins import ask_plugins

    launch(lambda interrupts: ask_plugins(workspace(root), "json" if as_json else "text", ask))
