"""The plan of a published Hourglass, as the page has it, and what its table says of the others."""

import math
import re
from pathlib import Path

from hgviz.models.formats.checkpoint import shapes_of
from hgviz.models.formats.own import parse_config
from hgviz.models.training.plan import read_plan

PAGE = (Path(__file__).parents[3] / "docs" / "training.md").read_text("utf-8")
SECTION = PAGE.partition("## The published Hourglasses\n")[2].partition("\n## ")[0]


def table():
    """Each row of the table by its name, a cell for every model."""
    lines = [line for line in SECTION.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: cells for name, *cells in rows}


def test_the_plan_of_the_page_is_one_that_is_read(tmp_path):
    (tmp_path / "plan.toml").write_text(re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)[0])
    plan, rows = read_plan(tmp_path / "plan.toml"), table()
    stated = {"attention_downsampling": "average", **plan.model}
    for name in ("hierarchy", "vocab_size", "attention_downsampling", "attention_upsampling"):
        assert str(stated[name]) == rows[name][0]
    recipe, stage = plan.recipe, plan.recipe.stages[0]
    assert (
        f"{recipe.rate:.1e}".replace("e-0", "e-") + f", {recipe.warmup}" == rows["rate, warmup"][0]
    )
    assert [str(recipe.steps), str(recipe.dropout)] == [rows["steps"][0], rows["dropout"][0]]
    assert f"{stage.length}, {stage.batch}" == rows["length, batch"][0]


def test_the_models_of_the_table_have_as_many_parameters():
    rows = table()
    for number, said in enumerate(rows["parameters"]):
        d_model, d_ff, n_heads = map(int, rows["d_model, d_ff, n_heads"][number].split(", "))
        keys = {
            name: rows[name][number]
            for name in ("hierarchy", "attention_downsampling", "attention_upsampling")
        }
        config = parse_config(
            {"vocab_size": int(rows["vocab_size"][number]), "d_model": d_model, "d_ff": d_ff,
             "n_heads": n_heads, **keys}
        )  # fmt: skip
        assert f"{sum(map(math.prod, shapes_of(config).values())):,}" == said
