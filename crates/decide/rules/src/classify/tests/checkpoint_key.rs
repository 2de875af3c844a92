use super::by_hand::raised;
use super::ended;
use crate::classify::*;

/// Proves that a key that settings do not have is an error of code, and one that a checkpoint does not have is one of
/// the checkpoint, by what the line or its function names besides the key; without a frame the key alone decides.
#[test]
fn a_key_is_of_a_checkpoint_where_its_code_says_so() {
    for (code, key, reason) in [
        ("cfg={\"lr\":1}; cfg[\"optimizer\"][\"name\"]", "optimizer", Reason::CodeError),
        ("for s in range(args[\"epoch\"]): pass", "epoch", Reason::CodeError),
        ("n = model_cfg[\"state_dict\"]", "state_dict", Reason::CodeError),
        ("model.load(ckpt[\"state_dict\"])", "state_dict", Reason::CheckpointError),
        ("start = torch.load(path)[\"epoch\"]", "epoch", Reason::CheckpointError),
        ("optimizer.load(state[\"optimizer\"])", "optimizer", Reason::CheckpointError),
    ] {
        let verdict = classify(&ended(Some(1), None, &raised(code, &format!("KeyError: '{key}'"))));
        assert_eq!(verdict.reason, reason, "{code}: {verdict:#?}");
    }
    let resumed =
        raised("start = loaded[\"epoch\"]", "KeyError: 'epoch'").replace("in main", "in resume_from");
    assert_eq!(classify(&ended(Some(1), None, &resumed)).reason, Reason::CheckpointError);
    assert_eq!(classify(&ended(Some(1), None, "KeyError: 'state_dict'\n")).reason, Reason::CheckpointError);
}
