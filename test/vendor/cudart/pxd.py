#!/usr/bin/env python3
"""pxd.py GDEV OUT: writes as C what AMD's Python bindings, on sys.path, declare of HIP.

AMD publishes no wheel with hip_runtime_api.h. Its bindings (hip-python; rocm-bindings from ROCm 10 on) are generated from
that header: their .pxd files have the signatures and the fields of structs, their modules the values of enums.
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

wanted = {"hip" + name for name in re.findall(r"X\([01], [^,]+, (\w+),", open(sys.argv[1]).read())}
wanted |= {"hipError_t", "hipStream_t", "ihipStream_t", "hipEvent_t", "ihipEvent_t", "hipMemcpyKind", "hipGraph_t", "ihipGraph",
           "hipGraphExec_t", "hipGraphExec", "hipStreamCaptureMode", "hipStreamCaptureStatus", "hipMemoryType", "hipPointerAttribute_t",
           "hipDeviceProp_t", "hipDeviceAttribute_t", "hipUUID_t", "hipUUID", "hipDeviceArch_t"}

module = importlib.import_module(package.__name__ + ".hip")
text = open(os.path.join(list(package.__path__)[0], prefix + "hip.pxd")).read()
with open(sys.argv[2], "w") as out:
    out.write("#include <stddef.h>\n#include <stdint.h>\n")
    macros = ["hipStreamNonBlocking", "hipEventDisableTiming", "hipMemAttachGlobal"]
    if not all(hasattr(module, name) for name in macros):
        out.write("#define NO_MACROS\n")
    else:
        for name in macros:
            out.write(f"#define {name} {int(getattr(module, name))}\n")
    for found in DECLARATION.finditer(text):
        d = found.groupdict()
        if d["enum"] in wanted:
            values = getattr(getattr(module, d["enum"], None), "__members__", {})
            names = ", ".join(f"{n} = {values[n].value}" if n in values else n for n in d["names"].split())
            out.write(f"typedef enum {d['enum']} {{ {names} }} {d['enum']};\n")
        elif d["struct"] in wanted:
            fields = [re.sub(r"((?:\[\d+\])+) (\w+)$", r" \2\1", f.strip()) for f in d["fields"].splitlines()]  # char[256] x -> char x[256]
            name = d["struct"]
            out.write(f"typedef struct {name} {name};\n" if fields == ["pass"] else f"typedef struct {name} {{ {' '.join(f + ';' for f in fields)} }} {name};\n")
        elif d["new"] in wanted:
            out.write(f"typedef {d['old']} {d['new']};\n")
        elif d["function"] in wanted:
            out.write(f"{d['ret']}{d['function']}({d['args'] or 'void'});\n")
