use proptest::prelude::*;
use trackway_core::registry::GateVerdict;
use trackway_core::{Health, Rung};

use super::*;

fn at(second: u32) -> Timestamp {
    Timestamp::from_micros(0).plus_seconds(f64::from(second))
}

fn change(number: u64, kind: ModelChange, version: Version, stage: Option<ModelStage>) -> Change {
    let at = at(u32::try_from(number).unwrap());
    Change { number, at, kind, version: Some(version), stage, alias: None, policy: None }
}

/// A history in a line: `r` registers the next version, `p2` promotes 2 to production, `s2` to staging, `a2` archives it,
/// `<` rolls back, `b2` to 2.
fn history(line: &str) -> Vec<Change> {
    let (mut changes, mut versions) = (Vec::new(), 0);
    for word in line.split_whitespace() {
        let number = changes.len() as u64 + 1;
        let named = || word[1..].parse::<Version>().unwrap();
        let promoted = |stage| change(number, ModelChange::Promote, named(), Some(stage));
        changes.push(match &word[..1] {
            "r" => {
                versions += 1;
                change(number, ModelChange::Register, versions, None)
            }
            "p" => promoted(ModelStage::Production),
            "s" => promoted(ModelStage::Staging),
            "a" => promoted(ModelStage::Archived),
            "b" => change(number, ModelChange::RollBack, named(), Some(ModelStage::Production)),
            _ => {
                let to = ModelState::after(&changes).before_production().unwrap();
                change(number, ModelChange::RollBack, to, Some(ModelStage::Production))
            }
        });
    }
    changes
}

/// Proves the stages of versions after promotions and rollbacks: one in production, and each rollback goes one further
/// back. A version that was named after it was rolled back from has before it what it replaced.
#[test]
fn a_history_gives_the_stage_of_each_version() {
    let cases: [(&str, Option<Version>, Option<Version>); 13] = [
        ("r", None, None),
        ("r p1", Some(1), None),
        ("r r p1 p2", Some(2), Some(1)),
        ("r r p1 p2 <", Some(1), None),
        ("r r r p1 p2 p3 <", Some(2), Some(1)),
        ("r r r p1 p2 p3 < <", Some(1), None),
        ("r r r p1 p2 < p3", Some(3), Some(1)),
        ("r r p1 p2 p1", Some(1), Some(2)),
        ("r r p1 p2 a2", None, Some(1)),
        ("r r p1 p2 a1", Some(2), None),
        ("r r r p1 p2 p3 b1", Some(1), None),
        ("r r p1 p2 < b2", Some(2), Some(1)),
        ("r r p1 p2 < b2 <", Some(1), None),
    ];
    for (line, production, before) in cases {
        let standing = ModelState::after(&history(line));
        assert_eq!((standing.production(), standing.before_production()), (production, before), "{line}");
    }
    let standing = ModelState::after(&history("r r r p1 p2"));
    assert_eq!([1, 2, 3].map(|version| standing.was_released(version)), [true, true, false]);
}

/// Proves that every time in which a version was in production is known, also of one that was rolled back from, left by hand or promoted
/// where it was already.
#[test]
fn it_is_known_what_was_in_production_when() {
    let releases = |line: &str| -> Vec<(Version, i64, Option<i64>)> {
        let seconds = |at: Timestamp| at.as_micros() / 1_000_000;
        let standing = ModelState::after(&history(line));
        let of = |it: &Release| (it.version, seconds(it.from), it.until.map(seconds));
        standing.releases().iter().map(of).collect()
    };
    assert!(releases("r r").is_empty());
    let there_and_back = [(1, 3, Some(4)), (2, 4, Some(5)), (1, 5, None)];
    assert_eq!(releases("r r p1 p2 <"), there_and_back);
    assert_eq!(releases("r p1 a1 p1 p1"), [(1, 2, Some(3)), (1, 4, None)]);
}

