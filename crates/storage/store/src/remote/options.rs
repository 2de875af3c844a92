//! How a remote storage is reached.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;

use super::error;
use crate::error::StoreError;

/// How long one request for a small object may take. The largest, a summary of 16 MiB, needs 9 Mbit/s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one request for a part of a large object may take: 16 MiB at a little over 1 Mbit/s.
const PART_TIMEOUT: Duration = Duration::from_secs(120);
/// After this time a part is not sent again. Credentials are not renewed on the way, and live 5 minutes at least.
const PART_RETRY_TIME: Duration = Duration::from_secs(240);
/// The size of a part. One connection to S3 carries 50 to 100 MB/s and an answer takes about 30 ms, so that a part is
/// on its way five times as long as it is waited for; and S3 wants 5 MiB at least.
const PART_BYTES: u64 = 16 << 20;
/// After this time a request is not sent again.
const RETRY_TIME: Duration = Duration::from_secs(30);
/// The first pause before it is sent again; each further one is up to twice as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A value that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

/// What is needed beside the URL. Credentials come from the usual environment: `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, web identity, container and instance roles; `GOOGLE_*` or the
/// application's default credentials; `AZURE_*`. Profiles of `~/.aws` are not read.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The URL of an S3-compatible server; none: that of the cloud.
    pub endpoint: Option<String>,
    /// The region; none: that of the environment.
    pub region: Option<String>,
    /// Whether an endpoint may be reached without TLS; otherwise the environment decides (`AWS_ALLOW_HTTP`).
    pub allow_http: bool,
    /// Further settings of `object_store` by their names there (`aws_access_key_id`); they go before the environment.
    pub settings: BTreeMap<String, Secret>,
    /// How long one request for a small object may take.
    pub request_timeout: Duration,
    /// How long a request is sent again before it fails.
    pub retry_time: Duration,
    /// The first pause before it is sent again.
    pub retry_pause: Duration,
    /// The size of the parts of large objects; of very large ones it is more.
    pub part_bytes: u64,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            allow_http: false,
            settings: BTreeMap::new(),
            request_timeout: REQUEST_TIMEOUT,
            retry_time: RETRY_TIME,
            retry_pause: FIRST_RETRY_PAUSE,
            part_bytes: PART_BYTES,
        }
    }
}

/// The same storage twice: with time-outs for small objects and for parts of large ones.
pub(super) struct Connection {
    pub small: Arc<dyn ObjectStore>,
    pub large: Arc<dyn ObjectStore>,
    pub prefix: Path,
    /// The URL without secrets.
    pub location: String,
    /// Longer than a call for a small object can take by the time-outs below it.
    pub call_timeout: Duration,
    /// The first pause before something is tried again.
    pub retry_pause: Duration,
    pub part_bytes: u64,
}

impl RemoteOptions {
    /// Connects to nothing yet.
    pub(super) fn open(&self, url: &str) -> Result<Connection, StoreError> {
        let location = without_secrets(url);
        let unusable = |why: String| error::unusable(location.clone(), why);
        let parsed = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
        let (scheme, prefix) =
            ObjectStoreScheme::parse(&parsed).map_err(|_| unusable("it is not a storage URL".into()))?;
        let build = |timeout, retry_time| self.client(&scheme, url, timeout, retry_time).map_err(&unusable);
        Ok(Connection {
            small: build(self.request_timeout, self.retry_time)?,
            large: build(PART_TIMEOUT, PART_RETRY_TIME)?,
            prefix,
            call_timeout: 2 * (self.retry_time + self.request_timeout),
            retry_pause: self.retry_pause,
            part_bytes: self.part_bytes.max(1),
            location,
        })
    }
}

#[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure")))]
impl RemoteOptions {
    fn client(
        &self,
        scheme: &ObjectStoreScheme,
        _url: &str,
        _timeout: Duration,
        _retry_timeout: Duration,
    ) -> Result<Arc<dyn ObjectStore>, String> {
        Err(not_built(scheme))
    }
}

/// Why there is no client of a storage.
pub(super) fn not_built(scheme: &ObjectStoreScheme) -> String {
    let (what, feature) = match scheme {
        ObjectStoreScheme::AmazonS3 => ("S3", "s3"),
        ObjectStoreScheme::GoogleCloudStorage => ("Google Cloud Storage", "gcs"),
        ObjectStoreScheme::MicrosoftAzure => ("Azure", "azure"),
        _ => return "supported are s3://, gs:// and az://".into(),
    };
    format!("this build has no client for {what}: build it with feature `{feature}`")
}

/// A URL as messages may show it: without user, password and query.
pub(super) fn without_secrets(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return "the remote storage".into() };
    // Azure's account is where others have a user, so it is kept when no password follows.
    if url.password().is_some() {
        let _ = url.set_username("").and_then(|()| url.set_password(None));
    }
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// URLs are shown without passwords and signatures, and settings without their values.
    #[test]
    fn secrets_are_not_shown() {
        for (url, shown) in [
            ("s3://key:hush@bucket/runs/", "s3://bucket/runs"),
            ("az://container/prefix?sig=hush", "az://container/prefix"),
            ("gs://bucket/prefix#hush", "gs://bucket/prefix"),
            ("no URL hush", "the remote storage"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
        let settings = [("aws_secret_access_key".into(), Secret("hush".into()))].into();
        let options = RemoteOptions { settings, ..RemoteOptions::default() };
        assert!(!format!("{options:?}").contains("hush"));
        let error = RemoteOptions::default().open("ftp://user:hush@host/x").err().unwrap().to_string();
        assert_eq!(error, "cannot use ftp://host/x: it is not a storage URL");
    }

    /// Proves that the storages of other builds are named by their features, and that other schemes are not.
    #[test]
    fn storages_of_other_builds_are_named_by_their_features() {
        for (url, feature) in
            [("s3://bucket/x", "s3"), ("gs://bucket/x", "gcs"), ("az://container/x", "azure")]
        {
            let (scheme, _) = ObjectStoreScheme::parse(&Url::parse(url).unwrap()).unwrap();
            assert!(not_built(&scheme).ends_with(&format!("build it with feature `{feature}`")), "{url}");
        }
        assert_eq!(not_built(&ObjectStoreScheme::Memory), "supported are s3://, gs:// and az://");
    }
}
