"""Builds the extension for the torch that is here, with a C++ compiler. TORCH_GOCCL_EXTENSIONS names a folder of extensions to take in its place."""
import glob
import os
import re
import shutil
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = re.search('define GOCCL_VERSION "(.*)"', open(os.path.join(HERE, "csrc", "goccl.h")).read())[1].replace("-dev", ".dev0")


class Build(build_py):
    def run(self):
        super().run()
        to = os.path.join(self.build_lib, "torch_goccl")
        if made := os.environ.get("TORCH_GOCCL_EXTENSIONS"):
            for f in glob.glob(os.path.join(made, "_C_*.so")):
                shutil.copy(f, to)
            return
        sys.path.insert(0, os.path.join(HERE, "torch_goccl"))
        import build as extension

        extension.build(os.path.join(os.path.abspath(to), extension.name()))


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(
    version=VERSION,
    packages=["torch_goccl", "torch_goccl.csrc"],
    package_dir={"torch_goccl.csrc": "csrc"},
    package_data={"torch_goccl.csrc": ["*"]},
    install_requires=["torch>=2.14", "libgoccl==" + VERSION],
    cmdclass={"build_py": Build},
    distclass=Binary,
)
