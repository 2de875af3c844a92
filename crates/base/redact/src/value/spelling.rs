//! Whether letters and digits are words, as the names of layers, models and columns are, or what a machine made.

/// In a value with so many letters and digits that are in no word there is a secret.
const STRANGE_BYTES: usize = 12;
/// With so many of them only where they are a good part of it.
const FEW_STRANGE_BYTES: usize = 6;
/// So many consonants follow each other in a word, unless it is an abbreviation.
const CONSONANTS_MAX: usize = 4;
/// Shorter words may be abbreviations.
const SPELLED_BYTES_MIN: usize = 6;
/// Of a run that is so long one in four bytes may be a digit.
const LONG_BYTES_MIN: usize = 12;
/// Longer numbers are not years, days or steps.
const NUMBER_BYTES_MAX: usize = 8;
/// A number before or behind a word is not longer.
const BESIDE_BYTES_MAX: usize = 4;

/// Whether a value is words and numbers that are put together: `bert-base-uncased`, `model.layers.12.conv2d`, `Llama-2-7b-hf`.
pub(super) fn is_made_of_words(value: &[u8]) -> bool {
    let all: usize = parts(value).map(<[u8]>::len).sum();
    let strange: usize = parts(value).filter(|part| !is_word(part)).map(<[u8]>::len).sum();
    let is_strange = strange >= STRANGE_BYTES || strange >= FEW_STRANGE_BYTES && strange * 10 >= all * 3;
    let has_mark = value.iter().any(|byte| b"!$%^&*~".contains(byte));
    !is_strange && !has_mark
}

/// The runs of letters and digits.
pub(super) fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| !byte.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
}

/// Whether a run of letters and digits is a word or a number, or both: `layer12`, `7b`, `wav2vec2`, `resnet50v2`, `32x8d`.
pub(super) fn is_word(part: &[u8]) -> bool {
    let groups: Vec<&[u8]> =
        part.chunk_by(|left, right| left.is_ascii_digit() == right.is_ascii_digit()).collect();
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    match groups[..] {
        [group] if is_number(group) => group.len() <= NUMBER_BYTES_MAX,
        [date, b"T", time] | [date, b"T", time, b"Z"] if is_number(date) => {
            date.len().max(time.len()) <= NUMBER_BYTES_MAX
        }
        _ if part.len() >= LONG_BYTES_MIN && digits * 4 > part.len() => false,
        [rows, b"x", columns] | [rows, b"x", columns, _] if is_number(rows) => {
            columns.len() <= BESIDE_BYTES_MAX
        }
        [number, word] if is_number(number) => number.len() <= BESIDE_BYTES_MAX && is_spelled(word),
        [word, number] => number.len() <= BESIDE_BYTES_MAX && is_spelled(word),
        [number, word, last] if is_number(number) => {
            number.len().max(last.len()) <= BESIDE_BYTES_MAX && is_spelled(word)
        }
        [word] => is_spelled(word),
        [word, inner, next] => is_joined(word, inner, next),
        [word, inner, next, last] if !is_number(word) => {
            is_joined(word, inner, next) && last.len() <= BESIDE_BYTES_MAX
        }
        _ => false,
    }
}

/// Two words with a number between them: a digit that is read as a word, or the size of a model before its version.
fn is_joined(word: &[u8], number: &[u8], next: &[u8]) -> bool {
    const SIZED_BYTES_MIN: usize = 4;
    const SIZE_BYTES_MAX: usize = 3;
    const JOINED_BYTES_MIN: usize = 3;
    let is_read = number.len() == 1 && word.len().max(next.len()) >= JOINED_BYTES_MIN;
    let is_sized = number.len() <= SIZE_BYTES_MAX && word.len() >= SIZED_BYTES_MIN && next.len() <= 2;
    (is_read || is_sized) && is_spelled(word) && is_spelled(next)
}

fn is_number(group: &[u8]) -> bool {
    group.first().is_some_and(u8::is_ascii_digit)
}

/// Whether letters are as those of words, of several too: `uncased`, `LlamaForCausalLM`, `BERT`.
fn is_spelled(letters: &[u8]) -> bool {
    let is_within = |left: &u8, right: &u8| !(left.is_ascii_lowercase() && right.is_ascii_uppercase());
    letters.chunk_by(is_within).all(is_spelled_alone)
}

fn is_spelled_alone(word: &[u8]) -> bool {
    const CAPITALISED_BYTES_MIN: usize = 3;
    const CAPITALS_MAX: usize = 5;
    let rest = word.get(1..).unwrap_or_default();
    let consonants = word.split(|byte| b"aeiouyAEIOUY".contains(byte)).map(<[u8]>::len).max().unwrap_or(0);
    let is_spoken = word.len() < SPELLED_BYTES_MIN || consonants <= CONSONANTS_MAX;
    if word.iter().all(u8::is_ascii_uppercase) {
        return word.len() <= CAPITALS_MAX || is_spoken;
    }
    let is_capitalised = word.first().is_some_and(u8::is_ascii_uppercase);
    rest.iter().all(u8::is_ascii_lowercase)
        && (!is_capitalised || word.len() >= CAPITALISED_BYTES_MIN)
        && is_spoken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that names of models, layers, columns and sizes are made of words, and that what a machine made is not,
    /// alone or behind words.
    #[test]
    fn words_differ_from_what_a_machine_made() {
        for value in [
            "bert-base-uncased",
            "meta-llama/Llama-2-7b-hf",
            "facebook/wav2vec2-base-960h",
            "conv2d_3x3_bn1",
            "model.layers.12.self_attn.q_proj",
            "imagenet1k_train_224px_v2",
            "resnext101_32x8d",
            "LlamaForCausalLM",
            "2024-01-01T00:00:00",
            "run-20240101T000000Z",
            "Qwen2.5-7B-Instruct",
            "transformers4rec",
            "AutoModelForSeq2SeqLM",
            "vit_b_16",
        ] {
            assert!(is_made_of_words(value.as_bytes()), "{value}");
        }
        for value in [
            "a8f3k2m9x1",
            "abc123def456",
            "tok_9f8e7d6c5b4a",
            "Zq7-tulip-Kd4",
            "q7Rk2ZpL9vXw4TnB8sHd3Y",
            "3f1e2d3c-4b5a-4978-8f1e-2d3c4b5a6978",
            "my-lab-token-a8f3k2m9",
            "ABCD1234EFGH",
            "sk-test-1234567890",
        ] {
            assert!(!is_made_of_words(value.as_bytes()), "{value}");
        }
    }
}
