//! Traces of runs, and a collector that takes them, or does not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;

use crate::place::{PATIENCE, Place, eventually};
use crate::web::Web;

const SCRIPT: &str = "workflow parcel(n) {\n  const a = await Task.run(\"noop\", n)\n  await Task.delay(\"20ms\")\n  \
                      if (n == 13) throw new Error(\"unlucky\")\n  return a\n}\n";

fn body(mut stream: TcpStream, status: &str) -> Option<(String, Vec<u8>)> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length: usize = text.split("content-length:").nth(1)?.lines().next()?.trim().parse().ok()?;
    while bytes.len() < head + length {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
    stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes()).ok()?;
    Some((text, bytes[head..].to_vec()))
}

/// A collector that answers everything alike, and what it is told.
fn collector(status: &'static str) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Each by itself: a client may open a connection that it does not use yet, and ask on another one.
            let send = send.clone();
            std::thread::spawn(move || body(stream, status).map(|told| send.send(told)));
        }
    });
    (url, told)
}

/// Texts lie in what is told as they are.
fn tells(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_collector_is_told_of_every_run_that_ends() {
    let place = Place::new(&[("parcel.wf", SCRIPT)]);
    let (url, told) = collector("200 OK");
    let web = Web::start(&place, &["serve", "--workflows", ".", "--otlp", &url]);
    for (run, input) in [("p-1", 1), ("p-13", 13)] {
        web.post("/api/v1/runs", &json!({ "workflow": "parcel", "id": run, "input": input })).is(201);
        web.result(run);
    }
    let mut all = Vec::new();
    for run in ["p-1", "p-13"] {
        while !tells(&all, run) {
            let (head, body) = told.recv_timeout(PATIENCE).unwrap();
            assert!(head.starts_with("post /v1/traces ") && head.contains("application/x-protobuf"), "{head}");
            all.extend(body);
        }
    }
    for text in [
        "run parcel",
        "task __task-noop-0",
        "timer __sleep-0",
        "outlast.run",
        "outlast.workflow",
        "outlast.step",
        "outlast.namespace",
    ] {
        assert!(tells(&all, text), "{text}: {}", String::from_utf8_lossy(&all));
    }
    assert!(tells(&all, "completed") && tells(&all, "failed"), "{}", String::from_utf8_lossy(&all));
    assert!(!tells(&all, "unlucky"), "what belongs to authors is not told");
    assert_eq!(web.stop().0.code(), Some(0));
}

#[test]
fn runs_go_on_when_the_collector_is_away_or_never_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [silent.local_addr().unwrap(), away] {
        let place = Place::new(&[("parcel.wf", SCRIPT)]);
        let mut web = Web::start(&place, &["serve", "--workflows", ".", "--otlp", &format!("http://{address}")]);
        for n in 0..30 {
            web.post("/api/v1/runs", &json!({ "workflow": "parcel", "id": format!("p-{n}"), "input": n })).is(201);
        }
        eventually("all runs have ended", || {
            let ended = web.get("/api/v1/runs?status=completed,failed").is(200).json();
            ended["runs"].as_array().unwrap().len() == 30
        });
        if address == away {
            web.hear("the collector does not take traces");
        }
        let (status, said) = web.stop();
        assert_eq!(status.code(), Some(0), "{said}");
        assert!(said.matches("does not take traces").count() <= 1, "it is said once: {said}");
    }
}

#[test]
fn a_collector_that_refuses_is_asked_again_and_it_is_said_once() {
    let place = Place::new(&[("parcel.wf", SCRIPT)]);
    let (url, told) = collector("400 Bad Request");
    let web = Web::start(&place, &["serve", "--workflows", ".", "--otlp", &url]);
    for run in ["p-1", "p-2", "p-3"] {
        web.post("/api/v1/runs", &json!({ "workflow": "parcel", "id": run, "input": 1 })).is(201);
        let mut all = Vec::new();
        while !tells(&all, run) {
            all.extend(told.recv_timeout(PATIENCE).unwrap().1);
        }
    }
    let (status, said) = web.stop();
    assert_eq!((status.code(), said.matches("does not take traces").count()), (Some(0), 1), "{said}");
}
