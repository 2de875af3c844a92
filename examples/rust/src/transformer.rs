use std::fmt::Write;

use candle_core::{DType, Device, Tensor};
use candle_nn::loss::cross_entropy;
use candle_nn::ops::{layer_norm_slow, log_softmax, softmax};

use crate::wine::score;
use crate::{Corpus, Job, JobError, Options, Parameters, SYMBOL_COUNT, Throughput, Validation};

/// Characters the model sees at once.
const CONTEXT: usize = 64;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const NORM_EPSILON: f32 = 1e-5;
/// One window in ten, from the end of the text, is for validation.
const VALIDATION_SHARE: usize = 10;
/// Validation windows looked at, spread evenly: enough for a steady figure, few enough for a checkpoint's pause.
const VALIDATION_WINDOWS_MAX: usize = 64;
/// Held-out windows that an evaluation looks at, spread evenly.
const EVALUATION_WINDOWS_MAX: usize = 1024;
/// Windows of an evaluation that go through the model at once.
const EVALUATION_BATCH: usize = 32;
/// Added to the scores of characters that are yet to come. Finite, so that no gradient becomes a NaN.
const MASKED: f32 = -1e9;

/// A decoder-only transformer (pre-norm, learned positions) that predicts the next character.
#[derive(Debug)]
pub struct CharTransformer {
    parameters: Parameters,
    symbols: Tensor,
    positions: Tensor,
    blocks: Vec<Block>,
    final_norm: Norm,
    head: Tensor,
    mask: Tensor,
    corpus: Corpus,
    training_windows: usize,
}

#[derive(Debug)]
struct Norm {
    scale: Tensor,
    shift: Tensor,
}

#[derive(Debug)]
struct Block {
    attention_norm: Norm,
    query_key_value: Tensor,
    attention_out: Tensor,
    feed_norm: Norm,
    feed_in: (Tensor, Tensor),
    feed_out: (Tensor, Tensor),
}

impl CharTransformer {
    /// Reads the text that the options name and makes the weights.
    ///
    /// # Errors
    /// [`JobError::Read`] or [`JobError::TextTooShort`] when there is no usable text.
    pub fn new(options: &Options) -> Result<Self, JobError> {
        let corpus = Corpus::read(&options.text)?;
        let windows = corpus.symbols.len().saturating_sub(1) / CONTEXT;
        let training_windows = windows - windows.div_ceil(VALIDATION_SHARE);
        if training_windows < options.batch {
            return Err(JobError::TextTooShort {
                found: corpus.symbols.len(),
                needed: (options.batch + 1) * CONTEXT * VALIDATION_SHARE / (VALIDATION_SHARE - 1) + CONTEXT,
                places: Corpus::describe(&options.text),
            });
        }
        let mut parameters = Parameters::new(options.seed);
        let deviation = 0.02;
        let symbols = parameters.normal("symbols", &[SYMBOL_COUNT, WIDTH], deviation)?;
        let positions = parameters.normal("positions", &[CONTEXT, WIDTH], deviation)?;
        let blocks =
            (0..LAYERS).map(|layer| Block::new(&mut parameters, layer)).collect::<Result<_, JobError>>()?;
        let final_norm = Norm::new(&mut parameters, "final_norm")?;
        let head = parameters.normal("head", &[WIDTH, SYMBOL_COUNT], deviation)?;
        let mask = causal_mask()?;
        Ok(Self { parameters, symbols, positions, blocks, final_norm, head, mask, corpus, training_windows })
    }

    /// Scores of the next character for every place of every window: (windows × context) rows.
    fn logits(&self, inputs: &Tensor) -> Result<Tensor, JobError> {
        let windows = inputs.elem_count() / CONTEXT;
        let shape = (windows, CONTEXT, WIDTH);
        let mut hidden =
            self.symbols.index_select(inputs, 0)?.reshape(shape)?.broadcast_add(&self.positions)?;
        for block in &self.blocks {
            hidden = block.forward(&hidden, &self.mask)?;
        }
        let normed = self.final_norm.forward(&hidden)?;
        Ok(normed.reshape((windows * CONTEXT, WIDTH))?.matmul(&self.head)?)
    }

