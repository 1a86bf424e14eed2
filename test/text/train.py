"""train.py OUT LINES: trains a tokenizer of each kind with Hugging Face's library, on this repository's documents and on
mixed Unicode, and writes what it makes of texts: OUT/NAME.json is the tokenizer; OUT/texts.json the texts, the first 609 of
them from documents, and LINES of mixed Unicode; OUT/NAME.ids their tokens with special ones (for each a count, and IDs of 32
bits), and OUT/NAME.decoded what these decode to, with special tokens and without, as JSON. With GOLDEN=1 all are small: they are testdata.
KINDS=gpt2,.. makes these alone."""

import array, glob, json, os, random, sys, time
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

out, count = sys.argv[1], int(sys.argv[2])
golden = os.environ.get("GOLDEN")
root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
rnd = random.Random(1)

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

blocks = [(0x20, 0x7E)] * 6 + [(0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF), (0xE00, 0xEFF), (0x1100, 0x11FF),
    (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3),
    (0xE000, 0xFFFD), (0x10000, 0x1FFFF), (0x1F300, 0x1FAFF), (0x20000, 0x323AF), (0xE0000, 0xE01EF), (0x10FF00, 0x10FFFF)]
bits = ["'s", "'T", "'LL", "'re ", "'\u017f", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\u00a0", "\u2003", "\u3000", "\u0085", "12", "1234567", "\u0660\u0661", "e\u0301",
    "\u1100\u1161\u11a8", "\u212b", "\ufb01", "\u200d", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2581", "\u2581\u2581", "<s>", "</s>", "<|end|>", "<|end", "<x>", " <x> ", "word",
    "words", "<0x0A>", "\u00c5\u0327", "\ufffd", "\ud7a3", "don't", "I'M", "...", "!!!\n"]


def mixed():
    parts = []
    for _ in range(rnd.randrange(1, 12)):
        if rnd.random() < 0.4:
            parts.append(rnd.choice(bits))
        else:
            lo, hi = rnd.choice(blocks)
            parts.append("".join(chr(rnd.randrange(lo, hi + 1)) for _ in range(rnd.randrange(1, 8))))
    return "".join(parts)


def documents(pattern, most):
    return [open(f, encoding="utf-8").read() for f in sorted(glob.glob(os.path.join(root, pattern)))[:most]]


corpus = documents("docs/*.md", 12) + documents("ccl/*.go", 10)
if golden:
    corpus = [corpus[0][:20000]]
lines = [l for c in corpus for l in c.split("\n") if l][: 20 if golden else 400]
texts = ["It's 12345 o'clock,  isn't IT'S?", "  two  spaces   \n\n\nand\ttabs \n", "naïve café — 東京 😀 emoji", "a\r\nb", " ", "",
    "x = y[10000:2] + f(3.14159)", "Ünïcödé ΑΒΓ абв 123 456", "\u00a0nbsp\u2003em"]
texts += lines
texts += ["".join(rnd.choice("ab cé1 \n\t'sT東😀.,") for _ in range(30)) for _ in range(20 if golden else 200)]
texts += [mixed() for _ in range(count)]
if not golden:  # each character of a plane that has some, between a letter and a digit
    texts += ["".join(f"a{chr(c)}1" for c in range(b, b + 64) if not 0xD800 <= c < 0xE000) for b in [*range(0, 0x34000, 64), *range(0xE0000, 0xE0400, 64)]]
    texts += [" ".join(corpus)[:300000], "x" * 3000, " " * 3000]  # long words
corpus += [mixed() for _ in range(100 if golden else 3000)]
size = 350 if golden else 4000


def byte_level(name, pre, normalizer=None, post=None, added=(), **options):
    t = Tokenizer(models.BPE(**options))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "<|end|>"], show_progress=False))
    t.add_tokens(list(added))
    if post:
        t.post_processor = post
    return t


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert=invert), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def begins(t):
    return processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", t.token_to_id("<s>"))])


