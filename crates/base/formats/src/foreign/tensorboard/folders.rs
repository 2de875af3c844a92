//! The names of the values of several folders of event files. Pure.
//!
//! The values of the first folder have their tags. Those of another one begin with its way from where both ways part: `validation/loss`
//! beside `train`, `loss_a/loss` below it. A folder that is named by a time alone names nothing: `SummaryWriter.add_hparams` makes such a
//! folder in that of its writer, and both are of one session, whichever was found first. Of two folders that differ in a time alone the
//! second one is `run2`.

/// What precedes a metric of `add_hparams` whose name the curves of its writer have.
pub const OF_SESSION: &str = "hparam/";

/// The names of months as `SummaryWriter` begins its folders with: `Aug22_14-01-02_host`.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// What follows the month: day, hour, minute, second.
const AFTER_MONTH: &str = "00_00-00-00";
/// The shapes of dates and of times with their dates; `0` is any digit.
const STAMPS: [&str; 15] = [
    "0000-00-00", "00000000-000000", "00000000_000000", "00000000T000000", "00000000-0000", "00000000_0000",
    "0000-00-00_00-00", "0000-00-00_00-00-00", "0000-00-00-00-00-00", "0000-00-00T00-00-00",
    "0000-00-00T00:00:00", "0000-00-00_00:00:00", "0000-00-00 00:00:00", "0000_00_00_00_00_00",
    "0000-00-00-000000",
];
/// A time of day counts after a date: `2026-11-21/14-01-02`.
const TIME_OF_DAY: &str = "00-00-00";
/// A count of seconds since 1970 has so many digits at least, one of nanoseconds so many at most.
const DIGITS: std::ops::RangeInclusive<usize> = 9..=19;

/// The folders of event files of one run, in the order in which they were found.
#[derive(Debug, Default)]
pub struct EventFolders {
    known: Vec<EventFolder>,
}

#[derive(Debug)]
struct EventFolder {
    way: Vec<String>,
    /// The way without what is only a time.
    plain: Vec<String>,
    prefix: String,
}

impl EventFolders {
    /// The prefix of the names of a folder's values: empty, or ending in a slash. `way`: the names of the folders down to it, from where
    /// event files are searched. Equal for equal folders.
    pub fn prefix_of(&mut self, way: &[String]) -> String {
        if let Some(known) = self.known.iter().find(|known| known.way == way) {
            return known.prefix.clone();
        }
        let plain = without_times(way);
        let prefix = self.new_prefix(way, &plain);
        self.known.push(EventFolder { way: way.to_vec(), plain, prefix: prefix.clone() });
        prefix
    }

    fn new_prefix(&self, way: &[String], plain: &[String]) -> String {
        let Some(first) = self.known.first() else { return String::new() };
        let alike = || self.known.iter().filter(|known| known.plain == plain);
        let Some(one) = alike().next() else { return self.unique(relative(plain, &first.plain)) };
        let is_of_session = |known: &EventFolder| known.way.starts_with(way) || way.starts_with(&known.way);
        match alike().all(is_of_session) {
            true => one.prefix.clone(),
            false => self.unique(one.prefix.clone()),
        }
    }

    fn unique(&self, prefix: String) -> String {
        let is_taken = |prefix: &String| self.known.iter().any(|known| known.prefix == *prefix);
        let numbered = (2..).map(|number: u32| format!("run{number}/{prefix}"));
        let mut all = std::iter::once(prefix.clone()).chain(numbered);
        all.find(|prefix| !is_taken(prefix)).unwrap_or_default()
    }
}

/// The way from where it parts from that of the first folder. A folder above the first one is called by its name.
fn relative(plain: &[String], first: &[String]) -> String {
    let common = plain.iter().zip(first).take_while(|(here, there)| here == there).count();
    let way = if common == plain.len() { &plain[common.saturating_sub(1)..] } else { &plain[common..] };
    way.iter().map(|name| format!("{name}/")).collect()
}

fn without_times(way: &[String]) -> Vec<String> {
    let mut is_after_date = false;
    let mut names = Vec::new();
    for name in way {
        let is_time = is_time_stamp(name) || is_after_date && shape(name) == TIME_OF_DAY;
        is_after_date = is_time_stamp(name);
        if !is_time {
            names.push(name.clone());
        }
    }
    names
}