proptest! {
    /// Proves that after any history at most one version is in production, that it is the one in the state, that a prefix of the history
    /// gives the model at that time, and that rollbacks one after another reach no version twice.
    #[test]
    fn one_version_is_in_production(words in proptest::collection::vec((0..5u8, 1..5u32), 1..30)) {
        let mut line = String::from("r r r r");
        for (kind, version) in words {
            let standing = ModelState::after(&history(&line));
            line += &match kind {
                0 if standing.before_production().is_some() => " <".to_owned(),
                1 => format!(" s{version}"),
                2 => format!(" a{version}"),
                3 if standing.was_released(version) => format!(" b{version}"),
                _ => format!(" p{version}"),
            };
        }
        let mut rolled_back = line.clone();
        let in_production = ModelState::after(&history(&line)).production();
        let mut visited: BTreeSet<Version> = in_production.into_iter().collect();
        while let Some(before) = ModelState::after(&history(&rolled_back)).before_production() {
            prop_assert!(visited.insert(before), "{} goes back to {before} twice", rolled_back);
            rolled_back += " <";
        }
        let changes = history(&line);
        for count in 0..=changes.len() {
            let standing = ModelState::after(&changes[..count]);
            let in_production: Vec<Version> = standing
                .stages
                .iter()
                .filter(|(_, stage)| **stage == ModelStage::Production)
                .map(|(version, _)| *version)
                .collect();
            prop_assert_eq!(in_production, standing.production().into_iter().collect::<Vec<_>>(), "{}", line);
            let moment = at(u32::try_from(count).unwrap());
            prop_assert_eq!(&ModelState::at(&changes, moment), &standing);
        }
    }
}

fn facts() -> PromotionFacts {
    PromotionFacts {
        model: "income".into(),
        version: 3,
        run_id: "run_01arz3ndektsv4rrffq69g5fav".parse().unwrap(),
        step: 240,
        manifest_sha256: "abc".into(),
        registered_by: Some("ana".into()),
        rung: Some(Rung::FULL),
        damage: None,
        unsafe_because: None,
        attempt: Some(AttemptFacts { health: Some(Health::Ok), ..AttemptFacts::default() }),
        evaluation: Some(EvaluationFacts {
            evaluation_id: "ev".into(),
            manifest_sha256: "abc".into(),
            completed: true,
            receipt: Policy::default().receipt,
            test_set_uses: Some(4),
        }),
        gates: Some(GateFacts {
            gate_receipt_id: "g".into(),
            evaluation_id: "ev".into(),
            verdict: GateVerdict::Pass,
            unmet: Vec::new(),
            unverified: Vec::new(),
            kinds: Policy::default().gates,
            compared_with: Some(Some(1)),
        }),
        test_sets: BTreeMap::new(),
        approval_digest: "d".into(),
        approvals: vec![Approval { by: "ben".into(), digest: "d".into(), expires_at: at(200) }],
        production: Some(1),
    }
}

fn rules(to: ModelStage, facts: &PromotionFacts, policy: &Policy) -> Vec<&'static str> {
    refusals(to, facts, policy, at(100)).into_iter().map(|refusal| refusal.rule.as_str()).collect()
}

