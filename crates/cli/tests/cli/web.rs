//! Somebody who asks a server, and the servers they ask.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{PATIENCE, Place};

/// A server that is a process of its own. It is killed with the test.
pub(crate) struct Web {
    child: Child,
    pub(crate) address: String,
    /// What it wrote to standard error after its address, line by line.
    lines: Receiver<String>,
    pub(crate) heard: Vec<String>,
    pub(crate) token: Option<String>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Web {
    /// Starts `outlast serve` or `outlast dev` with these arguments, on a free port.
    pub(crate) fn start(place: &Place, args: &[&str]) -> Web {
        let mut command = place.command(args);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Web::from(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until a process says where it listens.
    pub(crate) fn from(mut child: Child) -> Web {
        let (send, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines() {
                let Ok(line) = line else { break };
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut web = Web { child, address: String::new(), lines, heard: Vec::new(), token: None };
        let line = web.hear("http://");
        let found = line.split("http://").nth(1).unwrap();
        web.address = found.chars().take_while(|letter| letter.is_ascii_digit() || ".:".contains(*letter)).collect();
        web
    }

    /// Waits for a line with this text.
    #[track_caller]
    pub(crate) fn hear(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("never said: {text}\nbut:\n{}", self.heard.join("\n")));
            self.heard.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// A connection on which a request was sent.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = body.map_or(String::new(), ToString::to_string);
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        if let Some(token) = &self.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let mut text = String::new();
        let _ = self.ask(method, path, &[], body).read_to_string(&mut text);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, body: body.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, Some(body))
    }

    /// What a run came to.
    pub(crate) fn result(&self, run: &str) -> Value {
        self.get(&format!("/api/v1/runs/{run}/result?wait_ms=30000")).is(200).json()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, and gives everything it said.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.heard.extend(self.lines.iter());
        (status, std::mem::take(&mut self.heard).join("\n"))
    }

    /// Asks it to stop, and waits.
    pub(crate) fn stop(self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.end()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
