"""`NamedTuple` for this program: the same to read, to type-check and to use, but cheap to define.

`typing` and `collections.namedtuple` cost 7 of the 30 ms that a whole command may take, since they compile source text
for each class. Fields are inherited by nothing and have defaults as usual.
"""

from __future__ import annotations

from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class NamedTuple(tuple):
        """A tuple whose items have names: `_replace`, `_asdict`, `_fields` as in the standard library."""

        __slots__ = ()
        _fields = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls._defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
            for index, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(index)))

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                known = {**cls._defaults, **dict(zip(cls._fields, values, strict=False)), **named}
                missing = [name for name in cls._fields if name not in known]
                if missing or len(known) != len(cls._fields) or len(values) > len(cls._fields):
                    wrong = missing or sorted(set(known) - set(cls._fields))
                    raise TypeError(f"{cls.__name__}: missing, unknown or too many fields: {wrong}")
                values = [known[name] for name in cls._fields]
            return tuple.__new__(cls, values)

        def _replace(self, **changes):
            return type(self)(**{**self._asdict(), **changes})

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"
