//! Whole runs with a bad connection to the remote: a proxy between the binary and moto's server answers 500 and 503
//! before and after the request is executed, resets connections, and cuts answers short.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::signal::Signal;
use trackway_core::{Rng as _, SplitMix64};

use super::{Moto, control_digest, kill_script, run_file, uploaded};
use crate::harness::{Home, eventually, signal};
use crate::training::examples::{STEPS, final_digest, wine_mlp};

/// The longest head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// One of so many requests fails.
const ONE_IN: u64 = 8;

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
enum Fault {
    ErrorBefore,
    ErrorAfter,
    SlowDown,
    ResetBefore,
    ResetAfter,
    Truncated,
}

impl Fault {
    const ALL: [Self; 6] = [
        Self::ErrorBefore,
        Self::ErrorAfter,
        Self::SlowDown,
        Self::ResetBefore,
        Self::ResetAfter,
        Self::Truncated,
    ];

    /// The same request number always has the same luck.
    fn of(seed: u64, request: u64) -> Option<Self> {
        let draw = SplitMix64::new(seed << 32 | request).next_u64();
        draw.is_multiple_of(ONE_IN).then(|| Self::ALL[(draw / ONE_IN) as usize % Self::ALL.len()])
    }
}

/// What the threads of a proxy have in common.
struct ProxyState {
    seed: u64,
    server_port: u16,
    requests: AtomicU64,
    /// By kind, in the order of [`Fault::ALL`].
    struck: [AtomicU64; 6],
    ended: AtomicBool,
}

/// A proxy between a client and a server: one request for each connection.
struct Proxy {
    port: u16,
    shared: Arc<ProxyState>,
}

impl Proxy {
    fn start(server_port: u16, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, struck, ended) = Default::default();
        let shared = Arc::new(ProxyState { seed, server_port, requests, struck, ended });
        let proxy = Self { port, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&shared);
                // What breaks here is one more fault for the client.
                std::thread::spawn(move || drop(shared.serve(client)));
            }
        });
        proxy
    }

    /// What a person would set to reach the server by this way.
    fn environment(&self, server: &Moto) -> Vec<(String, String)> {
        let mut environment = server.environment();
        let endpoint = environment.iter_mut().find(|(name, _)| name == "AWS_ENDPOINT_URL");
        endpoint.expect("it is set").1 = format!("http://127.0.0.1:{}", self.port);
        environment
    }

    fn struck(&self) -> [u64; 6] {
        self.shared.struck.each_ref().map(|count| count.load(Ordering::SeqCst))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl ProxyState {
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let Some(request) = read_request(&mut client)? else { return Ok(()) };
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let fault = Fault::of(self.seed, number);
        if let Some(fault) = fault {
            self.struck[fault as usize].fetch_add(1, Ordering::SeqCst);
        }
        match fault {
            None => client.write_all(&self.forward(&request)?),
            Some(Fault::ErrorBefore) => refuse(&mut client, "500 Internal Server Error", "InternalError"),
            Some(Fault::SlowDown) => refuse(&mut client, "503 Slow Down", "SlowDown"),
            Some(Fault::ErrorAfter) => {
                self.forward(&request)?;
                refuse(&mut client, "500 Internal Server Error", "InternalError")
            }
            Some(Fault::ResetBefore) => client.shutdown(Shutdown::Both),
            Some(Fault::ResetAfter) => {
                self.forward(&request)?;
                client.shutdown(Shutdown::Both)
            }
            Some(Fault::Truncated) => {
                let answer = self.forward(&request)?;
                client.write_all(&answer[..answer.len() / 2])
            }
        }
    }

    /// The server's whole answer.
    fn forward(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(("127.0.0.1", self.server_port))?;
        server.write_all(request)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

/// Reads a request whole, and makes the connection close after its answer. `None`: none came.
fn read_request(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD_BYTES || client.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lines = head.trim_end().lines();
    let header = |line: &&str, name: &str| line.to_ascii_lowercase().starts_with(name);
    let length = lines.clone().find(|line| header(line, "content-length:"));
    let length = length.and_then(|line| line.split(':').nth(1)?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    let kept: Vec<_> = lines.filter(|line| !header(line, "connection:")).collect();
    let mut request = format!("{}\r\nConnection: close\r\n\r\n", kept.join("\r\n")).into_bytes();
    request.append(&mut body);
    Ok(Some(request))
}

fn refuse(client: &mut TcpStream, status: &str, code: &str) -> io::Result<()> {
    let body = format!("<Error><Code>{code}</Code><Message>injected</Message></Error>");
    let length = body.len();
    let head = "Content-Type: application/xml\r\nConnection: close";
    write!(client, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Proves that a whole run comes through with one request in eight failing: its script is killed, then its supervisor,
/// then its disk is emptied; it ends in the weights of an undisturbed run, everything is at the remote, and another
/// empty machine fetches its final state from there. `TRACKWAY_SEED` chooses the faults.
#[test]
fn a_run_comes_through_a_bad_way_to_its_remote() {
    let (Some(wine), Some(moto)) = (wine_mlp(), Moto::start()) else { return };
    let seed = std::env::var("TRACKWAY_SEED").map_or(1, |text| text.parse().unwrap());
    let proxy = Proxy::start(moto.port, seed);
    let environment = proxy.environment(&moto);
    let (home, elsewhere) = (Home::with(&environment), Home::with(&environment));
    let file = run_file(&home, "rough", &wine, 20, true);
    let mut supervisor = home.spawn(&["run", &file, "--inject", "kill@step=60"]);
    uploaded(&home, 80);
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    kill_script(&home);
    // Seals the receipt of the attempt, so that no retry follows it.
    eventually("the receipt of the killed attempt", || {
        let open = home.sql("select attempt_id from training_attempts where termination_reason is null");
        open.is_empty().then_some(())
    });
    std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
    let copied = Command::new("cp").arg("-r").arg(home.state()).arg(elsewhere.state()).status().unwrap();
    assert!(copied.success());
    let run = home.json(&["resume", "rough"]);
    assert_eq!(run["state"], "completed", "seed {seed}: {run}");
    let resumed = run["attempts"].as_array().unwrap().last().unwrap()["resumed_from_step"].as_u64();
    assert!(resumed >= Some(80), "seed {seed}: {run}");
    assert_eq!(final_digest(&home, "rough"), control_digest(&wine), "seed {seed}");
    let remote = &run["remote"];
    assert_eq!(
        (remote["uploaded_step"].as_u64(), &remote["waiting_uploads"], &remote["waiting_commits"]),
        (Some(STEPS), &0.into(), &0.into()),
        "seed {seed}: {run}"
    );

    let run = elsewhere.json(&["resume", "rough"]);
    let last = run["attempts"].as_array().unwrap().last().unwrap();
    assert_eq!(last["resumed_from_step"], STEPS, "seed {seed}: {run}");
    let listed = elsewhere.json(&["checkpoint", "ls", "rough"]);
    let suspect = listed["checkpoints"].as_array().unwrap().iter().find(|one| one["state"] == "suspect");
    assert!(suspect.is_none(), "seed {seed}: {listed}");
    let struck = proxy.struck();
    let requests = proxy.shared.requests.load(Ordering::SeqCst);
    println!("seed {seed}: {requests} requests, of which failed, by kind: {:?} {struck:?}", Fault::ALL);
    assert!(struck.iter().sum::<u64>() > 10, "{struck:?}");
}
