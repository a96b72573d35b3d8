"""What a person can mend."""


class UsageError(ValueError):
    """What was asked for cannot be meant; the message is one line that says why."""


def one_line(error: BaseException) -> str:
    """Type and text of an error, without line breaks."""
    return " ".join(f"{type(error).__name__}: {error}".split())
