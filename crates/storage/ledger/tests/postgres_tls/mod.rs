//! Encrypted connections to a real PostgreSQL, with certificates that are made here.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use trackway_ledger::{ErrorKind, Ledger, RunFilter};

use crate::postgres_cluster::PostgresCluster;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer(name: &str) -> Issuer {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(DnType::CommonName, name);
    Issuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key, in PEM.
fn certificate(issuer: &Issuer, common_name: &str, hosts: &[&str]) -> (String, String) {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut parameters = CertificateParams::new(hosts).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Proves that a server without TLS is used in plain only where the URL allows that, and that with TLS each `sslmode`
/// encrypts and checks what libpq documents: also for a client that has a certificate, and for a connection that is
/// made again.
#[test]
fn postgres_is_reached_over_tls() {
    let Some(cluster) = PostgresCluster::start_if_asked_for() else { return };
    let folder = TempDir::new().unwrap();
    let (ours, theirs) = (issuer("ours"), issuer("theirs"));
    let root = write(folder.path(), "ours.pem", &ours.pem()).display().to_string();
    let foreign = write(folder.path(), "theirs.pem", &theirs.pem()).display().to_string();
    let url = |user: &str, host: &str, query: &str| {
        format!("postgres://{user}@{host}:{}/postgres?{query}", cluster.port())
    };
    // `t` where the ledger's connection is encrypted.
    let encryption = |url: &str| {
        Ledger::open(url).map(|_ledger| {
            let found = cluster.psql(
                "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'trackway'",
            );
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].clone()
        })
    };
    let opened = |query: &str| encryption(&url("trackway", "127.0.0.1", query));
    let refused = |url: &str, why: &str| {
        let error = encryption(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fault, "{url}: {error}");
        assert!(error.to_string().contains(why), "{url}: {error}");
    };

    for query in ["", "sslmode=disable", "sslmode=prefer"] {
        assert_eq!(opened(query).unwrap(), "f", "{query}");
    }
    for query in ["sslmode=require".into(), format!("sslmode=verify-full&sslrootcert={root}")] {
        refused(&url("trackway", "127.0.0.1", &query), "server does not support TLS");
    }

    let (server, key) = certificate(&ours, "server", &["127.0.0.1"]);
    cluster.serve_tls(&server, &key, &ours.pem());
    assert_eq!(opened("sslmode=disable").unwrap(), "f");
    for mode in ["prefer", "require"] {
        assert_eq!(opened(&format!("sslmode={mode}")).unwrap(), "t", "{mode}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_eq!(opened(&format!("sslmode={mode}&sslrootcert={root}")).unwrap(), "t", "{mode}");
        refused(
            &url("trackway", "127.0.0.1", &format!("sslmode={mode}&sslrootcert={foreign}")),
            "invalid peer certificate",
        );
    }
    refused(&url("trackway", "127.0.0.1", "sslmode=verify-full"), "invalid peer certificate");
    // The certificate is not for this name.
    let elsewhere = |mode: &str| url("trackway", "localhost", &format!("sslmode={mode}&sslrootcert={root}"));
    assert_eq!(encryption(&elsewhere("verify-ca")).unwrap(), "t");
    refused(&elsewhere("verify-full"), "invalid peer certificate");

    let (client, client_key) = certificate(&ours, "certified", &[]);
    let client = write(folder.path(), "client.pem", &client).display().to_string();
    let client_key = write(folder.path(), "client.key", &client_key).display().to_string();
    let by_certificate = url(
        "certified",
        "127.0.0.1",
        &format!("sslmode=verify-full&sslrootcert={root}&sslcert={client}&sslkey={client_key}"),
    );
    assert_eq!(encryption(&by_certificate).unwrap(), "t");
    refused(&url("certified", "127.0.0.1", "sslmode=require"), "certificate");

    let ledger = Ledger::open(&url("trackway", "127.0.0.1", "sslmode=require")).unwrap();
    cluster
        .psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'trackway'");
    // The first read notices, the second connects again.
    let _ = ledger.list_runs(&RunFilter::default());
    ledger.list_runs(&RunFilter::default()).unwrap();
    let again =
        "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'trackway'";
    assert_eq!(cluster.psql(again), ["t"]);
}
