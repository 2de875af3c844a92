//! Addresses: e-mail, phone, IP.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::scan::{PersonalKind, PersonalMatch};

type Judged = Option<(PersonalKind, bool)>;

/// The longest name and the longest domain of an e-mail address (RFC 5321, 4.5.3.1).
const NAME_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 255;

/// Every `name@domain.tld` of a text.
pub(super) fn emails<'t>(text: &'t str, found: &mut dyn FnMut(PersonalMatch<'t>)) {
    let bytes = text.as_bytes();
    for at in memchr::memchr_iter(b'@', bytes) {
        let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-'".contains(byte);
        let name = bytes[..at].iter().rev().take(NAME_BYTES_MAX + 1).take_while(|byte| in_name(byte)).count();
        let in_domain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
        let domain = bytes[at + 1..].iter().take(DOMAIN_BYTES_MAX).take_while(|byte| in_domain(byte)).count();
        // A full stop may end the sentence instead.
        let domain = text[at + 1..at + 1 + domain].trim_end_matches(['.', '-']);
        let name_fits =
            (1..=NAME_BYTES_MAX).contains(&name) && bytes[at - name] != b'.' && bytes[at - 1] != b'.';
        if name_fits && is_domain(domain) {
            let text = &text[at - name..at + 1 + domain.len()];
            found(PersonalMatch { kind: PersonalKind::Email, text, valid: true });
        }
    }
}

fn is_domain(domain: &str) -> bool {
    let labels: Vec<&str> = domain.split('.').collect();
    let label_fits =
        |label: &&str| (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
    let top_fits = |top: &&str| {
        (2..=24).contains(&top.len())
            && (top.bytes().all(|byte| byte.is_ascii_alphabetic()) || top.starts_with("xn--"))
    };
    labels.len() >= 2 && labels.iter().all(label_fits) && labels.last().is_some_and(top_fits)
}

/// A phone number: `+` and 8 to 15 digits (E.164), or the North American form with separators. Digits alone may be
/// anything.
pub(super) fn phone(token: &str) -> Judged {
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

/// A public IP address. Private, local and documentation ranges point to nobody.
pub(super) fn ip_address(token: &str) -> Judged {
    let public = if let Ok(four) = token.parse::<Ipv4Addr>() {
        let nobody = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_unspecified();
        !(nobody
            || four.is_broadcast()
            || four.is_documentation()
            || four.is_multicast()
            || four.octets()[0] == 0)
    } else {
        let six: Ipv6Addr = token.parse().ok().filter(|_| token.matches(':').count() >= 2)?;
        let nobody = six.is_loopback() || six.is_unspecified() || six.is_multicast();
        // 2000::/3 is what is routed.
        !nobody && six.segments()[0] & 0xe000 == 0x2000
    };
    public.then_some((PersonalKind::IpAddress, true))
}
