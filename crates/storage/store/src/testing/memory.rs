use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::{Backend, Created};
use crate::error::StoreError;

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryBackend {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl MemoryBackend {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for MemoryBackend {
    fn location(&self) -> String {
        "memory".into()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let mut objects = self.objects();
        if objects.contains_key(name) {
            return Ok(Created::Exists);
        }
        objects.insert(name.into(), bytes.into());
        Ok(Created::New)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self
            .objects()
            .get(name)
            .map(|bytes| bytes[..bytes.len().min(max_bytes.saturating_add(1))].to_vec()))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.objects().insert(name.into(), bytes.into());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.objects().remove(name);
        Ok(())
    }
}
