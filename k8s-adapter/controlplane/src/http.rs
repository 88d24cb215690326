//! The few HTTP requests that a harness needs: is a program ready, and what does the API server say.
//!
//! Not a client for Kubernetes: no watches, no retries, no types.

use std::{sync::Arc, time::Duration};

use rustls::crypto::{CryptoProvider, ring};
use ureq::{
    Agent,
    http::Request,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsConfigBuilder, parse_pem},
};

use crate::Error;

/// A program that is paused takes connections and says nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a server answered, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

#[derive(Debug)]
pub(crate) struct Http(Agent);

impl Http {
    /// Believes any certificate: to see whether a program is ready.
    pub(crate) fn trusting_all() -> Self {
        Self::new(tls().disable_verification(true))
    }

    /// Believes the certificates in `pem`, and nobody else's.
    pub(crate) fn trusting(pem: &[u8]) -> Self {
        let roots: Vec<Certificate<'static>> = parse_pem(pem)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        Self::new(tls().root_certs(RootCerts::new_with_certs(&roots)))
    }

    fn new(tls: TlsConfigBuilder) -> Self {
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // Programs come and go here, so a connection that was kept is one that may be dead.
            .max_idle_connections(0)
            .proxy(None)
            .build();
        Self(config.into())
    }

    /// Sends a request with the token (none: anonymous) and the body (none: empty), which is JSON.
    pub(crate) fn send(
        &self,
        method: &'static str,
        url: &str,
        token: Option<&str>,
        body: Option<&str>,
    ) -> Result<Answer, Error> {
        let failed = |reason: String| Error::Http {
            method,
            url: url.to_owned(),
            reason,
        };
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let response = match body {
            None => request.body(()).map(|request| self.0.run(request)),
            Some(json) => request
                .header("Content-Type", "application/json")
                .body(json)
                .map(|request| self.0.run(request)),
        };
        let mut response = response
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        let body = response
            .body_mut()
            .with_config()
            .limit(u64::MAX)
            .lossy_utf8(true);
        let body = body
            .read_to_string()
            .map_err(|error| failed(error.to_string()))?;
        Ok(Answer {
            status: response.status().as_u16(),
            body,
        })
    }
}

fn tls() -> TlsConfigBuilder {
    let provider: CryptoProvider = ring::default_provider();
    TlsConfig::builder().unversioned_rustls_crypto_provider(Arc::new(provider))
}
