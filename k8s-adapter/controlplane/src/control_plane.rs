//! A control plane that runs.
//!
//! Its programs are reached by the URL, token and kubeconfig that it gives out. Tests may pause, kill
//! and restart each, and put objects in; dropping it ends all and removes its directory.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    Answer, Builder, Error, Lines, Node, Program, Project, apply,
    guard::Guard,
    http::{Call, Http},
    layout::Layout,
    process::Process,
};

/// Two seconds are usual; a busy machine with two cores may need a minute.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);
pub(crate) const POLL: Duration = Duration::from_millis(25);

const JSON: &str = "application/json";
/// Where the logs of tests that failed stay.
const KEPT_LOGS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/controlplane-logs"
);

/// A running control plane. It ends when this is dropped, and shows its logs then, unless
/// [`passed`](Self::passed) was called.
#[derive(Debug)]
pub struct ControlPlane {
    processes: BTreeMap<Program, Process>,
    programs: PathBuf,
    layout: Layout,
    probe: Http,
    client: Http,
    /// Whether somebody uses it who has not said yet that all went well.
    in_use: bool,
    // Last: it removes the directory, where nobody may write any more then.
    guard: Guard,
}

impl ControlPlane {
    /// The choices before a start.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(builder: &Builder, programs: &Path) -> Result<Self, Error> {
        let guard = Guard::new()?;
        let layout = Layout::create(guard.directory())?;
        let process = |&program: &Program| {
            let arguments = layout.arguments(program, builder);
            (
                program,
                Process::new(program, programs, guard.directory(), arguments),
            )
        };
        let processes = builder.programs.iter().map(process).collect();
        let mut control_plane = Self {
            processes,
            programs: programs.to_owned(),
            layout,
            probe: Http::trusting_all(),
            client: Http::trusting(&[]),
            in_use: false,
            guard,
        };
        // The API server waits for etcd by itself; its clients would log and sleep.
        control_plane.launch(Program::Etcd)?;
        control_plane.launch(Program::ApiServer)?;
        control_plane.wait_until_ready(Program::ApiServer)?;
        let certificates = control_plane.layout.certificates();
        let pem = fs::read(&certificates)
            .map_err(Error::io(format!("read {}", certificates.display())))?;
        control_plane.client = Http::trusting(&pem);

