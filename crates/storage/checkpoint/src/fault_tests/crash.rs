use std::sync::{Arc, Mutex};

use trackway_store::testing::{BackendFault, Fault, FaultBackend, FaultDisk, seeds_asked_for};
use trackway_store::{Backend, MemoryBackend};

use super::deeds::{
    Act, DEEDS, Deed, adopt, collect, four, half_collected, mark_unsafe, next_attempt, pin, save_sixty,
    suspect,
};
use super::scene::Scene;
use super::table::{Cell, publish, render};

/// The columns of the crash matrix.
const DISK_FAULTS: [(&str, &[Fault]); 4] = [
    ("killed", &[Fault::Kill, Fault::Torn]),
    ("power cut", &[Fault::PowerLosesNames, Fault::PowerLosesAll, Fault::PowerReorders { seed: 1 }]),
    ("disk full", &[Fault::Full, Fault::ShortWrite]),
    ("I/O error", &[Fault::InputOutput]),
];

/// The columns of the second one.
const LOG_FAULTS: [(&str, BackendFault); 5] = [
    ("no answer", BackendFault::ErrorBefore),
    ("answer lost", BackendFault::ErrorAfter),
    ("late", BackendFault::Late(3)),
    ("conflict (409)", BackendFault::Conflict),
    ("refused", BackendFault::Refused),
];

/// Does a deed with a fault at every operation, and once more with a power cut just after its end.
fn interrupted(deed: &Deed, fault: Fault, scene: impl Fn() -> Arc<Scene>) -> Cell {
    let mut cell = Cell::default();
    for operation in 0.. {
        let scene = scene();
        let situation = format!("{}: {fault:?} at operation {operation}", deed.name);
        (deed.before)(&scene);
        let act = (deed.act)(&scene, &scene.disk);
        scene.disk.arm(fault, operation);
        let outcome = act();
        let struck = scene.disk.struck();
        if fault.is_deadly() {
            scene.disk.after_crash();
        }
        let holds = (deed.holds)(&scene.check(&situation));
        scene.go_on(&situation);
        if !struck {
            outcome.unwrap_or_else(|error| panic!("{situation}: {error}"));
            assert!(holds || deed.name == "resume", "{situation}: it is not there");
            return cell;
        }
        let answered = outcome.is_ok() && deed.name != "resume" && !deed.name.contains("retire");
        // A mark or an abandon entry that failed does not make the answer fail.
        let courtesy = deed.name.contains("damaged") || deed.name.contains("given up");
        assert!(holds || !answered || courtesy, "{situation}: it was acknowledged and is not there");
        cell += Cell { places: 1, holds: usize::from(holds) };
    }
    unreachable!("operations come to an end")
}

/// Proves over the real code that no crash loses a commit: a kill, a power cut (whatever was not synced lost, kept or
/// re-ordered), a full or a failing disk at every single operation of everything that is done to a root never yields a
/// commit that does not verify, loses none that was acknowledged, deletes nothing pinned, and leaves a root in which
/// training continues and that can be cleaned up. The counts are those published.
#[test]
fn every_operation_may_be_interrupted() {
    let mut columns = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = DISK_FAULTS
            .iter()
            .map(|(_, faults)| {
                let column = move || DEEDS.iter().map(|deed| cell(deed, faults)).collect::<Vec<_>>();
                scope.spawn(column)
            })
            .collect();
        columns.extend(workers.into_iter().map(|worker| worker.join().unwrap()));
    });
    let row = |(index, deed): (usize, &Deed)| {
        (deed.name, columns.iter().map(|column: &Vec<Cell>| column[index]).collect())
    };
    let rows: Vec<_> = DEEDS.iter().enumerate().map(row).collect();
    publish("crash matrix, disk", &render(&DISK_FAULTS.map(|(name, _)| name), &rows));
}

fn cell(deed: &Deed, faults: &[Fault]) -> Cell {
    let mut cell = Cell::default();
    faults.iter().for_each(|fault| cell += interrupted(deed, *fault, Scene::local));
    cell
}

/// Proves the same for the files when the log is in another storage.
#[test]
fn files_are_whole_with_the_log_elsewhere() {
    for deed in &DEEDS {
        for fault in [Fault::Torn, Fault::PowerLosesAll, Fault::PowerReorders { seed: 1 }, Fault::StaysFull] {
            interrupted(deed, fault, || {
                Scene::with_log(FaultBackend::sound(Arc::<MemoryBackend>::default()))
            });
        }
    }
}

