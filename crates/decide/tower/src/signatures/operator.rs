//! A user requested the end.

use trackway_core::TerminationReason::Cancelled;

use super::{RuleName, Signature, cause, hint, verdict};

/// A scheduler cancelled a job, it does not say why.
pub(crate) const SCANCEL: RuleName = RuleName("operator.scancel");
/// A platform reports something as cancelled, it does not say why.
pub(crate) const RUN_CANCELLED: RuleName = RuleName("operator.run_cancelled");

pub(super) const SIGNATURES: &[Signature] = &[
    verdict(
        "operator.user_initiated",
        Cancelled,
        r"user.initiated|terminated.by.user|(cancel+ed|stopped|aborted|terminated|interrupted|killed|ended|deleted|stop requested|halted|paused|revoked|shut ?down|finished)[ _](manually |externally )?by[ _](the |a |an )?(user|uid|admin|operator|owner|human|root|\d+\b|@)|\bTERM_(OWNER|ADMIN|FORCE_OWNER|FORCE_ADMIN)\b|\b(condor_rm|bkill)\b|has registered the job \S+ for deletion|(stopped|cancell?ed|terminated|killed|aborted) (from|via|in|through) (the )?(\S+ )?(ui|console|dashboard|web|ide|portal)\b|CANCELLED by \d+|user.?(requested|cancel\w*|abort\w*|interrupt\w*|terminat\w*|stopped|killed)|manually (cancel|stopp|abort|terminat|kill|interrupt)\w*|(stop|cancel\w*|terminat\w*|abort) requested by|(at|on|upon|per) (the )?user'?s? request|due to user",
    )
    .unless(r"can happen|might|may be"),
    verdict(
        SCANCEL.as_str(),
        Cancelled,
        r"srun: interrupt \(one more|srun: sending ctrl-c|\*\*\* job \S+ on \S+ cancelled at \S+( due to scancel)? \*\*\*|\bscancel(led)?\b|cancelled at \S+ (due to (user|scancel|cancel)|by )|\*\*\* (step|job) \S+ on \S+ cancelled by",
    ),
    verdict(
        RUN_CANCELLED.as_str(),
        Cancelled,
        r"\b\w*(job|run|task|operation|workflow|training|trial|execution|experiment|pipeline|build|sweep|request|session|process|script|fleet\w*|evaluation)s?( \S+)? (was |were |has been |have been |is |got |being )?(cancel+ed|aborted)\b|(state|status|result|phase|outcome|conclusion)['\x22]?\s*[:=]+\s*['\x22]?(job_state_)?(cancel+ed|stopped|aborted|CANCEL+ED|STOPPED)\b|\bJOB_STATE_CANCELLED\b|\bCancelledRun\b|workflow shutdown with strategy|the operation was cancel+ed|cancel(l)?ation (was )?(requested|received|signal)|received (a )?(cancel|stop|abort)( |-)?(request|command|signal|event)|received command: (cancel|stop|abort)\b|\bjob( \S+)? (stopped|was stopped)\b|^\s*\d+(\.\S+)?\s+\S.*(?-i:\bCANCELLED\b)|cancel+ing (the )?(run|job|training|workflow)|torch_xla[^\n]*cancelled",
    )
    .unless(r"job step aborted|user-direction|(fail|error|exception)\w*[^\n]{0,60}abort|sparkexception|due to (time|preempt|node|oom|memory|stage|task|error|fail)|abort\w*[^\n]{0,30}(fail|error|exception|core dumped)|: aborted|failed \d+ times|futures?|cancellederror|task_finish|rpc|because|timeout|timed out|step \S+ on|wall.?(time|clock)|time limit"),
    cause(
        "operator.keyboard_interrupt",
        Cancelled,
        r"KeyboardInterrupt|keyboard interrupt|InterruptException|java\.lang\.InterruptedException",
    )
    .unless(r"^\s*(except|raise)\b"),
    cause(
        "operator.interrupt_signal",
        Cancelled,
        r"\bSIGINT\b|got signal: 2\b|received 2 death signal|forwarding signal 2\b|received signal:? 2\b|caught signal 2\b|signal\(2\)|\b(ctrl|control) ?[-+]? ?c\b|\^C|^\W*interrupt: |\binterrupted\b[^\n]{0,20}(exit|stop|abort|saving|training|$)|(training|run|job|process|fit|execution|program) (was |has been )?interrupted|interrupt received|signal: interrupt|0xC000013A|\b3221225786\b|-1073741510\b|^\W*aborted!\s*$|srun: interrupt|graceful(ly)? (exit|shutdown|stop)[^\n]{0,40}interrupt|^\s*interrupted\.?\s*$",
    )
    .unless(r"handlers? (is |was )?(installed|registered|set)|->|(press|use|hit) (ctrl|control)|to (stop|quit|exit|cancel|abort)|spot|preempt|system call|capacity"),
    cause(
        "operator.job_deleted",
        Cancelled,
        r"\bjob( \S+)? deleted at request of|\bjob( \S+)? (was |has been )?(deleted|removed|terminated|killed) by (its |the )?(owner|user)\b",
    ),
    hint(
        "operator.hangup",
        Cancelled,
        r"\bSIGHUP\b|\bhangup\b|received 1 death signal|\w*CancelledError\b",
    ),
];