/// Proves what each stage requires, one thing missing at a time.
#[test]
fn a_stage_asks_for_its_evidence() {
    use ModelStage::{Archived, Candidate, Production, Staging};
    let whole = facts();
    let without = |change: &dyn Fn(&mut PromotionFacts)| {
        let mut facts = facts();
        change(&mut facts);
        facts
    };
    let gates = |change: &dyn Fn(&mut GateFacts)| without(&|it| change(it.gates.as_mut().unwrap()));
    let evaluation =
        |change: &dyn Fn(&mut EvaluationFacts)| without(&|it| change(it.evaluation.as_mut().unwrap()));
    let cases = [
        (whole.clone(), vec![], vec![]),
        (without(&|it| it.damage = Some("torn".into())), vec!["registry.damaged"], vec!["registry.damaged"]),
        (
            without(&|it| it.unsafe_because = Some("`loss` is NaN".into())),
            vec!["registry.unsafe_checkpoint"],
            vec!["registry.unsafe_checkpoint"],
        ),
        (
            without(&|it| it.attempt.as_mut().unwrap().health = Some(Health::Broken)),
            vec!["registry.health"],
            vec!["registry.health"],
        ),
        (without(&|it| it.attempt.as_mut().unwrap().health = Some(Health::Unknown)), vec![], vec![]),
        (without(&|it| it.attempt = None), vec![], vec![]),
        (without(&|it| it.evaluation = None), vec!["registry.not_evaluated"], vec!["registry.not_evaluated"]),
        (
            evaluation(&|it| it.completed = false),
            vec!["registry.not_evaluated"],
            vec!["registry.not_evaluated"],
        ),
        (
            evaluation(&|it| it.manifest_sha256 = "x".into()),
            vec!["registry.other_weights"],
            vec!["registry.other_weights"],
        ),
        (
            evaluation(&|it| it.receipt.clear()),
            vec!["registry.incomplete_receipt"],
            vec!["registry.incomplete_receipt"],
        ),
        (without(&|it| it.gates = None), vec![], vec!["registry.not_gated", "registry.missing_gate"]),
        (
            gates(&|it| it.evaluation_id = "old".into()),
            vec![],
            vec!["registry.not_gated", "registry.missing_gate"],
        ),
        (without(&|it| it.approvals.clear()), vec![], vec!["registry.not_approved"]),
        (gates(&|it| it.verdict = GateVerdict::Inconclusive), vec![], vec!["registry.gate"]),
        (gates(&|it| it.unverified = vec!["a > 0".into()]), vec![], vec!["registry.unverified_gate"]),
        (gates(&|it| it.compared_with = Some(None)), vec![], vec!["registry.stale_baseline"]),
        (gates(&|it| it.compared_with = None), vec![], vec!["registry.not_compared"]),
        (gates(&|it| it.kinds = [GateKind::Size].into()), vec![], vec!["registry.missing_gate"]),
        (without(&|it| it.rung = Rung::new(0.01)), vec![], vec!["registry.rung"]),
        (without(&|it| it.rung = None), vec![], vec!["registry.rung"]),
        (without(&|it| it.production = Some(2)), vec![], vec!["registry.stale_baseline"]),
    ];
    for (facts, staging, production) in cases {
        assert_eq!(rules(Staging, &facts, &Policy::default()), staging, "{facts:?}");
        assert_eq!(rules(Production, &facts, &Policy::default()), production, "{facts:?}");
        assert!(rules(Candidate, &facts, &Policy::default()).is_empty());
        assert!(rules(Archived, &facts, &Policy::default()).is_empty());
    }
}

/// Proves which approvals count: of other people, of this evidence, not expired, each person once, however the name is typed.
#[test]
fn an_approval_is_for_this_evidence_and_by_another_user() {
    let policy = Policy { approvals: 2, ..Policy::default() };
    let approval = |by: &str, digest: &str, until: u32| Approval {
        by: by.into(),
        digest: digest.into(),
        expires_at: at(until),
    };
    let refused = |approvals: &[Approval], policy: &Policy| {
        let facts = PromotionFacts { approvals: approvals.to_vec(), ..facts() };
        refusals(ModelStage::Production, &facts, policy, at(100)).first().map(|it| it.why.clone())
    };
    let (ben, cem) = (approval("ben", "d", 200), approval("cem", "d", 200));
    assert_eq!(refused(&[ben.clone(), cem.clone()], &policy), None);
    assert_eq!(refused(&[ben.clone(), ben.clone()], &policy), Some("1 of 2 approvals".into()));
    let excluded =
        [ben.clone(), approval("cem", "old", 200), approval("dia", "d", 100), approval("ana", "d", 200)];
    let why = "1 of 2 approvals; do not count: cem (approved other evidence), dia (approval has expired), ana (registered it)";
    assert_eq!(refused(&excluded, &policy), Some(why.into()));
    let named = Policy { approvers: ["ben".to_owned()].into(), ..policy.clone() };
    let why = "1 of 2 approvals; do not count: cem (not an approver of this model)";
    assert_eq!(refused(&[ben.clone(), cem], &named), Some(why.into()));
    let typed = ["Ben", "ben ", "b\u{200b}en", "ＢＥＮ"].map(|by| approval(by, "d", 200));
    assert_eq!(refused(&typed, &policy), Some("1 of 2 approvals".into()));
    let why = "1 of 2 approvals; do not count: ANA  (registered it), \u{2060} (has no name)";
    let others = [ben.clone(), approval("ANA ", "d", 200), approval("\u{2060}", "d", 200)];
    assert_eq!(refused(&others, &policy), Some(why.into()));
    let named_as_typed = Policy { approvers: ["Ben ".to_owned(), "CEM".to_owned()].into(), ..policy.clone() };
    assert_eq!(refused(&[ben.clone(), approval("cem", "d", 200)], &named_as_typed), None);
    let own = Policy { own_approval: true, ..policy };
    assert_eq!(refused(&[ben, approval("ana", "d", 200)], &own), None);
}

