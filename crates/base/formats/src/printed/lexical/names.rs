//! Which names mean a metric, a setting, a step; and how they are written.

/// Words for measures of training, sorted. A name counts when one of its parts is among them.
static MEASURES: Words<76> = Words::new([
    "acc", "accuracy", "auc", "auroc", "bleu", "bpb", "bpc", "bpd", "cer", "chrf", "cider", "crps",
    "deviance", "dice", "ece", "eer", "elbo", "entropy", "epe", "f1", "fid", "fitness", "gnorm", "hits",
    "inertia", "iou", "kappa", "kl", "logloss", "loss", "losses", "lpips", "lr", "mae", "map", "map50",
    "mape", "mase", "mcc", "mcd", "mfu", "miou", "mota", "mpjpe", "mrr", "mse", "ndcg", "nll", "nme", "nmi",
    "norm", "pearson", "perplexity", "pesq", "ppl", "precision", "psnr", "r2", "recall", "return", "rew",
    "reward", "rewards", "rmse", "rouge", "score", "sdr", "smape", "spearman", "ssim", "stoi", "throughput",
    "top1", "top5", "wape", "wer",
]);
/// Two words that make one measure together.
const MEASURES_OF_TWO: [(&str, &str); 12] = [
    ("cross", "entropy"),
    ("learning", "rate"),
    ("grad", "norm"),
    ("loss", "scale"),
    ("loss", "value"),
    ("roc", "auc"),
    ("pr", "auc"),
    ("log", "loss"),
    ("balanced", "accuracy"),
    ("macro", "f1"),
    ("micro", "f1"),
    ("weighted", "f1"),
];
/// Sorted. Measures that are shares: `91.5%` of them is 0.915.
static SHARES: Words<21> = Words::new([
    "acc", "accuracy", "auc", "auroc", "cer", "dice", "error", "f1", "hits", "iou", "map", "map50", "miou",
    "mrr", "ndcg", "precision", "recall", "score", "top1", "top5", "wer",
]);
/// Sorted. Parts of the names of settings. A name with one of them, or with the learning rate, is a setting as long as no step was
/// seen: `entropy_coef = 0.01`, `max_grad_norm = 1`.
static OF_SETTINGS: Words<38> = Words::new([
    "alpha", "beta", "clip", "clipping", "coef", "coeff", "decay", "delta", "epochs", "eps", "epsilon",
    "every", "factor", "freq", "frequency", "gamma", "init", "interval", "iters", "lambda", "lr", "margin",
    "max", "num", "patience", "ratio", "scale", "size", "smoothing", "steps", "target", "thresh",
    "threshold", "type", "use", "warmup", "weight", "weights",
]);
/// Names of settings that every training has.
const SETTINGS: [&str; 10] = [
    "epochs", "seed", "batch_size", "dropout", "momentum", "weight_decay", "max_steps", "max_iters",
    "num_workers", "warmup_steps",
];
/// Sorted. Words for settings.
static SETTINGS_WORDS: Words<15> = Words::new([
    "args", "arguments", "cfg", "config", "configuration", "hparams", "hyperparameters", "hyperparams",
    "namespace", "options", "parameters", "params", "params_", "search_space", "settings",
]);
/// Words that say whose value it is; they join the name behind them.
const WHOSE: [&str; 17] = [
    "train", "training", "val", "vali", "valid", "validation", "test", "eval", "dev", "best", "average",
    "avg", "mean", "total", "running", "ema", "pseudo",
];
/// Sorted. Words for one of several values of a measure; they join the name of a measure behind them: `std reward`,
/// `minimum validation loss`, `Std of Reward`.
static STATISTICS: Words<15> = Words::new([
    "average", "avg", "deviation", "highest", "lowest", "max", "maximum", "mean", "median", "min", "minimum",
    "std", "stddev", "sum", "variance",
]);
/// Words in parentheses behind a measure for one of several ways to take it.
const VARIANTS: [&str; 9] =
    ["macro", "micro", "weighted", "samples", "small", "medium", "large", "strict", "relaxed"];
