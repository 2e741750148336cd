"""What the librarian understands: orders, and the key words of questions."""

import pytest

from tenure.runtime.doors.models.librarian.orders import (
    Append,
    Delete,
    Help,
    List,
    Order,
    Read,
    Rename,
    Replace,
    Search,
    Write,
    order_of,
)
from tenure.runtime.doors.models.librarian.words import Finder, key_words, stem


@pytest.mark.parametrize(
    ("prompt", "order"),
    [
        ("read a.md", Read(path="a.md")),
        ("Can you please show me the file 'b c.md'?", Read(path="b c.md")),
        ("cat a.md lines 3 to 9", Read(path="a.md", first=3, last=9)),
        ("open it", Read(path="")),
        ("list", List()),
        ("ls notes/", List(path="notes/")),
        ("list all files in notes", List(path="notes")),
        ("What files are there?", List()),
        ("what is in this folder?", List()),
        ("search for red shoes", Search(text="red shoes")),
        ('find "red shoes"', Search(text='"red shoes"')),
        ("write a.md: hello: world", Write(path="a.md", text="hello: world\n")),
        ("create file todo with milk", Write(path="todo", text="milk\n")),
        ("create a file called x.txt with content: a b", Write(path="x.txt", text="a b\n")),
        ("add to a.md: line", Append(path="a.md", text="line\n")),
        ('append "x y" to a.md', Append(path="a.md", text="x y")),
        ("replace a with b in c.md", Replace(path="c.md", old="a", new="b")),
        ('change "a b" to "c d" in "e f.md".', Replace(path="e f.md", old="a b", new="c d")),
        ("rename a.md to sub/b.md", Rename(path="a.md", new_path="sub/b.md")),
        ("mv drafts archive", None),
        ("move drafts to archive", None),
        ("move the folder drafts to archive", Rename(path="drafts", new_path="archive")),
        ("delete a.md", Delete(path="a.md")),
        ("remove the doubt", None),
        ("rm x", Delete(path="x")),
        ("help", Help()),
        ("Are you a language model?", Help()),
        ("write a poem with feeling", None),
        ("change the world with music in mind", None),
        ("show me what we decided", None),
        ("What does the report say?", None),
        ("read a.md\nand tell me what it says", None),
        ("", None),
        ("read " + "a" * 500, None),
    ],
)
def test_an_order_is_told_from_a_question(prompt: str, order: Order | None) -> None:
    assert order_of(prompt) == order


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did we decide about pricing?", ("decide", "pricing")),
        ("Does main.py call foo_bar?", ("main.py", "call", "foo_bar")),
        ('Who said "net 30" to Zoë?', ("net 30", "Zoë")),
        ("Was ist mit der Größe?", ("Größe",)),
        ("L'argent de qui ?", ("argent",)),
        ("¿Dónde está la llave?", ("llave",)),
        ("가격은 얼마로 결정했나요", ("가격", "얼마", "결정했나요")),
        ("我们关于价格的决定是什么", ("价格", "决定")),
        ("価格について", ("価格",)),
        ("the the and of", ()),
        ("", ()),
    ],
)
def test_key_words_of_a_question(text: str, words: tuple[str, ...]) -> None:
    assert key_words(text) == words


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "prompt",
    [
        "what" + " " * 200_000 + "x",
        "search for " + "!" * 200_000 + "x",
        "please " * 30_000,
        "replace a with b " * 20_000,
        "replace " + "with b " * 50 + "in",
        "change " + "to to " * 60,
        "write a.md: " + "`" * 200_000,
        '"' * 200_000,
        "a_" * 100_000,
        "list " + "in " * 100,
        " ".join(f"word{n}" for n in range(50_000)),
    ],
)
def test_a_long_or_odd_prompt_takes_no_long_time(prompt: str) -> None:
    order_of(prompt)
    assert len(key_words(prompt)) <= 6


def test_a_long_text_is_written_whole() -> None:
    text = "line\n" * 10_000
    assert order_of(f"write a.md: {text}") == Write(path="a.md", text=text)
    assert order_of(f"append to a.md:\n{text}") == Append(path="a.md", text=text)


def test_key_words_are_few_and_the_longest() -> None:
    assert key_words("aa bbbb ccc dddd ee ffff gggg hhhh") == (
        "bbbb", "ccc", "dddd", "ffff", "gggg", "hhhh",
    )  # fmt: skip


def test_a_word_stands_where_a_word_begins_with_it() -> None:
    assert Finder(["price", "rice"]).words_in("Prices rise") == {"price"}
    assert Finder(["e\u0301t\u00e9"]).words_in("L'\u00c9t\u00e9")
    assert Finder(["格"]).words_in("价格")
    assert stem("prices") == "pric"
    assert stem("net 30") == "net 30"
    assert stem("gas") == "gas"
