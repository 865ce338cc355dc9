"""The format "hgviz-capture", version 1: names, shapes and types of everything in the file.

An HDF5 file in the default (oldest) file format, without filter plugins, links other than hard
ones, variable-length strings or object references. JSON and text are UTF-8 bytes in uint8
datasets, short strings attributes of fixed length. Integers and floats are little-endian. A reader
refuses a higher major version and ignores names it does not know.

    /                 attributes: format "hgviz-capture", format_version (major, minor), complete 1
    /spec             JSON: family, name, levels, layers, width, vocabulary, digest, ... Of a layer
                      since 1.6 shared, where heads share keys: head h has those of h // shared
    /off              JSON: [[layer, head], ...] switched off while capturing
    /streaming        JSON, since 1.8, optional: heads [[layer, head], ...] that saw so many of the
                      first keys (sink) and of the latest (recent)
    /made             JSON: producer, created, device, dtype, seed, versions, checkpoint, masking,
                      generated (what the model itself wrote of the text, and how; "" for nothing)
    /prompt/text      (bytes,) uint8, UTF-8
    /prompt/pieces    JSON: the tokens as the tokenizer names them
    /prompt/ids       (tokens,) int64
    /prompt/spans     (tokens, 2) int64: half-open character offsets into text, -1 -1 for none
    /prompt/attention_mask   (tokens,) uint8, optional
    /prompt/token_type_ids   (tokens,) int64, optional
    /prompt/position_ids     (tokens,) int64, optional: those given in place of the model's own
    /prompt/states    (tokens, width) float32, optional: an encoder's states in place of a text
    /prompt/boundaries       (tokens,) uint8, since 1.5, optional: 1 where a token closes a segment
    /prompt/signal    float32, since 1.6, optional: a picture (channels, height, width) or a sound,
                      (mel bins, frames) or (samples,), as the model read it in place of a text;
                      with it, /prompt/picture (height, width, 3) uint8, what is seen of a picture,
                      /prompt/grid (2,) int64, the rows and columns of its patches, the last of the
                      tokens, and /prompt/seconds (1,) float64, how long a sound is
    /target           the decoder's text, with the same names, where there are two texts
    /levels/0/spans   (positions, 2) int64: the tokens behind each position; /levels/1, ...; of the
                      prompt, of the target, or slots, as the level's sequence in the spec says
    /layers/000       one group per layer, in order of computation; what it holds is below
    /output/logits    float32, float64 of a float64 model; optional. As the spec's goal says: "next"
                      and "masked" (positions, vocabulary), "classes" (classes,), "tags"
                      (positions, classes), "ends" (2, positions), "states" (positions, width)

Many texts in one file, a corpus (since 1.3): spec, off and made stand at the root, and with them

    /index            JSON: [[number, text, tokens, label], ...] of every text, from 0; tokens are
                      those the model speaks about, long texts are cut, a label may be empty
    /items/00000      prompt, target, levels, layers and output of the first text; /items/00001, ...
                      The relative terms, the same for every text, may be hard links to one group.

A dataset of at most 64 KB lies whole in the file; a larger one is in chunks: with fletcher32, or,
since 1.7, packed by shuffle + deflate, each chunk of one head, as q, k, stat, norm, threshold, the
relative terms, proof/values, value_norms, thumb, rowmax and entropy are. Whole ones carry the
attribute crc32 of their bytes, but for those of a layer, which has attributes of its own for q, k
and statistics (crc32) and for what is known of whole maps (summary32, since 1.3).

A layer, attributes: kind "lazy", "streaming" (since 1.8: lazy, of which some heads stream) or
"dense", name, role, level, key_level, heads (their numbers),
signed, causal, committed 1 (written last); lazy ones also stride_q, stride_k, scale, windowed,
empty_rows "zeros" or "uniform", activations and norms (one name per head, separated by spaces, "-"
for no norm), top_k (how many keys a row of the activation topk keeps; absent if none does), since
1.6 and where there is such a thing band (behind, ahead: a row sees columns from i - behind to i +
ahead), chunk (only those of its own chunk of so many) and softcap, near (streaming layers: two
numbers for each head, 0 0 for one that sees all, see below), unit (relative positions; -1,
since 1.5, for distances backwards), verify_max_abs (the largest difference between the proof rows
and the tiles of the program that wrote the file), crc32 (one per head: over q, k, stat, norm,
threshold and the relative terms of that head, in this order, those that are there), summary32 (the
same over thumb, rowmax, entropy and hist; optional).

    q  (heads, queries, d_head)      the operands of q . k, as the model computed them;
    k  (groups, keys, d_head)        bfloat16 as its bits in uint16; attribute dtype names it; head
                                     h of H has the keys of group h groups // H, since 1.6 fewer
                                     groups than heads;
                                     for linear attention phi(q) and phi(k), phi = elu + 1
    stat  (heads, queries) float64   (or float32) log-sum-exp of the scaled scores, +inf for a row
                                     without keys, of softmax1 with a 0 among them; for softpick
                                     that of log|exp(s) - 1| of each and log(1e-8), for sigmoid the
                                     logarithm of how many keys the row sees; their sum for linear
                                     attention, that of their squares for poly2; the norm for other
                                     normalised activations; else 0
    norm  (heads, queries) float32   the norms where stat is another number; optional
    threshold  (heads, queries) float32      with top_k: the least scaled score that weighs, -inf
                                     where all do, +inf where the keys are listed; optional
    kept  (pairs, 3) int32           head (its place), row and column of every key of such a row
    keep  (keys,) uint8              0 for padded keys; optional
    relative/weight (heads, d_head, model), bias, content, position (heads, d_head)     optional
    relative/curve (heads, 2)        since 1.5, in place of these: quadratic positions; optional
    relative/diagonals (heads, distances)    since 1.6, in place of these: what is added to q . k
                                     by distance, from the distance on that its attribute lowest
                                     names; optional
    sinks (heads,)                   since 1.6, optional: a logit of each head that takes part in
                                     stat of a softmax and has no key
    runs  (heads, runs) uint32       since 1.3, large maps, optional: the crc32 of every 256 rows of
                                     that head's q, then k, and so on, in the order of crc32
    proof/rows (rows,) int64, proof/values (heads, rows, keys) float32      computed in float64;
                                     eight rows, of more than 2,048 keys fewer, two at least
    value_norms (heads, keys) float32        since 1.4, optional: what a key adds to the stream at
                                     weight 1, |v_j W_O|; not in the crc32 of heads, with its own
    mixture (heads or 1, keys, tokens) float32       since 1.5, optional: where keys are slots, the
                                     part of the value of each token in that of each slot; 1 where
                                     it is the same in all heads; layers may share one (hard links)
    weights (heads, queries, keys)   dense layers only: shuffle + deflate, chunks (1, 256, 256);
                                     chunks that were never written are zeros
    thumb  (heads, <= 128, <= 128) float16    the map, max-pooled by one power of two
    rowmax, entropy  (heads, queries) float32
    max/<z>, mean/<z>  (heads, queries / 2^z, keys / 2^z) uint8, rounded up      since 1.2, optional
                                     large maps in cells of 2^z x 2^z: the largest weight (by
                                     magnitude where signed) and the mean over the cell's part
                                     inside the map, as codes; packed and cut like weights
    ranges  (heads, 2, 2) float32    with them: floor and maximum of the codes of max, of mean
    hist  (heads, 256) uint32        with them, since 1.3, optional: how many cells of the finest
                                     max have each code; for small maps thumb holds those cells

A code c stands for 0 where c = 0, else for floor (maximum / floor)^((c - 1) / 254); where signed
for floor (maximum / floor)^((c - 1) / 126) and, above 128, for minus that of c - 128. So weights of
at least the floor are kept within 2.8 %, signed ones within 5.6 %. Levels go from z = 3 for maps of
4,097 to 8,192 positions, from 4 to 32,768, from 5 to 131,072, those of means from one above, up to
the zoom of thumb.

A cell of a lazy layer, row i and column j, is f((q_i . k_j) scale - stat_i) for softmax and topk,
where f is exp (with softcap c the scaled score s is c tanh(s / c), before stat is taken), f((q_i .
k_j) scale) for activations without norm, f((q_i . k_j) scale / (n_i +
1e-9)) with norm l2, f((q_i . k_j) scale / n_i + 1e-9) with norm l2-literal, n being norm or, where
there is none, stat, and q_i . k_j / (stat_i + 1e-6) for linear attention. For rbf, as for softmax,
q_i . k_j - |k_j|^2 / 2 stands in place of q_i . k_j; poly2 is ((q_i . k_j) scale)^2 / (stat_i +
1e-18), stat the sum of these squares. softmax1 is as softmax; of the scaled score s, softpick is
exp(log(exp(s) - 1) - stat_i) above 0 and else 0, sigmoid 1 / (1 + exp(stat_i - s)). Relative
positions, of which linear attention has none, put (q_i + content) . k_j + (q_i + position) .
(weight phi(delta) + bias) in place of q_i . k_j, with delta = (j stride_k - i stride_q) / unit and
phi(t) = [sin(t f_c)..., cos(t f_c)...], f_c = 10000^(-2c / model), or q_i . k_j - a (delta - c)^2,
a and c being the numbers of curve. Causal: j stride_k < (i + 1) stride_q. Windowed: both in the
same group of max(stride_q, stride_k). Of a streaming layer a head with the numbers s r in near sees
of all keys that it could, and that are kept, the first s of the text and the latest r.

While a capture is being made, OUT.h5.part/ holds manifest.json (what is captured), root.h5 (all but
layers and output) and one layer-000.h5 for each layer done, with the group /layer. While a corpus
is being captured, root.h5 has spec, off, made and the index of all its texts, and every text that
is done is a capture of its own, item-00000.h5; a long one grows in item-00000.h5.part/.
"""

