use trackway_api::models::MemoryAnswer;
use trackway_core::with_fields_of;
use trackway_flows::training::memory::{MeasuredPeak, ModelRead, ModelSource, correction, read_model};
use trackway_rules::preflight::memory::{
    Adapters, Architecture, DEVICES, Device, Fit, Generation, MemoryReport, MemorySpec, Parallel,
    PipelineRank, report,
};

use crate::args::MemoryArgs;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, StyledLine, Tone};
use crate::units::bytes;

/// Cells of the longest bar.
const BAR_WIDTH: u64 = 40;

pub fn memory(args: &MemoryArgs, printer: Printer) -> Exit {
    if args.devices {
        devices(printer);
        return Ok(0);
    }
    let device = args.gpu.as_deref().map(device_named).transpose()?;
    let read = model_of(args)?;
    let spec = spec_of(args, read.model)?;
    let measured = args.measured.map(|bytes| MeasuredPeak { bytes: bytes.0, counter: args.counter });
    let calibration = measured.map(|measured| correction(&spec, measured)).transpose()?;
    let report = report(&spec, device, calibration);
    if printer.is_json() {
        printer.document(&MemoryAnswer { report, notes: read.notes });
        return Ok(0);
    }
    for note in &read.notes {
        printer.note(note);
    }
    summary(printer, &report);
    parts(printer, &report);
    phases(printer, &report);
    verdict(printer, &report);
    Ok(0)
}

fn device_named(name: &str) -> Result<Device, Failure> {
    Device::named(name).copied().ok_or_else(|| {
        Failure::usage(
            format!("there is no device `{name}`"),
            "`trackway memory --devices` lists those known by name",
        )
    })
}

fn model_of(args: &MemoryArgs) -> Result<ModelRead, Failure> {
    if let (Some(layers), Some(hidden), Some(heads)) = (args.layers, args.hidden, args.heads) {
        if hidden % heads != 0 {
            let hint = "the hidden size is that of all heads together";
            return Err(Failure::usage(
                format!("a hidden size of {hidden} is not divisible by {heads} heads"),
                hint,
            ));
        }
        let shape = Architecture {
            key_value_heads: args.kv_heads.unwrap_or(heads),
            gated: !args.plain_mlp,
            tied_embeddings: args.tied_embeddings,
            dropout: args.dropout,
            known_parameters: args.params,
            ..Architecture::decoder(layers, hidden, heads, args.ffn.unwrap_or(4 * hidden), args.vocab)
        };
        if !shape.plausible() {
            return Err(Failure::usage("no model has more than 10^15 parameters", "check the counts"));
        }
        return Ok(ModelRead { model: shape, notes: Vec::new() });
    }
    let source = ModelSource {
        config: args.config.clone(),
        safetensors: args.safetensors.clone(),
        parameters: args.params,
    };
    let mut read = read_model(&source)?;
    read.model.dropout |= args.dropout;
    Ok(read)
}

fn spec_of(args: &MemoryArgs, model: Architecture) -> Result<MemorySpec, Failure> {
    if args.pipeline_parallel > 1 && model.encoder_layers > 0 {
        let hint = "leave --pipeline-parallel out";
        return Err(Failure::usage("a pipeline of an encoder–decoder model is not estimated", hint));
    }
    let parallel = Parallel {
        data: args.data_parallel,
        zero: args.zero,
        tensor: args.tensor_parallel,
        sequence: args.sequence_parallel,
        pipeline: args.pipeline_parallel,
        pipeline_micro_batches: args.pipeline_micro_batches.unwrap_or(args.pipeline_parallel),
        context: args.context_parallel,
    };
    let adapters = |rank| Adapters { rank, targets: args.lora_targets, base: args.base };
    Ok(with_fields_of!(
        MemorySpec,
        &args,
        [
            micro_batch, accumulate, precision, gradients, optimizer, recompute, attention, loss, offload,
            offload_activations, expandable_segments,
        ],
        sequence: args.seq,
        target_sequence: args.target_seq,
        master: args.master_weights,
        step: args.optimizer_step,
        compiled: args.compile,
        parallel,
        adapters: args.lora.map(adapters),
        generation: args
            .generate_batch
            .zip(args.generate_seq)
            .map(|(batch, sequence)| Generation { batch, sequence }),
        ..MemorySpec::new(model)
    ))
}

fn devices(printer: Printer) {
    let row =
        |device: &Device| vec![device.name.to_owned(), device.title.to_owned(), bytes(device.usable_bytes())];
    printer.answer(&DEVICES.as_slice(), || {
        printer.table(&["name", "device", "usable"], DEVICES.iter().map(row).collect());
    });
}

