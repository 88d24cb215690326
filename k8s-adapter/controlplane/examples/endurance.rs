//! Measures `gangline run` where it has little to do, much to hear, or much to learn, beside a control plane
//! of its own:
//!
//! ```text
//! cargo build --release -p gangline-k8s
//! cargo run -p gangline-controlplane --example endurance -- target/release/gangline idle 1000 60
//! cargo run -p gangline-controlplane --example endurance -- target/release/gangline storm 1000 1000 60
//! cargo run -p gangline-controlplane --example endurance -- target/release/gangline restart 5000 140000
//! ```
//!
//! `idle GROUPS SECONDS`: groups wait that cannot fit; processor time and API writes meanwhile. `storm NODES
//! CHANGES_A_SECOND SECONDS`: nodes change; how long groups wait that are created meanwhile, and what waits
//! for the driver. `restart NODES PODS`: pods run; time from the start to the first bind of a new one, and
//! peak memory. It prints and keeps nothing.

use std::{
    env,
    error::Error,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use gangline_controlplane::{ControlPlane, Node};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Requests at a time.
const WORKERS: usize = 16;
/// When to stop waiting for what will not come.
const PATIENCE: Duration = Duration::from_mins(10);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [program, "idle", groups, seconds] => idle(program, groups.parse()?, seconds.parse()?),
        [program, "storm", nodes, changes, seconds] => {
            storm(program, nodes.parse()?, changes.parse()?, seconds.parse()?)
        }
        [program, "restart", nodes, pods] => restart(program, nodes.parse()?, pods.parse()?),
        _ => Err("usage: endurance PROGRAM idle GROUPS SECONDS | storm NODES CHANGES_A_SECOND SECONDS | restart NODES PODS".into()),
    }
}

/// A scheduler, as long as this is there.
struct Scheduler {
    process: Child,
    address: String,
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Scheduler {
    fn start(program: &str, control_plane: &ControlPlane) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let log = fs::File::create(control_plane.directory().join("gangline.log"))?;
        let mut command = Command::new(program);
        command.args(["run", "--log", "warn", "--listen", &address]);
        command.stderr(log);
        control_plane.attach(&mut command);
        let process = command.spawn()?;
        Ok(Self { process, address })
    }

    fn metrics(&self) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// The sum of the series whose names begin like this.
    fn metric(&self, prefix: &str) -> f64 {
        let text = self.metrics().unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with(prefix));
        let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        values.sum()
    }

    /// Requests that changed something, but for renewals of the lease.
    fn writes(&self) -> f64 {
        let verbs = ["create", "patch", "delete"];
        let series = |verb| format!("gangline_api_requests_total{{verb=\"{verb}\"");
        verbs.map(|verb| self.metric(&series(verb))).iter().sum()
    }

    /// Seconds of processor time so far.
    fn processor(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()));
        let stat = stat.unwrap_or_default();
        // The name, in parentheses, may have blanks.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let field = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
        // Linux counts in hundredths.
        (field(11).unwrap_or(0.0) + field(12).unwrap_or(0.0)) / 100.0
    }

    /// The most memory that it had, in MiB.
    fn peak_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) / 1024
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) -> Result<Duration> {
    let since = Instant::now();
    while !holds() {
        if since.elapsed() > PATIENCE {
            return Err(format!("still not so: {what}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(since.elapsed())
}

/// Creates objects, some at a time.
fn create(
    control_plane: &ControlPlane,
    path: &str,
    count: u64,
    object: impl Fn(u64) -> Value + Sync,
) {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let object = object(number).to_string();
                    let answer = control_plane.post(path, &object);
                    match answer.and_then(|answer| answer.expect_success(path)) {
                        Ok(_) => {}
                        Err(error) => eprintln!("{error}"),
                    }
                }
            });
        }
    });
}

fn nodes(control_plane: &ControlPlane, count: u64) -> Result<()> {
    for number in 0..count {
        let rack = format!("r{}", number / 16);
        let node = Node::new(format!("n{number}"))
            .label("topology.gangline.io/rack", rack)
            .resource("nvidia.com/gpu", "8");
        control_plane.create_node(&node)?;
    }
    Ok(())
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups";

fn group(name: &str, min: u64) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name },
        "spec": { "schedulingPolicy": { "gang": { "minCount": min } } },
    })
}

fn pod(name: &str, group: &str, gpus: u64) -> Value {
    let gpus = json!({ "cpu": "1", "memory": "1Gi", "nvidia.com/gpu": gpus.to_string() });
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "schedulerName": "gangline", "schedulingGroup": { "podGroupName": group },
            "containers": [{ "name": "c", "image": "i",
                "resources": { "requests": gpus, "limits": { "nvidia.com/gpu": gpus["nvidia.com/gpu"] } } }],
        },
    })
}

