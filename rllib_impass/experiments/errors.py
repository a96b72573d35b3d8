"""What a person can mend."""


class UsageError(ValueError):
    """What was asked for cannot be meant; the message is one line that says why."""
