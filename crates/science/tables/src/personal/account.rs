//! Numbers of accounts: payment cards and IBANs.

use super::PersonalKind;
use super::kind::TokenKind;

/// Digits of a token, and nothing but digits and separators in it.
pub(super) fn digits_only(token: &str) -> Option<Vec<u8>> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit() || b" .-/".contains(&byte));
    plain.then(|| token.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect())
}

/// A payment card number: 13 to 19 digits, in groups or not, with an issuer's prefix; valid by Luhn's check.
///
/// Source: ISO/IEC 7812; prefixes of Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Maestro.
pub(super) fn payment_card(token: &str) -> TokenKind {
    let digits = digits_only(token)?;
    let groups_fit = token.split([' ', '-']).all(|group| (3..=19).contains(&group.len()));
    if !groups_fit || token.contains(['.', '/']) || !issuer_fits(&digits) {
        return None;
    }
    Some((PersonalKind::PaymentCard, luhn(&digits)))
}

fn issuer_fits(digits: &[u8]) -> bool {
    let leading =
        |count: usize| digits.iter().take(count).fold(0u32, |sum, digit| sum * 10 + u32::from(*digit));
    match digits.len() {
        13 => leading(1) == 4,
        14 => matches!(leading(2), 36 | 38) || matches!(leading(3), 300..=305),
        15 => matches!(leading(2), 34 | 37),
        16 => {
            leading(1) == 4
                || matches!(leading(2), 51..=55 | 62 | 65)
                || matches!(leading(4), 2221..=2720 | 6011 | 3528..=3589)
        }
        17..=19 => matches!(leading(2), 62) || matches!(leading(1), 4),
        _ => false,
    }
}

/// Luhn's check (ISO/IEC 7812-1, annex B).
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let value = u32::from(*digit) * (1 + index as u32 % 2);
            value / 10 + value % 10
        })
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != 0)
}

/// An IBAN: country, two check digits, and the country's length; valid by the remainder modulo 97 (ISO 13616).
pub(super) fn iban(token: &str) -> TokenKind {
    let compact: Vec<u8> = token.bytes().filter(|byte| *byte != b' ').collect();
    let country = compact.get(..2)?;
    let is_of = |names: &[&str]| names.iter().any(|name| name.as_bytes() == country);
    let (length, _) = LENGTHS.iter().find(|(_, names)| is_of(names))?;
    let form = compact.len() == *length
        && compact[2..4].iter().all(u8::is_ascii_digit)
        && compact.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    if !form {
        return None;
    }
    let rotated = compact[4..].iter().chain(&compact[..4]);
    let remainder = rotated.fold(0u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    Some((PersonalKind::Iban, remainder == 1))
}

/// The lengths of IBANs, and the countries that have them (SWIFT's IBAN registry; the larger countries).
const LENGTHS: [(usize, &[&str]); 15] = [
    (15, &["NO"]),
    (16, &["BE"]),
    (18, &["DK", "FI", "NL"]),
    (19, &["SI"]),
    (20, &["AT", "EE", "LT", "LU"]),
    (21, &["CH", "HR", "LI", "LV"]),
    (22, &["BG", "DE", "GB", "IE", "RS"]),
    (23, &["AE", "IL"]),
    (24, &["CZ", "ES", "RO", "SA", "SE", "SK"]),
    (25, &["PT"]),
    (26, &["IS", "TR"]),
    (27, &["FR", "GR", "IT", "MC"]),
    (28, &["CY", "HU", "PL"]),
    (29, &["BR", "UA"]),
    (31, &["MT"]),
];
