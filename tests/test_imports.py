"""Imports point one way; Ray stays out of the maths."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rllib_impass"

# Which of our own packages each one may import.
ALLOWED = {
    "ops": set(),
    "utils": {"ops"},
    "connectors": {"ops"},
    "env": {"ops"},
    "algorithms": {"ops", "utils", "connectors", "env"},
    "experiments": {"ops", "connectors"},
    "reports": set(),
    "cli": {"experiments", "reports"},
}


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path):
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "rllib_impass" and len(parts) > 1 and parts[1] in ALLOWED:
            yield parts[1]


@pytest.mark.parametrize(
    "package", [p.parent.name for p in PACKAGE.glob("*/__init__.py")]
)
def test_imports_point_one_way(package):
    if package in ("__pycache__", "tuned_examples"):
        return
    allowed = ALLOWED[package] | {package}
    for path in (PACKAGE / package).rglob("*.py"):
        assert set(own_imports(path)) <= allowed, path


def test_the_maths_knows_nothing_of_ray():
    for path in (PACKAGE / "ops").glob("*.py"):
        assert not any(m.split(".")[0] == "ray" for m in imported_modules(path)), path


def test_algorithm_folders_have_the_same_files():
    for folder in (PACKAGE / "algorithms").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            name = folder.name
            files = (f"{name}.py", f"{name}_learner.py", f"{name}_rl_module.py")
            for file in (*files, "README.md"):
                assert (folder / file).exists(), folder / file


def test_only_command_line_code_prints():
    for path in PACKAGE.rglob("*.py"):
        if "cli" not in path.parts:
            calls = list(ast.walk(ast.parse(path.read_text())))
            printed = any(
                isinstance(n, ast.Call) and getattr(n.func, "id", "") == "print"
                for n in calls
            )
            assert not printed, path
