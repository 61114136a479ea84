"""Names, purely: NAME -> slug -> folder, branch and tmux session; what is refused; how names are shown safely.

Starts no process and touches no file. The rules of git for refs are those of git-check-ref-format(1).
"""

from __future__ import annotations

import os
import re

from git_wt.errors import WtError

LONGEST = 64
_SEGMENT = r"[A-Za-z0-9._-]+\Z"
_PULL_SHORT = r"(?:#|pr:)([0-9]{1,12})\Z"
_PULL_URL = r"https?://[^/]+/.+?/(?:pull|-/merge_requests|merge_requests|pulls)/([0-9]{1,12})(?:[/?#].*)?\Z"
# Controls, and the characters that reorder or hide text on a terminal (bidi marks, zero width, line separators).
_UNSAFE = "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"

_ADJECTIVES = [
    "amber",
    "azure",
    "brave",
    "brisk",
    "calm",
    "clear",
    "cosy",
    "crisp",
    "dusky",
    "eager",
    "early",
    "fair",
    "fleet",
    "fond",
    "gentle",
    "glad",
    "golden",
    "green",
    "hardy",
    "hazel",
    "ivory",
    "jolly",
    "keen",
    "kind",
    "light",
    "lively",
    "lucky",
    "lunar",
    "mellow",
    "merry",
    "mild",
    "misty",
    "neat",
    "noble",
    "olive",
    "plain",
    "proud",
    "quick",
    "quiet",
    "rapid",
    "ready",
    "rosy",
    "ruby",
    "sage",
    "sharp",
    "shiny",
    "silent",
    "silver",
    "sleek",
    "smart",
    "snowy",
    "solar",
    "spry",
    "steady",
    "still",
    "sunny",
    "swift",
    "tidy",
    "vivid",
    "warm",
    "wise",
    "witty",
    "young",
]
_ANIMALS = [
    "badger",
    "beaver",
    "bison",
    "bear",
    "crane",
    "crow",
    "deer",
    "dingo",
    "dove",
    "eagle",
    "egret",
    "elk",
    "falcon",
    "ferret",
    "finch",
    "fox",
    "gecko",
    "goose",
    "hare",
    "hawk",
    "heron",
    "ibex",
    "ibis",
    "jackal",
    "jay",
    "koala",
    "koi",
    "lark",
    "lemur",
    "lion",
    "llama",
    "lynx",
    "magpie",
    "marten",
    "mink",
    "mole",
    "moose",
    "newt",
    "ocelot",
    "orca",
    "osprey",
    "otter",
    "owl",
    "panda",
    "perch",
    "pika",
    "puffin",
    "quail",
    "rabbit",
    "raven",
    "robin",
    "salmon",
    "seal",
    "shrew",
    "sparrow",
    "stork",
    "swan",
    "tapir",
    "tern",
    "tiger",
    "toad",
    "trout",
    "turtle",
    "vole",
    "walrus",
    "weasel",
    "whale",
    "wolf",
    "wombat",
    "wren",
    "yak",
    "zebra",
]


def why_bad_name(name: str) -> str | None:
    """The rule that NAME breaks, as a sentence part, or None. Source: git-check-ref-format(1)."""
    if not name:
        return "it is empty"
    if len(name) > LONGEST:
        return f"it has {len(name)} characters and {LONGEST} are the most"
    if name.startswith("-"):
        return "it starts with '-'"
    for segment in name.split("/"):
        reason = _why_bad_segment(segment)
        if reason:
            return reason
    return None


def _why_bad_segment(segment: str) -> str | None:
    if not segment:
        return "it starts or ends with '/' or has '//' in it"
    if segment in (".", ".."):
        return f"'{segment}' may not stand between slashes"
    if not re.match(_SEGMENT, segment):
        return "only letters, digits, '.', '_', '-' and '/' are allowed"
    if segment.startswith(".") or segment.endswith("."):
        return "a part starts or ends with '.'"
    if ".." in segment:
        return "it has '..' in it"
    if segment.endswith(".lock"):
        return "a part ends with '.lock'"
    if segment.startswith("-"):
        return "a part starts with '-'"
    return None


