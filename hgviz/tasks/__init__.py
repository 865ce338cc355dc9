"""The verbs: what the two faces ask for. Each is a generator of steps that returns its result.

Heavy packages are imported when a verb needs them, so that importing this package costs nothing.
"""

from hgviz.tasks.accounting import read_report, report_facts, sweep_answers, sweep_report
from hgviz.tasks.alike import capture_alike
from hgviz.tasks.attributing import attribution_panel, attribution_rows, given_words, said_by
from hgviz.tasks.capturing import capture, save
from hgviz.tasks.comparing import compare, compare_answers
from hgviz.tasks.composing import (
    attention_flow,
    of_tokens,
    rollout,
    together,
    tokens_or_slots,
    with_norms,
)
from hgviz.tasks.concluding import conclude
from hgviz.tasks.corpus import capture_corpus
from hgviz.tasks.dividing import spread_curve, spread_study
from hgviz.tasks.drawing import draw, figure, panel, preview, sheet
from hgviz.tasks.explaining import explain, head_beside, question_of
from hgviz.tasks.generating import generate, write
from hgviz.tasks.laboratory import laboratory, report, require_report, words_of
from hgviz.tasks.learning import beside, learned, with_learned
from hgviz.tasks.looking import answers, measure, model_of, require_model_of
from hgviz.tasks.merging import merge_sweeps, said_of_merging
from hgviz.tasks.observing import habits, habits_of_model, habits_of_text
from hgviz.tasks.opening import (
    capture_at,
    convert,
    heads_from,
    info,
    kind_of,
    load,
    prompt_from,
    study_at,
)
from hgviz.tasks.plotting import sweep_chart
from hgviz.tasks.pruning import curve, curve_times, trials_of, try_heads
from hgviz.tasks.reaching import pass_times, reach, reach_facts, reach_panel
from hgviz.tasks.removing import heads_of_study, prune, why_not
from hgviz.tasks.repeating import redundancy, redundancy_of_captures, redundancy_panel
from hgviz.tasks.reporting import chart
from hgviz.tasks.scoring import evaluate, examples_from, train
from hgviz.tasks.sharing import collaborate
from hgviz.tasks.sheets import sheet_at, sheet_of, sources_of, spec_from
from hgviz.tasks.sides import spread_sides
from hgviz.tasks.spreading import Origin, Spread
from hgviz.tasks.studying import importance, keeping, kept_study, study
from hgviz.tasks.sweeping import is_sweep_file, open_sweep, run_sweep, sweep_at
from hgviz.tasks.tuning import tune

__all__ = [
    "Origin", "Spread", "answers", "attention_flow", "attribution_panel", "attribution_rows",
    "beside", "capture", "capture_alike", "capture_at", "capture_corpus", "chart", "collaborate",
    "compare", "compare_answers", "conclude", "convert", "curve", "curve_times", "draw", "evaluate",
    "examples_from", "explain", "figure", "generate", "given_words", "habits", "habits_of_model",
    "habits_of_text", "head_beside", "heads_from", "heads_of_study", "importance", "info",
    "is_sweep_file", "keeping", "kept_study", "kind_of", "laboratory", "learned", "load", "measure",
    "merge_sweeps", "model_of", "of_tokens", "open_sweep", "panel", "pass_times", "preview",
    "prompt_from", "prune", "question_of", "reach", "reach_facts", "reach_panel", "read_report",
    "redundancy", "redundancy_of_captures", "redundancy_panel", "report", "report_facts",
    "require_model_of", "require_report", "rollout", "run_sweep", "said_by", "said_of_merging",
    "save", "sheet", "sheet_at", "sheet_of", "sources_of", "spec_from", "spread_curve",
    "spread_sides", "spread_study", "study", "study_at", "sweep_answers", "sweep_at", "sweep_chart",
    "sweep_report", "together", "tokens_or_slots", "train", "trials_of", "try_heads", "tune",
    "why_not", "with_learned", "with_norms", "words_of", "write",
]  # fmt: skip
