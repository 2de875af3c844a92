//! What the ledger keeps as JSON: the plan of a run, the changes of a retry, metrics and gates. It is read whole, or it
//! is an error. A default is never taken for a value that cannot be read: a retry limit that silently became a default
//! would spend money.

use serde::de::DeserializeOwned;
use serde_json::Value;
use trackway_formats::runfile::{PLAN_VERSION, Plan};
use trackway_ledger::RunRow;

use crate::error::{AppError, ErrorKind};

/// The plan of a run; `None` for an imported run, which has none.
///
/// # Errors
/// [`ErrorKind::Integrity`] when the stored plan cannot be read; [`ErrorKind::Usage`] when a newer version wrote it.
pub fn stored_plan(run: &RunRow) -> Result<Option<Plan>, AppError> {
    let stored = &run.config_json;
    let version = stored.get("version").and_then(Value::as_u64);
    if version.is_none() && stored.get("import").is_some() {
        return Ok(None);
    }
    if let Some(newer) = version.filter(|version| *version > u64::from(PLAN_VERSION)) {
        let message = format!(
            "the plan of run `{}` has version {newer}; this Trackway reads up to version {PLAN_VERSION}",
            run.name
        );
        return Err(AppError::new(ErrorKind::Usage, message).hint("use the version that started the run"));
    }
    read_stored(stored, "runs.config_json", || format!("run `{}`", run.name)).map(Some)
}

/// A value of a JSON column; `column` names it, and `owner` whose row it is.
///
/// # Errors
/// [`ErrorKind::Integrity`] when it cannot be read.
pub fn read_stored<T: DeserializeOwned>(
    value: &Value,
    column: &str,
    owner: impl FnOnce() -> String,
) -> Result<T, AppError> {
    serde_json::from_value(value.clone()).map_err(|error| {
        let message = format!("{} of {} cannot be read from the ledger", column, owner());
        AppError::new(ErrorKind::Integrity, message)
            .because(error)
            .hint("restore the ledger from a backup, or rebuild it with `trackway doctor rebuild`")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{RunId, Timestamp};

    use super::*;

    fn run(config: Value) -> RunRow {
        let run_id: RunId = "run_01jz0000000000000000000000".parse().unwrap();
        let name = Name::renamed(NameKind::Run, "toy");
        RunRow::planned(run_id, &name, "", config, Timestamp::from_micros(0))
    }

    fn plan() -> Value {
        serde_json::to_value(Plan::for_command(&["true".into()])).unwrap()
    }

    /// Proves that a plan is read as it was stored, and that an imported run has none.
    #[test]
    fn a_stored_plan_is_read_whole() {
        let mut config = plan();
        config["retry"]["max_usd"] = json!(3.5);
        let read = stored_plan(&run(config)).unwrap().unwrap();
        assert_eq!(read.retry.max_usd, Some(3.5));
        assert_eq!(
            stored_plan(&run(json!({ "import": { "tool": "mlflow" }, "parameters": {} }))).unwrap(),
            None
        );
    }

    /// Proves that no part of a plan that cannot be read is replaced by a default.
    #[test]
    fn a_damaged_plan_is_an_error() {
        let mut retry = plan();
        retry["retry"]["max_usd"] = json!("three");
        let mut detect = plan();
        detect["detect"] = json!([1]);
        let mut checkpoint = plan();
        checkpoint["checkpoint"] = json!({ "keep_last": -1 });
        for damaged in [retry, detect, checkpoint, Value::Null, json!({}), json!("plan")] {
            let error = stored_plan(&run(damaged.clone())).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Integrity, "{damaged}");
            assert!(
                error.to_string().contains("`toy`") && error.to_string().contains("runs.config_json"),
                "{error}"
            );
        }
    }

    /// Proves that the plan of a newer version is not read as far as it is understood.
    #[test]
    fn a_newer_plan_is_refused() {
        let mut newer = plan();
        newer["version"] = json!(PLAN_VERSION + 1);
        let error = stored_plan(&run(newer)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.to_string().contains("version 2"), "{error}");
    }
}
