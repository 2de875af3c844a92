//! How a connection to PostgreSQL is encrypted: the `ssl…` parameters of its URL, with libpq's meaning.
//!
//! | `sslmode` | encrypted | the certificate's issuer is checked | the host name too |
//! |---|---|---|---|
//! | `disable` | no | | |
//! | `prefer` (default) | where the server can | no | no |
//! | `require` | yes | only with `sslrootcert` | no |
//! | `verify-ca` | yes | yes | no |
//! | `verify-full` | yes | yes | yes |
//!
//! `sslrootcert` is a PEM file of trusted issuers, or `system` for those of the operating system, which is the default
//! of `verify-full`. `sslcert` and `sslkey` are the client's certificate and key. Over a Unix socket nothing is
//! encrypted. Source: <https://www.postgresql.org/docs/current/libpq-ssl.html>.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use postgres::config::SslMode;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The value of `sslrootcert` for the issuers that the operating system trusts.
const SYSTEM: &str = "system";

/// The requested encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The `ssl…` parameters of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsSettings {
    mode: Mode,
    issuers: Option<Issuers>,
    /// The client's certificate and its private key.
    client: Option<(PathBuf, PathBuf)>,
}

/// Whose signature under a certificate is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Issuers {
    System,
    File(PathBuf),
}

impl TlsSettings {
    /// Takes the parameters out of a URL, because the client library does not know most of them. Gives the rest of the
    /// URL.
    ///
    /// # Errors
    /// A message that names the wrong parameter and its valid values.
    pub(super) fn take(url: &str) -> Result<(String, Self), String> {
        let (mut mode, mut issuers) = (None, None);
        let (mut certificate, mut key) = (None, None);
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "sslmode" => mode = Some(mode_of(&value)?),
                "sslrootcert" if value == SYSTEM => issuers = Some(Issuers::System),
                "sslrootcert" => issuers = Some(Issuers::File(path(name, value)?)),
                "sslcert" => certificate = Some(path(name, value)?),
                "sslkey" => key = Some(path(name, value)?),
                "sslcrl" | "sslcrldir" | "sslpassword" => {
                    return Err(format!("`{name}` is not supported; remove it from the URL"));
                }
                _ => rest.push(parameter),
            }
        }
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("`sslcert` and `sslkey` belong together: set both or neither".into()),
        };
        let settings = Self { mode: mode.unwrap_or(Mode::Prefer), issuers, client };
        settings.check()?;
        let rest = rest.join("&");
        let url = if rest.is_empty() { address.to_owned() } else { format!("{address}?{rest}") };
        Ok((url, settings))
    }

    fn check(&self) -> Result<(), String> {
        match (self.mode, &self.issuers) {
            (Mode::VerifyCa, None) => Err(format!(
                "`sslmode=verify-ca` needs `sslrootcert=FILE`, the PEM file of the issuer to trust; with the \
                 issuers of the operating system use `sslmode=verify-full&sslrootcert={SYSTEM}`"
            )),
            (mode, Some(Issuers::System)) if mode < Mode::VerifyFull => Err(format!(
                "`sslrootcert={SYSTEM}` trusts certificates of any host; use it with `sslmode=verify-full`"
            )),
            _ => Ok(()),
        }
    }

    /// The mode for the client library.
    pub(super) fn mode(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    /// What encrypts a connection. Reads the certificates.
    ///
    /// # Errors
    /// A text that names the file that cannot be used.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = self.verifier(&provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key_der =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("sslkey", key, &error))?;
                builder
                    .with_client_auth_cert(certificates("sslcert", certificate)?, key_der)
                    .map_err(|error| unreadable("sslcert", certificate, &error))?
            }
        };
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        let issuers = match (self.mode, &self.issuers) {
            (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None) => {
                return Ok(Arc::new(Lenient { issuers: None, schemes }));
            }
            (_, None) => &Issuers::System,
            (_, Some(issuers)) => issuers,
        };
        let roots = Arc::new(issuers.roots()?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|error| format!("the issuers of `sslrootcert` cannot be used: {error}"))?;
        Ok(match self.mode {
            Mode::VerifyFull => verifier,
            _ => Arc::new(Lenient { issuers: Some(verifier), schemes }),
        })
    }
}

fn mode_of(text: &str) -> Result<Mode, String> {
    Ok(match text {
        "disable" => Mode::Disable,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        other => {
            return Err(format!(
                "invalid `sslmode={other}` (expected disable, prefer, require, verify-ca or verify-full)"
            ));
        }
    })
}

