"""Models of two inputs on the Prune page: scored on pairs of texts with heads switched off."""

import pytest

from hgviz.core import HeadId
from hgviz.models import open_model
from tests.models.zoo import write
from tests.test_pairs import PAIRS, tokenizer


@pytest.fixture
def pairs(tmp_path):
    path = write(tmp_path / "t5", "t5", "T5ForConditionalGeneration", decoder_start_token_id=0)
    tokenizer().save(str(path / "tokenizer.json"))
    lines = ["text\ttarget", *("\t".join(pair) for pair in PAIRS)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return path, tmp_path / "pairs.tsv"


def test_its_score_follows_heads_that_are_switched_off(program, until, pairs, errors):
    path, data = pairs
    program.session.put(model=open_model(path), checkpoint=str(path))
    program.commands.run("prune")
    program.settle()
    program.commands.use_data(str(data))
    session = program.session
    until(lambda: session.trial is not None and session.trial.done)
    program.settle()
    whole = session.trial.before.loss.copy()
    session.put(off=frozenset({HeadId(0, 1), HeadId(2, 0)}))
    until(lambda: session.trial.done and session.trial.off == session.off)
    program.settle()
    assert len(session.trial.now.loss) == len(whole) and (session.trial.now.loss != whole).all()
    assert not errors()
