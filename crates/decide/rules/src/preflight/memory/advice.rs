//! Whether a run fits a device, and what would make it fit, cheapest first.

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

use super::answer::MemoryEstimate;
use super::architecture::Targets;
use super::calibration::Calibration;
use super::device::Device;
use super::estimate::estimate_corrected;
use super::spec::{Adapters, Attention, Base, Loss, MemorySpec, Offload, Optimizer, Recompute, Step};

/// Largest micro-batch that is tried.
const MICRO_BATCH_MAX: u64 = 1 << 20;
/// Most devices that sharding is advised over.
const DEVICES_MAX: u64 = 1024;
/// A change that saves a smaller fraction of the total is not worth a line.
const SAVING_MIN: f64 = 0.02;
/// Rank of advised adapters.
const ADAPTER_RANK: u64 = 16;

closed_list!(
    /// Whether a run fits a device.
    Fit, "verdict", {
        /// The whole interval fits.
        Fits = "fits",
        /// The end of the interval does not: a rehearsal with one batch decides.
        Tight = "tight",
        /// The whole interval does not fit.
        DoesNotFit = "does_not_fit",
    }
);

impl Fit {
    fn of(estimate: &MemoryEstimate, usable_bytes: u64) -> Self {
        if estimate.high_bytes <= usable_bytes {
            Self::Fits
        } else if estimate.low_bytes <= usable_bytes {
            Self::Tight
        } else {
            Self::DoesNotFit
        }
    }
}

closed_list!(
    /// A change that lowers the peak.
    MemoryChange, "change", {
        /// Plain data parallel instead of sharding.
        Ddp = "ddp",
        /// Several changes at once.
        Together = "together",
        /// A smaller micro-batch, accumulated more often.
        MicroBatch = "micro_batch",
        /// Everything sharded over more devices.
        Fsdp = "fsdp",
        /// Attention tile by tile.
        FlashAttention = "flash_attention",
        /// The loss slice by slice.
        ChunkedLoss = "chunked_loss",
        /// The fused optimizer.
        FusedStep = "fused_step",
        /// Segments of the allocator that grow.
        ExpandableSegments = "expandable_segments",
        /// Recompute the cheap half of the activations.
        RecomputeSelective = "recompute_selective",
        /// Recompute activations layer by layer.
        RecomputeFull = "recompute_full",
        /// Parameters, gradients and optimizer states sharded over the data-parallel ranks.
        Zero3 = "zero_3",
        /// The optimizer's states in 8 bits.
        Optimizer8bit = "optimizer_8bit",
        /// The optimizer's states in the host's memory.
        OffloadOptimizer = "offload_optimizer",
        /// The parameters in the host's memory.
        OffloadParameters = "offload_parameters",
        /// Adapters on a frozen model.
        Lora = "lora",
        /// Adapters on a frozen model in 4 bits.
        Qlora = "qlora",
    }
);

/// A change and what it would lead to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "MemoryAdvice")]
pub struct Advice {
    /// Its name.
    pub change: MemoryChange,
    /// What to do.
    pub text: String,
    /// The arguments of `trackway memory`.
    pub arguments: String,
    /// What it costs.
    pub price: String,
    /// The peak it would lead to, in bytes.
    pub total_bytes: u64,
    /// Whether that fits.
    pub verdict: Fit,
}

/// An estimate against a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryReport {
    /// The described run.
    pub spec: MemorySpec,
    /// What is expected.
    #[serde(flatten)]
    pub estimate: MemoryEstimate,
    /// The device; `None`: none was named, and whether it fits is not reported.
    pub device: Option<Device>,
    /// What a process can use of it, in bytes.
    pub usable_bytes: Option<u64>,
    /// Whether the whole interval fits.
    pub fits: Option<bool>,
    /// The same with the middle way.
    pub verdict: Option<Fit>,
    /// Most samples at a time with which the whole interval fits; 0: not even one.
    pub largest_micro_batch: Option<u64>,
    /// What to change, cheapest first; or what is not needed.
    pub advice: Vec<Advice>,
}

