//! Every case computed, the aims checked, and the document with the results.

use std::fmt::Write as _;

use trackway_statistics::median;

use super::{Case, Source, cases};
use crate::preflight::memory::answer::{Counter, MemoryEstimate, Parts};
use crate::preflight::memory::calibration::Calibration;
use crate::preflight::memory::device::CONTEXT_BYTES;
use crate::preflight::memory::estimate::{estimate, estimate_corrected};
use crate::preflight::memory::{Device, Fit, interval, report};

const BLESS: &str = "TRACKWAY_BLESS";
const GIB: f64 = 1_073_741_824.0;
/// Aims of the issue: median error, and fraction of cases inside the interval.
const MEDIAN_ERROR_AIM: f64 = 0.15;
const COVERAGE_AIM: f64 = 0.9;

/// What is expected where the source looked.
struct ExpectedBytes {
    bytes: f64,
    low_bytes: f64,
    high_bytes: f64,
}

impl ExpectedBytes {
    fn of(case: &Case, estimate: &MemoryEstimate) -> Self {
        let outside = match case.counter {
            Counter::Device => case.context_bytes.unwrap_or(CONTEXT_BYTES) - CONTEXT_BYTES,
            Counter::Allocated | Counter::Reserved => 0.0,
        };
        let counted = estimate.counted_by(case.counter);
        let overhead = counted - estimate.allocated_bytes;
        let parts = Parts { overhead, ..estimate.parts };
        let (low_bytes, high_bytes) = interval::of(&parts, &case.spec, estimate.correction.is_some());
        let end = |bytes: u64| bytes as f64 + outside;
        Self { bytes: end(counted), low_bytes: end(low_bytes), high_bytes: end(high_bytes) }
    }

    fn error(&self, case: &Case) -> f64 {
        self.bytes / case.measured_bytes - 1.0
    }

    fn covers(&self, case: &Case) -> bool {
        (self.low_bytes..=self.high_bytes).contains(&case.measured_bytes)
    }

    fn width(&self) -> f64 {
        (self.high_bytes - self.low_bytes) / self.bytes
    }
}

/// Figures of some of the cases.
struct Summary {
    cases: usize,
    median_error: f64,
    worst_error: f64,
    coverage: f64,
    median_width: f64,
}

impl Summary {
    fn of(cases: &[&(Case, ExpectedBytes)]) -> Self {
        let errors: Vec<f64> = cases.iter().map(|(case, expected)| expected.error(case).abs()).collect();
        let covered = cases.iter().filter(|(case, expected)| expected.covers(case)).count();
        Self {
            cases: cases.len(),
            worst_error: errors.iter().copied().fold(0.0, f64::max),
            median_error: median(errors),
            coverage: covered as f64 / cases.len() as f64,
            median_width: median(cases.iter().map(|(_, expected)| expected.width())),
        }
    }

    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {:.1} % | {:.1} % | {:.0} % | {:.0} % |\n",
            self.cases,
            self.median_error * 100.0,
            self.worst_error * 100.0,
            self.coverage * 100.0,
            self.median_width * 100.0
        )
    }
}

fn computed() -> Vec<(Case, ExpectedBytes)> {
    let expected = |case: Case| {
        let expected = ExpectedBytes::of(&case, &estimate(&case.spec));
        (case, expected)
    };
    cases::all().into_iter().map(expected).collect()
}

fn table(computed: &[(Case, ExpectedBytes)]) -> String {
    let mut text = String::new();
    for source in Source::ALL {
        let half = if source.fitted() { "fitted" } else { "held out" };
        let _ = write!(text, "\n*{half}* — {}\n\n", source.about());
        text.push_str(
            "| run | measured | estimate | error | interval | inside |\n|---|---|---|---|---|---|\n",
        );
        for (case, expected) in computed.iter().filter(|(case, _)| case.source == source) {
            let gib = |bytes: f64| bytes / GIB;
            let _ = writeln!(
                text,
                "| {} | {:.2} | {:.2} | {:+.1} % | {:.2} to {:.2} | {} |",
                case.name,
                gib(case.measured_bytes),
                gib(expected.bytes),
                expected.error(case) * 100.0,
                gib(expected.low_bytes),
                gib(expected.high_bytes),
                if expected.covers(case) { "yes" } else { "**no**" }
            );
        }
    }
    text
}

