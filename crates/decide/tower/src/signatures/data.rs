//! The content of the data stopped the run: unreadable, torn, empty, out of range.

use trackway_core::TerminationReason::DataError;

use super::{RuleName, Signature, cause, hint};

/// A file of the data is not there, because it never was or because what should have written it failed.
pub(crate) const ABSENT_FILE: RuleName = RuleName("data.absent_file");

/// JSON that cannot be read.
pub(crate) const JSON: RuleName = RuleName("data.json");
/// A row, or one of its values, that cannot be read.
pub(crate) const DELIMITED_TEXT: RuleName = RuleName("data.delimited_text");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "data.image",
        DataError,
        r"UnidentifiedImageError|cannot identify image file|image file is truncated|broken (data stream|png file)|truncated file read|invalid (jpeg|png|gif|bmp|image) (data|file|format|crop)|corrupt (jpeg|image|png)|unrecognized data stream contents|unknown image file format|not a (jpeg|png) file|DecompressionBomb|unable to decode image|(image|jpeg|png)[^\n]{0,20}decod\w+[^\n]{0,30}(fail|error)|libpng error|!_?(s?src|ssize|dsize|img|image)\.empty\(\)|bogus (huffman|marker)|(error|fail(ed|ure)?|unable|could not|cannot)( to| in| when)? (decod|load|open|read)\w*[^\n]{0,20}\b(image|jpe?g|png|tiff?)\b|image (is|was) (none|empty|corrupt)|\bimages? not found\b|channels (inherent )?in the image|\bnode [^\n]{0,60}decode_?(image|png|jpe?g|bmp|gif)|unsupported image|got unknown format starting with|decode(png|jpeg)",
    )
    .unless(r"ignoring extra"),
    cause(
        "data.text_encoding",
        DataError,
        r"UnicodeDecodeError|codec can'?t decode|invalid utf-?8|invalid (start|continuation) byte|stream did not contain valid utf",
    ),
    cause(
        JSON.as_str(),
        DataError,
        r"\b(CAST_INVALID_INPUT|CANNOT_PARSE_\w+|MALFORMED_\w+|FAILED_READ_FILE)\b|JSONDecodeError|expecting value: line|extra data: line|unterminated string starting|json parse error|expecting property name enclosed|invalid control character at|expecting '[,:]' delimiter|ArrowInvalid: json|malformed json|invalid character [^\n]{0,30}(line|column|looking for)|cannot parse (record|line|row)\b|invalid json|failed to (read|load|parse)[^\n]{0,20}json|expected object or value|ValueError: trailing data|when decoding 'string'",
    )
    .unless(r"openai|judge"),
    cause(
        DELIMITED_TEXT.as_str(),
        DataError,
        r"error tokenizing data|ParserError|expected \d+ fields|EmptyDataError|no columns to parse from file|csv (parse )?error|could not convert string to (float|int)|eof inside string|unable to parse string|invalid literal for int\(\)[^\n]*|unknown token [^\n]* in data file|unknown format of training data|error in dsv data|cannot parse [^\n]{1,40} as (a |an )?(float|int|number|date)|cannot convert [^\n]{1,60}' to float|ElementTree\.ParseError|unconverted data remains|does not match format|unknown datetime string format|out of bounds nanosecond timestamp|not well-formed \(invalid token\)|unable to read data channel|requested content-type",
    ),
    cause(
        "data.columnar",
        DataError,
        r"parquet magic bytes|not a parquet file|invalid parquet|ArrowInvalid|\b(parquet|arrow|page header|thrift|orc|snappy|zstd|lz4|row group)\b[^\n]{0,60}(corrupt|truncated|invalid|too small|fail|unexpected|decompress|not a valid)|(corrupt|truncated|invalid)[^\n]{0,30}\b(parquet|arrow|snappy|zstd|page|row group|footer)\b|file must end with PAR1|deserialize thrift|unexpected end of stream|(parquet|thrift)[^\n]{0,20} out of specification",
    )
    .unless(r"schema|could not convert|cast"),
    cause(
        "data.records",
        DataError,
        r"DataLoss(Error)?|DATA_LOSS|(corrupted|truncated) record|data loss:|tfrecord[^\n]{0,40}(corrupt|invalid|truncated)|(bad|invalid) crc|crc (check|checksum)? ?(mismatch|failed)",
    )
    .unless(r"checkpoint|tensor_bundle|sstable"),
    cause(
        "data.archive",
        DataError,
        r"BadZipFile|file is not a zip file|not a gzipped file|compressed file ended before|zlib\.error|tarfile\.\w*ReadError|ReadError: (unexpected|not|file could|bad|empty)|unexpected end of (data|file)|incorrect header check|end-of-central-directory|NonMatching(Checksum|SplitsSizes)Error|(md5|sha256|sha1|checksum)[^\n]{0,60}(mismatch|do(es)? not match|doesn'?t match|not match|fail|wrong|incorrect|didn'?t match)|dataset not found or corrupted|data corrupt|failed to interpret file|cannot load file containing pickled data|failed to read all data for array|no data left in file|mmap length is greater than file size|unpack\(b\) received extra data|can\x27?t (synchronously )?read data\b|didn'?t find \[[^\n]{0,80}\] in \[",
    )
    .unless(r"checkpoint|state_dict|ckpt"),
    cause(
        "data.media",
        DataError,
        r"invalid data found when processing input|\bLibsndfileError\b|\b(lib)?sndfile\b[^\n]{0,20}(unknown format|could not|error)|wave-reader\.cc|InvalidDicom|nibabel[^\n]{0,40}ImageFileError|lmdb\.(Corrupted|Page|Invalid)\w*|moov atom not found|(no|not find|without) (a |any )?(video|audio) stream|format not recogni[sz]ed|(audio|video|decord|ffmpeg|torchcodec|clip)[^\n]{0,60}(corrupt|truncated|cannot (be )?(open|read|decod)|could not (open|read|decode)|failed to (load|open|read|decode)|error (reading|opening|decoding)|decode error)|(fail(ed)? to|could not|cannot|unable to|error) (open|load|decod|read)\w*[^\n]{0,40}(audio|video|clip|\.mp4|\bwav\b|\.mp3|\.flac)|NoBackendError|\bImageFileReader|error opening [^\n]*(wav|flac|mp3|ogg)",
    ),
    cause(
        "data.label_range",
        DataError,
        r"(cur_target|t) >= 0 && (cur_target|t) < n_classes|target -?\d+ is out of bounds|labels? (values? )?must (be|lie|contain)|expected labels? in |labels?[^\n]{0,40}(out of (range|bounds)|should be in|not in range|in \[0, ?num_class\)|in \[0,1\])|received a label value of|outside the valid range|invalid (labels?|classes|target)|invalid classes inferred|all elements of (input|target) should be between 0 and 1|(input|target)_val >= (zero|0) && (input|target)_val <= (one|1)|(nan|inf|null)s? (found )?in (the )?(labels?|targets?)|labels? [^\n]{0,30}(contains?|has|have) (nan|inf|null|negative|infinity)|y contains? (nan|1 class|only)|only one class|target (values|contains|is constant|consists of only)|train targets are|class labels? [^\n]{0,30}(not|invalid|unknown)|exceeds nc=|label class \d+ exceeds|label \S+ is not less than the number of|possible class labels are|unknown label type|label should be (int|an integer|in|between|non-?neg)|targets? are equal|only one unique value|number of classes has to be greater|greater than the number of members in each class|factors? with 2 or more levels|least populated class|factor levels in the outcome (has|have) no data|(response|outcome|dependent variable)[^\n]{0,30}(cannot be|is) constant",
    )
    .unless(r"roc.?auc"),
    cause(
        "data.index_range",
        DataError,
        r"index out of range in self|srcIndex < srcSelectDimSize|indices\[[^\n]*\] ?= ?-?\d+ is not in \[0|vectorized_gather[^\n]*index out of bounds|-sizes\[i\] <= index|idx_dim >= 0|access index \d+ out of table|token (ids?|indices)[^\n]{0,60}(out of|exceed|larger|>=|greater)|(vocab|embedding)[^\n]{0,60}(out of (range|bounds|vocab)|index out)",
    ),
    cause(
        "data.not_finite_input",
        DataError,
        r"invalid type for cat_feature[^\n]*=nan|input (x |y |data )?contains (nan|infinity|`?inf|missing)|contains nan(, infinity|\.| values?| or)|contains `?inf`? or a? ?value|input data contains|too large for dtype|(column|feature|data(set|frame)?|input|features?|array|csv|samples?|rows?|series|matrix)s?\b[^\n]{0,40}(contains?|has|have|with|includes?) [^\n]{0,20}(nans?|nulls?|missing values|infinit|none values)|all features are either constant or ignored|na/nan/inf in|missing values in object\b|\bna not permitted|\bnas (are )?not (allowed|permitted)|check (for )?nan in (the )?(data|input)|nan in (the )?(data|input|feature|column|x\b)|(nan|null|missing) values? (found |detected |present )?in (the )?(data|input|feature|column|train|x\b|y\b)",
    )
    .unless(r"\b(dropp|imput|fill|remov|skipp|replac)(ed|ing|e)\b"),
    cause(
        "data.empty",
        DataError,
        r"n(um)?_samples=0|found 0 (files|images|samples|labels|records|examples|valid)|with 0 (samples?|feature)|0 sample\(s\)|(dataset|data ?set|data ?frame|dataloader|train(ing)? (set|data|split)|corpus|input file|csv|batch)\b[^\n]{0,30}(is|was|are|has|contains?|seems)( an?)? (empty|0 (samples|rows|examples|records)|no (samples|rows|data|examples))|(no|zero) (training |valid |validation |usable )?(data|samples?|images?|examples?|labels?|rows?|records?|instances?)\b[^\n]{0,20}(found|available|left|in|were|remain|loaded|to train)|empty (dataset|data|batch|dataframe|input|training)|ran out of data|(audio|video|image|clip|recording|utterance|sample|file)\b[^\n]{0,80}\bis empty\b|no labels (found )?in|(labels?|target|features?) (variable|column|vector|array)? ?(is|are) empty|there are (not|no) (useful|meaningful) features|\b0 features? (is|are|were) supplied|num_feature != 0|tensor of 0 elements|empty vocabulary|input\.numel\(\) == 0|tensor with no elements|zero-size array to reduction|non-empty (list of tensors|tensorlist)|need at least one array to|no (images|labels|samples|examples|files|annotations|videos|records) found\b|DatasetNotFoundError|40[134] client error[^\n]{0,80}huggingface\.co/(api/)?datasets/|(couldn'?t|could not|cannot|unable to) find (any |a )?(data ?(set)? (files?|script)|dataset)",
    )
    .unless(r"cuda|gpu|device|(testing|evaluation|detection|prediction) results?"),
    cause(
        "data.ragged",
        DataError,
        r"stack expects each tensor to be equal size|each element in list of batch should be of equal size|batch must contain tensors[^\n]*NoneType|all arrays must be of the same length|inhomogeneous (shape|part)|length of values \(\d+\) does not match length of index|expect \d+ fields but have|inconsistent numbers? of samples|trying to resize storage that is not resizable|cannot batch tensors with different shapes|data cardinality is ambiguous|unable to create tensor, you should|excessive nesting",
    ),
    cause(
        "data.generic",
        DataError,
        r"\bbad (data|sample|record|row|line)\b|bounding boxes should have positive|malformed (data|record|row|line|input|csv|file|annotation|xml)|(data|dataset|sample|record|shard|file|annotation|image|index|cache)s?( \S+)? (is|are|was|were|seems?|appears?|might be|may be) (corrupt|damaged|truncated|malformed)|validate_data_dir\.sh: (error|[^\n]{0,60}(fail|differ|empty|missing))|(utt2spk|wav\.scp|segments|spk2utt)[^\n]{0,60}(not sorted|mismatch|differ|is empty)|dataset [^\n]{0,40}not found[^\n]{0,8}(, missing|: )|size of sample #?\d+ is invalid|expected [xy]_(min|max)[^\n]{0,80} to be in|[xy]_max is less than|corrupt(ed)? (data|dataset|sample|shard|file|index|cache|record|input|archive)|data (validation|quality|integrity)[^\n]{0,30}(fail|error)|\bvalues to assemble cannot be null|\bTextEncodeInput must be|\bTextInputSequence must be|text input must (be )?of type `str`",
    )
    .unless(r"\bssl\b|record mac|checkpoint|ckpt|weights|pytorch_model|config\.json|model\.bin|tokenizer|\bfree\(\)|heap|memory|double free|\.so\b|requirements"),
    cause(
        ABSENT_FILE.as_str(),
        DataError,
        r"(FileNotFoundError|no such file or directory|file not found)[^\n]*\.(csv|tsv|jsonl?|parquet|jpe?g|png|txt|npy|npz|tfrecords?|tar|bin|idx|wav|flac|arrow|h5|hdf5|xml|mp4|gz|zip)\b",
    )
    .unless(r"checkpoint|ckpt|weights|pytorch_model|config\.json|model\.bin|tokenizer|\.so\b|requirements"),
    // A kernel checks what it looks up: labels of classes, ids of tokens. How to learn more of any error of a device is advice.
    cause("data.device_assert", DataError, r"device.side assert").unless(r"_DSA\b|enable device.side"),
    hint("data.missing_file", DataError, r"(FileNotFoundError|no such file or directory)[^\n]{0,120}(data|dataset|train|val|test|shard|image|annotation|corpus)"),
];
