//! The BLAKE3 of a file from its chunks, hashed in any order. BLAKE3 is a tree: the hash of a file is that of its
//! chunks' hashes, joined pairwise (BLAKE3 paper, section 2.1), so chunks need not wait for each other.

use blake3::hazmat::{HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Bytes read and hashed at a time. A power of two, so that a chunk is a subtree.
pub const CHUNK_BYTES: usize = trackway_formats::checkpoint_manifest::CHUNK_BYTES as usize;

/// What one chunk adds to the hash of its file.
pub type ChunkHash = [u8; 32];

/// How many chunks a file has; at least one.
pub(crate) fn chunk_count(size_bytes: u64) -> usize {
    usize::try_from(size_bytes.div_ceil(CHUNK_BYTES as u64).max(1)).unwrap_or(usize::MAX)
}

/// Hashes a chunk piece by piece.
pub(crate) struct ChunkHasher {
    hasher: blake3::Hasher,
    is_whole_file: bool,
}

impl ChunkHasher {
    /// For chunk `index` of a file that has `count` of them.
    pub fn new(index: usize, count: usize) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset((index * CHUNK_BYTES) as u64);
        Self { hasher, is_whole_file: count == 1 }
    }

    pub fn update(&mut self, piece: &[u8]) {
        self.hasher.update(piece);
    }

    pub fn finish(&self) -> ChunkHash {
        if self.is_whole_file { self.hasher.finalize().into() } else { self.hasher.finalize_non_root() }
    }
}

/// Hashes chunk `index` of a file that has `count` of them.
fn chunk_hash(index: usize, count: usize, bytes: &[u8]) -> ChunkHash {
    let mut hasher = ChunkHasher::new(index, count);
    hasher.update(bytes);
    hasher.finish()
}

/// The hash of the file from those of its chunks, in their order.
pub(crate) fn file_hash(chunks: &[ChunkHash]) -> blake3::Hash {
    match chunks {
        [only] => blake3::Hash::from_bytes(*only),
        _ => {
            let (left, right) = chunks.split_at(left_count(chunks.len()));
            merge_subtrees_root(&joined(left), &joined(right), Mode::Hash)
        }
    }
}

/// What the manifest lists of a file's chunks: nothing when it is one.
pub(crate) fn chunk_texts(chunks: &[ChunkHash]) -> Vec<String> {
    match chunks {
        [_] => Vec::new(),
        _ => chunks.iter().map(|chunk| blake3::Hash::from_bytes(*chunk).to_hex().to_string()).collect(),
    }
}

fn joined(chunks: &[ChunkHash]) -> ChunkHash {
    match chunks {
        [only] => *only,
        _ => {
            let (left, right) = chunks.split_at(left_count(chunks.len()));
            merge_subtrees_non_root(&joined(left), &joined(right), Mode::Hash)
        }
    }
}

/// The left half of the tree is the largest whole one that leaves something for the right.
fn left_count(count: usize) -> usize {
    count.next_power_of_two() / 2
}

pub(crate) fn hash_chunks(bytes: &[u8]) -> Vec<ChunkHash> {
    let count = chunk_count(bytes.len() as u64);
    if count == 1 {
        return vec![chunk_hash(0, 1, bytes)];
    }
    bytes.chunks(CHUNK_BYTES).enumerate().map(|(index, chunk)| chunk_hash(index, count, chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the hash from chunks is the plain hash, for every shape of the tree up to nine chunks, whole and
    /// not, and for the empty file.
    #[test]
    fn chunks_make_the_plain_hash() {
        let bytes: Vec<u8> = (0..9 * CHUNK_BYTES).map(|index| (index * 31 / 7) as u8).collect();
        let sizes = (0..9)
            .flat_map(|count| [count * CHUNK_BYTES, count * CHUNK_BYTES + 1, (count + 1) * CHUNK_BYTES - 1]);
        for size in sizes.chain([bytes.len()]) {
            assert_eq!(file_hash(&hash_chunks(&bytes[..size])), blake3::hash(&bytes[..size]), "{size}");
        }
    }
}
