//! What each answer of the API server leads to, in an order that a script fixes. Time is that of the
//! test: pauses take none.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use http::{Method, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{super::lease::Fence, *};

const UID: Uid = Uid(7);

/// What the API server does with the next request.
#[derive(Clone, Debug)]
enum Reply {
    /// It answers.
    Status(u16, Value),
    /// Its answer does not come through.
    Broken,
    /// It never answers.
    Silent,
}

fn fault(code: u16) -> Reply {
    let status = json!({ "kind": "Status", "code": code, "message": format!("code {code}") });
    Reply::Status(code, status)
}

fn bound() -> Reply {
    Reply::Status(201, json!({ "kind": "Status", "status": "Success" }))
}

/// The pod, as it is read.
fn pod(node: &str) -> Reply {
    let metadata = json!({ "name": "a-0", "uid": UID });
    let spec = if node.is_empty() {
        json!({})
    } else {
        json!({ "nodeName": node })
    };
    Reply::Status(200, json!({ "metadata": metadata, "spec": spec }))
}

/// An API server that follows a script.
#[derive(Clone, Default)]
struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<(Method, String)>>>,
}

impl Script {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = Self::default();
        script.replies.lock().unwrap().extend(replies);
        script
    }

    fn client(&self) -> Client {
        let script = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let script = script.clone();
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                script.requests.lock().unwrap().push((method, path));
                let reply = script.replies.lock().unwrap().pop_front();
                match reply.expect("no more requests were expected") {
                    Reply::Status(code, body) => {
                        let body = Body::from(body.to_string().into_bytes());
                        Ok(Response::builder().status(code).body(body).unwrap())
                    }
                    Reply::Broken => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
                    Reply::Silent => std::future::pending().await,
                }
            }
        });
        Client::new(service, "default")
    }

    /// `W`rites and `R`eads, in their order.
    fn requests(&self) -> String {
        let requests = self.requests.lock().unwrap();
        let letters = requests.iter().map(|(method, path)| match *method {
            Method::POST => {
                assert_eq!(path, "/api/v1/namespaces/n/pods/a-0/binding");
                'W'
            }
            Method::GET => {
                assert_eq!(path, "/api/v1/namespaces/n/pods/a-0");
                'R'
            }
            _ => panic!("{method} {path}"),
        });
        letters.collect()
    }
}

fn member(name: &str) -> Bind {
    Bind {
        plan: 1,
        uid: UID,
        namespace: "n".into(),
        name: name.into(),
        node: "n1".into(),
        annotations: BTreeMap::new(),
        held: Arc::new(AtomicBool::new(true)),
        span: Span::none(),
    }
}

/// All that a bind reports, and the requests that it makes, when the API server answers like this.
async fn outcomes(replies: impl IntoIterator<Item = Reply>) -> (Vec<Outcome>, String) {
    let script = Script::new(replies);
    let outcomes = carry_out(&script, vec![member("a-0")], &Arc::default()).await;
    assert!(script.replies.lock().unwrap().is_empty(), "{outcomes:?}");
    (outcomes, script.requests())
}

async fn carry_out(script: &Script, binds: Vec<Bind>, ticket: &Arc<Ticket>) -> Vec<Outcome> {
    let (reports, mut reported) = mpsc::unbounded_channel();
    let (plans, plan_receiver) = mpsc::unbounded_channel();
    let ticket = Arc::clone(ticket);
    plans.send(Plan { ticket, binds }).unwrap();
    drop(plans);
    Binder::new(
        Requests::new(script.client(), Fence::open()),
        reports,
        Arc::default(),
        Events::new(mpsc::unbounded_channel().0),
    )
    .work(plan_receiver)
    .await;
    let mut outcomes = Vec::new();
    while let Some(report) = reported.recv().await {
        outcomes.push(report.outcome);
    }
    outcomes
}

fn retrying(message: &str) -> Outcome {
    Outcome::Retrying {
        message: message.into(),
    }
}