/// Measures that say nothing without the word before them: `feature norm`, `reward score`.
const OF_ANYTHING: [&str; 2] = ["norm", "score"];
/// Parts of a model that have a loss each; they join the word `loss` behind them.
const HAVE_LOSSES: [&str; 16] = [
    "d", "g", "disc", "discriminator", "gen", "generator", "actor", "critic", "policy", "value", "kl",
    "recon", "reconstruction", "adversarial", "adv", "aux",
];
/// Words that say whose all values of a line or table are, and the prefix of their names.
const WHOSE_LINE: [(&str, &str); 8] = [
    ("val", "val"),
    ("vali", "val"),
    ("valid", "val"),
    ("validation", "val"),
    ("test", "test"),
    ("testing", "test"),
    ("eval", "eval"),
    ("evaluation", "eval"),
];
/// Sorted.
static STEP_WORDS: Words<21> = Words::new([
    "env_steps", "frame", "generation", "global_step", "global_steps", "it", "iter", "iteration",
    "iterations", "iters", "itr", "num_timesteps", "num_updates", "round", "step", "steps", "t_env", "tick",
    "timestep", "timesteps", "update",
]);
const EPOCH_WORDS: [&str; 2] = ["epoch", "ep"];
/// Sorted. Words that make a number of steps something else than where the script is: how many there are, how often something
/// happens, how many were left out.
static OF_COUNTS: Words<20> = Words::new([
    "accum", "accumulation", "best", "decay", "each", "every", "fps", "max", "maximum", "min", "minimum",
    "nan", "num", "number", "per", "remaining", "skipped", "total", "warm", "warmup",
]);
/// The same, but only of a word in the plural: `eval steps = 500`.
const OF_COUNTS_IN_PLURAL: [&str; 9] =
    ["save", "saving", "eval", "evaluation", "logging", "log", "interval", "n", "episode"];
/// Words that `_step` may follow.
const OF_STEPS: [&str; 7] = ["train", "training", "global", "optimizer", "current", "cur", "env"];
/// Names that the step of the whole training has among the values of a bar.
const STEPS_OF_TRAINING: [&str; 8] = [
    "env_step", "env_steps", "global_step", "global_steps", "gradient_step", "gradient_steps",
    "num_timesteps", "num_updates",
];
/// Sorted. Values of these names say where, when or by whom a line was printed, how far the program is, or what it reads.
static NO_METRICS: Words<34> = Words::new([
    "batch", "data", "device", "episodes", "epoch", "eta", "fold", "gpu", "host", "images", "img_size",
    "jobid", "jobs", "line", "local_rank", "micro_step", "node", "percent", "percentile", "pid", "port",
    "progress", "rank", "run", "seed", "session", "size", "step", "thread", "trial", "v_num", "version",
    "worker", "world_size",
]);
/// Sorted. Numbers in objects that say when they were logged and on what.
static OF_LOGGING: Words<6> =
    Words::new(["_timestamp", "num_gpus", "time_ms", "timestamp", "total_time", "world_size"]);
/// Sorted. What the rows of a table of results are named by, in the heading of their names: `model`, `dataset`, `fold`.
static OF_ROWS: Words<50> = Words::new([
    "ablation", "algorithm", "approach", "arch", "architecture", "attack", "backbone", "baseline",
    "benchmark", "category", "checkpoint", "class", "classes", "classifier", "config", "configuration",
    "corruption", "dataset", "datasets", "domain", "encoder", "env", "environment", "estimator",
    "experiment", "fold", "group", "label", "labels", "lang", "language", "learner", "method", "methods",
    "model", "models", "network", "optimizer", "regressor", "scenario", "seed", "setting", "slice", "split",
    "subset", "system", "task", "tasks", "variant", "view",
]);
/// Sorted. Numbers that loggers write beside a message: where it comes from, and when. Loguru has them in `record`.
static OF_LOGGERS: Words<14> = Words::new([
    "created", "levelno", "line", "line_number", "lineno", "local_rank", "msecs", "pid", "process",
    "process_id", "rank", "relativeCreated", "thread", "thread_id",
]);
/// Sorted. Words that link others in a sentence. They are no names where names and values alternate.
static LINKING: Words<24> = Words::new([
    "about", "after", "and", "around", "at", "before", "below", "by", "for", "from", "in", "is", "of", "on",
    "over", "since", "than", "the", "to", "took", "until", "was", "with", "within",
]);
/// The number of the folder that Lightning logs to, which its bars show beside the metrics.
pub(in crate::printed) const LIGHTNING_VERSION: &str = "v_num";
/// What the names of counts of steps and epochs end with.
const COUNTS: [&str; 7] = ["steps", "iters", "iterations", "epochs", "updates", "timesteps", "step"];
/// Names of the number of steps that a training is to make.
const TOTALS: [&str; 9] = [
    "total_steps", "max_steps", "max_iters", "max_iter", "train_iters", "train_steps", "num_train_steps",
    "num_iterations", "total_iterations",
];

