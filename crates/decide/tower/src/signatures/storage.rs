//! A disk, a file system or an object store failed.

use trackway_core::TerminationReason::StorageError;

use super::{RuleName, Signature, cause, verdict};

/// A file system has no space left.
pub(crate) const NO_SPACE: RuleName = RuleName("storage.no_space");

pub(super) const SIGNATURES: &[Signature] = &[
    cause(
        NO_SPACE.as_str(),
        StorageError,
        r"no space left|\bENOSPC\b|errno:? 28\b|StorageFull|(not|isn'?t) enough (free )?(disk )?(space|storage)( left| available| on\b|\W*$)|not enough (free )?disk|enough free (disk )?space|disk( is)? full|insufficient (free )?(disk|storage|space)|out of (disk|storage)|out of space|space on the disk|winerror 112",
    )
    .conclusive()
    .unless(r"/dev/shm|shared memory|/torch_"),
    cause(
        "storage.quota",
        StorageError,
        r"disk quota exceeded|block limit reached|(file ?system|home|disk|scratch|storage) quota (was |is |has been )?(reached|full|hit)|\bEDQUOT\b|errno 122\b|(storage|drive|file|inode) quota[^\n]{0,40}exceed|exceed[^\n]{0,40}storage quota|no (free )?inodes|out of inodes",
    )
    .conclusive(),
    cause(
        "storage.io_error",
        StorageError,
        r"input/output error|errno (5|6|19|121)\]|\bext[234]-fs error|\bxfs \([^)]*\): [^\n]{0,40}(error|corrupt|shutdown)|remote i/o error|\bEIO\b|(blk_update_request|buffer|medium|disk|nvme|ext4-fs|xfs|journal|filesystem|file system|sd[a-z])[^\n]{0,40}i/o error",
    )
    .unless(r"retrying"),
    cause(
        "storage.stale_handle",
        StorageError,
        r"stale (nfs )?file handle|\bESTALE\b|errno 116\b",
    )
    .conclusive(),
    cause(
        "storage.read_only",
        StorageError,
        r"read-only file system|\bEROFS\b|errno 30\b",
    ),
    cause(
        "storage.mount",
        StorageError,
        r"transport endpoint is not connected|transport endpoint shutdown|FailedMount|FailedAttachVolume|unable to attach or mount volumes|MountVolume\.\w+ failed|nfs:? server[^\n]{0,60}not responding|\b(lustre(error)?|gpfs|beegfs|ceph|gcsfuse|juicefs|fuse|efs|fsx)[^\n]{0,100}(error|fail|timed out|evicted|not responding|not connected|unavailable|lost|\bdown\b|\bhung\b)|errno (107|108|117|524)\]|structure needs cleaning|drive (timeout|timed out)|a google drive timeout|device or resource busy: \S*\.nfs",
    ),
    verdict(
        "storage.ephemeral_eviction",
        StorageError,
        r"low on resource: ephemeral-storage|ephemeral.(local )?storage[^\n]{0,60}exceed|exceed[^\n]{0,60}ephemeral.(local )?storage|DiskPressure",
    ),
    cause(
        "storage.object_store",
        StorageError,
        r"please reduce your request rate|reduce your request rate|(bucket|blob|specified (key|container|object|upload|resource)) (does not|doesn'?t) exist|storage\.(objects|buckets)\.\w+ access|\(SlowDown\)|could only be (written|replicated) to \d+|S3UploadFailedError|when calling the (PutObject|GetObject|HeadObject|CreateMultipartUpload|UploadPart|CompleteMultipartUpload|ListObjects\w*|DeleteObjects?|CopyObject|HeadBucket) operation|\b(NoSuchBucket|NoSuchKey|NoSuchUpload|BlobNotFound|ContainerNotFound)\b|google\.cloud\.exceptions|google\.resumable_media|google\.api_core\.exceptions[^\n]*(storage\.googleapis|bucket|object)|storage\.googleapis\.com[^\n]{0,200}(50\d|429|403|fail|error|timed out)|(hdfs|webhdfs|libhdfs)[^\n]{0,120}(error|exception|fail|could only be (written|replicated))|(s3|gcs|blob|bucket|object store|azure storage|minio|oss)[^\n]{0,40}(upload|download|write|read|put|get|checkpoint)[^\n]{0,40}(fail|error|timed out|denied)|(when|while|during|error|fail\w*|rejected)[^\n]{0,30}(upload|download|read|writ|renam|delet)\w*[^\n]{0,20}(gs|s3a?|abfss?|hdfs|wasbs?|oss|r2)://|(fail|error|unable)[^\n]{0,40}(upload|download|writ|read)[^\n]{0,60}(s3:|gs:|s3 |gcs|bucket|blob|azure|hdfs|minio|oss:)|(\b40[13] (forbidden|insufficient|client error)|access denied|permission denied|insufficient permission)[^\n]{0,60}\bbucket|azcopy[^\n]{0,60}fail|storage account[^\n]{0,40}(unavailable|fail|error|denied)|AWS_ERROR_\w*S3\w*|AWS Error [A-Z_]+ during \w+|(?-i:AmazonS3Exception|ResponseStreamingError|AccessControlException|S3Error|BlobStorageError|HDFSError|AzureError|StreamAccess\b|StreamAccessException)",
    ),
    cause(
        "storage.write_failed",
        StorageError,
        r"file write failed|filestream\.write incomplete|pytorchstreamwriter failed writing|short write|readonly database|iostream error|\bwrite error\b|error writing (to )?(file|trailer|disk|record)|unable to flush file|unexpected pos \d+ vs \d+|errno = (5|28|30|116|122)\b|file write failed: time|(failed|unable|could not|cannot) to write [^\n]{0,60}(disk|file system|filesystem)",
    ),
    cause(
        "storage.file_lock",
        StorageError,
        r"unable to lock file|no locks available|errno 37\b|database is locked|unable to open database file|database disk image is malformed|database or disk is full|BlockingIOError: \[Errno 11\][^\n]*\x27|disk i/o error",
    ),
    cause("storage.file_size", StorageError, r"file too large|errno 27\b|\bEFBIG\b"),
    cause(
        "storage.permission",
        StorageError,
        r"NoCredentialsError|unable to locate credentials|DefaultCredentialsError|\b(ExpiredToken|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken)\b|PermissionError: \[Errno 13\][^\n]*|\(AccessDenied\)|access denied[^\n]{0,60}(bucket|s3|blob|storage|object)|OSError: \[Errno 13\]|PermissionError: \[Errno 1\]",
    ),
];
