"""The results of the worked studies: one CSV beside each study file, a row for each score and each
curve, read as the study that gave them.

    python docs/kept.py DIR NAME.csv         keep the results of a study's folder
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from hgviz.store.studies import SweepFolder  # noqa: E402 - of this source
from hgviz.study import Cell, Sweep  # noqa: E402

STUDIES = HERE / "studies"
AXES = ("data", "model", "activation", "seed", "method")
# right: whether each text is, as hexadecimal digits; off, values: of every point of a curve
COLUMNS = (
    "work", *AXES, "metric", "value", "loss", "parameters", "texts", "right", "heads", "order",
    "off", "values",
)  # fmt: skip


def keep(sweep: Sweep, file: Path) -> None:
    """Write the scores and the curves of a study."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for one in sweep.standings:
            place = {axis: one.cell.place.get(axis, "") for axis in AXES}
            found: Any = one.found
            if one.cell.work == "score":
                same = {name: found[name] for name in ("metric", "value", "loss", "parameters")}
                more = {"texts": found["total"], "right": found["right"]["bits"]}
                writer.writerow({"work": "score", **place, **same, **more})
            for curve in found["curves"] if one.cell.work == "curve" else ():
                names = ("order", "off", "values")
                lists = {name: " ".join(map(str, curve[name])) for name in names}
                more = {"metric": curve["unit"], "heads": found["heads"]}
                writer.writerow({"work": "curve", **place, **more, **lists})


def restore(name: str, folder: Path) -> Sweep:
    """Write the study of a CSV into a folder, as `hgviz study run` leaves it, and read it."""
    cells: dict[tuple[str, ...], tuple[Cell, dict[str, Any]]] = {}
    with (STUDIES / f"{name}.csv").open(encoding="utf-8", newline="") as source:
        rows = [*csv.DictReader(source)]
    for row in rows:
        place = {axis: row[axis] for axis in AXES if row[axis]}
        key = row["work"], *place.values()
        if row["work"] == "score":
            found = {"metric": row["metric"], "value": float(row["value"])}
            found |= {"loss": float(row["loss"]), "parameters": int(row["parameters"])}
            found |= {"total": int(row["texts"])}
            found |= {"right": {"count": int(row["texts"]), "bits": row["right"]}}
        else:
            _, found = cells.get(key, (None, {"heads": int(row["heads"]), "curves": []}))
            found["curves"].append({
                "unit": row["metric"], "order": row["order"].split(),
                "off": [*map(int, row["off"].split())],
                "values": [*map(float, row["values"].split())],
            })  # fmt: skip
        cells[key] = Cell(row["work"], {"trained": "", **place}, place=place), found
    kept = SweepFolder(folder)
    file = (STUDIES / f"{name}.toml").read_text("utf-8")
    kept.write_plan(file, [cell for cell, _ in cells.values()])
    for cell, found in cells.values():
        kept.keep(cell.key, found, {})
    return kept.sweep()


if __name__ == "__main__":
    keep(SweepFolder(sys.argv[1]).sweep(), Path(sys.argv[2]))
