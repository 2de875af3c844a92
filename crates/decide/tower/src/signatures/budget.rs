//! Money, quota or credit of the platform is spent.

use trackway_core::TerminationReason::BudgetExhausted;

use super::{Signature, cause, verdict};

pub(super) const SIGNATURES: &[Signature] = &[
    verdict(
        "budget.credit",
        BudgetExhausted,
        r"(not enough|insufficient|no|low|lack of|zero|out of|ran out of|run out of|exhausted|used up( all)?( of)?|exceeded|depleted|negative|without|need more|don'?t have (enough|any|sufficient)|do not have (enough|any|sufficient))[^\n]{0,40}\b(credits?|balance|funds?)\b|\b(credits?|balance|funds)\b[^\n]{0,40}(exhausted|too low|insufficient|depleted|not enough|used up|expired|exceeded|is (0|zero|negative|low|empty)|reached|ran out|run out|below|\bless than\b)|billing[^\n]{0,60}(disabled|not (active|enabled)|limit|suspend|required|closed|fail|issue|inactive|hard[ _]limit)|payment required|402 client error|(unpaid|overdue|past due)[^\n]{0,30}(invoice|bill|balance|account|payment)|account[^\n]{0,40}(suspended|in arrears|overdue|out of)|wallet[^\n]{0,30}(empty|low)|(recharge|top.?up) your",
    )
    .unless(r"credit card (data|fraud|number)|credit_|load.?balanc|class.?balanc|imbalance|balanced|credit.?scor|fraud"),
    verdict(
        "budget.spending",
        BudgetExhausted,
        r"(spend(ing)?|cost|monthly|usage|price|dollar|billing)[ _](limit|cap|budget|allowance)s?[^\n]{0,40}(reach|exceed|hit|exhaust|over)|(exceed\w*|reached|hit|over|exhausted|out of|used up|surpass\w*)[^\n]{0,40}(spend(ing)?|cost|monthly|usage|compute|gpu|project|workspace|team|account|organization)[ _]?(\w+ )?(limit|cap|budget|allowance)|(budget|allowance)[^\n]{0,30}(exceed|exhaust|spent|reached|used up|depleted|run out|ran out)|(exceed\w*|exhausted|out of|over|reached|hit)( the| your| its| my)?( \w+){0,2} (budget|allowance)",
    )
    .unless(r"memory budget|time budget|evaluation budget|token budget|latency budget"),
    verdict(
        "budget.compute_units",
        BudgetExhausted,
        r"(compute units?|gpu[ -]?(hours?|quota|minutes|time)|tpu quota|(node|core|cpu)[- ]hours?|service units?|weekly [^\n]{0,20}quota|free tier|zerogpu)[^\n]{0,60}(exhaust|exceed|used|reached|ran out|run out|limit|left|insufficient|not enough|no more|remaining: 0|expired)|(exceed\w*|no|not enough|insufficient|used (all|up)|out of|ran out of|reached|zero|exhausted)[^\n]{0,40}(compute units?|gpu[ -]?(hours?|quota|minutes|time)|tpu quota|(node|core|cpu)[- ]hours?|service units?|free tier)|(Grp|Max)\w*(GRES|TRES|CPU)\w*Min\w*|usage limits in colab|allocation (has |is )?(expired|exhausted|overdrawn|exceeded)|(no|insufficient) (time|hours) (left |remaining )?(in|on) (the |your )?(allocation|account|project)",
    ),
    verdict(
        "budget.quota",
        BudgetExhausted,
        r"quota[^\n]{0,80}(exceed|exhaust|reached|insufficient|not enough|limit|used up|is 0|of 0)|\b(exceed\w*|insufficient|not enough|no|out of|over|hit|reached|exhausted)\b[^\n]{0,40}\bquotas?\b|quota of \d+ and cannot|QUOTA_EXCEEDED|QuotaExceeded|ResourceLimitExceeded|(account|service|vcpu|instance)[- ]?(level )?(service )?limit[^\n]{0,60}(is 0|exceed|reached|utilization)|VcpuLimitExceeded|LimitExceededException|MaxSpotInstanceCountExceeded",
    )
    .unless(r"write failed|block limit|disk|storage|inode|file|errno|drive|check your plan|e\.g\. check quota|insufficient_quota|current quota|openai|anthropic|gemini|generativelanguage|judge|cgroup|\bcpu quota|per minute|tokens"),
    verdict(
        "budget.accounting_policy",
        BudgetExhausted,
        r"(Assoc(Grp|Max)|QOS(Grp|Max))\w*(Limit|Minutes|Per(User|Job|Account|Node))\w*|job violates accounting|(account|association|project)[^\n]{0,40}(no|not enough|insufficient|exceeded|over)[^\n]{0,30}(time|hours|usage|allocation|budget|limit)",
    ),
    cause(
        "budget.plan",
        BudgetExhausted,
        r"\bcredit limit (was |is |has been )?(exceeded|reached)|error code: 402\b|upgrade (your|to)( a| an)? [^\n]{0,40}(plan|pro|account|tier|subscription)|plan limits?[^\n]{0,30}(reach|exceed)|(free )?trial (has |period )?(ended|expired)|(runtime|tracked hours|usage)[^\n]{0,40}limit[^\n]{0,30}(plan|tier|account)",
    )
    .unless(r"openai|check your plan|pip|version|upgrade to (v?\d|the latest)|python|wandb version|billing details"),
];
