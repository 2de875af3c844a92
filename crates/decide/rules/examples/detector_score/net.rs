//! A small network with gradients by hand: dense layers, one convolution at the front, ReLU, tanh, dropout.

use trackway_core::{Rng, SplitMix64};

/// One layer; parameters are in the network's flat list, from `at` on: weights, then biases.
#[derive(Debug, Clone)]
pub enum Layer {
    Dense {
        at: usize,
        inputs: usize,
        outputs: usize,
    },
    /// Over a signal, only at the front: windows of `kernel` values give `channels` each.
    Convolution {
        at: usize,
        length: usize,
        kernel: usize,
        channels: usize,
    },
    Relu,
    Tanh,
    Dropout(f32),
}

/// Parameters and gradients are flat, so that what is done to all of them is one loop.
#[derive(Debug, Clone)]
pub struct Net {
    pub layers: Vec<Layer>,
    pub parameters: Vec<f32>,
    pub gradients: Vec<f32>,
    /// The input of each layer, and the output of the last one.
    values: Vec<Vec<f32>>,
    masks: Vec<Vec<f32>>,
}

pub fn normal(rng: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.next_unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.next_unit()).cos()
}

impl Net {
    pub fn new() -> Self {
        Self { layers: vec![], parameters: vec![], gradients: vec![], values: vec![], masks: vec![] }
    }

    fn with_parameters(
        &mut self,
        weights: usize,
        biases: usize,
        fan_in: usize,
        rng: &mut SplitMix64,
    ) -> usize {
        let at = self.parameters.len();
        let scale = (2.0 / fan_in as f64).sqrt();
        self.parameters.extend((0..weights).map(|_| (scale * normal(rng)) as f32));
        self.parameters.resize(at + weights + biases, 0.0);
        self.gradients.resize(self.parameters.len(), 0.0);
        at
    }

    pub fn dense(&mut self, inputs: usize, outputs: usize, rng: &mut SplitMix64) {
        let at = self.with_parameters(inputs * outputs, outputs, inputs, rng);
        self.layers.push(Layer::Dense { at, inputs, outputs });
    }

    pub fn convolution(
        &mut self,
        length: usize,
        kernel: usize,
        channels: usize,
        rng: &mut SplitMix64,
    ) -> usize {
        let at = self.with_parameters(kernel * channels, channels, kernel, rng);
        self.layers.push(Layer::Convolution { at, length, kernel, channels });
        (length - kernel + 1) * channels
    }

    /// The range of the parameters of each layer that has some.
    pub fn parts(&self) -> Vec<std::ops::Range<usize>> {
        let range = |layer: &Layer| match layer {
            Layer::Dense { at, inputs, outputs } => Some(*at..at + (inputs + 1) * outputs),
            Layer::Convolution { at, kernel, channels, .. } => Some(*at..at + (kernel + 1) * channels),
            _ => None,
        };
        self.layers.iter().filter_map(range).collect()
    }

    /// The outputs for `rows` inputs; `training` switches dropout on.
    pub fn forward(&mut self, input: Vec<f32>, rows: usize, training: Option<&mut SplitMix64>) -> &[f32] {
        self.values.clear();
        self.masks = vec![Vec::new(); self.layers.len()];
        self.values.push(input);
        let mut rng = training;
        for place in 0..self.layers.len() {
            let output = self.layer_forward(place, rows, &mut rng);
            self.values.push(output);
        }
        self.values.last().expect("the input is there")
    }

    fn layer_forward(&mut self, place: usize, rows: usize, rng: &mut Option<&mut SplitMix64>) -> Vec<f32> {
        let input = self.values.last().expect("the input is there");
        match self.layers[place] {
            Layer::Dense { at, inputs, outputs } => {
                affine(input, &self.parameters[at..at + (inputs + 1) * outputs], rows, inputs, outputs)
            }
            Layer::Convolution { at, length, kernel, channels } => {
                let windows = unfold(input, rows, length, kernel);
                let parameters = &self.parameters[at..at + (kernel + 1) * channels];
                affine(&windows, parameters, rows * (length - kernel + 1), kernel, channels)
            }
            // `max` ignores NaN; a NaN must come through.
            Layer::Relu => input.iter().map(|value| if *value < 0.0 { 0.0 } else { *value }).collect(),
            Layer::Tanh => input.iter().map(|value| value.tanh()).collect(),
            Layer::Dropout(share) => {
                let Some(rng) = rng else { return input.clone() };
                let keep = 1.0 / (1.0 - share).max(1e-6);
                let mask: Vec<f32> =
                    input.iter().map(|_| if (rng.next_unit() as f32) < share { 0.0 } else { keep }).collect();
                let output = input.iter().zip(&mask).map(|(value, mask)| value * mask).collect();
                self.masks[place] = mask;
                output
            }
        }
    }

