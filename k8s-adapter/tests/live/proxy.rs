//! A proxy in front of the real API server that does what a script says: answers late, in another way,
//! or not at all.
//!
//! The scheduler speaks plain HTTP to it; requests go on as they are, rights included. It notes every
//! write that it sees. It is frozen to stop the scheduler at a certain write: from then on nothing is
//! passed on in either direction, so that a test may kill the scheduler and nothing happens in between.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gangline_controlplane::ControlPlane;
use http::request::Parts;
use hyper::{Method, Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{
    Client, Config,
    client::Body,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::watch,
    time,
};

/// What happens to a request.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It reaches the API server after this time.
    Late(Duration),
    /// It is carried out at once and answered after this time.
    AnsweredLate(Duration),
    /// It never reaches the API server: the connection breaks.
    Unsent,
    /// It is carried out, and the connection breaks before the answer.
    Lost,
    /// It never reaches the API server, and there is no answer.
    Silent,
    /// It never reaches the API server: this is the answer.
    Answered(u16),
    /// The same, with what an overloaded API server adds: when to come again, in seconds.
    Throttled(u16),
    /// It is carried out, and this is the answer.
    Misreported(u16),
    /// It never reaches the API server, and the proxy is frozen.
    FreezeBefore,
    /// It is carried out, and the proxy is frozen before the answer.
    FreezeAfter,
}

/// A request that changes something, as the proxy saw it.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The node that a pod shall be bound to.
    pub(crate) node: Option<String>,
    /// When it came.
    pub(crate) at: Instant,
    /// What the API server said; `None`: it was not asked, or has not answered.
    pub(crate) status: Option<u16>,
}

impl Write {
    /// The pod whose bind it is.
    pub(crate) fn bind(&self) -> Option<&str> {
        let (_, pod) = self.path.split_once("/pods/")?;
        pod.strip_suffix("/binding")
    }

    /// The pod whose reason to wait it tells.
    pub(crate) fn condition(&self) -> Option<&str> {
        let (_, pod) = self.path.split_once("/pods/")?;
        pod.strip_suffix("/status")
    }

    /// The pod that it evicts.
    pub(crate) fn eviction(&self) -> Option<&str> {
        let (_, pod) = self.path.split_once("/pods/")?;
        pod.strip_suffix("/eviction")
    }

    /// Whether it tells people what happened: nobody decides by that.
    pub(crate) fn is_event(&self) -> bool {
        self.path.contains("/events")
    }

    /// Whether it renews or takes over a lease that exists.
    pub(crate) fn is_renewal(&self) -> bool {
        self.method == Method::PUT && self.path.contains("/leases/")
    }
}

/// Says what happens to a write; `None`: what should. It sees all writes so far, this one as the last.
type Script = Box<dyn FnMut(&[Write]) -> Option<Fate> + Send>;

struct Shared {
    client: Client,
    script: Mutex<Script>,
    writes: Mutex<Vec<Write>>,
    /// Nothing more is passed on.
    is_cut: AtomicBool,
    /// The write at which it was cut has been dealt with, too.
    is_frozen: AtomicBool,
    /// How often all connections were broken.
    breaks: watch::Sender<u32>,
}

/// See the module's head.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    runtime: Option<Runtime>,
}

impl Proxy {
    /// Starts one; `name` tells it from others of the control plane.
    pub(crate) fn start(
        control_plane: &ControlPlane,
        name: &str,
        script: impl FnMut(&[Write]) -> Option<Fate> + Send + 'static,
    ) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let (client, listener) = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig()).unwrap();
            let choice = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &choice).await;
            let mut config = config.unwrap();
            // Whoever asks brings their own, and has their own patience.
            config.auth_info = AuthInfo::default();
            config.default_retry = false;
            config.read_timeout = None;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = TcpListener::bind(address).await.unwrap();
            (Client::try_from(config).unwrap(), listener)
        });
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kubeconfig = control_plane
            .write_kubeconfig(name, &url, control_plane.token())
            .unwrap();
        let shared = Arc::new(Shared {
            client,
            script: Mutex::new(Box::new(script)),
            writes: Mutex::default(),
            is_cut: AtomicBool::new(false),
            is_frozen: AtomicBool::new(false),
            breaks: watch::Sender::new(0),
        });
        runtime.spawn(listen(listener, Arc::clone(&shared)));
        Self {
            shared,
            kubeconfig,
            runtime: Some(runtime),
        }
    }

    /// How to reach the API server through it.
    pub(crate) fn kubeconfig(&self) -> &str {
        self.kubeconfig.to_str().unwrap()
    }

    /// All writes so far.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.shared.writes.lock().unwrap().clone()
    }

    /// The pods that were bound through it, in the order in which they were.
    pub(crate) fn bound(&self) -> Vec<String> {
        let writes = self.writes();
        let done = writes.iter().filter(|write| write.status == Some(201));
        done.filter_map(Write::bind).map(Into::into).collect()
    }

    /// Whether it has come to where its script freezes it.
    pub(crate) fn is_frozen(&self) -> bool {
        self.shared.is_frozen.load(Ordering::Acquire)
    }

    /// Breaks all connections, those of watches too.
    pub(crate) fn break_connections(&self) {
        self.shared.breaks.send_modify(|breaks| *breaks += 1);
    }

    /// Breaks all connections, and passes nothing on any more.
    pub(crate) fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::Release);
        self.break_connections();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(converse(stream, Arc::clone(&shared)));
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| shared.pass(request));
    // An error is what a script asked for, or somebody who went away.
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let mut breaks = shared.breaks.subscribe();
    tokio::select! {
        _ = connection => {}
        _ = breaks.changed() => {}
    }
}

