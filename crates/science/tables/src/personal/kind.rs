//! The kinds of personal data.

use trackway_results::personal::PersonalKind;

/// How often a random text of the right form passes the check.
#[must_use]
pub(super) fn random_match_fraction(kind: PersonalKind) -> f64 {
    match kind {
        PersonalKind::PaymentCard | PersonalKind::NationalId => 0.1,
        PersonalKind::Iban => 0.01,
        PersonalKind::Email
        | PersonalKind::Phone
        | PersonalKind::IpAddress
        | PersonalKind::PersonName
        | PersonalKind::BirthDate => 0.0,
    }
}

/// What one token looks like, and whether it passes the checks of that kind; `None`: it is not of the form.
pub(super) type TokenKind = Option<(PersonalKind, bool)>;

/// Something that looks like personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonalMatch<'t> {
    /// What it looks like.
    pub kind: PersonalKind,
    pub text: &'t str,
    /// Whether it passes the checks of its kind.
    pub valid: bool,
}
