//! Lines of advice: causes and what to do, with the signs that speak for them and what must be there.

/// Something seen that speaks for a cause, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// A check found values in the data that are not finite.
    DataNotFinite,
    /// The learning rate rose before it, or was set to a higher value.
    RateRaised,
    /// The learning rate was set to a lower value.
    RateLowered,
    /// The loss or the gradients grew before it.
    NumbersGrew,
    /// Memory grew step by step.
    MemoryGrew,
    /// Batches came again.
    BatchesRepeat,
    /// Steps waited for their input.
    Starved,
    /// Batches, their rows or the model were made larger.
    SizeRaised,
    /// Settings of the loader changed.
    LoaderChanged,
    /// It computed in fp16, or scaled its loss.
    Halves,
    DataChanged,
    PackageChanged,
}

impl Sign {
    /// Whether it is the cause itself that was seen, and not a change that may have led to it.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::DataNotFinite)
    }
}

/// What must be there for a line to be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A checkpoint that a resume continues from.
    Checkpoint,
    /// A script that can be rehearsed, at whose first steps it failed, and its run file, which is named for `FILE`.
    Rehearsal,
    /// Several ranks.
    Ranks,
    /// What the data are now and were in the last good run.
    Snapshots,
    /// A data set of the run, which is named for `DATA`.
    Data,
}

/// A cause, or something to do: with the signs that speak for it, and what must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// What is said.
    pub text: &'static str,
    pub(crate) signs: &'static [Sign],
    /// What must be there; none: it always holds.
    pub need: Option<Need>,
}

/// What is there, or `None`.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// A list of lines: after the text of each the signs that speak for it in `[…]`, and after `if` what must be there.
macro_rules! lines {
    ($($text:tt $([$($sign:ident)+])? $(if $need:ident)?),+ $(,)?) => {
        const {
            &[$($crate::advice::lines::Line {
                text: $text,
                signs: &[$($($crate::advice::lines::Sign::$sign),+)?],
                need: $crate::advice::lines::optional!($($crate::advice::lines::Need::$need)?),
            }),+]
        }
    };
}
pub(crate) use {lines, optional};

/// Signs with what was seen of each.
pub type SeenSigns = [(Sign, String)];

/// A line with what was seen that speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedLine<'s> {
    pub line: Line,
    /// The strongest sign for it.
    pub sign: Option<&'s (Sign, String)>,
}

impl std::fmt::Display for RankedLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.sign {
            Some((_, seen)) => write!(f, "{} ({seen})", self.line.text),
            None => f.write_str(self.line.text),
        }
    }
}

/// The lines for which all is there: those that a sign speaks for first, by its strength, the others as they were.
#[must_use]
pub fn ranked<'s>(
    lines: &[Line],
    seen: &'s SeenSigns,
    is_there: impl Fn(Need) -> bool,
) -> Vec<RankedLine<'s>> {
    let fitting = lines.iter().filter(|line| line.need.is_none_or(&is_there));
    let mut ranked: Vec<RankedLine<'s>> = fitting
        .map(|line| {
            let signs = seen.iter().filter(|(sign, _)| line.signs.contains(sign));
            RankedLine { line: *line, sign: signs.min_by_key(|(sign, _)| *sign) }
        })
        .collect();
    ranked.sort_by_key(|it| it.sign.map_or((true, None), |(sign, _)| (false, Some(*sign))));
    ranked
}

/// Likely causes as one text. Of several without a sign it is said that nothing was seen for one.
#[must_use]
pub fn likely(causes: &[Line], seen: &SeenSigns) -> String {
    let ranked = ranked(causes, seen, |_| true);
    let (shown, others): (Vec<&RankedLine<'_>>, Vec<&RankedLine<'_>>) =
        ranked.iter().partition(|it| it.sign.is_some());
    let text = |ranked: Vec<&RankedLine<'_>>| {
        ranked.iter().map(ToString::to_string).collect::<Vec<String>>().join("; ")
    };
    match (shown.is_empty(), others.len()) {
        (true, 0 | 1) => text(others),
        (true, _) => format!("{} (without evidence for one)", text(others)),
        (false, 0) => text(shown),
        (false, _) => format!("{}; without evidence: {}", text(shown), text(others)),
    }
}

/// Lines as one text, as they are where nothing is known.
#[must_use]
pub fn joined(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text).collect::<Vec<&str>>().join("; ")
}
