"""Builds the extension for the torch that is here, with a C++ compiler: python -m torch_goccl.build [FILE]"""
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def name():
    """The extension for this torch and this Python, such as "_C_2_15.cpython-311-x86_64-linux-gnu.so"."""
    return "_C_" + "_".join(torch.__version__.split(".")[:2]) + sysconfig.get_config_var("EXT_SUFFIX")


def kept():
    """Where an extension is that was built on this machine, which none is for that came with the package."""
    import torch_goccl

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "torch_goccl", torch_goccl.__version__, torch.__version__.replace("+", "-"), name())


def build(out):
    """Builds the extension as the file out."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        raise ImportError(f"torch_goccl: this package has no extension for torch {torch.__version__} with Python {sysconfig.get_python_version()}, "
                          "and there is no C++ compiler to build one with: install g++, or a torch that it has one for: " + ", ".join(shipped()))
    source = os.path.join(HERE, "csrc")
    if not os.path.exists(source):  # a checkout
        source = os.path.join(os.path.dirname(HERE), "csrc")
    from torch.utils.cpp_extension import include_paths, library_paths  # which takes long to import

    os.makedirs(os.path.dirname(out), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(out)) as tmp:  # another rank may build it, too
        made = os.path.join(tmp, "made.so")
        command = [*compiler.split(), "-std=c++20", "-O1", "-g0", "-fPIC", "-shared", "-w", "-DTORCH_API_INCLUDE_EXTENSION_H",
                   "-DTORCH_EXTENSION_NAME=" + name().split(".")[0], "-D_GLIBCXX_USE_CXX11_ABI=%d" % torch.compiled_with_cxx11_abi(),
                   "-I" + sysconfig.get_path("include"), *("-isystem" + p for p in include_paths()), "-o", made, os.path.join(source, "module.cpp"),
                   *("-L" + p for p in library_paths()), "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise ImportError(f"torch_goccl: its extension cannot be built for torch {torch.__version__}: {compiler} says\n{done.stdout[-2000:]}")
        os.replace(made, out)


def shipped():
    """The versions of torch that this package has an extension for."""
    return sorted(".".join(f.split(".")[0].split("_")[2:]) for f in os.listdir(HERE) if f.startswith("_C_") and f.endswith(sysconfig.get_config_var("EXT_SUFFIX")))


if __name__ == "__main__":
    build(os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else kept())
