"""The only module that formats: a Result as text or as JSON, an error in git's style, colours, columns.

stdout is the answer, stderr the narration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from git_wt.errors import WtError
from git_wt.model import Json, Result
from git_wt.naming import pasteable, shown

_MOVING = ("enter", "exit", "cd")


def as_text(result: Result, *, moved: bool, person: bool, width: int, colour: bool) -> str:
    """What goes to stdout. `moved`: the shell integration moves the caller; `person`: stdout is a terminal."""
    if result.kind in _MOVING:
        return _moving(result, moved=moved, person=person)
    if result.kind == "remove":
        return "" if moved else _removed(result.data)
    return _TEXT[result.kind](result.data, width, colour)


def sentences(result: Result, *, moved: bool = True) -> str:
    """What goes to stderr: the notes, and the message where stdout is not for it."""
    found = [*result.notes]
    if result.kind in ("enter", "exit", "cd", "attach") and moved and result.data.get("message"):
        found.append(str(result.data["message"]))
    if result.kind == "remove" and moved:
        found += _removed(result.data).splitlines()
    return "".join(line if line.startswith("hint: ") else f"git-wt: {line}" for line in map(_line, found))


def as_json(result: Result, tool: str) -> str:
    """The one document of `--json`: pure ASCII, so that no path is lost (undecodable bytes are lone surrogates)."""
    import json

    if result.code and result.kind == "remove":
        errors = [{key: item[key] for key in ("code", "message", "blockers")} for item in result.data["kept"]]
        return json.dumps({"success": False, "tool": tool, "data": result.data, "errors": errors}, indent=2) + "\n"
    return json.dumps({"success": True, "tool": tool, "data": result.data}, indent=2) + "\n"


def error_as_json(error: WtError, tool: str) -> str:
    """The one document of `--json` for a failure."""
    import json

    details: Json = {"code": error.code, "message": error.message}
    if error.hint:
        details["hint"] = error.hint
    return (
        json.dumps({"success": False, "tool": tool, "data": None, "errors": [{**details, **error.extra}]}, indent=2)
        + "\n"
    )


def error_as_text(error: WtError, *, colour: bool) -> str:
    """git's style: `git-wt: cannot …`, what stands in the way with examples, then `hint: …`."""
    lines = [_paint(f"git-wt: {error.message}", "31", colour)]
    blockers = error.extra.get("blockers")
    for blocker in blockers if isinstance(blockers, list) else ():
        examples = [shown(str(example)) for example in blocker["examples"][:3]]
        more = blocker["count"] - len(examples)
        lines.append(f"  {blocker['code']}: {', '.join(examples)}" + (f" and {more} more" if more > 0 else ""))
    if error.hint:
        lines.append(_paint(f"hint: {error.hint}", "33", colour))
    return "\n".join(lines) + "\n"


def _moving(result: Result, *, moved: bool, person: bool) -> str:
    if moved:
        return ""
    if result.kind in ("enter", "cd") and not person:
        return f"{result.data.get('worktreePath') or result.data.get('path')}\n"
    return _line(str(result.data["message"]))


def _line(text: str) -> str:
    return shown(text) + "\n"


def _removed(data: Json) -> str:
    undo = list(data["undo"])
    lines = []
    for item in data["removed"]:
        branch = f" and branch '{shown(item['branch'])}'" if item["branchDeleted"] else ""
        back = f" (git wt undo {undo.pop(0)})" if undo else " for good"
        lines.append(f"removed worktree '{shown(item['name'])}'{branch}{back}\n")
    return "".join(lines)


def _path(data: Json, width: int, colour: bool) -> str:
    del width, colour
    return f"{data['path']}\n"


def _text(data: Json, width: int, colour: bool) -> str:
    del width, colour
    return str(data["text"])


def _message(data: Json, width: int, colour: bool) -> str:
    del width, colour
    return _line(str(data["message"])) if data.get("message") else ""


def _nothing(data: Json, width: int, colour: bool) -> str:
    del data, width, colour
    return ""


def _trash(data: Json, width: int, colour: bool) -> str:
    rows = [
        [entry["id"], shown(entry["name"]), shown(entry.get("worktreeBranch", "")), _age(entry["age"])]
        for entry in data["trash"]
    ]
    return _table(["ID", "NAME", "BRANCH", "REMOVED"], rows, width, colour) if rows else "the trash is empty\n"


def _list(data: Json, width: int, colour: bool) -> str:
    rows = [_list_row(row) for row in data["worktrees"]]
    heads = ["", "NAME", "BRANCH", "STATE", "±BASE", "AGE", "TMUX", "BLOCKED BY"]
    return _table(heads, rows, width, colour)


def _list_row(row: Json) -> list[str]:
    blockers = row.get("blockers")
    why = ", ".join(_brief(blocker) for blocker in blockers) if blockers else ""
    return [
        "*" if row["current"] else " ",
        shown(row["name"]),
        shown(row.get("branch") or ("(bare)" if row["head"] is None else "(detached)")),
        _state(row),
        _distance(row),
        _age(time.time() - row["createdAt"]) if "createdAt" in row else "",
        shown(row.get("tmuxSessionName", "")),
        shown(why),
    ]


