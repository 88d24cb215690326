//! Where the things of one control plane are: ports, files, and what each program is told about them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{Builder, Error, Program, key, ports::Ports};

#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) ports: Ports,
    pub(crate) token: String,
    state: PathBuf,
}

impl Layout {
    /// Chooses ports and writes the files that programs read at their start into the directory.
    pub(crate) fn create(state: &Path) -> Result<Self, Error> {
        let layout = Self {
            ports: Ports::reserve()?,
            token: key::token()?,
            state: state.to_owned(),
        };
        let key = key::Key::generate()?;
        layout.write(SIGNING_KEY, &key.private_pem)?;
        layout.write(VERIFYING_KEY, &key.public_pem)?;
        layout.write(
            TOKENS,
            &format!("{},admin,admin,system:masters\n", layout.token),
        )?;
        layout.write_kubeconfig(KUBECONFIG, &layout.api_server_url(), &layout.token)?;
        Ok(layout)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state.join(KUBECONFIG)
    }

    /// The API server writes it at its first start: its certificate and that of who signed it.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.state.join(CERTIFICATES)
    }

    pub(crate) fn api_server_url(&self) -> String {
        https(self.ports.api_server)
    }

    /// Where a program says whether it is ready.
    pub(crate) fn ready_url(&self, program: Program) -> String {
        let ports = &self.ports;
        match program {
            Program::Etcd => http(ports.etcd) + "/health",
            Program::ApiServer => self.api_server_url() + "/readyz",
            Program::ControllerManager => https(ports.controller_manager) + "/healthz",
            Program::Kwok => http(ports.kwok) + "/healthz",
            Program::Scheduler => https(ports.scheduler) + "/readyz",
        }
    }

    /// The command line of a program.
    pub(crate) fn arguments(&self, program: Program, builder: &Builder) -> Vec<String> {
        let ports = &self.ports;
        let client = |arguments: &[String]| {
            let mut all = vec![format!("--kubeconfig={}", self.path(KUBECONFIG))];
            all.extend_from_slice(arguments);
            all
        };
        // The two Kubernetes programs that are clients of the API server are alike.
        let component = |port: u16, arguments: &[String]| {
            let mut all = client(&[
                "--leader-elect=false".into(),
                "--bind-address=127.0.0.1".into(),
                format!("--secure-port={port}"),
                format!("--feature-gates={}", switches(&builder.feature_gates)),
                // The default of 20 requests a second is for sharing a cluster.
                "--kube-api-qps=1000".into(),
                "--kube-api-burst=2000".into(),
            ]);
            all.extend_from_slice(arguments);
            all
        };
        let mut arguments = match program {
            Program::Etcd => {
                let (own, peer) = (http(ports.etcd), http(ports.etcd_peer));
                vec![
                    format!("--data-dir={}", self.path("etcd")),
                    format!("--listen-client-urls={own}"),
                    format!("--advertise-client-urls={own}"),
                    format!("--listen-peer-urls={peer}"),
                    format!("--initial-advertise-peer-urls={peer}"),
                    format!("--initial-cluster=default={peer}"),
                    // The state is thrown away; it survives the end of etcd, not of the machine.
                    "--unsafe-no-fsync".into(),
                    "--log-level=error".into(),
                ]
            }
            Program::ApiServer => self.api_server_arguments(builder),
            Program::ControllerManager => component(
                ports.controller_manager,
                &[
                    "--use-service-account-credentials=true".into(),
                    format!(
                        "--service-account-private-key-file={}",
                        self.path(SIGNING_KEY)
                    ),
                    format!("--root-ca-file={}", self.path(CERTIFICATES)),
                ],
            ),
            Program::Kwok => client(&[
                "--manage-all-nodes=true".into(),
                format!("--server-address=127.0.0.1:{}", ports.kwok),
            ]),
            Program::Scheduler => component(ports.scheduler, &[]),
        };
        arguments.extend(builder.flags.get(&program).into_iter().flatten().cloned());
        arguments
    }

    fn api_server_arguments(&self, builder: &Builder) -> Vec<String> {
        let mut arguments = vec![
            format!("--etcd-servers={}", http(self.ports.etcd)),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--cert-dir={}", self.path(CERTIFICATES_DIRECTORY)),
            format!("--service-account-key-file={}", self.path(VERIFYING_KEY)),
            format!(
                "--service-account-signing-key-file={}",
                self.path(SIGNING_KEY)
            ),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--token-auth-file={}", self.path(TOKENS)),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            format!("--feature-gates={}", switches(&builder.feature_gates)),
            format!("--runtime-config={}", switches(&builder.runtime_config)),
            "--max-requests-inflight=3000".into(),
            "--max-mutating-requests-inflight=1000".into(),
        ];
        if !builder.programs.contains(&Program::ControllerManager) {
            // Nobody would make service accounts, nor take the taint from a node that is ready.
            arguments.push(
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
            );
        }
        arguments
    }

    /// The certificate stands in a file that the API server has yet to write; clients start later.
    pub(crate) fn write_kubeconfig(
        &self,
        name: &str,
        server: &str,
        token: &str,
    ) -> Result<PathBuf, Error> {
        let text = format!(
            r#"apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {{server: "{server}", certificate-authority: "{certificates}"}}
users:
- name: user
  user: {{token: "{token}"}}
contexts:
- name: test
  context: {{cluster: test, user: user}}
current-context: test
"#,
            certificates = self.path(CERTIFICATES),
        );
        self.write(name, &text)?;
        Ok(self.state.join(name))
    }

    fn path(&self, name: &str) -> String {
        self.state.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        fs::write(self.state.join(name), text)
            .map_err(Error::io(format!("write {}", self.path(name))))
    }
}

const KUBECONFIG: &str = "kubeconfig";
const TOKENS: &str = "tokens.csv";
const SIGNING_KEY: &str = "service-account.key";
const VERIFYING_KEY: &str = "service-account.pub";
const CERTIFICATES_DIRECTORY: &str = "pki";
const CERTIFICATES: &str = "pki/apiserver.crt";

fn http(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn https(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

/// `A=true,B=false`
fn switches(switches: &BTreeMap<String, bool>) -> String {
    let switches: Vec<String> = switches
        .iter()
        .map(|(name, on)| format!("{name}={on}"))
        .collect();
    switches.join(",")
}