fn summaries(computed: &[(Case, ExpectedBytes)]) -> [(&'static str, Summary); 3] {
    let of = |wanted: &dyn Fn(&Source) -> bool| {
        let some: Vec<&(Case, ExpectedBytes)> =
            computed.iter().filter(|(case, _)| wanted(&case.source)).collect();
        Summary::of(&some)
    };
    [
        ("fitted", of(&|source| source.fitted())),
        ("held out", of(&|source| !source.fitted())),
        ("all", of(&|_| true)),
    ]
}

/// Pairs of cases of the same code: the first is measured, the second is then estimated again.
fn corrected_pairs(computed: &[(Case, ExpectedBytes)]) -> Vec<(String, f64, f64)> {
    const PAIRS: [(&str, &str); 12] = [
        ("BERT-large, batch 4", "… batch 1, accumulated"),
        ("… 2 × 512", "… 2 × 1024"),
        ("… 2 × 512", "… 2 × 2048"),
        ("TinyLlama 1.1B, 2 × 512, eager", "… 2 × 2048, eager"),
        ("Llama 3.1 8B, 8 GPUs", "Llama 3.1 8B, 128 GPUs"),
        ("… compiled", "… compiled (128)"),
        ("Phi 1.5, batch 1", "… batch 2"),
        ("Phi 1.5, batch 1", "… batch 4"),
        ("StableLM Alpha 3B, batch 1", "… batch 4 (3B)"),
        ("Llama 2 7B, batch 1", "… batch 2 (7B)"),
        ("Llama 3.1 8B, 32,768 tokens on 8 GPUs", "… 262,144 tokens, context over 8"),
        ("Llama 3.1 8B, 32 H200", "Llama 3.1 8B, 64 H200"),
    ];
    let find =
        |name: &str| &computed.iter().find(|(case, _)| case.name == name).expect("a case of that name").0;
    let corrected = |(first, second): (&str, &str)| {
        let (known, other) = (find(first), find(second));
        let measured = known.measured_bytes - known.context_bytes.map_or(0.0, |bytes| bytes - CONTEXT_BYTES);
        let calibration =
            Calibration::of(&estimate(&known.spec), measured as u64, known.counter).expect("the same run");
        let before = ExpectedBytes::of(other, &estimate(&other.spec)).error(other);
        let after =
            ExpectedBytes::of(other, &estimate_corrected(&other.spec, Some(calibration))).error(other);
        (format!("{first} → {second}"), before, after)
    };
    PAIRS.into_iter().map(corrected).collect()
}

fn document(computed: &[(Case, ExpectedBytes)]) -> String {
    let mut text = String::from(
        "| cases | count | median error | worst error | inside the interval | median width of the interval |\n\
         |---|---|---|---|---|---|\n",
    );
    for (name, summary) in summaries(computed) {
        text.push_str(&summary.row(name));
    }
    text.push_str("\nSizes are GiB; an error is estimate over measured, less one.\n");
    text.push_str(&table(computed));
    text.push_str("\nOne measured run corrects another of the same code:\n\n");
    text.push_str("| measured → estimated | error before | error after |\n|---|---|---|\n");
    for (name, before, after) in corrected_pairs(computed) {
        let _ = writeln!(text, "| {name} | {:+.1} % | {:+.1} % |", before * 100.0, after * 100.0);
    }
    text
}

/// Proves that the aims hold on the cases, held-out ones too, and that `docs/memory.md` shows what is computed
/// (`TRACKWAY_BLESS=1` writes it).
#[test]
fn published_peaks_are_met_and_shown() {
    const BEGIN: &str = "<!-- peaks: written by a test -->\n";
    const END: &str = "<!-- end of peaks -->";
    let computed = computed();
    for (name, summary) in summaries(&computed) {
        assert!(summary.median_error <= MEDIAN_ERROR_AIM, "{}", summary.row(name));
        assert!(summary.coverage >= COVERAGE_AIM, "{}", summary.row(name));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/memory.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = found.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", document(&computed));
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert_eq!(found, wanted, "run with {BLESS}=1");
    }
}

/// Proves that one measured peak corrects the estimates of other runs of the same code to within 3 % in the median.
#[test]
fn one_measured_peak_corrects_others() {
    let after: Vec<f64> = corrected_pairs(&computed()).iter().map(|(_, _, after)| after.abs()).collect();
    assert!(median(after.clone()) <= 0.03, "{after:?}");
}

/// Proves that no run that ran is reported not to fit its device, and none that ran out of memory is reported to fit.
#[test]
fn verdicts_agree_with_what_happened() {
    let verdict = |case: &Case, device: &str| {
        report(&case.spec, Device::named(device).copied(), None).verdict.expect("a device was named")
    };
    for case in cases::all() {
        let Some(device) = case.source.device(case.name) else { continue };
        assert_ne!(verdict(&case, device), Fit::DoesNotFit, "{}", case.name);
    }
    for (case, device) in cases::out_of_memory() {
        assert_ne!(verdict(&case, device), Fit::Fits, "{}", case.name);
    }
}
