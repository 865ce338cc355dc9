"""Compare what commands print and write with a recording of an earlier commit.

    make golden                                      all of commands.txt against outputs.json.xz
    .venv/bin/python -m tests.golden.run --only two  blocks whose first line has the word
    .venv/bin/python -m tests.golden.run --record    record the outputs anew

Words have to be the same. Numbers have to agree within the tolerance of their block, relative to
the number or, in an array, to its largest value; a printed number may also differ by one unit of
its last digit. These tolerances hold on any processor (CONTRIBUTING.md says how to try another), so
that a difference is a change of the program. Times, dates, paths, versions, digests and what a
training gives are not compared.
"""

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import lzma
import multiprocessing
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
OUTPUTS = HERE / "outputs.json.xz"
LINE = 20_000  # characters of a text that are kept; the rest is kept as a digest of its words
ROUNDING = 3e-7  # of numbers that would be 0 without rounding in float32
NUMBERS = 400  # numbers that are kept of a text, and values of an array: 24
NUMBER = re.compile(r"(?<![\w.])[-−+]?(?:\d[\d,]*)(?:\.\d+)?(?:[eE][-−+]?\d+)?(?![\w])")
VOLATILE = (  # what differs from run to run or between processors, and what stands in its place
    (r"(?m)^[A-Z][\w ]+ \(\d+%\):? .*\n", ""),  # progress, printed when a step takes long
    (r"(?m)^Matplotlib is building the font cache.*\n", ""),
    (r"\b\d{4}-\d\d-\d\d[T ][\d:.+Z]+", "DATE"),
    (r"\b\d[\d,.]* ?(?:ms|s|seconds?|minutes?|min|GB|MB|kB|bytes)\b", "SIZE"),
    (r'"(?:seconds|times?|bytes|memory|host|pid|before|after|ratio)": ?[^\n,}]+', "SPENT"),
    (r"\b(?:torch|numpy|h5py|hgviz|python|matplotlib|captum|tokenizers|program)[ =:\"]+\d[\w.+]*",
     "VERSION"),
    (r"(?<![.\w])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", "DIGEST"),
    (r'"dtype": "float\d\d", "texts"', '"dtype": PRECISION, "texts"'),  # the first that agrees
    (r'(?m)^(\s*"?(?:verify[ _]max[ _]abs|difference|largest)"?:? *).*$', r"\1ROUNDING"),
    (r"(?m)^seconds: .*$", "SPENT"),
)  # fmt: skip
UNSTABLE = {
    "made",
    "created",
    "seconds",
    "versions",
    "crc32",
    "summary32",
    "runs",
    "crc",
    "producer",
    "verify_max_abs",
}


# --- what is run ----------------------------------------------------------------------------------


def blocks() -> list[tuple[str, float | None, list[str]]]:
    """(about, tolerance, commands) of each block of commands.txt; no tolerance: names alone."""
    text = re.sub(r"(?m)^#.*\n", "", (HERE / "commands.txt").read_text("utf-8")).strip()
    found = []
    for block in text.split("\n\n"):
        head, *lines = block.splitlines()
        about, _, tolerance = head.partition("|")
        far = None if tolerance.strip() == "names" else float(tolerance)
        found.append((about.strip(), far, [one for x in lines for one in expand_braces(x)]))
    return found


def expand_braces(line: str) -> list[str]:
    """A line for each choice of {a,b}; braces with the same words go together."""
    groups = list(dict.fromkeys(re.findall(r"\{([^{}]+,[^{}]+)\}", line)))
    lines = []
    for some in itertools.product(*(one.split(",") for one in groups)):
        found = line
        for group, word in zip(groups, some, strict=True):
            found = found.replace("{" + group + "}", word)
        lines.append(found)
    return lines


TRAINED = """
[tokenizer]
kind = "wordpiece"
size = 200
[data]
train = ["rows.tsv"]
valid = "rows.tsv"
[recipe]
steps = 6
batch = 8
"""


