"""Install the top-level folders under one import name; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {
    "llm_games": "llm_games",
    "llm_games.wrappers": "wrappers",
    "llm_games.baselines": "baselines",
    "llm_games.benchmarks": "benchmarks",
}
LINKS = ["wrappers*", "baselines*", "benchmarks*"]  # the checkout's links: do not find them twice

packages: list[str] = []
for name, folder in FOLDERS.items():
    inside = find_packages(folder, exclude=LINKS if name == "llm_games" else ())
    packages += [name, *(f"{name}.{sub}" for sub in inside)]

setup(packages=packages, package_dir=FOLDERS)
