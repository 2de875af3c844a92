use super::ended;
use crate::classify::*;

/// The traceback of a script that ends with `code`, and what it prints then.
pub(super) fn raised(code: &str, error: &str) -> String {
    format!("Traceback (most recent call last):\n  File \"/a/t.py\", line 9, in main\n    {code}\n{error}\n")
}

/// Proves that storage or memory which ran out only in the words of a script's own `raise` is an exception of code, whatever is before the
/// statement in its line; and that one of the class of such errors, one with words that are not in the statement, and
/// one that a package raised are believed.
#[test]
fn what_a_script_says_itself_is_not_the_machines() {
    let quota = "RuntimeError: disk quota exceeded";
    for (code, error) in [
        ("raise RuntimeError(\"disk quota exceeded\")", quota),
        ("if step == 50: raise RuntimeError(\"disk quota exceeded\")", quota),
        (
            "raise ValueError(f\"no space left on device for {name}\")",
            "ValueError: no space left on device for a",
        ),
        ("raise RuntimeError(\"the host ran out of memory\")", "RuntimeError: the host ran out of memory"),
        (
            "raise Exception(\"DefaultCPUAllocator: not enough memory: you tried to allocate 5 bytes\")",
            "Exception: DefaultCPUAllocator: not enough memory: you tried to allocate 5 bytes",
        ),
    ] {
        let verdict = classify(&ended(Some(1), None, &raised(code, error)));
        assert_eq!((verdict.reason, verdict.confidence), (Reason::CodeError, Confidence::Guess), "{code}");
        assert_eq!((verdict.rule.as_str(), &*verdict.evidence[0].text), ("code.exception", error));
        assert!(verdict.secondary.is_empty(), "{verdict:#?}");
    }
    let ranked = raised("raise RuntimeError(\"disk quota exceeded\")", quota)
        .lines()
        .map(|line| format!("[rank1]: {line}\n"))
        .collect::<String>();
    assert_eq!(classify(&ended(Some(1), None, &ranked)).reason, Reason::CodeError);
    for (code, error, reason) in [
        (
            "raise OSError(28, \"No space left on device\", path)",
            "OSError: [Errno 28] No space left on device: 'a'",
            Reason::StorageError,
        ),
        (
            "raise MemoryError(\"Unable to allocate 93.1 GiB\")",
            "MemoryError: Unable to allocate 93.1 GiB",
            Reason::HostOom,
        ),
        (
            "raise RuntimeError(f\"upload failed: {result.stderr}\")",
            "RuntimeError: upload failed: cp: a: No space left on device",
            Reason::StorageError,
        ),
        ("save(model)", quota, Reason::StorageError),
        (
            "raise RuntimeError(\"CUDA out of memory. Tried to allocate 2.00 GiB\")",
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
            Reason::DeviceOom,
        ),
    ] {
        let verdict = classify(&ended(Some(1), None, &raised(code, error)));
        assert_eq!(verdict.reason, reason, "{code}: {verdict:#?}");
    }
    let package = "Traceback (most recent call last):\n  File \"/a/t.py\", line 9, in main\n    save(model)\n  \
                   File \"/v/lib/python3.11/site-packages/torch/serialization.py\", line 3, in save\n    \
                   raise RuntimeError(\"disk quota exceeded\")\nRuntimeError: disk quota exceeded\n";
    assert_eq!(classify(&ended(Some(1), None, package)).reason, Reason::StorageError);
}

/// Proves that such words count where they translate an error that the machine may have caused, and not where they translate one of code.
#[test]
fn words_that_translate_an_error_are_believed() {
    let own =
        raised("raise RuntimeError(\"disk quota exceeded\") from error", "RuntimeError: disk quota exceeded");
    let chained = |first: &str| {
        let first = raised("write(path)", first);
        let joined =
            format!("{first}\nThe above exception was the direct cause of the following exception:\n\n{own}");
        classify(&ended(Some(1), None, &joined)).reason
    };
    assert_eq!(chained("OSError: [Errno 122] Disk quota exceeded"), Reason::StorageError);
    assert_eq!(chained("store.WriteError: code 17"), Reason::StorageError);
    assert_eq!(chained("KeyError: 'free'"), Reason::CodeError);
}

