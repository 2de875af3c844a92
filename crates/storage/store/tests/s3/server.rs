//! S3 servers on loopback: `s3s-fs` in process with a layer that misbehaves on request, and moto's.

#![allow(clippy::unwrap_used, reason = "a test that cannot start its server has failed")]

use std::collections::HashMap;
use std::io;
use std::net::TcpListener as PortListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use trackway_store::{RemoteBackend, RemoteOptions, Secret};

pub const BUCKET: &str = "runs";
/// What S3 allows at least, and both servers check.
pub const PART_BYTES: u64 = 5 << 20;
const KEY: &str = "KEYOFTEST";
const SECRET: &str = "SECRETOFTEST";

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with 500 and not done.
    ErrorBefore,
    /// It is done and answered with 500.
    ErrorAfter,
    /// It is answered with 503 SlowDown and not done.
    SlowDown,
    /// A conditional PUT is answered with 409 and not done.
    Conflict,
    /// The connection is reset before it is done.
    ResetBefore,
    /// The connection is reset after it is done.
    ResetAfter,
    /// Half of the answer's body arrives, then the connection is reset.
    Truncated,
    /// It is done, and the answer comes too late.
    Late(Duration),
}

/// Which fault a request meets, by its number and method.
pub type Plan = Box<dyn Fn(u64, &Method) -> Option<Fault> + Send + Sync>;

/// What the server does with conditional PUTs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditions {
    /// One PUT of a name at a time, so that look and write are one.
    Serialised,
    /// As `s3s-fs` has them: it looks, then takes the body in, then writes.
    Racing,
    /// `If-None-Match` is dropped.
    Ignored,
    /// `If-None-Match` is answered with 501.
    NotImplemented,
}

struct Layer {
    root: tempfile::TempDir,
    service: S3Service,
    conditions: Conditions,
    plan: Plan,
    requests: Mutex<u64>,
    struck: Mutex<u64>,
    writing: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// An S3 server in this process.
pub struct Server {
    endpoint: String,
    layer: Arc<Layer>,
    runtime: Option<Runtime>,
}

impl Server {
    pub fn start(conditions: Conditions, plan: Plan) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir(root.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let layer = Arc::new(Layer {
            service: builder.build(),
            root,
            conditions,
            plan,
            requests: Mutex::default(),
            struck: Mutex::default(),
            writing: Mutex::default(),
        });
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(accept(listener, Arc::clone(&layer)));
        Self { endpoint, layer, runtime: Some(runtime) }
    }

    /// A server without fault.
    pub fn sound(conditions: Conditions) -> Self {
        Self::start(conditions, Box::new(|_, _| None))
    }

    pub fn backend(&self, prefix: &str) -> RemoteBackend {
        self.backend_with(prefix, &self.options())
    }

    pub fn backend_with(&self, prefix: &str, options: &RemoteOptions) -> RemoteBackend {
        RemoteBackend::new(&format!("s3://{BUCKET}/{prefix}"), options).unwrap()
    }

    pub fn options(&self) -> RemoteOptions {
        options(&self.endpoint)
    }

    /// How many requests failed as planned.
    pub fn struck(&self) -> u64 {
        *self.layer.struck.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Settings for a server on loopback, with little patience.
pub fn options(endpoint: &str) -> RemoteOptions {
    let settings = [("aws_access_key_id", KEY), ("aws_secret_access_key", SECRET)];
    RemoteOptions {
        endpoint: Some(endpoint.into()),
        region: Some("us-east-1".into()),
        allow_http: true,
        settings: settings.map(|(name, value)| (name.into(), Secret(value.into()))).into(),
        request_timeout: Duration::from_secs(2),
        retry_time: Duration::from_secs(2),
        retry_pause: Duration::from_millis(2),
        part_bytes: PART_BYTES,
    }
}

async fn accept(listener: TcpListener, layer: Arc<Layer>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&layer)));
    }
}

async fn serve(stream: TcpStream, layer: Arc<Layer>) {
    // A connection that the layer gives up is reset, as by a machine that goes away.
    let _ = stream.set_zero_linger();
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| Arc::clone(&layer).answer(request));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

type Answer = Response<s3s::Body>;

