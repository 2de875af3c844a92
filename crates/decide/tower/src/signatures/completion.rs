//! The trainer or the platform states that the work reached its end.
//!
//! Only a log without an exit code needs them: a process that fails after its last step has an error after these lines. A tracker's closing lines
//! (`wandb: Run summary:`, `wandb: Synced 5 W&B file(s)`) are none, unless they say how the process ended: it prints them whatever became of the work.

use trackway_core::TerminationReason::Completed;

use super::{Role, RuleName, Signature};

/// A script's own words for it.
pub(crate) const STATED: RuleName = RuleName("completion.stated");
/// A last line that is nothing but a word for an end.
pub(crate) const BARE_WORD: RuleName = RuleName("completion.bare_word");

const fn completion(name: &'static str, pattern: &'static str) -> Signature {
    Signature::new(name, Completed, Role::Completion, pattern)
}

pub(super) const SIGNATURES: &[Signature] = &[
    completion(
        "completion.trainer",
        r"trainer\.fit`? stopped: `?\w+=\S+ reached|\btrain_runtime['\x22]?\s*[:= ]\s*['\x22]?\d|training completed\. do not forget to share|\b\d+ epochs completed in [\d.]+ |loss for final step: |done training in [\d.]+ seconds|the training was finished at \d+|overall training speed: \d|\[exiting program (after \d+ iterations|at )|^\W*study (statistics|optimized|finished|complete)|^\W*shrink model to first \d+ iterations|\bremaining: 0us\b|\[lightgbm\] \[info\] finish(ed)? train|\[after training is done\]|did not meet early stopping\. best iteration is|\*\*\* best metric: |saved pipeline to output directory|saving final checkpoint\b[^\n]{0,40}(train|finish|done|complet)",
    )
    .unless(r"train_loss['\x22]: ['\x22]?(nan|inf)|final step: (nan|inf)"),
    completion(
        "completion.platform",
        r"completed - training job completed|reporting training success|(job|run|pipeline|workload|workflow|experiment)s? ['\x22`]?[\w./:<>()-]*['\x22`]? ?(has |have |was |is )?(succeeded|successfully completed|completed successfully|finished successfully|succeeded successfully)|^successfully completed\.|waiting for w&b process to finish\.\.\. \(success\)|^\W*wandb: program ended successfully|in cluster <\S+> done\b|process finished with exit code 0\b|^(\S+ ){0,2}exit[ _]status\W{1,8}0\s*$|\bexit_status=0\b|JOB_STATE_SUCCEEDED|# ended \(code 0\)|trial status: \d+ terminated\s*$|number of trials: [^\n]{0,40}\(\d+ terminated\)\s*$|return value 0\)|\b(job)?(state|status|phase|condition|result)\W{1,4}(?-i:COMPLETED|SUCCEEDED|Completed|Succeeded|FINISHED|Finished)\b|^\s*\d+(\.\S+)?\s+\S.*(?-i:\bCOMPLETED\b)\s+0:0",
    )
    .unless(r"cancel|fail|upload|download|data job|not |step \S+ of"),
    completion(
        STATED.as_str(),
        r"\bmax(imum)?[ _](number of )?(train(ing)? )?(steps|epochs|updates|iterations|batches|checkpoints)\b[^\n]{0,30} (was |has been |were )?reached|max epochs num!|^\W*best trial (config|final)|^\W*(run|job|script|program)( was| has)? successfully (finished|completed)|\*{3,} (eval|evaluation|test|predict) metrics \*{3,}|process \d+ exits successfully|sav(ed|ing) [^\n]{0,80}[_-]final\.(weights|pth?|h5|onnx|safetensors|ckpt|bin|pkl)|\btrial \S+ completed after \d+ iterations|\b(re)?(train(ing)?|fine-?tuning|pre-?training|fitting|optimi[sz]ation)( \w+){0,3}?( process| run| job| loop| phase)?( is| was| has| has been| have| took| ended)*[ :-]{1,3}(complete|completed|finished|done|success|successful|successfully)\b|\b(finished|completed|done( with)?) (the )?(train(ing)?|fine-?tuning|pre-?training|fitting)\b|total train(ing)? ?time\W{1,3}(of )?\d|^(\S+ ){0,3}train(ing)? time:? \d+:\d|^\W*training took \d|^\s*done: true\s*$|^\s*[\d.]+ seconds \(total\)|(reached|completed) (the )?(max(imum)?|last|final|all)[\W_]{0,2}(number of )?(train(ing)? )?(steps|epochs|iterations|step|epoch|iteration|updates)\b|training (has |is )?(ends|ended|over)\b|\btrained and saved (at|to|in)\b|\bsaved (the )?final (weights|model|adapter\w*|checkpoint)\b|\b(experiment|study|sweep|search|tuning) (is |has |was )?(finished|completed?|done|ended)\b|\ball (\d+ )?(training )?(epochs|steps|iterations) (were |are |have been )?(complete|completed|finished|done)\b|\bfit finished\b",
    )
    .unless(r"\b(not|never|n't|un|before|until|when|once|if|will|after|while|during|expected|estimated|remaining|eta|per|avg|average|each|epoch|fold|stage|phase|stopped|interrupted|failed|error|nan|cancell?ed|abort\w*|data|load\w*|tokeniz\w*) [^\n]{0,40}(train|fit|tun|complete|finish|done)|(epoch|batch|iteration|fold|stage|phase|step)\W{0,3}\d+[^\n]{0,60}(complete|finish|done)|with error|and failed|early|callback|threads?|in progress|pretraining data"),
    completion(
        BARE_WORD.as_str(),
        r"^\W*((all|everything|script|program|run|job|main|execution) )?(is |has )?(done|finished|completed?)( successfully)?( (in|after|at) [\d.:]+ ?\w*)?\W*$|^\W*(finished|done|completed?)[.!:,] *(final|best|test|total|val)\b",
    ),
];
