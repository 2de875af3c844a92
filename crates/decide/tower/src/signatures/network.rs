//! Machines could not reach each other, or a service that the run needs.

use trackway_core::TerminationReason::NetworkError;

use super::{RuleName, Signature, cause, consequence, hint};

/// The script waits for a service that does not answer.
pub(crate) const WAITING: RuleName = RuleName("network.waiting");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "network.name_resolution",
        NetworkError,
        r"name or service not known|temporary failure (in )?(name )?resol|NameResolutionError|getaddrinfo failed|gaierror|nodename nor servname|could not resolve (host|proxy)|unable to resolve host|no address associated with hostname|unknown ?host|failed to resolve (\W|host|name|address|dns)|no such host",
    )
    .conclusive(),
    cause(
        "network.refused_or_unreachable",
        NetworkError,
        r"connection refused|no route to host|network (is )?unreachable|host (is )?unreachable|ConnectionRefusedError|\bECONN(REFUSED|RESET|ABORTED)\b|\bEHOSTUNREACH\b|(failed|unable) to (connect|reach)|(couldn'?t|could not|can'?t|cannot) (connect|reach)|failed to establish a new connection|\x27ssh [^\n]*non-zero exit status 255|connection error[,.:]|connect(ing|ion)? to [^\n]{0,60} failed",
    )
    .unless(r"x11|display|init server|visdom|jupyter"),
    cause(
        "network.hub",
        NetworkError,
        r"max retries exceeded|(Read|Connect|Connection)Timeout(Error)?\b|read timed out|connection timed out|connection aborted|RemoteDisconnected|IncompleteRead|ChunkedEncodingError|ProtocolError|connect timeout=|timed out trying to connect|CommClosedError|LocalEntryNotFoundError|RemoteProtocolError|ClientConnectorError|ServerDisconnected\w*|FSTimeoutError|NoBrokersAvailable|failed connecting to|EOF occurred in violation of protocol|cannot assign requested address|EndpointConnectionError|ServerTimeoutError|ClientOSError|ClientPayloadError|connection broken|SSHException|dial tcp[^\n]{0,80}(timeout|refused|no such host)|i/o timeout|(failed|unable|could not|cannot) to download\b|could not download\b|\bdownload (failed|error)\b|curl: \(\d+\)|curl error|rpc failed; |early eof|ContentTooShortError|retrieval incomplete|consistency check failed|remote end hung up|UNEXPECTED_EOF_WHILE_READING",
    ),
    cause(
        "network.tls",
        NetworkError,
        r"SSLError|certificate verify failed|(ssl|tls) handshake|SSLCertVerificationError|\[SSL: \w+\]",
    ),
    cause(
        "network.http_status",
        NetworkError,
        r"50[0234](,| |:)? ?[^\n]{0,30}(server error|bad gateway|gateway time-?out|service (temporarily )?unavailable|internal server error)|HTTP Error (429|50\d)|(bad gateway|gateway time-?out|service (temporarily )?unavailable)[^\n]{0,40}(for url|http)|(HTTPError|HfHubHTTPError|HTTPStatusError): (429|5\d\d)|429 (client error|too many requests)|too many requests for url|status.code:? ?(429|50\d)|(?-i:\bInternalServerError\b)",
    ),
    cause(
        "network.rendezvous",
        NetworkError,
        r"rendezvous store is not available|Rendezvous(Timeout|Connection|Closed|Graceful\w*)Error|client socket has timed out|timed out waiting for clients|timed out initializing process group|rendezvous[^\n]{0,80}(fail|timed? ?out|error|closed)|store.?based.?barrier[^\n]{0,80}time|socket timeout|server socket has failed to (listen|bind)|address already in use|\bEADDRINUSE\b|waiting for key[^\n]{0,80}time|timed out after \d+ seconds waiting for clients|wait(ing)? for [^\n]{0,40}(workers|nodes|peers) to join[^\n]{0,40}timed? ?out",
    )
    .unless(r"rendezvous\.cc"),
    cause(
        "network.rpc",
        NetworkError,
        r"StatusCode\.(UNAVAILABLE|DEADLINE_EXCEEDED)|(?-i:UNAVAILABLE|Unavailable): |failed to connect to all addresses|context deadline exceeded|UnavailableError|connection reset by peer|errno:? (101|104|110|111|112|113)\b|\bPMIX_ERR_(UNREACH|LOST_CONNECTION|COMM_FAILURE)\b|\bETIMEDOUT\b|ConnectionResetError|(requests\.exceptions\.)?ConnectionError\b|winerror 100(54|60)|\blost connection to\b|connection to [^\n]{0,60} (timed out|lost|was lost|closed|failed)|connection lost|server closed the connection|connection unexpectedly closed|connection (was )?(unexpectedly )?(dropped|terminated) (by|unexpectedly)|socket (recv|send|connect|accept|bind|read|write) (error|failed)",
    )
    .unless(r"multiprocessing|^object (type name|repr) *:|\bgloo\b|wandb: network error|(shared connection|^connection) to \S+ closed\.?\s*$"),
    cause(
        "network.tracker",
        NetworkError,
        r"(?-i:^CommError\b)|wandb\.(errors|sdk)\S*CommError|error communicating with wandb process|wandb[^\n]{0,60}(timed out|timeout|network error|connection)[^\n]*|(mlflow|comet|neptune|clearml)[^\n]{0,80}(timed out|connection (error|refused|reset)|max retries|unreachable)",
    )
    .unless(r"retry|resolved after"),
    consequence("network.timeout", NetworkError, r"(?-i:\bsocket\.timeout\b)|(?-i:\bTimeoutError\b)[^\n]*(connect|socket|network|https?\b|\bhosts?\b|\burl\b|\bport\b|server|request|download|\bdns\b|handshake|read operation|\bpeer\b|remote|: timed out\s*$)|socket[^\n]{0,30}timed out|(operation|request|download|connection|handshake)[^\n]{0,30}timed out"),
    hint("network.retry", NetworkError, r"network error").unless(r"wandb|w&b"),
    hint(
        WAITING.as_str(),
        NetworkError,
        r"(server|service|endpoint|head node|scheduler|master|coordinator|host|port \d+|peer)s? (\S+ )?(is |are )?(not|isn't|still not) (yet )?(up|ready|reachable|available|responding)\b|waiting for [^\n]{0,40}\b(server|service|endpoint|head node|master|coordinator|rendezvous)\b|(re)?trying (to )?connect|still waiting for (a )?response from|retrying (the )?connection|thrown while requesting [A-Z]+ http|retrying in [\d.]+ ?s[^\n]{0,12}\[retry \d",
    ),
];
