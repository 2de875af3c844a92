//! The kinds of value a key may have, each as a function from a node to a value or a fault.

use std::collections::BTreeMap;
use std::str::FromStr;

use trackway_core::name::{Name, NameKind};
use trackway_core::text::quoted_list;

use super::tree::{Node, Value};
use super::walker::Fault;
use crate::arguments::{PARAMETERS_MAX, check_given};
use crate::runfile::schema::nearest;

/// The longest duration that is believed: ten years. More is a slip of the unit.
pub const MAX_DURATION_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;

/// The longest argument that a Linux kernel hands to a program (`MAX_ARG_STRLEN` without the final NUL).
pub const ARGUMENT_BYTES_MAX: usize = 131_071;

pub(crate) fn run_name(node: &Node) -> Result<String, Fault> {
    let given = text(node)?;
    Name::new(NameKind::Run, &given)
        .map(String::from)
        .map_err(|error| node.fault(format!("must not be `{given}`: {}", error.why())).hint(error.hint()))
}

/// A text that is not blank.
pub(crate) fn text(node: &Node) -> Result<String, Fault> {
    match &node.value {
        Value::Text(text) if text.trim().is_empty() => Err(node.fault("must not be empty")),
        Value::Text(text) if text.contains('\0') => Err(node.fault("must not hold a NUL character")),
        Value::Text(text) => Ok(text.clone()),
        _ => Err(node.not("a string").hint("put it in double quotes")),
    }
}

pub(crate) fn flag(node: &Node) -> Result<bool, Fault> {
    match node.value {
        Value::Bool(flag) => Ok(flag),
        _ => Err(node.not("`true` or `false`")),
    }
}

/// A whole number from `min` to `max`.
pub(crate) fn whole(min: u64, max: u64) -> impl Fn(&Node) -> Result<u64, Fault> {
    move |node| {
        let wanted = || match max {
            u64::MAX => format!("a whole number, {min} or more"),
            _ => format!("a whole number from {min} to {max}"),
        };
        match node.value {
            Value::Integer(number) => u64::try_from(number)
                .ok()
                .filter(|number| (min..=max).contains(number))
                .ok_or_else(|| node.fault(format!("must be {}, not {number}", wanted()))),
            _ => Err(node.not(&wanted())),
        }
    }
}

/// A count that fits 32 bits.
pub(crate) fn count(min: u32) -> impl Fn(&Node) -> Result<u32, Fault> {
    move |node| {
        let number = whole(u64::from(min), 1_000_000)(node)?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }
}

/// A finite number above zero, or zero if `zero` is set.
pub(crate) fn amount(zero: bool) -> impl Fn(&Node) -> Result<f64, Fault> {
    move |node| {
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(node.not("a number")),
        };
        let fits = number.is_finite() && (number > 0.0 || (zero && number == 0.0));
        let wanted = if zero { "0 or more" } else { "more than 0" };
        if fits { Ok(number) } else { Err(node.fault(format!("must be {wanted}, not {number}"))) }
    }
}

/// A value of a closed list, of which these are the words.
pub(crate) fn one_of<T: FromStr>(words: &'static [&'static str]) -> impl Fn(&Node) -> Result<T, Fault> {
    move |node| {
        let given = text(node)?;
        given.parse().map_err(|_| {
            let fault = node.fault(format!("must be one of {}, not `{given}`", quoted_list(words)));
            match nearest(&given, words.iter().copied()) {
                Some(nearest) => fault.hint(format!("did you mean `{nearest}`?")),
                None => fault,
            }
        })
    }
}

/// A list of `item`s with at least `min` of them.
pub(crate) fn list<T>(
    min: usize,
    item: impl Fn(&Node) -> Result<T, Fault>,
) -> impl Fn(&Node) -> Result<Vec<T>, Fault> {
    move |node| match &node.value {
        Value::List(items) if items.len() < min => Err(node.fault("must not be empty")),
        Value::List(items) => items.iter().map(&item).collect(),
        _ => Err(node.not("a list")),
    }
}

/// A list of strings; each may be empty, as an argument or a marker of missing values may.
pub(crate) fn plain_text(node: &Node) -> Result<String, Fault> {
    match &node.value {
        Value::Text(text) if text.contains('\0') => Err(node.fault("must not hold a NUL character")),
        Value::Text(text) => Ok(text.clone()),
        _ => Err(node.not("a string").hint("put it in double quotes")),
    }
}

/// An argument vector: a list whose first item names a program.
pub(crate) fn command(node: &Node) -> Result<Vec<String>, Fault> {
    if let Value::Text(line) = &node.value {
        let words: Vec<_> = line.split_whitespace().map(|word| format!("{word:?}")).collect();
        let fault = node.fault("must be a list of strings, not one string: no shell reads it");
        return Err(fault.hint(format!("write `[{}]`", words.join(", "))));
    }
    let argv = list(1, argument)(node)?;
    if argv[0].trim().is_empty() {
        return Err(node.fault("must begin with the name of a program"));
    }
    Ok(argv)
}

fn argument(node: &Node) -> Result<String, Fault> {
    let text = plain_text(node)?;
    if text.len() <= ARGUMENT_BYTES_MAX {
        return Ok(text);
    }
    let fault = node.fault(format!(
        "must not hold an argument of {} bytes: {ARGUMENT_BYTES_MAX} is the limit",
        text.len()
    ));
    Err(fault.hint("write it to a file, and name the file"))
}

