"""Builds libgoccl.so with Go and the extension with a C++ compiler: pip install --no-build-isolation ./interop/torch"""
import os
import shutil
import subprocess

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("TORCH_GOCCL_SOURCE") or os.path.dirname(os.path.dirname(HERE))  # of goccl


class Build(BuildExtension):
    def run(self):
        if not shutil.which("go"):
            raise RuntimeError("torch_goccl is built with Go: https://go.dev/dl")
        lib = os.path.join(HERE, "torch_goccl", "libgoccl.so")
        subprocess.check_call(["go", "build", "-trimpath", "-buildmode=c-shared", "-o", lib, "./capi"], cwd=ROOT, env=dict(os.environ, CGO_ENABLED="1"))
        super().run()
        for out in self.get_outputs():
            if os.path.dirname(out) != os.path.dirname(lib):
                shutil.copy(lib, os.path.dirname(out))


setup(
    ext_modules=[
        CppExtension(
            "torch_goccl._C",
            ["csrc/module.cpp"],
            include_dirs=[os.path.join(ROOT, "include")],
            library_dirs=[os.path.join(HERE, "torch_goccl")],
            libraries=["goccl"],
            extra_compile_args=["-O1", "-g0"],
            extra_link_args=["-Wl,-rpath,$ORIGIN"],
        )
    ],
    cmdclass={"build_ext": Build.with_options(use_ninja=False)},
)
