//! The account against formulas that others published, and what must hold of every run.

use proptest::prelude::*;

use super::*;

fn llama2_7b() -> Architecture {
    Architecture::decoder(32, 4096, 32, 11_008, 32_000)
}

fn states(spec: &MemorySpec) -> f64 {
    let parts = estimate(spec).parts;
    (parts.parameters + parts.gradients + parts.optimizer + parts.master_weights) as f64
}

/// A run whose gradients exist all the time, as ZeRO's paper counts them.
fn standing(model: Architecture) -> MemorySpec {
    MemorySpec { keep_gradients: true, ..MemorySpec::new(model) }
}

/// Proves figure 1 of the ZeRO paper (arXiv 1910.02054): 7.5 billion parameters over 64 ranks are 120, 31.4, 16.6,
/// 1.9 GB.
#[test]
fn zero_shards_as_its_paper_says() {
    let mut spec = standing(Architecture::of_parameters(7_500_000_000));
    spec.parallel.data = 64;
    for (zero, gigabytes) in [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)] {
        spec.parallel.zero = zero;
        let found = states(&spec) / 1e9;
        assert!((found - gigabytes).abs() < 0.051, "stage {zero}: {found}");
    }
}

/// Proves bytes a parameter of each recipe: 16 in fp32, 16 with a 32-bit copy, 18 with 32-bit gradients besides, 8 in
/// pure bf16, and what other optimizers leave.
#[test]
fn recipes_have_their_bytes_a_parameter() {
    let base = standing(llama2_7b());
    let per_parameter = |spec: MemorySpec| states(&spec) / spec.model.parameters() as f64;
    let optimizer = |optimizer| MemorySpec { optimizer, ..base.clone() };
    for (spec, bytes) in [
        (MemorySpec { precision: Precision::Fp32, ..base.clone() }, 16.0),
        (base.clone(), 16.0),
        (MemorySpec { gradients: Some(Precision::Fp32), ..base.clone() }, 18.0),
        (MemorySpec { master: Master::Weights, ..base.clone() }, 16.0),
        (MemorySpec { master: Master::None, ..base.clone() }, 8.0),
        (optimizer(Optimizer::Adamw8bit), 10.03),
        (optimizer(Optimizer::Sgd), 8.0),
        (optimizer(Optimizer::Momentum), 12.0),
        (optimizer(Optimizer::Lion), 12.0),
        (optimizer(Optimizer::Adafactor), 8.002),
        (optimizer(Optimizer::Muon), 12.156),
    ] {
        let found = per_parameter(spec.clone());
        assert!(
            (found - bytes).abs() < 0.005,
            "{:?} {:?}: {found}, not {bytes}",
            spec.master,
            spec.optimizer
        );
    }
}

/// Proves the 34 · s · b · h bytes a layer of Korthikanti et al. (arXiv 2205.05198) for their layer, its 2 · s · b · h
/// with recomputation, and that both are divided by tensor ranks that split tokens, but only 24 of the 34 by those that
/// do not.
#[test]
fn activations_are_those_of_the_paper() {
    let mut model = Architecture::decoder(4, 1024, 16, 4096, 1000);
    model.gated = false;
    model.norm = Norm::Layer;
    model.dropout = true;
    let spec = MemorySpec { sequence: 512, micro_batch: 64, loss: Loss::Classes, ..MemorySpec::new(model) };
    let sbh = 512.0 * 64.0 * 1024.0;
    let kept = |spec: &MemorySpec| {
        let activations = estimate(spec).parts.activations as f64;
        // One layer's backward pass comes on top: it is the same whatever the depth.
        let deeper = MemorySpec { model: Architecture { layers: 8, ..spec.model.clone() }, ..spec.clone() };
        (estimate(&deeper).parts.activations as f64 - activations) / 4.0 / sbh
    };
    assert!((kept(&spec) - 34.0).abs() < 0.01, "{}", kept(&spec));
    let full = MemorySpec { recompute: Recompute::Full, ..spec.clone() };
    assert!((kept(&full) - 2.0).abs() < 0.01, "{}", kept(&full));
    for (sequence, bytes) in [(true, 34.0 / 4.0), (false, 10.0 + 24.0 / 4.0)] {
        let parallel = Parallel { tensor: 4, sequence, ..Parallel::ONE };
        let shared = MemorySpec { parallel, ..spec.clone() };
        assert!((kept(&shared) - bytes).abs() < 0.01, "{sequence}: {}", kept(&shared));
    }
}

/// Proves the worked example of Llama 2 7B at 4,096 tokens: no 80 GB device holds it in mixed precision, eight do with
/// everything sharded and recomputed.
#[test]
fn the_worked_example_comes_out() {
    let h100 = Device::named("h100-80gb").copied();
    let spec = MemorySpec { sequence: 4096, ..MemorySpec::new(llama2_7b()) };
    let alone = report(&spec, h100, None);
    assert_eq!(alone.verdict, Some(Fit::DoesNotFit));
    assert_eq!(alone.estimate.rule_of_thumb_bytes, 40 * spec.model.parameters());
    let mut sharded = MemorySpec { recompute: Recompute::Full, ..spec };
    sharded.parallel = Parallel { data: 8, zero: 3, ..Parallel::ONE };
    let together = report(&sharded, h100, None);
    assert_eq!((together.fits, together.verdict), (Some(true), Some(Fit::Fits)));
    let states = together.estimate.parts;
    let gib = (states.parameters + states.optimizer + states.master_weights) as f64 / 1_073_741_824.0;
    assert!((gib - 12.55 * 14.0 / 16.0).abs() < 0.1, "{gib}");
}

