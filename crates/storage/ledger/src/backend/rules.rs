//! What the database itself refuses: changes of what is sealed, of history, and of what a row is. Written once as data and turned into
//! triggers of both dialects. They follow from the tables of this version and are written again by every migration.

use super::dialect::Dialect;
use crate::error::INTEGRITY_MARK;
use crate::records::{
    AttemptRow, ChangeRow, ChargeRow, CheckpointRow, DataSnapshotRow, DutyRow, EvaluationMetricRow,
    EvaluationRow, EvaluationSliceRow, LAUNCHES, LeaseRow, ModelRow, NoticeRow, OutboxRow, RetryRow, RunRow,
    RungRow, SEALED_WITH_ATTEMPTS, TABLES,
};
use crate::value::{Record, Table};

/// The tables whose rows change in other ways than those sealed with attempts; rows are only added to all others, and adding the
/// same row again changes nothing. In [`FILLED_IN`], [`PROJECT`] may be filled in; of [`PRUNED`], old rows are removed.
pub(crate) const CHANGING: [&Table; 11] = [
    RunRow::TABLE,
    AttemptRow::TABLE,
    LAUNCHES,
    CheckpointRow::TABLE,
    RetryRow::TABLE,
    LeaseRow::TABLE,
    EvaluationRow::TABLE,
    RungRow::TABLE,
    ModelRow::TABLE,
    DutyRow::TABLE,
    OutboxRow::TABLE,
];
/// Tables of receipts, and what else names a row of them than its key.
const RECEIPTS: [(&Table, &str); 2] = [
    (AttemptRow::TABLE, "run_id = NEW.run_id AND attempt_number = NEW.attempt_number"),
    (LAUNCHES, "run_id = NEW.run_id AND attempt_number = NEW.attempt_number AND kind = NEW.kind"),
];
/// Tables whose rows change and stay, and what a deletion is answered with.
const NOT_DELETED: [(&Table, &str); 5] = [
    (RunRow::TABLE, "runs are not deleted"),
    (CheckpointRow::TABLE, "checkpoints are retired, not deleted"),
    (RungRow::TABLE, "rungs are not deleted"),
    (ModelRow::TABLE, "models are not deleted"),
    (LeaseRow::TABLE, "leases are not deleted"),
];
/// Tables of which only [`PROJECT`] changes.
const FILLED_IN: [&Table; 2] = [ChargeRow::TABLE, DataSnapshotRow::TABLE];
/// The column that is filled in later, where the migration or the program that wrote the row did not know it.
const PROJECT: &str = "project";
/// Tables whose rows never change, and of which old ones are removed (`trackway tick`).
const PRUNED: [&Table; 2] = [ChangeRow::TABLE, NoticeRow::TABLE];
/// The column of a retry that is filled in later.
pub(crate) const NEXT_ATTEMPT: &str = "next_attempt_id";
const SEALED: &str = "the receipt is sealed; write an amendment";
const EVALUATION_ENDED: &str = "the evaluation has ended and does not change";
const RUNG_DECIDED: &str = "the verdict of a rung does not change";

/// What is refused, as a trigger sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Insert,
    Update,
    Delete,
}

/// When it is refused.
#[derive(Debug)]
enum RefusedWhen {
    Always,
    /// Where this holds of `OLD` and `NEW`.
    Row(String),
    /// Where the row takes the place of another one for which this holds: SQLite's `INSERT OR REPLACE`, which deletes without a
    /// trigger. PostgreSQL has no such statement.
    Replaces(String),
    /// Where the receipt of the row's attempt is sealed.
    ReceiptSealed,
    /// Where the row's evaluation is not running.
    EvaluationNotRunning,
}

/// A rule of a table.
#[derive(Debug)]
struct Rule {
    table: &'static str,
    name: &'static str,
    events: Vec<Event>,
    /// The columns whose change is refused; empty: all.
    columns: Vec<&'static str>,
    when: RefusedWhen,
    message: String,
}

impl Rule {
    fn new(table: &Table, name: &'static str, events: &[Event], when: RefusedWhen, message: &str) -> Self {
        let (table, message) = (table.name, message.to_owned());
        Self { table, name, events: events.to_vec(), columns: Vec::new(), when, message }
    }

