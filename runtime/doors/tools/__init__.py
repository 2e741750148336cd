"""The tools: what a model may do with the files of a workspace, and what embedders add.

door.py        `Tools`: the handlers of `RunTool` and `PreviewCall`
tool.py        what a tool is; functions.py makes one of a plain function
workspace.py   the one way from a path to a file; ignores.py what is hidden
reading.py     read, ls
searching.py   search
writing.py     write, edit
moving.py      rename, delete
"""
