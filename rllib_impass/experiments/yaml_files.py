"""YAML as people mean it: 1.2 floats, no key twice, nothing executed."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from rllib_impass.experiments.errors import UsageError


def read_yaml(path: Path) -> Any:
    """Reads a YAML file; raises UsageError with file, line and what is wrong."""
    try:
        content = yaml.load(path.read_text(), Loader=_Loader)
        # An alias may lead back into what it is a part of; nobody could walk that.
        json.dumps(content, default=str, skipkeys=True)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from None
    return content


def parse_value(text: str, where: str) -> Any:
    """Reads the value of a flag, which is YAML and therefore may be JSON."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"{where} {text!r}: {' '.join(str(error).split())}") from None


def parse_mapping(text: str, where: str) -> dict[str, Any]:
    """Reads the value of a flag that must be a mapping such as ``{"lr": 1e-4}``."""
    value = parse_value(text, where)
    if not isinstance(value, dict):
        raise UsageError(f"{where} {text!r}: expected a mapping such as '{{key: 1}}'")
    return value


class _Loader(yaml.SafeLoader):
    """Python objects are refused by SafeLoader, repeated keys by us."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        # A merge key, `<<: *anchor`, is for the parent class.
        keys = [
            self.construct_object(key, deep=True)
            for key, _ in node.value
            if key.tag != "tag:yaml.org,2002:merge"
        ]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(
                None, None, f"{', '.join(twice)} is there twice", node.start_mark
            )
        return super().construct_mapping(node, deep)


# YAML 1.1, PyYAML's, reads `1e-4` as text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)
