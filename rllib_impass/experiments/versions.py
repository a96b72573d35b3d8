"""The installed versions of what decides a result."""

import importlib.metadata

PACKAGES = ("rllib_impass", "ray", "torch", "gymnasium", "mujoco", "envpool", "numpy")


def versions() -> dict[str, str]:
    """Package to version, for those that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            # EnvPool is an extra.
            continue
    return found
