use super::by_hand::raised;
use super::ended;
use crate::classify::*;

/// The reason of a training that failed with this traceback.
fn reason(log: &str) -> Reason {
    let mut evidence = ended(Some(1), None, log);
    evidence.is_launch = true;
    classify(&evidence).reason
}

/// Proves that a name which scripts give to their own errors as well is one of code, wherever it is raised, and with a
/// client, a status, a connection or a limit beside it one of the network.
#[test]
fn a_name_needs_a_sign_of_a_service() {
    for (code, error) in [
        ("raise ApiError(\"the plan has 3 layers\")", "__main__.ApiError: the plan has 3 layers"),
        ("raise errors.ApiError(plan)", "project.errors.ApiError: no layer is named head"),
        ("check(plan)", "project.errors.APIError: no layer is named head"),
        ("check(plan)", "ApiError: 500 rows were rejected"),
        ("raise RateLimitError(updates)", "__main__.RateLimitError: 3 updates a step"),
        ("raise ServerError(\"boom\")", "__main__.ServerError: boom"),
        ("raise StepTimeoutError(step)", "project.StepTimeoutError: no batch within 30 s"),
        ("raise error", "__main__.StepTimeoutError: no batch within 30 s"),
    ] {
        assert_eq!(reason(&raised(code, error)), Reason::CodeError, "{code}: {error}");
    }
    for (code, error) in [
        ("raise ApiError(reply)", "project.ApiError: 503 Service Unavailable"),
        ("raise RateLimitError(reply)", "project.RateLimitError: status_code: 429"),
        ("raise ApiError(\"connection refused\")", "project.ApiError: connection refused"),
        ("raise ApiError(\"the request timed out\")", "project.ApiError: the request timed out"),
        ("raise ApiError(reply)", "project.ApiError: rate limit exceeded"),
        ("ask(prompt)", "openai.RateLimitError: try later"),
        ("raise error", "ConnectTimeoutError: no answer"),
    ] {
        assert_eq!(reason(&raised(code, error)), Reason::NetworkError, "{code}: {error}");
    }
    let sent = "Traceback (most recent call last):\n  File \"/a/t.py\", line 9, in main\n    send(plan)\n  \
                File \"/v/lib/python3.11/site-packages/requests/sessions.py\", line 3, in send\n    hook(reply)\n  \
                File \"/a/t.py\", line 4, in hook\n    raise ApiError(\"boom\")\nproject.ApiError: boom\n";
    assert_eq!(reason(sent), Reason::NetworkError);
}
