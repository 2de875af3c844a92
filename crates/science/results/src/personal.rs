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
}
