//! What the API server's answers to a bind, and to the question what became of one, mean.
//!
//! Status codes enter, one [`Answer`] leaves. Everything that may be answered has a meaning here, so that
//! nothing is retried that cannot work and nothing is given up that can.

use std::time::Duration;

use serde::Deserialize;

use super::Bind;
use crate::api;

/// How long to wait when the API server wants less of us and does not say for how long.
const THROTTLED: Duration = Duration::from_secs(1);

/// What is known after one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) enum Answer {
    /// The pod is bound where it should be.
    Bound,
    /// It is bound to another node.
    BoundElsewhere { node: String },
    /// It is not bound.
    Unbound,
    /// It is gone, is being deleted, or is another one of its name.
    Gone,
    /// The pod is not what it was taken for: it may be bound, be about to go, or be another one.
    Conflict { message: String },
    /// The same request will be answered in the same way.
    Refused { message: String },
    /// Nothing happened: the API server wants us to wait.
    Throttled { message: String, after: Duration },
    /// It may have happened or not: no answer, or one that does not say.
    Unclear { message: String },
}

/// The meaning of an answer to a bind.
pub(super) fn of_bind(answer: Result<String, kube::Error>) -> Answer {
    match answer {
        // The text says no more than the code.
        Ok(_) => Answer::Bound,
        Err(error) => of_error(error),
    }
}

#[derive(Deserialize)]
struct Pod {
    metadata: api::ObjectMeta,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
}

/// The meaning of an answer to the question what the pod is now.
pub(super) fn of_find(answer: Result<String, kube::Error>, bind: &Bind) -> Answer {
    let pod: Pod = match answer.map(|text| serde_json::from_str(&text)) {
        Ok(Ok(pod)) => pod,
        Ok(Err(error)) => {
            let message = error.to_string();
            return Answer::Unclear { message };
        }
        Err(error) => return of_error(error),
    };
    let uid = gangline::units::Uid::from_text(&pod.metadata.uid);
    if uid != bind.uid {
        Answer::Gone
    } else if pod.spec.node_name == bind.node {
        Answer::Bound
    } else if !pod.spec.node_name.is_empty() {
        let node = pod.spec.node_name;
        Answer::BoundElsewhere { node }
    } else if pod.metadata.deletion_timestamp.is_some() {
        Answer::Gone
    } else {
        Answer::Unbound
    }
}

/// The meaning of an error.
pub(in crate::live) fn of_error(error: kube::Error) -> Answer {
    let status = match error {
        kube::Error::Api(status) => status,
        // The request itself cannot be made, of a name that no pod has.
        kube::Error::BuildRequest(error) => {
            let message = error.to_string();
            return Answer::Refused { message };
        }
        error => {
            let message = error.to_string();
            return Answer::Unclear { message };
        }
    };
    let message = status.message.clone();
    match status.code {
        404 => Answer::Gone,
        409 => Answer::Conflict { message },
        429 => {
            let seconds = status.details.map(|details| details.retry_after_seconds);
            let seconds = seconds.filter(|seconds| *seconds > 0);
            let after = seconds.map_or(THROTTLED, |seconds| Duration::from_secs(seconds.into()));
            Answer::Throttled { message, after }
        }
        // A token that ran out is replaced; a request that came too slowly comes again.
        401 | 408 => Answer::Throttled {
            message,
            after: THROTTLED,
        },
        // Forbidden, refused by an admission webhook, not understood.
        400..=499 => Answer::Refused { message },
        _ => Answer::Unclear { message },
    }
}
