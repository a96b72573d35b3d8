"""What the text of an option stands for."""

from typing import Any

from rllib_impass.experiments.errors import UsageError


def names(text: str, flag: str) -> list[str]:
    """Different names, with commas between them."""
    words = [word.strip() for word in text.split(",")]
    if not all(words) or len(set(words)) < len(words):
        raise UsageError(f"{flag} {text!r}: expected different names, with commas")
    return words


def whole_numbers(text: str, flag: str) -> list[int]:
    """Different whole numbers, with commas between them."""
    try:
        return [int(word) for word in names(text, flag)]
    except ValueError:
        raise UsageError(
            f"{flag} {text!r}: expected whole numbers, with commas"
        ) from None


def given(**flags: Any) -> dict[str, Any]:
    """The flags that were given."""
    return {name: value for name, value in flags.items() if value is not None}


def mapping(text: str | None, flag: str) -> dict[str, Any] | None:
    """A mapping written as JSON or YAML."""
    from rllib_impass.experiments.yaml_files import parse_mapping

    return None if text is None else parse_mapping(text, flag)


def settings(config: str | None, assignments: list[str]) -> dict[str, Any]:
    """The settings of --config and, above them, of every --set."""
    from rllib_impass.experiments.spec import merge_settings
    from rllib_impass.experiments.yaml_files import parse_value

    merged = mapping(config, "--config") or {}
    for assignment in assignments:
        path, is_assignment, text = assignment.partition("=")
        if not (is_assignment and all(path.split("."))):
            raise UsageError(
                f"--set {assignment!r}: expected name=value, as in lr=1e-4"
            )
        value = parse_value(text, "--set")
        for name in reversed(path.split(".")):
            value = {name: value}
        merged = merge_settings(merged, value)
    return merged
