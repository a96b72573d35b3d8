"""What a person can mend."""


class ReportError(ValueError):
    """A report cannot be made of what was given; one line says why."""
