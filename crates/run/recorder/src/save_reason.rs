/// Why a checkpoint was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SaveReason {
    /// The script saved by itself; nothing was due.
    Script,
    /// The cadence of the run file.
    Cadence,
    /// The last checkpoint before a requested end, or at the last step.
    End,
    /// A user requested it (`trackway checkpoint now`).
    Asked,
    /// A detector requested it, to keep the state before an anomaly.
    Anomaly,
    /// SIGTERM: the machine is about to be taken away.
    Sigterm,
}

impl SaveReason {
    const ALL: [Self; 6] =
        [Self::Script, Self::Cadence, Self::End, Self::Asked, Self::Anomaly, Self::Sigterm];

    /// The value in the record and in the control file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Cadence => "cadence",
            Self::End => "end",
            Self::Asked => "asked",
            Self::Anomaly => "anomaly",
            Self::Sigterm => "sigterm",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}