fn refused(code: u16) -> Outcome {
    Outcome::Refused {
        message: format!("code {code}"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_write_is_enough_and_an_end_is_an_end() {
    assert_eq!(
        outcomes([bound()]).await,
        (vec![Outcome::Bound], "W".into())
    );
    assert_eq!(
        outcomes([fault(404)]).await,
        (vec![Outcome::Gone], "W".into())
    );
    for code in [400, 403, 405, 413, 422, 451] {
        assert_eq!(
            outcomes([fault(code)]).await,
            (vec![refused(code)], "W".into())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_looked_into() {
    let read = async |reply: Reply| outcomes([fault(409), reply]).await;
    assert_eq!(read(pod("n1")).await, (vec![Outcome::Bound], "WR".into()));
    let elsewhere = Outcome::BoundElsewhere { node: "n2".into() };
    assert_eq!(read(pod("n2")).await, (vec![elsewhere], "WR".into()));
    assert_eq!(read(fault(404)).await, (vec![Outcome::Gone], "WR".into()));
    for metadata in [
        json!({ "name": "a-0", "uid": Uid(8) }),
        json!({ "name": "a-0", "uid": UID, "deletionTimestamp": "2026-11-30T12:00:00Z" }),
    ] {
        let reply = Reply::Status(200, json!({ "metadata": metadata, "spec": {} }));
        assert_eq!(read(reply).await, (vec![Outcome::Gone], "WR".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_without_a_cause_is_given_up_after_some_attempts() {
    let again = [fault(409), pod("")];
    let once = [again.as_slice(), &[bound()]].concat();
    let expected = (vec![retrying("code 409"), Outcome::Bound], "WRW".into());
    assert_eq!(outcomes(once).await, expected);
    let for_ever = [&again, &again, &again]
        .map(<[Reply; 2]>::as_slice)
        .concat();
    let for_ever = [for_ever.as_slice(), &[fault(409)]].concat();
    let expected = (vec![retrying("code 409"), refused(409)], "WRWRWRW".into());
    assert_eq!(outcomes(for_ever).await, expected);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_wait_waits_as_long() {
    let mut status = json!({ "kind": "Status", "code": 429, "message": "busy" });
    status["details"] = json!({ "retryAfterSeconds": 30 });
    let since = time::Instant::now();
    let (outcomes_, requests) = outcomes([Reply::Status(429, status), bound()]).await;
    assert_eq!(outcomes_, [retrying("busy"), Outcome::Bound]);
    assert_eq!(requests, "WW");
    assert!(since.elapsed() >= Duration::from_secs(30));
    // What flow control says has no number in it.
    let since = time::Instant::now();
    let plain = Reply::Status(429, json!("Too many requests, please try again later."));
    assert_eq!(outcomes([plain, bound()]).await.1, "WW");
    assert!(since.elapsed() >= Duration::from_secs(1));
    // A token that ran out.
    assert_eq!(outcomes([fault(401), fault(401), bound()]).await.1, "WWW");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_written_is_read_before_it_is_written_again() {
    for unclear in [
        fault(500),
        fault(503),
        fault(504),
        Reply::Broken,
        Reply::Silent,
    ] {
        let (outcomes_, requests) = outcomes([unclear.clone(), pod("n1")]).await;
        assert_eq!((outcomes_, &*requests), (vec![Outcome::Bound], "WR"));
        let replies = [unclear.clone(), pod(""), bound()];
        let (outcomes_, requests) = outcomes(replies).await;
        assert!(matches!(
            *outcomes_,
            [Outcome::Retrying { .. }, Outcome::Bound]
        ));
        assert_eq!(requests, "WRW");
        // Also the answer to the question may be lost.
        let replies = [unclear.clone(), unclear.clone(), fault(429), pod("n1")];
        let (outcomes_, requests) = outcomes(replies).await;
        assert_eq!(outcomes_.last(), Some(&Outcome::Bound));
        assert_eq!(requests, "WRRR");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bind_goes_on_only_while_its_room_is_held() {
    let script = Script::new([]);
    let bind = member("a-0");
    bind.held.store(false, Ordering::Release);
    let ended = carry_out(&script, vec![bind], &Arc::default()).await;
    assert_eq!((ended, &*script.requests()), (vec![Outcome::Abandoned], ""));

    let script = Script::new([fault(429)]);
    let bind = member("a-0");
    let held = Arc::clone(&bind.held);
    let give_back = async {
        time::sleep(Duration::from_millis(500)).await;
        held.store(false, Ordering::Release);
    };
    let ticket = Arc::default();
    let (ended, ()) = tokio::join!(carry_out(&script, vec![bind], &ticket), give_back);
    let expected = vec![retrying("code 429"), Outcome::Abandoned];
    assert_eq!((ended, &*script.requests()), (expected, "W"));
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_withdrawn_before_its_first_write_or_not_at_all() {
    let script = Script::new([]);
    let ticket = Arc::new(Ticket::default());
    assert!(ticket.waits() && ticket.withdraw());
    assert_eq!(carry_out(&script, vec![member("a-0")], &ticket).await, []);
    assert_eq!(script.requests(), "");

    let script = Script::new([bound()]);
    let ticket = Arc::new(Ticket::default());
    assert_eq!(
        carry_out(&script, vec![member("a-0")], &ticket).await,
        [Outcome::Bound]
    );
    assert!(!ticket.waits() && !ticket.withdraw());
}

#[tokio::test(start_paused = true)]
async fn those_that_pause_stand_in_nobodys_way() {
    // As many as may be under way at a time are told to wait for long; one more goes at once.
    let mut long = json!({ "kind": "Status", "code": 429, "message": "busy" });
    long["details"] = json!({ "retryAfterSeconds": 600 });
    let busy = (0..AT_A_TIME).map(|_| Reply::Status(429, long.clone()));
    let rest = (0..=AT_A_TIME).map(|_| bound());
    let script = Script::new(busy.chain(rest));
    let binds = (0..=AT_A_TIME).map(|_| member("a-0")).collect();
    let ended = carry_out(&script, binds, &Arc::default()).await;
    let first = ended.iter().position(|outcome| *outcome == Outcome::Bound);
    assert_eq!(first, Some(AT_A_TIME), "{ended:?}");
}