/// Proves that a device, a network or a budget in the words of a script is an exception of code, also of a class that
/// the script defines and of one of values with words from elsewhere, and that a class by which a machine reports, one
/// of a package and the imitated message of an allocator are believed.
#[test]
fn what_others_have_to_say_is_not_a_scripts() {
    let vocabulary = "ValueError: the sentence 'CUDA out of memory' is not in the vocabulary";
    for (code, error) in [
        ("raise ValueError(\"the sentence 'CUDA out of memory' is not in the vocabulary\")", vocabulary),
        ("raise ValueError(message)", vocabulary),
        ("raise ValueError(", vocabulary),
        (
            "raise ValueError(\"layer 3 connection refused: shapes differ\")",
            "ValueError: layer 3 connection refused: shapes differ",
        ),
        (
            "raise QuotaError(\"budget for augmentation exceeded: 5 > 3\")",
            "__main__.QuotaError: budget for augmentation exceeded: 5 > 3",
        ),
        (
            "raise RuntimeError(\"replay memory is full: cannot allocate memory slot 7\")",
            "RuntimeError: replay memory is full: cannot allocate memory slot 7",
        ),
        (
            "raise RuntimeError(\"disk quota of ideas exceeded: no space left in the design doc\")",
            "RuntimeError: disk quota of ideas exceeded: no space left in the design doc",
        ),
        (
            "assert ok, \"no space left on device for the plan\"",
            "AssertionError: no space left on device for the plan",
        ),
        ("raise asyncio.CancelledError()", "asyncio.exceptions.CancelledError"),
        (
            "raise ConnectionError(\"layer 3 is connected to nothing\")",
            "__main__.ConnectionError: layer 3 is connected to nothing",
        ),
        ("raise SSLError(\"teacher and student differ\")", "__main__.SSLError: teacher and student differ"),
    ] {
        let verdict = classify(&ended(Some(1), None, &raised(code, error)));
        assert_eq!(verdict.reason, Reason::CodeError, "{code}: {verdict:#?}");
    }
    for (code, error, reason) in [
        (
            "raise ConnectionError(\"connection refused by the feature store\")",
            "ConnectionError: connection refused by the feature store",
            Reason::NetworkError,
        ),
        (
            "raise socket.gaierror(-2, \"Name or service not known\")",
            "socket.gaierror: [Errno -2] Name or service not known",
            Reason::NetworkError,
        ),
        (
            "raise gaierror(-3, \"Temporary failure in name resolution\")",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
            Reason::NetworkError,
        ),
        (
            "raise ssl.SSLError(1, \"[SSL: WRONG_VERSION_NUMBER] wrong version number\")",
            "ssl.SSLError: [SSL: WRONG_VERSION_NUMBER] wrong version number",
            Reason::NetworkError,
        ),
        (
            "raise RemoteDisconnected(\"Remote end closed connection without response\")",
            "http.client.RemoteDisconnected: Remote end closed connection without response",
            Reason::NetworkError,
        ),
        (
            "raise ConnectionResetError(104, \"Connection reset by peer\")",
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            Reason::NetworkError,
        ),
        (
            "raise EndpointConnectionError(endpoint_url=url)",
            "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: \"https://b\"",
            Reason::NetworkError,
        ),
        (
            "raise torch.cuda.OutOfMemoryError(\"CUDA out of memory. Tried to allocate 2.00 GiB\")",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
            Reason::DeviceOom,
        ),
        (
            "raise ValueError(\"loss is nan at step 3\")",
            "ValueError: loss is nan at step 3",
            Reason::NumericDivergence,
        ),
    ] {
        let verdict = classify(&ended(Some(1), None, &raised(code, error)));
        assert_eq!(verdict.reason, reason, "{code}: {verdict:#?}");
    }
}
