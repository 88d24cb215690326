//! The harness itself: what it starts is what it says, ends when it must, and stays usable meanwhile.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::{ControlPlane, Error, Program};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Not how long things take, but when to stop waiting for what will not come.
const PATIENCE: Duration = Duration::from_mins(5);

/// Asks again until the answer is yes.
fn wait_until(what: &str, mut holds: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let since = Instant::now();
    while !holds()? {
        assert!(since.elapsed() < PATIENCE, "still not so: {what}");
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// What lives at the process id, or nothing. (A process that ended and was not waited for has no file.)
fn program_of(process_id: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process_id}/exe")).ok()
}

/// The port in `https://127.0.0.1:PORT`.
fn port(url: &str) -> u16 {
    url.rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a URL with a port")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn node(name: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name },
        "status": {
            "allocatable": { "cpu": "8", "memory": "8Gi", "pods": "110" },
            "capacity": { "cpu": "8", "memory": "8Gi", "pods": "110" },
        },
    })
    .to_string()
}

fn read(control_plane: &ControlPlane, path: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let answer = control_plane.get(path)?;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    Ok(serde_json::from_str(&answer.body)?)
}

fn condition(object: &Value, kind: &str) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let condition = conditions
        .iter()
        .find(|condition| condition["type"] == kind)?;
    condition["status"].as_str().map(Into::into)
}

#[test]
fn the_api_server_keeps_its_address_and_state_over_its_death_and_leaves_nothing_behind() -> Outcome
{
    let mut control_plane = ControlPlane::builder().start()?;
    assert_eq!(control_plane.get("/readyz")?.body, "ok");
    assert_eq!(read(&control_plane, "/version")?["gitVersion"], "v1.37.2");
    let groups = read(&control_plane, "/apis/scheduling.k8s.io/v1beta1")?.to_string();
    assert!(groups.contains(r#""name":"podgroups""#), "{groups}");
    assert_eq!(
        control_plane.post("/api/v1/nodes", &node("one"))?.status,
        201
    );
    let kubeconfig = fs::read_to_string(control_plane.kubeconfig())?;
    assert!(kubeconfig.contains(&control_plane.url()));
    assert!(kubeconfig.contains(control_plane.token()));

    let first = control_plane
        .process_id(Program::ApiServer)
        .expect("it runs");
    assert!(
        program_of(first)
            .expect("it lives")
            .ends_with("kube-apiserver")
    );
    control_plane.kill(Program::ApiServer)?;
    assert_eq!(program_of(first), None);
    assert_eq!(control_plane.process_id(Program::ApiServer), None);
    assert!(matches!(
        control_plane.get("/readyz"),
        Err(Error::Http { .. })
    ));
    let url = control_plane.url();
    control_plane.restart(Program::ApiServer)?;
    assert_eq!(control_plane.url(), url);
    assert_ne!(control_plane.process_id(Program::ApiServer), Some(first));
    assert_eq!(
        read(&control_plane, "/api/v1/nodes/one")?["metadata"]["name"],
        "one"
    );

    // Also etcd, without which the API server answers nothing that needs state.
    control_plane.restart(Program::Etcd)?;
    wait_until("the API server finds etcd again", || {
        Ok(control_plane.get("/api/v1/nodes/one")?.status == 200)
    })?;

    let ids = [Program::Etcd, Program::ApiServer]
        .map(|program| control_plane.process_id(program).expect("it runs"));
    let directory = control_plane.directory().to_owned();
    assert!(
        control_plane
            .log(Program::ApiServer)?
            .contains("Serving securely")
    );
    drop(control_plane);
    assert_eq!(ids.map(program_of), [None, None]);
    assert!(is_free(port(&url)), "{url} is still taken");
    assert!(!directory.exists());
    Ok(())
}

#[test]
fn with_all_programs_a_node_becomes_ready_and_a_pod_is_bound_and_runs() -> Outcome {
    let mut control_plane = ControlPlane::builder()
        .controller_manager()
        .kwok()
        .kube_scheduler()
        .start()?;
    assert_eq!(
        control_plane.post("/api/v1/nodes", &node("one"))?.status,
        201
    );
    let mut seen = Value::Null;
    let ready = wait_until("the node is Ready and has no taint", || {
        seen = read(&control_plane, "/api/v1/nodes/one").expect("the node");
        let ready = condition(&seen, "Ready").as_deref() == Some("True");
        Ok(ready && seen["spec"]["taints"].is_null())
    });
    ready?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "web" },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    });
    wait_until(
        "the controller manager has made the service account",
        || {
            let answer = control_plane.post("/api/v1/namespaces/default/pods", &pod.to_string())?;
            assert!([201, 403].contains(&answer.status), "{}", answer.body);
            Ok(answer.status == 201)
        },
    )?;
    wait_until("the pod runs", || {
        let pod = read(&control_plane, "/api/v1/namespaces/default/pods/web").expect("the pod");
        Ok(pod["status"]["phase"] == "Running" && pod["spec"]["nodeName"] == "one")
    })?;

    // Paused, kwok is there and does nothing; a new node stays as it is until kwok goes on. The
    // controller manager works meanwhile, which shows that time passes.
    control_plane.pause(Program::Kwok)?;
    assert_eq!(
        control_plane.post("/api/v1/nodes", &node("two"))?.status,
        201
    );
    wait_until("the controller manager taints the node", || {
        let node = read(&control_plane, "/api/v1/nodes/two").expect("the node");
        Ok(node["spec"]["taints"]
            .to_string()
            .contains("node.kubernetes.io/not-ready"))
    })?;
    let node = read(&control_plane, "/api/v1/nodes/two")?;
    assert_ne!(condition(&node, "Ready").as_deref(), Some("True"));
    control_plane.resume(Program::Kwok)?;
    wait_until("the second node is Ready", || {
        let node = read(&control_plane, "/api/v1/nodes/two").expect("the node");
        Ok(condition(&node, "Ready").as_deref() == Some("True"))
    })?;
    Ok(())
}

