"""No hidden state: what the generator finds out lives in objects that callers make and pass."""

import ast
import gc
import pickle
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from gen import language as specs
from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.lower.variants import Plain
from gen.pipeline import schedule
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.sets.order import Relations
from gen.poly.workbench import Workbench
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .test_imports import GEN, ROOT, name_of

# What may be remembered for as long as the process runs: answers to few questions, of none of
# which a kernel is part.
CACHES = {
    "gen/ir/algebra.py: index": "the constants that index arithmetic makes again and again: 4 % of"
    " scheduling; at most 1024 of them",
    "gen/ir/interpret/evaluate.py: numpy_dtype": "one for each element type",
    "gen/ir/interpret/special.py: _zeta_less_one": "the 43 coefficients of a series",
    "gen/targets/c/library.py: runtime_digest": "one: the runtime's files are read once a process",
    "gen/poly/cache.py: _prover": "one: the prover's files are read once a process",
    "gen/poly/laws/__init__.py: lookup": "one for each law and type: its proof takes longest",
    "gen/poly/laws/__init__.py: names": "one: the folder is listed once a process",
    "gen/schedule/intrinsics/__init__.py: _read": "one for each file of intrinsics",
}
# Attributes of objects that others made, or of frozen ones.
SET = {
    "gen/ir/walk.py: _answers": "`remembered`: what pure functions of a node answered, immutable",
    "gen/ir/walk.py: _children": "the node's own, found once",
}
# What the world outside may say. None of it changes what is generated.
ENVIRONMENT = {
    "gen/targets/c/library.py: CC": "the compiler of `run`, `bench` and notebooks",
    "gen/targets/cuda/emulator/library.py: CXX": "the compiler of `run --emulate`",
    "gen/cache.py: TILESMITH_CACHE": "where libraries and proofs are kept",
    "gen/cache.py: XDG_CACHE_HOME": "likewise, where that is not set",
    "gen/progress.py: TERM": "whether the terminal takes a line that is written over",
}
KEEPING = {"cache", "lru_cache"}
FILLED = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem"),
    *("remove", "setdefault", "sort", "update", "difference_update", "intersection_update"),
}
EMPTY = {"dict", "list", "set", "bytearray", "Counter", "OrderedDict", "WeakSet"}  # where bare
FILLING = {
    *("defaultdict", "deque", "count", "iter", "local", "ContextVar"),
    *("WeakKeyDictionary", "WeakValueDictionary"),
}
MUTABLE = ("set[", "dict[", "list[", "Logical", "Relations", "isl.", "Iterator", "ndarray")

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def last_name(node: ast.expr) -> str:
    """`cache` of `functools.cache`, and of a call of it."""
    match node:
        case ast.Call(func=function):
            return last_name(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def root_name(node: ast.expr) -> str:
    """`a` of `a.b[c]`."""
    match node:
        case ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return root_name(inner)
        case ast.Name(id=name):
            return name
        case _:
            return ""


def caches(path: Path) -> Iterator[str]:
    """The functions that `functools` keeps the answers of, wherever they are written."""
    tree = tree_of(path)
    wrapped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if last_name(decorator) in KEEPING:
                    wrapped.add(decorator)
                    yield f"{name_of(path)}: {node.name}"
    inside = {n for d in wrapped for n in ast.walk(d)}
    imported = {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if node not in inside and name in KEEPING & imported:
                yield f"{name_of(path)}: line {node.lineno}"
            case ast.Attribute(attr=name) if node not in inside and name in KEEPING:
                yield f"{name_of(path)}: line {node.lineno}"


def test_caches_are_few_and_small() -> None:
    assert sorted(found for path in GEN for found in caches(path)) == sorted(CACHES)


# ---------------------------------------------------------------- modules


def containers(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that make an empty container, or an iterator, of the module or of a class: what is
    empty is there to be filled.
    """
    bodies = [tree.body, *(n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]
    for statement in (s for body in bodies for s in body):
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        match statement.value:
            case ast.Dict(keys=[]) | ast.List(elts=[]) | ast.Set(elts=[]):
                yield statement
            case ast.Call(func=made, args=args, keywords=keywords):
                bare = not args and not keywords
                if last_name(made) in FILLING or (bare and last_name(made) in EMPTY):
                    yield statement


def bound(function: Function) -> set[str]:
    """The names that are a function's own."""
    a = function.args
    every = (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg)
    names = {arg.arg for arg in every if arg}
    for node in ast.walk(function):
        if node is function:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)) | ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
    return names


def changes(node: ast.AST, known: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Where a function changes what is not its own: a line, and the name of what is changed."""
    if isinstance(node, Function):
        known |= bound(node)
    changed: list[ast.expr] = []
    match node:
        case ast.Assign(targets=targets):
            changed += [t for t in targets if isinstance(t, ast.Subscript | ast.Attribute)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            changed += [target] if isinstance(target, ast.Subscript | ast.Attribute) else []
        case ast.Delete(targets=targets):
            changed += targets
        case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in FILLED:
            changed.append(held)
    for target in changed:
        name = root_name(target)
        if name and name not in known:
            yield target.lineno, name
    for child in ast.iter_child_nodes(node):
        yield from changes(child, known)


def in_functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """As `changes`, of all functions. What is imported and in small letters is a module, whose
    functions may have such names: `algebra.add`.
    """
    imported = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom | ast.Import))
    known = frozenset(a.asname or a.name for n in imported for a in n.names if a.name.islower())
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef):
            yield from changes(node, known)


@pytest.mark.parametrize("path", GEN, ids=name_of)
def test_modules_hold_nothing_that_changes(path: Path) -> None:
    tree = tree_of(path)
    assert not [ast.unparse(s) for s in containers(tree)]
    assert not list(in_functions(tree))
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Global), f"line {node.lineno}"
        if isinstance(node, ast.FunctionDef):
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            made = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
            for default in defaults:
                assert not isinstance(default, made), f"line {node.lineno}"
                assert last_name(default) not in EMPTY | FILLING, f"line {node.lineno}"


@pytest.mark.parametrize(
    "text",
    [
        "SEEN = {}",
        "SEEN: dict[str, int] = dict()",
        "SEEN = WeakKeyDictionary()",
        "class A:\n    seen = []",
        "def f(x):\n    SEEN[x] = 1",
        "def f(x):\n    SEEN.setdefault(x, 1)",
        "def f(x):\n    def g():\n        SEEN.add(x)\n    g()",
        "def f(x):\n    f.count += 1",
        "def f(x):\n    module.SEEN[x] = 1",
        "def f(x):\n    del SEEN[x]",
        "class A:\n    def f(self):\n        A.seen = 1",
    ],
)
def test_what_is_hidden_is_seen(text: str) -> None:
    tree = ast.parse(text)
    assert list(containers(tree)) or list(in_functions(tree))


def test_frozen_objects_stay_as_they_are() -> None:
    found = {
        f"{name_of(path)}: {ast.literal_eval(node.args[1])}"
        for path in GEN
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and last_name(node) in ("__setattr__", "setattr")
    }
    assert found == SET.keys()


def test_what_a_node_remembers_is_immutable() -> None:
    every = (n for path in GEN for n in ast.walk(tree_of(path)) if isinstance(n, ast.FunctionDef))
    asked = [f for f in every if "remembered" in map(last_name, f.decorator_list)]
    assert len(asked) > 10
    for function in asked:
        assert function.returns is not None
        answer = ast.unparse(function.returns).replace("frozenset[", "")
        assert not [word for word in MUTABLE if word in answer], function.name


# ---------------------------------------------------------------- the world outside


def test_the_environment_says_little() -> None:
    found = set()
    for path in GEN:
        for node in ast.walk(tree_of(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(attr="environ")) | ast.Name("getenv"),
                    args=[ast.Constant(name), *_],
                ):
                    found.add(f"{name_of(path)}: {name}")
                case ast.Subscript(value=ast.Attribute(attr="environ")):
                    found.add(f"{name_of(path)}: {ast.unparse(node.slice)}")
    assert found == ENVIRONMENT.keys()


def test_what_is_caught_is_named() -> None:
    for path in GEN:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ExceptHandler):
                caught = "" if node.type is None else ast.unparse(node.type)
                assert caught not in ("", "Exception", "BaseException"), name_of(path)


# ---------------------------------------------------------------- a workbench


TWICE = """\
def twice(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[i] * 2.0
"""


def test_what_is_known_is_gone_with_the_workbench() -> None:
    plain, bench = from_text(TWICE), Workbench()
    prove(plain, bench.start(plain), bench)
    relations: weakref.ref[Relations] = weakref.ref(bench.values(plain).relations)
    assert relations() is not None and bench.proved(plain)
    del bench
    gc.collect()
    assert relations() is None
    assert not Workbench().proved(plain)


def test_nothing_is_left_of_a_schedule_that_is_gone() -> None:
    spec = specs.load(ROOT / "kernels_spec" / "softmax.yaml")
    dtypes, benches = specs.choices(spec)[0], list[weakref.ref[Relations]]()

    def noted(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        benches.append(weakref.ref(bench.values(plain).relations))

    variants = schedule(spec, dtypes, Cpu(Level.V2), noted, each_step=False)
    gc.collect()
    assert benches and not [kept for kept in benches if kept() is not None]
    assert variants  # which are still there


def test_levels_share_a_workbench() -> None:
    spec = specs.load(ROOT / "kernels_spec" / "softmax.yaml")
    plain, benches = Plain(spec, specs.choices(spec)[0]), set[int]()
    for level in (Level.V2, Level.V3):
        schedule(
            spec,
            plain.dtypes,
            Cpu(level),
            lambda _, state, bench: benches.add(id(bench)),
            each_step=False,
            plain=plain,
        )
    assert benches == {id(plain.bench)}


def test_a_kernel_that_adds_another_zero_is_another() -> None:
    """In Python 0.0 equals -0.0."""
    zero, other = (from_text(TWICE.replace("* 2.0", f"+ {x}")) for x in ("0.0", "-0.0"))
    bench = Workbench()
    prove(zero, bench.start(zero), bench)
    assert zero != other and bench.proved(zero) and not bench.proved(other)


def test_another_process_gets_what_was_proved() -> None:
    """One that is no fork: isl's maps stay where they are."""
    plain, bench = from_text(TWICE), Workbench()
    prove(plain, bench.start(plain), bench)
    there, sent = pickle.loads(pickle.dumps((plain, bench)))
    assert sent.proved(there) == bench.proved(plain) and there is not plain
    assert sent.start(there) == bench.start(plain)