/// Creates a group of four and waits until it is bound.
fn bind_one(control_plane: &ControlPlane, name: &str) -> Result<Duration> {
    let since = Instant::now();
    create(control_plane, GROUPS, 1, |_| group(name, 4));
    create(control_plane, PODS, 4, |number| {
        pod(&format!("{name}-{number}"), name, 1)
    });
    wait_until("a group is bound", || {
        let is_bound = |number| {
            let answer = control_plane.get(&format!("{PODS}/{name}-{number}")).ok()?;
            let pod: Value = serde_json::from_str(&answer.body).ok()?;
            pod["spec"]["nodeName"].as_str().map(drop)
        };
        (0..4).all(|number: u64| is_bound(number).is_some())
    })?;
    Ok(since.elapsed())
}

fn idle(program: &str, groups: u64, seconds: u64) -> Result<()> {
    let control_plane = ControlPlane::builder().start()?;
    nodes(&control_plane, 100)?;
    create(&control_plane, GROUPS, groups, |number| {
        group(&format!("g{number}"), 2)
    });
    create(&control_plane, PODS, 2 * groups, |number| {
        let of = number / 2;
        pod(&format!("g{of}-{number}"), &format!("g{of}"), 9)
    });
    let scheduler = Scheduler::start(program, &control_plane)?;
    let pending = "gangline_pending_groups{reason=\"DoesNotFit\"}";
    wait_until("all groups wait", || {
        scheduler.metric(pending) as u64 == groups
    })?;
    let mut before = -1.0;
    wait_until("nothing is written any more", || {
        thread::sleep(Duration::from_secs(15));
        let writes = scheduler.writes();
        std::mem::replace(&mut before, writes)
            .total_cmp(&writes)
            .is_eq()
    })?;
    let (writes, processor) = (scheduler.writes(), scheduler.processor());
    thread::sleep(Duration::from_secs(seconds));
    let used = scheduler.processor() - processor;
    println!(
        "{groups} groups wait: {:.2} % of a core, {} writes beside the lease in {seconds} s; peak {} MiB",
        100.0 * used / seconds as f64,
        scheduler.writes() - writes,
        scheduler.peak_mib()
    );
    control_plane.passed();
    Ok(())
}

fn storm(program: &str, count: u64, changes: u64, seconds: u64) -> Result<()> {
    let control_plane = ControlPlane::builder().start()?;
    nodes(&control_plane, count)?;
    let scheduler = Scheduler::start(program, &control_plane)?;
    bind_one(&control_plane, "before")?;
    let processor = scheduler.processor();
    let (sent, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let since = Instant::now();
    let (mut waits, mut most) = (Vec::new(), 0.0_f64);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let due = since.elapsed().as_secs_f64() * changes as f64;
                    if sent.load(Ordering::Relaxed) as f64 > due {
                        thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    let path = format!("/api/v1/nodes/n{}", number % count);
                    let label = json!({ "metadata": { "labels": { "a": number.to_string() } } });
                    let patch = "application/merge-patch+json";
                    let answer = control_plane.request("PATCH", &path, patch, &label.to_string());
                    if let Err(error) = answer {
                        eprintln!("{error}");
                    }
                }
            });
        }
        while since.elapsed() < Duration::from_secs(seconds) {
            match bind_one(&control_plane, &format!("g{}", waits.len())) {
                Ok(wait) => waits.push(wait),
                Err(error) => {
                    eprintln!("{error}");
                    break;
                }
            }
            most = most.max(scheduler.metric("gangline_watch_backlog_changes"));
            thread::sleep(Duration::from_millis(500));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let lasted = since.elapsed().as_secs_f64();
    waits.sort();
    println!(
        "{:.0} changes a second for {lasted:.0} s: {} groups bound, creation included after {:?} (median), \
         {:?} (longest); at most {most} changes waited; {:.0} % of a core; peak {} MiB",
        sent.into_inner() as f64 / lasted,
        waits.len(),
        waits.get(waits.len() / 2).copied().unwrap_or_default(),
        waits.last().copied().unwrap_or_default(),
        100.0 * (scheduler.processor() - processor) / lasted,
        scheduler.peak_mib()
    );
    control_plane.passed();
    Ok(())
}

fn restart(program: &str, count: u64, pods: u64) -> Result<()> {
    let control_plane = ControlPlane::builder().start()?;
    nodes(&control_plane, count)?;
    let since = Instant::now();
    create(&control_plane, PODS, pods, |number| {
        let amounts = json!({ "cpu": "1", "memory": "1Gi" });
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": format!("p{number}"), "labels": { "app": format!("a{}", number % 100) } },
            "spec": {
                "nodeName": format!("n{}", number % count),
                "containers": [{ "name": "c", "image": "i", "resources": { "requests": amounts } }],
            },
        })
    });
    eprintln!(
        "{pods} pods created in {:.0} s",
        since.elapsed().as_secs_f64()
    );
    let since = Instant::now();
    let scheduler = Scheduler::start(program, &control_plane)?;
    // Asked for while it starts.
    bind_one(&control_plane, "new")?;
    println!(
        "{count} nodes, {pods} pods: first group bound {:.1} s after the start, {:.1} s of processor time, peak {} MiB",
        since.elapsed().as_secs_f64(),
        scheduler.processor(),
        scheduler.peak_mib()
    );
    control_plane.passed();
    Ok(())
}