    /// A rule about changes of these columns alone.
    fn of_columns(
        table: &Table,
        name: &'static str,
        columns: &[&'static str],
        when: RefusedWhen,
        message: &str,
    ) -> Self {
        Self { columns: columns.to_vec(), ..Self::new(table, name, &[Event::Update], when, message) }
    }
}

/// Every rule of a ledger.
fn rules() -> Vec<Rule> {
    use Event::{Delete, Insert, Update};
    let mut rules = Vec::new();
    let append_only = TABLES.iter().filter(|table| {
        let has_rules = CHANGING.contains(table) || FILLED_IN.contains(table);
        !has_rules && !SEALED_WITH_ATTEMPTS.contains(table)
    });
    for table in append_only {
        let message = format!("{} is append-only", table.name);
        let refused: &[Event] = if PRUNED.contains(table) { &[Update] } else { &[Update, Delete] };
        rules.push(Rule::new(table, "append_only", refused, RefusedWhen::Always, &message));
        rules.push(Rule::new(table, "once", &[Insert], replaces_another(table, &[]), &message));
    }
    for (table, same) in RECEIPTS {
        let sealed = RefusedWhen::Row("OLD.sealed_at IS NOT NULL".into());
        rules.push(Rule::new(table, "sealed", &[Update, Delete], sealed, SEALED));
        // `OR REPLACE` deletes every row that a unique index names, not only the one with the same key.
        let replaces = RefusedWhen::Replaces(format!(
            "sealed_at IS NOT NULL AND (attempt_id = NEW.attempt_id OR ({same}))"
        ));
        rules.push(Rule::new(table, "sealed_once", &[Insert], replaces, SEALED));
    }
    for table in SEALED_WITH_ATTEMPTS {
        rules.push(Rule::new(table, "sealed", &[Insert, Update, Delete], RefusedWhen::ReceiptSealed, SEALED));
    }
    for (table, message) in NOT_DELETED {
        rules.push(Rule::new(table, "kept", &[Delete], RefusedWhen::Always, message));
    }
    for table in [EvaluationMetricRow::TABLE, EvaluationSliceRow::TABLE] {
        let message = "the evaluation has ended, or there is none";
        rules.push(Rule::new(table, "running", &[Insert], RefusedWhen::EvaluationNotRunning, message));
    }
    rules.extend(rules_of_identities());
    rules.extend(rules_of_ends());
    rules.extend(FILLED_IN.into_iter().flat_map(rules_of_projects));
    rules
}

/// The rules of tables whose rows change in some columns.
fn rules_of_identities() -> Vec<Rule> {
    let (runs, checkpoints) = (RunRow::TABLE, CheckpointRow::TABLE);
    vec![
        Rule::of_columns(
            runs,
            "identity",
            &["run_id", "config_sha256", "config_json", "created_at", "seed"],
            RefusedWhen::Always,
            "the config of a run does not change",
        ),
        Rule::of_columns(runs, "kind", &["kind"], RefusedWhen::Always, "the kind of a run does not change"),
        Rule::of_columns(
            checkpoints,
            "identity",
            &["run_id", "attempt_id", "step", "epoch", "object_prefix"],
            RefusedWhen::Always,
            "a checkpoint keeps its identity",
        ),
        Rule::of_columns(
            checkpoints,
            "manifest",
            &["manifest_sha256"],
            RefusedWhen::Row(
                "OLD.manifest_sha256 IS NOT NULL AND NEW.manifest_sha256 IS DISTINCT FROM OLD.manifest_sha256".into(),
            ),
            "a checkpoint keeps its manifest",
        ),
    ]
}

/// The rules of tables whose rows change until something has ended or is decided.
fn rules_of_ends() -> Vec<Rule> {
    use Event::{Delete, Insert, Update};
    let (evaluations, rungs) = (EvaluationRow::TABLE, RungRow::TABLE);
    let (retries, leases) = (RetryRow::TABLE, LeaseRow::TABLE);
    let retry_columns: Vec<&str> =
        retries.columns.iter().map(|column| column.name).filter(|name| *name != NEXT_ATTEMPT).collect();
    let append_only = "retries is append-only";
    let row = |condition: &str| RefusedWhen::Row(condition.into());
    let replaces = |condition: &str| RefusedWhen::Replaces(condition.into());
    vec![
        Rule::new(evaluations, "ended", &[Update, Delete], row("OLD.state <> 'running'"), EVALUATION_ENDED),
        Rule::new(
            evaluations,
            "ended_once",
            &[Insert],
            replaces("evaluation_id = NEW.evaluation_id AND state <> 'running'"),
            EVALUATION_ENDED,
        ),
        Rule::new(
            rungs,
            "verdict",
            &[Update],
            row("OLD.verdict <> 'open' AND NEW.verdict <> OLD.verdict"),
            RUNG_DECIDED,
        ),
        Rule::new(
            rungs,
            "verdict_once",
            &[Insert],
            replaces(
                "run_id = NEW.run_id AND rung = NEW.rung AND verdict <> 'open' AND NEW.verdict <> verdict",
            ),
            RUNG_DECIDED,
        ),
        Rule::of_columns(retries, "columns", &retry_columns, RefusedWhen::Always, append_only),
        Rule::new(retries, "kept", &[Delete], RefusedWhen::Always, append_only),
        Rule::new(retries, "once", &[Insert], replaces_another(retries, &[NEXT_ATTEMPT]), append_only),
        Rule::of_columns(
            retries,
            "next_attempt",
            &[NEXT_ATTEMPT],
            row("OLD.next_attempt_id IS NOT NULL"),
            "the attempt that followed is already known",
        ),
        Rule::new(
            // A smaller epoch would let a supervisor write again that was superseded.
            leases,
            "epoch",
            &[Update],
            row("NEW.epoch < OLD.epoch"),
            "the epoch of a lease only grows",
        ),
        Rule::new(
            OutboxRow::TABLE,
            "waiting",
            &[Delete],
            row("OLD.state = 'waiting'"),
            "a notice that waits is not removed",
        ),
    ]
}

/// Rows are only added to such a table, but for a project that was not known.
fn rules_of_projects(table: &Table) -> [Rule; 4] {
    let columns: Vec<&str> =
        table.columns.iter().map(|column| column.name).filter(|name| *name != PROJECT).collect();
    let append_only = format!("{} is append-only", table.name);
    let known = RefusedWhen::Row(format!("OLD.{PROJECT} IS NOT NULL"));
    let once = replaces_another(table, &[]);
    [
        Rule::of_columns(table, "columns", &columns, RefusedWhen::Always, &append_only),
        Rule::new(table, "kept", &[Event::Delete], RefusedWhen::Always, &append_only),
        Rule::new(table, "once", &[Event::Insert], once, &append_only),
        Rule::of_columns(table, "project", &[PROJECT], known, "the project of the row is already known"),
    ]
}

/// That a row with the same key is there whose other columns differ; those in `but` do not count.
fn replaces_another(table: &Table, but: &[&str]) -> RefusedWhen {
    let key: Vec<String> = table.key.iter().map(|column| format!("{column} = NEW.{column}")).collect();
    let others = table.columns.iter().map(|column| column.name);
    let others: Vec<&str> = others.filter(|name| !table.key.contains(name) && !but.contains(name)).collect();
    let new: Vec<String> = others.iter().map(|column| format!("NEW.{column}")).collect();
    RefusedWhen::Replaces(format!(
        "{} AND ({}) IS NOT ({})",
        key.join(" AND "),
        others.join(", "),
        new.join(", ")
    ))
}

/// The statements that make every rule, after the rules that were there are gone.
pub(super) fn script(dialect: Dialect) -> String {
    let rules = rules();
    match dialect {
        Dialect::Sqlite => rules.iter().flat_map(sqlite_triggers).collect(),
        Dialect::Postgres => {
            let triggers = rules.iter().flat_map(postgres_triggers);
            // The functions first: a trigger names one that is there.
            std::iter::once(POSTGRES_FUNCTIONS.to_owned()).chain(triggers).collect()
        }
    }
}

fn sqlite_triggers(rule: &Rule) -> Vec<String> {
    let Rule { table, name, columns, message, .. } = rule;
    let trigger = |event: &Event| {
        let (verb, row, suffix) = match event {
            Event::Insert => ("INSERT", "NEW", "insert"),
            Event::Update => ("UPDATE", "OLD", "update"),
            Event::Delete => ("DELETE", "OLD", "delete"),
        };
        let of = of_columns(columns);
        let when = match &rule.when {
            RefusedWhen::Always => String::new(),
            RefusedWhen::Row(condition) => format!("WHEN {condition} "),
            RefusedWhen::Replaces(condition) => format!("WHEN EXISTS (SELECT 1 FROM {table} WHERE {condition}) "),
            RefusedWhen::ReceiptSealed => {
                let sealed = |table: &Table| {
                    format!("SELECT 1 FROM {} WHERE attempt_id = {row}.attempt_id AND sealed_at IS NOT NULL", table.name)
                };
                format!("WHEN EXISTS ({}) ", RECEIPTS.map(|(table, _)| sealed(table)).join(" UNION ALL "))
            }
            RefusedWhen::EvaluationNotRunning => {
                "WHEN NOT EXISTS (SELECT 1 FROM evaluations WHERE evaluation_id = NEW.evaluation_id AND state = 'running') ".into()
            }
        };
        format!(
            "CREATE TRIGGER {table}_{name}_{suffix} BEFORE {verb}{of} ON {table} {when}BEGIN SELECT RAISE(ABORT, '{INTEGRITY_MARK}{message}'); END;\n"
        )
    };
    rule.events.iter().map(trigger).collect()
}

fn postgres_triggers(rule: &Rule) -> Vec<String> {
    let Rule { table, name, columns, message, .. } = rule;
    let (when, function) = match &rule.when {
        // PostgreSQL has no statement that replaces a row without an update.
        RefusedWhen::Replaces(_) => return Vec::new(),
        RefusedWhen::Always => (String::new(), format!("trackway_refuse('{message}')")),
        RefusedWhen::Row(condition) => {
            (format!(" WHEN ({condition})"), format!("trackway_refuse('{message}')"))
        }
        RefusedWhen::ReceiptSealed => (String::new(), format!("trackway_refuse_sealed('{message}')")),
        RefusedWhen::EvaluationNotRunning => {
            (String::new(), format!("trackway_refuse_evaluated('{message}')"))
        }
    };
    let verbs = rule.events.iter().map(|event| match event {
        Event::Insert => "INSERT".to_owned(),
        Event::Update => format!("UPDATE{}", of_columns(columns)),
        Event::Delete => "DELETE".to_owned(),
    });
    let verbs = verbs.collect::<Vec<_>>().join(" OR ");
    let mut triggers = vec![format!(
        "CREATE TRIGGER {table}_{name} BEFORE {verbs} ON {table} FOR EACH ROW{when} EXECUTE FUNCTION {function};\n"
    )];
    // A TRUNCATE fires no trigger of a row.
    if rule.events.contains(&Event::Delete) {
        triggers.push(format!(
            "CREATE TRIGGER {table}_{name}_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION trackway_refuse('{message}');\n"
        ));
    }
    triggers
}

fn of_columns(columns: &[&str]) -> String {
    if columns.is_empty() { String::new() } else { format!(" OF {}", columns.join(", ")) }
}

/// The names of the triggers that enforce rules, each with its table.
pub(super) const fn existing(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%trackway integrity: %'"
        }
        Dialect::Postgres => {
            "SELECT t.tgname::text, c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
             WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace AND p.proname LIKE 'trackway_refuse%'"
        }
    }
}

/// The statement that takes a trigger away.
pub(super) fn dropped(dialect: Dialect, trigger: &str, table: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!("DROP TRIGGER {trigger};\n"),
        Dialect::Postgres => format!("DROP TRIGGER {trigger} ON {table};\n"),
    }
}

/// What triggers of PostgreSQL call; the message comes from the trigger.
const POSTGRES_FUNCTIONS: &str = "
CREATE OR REPLACE FUNCTION trackway_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'trackway integrity: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE OR REPLACE FUNCTION trackway_refuse_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    attempt text := CASE TG_OP WHEN 'INSERT' THEN NEW.attempt_id ELSE OLD.attempt_id END;
BEGIN
    IF EXISTS (SELECT 1 FROM training_attempts WHERE attempt_id = attempt AND sealed_at IS NOT NULL)
        OR EXISTS (SELECT 1 FROM launches WHERE attempt_id = attempt AND sealed_at IS NOT NULL) THEN
        RAISE EXCEPTION 'trackway integrity: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE OR REPLACE FUNCTION trackway_refuse_evaluated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM evaluations WHERE evaluation_id = NEW.evaluation_id AND state = 'running') THEN
        RAISE EXCEPTION 'trackway integrity: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
";
