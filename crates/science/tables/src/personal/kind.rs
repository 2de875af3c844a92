//! The kinds of personal data.

use trackway_core::closed_list;

closed_list!(
    /// What kind of personal data.
    PersonalKind, "kind of personal data", {
        /// An e-mail address.
        Email = "email",
        /// A phone number with a country code, or in North American form.
        Phone = "phone",
        /// A payment card number that passes Luhn's check.
        PaymentCard = "payment_card",
        /// An IBAN that passes its check.
        Iban = "iban",
        /// A national number (tax, insurance, citizen) that passes the check of its country.
        NationalId = "national_id",
        /// A public IPv4 or IPv6 address.
        IpAddress = "ip_address",
        /// The name of a person, by the column's header and the shape of its values.
        PersonName = "person_name",
        /// A date of birth, by the column's header and its dates.
        BirthDate = "birth_date",
    }
);

impl PersonalKind {
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
    pub text: &'t str,
    /// Whether it passes the checks of its kind.
    pub valid: bool,
}
