"""One file that a bundle reads: its bytes, text and digest. Knows nothing of what the file means."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from vera_local.errors import UserError

LARGEST = 2_000_000_000
"""Bytes of a file of conversations or labels; it is read in one piece."""

LARGEST_OF_A_BUNDLE = 10_000_000
"""Bytes of each file of a bundle; the largest published one is about a hundredth of that."""


@dataclass(frozen=True)
class Source:
    """A file read once, so that its digest belongs to the text that was used."""

    path: Path
    data: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path, largest: int = LARGEST_OF_A_BUNDLE) -> Source:
        """Read `path`; UserError where it cannot be read or has more than `largest` bytes."""
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode) and not S_ISDIR(status.st_mode):
                raise UserError(f"{path} is a device or a pipe, which need not end; make it a plain file.")
            if status.st_size > largest:
                raise UserError(f"{path} has more than {largest // 1_000_000} MB, so it is not read; name another one.")
            return cls(path, path.read_bytes())
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; create it or correct the name.") from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(f"{path} cannot be read ({reason}); make it a readable file.") from None

    @cached_property
    def digest(self) -> str:
        """The sha256 of the bytes, in hexadecimal."""
        return sha256(self.data).hexdigest()

    @cached_property
    def text(self) -> str:
        """The content with line ends as written and without a byte order mark; UserError where it is not UTF-8."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data[: error.start].count(b"\n") + 1
            raise UserError(f"{self.path}, line {line}: not UTF-8 text; save the file as UTF-8.") from None
