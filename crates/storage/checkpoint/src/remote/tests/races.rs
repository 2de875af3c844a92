//! Uploads and collections at the same time.

use super::*;

/// A storage that lets something else happen, once, just before its n-th call.
struct Interrupted {
    inner: Arc<dyn Backend>,
    calls: AtomicU64,
    at: u64,
    happen: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Interrupted {
    fn new(inner: &Arc<dyn Backend>, at: u64, happen: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let happen = Mutex::new(Some(Box::new(happen) as Box<dyn FnOnce() + Send>));
        Arc::new(Self { inner: Arc::clone(inner), calls: AtomicU64::new(0), at, happen })
    }

    fn happened(&self) -> bool {
        self.happen.lock().unwrap().is_none()
    }

    fn call(&self) -> &dyn Backend {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at
            && let Some(happen) = self.happen.lock().unwrap().take()
        {
            happen();
        }
        self.inner.as_ref()
    }
}

impl Backend for Interrupted {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        self.call().create(name, bytes)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.call().read(name, max_bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.call().replace(name, bytes)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.call().remove(name)
    }
}

/// Three commits with a common file, two of them uploaded; the last one waits for its upload.
fn prepared() -> (Arc<World>, Arc<dyn Backend>) {
    let (world, remote) = (Arc::new(World::new()), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let mut root = world.train(attempt, 1);
    for step in [10, 20, 30, 40] {
        save_shared(&mut root, step);
        world.settle(&remote, None).unwrap();
    }
    save_shared(&mut root, 50);
    world.replica(&remote).unwrap().hand_over().unwrap();
    (world, remote)
}

/// Marks the parent of what is being sent suspect, so that it and the first commit, whose file all share, are deleted.
fn collect_the_parent(world: &World, remote: &Arc<dyn Backend>) {
    let mut replica = world.other_machine().replica(remote).unwrap();
    let parent = replica.remote_list().iter().find(|info| info.step == 40).unwrap().number;
    replica
        .log
        .append(Writer::Housekeeper, |_: &History| {
            Ok::<_, CheckpointError>(Some(Body::suspect(parent, "a test says so")))
        })
        .unwrap();
    let collected = replica.collect(Some(&keep_last(2)), Some(0.0), false).unwrap();
    let retired = collected.plan.retire.contains_key(&parent);
    assert!(retired || collected.refused.is_some(), "{collected:?}");
}

/// Proves that a collection by another machine at any call of an upload, one that deletes the very checkpoints it
/// shares its file with, leaves nothing that is recorded as complete and is not.
#[test]
fn collecting_during_an_upload_breaks_nothing() {
    for at in 0.. {
        let (world, remote) = prepared();
        let (their_world, their_remote) = (Arc::clone(&world), Arc::clone(&remote));
        let interrupted =
            Interrupted::new(&remote, at, move || collect_the_parent(&their_world, &their_remote));
        let backend: Arc<dyn Backend> = interrupted.clone();
        let mut replica = world.replica(&backend).unwrap();
        replica.upload_next(None, &|_, _| {}).unwrap();
        if !interrupted.happened() {
            assert!(at > 20, "only {at} calls");
            return;
        }
        let steps = check_remote(&world, &remote, &format!("collected at call {at}"));
        assert!(steps.contains(&50), "at call {at}: {steps:?}");
    }
}

/// Proves the same the other way round: an upload at any call of a collection.
#[test]
fn uploading_during_a_collection_breaks_nothing() {
    for at in 0.. {
        let (world, remote) = prepared();
        let (their_world, their_remote) = (Arc::clone(&world), Arc::clone(&remote));
        let interrupted = Interrupted::new(&remote, at, move || {
            let mut replica = their_world.replica(&their_remote).unwrap();
            let uploaded = replica.upload_next(None, &|_, _| {}).unwrap();
            assert!(matches!(uploaded, Some(Uploaded::Done { .. })), "{uploaded:?}");
        });
        collect_the_parent(&world, &(interrupted.clone() as Arc<dyn Backend>));
        if !interrupted.happened() {
            assert!(at > 20, "only {at} calls");
            return;
        }
        let steps = check_remote(&world, &remote, &format!("uploaded at call {at}"));
        assert!(steps.contains(&50), "at call {at}: {steps:?}");
    }
}