/// Estimates a run, compares it with a device and advises what to change.
#[must_use]
pub fn report(spec: &MemorySpec, device: Option<Device>, calibration: Option<Calibration>) -> MemoryReport {
    let estimate = estimate_corrected(spec, calibration);
    let usable_bytes = device.map(|device| device.usable_bytes());
    let verdict = usable_bytes.map(|usable| Fit::of(&estimate, usable));
    let advisor = usable_bytes.map(|usable_bytes| Advisor { spec, usable_bytes, calibration });
    MemoryReport {
        fits: verdict.map(|verdict| verdict == Fit::Fits),
        largest_micro_batch: advisor.as_ref().map(Advisor::largest_micro_batch),
        advice: advisor.map(|advisor| advisor.advice(&estimate)).unwrap_or_default(),
        spec: spec.clone(),
        estimate,
        device,
        usable_bytes,
        verdict,
    }
}

/// A change of a spec, its arguments and its cost.
struct Change {
    name: MemoryChange,
    text: String,
    arguments: String,
    price: &'static str,
    spec: MemorySpec,
}

struct Advisor<'a> {
    spec: &'a MemorySpec,
    usable_bytes: u64,
    calibration: Option<Calibration>,
}

impl Advisor<'_> {
    fn estimate(&self, spec: &MemorySpec) -> MemoryEstimate {
        estimate_corrected(spec, self.calibration)
    }

    fn surely_fits(&self, spec: &MemorySpec) -> bool {
        Fit::of(&self.estimate(spec), self.usable_bytes) == Fit::Fits
    }

    fn with_micro_batch(&self, micro_batch: u64) -> MemorySpec {
        MemorySpec { micro_batch, ..self.spec.clone() }
    }

    /// The peak grows with the batch, so halving finds the border.
    fn largest_micro_batch(&self) -> u64 {
        let (mut fits, mut too_large) = (0, MICRO_BATCH_MAX + 1);
        while fits + 1 < too_large {
            let middle = fits.midpoint(too_large);
            if self.surely_fits(&self.with_micro_batch(middle)) {
                fits = middle;
            } else {
                too_large = middle;
            }
        }
        fits
    }

    fn advice(&self, estimate: &MemoryEstimate) -> Vec<Advice> {
        if Fit::of(estimate, self.usable_bytes) == Fit::Fits {
            return self.not_needed();
        }
        let changes = self.changes(self.spec);
        let worth = |advice: &Advice| {
            let saved = estimate.total_bytes.saturating_sub(advice.total_bytes) as f64;
            advice.verdict == Fit::Fits || saved >= SAVING_MIN * estimate.total_bytes as f64
        };
        let mut advice: Vec<Advice> = changes.into_iter().map(|it| self.say(it)).filter(worth).collect();
        if advice.iter().all(|it| it.verdict != Fit::Fits) {
            advice.extend(self.together());
        }
        advice
    }

    fn say(&self, change: Change) -> Advice {
        let estimate = self.estimate(&change.spec);
        Advice {
            change: change.name,
            text: change.text,
            arguments: change.arguments,
            price: change.price.into(),
            total_bytes: estimate.total_bytes,
            verdict: Fit::of(&estimate, self.usable_bytes),
        }
    }

    /// Where everything fits, sharding may be more than is needed.
    fn not_needed(&self) -> Vec<Advice> {
        let parallel = self.spec.parallel;
        let mut whole = self.spec.clone();
        whole.parallel.zero = 0;
        if parallel.zero == 0 || parallel.data == 1 || !self.surely_fits(&whole) {
            return Vec::new();
        }
        vec![
            self.say(Change {
                name: MemoryChange::Ddp,
                text:
                    "sharding is not needed: the whole run fits one device, so plain data parallel (DDP) does"
                        .into(),
                arguments: "--zero 0".into(),
                price: "nothing; it saves communication",
                spec: whole,
            }),
        ]
    }

    /// Single changes of `spec`, cheapest first.
    fn changes(&self, spec: &MemorySpec) -> Vec<Change> {
        let without_price = [flash(spec), chunked(spec), fused(spec), expandable(spec)];
        let with_time = [self.smaller_batch(spec), selective(spec), recomputed(spec)];
        let with_ranks = [sharded(spec), optimizer_8bit(spec), optimizer_offloaded(spec)];
        let with_devices = [self.more_devices(spec), lora(spec), qlora(spec), parameters_offloaded(spec)];
        without_price.into_iter().chain(with_time).chain(with_ranks).chain(with_devices).flatten().collect()
    }

    /// Cheap changes one on top of the other until it fits; what changes the training itself is left out.
    fn together(&self) -> Option<Advice> {
        let mut spec = self.spec.clone();
        let mut arguments: Vec<String> = Vec::new();
        let steps: [fn(&MemorySpec) -> Option<Change>; 7] =
            [flash, chunked, fused, expandable, recomputed, sharded, optimizer_offloaded];
        for step in steps {
            let Some(change) = step(&spec) else { continue };
            spec = change.spec;
            arguments.push(change.arguments);
            let rest = [None, self.smaller_batch(&spec), self.more_devices(&spec)];
            for last in rest {
                let more = last.as_ref().map(|change| change.arguments.clone());
                let candidate = last.map_or_else(|| spec.clone(), |change| change.spec);
                if self.surely_fits(&candidate) {
                    arguments.extend(more);
                    return Some(self.say(Change {
                        name: MemoryChange::Together,
                        text: "several of these together".into(),
                        arguments: arguments.join(" "),
                        price: "what each of them costs",
                        spec: candidate,
                    }));
                }
            }
        }
        None
    }

    /// As few samples at a time as it takes, and as many times more of them.
    fn smaller_batch(&self, spec: &MemorySpec) -> Option<Change> {
        if spec.step == Step::InBackward {
            return None;
        }
        let smaller = |parts: u64| MemorySpec {
            micro_batch: spec.micro_batch / parts,
            accumulate: spec.accumulate * parts,
            ..spec.clone()
        };
        // Halves, quarters …, and at last one at a time.
        let halves = std::iter::successors(Some(2), |parts: &u64| Some(parts * 2));
        let halves = halves.take_while(|parts| spec.micro_batch.is_multiple_of(*parts));
        let tried: Vec<u64> = halves.chain([spec.micro_batch]).filter(|parts| *parts > 1).collect();
        let parts = tried.iter().find(|parts| self.surely_fits(&smaller(**parts))).or(tried.last())?;
        let spec = smaller(*parts);
        Some(Change {
            name: MemoryChange::MicroBatch,
            text: format!(
                "a micro-batch of {}, {} per step: the effective batch size stays the same",
                spec.micro_batch, spec.accumulate
            ),
            arguments: format!("--micro-batch {} --accumulate {}", spec.micro_batch, spec.accumulate),
            price: "somewhat slower steps",
            spec,
        })
    }

    /// Fully sharded over as few devices as it takes.
    fn more_devices(&self, spec: &MemorySpec) -> Option<Change> {
        let over = |data: u64| {
            let mut spec = spec.clone();
            spec.parallel.data = data;
            spec.parallel.zero = 3;
            spec
        };
        let counts =
            std::iter::successors(Some((spec.parallel.data * 2).next_power_of_two()), |data| Some(data * 2));
        let data =
            counts.take_while(|data| *data <= DEVICES_MAX).find(|data| self.surely_fits(&over(*data)))?;
        let spec = over(data);
        Some(Change {
            name: MemoryChange::Fsdp,
            text: format!("shard everything (FSDP, ZeRO 3) over {} devices", spec.parallel.devices()),
            arguments: format!("--zero 3 --data-parallel {data}"),
            price: "more devices, more communication",
            spec,
        })
    }
}