/// What a name means for the line it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::printed) enum Meaning {
    /// Any word.
    Any,
    /// A setting, or a measure that alone does not show that training has begun: the learning rate.
    Setting,
    Measure,
}

/// Sorted words. Most words that are looked for are none of them, which their first letter and length show.
struct Words<const COUNT: usize> {
    sorted: [&'static str; COUNT],
    /// The lengths of the words that begin with a letter, as bits, by its last five bits.
    lengths: [u32; 32],
}

impl<const COUNT: usize> Words<COUNT> {
    const fn new(sorted: [&'static str; COUNT]) -> Self {
        let mut lengths = [0; 32];
        let mut at = 0;
        while at < COUNT {
            let word = sorted[at].as_bytes();
            lengths[(word[0] & 31) as usize] |= 1 << word.len();
            at += 1;
        }
        Self { sorted, lengths }
    }

    fn has(&self, word: &str) -> bool {
        let Some(first) = word.as_bytes().first() else { return false };
        word.len() < 32
            && self.lengths[(first & 31) as usize] >> word.len() & 1 == 1
            && self.sorted.binary_search(&word).is_ok()
    }
}

fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split(['_', '/', '.', '-', '@'])
}

/// What a name in small letters means.
pub(in crate::printed) fn meaning_of(name: &str) -> Meaning {
    let measure = parts(name).any(|part| MEASURES.has(part))
        || name.ends_with("learning_rate")
        || is_at_rank(name)
        || is_error_of_part(name);
    let rate = name.ends_with("learning_rate") || name == "precision" || name == "norm" || name == "map";
    let setting = rate || parts(name).any(|part| OF_SETTINGS.has(part));
    match (measure, setting) {
        (true, false) => Meaning::Measure,
        (true, true) => Meaning::Setting,
        _ => Meaning::Any,
    }
}

/// `train_err`, `validation_error`: of anything else an error may be one of the program.
fn is_error_of_part(name: &str) -> bool {
    let part = name.strip_suffix("_error").or_else(|| name.strip_suffix("_err"));
    part.is_some_and(|part| part_of_data(part).is_some())
}

/// Precision and recall at a rank, as fastText and others print them: `P@1`, `r@10`, and the accuracy of a search,
/// `Rank-1`, which has decimals or is a percentage: it may be a process else.
fn is_at_rank(name: &str) -> bool {
    let at = || {
        let (before, rank) = name.split_once('@')?;
        let before = before.rsplit('_').next().unwrap_or(before);
        ["p", "r", "prec", "hit", "err"].contains(&before).then_some(rank)
    };
    let rank = rank_of(name).or_else(at);
    rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The rank of `rank-1`. Processes count from 0.
fn rank_of(name: &str) -> Option<&str> {
    name.strip_prefix("rank-").filter(|rank| !rank.starts_with('0'))
}

/// Whether a name has a measure in its letters of two cases only: `train/CrossEntropyLoss`.
pub(in crate::printed) fn has_measure_in_camel_case(name: &str) -> bool {
    parts(name).any(|part| {
        let bytes = part.as_bytes();
        let begins = |at: usize| bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        let mut begin = 0;
        (1..=bytes.len()).any(|end| {
            let is_end = end == bytes.len() || begins(end);
            let word = part.get(begin..end).filter(|_| is_end);
            begin = if is_end { end } else { begin };
            word.is_some_and(|word| MEASURES.has(&word.to_ascii_lowercase()))
        })
    })
}

/// Whether values of this name are measures only where they have decimals: `hits 0.7` is one, `hits 12` is a number of them.
pub(in crate::printed) fn needs_decimals(name: &str) -> bool {
    (!name.contains('@') && parts(name).any(|part| part == "hits")) || rank_of(name).is_some()
}

/// Whether a name is that of a parameter of a part of a pipeline, as scikit-learn writes it: `clf__max_iter`.
pub(in crate::printed) fn is_of_pipeline(name: &str) -> bool {
    name.trim_start_matches('_').contains("__")
}

/// Whether a word says that settings follow: `best params {…}`.
pub(in crate::printed) fn names_settings(word: &str) -> bool {
    SETTINGS_WORDS.has(word)
        || ["best_param", "best_hyper", "best_config"].iter().any(|begin| word.starts_with(begin))
}

/// Whether this is the name of a usual setting.
pub(in crate::printed) fn is_setting(name: &str) -> bool {
    SETTINGS.contains(&name) || meaning_of(name) == Meaning::Setting
}

/// Whether values of this name may be metrics.
pub(in crate::printed) fn may_be_metric(name: &str) -> bool {
    let last = name.rsplit(['_', '/']).next().unwrap_or(name);
    let is_count = COUNTS.contains(&last) && meaning_of(name) != Meaning::Measure;
    !NO_METRICS.has(name) && !is_count && !name.ends_with(".py") && !identifies(name)
}

/// Whether values of this name distinguish things from one another: `id`, `run_id`. Beside a measure or a part of the data the
/// word may say which distribution the data are of: `acc_id`.
pub(in crate::printed) fn identifies(name: &str) -> bool {
    let of = |whose: &str| part_of_data(whose).is_none() && meaning_of(whose) == Meaning::Any;
    matches!(name, "id" | "idx" | "index") || name.strip_suffix("_id").is_some_and(of)
}

/// Whether a number in an object may be a metric. Objects were printed to be read: only what says when and on what they
/// were logged is left out.
pub(in crate::printed) fn may_be_field(name: &str) -> bool {
    let is_of_logger = OF_LOGGERS.has(name.strip_prefix("record/").unwrap_or(name));
    name != LIGHTNING_VERSION && !OF_LOGGING.has(name) && !is_of_logger && !identifies(name)
}

/// Whether the heading of the first cells of a table says what its rows are: `model`.
pub(in crate::printed) fn heads_rows(name: &str) -> bool {
    OF_ROWS.has(name)
}

/// Whether the heading of cells says that they have names of measures.
pub(in crate::printed) fn heads_measures(name: &str) -> bool {
    matches!(name, "metric" | "metrics" | "measure")
}

/// Whether a word links others in a sentence and names no value.
pub(in crate::printed) fn is_linking(word: &str) -> bool {
    LINKING.has(word)
}

/// Whether a percent sign behind the value means a fraction.
pub(in crate::printed) fn is_share(name: &str) -> bool {
    let is_share = |part: &str| SHARES.has(part) || SHARES.has(&part.to_lowercase());
    rank_of(name).is_some() || name.split(['_', '/', '.', '-', '@', ' ']).any(is_share)
}

/// Whether this is the name of how many of something there are: `num_images`, `numsamples`.
pub(in crate::printed) fn is_number_of(name: &str) -> bool {
    let whole = name.strip_prefix("total_").unwrap_or(name);
    let of = whole.strip_prefix("num").filter(|_| meaning_of(name) == Meaning::Any);
    name == "n" || of.is_some_and(|of| of.starts_with('_') || of.ends_with('s'))
}

/// Whether this is the name of the number of steps a training is to make.
pub(super) fn is_total(name: &str) -> bool {
    TOTALS.contains(&name)
}

/// The prefix of all values of a line that begins with this word.
pub(in crate::printed) fn whose_line(word: &str) -> Option<&'static str> {
    WHOSE_LINE.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map(|(_, prefix)| *prefix)
}

/// What the words before a number say about where the script is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) enum Place {
    Step,
    Epoch,
    /// How many steps there will be.
    Total,
    /// A number of steps or epochs that says nothing about the place.
    Count,
}

