use std::collections::HashMap;

use candle_core::{DType, Device, Tensor, Var};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::{JobError, Normal};

/// The weights of a model: named, in the order in which they were made, f32 on the CPU.
#[derive(Debug)]
pub struct Parameters {
    entries: Vec<(String, Var)>,
    normal: Normal,
}

impl Parameters {
    /// No weights yet; those to come depend on `seed` and on the order in which they are requested.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { entries: Vec::new(), normal: Normal::new(seed) }
    }

    /// Makes a weight drawn from the normal distribution.
    ///
    /// # Errors
    /// When candle cannot make the tensor.
    pub fn normal(&mut self, name: &str, shape: &[usize], deviation: f64) -> Result<Tensor, JobError> {
        let values = self.normal.draws(shape.iter().product(), deviation);
        self.add(name, Tensor::from_vec(values, shape, &Device::Cpu)?)
    }

    /// Makes a weight filled with one value.
    ///
    /// # Errors
    /// When candle cannot make the tensor.
    pub fn filled(&mut self, name: &str, shape: &[usize], value: f32) -> Result<Tensor, JobError> {
        self.add(name, Tensor::full(value, shape, &Device::Cpu)?)
    }

    fn add(&mut self, name: &str, start: Tensor) -> Result<Tensor, JobError> {
        let variable = Var::from_tensor(&start)?;
        let tensor = variable.as_tensor().clone();
        self.entries.push((name.to_owned(), variable));
        Ok(tensor)
    }

    /// Name and variable of every weight.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.entries.iter().map(|(name, variable)| (name.as_str(), variable))
    }

    /// How many numbers the model has.
    #[must_use]
    pub fn scalar_count(&self) -> usize {
        self.entries.iter().map(|(_, variable)| variable.elem_count()).sum()
    }

    /// BLAKE3 over name, shape and little-endian values of every weight, in hexadecimal.
    ///
    /// # Errors
    /// When candle cannot read a tensor back.
    pub fn digest(&self) -> Result<String, JobError> {
        let mut hasher = blake3::Hasher::new();
        for (name, variable) in self.iter() {
            hasher.update(name.as_bytes());
            for size in variable.dims() {
                hasher.update(&(*size as u64).to_le_bytes());
            }
            hasher.update(&little_endian(variable.as_tensor())?);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// The weights as safetensors.
    ///
    /// # Errors
    /// When candle or safetensors refuse a tensor.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, JobError> {
        write_tensors(self.iter().map(|(name, variable)| (name.to_owned(), variable.as_tensor())))
    }

    /// Sets every weight from safetensors.
    ///
    /// # Errors
    /// [`JobError::CheckpointContent`] when a weight is missing, surplus or of another shape.
    pub fn load_safetensors(&self, file: &'static str, bytes: &[u8]) -> Result<(), JobError> {
        let mut tensors = read_tensors(file, bytes)?;
        for (name, variable) in self.iter() {
            variable.set(&take(&mut tensors, file, name, variable.as_tensor())?)?;
        }
        refuse_surplus(file, &tensors)
    }
}

/// Named tensors as the bytes of a safetensors file; the same tensors give the same bytes.
pub(crate) fn write_tensors<'a>(
    tensors: impl Iterator<Item = (String, &'a Tensor)>,
) -> Result<Vec<u8>, JobError> {
    let raw = tensors
        .map(|(name, tensor)| Ok((name, tensor.dims().to_vec(), little_endian(tensor)?)))
        .collect::<Result<Vec<_>, JobError>>()?;
    let views = raw
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(candle_core::Error::from)?;
    Ok(safetensors::serialize(views, None).map_err(candle_core::Error::from)?)
}

/// The f32 tensors of a safetensors file by name.
pub(crate) fn read_tensors(file: &'static str, bytes: &[u8]) -> Result<HashMap<String, Tensor>, JobError> {
    let refuse = |problem: String| JobError::CheckpointContent { file, problem };
    let parsed = SafeTensors::deserialize(bytes).map_err(|error| refuse(error.to_string()))?;
    let mut tensors = HashMap::new();
    for (name, view) in parsed.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(refuse(format!("`{name}` holds {:?}, not F32", view.dtype())));
        }
        let tensor = Tensor::from_raw_buffer(view.data(), DType::F32, view.shape(), &Device::Cpu)?;
        tensors.insert(name.to_owned(), tensor);
    }
    Ok(tensors)
}

/// Takes the tensor `name` out of a file's tensors; it must have the shape of `like`.
pub(crate) fn take(
    tensors: &mut HashMap<String, Tensor>,
    file: &'static str,
    name: &str,
    like: &Tensor,
) -> Result<Tensor, JobError> {
    let refuse = |problem: String| JobError::CheckpointContent { file, problem };
    let tensor = tensors.remove(name).ok_or_else(|| refuse(format!("`{name}` is missing")))?;
    if tensor.dims() != like.dims() {
        return Err(refuse(format!("`{name}` has shape {:?}, expected {:?}", tensor.dims(), like.dims())));
    }
    Ok(tensor)
}

/// Fails when a file holds tensors that were not used.
pub(crate) fn refuse_surplus(file: &'static str, tensors: &HashMap<String, Tensor>) -> Result<(), JobError> {
    match tensors.keys().min() {
        None => Ok(()),
        Some(name) => Err(JobError::CheckpointContent {
            file,
            problem: format!("{} tensors do not belong to this model, `{name}` first", tensors.len()),
        }),
    }
}

fn little_endian(tensor: &Tensor) -> Result<Vec<u8>, JobError> {
    let values = tensor.flatten_all()?.to_vec1::<f32>()?;
    Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(seed: u64, width: usize) -> Parameters {
        let mut parameters = Parameters::new(seed);
        parameters.normal("layer.weight", &[3, width], 1.0).unwrap();
        parameters.filled("layer.bias", &[width], 0.0).unwrap();
        parameters
    }

    /// Proves that weights written and read back have the same digest, that other weights have another, and that a
    /// file of another model is refused by name.
    #[test]
    fn weights_round_trip_bit_for_bit() {
        let (first, second) = (model(1, 4), model(2, 4));
        assert_ne!(first.digest().unwrap(), second.digest().unwrap());
        let bytes = first.to_safetensors().unwrap();
        assert_eq!(bytes, first.to_safetensors().unwrap());
        second.load_safetensors("model.safetensors", &bytes).unwrap();
        assert_eq!(first.digest().unwrap(), second.digest().unwrap());
        let error = model(1, 5).load_safetensors("model.safetensors", &bytes).unwrap_err().to_string();
        assert!(error.contains("`layer.weight` has shape [3, 4], expected [3, 5]"), "{error}");
        let error = first.load_safetensors("model.safetensors", &bytes[..40]).unwrap_err().to_string();
        assert!(error.starts_with("`model.safetensors` in the checkpoint cannot be used"), "{error}");
    }
}
