//! The real code under faults: every operation on the disk and on the log may fail, be the last one, or be interrupted
//! by another process.

mod baton;
mod crash;
mod damage;
mod deeds;
mod holes;
mod nodes;
mod oracle;
mod scene;
mod seeds;
mod simulation;
mod table;
