#!/usr/bin/env python3
"""pxd.py OUT: writes as C what AMD's Python bindings, on sys.path, declare of RCCL.

AMD publishes no wheel with rccl.h. Its bindings (hip-python; rocm-bindings from ROCm 10 on) are generated from that
header: their .pxd files have the signatures and the fields of structs, their modules the values of enums.
"""
import importlib, os, re, sys

try:
    import rocm.bindings as package
    prefix = "cy"
except ImportError:
    import hip as package
    prefix = "c"

DECLARATION = re.compile(
    r"^ +c(?:type)?def enum (?P<enum>\w+):\n(?P<names>(?: {8}\w+\n)+)"
    r"|^ +c(?:type)?def struct (?P<struct>\w+)(?: \x22\w+\x22)?:\n(?P<fields>(?: {8}.+\n)+)"
    r"|^ +ctypedef (?P<old>[^(\n]+?) ?(?P<new>\w+)\n"
    r"|^cdef (?P<ret>[\w *]+?[ *])(?P<function>\w+)\((?P<args>[^\n]*?)\)(?: except\S* ?\w*| noexcept)?(?: nogil)?\n", re.M)


def write(out, name, wanted):
    module = importlib.import_module(package.__name__ + "." + name)
    text = open(os.path.join(list(package.__path__)[0], prefix + name + ".pxd")).read()
    for found in DECLARATION.finditer(text):
        d = found.groupdict()
        if d["enum"] and wanted(d["enum"]):
            values = getattr(getattr(module, d["enum"], None), "__members__", {})
            names = ", ".join(f"{n} = {values[n].value}" if n in values else n for n in d["names"].split())
            out.write(f"typedef enum {d['enum']} {{ {names} }} {d['enum']};\n")
        elif d["struct"] and wanted(d["struct"]):
            fields = [re.sub(r"((?:\[\d+\])+) (\w+)$", r" \2\1", f.strip()) for f in d["fields"].splitlines()]  # char[128] x -> char x[128]
            name = d["struct"]
            out.write(f"typedef struct {name} {name};\n" if fields == ["pass"] else f"typedef struct {name} {{ {' '.join(f + ';' for f in fields)} }} {name};\n")
        elif d["new"] and wanted(d["new"]):
            out.write(f"typedef {d['old']} {d['new']};\n")
        elif d["function"] and wanted(d["function"]):
            out.write(f"{d['ret']}{d['function']}({d['args'] or 'void'});\n")
    return module


with open(sys.argv[1], "w") as out:
    out.write("#include <stddef.h>\n#include <stdint.h>\n#define RCCL\n")
    write(out, "hip", {"hipError_t", "hipStream_t", "ihipStream_t"}.__contains__)
    rccl = importlib.import_module(package.__name__ + ".rccl")
    out.write(f"#define NCCL_VERSION_CODE {int(rccl.NCCL_VERSION_CODE)}\n#define NCCL_UNIQUE_ID_BYTES {int(rccl.NCCL_UNIQUE_ID_BYTES)}\n")
    write(out, "rccl", lambda name: name.startswith("nccl") and not name.startswith("ncclNet"))
