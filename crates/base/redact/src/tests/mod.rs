mod channels;
mod keys;
mod recall;
mod written;

use super::*;

/// Secrets of every kind, composed here so that no scanner takes this file for a leak.
fn planted() -> Vec<(&'static str, String)> {
    let filler = |count: usize| "a1B2c3D4e5".chars().cycle().take(count).collect::<String>();
    let hex = |count: usize| "0f1e2d3c4b".chars().cycle().take(count).collect::<String>();
    vec![
        ("aws-key", format!("AKI{}", "AIOSFODNN7EXAMPLE")),
        ("github-token", format!("ghp{}{}", "_", filler(36))),
        ("github-token", format!("github{}{}", "_pat_", filler(40))),
        ("gitlab-token", format!("glpat{}{}", "-", filler(20))),
        ("huggingface-token", format!("hf{}{}", "_", "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh")),
        ("anthropic-key", format!("sk{}{}", "-ant-api03-", filler(60))),
        ("openai-key", format!("sk{}{}", "-proj-", filler(48))),
        ("slack-token", format!("xox{}{}", "b-1234567890-", filler(24))),
        ("google-key", format!("AIz{}{}", "a", filler(35))),
        ("npm-token", format!("npm{}{}", "_", filler(36))),
        ("databricks-token", format!("dap{}{}", "i", hex(32))),
        ("nvidia-key", format!("nvapi{}{}", "-", filler(60))),
        ("jwt", format!("eyJ{}.eyJ{}.{}", filler(30), filler(60), filler(43))),
    ]
}

fn redactor() -> Redactor {
    Redactor::from_environment([
        ("DB_PASSWORD", "correct horse battery"),
        ("LAB_TOKEN", "plain-looking-value"),
        ("SHORT_KEY", "short"),
        ("EDITOR", "not-a-secret-at-all"),
        ("DATABASE_URL", "postgres://ana:swordfish-99@db/ledger"),
    ])
}

/// Proves that every kind of secret is found in plain text, in JSON, in an argument and in a URL.
#[test]
fn every_kind_is_found_in_every_place() {
    let redactor = redactor();
    for (kind, secret) in planted() {
        for text in [
            format!("using {secret} now"),
            format!("{{\"value\":\"{secret}\",\"step\":3}}"),
            format!("--x={secret}"),
            format!("https://host/path?x={secret}&y=1"),
        ] {
            let clean = redactor.text(&text);
            assert!(!clean.contains(&secret), "{kind}: {clean}");
            assert!(clean.contains(&format!("[redacted:{kind}]")), "{kind}: {clean}");
        }
    }
}

/// Proves that a file which begins as UTF-16 loses secrets in both encodings, and that the key of `kaggle.json` is
/// found by the name beside it.
#[test]
fn what_was_appended_in_another_encoding_is_searched() {
    let secret = format!("ghp{}{}", "_", "a1B2c3D4e5".repeat(4));
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mixed =
        [&[0xff, 0xfe][..], &wide(&format!("token {secret}\n")), format!("x {secret}\n").as_bytes()].concat();
    let clean = redactor().bytes(&mixed).into_owned();
    let is_in = |part: &[u8]| clean.windows(part.len()).any(|bytes| bytes == part);
    assert!(!is_in(secret.as_bytes()) && !is_in(&wide(&secret)), "{}", String::from_utf8_lossy(&clean));
    let key = "0f1e2d3c4b5a69780f1e2d3c4b5a6978";
    for text in [
        format!("{{\"username\":\"ana\",\"key\":\"{key}\"}}"),
        format!("{{'username': 'ana', 'key': '{key}'}}"),
    ] {
        assert!(!redactor().text(&text).contains(key), "{text}");
    }
    let digest = format!("{{\"file\":\"a\",\"key\":\"{key}\"}}");
    assert_eq!(redactor().text(&digest), digest);
}

/// Proves that a key whose end was cut off in its line loses what is left of it, and that what follows stays.
#[test]
fn a_key_that_was_cut_off_leaves_no_tail() {
    let body = "MIIEpAIBAAKCAQEA0aJzRBTltodYKPnKm2w9Dd";
    for between in ["", "\\n", " ", "\\r\\n"] {
        let text = format!(
            "`key` is `-----BEGIN RSA {} KEY-----{between}{body}{between}n{body}…` in all 50 rows",
            "PRIVATE"
        );
        assert_eq!(redactor().text(&text), "`key` is `[redacted:private-key]…` in all 50 rows", "{text}");
    }
    let text = format!("-----BEGIN {} KEY----- is how it begins", "PRIVATE");
    assert_eq!(redactor().text(&text), "[redacted:private-key] is how it begins");
}

