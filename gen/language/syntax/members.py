"""Scalars that are words: `activation == "relu"` compares the scalar with the word's number.

Input: a tree of Python. Output: the same tree, with numbers for words. Raises SpecError where a
word is none of its scalar's, and where such a scalar is more than compared with a word. What comes
after knows numbers alone; errors get their words back here.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import Span, SpecError, TilesmithError
from .. import yaml

Members = Mapping[str, tuple[str, ...]]
"""The words of each scalar that is one."""


def number(tree: ast.AST, members: Members, span: Callable[[Any], Span]) -> None:
    """Puts the words' numbers into the tree."""
    compared: set[ast.Name] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(
                ast.Name(name) as scalar,
                [ast.Eq() | ast.NotEq()],
                [ast.Constant(str(word)) as place],
            ) | ast.Compare(
                ast.Constant(str(word)) as place,
                [ast.Eq() | ast.NotEq()],
                [ast.Name(name) as scalar],
            ) if name in members:
                place.value = _number(name, word, members[name], span(place))
                compared.add(scalar)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in members and node not in compared:
            known = members[node.id]
            message = f"'{node.id}' is {one_of(known)}, and can be compared with these alone"
            raise SpecError(message, span(node), f"write {node.id} == '{known[0]}'")


def _number(scalar: str, word: str, known: tuple[str, ...], span: Span) -> int:
    if word not in known:
        message = f"'{scalar}' is {one_of(known)}, never {word[:64]!r}"
        raise SpecError(message, span, yaml.hint(word, known))
    return known.index(word)


def one_of(words: tuple[str, ...]) -> str:
    """The words as a message lists them."""
    *first, last = map(repr, words)
    return f"{', '.join(first)} or {last}" if first else last


def in_words(text: str, members: Members) -> str:
    """A message with words where it has their numbers: `mode=1` and `mode == 1` of a proof, to
    which such a scalar is a number, become `mode='back'` and `mode == 'back'`.
    """
    for name, words in members.items():

        def said(found: re.Match[str], words: tuple[str, ...] = words) -> str:
            number = int(found[2])
            return f"{found[1]}{words[number]!r}" if number < len(words) else found[0]

        text = re.sub(rf"((?<![\w.]){name}(?:=| [!=]= ))(\d+)\b", said, text)
    return text


@contextmanager
def errors_in_words(members: Members) -> Iterator[None]:
    """Errors from inside say words for the numbers of scalars that are words."""
    try:
        yield
    except TilesmithError as error:
        error.message = in_words(error.message, members)
        error.notes = tuple(in_words(note, members) for note in error.notes)
        raise
