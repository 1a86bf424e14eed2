"""indexed.py OUT: writes OUT/TYPE.bin and .idx, datasets as Megatron-LM's IndexedDatasetBuilder writes them, by its format."""

import itertools, os, struct, sys

for code, (name, letter, size) in {1: ("uint8", "B", 1), 2: ("int8", "b", 1), 3: ("int16", "h", 2), 4: ("int32", "i", 4), 5: ("int64", "q", 8), 8: ("uint16", "H", 2)}.items():
    sequences = [[i + k for k in range(7 * i)] for i in range(5)]
    lengths = list(map(len, sequences))
    places = [0, *itertools.accumulate(n * size for n in lengths)][:-1]
    documents = [0, 2, 5]
    with open(os.path.join(sys.argv[1], name + ".bin"), "wb") as f:
        for s in sequences:
            f.write(struct.pack(f"<{len(s)}{letter}", *s))
    with open(os.path.join(sys.argv[1], name + ".idx"), "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents)))
        f.write(struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(places)}q", *places) + struct.pack(f"<{len(documents)}q", *documents))