impl Shared {
    async fn pass(&self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        if self.is_cut.load(Ordering::Acquire) {
            return std::future::pending().await;
        }
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await;
        let body = body.map_err(io::Error::other)?;
        let is_read = parts.method == Method::GET;
        let decided = (!is_read).then(|| self.decide(&parts, &body));
        let request = Request::from_parts(parts, Body::from(body));
        let Some((number, fate)) = decided else {
            return self.send(request).await;
        };
        let Some(fate) = fate else {
            return self.send_write(number, request).await;
        };
        match fate {
            Fate::Late(time) => {
                time::sleep(time).await;
                self.send_write(number, request).await
            }
            Fate::AnsweredLate(time) => {
                let answer = self.send_write(number, request).await;
                time::sleep(time).await;
                answer
            }
            Fate::Unsent => Err(io::ErrorKind::ConnectionReset.into()),
            Fate::Lost => {
                self.send_write(number, request).await?;
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Fate::Silent => std::future::pending().await,
            Fate::FreezeBefore => {
                self.is_frozen.store(true, Ordering::Release);
                std::future::pending().await
            }
            Fate::Answered(code) => Ok(status(code)),
            Fate::Throttled(seconds) => {
                // As flow control writes it.
                let text = "Too many requests, please try again later.";
                let answer = Response::builder()
                    .status(429)
                    .header("Retry-After", seconds);
                let body = Body::from(text.as_bytes().to_vec());
                Ok(answer.body(body).unwrap())
            }
            Fate::Misreported(code) => {
                self.send_write(number, request).await?;
                Ok(status(code))
            }
            Fate::FreezeAfter => {
                drop(self.send_write(number, request).await);
                self.is_frozen.store(true, Ordering::Release);
                std::future::pending().await
            }
        }
    }

    /// Notes a write and asks the script; freezes at once, so that no other one passes meanwhile.
    fn decide(&self, request: &Parts, body: &[u8]) -> (usize, Option<Fate>) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut writes = self.writes.lock().unwrap();
        let number = writes.len();
        writes.push(Write {
            method: request.method.clone(),
            path: request.uri.path().to_owned(),
            node: body["target"]["name"].as_str().map(Into::into),
            at: Instant::now(),
            status: None,
        });
        let fate = if self.is_cut.load(Ordering::Acquire) {
            Some(Fate::Silent)
        } else {
            let mut script = self.script.lock().unwrap();
            script(&writes)
        };
        if matches!(fate, Some(Fate::FreezeBefore | Fate::FreezeAfter)) {
            self.is_cut.store(true, Ordering::Release);
        }
        (number, fate)
    }

    async fn send_write(
        &self,
        number: usize,
        request: Request<Body>,
    ) -> io::Result<Response<Body>> {
        let answer = self.send(request).await?;
        self.writes.lock().unwrap()[number].status = Some(answer.status().as_u16());
        Ok(answer)
    }

    async fn send(&self, request: Request<Body>) -> io::Result<Response<Body>> {
        let answer = self.client.send(request).await;
        answer.map_err(io::Error::other)
    }
}

/// An error as the API server writes them.
fn status(code: u16) -> Response<Body> {
    let text = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": format!("the test says {code}"),
    });
    let body = Body::from(text.to_string().into_bytes());
    let answer = Response::builder().status(code);
    answer
        .header("Content-Type", "application/json")
        .body(body)
        .unwrap()
}