    /// Adds the gradients of the last forward pass; `error` is the gradient of its outputs.
    pub fn backward(&mut self, error: Vec<f32>, rows: usize) {
        let mut error = error;
        for place in (0..self.layers.len()).rev() {
            let (input, output) = (&self.values[place], &self.values[place + 1]);
            match self.layers[place] {
                Layer::Dense { at, inputs, outputs } => {
                    let end = at + (inputs + 1) * outputs;
                    add_gradients(input, &error, &mut self.gradients[at..end], rows, inputs, outputs);
                    if place > 0 {
                        error = back_through(&error, &self.parameters[at..end], rows, inputs, outputs);
                    }
                }
                Layer::Convolution { at, length, kernel, channels } => {
                    let windows = unfold(input, rows, length, kernel);
                    let gradients = &mut self.gradients[at..at + (kernel + 1) * channels];
                    add_gradients(
                        &windows,
                        &error,
                        gradients,
                        rows * (length - kernel + 1),
                        kernel,
                        channels,
                    );
                }
                Layer::Relu => {
                    error.iter_mut().zip(output).for_each(|(error, output)| {
                        if *output <= 0.0 {
                            *error = 0.0;
                        }
                    });
                }
                Layer::Tanh => {
                    error.iter_mut().zip(output).for_each(|(error, output)| *error *= 1.0 - output * output);
                }
                Layer::Dropout(_) => {
                    error.iter_mut().zip(&self.masks[place]).for_each(|(error, mask)| *error *= mask);
                }
            }
        }
    }

    /// Bytes of activations that the last pass holds.
    pub fn activation_bytes(&self) -> usize {
        self.values.iter().chain(&self.masks).map(|values| 4 * values.len()).sum()
    }
}

fn unfold(input: &[f32], rows: usize, length: usize, kernel: usize) -> Vec<f32> {
    let signals = (0..rows).map(|row| &input[row * length..(row + 1) * length]);
    signals.flat_map(|signal| signal.windows(kernel)).flatten().copied().collect()
}

fn affine(input: &[f32], parameters: &[f32], rows: usize, inputs: usize, outputs: usize) -> Vec<f32> {
    let (weights, biases) = parameters.split_at(inputs * outputs);
    let mut result = Vec::with_capacity(rows * outputs);
    for row in 0..rows {
        let begin = result.len();
        result.extend_from_slice(biases);
        for (value, weights) in
            input[row * inputs..(row + 1) * inputs].iter().zip(weights.chunks_exact(outputs))
        {
            if *value != 0.0 {
                result[begin..].iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
            }
        }
    }
    result
}

fn add_gradients(
    input: &[f32],
    error: &[f32],
    gradients: &mut [f32],
    rows: usize,
    inputs: usize,
    outputs: usize,
) {
    let (weights, biases) = gradients.split_at_mut(inputs * outputs);
    for row in 0..rows {
        let error = &error[row * outputs..(row + 1) * outputs];
        for (value, gradients) in
            input[row * inputs..(row + 1) * inputs].iter().zip(weights.chunks_exact_mut(outputs))
        {
            if *value != 0.0 {
                gradients.iter_mut().zip(error).for_each(|(sum, error)| *sum += value * error);
            }
        }
        biases.iter_mut().zip(error).for_each(|(sum, error)| *sum += error);
    }
}

fn back_through(error: &[f32], parameters: &[f32], rows: usize, inputs: usize, outputs: usize) -> Vec<f32> {
    let mut result = Vec::with_capacity(rows * inputs);
    for row in 0..rows {
        let error = &error[row * outputs..(row + 1) * outputs];
        for weights in parameters[..inputs * outputs].chunks_exact(outputs) {
            result.push(weights.iter().zip(error).map(|(weight, error)| weight * error).sum());
        }
    }
    result
}
