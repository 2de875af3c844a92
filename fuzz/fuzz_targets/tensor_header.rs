//! Whatever the bytes, a header of tensors that is accepted describes them exactly: tensors follow each other without
//! gaps up to the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_checkpoint::bulk::Header;

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = Header::from_bytes(bytes, bytes.len() as u64) else {
        return;
    };
    let mut end = header.tensors.first().map_or(bytes.len() as u64, |tensor| tensor.offset_bytes);
    for tensor in &header.tensors {
        assert_eq!(tensor.offset_bytes, end);
        assert_eq!(tensor.dtype.size_bytes(&tensor.shape), Some(tensor.size_bytes));
        end += tensor.size_bytes;
    }
    assert_eq!(end, bytes.len() as u64);
});