/// Proves what a policy requires beyond the defaults, and that a looser one permits it.
#[test]
fn a_policy_names_what_must_be_there() {
    let whole = facts();
    let strict = |change: &dyn Fn(&mut Policy)| {
        let mut policy = Policy::default();
        change(&mut policy);
        rules(ModelStage::Production, &whole, &policy)
    };
    assert_eq!(strict(&|it| it.gates = [GateKind::Cost].into()), ["registry.missing_gate"]);
    assert_eq!(strict(&|it| it.receipt = [ReceiptField::Slices].into()), ["registry.incomplete_receipt"]);
    assert_eq!(strict(&|it| it.test_set_uses_max = Some(3)), ["registry.worn_test_set"]);
    assert!(strict(&|it| it.test_set_uses_max = Some(4)).is_empty());

    let mut small = facts();
    small.rung = Rung::new(0.1);
    let gates = small.gates.as_mut().unwrap();
    (gates.kinds, gates.compared_with) = (BTreeSet::new(), None);
    let loose = Policy {
        gates: BTreeSet::new(),
        baseline: BaselineRule::Optional,
        rung_fraction_min: 0.1,
        ..Policy::default()
    };
    assert!(rules(ModelStage::Production, &small, &loose).is_empty());
    let itself = PromotionFacts { version: 1, ..small.clone() };
    assert!(!rules(ModelStage::Production, &itself, &Policy::default()).contains(&"registry.not_compared"));
    small.approvals.clear();
    let found = refusals(ModelStage::Production, &small, &Policy::default(), at(100));
    let all =
        [RefusalRule::MissingGate, RefusalRule::NotCompared, RefusalRule::Rung, RefusalRule::NotApproved];
    assert_eq!(found.iter().map(|it| it.rule).collect::<Vec<_>>(), all);
    assert!(all.iter().all(|rule| rule.is_of_policy()) && !RefusalRule::Damaged.is_of_policy());
    let kinds = "`quality`, `slice`, `fairness`, `latency`, `size`";
    assert!(found[0].why.contains(kinds), "{}", found[0].why);
}

/// Proves that a further test set must be evaluated, and that its gates must pass and have blocked a bad model; without gates
/// an evaluation is enough.
#[test]
fn further_test_sets_must_pass() {
    let refused = |set: TestSetFacts| {
        let facts = PromotionFacts { test_sets: [("rare".to_owned(), set)].into(), ..facts() };
        let found = refusals(ModelStage::Production, &facts, &Policy::default(), at(100));
        assert!(found.iter().all(|it| it.rule == RefusalRule::TestSet), "{found:?}");
        found.into_iter().next().map(|it| it.why)
    };
    let passed = |change: &dyn Fn(&mut TestSetFacts)| {
        let (evaluation, gates) = (facts().evaluation, facts().gates);
        let mut set = TestSetFacts { evaluation, has_gates: true, gates };
        change(&mut set);
        refused(set)
    };
    let why = |text: &str| Some(format!("test set `rare`: {text}"));
    assert_eq!(refused(TestSetFacts::default()), why("these weights were not evaluated on it"));
    assert_eq!(passed(&|_| {}), None);
    assert_eq!(passed(&|set| (set.gates, set.has_gates) = (None, false)), None);
    assert_eq!(passed(&|set| set.gates = None), why("no gate was evaluated for ev"));
    let gates = |change: &dyn Fn(&mut GateFacts)| passed(&|set| change(set.gates.as_mut().unwrap()));
    assert_eq!(gates(&|it| it.evaluation_id = "older".into()), why("no gate was evaluated for ev"));
    assert_eq!(gates(&|it| it.verdict = GateVerdict::Inconclusive), why("gate verdict inconclusive: "));
    assert_eq!(
        gates(&|it| it.unverified = vec!["f1 > 0".into()]),
        why("never blocked a bad model: `f1 > 0`")
    );
    let evaluation =
        |change: &dyn Fn(&mut EvaluationFacts)| passed(&|set| change(set.evaluation.as_mut().unwrap()));
    assert_eq!(evaluation(&|it| it.completed = false), why("evaluation ev did not complete"));
}