def _brief(blocker: Json) -> str:
    if blocker["code"] == "occupied":
        return f"occupied: {blocker['examples'][0]}"
    return blocker["code"] if blocker["count"] == 1 else f"{blocker['code']} ({blocker['count']})"


def _state(row: Json) -> str:
    """Symbols: + staged, ~ modified, ? untracked, ! conflicted, each with its number; words for the rest."""
    if row["missing"]:
        return "missing"
    words = [row["operation"]] if "operation" in row else []
    changes = row.get("changes")
    if changes:
        marks = (("staged", "+"), ("modified", "~"), ("untracked", "?"), ("conflicted", "!"))
        words += [f"{mark}{changes[key]}" for key, mark in marks if changes[key]]
    if "locked" in row:
        words.append("locked")
    if row.get("upstream", {}).get("gone"):
        words.append("gone")
    if row.get("merged") in ("ancestor", "squash"):
        words.append("merged")
    return " ".join(words) or ("clean" if changes else "")


def _distance(row: Json) -> str:
    ahead, behind = row.get("ahead"), row.get("behind")
    return " ".join([f"↑{ahead}"] * bool(ahead) + [f"↓{behind}"] * bool(behind))


def permissions(grants: Sequence[Json]) -> str:
    """What would be or is allowed to run, as it is: every command in full, the scripts by the hash of their content."""
    lines = []
    for grant in grants:
        lines.append(f"{grant['event']}, from {shown(grant['place'])}, for {shown(grant['repository'])}:")
        for number, command in enumerate(grant["commands"], 1):
            run = command["run"]
            first, *more = run.split("\n") if isinstance(run, str) else [" ".join(map(pasteable, run))]
            where = f"   (in {shown(command['folder'])})" if "folder" in command else ""
            lines.append(f"  {number}. {shown(first)}{where}")
            lines += [f"     {shown(line)}" for line in more]
        lines += [f"  with {shown(name)}={shown(value)}" for name, value in grant["env"].items()]
        lines += [f"  script {shown(path)}, sha256 {content}" for path, content in grant["scripts"].items()]
    return "".join(f"{line}\n" for line in lines)


def _trust(data: Json, width: int, colour: bool) -> str:
    del width, colour
    return permissions(data.get("allowed") or data.get("revoked") or []) + _line(str(data["message"]))


def _trusted(data: Json, width: int, colour: bool) -> str:
    del width, colour
    return permissions(data["trusted"]) or _line(str(data["message"]))


def _config(data: Json, width: int, colour: bool) -> str:
    """Every setting with origin and value; then the set-up file in use."""
    import json

    rows = [[key, shown(item["origin"]), json.dumps(item["value"])] for key, item in data["settings"].items()]
    used, others = data["setupFile"], data["otherSetupFiles"]
    lines = _table(["SETTING", "FROM", "VALUE"], rows, width, colour)
    if used:
        lines += f"set-up commands: {shown(used['path'])} ({used['tool']})\n"
    else:
        lines += "set-up commands: none\n"
    return lines + "".join(f"not used: {shown(file['path'])} ({file['tool']})\n" for file in others)


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, colour: bool) -> str:
    """Columns that are empty are left out; in a narrow terminal the widest are shortened."""
    used = [n for n, head in enumerate(heads) if not head or any(row[n] for row in rows)]
    sizes = [max(len(heads[n]), *(len(row[n]) for row in rows)) for n in used]
    while width and sum(sizes) + 2 * len(sizes) > width and max(sizes) > _NARROWEST:
        sizes[sizes.index(max(sizes))] -= 1
    lines = []
    for number, row in enumerate([heads, *rows]):
        cells = [_fitted(row[n], size) for n, size in zip(used, sizes, strict=True)]
        line = (" ".join(cells[:2]) + "".join("  " + cell for cell in cells[2:])).rstrip()
        lines.append(_paint(line, "1" if number == 0 else "36" if row[0] == "*" else "", colour))
    return "\n".join(lines) + "\n"


_NARROWEST = 6


def _fitted(text: str, size: int) -> str:
    return text.ljust(size) if len(text) <= size else text[: size - 1] + "…"


def _paint(text: str, style: str, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour and style else text


def _setup(data: Json, width: int, colour: bool) -> str:
    del width  # a reason that is cut off helps nobody
    rows = [[step["step"], step["status"], shown(step["detail"])] for step in data["setup"]]
    return _table(["STEP", "STATUS", "DETAIL"], rows, 0, colour)


_TEXT: dict[str, Callable[[Json, int, bool], str]] = {
    "path": _path,
    "text": _text,
    "list": _list,
    "trash": _trash,
    "setup": _setup,
    "undo": _message,
    "empty": _message,
    "attach": _nothing,
    "quiet": _nothing,
    "trust": _trust,
    "trusted": _trusted,
    "config": _config,
}