/// Whether the name of a folder is a time and nothing else, such as `1795851751.921718`, `20261121-140102` or `Nov21_14-01-02_host`.
#[must_use]
pub fn is_time_stamp(name: &str) -> bool {
    let whole = match name.rsplit_once('.') {
        Some((whole, part)) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => whole,
        _ => name.strip_suffix('Z').unwrap_or(name),
    };
    let is_count = DIGITS.contains(&whole.len()) && whole.bytes().all(|byte| byte.is_ascii_digit());
    let after_month = MONTHS.iter().find_map(|month| name.strip_prefix(month));
    let is_of_writer = after_month.is_some_and(|rest| {
        let shape = shape(rest);
        shape == AFTER_MONTH || shape.starts_with(&format!("{AFTER_MONTH}_"))
    });
    is_count || is_of_writer || STAMPS.contains(&shape(whole).as_str())
}

/// The name with 0 for every digit.
fn shape(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(path: &str) -> Vec<String> {
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn prefixes(paths: &[&str]) -> Vec<String> {
        let mut folders = EventFolders::default();
        paths.iter().map(|path| folders.prefix_of(&way(path))).collect()
    }

    /// Proves which prefix each folder gets, of folders in the order in which they were found: sub-runs keep theirs, a time names nothing,
    /// and none is a slash alone.
    #[test]
    fn folders_name_their_values() {
        let cases: [(&[&str], &[&str]); 14] = [
            (&["runs/abc"], &[""]),
            (&["runs/1795851751.921718"], &[""]),
            // `add_hparams`, whichever of the folders is found first.
            (&["runs/abc", "runs/abc/1795851751.921718"], &["", ""]),
            (&["runs/abc/1795851751.921718", "runs/abc"], &["", ""]),
            (&["logs/train", "runs/abc", "runs/abc/1795851751.9"], &["", "runs/abc/", "runs/abc/"]),
            // Two sessions of one writer.
            (&["runs/abc", "runs/abc/1795851751.9", "runs/abc/1795851760.1"], &["", "", "run2/"]),
            // Sub-runs of Keras, Lightning, and `add_scalars`.
            (&["logs/train", "logs/validation"], &["", "validation/"]),
            (&["lightning_logs/version_0", "lightning_logs/version_1"], &["", "version_1/"]),
            (&["runs/abc", "runs/abc/loss_a", "runs/abc/loss_b"], &["", "loss_a/", "loss_b/"]),
            (&["runs/abc/loss_a", "runs/abc"], &["", "abc/"]),
            (&["w/logs/train", "w/other", ""], &["", "other/", "run2/"]),
            // Two trainings in one script.
            (
                &[
                    "fit/20261121-140102/train",
                    "fit/20261121-140102/val",
                    "fit/20261121-141500/train",
                    "fit/20261121-141500/val",
                ],
                &["", "val/", "run2/", "run2/val/"],
            ),
            (&["runs/Nov21_14-01-02_host", "runs/Nov21_14-03-02_host"], &["", "run2/"]),
            (&["outputs/2026-11-21/14-01-02/tb", "outputs/2026-11-21/14-05-00/tb"], &["", "run2/"]),
        ];
        for (paths, expected) in cases {
            assert_eq!(prefixes(paths), expected, "{paths:?}");
        }
    }

    /// Proves that the same folder has the same prefix each time.
    #[test]
    fn a_folder_has_one_prefix() {
        assert_eq!(prefixes(&["a", "b", "a", "b"]), ["", "b/", "", "b/"]);
    }

    /// Proves which names are times: counts of seconds, dates with times, and those of `SummaryWriter`; a version, a number and a word
    /// with a date are names.
    #[test]
    fn times_are_recognised() {
        let times = [
            "1795851751",
            "1795851751.921718",
            "1795851751921",
            "20261121-140102",
            "20261121140102",
            "2026-11-21",
            "2026-11-21_14-01-02",
            "2026-11-21T14:01:02Z",
            "2026-11-21 14:01:02.123456",
            "Nov21_14-01-02_host",
            "Nov21_14-01-02",
        ];
        let names = [
            "", "train", "version_0", "0", "12345678", "1.5", "0.001", "lr0.1", "20261121-140102-resnet",
            "Nov", "November", "14-01-02", "v1.2.3", "12345678901234567890",
        ];
        assert!(times.iter().all(|name| is_time_stamp(name)));
        for name in names {
            assert!(!is_time_stamp(name), "{name}");
        }
    }
}
