//! Addresses: e-mail, phone, IP.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::PersonalKind;
use super::kind::{PersonalMatch, TokenKind};

/// The longest name and the longest domain of an e-mail address (RFC 5321, 4.5.3.1).
const NAME_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 255;

/// Every `name@domain.tld` of a text, international ones (RFC 6531) and quoted names (RFC 5321, 4.1.2) among them.
pub(super) fn emails<'t>(text: &'t str, found: &mut dyn FnMut(PersonalMatch<'t>)) {
    for at in memchr::memchr_iter(b'@', text.as_bytes()) {
        let domain = domain_after(&text[at + 1..]);
        if let Some(name) = name_before(&text[..at]).filter(|_| is_domain(domain)) {
            let text = &text[at - name.len()..at + 1 + domain.len()];
            found(PersonalMatch { kind: PersonalKind::Email, text, valid: true });
        }
    }
}

/// The name that a text ends with.
fn name_before(text: &str) -> Option<&str> {
    if let Some(before) = text.strip_suffix('"') {
        return quoted_before(text, before);
    }
    let in_name = |letter: char| is_letter(letter) || "._%+-'".contains(letter);
    let letters = text.chars().rev().take(NAME_BYTES_MAX + 1).take_while(|letter| in_name(*letter));
    let name = &text[text.len() - letters.map(char::len_utf8).sum::<usize>()..];
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && !name.ends_with('.');
    fits.then_some(name)
}

/// The quoted name that `text` ends with; `before` is `text` without the closing quote.
fn quoted_before<'t>(text: &'t str, before: &'t str) -> Option<&'t str> {
    let letters = before.char_indices().rev().take(NAME_BYTES_MAX);
    let is_open = |at: usize| before.as_bytes()[at] == b'"' && !before[..at].ends_with('\\');
    let open = letters.map(|(at, _)| at).find(|at| is_open(*at))?;
    let name = &text[open..];
    // A quote within a word is an apostrophe or the end of another string.
    let is_separate = !before[..open].ends_with(char::is_alphanumeric);
    let fits = (3..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control);
    (is_separate && fits).then_some(name)
}

/// The letters of a domain that a text begins with. A full stop may end the sentence instead.
fn domain_after(text: &str) -> &str {
    let in_domain = |letter: char| is_letter(letter) || ".-".contains(letter);
    let letters = text.chars().take(DOMAIN_BYTES_MAX).take_while(|letter| in_domain(*letter));
    text[..letters.map(char::len_utf8).sum::<usize>()].trim_end_matches(['.', '-'])
}

/// A letter or digit of any script, and the marks that go onto one; not the full stops of Indic scripts.
fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric()
        || matches!(letter, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{963}' | '\u{966}'..='\u{eff}')
}

fn is_domain(domain: &str) -> bool {
    let labels: Vec<&str> = domain.split('.').collect();
    let label_fits = |label: &&str| {
        (1..=63).contains(&label.chars().count()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let top_fits = |top: &&str| {
        let ascii = (2..=24).contains(&top.len())
            && (top.bytes().all(|byte| byte.is_ascii_alphabetic()) || top.starts_with("xn--"));
        ascii || (!top.is_ascii() && TOPS.contains(top))
    };
    labels.len() >= 2 && labels.iter().all(label_fits) && labels.last().is_some_and(top_fits)
}

/// Top-level domains in other scripts. Scripts without blanks between words would make addresses of sentences if any
/// word could be one.
///
/// Source: IANA's root zone database, the countries and the larger generic ones.
#[rustfmt::skip]
const TOPS: &[&str] = &[
    "рф", "рус", "укр", "бел", "бг", "срб", "мкд", "мон", "қаз", "москва", "онлайн", "сайт", "орг", "ком", "дети",
    "ευ", "ελ", "հայ", "გე", "ישראל",
    "中国", "中國", "台湾", "台灣", "香港", "澳门", "澳門", "新加坡", "公司", "网络", "网址", "网站", "在线", "中文网",
    "机构", "商城", "移动", "集团", "世界", "한국", "닷컴", "닷넷", "みんな", "コム",
    "ไทย", "ລາວ", "भारत", "भारतम्", "বাংলা", "ভারত", "இந்தியா", "இலங்கை", "சிங்கப்பூர்", "ලංකා", "భారత్", "ਭਾਰਤ", "ભારત",
    "ಭಾರತ", "ഭാരതം", "ଭାରତ", "संगठन", "नेट", "कॉम",
    "السعودية", "امارات", "مصر", "قطر", "الاردن", "الجزائر", "المغرب", "تونس", "عمان", "فلسطين", "ایران", "پاکستان",
    "عراق", "سورية", "سودان", "مليسيا", "اليمن", "بھارت", "موريتانيا", "البحرين", "شبكة", "موقع", "بازار",
];

/// A phone number: `+` and 8 to 15 digits (E.164), or the North American form with separators. Digits alone may be
/// anything.
pub(super) fn phone(token: &str) -> TokenKind {
    let digits: Vec<u8> = token.bytes().filter(u8::is_ascii_digit).collect();
    let plain = token.bytes().all(|byte| byte.is_ascii_digit() || b"+ .-()/".contains(&byte));
    let plus = token.starts_with('+')
        && token.rfind('+') == Some(0)
        && token.as_bytes().get(1).is_some_and(|it| (b'1'..=b'9').contains(it));
    let international = plus && (8..=15).contains(&digits.len());
    let fits = plain && (international || is_north_american(token));
    fits.then_some((PersonalKind::Phone, true))
}

/// `(212) 555-0123`, `212-555-0123`, `212.555.0123`: area and exchange begin with 2 to 9.
fn is_north_american(token: &str) -> bool {
    let inner = token.strip_prefix('(').unwrap_or(token).replacen(") ", ")", 1);
    let parts: Vec<&str> = inner.split([')', '-', '.']).collect();
    let sizes: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let digits = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let leads = |part: &str| part.as_bytes().first().is_some_and(|byte| (b'2'..=b'9').contains(byte));
    digits && sizes == [3, 3, 4] && leads(parts[0]) && leads(parts[1])
}

/// A public IP address. Private, local and documentation ranges identify no person.
pub(super) fn ip_address(token: &str) -> TokenKind {
    let public = if let Ok(four) = token.parse::<Ipv4Addr>() {
        let local = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_unspecified();
        !(local
            || four.is_broadcast()
            || four.is_documentation()
            || four.is_multicast()
            || four.octets()[0] == 0)
    } else {
        let six: Ipv6Addr = token.parse().ok().filter(|_| token.matches(':').count() >= 2)?;
        let local = six.is_loopback() || six.is_unspecified() || six.is_multicast();
        // 2000::/3 is what is routed.
        !local && six.segments()[0] & 0xe000 == 0x2000
    };
    public.then_some((PersonalKind::IpAddress, true))
}
