"""A session's branches on a screen."""

from tenure.runtime.cli.screen import print_text
from tenure.runtime.doors.transcripts import SessionTree, TreeNode

INDENT_MAX = 20
"""Deeper branches are not moved further to the right."""


def print_tree(tree: SessionTree) -> None:
    """One line an entry: `*` marks the path of the leaf, `<` the leaf itself."""
    print_text(f"session {tree.session_id}\n")
    for node in tree.nodes:
        print_text(_row(node, tree.leaf) + "\n")


def _row(node: TreeNode, leaf: str | None) -> str:
    mark = "*" if node.on_path else " "
    indent = "  " * min(node.depth, INDENT_MAX)
    label = f" [{node.label}]" if node.label else ""
    end = "  <" if node.id == leaf else ""
    return f"{mark} {indent}{node.id}  {node.kind}{label}  {node.text}".rstrip() + end
