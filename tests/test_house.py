"""The house rules of docs/architecture.md, checked with `ast`; every rule is shown to catch a breach."""

import ast
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

import git_wt

# From the ground up. A room is a module or a package right below git_wt; "" is the package's own __init__.
# Three floors have a landing: everything may use `errors` and `value`, `files` and `trees` ask `proc`, and `__main__`
# calls `cli`.
FLOORS = (
    ("", "errors", "value"),
    ("model", "naming"),
    ("proc", "terminal"),
    ("files", "trees"),
    ("git", "tmux", "external", "config", "trust", "marker", "journal"),
    ("worktrees", "setup", "sessions", "hooked"),
    ("flows",),
    ("render",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
THIRD_PARTY = {"plumbum": ("external", "setup"), "libtmux": ("tmux",), "tomli": ("config",), "tqdm": ("setup",)}
STARTS_PROCESSES = ("subprocess", "multiprocessing", "pty", "concurrent.futures", "asyncio")
STARTS_PROCESSES_IN_OS = ("system", "popen", "fork", "forkpty", "exec", "spawn", "posix_spawn")
LINES_OF_A_FILE = 320
LINES_OF_A_FUNCTION = 45
EMPTY_WORDS = ("util", "utils", "helper", "helpers", "manager", "misc", "common")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One source file of the package."""

    name: str  # as imported: git_wt.git.refs, of a package without .__init__
    is_package: bool
    source: str

    @property
    def room(self) -> str:
        return room_of(self.name)

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)


Rule = Callable[[list[Module]], Iterator[str]]


def load_modules() -> list[Module]:
    """Every module of the installed package."""
    package = os.path.dirname(git_wt.__file__)
    modules = []
    for folder, _, names in os.walk(package):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                below = os.path.relpath(path, os.path.dirname(package))[: -len(".py")].split(os.sep)
                is_package = below[-1] == "__init__"
                with open(path, encoding="utf-8") as file:
                    modules.append(Module(".".join(below[:-1] if is_package else below), is_package, file.read()))
    return modules


def every_module_has_a_floor(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if floor_of(module.room) is None:
            yield f"{module.name}: on no floor; give it one here and in docs/architecture.md"


def imports_go_down(modules: list[Module]) -> Iterator[str]:
    names = {module.name for module in modules}
    for module in modules:
        for line, target in imported(module, names):
            if target.split(".")[0] != "git_wt":
                continue
            room = room_of(target)
            here, there = floor_of(module.room), floor_of(room)
            if here is None or there is None or room == module.room:
                continue
            if there > here:
                yield f"{module.name}:{line}: imports {target} from a higher floor"
            elif there == here and room:
                yield f"{module.name}:{line}: imports {target} from its own floor"


def third_party_stays_home(modules: list[Module]) -> Iterator[str]:
    names = {module.name for module in modules}
    for module in modules:
        for line, target in imported(module, names):
            homes = THIRD_PARTY.get(target.split(".")[0])
            if homes is not None and module.room not in homes:
                yield f"{module.name}:{line}: {target} belongs in {' and '.join(homes)}"


def third_party_waits(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for node in run_at_import(module.tree.body):
            for target in targets(module, node):
                if target.split(".")[0] in THIRD_PARTY:
                    yield f"{module.name}:{node.lineno}: {target} is imported at module level"


def only_proc_starts_processes(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if module.room == "proc":
            continue
        for node in ast.walk(module.tree):
            for target in targets(module, node):
                if starts_processes(target):
                    yield f"{module.name}:{line_of(node)}: {target} starts processes; that is for proc"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called = f"{node.value.id}.{node.attr}"
                if called.startswith(("os.", "posix.")) and starts_processes(called):
                    yield f"{module.name}:{node.lineno}: {called} starts processes; that is for proc"


def no_shell_in_between(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.keyword) or node.arg != "shell":
                continue
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield f"{module.name}:{node.value.lineno}: shell="


def public_things_are_documented(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if module.source.strip() and ast.get_docstring(module.tree) is None:
            yield f"{module.name}: does not open with what it owns"
        for function in public_functions(module.tree):
            if ast.get_docstring(function) is None:
                yield f"{module.name}:{function.lineno}: {function.name} has no docstring"


def things_stay_small(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        lines = len(module.source.splitlines())
        if lines >= LINES_OF_A_FILE:
            yield f"{module.name}: {lines} lines"
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines >= LINES_OF_A_FUNCTION:
                    yield f"{module.name}:{node.lineno}: {node.name} has {lines} lines"


def names_say_something(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if module.name.split(".")[-1] in EMPTY_WORDS:
            yield f"{module.name}: says nothing"
        for node in ast.walk(module.tree):
            if isinstance(node, Function) and node.name.lstrip("_").startswith("get_"):
                yield f"{module.name}:{node.lineno}: {node.name}: find_, require_, parse_ or load_?"


RULES: tuple[Rule, ...] = (
    every_module_has_a_floor,
    imports_go_down,
    third_party_stays_home,
    third_party_waits,
    only_proc_starts_processes,
    no_shell_in_between,
    public_things_are_documented,
    things_stay_small,
    names_say_something,
)

BREACHES: dict[Rule, list[tuple[str, str]]] = {
    every_module_has_a_floor: [("attic", "'''Doc.'''"), ("git_extra.refs", "'''Doc.'''")],
    imports_go_down: [
        ("git.refs", "import git_wt.render"),
        ("git.refs", "from git_wt import render"),
        ("git.refs", "from git_wt.commands.enter import run"),
        ("git.refs", "from git_wt.tmux import survey"),
        ("git.refs", "from ..worktrees import survey"),
        ("git.refs", "def late():\n    from git_wt.flows import enter"),
        ("worktrees", "from . import sessions"),
        ("model", "from git_wt.naming import slug"),
        ("errors", "from git_wt.naming import slug"),
        ("cli", "from git_wt.__main__ import main"),
    ],
    third_party_stays_home: [
        ("git.refs", "def late():\n    import plumbum"),
        ("setup.run", "def late():\n    from libtmux import Server"),
        ("tmux", "def late():\n    import tomli"),
    ],
    third_party_waits: [
        ("external", "import plumbum"),
        ("external", "from plumbum.cmd import ls"),
        ("config", "try:\n    import tomli\nexcept ImportError:\n    pass"),
        ("tmux", "class A:\n    import libtmux"),
        ("tmux", "if True:\n    with x:\n        import libtmux"),
    ],
    only_proc_starts_processes: [
        ("git.refs", "import subprocess"),
        ("git.refs", "def late():\n    from subprocess import run"),
        ("tmux", "import os\nos.execvp('tmux', [])"),
        ("tmux", "import os\nos.posix_spawnp('tmux', [], {})"),
        ("tmux", "from os import fork"),
        ("external", "import os\nos.system('x')"),
        ("flows.agent", "import asyncio.subprocess"),
    ],
    no_shell_in_between: [("proc.run", "Popen('x', shell=True)"), ("proc.run", "Popen('x', shell=flag)")],
    public_things_are_documented: [
        ("render", "import os"),
        ("render", "'''Doc.'''\ndef as_text(): pass"),
        ("render", "'''Doc.'''\nclass Table:\n    def rows(self): pass"),
        ("render", "'''Doc.'''\nif True:\n    async def as_text(): pass"),
    ],
    things_stay_small: [
        ("render", "x = 1\n" * LINES_OF_A_FILE),
        ("render", "def f():\n" + "    x = 1\n" * (LINES_OF_A_FUNCTION - 1)),
    ],
    names_say_something: [("git.utils", "'''Doc.'''"), ("git.refs", "def get_refs(): pass")],
}

ALLOWED: dict[Rule, list[tuple[str, str]]] = {
    every_module_has_a_floor: [("git.refs", ""), ("__main__", ""), ("", "")],
    imports_go_down: [
        ("__main__", "from git_wt import cli"),
        (
            "git.refs",
            "from git_wt.git import parse\nfrom . import parse\nfrom git_wt.proc.run import capture",
        ),
        ("cli", "from git_wt import __version__"),
        ("commands.enter", "from git_wt.flows import enter"),
    ],
    third_party_stays_home: [
        ("tmux", "def late():\n    import libtmux"),
        ("setup.run", "def late():\n    import plumbum"),
    ],
    third_party_waits: [
        ("tmux", "def late():\n    import libtmux"),
        ("tmux", "if TYPE_CHECKING:\n    import libtmux"),
    ],
    only_proc_starts_processes: [
        ("proc.run", "import subprocess"),
        ("git.refs", "import os\nos.system_name = os.path"),
    ],
    no_shell_in_between: [("proc.run", "Popen('x', shell=False)")],
    public_things_are_documented: [
        ("render", "'''Doc.'''\ndef _row(): pass\nclass _Row:\n    def cells(self): pass"),
        ("render", "'''Doc.'''\ndef rows():\n    '''Doc.'''\n    def cell(): pass"),
    ],
    things_stay_small: [("render", "def f():\n" + "    x = 1\n" * (LINES_OF_A_FUNCTION - 2))],
    names_say_something: [("git.refs", "def find_refs(): pass")],
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_house_rule(rule: Rule) -> None:
    assert list(rule(load_modules())) == []


@pytest.mark.parametrize(
    ("rule", "room", "source"),
    [(rule, room, source) for rule in RULES for room, source in BREACHES[rule]],
)
def test_house_rule_catches_a_breach(rule: Rule, room: str, source: str) -> None:
    assert len(list(rule(with_all_floors(room, source)))) == 1


@pytest.mark.parametrize(
    ("rule", "room", "source"),
    [(rule, room, source) for rule in RULES for room, source in ALLOWED[rule]],
)
def test_house_rule_allows(rule: Rule, room: str, source: str) -> None:
    assert list(rule(with_all_floors(room, source))) == []


def with_all_floors(name: str, source: str) -> list[Module]:
    """One module to judge, among an empty one for each room."""
    judged = Module(f"git_wt.{name}".rstrip("."), False, source)
    rooms = {f"git_wt.{room}".rstrip(".") for rooms in FLOORS for room in rooms} - {judged.name}
    return [judged, *(Module(room, True, "") for room in sorted(rooms))]


def room_of(name: str) -> str:
    """The room that a module of git_wt is in or is."""
    return [*name.split("."), ""][1]


def floor_of(room: str) -> int | None:
    """The number of a room's floor, the ground floor being 0."""
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)


def imported(module: Module, names: set[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a module imports anywhere, also inside functions."""
    for node in ast.walk(module.tree):
        for target in targets(module, node):
            known = target in names or target.split(".")[0] != "git_wt"
            yield line_of(node), target if known else target.rpartition(".")[0]


def targets(module: Module, node: ast.AST) -> Iterator[str]:
    """What an import statement names, absolute and with the imported name; nothing for other nodes."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
            above = package[: len(package) - node.level + 1]
            base = ".".join([*above, base]).rstrip(".")
        yield from (f"{base}.{alias.name}" for alias in node.names)


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that importing a module runs: not function bodies, not what only type checkers read."""
    for node in body:
        yield node
        if isinstance(node, Function) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            continue
        for inner in ("body", "orelse", "finalbody"):
            yield from run_at_import(getattr(node, inner, []))
        for handler in getattr(node, "handlers", []):
            yield from run_at_import(handler.body)


def starts_processes(name: str) -> bool:
    """Whether a module or function of the standard library starts processes."""
    module, _, function = name.rpartition(".")
    if module in ("os", "posix"):
        return function in STARTS_PROCESSES_IN_OS or function.startswith(("exec", "spawn", "posix_spawn"))
    return any(name == starter or name.startswith(f"{starter}.") for starter in STARTS_PROCESSES)


def public_functions(tree: ast.Module) -> Iterator[Function]:
    """Functions and methods that others may call: nothing with a leading underscore, nothing inside those."""
    yield from (
        node
        for node in run_at_import([node for node in tree.body if not is_private(node)])
        if isinstance(node, Function) and not is_private(node) and not is_overload(node)
    )


def is_private(node: ast.stmt) -> bool:
    """Whether a function or class is not for others."""
    return isinstance(node, Function | ast.ClassDef) and node.name.startswith("_")


def is_overload(function: Function) -> bool:
    """Whether a function is only a signature for type checkers."""
    return any("overload" in ast.dump(decorator) for decorator in function.decorator_list)


def line_of(node: ast.AST) -> int:
    """The line that a node starts on."""
    return int(getattr(node, "lineno", 0))
