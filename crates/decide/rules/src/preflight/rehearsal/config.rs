//! What a rehearsal measured, for the checks that can only guess without it.

use trackway_formats::rehearsal::RehearsalFacts;

use crate::preflight::config_checks::{Compile, Loader, Measurements, TrainingConfig};

/// What a launch took.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "StepResources")]
pub struct Measured {
    /// The most memory of the host that the process held.
    pub peak_rss_bytes: Option<u64>,
    /// The most that tensors took of a device.
    pub peak_device_bytes: Option<u64>,
    /// The most that the allocator held of a device.
    pub peak_device_reserved_bytes: Option<u64>,
    pub step_seconds: Option<f64>,
    /// Seconds until a further batch was loaded.
    pub batch_seconds: Option<f64>,
}

/// What a launch took.
#[must_use]
pub fn measured(facts: &RehearsalFacts) -> Measured {
    let Some(resources) = &facts.resources else { return Measured::default() };
    Measured {
        peak_rss_bytes: resources.peak_rss_bytes,
        peak_device_bytes: resources.peak_device_bytes,
        peak_device_reserved_bytes: resources.peak_device_reserved_bytes,
        step_seconds: resources.step_seconds,
        batch_seconds: resources.batch_seconds,
    }
}

/// The settings that showed in the process. What it did not report stays unknown.
#[must_use]
pub fn config_of(facts: &RehearsalFacts) -> TrainingConfig {
    let settings = facts.settings.clone().unwrap_or_default();
    TrainingConfig {
        precision: settings.precision.as_deref().and_then(|word| word.parse().ok()),
        loss_scaling: settings.grad_scaler,
        gradient_clip_norm: settings.clip_norm,
        total_steps: settings.total_steps,
        checkpointing: facts.saved.as_ref().map(|_| true),
        loader: facts.loader.as_ref().map(|loader| Loader {
            workers: loader.workers,
            cpus_per_gpu: loader.cpus,
            pin_memory: loader.pin_memory,
            prefetch: loader.prefetch,
            persistent_workers: loader.persistent_workers,
        }),
        measured: Measurements {
            trained_parameters: facts
                .model
                .as_ref()
                .map(|model| model.parameters.elements.saturating_sub(model.frozen.elements))
                .filter(|parameters| *parameters > 0),
            // Layers are frozen where their weights are worth keeping.
            starts_trained: facts.model.as_ref().is_some_and(|model| model.frozen.elements > 0),
            step_seconds: facts.resources.as_ref().and_then(|resources| resources.step_seconds),
            compile: settings.compiled.map(|is_used| Compile {
                is_used,
                seconds: settings.compile_seconds,
                again_seconds: settings.recompile_seconds,
            }),
            ..Measurements::default()
        },
        ..TrainingConfig::default()
    }
}
