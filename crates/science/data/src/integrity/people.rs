//! Names of persons and dates of birth: recognised by a column's header together with the shape of its values.
//!
//! No list of names is needed: a header says whose names, or whose birth, a column holds, and the shape of its values
//! whether it does. `name` alone may name anything; it counts where values are several words, mostly different, and the
//! table describes persons.

use trackway_core::Timestamp;
use trackway_tables::ColumnType;
use trackway_tables::personal::{PersonalFinding, PersonalKind};
use trackway_tables::profile::ColumnProfile;

use super::TableEvidence;
use crate::values::identifier::words_of;

/// Words that say by themselves that a column holds names of persons.
const NAMES: [&str; 34] = [
    "firstname", "lastname", "fullname", "surname", "forename", "givenname", "familyname", "middlename",
    "maidenname", "vorname", "nachname", "familienname", "prenom", "prénom", "apellido", "apellidos",
    "cognome", "sobrenome", "imię", "imie", "nazwisko", "voornaam", "achternaam", "förnamn", "efternamn",
    "fornavn", "etternavn", "efternavn", "фамилия", "отчество", "姓名", "氏名", "이름", "성명",
];

/// Words for a name, which may be that of anything.
const NAME: [&str; 8] = ["name", "names", "nom", "nombre", "nome", "naam", "navn", "имя"];

/// Words that, before a word for a name, make it one of a person.
const OF_PERSONS: [&str; 38] = [
    "first", "last", "given", "family", "full", "middle", "maiden", "legal", "birth", "person", "customer",
    "client", "patient", "employee", "user", "contact", "student", "pupil", "teacher", "author", "applicant",
    "candidate", "member", "holder", "cardholder", "defendant", "victim", "doctor", "physician", "passenger",
    "guest", "tenant", "driver", "recipient", "sender", "subscriber", "worker", "kunde",
];

/// Words of columns that describe persons.
const PERSONS: [&str; 12] = [
    "age", "sex", "gender", "surname", "dob", "birth", "alter", "geschlecht", "sexe", "sexo", "edad",
    "genero",
];

/// Words for a birth; a column is one of dates of birth only if its values are such dates.
const BIRTH: [&str; 21] = [
    "dob", "birth", "birthday", "birthdate", "dateofbirth", "born", "geburtstag", "geburtsdatum", "geburt",
    "naissance", "nacimiento", "nascita", "nascimento", "urodzenia", "geboortedatum", "fødselsdato",
    "födelsedatum", "syntymäaika", "рождения", "生年月日", "出生日期",
];

/// Values must have the shape, but for so many.
const SHAPED_SHARE_MIN: f64 = 0.9;

/// Where the header says little, so many of the values are of several words, and as many are different.
const SEVERAL_WORDS_SHARE_MIN: f64 = 0.8;
const DIFFERENT_SHARE_MIN: f64 = 0.5;

/// Spaces within a name.
const SPACES_MAX: usize = 5;

/// How long ago persons were born, in years.
const BORN_YEARS: std::ops::RangeInclusive<f64> = 5.0..=110.0;
const YEAR_MICROS: f64 = 365.2425 * 86_400e6;

/// Names and dates of birth, each with the index of its column.
pub(super) fn of_people(evidence: &TableEvidence, now: Timestamp) -> Vec<(usize, PersonalFinding)> {
    found_in(&evidence.profile.columns, Some(now))
}

/// The columns that hold names of persons, by their index.
pub(crate) fn names_of_persons(columns: &[ColumnProfile]) -> Vec<usize> {
    found_in(columns, None).into_iter().map(|(index, _)| index).collect()
}

/// Dates of birth only where it is known what day it is.
fn found_in(columns: &[ColumnProfile], now: Option<Timestamp>) -> Vec<(usize, PersonalFinding)> {
    let headers: Vec<Vec<String>> = columns.iter().map(|column| words_of(&column.name)).collect();
    let describes_persons = headers.iter().flatten().any(|word| PERSONS.contains(&word.as_str()));
    let halves = ["first", "last"].map(|half| headers.iter().any(|words| words == &[half])) == [true; 2];
    let mut found = Vec::new();
    for (index, (column, words)) in columns.iter().zip(&headers).enumerate() {
        let is_half = halves && words.len() == 1 && ["first", "last"].contains(&words[0].as_str());
        let shared = match said_by(words) {
            Some(Header::Name) => named(column),
            None if is_half => named(column),
            Some(Header::AnyName) if describes_persons => {
                named(column).filter(|_| has_several_words(column) && (halves || is_mostly_different(column)))
            }
            Some(Header::Birth) => now.and_then(|now| born(column, now)),
            _ => None,
        };
        let kind = match said_by(words) {
            Some(Header::Birth) => PersonalKind::BirthDate,
            _ => PersonalKind::PersonName,
        };
        found.extend(shared.map(|share| (index, finding(kind, column, share))));
    }
    found
}

