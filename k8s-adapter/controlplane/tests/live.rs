//! The harness itself: what it starts is what it says, ends when it must, and stays usable meanwhile.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::{ControlPlane, Error, Node, Program, Project};
use rustix::process::{Pid, Signal, kill_process};
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

fn stop(process_id: u32) -> Outcome {
    let process = Pid::from_raw(process_id.cast_signed()).ok_or("not a process id")?;
    Ok(kill_process(process, Signal::STOP)?)
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
    control_plane.create_node(&Node::new("one"))?;
    let kubeconfig = fs::read_to_string(control_plane.kubeconfig())?;
    assert!(kubeconfig.contains(&control_plane.url()));
    assert!(kubeconfig.contains(control_plane.token()));

    // It has no other program than asked for.
    assert!(matches!(
        control_plane.kill(Program::Scheduler),
        Err(Error::NotRunning {
            program: Program::Scheduler
        })
    ));

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
    control_plane.passed();
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
    control_plane.create_node(&Node::new("one"))?;
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
    let pods = "/api/v1/namespaces/default/pods";
    control_plane
        .post(pods, &pod.to_string())?
        .expect_success(pods)?;
    wait_until("the pod runs", || {
        let pod = read(&control_plane, "/api/v1/namespaces/default/pods/web").expect("the pod");
        Ok(pod["status"]["phase"] == "Running" && pod["spec"]["nodeName"] == "one")
    })?;

    // Paused, kwok is there and does nothing; a new node stays as it is until kwok goes on. The
    // controller manager works meanwhile, which shows that time passes. (Its taint of the node does
    // not: admission sets it, and the controller manager takes it away again.)
    control_plane.pause(Program::Kwok)?;
    control_plane.create_node(&Node::new("two"))?;
    let namespaces = "/api/v1/namespaces";
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "later" } });
    control_plane
        .post(namespaces, &namespace.to_string())?
        .expect_success(namespaces)?;
    wait_until("the controller manager makes a service account", || {
        let account = "/api/v1/namespaces/later/serviceaccounts/default";
        Ok(control_plane.get(account)?.status == 200)
    })?;
    let node = read(&control_plane, "/api/v1/nodes/two")?;
    assert_ne!(condition(&node, "Ready").as_deref(), Some("True"));
    control_plane.resume(Program::Kwok)?;
    wait_until("the second node is Ready", || {
        let node = read(&control_plane, "/api/v1/nodes/two").expect("the node");
        Ok(condition(&node, "Ready").as_deref() == Some("True"))
    })?;
    control_plane.passed();
    Ok(())
}

#[test]
fn what_is_applied_is_served_and_watched() -> Outcome {
    let control_plane = ControlPlane::builder().start()?;
    // A definition and its objects in one text; a list; an empty document.
    let text = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teams.test.example}
spec:
  group: test.example
  scope: Namespaced
  names: {plural: teams, singular: team, kind: Team}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: lab}
- apiVersion: test.example/v1
  kind: Team
  metadata: {name: blue, namespace: lab}
  spec: {size: 3}
  status: {phase: Old}
---
---
apiVersion: test.example/v1
kind: Team
metadata: {name: red}
";
    control_plane.apply(text)?;
    // Again, with a change.
    control_plane.apply(&text.replace("Old", "New").replace("size: 3", "size: 4"))?;
    let blue = read(
        &control_plane,
        "/apis/test.example/v1/namespaces/lab/teams/blue",
    )?;
    assert_eq!(
        (&blue["spec"]["size"], &blue["status"]["phase"]),
        (&json!(4), &json!("New"))
    );
    let red = "/apis/test.example/v1/namespaces/default/teams/red";
    assert_eq!(read(&control_plane, red)?["metadata"]["name"], "red");

    let mut events = control_plane
        .lines("/apis/test.example/v1/namespaces/default/teams?watch=true&timeoutSeconds=200")?;
    let mut next = || -> Result<Value, Box<dyn std::error::Error>> {
        Ok(serde_json::from_str(&events.next().ok_or("the end")??)?)
    };
    let what = |event: &Value| (event["type"].clone(), event["object"]["spec"].clone());
    assert_eq!(what(&next()?), (json!("ADDED"), Value::Null));
    control_plane.apply(
        "{apiVersion: test.example/v1, kind: Team, metadata: {name: red}, spec: {size: 1}}",
    )?;
    assert_eq!(what(&next()?), (json!("MODIFIED"), json!({ "size": 1 })));
    assert_eq!(control_plane.delete(red)?.status, 200);
    assert_eq!(what(&next()?), (json!("DELETED"), json!({ "size": 1 })));

    for (text, reason) in [
        (
            "apiVersion: test.example/v1\nkind: Tim\nmetadata: {name: a}",
            "Tim: no such kind in test.example/v1",
        ),
        (
            "apiVersion: test.example/v2\nkind: Team\nmetadata: {name: a}",
            "/apis/test.example/v2: status 404",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}",
            "status 422",
        ),
        ("kind: Team", "apiVersion: a text is needed in"),
        ("kind: {", "the YAML: "),
    ] {
        let error = control_plane.apply(text).expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    control_plane.passed();
    Ok(())
}

