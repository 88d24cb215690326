//! Counts the requests of a client, whoever makes them.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Method, Request, Response};
use tower::{Layer, Service};

use super::Metrics;

/// Counts all requests that go through it.
#[derive(Clone, Debug)]
pub(in crate::live) struct Counting(pub(in crate::live) Arc<Metrics>);

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, service: S) -> Counted<S> {
        let metrics = Arc::clone(&self.0);
        Counted { metrics, service }
    }
}

/// A client's service whose requests are counted.
#[derive(Clone, Debug)]
pub(in crate::live) struct Counted<S> {
    metrics: Arc<Metrics>,
    service: S,
}

impl<S, B, A> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let asking = Asking {
            metrics: Arc::clone(&self.metrics),
            verb: verb(
                request.method(),
                request.uri().path(),
                request.uri().query(),
            ),
            since: Instant::now(),
            code: None,
        };
        let answer = self.service.call(request);
        let counted = async move {
            let mut asking = asking;
            let answer = answer.await;
            asking.code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            answer
        };
        counted.boxed()
    }
}

/// A request that is under way. It is counted when it ends, also when nobody waits for it any more.
struct Asking {
    metrics: Arc<Metrics>,
    verb: &'static str,
    since: Instant,
    code: Option<u16>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.metrics
            .asked(self.verb, self.code, self.since.elapsed());
    }
}

/// What Kubernetes calls a request.
fn verb(method: &Method, path: &str, query: Option<&str>) -> &'static str {
    match *method {
        Method::GET => {
            let query = query.unwrap_or_default();
            let watches = |field: &str| matches!(field, "watch" | "watch=1" | "watch=true");
            if query.split('&').any(watches) {
                "watch"
            } else if is_collection(path) {
                "list"
            } else {
                "get"
            }
        }
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// Whether the path is that of all objects of a kind, and not of one of them or of what there is.
fn is_collection(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    // The API server may be behind a path of its own.
    let has_group = match parts.find(|part| matches!(*part, "api" | "apis")) {
        Some("apis") => true,
        Some(_) => false,
        None => return false,
    };
    let mut rest = parts.skip(1 + usize::from(has_group)).peekable();
    let first = rest.next();
    let is_in_namespace = first == Some("namespaces") && rest.clone().count() > 1;
    let rest: Vec<&str> = rest.collect();
    match first {
        None => false,
        Some(_) if is_in_namespace => rest.len() == 2,
        Some(_) => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_called_as_kubernetes_calls_them() {
        let get = |path, query| verb(&Method::GET, path, query);
        for path in [
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/api/v1/namespaces/a/pods",
            "/apis/apps/v1/deployments",
            "/apis/apps/v1/namespaces/a/deployments",
            "/k8s/clusters/c-1/apis/apps/v1/deployments",
        ] {
            assert_eq!(get(path, None), "list", "{path}");
            assert_eq!(get(path, Some("limit=5")), "list", "{path}");
            assert_eq!(get(path, Some("limit=5&watch=true")), "watch", "{path}");
        }
        for path in [
            "/api/v1",
            "/apis/apps/v1",
            "/version",
            "/api/v1/nodes/n",
            "/api/v1/namespaces/a",
            "/api/v1/namespaces/a/pods/p",
            "/api/v1/namespaces/a/pods/p/status",
        ] {
            assert_eq!(get(path, None), "get", "{path}");
        }
        assert_eq!(verb(&Method::POST, "/api/v1/nodes", None), "create");
        assert_eq!(verb(&Method::PUT, "/api/v1/nodes/n", None), "update");
        assert_eq!(verb(&Method::PATCH, "/api/v1/nodes/n", None), "patch");
    }
}
