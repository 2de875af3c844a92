//! The clients of the storages that this build has, each behind a separate feature.

use std::sync::Arc;
use std::time::Duration;

use object_store::{BackoffConfig, ObjectStore, ObjectStoreScheme, RetryConfig};

use super::options::{RemoteOptions, not_built, without_secrets};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a request is sent again.
const MAX_RETRIES: usize = 6;
/// The longest pause.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(5);

impl RemoteOptions {
    /// The client of a storage, with the time-outs of its requests.
    pub(super) fn client(
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
            #[cfg(feature = "s3")]
            ObjectStoreScheme::AmazonS3 => build!(object_store::aws::AmazonS3Builder),
            #[cfg(feature = "gcs")]
            ObjectStoreScheme::GoogleCloudStorage => build!(object_store::gcp::GoogleCloudStorageBuilder),
            #[cfg(feature = "azure")]
            ObjectStoreScheme::MicrosoftAzure => build!(object_store::azure::MicrosoftAzureBuilder),
            _ => Err(not_built(scheme)),
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