fn path(name: &str, value: Cow<'_, str>) -> Result<PathBuf, String> {
    if value.is_empty() {
        Err(format!("`{name}` names no file"))
    } else {
        Ok(PathBuf::from(value.into_owned()))
    }
}

fn certificates(name: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(name, path, &error))?;
    if found.is_empty() {
        Err(format!("`{name}`: no certificate in `{}`", path.display()))
    } else {
        Ok(found)
    }
}

fn unreadable(name: &str, path: &Path, error: &dyn std::error::Error) -> String {
    format!("`{name}`: cannot use `{}`: {error}", path.display())
}

impl Issuers {
    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        match self {
            Self::System => {
                let found = rustls_native_certs::load_native_certs();
                let (added, _) = roots.add_parsable_certificates(found.certs);
                if added == 0 {
                    return Err("the operating system has no trusted issuers (install `ca-certificates`), \
                                or name a file with `sslrootcert`"
                        .into());
                }
            }
            Self::File(file) => {
                for certificate in certificates("sslrootcert", file)? {
                    roots.add(certificate).map_err(|error| unreadable("sslrootcert", file, &error))?;
                }
            }
        }
        Ok(roots)
    }
}

/// Accepts servers that `verify-full` refuses.
#[derive(Debug)]
struct Lenient {
    /// Decides about certificates, except whether they name the server; without one, every server is accepted: `prefer` and
    /// `require` encrypt only.
    issuers: Option<Arc<WebPkiServerVerifier>>,
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(issuers) = &self.issuers else { return Ok(ServerCertVerified::assertion()) };
        match issuers.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.issuers {
            Some(issuers) => issuers.verify_tls12_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.issuers {
            Some(issuers) => issuers.verify_tls13_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mode: Mode) -> TlsSettings {
        TlsSettings { mode, issuers: None, client: None }
    }

    /// Proves that the `ssl…` parameters are taken out of a URL and that everything else of it stays.
    #[test]
    fn the_parameters_are_taken_out_of_the_url() {
        let plain = "postgres://user@host/db";
        assert_eq!(TlsSettings::take(plain), Ok((plain.into(), settings(Mode::Prefer))));
        let taken = TlsSettings::take("postgres://user@host/db?sslmode=require&connect_timeout=3");
        assert_eq!(taken, Ok(("postgres://user@host/db?connect_timeout=3".into(), settings(Mode::Require))));
        let url = "postgres://host/db?sslrootcert=%2Fetc%2Fmy%20ca.pem&sslmode=verify-ca&sslcert=c.pem&sslkey=k.pem";
        let (rest, found) = TlsSettings::take(url).unwrap();
        assert_eq!(rest, "postgres://host/db");
        assert_eq!(found.mode, Mode::VerifyCa);
        assert_eq!(found.issuers, Some(Issuers::File("/etc/my ca.pem".into())));
        assert_eq!(found.client, Some(("c.pem".into(), "k.pem".into())));
    }

    /// Proves that what cannot be kept is refused with the parameter's name, and never weakened.
    #[test]
    fn what_cannot_be_kept_is_refused() {
        for (query, said) in [
            ("sslmode=allow", "invalid `sslmode=allow`"),
            ("sslmode=verify-ca", "needs `sslrootcert=FILE`"),
            ("sslmode=require&sslrootcert=system", "use it with `sslmode=verify-full`"),
            ("sslmode=verify-ca&sslrootcert=", "`sslrootcert` names no file"),
            ("sslcert=c.pem", "belong together"),
            ("sslcrl=list.pem", "`sslcrl` is not supported"),
        ] {
            let error = TlsSettings::take(&format!("postgres://host/db?{query}")).unwrap_err();
            assert!(error.contains(said), "{query}: {error}");
        }
    }

    /// Proves that a missing or empty certificate file is named before anything connects.
    #[test]
    fn a_certificate_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "no certificate").unwrap();
        for file in [folder.path().join("absent.pem"), empty] {
            let url = format!("postgres://host/db?sslmode=verify-full&sslrootcert={}", file.display());
            let error = TlsSettings::take(&url).unwrap().1.connector().err().unwrap();
            assert!(error.contains("sslrootcert") && error.contains(&*file.to_string_lossy()), "{error}");
        }
    }
}
