"""What is said of two models, and their report."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.cli import terminal
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Disagreement
    from hgviz.models.model import Model


def verdict(models: tuple[Model, Model], found: Disagreement) -> list[str]:
    """Which is better and how sure that is, as sentences."""
    from hgviz.analysis.comparison import LISTED_EXAMPLES
    from hgviz.analysis.statistics import COSINE_TO_A, describe_score

    count = len(found.differing)
    listed = f", of which {LISTED_EXAMPLES} are listed" if count > LISTED_EXAMPLES else ""
    if found.a.score.metric == COSINE_TO_A:
        assert found.agreement is not None  # compare_states counts it
        return [
            f"B, {models[1].spec.name}: {describe_score(found.b.score)}.",
            f"Of A's states the nearest is that of the same example on "
            f"{100 * found.agreement:.1f} %; {count:,} are nearer to another's{listed}.",
        ]
    lines = [
        f"{name}, {model.spec.name}: {describe_score(one.score)}{one.on}."
        for name, model, one in zip("AB", models, (found.a, found.b), strict=True)
    ]
    if found.difference is None or found.agreement is None or found.p is None:
        return lines + [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    value, low, high = found.difference
    bits = found.a.score.metric == "bits_per_byte"
    scale, unit = (1.0, " bits per byte") if bits else (100.0, " points")
    ends = f" ({scale * low:+.3g} to {scale * high:+.3g})" if abs(low) < 1e9 else ""
    total = found.pairs
    p = "< 0.0001" if found.p < 0.0001 else f"{found.p:.3g}"
    lines.append(
        f"B less A: {scale * value:+.3g}{unit}{ends}. Only A is right on {found.a_only:,}, only B "
        f"on {found.b_only:,} of {total:,}: McNemar's p {p}."
    )
    lines.append(f"The same answer on {100 * found.agreement:.1f} %; {count:,} differ{listed}.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in found.notes]


def report(
    models: tuple[Model, Model],
    paths: tuple[Path, Path],
    given: dict[str, Any],
    asked: Any,
    changes: dict[str, str | None],
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure two models and write all of it as one report."""
    from hgviz import tasks

    assert out is not None  # compare asks for it
    data, text_column, label_column, off, limit, texts, names = asked
    heads = tasks.heads_from(off, models[1].spec)
    words = tasks.words_of(given["--text"], given["--text-file"])
    signal = given["--image"] or given["--audio"]
    columns = (text_column, label_column)
    work = partial(
        tasks.laboratory, *models, data, words, *columns, heads, limit, texts, names, signal
    )
    found = terminal.run(work, "Measuring")
    options: dict[str, object] = {
        "--data": data, **given,
        "--text-column": text_column or None, "--label-column": label_column or None,
        **{f"--labels{end}": one and ",".join(f"{x}={y}" for x, y in one.items())
           for end, one in zip(("", "-b"), names, strict=True) if end == "" or one != names[0]},
        **changes, "--limit": limit, "--texts": texts, "-o": out,
    }  # fmt: skip
    parts = [word for name, one in options.items() if one is not None for word in (name, str(one))]
    command = shlex.join(["hgviz", "compare", *map(str, paths), *parts])
    terminal.run(partial(tasks.report, found, out, command), "Writing")
    if as_json:
        print(json.dumps(found.facts(), allow_nan=False))
        return
    for line in verdict(models, found.answers):
        terminal.say(line)
    from hgviz.tasks.wording import label

    differ = ", ".join(label(one.name) for one in found.changes if one.differs)
    shown = f"what differs is: {differ}" if differ else "no difference is shown"
    terminal.say(f"Heads, on {counted(found.a.texts, found.noun)}: {shown}.")
    terminal.say(f"{out}: the report.")
