//! National numbers, each by the rule of its country. Those whose form is nothing but digits count only if their check
//! digits agree significantly often.

use super::PersonalKind;
use super::account::{digits_only, luhn};

/// The first country whose number this may be, with whether its checks hold.
pub(super) fn national_id(token: &str) -> Option<(PersonalKind, bool)> {
    let rules = [
        us_social_security, uk_insurance, spain, italy, brazil, france, china, poland, germany, sweden, india,
    ];
    let judged: Vec<bool> = rules.iter().filter_map(|rule| rule(token)).collect();
    (!judged.is_empty()).then(|| (PersonalKind::NationalId, judged.contains(&true)))
}

/// Whether a text has the form of a pattern: `9` a digit, `A` a capital letter, anything else itself.
fn fits(token: &str, pattern: &str) -> bool {
    token.len() == pattern.len()
        && token.bytes().zip(pattern.bytes()).all(|(byte, expected)| match expected {
            b'9' => byte.is_ascii_digit(),
            b'A' => byte.is_ascii_uppercase(),
            other => byte == other,
        })
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(*digit))
}

/// The sum of digits with weights.
fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| u32::from(*digit) * weight).sum()
}

fn month_and_day(digits: &[u8]) -> bool {
    (1..=12).contains(&number(&digits[..2])) && (1..=31).contains(&number(&digits[2..4]))
}

/// `123-45-6789`; area 000, 666 and 900 to 999, group 00 and serial 0000 are never given (SSA, POMS RM 10201.035).
fn us_social_security(token: &str) -> Option<bool> {
    let digits = fits(token, "999-99-9999").then(|| digits_only(token)).flatten()?;
    let (area, group, serial) = (number(&digits[..3]), number(&digits[3..5]), number(&digits[5..]));
    Some(area != 0 && area != 666 && area < 900 && group != 0 && serial != 0)
}

/// `AB123456C`: prefixes that HM Revenue does not use are none (NIM39110).
fn uk_insurance(token: &str) -> Option<bool> {
    let compact = token.replace(' ', "");
    let form = fits(&compact, "AA999999A") && b"ABCD".contains(&compact.as_bytes()[8]);
    let bytes = compact.as_bytes();
    form.then(|| {
        !b"DFIQUV".contains(&bytes[0])
            && !b"DFIQUVO".contains(&bytes[1])
            && !["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"].contains(&&compact[..2])
    })
}

/// `12345678Z` (DNI) and `X1234567L` (NIE): the letter is the number modulo 23 (Real Decreto 1553/2005).
fn spain(token: &str) -> Option<bool> {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let bytes = token.as_bytes();
    let lead = match bytes.first()? {
        b'X' => Some(0),
        b'Y' => Some(1),
        b'Z' => Some(2),
        _ => None,
    };
    let (start, lead) = match lead {
        Some(lead) if fits(&token[1..], "9999999A") => (1, lead),
        None if fits(token, "99999999A") => (0, 0),
        _ => return None,
    };
    let digits: Vec<u8> = bytes[start..8].iter().map(|byte| byte - b'0').collect();
    let value = lead * 10_000_000 + number(&digits);
    Some(LETTERS[(value % 23) as usize] == bytes[8])
}

/// The Italian codice fiscale `RSSMRA85T10A562S` with its check letter (Decreto ministeriale 23.12.1976).
fn italy(token: &str) -> Option<bool> {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    fits(token, "AAAAAA99A99A999A").then(|| {
        let value = |byte: u8| u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' });
        let weigh = |(index, byte): (usize, &u8)| match index % 2 {
            0 => ODD[value(*byte) as usize],
            _ => value(*byte),
        };
        let sum: u32 = token.as_bytes()[..15].iter().enumerate().map(weigh).sum();
        sum % 26 == value(token.as_bytes()[15])
    })
}

/// The Brazilian CPF `123.456.789-09` with its two check digits (modulo 11).
fn brazil(token: &str) -> Option<bool> {
    let digits = fits(token, "999.999.999-99").then(|| digits_only(token)).flatten()?;
    let check = |count: usize| {
        let weights: Vec<u32> = (2..=count as u32 + 1).rev().collect();
        (weighted(&digits[..count], &weights) * 10 % 11 % 10) as u8
    };
    let all_alike = digits.iter().all(|digit| *digit == digits[0]);
    Some(!all_alike && digits[9] == check(9) && digits[10] == check(10))
}

