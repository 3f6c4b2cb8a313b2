"""Install the top-level folders under one import name; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {
    "llm_games": "llm_games",
    "llm_games.wrappers": "wrappers",
    "llm_games.baselines": "baselines",
    "llm_games.benchmarks": "benchmarks",
}
LINKS = ["wrappers*", "baselines*", "benchmarks*"]  # the checkout's links: do not find them twice

packages = [*FOLDERS]
for name, folder in FOLDERS.items():
    packages += [f"{name}.{inside}" for inside in find_packages(folder, exclude=LINKS)]

setup(packages=packages, package_dir=FOLDERS)