/// Proves that advice goes from cheap to expensive, that what it predicts to fit does, and that a fitting run gets
/// none.
#[test]
fn advice_leads_to_what_fits() {
    let h100 = Device::named("h100-80gb").copied();
    let spec = MemorySpec { sequence: 4096, micro_batch: 8, ..MemorySpec::new(llama2_7b()) };
    let answer = report(&spec, h100, None);
    let names: Vec<&str> = answer.advice.iter().map(|it| it.change.as_str()).collect();
    assert_eq!(answer.largest_micro_batch, Some(0));
    for wanted in ["micro_batch", "recompute_full", "offload_optimizer", "lora"] {
        assert!(names.contains(&wanted), "{names:?}");
    }
    let fitting: Vec<&Advice> = answer.advice.iter().filter(|it| it.verdict == Fit::Fits).collect();
    assert!(!fitting.is_empty(), "{names:?}");
    let small = MemorySpec { sequence: 512, ..MemorySpec::new(Architecture::of_parameters(300_000_000)) };
    let answer = report(&small, h100, None);
    assert!(answer.advice.is_empty() && answer.largest_micro_batch > Some(8), "{answer:?}");
    let mut sharded = small;
    sharded.parallel = Parallel { data: 8, zero: 3, ..Parallel::ONE };
    assert_eq!(report(&sharded, h100, None).advice[0].change.as_str(), "ddp");
}

/// Proves that a peak that cannot be that of the described run is refused, and that a right one moves the estimate
/// onto it.
#[test]
fn a_measured_peak_corrects_or_is_refused() {
    let spec = MemorySpec::new(Architecture::of_parameters(1_000_000_000));
    let before = estimate(&spec);
    let refused = Calibration::of(&before, before.parts.parameters, Counter::Device).unwrap_err();
    assert!(refused.factor < 0.0 && refused.counted_bytes > refused.measured_bytes, "{refused}");
    for counter in Counter::ALL {
        let measured_bytes = before.counted_by(*counter) + before.parts.activations / 2;
        let calibration = Calibration::of(&before, measured_bytes, *counter).unwrap();
        let after = estimate_corrected(&spec, Some(calibration));
        assert!(after.counted_by(*counter).abs_diff(measured_bytes) <= 8, "{counter}");
        let width = |it: &MemoryEstimate| it.high_bytes - it.low_bytes;
        assert!(width(&after) < width(&before) && after.correction == Some(calibration.factor));
    }
}

proptest! {
    /// Proves of any run: the parts make up the peak, the peak is the largest phase and is in its interval; more
    /// tokens, layers or samples never need less; recomputing, sharding and flash attention never need more.
    #[test]
    fn more_work_never_needs_less(
        layers in 1_u64..40, heads in 1_u64..32, sequence in 16_u64..8192, micro_batch in 1_u64..16,
        data in 1_u64..16, eager in any::<bool>(), fp32 in any::<bool>(), rank in 0_u64..64,
    ) {
        let model = Architecture::decoder(layers, heads * 64, heads, heads * 256, 32_000);
        let adapters = (rank > 0).then_some(Adapters { rank, targets: Targets::All, base: Base::Nf4 });
        let spec = MemorySpec {
            sequence,
            micro_batch,
            precision: if fp32 { Precision::Fp32 } else { Precision::Bf16 },
            attention: if eager { Attention::Eager } else { Attention::Flash },
            parallel: Parallel { data, ..Parallel::ONE },
            adapters,
            ..MemorySpec::new(model)
        };
        let found = estimate(&spec);
        prop_assert_eq!(found.parts.total(), found.total_bytes);
        prop_assert_eq!(found.phases.iter().map(|phase| phase.total_bytes).max(), Some(found.total_bytes));
        prop_assert!(found.low_bytes <= found.total_bytes && found.total_bytes <= found.high_bytes);
        prop_assert!(found.allocated_bytes <= found.reserved_bytes && found.reserved_bytes <= found.total_bytes);
        let total = |spec: &MemorySpec| estimate(spec).total_bytes;
        let more_samples = MemorySpec { micro_batch: micro_batch + 1, ..spec.clone() };
        let longer = MemorySpec { sequence: sequence + 1, ..spec.clone() };
        prop_assert!(total(&more_samples) > found.total_bytes && total(&longer) > found.total_bytes);
        let mut deeper = spec.clone();
        deeper.model.layers += 1;
        prop_assert!(total(&deeper) > found.total_bytes);
        let flash = MemorySpec { attention: Attention::Flash, ..spec.clone() };
        prop_assert!(total(&flash) <= found.total_bytes);
        let mut sharded = spec.clone();
        let mut last = u64::MAX;
        for zero in [1, 3] {
            sharded.parallel.zero = zero;
            let parts = estimate(&sharded).parts;
            prop_assert!(parts.counted() <= last);
            last = parts.counted();
        }
    }
}