fn billions(count: u64) -> String {
    let (value, word) = match count {
        0..1_000_000 => return count.to_string(),
        1_000_000..1_000_000_000 => (count as f64 / 1e6, "million"),
        _ => (count as f64 / 1e9, "billion"),
    };
    format!("{value:.2} {word}")
}

fn summary(printer: Printer, report: &MemoryReport) {
    let estimate = &report.estimate;
    let mut about = format!("{} parameters", billions(estimate.parameter_count));
    if estimate.active_parameter_count < estimate.parameter_count {
        about = format!("{about}, {} work on a token", billions(estimate.active_parameter_count));
    }
    if estimate.trained_parameter_count < estimate.parameter_count {
        about = format!("{about}, {} are trained", billions(estimate.trained_parameter_count));
    }
    let devices = report.spec.parallel.devices();
    let on = if devices > 1 { format!(", on each of {devices} devices") } else { String::new() };
    printer.line(printer.tone(Tone::Bold, &report.spec.model.family) + format!(": {about}{on}"));
    let corrected =
        estimate.correction.map(|factor| format!(" (corrected by a measured peak: × {factor:.2})"));
    printer.line(format!(
        "{:>10} at the peak, between {} and {}{}",
        bytes(estimate.total_bytes),
        bytes(estimate.low_bytes),
        bytes(estimate.high_bytes),
        corrected.unwrap_or_default()
    ));
    printer.line(format!(
        "{:>10} by the rule of thumb: 40 GB for a billion parameters, not sharded",
        bytes(estimate.rule_of_thumb_bytes)
    ));
    if estimate.host_bytes > 0 {
        printer.line(format!("{:>10} in the host's memory for each device", bytes(estimate.host_bytes)));
    }
}

fn parts(printer: Printer, report: &MemoryReport) {
    let parts = report.estimate.parts;
    let largest = parts.named().iter().map(|(_, size)| *size).max().unwrap_or(0).max(1);
    printer.line("");
    printer.line(printer.tone(Tone::Bold, format!("at the peak (`{}`)", report.estimate.peak_phase)));
    for (name, size) in parts.named().iter().filter(|(_, size)| *size > 0) {
        let bar = "█".repeat((size * BAR_WIDTH).div_ceil(largest) as usize);
        printer.line(format!("  {:<15}{:>10}  {bar}", name.replace('_', " "), bytes(*size)));
    }
}

fn phases(printer: Printer, report: &MemoryReport) {
    let estimate = &report.estimate;
    let phases: Vec<String> = estimate
        .phases
        .iter()
        .map(|phase| format!("{} {}", phase.name.as_str().replace('_', " "), bytes(phase.total_bytes)))
        .collect();
    printer.line("");
    printer.line(format!("phases of a step: {}", phases.join(" · ")));
    if estimate.rank != PipelineRank::Only {
        printer.line(format!("the {} rank of the pipeline needs most", estimate.rank));
    }
    printer.line(format!(
        "counters at the peak: {} allocated, {} reserved",
        bytes(estimate.allocated_bytes),
        bytes(estimate.reserved_bytes)
    ));
}

fn verdict(printer: Printer, report: &MemoryReport) {
    let (Some(device), Some(verdict)) = (report.device, report.verdict) else { return };
    let said = match verdict {
        Fit::Fits => printer.tone(Tone::Good, "fits"),
        Fit::Tight => printer.tone(Tone::Warning, "is tight: a rehearsal with one batch decides"),
        Fit::DoesNotFit => printer.tone(Tone::Bad, "does not fit"),
    };
    printer.line("");
    let on = format!("{} with {}: it ", device.title, bytes(device.usable_bytes()));
    printer.line(StyledLine::from(on) + said);
    match report.largest_micro_batch {
        Some(0) | None => {}
        Some(most) => printer.line(format!("largest micro-batch that surely fits: {most}")),
    }
    for (number, advice) in report.advice.iter().enumerate() {
        if number == 0 {
            printer.line("");
            printer.line(printer.tone(Tone::Bold, "what to change, cheapest first"));
        }
        let verdict = advice.verdict.as_str().replace('_', " ");
        printer.line(format!("{:>10}  {verdict:<12}  {}", bytes(advice.total_bytes), advice.text));
        printer.line(format!("{:>26}{} · {}", "", advice.arguments, advice.price));
    }
}
