"""Install the top-level folders under one import name; everything else is in pyproject.toml."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

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


class WithoutCases(build_py):
    """Leave out the games' ``cases.py``, which are for tests."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if module[1] != "cases"]


setup(packages=packages, package_dir=FOLDERS, cmdclass={"build_py": WithoutCases})
