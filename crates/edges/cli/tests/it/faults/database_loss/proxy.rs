//! A server between Trackway and PostgreSQL: it counts what is written, and cuts a connection at a given point.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a server gets for what it was sent before its connection is cut.
const SERVER_TIME: Duration = Duration::from_millis(300);

pub struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    server_port: u16,
    cut: Option<ConnectionCut>,
    cut_count: usize,
    write_count: usize,
}

/// Cuts one connection, once.
pub struct ConnectionCut {
    at: CutPoint,
    /// Whether the server still does what it was sent: the client does not get the reply then.
    is_done: bool,
    /// What happens before the connection is closed; it gives the port of the server from then on.
    meanwhile: Option<Box<dyn FnOnce() -> u16 + Send>>,
}

/// Where a connection is cut.
#[derive(Clone, Copy)]
pub enum CutPoint {
    /// At the first message with this text.
    Text(&'static str),
    /// At the message with this number among those that write, counted from 0 since [`Proxy::cut_next`].
    Write(usize),
}

impl ConnectionCut {
    /// The server never gets the message.
    pub fn before(at: CutPoint) -> Self {
        Self { at, is_done: false, meanwhile: None }
    }

    /// The server executes the message, and the reply is lost.
    pub fn after(at: CutPoint) -> Self {
        Self { at, is_done: true, meanwhile: None }
    }

    pub fn meanwhile(self, work: impl FnOnce() -> u16 + Send + 'static) -> Self {
        Self { meanwhile: Some(Box::new(work)), ..self }
    }
}

impl Proxy {
    pub fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { server_port, ..State::default() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server_port = lock(&shared).server_port;
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { continue };
                let shared = shared.clone();
                std::thread::spawn(move || carry(client, server, &shared));
            }
        });
        Self { port, state }
    }

    pub fn url(&self) -> String {
        format!("postgres://trackway@127.0.0.1:{}/postgres", self.port)
    }

    /// Cuts the next connection that gets to the place, and counts writes from 0.
    pub fn cut_next(&self, cut: ConnectionCut) {
        let mut state = lock(&self.state);
        (state.cut, state.write_count) = (Some(cut), 0);
    }

    pub fn cut_count(&self) -> usize {
        lock(&self.state).cut_count
    }

    /// Messages that write, since the last [`Self::cut_next`].
    pub fn write_count(&self) -> usize {
        lock(&self.state).write_count
    }
}

impl State {
    /// Counts a message, and takes the cut where the message is its place.
    fn take(&mut self, message: &str) -> Option<ConnectionCut> {
        let number = self.write_count;
        let writes = ["INSERT ", "UPDATE ", "DELETE ", "COMMIT"].iter().any(|word| message.contains(word));
        self.write_count += usize::from(writes);
        let is_here = match self.cut.as_ref()?.at {
            CutPoint::Text(text) => message.contains(text),
            CutPoint::Write(wanted) => writes && wanted == number,
        };
        if !is_here {
            return None;
        }
        self.cut_count += 1;
        self.cut.take()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn carry(mut client: TcpStream, mut server: TcpStream, state: &Mutex<State>) {
    let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let silent = Arc::new(Mutex::new(()));
    let held = silent.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(count @ 1..) = back_from.read(&mut bytes) {
            let _turn = held.lock().unwrap();
            if back_to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = back_to.shutdown(Shutdown::Both);
    });
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let cut = lock(state).take(&String::from_utf8_lossy(&bytes[..count]));
        if let Some(cut) = cut {
            let _no_reply = silent.lock().unwrap();
            if cut.is_done {
                let _ = server.write_all(&bytes[..count]);
                std::thread::sleep(SERVER_TIME);
            }
            if let Some(work) = cut.meanwhile {
                let server_port = work();
                lock(state).server_port = server_port;
            }
            break;
        }
        if server.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
