//! Loss, gradients or parameters stopped being finite, or ran away.

use trackway_core::TerminationReason::NumericDivergence;

use super::{RuleName, Signature, cause, hint};

/// A scaler skipped an update: usual when it happens now and then.
pub(crate) const OVERFLOW_SEEN: RuleName = RuleName("numeric.overflow_seen");
/// A value that is NaN is printed.
pub(crate) const NAN_PRINTED: RuleName = RuleName("numeric.nan_printed");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "numeric.loss_scale_floor",
        NumericDivergence,
        r"minimum loss scale reached|loss.?scale (is )?(already )?(at|reached|below|has reached)[^\n]{0,20}minimum|cannot decrease (loss )?scale|(loss|grad)[ _]scale[^\n]{0,30}(too small|underflow|is zero|(= ?|is )0(\.0+)?([^.\d]|\.\s|$)|below)|loss scale at minimum",
    )
    .conclusive(),
    cause(
        "numeric.loss_not_finite",
        NumericDivergence,
        r"nan(.?loss)?DuringTraining|model diverged|\b(train(ing)?[ _])?(loss|losses|loss_value|cost|objective|perplexity|total_loss)\b[^\n]{0,40}?\b(is|was|are|became|becomes|went|goes|of|turned|has become|contains?|got|hit)( to| a| an)?:? ?[\x22'`(\[]?(nan|inf|infinite|infinity|non-?finite|not finite)\b|(nan|inf(inite)?|non-?finite|invalid) (or (nan|inf(inite)?) )?(loss|losses|gradients?|grads?|grad norm|objective)|(loss|gradient|grad(_norm)?|activation|weight|parameter|logit|output|model|update)s?[^\n]{0,40}(contains?|has|have|are|is|became|found|detected|with)[^\n]{0,20}\b(nans?|infs?|infinity|non-?finite)\b|invalid loss, terminating|loss (is )?(nan|inf)[^\n]{0,20}(stop|abort|exit|terminat)|(loss|grad)[ _]?scal\w+[^\n]{0,60}(non-?finite|not finite|\bnan\b)|(gradients?|losses) (at|of|in) all (steps|batches|iterations|updates) (are|were) (invalid|nan|inf|not finite)|all (the )?(gradients?|losses)[^\n]{0,20} (are|were) (invalid|nan|inf|not finite)",
    )
    .unless(r"\bno nan|nan_to_num|column|skipping|input (x |y )?contains|nan values? in (the )?(data|column|feature)|label"),
    cause(
        "numeric.nan_found",
        NumericDivergence,
        r"(found|detected|encountered|got|produced|returned|hit|has|had)[^\n]{0,40}\b(nans?|infs?|non-?finite)\b[^\n]{0,60}(grad|loss|weight|param|tensor|norm|output|activation|layer|step|train|model|value|th output|iteration|batch|forward|backward|logit|action|observation|reward|policy|advantage)|(?-i:\bNaN)s? (or Inf )?(found|detected|encountered)|\bnans? (or infs? )?(was |were |is |are )?(found|detected|encountered) (in|at|during|while) (the )?(loss|grad|forward|backward|step|epoch|iteration|train|weight|param|output|activation|layer|logit|model)|unexpected result \W?(tensor\()?(nan|inf)\b|invalid value \(?nan\)?|tensor had (nan|inf)|CheckNumerics|returned nan values in its \d+\w* output|FloatingPointError: (invalid|overflow|divide|nan|inf)|FloatingPointError\b|probability tensor contains either|cumdist\[size - 1\]|found invalid values:|the parameter \w+ has invalid values|domainerror with nan|bad initial energy|initial evaluation of model at starting point failed|log probability evaluates to log\(0\)|matrix contains invalid numeric entries|must be (a )?finite|is not finite|isfinite\([^\n]*\)|cannot convert float (nan|infinity) to integer|nan in (summary )?histogram|array must not contain infs or nans|nan, inf or huge value|nan(s)? in (the )?(\w+ )?(loss|grad|weight|param|model|output|logit|polic|reward|action|observation)",
    )
    .unless(r"\bno nan|nan_to_num|column|skipping|input (x |y )?contains|dataframe|csv|feature"),
    cause(
        "numeric.floating_point_error",
        NumericDivergence,
        r"FloatingPointError\b|gradients are inconsistent between workers|grad norm is (inf|nan)",
    ),
    cause(
        "numeric.diverged",
        NumericDivergence,
        r"(training|model|loss|optimi[sz](er|ation)|solver|run|fit|trial|algorithm|objective)[^\n]{0,40}(has |have |is |was )?(diverg(ed|ing|ence)|explod(ed|ing)|bl(own|ew) up)|(exploding|exploded|vanish(ing|ed)) gradients?|degenerate solution|non-?finite (grad\w*|loss\w*|norm)|svd did not converge|linalg[^\n]*(converge|singular|positive|ill-conditioned)|math range error|(loss|grad|gradient)[^\n]{0,30}(exceed|above|\bover\b|larger|greater|too (large|high))[^\n]{0,40}|not positive[- ]definite|leading minor|diverg(ed|ence)( detected)?[,.:!]|numerical(ly)? (instab|unstable)",
    )
    .unless(r"kl[_ ]diverg|divergen(t|ce)[_ =](loss|weight)|recursion"),
    hint(
        OVERFLOW_SEEN.as_str(),
        NumericDivergence,
        r"overflow detected|gradient overflow|overflow! |reducing loss scale|OVERFLOW!",
    ),
    hint(
        NAN_PRINTED.as_str(),
        NumericDivergence,
        r"(\b|_)(loss|grad_norm|gnorm|cost|objective|perplexity|ppl|accuracy|mse|mae|rmse|logloss|l[12]|error|reward|train|valid|test)\w*['\x22]?\]?\s*[:=|\s]\s*['\x22(\[]?\s*[+-]?nan\b|\bavg iou: -?nan|\bnan,? (avg|mean|train|total|average) loss",
    ),
];
