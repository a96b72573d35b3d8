"""The tuned files that come with the package."""

import dataclasses
import re
from importlib import resources
from pathlib import Path

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.suggestions import did_you_mean
from rllib_impass.experiments.yaml_files import read_yaml

_FACT = re.compile(r"# (Status|Expected|Budget): (.+)")


@dataclasses.dataclass(frozen=True)
class Example:
    """A tuned file and what its first comment says of it.

    Attributes:
        id: its name, without folder and ending.
        path: where it is.
        run: the algorithm.
        env: the environment.
        status: "tuned" or "to be tuned".
        expected: the result to expect.
        budget: env steps and wall time.
    """

    id: str
    path: Path
    run: str
    env: str
    status: str
    expected: str
    budget: str


def examples_folder() -> Path:
    """Where the tuned files are: in the package, or beside it in a checkout."""
    package = Path(str(resources.files("rllib_impass")))
    shipped = package / "tuned_examples"
    return shipped if shipped.is_dir() else package.parent / "tuned_examples"


def list_examples() -> list[Example]:
    """Every tuned file, by algorithm and environment."""
    return [_example(path) for path in sorted(examples_folder().rglob("*.yaml"))]


def find_example(example_id: str) -> Example:
    """The tuned file of this name; raises UsageError if there is none."""
    examples = {example.id: example for example in list_examples()}
    if example_id not in examples:
        hint = did_you_mean(example_id, examples) or "; see `rllib example list`"
        raise UsageError(f"there is no example {example_id!r}{hint}")
    return examples[example_id]


def tuned_example(run: str, env: str) -> Example | None:
    """The tuned file of an algorithm for an environment, if there is one."""
    words = re.findall(r"[A-Z][a-z]+", env.split("-")[0])
    start = "_".join(words).lower()
    for example in list_examples():
        is_for_both = example.run == run and example.env == env
        if is_for_both and example.path.stem == f"{start}_{example.path.parent.name}":
            return example
    return None


def _example(path: Path) -> Example:
    (entry,) = read_yaml(path).values()
    facts = dict(
        match.groups()
        for line in path.read_text().splitlines()
        if (match := _FACT.fullmatch(line))
    )
    return Example(
        id=path.stem,
        path=path,
        run=entry["run"],
        env=entry["env"],
        status=facts["Status"],
        expected=facts["Expected"],
        budget=facts["Budget"],
    )
