"""Builds libgoccl.so with Go and a C compiler. A source distribution has the part of goccl that it needs in src."""
import os
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
INSIDE = os.path.join(HERE, "src")
ROOT = INSIDE if os.path.exists(INSIDE) else os.environ.get("TORCH_GOCCL_SOURCE") or os.path.join(HERE, "..", "..", "..")
HEADER = os.path.join(ROOT, "include", "goccl.h")
VERSION = re.search('define GOCCL_VERSION "(.*)"', open(HEADER).read())[1].replace("-dev", ".dev0")


class Build(build_py):
    def run(self):
        super().run()
        if not shutil.which("go"):
            raise RuntimeError("libgoccl is built with Go: https://go.dev/dl")
        to = os.path.join(os.path.abspath(self.build_lib), "libgoccl")
        lib = os.path.join(to, "libgoccl.so.1")
        subprocess.check_call([os.path.join(ROOT, "capi", "build.sh"), lib])
        if shutil.which("strip"):
            subprocess.check_call(["strip", "--strip-unneeded", lib])
        shutil.copy(HEADER, to)
        with open(os.path.join(to, "_version.py"), "w") as f:
            f.write(f'version = "{VERSION}"\n')


class Source(sdist):
    def make_release_tree(self, base, files):
        super().make_release_tree(base, files)
        form = "{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}{{range .CgoFiles}}{{$d}}/{{.}}\n{{end}}{{range .CFiles}}{{$d}}/{{.}}\n{{end}}" \
               "{{range .HFiles}}{{$d}}/{{.}}\n{{end}}{{range .SFiles}}{{$d}}/{{.}}\n{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}\n{{end}}"
        of_module = "{{if .Module}}{{if .Module.Main}}" + form + "{{end}}{{end}}"
        found = set()
        for arch in ("amd64", "arm64"):
            env = dict(os.environ, CGO_ENABLED="1", GOOS="linux", GOARCH=arch)
            found.update(subprocess.check_output(["go", "list", "-deps", "-f", of_module, "./capi"], cwd=ROOT, env=env, text=True).split())
        root = os.path.abspath(ROOT)
        found.update(os.path.join(root, f) for f in ("go.mod", "go.sum", "LICENSE", "include/goccl.h", "capi/build.sh", "capi/libgoccl.map"))
        for f in sorted(found):
            to = os.path.join(base, "src", os.path.relpath(f, root))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(f, to)


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=VERSION, packages=["libgoccl"], cmdclass={"build_py": Build, "sdist": Source, "bdist_wheel": Wheel}, distclass=Binary)