/// Reads the words before a number, in small letters, the last one last; `name` is what they are joined to.
pub(in crate::printed) fn place_of(words: &[&str], name: &str) -> Option<Place> {
    let last = *words.last()?;
    if is_number_of_steps_done(words) {
        return Some(Place::Step);
    }
    let (rest, last_part) = last.rsplit_once('_').unwrap_or(("", last));
    let is_step = STEP_WORDS.has(last)
        || (OF_STEPS.contains(&rest) && matches!(last_part, "step" | "iter" | "iteration"));
    // `train_loss_epoch` is a value.
    let is_epoch = EPOCH_WORDS.contains(&last_part) && meaning_of(rest) == Meaning::Any;
    if !is_step && !is_epoch {
        return is_total(name).then_some(Place::Total);
    }
    let before = words[..words.len() - 1].iter().copied();
    let is_plural = is_plural(last);
    let of_count = |word: &str| OF_COUNTS.has(word) || (is_plural && OF_COUNTS_IN_PLURAL.contains(&word));
    if !before.clone().chain(rest.split('_').filter(|_| !is_number_of_step(last))).any(of_count) {
        return Some(if is_step { Place::Step } else { Place::Epoch });
    }
    let of_all = |word: &str| matches!(word, "total" | "max" | "maximum");
    let of_training = |word: &str| {
        of_all(word)
            || matches!(word, "optimization" | "optimizer" | "train" | "training" | "number" | "of" | "num")
    };
    let is_total = is_step && is_plural && before.clone().any(of_all) && before.clone().all(of_training);
    Some(if is_total { Place::Total } else { Place::Count })
}