/// Proves the same for a log in another storage whose answer to any single call is missing, lost, late, a conflict or a
/// refusal.
#[test]
fn every_call_to_the_log_may_fail() {
    let mut rows = Vec::new();
    for deed in &DEEDS {
        let memory = || -> Arc<dyn Backend> { Arc::<MemoryBackend>::default() };
        let sound = FaultBackend::sound(memory());
        let scene = Scene::with_log(sound.clone());
        (deed.before)(&scene);
        let act = (deed.act)(&scene, &scene.disk);
        let before = sound.calls();
        act().unwrap();
        let cells = LOG_FAULTS.map(|(_, fault)| {
            let mut cell = Cell::default();
            for call in before..sound.calls() {
                let situation = format!("{}: {fault:?} at call {}", deed.name, call - before);
                let scene = Scene::with_log(FaultBackend::at(memory(), call, fault));
                (deed.before)(&scene);
                let outcome = (deed.act)(&scene, &scene.disk)();
                let holds = (deed.holds)(&scene.check(&situation));
                scene.go_on(&situation);
                let answered = outcome.is_ok() && deed.name != "resume" && !deed.name.contains("retire");
                let courtesy = deed.name.contains("damaged") || deed.name.contains("given up");
                assert!(holds || !answered || courtesy, "{situation}: acknowledged, and not there");
                cell += Cell { places: 1, holds: usize::from(holds) };
            }
            cell
        });
        rows.push((deed.name, cells.to_vec()));
    }
    publish("crash matrix, log", &render(&LOG_FAULTS.map(|(name, _)| name), &rows));
}

/// Makes what an actor does on a disk.
type Actor = fn(&Arc<Scene>, &FaultDisk) -> Act;

/// Which actors may run together.
const ACTORS: [(&str, Actor); 7] = [
    ("save", save_sixty),
    ("next attempt", next_attempt),
    ("collect", collect),
    ("pin", pin),
    ("suspect", suspect),
    ("mark unsafe", mark_unsafe),
    ("adopt", adopt),
];

/// Proves that whatever one process does, another one may do something in between any two of its operations: a zombie
/// saves on while it is replaced, what is pinned is about to be deleted, two collect at a time.
#[test]
fn every_operation_may_meet_another() {
    for (name, one) in ACTORS {
        for (other_name, other) in ACTORS {
            for operation in 0.. {
                let situation = format!("{name}, met by {other_name} before operation {operation}");
                let scene = Scene::local();
                four(&scene);
                let one = one(&scene, &scene.disk);
                let other = other(&scene, &scene.disk.another_process());
                let begun = scene.disk.operations();
                let other = Mutex::new(Some(other));
                scene.disk.watch(move |operations| {
                    if operations >= begun + operation
                        && let Some(other) = other.lock().unwrap().take()
                    {
                        drop(other());
                    }
                });
                let _ = one();
                let met = scene.disk.operations() > begun + operation;
                scene.go_on(&situation);
                if !met {
                    break;
                }
            }
        }
    }
}

/// Proves that no process relies on what was merely read: one process is killed at any operation, another one continues
/// from what it finds, and then a power cut at any operation loses or keeps what was never synced.
#[test]
fn a_kill_and_then_a_power_cut() {
    let pairs = [
        ("collect", collect as fn(&Arc<Scene>, &FaultDisk) -> Act, "collect", collect as fn(&_, &_) -> _),
        ("collect", collect, "next attempt", next_attempt),
        ("save", save_sixty, "next attempt", next_attempt),
        ("suspect", suspect, "collect", collect),
        ("pin", pin, "collect", collect),
    ];
    let stride = if seeds_asked_for().is_some() { 1 } else { 8 };
    for (name, one, other_name, other) in pairs {
        for killed in 0.. {
            let mut alive = false;
            for cut in (killed % stride..).step_by(stride) {
                let situation =
                    format!("{name} killed at {killed}, {other_name} with the power cut at {cut}");
                let scene = Scene::local();
                half_collected(&scene);
                let act = one(&scene, &scene.disk);
                scene.disk.arm(Fault::Kill, killed);
                let _ = act();
                alive = !scene.disk.struck();
                let disk = scene.disk.another_process();
                let act = other(&scene, &disk);
                disk.arm(Fault::PowerReorders { seed: cut as u64 }, cut);
                let _ = act();
                disk.after_crash();
                scene.go_on(&situation);
                if !disk.struck() {
                    break;
                }
            }
            if alive {
                break;
            }
        }
    }
}
