//! The script, or a rule in it, ended training because more of it would not help.

use trackway_core::TerminationReason::EarlyStopped;

use super::{RuleName, Signature, cause, hint};

/// How many checks without improvement were counted, of how many that are allowed.
pub(crate) const COUNTER: RuleName = RuleName("early_stop.counter");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "early_stop.stated",
        EarlyStopped,
        r"epoch \d+[^\n]{0,12}: early stopping|\bearly stop since\b|\bearly[- _]?stop(ped|ping)?!|early[- _]?stopp(ed|ing)[,:.!]? *(at|after|on|in|triggered|because|since|due|activated|condition|criteri\w+ (met|reached)|best (iteration|epoch|score|step)|occurred|$|\(|epoch|now|training|the training)|early[- _]?stop(ping)?( is| was| has been)? (triggered|activated|reached|condition|met|requested|at epoch|since|kicked)|(trigger|activat|execut|perform)\w* early[- _]?stop\w*|(training|run|trial|fit|process|model)? ?(has |was |is |been )*(stopped|stopping|terminated|ended|finished|stop|halted|interrupted)( the)?( training)? early|early termination|\[?early ?stop(ping)?\]?[: ][^\n]{0,60}(did not|didn'?t|no |not |hasn'?t|stop|best|patience|reached)|due to early[- _]?stop\w*|earlystopping[^\n]{0,20}(stop|trigger|:)|(stop|end|abort|halt|break)\w*[^\n]{0,30}(by|because of|via|with|using) early[- _]?stop",
    )
    .unless(r"did not meet early|^\W*to (stop|end|abort)|press ctrl|will (train|stop|be)|patience ?= ?\d+\)?$|counter: ?\d+ out of|enabled|not triggered|until|callback|no early stopping|config|disabled|early_stopping_(patience|rounds|threshold)|EarlyStopping\(|using early"),
    cause(
        "early_stop.no_improvement",
        EarlyStopped,
        r"(did not|hasn'?t|has not|have not|not|no longer|didn'?t|failed to)( been)? (improv(e|ed|ing)|decreas(e|ed|ing)|increas(e|ed|ing))[^\n]{0,80}(record|stopp|patience|for \d+|in (the )?(last )?\d+|for (the )?(last |past )?\d+|since|consecutive|signal|epoch|round|check)|(increas|worsen|degrad|deteriorat|rose|risen)\w*[^\n]{0,40}(in a row|consecutive)[^\n]{0,40}(stop|end|abort)|no (significant |further )?improvement[^\n]{0,60}(stopp|for \d+|in (the )?(last )?\d+|over|since|after|patience|early|epoch)|(ran )?out of patience|plateaued[^\n]{0,20}stopp|stopp\w*[^\n]{0,20} after \d+ (\w+ )?(evaluations|epochs|checks|rounds|validations|steps) without|patience[^\n]{0,30}(exhaust|reach|exceed|expired|ran out|is over|hit|limit)|(exceed|reached|exhausted|beyond)\w*[^\n]{0,20}patience|stopped by overfitting detector|(?-i:Stopping)\.? ?best iteration|signaling trainer to stop|(convergence|converged|target|goal|threshold)[^\n]{0,40}(reached|achieved|met)[^\n]{0,40}stop|(stop|terminat|halt)(ped|ping|ed|ing|s)?( the)? (training|fit|trial|run|search)[^\n]{0,60}(improve|plateau|converge|patience|best|target|reached|threshold)|target (accuracy|metric|score|loss)[^\n]{0,20}(reached|achieved)|training (has )?converged",
    )
    .unless(r"will train|train(ing)? until|did not meet|counter: ?\d+ out of|reducelronplateau|reducing learning rate|reduc\w+ (the )?(lr|learning)|time limit|max_time|nan|\binf\b|not finite|non-finite"),
    cause(
        "early_stop.pruned",
        EarlyStopped,
        r"trial[^\n]{0,40}pruned|stopp(ing|ed) trial[^\n]{0,60}early|TrialPruned|stop(ping)? (criteri\w+|condition)s?[^\n]{0,40}(met|reached|satisfied|triggered|fulfilled)|(met|reached|satisfied|triggered|fulfilled)[^\n]{0,30}stop(ping)? (criteri|condition)|\b(met|satisfied|reached) (the )?(validation|convergence|stopping|termination|tolerance) (criteri\w+|condition)|hyperband[^\n]{0,40}stop",
    ),
    hint(
        COUNTER.as_str(),
        EarlyStopped,
        r"counter:? ?\d+ ?(out of|/) ?\d+",
    ),
    hint(
        "early_stop.best_weights",
        EarlyStopped,
        r"restoring model weights from the end of the best epoch",
    ),
];
