//! The evaluation failed: a judge, a harness, a metric. The training that it evaluates stays good.

use trackway_core::TerminationReason::EvaluatorError;

use super::{RuleName, Signature, cause};

/// A judge, or another service behind an interface, refused or did not answer.
pub(crate) const JUDGE_API: RuleName = RuleName("evaluator.judge_api");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        JUDGE_API.as_str(),
        EvaluatorError,
        r"RateLimitError|insufficient_quota|exceeded your current quota|(openai|anthropic|cohere|mistralai|litellm|groq|together|bedrock|genai|azure openai|gemini)[\w.]*[^\n]{0,120}(error|exception|rate.?limit|overloaded|timed out|429|40[013]|50\d)|overloaded_error|context_length_exceeded|rate_limit_exceeded|rate limit (reached|exceeded)|(error|unauthorized|forbidden|timed out)\b[^\n]{0,160}(api\.openai|openai\.azure|api\.anthropic|generativelanguage)\.|\bAPI(Connection|Status|Timeout|Response)?Error\b|encountered api error|\bApiError\b|(tokens|requests) per min|content_filter|content management policy|incorrect api key|ThrottlingException|resource has been exhausted \(e\.g\. check quota\)|maximum context length is",
    )
    .unless(r"wandb|huggingface\.co|kubernetes|azure\.storage|azureml|gcsfs|git-lfs|s3fs|storage\.googleapis"),
    cause(
        "evaluator.harness",
        EvaluatorError,
        r"\beval\b: [^\n]{0,40}fail|(could not|cannot|failed to) score\b|(evaluation|evaluator|eval(uation)? (job|run|task|harness|step|script|suite|server)|judge( model)?|grader|scorer|benchmark|scoring|metrics? (computation|calculation))\b[^\n]{0,60}\b(fail(ed|ure|s)?|crash(ed)?|error(ed)?|exception|timed out|aborted|could not|unable)\b|(fail(ed|ure)?|error|exception|unable|crash(ed)?|cannot|could not)\b[^\n]{0,50}\b(during|while|in|to|when|running|parse|parsing|from|by|load|run)[^\n]{0,20}\b(evaluat\w*|judge\w*|grad(er|ing)|scor(e|er|ing)|benchmark\w*|lm[-_]eval|the metric|metrics)\b|(judge|grader|evaluator)[^\n]{0,60}(timed out|exceeded|invalid|malformed|unparsable|unparseable|could not parse|no (score|rating|verdict|valid)|not (valid|parse))|(lm_eval|lmms_eval|opencompass|ragas|deepeval|mteb|inspect_ai|vlmeval|bigcode_eval|human_eval|swebench|helm)[\w./:-]*[^\n]{0,60}(error|exception|fail|assert)|compute_metrics[^\n]{0,60}(fail|error|exception)|HumanEval|reference[^\n]{0,30}answers? (missing|not found)",
    )
    .unless(r"early stopp|^\s*file |evaluat(e|ing|ion) (loss|error)\b|metric[s]? error ?[:=] ?[\d.]|\b(eval|test|val)_error|INFO|ModelCheckpoint|monitored key"),
    cause(
        "evaluator.task",
        EvaluatorError,
        r"mismatch in the number of predictions|\btasks? (\W\w{1,40}\W )?(were |was )?not found|classification metrics can'?t handle|average='binary'|target is multi(class|label)|roc.?auc[^\n]{0,40}(not defined|error|undefined)|y_(true|pred)[^\n]{0,60}(mismatch|different|inconsistent|contains|unknown|nan)|\b(rouge|bleu|bertscore|meteor|sacrebleu|comet)[^\n]{0,60}(error|fail|exception|empty)|answer extraction failed|(testing|test|evaluation|detection|prediction) results?[^\n]{0,40} (is|are) empty|predictions?[^\n]{0,40}references?[^\n]{0,60}(mismatch|length|match|expected)",
    )
    .unless(r"comet_ml|comet\.(com|ml)"),
];