/// Proves that a secret behind its length, as in a pickle or in MessagePack, is found, whatever letter the length is.
#[test]
fn a_length_before_a_secret_hides_nothing() {
    let secret = format!("ghp{}{}", "_", "a1B2c3D4e5".repeat(4));
    for before in [&b"\x8c\x2c"[..], b"\x8cl", b"\xd9A", b"\x12Z"] {
        let bytes = [b"\x80\x04}", before, secret.as_bytes(), b"\x94s."].concat();
        let clean = redactor().bytes(&bytes).into_owned();
        assert!(!clean.windows(secret.len()).any(|part| part == secret.as_bytes()), "{before:?}");
    }
    assert_eq!(redactor().text(&format!("x{secret}")), format!("x{secret}"));
}

/// Proves that the value behind the name of a secret is taken out of binary data: of pickles of each protocol, whatever
/// its length is, and of MessagePack, and that names beside each other stay.
#[test]
fn names_in_packed_bytes_are_seen() {
    for length in 8..60u8 {
        let value: Vec<u8> = b"Ot7er!".iter().copied().cycle().take(length.into()).collect();
        let (wide, short) = ([&b"X"[..], &[length, 0, 0, 0]].concat(), [0x8c, length]);
        for (begin, behind_name, end) in [
            (&b"\x80\x05}\x94\x8c\x08"[..], [&b"\x94"[..], &short].concat(), &b"\x94s."[..]),
            (b"\x80\x03}q\0X\x08\0\0\0", [&b"q\x01"[..], &wide].concat(), b"q\x02s."),
            (b"}q\0X\x08\0\0\0", [&b"q\x01"[..], &wide].concat(), b"q\x02s."),
            (b"(dp0\nV", b"\np1\nV".to_vec(), b"\np2\ns."),
            (b"\x81\xa8", vec![0xd9, length], b"\xc0"),
        ] {
            let bytes = [begin, b"password", &behind_name, &value, end].concat();
            let clean = redactor().bytes(&bytes).into_owned();
            let is_left = clean.windows(value.len()).any(|part| part == value);
            assert!(!is_left, "{length}: {}", String::from_utf8_lossy(&bytes));
        }
    }
    let text = [&b"\x8c\x0edb:5432:t:ana:"[..], b"a1B2c3D4\x94\x8c\x11the password is ", b"a1B2c3D4\x94\x8c"]
        .concat();
    let clean = redactor().bytes(&text).into_owned();
    assert!(!clean.windows(8).any(|part| part == b"a1B2c3D4"), "{}", String::from_utf8_lossy(&clean));
    let names = b"\x80\x04]\x94(\x8c\x08password\x94\x8c\x08username\x94\x8c\x06secret\x94K\x05e.";
    assert!(matches!(redactor().bytes(names), Cow::Borrowed(_)));
}

/// Proves that a redactor which gets no other secrets looks for them as before, and prepares nothing again, and that one
/// which gets some finds these too.
#[test]
fn nothing_new_is_prepared_once() {
    let redactor = Redactor::from_environment([("DB_PASSWORD", "correct-horse")]);
    let same = redactor.extended([("DB_PASSWORD", "correct-horse"), ("LANG", "en_US.UTF-8")]);
    assert!(Arc::ptr_eq(&redactor.search, &same.search));
    let more = redactor.extended([("LAB_PASSWORD", "battery-staple")]);
    let text = "correct-horse battery-staple";
    assert_eq!(more.text(text), "[redacted:environment] [redacted:environment]");
    assert_eq!(same.text(text), "[redacted:environment] battery-staple");
}

