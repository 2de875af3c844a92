//! A document to an address, with the HTTP client of the storages: there is one client, and one TLS, in the program.

use std::error::Error;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector};

/// Sends a JSON document with POST and returns the status of the answer, whose content is not read.
///
/// # Errors
/// Why there was no answer within `limit`, without the address: it may be a secret.
pub fn post_json(address: &str, document: Vec<u8>, limit: Duration) -> Result<u16, String> {
    let wrong = |_| "it is not an address of HTTP".to_owned();
    let mut request = HttpRequest::new(HttpRequestBody::from(document));
    *request.method_mut() = "POST".parse().map_err(|_| "it cannot be sent".to_owned())?;
    *request.uri_mut() = address.parse().map_err(wrong)?;
    let kind = "application/json".parse().map_err(|_| "it cannot be sent".to_owned())?;
    request.headers_mut().insert("content-type", kind);
    let options = ClientOptions::new().with_allow_http(true).with_connect_timeout(limit).with_timeout(limit);
    let client = ReqwestConnector::default().connect(&options).map_err(|error| reason_of(&error, address))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let answer = runtime.block_on(async { tokio::time::timeout(limit, client.execute(request)).await });
    match answer {
        Ok(Ok(answer)) => Ok(answer.status().as_u16()),
        Ok(Err(error)) => Err(reason_of(&error, address)),
        Err(_) => Err(format!("no answer within {:.0} s", limit.as_secs_f64())),
    }
}

/// The innermost cause, which is the shortest, without the address.
fn reason_of(error: &dyn Error, address: &str) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().replace(address, "the address")
}