/// A change without figures, where it is one: what to do, by which arguments, and what it costs.
fn change(
    spec: &MemorySpec,
    is_change: bool,
    name: MemoryChange,
    [text, arguments, price]: [&'static str; 3],
    alter: fn(&mut MemorySpec),
) -> Option<Change> {
    let mut spec = spec.clone();
    alter(&mut spec);
    is_change.then(|| Change { name, text: text.into(), arguments: arguments.into(), price, spec })
}

fn flash(spec: &MemorySpec) -> Option<Change> {
    let text = "compute attention tile by tile (FlashAttention, `scaled_dot_product_attention`)";
    let said = [text, "--attention flash", "nothing; it is faster"];
    change(spec, spec.attention != Attention::Flash, MemoryChange::FlashAttention, said, |it| {
        it.attention = Attention::Flash;
    })
}

fn chunked(spec: &MemorySpec) -> Option<Change> {
    let text = "compute the loss slice by slice (chunked or fused linear cross-entropy)";
    let is_whole = !matches!(spec.loss, Loss::Chunked | Loss::Classes);
    let said = [text, "--loss chunked", "next to nothing"];
    change(spec, is_whole, MemoryChange::ChunkedLoss, said, |it| it.loss = Loss::Chunked)
}

fn fused(spec: &MemorySpec) -> Option<Change> {
    let said = ["use the fused optimizer (`fused=True`)", "--optimizer-step fused", "nothing"];
    change(spec, spec.step == Step::Foreach, MemoryChange::FusedStep, said, |it| it.step = Step::Fused)
}

fn expandable(spec: &MemorySpec) -> Option<Change> {
    let text = "let the allocator grow its segments (`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`)";
    let said = [text, "--expandable-segments", "nothing"];
    change(spec, !spec.expandable_segments, MemoryChange::ExpandableSegments, said, |it| {
        it.expandable_segments = true
    })
}

fn selective(spec: &MemorySpec) -> Option<Change> {
    let text = "recompute the cheap half of the activations";
    let said = [text, "--recompute selective", "steps about 10 % slower"];
    change(spec, spec.recompute == Recompute::None, MemoryChange::RecomputeSelective, said, |it| {
        it.recompute = Recompute::Selective;
    })
}

fn recomputed(spec: &MemorySpec) -> Option<Change> {
    let text = "recompute activations layer by layer (activation checkpointing)";
    let said = [text, "--recompute full", "steps 20 to 30 % slower"];
    change(spec, spec.recompute != Recompute::Full, MemoryChange::RecomputeFull, said, |it| {
        it.recompute = Recompute::Full;
    })
}

fn sharded(spec: &MemorySpec) -> Option<Change> {
    let text = "shard parameters, gradients and optimizer states over the data-parallel ranks (FSDP, ZeRO 3)";
    let is_whole = spec.parallel.zero != 3 && spec.parallel.data != 1;
    let said = [text, "--zero 3", "more communication"];
    change(spec, is_whole, MemoryChange::Zero3, said, |it| it.parallel.zero = 3)
}

fn optimizer_8bit(spec: &MemorySpec) -> Option<Change> {
    let text = "keep the optimizer's states in 8 bits (bitsandbytes, torchao)";
    let said = [text, "--optimizer adamw-8bit", "another optimizer: compare a short run"];
    change(spec, spec.optimizer == Optimizer::Adamw, MemoryChange::Optimizer8bit, said, |it| {
        it.optimizer = Optimizer::Adamw8bit;
    })
}

fn optimizer_offloaded(spec: &MemorySpec) -> Option<Change> {
    let text = "keep the optimizer's states in the host's memory (ZeRO-Offload, paged optimizers)";
    let said = [text, "--offload optimizer", "steps wait for the host"];
    change(spec, spec.offload == Offload::None, MemoryChange::OffloadOptimizer, said, |it| {
        it.offload = Offload::Optimizer;
    })
}

fn parameters_offloaded(spec: &MemorySpec) -> Option<Change> {
    let text = "keep the parameters in the host's memory too (DeepSpeed ZeRO 3 offload)";
    let said = [text, "--offload parameters", "steps several times slower"];
    change(spec, spec.offload != Offload::Parameters, MemoryChange::OffloadParameters, said, |it| {
        it.offload = Offload::Parameters;
    })
}

fn lora(spec: &MemorySpec) -> Option<Change> {
    if spec.adapters.is_some() {
        return None;
    }
    let adapters = Adapters { rank: ADAPTER_RANK, targets: Targets::All, base: Base::Plain };
    let spec = MemorySpec { adapters: Some(adapters), ..spec.clone() };
    Some(Change {
        name: MemoryChange::Lora,
        text: format!("train adapters of rank {ADAPTER_RANK} on a frozen model (LoRA)"),
        arguments: format!("--lora {ADAPTER_RANK} --lora-targets all"),
        price: "it fine-tunes; it does not pre-train",
        spec,
    })
}

fn qlora(spec: &MemorySpec) -> Option<Change> {
    let quantised = |adapters: Adapters| adapters.base != Base::Plain;
    if spec.adapters.is_some_and(quantised) {
        return None;
    }
    let rank = spec.adapters.map_or(ADAPTER_RANK, |adapters| adapters.rank);
    let targets = spec.adapters.map_or(Targets::All, |adapters| adapters.targets);
    let spec = MemorySpec { adapters: Some(Adapters { rank, targets, base: Base::Nf4 }), ..spec.clone() };
    Some(Change {
        name: MemoryChange::Qlora,
        text: format!("train adapters of rank {rank} on a frozen model held in 4 bits (QLoRA)"),
        arguments: format!("--lora {rank} --lora-targets {targets} --base nf4"),
        price: "it fine-tunes; slower steps",
        spec,
    })
}
