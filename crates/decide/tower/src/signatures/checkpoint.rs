//! A checkpoint could not be saved consistently, read back, or matched to the model that loads it.

use trackway_core::TerminationReason::CheckpointError;

use super::{RuleName, Signature, cause, hint};

/// An archive of a checkpoint, or of data, cannot be read.
pub(crate) const UNREADABLE_ARCHIVE: RuleName = RuleName("checkpoint.unreadable_archive");
/// A checkpoint is not there, because it never was or because what should have written it failed.
pub(crate) const ABSENT_FILE: RuleName = RuleName("checkpoint.absent_file");
/// What a checkpoint holds is not what the script expects.
pub(crate) const TRAINING_STATE: RuleName = RuleName("checkpoint.training_state");
/// An HDF5 file cannot be read.
pub(crate) const HDF5_WEIGHTS: RuleName = RuleName("checkpoint.hdf5_weights");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "checkpoint.state_mismatch",
        CheckpointError,
        r"error\(s\) in loading state_dict|(missing|unexpected) key\(?s?\)? in (the )?(source )?(state_?dict|checkpoint)|size mismatch for \S+|copying a param with shape|from checkpoint, the shape in current model|state.?dict(ionary)? [^\n]{0,60}corrupt|state.?dict (contains|has|does not|doesn'?t|mismatch|is missing)[^\n]*|loaded state dict (contains|has) (a parameter group|a different number)|different number of parameter groups|param(eter)? groups[^\n]{0,40}(saved|checkpoint|loaded)|incompatible (state_?dict|checkpoint)",
    )
    .unless(r"warning|were not used|newly initialized|there were (missing|unexpected) keys in the checkpoint model loaded"),
    cause(
        UNREADABLE_ARCHIVE.as_str(),
        CheckpointError,
        r"pytorchstreamreader failed|failed finding central directory|could not find MARK|EOFError: ran out of input|storage has wrong byte size|incorrect model file descriptor|file in archive is not in|invalid header or archive is corrupted|unexpected eof, expected \d+ more bytes|the file might be corrupted|invalid magic number|file \S+\.(pth?|ckpt|bin|safetensors) cannot be opened|UnpicklingError|pickle data was truncated|weights.only load failed",
    )
    .unless(r"failed to interpret file"),
    cause(
        "checkpoint.safetensors",
        CheckpointError,
        r"HeaderTooLarge|HeaderTooSmall|InvalidHeader\w*|MetadataIncompleteBuffer|error while deserializing header|SafetensorError[^\n]*(deserializ|header|invalid|incomplete|does not contain|not found)",
    )
    .unless(r"no space|storagefull"),
    cause(
        "checkpoint.tensorflow",
        CheckpointError,
        r"not found in checkpoint|unsuccessful tensorslicereader|checksum does not match[^\n]*|(not found|notfounderror)[^\n]*(restoring|checkpoint)|restoring from checkpoint failed|not an sstable|attempting to restore variable|unable to open table file|tensor_bundle|tensor name \S+ not found in checkpoint|assign requires shapes of both tensors to match|tensor[^\n]*shapes? (in checkpoint|mismatch)[^\n]*",
    ),
    cause(
        HDF5_WEIGHTS.as_str(),
        CheckpointError,
        r"truncated file: eof|file signature not found|layer count mismatch|load(ing)? (a )?weights? file containing \d+|weight count mismatch|into a model with \d+ layers|unable to (synchronously )?open file \([^)]*(truncated|signature|unable to read)|shape mismatch in layer|expects \d+ weight\(s\), but|variables during loading",
    ),
    cause(
        TRAINING_STATE.as_str(),
        CheckpointError,
        r"(checkpoint|ckpt)[^\n]{0,120}(corrupt|truncated|mismatch|incompatible|invalid|incomplete|not a valid|cannot be loaded|could not be loaded|can'?t be loaded|unreadable|(is|are) missing|missing key|does not match|doesn'?t match|not equal|differs? from|not the same|has shape|does not exist|not found|does not contain|is empty|wrong|contains only)|(corrupt(ed)?|truncated|incompatible|invalid|incomplete|no valid|no such|could not (find|load|read|restore|save|deserialize)|cannot (find|load|read|restore|resume|save)|can'?t (find|load|read|restore|resume|save)|fail(ed|ure)? (to|in|while|during) (find|load|read|restor|resum|sav|writ|loading|saving|writing|restoring)(e|ing)?|unable to (find|load|read|restore|resume|save)|error (while |when |in )?(loading|saving|restoring|reading|writing|resuming))[^\n]{0,80}(checkpoint|\bckpt|optimizer state|training state|state_?dict|\.pth?\b)|keyerror:? ['\x22](state_dict|model_state_dict|optimizer\w*|lr_schedulers?|epoch|global_step|model|ema|param_groups)['\x22]|does not contain (the )?optimizer state|(dp|tp|pp|world)[_ -]?(size|degree)[^\n]{0,80}(checkpoint|saved|loaded|elastic)[^\n]*|(checkpoint|zero|saved)[^\n]{0,80}(dp|tp|pp|data parallel|tensor parallel|world|mp)[_ -](world )?(size|degree)[^\n]*",
    )
    .unless(r"\b(warning|warn|info)\b|no checkpoint found|starting from scratch|training from scratch|gradient.checkpoint|activation.checkpoint|use_reentrant"),
    cause(
        "checkpoint.distributed",
        CheckpointError,
        r"CheckpointException|missing key in checkpoint|error opening \W{0,2}(zarr3?|ocdbt|n5)\b|dict key mismatch; expected keys|(checkpoint|ckpt)[^\n]{0,60} has \d+ [^\n]{0,40}model (has|expects) |when restoring (a |the )?(variable|checkpoint|model|optimizer)\b|(unknown|extra) key[^\n]{0,40} in (the )?checkpoint|some tensors share memory|contained? shared tensors|state dict keys do not match|shape mismatch (for|in|of|between) [^\n]{0,20}\b(loaded|saved|stored)\b|(orbax|tensorstore|ocdbt|flax\.(training|serialization)|zarr)[^\n]{0,160}(error|invalid|not found|mismatch|incompatible|missing|corrupt|not match)|requested shape: \([^)]*\) is not compatible with the stored shape|(target|template|restored)[^\n]{0,60}(tree|pytree|structure)[^\n]{0,60}(mismatch|do(es)? not match|differ)|user-provided restore item[^\n]*match",
    ),
    cause(
        "checkpoint.loader_class",
        CheckpointError,
        r"unable to load weights from|no file named \S+[^\n]* found in directory|model file (doesn'?t|does not|isn'?t|is not|has no) |trying to load weights? [^\n]*(mismatch|different|incompatible)|(model|booster|weights) (file|format)[^\n]{0,60}(corrupt|truncated|invalid|error|unsupported|mismatch|incompatible)|(loading|reading) model[^\n]{0,40}(fail|error|corrupt)|error loading model: (missing tensor|done_getting_tensors|check_tensor_dims|tensor |invalid magic)|model is corrupted or incomplete|model format error|(wrong|invalid) model format|has wrong file format|(snapshot|checkpoint|model|weights) file[^\n]{0,80}cannot be (read|opened|loaded)|savedmodel file does not exist|accessible `?\.keras|does not appear to have a file named (pytorch_model|model|tf_model|flax_model|adapter)|parent directory \S+ does not exist|fail(ed)? to (load|restore) (the )?optimizer\b|failed to (load|read) (the )?(model|weights|booster)|(cannot|could not|unable to) (load|read) (the )?(model )?weights|serialisation_header|loading a serialized model",
    ),
    cause(
        ABSENT_FILE.as_str(),
        CheckpointError,
        r"(FileNotFoundError|no such file or directory)[^\n]*(\.pth?|\.ckpt|\.safetensors|\.distcp|/checkpoint-\d+|/global_step_?\d+)\b|(?-i:(Error|Exception)): no (valid |saved )?checkpoints? (was |were )?found|\bmissing (file )?\S+\.(pth?|ckpt|safetensors|distcp)\b",
    ),
    hint(
        "checkpoint.saving",
        CheckpointError,
        r"error[^\n]{0,60}checkpoint",
    )
    .unless(r"\b(warning|warn|info)\b|no error"),
];