def sentence_piece(normalizer, pre, decoder, byte_fallback=True, fuse=True, added=()):
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=150, show_progress=False))
    f = json.loads(t.to_str())
    names = sorted(f["model"]["vocab"], key=f["model"]["vocab"].get)
    names = list(dict.fromkeys(names[:3] + (["<0x%02X>" % b for b in range(256)] if byte_fallback else []) + names[3:]))
    f["model"].update(vocab={n: i for i, n in enumerate(names)}, byte_fallback=byte_fallback, fuse_unk=fuse)
    t = Tokenizer.from_str(json.dumps(f))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre  # None: a text is a word
    t.decoder = decoder
    t.add_tokens(list(added))
    t.post_processor = begins(t)
    return t


N, P, D = normalizers, pre_tokenizers, decoders
spaces = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(content=" ", left=1, right=0)])
prepend = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
flags = [AddedToken("<x>", lstrip=True, rstrip=True), AddedToken("word", single_word=True, normalized=False), AddedToken("words", normalized=True, single_word=True),
    AddedToken("<|end", normalized=True, rstrip=True), AddedToken("\u212b", normalized=True), AddedToken("  ", normalized=False), AddedToken("\u00a0", normalized=False, lstrip=True)]
kinds = {
    "gpt2": lambda: byte_level("gpt2", P.ByteLevel(add_prefix_space=False), post=processors.ByteLevel(trim_offsets=False)),
    "llama3": lambda: byte_level("llama3", split(LLAMA3), ignore_merges=True),
    "qwen2": lambda: byte_level("qwen2", split(QWEN2), N.NFC(), processors.ByteLevel(trim_offsets=False)),
    "llama2": lambda: sentence_piece(prepend, None, spaces),
    "mistral": lambda: sentence_piece(None, P.Metaspace(prepend_scheme="first", split=False), spaces),
    "flags": lambda: byte_level("flags", P.ByteLevel(add_prefix_space=True), added=flags),
    "removed": lambda: byte_level("removed", split(LLAMA3, "removed", True), N.NFKC(), added=flags),
    "pieces": lambda: sentence_piece(N.NFD(), P.Metaspace(prepend_scheme="always", split=True), D.Metaspace(), False, False, flags),
    "llama2flags": lambda: sentence_piece(prepend, None, spaces, added=flags),
    "fused": lambda: sentence_piece(N.NFKD(), P.Metaspace(prepend_scheme="never", split=False), D.Metaspace(prepend_scheme="never"), False, True),
}
if golden:
    kinds = {k: kinds[k] for k in ["gpt2", "llama3", "qwen2", "llama2", "mistral", "pieces"]}

if os.environ.get("KINDS"):
    kinds = {k: kinds[k] for k in os.environ["KINDS"].split(",")}

os.makedirs(out, exist_ok=True)
json.dump(texts, open(out + "/texts.json", "w"), ensure_ascii=True)
for name, make in kinds.items():
    t = make()
    if name == "llama3":
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), begins(t)])
    f = json.loads(t.to_str())
    if name == "gpt2":  # as older files are
        del f["model"]["type"]
        f["model"]["merges"] = [" ".join(m) for m in f["model"]["merges"]]
    json.dump(f, open(f"{out}/{name}.json", "w"), ensure_ascii=False, indent=None, separators=(",", ":"))
    t = Tokenizer.from_file(f"{out}/{name}.json")
    begun = time.process_time()
    all = [t.encode(x).ids for x in texts]
    took = time.process_time() - begun
    with open(f"{out}/{name}.ids", "wb") as w:
        for ids in all:
            array.array("i", [len(ids)] + ids).tofile(w)
    json.dump([[t.decode(ids, skip_special_tokens=False), t.decode(ids)] for ids in all], open(f"{out}/{name}.decoded", "w", encoding="utf-8"), ensure_ascii=False)
    print(f"{name}: {t.get_vocab_size()} tokens, {len(texts)} texts, {sum(map(len, all))} tokens of them; {sum(len(x.encode()) for x in texts) / took / 1e6:.1f} MB/s encoded here", flush=True)
