//! What only the name of a class says. `ApiError` and `RateLimitError` are names that clients of services give to their
//! errors, and a script to its own: they speak of a service beside a sign of one, which is a client in the name or
//! among the frames, or a status or a connection in the message.

use std::borrow::Cow;

use crate::classify::placed::PlacedHit;
use crate::pattern::Pattern;
use crate::scan::{Hit, Phase};
use crate::signatures::{evaluator, exception_names};

/// Names that say nothing of who failed.
static NAMES: Pattern = Pattern::new(r"\b\w*RateLimitError\b|\bAPI(Status|Response)?Error\b|\bServerError\b");
/// A time that ran out, in a class of the script: Python prints it without a module, or with that of the script.
static OWN_TIMEOUT: Pattern =
    Pattern::exact(r"^(\[rank\d+\]:)?\W*(__main__\.)?\w+(Timeout|TimeOut|TimedOut)\w*(Error|Exception)\b");
/// Signs of a service: a client, a limit or a right of one, a connection, a status of HTTP.
static SIGNS: Pattern = Pattern::made(|| {
    let of_clients = "openai|anthropic|cohere|mistral|litellm|groq|bedrock|genai|vertexai|gemini|azure|replicate|fireworks|voyage|deepseek|ollama|\
                      vllm|langfuse|hugging_?face|hf_hub|google|grpc|requests|urllib|httpx|httpcore|aiohttp|botocore|boto3|docker|kubernetes|wandb|\
                      mlflow|comet|neptune";
    let of_services = r"rate.?limit|quota|too many requests|(requests|tokens) per |throttl|overloaded|server error|(service|temporarily) unavailable|api.?key|unauthori[sz]ed|forbidden";
    let of_connections = r"connect|network|socket|https?\b|\bdns\b|\burl\b|unreachable|\bgateway\b|\bproxy\b|handshake|\b(ssl|tls)\b";
    let of_status =
        r"(status|code|http|error)[ _]?(code)?\W{0,4}[45]\d\d\b|(?-i::\s[45]\d\d(\s[-A-Z(]|[:,]|\W*$))";
    format!(r"\b({of_clients})\w*[./]|{of_services}|{of_connections}|{of_status}")
});
/// Words of a time that ran out.
static TIMED_OUT: Pattern = Pattern::new(r"timed? ?out");

/// Drops the readings that rest on such a name alone. The exceptions that they are remain.
pub(crate) fn drop_names(placed: &mut Vec<PlacedHit<'_>>) {
    placed.retain(|found| !is_only_named(found.hit));
}

/// Whether the reading of the line rests on such a name alone.
pub(super) fn is_only_named(hit: &Hit) -> bool {
    let text = hit.shown();
    let speaks = match hit.signature {
        evaluator::JUDGE_API if NAMES.is_match(&text) => speaks_of_service(&NAMES.replaced(&text, "")),
        exception_names::NETWORK if OWN_TIMEOUT.is_match(&text) => {
            // `ConnectTimeoutError` says more than that a time ran out.
            let class = OWN_TIMEOUT.find(text.as_bytes()).unwrap_or_default();
            let (before, behind) = (&text[..class.start], &text[class.end..]);
            SIGNS.is_match(format!("{before}{}{behind}", TIMED_OUT.replaced(&text[class.clone()], " ")))
        }
        _ => return false,
    };
    !speaks && !hit.phases.contains(&Phase::Request)
}

fn speaks_of_service(text: &str) -> bool {
    SIGNS.is_match(text) || TIMED_OUT.is_match(text)
}

/// A line without the names that say nothing of who failed, where it has no sign of a service beside them.
pub(super) fn without_bare_names(text: &str) -> Cow<'_, str> {
    let rest = NAMES.replaced(text, "");
    if speaks_of_service(&rest) { Cow::Borrowed(text) } else { rest }
}