#[test]
fn a_service_account_has_only_its_own_rights() -> Outcome {
    let control_plane = ControlPlane::builder().start()?;
    control_plane.apply(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [''], resources: [nodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: default}
",
    )?;
    let token = control_plane.service_account_token("default", "reader")?;
    let status = |path, token: &str| control_plane.get_as(path, token).map(|it| it.status);
    wait_until("the role counts", || {
        Ok(status("/api/v1/nodes", &token)? == 200)
    })?;
    assert_eq!(status("/api/v1/pods", &token)?, 403);
    assert_eq!(status("/api/v1/nodes", "nobodys")?, 401);
    let kubeconfig = control_plane.write_kubeconfig("reader", "http://127.0.0.1:1", &token)?;
    let text = fs::read_to_string(kubeconfig)?;
    assert!(text.contains(&token) && text.contains("http://127.0.0.1:1"));
    control_plane.passed();
    Ok(())
}

#[test]
fn the_custom_resources_of_each_project_are_served() -> Outcome {
    let control_plane = ControlPlane::builder().start()?;
    for (project, path) in [
        (Project::Volcano, "scheduling.volcano.sh/v1beta1/podgroups"),
        (Project::Volcano, "topology.volcano.sh/v1alpha1/hypernodes"),
        (
            Project::SchedulerPlugins,
            "scheduling.x-k8s.io/v1alpha1/podgroups",
        ),
        (Project::JobSet, "jobset.x-k8s.io/v1alpha2/jobsets"),
        (
            Project::LeaderWorkerSet,
            "leaderworkerset.x-k8s.io/v1/leaderworkersets",
        ),
        (Project::Kueue, "kueue.x-k8s.io/v1beta2/topologies"),
    ] {
        control_plane.define(project)?;
        assert_eq!(
            read(&control_plane, &format!("/apis/{path}"))?["items"],
            json!([])
        );
    }
    // Fields that a shortened definition would drop.
    control_plane.apply(
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: a}, \
          spec: {minTaskMember: {worker: 2}, networkTopology: {mode: hard}}, \
          status: {phase: Inqueue}}",
    )?;
    let group = read(
        &control_plane,
        "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/a",
    )?;
    assert_eq!(group["spec"]["minTaskMember"]["worker"], 2);
    assert_eq!(group["spec"]["networkTopology"]["mode"], "hard");
    assert_eq!(group["status"]["phase"], "Inqueue");
    control_plane.passed();
    Ok(())
}

#[test]
fn after_a_panic_the_logs_are_all_that_is_left() -> Outcome {
    let control_plane = ControlPlane::builder().start()?;
    let directory = control_plane.directory().to_owned();
    let api_server = control_plane
        .process_id(Program::ApiServer)
        .expect("it runs");
    let mut command = Command::new("sleep");
    command.arg("10000");
    control_plane.attach(&mut command);
    let mut sleeper = command.spawn()?;

    let test = thread::spawn(move || {
        control_plane.get("/readyz").expect("an answer");
        panic!("as planned");
    });
    test.join().expect_err("it panicked");
    assert_eq!(program_of(api_server), None);
    assert!(!directory.exists());
    // What a test attached does not outlive the control plane either.
    assert_eq!(sleeper.wait()?.signal(), Some(Signal::KILL.as_raw()));
    let logs = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/controlplane-logs")
        .join(directory.file_name().expect("a name"));
    let log = fs::read_to_string(logs.join("kube-apiserver.log"))?;
    assert!(log.contains("Serving securely"), "{log}");
    fs::remove_dir_all(logs)?;
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
fn nothing_outlives_a_parent_that_is_killed() -> Outcome {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_gangline-controlplane"))
        .arg("kwok")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(parent.stdout.take().expect("a pipe")).lines();
    let mut told = |head: &str| {
        output
            .find_map(|line| Some(line.ok()?.strip_prefix(head)?.to_owned()))
            .expect(head)
    };
    let processes = [
        told("etcd: process ").parse()?,
        told("kube-apiserver: process ").parse()?,
        told("kwok: process ").parse()?,
    ];
    let port = port(&told("url: "));
    let kubeconfig = PathBuf::from(told("export KUBECONFIG="));
    let directory = kubeconfig.parent().expect("a directory");
    assert!(processes.iter().all(|&id| program_of(id).is_some()));
    assert!(!is_free(port) && directory.exists());
    // Of one that stands still too: the system tells its group that nobody looks after it any more.
    stop(processes[1])?;
    parent.kill()?;
    parent.wait()?;
    // The port may be the last to go.
    wait_until("all have ended, and their files are gone", || {
        Ok(processes.iter().all(|&id| program_of(id).is_none())
            && !directory.exists()
            && is_free(port))
    })?;
    Ok(())
}
