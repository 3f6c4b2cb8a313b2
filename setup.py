"""Install the top-level folders under one import name; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {
    "llm_games": "llm_games",
    "llm_games.wrappers": "wrappers",
    "llm_games.baselines": "baselines",
    "llm_games.benchmarks": "benchmarks",
}
LEFT_OUT = ["wrappers*", "baselines*", "benchmarks*", "studies*"]
"""Below a folder: the checkout's links, and studies, which a wheel is no place for."""

packages = [*FOLDERS]
for name, folder in FOLDERS.items():
    packages += [f"{name}.{inside}" for inside in find_packages(folder, exclude=LEFT_OUT)]

setup(packages=packages, package_dir=FOLDERS)
