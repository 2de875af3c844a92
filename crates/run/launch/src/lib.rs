//! Launching: the contract every launcher keeps, the launcher for this machine, the shim that outlives the
//! supervisor.

mod channel;
pub mod conformance;
mod container;
mod exit_record;
mod files;
mod gpu;
mod isolation;
mod launcher;
mod local;
mod local_offer;
mod offer;
pub mod outside;
mod process;
mod request;
pub mod shim;
mod spec;
mod stacks;
mod terminal;
pub mod testing;

pub use channel::{AttemptChannel, ChannelReader, FolderChannel, GrowingFile, Stream};
pub use container::{Container, Engine};
pub use exit_record::{
    ERROR_FILE_BYTES_MAX, EXIT_VERSION, ExitRecord, PROCESS_NAMES_MAX, SIGNALS_MAX, SignalReason, SignalSent,
    SpawnError, TreeEnd,
};
pub use files::JSON_BYTES_MAX;
pub use gpu::{Gpu, GpuDriver};
pub use isolation::Isolation;
pub use launcher::{
    EngineState, Instance, LaunchError, Launcher, Observation, ObservedAttempt, Placement, Running, StopMode,
};
pub use local::{LocalLauncher, SHIM_COMMAND, START_MILLIS_MAX};
pub use offer::{Accelerators, Capacity, ContainerStart, NotGiven, Offer, Refusal, RequestPart};
pub use process::{MachineIdentity, ProcessIdentity, Whereabouts};
pub use request::{EngineRequest, GpuRequest, Resources};
pub use spec::{Adopt, ContinuesFrom, LAUNCH_VERSION, LaunchDetails, LaunchSpec, StoredLaunch};
pub use stacks::{KernelThread, ProcessStack, ProgramThread, STACK_SIGNAL, StackDump};
pub use terminal::{Terminal, TerminalStreams, input_waits};
