//! How a remote storage is reached.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use super::error;
use crate::error::StoreError;

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one request for a small object may take. The largest, a summary of 16 MiB, needs 9 Mbit/s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one request for a part of a large object may take: 16 MiB at a little over 1 Mbit/s.
const PART_TIMEOUT: Duration = Duration::from_secs(120);
/// After this time a part is not sent again. Credentials are not renewed on the way, and live 5 minutes at least.
const PART_RETRY_TIME: Duration = Duration::from_secs(240);
/// The size of a part. One connection to S3 carries 50 to 100 MB/s and an answer takes about 30 ms, so that a part is
/// on its way five times as long as it is waited for; and S3 wants 5 MiB at least.
const PART_BYTES: u64 = 16 << 20;
/// How often a request is sent again.
const MAX_RETRIES: usize = 6;
/// After this time it is not sent again.
const RETRY_TIME: Duration = Duration::from_secs(30);
/// The first pause before it is sent again; each further one is up to twice as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(5);

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
        let build = |timeout, retry_time| self.build(&scheme, url, timeout, retry_time).map_err(&unusable);
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

    fn build(
        &self,
        scheme: &ObjectStoreScheme,
        url: &str,
        timeout: Duration,
        retry_timeout: Duration,
    ) -> Result<Arc<dyn ObjectStore>, String> {
        let settings = self.named_settings(scheme, timeout);
        let backoff =
            BackoffConfig { init_backoff: self.retry_pause, max_backoff: MAX_RETRY_PAUSE, base: 2.0 };
        let retry = RetryConfig { backoff, max_retries: MAX_RETRIES, retry_timeout };
        // The builders have the same methods and no trait in common.
        macro_rules! build {
            ($builder:ty) => {{
                let mut builder = <$builder>::from_env().with_url(url).with_retry(retry);
                for (name, value) in settings {
                    let key = name.parse().map_err(|_| format!("unknown setting `{name}`"))?;
                    builder = builder.with_config(key, value);
                }
                let built = builder.build().map(|store| Arc::new(store) as _);
                built.map_err(|error| error.to_string().replace(url, &without_secrets(url)))
            }};
        }
        match scheme {
            ObjectStoreScheme::AmazonS3 => build!(AmazonS3Builder),
            ObjectStoreScheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder),
            ObjectStoreScheme::MicrosoftAzure => build!(MicrosoftAzureBuilder),
            _ => Err("supported are s3://, gs:// and az://".into()),
        }
    }

    fn named_settings(&self, scheme: &ObjectStoreScheme, timeout: Duration) -> Vec<(String, String)> {
        let endpoint = match scheme {
            ObjectStoreScheme::GoogleCloudStorage => "base_url",
            _ => "endpoint",
        };
        let millis = |duration: Duration| Some(format!("{}ms", duration.as_millis()));
        let named = [
            ("timeout", millis(timeout)),
            ("connect_timeout", millis(CONNECT_TIMEOUT.min(timeout))),
            ("allow_http", self.allow_http.then(|| "true".into())),
            (endpoint, self.endpoint.clone()),
            ("region", self.region.clone()),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        named.chain(self.settings.iter().map(|(name, value)| (name.clone(), value.0.clone()))).collect()
    }
}

/// A URL as messages may show it: without user, password and query.
fn without_secrets(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return "the remote storage".into();
    };
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
}