/// A table of environment variables: names to strings; numbers and flags are written as strings.
pub(crate) fn variables(node: &Node) -> Result<BTreeMap<String, String>, Fault> {
    let Value::Table(table) = &node.value else {
        return Err(node.not("a table such as `{ NAME = \"value\" }`"));
    };
    let one = |(name, entry): (&String, &super::tree::Entry)| {
        check_variable_name(name).map_err(|message| Fault::at(entry.key_place.clone(), message))?;
        Ok((name.clone(), scalar_text(&entry.node)?))
    };
    table.iter().map(one).collect()
}

/// A table of parameters or tags: names to strings; numbers and booleans are written as strings.
pub(crate) fn given(node: &Node) -> Result<BTreeMap<String, String>, Fault> {
    let Value::Table(table) = &node.value else {
        return Err(node.not("a table such as `{ name = \"value\" }`"));
    };
    if table.len() > PARAMETERS_MAX {
        return Err(node.fault(format!("must not have {} names: {PARAMETERS_MAX} is the limit", table.len())));
    }
    let one = |(name, entry): (&String, &super::tree::Entry)| {
        let value = scalar_text(&entry.node)?;
        check_given(name, &value).map_err(|message| Fault::at(entry.key_place.clone(), message))?;
        Ok((name.clone(), value))
    };
    table.iter().map(one).collect()
}

/// The name of an environment variable.
pub(crate) fn variable_name(node: &Node) -> Result<String, Fault> {
    let name = text(node)?;
    check_variable_name(&name).map_err(|message| node.fault(message))?;
    Ok(name)
}

pub(crate) fn check_variable_name(name: &str) -> Result<(), String> {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !starts || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("must contain only names of letters, digits and `_`, not `{name}`"));
    }
    if name.starts_with(crate::Variable::PREFIX) {
        return Err(format!("must not hold `{name}`: names that begin with `TRACKWAY_` are set by Trackway"));
    }
    Ok(())
}

fn scalar_text(node: &Node) -> Result<String, Fault> {
    match &node.value {
        Value::Text(_) => plain_text(node),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(node.not("a string, a number or a boolean")),
    }
}

/// Seconds from a duration such as `"500ms"`, `"30s"`, `"5m"`, `"12h"` or `"2d"`.
pub(crate) fn duration(node: &Node) -> Result<f64, Fault> {
    match &node.value {
        Value::Text(text) => {
            parse_duration(text).ok_or_else(|| duration_fault(node, &format!("not `{text}`")))
        }
        Value::Integer(number) => {
            Err(duration_fault(node, "not a bare number").hint(format!("write `\"{number}s\"` for seconds")))
        }
        _ => Err(duration_fault(node, &format!("not {}", node.value.kind()))),
    }
}

pub(crate) fn positive_duration(node: &Node) -> Result<f64, Fault> {
    let seconds = duration(node)?;
    if seconds > 0.0 {
        Ok(seconds)
    } else {
        Err(node.fault("must be more than 0").hint("omit the key for no limit"))
    }
}

/// The least and the greatest seconds of a range such as `"10s..5m"`; a single duration is both.
pub(crate) fn duration_range(node: &Node) -> Result<(f64, f64), Fault> {
    let Value::Text(text) = &node.value else {
        return Err(node.not("a range of durations such as `\"10s..5m\"`"));
    };
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (parse_duration(low.trim()), parse_duration(high.trim())) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        (Some(_), Some(_)) => {
            Err(node.fault(format!("must be ordered from the shorter to the longer duration, not `{text}`")))
        }
        _ => Err(node
            .fault(format!("must be a range of durations, not `{text}`"))
            .hint("such as `\"10s..5m\"`; units are ms, s, m, h, d")),
    }
}

fn duration_fault(node: &Node, given: &str) -> Fault {
    node.fault(format!("must be a duration, {given}")).hint("such as `\"30s\"`; units are ms, s, m, h, d")
}

/// Seconds from a text such as `500ms`, `30s`, `5m`, `12h` or `2d`; none for any other, and beyond
/// [`MAX_DURATION_SECONDS`].
#[must_use]
pub fn parse_duration(text: &str) -> Option<f64> {
    let seconds =
        split_number(text, &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)])?;
    (seconds <= MAX_DURATION_SECONDS).then_some(seconds)
}

/// A fraction above 0 and up to 1 from a percentage such as `"10%"`.
pub(crate) fn percentage(node: &Node) -> Result<f64, Fault> {
    let given = text(node)?;
    split_number(&given, &[("%", 0.01)])
        .filter(|fraction| *fraction > 0.0 && *fraction <= 1.0)
        .ok_or_else(|| node.fault(format!("must hold percentages above 0% and up to 100%, not `{given}`")))
}

/// Bytes from a size such as `"16GiB"` (powers of 1024) or `"16GB"` (powers of 1000).
pub(crate) fn byte_size(node: &Node) -> Result<u64, Fault> {
    let given = text(node)?;
    parse_byte_size(&given)
        .ok_or_else(|| node.fault(format!("must be a size, not `{given}`")).hint("such as `\"16GiB\"`"))
}

/// Bytes from a text such as `16GiB` or `16GB`; none for any other, below 1 byte, and beyond 1e18 bytes.
#[must_use]
pub fn parse_byte_size(text: &str) -> Option<u64> {
    const UNITS: &[(&str, f64)] = &[
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("B", 1.0),
    ];
    split_number(text, UNITS).filter(|bytes| *bytes >= 1.0 && *bytes <= 1e18).map(|bytes| bytes as u64)
}

/// A number and one of the units, multiplied out. The longest unit that fits wins.
fn split_number(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let scale = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let number: f64 = number.parse().ok()?;
    let product = if scale < 1.0 { number / (1.0 / scale) } else { number * scale };
    product.is_finite().then_some(product)
}
