//! Messages of schedulers and clouds when they take the machine away or a limit is reached.

use trackway_core::TerminationReason::{Preempted, Timeout};

use super::{RuleName, Signature, cause, hint, verdict};

/// A pod or machine was evicted, for whatever reason.
pub(crate) const EVICTED: RuleName = RuleName("scheduler.evicted");

pub(super) const SIGNATURES: &[Signature] = &[
    verdict(
        "scheduler.time_limit",
        Timeout,
        r"due to (time|wall ?time|wall ?clock)[ _]?limit|TERM_(RUN|CPU)LIMIT|exception type=timeout\b|killed after reaching \S+ run time limit|job killed: walltime|MaxRuntime(In)?(Seconds)?Exceeded|cpu time limit exceeded",
    )
    .conclusive()
    .unless(r"\bwill (be )?|due to time limits\b|not timed out"),
    verdict(
        "scheduler.time_limit_stated",
        Timeout,
        r"(job|run|step|task|allocation)[^\n]{0,40}(reached|exceeded|hit|exceeds|over|past)[^\n]{0,30}(time ?limit|wall.?(time|clock)|run.?time|duration)|wall.?(time|clock)[^\n]{0,40}(exceed|limit|expired|reached|used up|spent|exhausted|is over|ran out)|(ran|running|run) out of (wall.?(time|clock)|(allotted|allocated) time)|\bcput \d+ exceeded|\b[hs]_(rt|cpu)\b[^\n]{0,20}exceed|reached (the|its) max(imum)? (timeout|duration|runtime)\b|exceeds job (hard|soft) limit \W?[hs]_rt|reached time_budget|notebook timeout|\b(job|run|task|build|pipeline|execution|stage|container|session|notebook|script|command|attempt|allocation)\b[^\n]{0,40}(ran|run|running|runs|active|execut\w+|took|takes|taken) (for )?(longer|more) than[^\n]{0,40}(maximum|limit|allow|allotted|deadline|\d+ ?(s|sec|seconds|m|min|minutes|h|hours|[hm]\d)?\b)|(qmaster enforced|exceed\w*|over|reached)[^\n]{0,20}\bh_(rt|cpu)\b|time limit reached\. elapsed|exiting program after [\d.]+ minutes|cumulative training time of [\d.]+ > |\bhit its timeout|timeout: sending signal|\bTERM_(DEADLINE|WINDOW)\b|exceeded allowed (execute|job) duration|exceeded (the )?(maximum|max|allowed) (job |run |allowed )?(age|lifetime)|exceed\w* (the |its |your )?(max(imum)?[_ ]?)?(allowed |allocated |allotted |requested |hard |soft |job )?(wall.?time|wall.?clock|run.?time|time limit|execution time|duration|max_run)|time limit (has been )?(reached|exceeded|expired|hit)|(maximum|max)[_ ]?(allowed )?(run|execution|job|training|allowed)?[_ ]?(time|runtime|duration)[^\n]{0,40}(exceed|reached|expired|elapsed)|exceed\w* (the |its )?max(imum)? (allowed )?(execution |run |job )?(time|runtime|duration)|MaxWaitTimeExceeded|AllowedExecuteDuration|StatusType\.TIMEOUT|exceeded allowed compute|exceed\w* (its|the|your) time (budget|limit)|\bout of time\b|(killed|terminated|stopped|aborted) after \d+ ?(s|secs?|seconds|m|mins?|minutes|h|hours)\b|\bJOB_STATE_EXPIRED\b|max(imum)?[_ ](session[_ ])?(time|lifetime|age)\b[^\n]{0,30}(reached|exceeded|expired)|reached max_time\b|duration exceeded (the )?timeout",
    )
    .unless(r"\bwill (be )?|due to time limits\b|not timed out"),
    verdict(
        "scheduler.deadline",
        Timeout,
        r"\bDeadlineExceeded\b|active longer than (the )?specified deadline|FunctionTimeoutError|AirflowTaskTimeout|\b(job|run|task|step|action|build|session|notebook|cell|execution|training job|trial|function|workflow|node) (\S+ )?(has )?(timed out|exceeded (its|the|a)? ?(\w+ )?(timeout|deadline))|\b(cell|notebook|job|task|step)\b[^\n]{0,20}\btimeout of \d+ ?\w+ (was |has been )?exceeded|timeout exceeded[^\n]{0,30}(kill|cancel|notebook|job|session)|maximum lifetime|exceeded its deadline|time (budget|is up)[^\n]{0,30}(exceed|exhaust|used up|reached|expired)|TimeoutExpired[^\n]*train",
    )
    .unless(r"deadline_exceeded: |grpc|barrier|rendezvous|initialization|wandb|connection"),
    verdict(
        "scheduler.accounting_timeout",
        Timeout,
        r"^\s*\d+(\.\S+)?\s+\S.*(?-i:\bTIMEOUT\b)|\b(job)?(state|status)\W{1,4}(is )?(?-i:TIMEOUT|TIMED_OUT|DEADLINE)\b|(?-i:ended with state TIMEOUT)|(?-i:\bTimeout\b), exitcode|(?-i:\bTIMEDOUT\b)|slurm job_id=\d+[^\n]*timed?.?out",
    ),
    verdict(
        "scheduler.preempted_slurm",
        Preempted,
        r"due to (preemption|job requeue)|\b(job)?(state|status)\W{1,4}(?-i:(\w+_)?PREEMPTED)\b",
    )
    .conclusive(),
    verdict(
        "scheduler.preempted",
        Preempted,
        r"(was|were|been|being|is|are|got|will be|be|state|status|reason|condition)[:= ]{0,3}['\x22]?pre-?empted|PreemptionError|pre-emption (warning|notice|signal|event)|\bpreempted (by|in order|to (make|accommodate|free|admit)|because|due|from|on|at)|instances?\.preempted|preempt(ion|ed)( notice| event| signal| warning| detected| received| requested| handler| imminent| triggered)|(received|got|detected|caught|handling|due to|because of|after) (a |an |the )?(spot )?preempt|PreemptionByScheduler|pre-?emption (is|was|has been) detected|reached preemption sync point|preempting (the )?(pod|job|node|instance|vm|workload|worker|task|run)|reason: ?preempt|(?-i:\b(\w+_)?PREEMPTED\b)|(?-i:\bPreempted\b)|preemptible (vm|instance|node|tpu|machine)[^\n]{0,60}(terminat|stopp|shut|delet|gone|kill|lost|reclaim)|\b(cluster|node|instance|vm|machine|job|pod|worker|task|run|workload|slice|allocation)\S* (\S+ )?(was |is |got )?preempted\b|preempt(ed|ion)[.:!]|reason: *preempting\b|\b(node|pod|job|vm|instance)_preempted\b|(exit|stop|shut|sav)\w*[^\n]{0,20} (on|after|due to) preemption\b|\bTERM_PREEMPT\b|\boutbid\b|\bbid (price )?(was |is )?(too low|exceeded|lost)",
    )
    .unless(r"installed|registered|disabled|set up|PreemptionMode|sequence group|kv.?(cache|blocks)|checking|max_preempt|(preempted|evicted),? or (has |was |been )?(crash|fail|cancel|kill|evict|died|lost|terminat)|(crashed|failed|died|cancell?ed|killed),? or (has |was |got |been )*pre-?empted|preemptible: ?(true|false)|preemption_?(policy|enabled|callback) ?[=:]|not preempted|no preemption|preemption: \d+/\d+ nodes"),
    verdict(
        "scheduler.spot_reclaimed",
        Preempted,
        r"spot[^\n]{0,60}(not available|interrupt|reclaim|terminat|evict|preempt|no capacity|taken|revoked|lost|shut|kill)|INTERRUPTED_BY_NO_CAPACITY|instance-terminated-(no-capacity|by-price|capacity|launch-group)|server\.spotinstance(termination|shutdown)|spot/(instance-action|termination-time)|spot[^\n]{0,40}released|(interruption|rebalance|termination) (notice|warning|recommendation)|instance[^\n]{0,60}(reclaim|interrupted by|was interrupted)|reclaim(ed|ing)[^\n]{0,60}(instance|node|vm|machine|capacity|gpu|spot|quota)|(capacity|resources?) (was |were |is |has been )?reclaimed|EC2 (spot )?interruption|low.priority (vm|node|job|instance)[^\n]{0,40}(evict|preempt|reclaim)|(marked|scheduled) for (spot )?(termination|interruption|eviction|reclaim)",
    )
    .unless(r"user-initiated|by-user|max_spot|use_spot|spotlight|memory|low on resource"),
    verdict(
        "scheduler.termination_notice",
        Preempted,
        r"terminat\w+ (is )?imminent|imminent (termination|shutdown|reboot)|metadata (service|server|endpoint)[^\n]{0,80}(terminat|preempt|shut|evict)|(instance|vm|machine|node|host|server)[^\n]{0,30} will be (terminated|stopped|shut ?down|reclaimed|deallocated)|(terminat|reclaim|shut)\w*[^\n]{0,40} in (two|2) minutes",
    )
    .unless(r"\bcredits?\b|balance|budget|billing|quota|out of memory"),
    verdict(
        EVICTED.as_str(),
        Preempted,
        r"EvictionByEvictionAPI|(pod|job|workload|node|vm|instance|container|task)s?[^\n]{0,40}\b(was|were|been|is|being|got) evicted|\bevicted (by|due|because|from|to accommodate|as)|(eviction|evict) (notice|signal|event|request|policy)|EvictedBy|evictionType|TerminateScheduled|scheduled ?event[^\n]{0,40}(preempt|terminate|evict)|Evicted\b|nodes?[^\n]{0,30}(being|is|was|been) (drained|disrupted)|\bDisruptionTarget\b|drain(ing|ed) (the )?node|DRAIN_NODE|node drain",
    )
    .unless(r"\b(ecc|xid|unhealthy|hardware)\b|(gpu|node|nic|device) failure|low on resource|memory|ephemeral|disk|cache|kv |lustre"),
    verdict(
        "scheduler.maintenance",
        Preempted,
        r"maintenance (event|window|notice)[^\n]{0,80}|(terminat|stopp|shut|migrat|interrupt)\w*[^\n]{0,60}(host )?maintenance|TERMINATE_ON_HOST_MAINTENANCE|UNHEALTHY_MAINTENANCE",
    ),
    cause(
        "scheduler.requeue_signal",
        Preempted,
        r"requeu(e)?ing (slurm )?job|requeued? (exhausted|job)|handling (auto-)?requeue|(sigusr1|sigusr2)[^\n]{0,60}(requeue|checkpoint|preempt|time)|lame ?(workers|duck)|(sigterm|termination signal)[^\n]{0,60}(preempt|spot|evict|reclaim)|(instance|node|vm|machine|host)[^\n]{0,30}(is |being |will be )?(going away|shut(ting)? down)",
    )
    .unless(r"handlers? (is |was )?(installed|registered|set)|power|thermal|overheat|temperature"),
    cause(
        "scheduler.no_capacity",
        Preempted,
        r"insufficient ?(instance|capacity|spot)[ _]?(capacity|error)|unable to provision requested [^\n]{0,20}capacity|ZONE_RESOURCE_POOL_EXHAUSTED|\bstockout\b|no (spot )?capacity (is )?(available|left)|does not have enough resources available to fulfil|capacity (is )?(not|un)available|CapacityNotAvailable|CapacityError\b|ResourcesUnavailableError|failed to (acquire|provision) resources",
    ),
    hint("scheduler.sigterm", Preempted, r"preemptible|spot instance|preempted or failed"),
];
