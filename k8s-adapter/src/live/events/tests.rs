//! Which requests events become, with an API server that takes all of them. Pauses take no time.

use std::sync::Mutex;

use http::{Method, Response};
use kube::{Client, client::Body};
use tokio::sync::mpsc;

use super::{super::lease::Fence, *};

type Sent = Arc<Mutex<Vec<(Method, Value)>>>;

fn client(sent: &Sent) -> Client {
    let sent = Arc::clone(sent);
    let service = tower::service_fn(move |request: Request<Body>| {
        let sent = Arc::clone(&sent);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.expect("a body");
            let body = serde_json::from_slice(&body).expect("is JSON");
            sent.lock().unwrap().push((parts.method, body));
            Ok::<_, std::io::Error>(Response::new(Body::from(b"{}".to_vec())))
        }
    });
    Client::new(service, "default")
}

fn event(name: &str, reason: Reason, note: &str) -> Event {
    let uid = Uid::from_text(name);
    Event {
        regarding: Regarding::pod("n", name, uid),
        reason,
        note: note.into(),
    }
}

/// All requests for these events, when each comes after the one before was sent.
async fn one_after_the_other(events: impl IntoIterator<Item = Event>) -> Vec<(Method, Value)> {
    let (sent, metrics) = (Sent::default(), Arc::new(Metrics::new()));
    let (sender, receiver) = mpsc::unbounded_channel();
    let requests = Requests::new(client(&sent), Fence::open());
    let lane = tokio::spawn(work(requests, receiver, metrics));
    for event in events {
        sender.send(event).unwrap();
        time::sleep(PAUSE * 2).await;
    }
    drop(sender);
    lane.await.unwrap();
    let sent = sent.lock().unwrap();
    sent.clone()
}

#[tokio::test(start_paused = true)]
async fn the_same_said_again_is_counted_and_something_else_is_a_new_event() {
    let waits = |note| event("a", Reason::FailedScheduling, note);
    let events = [
        waits("no room"),
        waits("no room"),
        waits("no room"),
        waits("no rack"),
        event("a", Reason::Scheduled, "bound"),
    ];
    let sent = one_after_the_other(events).await;
    let methods: Vec<&str> = sent.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["POST", "PATCH", "PATCH", "POST", "POST"]);
    let first = &sent[0].1;
    assert_eq!(first["regarding"]["name"], "a");
    assert_eq!(first["note"], "no room");
    assert_eq!(
        (&first["type"], &first["reason"]),
        (&json!("Warning"), &json!("FailedScheduling"))
    );
    assert_eq!(sent[2].1["series"]["count"], 3);
    assert_eq!(sent[4].1["type"], "Normal");
}

#[tokio::test(start_paused = true)]
async fn what_is_over_the_budget_is_dropped_and_groups_go_first() {
    let (sent, metrics) = (Sent::default(), Arc::new(Metrics::new()));
    let (sender, receiver) = mpsc::unbounded_channel();
    for pod in 0..WAITING {
        let name = format!("pod-{pod}");
        sender
            .send(event(&name, Reason::Scheduled, "bound"))
            .unwrap();
        let mut group = event(&name, Reason::Evicted, "short");
        group.regarding.kind = "PodGroup";
        sender.send(group).unwrap();
    }
    let requests = Requests::new(client(&sent), Fence::open());
    let since = Instant::now();
    let lane = tokio::spawn(work(requests, receiver, Arc::clone(&metrics)));
    time::sleep(PAUSE * 2 * WAITING as u32).await;
    drop(sender);
    lane.await.unwrap();
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), WAITING);
    assert!(since.elapsed() >= PAUSE * (WAITING as u32 - 1));
    let kinds = sent
        .iter()
        .map(|(_, event)| event["regarding"]["kind"].as_str());
    let groups = kinds
        .take(WAITING / 2)
        .filter(|kind| *kind == Some("PodGroup"));
    assert_eq!(groups.count(), WAITING / 2);
    let text = metrics.write(true, None);
    for (outcome, count) in [("sent", WAITING), ("dropped", WAITING), ("failed", 0)] {
        let line = format!("gangline_events_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(text.contains(&line), "{line}");
    }
}

#[test]
fn texts_are_cut_between_characters() {
    assert_eq!(shortened("abc", 5), "abc");
    assert_eq!(shortened("abc", 2), "ab");
    assert_eq!(shortened("aäb", 2), "a");
    assert_eq!(shortened("", 0), "");
}