        for &program in &builder.programs {
            control_plane.launch(program)?;
        }
        for &program in &builder.programs {
            control_plane.wait_until_ready(program)?;
        }
        if builder.programs.contains(&Program::ControllerManager) {
            control_plane.wait_until_pods_are_taken("default")?;
        }
        control_plane.in_use = true;
        Ok(control_plane)
    }

    /// Ends it like a drop, but quietly: the test has passed.
    pub fn passed(mut self) {
        self.has_passed();
    }

    /// It will end quietly: the test has passed.
    pub fn has_passed(&mut self) {
        self.in_use = false;
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The API server's URL, without a slash at its end.
    pub fn url(&self) -> String {
        self.layout.api_server_url()
    }

    /// A bearer token with all rights.
    pub fn token(&self) -> &str {
        &self.layout.token
    }

    /// A new token with the rights of a service account, good for an hour.
    pub fn service_account_token(&self, namespace: &str, name: &str) -> Result<String, Error> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let answer = self.post(&path, "{}")?.expect_success(&path)?.json()?;
        let token = answer["status"]["token"].as_str();
        Ok(token.unwrap_or_default().to_owned())
    }

    /// Writes another kubeconfig, into a file of this name in [`directory`](Self::directory): for
    /// another user, or for a proxy in front of the API server.
    pub fn write_kubeconfig(
        &self,
        name: &str,
        server: &str,
        token: &str,
    ) -> Result<PathBuf, Error> {
        self.layout.write_kubeconfig(name, server, token)
    }

    /// The certificates that the API server is to be believed by, PEM in a file.
    pub fn certificates(&self) -> PathBuf {
        self.layout.certificates()
    }

    /// A directory of this control plane, where a test may put files too; it goes with it.
    pub fn directory(&self) -> &Path {
        self.guard.directory()
    }

    /// A program's process id, to measure it. None while it does not run.
    pub fn process_id(&self, program: Program) -> Option<u32> {
        self.processes.get(&program).and_then(Process::id)
    }

    /// All that a program wrote since the control plane started.
    pub fn log(&self, program: Program) -> Result<String, Error> {
        self.processes
            .get(&program)
            .ok_or(Error::NotRunning { program })?
            .log()
    }

    /// Makes a command's process end when this process does, however that ends, or when this control
    /// plane is dropped; and gives it the kubeconfig in `KUBECONFIG`. It leaves the terminal's group.
    pub fn attach(&self, command: &mut Command) {
        self.guard.attach(command);
        command.env("KUBECONFIG", self.kubeconfig());
    }

    /// `GET` with all rights; `path` begins with a slash.
    pub fn get(&self, path: &str) -> Result<Answer, Error> {
        self.client
            .send(&self.call("GET", &self.url_of(path)), None)
    }

    /// `GET` with the rights of whose token it is.
    pub fn get_as(&self, path: &str, token: &str) -> Result<Answer, Error> {
        let url = &self.url_of(path);
        let method = "GET";
        self.client.send(&Call { method, url, token }, None)
    }

    /// `POST` of JSON with all rights; `path` begins with a slash.
    pub fn post(&self, path: &str, json: &str) -> Result<Answer, Error> {
        self.request("POST", path, JSON, json)
    }

    /// `DELETE` with all rights; `path` begins with a slash.
    pub fn delete(&self, path: &str) -> Result<Answer, Error> {
        self.client
            .send(&self.call("DELETE", &self.url_of(path)), None)
    }

    /// A request with any method and body, with all rights; `path` begins with a slash.
    pub fn request(
        &self,
        method: &'static str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<Answer, Error> {
        self.client.send(
            &self.call(method, &self.url_of(path)),
            Some((content_type, body)),
        )
    }

    /// The lines of a long answer while it comes: for a path with `watch=true` the events, as JSON.
    /// Ends when the API server ends it (`timeoutSeconds`), fails when that is killed.
    pub fn lines(&self, path: &str) -> Result<Lines, Error> {
        self.client.lines(&self.call("GET", &self.url_of(path)))
    }

    /// Creates or changes the objects of a YAML text, in its order: nodes, definitions of custom
    /// resources and their objects, anything. Takes lists and several documents; a namespaced object
    /// without a namespace is put into `default`; a status is written too.
    pub fn apply(&self, yaml: &str) -> Result<(), Error> {
        self.apply_in("default", yaml)
    }

    /// Like [`apply`](Self::apply), with another namespace for objects that name none.
    pub fn apply_in(&self, namespace: &str, yaml: &str) -> Result<(), Error> {
        apply::apply(self, namespace, yaml)
    }

    /// Makes a namespace; where the controller manager runs, returns when pods are taken there.
    pub fn create_namespace(&self, name: &str) -> Result<(), Error> {
        let path = "/api/v1/namespaces";
        let namespace = serde_json::json!({ "metadata": { "name": name } });
        self.post(path, &namespace.to_string())?
            .expect_success(path)?;
        if self.processes.contains_key(&Program::ControllerManager) {
            self.wait_until_pods_are_taken(name)?;
        }
        Ok(())
    }

    /// Defines the custom resources of a project, as it publishes them; returns when they are served.
    /// Its webhooks and controllers are not there.
    pub fn define(&self, project: Project) -> Result<(), Error> {
        let directory = self.programs.join("definitions").join(project.directory());
        let at = || format!("read {}", directory.display());
        let entries = fs::read_dir(&directory).map_err(Error::io(at()))?;
        let mut files = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Error::io(at()))?;
        files.sort();
        for file in files {
            let text =
                fs::read_to_string(&file).map_err(Error::io(format!("read {}", file.display())))?;
            self.apply(&text)?;
        }
        Ok(())
    }

    /// Creates a node.
    pub fn create_node(&self, node: &Node) -> Result<(), Error> {
        let path = "/api/v1/nodes";
        self.post(path, &node.json().to_string())?
            .expect_success(path)
            .map(drop)
    }

    /// Stops a program where it stands (`SIGSTOP`): its connections stay and nothing answers.
    pub fn pause(&mut self, program: Program) -> Result<(), Error> {
        self.process(program)?.signal(Signal::STOP)
    }

    /// Lets a program that was paused go on.
    pub fn resume(&mut self, program: Program) -> Result<(), Error> {
        self.process(program)?.signal(Signal::CONT)
    }

    /// Ends a program at once (`SIGKILL`); its ports are free when this returns.
    pub fn kill(&mut self, program: Program) -> Result<(), Error> {
        self.process(program)?.kill()
    }

    /// Starts a program again with the same ports and state, after ending it where it runs, and
    /// returns when it is ready.
    pub fn restart(&mut self, program: Program) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            self.kill(program)?;
            self.launch(program)?;
            match self.wait_until_ready(program) {
                // A connection of somebody else holds our port as its own end; such do not last.
                Err(error) if error.is_lost_port() && since.elapsed() < PATIENCE => {
                    thread::sleep(POLL);
                }
                result => return result,
            }
        }
    }

    fn url_of(&self, path: &str) -> String {
        self.url() + path
    }

    fn call<'a>(&'a self, method: &'static str, url: &'a str) -> Call<'a> {
        Call {
            method,
            url,
            token: self.token(),
        }
    }

    /// Starts a program that does not run yet, and does not wait for it.
    fn launch(&mut self, program: Program) -> Result<(), Error> {
        let process = self
            .processes
            .get_mut(&program)
            .ok_or(Error::NotRunning { program })?;
        process.start(&self.guard)
    }

    fn process(&mut self, program: Program) -> Result<&mut Process, Error> {
        self.processes
            .get_mut(&program)
            .ok_or(Error::NotRunning { program })
    }

    /// Returns when the program says that it is ready, or when it or another has ended.
    fn wait_until_ready(&mut self, program: Program) -> Result<(), Error> {
        let url = self.layout.ready_url(program);
        let since = Instant::now();
        loop {
            let answer = self.probe.send(&self.call("GET", &url), None);
            // After the answer, so that it is not a stranger's on a port that ours could not have.
            for process in self.processes.values_mut() {
                if let Some(status) = process.ended()? {
                    let log = process.end_of_log();
                    return Err(Error::Ended {
                        program: process.program,
                        status,
                        log,
                    });
                }
            }
            let answer = match answer {
                Ok(Answer { status: 200, .. }) => return Ok(()),
                Ok(Answer { status, body }) => format!("status {status}: {body}"),
                Err(error) => error.to_string(),
            };
            let waited = since.elapsed();
            if waited > PATIENCE {
                let log = self.process(program)?.end_of_log();
                return Err(Error::NotReady {
                    program,
                    waited,
                    answer,
                    log,
                });
            }
            thread::sleep(POLL);
        }
    }

    /// The controller manager has made the service account without which no pod is taken.
    fn wait_until_pods_are_taken(&self, namespace: &str) -> Result<(), Error> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let since = Instant::now();
        loop {
            let answer = self.get(&path)?;
            if answer.status == 200 || since.elapsed() > PATIENCE {
                return answer.expect_success(&path).map(drop);
            }
            thread::sleep(POLL);
        }
    }

    /// Copies the logs to where they stay, and shows the end of each.
    fn show_logs(&self) {
        let kept = self.keep_logs();
        for process in self.processes.values() {
            eprintln!(
                "--- the end of {}'s log:\n{}",
                process.program,
                process.end_of_log()
            );
        }
        match kept {
            Ok(directory) => eprintln!("--- the whole logs: {}", directory.display()),
            Err(error) => eprintln!("--- cannot keep the logs: {error}"),
        }
    }

    fn keep_logs(&self) -> io::Result<PathBuf> {
        let name = self.directory().file_name().unwrap_or_default();
        let logs = Path::new(KEPT_LOGS).join(name);
        fs::create_dir_all(&logs)?;
        for process in self.processes.values() {
            let log = process.log_file();
            fs::copy(log, logs.join(log.file_name().unwrap_or_default()))?;
        }
        logs.canonicalize()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if self.in_use {
            self.show_logs();
        }
        // The API server before etcd: without etcd it would hang. The others first, as they would
        // only complain.
        for process in self.processes.values_mut().rev() {
            // As in `Process::drop`, which tries again.
            drop(process.kill());
        }
    }
}
