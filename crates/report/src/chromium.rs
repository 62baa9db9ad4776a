//! A browser for tests: Chromium without a window, driven through two pipes by its DevTools protocol.

#![allow(dead_code)] // Each test uses a part of this.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take: a busy machine starts a browser slowly.
const PATIENCE: Duration = Duration::from_secs(60);
/// Names of its program.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page.
pub struct Browser {
    program: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    last: u64,
    /// Errors that the page's console has shown since they were last taken.
    errors: Vec<String>,
    _profile: tempfile::TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Whether the reader prefers a dark page.
    pub dark: bool,
    /// Whether it is laid out as on paper.
    pub paper: bool,
}

impl Browser {
    /// A new one; `None` with a message where no Chromium is installed.
    pub fn start() -> Option<Browser> {
        let is_there = |name: &&str| {
            let said = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            said.is_ok_and(|output| output.status.success())
        };
        let Some(name) = PROGRAMS.into_iter().find(is_there) else {
            eprintln!("skipped: no chromium is installed");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The browser reads its commands from descriptor 3 and answers on 4.
        let line = r#"exec "$0" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-extensions \
            --disable-background-networking --disable-dev-shm-usage --user-data-dir="$1" --remote-debugging-pipe \
            3<&0 4>&1 </dev/null >/dev/null 2>&1"#;
        let mut program = Command::new("sh")
            .args(["-c", line, name])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, out) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, errors) = (String::new(), Vec::new());
        let mut browser = Browser { program, to, from, session, last: 0, errors, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// What the browser answers to `method`.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        let id = self.last;
        let answer = self.until(&|message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    /// The next message that is `wanted`; errors on the way are kept.
    fn until(&mut self, wanted: &dyn Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.from.recv_timeout(PATIENCE).expect("the browser says nothing");
            let params = &message["params"];
            match message["method"].as_str().unwrap_or("") {
                "Runtime.exceptionThrown" => self.errors.push(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" => self.errors.push(params["args"].to_string()),
                "Log.entryAdded" if params["entry"]["level"] == "error" => {
                    self.errors.push(params["entry"].to_string())
                }
                _ => {}
            }
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Opens `url` and waits until the page is whole.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        self.until(&|message| message["method"] == "Page.loadEventFired");
    }

    /// From now on the page is looked at like this.
    pub fn look(&mut self, look: Look) {
        let mobile = look.width < 600;
        let size = json!({"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if look.dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let media = if look.paper { "print" } else { "screen" };
        self.call("Emulation.setEmulatedMedia", json!({"media": media, "features": features}));
    }

    /// The value of a JavaScript expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Errors of the console since they were last asked for.
    pub fn errors(&mut self) -> Vec<String> {
        // What the page did so far has been told when this is answered.
        self.value("1");
        std::mem::take(&mut self.errors)
    }

    /// A picture of the whole page, as PNG in base64, into `file` as it is decoded by `base64 -d`.
    pub fn picture(&mut self, file: &Path) {
        let taken = self.call("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        decode(taken["data"].as_str().unwrap(), file);
    }

    /// The page on A4 paper, as PDF into `file`.
    pub fn print(&mut self, file: &Path) {
        let size = json!({"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": false});
        let printed = self.call("Page.printToPDF", size);
        decode(printed["data"].as_str().unwrap(), file);
    }
}

fn decode(base64: &str, file: &Path) {
    let into = std::fs::File::create(file).unwrap();
    let mut program = Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(into).spawn().unwrap();
    program.stdin.take().unwrap().write_all(base64.as_bytes()).unwrap();
    assert!(program.wait().unwrap().success());
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its helpers end with it.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