    /// At most so many of the held-out windows, spread evenly.
    fn held_out(&self, windows_max: usize) -> impl Iterator<Item = usize> + use<> {
        let windows = (self.corpus.symbols.len() - 1) / CONTEXT;
        let stride = (windows - self.training_windows).div_ceil(windows_max).max(1);
        (self.training_windows..windows).step_by(stride)
    }

    /// Characters and the characters after them, of the given windows.
    fn pairs(&self, windows: impl Iterator<Item = usize>) -> Result<(Tensor, Tensor), JobError> {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for window in windows {
            let text = &self.corpus.symbols[window * CONTEXT..][..=CONTEXT];
            inputs.extend(text[..CONTEXT].iter().map(|&symbol| u32::from(symbol)));
            targets.extend(text[1..].iter().map(|&symbol| u32::from(symbol)));
        }
        let count = inputs.len();
        Ok((Tensor::from_vec(inputs, count, &Device::Cpu)?, Tensor::from_vec(targets, count, &Device::Cpu)?))
    }
}

impl Block {
    fn new(parameters: &mut Parameters, layer: usize) -> Result<Self, JobError> {
        let name = |part: &str| format!("block{layer}.{part}");
        let spread = |from: usize| (1.0 / from as f64).sqrt();
        // What is added to the stream starts small, so that depth does not make it grow.
        let residual = |from: usize| spread(from) / (2.0 * LAYERS as f64).sqrt();
        Ok(Self {
            attention_norm: Norm::new(parameters, &name("attention_norm"))?,
            query_key_value: parameters.normal(
                &name("query_key_value"),
                &[WIDTH, 3 * WIDTH],
                spread(WIDTH),
            )?,
            attention_out: parameters.normal(&name("attention_out"), &[WIDTH, WIDTH], residual(WIDTH))?,
            feed_norm: Norm::new(parameters, &name("feed_norm"))?,
            feed_in: (
                parameters.normal(&name("feed_in.weight"), &[WIDTH, 4 * WIDTH], spread(WIDTH))?,
                parameters.filled(&name("feed_in.bias"), &[4 * WIDTH], 0.0)?,
            ),
            feed_out: (
                parameters.normal(&name("feed_out.weight"), &[4 * WIDTH, WIDTH], residual(4 * WIDTH))?,
                parameters.filled(&name("feed_out.bias"), &[WIDTH], 0.0)?,
            ),
        })
    }

    fn forward(&self, hidden: &Tensor, mask: &Tensor) -> Result<Tensor, JobError> {
        let hidden = (hidden + self.attend(&self.attention_norm.forward(hidden)?, mask)?)?;
        let fed = self.feed(&self.feed_norm.forward(&hidden)?)?;
        Ok((hidden + fed)?)
    }

    fn attend(&self, normed: &Tensor, mask: &Tensor) -> Result<Tensor, JobError> {
        let (windows, context, width) = normed.dims3()?;
        let head_width = width / HEADS;
        let mixed = normed.reshape((windows * context, width))?.matmul(&self.query_key_value)?;
        let mixed = mixed.reshape((windows, context, 3, HEADS, head_width))?;
        // windows × heads × context × head width
        let part = |index: usize| mixed.narrow(2, index, 1)?.squeeze(2)?.transpose(1, 2)?.contiguous();
        let (query, key, value) = (part(0)?, part(1)?, part(2)?);
        let scores = (query.matmul(&key.transpose(2, 3)?.contiguous()?)? / (head_width as f64).sqrt())?;
        let shares = softmax(&scores.broadcast_add(mask)?, 3)?;
        let heard = shares.matmul(&value)?.transpose(1, 2)?.contiguous()?;
        let out = heard.reshape((windows * context, width))?.matmul(&self.attention_out)?;
        Ok(out.reshape((windows, context, width))?)
    }

