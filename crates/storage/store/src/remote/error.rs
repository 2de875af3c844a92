//! An error of a remote storage, as a kind and a sentence without secrets.

use std::error::Error as StdError;

use object_store::Error;

use crate::error::{ErrorKind, StoreError};

/// How much of a server's message is repeated.
const MAX_MESSAGE_CHARS: usize = 200;
/// How `object_store` 0.13 begins the message of an answer that is not a success; the type itself is not public.
const STATUS_TEXT: &str = "Server returned non-2xx status code: ";
/// How it begins that of a redirect to nowhere.
const REDIRECT_TEXT: &str = "Received redirect";
/// The codes of S3 and Azure, instead of "no such object", for a missing bucket or container.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];
/// What S3 answers with 400 although the request was only cut short on its way.
const CUT_SHORT: [&str; 3] = ["RequestTimeout", "IncompleteBody", "BadDigest"];

/// What went wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    status: Option<u16>,
    /// The server's name of the error.
    code: String,
    text: String,
}

impl Answer {
    /// Reads the innermost error. The outer ones repeat it and add URLs, which may hold a signature; the body of a
    /// refusal repeats request headers, which may hold a token. Only its code and message are taken.
    fn of(error: &Error) -> Self {
        let innermost = chain(error).pop().unwrap_or_default();
        Self::read(&innermost)
    }

    fn read(text: &str) -> Self {
        let Some(answer) = text.strip_prefix(STATUS_TEXT) else {
            return Self { status: None, code: String::new(), text: shortened(text) };
        };
        let status = answer.get(..3).and_then(|status| status.parse().ok());
        let (line, body) = answer.split_once(": ").unwrap_or((answer, ""));
        let code = shortened(element(body, "Code"));
        let parts = [line, &code, element(body, "Message")];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(shortened).collect();
        Self { status, code, text: parts.join(", ") }
    }

    fn no_bucket(&self) -> bool {
        NO_BUCKET.contains(&self.code.as_str())
    }

    fn kind(&self, error: &Error) -> ErrorKind {
        match error {
            // For an object, this is not an error here; so it is the bucket.
            Error::NotFound { .. } | Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                ErrorKind::Refused
            }
            Error::NotSupported { .. } | Error::NotImplemented { .. } => ErrorKind::Unsupported,
            Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => ErrorKind::Input,
            _ => self.kind_of_status(),
        }
    }

    fn kind_of_status(&self) -> ErrorKind {
        match self.status {
            Some(501) => ErrorKind::Unsupported,
            Some(507) => ErrorKind::Full,
            Some(408 | 409 | 412 | 429) => ErrorKind::Unavailable,
            Some(400) if CUT_SHORT.contains(&self.code.as_str()) => ErrorKind::Unavailable,
            Some(300..=499) => ErrorKind::Refused,
            None if self.text.starts_with(REDIRECT_TEXT) => ErrorKind::Refused,
            _ => ErrorKind::Unavailable,
        }
    }
}

/// Whether an object is absent; an absent bucket does not count, or a typing error would start a run over.
fn is_absent(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. }) && !Answer::of(error).no_bucket()
}

/// What was done with an object; `None`: it is absent.
pub(super) fn if_there<T>(done: Result<T, Error>) -> Result<Option<T>, Error> {
    match done {
        Err(error) if is_absent(&error) => Ok(None),
        done => done.map(Some),
    }
}

/// The error that callers get.
pub(super) fn failed(action: &'static str, location: String) -> impl FnOnce(Error) -> StoreError {
    move |error| {
        let answer = Answer::of(&error);
        let mut kind = answer.kind(&error);
        if action == "create" && kind != ErrorKind::Unsupported && was_repeated(&error) {
            // What was refused is the last try; an earlier one may have happened.
            kind = ErrorKind::Unavailable;
        }
        let mut text = answer.text;
        if action == "read" && answer.status == Some(403) {
            text.push_str(" (S3 also reports this for an absent object, unless s3:ListBucket is allowed)");
        }
        StoreError::Backend { kind, action, location, source: text.into() }
    }
}

/// Whether `object_store` sent the request more than once; only its message shows that.
fn was_repeated(error: &Error) -> bool {
    chain(error).iter().any(|text| text.contains(" retries, max_retries: "))
}

/// The messages of an error and its causes, from the outermost to the innermost.
fn chain(error: &Error) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next: Option<&dyn StdError> = Some(error);
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}

/// The error of a call that took too long.
pub(super) fn timed_out(action: &'static str, location: String, seconds: f64) -> StoreError {
    let source = format!("no answer within {seconds} s").into();
    StoreError::Backend { kind: ErrorKind::Unavailable, action, location, source }
}

/// The error of a storage that cannot be reached from here at all.
pub(super) fn unusable(location: String, why: String) -> StoreError {
    StoreError::Backend { kind: ErrorKind::Input, action: "use", location, source: why.into() }
}

/// The error of an answer that ended too early.
pub(super) fn cut_short(expected_bytes: usize, found_bytes: usize) -> Error {
    let source = format!("the answer ended after {found_bytes} of {expected_bytes} bytes").into();
    Error::Generic { store: "remote", source }
}

/// The text of an XML element that holds nothing but text; empty: there is none.
fn element<'a>(body: &'a str, name: &str) -> &'a str {
    let text = body.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once('<'));
    text.map_or("", |(text, _)| text)
}

/// One line of bounded length, without the query of a URL.
fn shortened(text: &str) -> String {
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((before, _)) if before.contains("://") => before,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ").chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer keeps the server's code and message, and nothing else of its body: that of S3 repeats headers.
    #[test]
    fn bodies_are_not_repeated() {
        let body = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>The request signature \
                    we calculated does not match</Message><CanonicalRequest>x-amz-security-token:HUSH</CanonicalRequest>\
                    <AWSAccessKeyId>KEYID</AWSAccessKeyId></Error>";
        let answer = Answer::read(&format!("{STATUS_TEXT}403 Forbidden: {body}"));
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (
                Some(403),
                "403 Forbidden, SignatureDoesNotMatch, The request signature we calculated does not match"
            )
        );
        let signed = Answer::read("error for url (https://account/container?sv=1&sig=HUSH) happened");
        assert_eq!(signed.text, "error for url (https://account/container happened");
    }

    /// Proves that an unknown outcome is distinguished from a refusal, by status and S3's codes.
    #[test]
    fn kinds() {
        for (answer, kind) in [
            ("500 Internal Server Error: ", ErrorKind::Unavailable),
            ("503 Service Unavailable: <Error><Code>SlowDown</Code></Error>", ErrorKind::Unavailable),
            ("429 Too Many Requests: ", ErrorKind::Unavailable),
            ("400 Bad Request: <Error><Code>RequestTimeout</Code></Error>", ErrorKind::Unavailable),
            ("400 Bad Request: <Error><Code>ExpiredToken</Code></Error>", ErrorKind::Refused),
            ("403 Forbidden: ", ErrorKind::Refused),
            ("301 Moved Permanently: ", ErrorKind::Refused),
            ("501 Not Implemented: ", ErrorKind::Unsupported),
            ("507 Insufficient Storage: ", ErrorKind::Full),
        ] {
            assert_eq!(Answer::read(&format!("{STATUS_TEXT}{answer}")).kind_of_status(), kind, "{answer}");
        }
        let elsewhere = "Received redirect without LOCATION, this normally indicates a wrong region";
        assert_eq!(Answer::read(elsewhere).kind_of_status(), ErrorKind::Refused);
        assert_eq!(Answer::read("Connection reset by peer").kind_of_status(), ErrorKind::Unavailable);
    }
}
