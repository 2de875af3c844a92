use std::fmt::Write;

use candle_core::{D, Device, Tensor};
use candle_nn::loss::cross_entropy;
use candle_nn::ops::softmax;

use crate::{Job, JobError, Options, Parameters, Throughput, Validation, permutation};

const HIDDEN: usize = 64;
/// One row in five is for validation.
const VALIDATION_SHARE: usize = 5;
/// An epoch number that training never reaches: the split is a separate permutation.
const SPLIT_EPOCH: u64 = u64::MAX - 1;

/// A two-layer perceptron that predicts the quality of red wine (Cortez et al. 2009: 1,599 rows, 11 measurements,
/// qualities 3 to 8) from its chemistry.
#[derive(Debug)]
pub struct WineClassifier {
    parameters: Parameters,
    layers: [(Tensor, Tensor); 3],
    training: Split,
    validation: Split,
    validation_rows: Vec<u32>,
    table: Table,
    lowest_quality: usize,
    data_blake3: String,
}

#[derive(Debug)]
struct Split {
    features: Tensor,
    classes: Tensor,
}

/// The table as plain numbers, row after row.
#[derive(Debug)]
struct Table {
    names: Vec<String>,
    features: Vec<f64>,
    qualities: Vec<usize>,
    width: usize,
}

impl WineClassifier {
    /// Loads the table that `linfa-datasets` carries, splits it by the seed, and makes the weights.
    ///
    /// # Errors
    /// When candle cannot make a tensor.
    pub fn new(options: &Options) -> Result<Self, JobError> {
        let table = Table::load();
        let lowest = table.qualities.iter().copied().min().unwrap_or(0);
        let class_count = table.qualities.iter().copied().max().unwrap_or(0) - lowest + 1;
        let rows = permutation(options.seed, SPLIT_EPOCH, table.qualities.len());
        let (validation, training) = rows.split_at(rows.len() / VALIDATION_SHARE);
        let scale = table.moments(training);

        let mut parameters = Parameters::new(options.seed);
        let mut layer = |name: &str, from: usize, to: usize| -> Result<(Tensor, Tensor), JobError> {
            let deviation = (2.0 / from as f64).sqrt();
            let weight = parameters.normal(&format!("{name}.weight"), &[from, to], deviation)?;
            Ok((weight, parameters.filled(&format!("{name}.bias"), &[to], 0.0)?))
        };
        let layers = [
            layer("input", table.width, HIDDEN)?,
            layer("hidden", HIDDEN, HIDDEN)?,
            layer("output", HIDDEN, class_count)?,
        ];
        Ok(Self {
            parameters,
            layers,
            training: table.split(training, &scale, lowest)?,
            validation: table.split(validation, &scale, lowest)?,
            validation_rows: validation.to_vec(),
            lowest_quality: lowest,
            data_blake3: table.blake3(),
            table,
        })
    }

    fn logits(&self, features: &Tensor) -> Result<Tensor, JobError> {
        let mut activations = features.clone();
        for (index, (weight, bias)) in self.layers.iter().enumerate() {
            activations = activations.matmul(weight)?.broadcast_add(bias)?;
            if index + 1 < self.layers.len() {
                activations = activations.relu()?;
            }
        }
        Ok(activations)
    }
}

impl Table {
    fn load() -> Self {
        let dataset = linfa_datasets::winequality();
        let width = dataset.records().ncols();
        let features = dataset.records().iter().copied().collect();
        let names = dataset.feature_names().iter().map(|name| name.replace(' ', "_")).collect();
        Self { names, features, qualities: dataset.targets().iter().copied().collect(), width }
    }

    fn row(&self, row: u32) -> &[f64] {
        &self.features[row as usize * self.width..][..self.width]
    }

    /// Mean and deviation of every column over `rows`: of the training part only, or validation would leak.
    fn moments(&self, rows: &[u32]) -> Vec<(f64, f64)> {
        let count = rows.len() as f64;
        (0..self.width)
            .map(|column| {
                let values = || rows.iter().map(|&row| self.row(row)[column]);
                let mean = values().sum::<f64>() / count;
                let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
                (mean, variance.sqrt().max(f64::MIN_POSITIVE))
            })
            .collect()
    }

