"""Where the data that come with the program lie. Knows nothing of what is in them."""

from __future__ import annotations

from pathlib import Path

from vera_local.errors import UserError

FOLDERS = ("models", "personas", "rubric")


def data_root() -> Path:
    """The absolute folder that holds models/, personas/ and rubric/.

    That is vera_local/_data in an installed copy, the checkout's root otherwise. Raises UserError where
    both are missing.
    """
    package = Path(__file__).resolve().parent
    places = (package / "_data", package.parent)
    for place in places:
        if all((place / folder).is_dir() for folder in FOLDERS):
            return place
    raise UserError(
        f"the folders {', '.join(FOLDERS)} are neither in {places[0]} nor in {places[1]}: install vera-local again"
    )


def is_place(text: str | Path) -> bool:
    """Whether a text is the path of a file or folder; one that no file system could hold is none."""
    try:
        return Path(text).exists()
    except OSError:
        return False