/// `num timesteps`, and `Total T: 5000` as TD3 prints it.
pub(in crate::printed) fn is_number_of_steps_done(words: &[&str]) -> bool {
    matches!(words, [.., last] if matches!(*last, "timesteps" | "t"))
        && matches!(words, [.., "num", "timesteps"] | ["total", "t"])
}

/// Whether a word for steps is in the plural, and so may as well mean how many there are.
pub(in crate::printed) fn is_plural(word: &str) -> bool {
    word.ends_with('s') && !is_number_of_step(word)
}

/// Whether names of several values are joined: `mean/median`, `train/val`.
pub(in crate::printed) fn joined_names(word: &str) -> Option<(&str, &str)> {
    let says = |word: &str| says_whose(word) || matches!(word, "top1" | "top5");
    word.split_once('/').filter(|(first, second)| says(first) && says(second))
}

/// Whether a value of a bar with this name is the step of the whole training.
pub(in crate::printed) fn is_step_of_training(name: &str) -> bool {
    let first = name.as_bytes().first().map(u8::to_ascii_lowercase);
    matches!(first, Some(b'e' | b'g' | b'n'))
        && STEPS_OF_TRAINING.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a word in the plural is the number of the step all the same.
pub(in crate::printed) fn is_number_of_step(word: &str) -> bool {
    matches!(word, "num_updates" | "num_timesteps")
}

/// The last word, with those before it that belong to it, and how many words are left. Before `=` only one word counts,
/// with the one whose it is: the ones before it are text.
pub(in crate::printed) fn joined(words: &[&str], one_word: bool) -> Option<(String, usize)> {
    // `'loss': 0.5` of a dict over several lines.
    let mut name = words.last()?.trim_end_matches('\'').to_owned();
    let mut before = words.len() - 1;
    while before > 0 {
        let word = words[before - 1];
        if let Some(whose) = word.strip_suffix("'s") {
            name = format!("{whose}_{name}");
            before -= 1;
            break;
        }
        let is_measure = || meaning_of(&name) != Meaning::Any;
        if let Some(statistic) = statistic_of(&words[..before]).filter(|_| is_measure()) {
            name = format!("{statistic}_of_{name}");
            before -= 2;
            continue;
        }
        let is_completed = OF_ANYTHING.contains(&name.as_str()) && !is_linking(word);
        let is_whose = WHOSE.contains(&word) && (!one_word || is_measure());
        let is_statistic = STATISTICS.has(word) && is_measure();
        let is_value_of = name == "value" && meaning_of(word) == Meaning::Measure && !one_word;
        let pair = is_value_of || MEASURES_OF_TWO.contains(&(word, name.as_str()));
        if !(pair || is_completed || is_whose || is_statistic) {
            break;
        }
        name = format!("{word}_{name}");
        before -= 1;
    }
    Some((plain(name), before))
}

/// The word before the last one, `of`, if it says which of several values of a measure this is: `Std of Reward`.
fn statistic_of<'w>(before: &[&'w str]) -> Option<&'w str> {
    match before {
        [.., statistic, "of"] => Some(*statistic).filter(|word| STATISTICS.has(word)),
        _ => None,
    }
}