impl Layer {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Answer> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let request = Request::from_parts(parts, bytes);
        match self.next_fault(request.method()) {
            None => Ok(self.answer_well(request).await),
            Some(Fault::ErrorBefore) => Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
            Some(Fault::SlowDown) => Ok(refusal(StatusCode::SERVICE_UNAVAILABLE, "SlowDown")),
            Some(Fault::Conflict) if request.headers().contains_key(header::IF_NONE_MATCH) => {
                Ok(refusal(StatusCode::CONFLICT, "ConditionalRequestConflict"))
            }
            Some(Fault::Conflict) => Ok(self.answer_well(request).await),
            Some(Fault::ErrorAfter) => {
                self.answer_well(request).await;
                Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"))
            }
            Some(Fault::ResetBefore) => Err(io::Error::other("reset")),
            Some(Fault::ResetAfter) => {
                self.answer_well(request).await;
                Err(io::Error::other("reset"))
            }
            Some(Fault::Truncated) => Ok(truncated(self.answer_well(request).await).await),
            Some(Fault::Late(delay)) => {
                let answer = self.answer_well(request).await;
                tokio::time::sleep(delay).await;
                Ok(answer)
            }
        }
    }

    fn next_fault(&self, method: &Method) -> Option<Fault> {
        let mut requests = self.requests.lock().unwrap();
        let fault = (self.plan)(*requests, method);
        *requests += 1;
        *self.struck.lock().unwrap() += u64::from(fault.is_some());
        fault
    }

    async fn answer_well(&self, request: Request<Bytes>) -> Answer {
        if !request.uri().path().starts_with(&format!("/{BUCKET}")) {
            return refusal(StatusCode::NOT_FOUND, "NoSuchBucket");
        }
        let conditional = request.headers().contains_key(header::IF_NONE_MATCH);
        match self.conditions {
            Conditions::NotImplemented if conditional => {
                return refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
            }
            // The header is signed and cannot be removed; the existing object can, which has the same effect.
            Conditions::Ignored if conditional => {
                let _ =
                    std::fs::remove_file(self.root.path().join(request.uri().path().trim_start_matches('/')));
            }
            _ => {}
        }
        let name = request.uri().path().to_owned();
        let lock = Arc::clone(self.writing.lock().unwrap().entry(name).or_default());
        let serialised = self.conditions == Conditions::Serialised && request.method() != Method::GET;
        let _guard = if serialised { Some(lock.lock().await) } else { None };
        let racing = self.conditions == Conditions::Racing && conditional;
        let request = request.map(|bytes| if racing { slow_body(bytes) } else { s3s::Body::from(bytes) });
        match self.service.call(request).await {
            Ok(answer) => answer,
            Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        }
    }
}

/// A body that takes its time, so that others look before it is written.
fn slow_body(bytes: Bytes) -> s3s::Body {
    let frame = async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok::<_, io::Error>(Frame::data(bytes))
    };
    s3s::Body::http_body_unsync(StreamBody::new(futures_util::stream::once(frame)))
}

fn refusal(status: StatusCode, code: &str) -> Answer {
    let body = format!("<Error><Code>{code}</Code><Message>by intent</Message></Error>");
    let mut answer = Response::new(s3s::Body::from(body));
    *answer.status_mut() = status;
    answer
}

/// The same answer, of which half the body arrives.
async fn truncated(answer: Answer) -> Answer {
    let (mut parts, body) = answer.into_parts();
    let Ok(bytes) = body.collect().await.map(|body| body.to_bytes()) else {
        return refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    };
    if bytes.is_empty() {
        return Response::from_parts(parts, s3s::Body::from(bytes));
    }
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    let half = bytes.slice(..bytes.len() / 2);
    let frames = [Ok(Frame::data(half)), Err(io::Error::other("reset"))];
    let body = StreamBody::new(futures_util::stream::iter(frames));
    Response::from_parts(parts, s3s::Body::http_body_unsync(body))
}

/// moto's S3 server, in a separate process.
pub struct Moto {
    process: Child,
    endpoint: String,
}

impl Moto {
    /// Starts it with the interpreter beside the executable that `TRACKWAY_TEST_MOTO` names; `None`: it names none.
    pub fn start() -> Option<Self> {
        let executable = PathBuf::from(std::env::var_os("TRACKWAY_TEST_MOTO")?);
        let port = PortListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(executable.with_file_name("python"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/moto_server.py"))
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("TRACKWAY_TEST_MOTO names moto_server");
        let moto = Self { process, endpoint: format!("http://127.0.0.1:{port}") };
        moto.make_bucket(port);
        Some(moto)
    }

    fn make_bucket(&self, port: u16) {
        use std::io::{Read as _, Write as _};
        for _ in 0..600 {
            if let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) {
                let request = format!(
                    "PUT /{BUCKET} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(request.as_bytes()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("moto does not answer");
    }

    pub fn backend(&self, prefix: &str) -> RemoteBackend {
        // A server in Python answers in its own time.
        let options = RemoteOptions {
            request_timeout: Duration::from_secs(30),
            retry_time: Duration::from_secs(30),
            ..options(&self.endpoint)
        };
        RemoteBackend::new(&format!("s3://{BUCKET}/{prefix}"), &options).unwrap()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
