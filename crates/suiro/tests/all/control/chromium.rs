//! Chromium as a person's hands and eyes: it opens a page, clicks, types, and takes frames. It is spoken to by the
//! DevTools protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::common::WITHIN;

/// A browser with one page. Dropping it ends it.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    replies: Receiver<Value>,
    session: String,
    last: u64,
    loaded: bool,
}

impl Browser {
    /// Starts the program with an empty page; `profile` is a folder for what it keeps.
    pub fn start(program: &Path, profile: &Path) -> Self {
        // With --remote-debugging-pipe it reads commands from descriptor 3 and writes replies to 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"]).arg(program);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args(["--disable-dev-shm-usage", "--no-proxy-server", "--disable-extensions"]);
        command.args(["--disable-background-networking", "--disable-component-update"]);
        command.args(["--remote-debugging-pipe", "--hide-scrollbars", "about:blank"]);
        command.arg(format!("--user-data-dir={}", profile.display())).env("HOME", profile);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (commands, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(output).split(0).map_while(Result::ok);
            let mut parsed = messages.map(|text| serde_json::from_slice(&text).unwrap());
            // A test that has seen enough hears no more.
            parsed.try_for_each(|message| sender.send(message))
        });
        let mut browser =
            Self { child, commands, replies, session: String::new(), last: 0, loaded: false };
        let page = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        browser.ask("Page.enable", &json!({}));
        browser
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let reply = self.next();
            if reply["id"] == self.last {
                assert!(reply["error"].is_null(), "{method}: {}", reply["error"]);
                return reply["result"].clone();
            }
        }
    }

    /// The next reply or event. A question of the page, whether the person is sure, is answered with yes.
    fn next(&mut self) -> Value {
        let message = self.replies.recv_timeout(WITHIN).expect("Chromium answers");
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded = true,
            Some("Page.javascriptDialogOpening") => {
                let accept = json!({ "id": 0, "method": "Page.handleJavaScriptDialog",
                    "params": { "accept": true }, "sessionId": self.session });
                self.commands.write_all(format!("{accept}\0").as_bytes()).unwrap();
            }
            _ => {}
        }
        message
    }

    /// Opens a page, and waits until it is there.
    pub fn open(&mut self, url: &str) {
        self.loaded = false;
        let opened = self.ask("Page.navigate", &json!({ "url": url }));
        assert!(opened["errorText"].is_null(), "{url}: {opened}");
        while !self.loaded {
            self.next();
        }
    }

    /// What an expression of JavaScript is in the page.
    pub fn read(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let read = self.ask("Runtime.evaluate", &params);
        assert!(read["exceptionDetails"].is_null(), "{expression}: {read}");
        read["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn until(&mut self, holds: &str) {
        let patience = WITHIN.as_millis();
        let wait = format!(
            "new Promise((done) => {{ const began = Date.now(); const look = () => {{
                if ({holds}) done(true);
                else if (Date.now() - began > {patience}) done(false);
                else setTimeout(look, 20);
            }}; look(); }})"
        );
        if self.read(&wait) != json!(true) {
            panic!("not {holds} in:\n{}", self.read("document.body.innerText"));
        }
    }

    /// Clicks in the middle of the element that a selector finds first.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        let place = self.read(&format!(
            "(() => {{ const found = document.querySelector({selector}); found.scrollIntoView({{ block: 'center' }});
               const box = found.getBoundingClientRect();
               return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let params = json!({ "type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": 1 });
            self.ask("Input.dispatchMouseEvent", &params);
        }
    }

    /// Types a text where the focus is.
    pub fn write(&mut self, text: &str) {
        self.ask("Input.insertText", &json!({ "text": text }));
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let code = if key == "Enter" { 13 } else { 9 };
            let params = json!({ "type": kind, "key": key, "code": key, "text": text,
                "windowsVirtualKeyCode": code });
            self.ask("Input.dispatchKeyEvent", &params);
        }
    }

    /// Shows the page as on a screen of that width, in light or dark colours, and writes a frame of all of it.
    pub fn picture(&mut self, width: u32, colours: &str, path: &Path) {
        let screen =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.ask("Emulation.setDeviceMetricsOverride", &screen);
        let wanted = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        self.ask("Emulation.setEmulatedMedia", &json!({ "features": wanted }));
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.ask("Page.captureScreenshot", &params);
        let picture = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        std::fs::write(path, picture).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
