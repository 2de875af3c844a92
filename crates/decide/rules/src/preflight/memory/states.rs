//! Bytes that stay from step to step: parameters, gradients, optimizer states, master weights, and copies of them that
//! come and go.

use super::spec::{Adapters, Base, Master, MemorySpec, Offload, Optimizer, Precision, Step};

/// Elements that DeepSpeed's ZeRO 1 and 2 reduce and gather at a time (`reduce_bucket_size`, `allgather_bucket_size`).
const BUCKET_ELEMENTS: f64 = 5e8;
/// FSDP holds the layer it works on and the one it fetches meanwhile.
const GATHERED_LAYERS: f64 = 2.0;
/// Bytes of a number in a scale.
const SCALE_BYTES: f64 = 4.0;
/// Numbers with one scale: optimizer states of bitsandbytes, NF4, the scales of double quantisation.
const OPTIMIZER_BLOCK: f64 = 256.0;
const NF4_BLOCK: f64 = 64.0;
const NF4_SCALE_BLOCK: f64 = 256.0;

/// The position of a rank in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stage {
    /// It holds the embedding.
    pub first: bool,
    /// It holds the output head.
    pub last: bool,
}

/// Parameters of one rank before ZeRO shards them, after tensor and pipeline ranks have taken theirs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub layers: f64,
    /// Parameters of one layer.
    pub layer: f64,
    pub embedding: f64,
    /// The head, where it is not the embedding.
    pub head: f64,
    pub adapters: f64,
}

impl Share {
    pub fn of(spec: &MemorySpec, stage: Stage) -> Self {
        let (model, parallel) = (&spec.model, spec.parallel);
        let tensor = parallel.tensor as f64;
        let layers = (model.all_layers() as f64 / parallel.pipeline as f64).ceil();
        let embedding = model.embedding_parameters() as f64 / tensor;
        // The last stage needs a tied embedding as well.
        let tied_copy = model.tied_embeddings && parallel.pipeline > 1 && stage.last && !stage.first;
        let head = if tied_copy { embedding } else { model.head_parameters() as f64 / tensor };
        let adapters = spec.adapters.map_or(0.0, |adapters| adapter_count(spec, adapters));
        Self {
            layers,
            layer: model.matrix_parameters() as f64
                / parallel.tensor as f64
                / model.all_layers().max(1) as f64,
            embedding: if stage.first { embedding } else { 0.0 },
            head: if stage.last { head } else { 0.0 },
            adapters: adapters * layers / model.all_layers().max(1) as f64,
        }
    }

    /// Parameters outside the layers. FSDP gathers them as one unit and keeps them for the whole step.
    pub fn root(&self) -> f64 {
        self.embedding + self.head
    }

    /// Parameters of the model itself.
    pub fn base(&self) -> f64 {
        self.layers * self.layer + self.root()
    }

    /// Parameters that are trained.
    pub fn trained(&self, spec: &MemorySpec) -> f64 {
        if spec.adapters.is_some() { self.adapters } else { self.base() }
    }
}

fn adapter_count(spec: &MemorySpec, adapters: Adapters) -> f64 {
    spec.model.adapter_parameters(adapters.rank, adapters.targets) as f64 / spec.parallel.tensor as f64
}

/// Bytes of a weight where it stays.
pub(super) fn weight_bytes(spec: &MemorySpec) -> f64 {
    match spec.master {
        Master::Weights => Precision::Fp32.bytes(),
        Master::Copy | Master::None => spec.precision.bytes(),
    }
}

/// Bytes of a gradient where it stays.
pub(super) fn gradient_bytes(spec: &MemorySpec) -> f64 {
    spec.gradients.map_or_else(|| weight_bytes(spec), Precision::bytes)
}

/// Bytes of the 32-bit copy of a trained weight; 0 if there is none.
///
/// With it: 2 + 2 + 4 + 8 = 16 bytes a parameter under AdamW, and 18 with 32-bit gradients, as DeepSpeed and Megatron
/// count.
fn master_bytes(spec: &MemorySpec) -> f64 {
    if spec.master == Master::Copy && spec.precision != Precision::Fp32 {
        Precision::Fp32.bytes()
    } else {
        0.0
    }
}

/// Bytes of the optimizer's states for one trained parameter.
fn optimizer_bytes(spec: &MemorySpec, share: &Share) -> f64 {
    let number = if spec.master == Master::None { spec.precision.bytes() } else { Precision::Fp32.bytes() };
    match spec.optimizer {
        Optimizer::Adamw => 2.0 * number,
        Optimizer::Adamw8bit => 2.0 * (1.0 + SCALE_BYTES / OPTIMIZER_BLOCK),
        Optimizer::Sgd => 0.0,
        Optimizer::Momentum | Optimizer::Lion => number,
        // A row's and a column's mean instead of a matrix.
        Optimizer::Adafactor => 2.0 * Precision::Fp32.bytes() / spec.model.hidden.max(1) as f64,
        Optimizer::Muon if spec.adapters.is_some() => number,
        Optimizer::Muon => number * (1.0 + share.root() / share.base().max(1.0)),
    }
}

/// Bytes of one weight of a layer of a frozen base.
fn base_bytes(spec: &MemorySpec, base: Base) -> f64 {
    match base {
        Base::Plain => weight_bytes(spec),
        Base::Int8 => 1.0 + SCALE_BYTES / spec.model.hidden.max(1) as f64,
        Base::Nf4 => 0.5 + SCALE_BYTES / NF4_BLOCK,
        Base::Nf4Double => 0.5 + (1.0 + SCALE_BYTES / NF4_SCALE_BLOCK) / NF4_BLOCK,
    }
}

