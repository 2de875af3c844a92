//! The data no longer has the columns, types or features that the code expects.

use trackway_core::TerminationReason::SchemaDrift;

use super::{Signature, cause};

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        "schema.missing_column",
        SchemaDrift,
        r"cannot resolve [^\n]* given input columns|UNRESOLVED_COLUMN|DATATYPE_MISMATCH|\bUnrecognized name: |number of columns changed|columns must be same length as key|\] not in index|none of \[[^\n]*\] are in the \[?(columns|index)\]?|not found in axis|columns expected but not found|usecols do not match|missing (required |expected )?columns?|columns?( are| is)? missing|columns?[^\n]{0,80}(not found|not in (the )?(dataset|dataframe|table|file|schema|data)|do(es)?n'?t exist|do(es)? not exist|is not present|are not present|not present|cannot be resolved|unrecogni[sz]ed|unknown)|(no|unknown|unrecogni[sz]ed|unexpected|invalid|extra|duplicate|undefined|could ?n[o']t find|cannot find|did not find|unable to find|cannot resolve)( such| the| any)? columns?\b|column ?names? [^\n]{0,60}(mismatch|do(es)?n'?t match|do(es)? not match|differ|not in)|(number of|expected|got|have|has|requires?|passed|with) [^\n]{0,30}columns?[^\n]{0,40}(but|mismatch|expected|got|found|implies|passed|not match)|undefined columns selected|new columns|ColumnNotFound\w*|length mismatch: expected axis",
    )
    .unless(r"\bwarning\b|\bparse error\b|removed unused|no columns to parse|columns? [^\n]*(nan|null|ignored)"),
    cause(
        "schema.features",
        SchemaDrift,
        r"feature[_ ]?names? mismatch|feature[_ ]?shape mismatch|number of features?( of the model| in (the )?(data|input|model))?[^\n]{0,80}(match|not the same|expected|differ|is not|must)|X has \d+ features?|has \d+ features( per sample)?[^\n]{0,30}expecting|feature names (should|must|that|unseen|seen|are|in)|unseen at fit time|(missing|unexpected|unknown|extra) (required )?features?\b|feature \S+ (has|is|was)[^\n]{0,60} in (the )?train\w*[^\n]{0,20}, but|features?[^\n]{0,80}\b(in|from) (the )?(pool|test|input|data\w*)( \w+)? must be\b|feature[^\n]{0,60}(is (required but|present in model|missing|not found|not present)|not in (the )?(data|model|input|pool)|required but could not be found|does not exist|doesn'?t exist|not found|type mismatch|types? (do|does) not match|data types? mismatch)|expected (to see )?\d+ features?|feature count mismatch|num_total_features_|feature_names_\.size|wrong size of feature_names|size of feature_names error|at position \d+ should be feature with name|(training|model|expected)[^\n]{0,40}did not have the following fields|differs? in (number of )?features|features?[^\n]{0,30}(mismatch|incompatible)|should be of same (type|features)|feature (space|set) (has )?(changed|mismatch)|features? (can'?t be aligned|do(es)? not match)|\bcat(egorical)?_?features?[^\n]{0,60}(do not match|don'?t match|mismatch)",
    ),
    cause(
        "schema.schema_words",
        SchemaDrift,
        r"schema(s)?[^\n]{0,60}(mismatch|do(es)?n'?t match|do(es)? not match|did not match|not match|was different|is different|are different|differ|incompatible|changed|validation|error|violation|drift|inconsistent|evol|not compatible|conflict|skew)|(mismatch(ed|ing)?|incompatible|different|inconsistent|invalid|unexpected|changed)[^\n]{0,30}schemas?|(not|missing|found|unable to (infer|merge))[^\n]{0,30}(in |from )?(the )?schema|SchemaErrors?\b|schema (check|validation) fail|dtypes? (changed|differ)|schema error|SchemaInferenceError",
    )
    .unless(r"\bwarning\b|database schema (version|migration)|json.?schema|pydantic"),
    cause(
        "schema.cast",
        SchemaDrift,
        r"couldn'?t cast|DatasetGenerationCastError|CastError|ArrowTypeError|could not convert [^\n]{1,200}with type \w+: tried to convert|ArrowInvalid: could not convert|column\([^)]*\) changed from|invalid type for cat_feature[^\n]*\]=[^n]|cannot be converted in file|unable to merge: field|has incompatible types|expected bytes, got an? '?\w+'? object|DataFrame\.dtypes (for|must)|pandas dtypes must be|(columns?|series|frames?|fields?|categor\w+)[^\n]{0,60} must have (numeric|int|the same) dtypes?|(column|field|feature)[^\n]{0,60}(dtype|data type|type)[^\n]{0,60}(mismatch|expected|but|changed|does not match|incompatible|cannot)|(expected|unexpected|wrong|mismatched|incompatible)[^\n]{0,40}(dtype|data type)[^\n]{0,60}(column|field|feature)|cannot cast (column|field|string|object|from)|bad pandas dtypes|conversion failed for column|cannot (safely )?cast array data from|type mismatch[^\n]{0,60}(column|field|feature)|ComputeError: [^\n]*(cast|convert|dtype|schema)|InvalidOperationError: (conversion|casting)",
    ),
    cause(
        "schema.tf_example",
        SchemaDrift,
        r"can'?t parse serialized example|required but could not be found|data types don'?t match|(type|element)_spec[^\n]{0,60}(compatible|match)|generator[^\n]{0,60}element[^\n]{0,60}(not (match|compatible)|did not match|expected)|dictionary (mismatch|keys)",
    ),
    cause(
        "schema.categories",
        SchemaDrift,
        r"unknown categor(y|ies)|\bhas new levels?\b|unseen (labels?|categor)|previously unseen|new categor(y|ies)[^\n]{0,40}(found|in)",
    ),
    cause(
        "schema.keys",
        SchemaDrift,
        r"no columns in the dataset match|no columns in common|specified with different types from the fit|mismatched dtypes found|metadata mismatch found|unsupported cast from|missing data for input|'DataFrame' object has no attribute|'Series' object has no attribute|'Row' object has no|expect_column_to_exist|failed to enforce schema|model is missing inputs|field ['\x22`]?\w+['\x22`]? (does not exist|not found|is missing|missing)|missing (required )?field|no field (named|of name)|no such field|(unknown|unrecogni[sz]ed) field|(required|expected) (field|key)s?[^\n]{0,40}(missing|not found)",
    )
    .unless(r"hydra|omegaconf|dataclass|config"),
];