def require_name(name: str) -> str:
    """NAME itself. Raises `invalid-name` (exit code 2) that names the rule broken."""
    reason = why_bad_name(name)
    if reason:
        raise WtError(
            "invalid-name",
            f"cannot use {quoted(name)} as a name: {reason}",
            hint="use letters, digits, '.', '_', '-' with '/' between parts, for instance: git wt enter fix/login",
        )
    return name


def slug(name: str) -> str:
    """The folder-safe form of NAME: `user/feature` -> `user+feature` (seed: worktree isolation)."""
    return name.replace("/", "+")


def random_name() -> str:
    """A readable name that is most likely free: `calm-otter-3f9c`."""
    pick = os.urandom(4)
    adjective = _ADJECTIVES[pick[0] % len(_ADJECTIVES)]
    return f"{adjective}-{_ANIMALS[pick[1] % len(_ANIMALS)]}-{pick[2]:02x}{pick[3]:02x}"


def parse_pull_request(text: str) -> int | None:
    """The number in `#123`, `pr:123` or a pull request's web address, or None."""
    match = re.match(_PULL_SHORT, text) or re.match(_PULL_URL, text)
    return int(match.group(1)) if match else None


def short_ref(ref: str) -> str:
    """A ref as people write it: `origin/main` for `refs/remotes/origin/main`."""
    for prefix in ("refs/heads/", "refs/remotes/", "refs/tags/", "refs/git-wt/"):
        if ref.startswith(prefix):
            return ref[len(prefix) :]
    return ref


def fill(template: str, *, key: str, **values: str) -> str:
    """A `directory` or `branch` template with its fields put in. Raises `config` on an unknown field."""

    def value(match: re.Match[str]) -> str:
        field = match.group(1)
        if field not in values:
            known = ", ".join("{" + name + "}" for name in values)
            raise WtError("config", f"cannot use {key} = {quoted(template)}: '{{{field}}}' is not one of {known}")
        return values[field]

    return re.sub(r"\{([^{}]*)\}", value, template)


def tmux_name(repository: str, branch: str, identity: str, taken: frozenset[str]) -> str:
    """The tmux session's name: `<repo>_<branch>` in `[A-Za-z0-9_-]`, with 6 hex digits of a hash of `identity` when a
    character was replaced or the name is in `taken`."""
    wanted = f"{repository}_{branch}"
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", wanted)
    if safe == wanted and safe not in taken and not safe.startswith("-"):
        return safe
    from hashlib import sha256

    digest = sha256(os.fsencode(identity)).hexdigest()
    stem = safe.lstrip("-") or "wt"
    for length in range(6, len(digest)):
        name = f"{stem}-{digest[:length]}"
        if name not in taken:
            return name
    raise AssertionError("every hashed name is taken")


def shown(text: str) -> str:
    """`text` for a terminal: control, bidi and undecodable characters become visible escapes."""
    return text if text.isascii() and text.isprintable() else re.sub(_UNSAFE, _escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def quoted(text: str) -> str:
    """`text` in single quotes for a message, safe to print."""
    return f"'{shown(text)}'"


def pasteable(text: str) -> str:
    """`text` as one word of a shell command in a hint: quoted only where a shell needs it."""
    if re.match(r"[A-Za-z0-9_./+:@%=,-]+\Z", text) and not text.startswith("="):
        return text
    if re.search(_UNSAFE, text):
        return "$'" + re.sub(r"(['\\])", r"\\\1", text).translate({10: "\\n", 9: "\\t", 13: "\\r"}) + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `2 branches`."""
    if count == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    stem = noun[:-1] + "ie" if noun.endswith("y") and noun[-2] not in "aeiou" else noun
    return f"{count} {stem}{ending}"
