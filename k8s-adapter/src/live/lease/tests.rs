//! What fits into a lease. Time is that of the test.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use http::{Method, Request, Response};
use kube::client::Body;

use super::{super::clock::Clock, *};

/// An API server that keeps one lease, and takes so long for each answer.
fn server(slow: Duration) -> (Client, Arc<Mutex<Object>>) {
    let lease = Arc::new(Mutex::new(Object::default()));
    let kept = Arc::clone(&lease);
    let version = Arc::new(AtomicU32::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (kept, version) = (Arc::clone(&kept), Arc::clone(&version));
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            if parts.method != Method::GET {
                let mut object: Object = serde_json::from_slice(&body).unwrap();
                let next = version.fetch_add(1, Ordering::Relaxed) + 1;
                object.metadata.resource_version = Some(next.to_string());
                *kept.lock().unwrap() = object;
            }
            time::sleep(slow).await;
            let (code, text) = if version.load(Ordering::Relaxed) == 0 {
                let status = serde_json::json!({ "reason": "NotFound", "code": 404 });
                (404, status.to_string().into_bytes())
            } else {
                (200, serde_json::to_vec(&*kept.lock().unwrap()).unwrap())
            };
            let answer = Response::builder().status(code).body(Body::from(text));
            Ok::<_, std::io::Error>(answer.unwrap())
        }
    });
    (Client::new(service, "default"), lease)
}

fn lease(client: Client, lasts: Duration) -> Lease {
    let election = Election {
        namespace: None,
        name: "gangline".into(),
        lasts,
    };
    Lease::new(client, &election, Clocks::new(Clock::start()))
}

/// Whether something may be written now, and until when it is over.
async fn passes(fence: &Fence) -> Option<Instant> {
    tokio::select! {
        biased;
        pass = fence.pass() => Some(pass.ends),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_ends_before_the_lease_can_be_lost() {
    for seconds in [3, 15, 60, 3600] {
        let lasts = Duration::from_secs(seconds);
        let slow = Duration::from_millis(300);
        let (client, _) = server(slow);
        let mut lease = lease(client, lasts);
        let fence = lease.fence();
        assert_eq!(passes(&fence).await, None, "nobody has it");
        let asked = Instant::now();
        lease.acquire().await;
        // Others count from when they see our write, which is after we asked for it.
        let asked_for_write = asked + slow;
        let lost = asked_for_write + lasts;
        assert_eq!(*lease.until.borrow(), lost);
        let mut last = None;
        while Instant::now() < lost {
            if let Some(ends) = passes(&fence).await {
                assert!(ends < lost, "{seconds}: {ends:?}, {lost:?}");
                last = Some(Instant::now());
            }
            time::sleep(lasts / 50).await;
        }
        let last = last.expect("it was ours for a while");
        assert!(last + fence.patience() < lost);
        assert!(lost - last < lasts * 2 / 5, "most of the lease is of use");
        assert_eq!(passes(&fence).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_stops_and_who_can_goes_on() {
    let lasts = Duration::from_secs(15);
    let (client, _) = server(Duration::from_secs(1));
    let mut quick = lease(client, lasts);
    quick.acquire().await;
    let fence = quick.fence();
    let hour = time::timeout(Duration::from_hours(1), quick.keep()).await;
    assert!(hour.is_err(), "it is kept");
    assert!(passes(&fence).await.is_some());
    // An answer that comes too late is none, although the lease was written.
    let (client, _) = server(Duration::from_secs(4));
    let mut slow = lease(client, lasts);
    slow.acquire().await;
    let (client, _) = server(Duration::from_secs(6));
    slow.api = Api::namespaced(client, "default");
    let until = *slow.until.borrow();
    slow.keep().await;
    let late = Instant::now() - until;
    assert!(late <= slow.patience() + lasts / 30, "{late:?}");
    assert_eq!(passes(&slow.fence()).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_given_back_when_what_is_being_written_is_over_and_nothing_follows() {
    let (client, kept) = server(Duration::from_millis(1));
    let mut lease = lease(client, Duration::from_secs(15));
    lease.acquire().await;
    let fence = lease.fence();
    let pass = fence.pass().await;
    let holder = || {
        let kept = kept.lock().unwrap();
        kept.spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.clone())
    };
    let release = tokio::spawn(lease.release());
    time::sleep(Duration::from_secs(2)).await;
    assert_ne!(holder().as_deref(), Some(""), "something is being written");
    assert!(passes(&fence).await.is_none());
    drop(pass);
    release.await.unwrap();
    assert_eq!(holder().as_deref(), Some(""));
    assert!(passes(&fence).await.is_none());
}
