//! The test vectors of `docs/formats/vectors/flight-record/`: `NAME.hex` is a segment, `NAME.json` the result that a
//! reader must produce. Set `TRACKWAY_WRITE_VECTORS=1` to write them again after a deliberate change of the format.

use std::path::PathBuf;

use serde_json::{Value, json};
use trackway_core::Timestamp;

use super::*;
use crate::frames::{FRAME_OVERHEAD_BYTES, FrameWriter};

fn header() -> SegmentHeader {
    SegmentHeader {
        at: Timestamp::from_micros(1_795_244_400_000_001),
        origin: Origin::Sdk,
        pid: 4711,
        segment_sequence: 2,
        boot_id: "0b7e43f2-9d3a-4a0c-8f6e-0c9d3c2f11aa".into(),
        run_id: "run_01kajn4f3s0000000000000000".into(),
        attempt_id: "att_01kajn4f3s0000000000000001".into(),
        writer: "example 1.0".into(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(1_795_244_400_000_000 + second * 1_000_000)
}

/// One frame of every type, with values that do not survive printing, and a clock that goes backwards.
fn every_frame() -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    encoder.begin(&mut out, &header());
    encoder.param(&mut out, &Param { at: at(1), name: "lr".into(), value: "0.001".into() });
    encoder.metrics(&mut out, at(2), 1, &[("loss", 0.1), ("lr", 1e-3)]);
    let odd = [
        ("loss", f64::NAN),
        ("lr", -0.0),
        ("größe", f64::NEG_INFINITY),
        ("nan", f64::from_bits(0xfff4_0000_dead_beef)),
    ];
    encoder.metrics(&mut out, at(1), 2, &odd);
    encoder.metrics(&mut out, at(3), u64::MAX, &[] as &[(&str, f64)]);
    encoder.heartbeat(&mut out, &Heartbeat { at: at(4), step: 3 });
    let fields = vec![("epoch".into(), "3".into()), ("note".into(), "two\nlines".into())];
    encoder.event(&mut out, &Event { at: at(5), step: Some(3), kind: "epoch_finished".into(), fields });
    encoder.event(&mut out, &Event { at: at(5), step: None, kind: "bare".into(), fields: vec![] });
    encoder.checkpoint(
        &mut out,
        &CheckpointFrame {
            at: at(6),
            step: 3,
            epoch: 1,
            state: CheckpointChange::Committed,
            object_prefix: "step-00000003/epoch-0001-01kajn4f3s0000000000000002".into(),
            manifest_sha256: "00".repeat(32),
            size_bytes: 12_345,
            seconds: 0.25,
        },
    );
    let ack = ControlAck { at: at(7), id: 1, outcome: ControlOutcome::Done, step: Some(3) };
    encoder.control_ack(&mut out, &ack);
    encoder.close(&mut out, &Close { at: at(8), dropped_frames: 2 });
    out
}

/// A frame with any payload, as a writer of a later version might make it.
fn raw_frame(sequence: u32, frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let (mut frames, mut frame) = (FrameWriter::default(), Vec::new());
    frames.rewind_to(sequence);
    frames.write(&mut frame, frame_type, |fields| fields.put(payload));
    frame
}

fn heartbeat_payload(step: u64) -> Vec<u8> {
    [at(1).as_micros().to_le_bytes(), step.to_le_bytes()].concat()
}

/// Frames of a later version: an unknown type, and a known one with a field more.
fn later_version() -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    encoder.begin(&mut out, &header());
    out.extend(raw_frame(1, 200, b"what later versions know"));
    out.extend(raw_frame(2, 6, &[heartbeat_payload(9), b"a field more".to_vec()].concat()));
    out.extend(raw_frame(3, 6, &heartbeat_payload(10)));
    out
}

/// A payload that is too short for its type, under a checksum that holds.
fn malformed() -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    encoder.begin(&mut out, &header());
    out.extend(raw_frame(1, 6, b"short"));
    out.extend(raw_frame(2, 6, &heartbeat_payload(2)));
    out
}

/// A frame of which only the first half was written, whole frames after it, and a tail that was cut off.
fn torn() -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    encoder.begin(&mut out, &header());
    let half = raw_frame(1, 6, &heartbeat_payload(1));
    out.extend(&half[..half.len() / 2]);
    out.extend(raw_frame(2, 6, &heartbeat_payload(2)));
    out.extend(&raw_frame(3, 6, &heartbeat_payload(3))[..FRAME_OVERHEAD_BYTES]);
    out
}

/// Values at steps below 0, between others of the same metric, and a frame of them whose step is not below 0.
fn early_metrics() -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    encoder.begin(&mut out, &header());
    encoder.early_metrics(&mut out, at(1), -1, &[("loss", 0.9)]);
    encoder.metrics(&mut out, at(2), 0, &[("loss", 0.5)]);
    encoder.early_metrics(&mut out, at(3), i64::MIN, &[("loss", 0.7), ("acc", 0.1)]);
    encoder.early_metrics(&mut out, at(4), 0, &[("loss", 0.3)]);
    out
}

/// Three steps of two metrics in one frame, and a metrics frame whose sequence number is that behind theirs.
fn series() -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    encoder.begin(&mut out, &header());
    let values = [0.5, 1e-3, f64::NAN, -0.0, 0.25, f64::INFINITY];
    encoder.series(&mut out, at(1), &["loss", "lr"], &[10, 20, 5], &values);
    encoder.metrics(&mut out, at(2), 30, &[("loss", 0.125)]);
    out
}