/// Whether a word says whose value it is: of a part of the data, the best one, a mean.
pub(super) fn says_whose(word: &str) -> bool {
    WHOSE.contains(&word) || STATISTICS.has(word)
}

/// Whether the word before a measure may belong to its name, and says not only when it was measured.
pub(in crate::printed) fn may_begin_name(word: &str) -> bool {
    !word.is_empty()
        && !is_linking(word)
        && !matches!(word, "current" | "cur" | "this" | "new" | "last" | "final")
}

/// Whether the word before `loss` in a field may be of its name: `lm loss`, not `batch loss`.
pub(in crate::printed) fn may_name_loss(word: &str) -> bool {
    may_begin_name(word)
        && !is_training(word)
        && whose_line(word).is_none()
        && place_of(&[word], word).is_none()
        && !word.ends_with("batch")
}

/// Whether a value is of the optimizer, which a training alone has.
pub(in crate::printed) fn is_of_optimizer(name: &str) -> bool {
    matches!(name, "learning_rate" | "grad_norm")
}

/// Whether a value whose name begins so is one of several: `Mean episode length`.
pub(in crate::printed) fn is_of_mean(word: &str) -> bool {
    matches!(word, "mean" | "average" | "avg" | "std" | "max" | "min")
}

/// Whether a word is the part of a model whose loss has this name.
pub(in crate::printed) fn is_part_of(word: &str, name: &str) -> bool {
    name == "loss" && HAVE_LOSSES.contains(&word)
}

/// Whether a word in parentheses behind a measure says how it was taken: `F-score (micro)`.
pub(in crate::printed) fn is_variant(word: &str) -> bool {
    VARIANTS.contains(&word)
}

/// A name with the way in which its measure was taken, behind whose it is: `test_micro_f1`.
pub(in crate::printed) fn with_variant(variant: &str, name: &str) -> String {
    match name.split_once('_').filter(|(first, _)| says_whose(first)) {
        Some((whose, measure)) => format!("{whose}_{variant}_{measure}"),
        None => format!("{variant}_{name}"),
    }
}

/// The prefix of values that were best at another place.
pub(in crate::printed) const BEST: &str = "best";

/// What names of values of the validation begin with beside `val_`.
const VALIDATION: [&str; 3] = ["valid_", "validation_", "vali_"];

/// The names that other tools and the detectors use. A numbered set (`validation_0-auc`) keeps the name its tool gave it.
pub(in crate::printed) fn plain(name: String) -> String {
    match name.as_str() {
        "lr" => "learning_rate".into(),
        "l.r" => "learning_rate".into(),
        "gnorm" => "grad_norm".into(),
        _ => match VALIDATION.iter().find_map(|prefix| name.strip_prefix(prefix)) {
            Some(rest) if !rest.starts_with(|letter: char| letter.is_ascii_digit()) => {
                format!("val_{rest}")
            }
            _ => name,
        },
    }
}

