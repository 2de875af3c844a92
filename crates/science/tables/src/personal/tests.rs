use proptest::prelude::*;
use trackway_core::{Rng, SplitMix64};

use super::*;

fn found(text: &str) -> Vec<(PersonalKind, String, bool)> {
    let mut all = Vec::new();
    scan_text(text, &mut |it| all.push((it.kind, it.text.to_owned(), it.valid)));
    all
}

fn valid(text: &str) -> Option<PersonalKind> {
    found(text).into_iter().find(|it| it.2).map(|it| it.0)
}

/// Proves that the published test numbers of each kind are found, alone and within a sentence.
#[test]
fn what_is_personal() {
    use PersonalKind::{Email, Iban, IpAddress, NationalId, PaymentCard, Phone};
    let cases = [
        (Email, "ana.b+c@mail.example.org"),
        (Email, "o'neill@sub.example.co.uk"),
        (Email, "ünï@exämple.de"),
        (Email, "u\u{308}ni@example.org"),
        (Email, "ana@xn--exmple-cua.de"),
        (Email, "иван@пример.рф"),
        (Email, "用户@例子.公司"),
        (Email, "उपयोगकर्ता@उदाहरण.भारत"),
        (Email, "\"ana berg\"@example.org"),
        (Email, "\"a@b\"@example.org"),
        (Phone, "+49 30 901820"),
        (Phone, "+1 (212) 555-0123"),
        (Phone, "(212) 555-0123"),
        (Phone, "212-555-0123"),
        (PaymentCard, "4111111111111111"),
        (PaymentCard, "5500 0000 0000 0004"),
        (PaymentCard, "3400-000000-00009"),
        (PaymentCard, "6011000000000004"),
        (Iban, "DE89370400440532013000"),
        (Iban, "GB29 NWBK 6016 1331 9268 19"),
        (Iban, "FR1420041010050500013M02606"),
        (NationalId, "078-05-1120"),
        (NationalId, "AB123456C"),
        (NationalId, "12345678Z"),
        (NationalId, "X1234567L"),
        (NationalId, "RSSMRA85T10A562S"),
        (NationalId, "111.444.777-35"),
        (NationalId, "255081416802538"),
        (NationalId, "11010519491231002X"),
        (NationalId, "44051401359"),
        (NationalId, "86095742719"),
        (NationalId, "811228-9874"),
        (NationalId, "2341 2341 2346"),
        (IpAddress, "8.8.8.118"),
        (IpAddress, "203.1.113.77"),
        (IpAddress, "2a00:1450:4001:81b::200e"),
    ];
    for (kind, text) in cases {
        assert_eq!(valid(text), Some(kind), "{text}: {:?}", found(text));
        let sentence = format!("He wrote: {text}, and more");
        assert_eq!(valid(&sentence), Some(kind), "{sentence}: {:?}", found(&sentence));
    }
}

/// Proves that what only looks similar is not taken for personal data.
#[test]
fn what_is_not() {
    let cases = [
        "",
        "2021-03-04 12:30:59",
        "1999/12/31",
        "1,234,567.89",
        "0.123456789",
        "-12.345678",
        "192.168.10.117",
        "127.0.0.1",
        "10.20.30.40",
        "version 1.22.333",
        "4111111111111112",
        "DE89370400440532013001",
        "000-12-3456",
        "666-12-3456",
        "12345678A",
        "a@b",
        "user@localhost",
        "@name",
        "trackway@",
        "übung@übung",
        "今天@小明.一起去",
        "\"chat\"@fr .",
        "@dataclass.field",
        "\"\"@example",
        "preis@ 3.50",
        "1e-10 2e-20 3e-30",
        "550e8400-e29b-41d4-a716-446655440000",
        "12:34:56:78",
        "1234567890",
        "3.14159265358979",
        "9999999999999999",
        "111.111.111-11",
        "100-200-3000",
    ];
    for text in cases {
        assert_eq!(valid(text), None, "{text}: {:?}", found(text));
    }
}

/// Proves that numbers that pass a check by coincidence are not taken for cards or national numbers, and real ones are.
#[test]
fn cards_are_distinguished_from_random_numbers() {
    let mut rng = SplitMix64::new(5);
    let (mut random, mut real) = (PersonalCounts::default(), PersonalCounts::default());
    for _ in 0..5_000 {
        let number = 4_000_000_000_000_000 + rng.next_u64() % 1_000_000_000_000_000;
        random.observe(&number.to_string(), 1);
        random.observe(&(10_000_000_000 + rng.next_u64() % 80_000_000_000).to_string(), 1);
        let with_check = (0..10).map(|last| (number / 10 * 10 + last).to_string());
        let card = with_check.into_iter().find(|text| valid(text).is_some()).unwrap();
        real.observe(&card, 1);
    }
    assert_eq!(random.findings(), []);
    let findings = real.findings();
    assert_eq!((findings[0].kind, findings[0].count), (PersonalKind::PaymentCard, 5_000));
    let mut one = PersonalCounts::default();
    one.observe("write to ana@example.org", 3);
    let mut other = PersonalCounts::default();
    other.observe("nothing", 1);
    other.merge(one);
    assert_eq!((other.findings()[0].count, other.findings()[0].per_value), (3, 0.75));
}

/// Proves that examples do not reveal what was found.
#[test]
fn examples_are_masked() {
    let masked = |text: &str| {
        let mut all = Vec::new();
        scan_text(text, &mut |it| all.push(mask(&it)));
        all.join(" ")
    };
    assert_eq!(masked("ana.berg@example.org"), "a…@e…g");
    assert_eq!(masked("ünï@exämple.de"), "ü…@e…e");
    assert_eq!(masked("\"a@b\"@example.org"), "\"…@e…g");
    assert_eq!(masked("t.csv:7  +49 30 901820: 0.5000 of 100 rows"), "+4…20");
    assert_eq!(masked("t.csv:7  4111111111111111"), "41…11");
    assert_eq!(masked("4111 1111 1111 1111"), "41…11");
    assert_eq!(masked("+49 30 901820"), "+4…20");
}

/// Proves that strings of a document are masked, keys too, and that the rest of it stays.
#[test]
fn documents_are_masked() {
    let document = "{\n  \"a \\\"x\\\" ana@example.org\": [1.50, \"é\", \"4111111111111111\"]\n}";
    let hidden = "{\n  \"a \\\"x\\\" a…@e…g\": [1.50, \"é\", \"41…11\"]\n}";
    assert_eq!(masked_json(document), hidden);
    let document = "[\"ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 ana@example.org\"]";
    assert_eq!(masked_json(document), "[\"[redacted:github-token] a…@e…g\"]", "secrets too");
}

proptest! {
    /// Proves that no text makes the scanner panic, and that what it finds is in the text.
    #[test]
    fn any_text(text in "\\PC{0,80}") {
        for (_, part, _) in found(&text) {
            prop_assert!(text.contains(&part));
        }
    }

    /// Proves the same for texts near to what it looks for.
    #[test]
    fn near_texts(text in "[0-9A-FXYZ+() .:/@ß-]{0,60}") {
        for (_, part, _) in found(&text) {
            prop_assert!(text.contains(&part));
        }
    }
}
