"""The word that was probably meant."""

import difflib
from collections.abc import Iterable

from rllib_impass.experiments.errors import UsageError


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one, if any is."""
    close = difflib.get_close_matches(str(word), known, n=1)
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint to append to a message; empty where nothing is close."""
    suggestion = closest(word, known)
    return "" if suggestion is None else f"; did you mean {suggestion!r}?"


def refuse_unknown(words: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raises UsageError for the first word that is not known."""
    known = list(known)
    for word in words:
        if word not in known:
            raise UsageError(
                f"{where} has no setting {word!r}{did_you_mean(word, known)}"
            )