/// Whether a word says that what belongs to it is of the training.
pub(in crate::printed) fn is_training(word: &str) -> bool {
    matches!(word, "train" | "training")
}

/// The prefix of the part of the data that a word names; the training has none.
pub(in crate::printed) fn part_of_data(word: &str) -> Option<Option<&'static str>> {
    let is_any = |known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    let judged = whose_line(word).or(is_any(&["dev"]).then_some("val"));
    judged.map(Some).or(is_any(&["train", "training"]).then_some(None))
}

/// Whether a name begins with a part of the data: `val_loss`, `test/acc`.
pub(in crate::printed) fn has_part_of_data(name: &str) -> bool {
    name.split_once(['_', '/', '.', '-']).is_some_and(|(first, _)| whose_line(first).is_some())
}

/// The part of the data that a name begins with.
pub(in crate::printed) fn part_before(name: &str) -> Option<&'static str> {
    name.split_once('_').and_then(|(first, _)| whose_line(first))
}

/// Gives a name the prefix of its line, if it lacks it and names no part of the data already, as `val_loss` behind `[eval]` does.
pub(in crate::printed) fn prefixed(prefix: &str, name: &str) -> String {
    match name.starts_with(prefix) || (prefix != BEST && has_part_of_data(name)) {
        true => name.to_owned(),
        false => format!("{prefix}_{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the lists that are searched by halves are sorted, and that each of their words is found.
    #[test]
    fn lists_are_sorted() {
        fn is_found<const COUNT: usize>(words: &Words<COUNT>) -> bool {
            words.sorted.is_sorted() && words.sorted.iter().all(|word| words.has(word))
        }
        assert!(is_found(&MEASURES) && is_found(&SHARES) && is_found(&OF_SETTINGS));
        assert!(
            is_found(&SETTINGS_WORDS)
                && is_found(&OF_LOGGING)
                && is_found(&OF_LOGGERS)
                && is_found(&LINKING)
                && is_found(&NO_METRICS)
                && is_found(&STEP_WORDS)
                && is_found(&OF_COUNTS)
                && is_found(&STATISTICS)
                && is_found(&OF_ROWS)
        );
        assert!(!MEASURES.has("") && !MEASURES.has("lost") && !MEASURES.has(&"loss".repeat(20)));
    }

    /// Proves that a measure is found in letters of two cases, and not in a part of a word.
    #[test]
    fn measures_in_camel_case() {
        for name in ["train/CrossEntropyLoss", "metrics/eval/LanguagePerplexity", "valAccuracy"] {
            assert!(has_measure_in_camel_case(name), "{name}");
        }
        for name in ["train/Glossary", "time/Total", "Lossless/x", "", "/é/"] {
            assert!(!has_measure_in_camel_case(name), "{name}");
        }
    }

    /// Proves what words before a number mean: never is a number of steps the step.
    #[test]
    fn numbers_of_steps_are_no_steps() {
        for (text, place) in [
            ("step", Some(Place::Step)),
            ("global step", Some(Place::Step)),
            ("train_step", Some(Place::Step)),
            ("gradient step", Some(Place::Step)),
            ("end of epoch", Some(Place::Epoch)),
            ("total optimization steps", Some(Place::Total)),
            ("total number of training steps", Some(Place::Total)),
            ("max_steps", Some(Place::Total)),
            ("num update steps per epoch", Some(Place::Count)),
            ("gradient accumulation steps", Some(Place::Count)),
            ("warmup steps", Some(Place::Count)),
            ("save steps", Some(Place::Count)),
            ("eval steps", Some(Place::Count)),
            ("logging steps", Some(Place::Count)),
            ("total warmup steps", Some(Place::Count)),
            ("number of skipped iterations", Some(Place::Count)),
            ("steps per epoch", Some(Place::Count)),
            ("best epoch", Some(Place::Count)),
            ("loss", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let (name, _) = joined(&words, false).unwrap();
            assert_eq!(place_of(&words, &name), place, "{text}");
        }
    }
}