def write_inputs(folder: Path) -> None:
    """Models and texts, good and bad, of fixed seeds."""
    from tests.models import zoo
    from tests.soak.good import MODEL, TINY, write_models

    write_models(folder)
    for kind, name in (("llama", "LlamaForCausalLM"), ("gemma2", "Gemma2ForCausalLM")):
        zoo.write(folder / kind, kind, name, vocab_size=256)
    train = MODEL.replace('[[models]]\nname = "tiny"', "[model]") + TRAINED
    words = "The hourglass reads letters, then pairs. Nobody liked the plot, but the end was great."
    rows = [f"{'np'[at % 2]}\t{at} {words[at:]}" for at in range(24)]
    files = {
        "text.txt": " ".join(f"{at} {words}" for at in range(20)), "none.txt": "",
        "rows.tsv": "\n".join(["label\ttext", *rows]), "nothing.tsv": "label\ttext\n",
        "ids.json": '{"input_ids": [5, 6, 7, 8, 9, 10]}', "wrong.json": '{"input_ids": [1000000]}',
        "none.h5": "", "words.h5": "no capture", "none.safetensors": "", "odd.txt": "a\0b",
        "wrong.toml": "steps = 'many'\n",
        "train.toml": train, "study.toml": TINY,
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    whole = (Path(__file__).parents[2] / "resources/sample/first.h5").read_bytes()
    (folder / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (folder / "empty").mkdir()


def run_block(block: tuple[str, float | None, list[str]], threads: int) -> list[dict[str, Any]]:
    """What each command of a block ended with, printed and wrote; in a process of its own."""
    os.environ.update(OMP_NUM_THREADS=str(threads), SOURCE_DATE_EPOCH="1700000000", COLUMNS="110",
                      HGVIZ_DEVICE="cpu", NO_COLOR="1", LC_ALL="C.UTF-8")  # fmt: skip
    os.environ.pop("DISPLAY", None)
    import torch

    from hgviz.__main__ import main

    torch.set_num_threads(threads)
    found = []
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
        os.chdir(home)
        Path("w").mkdir()
        os.chdir("w")
        write_inputs(Path("given"))
        before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
        for command in block[2]:
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    code = main(shlex.split(command))
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else 1
            now = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
            changed = sorted(path for path, at in now.items() if before.get(path) != at)
            before.update(now)
            files: dict[str, Any] = {}
            if block[1] is not None:
                files = {str(path): describe_file(path) for path in changed}
            told = {"out": describe_text(out.getvalue()), "err": describe_text(err.getvalue())}
            if block[1] is None:
                told, files = {}, dict.fromkeys(map(str, changed), "there")
            found.append({"command": command, "code": code, **told, "files": files})
    return found


def strip_volatile(text: str) -> str:
    """A text without what differs from run to run."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|.*\r(?!\n)", "", text).replace(str(Path.cwd()), ".")
    text = re.sub(r"/[\w./-]*/resources/", "resources/", text)
    for pattern, instead in VOLATILE:
        text = re.sub(pattern, instead, text)
    return text


def describe_text(text: str) -> dict[str, Any]:
    """The words of a text with # for each number, and the numbers, as they are printed."""
    text = strip_volatile(text)
    numbers = NUMBER.findall(text)
    words = NUMBER.sub("#", text)
    if len(words) > LINE:
        digest = hashlib.sha256(words[LINE:].encode()).hexdigest()[:16]
        words = f"{words[:LINE]}\n… {digest}"
    places = np.linspace(0, max(0, len(numbers) - 1), min(NUMBERS, len(numbers))).astype(int)
    return {"words": words, "count": len(numbers), "numbers": [numbers[at] for at in places]}


# --- what is in a file ----------------------------------------------------------------------------


def describe_file(path: Path) -> Any:
    """What is compared of a file."""
    kind = path.suffix
    if kind == ".npy":
        return describe_array(np.load(path))
    if kind == ".h5":
        return describe_hdf5(path) | describe_maps(path)
    if kind == ".safetensors":
        from safetensors.torch import load_file

        tensors = sorted(load_file(path).items())
        return {name: describe_array(one.float().numpy()) for name, one in tensors}
    if kind in (".pdf", ".png"):
        return {"text": figure_text(path), "picture": figure_brightness(path)}
    if kind in (".pt", ".bin", ".npz", ".lock"):
        return "there"
    text = path.read_text("utf-8", errors="replace")
    if kind in (".svg", ".pgf", ".tex"):  # the labels; lines of a figure are compared as a picture
        return " ".join(
            re.findall(r">\s*([^<>\s][^<>]*)<|(?:node|pgftext).*", strip_volatile(text))
        )
    return describe_text(text)


def describe_array(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Shape, kind, largest value, norm, a sum with fixed signs and 24 values of an array.

    The signed sum notices a change of any one value, and rounding hardly moves it.
    """
    flat = values.ravel()
    some = flat[np.linspace(0, max(0, flat.size - 1), min(24, flat.size)).astype(int)]
    found: dict[str, Any] = {"shape": list(values.shape), "kind": values.dtype.str[1:]}
    if values.dtype.kind in "fiub" and flat.size:
        real = np.where(np.isfinite(flat), flat, 0).astype(float)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], flat.size)
        found["largest"] = float(np.abs(real).max())
        found["norm"] = float(np.linalg.norm(real))
        found["signed"] = float(real @ signs)
        return found | {"some": [float(one) for one in some]}
    return found | {"some": [strip_volatile(str(one))[:200] for one in some]}


def describe_hdf5(path: Path) -> dict[str, Any]:
    """Every dataset and attribute by name."""
    import h5py

    found: dict[str, Any] = {}
    with h5py.File(path) as file:

        def visit(name: str, one: Any) -> None:
            if name.split("/")[-1] in UNSTABLE:
                return
            said = {k: v for k, v in one.attrs.items() if k not in UNSTABLE}
            found[name] = {k: describe_attribute(v) for k, v in sorted(said.items())}
            if isinstance(one, h5py.Dataset):
                values = np.asarray(one[...])
                raw = values.tobytes() if values.dtype == np.uint8 else b""
                is_json = raw[:1] in (b"{", b"[")
                found[name]["values"] = (
                    describe_text(raw.decode("utf-8", "replace"))
                    if is_json
                    else describe_array(values)
                )

        visit("/", file)
        file.visititems(visit)
    return found


def describe_maps(path: Path) -> dict[str, Any]:
    """The norm and the signed sum of every head's map in a capture, layer by layer."""
    from hgviz.store import is_capture, open_capture

    found: dict[str, Any] = {}
    if is_capture(path):
        capture = open_capture(path)
        for layer, one in zip(capture.spec.layers, capture.maps, strict=True):
            if one is not None:
                sums = [describe_array(one.read(head)) for head in layer.heads]
                pairs = [(each["norm"], each["signed"]) for each in sums]
                found[f"maps of layer {layer.index}"] = describe_array(np.array(pairs))
    return found


def describe_attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.number):
        return describe_array(np.atleast_1d(value))
    return strip_volatile(str(value))


def figure_text(path: Path) -> str:
    """The words of a figure."""
    if path.suffix != ".pdf":
        return ""
    done = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True)
    return strip_volatile(" ".join(done.stdout.split()))


def figure_brightness(path: Path) -> list[float]:
    """A figure's brightness in 16 x 16 parts, 0 to 255."""
    from PIL import Image

    if path.suffix == ".pdf":
        done = subprocess.run(["pdftoppm", "-r", "40", "-gray", path], capture_output=True)
        image = Image.open(io.BytesIO(done.stdout))
    else:
        image = Image.open(path).convert("L")
    small = np.asarray(image.resize((16, 16), Image.Resampling.BOX), float)
    return [round(float(one), 1) for one in small.ravel()]


# --- what differs ---------------------------------------------------------------------------------


def differences(old: Any, new: Any, tolerance: float, place: str = "") -> list[str]:
    """Where two outputs differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = [f"{place}: {one} is gone" for one in old if one not in new]
        found += [f"{place}: {one} is new" for one in new if one not in old]
        if found:
            return found
        if old.keys() >= {"shape", "kind", "signed"}:
            return compare_arrays(old, new, tolerance, place)
        if old.keys() >= {"words", "numbers"}:
            return compare_texts(old, new, tolerance, place)
        for key in old:
            if key == "picture":
                far = [abs(a - b) for a, b in zip(old[key], new[key], strict=True)]
                found += [f"{place}: another picture"] if max(far) > 8 else []
            else:
                found += differences(old[key], new[key], tolerance, f"{place}/{key}")
        return found
    return [] if old == new else [f"{place}: {old!r:.160} is {new!r:.160}"]


def compare_arrays(old: Any, new: Any, tolerance: float, place: str) -> list[str]:
    """Where two arrays differ by more than the tolerance of their largest value or norm."""
    if (old["shape"], old["kind"]) != (new["shape"], new["kind"]):
        return [f"{place}: {old['kind']}{old['shape']} is {new['kind']}{new['shape']}"]
    if old["kind"] == "f2":  # one step of a half-precision number
        tolerance = max(tolerance, 2.0**-10)
    for name in ("norm", "signed"):
        if abs(old[name] - new[name]) > max(tolerance * old["norm"], ROUNDING):
            return [f"{place}: its {name} sum {old[name]!r} is {new[name]!r}"]
    for one, other in zip(old["some"], new["some"], strict=True):
        same = one == other or (one != one and other != other)
        if not same and not abs(one - other) <= max(tolerance * old["largest"], ROUNDING):
            return [f"{place}: {one!r} is {other!r}"]
    return []


def compare_texts(old: Any, new: Any, tolerance: float, place: str) -> list[str]:
    """Where two texts differ: in their words, or in a number by more than the tolerance."""
    for a, b in itertools.zip_longest(old["words"].split("\n"), new["words"].split("\n")):
        if a != b:
            return [f"{place}: {a!r:.160} is {b!r:.160}"]
    if old["count"] != new["count"]:
        return [f"{place}: {old['count']} numbers are {new['count']}"]
    for one, other in zip(old["numbers"], new["numbers"], strict=True):
        x, y = (float(word.replace(",", "").replace("−", "-")) for word in (one, other))
        digits = len(one.partition(".")[2].partition("e")[0]) if "." in one else None
        unit = 1.01 * 10.0**-digits if digits and digits < 6 else 0.0
        if abs(x - y) > max(unit, tolerance * max(1, abs(x))):
            return [f"{place}: {one} is {other}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="blocks whose first line has this")
    parser.add_argument("--record", action="store_true", help="keep what comes out")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    chosen = [one for one in blocks() if options.only in one[0]]
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, maxtasksperchild=1) as pool:
        outputs = pool.starmap(run_block, [(one, options.threads) for one in chosen], 1)
        found = dict(zip((one[0] for one in chosen), outputs, strict=True))
    kept = json.loads(lzma.decompress(OUTPUTS.read_bytes())) if OUTPUTS.exists() else {}
    count, wrong = 0, 0
    for about, tolerance, _ in chosen:
        old = {one["command"]: one for one in kept.get(about, ())}
        for new in found[about]:
            count += 1
            before = old.get(new["command"])
            same = [] if before is not None else ["it was never recorded"]
            same = same or differences(before, new, tolerance or 0.0)
            if same and not options.record:
                wrong += 1
                print(f"hgviz {new['command']}\n    " + "\n    ".join(same[:4]), flush=True)
    if options.record:
        kept = {about: found.get(about) or kept.get(about, []) for about, _, _ in blocks()}
        OUTPUTS.write_bytes(lzma.compress(json.dumps(kept).encode()))
        print(f"{count} commands kept in {OUTPUTS.name}, {OUTPUTS.stat().st_size / 1e3:.0f} kB")
        return 0
    print(f"{count} commands, {wrong} with another outcome than before")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
