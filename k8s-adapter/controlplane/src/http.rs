//! The few HTTP requests that a harness needs: is a program ready, and what does the API server say.
//!
//! Not a client for Kubernetes: no retries, no types.

use std::{
    io::{BufRead as _, BufReader},
    sync::Arc,
    time::Duration,
};

use rustls::crypto::{CryptoProvider, ring};
use serde_json::Value;
use ureq::{
    Agent, Body, BodyReader,
    http::{Request, Response},
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsConfigBuilder, parse_pem},
};

use crate::{Error, control_plane::PATIENCE};

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

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value, Error> {
        serde_json::from_str(&self.body).map_err(|error| Error::Input {
            what: format!("an answer's body, '{}'", self.body),
            reason: error.to_string(),
        })
    }

    /// The answer, when its status is 200 or another that means success. `path` is for the error.
    pub fn expect_success(self, path: &str) -> Result<Self, Error> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        Err(Error::Refused {
            path: path.into(),
            status: self.status,
            body: self.body,
        })
    }
}

/// The lines of an answer as they come, which for a watch is an event each.
pub struct Lines {
    url: String,
    reader: BufReader<BodyReader<'static>>,
}

impl Iterator for Lines {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(line)),
            Err(error) => Some(Err(failed("GET", &self.url, &error))),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Http(Agent);

/// A request: what all kinds have.
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: &'a str,
    pub(crate) token: &'a str,
}

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

    /// Sends a request with the body (none: empty) and its content type.
    pub(crate) fn send(
        &self,
        call: &Call<'_>,
        body: Option<(&str, &str)>,
    ) -> Result<Answer, Error> {
        let request = call.builder();
        let response = match body {
            None => request.body(()).map(|request| self.0.run(request)),
            Some((content_type, body)) => request
                .header("Content-Type", content_type)
                .body(body)
                .map(|request| self.0.run(request)),
        };
        let mut response = call.response(response)?;
        let body = response
            .body_mut()
            .with_config()
            .limit(u64::MAX)
            .lossy_utf8(true);
        let body = body.read_to_string().map_err(|error| call.failed(&error))?;
        Ok(Answer {
            status: response.status().as_u16(),
            body,
        })
    }

    /// Sends a request without a body, whose answer may take its time.
    pub(crate) fn lines(&self, call: &Call<'_>) -> Result<Lines, Error> {
        let response = call.builder().body(()).map(|request| {
            let request = self.0.configure_request(request);
            self.0.run(request.timeout_global(Some(PATIENCE)).build())
        });
        let response = call.response(response)?;
        let body = response.into_body().into_with_config().limit(u64::MAX);
        Ok(Lines {
            url: call.url.into(),
            reader: BufReader::new(body.reader()),
        })
    }
}

impl Call<'_> {
    fn builder(&self) -> ureq::http::request::Builder {
        Request::builder()
            .method(self.method)
            .uri(self.url)
            .header("Authorization", format!("Bearer {}", self.token))
    }

    fn failed(&self, reason: &dyn std::error::Error) -> Error {
        failed(self.method, self.url, reason)
    }

    /// Takes a request that could not be made like one that could not be sent.
    fn response(
        &self,
        response: Result<Result<Response<Body>, ureq::Error>, ureq::http::Error>,
    ) -> Result<Response<Body>, Error> {
        response
            .map_err(|error| self.failed(&error))?
            .map_err(|error| self.failed(&error))
    }
}

fn failed(method: &'static str, url: &str, reason: &dyn std::error::Error) -> Error {
    Error::Http {
        method,
        url: url.into(),
        reason: reason.to_string(),
    }
}

fn tls() -> TlsConfigBuilder {
    let provider: CryptoProvider = ring::default_provider();
    TlsConfig::builder().unversioned_rustls_crypto_provider(Arc::new(provider))
}