    fn feed(&self, normed: &Tensor) -> Result<Tensor, JobError> {
        let (windows, context, width) = normed.dims3()?;
        let flat = normed.reshape((windows * context, width))?;
        let inner = flat.matmul(&self.feed_in.0)?.broadcast_add(&self.feed_in.1)?.relu()?;
        let outer = inner.matmul(&self.feed_out.0)?.broadcast_add(&self.feed_out.1)?;
        Ok(outer.reshape((windows, context, width))?)
    }
}

impl Norm {
    fn new(parameters: &mut Parameters, name: &str) -> Result<Self, JobError> {
        Ok(Self {
            scale: parameters.filled(&format!("{name}.scale"), &[WIDTH], 1.0)?,
            shift: parameters.filled(&format!("{name}.shift"), &[WIDTH], 0.0)?,
        })
    }

    /// candle's fused layer norm has no gradient; this one is made of operations that have.
    fn forward(&self, hidden: &Tensor) -> Result<Tensor, JobError> {
        Ok(layer_norm_slow(hidden, &self.scale, &self.shift, NORM_EPSILON)?)
    }
}

/// 0 where a place may look, [`MASKED`] where it would look ahead.
fn causal_mask() -> Result<Tensor, JobError> {
    let cells: Vec<f32> = (0..CONTEXT * CONTEXT)
        .map(|cell| if cell % CONTEXT > cell / CONTEXT { MASKED } else { 0.0 })
        .collect();
    Ok(Tensor::from_vec(cells, (CONTEXT, CONTEXT), &Device::Cpu)?.to_dtype(DType::F32)?)
}

impl Job for CharTransformer {
    fn name(&self) -> &'static str {
        "char_transformer"
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn item_count(&self) -> usize {
        self.training_windows
    }

    fn data_blake3(&self) -> &str {
        &self.corpus.blake3
    }

    fn throughput(&self) -> Throughput {
        Throughput { metric: "tokens_per_second", per_item: CONTEXT }
    }

    fn loss(&self, items: &[u32]) -> Result<Tensor, JobError> {
        let (inputs, targets) = self.pairs(items.iter().map(|&item| item as usize))?;
        Ok(cross_entropy(&self.logits(&inputs)?, &targets)?)
    }

    fn labels(&self, items: &[u32]) -> Result<(u64, Vec<u32>), JobError> {
        let (_, targets) = self.pairs(items.iter().map(|&item| item as usize))?;
        Ok((SYMBOL_COUNT as u64, targets.to_vec1()?))
    }

    fn validate(&self) -> Result<Validation, JobError> {
        let (inputs, targets) = self.pairs(self.held_out(VALIDATION_WINDOWS_MAX))?;
        score(&self.logits(&inputs)?, &targets)
    }

    /// For each window the loss of all its characters, in nats, and the bytes that they take.
    fn predictions(&self) -> Result<String, JobError> {
        let mut text = String::from("id,loss,tokens,bytes\n");
        let windows: Vec<usize> = self.held_out(EVALUATION_WINDOWS_MAX).collect();
        for windows in windows.chunks(EVALUATION_BATCH) {
            let (inputs, targets) = self.pairs(windows.iter().copied())?;
            let chances = log_softmax(&self.logits(&inputs)?, 1)?;
            let said = chances.gather(&targets.unsqueeze(1)?, 1)?.reshape((windows.len(), CONTEXT))?;
            let losses = said.neg()?.sum(1)?.to_vec1::<f32>()?;
            for (window, loss) in windows.iter().zip(losses) {
                let widths = &self.corpus.widths[window * CONTEXT + 1..][..CONTEXT];
                let bytes: u32 = widths.iter().map(|width| u32::from(*width)).sum();
                let _ = writeln!(text, "{window},{loss},{CONTEXT},{bytes}");
            }
        }
        Ok(text)
    }
}
