//! Why a checkpoint is made, as the flight record and the control file have it.

use trackway_core::closed_list;

closed_list!(
    /// Why a checkpoint was made; `docs/checkpoint-cadence.md` says when each is due. Of several reasons the greatest counts.
    SaveReason, "reason for a checkpoint", {
        /// The script saved by itself; nothing was due.
        Script = "script",
        /// The cadence of the run file.
        Cadence = "cadence",
        /// The last checkpoint before an end that was requested, or at the last step.
        End = "end",
        /// A person requested it (`trackway checkpoint now`).
        Asked = "asked",
        /// A detector requested it, to keep the state before something that looks wrong.
        Anomaly = "anomaly",
        /// SIGTERM: the machine is about to be taken away.
        Sigterm = "sigterm",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that `docs/checkpoint-cadence.md` has every reason.
    #[test]
    fn every_reason_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/checkpoint-cadence.md");
        let text = std::fs::read_to_string(path).unwrap();
        for reason in SaveReason::ALL {
            assert!(
                text.contains(&format!("| `{reason}` |")),
                "docs/checkpoint-cadence.md has no row for `{reason}`"
            );
        }
    }
}
