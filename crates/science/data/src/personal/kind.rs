//! The kinds of personal data.

use serde::{Deserialize, Serialize};

/// What kind of personal data.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PersonalKind {
    /// An e-mail address.
    Email,
    /// A phone number with a country code, or in North American form.
    Phone,
    /// A payment card number that passes Luhn's check.
    PaymentCard,
    /// An IBAN that passes its check.
    Iban,
    /// A national number (tax, insurance, citizen) that passes the check of its country.
    NationalId,
    /// A public IPv4 or IPv6 address.
    IpAddress,
    /// The name of a person, by the column's header and the shape of its values.
    PersonName,
    /// A date of birth, by the column's header and its dates.
    BirthDate,
}

impl PersonalKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Email,
        Self::Phone,
        Self::PaymentCard,
        Self::Iban,
        Self::NationalId,
        Self::IpAddress,
        Self::PersonName,
        Self::BirthDate,
    ];

    /// Its name in settings and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::PaymentCard => "payment_card",
            Self::Iban => "iban",
            Self::NationalId => "national_id",
            Self::IpAddress => "ip_address",
            Self::PersonName => "person_name",
            Self::BirthDate => "birth_date",
        }
    }

    /// The kind that is called this.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What a person calls it, in the plural.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Email => "e-mail addresses",
            Self::Phone => "phone numbers",
            Self::PaymentCard => "payment card numbers",
            Self::Iban => "IBANs",
            Self::NationalId => "national identity numbers",
            Self::IpAddress => "IP addresses",
            Self::PersonName => "names of persons",
            Self::BirthDate => "dates of birth",
        }
    }

    /// How often a random text of the right form passes the check.
    #[must_use]
    pub(super) fn random_match_fraction(self) -> f64 {
        match self {
            Self::PaymentCard | Self::NationalId => 0.1,
            Self::Iban => 0.01,
            Self::Email | Self::Phone | Self::IpAddress | Self::PersonName | Self::BirthDate => 0.0,
        }
    }
}

/// Something that looks like personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonalMatch<'t> {
    /// What it looks like.
    pub kind: PersonalKind,
    /// The matched text.
    pub text: &'t str,
    /// Whether it passes the checks of its kind.
    pub valid: bool,
}
