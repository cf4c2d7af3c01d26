//! `outlast run` at a terminal: a real one, which the test sits at.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::place::{Place, eventually};

/// The command at a terminal, and what it has shown so far.
struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
    /// Ends when nobody has the terminal any more.
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    fn open(place: &Place, args: &[&str]) -> Terminal {
        Terminal::with(place, args, &[])
    }

    fn with(place: &Place, args: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let screen = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        let mut command = place.command(args);
        command.stdin(screen()).stdout(screen()).stderr(screen()).env("TERM", "xterm").env("USER", "ann");
        command.envs(environment.iter().copied());
        let child = command.spawn().unwrap();
        let master = File::from(master);
        let keys = master.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, seen) = (master, Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = reader.read(&mut bytes) {
                if count == 0 {
                    return;
                }
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { child, keys, shown, reader: Some(reader) }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        eventually(&format!("{text:?} on the screen; it shows {:?}", self.shown()), || self.shown().contains(text));
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    fn exits(&mut self, code: i32) -> String {
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let shown = self.shown();
        assert_eq!(status.code(), Some(code), "{shown}");
        shown
    }
}

#[test]
fn approvals_and_signals_are_answered_where_the_run_is_watched() {
    let script = "const ok = await Approval.request({ title: \"Ship it?\", assignee: \"sales\" })\n\
                  const word = await Signal.next(\"word\")\n\
                  return [ok.approved, ok.by, ok.feedback, word]\n";
    let place = Place::new(&[("a.wf", script)]);
    let mut terminal = Terminal::open(&place, &["run", "a.wf", "--id", "a"]);
    terminal.shows("Ship it?");
    terminal.types("perhaps\n");
    terminal.shows("y or n");
    terminal.types("y gladly\n");
    terminal.shows("approved by ann: gladly");
    terminal.shows("the signal \"word\" is waited for");
    terminal.types("hello\n");
    terminal.shows("that is not JSON");
    terminal.shows("a text has quotes: \"hello\"");
    terminal.types("\"hello\"\n");
    let shown = terminal.exits(0);
    for part in ["true", "\"ann\"", "\"gladly\"", "\"hello\""] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn a_question_that_is_no_longer_open_is_taken_back() {
    let script = "try { await Signal.next(\"word\", { timeout: \"1s\" }) } catch (error) { return error.code }";
    let place = Place::new(&[("a.wf", script)]);
    let mut terminal = Terminal::open(&place, &["run", "a.wf"]);
    terminal.shows("the signal \"word\" is waited for");
    terminal.shows("that is no longer asked");
    assert!(terminal.exits(0).contains("\"timeout\""));
}

#[test]
fn what_was_answered_meanwhile_is_not_asked() {
    let script = "const ok = await Approval.request({ title: \"Ship it?\" })\nreturn [ok.approved, await Signal.next(\"word\")]\n";
    let place = Place::new(&[("a.wf", script)]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    place.call(&["approve", "a"]).exits(0);
    place.call(&["run", "a.wf", "--id", "a"]).exits(6);
    let mut terminal = Terminal::open(&place, &["run", "a.wf", "--id", "a"]);
    terminal.shows("the signal \"word\" is waited for");
    terminal.types("{\"x\":\n");
    terminal.shows("that is not JSON");
    terminal.types("1\n");
    let shown = terminal.exits(0);
    assert!(!shown.contains("y approves") && !shown.contains("no longer asked"), "{shown}");
    assert!(!shown.contains("a text has quotes"), "{shown}");
}

#[test]
fn whoever_leaves_a_question_is_told_how_it_can_be_answered() {
    // With a deadline: it would be waited for.
    let script = "return (await Approval.request({ title: \"Ship it?\", timeout: \"1 day\" })).approved\n";
    let place = Place::new(&[("a.wf", script)]);
    let mut terminal = Terminal::open(&place, &["run", "a.wf", "--id", "a"]);
    terminal.shows("y approves");
    terminal.types("\u{4}");
    let shown = terminal.exits(6);
    assert!(shown.contains("outlast approve a __approve-0"), "{shown}");
    // Ctrl-C: what is said begins a line of its own, and nothing is said of what runs if nothing does.
    let mut terminal = Terminal::open(&place, &["run", "a.wf", "--id", "a"]);
    terminal.shows("y approves");
    let child = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(child, rustix::process::Signal::INT).unwrap();
    let shown = terminal.exits(130);
    assert!(shown.contains("\ninterrupted: a is safe") || shown.contains("\n\u{1b}[33minterrupted"), "{shown:?}");
    assert!(!shown.contains("stopping:"), "{shown}");
}

#[test]
fn timers_count_down_and_ctrl_c_says_how_to_go_on() {
    let place = Place::new(&[("a.wf", "await Timer.delay(\"1h\")")]);
    let mut terminal = Terminal::open(&place, &["run", "a.wf", "--id", "a"]);
    terminal.shows("59 min 59 s left");
    terminal.shows("59 min 58 s left");
    let child = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(child, rustix::process::Signal::INT).unwrap();
    let shown = terminal.exits(130);
    assert!(shown.contains("outlast run a.wf --id a"), "{shown}");
}

#[test]
fn colours_are_for_terminals_and_can_be_refused() {
    let place = Place::new(&[("a.wf", "return 1")]);
    let green = "\u{1b}[32m✓";
    assert!(Terminal::open(&place, &["run", "a.wf"]).exits(0).contains(green));
    assert!(!Terminal::open(&place, &["run", "a.wf", "--color", "never"]).exits(0).contains(green));
    let always = place.call(&["run", "a.wf", "--color", "always"]).exits(0);
    assert!(always.err.contains(green), "{}", always.err);
    let plain = place.call(&["run", "a.wf"]).exits(0);
    assert!(!plain.err.contains('\u{1b}'), "{}", plain.err);
    // The environment says otherwise: at a terminal, and where there is none.
    let refused = Terminal::with(&place, &["run", "a.wf"], &[("NO_COLOR", "1")]).exits(0);
    assert!(refused.contains("✓") && !refused.contains(green), "{refused}");
    let forced = place.command(&["run", "a.wf"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&forced.stderr).contains(green));
    // And what is said counts more.
    let said = Terminal::with(&place, &["run", "a.wf", "--color", "always"], &[("NO_COLOR", "1")]).exits(0);
    assert!(said.contains(green), "{said}");
}