#[test]
fn a_program_that_cannot_start_is_named_and_its_last_words_are_shown() {
    let control_plane = ControlPlane::builder()
        .flag(Program::ApiServer, "--no-such-flag")
        .start();
    let error = control_plane.expect_err("kube-apiserver knows no such flag");
    assert!(
        matches!(
            error,
            Error::Ended {
                program: Program::ApiServer,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("unknown flag: --no-such-flag"),
        "{error}"
    );
}

#[test]
fn a_program_that_was_not_asked_for_is_named() -> Outcome {
    let mut control_plane = ControlPlane::builder().start()?;
    let program = Program::Scheduler;
    assert!(
        matches!(control_plane.kill(program), Err(Error::NotRunning { program: p }) if p == program)
    );
    Ok(())
}

#[test]
fn no_program_outlives_a_parent_that_is_killed() -> Outcome {
    if !Command::new("setpriv")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        println!("no setpriv: a known limit, see the crate's documentation");
        return Ok(());
    }
    let mut parent = Command::new(env!("CARGO_BIN_EXE_gangline-controlplane"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(parent.stdout.take().expect("a pipe")).lines();
    let mut told = |head: &str| {
        output
            .find_map(|line| Some(line.ok()?.strip_prefix(head)?.to_owned()))
            .expect(head)
    };
    let etcd = told("etcd: process ").parse()?;
    let api_server = told("kube-apiserver: process ").parse()?;
    let port = port(&told("url: "));
    assert!(program_of(etcd).is_some() && program_of(api_server).is_some());
    assert!(!is_free(port));
    let kubeconfig = PathBuf::from(told("export KUBECONFIG="));
    parent.kill()?;
    parent.wait()?;
    wait_until("both have ended", || {
        Ok(program_of(etcd).is_none() && program_of(api_server).is_none())
    })?;
    assert!(is_free(port));
    // The one thing that stays.
    fs::remove_dir_all(kubeconfig.parent().expect("a directory"))?;
    Ok(())
}