from __future__ import annotations

from hgviz.store.hdf5 import Row

FORMAT = "hgviz-capture"
VERSION = (1, 8)

MANIFEST, ROOT, LAYER = "manifest.json", "root.h5", "layer-{:03}.h5"
ITEM, ITEM_FILE = "{:05}", "item-{:05}.h5"
MOST_ITEMS = 100_000
OF_ITEM = ("prompt", "target", "levels", "layers", "output")  # what each text has of its own

PART = ".part"

FLOATS = ("f2", "f4", "f8")
OPERANDS = (*FLOATS, "u2")

HIGHEST_ZOOM = 30

# name: (dimensions by name, types allowed, required); dimensions of one name must agree

PROMPT: dict[str, Row] = {
    "ids": (("tokens",), ("i8",), True),
    "spans": (("tokens", "two"), ("i8",), True),
    "attention_mask": (("tokens",), ("u1",), False),
    "token_type_ids": (("tokens",), ("i8",), False),
    "position_ids": (("tokens",), ("i8",), False),
    "states": (("tokens", "width"), ("f4",), False),
    "boundaries": (("tokens",), ("u1",), False),
}
SIGNAL: dict[str, Row] = {
    "picture": (("height", "width", "three"), ("u1",), False),
    "grid": (("two",), ("i8",), False),
    "seconds": (("one",), ("f8",), True),
}
# by head, in the order in which their checksum is taken
SUMMED = ("q", "k", "stat", "norm", "threshold")
SUMMARY: dict[str, Row] = {
    "thumb": (("heads", "thumb_rows", "thumb_columns"), ("f2",), True),
    "rowmax": (("heads", "queries"), ("f4",), True),
    "entropy": (("heads", "queries"), ("f4",), True),
    "hist": (("heads", "codes"), ("u4",), False),
}
CODES = 256
VALUES: dict[str, Row] = {
    "value_norms": (("heads", "keys"), ("f4",), False),
    "mixture": (("mixtures", "keys", "queries"), ("f4",), False),
}
LAZY: dict[str, Row] = {
    "q": (("heads", "queries", "d_head"), OPERANDS, True),
    "k": (("groups", "keys", "d_head"), OPERANDS, True),
    "stat": (("heads", "queries"), ("f4", "f8"), True),
    "norm": (("heads", "queries"), ("f4", "f8"), False),
    "threshold": (("heads", "queries"), ("f4", "f8"), False),
    "kept": (("pairs", "three"), ("i4",), False),
    "keep": (("keys",), ("u1",), False),
    "runs": (("heads", "runs"), ("u4",), False),
    "sinks": (("heads",), ("f4", "f8"), False),
    "proof/rows": (("rows",), ("i8",), True),
    "proof/values": (("heads", "rows", "keys"), ("f4",), True),
    **VALUES,
    **SUMMARY,
}
RANGES: Row = ("heads", "two", "ends"), ("f4",), True
RELATIVE: dict[str, Row] = {
    "relative/weight": (("heads", "d_head", "model"), OPERANDS, True),
    "relative/bias": (("heads", "d_head"), OPERANDS, True),
    "relative/content": (("heads", "d_head"), OPERANDS, True),
    "relative/position": (("heads", "d_head"), OPERANDS, True),
}
QUADRATIC: dict[str, Row] = {"relative/curve": (("heads", "two"), OPERANDS, True)}
DIAGONALS: dict[str, Row] = {"relative/diagonals": (("heads", "distances"), OPERANDS, True)}
DENSE: dict[str, Row] = {
    "weights": (("heads", "queries", "keys"), OPERANDS, True),
    **VALUES,
    **SUMMARY,
}
# what may be packed where it is large; all else that is packed always is
PACKABLE = (
    *SUMMED, *RELATIVE, *QUADRATIC, *DIAGONALS, "proof/values", "value_norms", "thumb", "rowmax",
    "entropy",
)  # fmt: skip
