//! Names that are not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::*;

fn named(world: &World, path: &[u8]) -> PathBuf {
    world.work("").join(OsStr::from_bytes(path))
}

/// Where the files of a folder are, below it, as bytes.
fn files_in(folder: &Path) -> Vec<Vec<u8>> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<Vec<u8>> = names.map(|name| name.as_bytes().to_vec()).collect();
    names.sort();
    names
}

/// Proves that a file with a name that is not UTF-8 is committed, is the attempt's, and is put back under that name where it is gone or
/// damaged, with a later one moved aside under its own.
#[test]
fn a_file_is_committed_and_put_back() {
    let mut world = World::new();
    let pattern = "out/ckpt-\\xff-*.safetensors";
    let mut adopter = world.adopter(1, &[pattern]);
    let path = named(&world, b"out/ckpt-\xff-step30.safetensors");
    write(&path, &tensors(100, 1));
    write(&named(&world, b"out/ckpt-\xfe-step40.safetensors"), &tensors(100, 2));
    let look = world.follow(&mut adopter, 9);
    let [adopted] = &look.adopted[..] else { panic!("{look:?}") };
    assert_eq!((&*adopted.path, adopted.commit.step), ("out/ckpt-\\xff-step30.safetensors", 30));
    let (patterns, quarantine) = (world.patterns(&[pattern]), world.folder.path().join("quarantine"));
    let target = world.view().resume_target().unwrap().unwrap();
    write(&named(&world, b"out/ckpt-\xff-step50.safetensors"), &tensors(100, 3)[..50]);
    let put_back = |world: &mut World, adopter: &mut Adopter| {
        world.look(adopter);
        let history = world.history(adopter);
        Clearing { patterns: &patterns, quarantine: &quarantine, history: &history }
            .put_back(&target)
            .unwrap()
    };
    let restored = put_back(&mut world, &mut adopter);
    assert_eq!((restored.written, &restored.path, restored.cleared.moved.len()), (false, &path, 1));
    assert_eq!(files_in(&quarantine), [b"ckpt-\xff-step50.safetensors".to_vec()]);
    fs::write(&path, tensors(100, 9)).unwrap();
    assert!(put_back(&mut world, &mut adopter).written, "it was damaged");
    assert_eq!(fs::read(&path).unwrap(), tensors(100, 1));
    fs::remove_dir_all(world.work("out")).unwrap();
    assert!(put_back(&mut world, &mut adopter).written, "it was gone");
    assert_eq!(fs::read(&path).unwrap(), tensors(100, 1));
}

/// Proves that a checkpoint in a folder in Latin-1, with a file in it whose name is not UTF-8 either, is committed with
/// every file, found by a pattern and by what it is, and written again as it was; and that a name which looks like an
/// escape stays another one.
#[test]
fn a_folder_is_committed_with_every_file() {
    for named_by in [Some("run\\xe9/checkpoint-*"), Some("r*/checkpoint-*"), None] {
        let mut world = World::new();
        let patterns = || match named_by {
            Some(pattern) => world.patterns(&[pattern]),
            None => Patterns::detecting(&world.work(""), &world.work("home")),
        };
        let (mut adopter, patterns) = (world.adopter_of(1, patterns()), patterns());
        let folder = named(&world, b"run\xe9/checkpoint-30");
        write(&folder.join("model.safetensors"), &tensors(100, 1));
        write(&folder.join("optimizer.pt"), STATE);
        write(&folder.join("rng_state.pth"), STATE);
        write(&folder.join("trainer_state.json"), b"{\"global_step\": 30, \"epoch\": 1.0}");
        write(&folder.join(OsStr::from_bytes(b"vocab-\xff.txt")), b"lone");
        write(&folder.join("vocab-\\xff.txt"), b"a name");
        let look = world.follow(&mut adopter, 60);
        let [adopted] = &look.adopted[..] else { panic!("{named_by:?}: {look:?}") };
        assert_eq!((&*adopted.path, adopted.commit.step), ("run\\xe9/checkpoint-30", 30));
        let before = files_in(&folder);
        fs::rename(&folder, world.work("elsewhere")).unwrap();
        let target = world.view().resume_target().unwrap().unwrap();
        let (quarantine, history) = (world.folder.path().join("quarantine"), world.history(&mut adopter));
        let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
        let restored = clearing.put_back(&target).unwrap();
        assert_eq!((restored.written, &restored.path), (true, &folder));
        assert_eq!(files_in(&folder), before);
        for name in [&b"vocab-\xff.txt"[..], b"vocab-\\xff.txt", b"model.safetensors"] {
            let [there, copy] =
                [&folder, &world.work("elsewhere")].map(|it| it.join(OsStr::from_bytes(name)));
            assert_eq!(fs::read(there).unwrap(), fs::read(copy).unwrap());
        }
        let links = world.folder.path().join("links");
        let at = crate::link_as_written(&target.folder, &links).unwrap();
        assert_eq!(fs::read(at.join(OsStr::from_bytes(b"vocab-\xff.txt"))).unwrap(), b"lone");
    }
}

/// Proves that a state in two files with such names is one checkpoint, and that both are put back.
#[test]
fn several_files_are_committed_together() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let [model, optimizer] =
        [&b"out/model-\xe9-step20.pt"[..], b"out/optim-\xe9-step20.pt"].map(|path| named(&world, path));
    write(&model, STATE);
    write(&optimizer, STATE);
    let look = world.follow(&mut adopter, 20);
    let [adopted] = &look.adopted[..] else { panic!("{look:?}") };
    assert_eq!(
        (&*adopted.path, &*adopted.beside),
        ("out/model-\\xe9-step20.pt", &["optim-\\xe9-step20.pt".to_owned()][..])
    );
    fs::remove_dir_all(world.work("out")).unwrap();
    let (patterns, quarantine) = (world.patterns(&["out/*"]), world.folder.path().join("quarantine"));
    let (target, history) = (world.view().resume_target().unwrap().unwrap(), world.history(&mut adopter));
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    assert!(clearing.put_back(&target).unwrap().written);
    assert!(model.is_file() && optimizer.is_file());
}

/// Proves that the file in which DeepSpeed looks for its newest checkpoint gets the bytes of a name, and is read as such.
#[test]
fn a_tracker_has_the_bytes_of_the_name() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let folder = named(&world, b"out/\xe9_global_step10");
    write(&folder.join("mp_rank_00_model_states.pt"), STATE);
    write(&folder.join("zero_pp_rank_0_mp_rank_00_optim_states.pt"), STATE);
    write(&world.work("out/latest"), b"\xe9_global_step10");
    let look = world.follow(&mut adopter, 20);
    assert_eq!(look.adopted.len(), 1, "{look:?}");
    fs::remove_file(world.work("out/latest")).unwrap();
    let (patterns, quarantine) = (world.patterns(&["out/*"]), world.folder.path().join("quarantine"));
    let (target, history) = (world.view().resume_target().unwrap().unwrap(), world.history(&mut adopter));
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    clearing.put_back(&target).unwrap();
    assert_eq!(fs::read(world.work("out/latest")).unwrap(), b"\xe9_global_step10");
    assert!(clearing.put_back(&target).unwrap().cleared.moved.is_empty(), "it names it already");
}
