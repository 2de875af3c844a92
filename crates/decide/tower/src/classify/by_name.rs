//! What only the name of a class says. `ApiError` and `RateLimitError` are names that clients of services give to their errors, and a script to its
//! own: they speak of a service beside a sign of one, which is a client in the name or among the frames, or a status or a connection in the message.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::placed::Placed;
use crate::scan::{Hit, Phase};
use crate::signatures::{evaluator, exception_names};

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern")
}

/// Names that say nothing of who failed.
static NAMES: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)\b\w*RateLimitError\b|\bAPI(Status|Response)?Error\b|\bServerError\b"));
/// A time that ran out, in a class of the script: Python prints it without a module, or with that of the script.
static OWN_TIMEOUT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^(\[rank\d+\]:)?\W*(__main__\.)?\w+(Timeout|TimeOut|TimedOut)\w*(Error|Exception)\b")
});
/// Signs of a service: a client, a limit or a right of one, a connection, a status of HTTP.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    let of_clients = "openai|anthropic|cohere|mistral|litellm|groq|bedrock|genai|vertexai|gemini|azure|replicate|fireworks|voyage|deepseek|ollama|\
                      vllm|langfuse|hugging_?face|hf_hub|google|grpc|requests|urllib|httpx|httpcore|aiohttp|botocore|boto3|docker|kubernetes|wandb|\
                      mlflow|comet|neptune";
    let of_services = r"rate.?limit|quota|too many requests|(requests|tokens) per |throttl|overloaded|server error|(service|temporarily) unavailable|api.?key|unauthori[sz]ed|forbidden";
    let of_connections = r"connect|network|socket|https?\b|\bdns\b|\burl\b|unreachable|\bgateway\b|\bproxy\b|handshake|\b(ssl|tls)\b";
    let of_status =
        r"(?i:(status|code|http|error)[ _]?(code)?)\W{0,4}[45]\d\d\b|:\s[45]\d\d(\s[-A-Z(]|[:,]|\W*$)";
    compiled(&format!(r"(?i:\b({of_clients})\w*[./]|{of_services}|{of_connections})|{of_status}"))
});
/// Words of a time that ran out.
static TIMED_OUT: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?i)timed? ?out"));

/// Drops the readings that rest on such a name alone. The exceptions that they are remain.
pub(super) fn drop_names(placed: &mut Vec<Placed<'_>>) {
    placed.retain(|found| !is_only_named(found.hit));
}

fn is_only_named(hit: &Hit) -> bool {
    let text = hit.shown();
    let speaks = match hit.signature {
        evaluator::JUDGE_API if NAMES.is_match(&text) => speaks_of_service(&NAMES.replace_all(&text, "")),
        exception_names::NETWORK if OWN_TIMEOUT.is_match(&text) => {
            // `ConnectTimeoutError` says more than that a time ran out.
            SIGNS.is_match(&OWN_TIMEOUT.replace(&text, |class: &Captures<'_>| without_time(&class[0])))
        }
        _ => return false,
    };
    !speaks && !hit.phases.contains(&Phase::Request)
}

fn without_time(class: &str) -> String {
    TIMED_OUT.replace_all(class, " ").into_owned()
}

fn speaks_of_service(text: &str) -> bool {
    SIGNS.is_match(text) || TIMED_OUT.is_match(text)
}

/// A line without the names that say nothing of who failed, where it has no sign of a service beside them.
pub(super) fn without_bare_names(text: &str) -> Cow<'_, str> {
    let rest = NAMES.replace_all(text, "");
    if speaks_of_service(&rest) { Cow::Borrowed(text) } else { rest }
}