fn layer_weight_bytes(spec: &MemorySpec) -> f64 {
    spec.adapters.map_or_else(|| weight_bytes(spec), |adapters| base_bytes(spec, adapters.base))
}

/// What stays from step to step on one rank, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct States {
    pub parameters: f64,
    /// All gradients, once they exist.
    pub gradients: f64,
    pub optimizer: f64,
    pub master_weights: f64,
    /// What is in the host's memory instead.
    pub host: f64,
}

impl States {
    /// ZeRO (arXiv 1910.02054): stage 1 divides optimizer states and master weights by the ranks, stage 2 gradients
    /// too, stage 3 parameters too.
    pub fn of(spec: &MemorySpec, share: &Share) -> Self {
        let shards = spec.parallel.shards() as f64;
        let divided = |from_stage: u8, bytes: f64| {
            if spec.parallel.zero >= from_stage { bytes / shards } else { bytes }
        };
        let trained = share.trained(spec);
        let adapters = share.adapters * weight_bytes(spec);
        let frozen_or_trained =
            share.layers * share.layer * layer_weight_bytes(spec) + share.root() * weight_bytes(spec);
        let mut states = Self {
            parameters: divided(3, frozen_or_trained + adapters),
            gradients: divided(2, trained * gradient_bytes(spec)),
            optimizer: divided(1, trained * optimizer_bytes(spec, share)),
            master_weights: divided(1, trained * master_bytes(spec)),
            host: 0.0,
        };
        if spec.step == Step::InBackward {
            states.gradients = divided(2, largest_unit(share, spec) * gradient_bytes(spec));
        }
        states.offload(spec);
        states
    }

    fn offload(&mut self, spec: &MemorySpec) {
        if spec.offload != Offload::None {
            self.host += std::mem::take(&mut self.optimizer) + std::mem::take(&mut self.master_weights);
        }
        if spec.offload == Offload::Parameters {
            self.host += std::mem::take(&mut self.parameters);
        }
    }
}

/// The largest piece whose gradient exists alone.
fn largest_unit(share: &Share, spec: &MemorySpec) -> f64 {
    if spec.adapters.is_some() {
        share.adapters / share.layers.max(1.0)
    } else {
        share.embedding.max(share.head).max(share.layer)
    }
}

/// Copies of weights and gradients that exist only for a while, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Copies {
    /// Of weights, in the forward and the backward pass.
    pub weights: f64,
    /// Of the gradients of the head, when the backward pass begins.
    pub head_gradients: f64,
    /// Of the gradients of a layer, later in the backward pass.
    pub layer_gradients: f64,
    /// Of gradients, from the backward pass to the end of the step.
    pub buckets: f64,
    /// In the optimizer's step.
    pub step: f64,
}

impl Copies {
    pub fn of(spec: &MemorySpec, share: &Share) -> Self {
        let mut copies = Self { step: step_temporaries(spec, share), ..Self::default() };
        let sharded = spec.parallel.zero >= 3 && spec.parallel.shards() > 1;
        let offloaded = spec.offload == Offload::Parameters;
        if sharded || offloaded {
            copies.gather(spec, share);
        } else {
            copies.weights = cast_weights(spec, share);
        }
        if spec.parallel.shards() > 1 {
            copies.bucket(spec, share);
        }
        copies
    }

    /// FSDP: what is outside the layers is gathered for the whole step, layers one after the other; a gradient exists
    /// whole, in the type of the step and in that of the reduction, before it is scattered. In a pipeline nothing is
    /// freed between micro-batches, and gradients are added up whole (torchtitan's defaults).
    fn gather(&mut self, spec: &MemorySpec, share: &Share) {
        let step_bytes = spec.precision.bytes();
        let quantised = spec.adapters.is_some_and(|adapters| adapters.base != Base::Plain);
        let layer_bytes = if quantised { layer_weight_bytes(spec) } else { step_bytes };
        let gradient = step_bytes + gradient_bytes(spec);
        let trained = spec.adapters.is_none();
        if spec.parallel.pipeline > 1 {
            self.weights = share.layers * share.layer * layer_bytes + share.root() * step_bytes;
            self.buckets = share.trained(spec) * gradient_bytes(spec);
        } else {
            self.weights =
                share.root() * step_bytes + GATHERED_LAYERS.min(share.layers) * share.layer * layer_bytes;
            self.layer_gradients = if trained { share.layer * gradient } else { 0.0 };
            self.head_gradients = if trained { share.head.max(share.layer) * gradient } else { 0.0 };
        }
    }

    fn bucket(&mut self, spec: &MemorySpec, share: &Share) {
        let trained = share.trained(spec);
        match spec.parallel.zero {
            // DDP's buckets are a second copy of the gradients unless `gradient_as_bucket_view` is set.
            0 => self.buckets = trained * gradient_bytes(spec),
            1 | 2 => self.buckets = trained.min(BUCKET_ELEMENTS) * 2.0 * spec.precision.bytes(),
            _ => {}
        }
    }
}

/// Autocast keeps the 16-bit copies of 32-bit weights that products were computed with.
fn cast_weights(spec: &MemorySpec, share: &Share) -> f64 {
    let quantised = spec.adapters.is_some_and(|adapters| adapters.base != Base::Plain);
    let cast = spec.master == Master::Weights && spec.precision != Precision::Fp32 && !quantised;
    if cast { (share.layers * share.layer + share.head) * spec.precision.bytes() } else { 0.0 }
}

fn step_temporaries(spec: &MemorySpec, share: &Share) -> f64 {
    let shards = if spec.parallel.zero >= 1 { spec.parallel.shards() as f64 } else { 1.0 };
    match spec.step {
        Step::Foreach => share.trained(spec) * weight_bytes(spec) / shards,
        Step::Fused | Step::InBackward => 0.0,
    }
}