/// A header that names version 2.
fn unsupported_version() -> Vec<u8> {
    let mut out = FILE_MAGIC.to_vec();
    out.extend(raw_frame(0, 1, &[2, 0, 1, 0]));
    out
}

fn items_as_json(bytes: &[u8]) -> Value {
    let mut reader = SegmentReader::new();
    reader.push(bytes);
    reader.finish();
    let mut items = Vec::new();
    loop {
        match reader.next_item() {
            Ok(Some(Item::Frame(located))) => items.push(frame_as_json(&located)),
            Ok(Some(Item::Damage(damage))) => items.push(json!({
                "damage": format!("{:?}", damage.kind), "offset": damage.offset, "skipped_bytes": damage.skipped_bytes,
            })),
            Ok(None) => return json!({ "items": items }),
            Err(RecordError::UnsupportedVersion { version }) => {
                return json!({ "items": items, "unsupported_version": version });
            }
        }
    }
}

fn frame_as_json(located: &Located) -> Value {
    let (name, fields) = match &located.frame {
        Frame::Header(header) => (
            "header",
            json!({
                "at_micros": header.at.as_micros(), "origin": header.origin.to_string(), "pid": header.pid,
                "segment_sequence": header.segment_sequence, "boot_id": header.boot_id, "run_id": header.run_id,
                "attempt_id": header.attempt_id, "writer": header.writer,
            }),
        ),
        Frame::NameDefinition(definition) => {
            ("name_definition", json!({ "id": definition.id.0, "name": definition.name }))
        }
        Frame::Metrics(metrics) => (
            "metrics",
            json!({
                "at_micros": metrics.at.as_micros(), "step": metrics.step,
                "values": metrics.values.iter().map(|(id, value)| json!({
                    "id": id.0, "bits": format!("{:016x}", value.to_bits()),
                })).collect::<Vec<_>>(),
            }),
        ),
        Frame::EarlyMetrics(metrics) => (
            "early_metrics",
            json!({
                "at_micros": metrics.at.as_micros(), "step": metrics.step,
                "values": metrics.values.iter().map(|(id, value)| json!({
                    "id": id.0, "bits": format!("{:016x}", value.to_bits()),
                })).collect::<Vec<_>>(),
            }),
        ),
        Frame::Event(event) => (
            "event",
            json!({
                "at_micros": event.at.as_micros(), "step": event.step, "kind": event.kind, "fields": event.fields,
            }),
        ),
        Frame::Param(param) => {
            ("param", json!({ "at_micros": param.at.as_micros(), "name": param.name, "value": param.value }))
        }
        Frame::Heartbeat(heartbeat) => {
            ("heartbeat", json!({ "at_micros": heartbeat.at.as_micros(), "step": heartbeat.step }))
        }
        Frame::Checkpoint(checkpoint) => (
            "checkpoint",
            json!({
                "at_micros": checkpoint.at.as_micros(), "step": checkpoint.step, "epoch": checkpoint.epoch,
                "state": checkpoint.state.as_str(), "object_prefix": checkpoint.object_prefix,
                "manifest_sha256": checkpoint.manifest_sha256, "size_bytes": checkpoint.size_bytes,
                "seconds_bits": format!("{:016x}", checkpoint.seconds.to_bits()),
            }),
        ),
        Frame::ControlAck(ack) => (
            "control_ack",
            json!({
                "at_micros": ack.at.as_micros(), "id": ack.id, "outcome": ack.outcome.as_str(), "step": ack.step,
            }),
        ),
        Frame::Close(close) => {
            ("close", json!({ "at_micros": close.at.as_micros(), "dropped_frames": close.dropped_frames }))
        }
        Frame::Unknown { frame_type, payload_bytes } => {
            ("unknown", json!({ "frame_type": frame_type, "payload_bytes": payload_bytes }))
        }
    };
    json!({ "frame": name, "offset": located.offset, "sequence": located.sequence, "fields": fields })
}

fn to_hex(bytes: &[u8]) -> String {
    let lines =
        bytes.chunks(32).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).expect("two hex digits"))
        .collect()
}

/// Proves that this writer makes exactly the published bytes, and this reader of them exactly the published frames.
#[test]
fn the_published_vectors_hold() {
    let folder =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/vectors/flight-record"));
    let vectors = [
        ("early-metrics", early_metrics()),
        ("every-frame", every_frame()),
        ("later-version", later_version()),
        ("malformed", malformed()),
        ("series", series()),
        ("torn", torn()),
        ("unsupported-version", unsupported_version()),
    ];
    for (name, made) in vectors {
        let (hex_path, json_path) = (folder.join(format!("{name}.hex")), folder.join(format!("{name}.json")));
        if std::env::var_os("TRACKWAY_WRITE_VECTORS").is_some() {
            std::fs::write(&hex_path, to_hex(&made)).unwrap();
            let json = serde_json::to_string_pretty(&items_as_json(&made)).unwrap() + "\n";
            std::fs::write(&json_path, json).unwrap();
        }
        let published = from_hex(&std::fs::read_to_string(&hex_path).unwrap());
        assert_eq!(published, made, "the writer no longer makes `{name}`");
        let expected: Value = serde_json::from_slice(&std::fs::read(&json_path).unwrap()).unwrap();
        assert_eq!(items_as_json(&published), expected, "the reader no longer reads `{name}`");
    }
}