/// Proves that code, sentences and tables which only look like those with secrets stay.
#[test]
fn what_only_looks_like_a_secret_stays() {
    for text in [
        "def login(user: str, password: str) -> bool:",
        "fn check(password: &mut Password2, secret: &[u8]) -> Result<Secret, Error2>",
        "fn of(secret: &Secret) { secret->value2(); }",
        "loss: 0.5\ntoken_count: 1200\nkey: value\n",
        "tokens:\n  train: 12000\n  test: 800\n",
        "password:\n  min_length: 8\n",
        "the password is required; the token is invalid; the passphrase is sha256-hashed",
        "[sudo] password for ana: \nSorry, try again.\n",
        "PASSWORD = (\n    get_password()\n)\n",
        "secrets = [\n    load(name)\n    for name in names\n]\n",
        "impl From<UnixCredentials> for libc::ucred {",
        "pattern = r'(?P<password>[^/]*)@'",
        "columns: user, password, age\n1, 2, 3\n",
        "id,token_count\n1,120034\n",
        "pass: 0.5 fail: 12  pass=17",
        "s/(a)(b)/$1$2/; $6$ is the mark of a hash",
        "http://host/list?key=name&sort=up",
        "AUTH=basic PW= auth=(user, password)",
        "hub_token=None, hub_private_repo=False",
        "hub_token=None,hub_private_repo=False,api_key=None)",
        "def build(api_key=None, hub_token=None, seed=0)",
        "{\"hub_token\": null, \"api_key\": null, \"acc\": 0.5}",
        "api_key=True, secret=False, password=undefined, api_key=NULL; secret=..., password=\"\", x=1",
        "password: Optional[str] = None",
        "api_key = os.environ[\"X\"]",
        "api_key = os.environ[\"OPENAI_API_KEY\"]",
        "api_key=os.getenv('OPENAI_API_KEY'),",
        "    api_key=args.api_key,\n    api_key=self.api_key,\n",
        "connect(password=cfg.db.password)",
        "self.password = cfg.password; self.user = cfg.user",
        "password: SecretStr = Field(...)",
        "password: SecretStr\n",
        "api_key: !ENV ${OPENAI_API_KEY}",
        "api_key=OPENAI_API_KEY, api_key: ${OPENAI_API_KEY}",
        "Client(api_key=a.api_key, model=\"x\")",
        "password: 0.93 f1, secret: 0.88 f1",
        "loss_pw: 0.31 acc_pw=0.55 rmse_pw=0.3123 lr_pwd=0.001 auc_pw=0.9123456 lr_pw=1e-05",
        "{\"loss_pw\":0.31}",
        "{\"loss_pw\":0.31,\"step\":3}",
        "loss_pw=0.3123,acc=0.5012,epoch=3",
        "cache_key: imagenet1k_train_224px_v2",
        "monitor_key: val_acc_top1_ema2",
        "sort_key=val_loss_epoch12_seed3",
        "best_key: eval_rouge1_fmeasure_2k",
        "primary_key=user_id_2023_hash",
        "partition_key=2024_01_01_shard_0012",
        "cache_key=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "{\"cache_key\": \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}",
        "top tokens: transformers4rec, pytorch2onnx",
        "sk-learn-contrib-py310-cpu-build7a9",
        "Client(api_key=api_key, hub_token=token)",
        "self.api_key = api_key",
        "api_key = api_key or os.getenv(\"OPENAI_API_KEY\", None)",
        "self.hub_token = kwargs.pop(\"hub_token\", None)",
        "api_key=config['api_key'],",
        "if api_key == None:",
        "train.py --lr_pwd 0.001",
        "password:\n  0.93\n",
    ] {
        assert_eq!(redactor().text(text), text);
    }
}

/// Proves that the forms of secrets that take several lines are found where they arrive line by line, and each item of a list.
#[test]
fn values_below_their_names_are_found_in_streams() {
    let redactor = redactor();
    for text in [
        "tokens:\n  - a1B2c3D4e5f6G7h8\n  - b1B2c3D4e5f6G7h8\n  - c1B2c3D4e5f6G7h8\nend\n",
        "password: >-\n  a1B2c3D4\nend\n",
        "secret = \"\"\"\na1B2c3D4\"\"\"\nend\n",
        "PASSWORD = (\n    'a1B2c3D4'\n)\n",
        "api_key=\\\n  a1B2c3D4\nend\n",
        "variable \"db_password\" {\n  default = \"a1B2c3D4\"\n}\n",
        "user,password\nana,a1B2c3D4\nend\n",
    ] {
        for prefix in ["", "+", "10:12:01 INFO "] {
            let lines: Vec<String> = text.lines().map(|line| format!("{prefix}{line}\n")).collect();
            let (mut clean, mut stream) = (Vec::new(), redactor.stream());
            lines.iter().for_each(|line| stream.push(line.as_bytes(), &mut clean));
            stream.finish(&mut clean);
            let clean = String::from_utf8(clean).unwrap();
            assert!(!clean.contains("1B2c3D4"), "{clean}");
            assert_eq!(clean.lines().count(), lines.len(), "{clean}");
        }
    }
}

/// Proves that the values of `AUTH` and `PW` are secret unless they are words, that `PWD` is a folder, and that
/// commands lose what they are given.
#[test]
fn whole_names_and_commands_are_known() {
    let redactor = Redactor::from_environment([
        ("AUTH", "Saffron#Pebble56"),
        ("PW", "Mellow#Thicket78"),
        ("PWD", "/srv/project-17"),
        ("PASS", "disabled"),
    ]);
    assert_eq!(
        redactor.text("Saffron#Pebble56 Mellow#Thicket78 /srv/project-17 disabled"),
        "[redacted:environment] [redacted:environment] /srv/project-17 disabled"
    );
    let argv = [
        "aws", "set", "aws_secret_access_key", "wJalrXUtnFEMI/K7MDENG", "-passin", "pass:Otter77",
        "AUTH=basic",
    ];
    let clean = redactor.argv(&argv.map(String::from));
    assert_eq!(clean[3..], ["[redacted:named]", "-passin", "pass:[redacted:named]", "AUTH=basic"]);
}

/// Proves that passwords as people make them are found behind names that say little and in commands, and keys in the
/// forms of every service of one kind, and that paths, passes and sections without any stay.
#[test]
fn weak_names_and_forms_of_one_kind_are_known() {
    let redactor = Redactor::of_shapes();
    let (made, id) = ("hunterAAA1zz9", "3f1e2d3c-4b5a-4978-8f1e-2d3c4b5a6978");
    let (random, hex) = ("a1B2c3D4e5".repeat(4), "0f1e2d3c4b5a6978".repeat(2));
    let (random, hex) = (random.as_str(), hex.as_str());
    let teams = format!("https://lab.webhook.office.com/webhookb2/{id}@{id}/IncomingWebhook/{{}}/{id}");
    for (text, secret) in [
        ("[db]\npass = {}\n", made),
        ("db:\n  pwd: {}\n  x: 1\n", made),
        ("api:\n  key: {}\nmode: a\n", made),
        ("[api]\nurl = \"x\"\nkey = \"{}\"\n", made),
        (r#"{"pwd": "{}", "step": 1}"#, made),
        ("psk=\"{}\"", made),
        ("unzip -P {} a.zip", made),
        ("['unzip', '-P', '{}', 'a.zip']", made),
        ("7z x -p{} a.7z", made),
        ("dvc remote modify --local s3 secret_access_key {}", made),
        ("#db.example.org:5432:runs:lab:{}", made),
        ("Authorization: GenieKey {}", id),
        ("Authorization: Unheard-Of {}", random),
        ("https://d1.cloudfront.net/a?Expires=1&Signature={}&Key-Pair-Id=K1", random),
        ("https://api.netlify.com/build_hooks/{}", &hex[..24]),
        (teams.as_str(), hex),
        ("x rpa_{} y", random),
        ("x napi_{} y", random),
        ("client-key-data: {}", random),
    ] {
        let clean = redactor.text(&text.replace("{}", secret)).into_owned();
        assert!(!clean.contains(secret), "{clean}");
    }
    let argv = ["unzip", "-P", random, "a.zip"].map(String::from);
    assert_eq!(redactor.argv(&argv), ["unzip", "-P", "[redacted:named]", "a.zip"]);
    for text in [
        "pass: 17 of 20\n",
        "pass: FuseConv2D\n",
        "pwd = /home/Ana1/run\n",
        "pwd: ${HOME}/Run1\n",
        "api:\n  key: user_id2\n",
        "[auth]\nkey = \"column3\"\n",
        "modulation: QPSK16, psk: 8\n",
        "unzip -p archive.zip a1.txt",
        "Authorization: see https://docs.example.org/auth2",
        "f(x, signature=serving_default_classification_head2)",
        "napi_create_external_arraybuffer up_blocks_3_attentions_2_transformer",
        "dvc remote modify s3 endpointurl https://minio.example.org:9000",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}

/// Proves that a number is a secret only where the environment has one that is written like a number.
#[test]
fn a_number_is_rarely_a_secret() {
    assert!(!redactor().is_number_secret(12_345_678.0));
    let pin = Redactor::from_environment([("VAULT_PASSWORD", "12345678")]);
    assert!(pin.is_number_secret(12_345_678.0) && pin.is_number_secret(912_345_678.5));
    assert!(!pin.is_number_secret(0.5) && !pin.is_number_secret(f64::NAN));
}

/// Proves that values are recognised by the name before them, in the notations logs and shells use, and that what is
/// redacted again stays as it is: a digest is taken of what was redacted once, and the database redacts what it gets.
#[test]
fn named_values_are_found() {
    for (text, clean) in [
        ("password=hunter2", "password=[redacted:secret]"),
        ("f(password=hunter2, x=1)", "f(password=[redacted:secret], x=1)"),
        ("api_key=None,x=1,password=hunter2", "api_key=None,x=1,password=[redacted:secret]"),
        ("hub_token=None, api_key=hunter2)", "hub_token=None, api_key=[redacted:secret])"),
        ("DB_PASSWORD=correct.horse.battery", "DB_PASSWORD=[redacted:secret]"),
        ("{'api_key': 'abcdef', 'step': 1}", "{'api_key': '[redacted:secret]', 'step': 1}"),
        (r#"{"client_secret":"a b c d"}"#, r#"{"client_secret":"[redacted:secret]"}"#),
        ("+ train.py --api-key abcd1234 --lr 0.1", "+ train.py --api-key [redacted:secret] --lr 0.1"),
        ("['train.py', '--password', 'abcd1234']", "['train.py', '--password', '[redacted:secret]']"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted:secret]"),
        ("postgres://ana:p@ss@db/x", "postgres://ana:[redacted:url-password]@db/x"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted:authorization]"),
        ("AccountKey=Zm9vYmFyYmF6cXV4;Endpoint=x", "AccountKey=[redacted:secret];Endpoint=x"),
        ("GET /c?sv=1&sig=Zm9vYmFyYmF6cXV4Zm9v%3D", "GET /c?sv=1&sig=[redacted:signature]"),
        ("Server=db;Uid=ana;Pwd=hunter2;", "Server=db;Uid=ana;Pwd=[redacted:secret];"),
        ("MY_TOKEN=a1b2c3d4e5f6a7b8c9", "MY_TOKEN=[redacted:secret]"),
        ("value is plain-looking-value.", "value is [redacted:environment]."),
        ("the horse is correct horse battery", "the horse is [redacted:environment]"),
        ("swordfish-99", "[redacted:environment]"),
        (
            "\x1b[36mpassword\x1b[0m=\x1b[35mhunter2\x1b[0m",
            "\x1b[36mpassword\x1b[0m=\x1b[35m[redacted:secret]\x1b[0m",
        ),
        ("{'password': b'hunter2'}", "{'password': b'[redacted:secret]'}"),
        ("('password', 'hunter2')", "('password', '[redacted:secret]')"),
        ("password=SecretStr('hunter2')", "password=SecretStr('[redacted:secret]')"),
        ("db:\n  password:\n    hunter2\n  x: 1", "db:\n  password:\n    [redacted:secret]\n  x: 1"),
        ("Cookie: sid=a1b2c3; theme=dark", "Cookie: [redacted:cookie]"),
        ("$ curl -s -u ana:hunter2 https://h/", "$ curl -s -u ana:[redacted:secret] https://h/"),
        ("mysql -h db -phunter2 shop", "mysql -h db -p[redacted:secret] shop"),
        ("machine h login ana password hunter2", "machine h login ana password [redacted:secret]"),
        ("https://a1b2c3d4e5f6a7b8c9@github.com/x", "https://[redacted:url-password]@github.com/x"),
        ("postgres://ana:hun/ter2@db/x", "postgres://ana:[redacted:url-password]@db/x"),
        ("passcode=482913", "passcode=[redacted:secret]"),
        ("{\"passcode\": \"tulip\"}", "{\"passcode\": \"[redacted:secret]\"}"),
        ("X-Passcode: 482913", "X-Passcode: [redacted:secret]"),
        ("the passcode is 482913", "the passcode is [redacted:secret]"),
        ("creds=bob:hunter2", "creds=[redacted:secret]"),
        ("creds: Zq7-tulip\n", "creds: [redacted:secret]\n"),
        ("gcp_cred = \"Zq7-tulip\"", "gcp_cred = \"[redacted:secret]\""),
        (r#"sh -c 'train --password \"a b c\"'"#, r#"sh -c 'train --password \"[redacted:secret]\"'"#),
    ] {
        assert_eq!(redactor().text(text), clean, "{text}");
        assert_eq!(redactor().text(clean), clean, "{text}");
    }
}

/// Proves that what training logs are full of stays as it is.
#[test]
fn ordinary_output_survives() {
    let base64_image: String = (0..40_000u32)
        .map(|index| {
            let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            char::from(letters[(index.wrapping_mul(2_654_435_761) >> 16) as usize % 64])
        })
        .collect();
    for text in [
        "commit 857e6cd2b1a0f9e8d7c6b5a4938271605f4e3d2c",
        "wandb: git commit 857e6cd2b1a0f9e8d7c6b5a4938271605f4e3d2c",
        "run 6ba7b810-9dad-11d1-80b4-00c04fd430c8 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "tokens: 4096 tokens/s=18231 num_key_value_heads=8 pad_token='<pad>' eos_token: <|im_end|>",
        "KeyError: 'image_key'  tokenizer=bert-base-uncased-2024-long-name  key=household",
        "password=None api_key=null secret: ****",
        "forward_pass: 12.3456789ms max_api_tokens=4096 eos token id: 50256",
        "columns ['password', 'username', 'last login']  use_auth: basic",
        "basic understanding of bearer bonds; PWD=/srv/project",
        "http://localhost:6006/#scalars  http://host:8080/path?email=a@b",
        "step 1000/20000 loss=0.1234 lr=1e-4 https://wandb.ai/team/project/runs/2x9k3j1a",
        "task-force-on-something-that-is-long-enough sk-learn-contrib-is-a-very-long-name",
        "SHORT_KEY is short, EDITOR is not-a-secret-at-all",
        base64_image.as_str(),
    ] {
        assert!(
            matches!(redactor().text(text), Cow::Borrowed(_)),
            "{} became {}",
            text,
            redactor().text(text)
        );
    }
}

/// Proves that cutting the stream anywhere, with or without a flush at the cut, never lets a secret through, and that
/// the result is the same as for the whole text.
#[test]
fn a_secret_split_anywhere_is_caught() {
    let redactor = redactor();
    let mut lines: Vec<(String, String)> =
        planted().into_iter().map(|(_, secret)| (format!("step 1 {secret} end\n"), secret)).collect();
    lines.push(("say password = hunter2hunter2 end\n".into(), "hunter2hunter2".into()));
    lines.push(("x correct horse battery y\n".into(), "correct horse battery".into()));
    lines.push(("Authorization: Bearer abc.def-123 end\n".into(), "abc.def-123".into()));
    lines.push(("db:\n  password:\n    hunter2hunter2\nend\n".into(), "hunter2hunter2".into()));
    for (line, secret) in lines {
        let whole = redactor.text(&line).into_owned();
        for cut in 0..=line.len() {
            for flush in [false, true] {
                let mut clean = Vec::new();
                let mut stream = redactor.stream();
                for piece in [&line.as_bytes()[..cut], &line.as_bytes()[cut..]] {
                    stream.push(piece, &mut clean);
                    if flush {
                        stream.flush(&mut clean);
                    }
                }
                stream.finish(&mut clean);
                let clean = String::from_utf8(clean).unwrap();
                assert!(!clean.contains(&secret), "cut {cut} flush {flush}: {clean}");
                assert_eq!(clean, whole, "cut {cut} flush {flush}");
            }
        }
    }
}

/// Proves that a private key is taken out however it arrives, that what follows stays, and that a mere mention of the
/// first line takes nothing else with it.
#[test]
fn private_keys_are_taken_out_as_blocks() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(24);
    let begin = format!("-----BEGIN RSA {} KEY-----", "PRIVATE");
    let end = format!("-----END RSA {} KEY-----", "PRIVATE");
    let text = format!("before\n{begin}\n{body}{end}\nafter\n");
    let redactor = redactor();
    for size in [1, 7, 64, 100_000] {
        let mut clean = Vec::new();
        let mut stream = redactor.stream();
        text.as_bytes().chunks(size).for_each(|piece| {
            stream.push(piece, &mut clean);
            stream.flush(&mut clean);
        });
        stream.finish(&mut clean);
        assert_eq!(
            String::from_utf8(clean).unwrap(),
            "before\n[redacted:private-key]\nafter\n",
            "pieces of {size}"
        );
    }
    let mention = format!("expected {begin}\nTraceback (most recent call last):\n  File \"x.py\", line 3\n");
    let clean = redactor.text(&mention);
    assert_eq!(
        clean,
        "expected [redacted:private-key]\nTraceback (most recent call last):\n  File \"x.py\", line 3\n"
    );
}

/// Proves that a log made of nothing but beginnings of keys costs neither the stack nor much time.
#[test]
fn hostile_beginnings_of_keys_are_survived() {
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let redactor = redactor();
    for text in [format!("{begin} ").repeat(5_000), format!("{begin}x\n").repeat(5_000), begin.repeat(5_000)]
    {
        for size in [100, text.len()] {
            let (mut clean, mut stream) = (Vec::new(), redactor.stream());
            text.as_bytes().chunks(size).for_each(|piece| stream.push(piece, &mut clean));
            stream.finish(&mut clean);
            assert!(!String::from_utf8(clean).unwrap().contains(&begin));
        }
    }
}

/// Proves that bytes of any kind come out as they went in, whatever the pieces, and that little is held back.
#[test]
fn binary_streams_are_unaltered_and_held_back_little() {
    let bytes: Vec<u8> =
        (0..300_000u32).map(|index| (index.wrapping_mul(2_246_822_519) >> 11) as u8).collect();
    let no_newline: Vec<u8> = bytes.iter().map(|byte| if *byte == b'\n' { 0 } else { *byte }).collect();
    for input in [bytes, no_newline] {
        for size in [1_000, 65_536] {
            let mut clean = Vec::new();
            let redactor = redactor();
            let mut stream = redactor.stream();
            for piece in input.chunks(size) {
                stream.push(piece, &mut clean);
                assert!(stream.held_bytes() <= 40_000, "{} bytes held", stream.held_bytes());
                stream.flush(&mut clean);
                assert!(stream.held_bytes() <= stream::HELD_BYTES_MAX);
            }
            stream.finish(&mut clean);
            assert!(clean == input, "altered with pieces of {size}");
        }
    }
}

/// Proves that arguments are redacted by name and by form, and that harmless ones stay.
#[test]
fn argv_keeps_everything_but_secrets() {
    let argv: Vec<String> = [
        "train.py",
        "--api-key",
        "abc",
        "--token=a1b2c3d4e5f6a7b8c9",
        "db.password=x1",
        "--pad-token",
        "<pad>",
        "--label-key",
        "household",
        "--lr",
        "0.1",
        "--password",
        "--verbose",
        "--password",
        "-dashed",
        "--auth",
        "X1-y2",
        "-u",
        "ana:hunter2",
        "MY_TOKEN=short1",
        "--url=https://u:pw@host/",
    ]
    .map(String::from)
    .to_vec();
    let expected = [
        "train.py",
        "--api-key",
        "[redacted:named]",
        "--token=[redacted:named]",
        "db.password=[redacted:named]",
        "--pad-token",
        "<pad>",
        "--label-key",
        "household",
        "--lr",
        "0.1",
        "--password",
        "--verbose",
        "--password",
        "[redacted:named]",
        "--auth",
        "[redacted:named]",
        "-u",
        "ana:[redacted:named]",
        "MY_TOKEN=[redacted:named]",
        "--url=https://u:[redacted:url-password]@host/",
    ];
    assert_eq!(redactor().argv(&argv), expected);
}

/// Values that people give as tokens and passwords: with digits in no word, with marks, or several words.
const GIVEN: [&str; 4] = ["Zq7-tulip-Kd4", "a8f3k2m9x1", "tok_9f8e7d6c5b4a", "supersecret2024"];

/// Proves that the value behind an option with the name of a secret is hidden, whatever it is, and of an option that
/// may be something else where it looks like a secret: in arguments, in a line of a shell within them, in a printed
/// list, and in the next line.
#[test]
fn values_of_options_are_hidden() {
    let redactor = Redactor::of_shapes();
    let either = ["--token", "--key", "--pat", "-token", "--my-token", "--wandb.key", "--TOKEN", "--keys"];
    let strong = ["--api-key", "--auth-token", "--password", "--secret", "--access_token", "--passcode"];
    let ordinary_words = ["plainword", "correct horse", "12345678"];
    let either = either.iter().flat_map(|option| GIVEN.map(|value| (*option, value)));
    let strong = strong.iter().flat_map(|option| ordinary_words.map(|value| (*option, value)));
    let others = [
        ("--pass", "hunter2"),
        ("--pass", "Tulip#44"),
        ("--pass", "correct-horse-battery"),
        ("--creds", "bob:hunter2"),
        ("--cred", "Zq7-tulip"),
        ("--passcode", "482913"),
    ];
    for (option, value) in either.chain(strong).chain(others) {
        let argv = ["t.py", option, value, "--lr", "1"].map(String::from);
        let expected = ["t.py", option, "[redacted:named]", "--lr", "1"];
        assert_eq!(redactor.argv(&argv), expected);
        let is_count = option.ends_with("token") && value.bytes().all(|byte| byte.is_ascii_digit());
        let quoted = format!("\"{value}\"");
        let texts = [
            format!("sh -c 'python t.py {option} {quoted} --lr 1'"),
            format!("+ python t.py {option}={quoted}"),
            format!("[\"t.py\",\"{option}\",{quoted}]"),
            serde_json::json!({ "argv": ["t.py", option, value] }).to_string(),
            serde_json::json!({ "body": format!("sh -c 't {option} {quoted}'") }).to_string(),
        ];
        for text in texts.into_iter().filter(|_| !is_count) {
            let clean = redactor.text(&text).into_owned();
            assert!(!clean.contains(value) && clean.contains("[redacted:"), "{clean}");
        }
    }
    for text in [
        "args:\n  - --token\n  - {}\n",
        "{\n  \"args\": [\n    \"--key\",\n    \"{}\"\n  ]\n}\n",
        "t --password \\\n  {}\n",
        "LAB_TOKEN={} python t.py",
    ] {
        for value in GIVEN {
            let text = text.replace("{}", value);
            let (mut clean, mut stream) = (Vec::new(), redactor.stream());
            for line in text.split_inclusive('\n') {
                stream.push(line.as_bytes(), &mut clean);
                stream.flush(&mut clean);
            }
            stream.finish(&mut clean);
            for clean in [redactor.text(&text).into_owned(), String::from_utf8(clean).unwrap()] {
                assert!(!clean.contains(value), "{clean}");
            }
        }
    }
}

/// Proves that ordinary values of options stay, in arguments and in lines of a shell: columns, entries of a vocabulary,
/// models, numbers of passes, paths, and what is only about a secret.
#[test]
fn ordinary_values_of_options_stay() {
    let redactor = Redactor::of_shapes();
    for line in [
        "--pass 3",
        "--pass all",
        "--pass train,val2",
        "--pass 1/3",
        "--pass 2of3",
        "--pass 1e-3",
        "--key user_id",
        "--key col_name",
        "--token pad",
        "--token [MASK]",
        "--token <pad>",
        "--token bert-base-uncased",
        "--token meta-llama/Llama-2-7b-hf",
        "--key facebook/wav2vec2-base-960h",
        "--token ./vocab.txt",
        "--key model.layers.12.self_attn.q_proj",
        "--key imagenet1k_train_224px_v2",
        "--key conv2d_3x3_bn1",
        "--token data/vocab_v2.json",
        "--key 2026-11-28T10:00:00",
        "--key /data/keys/a1b2c3d4e5.csv",
        "--key https://example.org/v1/keys2",
        "--key ~/.ssh/id_ed25519",
        "--pat 3",
        "--pat *.csv",
        "--tokens 4096",
        "--token transformers4rec",
        "--key 0.25",
        "--key sample_0001.wav",
        "--use-auth-token train.py",
        "--use_auth_token bert-base",
        "--api-key-env OPENAI_API_KEY",
        "--password-stdin host",
        "--secret-name prod/db",
        "--password false",
        "--password-length 12",
        "--api-key ./key.txt",
        "--creds ~/creds.json",
        "--creds default",
        "--secretary ana",
        "--token-dataset common_voice_11_0_en_v2",
        "--num-api-keys 3",
        "--forward-pass layer12",
        "key=user_id",
        "token=bert-base-uncased",
        "pat=3",
        "primary_key=id",
        "PAD_TOKEN=[PAD]",
        "EOS_TOKEN=</s>",
    ] {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(redactor.argv(&argv), argv);
        let text = format!("sh -c 'python t.py {line} --lr 1'");
        assert_eq!(redactor.text(&text), text);
    }
}

/// Proves that ordinary parameters stay, also those with names that a secret may have, as given and as a setting of a
/// document, and that secrets among them do not.
#[test]
fn ordinary_parameters_stay() {
    let redactor = Redactor::of_shapes();
    for (name, value) in [
        ("pat", "3"),
        ("key", "user_id"),
        ("key", "12"),
        ("token", "bert-base-uncased"),
        ("tokens", "4096"),
        ("pass", "3"),
        ("keys", "a,b,c"),
        ("primary_key", "id"),
        ("pad_token", "[PAD]"),
        ("num_tokens", "512"),
        ("token_type_ids", "true"),
        ("key_padding_mask", "x"),
        ("pass@1", "0.43"),
        ("password_field", "null"),
        ("password_column", "pw_hash"),
        ("api_key_count", "3"),
        ("password_reset_count", "12"),
        ("pat_size", "16x16"),
        ("token_url", "https://auth.example.com/oauth2/v1/token"),
        ("key_cache_dir", "/mnt/scratch/key_value_v2"),
        ("secretary_problem", "37"),
        ("min_password_length", "8"),
        ("key_type", "ssh-ed25519"),
        ("jwt_alg", "RS256"),
        ("credential_type", "service_account"),
        ("api_key_name", "OPENAI_API_KEY"),
        ("creds", "./creds.json"),
        ("creds", "default"),
        ("cred", "12"),
        ("passcode", "null"),
        ("passcode_length", "6"),
        ("key_dim", "64"),
        ("key_frames", "every_10th_frame_of_24fps"),
        ("use_auth_token", "true"),
        ("token_budget", "200k"),
        ("password_hash_rounds", "12"),
        ("key", "meta-llama/Llama-2-7b-hf"),
        ("api_key", "./key.txt"),
    ] {
        let given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(redactor.parameters(&given), given);
        assert_eq!(redactor.value(name, value), value, "{name}");
    }
    for (name, value) in [
        ("api_key", "k1"),
        ("password", "tulip"),
        ("passcode", "482913"),
        ("creds", "bob:hunter2"),
        ("token", GIVEN[1]),
        ("key", GIVEN[0]),
        ("pat", GIVEN[2]),
        ("pass", "hunter2"),
        ("hf_token", "plain"),
        ("dbCreds", "Zq7-tulip"),
    ] {
        let given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(redactor.parameters(&given)[name], "[redacted:named]", "{name}={value}");
    }
}

/// Proves that the environment is an allow-list and that settings and JSON lose their secrets only.
#[test]
fn environment_settings_and_json_are_cleaned() {
    let kept = redactor().environment([
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("MY_VARIABLE", "x"),
        ("SLURM_JWT", "abcdefgh"),
        ("PYTHONPATH", "plain-looking-value"),
    ]);
    assert_eq!(kept.len(), 2);
    assert_eq!(kept["PYTHONPATH"], "[redacted:environment]");
    let mut document =
        serde_json::json!({"api_key": "k", "argv": ["x", "--secret", "y"], "lr": 0.1, "n": {"p": "ok"}});
    redactor().json(&mut document);
    assert_eq!(
        document,
        serde_json::json!({"api_key": "[redacted:named]", "argv": ["x", "--secret", "[redacted:named]"], "lr": 0.1, "n": {"p": "ok"}})
    );
}

/// Proves that however many variables are secret, each is found, and so are the parts of lists, of JSON and of encoded
/// URLs.
#[test]
fn every_secret_variable_is_searched_for() {
    let many: Vec<(String, String)> = (0..2_000)
        .map(|number| (format!("S{number}_PASSWORD"), format!("plain-words-{number}-end")))
        .collect();
    let redactor = Redactor::from_environment(many.clone());
    for (_, value) in &many {
        assert_eq!(redactor.text(value), "[redacted:environment]");
    }
    let redactor = Redactor::from_environment([
        ("OPENAI_KEYS", "first-of-them,second-of-them"),
        ("DB_CREDS", r#"{"user": "ana-maria", "password": "horse-battery", "more": ["staple-guns"]}"#),
        ("DATABASE_URL", "postgres://ana:pass%2Fwords%40x@db/t"),
    ]);
    for (text, clean) in [
        ("uses second-of-them", "uses [redacted:environment]"),
        ("uses horse-battery", "uses [redacted:environment]"),
        ("uses staple-guns", "uses [redacted:environment]"),
        ("uses pass/words@x", "uses [redacted:environment]"),
        ("uses ana-maria", "uses ana-maria"),
        (r#"{"m":"first-of\u002dthem"}"#, r#"{"m":"[redacted:environment]"}"#),
    ] {
        assert_eq!(redactor.text(text), clean);
    }
}

/// Proves that what was cleaned once stays as it is, so that a text may pass several doors.
#[test]
fn cleaning_twice_changes_nothing() {
    let redactor = redactor();
    for (_, secret) in planted() {
        for text in [
            format!("password={secret}"),
            format!("{{'api_key': '{secret}'}}"),
            format!("--token {secret} {secret}"),
        ] {
            let once = redactor.text(&text).into_owned();
            assert_eq!(redactor.text(&once), once);
            let named = redactor.value("api_key", &once).into_owned();
            assert_eq!(redactor.value("api_key", &named), named);
        }
    }
}