/// The French NIR: 13 digits beginning with 1 or 2 and a month, then 97 less the number modulo 97.
fn france(token: &str) -> Option<bool> {
    let digits = digits_only(token).filter(|it| it.len() == 15 && matches!(it[0], 1 | 2))?;
    let month = number(&digits[3..5]);
    Some((1..=12).contains(&month) && 97 - number(&digits[..13]) % 97 == number(&digits[13..]))
}

/// The Chinese resident number: 17 digits with a date of birth and a check character (GB 11643-1999, ISO 7064).
fn china(token: &str) -> Option<bool> {
    let (body, last) = token.split_at_checked(17)?;
    let digits = digits_only(body).filter(|it| it.len() == 17)?;
    let expected = weighted(&digits, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
    let known = last.len() == 1 && (last == "X" || last.as_bytes()[0].is_ascii_digit());
    let century = matches!(number(&digits[6..8]), 19 | 20);
    known.then(|| {
        century && month_and_day(&digits[10..14]) && b"10X98765432"[expected as usize] == last.as_bytes()[0]
    })
}

/// The Polish PESEL: 11 digits, a month with the century added, and a check digit.
fn poland(token: &str) -> Option<bool> {
    let digits = plain(token, 11)?;
    let month = number(&digits[2..4]) % 20;
    let check = (10 - weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10) % 10;
    let day = number(&digits[4..6]);
    Some((1..=12).contains(&month) && (1..=31).contains(&day) && u32::from(digits[10]) == check)
}

/// The German tax number: 11 digits not beginning with 0, among the first ten exactly one digit two or three times,
/// and a check digit (ISO 7064, MOD 11,10).
fn germany(token: &str) -> Option<bool> {
    let digits = plain(token, 11).filter(|it| it[0] != 0)?;
    let times = |digit: u8| digits[..10].iter().filter(|it| **it == digit).count();
    let repeated: Vec<_> = (0..10).map(times).filter(|count| *count > 1).collect();
    let product = digits[..10].iter().fold(10, |product, digit| {
        let sum = (u32::from(*digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    Some(matches!(repeated[..], [2 | 3]) && (11 - product) % 10 == u32::from(digits[10]))
}

/// The Swedish personnummer `yymmdd-nnnn`, with a date and Luhn's check.
fn sweden(token: &str) -> Option<bool> {
    let digits = fits(token, "999999-9999").then(|| digits_only(token)).flatten()?;
    Some(month_and_day(&digits[2..6]) && luhn(&digits))
}

/// The Indian Aadhaar number in groups of four: 12 digits beginning with 2 to 9, Verhoeff's check.
fn india(token: &str) -> Option<bool> {
    const TURN: [usize; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let grouped = fits(token, "9999 9999 9999") || fits(token, "9999-9999-9999");
    let digits = grouped.then(|| digits_only(token)).flatten().filter(|it| it[0] >= 2)?;
    // The dihedral group of order ten: rotations 0 to 4, reflections 5 to 9.
    let multiply = |one: usize, other: usize| match (one < 5, other < 5) {
        (true, true) => (one + other) % 5,
        (true, false) => (one + other - 5) % 5 + 5,
        (false, true) => (one - 5 + 5 - other) % 5 + 5,
        (false, false) => (one + 5 - other) % 5,
    };
    let turned = |digit: u8, times: usize| (0..times).fold(usize::from(digit), |it, _| TURN[it]);
    let fold = |sum: usize, (index, digit): (usize, &u8)| multiply(sum, turned(*digit, index % 8));
    Some(digits.iter().rev().enumerate().fold(0, fold) == 0)
}

/// Nothing but so many digits.
fn plain(token: &str, count: usize) -> Option<Vec<u8>> {
    let form = token.len() == count && token.bytes().all(|byte| byte.is_ascii_digit());
    form.then(|| digits_only(token)).flatten()
}
