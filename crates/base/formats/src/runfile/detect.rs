//! `[detect]`: the policies for findings of the detectors while a run is running, and their settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::detect::{DetectionPolicy, Detector};
use trackway_core::text::quoted_list;

use super::keys::tree::{Node, Place, Value};
use super::keys::values::{amount, count, one_of};
use super::keys::walker::{Problems, Scope};

/// The detectors that the run file names; the others are left at their defaults.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DetectSection {
    #[serde(flatten)]
    pub detectors: BTreeMap<Detector, DetectorSettings>,
    /// How many steps before the problem a checkpoint must be that a rollback goes to, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll_back_steps: Option<u64>,
    /// How many batches on each side of the problem a rollback skips too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_batches: Option<u64>,
}

/// The settings of one detector. `None`: the default.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DetectorSettings {
    /// What is done when it fires.
    pub policy: Option<DetectionPolicy>,
    /// Its limit.
    pub threshold: Option<f64>,
    /// How many observations in a row must be beyond it.
    pub patience: Option<u32>,
}

impl DetectSection {
    /// The policy when this detector fires; none: the default.
    #[must_use]
    pub fn policy_of(&self, detector: Detector) -> Option<DetectionPolicy> {
        self.detectors.get(&detector).and_then(|settings| settings.policy)
    }
}

pub(super) fn detect(scope: &Scope, problems: &mut Problems) -> DetectSection {
    let mut detectors: BTreeMap<Detector, DetectorSettings> = BTreeMap::new();
    for (name, entry) in scope.entries() {
        // A name that is not a detector was reported as an unknown key.
        let Ok(detector) = name.parse::<Detector>() else { continue };
        let settings = match &entry.node.value {
            Value::Table(_) => {
                scope.table_of(name, "detect.*", problems).map(|table| settings(&table, problems))
            }
            _ => scope
                .read(name, problems, policy)
                .map(|policy| DetectorSettings { policy: Some(policy), ..DetectorSettings::default() }),
        };
        if let Some(settings) = settings {
            check_policy(detector, settings, &entry.key_place, problems);
            detectors.insert(detector, settings);
        }
    }
    let roll_back_steps = scope.read("roll_back_steps", problems, count(0)).map(u64::from);
    let skip_batches = scope.read("skip_batches", problems, count(0)).map(u64::from);
    DetectSection { detectors, roll_back_steps, skip_batches }
}

/// Going back and skipping data helps if data, randomness or the script broke the numbers; what is slow stays slow.
fn check_policy(detector: Detector, settings: DetectorSettings, place: &Place, problems: &mut Problems) {
    let fits = matches!(
        detector,
        Detector::NonFinite
            | Detector::GradientExplosion
            | Detector::GradientVanishing
            | Detector::LossSpike
            | Detector::LossShift
            | Detector::DeadInput
            | Detector::Hang
            | Detector::LossScaleCollapse
            | Detector::RankDivergence
    );
    if settings.policy == Some(DetectionPolicy::RollBack) && !fits {
        let message = format!("a roll back would not change what `{detector}` finds");
        problems.add(place.clone(), message, Some("use `\"stop\"`, `\"checkpoint\"` or `\"note\"`".into()));
    }
}

fn settings(scope: &Scope, problems: &mut Problems) -> DetectorSettings {
    DetectorSettings {
        policy: scope.read("policy", problems, policy),
        threshold: scope.read("threshold", problems, amount(true)),
        patience: scope.read("patience", problems, count(1)),
    }
}

fn policy(node: &Node) -> Result<DetectionPolicy, super::keys::walker::Fault> {
    if !matches!(node.value, Value::Text(_)) {
        return Err(node.not("a policy").hint(format!(
            "such as `\"note\"`, or a table such as `{{ policy = \"stop\", patience = 3 }}`; policies are {}",
            quoted_list(DetectionPolicy::WORDS)
        )));
    }
    one_of(DetectionPolicy::WORDS)(node)
}
