"""What a process keeps open from one cell to the next: models, and what they are tried on.

A hundred cells of one model open it once. A process computes one cell at a time, see cluster.whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from hgviz.core import HgvizError, heads_named

if TYPE_CHECKING:
    from hgviz.models.measures.trials import Trials
    from hgviz.models.model import Model
    from hgviz.models.texts.corpora import Corpus

MODELS, TRIED = 2, 2  # at most so many are kept of each kind: the two sides of a comparison

Thing = TypeVar("Thing")

_kept: dict[str, OrderedDict[Hashable, Any]] = {}


def kept(kind: str, most: int, key: Hashable, make: Callable[[], Thing]) -> Thing:
    """What make gives, made once while it is among the last `most` of its kind."""
    things = _kept.setdefault(kind, OrderedDict())
    if key not in things:
        while len(things) >= most:  # before another takes memory, too
            things.popitem(last=False)
        things[key] = make()
    things.move_to_end(key)
    return things[key]  # type: ignore[no-any-return]


def forget() -> None:
    """Let go of all that is kept: no more cells come."""
    _kept.clear()


# --- what cells are given -------------------------------------------------------------------------


def model_of(given: Mapping[str, Any], path: str) -> Model:
    """The model at a path, as a cell asks for it: model (its digest), device, dtype, masking and
    activation. Errors: HgvizError, also where another model lies there by now."""
    return kept("model", MODELS, _key(given), lambda: _opened(given, path))


def trials_of(given: Mapping[str, Any], paths: Mapping[str, str], side: str = "") -> Trials:
    """That model ready to be tried: given also says off, data (its digest), columns and limit.

    half: a seed, where only those examples are meant that a curve is measured on. side: which of
    two models. Errors: HgvizError.
    """
    mine = given[side] if side else given
    words = ("data", "columns", "limit", "half")
    key = (_key(mine), tuple(mine["off"]), *(str(given.get(word)) for word in words))

    def make() -> Trials:
        from hgviz.analysis.orders import split
        from hgviz.models.measures.trials import Trials
        from hgviz.tasks.planning import digest_of_file
        from hgviz.tasks.scoring import examples_from

        if digest_of_file(paths["data"]) != given["data"]:
            raise changed(paths["data"])
        model = model_of(mine, paths[f"model{side and ' '}{side}"])
        examples = examples_from(model, paths["data"], *given["columns"])
        some = examples.sample(given["limit"]) if given["limit"] else examples
        if "half" in given:
            some = some.part(split(len(some), given["half"])[1])
        return Trials(model, some, heads_named(",".join(mine["off"]), model.spec.layers))

    return kept("trials", TRIED, key, make)


def corpus_of(model: Model, path: str, digest: str) -> Corpus:
    """The texts at a path. Errors: HgvizError, also where others lie there by now."""

    def make() -> Corpus:
        from hgviz.models.texts import corpora

        read = corpora.corpus_for(model, path)
        if read.digest != digest:
            raise changed(path)
        return read

    return kept("corpus", 1, (model.spec.digest, digest), make)


def changed(path: str) -> HgvizError:
    """What is said of a file that is not what it was."""
    return HgvizError(
        f"{path} has changed since the work began", "its results would be of two models or data",
        "Put it back, or begin anew with --force",
    )  # fmt: skip


def _opened(given: Mapping[str, Any], path: str) -> Model:
    from hgviz.models import open_model

    how = (given["device"], given["dtype"], given["masking"], given["activation"])
    model = open_model(path, *how)
    if model.spec.digest != given["model"]:
        raise changed(path)
    return model


def _key(given: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(given[word]) for word in ("model", "device", "dtype", "masking", "activation"))


__all__ = ["MODELS", "changed", "corpus_of", "forget", "kept", "model_of", "trials_of"]
