#!/usr/bin/env python3
"""compile.py DIR SOURCE.. [-check]: compiles each SOURCE.cu to SOURCE.ptx beside it with the NVRTC in DIR (fetch.sh), and has
ptxas compile that for all devices that there are. With -check it compares, and writes nothing.

The PTX is for compute capability 7.0. NVRTC gives it the newest version of PTX that it knows, which older drivers refuse; the
instructions are those of PTX 6.0, and so is the version that is written. ptxas must take it so."""
import ctypes, glob, hashlib, os, re, subprocess, sys, tempfile

OPTIONS = [b"--gpu-architecture=compute_70", b"--fmad=false", b"--std=c++14"]
TARGETS = "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120".split()
VERSION = "6.0"


def compile(lib, path):
    """compile returns the PTX of a file, without its comments."""
    source = open(path, "rb").read()
    program = ctypes.c_void_p()

    def check(result):
        if result:
            lib.nvrtcGetErrorString.restype = ctypes.c_char_p
            size = ctypes.c_size_t()
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetProgramLog(program, log)
            sys.exit(f"{path}: {lib.nvrtcGetErrorString(result).decode()}\n{log.value.decode()}")

    check(lib.nvrtcCreateProgram(ctypes.byref(program), source, os.path.basename(path).encode(), 0, None, None))
    check(lib.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)))
    size = ctypes.c_size_t()
    check(lib.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(lib.nvrtcGetPTX(program, text))
    lines = [l for l in text.value.decode().splitlines() if l and not l.startswith("//")]
    ptx = re.sub(r"^\.version .*$", f".version {VERSION}", "\n".join(lines), flags=re.M)
    major, minor = ctypes.c_int(), ctypes.c_int()
    lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    name = os.path.basename(path)
    return (f"// Made from {name} by make kernels, with NVRTC {major.value}.{minor.value}; not to be edited.\n"
            f"// {name}: sha256 {hashlib.sha256(source).hexdigest()}\n{ptx}\n")


def assemble(ptxas, text):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "kernels.ptx")
        with open(path, "w") as f:
            f.write(text)
        for target in TARGETS:
            subprocess.run([ptxas, "-arch", target, "-o", os.devnull, path], check=True)


def main():
    where, *paths = [a for a in sys.argv[1:] if a != "-check"]
    ctypes.CDLL(glob.glob(where + "/libnvrtc-builtins.so.*")[0], mode=ctypes.RTLD_GLOBAL)
    lib = ctypes.CDLL(glob.glob(where + "/libnvrtc.so.*")[0])
    for path in paths:
        text, out = compile(lib, path), path.removesuffix(".cu") + ".ptx"
        assemble(where + "/ptxas", text)
        if "-check" not in sys.argv:
            with open(out, "w") as f:
                f.write(text)
        elif open(out).read() != text:
            sys.exit(f"{out} is not what {path} is compiled to: make kernels")


main()