/// Proves that a policy from before it named gates has the strict defaults.
#[test]
fn an_older_policy_is_strict() {
    let text = r#"{"approvals": 2, "approval_seconds": 60.0, "own_approval": true}"#;
    let policy: Policy = serde_json::from_str(text).unwrap();
    let expected = Policy { approvals: 2, approval_seconds: 60.0, own_approval: true, ..Policy::default() };
    assert_eq!(policy, expected);
    assert_eq!(Policy::default().approval_seconds, 604_800.0, "a week");
}

/// Proves that a policy may demand a health that is ok and more of the attempt, that a person who vouches for a run is
/// believed about its health alone, and that an older receipt proves nothing.
#[test]
fn a_policy_looks_at_the_attempt() {
    let strict = Policy {
        health: HealthRule::Ok,
        attempt: [AttemptRequirement::EndedWell, AttemptRequirement::Preflight].into(),
        ..Policy::default()
    };
    let of = |attempt: Option<AttemptFacts>| {
        let facts = PromotionFacts { attempt, ..facts() };
        rules(ModelStage::Staging, &facts, &strict)
    };
    let shown: BTreeSet<AttemptRequirement> =
        [AttemptRequirement::EndedWell, AttemptRequirement::Preflight].into();
    let attempt = |health, is_blessed| {
        Some(AttemptFacts { health, is_blessed, shown: shown.clone(), ..AttemptFacts::default() })
    };
    assert!(of(attempt(Some(Health::Ok), false)).is_empty());
    for health in [None, Some(Health::Unknown), Some(Health::Suspect), Some(Health::Broken)] {
        assert_eq!(of(attempt(health, false)), ["registry.health"]);
        assert!(of(attempt(health, true)).is_empty());
    }
    assert_eq!(of(None), ["registry.health", "registry.attempt"]);
    let any = Policy { health: HealthRule::Any, ..Policy::default() };
    let broken = PromotionFacts { attempt: attempt(Some(Health::Broken), false), ..facts() };
    assert!(rules(ModelStage::Production, &broken, &any).is_empty());
}

/// Proves that who takes a version all the same is warned of an unsafe checkpoint and of a broken attempt, whatever the
/// policy requires, and of nothing else: a suspect health, or one that a person vouches for, is none of it.
#[test]
fn who_takes_a_version_is_warned() {
    let warnings = |health, is_blessed, unsafe_because: Option<&str>| {
        let findings = vec!["`loss` rose".to_owned()];
        let attempt = Some(AttemptFacts { health, findings, is_blessed, ..AttemptFacts::default() });
        let unsafe_because = unsafe_because.map(str::to_owned);
        PromotionFacts { attempt, unsafe_because, ..facts() }.warnings()
    };
    let broken = "the health of the attempt that wrote it is broken: `loss` rose";
    let lost = "its checkpoint is unsafe: `loss` is NaN";
    assert_eq!(warnings(Some(Health::Broken), false, None), [broken]);
    assert_eq!(warnings(Some(Health::Broken), true, Some("`loss` is NaN")), [lost]);
    assert_eq!(warnings(Some(Health::Broken), false, Some("`loss` is NaN")), [lost, broken]);
    for health in [None, Some(Health::Ok), Some(Health::Suspect), Some(Health::Unknown)] {
        assert_eq!(warnings(health, false, None), Vec::<String>::new());
    }
}
