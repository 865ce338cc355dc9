"""The format "hgviz-study", version 1: what was measured of all heads of a model on some data.

An HDF5 file in the default (oldest) file format, under the same rules as a capture: no filter
plugins, links other than hard ones, variable-length strings or object references; JSON and text as
UTF-8 bytes in uint8 datasets; little-endian numbers; small datasets whole with the attribute crc32,
larger ones in chunks with fletcher32. A reader refuses another major version and ignores names it
does not know. A study that is being measured has the same names: what is not reached yet is NaN.

    /             attributes: format "hgviz-study", format_version (major, minor)
    /spec         JSON: the model, as in a capture; its digest is that of the checkpoint
    /about        JSON: asked "classes", "next" or "masked", metric, data (the name of its file),
                  data_digest (of ids and answers), labels, seed (of whatever is drawn), texts
                  (since 1.3: how many texts the windows of a language model are of, 0 of a
                  classifier)
    /off          JSON: [[layer, head], ...] off all along; their columns are never measured
    /made         JSON: producer, created, device, dtype, versions, checkpoint, ...
    /heads        (heads, 2) int64: layer and head of each column, in order of computation
    /places       (examples + 1,) int64: where the places of each example begin, and their number;
                  a place is where something is asked: the class of a text, a token
    /lengths      (examples,) int64: tokens
    /sizes        (examples,) float64, optional: bytes of what is wanted
    /wanted       (places,) int64: the class or the token that is right
    /given        (places,) int64: what the whole model gave, -1 where it was not asked yet
    /loss         (places,) float32: its surprise in nats, NaN where it was not asked yet
    /gradient         (examples, heads) float32, optional: slope of the loss with the head's gate
    /token_gradient   (examples, heads) float32, optional: sum over tokens of the sizes of its parts
    /loss_change      (places, heads) float32, optional: loss with the head off - loss
    /change           (places, heads) int8, optional: 1 wrong to right, -1 right to wrong, 0
                      neither, -128 not measured yet
    /alone            (places, heads) float32, optional: loss with only this head on in its layer -
                      loss
    /shapley          (permutations, heads) float32, optional: what switching a head on does to the
                      mean loss, in a random order each
    /arrays/NAME      (examples, heads) float32, optional: what a score measured that has an array
                      of its own; a name has letters, digits and underscores
    /saved_parameters, /saved_flops   (heads, 3) float64, optional, since 1.4: what `prune` removes
                      with each head, with its key group once all heads of that are off, and with
                      its layer likewise, below 0 where it keeps the weights of one head
    /learned/000      what training gave each head; attribute method; runs (runs, heads) float32,
                      note (text)
    /curves/000       a score along an order; attributes method, unit, seed; order (off, 2) int64:
                      heads, the first goes first; removed (points,) int64, ascending; values, low,
                      high, loss, change, change_low, change_high (points,) float32 (or float64),
                      infinite where an interval has no end; rows (n,) int64: examples; times
                      (points, 2) float32, optional, since 1.2: milliseconds of one pass over 16
                      texts on one core, of the whole model and of the one without the heads that
                      are off
    /masks            JSON: [[name, [[layer, head], ...], score], ...]; score null or [metric,
                      value, low, high, seen, total], null for an end that an interval lacks
    /mask_changes     JSON, optional, since 1.1: for each of the masks null, or [difference of its
                      score to the whole model on the same places, low, high]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz import study as measured
from hgviz.core import HeadId, HeadSet, HgvizError, MetricEstimate, ModelSpec
from hgviz.examples import Asked
from hgviz.files import TEMPORARY
from hgviz.store.arrays import store, store_attributes, store_json, store_text
from hgviz.store.hdf5 import (
    Row,
    attribute,
    check_format,
    dataset,
    has,
    numbers,
    open_file,
    parsed,
    reading,
    require,
    says_format,
    subgroup,
    text,
    whole_hdf5,
    writing,
)
from hgviz.store.schema import plain, read_made, read_off, read_spec, spec_row
from hgviz.study import NO_PREDICTION, UNKNOWN, LearnedImportance, Mask, PruningCurve, Study

FORMAT = "hgviz-study"
VERSION = (1, 4)
AGAIN = "Measure"
MOST_PARTS = 10_000  # curves, and what was learnt
MOST_NOTE = 2000  # characters

ARRAYS: dict[str, Row] = {
    "heads": (("heads", "two"), ("i8",), True),
    "places": (("starts",), ("i8",), True),
    "lengths": (("examples",), ("i8",), True),
    "sizes": (("examples",), ("f8",), False),
    "wanted": (("places",), ("i8",), True),
    "given": (("places",), ("i8",), True),
    "loss": (("places",), ("f4",), True),
    **{name: ((row.rows, "heads"), (row.dtype,), False) for name, row in measured.ARRAYS.items()},
    "saved_parameters": (("heads", "parts"), ("f8",), False),
    "saved_flops": (("heads", "parts"), ("f8",), False),
}
OWN_ARRAY: Row = (("examples", "heads"), ("f4",), True)  # of a score that measures its own
MAX_ARRAYS = 100
_VALUES = ("values", "low", "high", "loss", "change", "change_low", "change_high")
CURVE: dict[str, Row] = {
    "order": (("off", "two"), ("i8",), True),
    "removed": (("points",), ("i8",), True),
    **dict.fromkeys(_VALUES, (("points",), ("f4", "f8"), True)),
    "rows": (("rows",), ("i8",), True),
    "times": (("points", "two"), ("f4",), False),
}
LEARNED: dict[str, Row] = {"runs": (("runs", "heads"), ("f4",), True)}
_WORDS = ("method", "unit")
_NUMBER, _END = (int, float), (int, float, type(None))
_SCORE = (_NUMBER, _END, _END, (int,), (int,))


# --- writing --------------------------------------------------------------------------------------


def write_study(path: str | Path, study: Study, force: bool = False) -> Path:
    """Write a study to one file, whole or not at all; force: in place of another.

    A measurement that is infinite is kept as not measured. Errors: HgvizError.
    """
    path = Path(path)
    require_free(path, force)
    with writing(path), whole_hdf5(path) as file:
        store_attributes(file.id, {"format": FORMAT, "format_version": VERSION})
        store_json(file, "spec", spec_row(study.spec))
        store_json(file, "about", _about(study))
        store_json(file, "off", sorted(study.off))
        store_json(file, "made", asdict(study.made))
        arrays = {name: _finite(values) for name, values in study.arrays.items()}
        values = {name: getattr(study, name, None) for name in ARRAYS} | arrays
        answered = np.where(np.isfinite(study.loss), study.given, NO_PREDICTION)
        _store(file, ARRAYS, values | {
            "heads": _pairs(study.heads), "given": answered, "loss": _finite(study.loss),
        })  # fmt: skip
        own = [name for name in arrays if name not in measured.ARRAYS]
        if own:
            _store(file.create_group("arrays"), dict.fromkeys(own, OWN_ARRAY), arrays)
        for number, one in enumerate(study.learned):
            group = file.create_group(f"learned/{number:03}")
            store_attributes(group.id, {"method": one.method})
            _store(group, LEARNED, {"runs": one.runs})
            store_text(group, "note", one.note)
        for number, curve in enumerate(study.curves):
            group = file.create_group(f"curves/{number:03}")
            words = {name: getattr(curve, name) for name in _WORDS}
            store_attributes(group.id, {**words, "seed": curve.seed})
            curve_values = {name: getattr(curve, name) for name in CURVE}
            _store(group, CURVE, curve_values | {"order": _pairs(curve.order)})
        store_json(file, "masks", [_told(one) for one in study.masks])
        if any(one.change for one in study.masks):
            store_json(file, "mask_changes", [one.change for one in study.masks])
    return path


def require_free(path: Path, force: bool = False) -> None:
    """Errors: HgvizError where there is a file already, unless force, or a folder."""
    if path.is_dir():
        raise HgvizError(f"{path} is a folder: a study is one file", "Give the file a name")
    if path.exists() and not force:
        raise HgvizError(
            f"{path} exists already: it was not touched", "Choose another name, or use --force"
        )


def require_place(path: str | Path) -> None:
    """Errors: HgvizError where no file can be written, before it is waited for."""
    path = Path(path)
    trace = path.with_name(path.name + TEMPORARY)
    with writing(path):
        trace.touch()
        trace.unlink()


def _about(study: Study) -> dict[str, Any]:
    names = ("asked", "metric", "data", "data_digest", "labels", "seed", "texts")
    return {name: getattr(study, name) for name in names}


def _store(group: h5py.Group, table: dict[str, Row], values: dict[str, Any]) -> None:
    for name, (_, kinds, _) in table.items():
        if (one := values[name]) is None:
            continue
        array = np.asarray(one)
        if array.dtype.str[1:] not in kinds:
            array = array.astype(kinds[0])
        store(group, name, array, axis=0)


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    """The values, NaN for an infinite one: it counts as not measured."""
    if values.dtype.kind == "i":
        return values
    return np.where(np.isfinite(values), values, np.float32(np.nan))


def _pairs(heads: Iterable[HeadId]) -> NDArray[np.int64]:
    return np.array([*heads], np.int64).reshape(-1, 2)


def _told(mask: Mask) -> list[Any]:
    score: list[Any] | None = None
    if (one := mask.score) is not None:
        ends = [end if np.isfinite(end) else None for end in (one.low, one.high)]
        score = [one.metric, one.value, *ends, one.seen, one.total]
    return [mask.name, sorted(mask.off), score]


# --- reading --------------------------------------------------------------------------------------


def is_study(path: str | Path) -> bool:
    """Whether a path is a study, judged by what it says of itself."""
    try:
        return says_format(str(path), FORMAT)
    except HgvizError:
        return False


def open_study(path: str | Path) -> Study:
    """A study, all of it in memory. Errors: HgvizError for everything that is none, or damaged."""
    path = str(path)
    if not Path(path).exists():
        raise HgvizError(f"there is no {path}: no file has that name", "Check the path")
    if Path(path).is_dir():
        raise HgvizError(f"{path} is a folder: a study is one file", "Choose the file")
    with reading(path, AGAIN), open_file(path) as file:
        check_format(file, FORMAT, VERSION, "study")
        return _read(file, path)


def _read(file: h5py.File, path: str) -> Study:
    spec, about, off = read_spec(file), _read_about(file), read_off(file)
    sizes = {"two": 2, "parts": 3}
    found = _arrays(file, ARRAYS, sizes)
    heads = _heads(found.pop("heads"), spec.heads)
    require(list(heads) == sorted(heads), "its heads are not in order of computation")
    require(off <= set(heads), "it has other heads off than there are")
    _check(found, about, spec)
    arrays = {name: found.pop(name) for name in measured.ARRAYS}
    arrays |= _own_arrays(file, sizes)
    for name, values in arrays.items():
        good = values is None or values.dtype.kind == "i" or not np.isinf(values).any()
        require(good, f"{name} of it is infinite somewhere")
    learned, curves = _parts(file, "learned"), _parts(file, "curves")
    return Study(
        spec=spec,
        heads=heads,
        **about,
        **found,
        arrays={name: values for name, values in arrays.items() if values is not None},
        off=off,
        learned=tuple(_read_learned(one, sizes) for one in learned),
        curves=tuple(_read_curve(one, heads, sizes["examples"]) for one in curves),
        masks=_read_masks(file, heads),
        made=read_made(file),
        path=path,
    )


def _read_about(file: h5py.File) -> dict[str, Any]:
    data = parsed(file, "about")
    require(isinstance(data, dict), "what it says about itself is no table")
    words = {name: data.get(name) for name in ("asked", "metric", "data", "data_digest")}
    require(all(isinstance(one, str) for one in words.values()), "it does not say what it is of")
    require(words["asked"] in get_args(Asked), f"it knows no {words['asked']!r:.40}")
    labels, seed = data.get("labels"), data.get("seed")
    good = isinstance(labels, list) and all(isinstance(one, str) for one in labels)
    require(good, "its labels are no names")
    require(type(seed) is int and 0 <= seed < 1 << 63, "its seed is no number")
    texts = data.get("texts", 0)
    require(type(texts) is int and 0 <= texts < 1 << 63, "it does not say of how many texts it is")
    named = {name: plain(one) for name, one in words.items()}
    return {**named, "labels": plain(tuple(labels)), "seed": seed, "texts": texts}


def _arrays(group: h5py.Group, table: dict[str, Row], sizes: dict[str, int]) -> dict[str, Any]:
    found = {name: dataset(group, name, row, sizes) for name, row in table.items()}
    return {name: None if one is None else numbers(one) for name, one in found.items()}


def _check(found: dict[str, Any], about: dict[str, Any], spec: ModelSpec) -> None:
    """That the arrays mean what their names say; NaN only where something can be unmeasured."""
    places, wanted, given, loss = (found[one] for one in ("places", "wanted", "given", "loss"))
    good = len(places) == len(found["lengths"]) + 1 > 1 and places[0] == 0
    good = good and bool((np.diff(places) >= 0).all()) and places[-1] == len(wanted)
    require(good, "its places do not belong to its examples")
    require(bool((found["lengths"] >= 0).all()), "an example of it has less than no tokens")
    labels = len(about["labels"]) or None
    ends = max(found["lengths"].max(), 1)
    # those of states are numbers of examples, of which these may be some
    limits = {"classes": labels, "tags": labels, "ends": ends, "states": None}
    limit = limits.get(about["asked"], spec.vocabulary)
    known = bool((wanted >= 0).all() and (given >= NO_PREDICTION).all())
    if limit is not None:
        known = known and bool((wanted < limit).all() and (given < limit).all())
    require(known, "it has other answers than its model knows")
    agree = np.isnan(loss) == (given == NO_PREDICTION)
    require(bool(agree.all()), "its losses and answers disagree")
    require(not np.isinf(loss).any(), "loss of it is infinite somewhere")
    if found["change"] is not None:
        require(
            bool(np.isin(found["change"], (-1, 0, 1, UNKNOWN)).all()), "it knows no such changes"
        )
    for name in ("sizes", "saved_parameters", "saved_flops"):
        if (one := found[name]) is not None:
            least = one if name == "sizes" else one[:, :2]
            require(
                bool(np.isfinite(one).all() and (least >= 0).all()), f"{name} of it are no sizes"
            )


def _own_arrays(file: h5py.File, sizes: dict[str, int]) -> dict[str, Any]:
    """The arrays of scores that measured their own, known here or not."""
    if not has(file, "arrays"):
        return {}
    group = subgroup(file, "arrays")
    require(len(group) <= MAX_ARRAYS, f"it has {len(group):,} arrays")
    names = sorted(group)
    good = all(name.isascii() and name.isidentifier() and len(name) <= 64 for name in names)
    require(
        good and not set(names) & set(measured.ARRAYS), "an array of it has no name that can be"
    )
    return _arrays(group, dict.fromkeys(names, OWN_ARRAY), sizes)


def _parts(file: h5py.File, name: str) -> list[h5py.Group]:
    if not has(file, name):
        return []
    group = subgroup(file, name)
    require(len(group) <= MOST_PARTS, f"it has {len(group):,} {name}")
    return [subgroup(group, f"{number:03}") for number in range(len(group))]


def _read_learned(group: h5py.Group, sizes: dict[str, int]) -> LearnedImportance:
    runs = _arrays(group, LEARNED, {"heads": sizes["heads"]})["runs"]
    require(bool(np.isfinite(runs).all()), "what was learnt is not finite")
    note = "".join(one if one.isprintable() else " " for one in text(group, "note")[:MOST_NOTE])
    return LearnedImportance(plain(attribute(group, "method", "")), runs, note)


def _read_curve(group: h5py.Group, heads: tuple[HeadId, ...], examples: int) -> PruningCurve:
    found = _arrays(group, CURVE, {"two": 2})
    order, removed, rows = _heads(found.pop("order"), heads), found["removed"], found["rows"]
    good = len(removed) > 0 and bool((np.diff(removed) > 0).all())
    good = good and removed[0] >= 0 and removed[-1] <= len(order)
    require(good, "the points of a curve are not along its order")
    good = bool((np.diff(rows) > 0).all()) and (not len(rows) or rows[0] >= 0)
    require(good and (not len(rows) or rows[-1] < examples), "a curve is of other examples")
    for name in _VALUES:
        require(not np.isnan(found[name]).any(), f"{name} of a curve has gaps")
    for name in ("values", "loss", "change"):
        require(bool(np.isfinite(found[name]).all()), f"{name} of a curve is infinite somewhere")
    if (times := found["times"]) is not None:
        require(bool((np.isfinite(times) & (times > 0)).all()), "times of a curve are none")
    words = {name: plain(attribute(group, name, "")) for name in _WORDS}
    seed = attribute(group, "seed", 0)
    return PruningCurve(order=order, seed=seed, **words, **found)


def _read_masks(file: h5py.File, heads: tuple[HeadId, ...]) -> tuple[Mask, ...]:
    if not has(file, "masks"):
        return ()
    rows = parsed(file, "masks")
    require(isinstance(rows, list), "its masks are no list")
    changes = parsed(file, "mask_changes") if has(file, "mask_changes") else [None] * len(rows)
    require(isinstance(changes, list), "the changes of its masks are no list")
    require(len(changes) == len(rows), "the changes of its masks are of other masks")
    both = zip(rows, changes, strict=True)
    return tuple(_mask(row, _change(one), heads) for row, one in both)


def _change(row: Any) -> tuple[float, float, float] | None:
    if row is None:
        return None
    good = isinstance(row, list) and len(row) == 3
    good = good and all(type(one) in _NUMBER and abs(one) <= 1 for one in row)
    require(good, "the change of a mask is none")
    value, low, high = map(float, row)
    return value, low, high


def _mask(row: Any, change: tuple[float, float, float] | None, heads: tuple[HeadId, ...]) -> Mask:
    good = isinstance(row, list) and len(row) == 3 and isinstance(row[0], str)
    require(good and isinstance(row[1], list), "a mask of it is none")
    name, pairs, score = row
    good = all(isinstance(one, list) and [*map(type, one)] == [int, int] for one in pairs)
    require(good, "a mask of it names no heads")
    off = frozenset(HeadId(*one) for one in pairs)
    require(off <= set(heads), "a mask of it is of another model")
    found = None if score is None else _score(score, off)
    return Mask(plain(name), off, found, change if found is not None else None)


def _score(row: Any, off: HeadSet) -> MetricEstimate:
    good = isinstance(row, list) and len(row) == 6 and isinstance(row[0], str)
    for one, kinds in zip(row[1:] if good else (), _SCORE, strict=False):
        good = good and type(one) in kinds
        good = good and (one is None or -(1 << 63) < one < 1 << 63)  # no NaN either
    require(good, "the score of a mask is none")
    metric, value, low, high, seen, total = row
    require(0 <= seen <= total, "the score of a mask is none")
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    return MetricEstimate(plain(metric), float(value), low, high, seen, total, off)


def _heads(pairs: NDArray[Any], known: Iterable[HeadId]) -> tuple[HeadId, ...]:
    """Heads as stored, each once and of the model. Errors: Refused."""
    found = tuple(HeadId(int(layer), int(head)) for layer, head in pairs)
    require(len(set(found)) == len(found), "it names a head twice")
    require(set(found) <= set(known), "it names heads that its model does not have")
    return found