    fn split(&self, rows: &[u32], scale: &[(f64, f64)], lowest: usize) -> Result<Split, JobError> {
        let features: Vec<f32> = rows
            .iter()
            .flat_map(|&row| self.row(row).iter().zip(scale))
            .map(|(value, (mean, deviation))| ((value - mean) / deviation) as f32)
            .collect();
        let classes: Vec<u32> =
            rows.iter().map(|&row| (self.qualities[row as usize] - lowest) as u32).collect();
        Ok(Split {
            features: Tensor::from_vec(features, (rows.len(), self.width), &Device::Cpu)?,
            classes: Tensor::from_vec(classes, rows.len(), &Device::Cpu)?,
        })
    }

    fn blake3(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for value in &self.features {
            hasher.update(&value.to_le_bytes());
        }
        for quality in &self.qualities {
            hasher.update(&(*quality as u64).to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Job for WineClassifier {
    fn name(&self) -> &'static str {
        "wine_mlp"
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn item_count(&self) -> usize {
        self.training.classes.elem_count()
    }

    fn data_blake3(&self) -> &str {
        &self.data_blake3
    }

    fn throughput(&self) -> Throughput {
        Throughput { metric: "rows_per_second", per_item: 1 }
    }

    fn loss(&self, items: &[u32]) -> Result<Tensor, JobError> {
        let items = Tensor::new(items, &Device::Cpu)?;
        let logits = self.logits(&self.training.features.index_select(&items, 0)?)?;
        Ok(cross_entropy(&logits, &self.training.classes.index_select(&items, 0)?)?)
    }

    fn labels(&self, items: &[u32]) -> Result<(u64, Vec<u32>), JobError> {
        let labels = self.training.classes.index_select(&Tensor::new(items, &Device::Cpu)?, 0)?;
        Ok((self.layers[2].1.elem_count() as u64, labels.to_vec1()?))
    }

    fn validate(&self) -> Result<Validation, JobError> {
        let logits = self.logits(&self.validation.features)?;
        score(&logits, &self.validation.classes)
    }

    /// The label, the prediction, the probability of each quality, and the measurements, so that slices can be cut by them.
    fn predictions(&self) -> Result<String, JobError> {
        let logits = self.logits(&self.validation.features)?;
        let answers = logits.argmax(D::Minus1)?.to_vec1::<u32>()?;
        let chances = softmax(&logits, 1)?.to_vec2::<f32>()?;
        let quality = |class: usize| class + self.lowest_quality;
        let classes = 0..self.layers[2].1.elem_count();
        let scores: Vec<String> = classes.map(|class| format!("score_{}", quality(class))).collect();
        let mut text = format!("id,label,prediction,{},{}\n", scores.join(","), self.table.names.join(","));
        for ((&row, answer), chances) in self.validation_rows.iter().zip(answers).zip(chances) {
            let chances: Vec<String> = chances.iter().map(ToString::to_string).collect();
            let measured: Vec<String> = self.table.row(row).iter().map(ToString::to_string).collect();
            let (truth, said) = (self.table.qualities[row as usize], quality(answer as usize));
            let _ = writeln!(text, "{row},{truth},{said},{},{}", chances.join(","), measured.join(","));
        }
        Ok(text)
    }
}

/// Loss and accuracy of `logits` (rows × classes) against the true classes.
pub(crate) fn score(logits: &Tensor, classes: &Tensor) -> Result<Validation, JobError> {
    let loss = f64::from(cross_entropy(logits, classes)?.to_scalar::<f32>()?);
    let (answers, truths) = (logits.argmax(D::Minus1)?.to_vec1::<u32>()?, classes.to_vec1::<u32>()?);
    let right = answers.iter().zip(&truths).filter(|(answer, truth)| answer == truth).count();
    Ok(Validation { loss, accuracy: right as f64 / truths.len() as f64 })
}