fn finding(kind: PersonalKind, column: &ColumnProfile, share: f64) -> PersonalFinding {
    PersonalFinding {
        kind,
        count: (column.value_count() as f64 * share).round() as u64,
        per_value: share,
        masked_example: "…".to_owned(),
    }
}

/// What a header says.
enum Header {
    Name,
    /// A name, of whatever.
    AnyName,
    Birth,
}

fn said_by(words: &[String]) -> Option<Header> {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let ends = words.last().is_some_and(|last| NAME.contains(&last.as_str()));
    match words {
        _ if has(&NAMES) || (ends && words.len() > 1 && has(&OF_PERSONS)) => Some(Header::Name),
        [_] if ends => Some(Header::AnyName),
        _ if has(&BIRTH) => Some(Header::Birth),
        _ => None,
    }
}

/// The fraction of the shapes of a column's strings that pass.
fn shaped(column: &ColumnProfile, passes: impl Fn(&str) -> bool) -> f64 {
    let shapes = column.shapes();
    let all: u64 = shapes.iter().map(|(_, count)| count).sum();
    let passing: u64 = shapes.iter().filter(|(shape, _)| passes(shape)).map(|(_, count)| count).sum();
    passing as f64 / all.max(1) as f64
}

/// The fraction of values that are letters, as names are.
fn named(column: &ColumnProfile) -> Option<f64> {
    let is_name = |shape: &str| {
        let of_letters =
            shape.chars().all(|letter| letter == 'A' || letter == 'a' || " +-.,'’()\"…".contains(letter));
        of_letters && shape.contains(['A', 'a']) && shape.matches(' ').count() <= SPACES_MAX
    };
    let share = shaped(column, is_name);
    let is_text = column.kind == ColumnType::Text && column.summary().distinct_estimate > 1;
    (is_text && share >= SHAPED_SHARE_MIN).then_some(share)
}

fn has_several_words(column: &ColumnProfile) -> bool {
    shaped(column, |shape| shape.contains(' ')) >= SEVERAL_WORDS_SHARE_MIN
}

fn is_mostly_different(column: &ColumnProfile) -> bool {
    column.summary().distinct_estimate as f64 >= column.value_count() as f64 * DIFFERENT_SHARE_MIN
}

/// The fraction of values that are dates on which persons of today were born.
fn born(column: &ColumnProfile, now: Timestamp) -> Option<f64> {
    let now = now.as_micros() as f64;
    let is_plausible = |micros: f64| BORN_YEARS.contains(&((now - micros) / YEAR_MICROS));
    if column.kind == ColumnType::Timestamp {
        let ends = column.quantile_sketch()?.at(&[0.05, 0.95])?;
        return ends.into_iter().all(is_plausible).then_some(1.0);
    }
    let is_date = |shape: &str| {
        shape.chars().all(|letter| letter == '9' || "/.-".contains(letter))
            && shape.matches(['/', '.', '-']).count() == 2
    };
    let share = shaped(column, is_date);
    let years = column.top_values(100).into_iter().filter_map(|it| year_of(&it.value.to_string()));
    let years: Vec<f64> = years.collect();
    let of_year = |year: f64| is_plausible((year - 1970.0) * YEAR_MICROS);
    let plausible = years.iter().filter(|year| of_year(**year)).count() as f64;
    let are_born = !years.is_empty() && plausible >= years.len() as f64 * SHAPED_SHARE_MIN;
    (share >= SHAPED_SHARE_MIN && are_born).then_some(share)
}

/// The year of a date such as `18/04/1947`.
fn year_of(date: &str) -> Option<f64> {
    date.split(['/', '.', '-']).find(|part| part.len() == 4).and_then(|year| year.parse().ok())
}
