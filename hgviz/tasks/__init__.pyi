from .attribution import (
    answer_number,
    attribute,
    attribution_panel,
    attribution_rows,
    default_question,
    key_scores,
    prompt_options,
    token_name,
)
from .captures import (
    Estimate,
    capture,
    capture_corpus,
    capture_like,
    capture_written,
    estimate,
    generate,
    read_capture,
    read_prompts,
    save,
    token_rows,
    write,
)
from .charts import reach_panel, redundancy_panel, study_chart
from .comparison import compare, compare_answers, compare_models
from .comparison_report import write_report
from .figures import draw, panel, preview, sources_of
from .files import (
    blocks_without_attention,
    capture_at,
    checkpoint_formats,
    checkpoint_suffixes,
    convert,
    digest_of,
    info,
    kind_of,
    load,
    study_at,
    text_of,
)
from .head_similarity import redundancy, redundancy_of_captures
from .heads import (
    roles_of_capture,
    roles_of_model,
    roles_of_text,
    rollout,
    rollout_capture,
    tokens_or_slots,
)
from .measurements import importance, keeping, kept_study, patching
from .pruning import (
    curve,
    curve_times,
    heads_of_study,
    heads_to_remove,
    prune,
    trials_of,
    trials_on,
    try_heads,
    with_learned,
)
from .reachability import pass_times, reach, reach_facts
from .scoring import evaluate, examples_from, train
from .studies import is_sweep_file, open_sweep, run_sweep, sweep_at
from .study_results import read_results, study_report, sweep_chart

__all__ = [
    "Estimate", "answer_number", "attribute", "attribution_panel", "attribution_rows",
    "blocks_without_attention", "capture", "capture_at", "capture_corpus", "capture_like",
    "capture_written", "checkpoint_formats", "checkpoint_suffixes", "compare", "compare_answers",
    "compare_models", "convert", "curve", "curve_times", "default_question", "digest_of", "draw",
    "estimate", "evaluate", "examples_from", "generate", "heads_of_study",
    "heads_to_remove", "importance", "info", "is_sweep_file", "keeping", "kept_study", "key_scores",
    "kind_of", "load", "open_sweep", "panel", "patching", "pass_times", "preview",
    "prompt_options", "prune", "reach", "reach_facts", "reach_panel", "read_capture",
    "read_prompts", "read_results", "redundancy", "redundancy_of_captures", "redundancy_panel",
    "roles_of_capture", "roles_of_model", "roles_of_text", "rollout", "rollout_capture",
    "run_sweep", "save", "sources_of", "study_at", "study_chart",
    "study_report", "sweep_at", "sweep_chart", "text_of", "token_name", "token_rows",
    "tokens_or_slots", "train", "trials_of", "trials_on", "try_heads", "with_learned", "write",
    "write_report",
]  # fmt: skip
