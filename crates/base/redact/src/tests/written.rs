//! Secrets as programs, documents and commands write them (`written.json`; `§` is the secret), and what only looks like them.

use std::collections::BTreeMap;

use crate::*;

/// Of generated values of other shapes each.
const VALUES: [&str; 4] = [
    "q7Rk2ZpL9vXw4TnB8sHd3Y",
    "Mw5tYc8KeJ2hUf6GbN1xAq",
    "0aV3mS7dLkP5rWzT9uEi",
    "hX4nQ8bJ2vRt6yKf0ZsC3gDm7pWl1aTe",
];

fn forms() -> BTreeMap<String, Vec<String>> {
    serde_json::from_str(include_str!("written.json")).unwrap()
}

fn by_lines(redactor: &Redactor, text: &str) -> String {
    let (mut clean, mut stream) = (Vec::new(), redactor.stream());
    for line in text.split_inclusive('\n') {
        stream.push(line.as_bytes(), &mut clean);
        stream.flush(&mut clean);
    }
    stream.finish(&mut clean);
    String::from_utf8(clean).unwrap()
}

/// Proves that what is assigned to the name of a secret is found in each of the languages, and what is beside it in
/// documents and commands, and that it is in a stream of lines, too, but for a value before its name.
#[test]
fn written_secrets_are_found() {
    let redactor = Redactor::of_shapes();
    let mut missed = Vec::new();
    for (group, forms) in forms().into_iter().filter(|(group, _)| group != "stay") {
        for (form, value) in forms.iter().flat_map(|form| VALUES.map(|value| (form, value))) {
            let text = form.replace('§', value);
            let prefixed: String = text.lines().map(|line| format!("+{line}\n")).collect();
            let mut ways = vec![
                ("text", redactor.text(&text).into_owned()),
                ("difference", redactor.text(&prefixed).into_owned()),
            ];
            if !form.contains("§\",\n  \"name\"") {
                ways.push(("stream", by_lines(&redactor, &text)));
            }
            ways.retain(|(_, clean)| clean.contains(&value[value.len() - 8..]));
            missed.extend(ways.into_iter().map(|(way, clean)| format!("{group}, {way}: {clean:?}")));
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Proves that ordinary code, configurations and logs stay as they are.
#[test]
fn what_is_written_without_secrets_stays() {
    let redactor = Redactor::of_shapes();
    let taken: Vec<String> = forms()["stay"]
        .iter()
        .map(|text| redactor.text(text))
        .zip(&forms()["stay"])
        .filter(|(clean, text)| clean != *text)
        .map(|(clean, _)| clean.into_owned())
        .collect();
    assert!(taken.is_empty(), "{taken:#?}");
}

/// Proves that of a private key without its first line nothing is left, in one line and in many, and that what follows stays.
#[test]
fn bodies_of_keys_are_found() {
    let redactor = Redactor::of_shapes();
    let line = "9w0vY2Kd7sXq4TnB8sHd3YpL9vXw4TnB8sHd3Yq7Rk2ZpL9vXw4TnB8sHd3YaBcD";
    for begin in ["MIIEpAIBAAKCAQEA", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"] {
        let first = format!("{begin}{}", &line[begin.len()..]);
        let lines = format!("{first}\n{line}\n{line}\nq7Rk2Z==\n");
        let blocks = [
            format!("key={first}{line}{line}\nepoch 3\n"),
            format!("private_key: |\n  {}epoch 3\n", lines.trim_end().replace('\n', "\n  ") + "\n"),
            format!("{lines}epoch 3\n"),
            format!("{{\"key\": \"{}\", \"x\": 1}}\nepoch 3\n", lines.replace('\n', "\\n")),
        ];
        for block in blocks {
            for clean in [redactor.text(&block).into_owned(), by_lines(&redactor, &block)] {
                assert!(!clean.contains("sHd3Y"), "{clean}");
                assert!(clean.ends_with("epoch 3\n"), "{clean}");
            }
        }
    }
}

/// Proves that the password of a command that logs in is taken out of its arguments, and ports and names are not.
#[test]
fn arguments_of_commands_that_log_in_are_known() {
    let redactor = Redactor::of_shapes();
    let clean = |words: &str| {
        let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
        redactor.argv(&argv).join(" ")
    };
    let value = VALUES[0];
    assert_eq!(
        clean(&format!("docker login -u ana -p {value} host")),
        "docker login -u ana -p [redacted:named] host"
    );
    assert_eq!(clean(&format!("/usr/bin/mysql -p{value} shop")), "/usr/bin/mysql -p[redacted:named] shop");
    for words in ["mysql -p shop_2024 x", "ssh -p 2222 host", "train -p q7Rk2ZpL9vXw4TnB8sHd3Y"] {
        assert_eq!(clean(words), words);
    }
}

/// Proves that all values of a column with the name of a secret are hidden, those of a vocabulary where they were
/// generated, and measures are not.
#[test]
fn cells_are_known_by_their_column() {
    let redactor = Redactor::of_shapes();
    for column in
        ["password", "api_key", "pw", "secret", "user_password", "passwords", "Password2", "password_hash"]
    {
        assert_eq!(redactor.cell(column, "tulip"), "[redacted:named]", "{column}");
    }
    assert_eq!(redactor.cell("token", VALUES[0]), "[redacted:named]");
    for column in ["token", "password_strength", "has_password", "num_api_keys", "secretary", "key"] {
        assert_eq!(redactor.cell(column, "tulip"), "tulip", "{column}");
    }
}
