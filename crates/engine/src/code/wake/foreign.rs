//! Who woke a workflow from outside, as well as can be told.

use std::backtrace::Backtrace;

/// How many functions are named: the one that woke, and who called it.
const FRAMES_MAX: usize = 2;

/// What to tell the author.
pub(super) fn describe() -> String {
    let thread = std::thread::current();
    let who = match thread.name() {
        Some(name) => format!("thread {name:?}"),
        None => "a thread without a name".to_owned(),
    };
    let frames = callers(&Backtrace::force_capture().to_string());
    let whence = if frames.is_empty() { String::new() } else { format!(" ({})", frames.join(", called by ")) };
    format!(
        "the workflow was woken from outside by {who}{whence}: workflow code may only await operations of its Ctx; \
         do other waiting inside a step"
    )
}

/// The innermost functions of a backtrace that say something: not the standard library's, and not ours.
fn callers(backtrace: &str) -> Vec<String> {
    let mut frames: Vec<(&str, Option<&str>)> = Vec::new();
    for line in backtrace.lines().map(str::trim) {
        match line.split_once(": ") {
            Some((number, function)) if number.parse::<u32>().is_ok() => frames.push((function, None)),
            Some(_) | None => {
                if let (Some(place), Some((_, at))) = (line.strip_prefix("at "), frames.last_mut()) {
                    *at = Some(place);
                }
            }
        }
    }
    let telling = frames.into_iter().filter(|(function, at)| is_telling(function, at.unwrap_or_default()));
    telling.take(FRAMES_MAX).map(|(function, at)| format!("{function}{}", at.map(place).unwrap_or_default())).collect()
}

fn is_telling(function: &str, at: &str) -> bool {
    const SILENT: [&str; 8] = ["std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "__rust", "<unknown>"];
    let is_std = at.starts_with("/rustc/") || SILENT.iter().any(|prefix| function.starts_with(prefix));
    let is_ours = function.contains("outlast::code::wake") || at.contains("src/code/wake");
    !is_std && !is_ours
}

/// ` at shop/src/main.rs:12:5`: of a dependency's path, what is before its name says nothing.
fn place(at: &str) -> String {
    let short = match at.split_once("/registry/src/").and_then(|(_, path)| path.split_once('/')) {
        Some((_, path)) => path,
        None => at.trim_start_matches("./"),
    };
    format!(" at {short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_telling_functions_are_named_and_with_their_places() {
        let backtrace = "
   0: describe
             at ./src/code/wake/foreign.rs:13:5
   1: <outlast::code::wake::Wakes as alloc::task::Wake>::wake
   2: wake
             at /rustc/59807616/library/core/src/task/wake.rs:3:5
   3: core::task::wake::Waker::wake
   4: send<u32>
             at /home/ann/.cargo/registry/src/index.crates.io-1949/futures-channel-0.3.34/src/oneshot.rs:9:1
   5: shop::checkout::{{closure}}
             at ./src/shop.rs:7:9
   6: shop::main";
        assert_eq!(
            callers(backtrace),
            [
                "send<u32> at futures-channel-0.3.34/src/oneshot.rs:9:1",
                "shop::checkout::{{closure}} at src/shop.rs:7:9"
            ]
        );
    }
}
